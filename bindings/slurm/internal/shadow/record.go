// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"fmt"
	"io"
	"strings"
	"time"

	"libhorus.org/slurm/internal/slurm"
)

// Recorder writes down jobs that ended as sacct would, and which devices they had, which sacct does not know. The controller
// tells of a job for MinJobAge (300 s) after its end: who looks more often misses none.
type Recorder struct {
	out  io.Writer
	runs map[uint64]slurm.Job // that were seen running
}

// NewRecorder writes to out, which begins with Header.
func NewRecorder(out io.Writer) *Recorder { return &Recorder{out, map[uint64]slurm.Job{}} }

// Header is the first line of a record.
const Header = "JobID|JobName|Account|Partition|State|Start|End|NodeList|AllocTRES|Comment|Devices\n"

// Look at what the controller tells at a time, in s since 1970.
func (r *Recorder) Look(jobs []slurm.Job, now int64) error {
	for _, job := range jobs {
		run, was := r.runs[job.ID]
		if was && (!job.Running() || job.Started != run.Started) {
			delete(r.runs, job.ID)
			ended := job
			if job.Started != run.Started || job.Pending() || ended.Ended < run.Started {
				// Requeued: of the end of that run the controller tells nothing any more.
				ended.State, ended.Ended = "REQUEUED", now
			}
			if _, err := io.WriteString(r.out, line(run, ended)); err != nil {
				return err
			}
			was = false
		}
		if job.Running() && (!was || job.State == "RUNNING") { // of one that is completing Slurm may tell no devices any more
			r.runs[job.ID] = job
		}
	}
	return nil
}

// line of a run; of its end the controller tells later.
func line(run, ended slurm.Job) string {
	gpus, shards := 0, 0
	var devices []string
	for _, gres := range run.Gres {
		var here []string
		for _, g := range slurm.GresOf(gres) {
			if g.Count == 0 {
				continue
			}
			here = append(here, strings.Split(g.Index, ",")...)
			if g.Name == "gpu" {
				gpus += g.Count
			} else {
				shards += g.Count
			}
		}
		devices = append(devices, strings.Join(here, ";"))
	}
	stamp := func(at int64) string { return time.Unix(at, 0).Format("2006-01-02T15:04:05") }
	fields := []string{
		fmt.Sprint(run.ID), run.Name, run.Account, run.Partition, ended.State, stamp(run.Started), stamp(ended.Ended), run.Hosts,
		fmt.Sprintf("cpu=%d,mem=%dM,gres/gpu=%d,gres/shard=%d", run.CPUs, run.MemMiB, gpus, shards), run.Comment, strings.Join(devices, "+"),
	}
	for i, field := range fields {
		fields[i] = strings.Map(func(c rune) rune {
			if c == '|' || c < ' ' {
				return ' '
			}
			return c
		}, field)
	}
	return strings.Join(fields, "|") + "\n"
}
