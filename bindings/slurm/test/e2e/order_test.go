// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"libhorus.org/slurm/internal/words"
	"libhorus.org/slurm/test/cluster"
)

// The order of the queue, backfill and preemption are Slurm's, for jobs that share too.

func raise(t *testing.T, c *cluster.Cluster, id uint64) {
	t.Helper()
	if out, err := c.Slurm("scontrol", "update", fmt.Sprintf("JobId=%d", id), "Priority=4294902999"); err != nil {
		t.Fatal(out, err)
	}
}

// stream submits jobs that share, of two seconds each, until it is stopped: more than there is room for.
func stream(c *cluster.Cluster) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(300 * time.Millisecond):
				_, _ = c.TrySubmit("2", shared(fills(60, 16, ""))...)
			}
		}
	}()
	return func() { close(end); <-ended }
}

func TestAJobOfWholeGPUsIsNotStarvedByThoseThatShare(t *testing.T) {
	c := start(t, cluster.Options{})
	c.StartDaemon()
	defer stream(c)()
	time.Sleep(5 * time.Second)
	first := c.Submit("1", "--gpus=2", "-N1")
	raise(t, c, first)
	running(c, first)
}

func TestPrioritiesOrderThoseThatShare(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	low := c.Submit("60", shared(fills(90, 30, ""))...)
	high := c.Submit("60", shared(fills(90, 30, ""))...)
	raise(t, c, high)
	c.StartDaemon()
	running(c, high)
	if state := c.Job(low).State; state != "PENDING" {
		t.Errorf("expected the job of lower priority to wait, found it %s", state)
	}
}

func TestAJobThatSharesIsNotPassedForEverByWholeGPUs(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	c.StartDaemon("--grace", "1s")
	first := c.Submit("600", "--gpus=1")
	running(c, first)
	share := c.Submit("60", shared(fills(30, 8, ""))...)
	behind := c.Submit("600", "--gpus=1")
	c.Wait("Slurm sees it on the GPU that is kept for it", soon, func() bool {
		job := c.Job(share)
		return record(job).Verb == words.Waits && record(job).On == "n1/a100_0" && job.Reason == "Resources"
	})
	if out, err := c.Slurm("scancel", fmt.Sprint(first)); err != nil {
		t.Fatal(out, err)
	}
	running(c, share)
	if state := c.Job(behind).State; state != "PENDING" {
		t.Errorf("expected the job behind it to wait, found it %s", state)
	}
}

func TestAJobOfAHigherTierPreempts(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, Settings: "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nPartitionName=urgent Nodes=ALL PriorityTier=10 OverSubscribe=NO"})
	c.StartDaemon("--partitions", "gpu,urgent")
	running(c, c.Submit("600", "--gpus=1", "--requeue"))
	running(c, c.Submit("600", shared(fills(90, 30, ""), "--requeue")...))
	running(c, c.Submit("60", shared(fills(90, 30, ""), "-p", "urgent")...))
	running(c, c.Submit("60", "--gpus=1", "-p", "urgent"))
}

func TestNothingIsPinnedWhereSlurmHasPromisedThePlace(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1})
	c.StartDaemon()
	running(c, c.Submit("600", "--gpus=1", "-t", "10"))
	promised := c.Submit("600", "--gpus=2", "-t", "10")
	raise(t, c, promised)
	c.Wait("Slurm says where it starts", soon, func() bool {
		out, err := c.Slurm("squeue", "-h", "-j", fmt.Sprint(promised), "-O", "SchedNodes")
		return err == nil && out[0] == 'n'
	})
	long, short := c.Submit("60", shared(fills(30, 8, ""))...), c.Submit("60", shared(fills(30, 8, ""), "-t", "1")...)
	running(c, short) // which ends before
	if job := c.Job(long); record(job).Verb != words.Waits || record(job).On != "" {
		t.Errorf("expected a job without a time limit to wait, found %q", job.AdminComment)
	}
}

func TestADryRunSaysWhatItWouldDoAndTellsSlurmNothing(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1})
	id := c.Submit("60", shared(fills(30, 8, ""))...)
	before := c.Job(id)
	c.StartDaemon("--dry-run")
	c.Wait("it says where the job would be placed", soon, func() bool {
		return strings.Contains(c.Read("horus-slurm.out"), fmt.Sprintf("job %d: placed n1/a100_1 Placed", id))
	})
	if after := c.Job(id); after.AdminComment != "" || after.Eligible != before.Eligible {
		t.Errorf("expected the job as it was, found %q, begin %d", after.AdminComment, after.Eligible)
	}
}

func TestMetricsTellWhoIsPlacedAndWhoWaits(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	c.StartDaemon("--metrics", address)
	running(c, c.Submit("60", shared(fills(90, 30, ""))...))
	c.Submit("60", shared(fills(90, 30, ""))...)
	c.Wait("one is placed and one waits", soon, func() bool {
		answer, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		all, err := io.ReadAll(answer.Body)
		text := string(all)
		return err == nil && strings.Contains(text, "horus_slurm_placed_total 1\n") && strings.Contains(text, "horus_slurm_waiting_jobs{reason=")
	})
}
