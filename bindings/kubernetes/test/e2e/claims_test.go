// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// A scheduler wrote the claim of a pod that never shares, and died before it bound the pod. Nobody comes onto its device, and the
// pod comes in there.
func TestAClaimWrittenBeforeACrashHoldsItsDevice(t *testing.T) {
	t.Parallel()
	c := start(t, "")
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 2)
	profile(t, c, "light", 20, 8_000)
	for name, scheduler := range map[string]string{"another-schedulers": "nobody", "ours": "horus"} {
		claim(t, c, name, "16Gi")
		makePod(t, c, podSpec{name: name, claim: name, scheduler: scheduler})
		allocate(t, c, name, "n1", "16Gi", map[string]string{"another-schedulers": "gpu-0", "ours": "gpu-1"}[name])
	}
	sharing(t, c, "late", "light", "16Gi")
	c.StartScheduler(placing)
	if where := bound(t, c, "ours"); where != "n1" || device(t, c, "ours") != "n1/gpu-1" {
		t.Errorf("expected it where its claim is, found %s and %s", where, device(t, c, "ours"))
	}
	said(t, c, "late", "HorusRefused", "exclusive")
	end(t, c, "another-schedulers")
	bound(t, c, "late")
	if found := device(t, c, "late"); found != "n1/gpu-0" {
		t.Errorf("expected the device that came free, found %s", found)
	}
}

// Half of a pod's claims were written, or all of them beside a pod that came meanwhile and does not share: they are given back,
// and chosen anew.
func TestWhatACutOffAttemptChoseIsChosenAnewWhereItNoLongerHolds(t *testing.T) {
	t.Parallel()
	c := start(t, "")
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 4)
	claim(t, c, "alone", "16Gi")
	makePod(t, c, podSpec{name: "alone", claim: "alone", change: func(p *v1.Pod) { p.Spec.NodeName = "n1" }})
	for _, name := range []string{"alone", "beside"} {
		if name == "beside" {
			claim(t, c, name, "16Gi")
			makePod(t, c, podSpec{name: name, claim: name})
		}
		allocate(t, c, name, "n1", "16Gi", "gpu-0")
	}
	for _, name := range []string{"first", "second"} {
		claim(t, c, name, "80Gi")
	}
	makePod(t, c, podSpec{name: "two", change: func(p *v1.Pod) {
		for _, name := range []string{"first", "second"} {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, v1.PodResourceClaim{Name: name, ResourceClaimName: &name})
			p.Spec.Containers[0].Resources.Claims = append(p.Spec.Containers[0].Resources.Claims, v1.ResourceClaim{Name: name})
		}
	}})
	allocate(t, c, "first", "n1", "80Gi", "gpu-1")
	c.StartScheduler(placing)
	bound(t, c, "beside")
	if found := device(t, c, "beside"); found == "n1/gpu-0" {
		t.Error("expected it away from a pod that does not share, found it beside")
	}
	bound(t, c, "two")
	if first, second := device(t, c, "first"), device(t, c, "second"); first == second || first == "n1/gpu-0" || second == "n1/gpu-0" {
		t.Errorf("expected a GPU for each of its claims, found %s and %s", first, second)
	}
}
