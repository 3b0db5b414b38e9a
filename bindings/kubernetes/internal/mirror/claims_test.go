// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

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
		if _, err := w.Reserve(assumed, view, "n1", nil); err != nil {
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

// cut is the slice of a node as NVIDIA's driver publishes it with DynamicMIG, cut down to four slices of a card's memory.
func (w world) cut(node string, cards int) {
	s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourceapi.ResourceSliceSpec{
		Driver: driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
	}}
	counters := s.DeepCopy()
	counters.Name = node + "-counters"
	product := "NVIDIA H100 80GB HBM3"
	for card := range cards {
		set, uuid := fmt.Sprintf("gpu-%d-counter-set", card), fmt.Sprintf("GPU-%s-%d", node, card)
		add := func(name, kind, profile string, first, count int) map[string]resourceapi.Counter {
			taken := map[string]resourceapi.Counter{}
			for i := range count {
				taken[fmt.Sprintf("memory-slice-%d", first+i)] = resourceapi.Counter{Value: resource.MustParse("1")}
			}
			s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{
				Name: fmt.Sprintf("gpu-%d%s", card, name),
				Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
					"productName": {StringValue: &product}, "type": {StringValue: &kind}, "profile": {StringValue: &profile}, "parentUUID": {StringValue: &uuid},
				},
				ConsumesCounters: []resourceapi.DeviceCounterConsumption{{CounterSet: set, Counters: taken}},
			})
			return taken
		}
		all := add("", "gpu", "", 0, 4)
		s.Spec.Devices[len(s.Spec.Devices)-1].Attributes["uuid"] = resourceapi.DeviceAttribute{StringValue: &uuid}
		delete(s.Spec.Devices[len(s.Spec.Devices)-1].Attributes, "parentUUID")
		add("-mig-3g40gb-9-0", "mig", "3g.40gb", 0, 2)
		for i := range 4 {
			add(fmt.Sprintf("-mig-1g10gb-19-%d", i), "mig", "1g.10gb", i, 1)
		}
		counters.Spec.SharedCounters = append(counters.Spec.SharedCounters, resourceapi.CounterSet{Name: set, Counters: all})
	}
	w.SetSlice(s)
	w.SetSlice(counters)
}

// has is the rule of a class, or of a claim for a profile.
func has(attribute resourceapi.QualifiedName, value string) Rules {
	return Rules{Selectors: value, Matches: func(d *resourceapi.Device) bool {
		found := d.Attributes[attribute].StringValue
		return found != nil && *found == value
	}}
}

func TestAPartitionExcludesItsCardAndTheCardItsPartitions(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 0)
	w.cut("n1", 2)
	take := func(name string, rules Rules) (string, error) {
		pod := w.claimer(name, "", "")
		pod.Annotations = nil
		view, err := w.Read(pod)
		if err != nil {
			t.Fatal(err)
		}
		choice, err := w.Choose(view, "n1", rules)
		if err != nil {
			return "", err
		}
		if _, err = w.Reserve(pod, view, "n1", &choice); err != nil {
			t.Fatal(err)
		}
		return choice.Devices[0].Name, nil
	}
	whole, small, large := has("type", "gpu"), has("profile", "1g.10gb"), has("profile", "3g.40gb")
	first, err := take("first", Rules{Selectors: "second card", Matches: func(d *resourceapi.Device) bool { return strings.HasPrefix(d.Name, "gpu-1-mig-1g10gb-") }})
	if err != nil {
		t.Fatal(err)
	}
	card, other := first[:len("gpu-0")], map[string]string{"gpu-0": "gpu-1", "gpu-1": "gpu-0"}[first[:len("gpu-0")]]
	if second, err := take("second", small); err != nil || second == first || !strings.HasPrefix(second, card) {
		t.Errorf("expected another partition of %s, which is cut already, found %q, %v", card, second, err)
	}
	if found, err := take("whole", whole); err != nil || found != other {
		t.Errorf("expected the card that is whole, found %q, %v", found, err)
	}
	if found, err := take("another", whole); !errors.Is(err, ErrNoPlace) {
		t.Errorf("expected no card for another, found %q, %v", found, err)
	}
	if found, err := take("large", large); !errors.Is(err, ErrNoPlace) { // the two lie where it would
		t.Errorf("expected no room on %s for a larger partition, found %q, %v", card, found, err)
	}
	for _, name := range []string{"third", "fourth"} {
		if found, err := take(name, small); err != nil || !strings.HasPrefix(found, card) {
			t.Errorf("expected what is left of %s, found %q, %v", card, found, err)
		}
	}
	if found, err := take("fifth", small); !errors.Is(err, ErrNoPlace) {
		t.Errorf("expected no more than four, found %q, %v", found, err)
	}
	for _, name := range []string{"first", "second", "third", "fourth"} {
		w.DeletePod(types.UID(name))
	}
	if found, err := take("another", whole); err != nil || found != card {
		t.Errorf("expected %s whole again, found %q, %v", card, found, err)
	}
}

func TestPodsOfAClaimShareAsItsSettingsSay(t *testing.T) {
	slowdowns := map[horus.SharingMode]float32{} // by the library's model
	for _, one := range []struct {
		parameters string
		want       horus.SharingMode
	}{
		{`{"apiVersion":"resource.nvidia.com/v1beta1","kind":"GpuConfig","sharing":{"strategy":"MPS","mpsConfig":{"defaultActiveThreadPercentage":50,"defaultPinnedDeviceMemoryLimit":"3Gi"}}}`, horus.MPS},
		{`{"apiVersion":"resource.nvidia.com/v1beta1","kind":"GpuConfig","sharing":{"strategy":"TimeSlicing","timeSlicingConfig":{"interval":"Long"}}}`, horus.TimeSlice},
		{`{"apiVersion":"resource.nvidia.com/v1beta1","kind":"GpuConfig"}`, horus.Exclusive},
	} {
		w := newWorld(t)
		w.node("n1", 0)
		w.slice("n1", "gpu-0")
		for _, s := range w.nodes["n1"].slices { // MPS and several claims exclude each other
			s = s.DeepCopy()
			s.Spec.Devices[0].AllowMultipleAllocations = nil
			w.SetSlice(s)
		}
		a, b := w.claimer("a", "n1", "gpu-0"), podOn("b", "n1", 0)
		b.Spec.ResourceClaims = a.Spec.ResourceClaims
		w.claims["a"].Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(one.parameters)}},
		}}}
		w.SetPod(a)
		w.SetPod(b)
		found, tenants := w.Occupied()
		if len(found) != 1 || len(found[0].Tenants) != 2 || found[0].SharingMode != one.want {
			t.Fatalf("%s: expected both on a GPU in mode %v, found %+v", one.parameters, one.want, found)
		}
		if memory := tenants[found[0].Tenants[0].Key].Job.GPUMemRequestMiB; (memory == 3_072) != (one.want == horus.MPS) {
			t.Errorf("%s: expected the limit of a client of MPS to count of each pod, found %d MiB", one.parameters, memory)
		}
		if capPct := tenants[found[0].Tenants[0].Key].Job.SMCapPct; (capPct == 50) != (one.want == horus.MPS) {
			t.Errorf("%s: expected a cap of MPS to count, found %d %%", one.parameters, capPct)
		}
		seen, err := w.library.Appraise(tenants[found[0].Tenants[0].Key].Job, []horus.Slot{{Node: w.nodes["n1"].id}})
		if err != nil {
			t.Fatal(err)
		}
		slowdowns[one.want] = seen.Slowdown
		if reason := w.reason(t, w.claimer("c", "", ""), "n1"); reason == horus.ReasonNone {
			t.Errorf("%s: expected no other claim on the GPU", one.parameters)
		}
		w.DeletePod("a")
		w.DeletePod("b")
		if reason := w.reason(t, w.claimer("c", "", ""), "n1"); reason != horus.ReasonNone {
			t.Errorf("%s: expected the GPU open again, found %v", one.parameters, reason)
		}
	}
	if slowdowns[horus.MPS] == slowdowns[horus.TimeSlice] {
		t.Errorf("expected the library to tell MPS from taking turns, found %v", slowdowns)
	}
}

// The settings of a class stand in what a claim was given, before the claim's own.
func TestAClassMaySayHowItsDevicesAreShared(t *testing.T) {
	w := newWorld(t)
	pod := w.claimer("a", "n1", "gpu-0")
	config := func(strategy string) resourceapi.DeviceConfiguration {
		return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
			Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(`{"kind":"GpuConfig","sharing":{"strategy":"` + strategy + `"}}`)},
		}}
	}
	w.claims["a"].Status.Allocation.Devices.Config = []resourceapi.DeviceAllocationConfiguration{{Source: resourceapi.AllocationConfigSourceClass, DeviceConfiguration: config("MPS")}}
	if view, err := w.Read(pod); err != nil || view.Sharing != horus.MPS {
		t.Errorf("expected the class's MPS, found %v, %v", view.Sharing, err)
	}
	w.claims["a"].Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: config("TimeSlicing")}}
	given := &w.claims["a"].Status.Allocation.Devices
	given.Config = append(given.Config, resourceapi.DeviceAllocationConfiguration{Source: resourceapi.AllocationConfigSourceClaim, DeviceConfiguration: config("TimeSlicing")})
	if view, err := w.Read(pod); err != nil || view.Sharing != horus.TimeSlice {
		t.Errorf("expected what the claim itself says, found %v, %v", view.Sharing, err)
	}
}

func TestUpstreamsAllocatorPicksAmongWhatIsFree(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 0)
	w.cut("n1", 2)
	mixed := func(name string, change func(*resourceapi.ResourceClaim)) (*v1.Pod, objects.Pod) {
		pod := w.claimer(name, "", "")
		pod.Annotations = nil
		change(w.claims[name])
		view, err := w.Read(pod)
		if err != nil || !view.Mixed {
			t.Fatalf("%s: expected a claim of several kinds, found %+v, %v", name, view, err)
		}
		return pod, view
	}
	either := func(claim *resourceapi.ResourceClaim) {
		claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "gpu", FirstAvailable: []resourceapi.DeviceSubRequest{{Name: "whole", DeviceClassName: driver}, {Name: "part", DeviceClassName: driver}}}}
	}
	all := func(claim *resourceapi.ResourceClaim) {
		claim.Spec.Devices.Requests[0].Exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
	}
	pod, view := mixed("first", either)
	choice, err := w.Choose(view, "n1", Rules{})
	if err != nil || len(choice.Devices) != 2*6 {
		t.Fatalf("expected all of the node for the allocator, found %v, %v", choice.Devices, err)
	}
	if _, err = w.Reserve(pod, view, "n1", &choice); err != nil {
		t.Fatal(err)
	}
	_, next := mixed("next", either)
	if _, err = w.Choose(next, "n1", Rules{}); !errors.Is(err, ErrNoPlace) {
		t.Errorf("expected nothing for others before the claim says what was taken, found %v", err)
	}
	w.allocate("first", "n1", "gpu-0-mig-1g10gb-19-2")
	bound := pod.DeepCopy()
	bound.Spec.NodeName = "n1"
	w.SetPod(bound)
	if choice, err = w.Choose(next, "n1", Rules{}); err != nil || len(choice.Devices) != 6+4 {
		t.Errorf("expected gpu-1 with its partitions, and those of gpu-0 that do not overlap, found %v, %v", choice.Devices, err)
	}
	_, whole := mixed("whole", all)
	if _, err = w.Choose(whole, "n1", Rules{}); !errors.Is(err, ErrNoPlace) {
		t.Errorf("expected no node for all of its GPUs while one is in use, found %v", err)
	}
	w.DeletePod("first")
	if choice, err = w.Choose(whole, "n1", Rules{}); err != nil || len(choice.Devices) != 2*6 {
		t.Errorf("expected all of the node, found %v, %v", choice.Devices, err)
	}
}

// What another scheduler gave a pod tells which kind of device it asked for: no partition would have done for a card.
func TestACardIsNotComparedWithPartitions(t *testing.T) {
	w := newWorld(t)
	judged := map[string]horus.Verdict{}
	w.Seen = func(view View) {
		regret, err := view.Regret(func(*v1.Node) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		judged[view.Pod.Name] = regret.Verdict
	}
	w.node("n1", 0)
	w.cut("n1", 2)
	for _, one := range [][2]string{{"part", "gpu-0-mig-1g10gb-19-0"}, {"card", "gpu-1"}, {"second", "gpu-0-mig-3g40gb-9-0"}} {
		pod := w.claimer(one[0], "n1", one[1])
		pod.Annotations = nil
		w.SetPod(pod)
	}
	if judged["part"] != horus.Place || judged["card"] != horus.Place || judged["second"] == horus.Place {
		t.Errorf("expected a place for the first two, and none for a partition that overlaps one in use, found %v", judged)
	}
}
