// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

// Of pods that wait for GPUs of different kinds, each kind's places go to those who want them; who fits and has to wait is passed over.
func TestPlacesGoToThoseWhoWaitForSuch(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 0)
	w.slice("n1", "g0")
	w.node("n2", 1)
	var views []objects.Pod
	for _, pod := range []*v1.Pod{w.claimer("a", "", ""), podOn("b", "", 1), w.claimer("c", "", ""), podOn("d", "", 2)} {
		view, err := w.Read(pod)
		if err != nil {
			t.Fatal(err)
		}
		view.Horus.Exclusive = true
		views = append(views, view)
	}
	turns, err := w.Next(views, func(*v1.Node) bool { return true }, horus.BatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if turns[0].Verdict != horus.Place || turns[0].Node != "n1" || turns[1].Verdict != horus.Place || turns[1].Node != "n2" {
		t.Errorf("expected a on n1 and b on n2, found %+v", turns)
	}
	if turns[2].Verdict != horus.Defer || turns[2].Reason != horus.ReasonPassedOver || turns[3].Verdict != horus.Reject {
		t.Errorf("expected c passed over and no such node for d, found %+v", turns)
	}
}
