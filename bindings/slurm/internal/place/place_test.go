// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"libhorus.org/horus"
	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/internal/words"
)

func planner(t *testing.T, sharing ...horus.SharingMode) *Planner {
	t.Helper()
	options := Options{Partitions: []string{"gpu"}, Types: map[string]string{"a100": "a100-40gb", "v100": "v100-sxm2-16gb"}}
	if len(sharing) > 0 {
		options.Sharing = sharing[0]
	}
	p, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func machine(name, gres string) slurm.Node {
	return slurm.Node{Name: name, CPUs: 32, MemMiB: 64_000, Gres: gres, Up: true, Partitions: []string{"gpu"}}
}

func waiting(id uint64, comment, perNode string) slurm.Job {
	return slurm.Job{
		ID: id, Partition: "gpu", State: "PENDING", Comment: comment, Priority: 100, Submitted: 1, Eligible: 1000, NodeCount: 1,
		Tasks: 1, CPUs: 1, MemMiB: 100, Account: "red", Tres: slurm.Tres{PerNode: perNode},
	}
}

const two = "gpu:a100_0:1,gpu:a100_1:1,shard:a100_0:4,shard:a100_1:4"

func changes(t *testing.T, nodes []slurm.Node, jobs ...slurm.Job) map[uint64]string {
	t.Helper()
	result, err := planner(t).Pass(context.Background(), nodes, jobs, 990)
	if err != nil {
		t.Fatal(err)
	}
	out := map[uint64]string{}
	for _, change := range result.Changes {
		out[change.Job] = fmt.Sprint(change.Steps)
	}
	return out
}

func TestMemoryIsCountedInWholeShards(t *testing.T) {
	got := changes(t, []slurm.Node{machine("n1", two)}, waiting(1, "horus:gpu_util_pct=10,gpu_memory_gib=11,wait=60", "gres:shard:4"))
	if !strings.Contains(got[1], "gres:shard:a100_1:2") || !strings.Contains(got[1], "mem_mib=20230") {
		t.Errorf("expected 11 GiB as two shards of 10,115 MiB, found %s", got[1])
	}
}

func TestWhatOnlySlurmCanPlaceIsLeftToItWithTheReason(t *testing.T) {
	for says, change := range map[string]func(*slurm.Job){
		"it is an array":                        func(j *slurm.Job) { j.Array = true },
		"it is heterogeneous":                   func(j *slurm.Job) { j.Het = true },
		"whole nodes":                           func(j *slurm.Job) { j.WholeNodes = true },
		"a reservation":                         func(j *slurm.Job) { j.Reservation = "r" },
		"features by more than &":               func(j *slurm.Job) { j.Features = "a|b" },
		"whole GPUs, which Slurm":               func(j *slurm.Job) { j.Tres = slurm.Tres{PerJob: "gres:gpu:3"} },
		"gres:shard:1: expected --gres=shard:N": func(j *slurm.Job) { j.Tres = slurm.Tres{PerSocket: "gres:shard:1"} },
		"of type a100_0":                        func(j *slurm.Job) { j.Tres.PerNode = "gres:shard:a100_0:1" },
		"it asks for no GPU":                    func(j *slurm.Job) { j.Tres = slurm.Tres{} },
		"gres:shard:4 and gres:gpu:1":           func(j *slurm.Job) { j.Tres.PerJob = "gres:gpu:1" },
		"it asks for shards on 2 node":          func(j *slurm.Job) { j.NodeCount = 2 },
	} {
		job := waiting(1, "horus:wait=60", "gres:shard:4")
		change(&job)
		if got := changes(t, []slurm.Node{machine("n1", two)}, job)[1]; !strings.Contains(got, "horus:left") || !strings.Contains(got, says) {
			t.Errorf("expected it left to Slurm because %q, found %s", says, got)
		}
	}
}

func TestOthersJobsAreNotTouched(t *testing.T) {
	plain, elsewhere, held := waiting(1, "", "gres:shard:4"), waiting(2, "horus:wait=60", "gres:shard:4"), waiting(3, "horus:wait=60", "gres:shard:4")
	elsewhere.Partition, held.Priority = "cpu", 0
	own := waiting(4, "horus:", "gres:shard:4") // a begin of its user's
	if got := changes(t, []slurm.Node{machine("n1", two)}, plain, elsewhere, held, own); len(got) != 0 {
		t.Errorf("expected no change, found %v", got)
	}
}

func TestARequestThatHasTypesKeepsThem(t *testing.T) {
	job := waiting(1, "horus:gpu_util_pct=10,gpu_memory_gib=4,wait=60", "gres:shard:a100_1:1")
	job.Reason = "Resources"
	job.AdminComment, job.Eligible, job.Required = words.Record{Verb: words.Placed, From: 1, At: 1, Asked: "node:gres:shard:4", On: "n9/a100_1"}.String(), 1, "n9"
	got := changes(t, []slurm.Node{machine("n1", two)}, job)[1]
	if !strings.Contains(got, "TresPerNode gres:shard:a100_1:1") || !strings.Contains(got, "on=n1/a100_1") || strings.Contains(got, "{TresPerNode }") {
		t.Errorf("expected the GPU of its number on another node, found %s", got)
	}
}

func TestTheNodesThatAUserListedOutliveAPlace(t *testing.T) {
	nodes := []slurm.Node{machine("n1", two), machine("n2", two)}
	job := waiting(1, "horus:gpu_util_pct=10,gpu_memory_gib=4,wait=60", "gres:shard:4")
	job.Required = "n2"
	if got := changes(t, nodes, job)[1]; !strings.Contains(got, "nodes=n2 on=n2/a100_1") {
		t.Fatalf("expected it on n2, found %s", got)
	}
	job.Required, job.Tres.PerNode, job.Reason = "n2", "gres:shard:a100_0:1", "Resources"
	job.AdminComment = words.Record{Verb: words.Placed, From: 1, At: 1, Asked: "node:gres:shard:4", Nodes: "n2", On: "n2/a100_0"}.String()
	nodes[1].Up = false
	if got := changes(t, nodes, job)[1]; !strings.Contains(got, "horus:waits") || !strings.Contains(got, "{ReqNodeList n2}") {
		t.Errorf("expected it to wait for n2, found %s", got)
	}
}

func TestWhatSlurmRefusesAgainAndAgainIsLeftToIt(t *testing.T) {
	p := planner(t)
	job := waiting(1, "horus:gpu_util_pct=10,gpu_memory_gib=4,wait=60", "")
	job.Eligible = 1 << 40 // its request was taken away, and the new one refused
	job.AdminComment = words.Record{Verb: words.Waits, From: 1, At: 1, Asked: "node:gres:shard:4"}.String()
	for times := range patience + 1 {
		result, err := p.Pass(context.Background(), []slurm.Node{machine("n1", two)}, []slurm.Job{job}, 990)
		if err != nil || len(result.Changes) != 1 {
			t.Fatal(result, err)
		}
		steps := result.Changes[0].Steps
		told := fmt.Sprint(steps)
		if left := strings.Contains(told, "would not have it placed: no"); left != (times == patience) {
			t.Errorf("after %d refusals: expected left to Slurm %v, found %s", times, times == patience, told)
		}
		if times == patience && (!strings.Contains(told, "TresPerNode gres:shard:4") || !strings.Contains(told, "StartTime now}")) {
			t.Errorf("expected its request restored and that it may start, found %s", told)
		}
		p.Refused(1, "no")
	}
}

func TestANodeWithoutATypeForEachGPUIsNamed(t *testing.T) {
	p := planner(t)
	for gres, says := range map[string]string{"gpu:a100:2": "found gpu:a100:2 (horus-slurm migrate", "gpu:h9_0:1": "say --types h9=NAME"} {
		result, err := p.Pass(context.Background(), []slurm.Node{machine("n1", gres)}, nil, 1)
		if err != nil || len(result.Problems) != 1 || !strings.Contains(result.Problems[0], "node n1: ") || !strings.Contains(result.Problems[0], says) {
			t.Errorf("%s: expected node n1 and %q, found %v, %v", gres, says, result.Problems, err)
		}
	}
}

// A controller that has just started knows of no shards. So only a job that fitted nowhere at any pass for a minute is Slurm's.
func TestAJobThatFitsNoNodeIsLeftOnlyAWhileLater(t *testing.T) {
	job := waiting(1, "horus:wait=60", "gres:shard:4")
	job.AdminComment = words.Record{Verb: words.Waits, From: 1, At: 900, Asked: "node:gres:shard:4", Text: "never fits: x"}.String()
	job.Eligible = 1
	p := planner(t)
	for _, look := range []struct {
		at   int64
		gres string
		left bool
	}{{990, "gpu:a100_0:1", false}, {1049, two, false}, {1050, "gpu:a100_0:1", false}, {1109, "gpu:a100_0:1", false}, {1110, "gpu:a100_0:1", true}} {
		result, err := p.Pass(context.Background(), []slurm.Node{machine("n1", look.gres)}, []slurm.Job{job}, look.at)
		if err != nil || len(result.Changes) != 1 {
			t.Fatal(result, err)
		}
		if got := fmt.Sprint(result.Changes[0].Steps); strings.Contains(got, "horus:left") != look.left || strings.Contains(got, "never fits: ") == (look.gres == two) {
			t.Errorf("at %d: expected left to Slurm %v, found %s", look.at, look.left, got)
		}
	}
}

// A bound that no card keeps may be too wide: Slurm runs the job as it was submitted, and the user sees why.
func TestAJobWhoseBoundFitsNoCardIsLeftToSlurm(t *testing.T) {
	job := waiting(1, "horus:model=../../../../examples/models/graphs/resnet50.onnx,batch=600,mode=training,wait=60", "gres:shard:4")
	job.WorkDir, _ = os.Getwd()
	p := planner(t)
	for now, verb := range map[int64]string{990: "horus:waits", 1050: "horus:left"} {
		p.never = map[uint64]int64{1: 990}
		result, err := p.Pass(context.Background(), []slurm.Node{machine("n1", two)}, []slurm.Job{job}, now)
		if err != nil || len(result.Changes) != 1 {
			t.Fatal(result, err)
		}
		if got := fmt.Sprint(result.Changes[0].Steps); !strings.Contains(got, verb) || !strings.Contains(got, "never fits: ") {
			t.Errorf("at %d: expected %s, found %s", now, verb, got)
		}
	}
}

// pinned is what a pass writes into the admin comment of a job.
func pinned(t *testing.T, p *Planner, nodes []slurm.Node, job slurm.Job, now int64) words.Record {
	t.Helper()
	result, err := p.Pass(context.Background(), nodes, []slurm.Job{job}, now)
	if err != nil || len(result.Changes) != 1 {
		t.Fatalf("expected one change, found %+v, %v", result, err)
	}
	for _, one := range slices.Concat(result.Changes[0].Steps...) {
		if one.Field == "AdminComment" {
			job.AdminComment = one.Value // of the last step
		}
	}
	record, _ := words.RecordOf(job.AdminComment)
	return record
}

const served = "horus:model=llama-3.2-3b,requests_per_s=1,tokens_in=512,tokens_out=128,token_ms=100,wait=60"

func TestAServicesMemoryIsThatOfWhichItsEngineIsTold(t *testing.T) {
	r := pinned(t, planner(t), []slurm.Node{machine("n1", two)}, waiting(1, served, "gres:shard:4"), 990)
	var share float64
	if _, err := fmt.Sscanf(r.Engine, "--gpu-memory-utilization %f --kv-cache-memory-bytes ", &share); err != nil || r.Verb != words.Placed {
		t.Fatalf("expected it placed with arguments of vllm, found %+v, %v", r, err)
	}
	if told := share * 40 * 1024; float64(r.Mem) < told || r.Mem%10_115 != 0 || told < 6*1024 {
		t.Errorf("expected whole shards of at least the %.0f MiB that the engine takes, found %d MiB", told, r.Mem)
	}
}

func TestAServiceThatNoCardKeepsIsLeftToSlurmWithTheReason(t *testing.T) {
	for comment, says := range map[string]string{
		strings.Replace(served, "requests_per_s=1", "requests_per_s=1000", 1): "never fits: ",
		strings.Replace(served, "llama-3.2-3b", "llama-3.1-405b", 1):          "never fits: ",
		strings.Replace(served, "llama-3.2-3b", "llama-3.2-3", 1):             "did you mean 'llama-3.2-3b'?",
		served + ",tensor_parallel=2":                                         "tensor_parallel: expected 1 of a job that shares a GPU, found 2",
	} {
		p := planner(t)
		p.never = map[uint64]int64{1: 900}
		if r := pinned(t, p, []slurm.Node{machine("n1", two)}, waiting(1, comment, "gres:shard:4"), 990); r.Verb != words.Left || !strings.Contains(r.Text, says) || r.Grant != (words.Grant{}) {
			t.Errorf("%s: expected it left to Slurm, and why: %s, found %+v", comment, says, r)
		}
	}
}

func TestCapsAndStatedMemoryAreGrantedUnderMPSAlone(t *testing.T) {
	nodes := []slurm.Node{machine("n1", two)}
	for comment, want := range map[string]words.Grant{
		"horus:gpu_util_pct=10,gpu_memory_gib=11,sm_cap_pct=30,wait=60": {SMCapPct: 30, LimitMiB: 20_230},
		"horus:gpu_util_pct=10,gpu_memory_gib=11,wait=60":               {LimitMiB: 20_230},
		"horus:wait=60": {},
	} {
		job := waiting(1, comment, "gres:shard:4")
		if r := pinned(t, planner(t, horus.MPS), nodes, job, 990); r.Verb != words.Placed || r.Grant != want {
			t.Errorf("%s: expected it placed with %+v, found %+v", comment, want, r)
		}
		capped := want.SMCapPct > 0
		if r := pinned(t, planner(t), nodes, job, 990); (r.Verb == words.Placed) == capped || r.Grant != (words.Grant{}) {
			t.Errorf("%s: without MPS: expected a place %v and no grant, found %+v", comment, !capped, r)
		}
	}
}
