// SPDX-License-Identifier: Apache-2.0

// Package e2e tests horus-slurm on a real Slurm.
package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/internal/words"
	"libhorus.org/slurm/test/cluster"
)

const soon = 30 * time.Second // what waits for a pass of the daemon and one of Slurm

// fills makes the comment of a job that takes so much of its GPU.
func fills(util int, gib float64, more string) string {
	return fmt.Sprintf("horus:gpu_util_pct=%d,gpu_memory_gib=%g,wait=60%s", util, gib, more)
}

// shared are the options of a job that may share a GPU, and waits for us at most a minute.
func shared(comment string, more ...string) []string {
	return append([]string{"--gres=shard:4", "--begin=now+60", "--comment", comment}, more...)
}

// whole are the options of a job that has GPUs of its own.
func whole(gpus int, more ...string) []string {
	return append([]string{fmt.Sprintf("--gpus=%d", gpus), "--begin=now+60", "--comment", "horus:wait=60"}, more...)
}

func start(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	if why := cluster.Missing(); why != "" {
		t.Skip(why)
	}
	cluster.Binary(t)
	return cluster.Start(t, options)
}

// running waits until jobs run, and returns them as the controller tells them then.
func running(c *cluster.Cluster, ids ...uint64) []slurm.Job {
	var jobs []slurm.Job
	c.Wait(fmt.Sprintf("jobs %v run", ids), soon, func() bool {
		jobs = nil
		for _, job := range c.Jobs() {
			for _, id := range ids {
				if job.ID == id && job.State == "RUNNING" {
					jobs = append(jobs, job)
				}
			}
		}
		return len(jobs) == len(ids)
	})
	return jobs
}

// on are the devices of a job, "n1/a100_0", as the controller tells them.
func on(t *testing.T, job slurm.Job) []string {
	t.Helper()
	var out []string
	hosts, err := slurm.Hosts(job.Hosts)
	if err != nil {
		t.Fatal(err)
	}
	for i, host := range hosts {
		for _, g := range slurm.GresOf(job.Gres[i]) {
			if g.Count > 0 {
				out = append(out, host+"/"+g.Type)
			}
		}
	}
	return out
}

func record(job slurm.Job) words.Record {
	r, _ := words.RecordOf(job.AdminComment)
	return r
}

func TestAJobIsPlacedOnANodeAndADeviceAndEnds(t *testing.T) {
	c := start(t, cluster.Options{})
	c.StartDaemon()
	id := c.Submit("1", shared(fills(30, 8, ""))...)
	job := running(c, id)[0]
	if r := record(job); r.Verb != words.Placed || strings.Join(on(t, job), "+") != r.On || r.Mem < 8192 || !strings.HasPrefix(r.Text, "Placed") {
		t.Errorf("expected an admin comment with the place that it has, found %v beside %q", on(t, job), job.AdminComment)
	}
	c.Wait("the job ends", soon, func() bool { return c.Job(id).State == "COMPLETED" })
}

func TestJobsThatAskForShardsShareAGPUAndSayBesideWhom(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	c.StartDaemon()
	first := c.Submit("60", shared(fills(30, 8, ""))...)
	running(c, first)
	second := c.Submit("60", shared(fills(30, 8, ""))...)
	jobs := running(c, first, second)
	if a, b := on(t, jobs[0]), on(t, jobs[1]); len(a) != 1 || len(b) != 1 || a[0] != b[0] {
		t.Errorf("expected both on one GPU, found %v and %v", a, b)
	}
	if text := record(jobs[1]).Text; !strings.Contains(text, fmt.Sprintf("beside job %d; ", first)) {
		t.Errorf("expected who is beside it, found %q", text)
	}
}

func TestWholeGPUsAreSharedWithNobody(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1})
	c.StartDaemon()
	one := c.Submit("60", whole(1)...)
	running(c, one)
	other := running(c, c.Submit("60", shared(fills(10, 4, ""))...))[0]
	if on(t, other)[0] == on(t, running(c, one)[0])[0] {
		t.Errorf("expected another GPU than that of job %d, found %v", one, on(t, other))
	}
	both := c.Submit("60", whole(2)...)
	c.Wait("a job of whole GPUs is Slurm's", soon, func() bool { job := c.Job(both); return record(job).Verb == words.Left && job.Reason == "Resources" })
}

func TestAJobOfOneAccountSharesWithItsOwnAlone(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	c.StartDaemon()
	running(c, c.Submit("60", shared(fills(30, 8, ""), "-A", "red")...))
	blue := c.Submit("60", shared(fills(30, 8, ""), "-A", "blue")...)
	c.Wait("a job of another account waits", soon, func() bool { return record(c.Job(blue)).Verb == words.Waits })
	running(c, c.Submit("60", shared(fills(30, 8, ""), "-A", "red")...))
	if state := c.Job(blue).State; state != "PENDING" {
		t.Errorf("expected blue to wait, found it %s", state)
	}
}

func TestJobsOfSeveralAccountsShareWhereBothSaySo(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	c.StartDaemon()
	running(c, c.Submit("60", shared(fills(30, 8, ",share=anyone"), "-A", "red")...))
	running(c, c.Submit("60", shared(fills(30, 8, ",share=anyone"), "-A", "blue")...))
}

func TestTheGPUIsOfATypeThatTheJobAllows(t *testing.T) {
	c := start(t, cluster.Options{GPUs: []string{"a100_0", "v100_0"}})
	c.StartDaemon()
	for range 2 {
		job := running(c, c.Submit("60", shared(fills(90, 8, ",gpu_types=v100"))...))[0]
		if place := on(t, job)[0]; !strings.HasSuffix(place, "/v100_0") {
			t.Errorf("job %d: expected a V100, found %s", job.ID, place)
		}
	}
}

func TestAModelIsReadAndItsMemoryCounted(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	models := dir + "/../../../../examples/models/graphs"
	c := start(t, cluster.Options{})
	c.StartDaemon()
	job := running(c, c.Submit("60", shared("horus:model=resnet50.onnx,batch=64,slowdown_bound=1.3,wait=60", "--chdir", models)...))[0]
	if r := record(job); r.Mem < 7000 || r.Mem > 20_000 {
		t.Errorf("expected the memory that ResNet-50 needs, found %q", job.AdminComment)
	}
}

func TestWrongWordsGetASentenceAndTheJobRuns(t *testing.T) {
	c := start(t, cluster.Options{})
	c.StartDaemon()
	for words, says := range map[string]string{
		"horus:batsch=3,wait=60":                   "expected one of batch,",
		"horus:slowdown_bound=0.5,wait=60":         "slowdown_bound: expected a number from 1 to",
		"horus:model=none.onnx,wait=60":            "none.onnx: no such file",
		"horus:model=/dev/zero,wait=60":            "expected a regular file",
		"horus:gpu_types=t4,wait=60":               "expected some of [a100-40gb]",
		"horus:gpu_util_pct=10,wait=60":            "gpu_util_pct: expected beside gpu_memory_gib, found without",
		"horus:\"JobState=RUNNING' ,x\n=y,wait=60": "expected one of batch,",
	} {
		job := running(c, c.Submit("1", shared(words)...))[0]
		if r := record(job); r.Verb != "left" || !strings.Contains(r.Text, says) {
			t.Errorf("%q: expected a sentence with %q, found %q", words, says, job.AdminComment)
		}
	}
}
