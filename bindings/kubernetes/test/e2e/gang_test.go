// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"libhorus.org/kubernetes/plugin"
	"libhorus.org/kubernetes/test/controlplane"
)

// PodGroups as the coscheduling plugin has them, as far as they are read.
const podGroupCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: podgroups.scheduling.x-k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"}
spec:
  group: scheduling.x-k8s.io
  scope: Namespaced
  names: {kind: PodGroup, listKind: PodGroupList, plural: podgroups, singular: podgroup}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func startWithGroups(t *testing.T, values string) *controlplane.Cluster {
	t.Helper()
	c := start(t, "")
	path := filepath.Join(t.TempDir(), "podgroups.yaml")
	check(t, os.WriteFile(path, []byte(podGroupCRD), 0o600))
	kubectl(t, c, "apply", "-f", path)
	kubectl(t, c, "wait", "--for=condition=Established", "crd/podgroups.scheduling.x-k8s.io", "--timeout=20s")
	c.StartScheduler(values)
	return c
}

func group(t *testing.T, c *controlplane.Cluster, name string, spec map[string]any) {
	t.Helper()
	gvr := schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	_, err := c.Dynamic.Resource(gvr).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"name": name}, "spec": spec,
	}}, metav1.CreateOptions{})
	check(t, err)
}

func member(gang string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Labels = map[string]string{plugin.GroupLabel: gang} }
}

// members are pods of one whole GPU each.
func members(t *testing.T, c *controlplane.Cluster, gang string, count int) (names []string) {
	t.Helper()
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%d", gang, i))
		makePod(t, c, podSpec{name: names[i], whole: 1, change: member(gang)})
	}
	return names
}

func boundOf(t *testing.T, c *controlplane.Cluster, names []string) (count int) {
	t.Helper()
	for _, name := range names {
		if get(t, c, name).Spec.NodeName != "" {
			count++
		}
	}
	return count
}

func TestAGangIsPlacedAllTogetherOrNotAtAll(t *testing.T) {
	c := startWithGroups(t, placing)
	node(t, c, "n1", 2, nil)
	node(t, c, "n2", 1, nil)
	group(t, c, "four", map[string]any{"minMember": int64(4)})
	names := members(t, c, "four", 3)
	said(t, c, names[2], "PodGroup default/four has 3 of its 4 pods") // those before may have been tried when fewer were there
	names = append(names, "four-3")
	makePod(t, c, podSpec{name: "four-3", whole: 1, change: member("four")})
	said(t, c, "four-3", "HorusRefused", "PodGroup default/four")
	makePod(t, c, podSpec{name: "single", whole: 1})
	bound(t, c, "single") // the gang holds nothing while it waits
	if found := boundOf(t, c, names); found != 0 {
		t.Errorf("three GPUs are not enough for four pods: expected none bound, found %d", found)
	}
	node(t, c, "n3", 2, nil)
	for _, name := range names {
		bound(t, c, name)
	}
}

// Four GPUs and two gangs of three that come at once: one runs, the other waits and holds nothing; then it runs.
func TestTwoGangsDoNotLockEachOther(t *testing.T) {
	c := startWithGroups(t, placing)
	node(t, c, "n1", 2, nil)
	node(t, c, "n2", 2, nil)
	gangs := map[string][]string{}
	for _, gang := range []string{"a", "b"} {
		group(t, c, gang, map[string]any{"minMember": int64(3)})
	}
	c.StopScheduler()
	for i := range 3 { // interleaved, so that both are in the queue before the first is placed
		for _, gang := range []string{"a", "b"} {
			name := fmt.Sprintf("%s-%d", gang, i)
			gangs[gang] = append(gangs[gang], name)
			makePod(t, c, podSpec{name: name, whole: 1, change: member(gang)})
		}
	}
	c.Go()
	count := func(gang string) int { return boundOf(t, c, gangs[gang]) }
	until(t, c, "one gang runs", func() bool { return count("a") == 3 || count("b") == 3 })
	first, second := "a", "b"
	if count("b") == 3 {
		first, second = "b", "a"
	}
	makePod(t, c, podSpec{name: "single", whole: 1})
	bound(t, c, "single")
	if found := count(second); found != 0 {
		t.Errorf("expected nothing of gang %s, found %d pods bound", second, found)
	}
	for _, name := range append(gangs[first], "single") {
		kubectl(t, c, "delete", "pod", name, "--grace-period=0", "--force")
	}
	for _, name := range gangs[second] {
		bound(t, c, name)
	}
}

// The GPUs are free and the cores are not: what is held while the gang waits is given back, and not kept for ever.
func TestAGangThatOtherPluginsRefuseHoldsNothing(t *testing.T) {
	c := startWithGroups(t, placing)
	node(t, c, "n1", 2, nil)
	group(t, c, "busy", map[string]any{"minMember": int64(2)})
	names := []string{"busy-0", "busy-1"}
	for _, name := range names {
		makePod(t, c, podSpec{name: name, whole: 1, change: func(p *v1.Pod) {
			member("busy")(p)
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("40")} // of 64
		}})
	}
	until(t, c, "one is tried while the other holds a GPU", func() bool {
		told := events(t, c, "busy-0") + events(t, c, "busy-1")
		return strings.Contains(told, "Insufficient cpu") || strings.Contains(told, "found no place for all")
	})
	makePod(t, c, podSpec{name: "pair", whole: 2})
	bound(t, c, "pair")
	if found := boundOf(t, c, names); found != 0 {
		t.Errorf("expected none bound, found %d", found)
	}
}

func TestWhatAGangLacksIsTold(t *testing.T) {
	c := startWithGroups(t, placing)
	node(t, c, "n1", 2, nil)
	members(t, c, "none", 1)
	said(t, c, "none-0", "HorusInvalid", plugin.GroupLabel, `"none" not found`)
	group(t, c, "wrong", map[string]any{"minMember": "two"})
	members(t, c, "wrong", 1)
	said(t, c, "wrong-0", "HorusInvalid", "spec.minMember: expected 1 to 10000, found two")
	group(t, c, "none", map[string]any{"minMember": int64(1)})
	bound(t, c, "none-0") // once its PodGroup is there
}

// PodGroups of Kubernetes itself, behind its feature gates: the scheduler's own cycle tries all pods before one is bound.
func TestAPodGroupOfKubernetesIsPlacedAllTogether(t *testing.T) {
	gvr, gates := schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1beta1", Resource: "podgroups"}, "GenericWorkload=true"
	if strings.HasPrefix(version(t), "v1.36.") {
		gvr.Version, gates = "v1alpha2", gates+",GangScheduling=true"
	}
	c := start(t, "", "--feature-gates="+gates, "--runtime-config="+gvr.GroupVersion().String()+"=true")
	c.StartScheduler("{mode: place, podGroups: always}")
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 2)
	profile(t, c, "heavy", 95, 60_000)
	_, err := c.Dynamic.Resource(gvr).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gvr.GroupVersion().String(), "kind": "PodGroup", "metadata": map[string]any{"name": "three"},
		"spec": map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(3)}}},
	}}, metav1.CreateOptions{})
	check(t, err)
	names := []string{"three-0", "three-1", "three-2"}
	for _, name := range names {
		claim(t, c, name, "64Gi")
		makePod(t, c, podSpec{name: name, claim: name, change: func(p *v1.Pod) {
			group := "three"
			p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group}
		}})
	}
	refused(t, c, names[0])
	claim(t, c, "single", "64Gi")
	makePod(t, c, podSpec{name: "single", claim: "single"})
	bound(t, c, "single")
	if found := boundOf(t, c, names); found != 0 {
		t.Errorf("two GPUs are not enough for three pods: expected none bound, found %d", found)
	}
	node(t, c, "n2", 0, nil)
	slice(t, c, "n2", 2)
	for _, name := range names {
		bound(t, c, name)
	}
}
