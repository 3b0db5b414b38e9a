// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/test/cluster"
)

// converted are the runs that horus-slurm shadow makes of a log: when, on which nodes, on how many devices. horus shadow reads
// them.
func converted(t *testing.T, c *cluster.Cluster, log, says string) []string {
	t.Helper()
	folder := filepath.Join(c.Dir, "shadow-"+log)
	text, err := c.Program("shadow", "--types", cluster.Types, "--out", folder, filepath.Join(c.Dir, log))
	if err != nil || !strings.Contains(text, says) || !strings.Contains(text, "0 lines left out") {
		t.Errorf("%s: expected %q and nothing left out, found %v, %s", log, says, err, text)
	}
	if horus := os.Getenv("HORUS_COMMAND"); horus != "" {
		out, err := exec.Command(horus, "shadow", "--cluster", folder+"/cluster.yaml", "--jobs", folder+"/jobs.yaml", "--log", folder+"/decisions.csv").CombinedOutput()
		if err != nil {
			t.Errorf("%s: expected that horus shadow reads it, found %v, %s", log, err, out)
		}
	}
	var out []string
	for _, line := range strings.Split(c.Read("shadow-"+log+"/decisions.csv"), "\n") {
		if f := strings.Split(line, ","); len(f) == 5 && f[1] == "place" {
			out = append(out, f[0]+" "+f[3]+" "+regexp.MustCompile("[0-9]+").ReplaceAllString(f[4], "x"))
		}
	}
	slices.Sort(out)
	return out
}

func TestSlurmdbdAndJobcompTellTheRunsThatARecordTells(t *testing.T) {
	if why := cluster.AccountingMissing(); why != "" {
		t.Skip(why)
	}
	c := start(t, cluster.Options{GPUs: []string{"a100", "a100"}})
	c.StartAccounting()
	recorder := c.StartProgram("record", "--period", "300ms", c.Dir+"/record")
	again := c.Submit("600", "--gres=gpu:1")
	first := running(c, again)[0].Started
	for _, options := range [][]string{
		{"--gres=gpu:1", "-A", "red", "--comment=horus:gpu_util_pct=30,gpu_memory_gib=4,profile=a; mine"},
		{"--gres=shard:2", "-J", "a|b", "--comment=x|y"},
		{"--gres=shard:1"},
		{"-N2", "-n2", "--gpus-per-node=1", "-J", "big one"},
		{"--gres=gpu:1", "--array=1-2"},
		{"-n1", "--gres=gpu:1", ":", "-n1", "--gres=gpu:1"},
		{}, // no GPU: of no matter
	} {
		if _, err := c.TrySubmit("5", options...); err != nil {
			t.Fatal(err)
		}
	}
	c.Wait("the first job has run for 2 s", soon, func() bool { return time.Now().Unix() >= first+2 })
	if out, err := c.Slurm("scontrol", "requeue", fmt.Sprint(again)); err != nil { // it waits for 2 minutes then
		t.Fatal(out, err)
	}
	if out, err := c.Slurm("scancel", fmt.Sprint(c.Submit("600", "--gres=gpu:1", "--begin=now+600"))); err != nil {
		t.Fatal(out, err)
	}
	c.Wait("all others have ended", 2*soon, func() bool {
		return !slices.ContainsFunc(c.Jobs(), func(job slurm.Job) bool { return job.Running() || job.Pending() && job.ID != again })
	})
	if out, err := c.Slurm("scancel", fmt.Sprint(again)); err != nil {
		t.Fatal(out, err)
	}
	c.Wait("all is written down", 4*soon, func() bool { return strings.Count(c.Read("record"), "\n") == 11 })
	recorder.Stop()
	defer func() {
		if t.Failed() {
			t.Logf("record:\n%s\nsacct:\n%s\njobcomp:\n%s", c.Read("record"), c.Read("sacct"), c.Read("jobcomp"))
		}
	}()
	var told [3][]string
	told[0] = converted(t, c, "record", "9 runs of jobs with GPUs, 1 of which words say")
	c.Wait("slurmdbd knows of all ends", soon, func() bool {
		columns := "--format=JobID,JobName,Account,Partition,State,Start,End,NodeList,AllocTRES,Comment"
		out, err := c.Slurm("sacct", "--parsable2", "--delimiter=@", "--allusers", "--duplicates", "--starttime=now-1hour", columns)
		c.Write("sacct", out)
		return err == nil && strings.Contains(out, fmt.Sprintf("\n%d@", again)) && !strings.Contains(out, "RUNNING") && !strings.Contains(out, "PENDING")
	})
	told[1] = converted(t, c, "sacct", "9 runs of jobs with GPUs, 1 of which words say")
	told[2] = converted(t, c, "jobcomp", "9 runs of jobs with GPUs, 0 of which words say")
	for i, name := range []string{"sacct", "jobcomp"} {
		if !slices.Equal(told[0], told[i+1]) {
			t.Errorf("%s: expected the runs of the record,\n%s\nfound\n%s", name, strings.Join(told[0], "\n"), strings.Join(told[i+1], "\n"))
		}
	}
}
