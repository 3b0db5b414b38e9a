// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/test/controlplane"
)

// change edits the devices of a node's slice.
func change(t *testing.T, c *controlplane.Cluster, nodeName string, edit func([]resourceapi.Device)) {
	t.Helper()
	slices := c.Client.ResourceV1().ResourceSlices()
	s, err := slices.Get(ctx, nodeName+"-gpus", metav1.GetOptions{})
	check(t, err)
	edit(s.Spec.Devices)
	s.Spec.Pool.Generation++
	_, err = slices.Update(ctx, s, metav1.UpdateOptions{})
	check(t, err)
}

// selecting is a pod with a claim whose device is to fulfil an expression.
func selecting(t *testing.T, c *controlplane.Cluster, name, class, expression string, tolerations ...resourceapi.DeviceToleration) {
	t.Helper()
	exactly := &resourceapi.ExactDeviceRequest{DeviceClassName: class, Tolerations: tolerations}
	if expression != "" {
		exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
	}
	_, err := c.Client.ResourceV1().ResourceClaims(namespace).Create(ctx, &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "gpu", Exactly: exactly}}}},
	}, metav1.CreateOptions{})
	check(t, err)
	makePod(t, c, podSpec{name: name, claim: name})
}

func on(t *testing.T, c *controlplane.Cluster, name, want string) {
	t.Helper()
	bound(t, c, name)
	if found := device(t, c, name); found != want {
		t.Errorf("%s: expected %s, found %s", name, want, found)
	}
}

// The library would take the first device of the first node; what the claim allows lies behind.
func TestTheDeviceIsOneThatTheClaimAllows(t *testing.T) {
	t.Parallel()
	c := start(t, `{mode: place, placing: {candidates: 1}}`)
	for _, name := range []string{"n1", "n2"} {
		node(t, c, name, 0, nil)
		slice(t, c, name, 3)
	}
	change(t, c, "n1", func(devices []resourceapi.Device) {
		devices[0].Taints = []resourceapi.DeviceTaint{{Key: "ecc", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	})
	selecting(t, c, "by-uuid", "gpu.nvidia.com", `device.attributes["gpu.nvidia.com"].uuid == "GPU-n2-2"`)
	on(t, c, "by-uuid", "n2/gpu-2")
	selecting(t, c, "tainted", "gpu.nvidia.com", `device.attributes["gpu.nvidia.com"].uuid == "GPU-n1-0"`)
	said(t, c, "tainted", "HorusRefused", "claims allow too few GPUs")
	selecting(t, c, "tolerates", "gpu.nvidia.com", `device.attributes["gpu.nvidia.com"].uuid == "GPU-n1-0"`,
		resourceapi.DeviceToleration{Key: "ecc", Operator: resourceapi.DeviceTolerationOpExists})
	on(t, c, "tolerates", "n1/gpu-0")
	selecting(t, c, "nothing", "gpu.nvidia.com", `device.attributes["gpu.nvidia.com"].uuid == "GPU-n3-0"`)
	said(t, c, "nothing", "HorusRefused", "On 2 nodes with room its claims allow too few GPUs")
	selecting(t, c, "lacking", "gpu.nvidia.com", `device.attributes["gpu.nvidia.com"].colour == "red"`)
	said(t, c, "lacking", "HorusRefused", "claims allow too few GPUs")
	selecting(t, c, "classless", "mig.nvidia.com", "")
	said(t, c, "classless", "HorusInvalid", "device class mig.nvidia.com", "not found")
	_, err := c.Client.ResourceV1().DeviceClasses().Create(ctx, &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "mig.nvidia.com"}}, metav1.CreateOptions{})
	check(t, err)
	bound(t, c, "classless") // it is there now
	change(t, c, "n1", func(devices []resourceapi.Device) { devices[0].Taints = nil })
	end(t, c, "tolerates")
	on(t, c, "tainted", "n1/gpu-0") // mended, it is open
}

// A claim that asks for no memory gets all of the device's: its pod comes in alone, consent or not, and nobody comes beside it.
func TestAClaimWithoutMemoryTakesAllOfIt(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 2)
	profile(t, c, "light", 5, 8_000)
	for _, one := range []struct{ name, memory string }{{"a", "16Gi"}, {"all", ""}, {"b", "16Gi"}} {
		sharing(t, c, one.name, "light", one.memory)
		bound(t, c, one.name)
	}
	if all := device(t, c, "all"); device(t, c, "a") == all || device(t, c, "b") == all {
		t.Errorf("expected all alone, found %s, %s and %s", device(t, c, "a"), device(t, c, "b"), all)
	}
	sharing(t, c, "more", "light", "")
	said(t, c, "more", "HorusRefused", "they ask for no memory")
}

// Instances and whole cards lie in one slice, and their classes tell them apart.
func TestMIGInstancesArePlacedAsTheDriverPublishesThem(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	_, err := c.Client.ResourceV1().DeviceClasses().Create(ctx, &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "mig.nvidia.com"},
		Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{
			{CEL: &resourceapi.CELDeviceSelector{Expression: `device.attributes["gpu.nvidia.com"].type == "mig"`}},
		}},
	}, metav1.CreateOptions{})
	check(t, err)
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 3)
	change(t, c, "n1", func(devices []resourceapi.Device) {
		for i := range devices[:2] {
			kind, profile, card := "mig", "1g.10gb", "GPU-card"
			devices[i].AllowMultipleAllocations = nil
			devices[i].Capacity = nil
			devices[i].Attributes["type"] = resourceapi.DeviceAttribute{StringValue: &kind}
			devices[i].Attributes["profile"] = resourceapi.DeviceAttribute{StringValue: &profile}
			devices[i].Attributes["parentUUID"] = resourceapi.DeviceAttribute{StringValue: &card}
		}
	})
	for _, name := range []string{"a", "b"} {
		selecting(t, c, name, "mig.nvidia.com", "")
		if at := bound(t, c, name); at != "n1" || device(t, c, name) == "n1/gpu-2" {
			t.Errorf("%s: expected an instance, found %s", name, device(t, c, name))
		}
	}
	selecting(t, c, "third", "mig.nvidia.com", "")
	said(t, c, "third", "HorusRefused")
	claim(t, c, "whole", "")
	makePod(t, c, podSpec{name: "whole", claim: "whole"})
	on(t, c, "whole", "n1/gpu-2")
}

// NVIDIA's driver with --consumable-shares=2: a device takes two tenants, and one that asks for both shares.
func TestSharesOfADeviceAreCounted(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	node(t, c, "n1", 0, nil)
	one := resource.MustParse("1")
	slice(t, c, "n1", 2, func(d *resourceapi.Device) {
		d.Capacity["shares"] = resourceapi.DeviceCapacity{Value: resource.MustParse("2"), RequestPolicy: &resourceapi.CapacityRequestPolicy{
			Default: &one, ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &one, Step: &one},
		}}
	})
	profile(t, c, "light", 5, 2_000)
	on := map[string]int{}
	for _, name := range []string{"a", "b", "c"} {
		sharing(t, c, name, "light", "4Gi")
		bound(t, c, name)
		on[device(t, c, name)]++
	}
	if len(on) != 2 {
		t.Errorf("expected the third where shares are left, found %v", on)
	}
	claim(t, c, "both", "4Gi", func(r *resourceapi.ExactDeviceRequest) { r.Capacity.Requests["shares"] = resource.MustParse("2") })
	makePod(t, c, podSpec{name: "both", claim: "both", annotations: map[string]string{objects.ProfileAnnotation: "light", objects.ShareAnnotation: "same-tenant"}})
	said(t, c, "both", "HorusRefused", "capacities such as shares")
	sharing(t, c, "d", "light", "4Gi")
	bound(t, c, "d")
	c.KillScheduler() // what is left is the API server's to tell
	c.StartScheduler(placing)
	sharing(t, c, "e", "light", "4Gi")
	said(t, c, "e", "HorusRefused", "tenants")
	end(t, c, "a")
	bound(t, c, "e")
}

// As NVIDIA's driver publishes a card with DynamicMIG: whole, and as partitions that it would make. What one takes of the card's counters
// the others lack, for Kubernetes' allocator too.
func TestPartitionsOfACardExcludeEachOther(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 6, func(d *resourceapi.Device) { d.AllowMultipleAllocations, d.Capacity = nil, nil })
	one, node := resource.MustParse("1"), "n1"
	counters := func(first, count int) map[string]resourceapi.Counter {
		out := map[string]resourceapi.Counter{}
		for i := range count {
			out[fmt.Sprintf("memory-slice-%d", first+i)] = resourceapi.Counter{Value: one}
		}
		return out
	}
	change(t, c, "n1", func(devices []resourceapi.Device) {
		for i := range devices { // two cards, each with two halves
			set, kind, profile, card := fmt.Sprintf("set-%d", i/3), "mig", "3g.40gb", fmt.Sprintf("GPU-n1-%d", i/3*3)
			taken := counters(i%3*4-4, 4)
			if i%3 == 0 {
				kind, taken = "gpu", counters(0, 8)
			} else {
				devices[i].Attributes["profile"] = resourceapi.DeviceAttribute{StringValue: &profile}
				devices[i].Attributes["parentUUID"] = resourceapi.DeviceAttribute{StringValue: &card}
			}
			devices[i].Attributes["type"] = resourceapi.DeviceAttribute{StringValue: &kind}
			devices[i].ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: set, Counters: taken}}
		}
	})
	s, err := c.Client.ResourceV1().ResourceSlices().Get(ctx, "n1-gpus", metav1.GetOptions{})
	check(t, err)
	s.Spec.Pool.ResourceSliceCount = 2
	s, err = c.Client.ResourceV1().ResourceSlices().Update(ctx, s, metav1.UpdateOptions{})
	check(t, err)
	_, err = c.Client.ResourceV1().ResourceSlices().Create(ctx, &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "n1-counters"},
		Spec: resourceapi.ResourceSliceSpec{Driver: s.Spec.Driver, NodeName: &node, Pool: s.Spec.Pool, SharedCounters: []resourceapi.CounterSet{
			{Name: "set-0", Counters: counters(0, 8)}, {Name: "set-1", Counters: counters(0, 8)},
		}},
	}, metav1.CreateOptions{})
	check(t, err)
	const mig, whole = `device.attributes["gpu.nvidia.com"].type == "mig"`, `device.attributes["gpu.nvidia.com"].type == "gpu"`
	selecting(t, c, "first", "gpu.nvidia.com", mig+` && device.attributes["gpu.nvidia.com"].parentUUID == "GPU-n1-3"`)
	bound(t, c, "first")
	selecting(t, c, "second", "gpu.nvidia.com", mig)
	bound(t, c, "second") // beside the first, so that a card stays whole
	selecting(t, c, "card", "gpu.nvidia.com", whole)
	on(t, c, "card", "n1/gpu-0")
	selecting(t, c, "more", "gpu.nvidia.com", whole)
	said(t, c, "more", "HorusRefused")
	end(t, c, "card")
	on(t, c, "more", "n1/gpu-0")
	either := func(name string) {
		sub := func(name, expression string) resourceapi.DeviceSubRequest {
			return resourceapi.DeviceSubRequest{Name: name, DeviceClassName: "gpu.nvidia.com", Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}}
		}
		_, err = c.Client.ResourceV1().ResourceClaims(namespace).Create(ctx, &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{
				{Name: "gpu", FirstAvailable: []resourceapi.DeviceSubRequest{sub("whole", whole), sub("part", mig)}},
			}}},
		}, metav1.CreateOptions{})
		check(t, err)
		makePod(t, c, podSpec{name: name, claim: name})
	}
	end(t, c, "second")
	either("either") // no card is whole
	bound(t, c, "either")
	if found := device(t, c, "either"); found == device(t, c, "first") || found == "n1/gpu-3" || found == "n1/gpu-0" {
		t.Errorf("expected the half that is left, found %s", found)
	}
}

// A job that needs 60,000 MiB takes them, whatever its claim says.
func TestTheLargerOfProfileAndClaimCountsAndIsTold(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 1)
	profile(t, c, "large", 20, 60_000)
	sharing(t, c, "a", "large", "1Gi")
	bound(t, c, "a")
	said(t, c, "a", "HorusContradiction", "60000 MiB", "1024 MiB", "the larger figure counts")
	if found := metric(c, "horus_contradicting_pods "); found != 1 {
		t.Errorf("expected a pod that contradicts itself, found %v", found)
	}
	sharing(t, c, "b", "large", "1Gi")
	said(t, c, "b", "HorusRefused", "MiB", "the larger figure counts")
	if at := get(t, c, "b").Spec.NodeName; at != "" {
		t.Errorf("two jobs of 60000 MiB are more than 80 GiB: expected b to wait, found it on %s", at)
	}
}
