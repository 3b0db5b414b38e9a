// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
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
	if values != "" {
		c.StartScheduler(values)
	}
	return c
}

// tenant makes a namespace.
func tenant(t *testing.T, c *controlplane.Cluster, name string) {
	t.Helper()
	_, err := c.Client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	check(t, err)
}

func group(t *testing.T, c *controlplane.Cluster, name string, spec map[string]any) {
	t.Helper()
	groupOf(t, c, namespace, name, spec)
}

func groupOf(t *testing.T, c *controlplane.Cluster, namespace, name string, spec map[string]any) {
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
	t.Parallel()
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

// A namespace whose gangs cannot be complete, each for another reason, keeps nobody else's from idle GPUs.
func TestOneNamespaceDoesNotStopTheGangsOfOthers(t *testing.T) {
	t.Parallel()
	c := startWithGroups(t, placing)
	for i := range 8 {
		node(t, c, fmt.Sprintf("n%d", i), 4, nil)
	}
	const hostile = "hostile"
	tenant(t, c, hostile)
	for name, change := range map[string]func(p *v1.Pod){ // of the second pod of two
		"gated":   func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "never"}} },
		"foreign": func(p *v1.Pod) { p.Spec.SchedulerName = "nobody" },
		"unclaimed": func(p *v1.Pod) {
			p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "other", ResourceClaimName: &p.Name}}
		},
		"homeless": func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"nobody": "has"} },
		"greedy": func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1000")}
		},
	} {
		groupOf(t, c, hostile, name, map[string]any{"minMember": int64(2), "scheduleTimeoutSeconds": int64(900)})
		makePod(t, c, podSpec{namespace: hostile, name: name + "-0", whole: 1, change: member(name)})
		makePod(t, c, podSpec{namespace: hostile, name: name + "-1", whole: 1, change: func(p *v1.Pod) { member(name)(p); change(p) }})
	}
	time.Sleep(2 * time.Second) // each has been tried
	group(t, c, "honest", map[string]any{"minMember": int64(4)})
	begin := time.Now()
	for _, name := range members(t, c, "honest", 4) {
		bound(t, c, name)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("expected an honest gang on idle GPUs within 5 s, found it after %v", took)
	}
}

// The scheduler nominates a node before it binds a pod of a gang, and dies. A gang that never comes keeps no GPU free.
func TestANominationThatACrashLeftEnds(t *testing.T) {
	t.Parallel()
	c := startWithGroups(t, "")
	node(t, c, "n1", 2, nil)
	group(t, c, "pair", map[string]any{"minMember": int64(2)})
	never := v1.PreemptNever
	_, err := c.Client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "never"}, PreemptionPolicy: &never}, metav1.CreateOptions{})
	check(t, err)
	makePod(t, c, podSpec{name: "of-a-gang", whole: 1, change: member("pair")})
	makePod(t, c, podSpec{name: "preempts-nobody", whole: 1, change: func(p *v1.Pod) {
		p.Spec.PriorityClassName = "never"
		p.Spec.NodeSelector = map[string]string{"nobody": "has"}
	}})
	for _, name := range []string{"of-a-gang", "preempts-nobody"} {
		kubectl(t, c, "patch", "pod", name, "--subresource=status", "--type=merge", "-p", `{"status":{"nominatedNodeName":"n1"}}`)
	}
	c.StartScheduler(placing)
	makePod(t, c, podSpec{name: "waits", whole: 2})
	bound(t, c, "waits")
}

// Four GPUs and two gangs of three that come at once: one runs, the other waits and holds nothing; then it runs.
func TestTwoGangsDoNotLockEachOther(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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

// inOneRack makes a pod one of a gang whose pods are to be where the others are, by affinity.
func inOneRack(gang string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		member(gang)(p)
		p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{TopologyKey: "topology.kubernetes.io/rack", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{plugin.GroupLabel: gang}}},
		}}}
	}
}

// Nobody tells the library of the affinity: it takes one rack by itself.
func TestAGangWhosePodsBelongInOneRackIsPlacedAtOnce(t *testing.T) {
	t.Parallel()
	c := startWithGroups(t, placing)
	for name, rack := range map[string]string{"n1": "a", "n2": "b", "n3": "b"} {
		node(t, c, name, 1, func(n *v1.Node) { n.Labels["topology.kubernetes.io/rack"] = rack })
	}
	group(t, c, "pair", map[string]any{"minMember": int64(2)})
	for _, name := range []string{"pair-0", "pair-1"} {
		makePod(t, c, podSpec{name: name, whole: 1, change: inOneRack("pair")})
	}
	for _, name := range []string{"pair-0", "pair-1"} {
		if at := bound(t, c, name); at == "n1" {
			t.Errorf("%s: expected it in rack b, found it on %s", name, at)
		}
	}
	if failed := events(t, c, "pair-0") + events(t, c, "pair-1"); strings.Contains(failed, "FailedScheduling") && strings.Contains(failed, "affinity") {
		t.Errorf("expected a plan within the rack, found attempts beyond it: %s", failed)
	}
}
