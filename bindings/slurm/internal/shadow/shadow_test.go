// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"os"
	"strings"
	"testing"
	"time"

	"libhorus.org/slurm/internal/slurm"
)

const sacct = `JobID|JobName|Account|Partition|State|Start|End|NodeList|AllocTRES|Comment
1|train|red|gpu|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:10:00|n1|cpu=4,mem=8G,node=1,gres/gpu=1|horus:profile=a,gpu_util_pct=30,gpu_memory_gib=4,steps=horus; my own, words
1.batch|batch|red||COMPLETED|2026-01-01T00:00:00|2026-01-01T00:10:00|n1|cpu=4|
2|train|red|gpu|COMPLETED|2026-01-01T00:05:00|2026-01-01T00:15:00|n1|cpu=4,mem=8G,node=1,gres/gpu=1|
3|host|red|gpu|COMPLETED|2026-01-01T00:05:00|2026-01-01T00:15:00|n1|cpu=4,mem=8G,node=1|
4|train|red|gpu|PENDING|Unknown|Unknown|None assigned|cpu=4|
5|train|red|gpu|RUNNING|2026-01-01T00:10:00|Unknown|n1|cpu=4,mem=8G,node=1,gres/gpu=1|
6|gone|red|gpu|COMPLETED|2026-01-01T00:05:00|2026-01-01T00:15:00|n9|cpu=4,gres/gpu=1|
7|short
`

func TestSacctIsReadAndWholeGPUsAreTheFirstFree(t *testing.T) {
	out := t.TempDir()
	nodes := []slurm.Node{{Name: "n1", CPUs: 32, MemMiB: 65536, Gres: "gpu:a100:2(S:0-1)"}}
	report, err := Convert(Options{Types: map[string]string{"a100": "a100-40gb"}, Out: out}, nodes, strings.NewReader(sacct), "sacct.txt")
	if err != nil {
		t.Fatal(err)
	}
	if report.Jobs != 3 || report.Known != 1 || report.Left != 1 || len(report.Bad) != 1 || report.Bad[0] != "sacct.txt:9: expected 10 fields, found 2" {
		t.Errorf("expected 3 jobs, 1 known, 1 on a node that is gone and 1 bad line, found %+v", report)
	}
	csv, _ := os.ReadFile(out + "/decisions.csv")
	lines := strings.Split(string(csv), "\n")
	var places []string
	for _, line := range lines {
		if _, rest, is := strings.Cut(line, ",place,"); is {
			places = append(places, rest)
		}
	}
	if got := strings.Join(places, " "); got != "slurm-1,n1,0 slurm-2,n1,1 slurm-5,n1,0" {
		t.Errorf("expected GPU 0, 1, and 0 again once it is free, found %s", got)
	}
	jobs, _ := os.ReadFile(out + "/jobs.yaml")
	if !strings.Contains(string(jobs), "demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 4}}}") || !strings.Contains(string(jobs), "gpu_milli: 1000, demand: {any: {gpu_util_pct: 100, gpu_memory_gib: 39.") {
		t.Errorf("expected the words of job 1 and whole GPUs for the others, found\n%s", jobs)
	}
	if text := string(jobs); strings.Contains(text, "profile") || strings.Contains(text, "steps") || strings.Contains(text, "own") {
		t.Errorf("expected no words that jobs.yaml does not know, found\n%s", text)
	}
}

func TestSacctMayPutAnythingBetweenFields(t *testing.T) {
	nodes := []slurm.Node{{Name: "n1", CPUs: 32, MemMiB: 65536, Gres: "gpu:a100-40gb:2"}}
	for _, between := range []string{"@", "\t", "\x1f", "::"} {
		text := strings.ReplaceAll("JobID|JobName|State|Start|End|NodeList|AllocTRES|Comment\n1|a%b|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:10:00|n1|cpu=4,gres/gpu=1|\n", "|", between)
		report, err := Convert(Options{Out: t.TempDir()}, nodes, strings.NewReader(strings.Replace(text, "%", "|", 1)), "x")
		if err != nil || report.Jobs != 1 || len(report.Bad) > 0 {
			t.Errorf("%q: expected one job, found %+v, %v", between, report, err)
		}
	}
	_, bad, _ := read(strings.NewReader("JobID|JobName\n1|a|b\n"), "x")
	if len(bad) != 1 || bad[0] != `x:2: expected 2 fields, found 3 (a name with "|"? sacct has --delimiter)` {
		t.Errorf("expected a sentence with a hint, found %q", bad)
	}
}

func TestALogOfAnotherKindIsRefused(t *testing.T) {
	nodes := []slurm.Node{{Name: "n1", CPUs: 32, MemMiB: 65536, Gres: "gpu:v100-sxm2-16gb:2"}}
	_, err := Convert(Options{Out: t.TempDir()}, nodes, strings.NewReader("hello\n"), "x")
	if err == nil || !strings.Contains(err.Error(), "x:1: expected a line of jobcomp/filetxt") {
		t.Errorf("expected a sentence with the line, found %v", err)
	}
}

func TestARecordKeepsTheDevicesOfAJobThatIsCompleting(t *testing.T) {
	var out strings.Builder
	recorder := NewRecorder(&out)
	job := slurm.Job{ID: 7, Name: "a|b", State: "RUNNING", Started: 10, Hosts: "n1", Gres: []string{"gpu:a100:2(IDX:0-1)"}}
	completing, ended := job, job
	completing.State, completing.Gres = "COMPLETING", nil
	ended.State, ended.Gres, ended.Ended = "COMPLETED", nil, 20
	for _, seen := range []slurm.Job{job, completing, ended, ended} {
		if err := recorder.Look([]slurm.Job{seen}, 99); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "7|a b|") || !strings.Contains(got, "gres/gpu=2,") || !strings.HasSuffix(got, "|0-1\n") {
		t.Errorf("expected one line with both devices, found %q", got)
	}
}

func TestARecordHasARunThatEndedByARequeue(t *testing.T) {
	var out strings.Builder
	recorder := NewRecorder(&out)
	first := slurm.Job{ID: 7, State: "RUNNING", Started: 10, Hosts: "n1", Gres: []string{"gpu:a100:2(IDX:0)"}}
	waits, second, ended := first, first, first
	waits.State, waits.Started, waits.Hosts, waits.Gres = "PENDING", 130, "", nil
	second.Started = 140 // a look later it runs anew already
	ended.State, ended.Started, ended.Ended = "COMPLETED", 140, 160
	for at, seen := range []slurm.Job{first, waits, second, ended} {
		if err := recorder.Look([]slurm.Job{seen}, int64(20+10*at)); err != nil {
			t.Fatal(err)
		}
	}
	stamp := func(at int64) string { return time.Unix(at, 0).Format("2006-01-02T15:04:05") }
	for _, want := range []string{"REQUEUED|" + stamp(10) + "|" + stamp(30), "COMPLETED|" + stamp(140) + "|" + stamp(160)} {
		if strings.Count(out.String(), want) != 1 || strings.Count(out.String(), "\n") != 2 {
			t.Errorf("expected two lines, one with %s, found %q", want, out.String())
		}
	}
}
