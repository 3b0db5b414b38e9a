// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"libhorus.org/learn"
	"libhorus.org/slurm/internal/slurm"
)

func runs(id uint64, comment string, gres ...string) slurm.Job {
	job := waiting(id, comment, "")
	job.State, job.Hosts, job.Gres = "RUNNING", "n1", gres
	return job
}

func TestWhatRunsIsWatchedByDevice(t *testing.T) {
	p := planner(t)
	p.options.Watch = true
	const words = "horus:profile=train,gpu_util_pct=60,gpu_memory_gib=4,step_time_ms=20,steps=9401"
	result, err := p.Pass(context.Background(), []slurm.Node{machine("n1", two)}, []slurm.Job{
		runs(1, words, "shard:a100_1:1(IDX:1)"), runs(2, "", "shard:a100_1:1(IDX:1)"), runs(3, words, "gpu:a100_0:1(IDX:0)"), waiting(4, words, "gres:shard:4"),
	}, 990)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Watched) != 2 || result.Watched[0].ID != "n1/0" || result.Watched[1].ID != "n1/1" {
		t.Fatalf("expected both devices, found %+v", result.Watched)
	}
	alone, shared := result.Watched[0], result.Watched[1]
	if len(shared.Tenants) != 2 || shared.Tenants[1].Kind != (learn.Kind{}) || len(shared.Steps) != 1 || shared.Steps["1.0"].Port != 9401 {
		t.Errorf("expected jobs 1 and 2, of which only 1 says what it is and where it tells its steps, found %+v", shared)
	}
	same := alone.Tenants[0].Kind == shared.Tenants[0].Kind
	if kind := shared.Tenants[0].Kind; !same || kind.Owner != "red" || kind.GPUType == "" || shared.Tenants[0].Demand.StepTimeUs != 20_000 {
		t.Errorf("expected jobs 1 and 3 to be of one kind of the account red, found %+v and %+v", alone.Tenants, shared.Tenants)
	}
}

func TestWhatAJobWasSeenToDoAloneCounts(t *testing.T) {
	p := planner(t)
	p.options.Watch = true
	const words = "horus:profile=train,gpu_util_pct=95,gpu_memory_gib=4,step_time_ms=20,slowdown_bound=1.5"
	nodes, jobs := []slurm.Node{machine("n1", "gpu:a100_0:1,shard:a100_0:4")}, []slurm.Job{runs(1, words, "shard:a100_0:1(IDX:0)"), waiting(2, words, "gres:shard:4")}
	before, err := p.Pass(context.Background(), nodes, jobs, 1000)
	if err != nil {
		t.Fatal(err)
	}
	kind := before.Watched[0].Tenants[0].Kind
	seen := learn.Observed{GPUType: kind.GPUType, Windows: 10, StepTimeUs: 20_000, GPUUtilPct: 5, MemBWUtilPct: 5, MemMiB: 11_000}
	if err := p.Use(nil, map[learn.Kind]learn.Observed{kind: seen}); err != nil {
		t.Fatal(err)
	}
	after, err := p.Pass(context.Background(), nodes, jobs, 1000)
	if err != nil {
		t.Fatal(err)
	}
	placed := func(r Result) bool { return strings.Contains(fmt.Sprint(r.Changes), "horus:placed") }
	if placed(before) || !placed(after) {
		t.Fatalf("said to use 95%% of a GPU and seen to use 5%%: expected no place beside another before, and one after, found %v and %v", before.Changes, after.Changes)
	}
	if !slices.ContainsFunc(after.Changes[0].Steps[1], func(s slurm.Setting) bool { return s.Value == "gres:shard:a100_0:2" }) {
		t.Errorf("expected two shards for the 11,000 MiB that were seen, found %+v", after.Changes)
	}
}
