// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

// cutOff is a pod that never shares, with a claim that has gpu-0 of n1, and no node: its scheduler died before it bound it.
func (w world) cutOff(name string) *v1.Pod {
	pod := w.claimer(name, "", "")
	delete(pod.Annotations, objects.ShareAnnotation)
	w.allocate(name, "n1", "gpu-0")
	return pod
}

// Nobody is placed beside a pod whose claim has its devices already, in whatever order pod, claim, node and slice become known.
func TestAClaimHoldsItsDevicesBeforeItsPodIsBound(t *testing.T) {
	for rotation := range 3 {
		w := newWorld(t)
		w.Early = true
		pod := w.cutOff("a")
		w.known["a"] = pod
		steps := []func(){func() { w.node("n1", 0); w.slice("n1", "gpu-0") }, func() { w.SetPod(pod) }, func() { w.SetClaim(w.claims["a"]) }}
		for i := range steps {
			steps[(i+rotation)%len(steps)]()
		}
		if found := w.reason(t, w.claimer("b", "", ""), "n1"); found != horus.ReasonExclusive {
			t.Errorf("order %d: expected the device to be a's alone, found %v", rotation, found)
		}
		bound := pod.DeepCopy()
		bound.Spec.NodeName = "n1"
		w.SetPod(bound)
		if c := w.Counts(); c.Pods != 1 || c.Waiting != 0 || w.OverCommitted() != 0 {
			t.Errorf("order %d: expected one pod, found %+v and %d devices over-committed", rotation, c, w.OverCommitted())
		}
		w.DeletePod("a")
		if found := w.reason(t, w.claimer("b", "", ""), "n1"); found != horus.ReasonNone {
			t.Errorf("order %d: expected a free device once the pod is gone, found %v", rotation, found)
		}
	}
}

func TestAClaimThatLosesItsDevicesHoldsThemNoLonger(t *testing.T) {
	for name, lose := range map[string]func(w world){
		"its allocation goes": func(w world) { w.claims["a"].Status.Allocation = nil; w.SetClaim(w.claims["a"]) },
		"it is deleted":       func(w world) { w.DeleteClaim(w.claims["a"]) },
		"its pod is deleted":  func(w world) { w.DeletePod("a") },
	} {
		w := newWorld(t)
		w.Early = true
		w.node("n1", 0)
		w.slice("n1", "gpu-0")
		w.SetPod(w.cutOff("a"))
		if lose(w); w.Counts().Pods != 0 {
			t.Errorf("%s: expected nothing held, found %+v", name, w.Counts())
		}
	}
}

// An attempt that fails gives its device back, but for one that the claim has by then.
func TestWhatAClaimHasStaysWhenAnAttemptFails(t *testing.T) {
	for _, written := range []bool{false, true} {
		w := newWorld(t)
		w.Early = true
		w.node("n1", 0)
		w.slice("n1", "gpu-0")
		pod := w.claimer("a", "", "")
		w.known["a"] = pod
		view, _ := w.Read(pod)
		assumed := pod.DeepCopy()
		assumed.Spec.NodeName = "n1" // as the scheduler shows it
		if _, err := w.Reserve(context.Background(), assumed, view, "n1", nil); err != nil {
			t.Fatal(err)
		}
		if written {
			w.allocate("a", "n1", "gpu-0")
			w.SetClaim(w.claims["a"])
		}
		w.Unreserve("a")
		if held := w.Counts().Pods == 1; held != written {
			t.Errorf("claim written: %v, device held: %v", written, held)
		}
	}
}

// A claim that has devices and names no pod keeps others away until its pod comes.
func TestAClaimWithoutAPodHoldsItsDevices(t *testing.T) {
	w := newWorld(t)
	w.Early = true
	w.node("n1", 0)
	w.slice("n1", "gpu-0")
	pod := w.cutOff("a")
	w.claims["a"].Status.ReservedFor = nil
	w.SetClaim(w.claims["a"])
	if found := w.reason(t, w.claimer("b", "", ""), "n1"); found != horus.ReasonExclusive {
		t.Errorf("expected the device to be held, found %v", found)
	}
	w.SetPod(pod)
	if _, stands := w.pods["claim-a"]; stands || w.Counts().Pods != 1 {
		t.Errorf("expected the pod in its stead, found %+v", w.Counts())
	}
}

// A pod and its claim that somebody wrote by hand count once, whichever of them becomes known first.
func TestAClaimAndItsPodCountOnce(t *testing.T) {
	for name, devices := range map[string][]string{"held": {"gpu-0"}, "not there": {"gpu-9"}, "named twice": {"gpu-0", "gpu-0"}} {
		for _, claimFirst := range []bool{true, false} {
			w := newWorld(t)
			w.Early = true
			w.node("n1", 0)
			w.slice("n1", "gpu-0")
			pod := w.cutOff("a")
			results := &w.claims["a"].Status.Allocation.Devices.Results
			*results = nil
			for _, device := range devices {
				*results = append(*results, resourceapi.DeviceRequestAllocationResult{Driver: driver, Pool: "n1", Device: device})
			}
			w.claims["a"].Status.ReservedFor = nil
			pod.Spec.NodeName = "n1"
			if claimFirst {
				w.SetClaim(w.claims["a"])
			}
			w.SetPod(pod)
			w.SetClaim(w.claims["a"])
			if c := w.Counts(); c.Pods+c.Waiting != 1 {
				t.Errorf("%s, claim first %v: expected one pod, found %+v", name, claimFirst, c)
			}
		}
	}
}

// Pods of one claim share its devices whatever they say; who follows a claim to a device of somebody who does not share is told.
func TestWhoFollowsAClaimIsHeldAgainstThoseBeside(t *testing.T) {
	w := newWorld(t)
	w.Early = true
	w.node("n1", 0)
	w.slice("n1", "gpu-0")
	first := w.cutOff("a")
	first.Spec.NodeName = "n1"
	w.SetPod(first)
	second := first.DeepCopy()
	second.Name, second.UID, second.Spec.NodeName = "second", "second", ""
	if beside := w.Follow(second); beside != "" {
		t.Errorf("expected pods of one claim together, found one that is in the way: %s", beside)
	}
	w.DeletePod("second")
	if beside := w.Follow(w.cutOff("b")); beside != "team/a" {
		t.Errorf("expected team/a in the way, found %q", beside)
	}
	if w.OverCommitted() != 1 {
		t.Errorf("expected one device over-committed, found %d", w.OverCommitted())
	}
}
