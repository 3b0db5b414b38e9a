// SPDX-License-Identifier: Apache-2.0

package horus_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"libhorus.org/horus"
	"libhorus.org/horus/internal/direct"
)

const gpu = "a100-40gb"

func must[T any](t testing.TB) func(value T, err error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clusterOf has `nodes` nodes of two GPUs, from id 1.
func clusterOf(t testing.TB, nodes int) *horus.Cluster {
	t.Helper()
	c := must[*horus.Cluster](t)(horus.NewCluster(nil))
	t.Cleanup(func() { c.Close() })
	for i := range nodes {
		ok(t, c.AddNode(node(uint64(i+1))))
	}
	return c
}

func node(id uint64) horus.Node {
	return horus.Node{
		ID: id, CPUMilli: 64_000, MemMiB: 262_144,
		Devices: []horus.Device{{GPUType: gpu, ID: "GPU-0"}, {GPUType: gpu, ID: "GPU-1"}},
	}
}

func placerOf(t testing.TB, options horus.PlacerOptions) *horus.Placer {
	t.Helper()
	p := must[*horus.Placer](t)(horus.NewPlacer(options))
	t.Cleanup(func() { p.Close() })
	return p
}

func job(id uint64, utilisation float32, memMiB int64) horus.Job {
	return horus.Job{ID: id, CPUMilli: 1_000, MemMiB: 1_024, Demands: []horus.TypeDemand{
		{GPUType: gpu, Demand: horus.Demand{GPUUtilPct: utilisation, MemMiB: memMiB, ProfileID: id}},
	}}
}

func stateOf(t testing.TB, c *horus.Cluster) uint64 {
	t.Helper()
	return must[horus.ClusterInfo](t)(c.Info()).StateHash
}

func TestThePackageMayCallTheLibraryItMet(t *testing.T) {
	ok(t, horus.CheckABI())
	if horus.Version() == "" {
		t.Error("no version")
	}
}

func TestAPlanIsAppliedOnceAndReleased(t *testing.T) {
	c, p := clusterOf(t, 2), placerOf(t, horus.PlacerOptions{})
	empty := stateOf(t, c)
	plan := must[*horus.Plan](t)(p.Plan(context.Background(), c, []horus.Job{job(1, 30, 2_000), job(2, 99, 50_000)}, nil))
	defer plan.Close()
	if plan.Len() != 2 || stateOf(t, c) != empty {
		t.Fatalf("%d decisions; planning must not change the cluster", plan.Len())
	}
	first, second := must[horus.Decision](t)(plan.Decision(0)), must[horus.Decision](t)(plan.Decision(1))
	if first.Verdict != horus.Place || len(first.Slots) != 1 || first.JobID != 1 || first.Slowdown != 1 {
		t.Errorf("job 1 fits an empty cluster, found %+v", first)
	}
	if second.Verdict != horus.Reject || second.Reason != horus.ReasonGPUMemory || second.Miss.Unit != "MiB" {
		t.Errorf("job 2 needs more memory than any GPU has, found %+v", second)
	}
	if refused := must[map[horus.Reason]uint64](t)(plan.Refusals(1)); refused[horus.ReasonGPUMemory] != 4 {
		t.Errorf("expected all four GPUs refused for memory, found %v", refused)
	}
	effects := must[[]horus.Effect](t)(plan.Effects(0))
	if len(effects) != 1 || effects[0].JobID != 1 || effects[0].After != 1 {
		t.Errorf("expected the job alone on its device, found %+v", effects)
	}
	if _, err := plan.Decision(2); !errors.Is(err, horus.ErrNotFound) {
		t.Errorf("expected ErrNotFound beyond the last decision, found %v", err)
	}
	ok(t, c.Apply(plan))
	if slots := must[[]horus.Slot](t)(c.JobSlots(1)); len(slots) != 1 || slots[0] != first.Slots[0] {
		t.Errorf("expected the job where the plan said, found %v", slots)
	}
	if err := c.Apply(plan); !errors.Is(err, horus.ErrExists) {
		t.Errorf("expected ErrExists the second time, found %v", err)
	}
	ok(t, c.Release(1))
	if err := c.Release(1); !errors.Is(err, horus.ErrNotFound) || stateOf(t, c) != empty {
		t.Errorf("expected the empty cluster, and ErrNotFound the second time, found %v", err)
	}
}

func TestCoresGoWhereTheyDoMostWork(t *testing.T) {
	c, p := clusterOf(t, 1), placerOf(t, horus.PlacerOptions{})
	hungry := func(id uint64) horus.Job {
		j := job(id, 30, 2_000)
		j.Sensitivity = &horus.Sensitivity{CPUMilli: []int64{32_000, 48_000}, MemMiB: []int64{1_024}, Speeds: []float32{1, 1.5}}
		return j
	}
	first := must[*horus.Plan](t)(p.Plan(context.Background(), c, []horus.Job{hungry(1)}, nil))
	defer first.Close()
	if d := must[horus.Decision](t)(first.Decision(0)); d.CPUMilli != 48_000 {
		t.Errorf("expected all the cores that a job alone can use, found %d", d.CPUMilli)
	}
	ok(t, c.Apply(first))
	second := must[*horus.Plan](t)(p.Plan(context.Background(), c, []horus.Job{hungry(2)}, nil))
	defer second.Close()
	moves := must[[]horus.Resize](t)(second.Resizes())
	if len(moves) != 1 || moves[0].JobID != 1 || moves[0].CPUMilliBefore != 48_000 || moves[0].CPUMilli != 32_000 {
		t.Errorf("expected the first job to give cores back, found %+v", moves)
	}
	ok(t, c.Apply(second))
	wrong := hungry(3)
	wrong.Sensitivity.Speeds = wrong.Sensitivity.Speeds[:1]
	if _, err := p.Plan(context.Background(), c, []horus.Job{wrong}, nil); !errors.Is(err, horus.ErrInvalidArgument) {
		t.Errorf("expected ErrInvalidArgument for a matrix with a hole, found %v", err)
	}
}

func TestAPlanOfAStateThatMovedConflicts(t *testing.T) {
	c, p := clusterOf(t, 1), placerOf(t, horus.PlacerOptions{})
	plan := must[*horus.Plan](t)(p.Plan(context.Background(), c, []horus.Job{job(1, 30, 2_000)}, nil))
	defer plan.Close()
	must[horus.Reason](t)(c.Adopt(job(2, 30, 2_000), []horus.Slot{{Node: 1}}))
	if err := c.Apply(plan); !errors.Is(err, horus.ErrConflict) {
		t.Errorf("expected ErrConflict, found %v", err)
	}
}

func TestAPlanOfMoreJobsThanItMayHaveIsRefused(t *testing.T) {
	c, p := clusterOf(t, 1), placerOf(t, horus.PlacerOptions{MaxJobs: 1})
	two := []horus.Job{job(1, 30, 2_000), job(2, 30, 2_000)}
	if _, err := p.Plan(context.Background(), c, two, nil); !errors.Is(err, horus.ErrLimit) {
		t.Errorf("expected ErrLimit, found %v", err)
	}
}

func TestVerdictsAnswerForEveryNodeInOneCall(t *testing.T) {
	c, p := clusterOf(t, 3), placerOf(t, horus.PlacerOptions{})
	ok(t, c.SetState(2, horus.WholeNode, horus.Drained))
	must[horus.Reason](t)(c.Adopt(job(9, 90, 39_000), []horus.Slot{{Node: 3, Device: 0}}))
	must[horus.Reason](t)(c.Adopt(job(8, 90, 39_000), []horus.Slot{{Node: 3, Device: 1}}))
	var out horus.NodeVerdicts
	ok(t, p.Verdicts(c, job(1, 50, 4_000), []uint64{3, 1, 2}, &out))
	if out.Verdicts[0] != horus.Defer || out.Reasons[0] != horus.ReasonGPUMemory || !math.IsNaN(out.Costs[0]) {
		t.Errorf("node 3 is full: found %v for %v", out.Verdicts[0], out.Reasons[0])
	}
	if out.Verdicts[1] != horus.Place || out.Reasons[1] != horus.ReasonNone || math.IsNaN(out.Costs[1]) {
		t.Errorf("node 1 is free: found %v for %v", out.Verdicts[1], out.Reasons[1])
	}
	if out.Verdicts[2] != horus.Defer || out.Reasons[2] != horus.ReasonNodeDrained {
		t.Errorf("node 2 is drained: found %v for %v", out.Verdicts[2], out.Reasons[2])
	}
	before := &out.Costs[0]
	ok(t, p.Verdicts(c, job(1, 50, 4_000), []uint64{1}, &out))
	if len(out.Costs) != 1 || &out.Costs[0] != before {
		t.Error("expected the columns to be used again")
	}
}

// One place is free, beside a job that leaves the GPU half idle. Who loses most there came first.
func TestTheQueueGoesByWhatWorkIsWorthUntilSomebodyWaitedForTooLong(t *testing.T) {
	c := must[*horus.Cluster](t)(horus.NewCluster(nil))
	defer c.Close()
	one := node(1)
	one.Devices = one.Devices[:1]
	ok(t, c.AddNode(one))
	p := placerOf(t, horus.PlacerOptions{MaxTenants: 2, SlowdownBound: float32(math.Inf(1))})
	_, err := c.Adopt(job(1, 60, 1_000), []horus.Slot{{Node: 1}})
	ok(t, err)
	early, late := job(2, 60, 1_000), job(3, 20, 1_000)
	early.SubmitUs, late.SubmitUs = 1_000_000, 2_000_000
	for _, q := range []struct {
		options    horus.BatchOptions
		first, why string
	}{
		{horus.BatchOptions{}, "late", "it is the better co-tenant"},
		{horus.BatchOptions{NowUs: 9_000_000, PatienceUs: 8_000_000}, "early", "nobody passes it any more"},
		{horus.BatchOptions{NowUs: 8_999_999, PatienceUs: 8_000_000}, "late", "it waits for less than the patience"},
		{horus.BatchOptions{Window: 1}, "early", "one is looked at"},
	} {
		plan := must[*horus.Plan](t)(p.PlanBatch(context.Background(), c, []horus.Job{late, early}, nil, q.options))
		names := map[uint64]string{2: "early", 3: "late"}
		for i := range plan.Len() {
			d := must[horus.Decision](t)(plan.Decision(i))
			if placed := d.Verdict == horus.Place; placed != (names[d.JobID] == q.first) {
				t.Errorf("%+v: expected %s to go, since %s; found %s of %s", q.options, q.first, q.why, d.Verdict, names[d.JobID])
			} else if !placed && d.Reason != horus.ReasonPassedOver {
				t.Errorf("%+v: expected the other to be passed over, found %s", q.options, d.Reason)
			}
		}
		plan.Close()
	}
}

func TestNilNodesAreAllAndNoNodesAreNone(t *testing.T) {
	c, p := clusterOf(t, 1), placerOf(t, horus.PlacerOptions{})
	plan := must[*horus.Plan](t)(p.Plan(context.Background(), c, []horus.Job{job(1, 30, 2_000)}, []uint64{}))
	defer plan.Close()
	if d := must[horus.Decision](t)(plan.Decision(0)); d.Verdict == horus.Place {
		t.Errorf("expected no place among no nodes, found %+v", d)
	}
}

func TestErrorsNameThePlaceAndKeepTheState(t *testing.T) {
	c := clusterOf(t, 1)
	state := stateOf(t, c)
	wrong := node(2)
	wrong.Devices[1].GPUType = "a100-41gb"
	for _, one := range []struct {
		name   string
		err    error
		status horus.Status
		says   string
	}{
		{"type", c.AddNode(wrong), horus.ErrNotFound, "gpu_types[1]"},
		{"id", c.AddNode(node(1)), horus.ErrExists, "node 1"},
		{"zero byte", c.AddNode(horus.Node{ID: 3, Name: "a\x00b"}), horus.ErrInvalidArgument, "Name"},
		{"utf-8", c.AddNode(horus.Node{ID: 3, Name: "caf\xc3"}), horus.ErrInvalidArgument, "UTF-8"},
		{"node", c.RemoveNode(7), horus.ErrNotFound, "7"},
		{"capacity", second(horus.NewObservations(-1)), horus.ErrInvalidArgument, "capacity"},
		{"policy", second(horus.NewPlacer(horus.PlacerOptions{Policy: "best"})), horus.ErrNotFound, "first-fit"},
		{"graph", second(horus.ParseGraph(nil)), horus.ErrInvalidArgument, ""},
		{"bundle", second(horus.LoadPredictor([]byte("no bundle"))), horus.ErrCorrupt, ""},
		{"snapshot", second(horus.RestoreCluster(nil, []byte("no snapshot"))), horus.ErrCorrupt, ""},
	} {
		var e *horus.Error
		if !errors.Is(one.err, one.status) || !errors.As(one.err, &e) || !strings.Contains(e.Message, one.says) {
			t.Errorf("%s: expected %v that says %q, found %v", one.name, one.status, one.says, one.err)
		}
	}
	if stateOf(t, c) != state {
		t.Error("a refused call changed the cluster")
	}
}

func second[T any](_ T, err error) error { return err }

func TestAContextEndsAPlan(t *testing.T) {
	c, p := clusterOf(t, 200), placerOf(t, horus.PlacerOptions{})
	jobs := make([]horus.Job, 2_000)
	for i := range jobs {
		jobs[i] = job(uint64(i+1), float32(1+i%97), int64(1_000+i))
	}
	state := stateOf(t, c)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Plan(ctx, c, jobs, nil); !errors.Is(err, context.Canceled) || !errors.Is(err, horus.ErrCancelled) {
		t.Errorf("expected the context's error and ErrCancelled, found %v", err)
	}
	late, stop := context.WithTimeout(context.Background(), time.Millisecond)
	defer stop()
	if _, err := p.Plan(late, c, jobs, nil); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("expected a plan or the deadline's error, found %v", err)
	}
	if stateOf(t, c) != state {
		t.Error("a cancelled plan changed the cluster")
	}
}

func TestClosedHandlesAnswerSo(t *testing.T) {
	c, p := clusterOf(t, 1), placerOf(t, horus.PlacerOptions{})
	ok(t, c.Close())
	ok(t, c.Close())
	if err := c.AddNode(node(1)); !errors.Is(err, horus.ErrClosed) {
		t.Errorf("expected ErrClosed, found %v", err)
	}
	if _, err := p.Plan(context.Background(), c, nil, nil); !errors.Is(err, horus.ErrClosed) {
		t.Errorf("expected ErrClosed of the cluster, found %v", err)
	}
}

func TestForgottenHandlesAreClosedByTheCollector(t *testing.T) {
	before, made := direct.HeapBytes(), uint64(0)
	for range 60 {
		c := must[*horus.Cluster](t)(horus.NewCluster(nil))
		for i := range 2_000 {
			ok(t, c.AddNode(node(uint64(i+1))))
		}
		made += must[horus.ClusterInfo](t)(c.Info()).BytesHeld
		runtime.GC() // the clusters before this one are nobody's
	}
	if after := direct.HeapBytes(); after > before+made/2 {
		t.Errorf("expected most of the %d bytes that were made to be given back, found %d more than before", made, after-before)
	}
}

func TestASnapshotBringsTheStateBack(t *testing.T) {
	c := clusterOf(t, 2)
	must[horus.Reason](t)(c.Adopt(job(5, 40, 3_000), []horus.Slot{{Node: 2, Device: 1}}))
	saved := must[[]byte](t)(c.Snapshot())
	back := must[*horus.Cluster](t)(horus.RestoreCluster(nil, saved))
	defer back.Close()
	if stateOf(t, back) != stateOf(t, c) || !bytes.Equal(must[[]byte](t)(back.Snapshot()), saved) {
		t.Error("expected the same state")
	}
	device := must[horus.DeviceInfo](t)(back.Device(2, 1))
	if device.ID != "GPU-1" || len(device.Jobs) != 1 || device.Jobs[0] != 5 || device.MemReservedMiB != 3_000 {
		t.Errorf("expected job 5 on GPU-1, found %+v", device)
	}
}

func TestASnapshotFileBringsTheStateBack(t *testing.T) {
	c, path := clusterOf(t, 2), t.TempDir()+"/state"
	must[horus.Reason](t)(c.Adopt(job(5, 40, 3_000), []horus.Slot{{Node: 2, Device: 1}}))
	if err := c.SnapshotFile(path); err != nil {
		t.Fatal(err)
	}
	back := must[*horus.Cluster](t)(horus.RestoreClusterFile(nil, path))
	defer back.Close()
	if stateOf(t, back) != stateOf(t, c) {
		t.Error("expected the same state")
	}
	for name, err := range map[string]error{
		"no such folder":  c.SnapshotFile(path + "/no/file"),
		"no such file":    second(horus.RestoreClusterFile(nil, path+"-gone")),
		"a zero in names": second(horus.RestoreClusterFile(nil, "a\x00b")),
	} {
		if !errors.Is(err, horus.ErrIO) && !errors.Is(err, horus.ErrInvalidArgument) {
			t.Errorf("%s: found %v", name, err)
		}
	}
}

func TestAResidentTellsAllThatWasStated(t *testing.T) {
	c := clusterOf(t, 2)
	stated := job(5, 40, 3_000)
	stated.Name, stated.Tenant, stated.Weight, stated.SlowdownBound = strings.Repeat("resnet", 150), "red", 2, 3
	stated.Share, stated.Tasks, stated.GPUsPerTask = horus.ShareAnyone, 1, 1
	stated.Groups, stated.AvoidGroups = []string{"a", "b"}, []string{"c"}
	stated.Selectors = []horus.Label{{Key: "zone", Value: "east"}}
	stated.Sensitivity = &horus.Sensitivity{CPUMilli: []int64{1_000, 2_000}, MemMiB: []int64{512}, Speeds: []float32{0.5, 1}}
	must[horus.Reason](t)(c.Adopt(stated, []horus.Slot{{Node: 2, Device: 1}}))
	told := must[horus.Resident](t)(c.Job(5))
	for i := range stated.Demands { // an upper bound that was left out is the estimate
		d := &stated.Demands[i].Demand
		told.Job.Demands[i].Demand.GPUUtilPctUpper, told.Job.Demands[i].Demand.MemMiBUpper = d.GPUUtilPctUpper, d.MemMiBUpper
		told.Job.Demands[i].Demand.MemBWUtilPctUpper, told.Job.Demands[i].Demand.StepTimeUsUpper = d.MemBWUtilPctUpper, d.StepTimeUsUpper
		told.Job.Demands[i].Demand.PowerWUpper, told.Job.Demands[i].Demand.HostUs = d.PowerWUpper, d.HostUs
	}
	if !told.Adopted || !told.OverCommitted || !reflect.DeepEqual(told.Job, stated) {
		t.Errorf("expected\n%+v, found\n%+v", stated, told)
	}
	state := stateOf(t, c)
	if err := c.Release(5); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Job(5); !errors.Is(err, horus.ErrNotFound) {
		t.Errorf("expected ErrNotFound, found %v", err)
	}
	must[horus.Reason](t)(c.Adopt(told.Job, []horus.Slot{{Node: 2, Device: 1}}))
	if stateOf(t, c) != state {
		t.Error("what is told of a resident can be stated again")
	}
}

func TestAResidentIsObservedByItsSeat(t *testing.T) {
	c, seen, stated := clusterOf(t, 1), must[*horus.Observations](t)(horus.NewObservations(0)), must[*horus.Observations](t)(horus.NewObservations(0))
	jobs := []horus.Job{job(1, 60, 3_000), job(2, 70, 3_000)}
	for i := range jobs {
		jobs[i].Demands[0].Demand.ProfileID = uint64(i + 1)
		must[horus.Reason](t)(c.Adopt(jobs[i], []horus.Slot{{Node: 1, Device: 0}}))
	}
	seat := &horus.Seat{Cluster: c, Job: 1, Node: 1}
	device := horus.SharedDevice{GPUType: gpu}
	for _, err := range []error{
		seen.AddSlowdown(nil, horus.SlowdownObservation{Seat: seat, Slowdown: 1.5}),
		stated.AddSlowdown(nil, horus.SlowdownObservation{Device: device, Job: jobs[0].Demands[0].Demand,
			CoTenants: []horus.Demand{jobs[1].Demands[0].Demand}, Slowdown: 1.5}),
		seen.AddDemand(nil, horus.DemandObservation{Seat: seat, MemMiB: 2_900}),
		stated.AddDemand(nil, horus.DemandObservation{ProfileID: 1, GPUType: gpu, MemMiB: 2_900}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(must[[]byte](t)(seen.Snapshot()), must[[]byte](t)(stated.Snapshot())) {
		t.Error("expected the same observations")
	}
	if err := seen.AddSlowdown(nil, horus.SlowdownObservation{Seat: &horus.Seat{Cluster: c, Job: 9, Node: 1}, Slowdown: 2}); !errors.Is(err, horus.ErrNotFound) {
		t.Errorf("expected ErrNotFound, found %v", err)
	}
	if err := seen.AddDemand(nil, horus.DemandObservation{Seat: &horus.Seat{}, MemMiB: 1}); !errors.Is(err, horus.ErrInvalidArgument) {
		t.Errorf("expected ErrInvalidArgument, found %v", err)
	}
}

func TestRegretComparesAnotherSchedulersChoiceWithOurs(t *testing.T) {
	c, p := clusterOf(t, 2), placerOf(t, horus.PlacerOptions{})
	must[horus.Reason](t)(c.Adopt(job(1, 95, 20_000), []horus.Slot{{Node: 1}}))
	r := must[horus.Regret](t)(p.Regret(context.Background(), c, job(2, 95, 10_000), []horus.Slot{{Node: 1}}, nil))
	if r.Verdict != horus.Place || r.Same || r.Work() <= 0 || r.Theirs.Shared != 1 || r.Ours.Shared != 0 {
		t.Errorf("sharing a busy GPU beside a free one costs work, found %+v", r)
	}
	same := must[horus.Regret](t)(p.Regret(context.Background(), c, job(2, 95, 10_000), r.Slots, nil))
	if !same.Same || same.Work() != 0 {
		t.Errorf("our own choice costs nothing, found %+v", same)
	}
	full := must[horus.Regret](t)(p.Regret(context.Background(), c, job(2, 95, 30_000), []horus.Slot{{Node: 1}}, []uint64{1}))
	if full.Theirs.Reason != horus.ReasonGPUMemory {
		t.Errorf("expected their place to break the memory rule, found %+v", full)
	}
}

func TestAWhatIfHappensNowhere(t *testing.T) {
	c, p := clusterOf(t, 1), placerOf(t, horus.PlacerOptions{})
	for device := range uint32(2) {
		must[horus.Reason](t)(c.Adopt(job(uint64(device+1), 90, 39_000), []horus.Slot{{Node: 1, Device: device}}))
	}
	state := stateOf(t, c)
	plan := must[*horus.Plan](t)(p.WhatIfGone(c, []uint64{2}, []horus.Job{job(9, 90, 39_000)}))
	defer plan.Close()
	if d := must[horus.Decision](t)(plan.Decision(0)); d.Verdict != horus.Place || d.Slots[0].Device != 1 {
		t.Errorf("expected the job where job 2 would have left, found %+v", d)
	}
	if err := c.Apply(plan); !errors.Is(err, horus.ErrState) || stateOf(t, c) != state {
		t.Errorf("expected ErrState and the state as it was, found %v", err)
	}
	if _, err := p.WhatIfGone(c, []uint64{77}, nil); !errors.Is(err, horus.ErrNotFound) {
		t.Errorf("expected ErrNotFound, found %v", err)
	}
}

func TestSeenSlowdownsMoveAModel(t *testing.T) {
	model := must[*horus.Interference](t)(horus.NewInterference(""))
	defer model.Close()
	seen := must[*horus.Observations](t)(horus.NewObservations(0))
	defer seen.Close()
	device := horus.SharedDevice{GPUType: gpu}
	tenants := []horus.Demand{
		{ProfileID: 1, GPUUtilPct: 50, MemMiB: 2_000, StepTimeUs: 100_000}, {ProfileID: 2, GPUUtilPct: 50, MemMiB: 2_000, StepTimeUs: 100_000},
	}
	before := must[[]horus.Slowdown](t)(model.Slowdowns(nil, device, tenants))
	for range 20 {
		ok(t, seen.AddSlowdown(nil, horus.SlowdownObservation{
			Device: device, Job: tenants[0], CoTenants: tenants[1:], Slowdown: 3, Predicted: float64(before[0].Expected),
		}))
	}
	learned := must[*horus.Interference](t)(model.Commit(nil, seen))
	defer learned.Close()
	after := must[[]horus.Slowdown](t)(learned.Slowdowns(nil, device, tenants))
	if before[0].Expected > 2 || after[0].Expected < 2.5 || learned.Epoch() == model.Epoch() {
		t.Errorf("expected an answer near 3 after 20 observations of it, found %v, before %v", after[0], before[0])
	}
	if calibration := must[horus.Calibration](t)(seen.Calibration()); calibration.Predictions != 20 || calibration.Bias <= 0 {
		t.Errorf("expected 20 predictions below what came, found %+v", calibration)
	}
	again := must[*horus.Observations](t)(horus.RestoreObservations(must[[]byte](t)(seen.Snapshot())))
	defer again.Close()
	table := must[*horus.Interference](t)(horus.NewMeasuredInterference(nil, []horus.MeasuredPair{
		{GPUType: gpu, ProfileA: 1, ProfileB: 2, SlowdownA: 1.25, SlowdownB: 1.5},
	}, 0, nil))
	defer table.Close()
	measured := must[[]horus.Slowdown](t)(table.Slowdowns(nil, device, tenants))
	if measured[0].Expected != 1.25 || measured[1].Expected != 1.5 {
		t.Errorf("expected what was measured, found %v", measured)
	}
	if _, err := table.Bytes(); !errors.Is(err, horus.ErrUnsupported) {
		t.Errorf("expected ErrUnsupported for the bundle of a table, found %v", err)
	}
}

func TestAReviewMovesWhoeverBreaksItsBound(t *testing.T) {
	c, p := clusterOf(t, 1), placerOf(t, horus.PlacerOptions{})
	for id := uint64(1); id <= 2; id++ {
		j := job(id, 90, 2_000)
		j.SlowdownBound = 1.1
		must[horus.Reason](t)(c.Adopt(j, []horus.Slot{{Node: 1, Device: 0}}))
	}
	plan := must[*horus.Plan](t)(p.Review(c, horus.RebalanceOptions{}))
	defer plan.Close()
	reviews, moves := must[[]horus.TenantReview](t)(plan.Reviews()), must[[]horus.Migration](t)(plan.Migrations())
	if len(reviews) != 2 || !reviews[0].Broken || reviews[0].Held <= reviews[0].Bound || math.Abs(reviews[0].Bound-1.1) > 1e-6 || reviews[0].Slowdown <= 1.1 {
		t.Errorf("expected two jobs that break a bound of 1.1, found %+v", reviews)
	}
	if len(moves) != 1 || moves[0].From[0].Device != 0 || moves[0].To[0].Device != 1 || moves[0].Gain <= moves[0].Cost {
		t.Fatalf("expected one of them to move to the free GPU, found %+v", moves)
	}
	ok(t, c.Apply(plan))
	after := must[*horus.Plan](t)(p.Review(c, horus.RebalanceOptions{}))
	defer after.Close()
	if left := must[[]horus.TenantReview](t)(after.Reviews()); len(left) != 0 {
		t.Errorf("expected nobody to share any more, found %+v", left)
	}
	if _, err := p.Rebalance(c, horus.RebalanceOptions{HorizonS: -5}); !errors.Is(err, horus.ErrInvalidArgument) {
		t.Errorf("a horizon of -5 s: expected ErrInvalidArgument, found %v", err)
	}
}

func TestManyGoroutinesShareHandles(t *testing.T) {
	c, p := clusterOf(t, 8), placerOf(t, horus.PlacerOptions{})
	var group sync.WaitGroup
	for g := range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range 50 {
				id := uint64(g*1_000 + i + 1)
				plan, err := p.Plan(context.Background(), c, []horus.Job{job(id, 20, 1_000)}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if err = c.Apply(plan); err == nil {
					err = c.Release(id)
				}
				if err != nil && !errors.Is(err, horus.ErrConflict) && !errors.Is(err, horus.ErrNotFound) {
					t.Error(err)
				}
				plan.Close()
				if _, err := c.Info(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	if info := must[horus.ClusterInfo](t)(c.Info()); info.Jobs != 0 {
		t.Errorf("expected every job released, found %d", info.Jobs)
	}
}

func TestMetricsCountCalls(t *testing.T) {
	c, p := clusterOf(t, 1), placerOf(t, horus.PlacerOptions{})
	m := must[*horus.Metrics](t)(horus.NewMetrics())
	defer m.Close()
	ok(t, m.Count(c, p))
	must[horus.Appraisal](t)(p.Appraise(c, job(1, 30, 2_000), []horus.Slot{{Node: 1}}))
	text := must[string](t)(m.Text())
	if !strings.Contains(text, `horus_calls_total{call="appraise",status="OK"} 1`) || strings.ContainsRune(text, 0) {
		t.Errorf("expected one appraisal counted, found %s", text)
	}
}

func TestTheCatalogueKnowsNamesInAnySpelling(t *testing.T) {
	catalogue := must[*horus.Catalogue](t)(horus.DefaultCatalogue())
	defer catalogue.Close()
	at := must[int](t)(catalogue.Find("NVIDIA A100-SXM4-40GB"))
	if found := must[horus.GPU](t)(catalogue.At(at)); found.Name != gpu || found.SMs != 108 {
		t.Errorf("expected the A100, found %+v", found)
	}
	if found := must[int](t)(catalogue.FindProfile("NVIDIA A100-SXM4-40GB", "3g.20gb")); found != at {
		t.Errorf("expected the type at %d to have 3g.20gb, found %d", at, found)
	}
	for name, profile := range map[string]string{"NVIDIA A100-SXM4-40GB": "1g.5gb+me", "Tesla T4": "1g.5gb", "a100-41gb": "1g.5gb"} {
		if _, err := catalogue.FindProfile(name, profile); !errors.Is(err, horus.ErrNotFound) {
			t.Errorf("%s, %s: expected ErrNotFound, found %v", name, profile, err)
		}
	}
	if _, err := catalogue.Find("a100-41gb"); !errors.Is(err, horus.ErrNotFound) {
		t.Errorf("expected ErrNotFound, found %v", err)
	}
	if _, err := catalogue.At(catalogue.Len()); !errors.Is(err, horus.ErrNotFound) {
		t.Errorf("expected ErrNotFound past the end, found %v", err)
	}
}

func TestAConfigIsAGraph(t *testing.T) {
	run := horus.RunSpec{Mode: horus.Inference, Precision: horus.BF16, Dims: []horus.Dim{{Name: "seq", Size: 1}, {Name: "past", Size: 4096}}}
	predictor := must[*horus.Predictor](t)(horus.NewPredictor())
	memory := func(options horus.ConfigOptions) int64 {
		graph := must[*horus.Graph](t)(horus.GraphFromConfig("llama-3.1-8b", options))
		return must[[]horus.Demand](t)(predictor.Demand(nil, graph, run, "a100-80gb"))[0].MemMiB
	}
	if whole, part := memory(horus.ConfigOptions{}), memory(horus.ConfigOptions{TensorParallel: 4, Weights: "fp8"}); part*3 > whole {
		t.Errorf("expected a quarter in fp8 far below the whole of %d MiB, found %d MiB", whole, part)
	}
	if _, err := horus.GraphFromConfig(`{"model_type":"none"}`, horus.ConfigOptions{}); !errors.Is(err, horus.ErrUnsupported) {
		t.Errorf("expected ErrUnsupported, found %v", err)
	}
}

func TestTheLargestBatchFitsAndTheNextDoesNot(t *testing.T) {
	graph := must[*horus.Graph](t)(horus.ReadGraph("../../examples/models/graphs/resnet50.onnx"))
	predictor := must[*horus.Predictor](t)(horus.NewPredictor())
	catalogue := must[*horus.Catalogue](t)(horus.DefaultCatalogue())
	types := []string{"t4", "a100-80gb"}
	for i, found := range must[[]horus.Solution](t)(predictor.LargestBatch(nil, graph, horus.RunSpec{}, types...)) {
		memory := must[horus.GPU](t)(catalogue.At(must[int](t)(catalogue.Find(types[i])))).MemMiB
		bound := func(batch int64) int64 {
			return must[[]horus.Demand](t)(predictor.Demand(nil, graph, horus.RunSpec{Batch: batch}, types[i]))[0].MemMiBUpper
		}
		if found.Largest < 1 || bound(found.Largest) != found.MemMiBUpper || found.MemMiBUpper > memory || bound(found.Largest+1) <= memory {
			t.Errorf("%s of %d MiB: expected a batch that fits before one that does not, found %+v", types[i], memory, found)
		}
	}
	_, err := predictor.LargestBatch(nil, graph, horus.RunSpec{Batch: 8}, "t4")
	if !errors.Is(err, horus.ErrInvalidArgument) {
		t.Errorf("expected a bound batch to be refused, found %v", err)
	}
}

func TestALanguageModelIsServed(t *testing.T) {
	graph := must[*horus.Graph](t)(horus.GraphFromConfig("llama-3.1-8b", horus.ConfigOptions{}))
	defer graph.Close()
	predictor := must[*horus.Predictor](t)(horus.NewPredictor())
	defer predictor.Close()
	run := horus.RunSpec{Mode: horus.Inference, Precision: horus.BF16, Framework: horus.VLLM}
	load := horus.ServiceLoad{RequestsPerS: 3, TokensIn: 1024, TokensOut: 256, TokenUs: 50_000}
	found := must[[]horus.Service](t)(predictor.Serve(nil, graph, run, load, "h100-sxm", "t4"))
	if found[0].Verdict != horus.Served || found[1].Verdict != horus.NoRoom || found[0].EngineArguments == "" || found[1].EngineArguments != "" {
		t.Errorf("expected the first type alone to serve, found %+v", found)
	}
	if d := found[0].Demand; d.SlowdownBound < 1 || d.Duty <= 0 || d.Duty >= 1 || d.MemMiB == 0 {
		t.Errorf("expected a demand to place, found %+v", d)
	}
	load.TokensIn = 0
	if _, err := predictor.Serve(nil, graph, run, load, "t4"); !errors.Is(err, horus.ErrInvalidArgument) || !strings.Contains(err.Error(), "tokens_in") {
		t.Errorf("expected ErrInvalidArgument that names tokens_in, found %v", err)
	}
}
