// SPDX-License-Identifier: Apache-2.0

// Package read holds what a slurm.Reader reads against what squeue --json prints, on a real Slurm.
package read

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/test/cluster"
)

// nasty are texts that users may give to jobs, and that look like what Slurm prints.
var nasty = []string{
	"a b|c", "x\ny", "é`'\"", " N/A ", "|1|2|\n7|PENDING|",
	"y\n   UserId=root(0)\n   Account=z QOS=z\n   NodeList=n1\n     Nodes=n1 CPU_IDs=0-9 Mem=5 GRES=gpu:a100_0:1(IDX:0)\n   MinCPUsNode=1",
}

func submitted(c *cluster.Cluster) {
	later := "--begin=now+600"
	c.Submit("600", "--gres=shard:a100_0:2", "--comment", "horus:gpu_util_pct=1")
	c.Submit("600", "--gpus=2", "-N2", "-n2", "--time=5")
	c.Submit("600", "--gres=shard:4", "--exclusive", later)
	c.Submit("600", "--gpus-per-task=1", "-n2", later, "-x", "n2,n3")
	c.Submit("600", "--gpus-per-socket=1", "--sockets-per-node=1", later, "-w", "n1", "-p", "gpu,other")
	c.Submit("600", "--array=1-3", "--hold")
	c.Submit("600", "--array=4-5")
	c.Submit("600", "--dependency=afterok:1", "-C", "big&blue")
	c.Submit("600", "--mem=0", later)
	c.Submit("600", later, ":", "--mem=100")
	c.Submit("600", ":", "--mem=100")
	for _, text := range nasty {
		c.Submit("600", "-J", text, "-A", text, "--comment", text)
		c.Submit("600", "-J", text, "-A", text, "--comment", text, later)
	}
}

func TestAReaderTellsOfEachJobWhatJSONTells(t *testing.T) {
	if why := cluster.Missing(); why != "" {
		t.Skip(why)
	}
	c := cluster.Start(t, cluster.Options{Nodes: 3, Settings: "NodeName=DEFAULT Feature=big,blue\nPartitionName=other Nodes=ALL"})
	submitted(c)
	c.Wait("what may run does", time.Minute, func() bool {
		out, err := c.Slurm("squeue", "-h", "-r", "-t", "R", "-o", "%A")
		return err == nil && len(strings.Fields(out)) == 6+len(nasty)
	})
	for _, words := range [][]string{{"update", "JobId=3", "AdminComment=horus:waits at=1; a|b"}, {"suspend", "2"}} {
		if out, err := c.Slurm("scontrol", words...); err != nil {
			t.Fatal(out, err)
		}
	}
	c.Wait("slurmctld says again why each job waits", time.Minute, func() bool { // an update forgets it until the next pass
		out, err := c.Slurm("squeue", "-h", "-r", "-t", "PD", "-o", "%r")
		return err == nil && !slices.Contains(strings.Fields(out), "None")
	})
	reader := slurm.Reader{}
	if _, err := reader.Look(context.Background()); err != nil {
		t.Fatal(err)
	}
	got, err := reader.Jobs(context.Background())
	if err != nil || reader.Wrong != "" {
		t.Fatalf("expected a list that reads as expected, found %v, %q", err, reader.Wrong)
	}
	want := c.Jobs()
	byID := func(a, b slurm.Job) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	if len(got) != len(want) {
		t.Fatalf("expected %d jobs, found %d", len(want), len(got))
	}
	for i := range got {
		if g, w := alike(got[i]), alike(want[i]); !reflect.DeepEqual(g, w) {
			t.Errorf("job %d: expected\n%+v\nfound\n%+v", w.ID, w, g)
		}
	}
}

// alike leaves out of a job what nobody asks a Reader for, and what means the same.
func alike(j slurm.Job) slurm.Job {
	j.Ended, j.TimeLimitMin = 0, 0
	if j.Pending() {
		j.Started = 0
	}
	if strings.Join(j.Gres, "") == "" {
		j.Gres = nil
	}
	return j
}
