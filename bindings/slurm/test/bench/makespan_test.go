// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/csv"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/test/cluster"
)

var (
	data   = flag.String("data", "", "folder with *_pairs.csv (gpu, job_a, job_b, slowdown_a, slowdown_b) and *_jobs.csv (job, graph, batch): the truth; else a rule")
	gpu    = flag.String("gpu", "v100-sxm2-16gb", "of the pairs")
	speeds = flag.String("speeds", "", "Gavel's file of measured speeds, by which the library's simulator does the same jobs; none = it does not")
	modes  = flag.String("modes", "whole,shards,horus", "what is played")
	seed   = flag.Uint64("seed", 1, "of the jobs")
)

// kind of job: what it says of itself, and what the truth calls it.
type kind struct{ name, comment string }

// truth is what jobs lose beside each other. Nothing of it is told to the daemon.
type truth struct {
	kinds []kind
	slow  map[[2]string]float64 // of the first beside the second
}

// ran together nowhere: such jobs thrash.
const thrash = 3.0

func (t truth) of(a, b string) float64 {
	if slow, known := t.slow[[2]string{a, b}]; known {
		return slow
	}
	return thrash
}

func table(t *testing.T, pattern string) []map[string]string {
	t.Helper()
	var out []map[string]string
	files, err := filepath.Glob(filepath.Join(*data, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: expected %s, found %v, %v", *data, pattern, files, err)
	}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(file).ReadAll()
		file.Close()
		if err != nil || len(rows) == 0 {
			t.Fatal(name, err)
		}
		for _, row := range rows[1:] {
			one := map[string]string{"folder": filepath.Dir(name)}
			for i, value := range row {
				one[rows[0][i]] = value
			}
			out = append(out, one)
		}
	}
	return out
}

// read the truth, or make one: two jobs that need more than a GPU together share it out.
func readTruth(t *testing.T) truth {
	out := truth{slow: map[[2]string]float64{}}
	if *data == "" {
		for util := 20; util <= 100; util += 20 {
			out.kinds = append(out.kinds, kind{strconv.Itoa(util), fmt.Sprintf("gpu_util_pct=%d,gpu_memory_gib=4", util)})
		}
		for _, a := range out.kinds {
			for _, b := range out.kinds {
				x, _ := strconv.ParseFloat(a.name, 64)
				y, _ := strconv.ParseFloat(b.name, 64)
				out.slow[[2]string{a.name, b.name}] = max(1, (x+y)/100)
			}
		}
		return out
	}
	for _, row := range table(t, "*_jobs.csv") {
		graph := row["graph"]
		if !filepath.IsAbs(graph) {
			graph = filepath.Join(row["folder"], graph)
		}
		words := []string{"model=" + graph}
		for _, key := range []string{"batch", "mode", "precision", "optimizer", "framework"} {
			if row[key] != "" {
				words = append(words, key+"="+row[key])
			}
		}
		if row["dims"] != "" {
			words = append(words, "dims="+strings.NewReplacer("=", ":", ";", "+", " ", "+").Replace(row["dims"]))
		}
		out.kinds = append(out.kinds, kind{row["job"], strings.Join(words, ",")})
	}
	for _, row := range table(t, "*_pairs.csv") {
		if row["gpu"] != *gpu {
			continue
		}
		a, err1 := strconv.ParseFloat(row["slowdown_a"], 64)
		b, err2 := strconv.ParseFloat(row["slowdown_b"], 64)
		if err1 == nil && err2 == nil && a >= 1 && b >= 1 {
			out.slow[[2]string{row["job_a"], row["job_b"]}] = a
			out.slow[[2]string{row["job_b"], row["job_a"]}] = b
		}
	}
	return out
}

// worker is a job that is played: it waits on a pipe until its work is done.
type worker struct {
	kind  kind
	left  float64 // s of work, alone
	total float64
	lost  float64 // s that sharing took
	done  bool
}

func TestBenchMakespan(t *testing.T) {
	if why := cluster.Missing(); why != "" {
		t.Skip(why)
	}
	cluster.Binary(t)
	truth := readTruth(t)
	for _, mode := range strings.FieldsFunc(*modes, func(r rune) bool { return r == ',' }) {
		t.Run(mode, func(t *testing.T) { play(t, mode, truth) })
	}
	simulate(t, truth)
}

// drawn jobs, the same in every mode.
func drawn(truth truth) []*worker {
	random := rand.New(rand.NewPCG(*seed, 1))
	out := make([]*worker, *jobs)
	for i := range out {
		w := &worker{kind: truth.kinds[random.IntN(len(truth.kinds))]}
		w.total = *seconds * (0.5 + random.Float64())
		w.left, out[i] = w.total, w
	}
	return out
}

// simulate the same jobs by the library's policies: one after the other in their order, whatever is next to be started.
func simulate(t *testing.T, truth truth) {
	command := os.Getenv("HORUS_COMMAND")
	if *speeds == "" || command == "" {
		t.Log("-speeds names no file, or HORUS_COMMAND no horus: not simulated")
		return
	}
	tables, err := filepath.Glob(filepath.Join(*data, "*_jobs.csv"))
	if err != nil || len(tables) != 1 {
		t.Fatalf("%s: expected one *_jobs.csv, found %v, %v", *data, tables, err)
	}
	trace := "submit_s,duration_s,profile\n"
	for _, w := range drawn(truth) {
		trace += fmt.Sprintf("0,%.6f,%s\n", w.total, w.kind.name)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"jobs.csv": trace, "grid.yaml": fmt.Sprintf(`version: 1
cluster: {gpus: {%s: %d}, gpus_per_node: %d, max_tenants: 2}
truth: {speeds: [{file: %q, gpus: {v100: %s}}]}
beliefs: {jobs: %q}
workloads: [{name: jobs, files: jobs.csv}]
defaults: {look_ahead: %d}
policies:
- {name: whole, policy: exclusive}
- {name: shards, policy: first-fit}
- {name: horus, policy: horus}
`, *gpu, *nodes**gpus, *gpus, *speeds, *gpu, tables[0], *jobs)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	told, err := exec.Command(command, "compare", filepath.Join(dir, "grid.yaml"), "--out", filepath.Join(dir, "out"), "--metrics", "makespan_s").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	t.Logf("simulated:\n%s", told)
}

func play(t *testing.T, mode string, truth truth) {
	var types []string
	for i := range *gpus {
		types = append(types, fmt.Sprintf("v100_%d", i))
	}
	c := cluster.Start(t, cluster.Options{Nodes: *nodes, GPUs: types})
	workers := map[uint64]*worker{}
	c.Write("sleeper", fmt.Sprintf("#!/bin/sh\nread x <%s/pipe.$SLURM_JOB_NAME\n", c.Dir))
	for i, w := range drawn(truth) {
		if err := syscall.Mkfifo(fmt.Sprintf("%s/pipe.%d", c.Dir, i), 0o600); err != nil {
			t.Fatal(err)
		}
		options := map[string][]string{
			"whole":  {"--gpus=1"},
			"shards": {"--gres=shard:2"}, // two jobs on each GPU, whoever they are
			"horus":  {"--gres=shard:4", "--begin=now+3600", "--comment", "horus:" + w.kind.comment + ",wait=3600"},
		}[mode]
		if options == nil {
			t.Fatalf("-modes: expected whole, shards or horus, found %s", mode)
		}
		workers[c.Submit("0", append(options, "-J", strconv.Itoa(i))...)] = w
	}
	if mode == "horus" {
		c.StartDaemon("--wait", "1h", "--max-tenants", "2")
	}
	begin, last := time.Now(), time.Now()
	names := map[uint64]string{}
	for open := len(workers); open > 0; time.Sleep(200 * time.Millisecond) {
		if time.Since(begin) > *within {
			t.Fatalf("expected every job to end within %v, found %d that did not", *within, open)
		}
		devices, now := map[string][]uint64{}, time.Now()
		for _, job := range c.Jobs() {
			names[job.ID] = job.Name
			if job.State != "RUNNING" || len(job.Gres) == 0 {
				continue
			}
			for _, g := range slurm.GresOf(job.Gres[0]) {
				if g.Count > 0 {
					devices[job.Hosts+"/"+g.Type] = append(devices[job.Hosts+"/"+g.Type], job.ID)
				}
			}
		}
		passed := now.Sub(last).Seconds()
		last = now
		for _, ids := range devices {
			for _, id := range ids {
				w := workers[id]
				slow := 1.0
				for _, other := range ids {
					if other != id && !workers[other].done {
						slow *= truth.of(w.kind.name, workers[other].kind.name)
					}
				}
				w.left -= passed / slow
				w.lost += passed * (1 - 1/slow)
				if w.left <= 0 && !w.done {
					w.done = true
					open--
					go func(path string) { _ = os.WriteFile(path, []byte("\n"), 0) }(fmt.Sprintf("%s/pipe.%s", c.Dir, names[id]))
				}
			}
		}
	}
	makespan, work, lost := time.Since(begin).Seconds(), 0.0, 0.0
	for _, w := range workers {
		work, lost = work+w.total, lost+w.lost
	}
	t.Logf("%s: %d nodes x %d GPUs, %d jobs with %.0f s of work: makespan %.1f s, mean slowdown %.2f, work done per GPU and second %.2f",
		mode, *nodes, *gpus, *jobs, work, makespan, (work+lost)/work, work/makespan/float64(*nodes**gpus))
}
