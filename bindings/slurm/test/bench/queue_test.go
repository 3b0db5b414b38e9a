// SPDX-License-Identifier: Apache-2.0

// Package bench measures horus-slurm on a real Slurm whose nodes run on this machine. Sizes are arguments:
//
//	bindings/slurm/test/run build/dev -run Bench -v -args -nodes 64 -jobs 2000
package bench

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"libhorus.org/slurm/test/cluster"
)

var (
	nodes   = flag.Int("nodes", 2, "nodes of the cluster")
	gpus    = flag.Int("gpus", 4, "GPUs of a node")
	jobs    = flag.Int("jobs", 24, "jobs of the queue")
	seconds = flag.Float64("seconds", 2, "that a job sleeps on average")
	within  = flag.Duration("within", 20*time.Minute, "that all may take")
)

// open counts the jobs that did not end, by an answer much cheaper than that of squeue --json.
func open(c *cluster.Cluster) int {
	out, err := c.Slurm("squeue", "-h", "-t", "PD,R,CG,CF", "-o", "%i")
	if err != nil {
		return -1
	}
	return len(strings.Fields(out))
}

func TestBenchQueue(t *testing.T) {
	if why := cluster.Missing(); why != "" {
		t.Skip(why)
	}
	cluster.Binary(t)
	var types []string
	for i := range *gpus {
		types = append(types, fmt.Sprintf("a100_%d", i))
	}
	c := cluster.Start(t, cluster.Options{Nodes: *nodes, GPUs: types})
	random := rand.New(rand.NewPCG(1, 1))
	begin := time.Now()
	for range *jobs {
		sleep := fmt.Sprintf("%.1f", *seconds*(0.5+random.Float64()))
		comment := fmt.Sprintf("horus:gpu_util_pct=%d,gpu_memory_gib=%d,wait=3600", 20+10*random.IntN(7), 2+4*random.IntN(5))
		options := []string{"--gres=shard:4", "--begin=now+3600", "--comment", comment}
		if random.IntN(5) == 0 {
			options = []string{fmt.Sprintf("--gpus=%d", 1+random.IntN(2)), "--begin=now+3600", "--comment", "horus:wait=3600"}
		}
		c.Submit(sleep, options...)
	}
	submitted := time.Since(begin)
	d := c.StartDaemon("--wait", "1h", "--period", "2s")
	begin = time.Now()
	for end := time.Now().Add(*within); ; time.Sleep(2 * time.Second) {
		left := open(c)
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("expected every job to end within %v, found %d that did not", *within, left)
		}
	}
	all := time.Since(begin)
	d.Stop()
	_, ended := c.Runs()
	if len(ended) != *jobs {
		t.Errorf("expected %d jobs that ran to their end, found %d", *jobs, len(ended))
	}
	log := c.Read("horus-slurm.out")
	t.Logf("%d nodes x %d GPUs, %d jobs of %.1f s: submitted in %.1f s, all ended in %.1f s", *nodes, *gpus, *jobs, *seconds, submitted.Seconds(), all.Seconds())
	t.Logf("CPU of the daemon and its children: %.2f s, %.2f ms a job; %d passes that changed something, %d refusals",
		d.CPU().Seconds(), d.CPU().Seconds()*1000/float64(*jobs), strings.Count(log, "INFO pass"), strings.Count(log, "WARN refused"))
}
