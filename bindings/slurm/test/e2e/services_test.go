// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"libhorus.org/slurm/internal/words"
	"libhorus.org/slurm/test/cluster"
)

// told submits a job that writes down what it was granted, and a step of it too.
func told(t *testing.T, c *cluster.Cluster, name string, options ...string) uint64 {
	t.Helper()
	c.Write("tells", "#!/bin/sh\nsay='echo \"$HORUS_ENGINE_ARGUMENTS|$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE|$CUDA_MPS_PINNED_DEVICE_MEM_LIMIT\"'\n"+
		"eval \"$say\"\nsrun --gres=none sh -c \"$say\"\necho end\nsleep 60\n")
	out, err := c.Slurm("sbatch", append(append([]string{"--parsable", "--mem=100", "--output=" + c.Dir + "/" + name}, options...), c.Dir+"/tells")...)
	var id uint64
	if _, parsed := fmt.Sscan(out, &id); err != nil || parsed != nil {
		t.Fatal(out, err)
	}
	return id
}

func TestAJobIsToldWhatItWasGrantedWhereItWasPlaced(t *testing.T) {
	prolog, err := filepath.Abs(cmp.Or(os.Getenv("HORUS_SLURM_GRANT"), "../../bin/horus-grant"))
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}, Settings: "TaskProlog=" + prolog})
	says := func(name string) []string {
		c.Wait(name+" tells", soon, func() bool { return strings.HasSuffix(c.Read(name), "end\n") })
		return strings.Split(strings.TrimSuffix(c.Read(name), "\nend\n"), "\n")
	}
	const service = "horus:model=llama-3.2-3b,requests_per_s=1,tokens_in=512,tokens_out=128,token_ms=100"
	own := told(t, c, "own", "--gres=shard:1", "--comment", service) // Slurm's own: nobody lets it wait
	if got := says("own"); got[0] != "||" || got[1] != "||" {
		t.Errorf("job %d, which Slurm placed: expected that it is told nothing, found %q", own, got)
	}
	if out, err := c.Slurm("scancel", fmt.Sprint(own)); err != nil {
		t.Fatal(out, err)
	}
	c.StartDaemon("--mps")
	id := told(t, c, "served", shared(service+",wait=60")...)
	job := running(c, id)[0]
	r := record(job)
	if want := r.Engine + "||"; !strings.HasPrefix(want, "--gpu-memory-utilization ") || says("served")[0] != want || says("served")[1] != want {
		t.Errorf("expected the engine's arguments %q in the job and its step, found %q", want, says("served"))
	}
	if r.Verb != words.Placed || job.Tres.PerNode != "gres:shard:a100_0:1" || r.Mem < 6*1024 {
		t.Errorf("expected its memory in shards, found %q, %q", job.Tres.PerNode, job.AdminComment)
	}
	waits := c.Submit("60", shared(fills(10, 31, ""))...)
	c.Wait("a job that needs all shards waits for the service's", soon, func() bool { return record(c.Job(waits)).Verb == words.Waits })
	running(c, told(t, c, "capped", shared(fills(10, 8, ",sm_cap_pct=30,slowdown_bound=9,slowdown_confidence=0.5"))...))
	if want := "|30|0=10115M"; says("capped")[0] != want || says("capped")[1] != want {
		t.Errorf("expected the cap and the memory that it stated, %q, found %q", want, says("capped"))
	}
}
