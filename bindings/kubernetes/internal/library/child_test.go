// SPDX-License-Identifier: Apache-2.0

package library

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"libhorus.org/horus"
)

// TestMain is the child process, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Argument {
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// asked is what a library answers to all that may be asked of it.
func asked(l Library) (answers []string) {
	tell := func(values ...any) { answers = append(answers, fmt.Sprintf("%+v", values)) }
	node := horus.Node{ID: 7, Name: "n", Devices: []horus.Device{{GPUType: "a100-80gb", SharingMode: horus.TimeSlice}, {GPUType: "t4"}}}
	job := func(id uint64) horus.Job {
		return horus.Job{ID: id, GPUsPerTask: 1, Demands: []horus.TypeDemand{{Demand: horus.Demand{Flags: horus.Given, GPUUtilPct: 20, MemMiB: 100}}}}
	}
	nodes, first := []uint64{7}, []horus.Slot{{Node: 7}}
	tell(l.Find("a100-80gb", ""), l.Find("a100-80gb", "1g.10gb"), l.Find("a101", ""), errors.Is(l.Find("a101", ""), horus.ErrNotFound))
	tell(l.AddNode(node), l.AddNode(node))
	node.MemMiB = 1_000
	tell(l.ChangeNode(node))
	tell(l.Adopt(job(1), first))
	tell(l.Verdicts(job(2), nodes))
	tell(l.Plan([]horus.Job{job(2)}, nodes))
	tell(l.Plan([]horus.Job{job(2)}, nil))
	tell(l.PlanBatch([]horus.Job{job(2), job(3)}, nodes, horus.BatchOptions{}))
	tell(l.PlanWithout([]uint64{1}, []horus.Job{job(2)}))
	tell(l.Appraise(job(2), first))
	tell(l.Regret(job(2), first, nodes))
	tell(l.Adopt(job(2), first))
	tell(l.Review(horus.RebalanceOptions{}))
	tell(l.Drain(7, 1, true), l.Drain(7, 1, false), l.Drain(7, 2, true))
	use, err := l.Learn(nil)
	tell(err, use(), l.Release(1), l.Release(2), l.Release(3), l.RemoveNode(7), l.Gone())
	return answers
}

func TestAChildAnswersAsTheLibraryInThisProcess(t *testing.T) {
	here, err := Local(Options{MaxTenants: 3})
	if err != nil {
		t.Fatal(err)
	}
	there, err := Child(Options{MaxTenants: 3}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer there.(*child).end()
	expected, found := asked(here), asked(there)
	for i := range expected {
		if found[i] != expected[i] {
			t.Errorf("expected %s, found %s", expected[i], found[i])
		}
	}
	there.(*child).end()
	if err := there.Find("t4", ""); !there.Gone() || !errors.Is(err, ErrGone) {
		t.Errorf("expected that it is gone, found %v", err)
	}
	if err := there.Start(); err != nil || there.Gone() || there.Find("t4", "") != nil {
		t.Errorf("expected it back, found %v", err)
	}
}
