// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"libhorus.org/slurm/test/cluster"
)

const preempting = "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nPartitionName=urgent Nodes=ALL PriorityTier=10 OverSubscribe=NO"

// small are the options of a job that shares: plain Slurm's, two on each GPU, or ours.
func small(plain bool, more ...string) []string {
	if plain {
		return append([]string{"--gres=shard:2"}, more...)
	}
	return append([]string{"--gres=shard:4", "--begin=now+600", "--comment", "horus:gpu_util_pct=40,gpu_memory_gib=8,wait=600"}, more...)
}

// started is how long a job has waited, in s, once it runs.
func started(c *cluster.Cluster, id uint64, since time.Time) float64 {
	c.Wait(fmt.Sprintf("job %d runs", id), *within, func() bool {
		out, err := c.Slurm("squeue", "-h", "-j", fmt.Sprint(id), "-o", "%T")
		return err == nil && (out == "RUNNING\n" || out == "COMPLETING\n" || out == "")
	})
	return time.Since(since).Seconds()
}

func first(t *testing.T, c *cluster.Cluster, id uint64) {
	if out, err := c.Slurm("scontrol", "update", fmt.Sprintf("JobId=%d", id), "Priority=4294902999"); err != nil {
		t.Fatal(out, err)
	}
}

func orderCluster(t *testing.T, plain bool) *cluster.Cluster {
	if why := cluster.Missing(); why != "" {
		t.Skip(why)
	}
	if *jobs < 100 {
		t.Skip("-jobs: expected 100 or more; test/e2e has the rules, these are figures")
	}
	cluster.Binary(t)
	var types []string
	for i := range *gpus {
		types = append(types, fmt.Sprintf("a100_%d", i))
	}
	c := cluster.Start(t, cluster.Options{Nodes: *nodes, GPUs: types, Settings: preempting})
	if !plain {
		c.StartDaemon("--partitions", "gpu,urgent", "--wait", "10m", "--period", "1s")
	}
	return c
}

// each plays in plain Slurm, then with the daemon.
func each(t *testing.T, play func(t *testing.T, c *cluster.Cluster, plain bool)) {
	for _, plain := range []bool{true, false} {
		t.Run(map[bool]string{true: "plain", false: "horus"}[plain], func(t *testing.T) { play(t, orderCluster(t, plain), plain) })
	}
}

// How long a job of all GPUs of a node waits with the highest priority, under a stream of small jobs that is more than there is room for.
func TestBenchStream(t *testing.T) {
	each(t, func(t *testing.T, c *cluster.Cluster, plain bool) {
		random := rand.New(rand.NewPCG(1, 1))
		end := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-end:
					return
				case <-time.After(time.Duration(1e9 * *seconds / float64(2**nodes**gpus) * 0.8)):
					_, _ = c.TrySubmit(fmt.Sprintf("%.1f", *seconds*(0.5+random.Float64())), small(plain)...)
				}
			}
		}()
		time.Sleep(time.Duration(3e9 * *seconds))
		for range 5 {
			begin := time.Now()
			id := c.Submit("1", fmt.Sprintf("--gpus=%d", *gpus), "-N1")
			first(t, c, id)
			t.Logf("started after %.1f s", started(c, id, begin))
		}
		close(end)
		<-ended
	})
}

// How long a job of a higher tier waits that preempts.
func TestBenchTier(t *testing.T) {
	each(t, func(t *testing.T, c *cluster.Cluster, plain bool) {
		for range *nodes * *gpus { // beside jobs with shards Slurm does not preempt, by itself neither
			c.Submit("600", "--gpus=1", "--requeue")
		}
		time.Sleep(15 * time.Second)
		for _, options := range [][]string{{fmt.Sprintf("--gpus=%d", *gpus), "-N1", "-p", "urgent"}, {"--gpus=1", "-p", "urgent"}, small(plain, "-p", "urgent")} {
			begin := time.Now()
			id := c.Submit("5", options...)
			t.Logf("%s: started after %.1f s", options[0], started(c, id, begin))
		}
	})
}

// How long a user's job waits behind a thousand of another's that cannot start.
func TestBenchBehind(t *testing.T) {
	each(t, func(t *testing.T, c *cluster.Cluster, plain bool) {
		for range *gpus {
			c.Submit("600", "--gpus=1", "-w", "n1")
		}
		random := rand.New(rand.NewPCG(1, 1))
		for i := range *jobs {
			options := small(plain, "-w", "n1", "--uid=nobody")
			for j := range options {
				if options[j] == "--comment" {
					options[j+1] = fmt.Sprintf("horus:gpu_util_pct=%d,gpu_memory_gib=%.3f,wait=600", 10+random.IntN(90), 2+float64(i)/1000)
				}
			}
			c.Submit("1", options...)
		}
		for range 3 {
			begin := time.Now()
			id := c.Submit("1", small(plain)...)
			t.Logf("started after %.1f s", started(c, id, begin))
		}
	})
}

// What Slurm's own jobs wait, and how long all take, beside jobs that share, by Slurm's backfill.
func TestBenchBackfill(t *testing.T) {
	each(t, func(t *testing.T, c *cluster.Cluster, plain bool) {
		random := rand.New(rand.NewPCG(*seed, 1))
		begin := time.Now()
		whole := map[uint64]bool{}
		for range *jobs {
			sleep := fmt.Sprintf("%.1f", *seconds*(0.5+random.Float64()))
			if random.IntN(5) < 3 {
				whole[c.Submit(sleep, fmt.Sprintf("--gpus=%d", []int{1, 1, 2, *gpus}[random.IntN(4)]), "-N1", "-t", "1")] = true
			} else {
				c.Submit(sleep, small(plain, "-t", "1")...)
			}
			time.Sleep(time.Duration(random.Float64() * 2e9 * *seconds / float64(*nodes**gpus)))
		}
		for end := time.Now().Add(*within); open(c) != 0; time.Sleep(500 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("expected every job to end within %v", *within)
			}
		}
		all := time.Since(begin)
		var waits, others float64
		for _, job := range c.Jobs() {
			if wait := float64(job.Started - job.Submitted); whole[job.ID] {
				waits += wait / float64(len(whole))
			} else {
				others += wait / float64(*jobs-len(whole))
			}
		}
		t.Logf("%d jobs ended in %.1f s; mean wait of %d of whole GPUs %.1f s, of those that share %.1f s", *jobs, all.Seconds(), len(whole), waits, others)
	})
}
