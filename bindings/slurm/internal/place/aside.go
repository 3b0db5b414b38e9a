// SPDX-License-Identifier: Apache-2.0

package place

import (
	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/internal/words"
)

// Aside leaves every job to Slurm that waits for us, as it was submitted; it needs no library and no node.
// replaces: as in Options.
func Aside(jobs []slurm.Job, now int64, replaces bool) []slurm.Change {
	s := &pass{now: now, planner: &Planner{options: Options{Replaces: replaces}}}
	for _, job := range jobs {
		c := &candidate{job: job}
		c.record, _ = words.RecordOf(job.AdminComment)
		if !job.Pending() || !words.Ours(job.Comment) || c.record.Verb == words.Left {
			continue
		}
		if c.record.Verb == "" {
			c.wish, _ = words.Parse(job.Comment, job.WorkDir)
			if c.wish.WaitS == 0 {
				continue // it waits for nothing of ours
			}
		}
		s.leave(c, "libhorus stepped aside")
	}
	var out []slurm.Change
	for _, one := range s.told {
		out = append(out, one.change)
	}
	return out
}
