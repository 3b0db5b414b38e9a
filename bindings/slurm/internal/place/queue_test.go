// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/internal/words"
)

const (
	one   = "gpu:a100_0:1,shard:a100_0:4"
	heavy = "horus:gpu_util_pct=90,gpu_memory_gib=30,wait=60"
	light = "horus:gpu_util_pct=10,gpu_memory_gib=2,wait=60"
)

func ours(id uint64, comment string) slurm.Job {
	job := waiting(id, comment, "gres:shard:4")
	job.Eligible = 990 - int64(id) + 60 // it waits for us since `id` seconds
	return job
}

// theirs is a job of Slurm's own that asks for whole GPUs.
func theirs(id uint64, gpus int) slurm.Job {
	job := waiting(id, "", fmt.Sprintf("gres:gpu:%d", gpus))
	job.Eligible, job.Reason = 980, "Resources"
	return job
}

// full is a job that has all GPUs of a node to itself.
func full(id uint64, host, gres string) slurm.Job {
	job := waiting(id, "", "gres:gpu:1")
	job.State, job.Hosts, job.Started, job.Gres = "RUNNING", host, 900, []string{gres}
	return job
}

func pinnedOn(job slurm.Job, place string, at int64) slurm.Job {
	node, gres, _ := strings.Cut(place, "/")
	job.AdminComment = words.Record{Verb: words.Placed, From: 1, At: at, Asked: "node:gres:shard:4", On: place}.String()
	job.Required, job.Tres.PerNode, job.Eligible, job.Reason = node, "gres:shard:"+gres+":1", 1, "Priority"
	return job
}

// kept says whether a change shows a job to Slurm on a GPU that is kept for it.
func kept(told string) bool {
	return strings.Contains(told, "horus:waits") && strings.Contains(told, " on=n1/a100_0") && strings.Contains(told, "StartTime now")
}

// patient is a job that has waited longer than --grace.
func patient(id uint64) slurm.Job {
	job := ours(id, light)
	job.Eligible -= 100
	return job
}

func TestAGPUIsKeptForWhoHasWaited(t *testing.T) {
	nodes, busy, behind := []slurm.Node{machine("n1", one)}, full(9, "n1", "gpu:a100_0:1(IDX:0)"), theirs(2, 1)
	behind.Priority = 50
	if got := changes(t, nodes, busy, ours(1, light), behind)[1]; kept(got) {
		t.Errorf("it has just come: expected it to wait, found %s", got)
	}
	if got := changes(t, nodes, busy, patient(1), behind)[1]; !kept(got) || !strings.Contains(got, "gres:shard:a100_0:1") {
		t.Errorf("it waits longer than --grace: expected the GPU kept for it, with room for others once it runs, found %s", got)
	}
}

// Slurm 22.05 forgets over a restart who holds shards: it would start who asks for all of them.
func TestNobodyIsShownToSlurmBesideThoseWhoShareBefore2411(t *testing.T) {
	busy, behind := full(9, "n1", "shard:a100_0:4(IDX:0)"), theirs(2, 1)
	busy.Comment, behind.Priority = heavy, 50
	for _, replaces := range []bool{false, true} {
		p := planner(t)
		p.options.Replaces = replaces
		result, err := p.Pass(context.Background(), []slurm.Node{machine("n1", one)}, []slurm.Job{busy, patient(1), behind}, 990)
		if err != nil || result.Kept != 1 || result.Waiting != 1 || len(result.Changes) != 1 {
			t.Fatalf("replaces %v: expected one GPU kept for one job that waits, found %+v, %v", replaces, result, err)
		}
		if got := fmt.Sprint(result.Changes[0].Steps); kept(got) != replaces || replaces && !strings.Contains(got, "gres:shard:a100_0:4") {
			t.Errorf("replaces %v: expected it shown to Slurm only where Slurm counts shards over a restart, with all of them, found %s", replaces, got)
		}
	}
}

// It asks for all of its shards until it is told otherwise, and may not be any more.
func TestAGPUThatIsKeptIsGivenAwayAPassLaterBefore2411(t *testing.T) {
	low, high := pinnedOn(ours(1, heavy), "n1/a100_0", 900), ours(2, heavy)
	low.AdminComment, low.Tres.PerNode, high.Priority = strings.Replace(low.AdminComment, "placed", "waits", 1), "gres:shard:a100_0:4", 200
	for _, replaces := range []bool{false, true} {
		p := planner(t)
		p.options.Replaces = replaces
		result, err := p.Pass(context.Background(), []slurm.Node{machine("n1", one)}, []slurm.Job{low, high}, 990)
		if err != nil {
			t.Fatal(err)
		}
		given := false
		for _, change := range result.Changes {
			given = given || change.Job == 2 && strings.Contains(fmt.Sprint(change.Steps), "horus:placed")
		}
		if given != replaces || len(result.Changes) == 0 {
			t.Errorf("replaces %v: expected it given to job 2 at once only where Slurm counts shards over a restart, found %+v", replaces, result.Changes)
		}
	}
}

func TestAGPUIsKeptOfALowerTier(t *testing.T) {
	nodes := []slurm.Node{machine("n1", one)}
	nodes[0].Partitions, nodes[0].Tiers = []string{"gpu", "low"}, map[string]int{"gpu": 10, "low": 1}
	busy := full(9, "n1", "gpu:a100_0:1(IDX:0)")
	if got := changes(t, nodes, busy, ours(1, light))[1]; kept(got) {
		t.Errorf("the same tier: expected it to wait, found %s", got)
	}
	busy.Partition = "low"
	if got := changes(t, nodes, busy, ours(1, light))[1]; !kept(got) {
		t.Errorf("a lower tier: expected it shown to Slurm, which preempts, found %s", got)
	}
}

func TestWhatSlurmHasPromisedIsOpenToThoseThatEndBefore(t *testing.T) {
	nodes, busy, big := []slurm.Node{machine("n1", two+",gpu:a100_2:1,shard:a100_2:4")}, full(8, "n1", "gpu:a100_0:1(IDX:0)"), theirs(9, 3)
	big.Priority, big.Promised, big.Started = 200, "n1", 990+600
	for minutes, placed := range map[int64]bool{0: false, 9: true, 11: false} {
		job := ours(1, light)
		job.TimeLimitMin = minutes
		if got := changes(t, nodes, busy, big, job)[1]; strings.Contains(got, "horus:placed") != placed {
			t.Errorf("a limit of %d minutes: expected placed %v, found %s", minutes, placed, got)
		}
	}
	big.Priority = 50
	if got := changes(t, nodes, busy, big, ours(1, light))[1]; !strings.Contains(got, "horus:placed") {
		t.Errorf("promised to a job behind it: expected it placed, found %s", got)
	}
}

// Backfill keeps whole nodes, whatever is free there: another place for each job that waits, in their order.
func TestNobodyIsPinnedWhereBackfillStartsNobody(t *testing.T) {
	nodes := []slurm.Node{machine("n1", two), machine("n2", two)}
	busy := []slurm.Job{full(7, "n1", "gpu:a100_0:1(IDX:0)"), full(8, "n2", "gpu:a100_0:1(IDX:0)")}
	first, second := theirs(9, 2), theirs(10, 2)
	first.Priority, first.Promised, first.Started = 201, "n1", 990+600
	if got := changes(t, nodes, append(busy, first, ours(1, light))...)[1]; !strings.Contains(got, "on=n2/a100_1") {
		t.Errorf("one node is promised: expected the other, found %s", got)
	}
	second.Priority, second.Promised, second.Started = 200, "n1", 990+1200
	if got := changes(t, nodes, append(busy, first, second, ours(1, light))...)[1]; strings.Contains(got, "horus:placed") {
		t.Errorf("two wait for a node: expected nobody on either, found %s", got)
	}
}

func TestFreeGPUsAreTheirsWhomSlurmStartsThere(t *testing.T) {
	p, ahead := planner(t), theirs(9, 1)
	ahead.Priority, ahead.Promised, ahead.Started = 200, "n2", 2000   // as backfill saw it some seconds ago
	for now, placed := range map[int64]bool{990: false, 1051: true} { // by then something else holds it back
		p.fits = map[uint64]int64{9: 990}
		result, err := p.Pass(context.Background(), []slurm.Node{machine("n1", one)}, []slurm.Job{ahead, ours(1, light)}, now)
		if err != nil || len(result.Changes) != 1 {
			t.Fatal(result, err)
		}
		if got := fmt.Sprint(result.Changes[0].Steps); strings.Contains(got, "horus:placed") != placed {
			t.Errorf("at %d: expected the job that shares placed %v, found %s", now, placed, got)
		}
	}
}

func TestFreeGPUsOfANodeAreNotTheirsWhoMayNotUseIt(t *testing.T) {
	for features, placed := range map[string]bool{"": false, "small": false, "small&big": true, "big|small": true} {
		ahead, node := theirs(9, 1), machine("n1", one)
		ahead.Priority, ahead.Features, node.Features = 200, features, []string{"small"}
		if got := changes(t, []slurm.Node{node}, ahead, ours(1, light))[1]; strings.Contains(got, "horus:placed") != placed {
			t.Errorf("features %q: expected the job that shares placed %v, found %s", features, placed, got)
		}
	}
}

func TestOneUsersJobsBlockNobodyElses(t *testing.T) {
	nodes := []slurm.Node{machine("n1", two)}
	jobs := []slurm.Job{full(9001, "n1", "gpu:a100_0:1(IDX:0)")}
	for i := range 1000 { // alike in nothing, and none fits beside another
		job := ours(uint64(i+1), fmt.Sprintf("horus:gpu_util_pct=95,gpu_memory_gib=%.3f,wait=60", 30+float64(i)/1000))
		job.User, job.Priority = "a", 200
		jobs = append(jobs, job)
	}
	other := ours(5000, light)
	other.User = "b"
	nodes = append(nodes, machine("n2", one))
	nodes[1].Features = []string{"spare"}
	for i := range jobs[1:] {
		jobs[i+1].Excluded = "n2"
	}
	if got := changes(t, nodes, append(jobs, other)...)[5000]; !strings.Contains(got, "horus:placed") {
		t.Errorf("expected the other user's job placed, found %s", got)
	}
}

func TestWhoIsHeldBackForALimitTakesNobodysPlace(t *testing.T) {
	nodes := []slurm.Node{machine("n1", one)}
	held := pinnedOn(ours(1, heavy), "n1/a100_0", 980)
	held.User, held.Reason, held.Priority = "a", "AssocMaxJobsLimit", 200
	if got := changes(t, nodes, held)[1]; got != "" {
		t.Errorf("nobody else: expected it where it is, found %s", got)
	}
	next := ours(2, heavy)
	next.User = "a"
	if got := changes(t, []slurm.Node{machine("n1", two)}, held, next)[2]; !strings.Contains(got, "behind job 1 of the same user") {
		t.Errorf("the same user: expected it behind job 1, found %s", got)
	}
	other := ours(3, heavy)
	other.User = "b"
	got := changes(t, nodes, held, other)
	if !strings.Contains(got[1], "horus:waits") || got[3] != "" {
		t.Errorf("another user: expected job 1 taken back and nobody placed there before that is certain, found %v", got)
	}
}

// Released, it would start where others have been placed meanwhile.
func TestWhoIsHeldGivesItsPlaceBack(t *testing.T) {
	held := pinnedOn(ours(1, heavy), "n1/a100_0", 900)
	held.Priority, held.Reason = 0, "JobHeldUser"
	nodes := []slurm.Node{machine("n1", one)}
	got := changes(t, nodes, held, ours(2, heavy))
	if !strings.Contains(got[1], "horus:waits") || !strings.Contains(got[1], "ReqNodeList ") || strings.Contains(got[1], "true") || got[2] != "" {
		t.Errorf("expected its place taken back, the hold left, and the place given away a pass later, found %s and %s", got[1], got[2])
	}
	held.AdminComment = words.Record{Verb: words.Waits, From: 1, At: 980, Asked: "node:gres:shard:4", Text: "it is held"}.String()
	if got := changes(t, nodes, held, ours(2, heavy)); got[1] != "" || !strings.Contains(got[2], "horus:placed") {
		t.Errorf("without a place: expected it left alone and the other placed, found %s and %s", got[1], got[2])
	}
}

func TestAPlaceIsTakenBackForWhoIsAhead(t *testing.T) {
	nodes := []slurm.Node{machine("n1", one)}
	low, high := pinnedOn(ours(1, heavy), "n1/a100_0", 980), ours(2, heavy)
	high.Priority = 200
	got := changes(t, nodes, low, high)
	if !strings.Contains(got[1], "horus:waits") || got[2] != "" {
		t.Errorf("expected job 1 taken back and job 2 placed a pass later, found %v", got)
	}
	low.AdminComment = strings.Replace(low.AdminComment, "at=980", "at=989", 1)
	if got := changes(t, nodes, low, high); got[1] != "" || !strings.Contains(got[2], "horus:waits") {
		t.Errorf("Slurm may be starting job 1: expected it left alone, found %v", got)
	}
}

// half is a job that leaves a GPU half idle, and room for one more: of `early`, who loses much there, and `late`, who loses little.
func half(id uint64) slurm.Job {
	job := full(id, "n1", "shard:a100_0:3(IDX:0)")
	job.Comment = "horus:gpu_util_pct=50,gpu_memory_gib=20,slowdown_bound=9,wait=60"
	return job
}

const (
	early = "horus:gpu_util_pct=70,gpu_memory_gib=8,slowdown_bound=9,wait=60"
	late  = "horus:gpu_util_pct=20,gpu_memory_gib=8,slowdown_bound=9,wait=60"
)

func TestThatOneOfPeersIsPinnedWhoseWorkIsWorthMost(t *testing.T) {
	for name, c := range map[string]struct {
		basic  bool
		change func(early, late, between *slurm.Job)
		passed bool
	}{
		"one priority":                     {false, func(_, _, _ *slurm.Job) {}, true},
		"another priority":                 {false, func(a, _, _ *slurm.Job) { a.Priority++ }, false},
		"in the order of their submission": {true, func(a, _, _ *slurm.Job) { a.Priority++ }, true},
		"raised":                           {true, func(a, _, _ *slurm.Job) { a.Priority += 2 }, false},
		"a job of Slurm's own between":     {false, func(_, _, x *slurm.Job) { x.Submitted = 2 }, false},
		"one that waits for another":       {false, func(_, _, x *slurm.Job) { x.Submitted, x.Dependency = 2, "afterok:1" }, true},
	} {
		p := planner(t)
		p.Basic(c.basic)
		a, b, whole := ours(4, early), ours(5, late), theirs(6, 1)
		a.Submitted, b.Submitted, whole.Submitted, whole.Priority = 1, 3, 4, 100
		c.change(&a, &b, &whole)
		result, err := p.Pass(context.Background(), []slurm.Node{machine("n1", one)}, []slurm.Job{half(1), a, b, whole}, 990)
		if err != nil {
			t.Fatal(err)
		}
		pinned := map[uint64]bool{}
		for _, change := range result.Changes {
			pinned[change.Job] = strings.Contains(fmt.Sprint(change.Steps), "horus:placed")
		}
		if pinned[4] == c.passed || pinned[5] != c.passed || c.passed != (result.Reasons["passed_over"] == 1) {
			t.Errorf("%s: expected the one whose work is worth more pinned %v, found %v, %v", name, c.passed, pinned, result)
		}
	}
}

// A better one comes with every pass.
func TestNobodyPassesWhoIsOutOfPatience(t *testing.T) {
	p := planner(t)
	p.options.PatienceS = 100
	first := ours(2, early)
	for now, id := int64(990), uint64(3); ; now, id = now+10, id+1 {
		next := ours(id, late)
		next.Eligible, next.Submitted = now+60, now
		result, err := p.Pass(context.Background(), []slurm.Node{machine("n1", one)}, []slurm.Job{half(1), first, next}, now)
		if err != nil {
			t.Fatal(err)
		}
		pinned := uint64(0)
		for _, change := range result.Changes {
			if strings.Contains(fmt.Sprint(change.Steps), "horus:placed") {
				pinned = change.Job
			}
		}
		if waited := now - first.Eligible + 60; waited >= 100 {
			if pinned != 2 {
				t.Errorf("it waited %d s of 100: expected it pinned, found job %d", waited, pinned)
			}
			return
		} else if pinned != id {
			t.Fatalf("it waited %d s of 100: expected job %d pinned, found job %d", waited, id, pinned)
		}
	}
}

// A GPU is kept for it, and that is all.
func TestWhoIsOutOfPatienceAndFitsNowhereHoldsNobodyUp(t *testing.T) {
	p := planner(t)
	p.options.PatienceS = 100
	other, blocked := half(2), ours(200, heavy)
	other.Gres = []string{"shard:a100_1:3(IDX:1)"}
	result, err := p.Pass(context.Background(), []slurm.Node{machine("n1", two)}, []slurm.Job{half(1), other, blocked, ours(4, early), ours(5, late)}, 990)
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint64]string{}
	for _, change := range result.Changes {
		got[change.Job] = fmt.Sprint(change.Steps)
	}
	if !strings.Contains(got[200], "is kept for it") || !strings.Contains(got[4], "horus:waits") || !strings.Contains(got[5], "horus:placed") {
		t.Errorf("expected a GPU kept for job 200 and job 5 on the other, found %v", got)
	}
}

// A job of Slurm's own that waits starts the sooner, and no GPU is left half used.
func TestThoseThatShareLeaveFreeGPUsToWhomSlurmStartsThere(t *testing.T) {
	for name, c := range map[string]struct {
		comment string
		wanted  int // GPUs of a job of Slurm's own that waits; 0 = none does
		on      string
	}{
		"nobody waits":             {late, 0, "n1/a100_0"},
		"one waits for a GPU":      {late, 1, "n1/a100_1"},
		"one waits for more":       {late, 2, "n1/a100_0"},
		"there is no room besides": {heavy, 1, "n1/a100_0"},
	} {
		busy := half(1)
		busy.Gres = []string{"shard:a100_1:3(IDX:1)"}
		jobs := []slurm.Job{busy, ours(4, c.comment)}
		if c.wanted > 0 {
			jobs = append(jobs, theirs(6, c.wanted))
		}
		if got := changes(t, []slurm.Node{machine("n1", two)}, jobs...)[4]; !strings.Contains(got, "horus:placed") || !strings.Contains(got, "on="+c.on) {
			t.Errorf("%s: expected it placed on %s, found %s", name, c.on, got)
		}
	}
}
