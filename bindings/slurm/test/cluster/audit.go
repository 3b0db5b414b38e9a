// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/internal/words"
)

// Auditor asks the controller alone, again and again, whether every device holds what it may hold.
type Auditor struct {
	cluster *Cluster
	stop    chan struct{}
	done    sync.WaitGroup
	mu      sync.Mutex
	wrong   map[string]string // and what the controller wrote of those jobs
	looks   int
	most    int // jobs on a device
}

// Audit starts an auditor. memory is MiB of the GPU of each gres type without its number.
func (c *Cluster) Audit(memory map[string]int64) *Auditor {
	a := &Auditor{cluster: c, stop: make(chan struct{}), wrong: map[string]string{}}
	a.done.Add(1)
	go func() {
		defer a.done.Done()
		for {
			if jobs, err := (slurm.Client{}).Jobs(context.Background()); err == nil { // else it is being restarted
				a.look(jobs, memory)
			}
			select {
			case <-a.stop:
				return
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	return a
}

type use struct {
	gpus, shards, jobs int
	mem                int64
	found              []slurm.Job
}

func (u *use) names() (out []uint64) {
	for _, job := range u.found {
		out = append(out, job.ID)
	}
	return out
}

// find writes down what is wrong with jobs: as they are told now, and the controller's own lines of them.
func (a *Auditor) find(jobs []slurm.Job, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if _, is := a.wrong[text]; is {
		return
	}
	var why strings.Builder
	of := []string{`slurmctld version \S+ started`}
	for _, job := range jobs {
		fmt.Fprintf(&why, "\n%+v", job)
		of = append(of, fmt.Sprintf(`JobId=%d\b`, job.ID))
	}
	for _, line := range regexp.MustCompile(`(?m)^.*(`+strings.Join(of, "|")+`).*$`).FindAllString(a.cluster.Read("slurmctld.log"), -1) {
		why.WriteString("\n" + line)
	}
	a.wrong[text] = why.String()
}

func (a *Auditor) look(jobs []slurm.Job, memory map[string]int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looks++
	devices := map[string]*use{}
	for _, job := range jobs {
		hosts, err := slurm.Hosts(job.Hosts)
		if !job.Running() || job.State == "COMPLETING" || err != nil {
			continue
		}
		record, _ := words.RecordOf(job.AdminComment)
		for i, host := range hosts {
			if i >= len(job.Gres) {
				break
			}
			for _, g := range slurm.GresOf(job.Gres[i]) {
				if g.Count == 0 {
					continue
				}
				key := host + "/" + g.Type
				if devices[key] == nil {
					devices[key] = &use{}
				}
				d := devices[key]
				d.jobs, d.found = d.jobs+1, append(d.found, job)
				if g.Name == "gpu" {
					d.gpus += g.Count
				} else {
					d.shards, d.mem = d.shards+g.Count, d.mem+record.Mem
				}
				if record.Verb == words.Placed && record.On != "" && g.Name == "shard" && record.On != key {
					a.find([]slurm.Job{job}, "job %d: expected on %s, as its comment says, found on %s", job.ID, record.On, key)
				}
			}
		}
	}
	for key, d := range devices {
		a.most = max(a.most, d.jobs)
		_, model, _ := strings.Cut(key, "/")
		model, _, _ = strings.Cut(model, "_")
		switch {
		case d.gpus > 1 || d.gpus == 1 && d.shards > 0:
			a.find(d.found, "%s: expected one job with the whole GPU, found jobs %v", key, d.names())
		case d.shards > a.cluster.options.Shards:
			a.find(d.found, "%s: expected at most %d shards, found %d of jobs %v", key, a.cluster.options.Shards, d.shards, d.names())
		case memory[model] > 0 && d.mem > memory[model]:
			a.find(d.found, "%s: expected at most %d MiB, found %d of jobs %v", key, memory[model], d.mem, d.names())
		}
	}
}

// End says what was wrong, how often it looked, and how many jobs shared a device at most.
func (a *Auditor) End() (wrong []string, looks, most int) {
	close(a.stop)
	a.done.Wait()
	for text, why := range a.wrong {
		wrong = append(wrong, text+why)
	}
	return wrong, a.looks, a.most
}

// Runs are how often each job began and ended, as the jobs themselves wrote down. A beginning counts by its number of
// restarts: what Slurm itself runs again is no second run.
func (c *Cluster) Runs() (begun map[string]int, ended map[string]int) {
	begun, ended = map[string]int{}, map[string]int{}
	for _, line := range strings.Split(c.Read("ran"), "\n") {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[1] == "begins" {
			begun[fields[0]]++
		} else if len(fields) == 2 {
			ended[fields[0]]++
		}
	}
	return begun, ended
}

// Ends are how the controller wrote down that jobs ended, the last time of each.
func (c *Cluster) Ends() map[string]string {
	out := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^JobId=([0-9]+) .* JobState=([A-Z]+) `).FindAllStringSubmatch(c.Read("jobcomp"), -1) {
		out[match[1]] = match[2]
	}
	return out
}
