// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"fmt"
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

func TestWordsOfAServiceAreThoseOfJobsFiles(t *testing.T) {
	served := "horus:model=llama-3.1-8b,requests_per_s=3,tokens_in=1024,tokens_out=256,slowdown_confidence=0.5,sm_cap_pct=30"
	for comment, want := range map[string]string{
		served: ", model: \"llama-3.1-8b\", slowdown_confidence: 0.5, kind: inference, service: {requests_per_s: 3, tokens_in: 1024, tokens_out: 256}",
		served + ",kind=inference,tensor_parallel=1": ", model: \"llama-3.1-8b\", slowdown_confidence: 0.5, tensor_parallel: 1, kind: inference, service: {requests_per_s: 3, tokens_in: 1024, tokens_out: 256}",
		served + ",tensor_parallel=2":                "", // on one GPU
	} {
		if got := fieldsOf(comment, 1); got != want {
			t.Errorf("%s: expected %q, found %q", comment, want, got)
		}
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

// convert lines "AllocTRES NodeList" of jobs that run one hour, one after another, and returns where they ran and jobs.yaml.
func convert(t *testing.T, nodes []slurm.Node, types string, lines ...string) (places []string, jobs string, report Report) {
	t.Helper()
	text := "JobID|Start|End|NodeList|AllocTRES\n"
	for i, line := range lines {
		tres, hosts, _ := strings.Cut(line, " ")
		text += fmt.Sprintf("%d|2026-01-01T%02d:00:00|2026-01-01T%02d:00:00|%s|%s\n", i+1, i, i+1, hosts, tres)
	}
	said := map[string]string{}
	for _, one := range strings.Fields(types) {
		gres, name, _ := strings.Cut(one, "=")
		said[gres] = name
	}
	out := t.TempDir()
	report, err := Convert(Options{Types: said, Out: out}, nodes, strings.NewReader(text), "x")
	if err != nil {
		t.Fatal(err)
	}
	csv, _ := os.ReadFile(out + "/decisions.csv")
	for _, line := range strings.Split(string(csv), "\n") {
		if _, rest, is := strings.Cut(line, ",place,"); is {
			places = append(places, strings.TrimPrefix(rest, "slurm-"))
		}
	}
	yaml, _ := os.ReadFile(out + "/jobs.yaml")
	return places, string(yaml), report
}

func TestJobsHaveAllTheirGPUsOfTheTypesThatSlurmTells(t *testing.T) {
	two := []slurm.Node{{Name: "a", CPUs: 8, MemMiB: 1000, Gres: "gpu:3090:4"}, {Name: "b", CPUs: 8, MemMiB: 1000, Gres: "gpu:3090:2"}}
	mixed := []slurm.Node{{Name: "a", CPUs: 8, MemMiB: 1000, Gres: "gpu:t4:1,gpu:l4:2,nic:1"}}
	migrated := []slurm.Node{{Name: "a", CPUs: 8, MemMiB: 1000, Gres: "gpu:t4_0:1,gpu:t4_1:1,shard:t4_0:4,shard:t4_1:4"}}
	plain := []slurm.Node{{Name: "a", CPUs: 8, MemMiB: 1000, Gres: "gpu:2(S:0),shard:8"}}
	for _, c := range []struct {
		nodes       []slurm.Node
		line, where string
		tasks       string
	}{
		{two, "gres/gpu=5 a,b", "1,a|b,0;1;2|0;1", "tasks: 5, gpus: 1"},
		{two, "gres/gpu=6 a,b", "1,a|b,0;1;2;3|0;1", "tasks: 6, gpus: 1"},
		{two, "gres/gpu=4 b,a", "1,b|a,0;1|0;1", "tasks: 2, gpus: 2"},
		{two, "gres/gpu=1 a,b", "1,a,0", "tasks: 1, gpus: 1"},
		{two, "gres/gpu:3090=3 a", "1,a,0;1;2", "tasks: 1, gpus: 3"},
		{mixed, "gres/gpu=2,gres/gpu:l4=2 a", "1,a,1;2", "tasks: 1, gpus: 2"},
		{mixed, "gres/gpu:l4=1,gres/gpu:t4=1 a", "1,a,0;1", "tasks: 1, gpus: 2"},
		{mixed, "gres/gpu=2,gres/gpu:l4=1 a", "1,a,0;1", "tasks: 1, gpus: 2"},
		{migrated, "gres/gpu:t4_1=1,gres/gpu=1 a", "1,a,1", "tasks: 1, gpus: 1"},
		{migrated, "gres/gpu:t4=1 a", "1,a,0", "tasks: 1, gpus: 1"},
		{migrated, "gres/shard:t4_1=2 a", "1,a,1", "tasks: 1, gpus: 1"},
		{plain, "gres/gpu=2 a", "1,a,0;1", "tasks: 1, gpus: 2"},
		{plain, "gres/shard=3 a", "1,a,0", "tasks: 1, gpus: 1"},
	} {
		places, jobs, report := convert(t, c.nodes, "gpu=t4 3090=rtx-3090", c.line)
		if strings.Join(places, " ") != c.where || !strings.Contains(jobs, c.tasks) || len(report.Bad) > 0 {
			t.Errorf("%s: expected %s with %s, found %q, %q\n%s", c.line, c.where, c.tasks, places, report.Bad, jobs)
		}
	}
	if _, _, err := machines([]slurm.Node{{Name: "a", Gres: "gpu:gpux_9090:2"}}, nil); err == nil || !strings.Contains(err.Error(), "--types gpux_9090=NAME") {
		t.Errorf("expected a hint with the whole type, found %v", err)
	}
	places, _, report := convert(t, mixed, "", "gres/gpu=4 a", "gres/gpu:l4=3 a", "gres/gpu=1 a", "gres/gpu:t4=99999999999999999999,gres/gpu:l4=9223372036854775807,gres/gpu=1 a")
	if len(places) != 1 || len(report.Bad) != 3 || !strings.Contains(report.Bad[1], "x: job 2: expected 3 GPUs on a, of the types in AllocTRES, found 2") {
		t.Errorf("expected three jobs left out with a reason, found %q, %q", places, report.Bad)
	}
}

func TestNoFigureIsRoundedPastWhatANodeOrACardHas(t *testing.T) {
	nodes := []slurm.Node{{Name: "a", CPUs: 7, MemMiB: 515457, Gres: "gpu:a100-40gb:3"}, {Name: "b", CPUs: 7, MemMiB: 515457, Gres: "gpu:a100-40gb:3"}}
	_, jobs, _ := convert(t, nodes, "", "cpu=7,mem=515457M,gres/gpu=3 a", "cpu=14,mem=1006.75G,gres/gpu=3 a,b")
	lines := strings.Split(jobs, "\n")
	if !strings.Contains(lines[2], "cpu_cores: 7.000, memory_gib: 503.3759765625,") || !strings.Contains(lines[2], "gpu_memory_gib: 39.51171875}") {
		t.Errorf("expected all of a node and all of a card to the MiB, found %s", lines[2])
	}
	var cpus, memory float64
	_, rest, _ := strings.Cut(lines[3], "cpu_cores: ")
	if _, err := fmt.Sscanf(rest, "%g, memory_gib: %g,", &cpus, &memory); err != nil || 2*cpus > 7 || 2*memory*1024 > 515457 || cpus < 3.4 || memory < 251 {
		t.Errorf("expected that two tasks of the three fit into a node, found %g cores, %g GiB, %v", cpus, memory, err)
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
