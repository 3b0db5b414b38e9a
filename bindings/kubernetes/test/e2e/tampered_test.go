// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/test/controlplane"
)

// allocate writes devices of a node into a claim's status by hand, as no scheduler would.
func allocate(t *testing.T, c *controlplane.Cluster, claimName, nodeName, memory string, devices ...string) {
	t.Helper()
	claims := c.Client.ResourceV1().ResourceClaims(namespace)
	found, err := claims.Get(ctx, claimName, metav1.GetOptions{})
	check(t, err)
	now := metav1.Now() // which is the scheduler's to write, once
	found.Status.Allocation = &resourceapi.AllocationResult{AllocationTimestamp: &now, NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{nodeName}}},
	}}}}
	for i, device := range devices {
		share := types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
		found.Status.Allocation.Devices.Results = append(found.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "gpu", Driver: "gpu.nvidia.com", Pool: nodeName, Device: device, ShareID: &share,
			ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)},
		})
	}
	_, err = claims.UpdateStatus(ctx, found, metav1.UpdateOptions{})
	check(t, err)
}

// What people and programs write by hand, past every scheduler: the scheduler lives, says what it sees, and places others.
func TestTamperedObjectsHarmNobodyElse(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	node(t, c, "healthy", 2, nil)
	node(t, c, "healthy-shared", 0, nil)
	slice(t, c, "healthy-shared", 2)
	profile(t, c, "light", 20, 8_000)
	// holds binds a pod by hand, whose claim names these devices.
	holds := func(t *testing.T, name, at, memory string, annotations map[string]string, devices ...string) {
		claim(t, c, name, "16Gi")
		allocate(t, c, name, at, memory, devices...)
		makePod(t, c, podSpec{name: name, claim: name, annotations: annotations, change: func(p *v1.Pod) { p.Spec.NodeName = at }})
	}
	gauge := func(name string, want float64) func() bool {
		before := metric(c, name+" ")
		return func() bool { return metric(c, name+" ") == before+want }
	}
	logged := func(words ...string) func() bool {
		before := len(c.SchedulerLog())
		return func() bool {
			for line := range strings.Lines(c.SchedulerLog()[before:]) {
				if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
					return true
				}
			}
			return false
		}
	}
	event := func(t *testing.T, name string, words ...string) func() bool {
		return func() bool { said(t, c, name, words...); return true }
	}
	for i, one := range []struct {
		name   string
		tamper func(t *testing.T, at string) (visible func() bool) // `at` is a node of its own with two GPUs that may be shared
	}{
		{"two pods on a device that neither shares", func(t *testing.T, at string) func() bool {
			holds(t, "one-of-two", at, "80Gi", nil, "gpu-0")
			seen := logged("default/two-of-two", "exclusive")
			holds(t, "two-of-two", at, "80Gi", nil, "gpu-0")
			return seen
		}},
		{"a device that is not there", func(t *testing.T, at string) func() bool {
			waits := gauge("horus_waiting_pods", 1)
			holds(t, "nowhere", at, "16Gi", nil, "gpu-99")
			return waits
		}},
		{"one device twice", func(t *testing.T, at string) func() bool {
			waits := gauge("horus_waiting_pods", 1)
			holds(t, "twice", at, "16Gi", nil, "gpu-0", "gpu-0")
			return waits
		}},
		{"more memory than any device has", func(t *testing.T, at string) func() bool {
			taken := gauge("horus_mirrored_pods", 1)
			holds(t, "huge", at, "7Ei", map[string]string{objects.ProfileAnnotation: "light", objects.ShareAnnotation: "same-tenant"}, "gpu-0")
			return taken
		}},
		{"a pod on a node that is not there", func(t *testing.T, _ string) func() bool {
			waits := gauge("horus_waiting_pods", 1)
			makePod(t, c, podSpec{name: "astray", whole: 1, change: func(p *v1.Pod) { p.Spec.NodeName = "atlantis" }})
			return waits
		}},
		{"a slice that goes under a pod", func(t *testing.T, at string) func() bool {
			taken, waits := gauge("horus_mirrored_pods", 1), gauge("horus_waiting_pods", 1)
			holds(t, "bare", at, "16Gi", nil, "gpu-0")
			until(t, c, "it is taken in", taken)
			check(t, c.Client.ResourceV1().ResourceSlices().Delete(ctx, at+"-gpus", metav1.DeleteOptions{}))
			return waits
		}},
		{"a node that goes under a pod", func(t *testing.T, at string) func() bool {
			taken, waits := gauge("horus_mirrored_pods", 1), gauge("horus_waiting_pods", 1)
			holds(t, "homeless", at, "16Gi", nil, "gpu-0")
			until(t, c, "it is taken in", taken)
			check(t, c.Client.CoreV1().Nodes().Delete(ctx, at, metav1.DeleteOptions{}))
			return waits
		}},
		{"a profile that becomes nonsense under its pods", func(t *testing.T, at string) func() bool {
			profile(t, c, "turning", 20, 8_000)
			sharing(t, c, "before", "turning", "16Gi")
			bound(t, c, "before")
			kubectl(t, c, "patch", "jobprofile", "turning", "--type=json", "-p", `[{"op":"replace","path":"/spec/demands/0/gpuType","value":"toaster"}]`)
			sharing(t, c, "after", "turning", "16Gi")
			return event(t, "after", "HorusInvalid", "toaster")
		}},
		{"a node with a billion GPUs", func(t *testing.T, _ string) func() bool {
			unused := gauge("horus_unused_nodes", 1)
			node(t, c, "billion", 1_000_000_000, nil)
			return unused
		}},
		{"a slice without a product", func(t *testing.T, at string) func() bool {
			unused := gauge("horus_unused_nodes", 1)
			kubectl(t, c, "patch", "resourceslice", at+"-gpus", "--type=json", "-p", `[{"op":"remove","path":"/spec/devices/1/attributes/productName"}]`)
			return unused
		}},
		{"an annotation of 200 kB", func(t *testing.T, _ string) func() bool {
			makePod(t, c, podSpec{name: "long", whole: 1, annotations: map[string]string{objects.BoundAnnotation: strings.Repeat("9", 200_000)}})
			return event(t, "long", "HorusInvalid", objects.BoundAnnotation)
		}},
		{"a profile's name of 200 kB", func(t *testing.T, _ string) func() bool {
			makePod(t, c, podSpec{name: "longer", whole: 1, annotations: map[string]string{objects.ProfileAnnotation: strings.Repeat("p", 200_000)}})
			return event(t, "longer", "HorusInvalid", objects.ProfileAnnotation)
		}},
		{"a decision that lies", func(t *testing.T, at string) func() bool {
			claim(t, c, "liar", "16Gi")
			makePod(t, c, podSpec{name: "liar", claim: "liar", annotations: map[string]string{objects.DecisionAnnotation: `{"devices":["GPU-of-mine"],"slowdown":1,"cost":0,"text":"trust me"}`}})
			where := bound(t, c, "liar")
			return func() bool { return strings.HasPrefix(decision(t, c, "liar").Devices[0], "GPU-"+where) }
		}},
		{"more GPUs than there are numbers", func(t *testing.T, _ string) func() bool {
			makePod(t, c, podSpec{name: "greedy", change: func(p *v1.Pod) {
				p.Spec.Containers[0].Resources.Limits = v1.ResourceList{"nvidia.com/gpu": resource.MustParse("9223372036854775807")}
			}})
			return event(t, "greedy", "HorusRefused")
		}},
	} {
		t.Run(one.name, func(t *testing.T) {
			at := fmt.Sprintf("t%d", i)
			node(t, c, at, 0, nil)
			slice(t, c, at, 2)
			until(t, c, "it is seen", one.tamper(t, at))
			before := gauge("horus_mirrored_pods", 0)
			canary, whole := fmt.Sprintf("canary-%d", i), fmt.Sprintf("whole-canary-%d", i)
			sharing(t, c, canary, "light", "16Gi")
			makePod(t, c, podSpec{name: whole, whole: 1})
			bound(t, c, canary)
			if where := bound(t, c, whole); where != "healthy" {
				t.Errorf("expected it on the healthy node, found it on %s", where)
			}
			end(t, c, canary)
			check(t, c.Client.CoreV1().Pods(namespace).Delete(ctx, whole, metav1.DeleteOptions{}))
			until(t, c, "they are gone", before)
		})
	}
}
