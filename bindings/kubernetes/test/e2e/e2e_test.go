// SPDX-License-Identifier: Apache-2.0

// Package e2e tests horus-scheduler in a real control plane. It needs the folder of its programs in HORUS_K8S_BIN; test/run
// makes it.
package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/plugin"
	"libhorus.org/kubernetes/test/controlplane"
)

const (
	namespace = "default"
	placing   = `mode: place`
	gpuType   = "NVIDIA H100 80GB HBM3"
)

var ctx = context.Background()

// within is how long a test waits for what is to come. HORUS_K8S_WITHIN is shorter where faults are planted, since it never comes.
var within = func() time.Duration {
	given, err := time.ParseDuration(os.Getenv("HORUS_K8S_WITHIN"))
	if err != nil {
		return time.Minute
	}
	return given
}()

func start(t *testing.T, values string, flags ...string) *controlplane.Cluster {
	t.Helper()
	c := controlplane.Start(t, programs(t), flags...)
	crds, err := filepath.Glob("../../charts/horus/crds/*.yaml")
	check(t, err)
	for _, crd := range crds {
		kubectl(t, c, "apply", "-f", crd)
	}
	kubectl(t, c, "wait", "--for=condition=Established", "crd/jobprofiles.libhorus.org", "--timeout=20s")
	_, err = c.Client.ResourceV1().DeviceClasses().Create(ctx, &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu.nvidia.com"},
		Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{
			{CEL: &resourceapi.CELDeviceSelector{Expression: `device.driver == "gpu.nvidia.com"`}},
		}},
	}, metav1.CreateOptions{})
	check(t, err)
	if values != "" {
		c.StartScheduler(values)
	}
	return c
}

// programs is their folder.
func programs(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("HORUS_K8S_BIN")
	if bin == "" {
		t.Skip("HORUS_K8S_BIN names no folder: run test/run")
	}
	return bin
}

// version of the Kubernetes under test.
func version(t *testing.T) string {
	t.Helper()
	found, err := controlplane.Version(programs(t))
	check(t, err)
	return found
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kubectl(t *testing.T, c *controlplane.Cluster, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(os.Getenv("HORUS_K8S_BIN"), "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// node makes a fake node of Horus's; `whole` GPUs by the device plugin, with the label of their type.
func node(t *testing.T, c *controlplane.Cluster, name string, whole int, change func(*v1.Node)) {
	t.Helper()
	capacity := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("512Gi"), v1.ResourcePods: resource.MustParse("200"),
	}
	labels := map[string]string{"kubernetes.io/hostname": name, objects.SchedulerLabel: "horus"}
	if whole > 0 {
		capacity["nvidia.com/gpu"] = *resource.NewQuantity(int64(whole), resource.DecimalSI)
		labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3"
	}
	n := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Status:     v1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
	if change != nil {
		change(n)
	}
	_, err := c.Client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	check(t, err)
}

// slice offers `count` GPUs of 80 GiB on a node that may be shared.
func slice(t *testing.T, c *controlplane.Cluster, nodeName string, count int, change ...func(*resourceapi.Device)) {
	t.Helper()
	s := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName + "-gpus"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: "gpu.nvidia.com", NodeName: &nodeName,
			Pool: resourceapi.ResourcePool{Name: nodeName, Generation: 1, ResourceSliceCount: 1},
		},
	}
	shared, product, kind, step, least := true, gpuType, "gpu", resource.MustParse("1Mi"), resource.MustParse("1Mi")
	for i := range count {
		uuid := fmt.Sprintf("GPU-%s-%d", nodeName, i)
		whole := resource.MustParse("80Gi")
		s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{
			Name: fmt.Sprintf("gpu-%d", i), AllowMultipleAllocations: &shared,
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"productName": {StringValue: &product}, "uuid": {StringValue: &uuid}, "type": {StringValue: &kind},
			},
			Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {
				Value:         whole,
				RequestPolicy: &resourceapi.CapacityRequestPolicy{Default: &whole, ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &least, Step: &step}},
			}},
		})
		for _, do := range change {
			do(&s.Spec.Devices[i])
		}
	}
	_, err := c.Client.ResourceV1().ResourceSlices().Create(ctx, s, metav1.CreateOptions{})
	check(t, err)
}

func claim(t *testing.T, c *controlplane.Cluster, name, memory string, change ...func(*resourceapi.ExactDeviceRequest)) {
	t.Helper()
	claimOf(t, c, namespace, name, memory, change...)
}

func claimOf(t *testing.T, c *controlplane.Cluster, namespace, name, memory string, change ...func(*resourceapi.ExactDeviceRequest)) {
	t.Helper()
	exactly := &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com"}
	if memory != "" {
		exactly.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}}
	}
	for _, do := range change {
		do(exactly)
	}
	_, err := c.Client.ResourceV1().ResourceClaims(namespace).Create(ctx, &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "gpu", Exactly: exactly}},
		}},
	}, metav1.CreateOptions{})
	check(t, err)
}

// profile makes a JobProfile of little load, so that two of it share well.
func profile(t *testing.T, c *controlplane.Cluster, name string, utilisation float64, memMiB int64) {
	t.Helper()
	profileOf(t, c, namespace, name, utilisation, memMiB)
}

func profileOf(t *testing.T, c *controlplane.Cluster, namespace, name string, utilisation float64, memMiB int64) {
	t.Helper()
	_, err := c.Dynamic.Resource(objects.Profiles).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": objects.Group + "/" + objects.Version, "kind": "JobProfile", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"kind": "inference", "demands": []any{map[string]any{
			"gpuType": "h100-sxm", "gpuUtilPct": utilisation, "memBwUtilPct": utilisation / 2, "memMiB": memMiB, "stepTimeUs": int64(20_000),
		}}},
	}}, metav1.CreateOptions{})
	check(t, err)
}

type podSpec struct {
	namespace              string // "" = namespace
	name, scheduler, claim string
	whole                  int
	annotations            map[string]string
	change                 func(*v1.Pod)
}

func makePod(t *testing.T, c *controlplane.Cluster, spec podSpec) {
	t.Helper()
	if spec.scheduler == "" {
		spec.scheduler = "horus"
	}
	container := v1.Container{Name: "c", Image: "none"}
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: spec.name, Annotations: spec.annotations},
		Spec:       v1.PodSpec{SchedulerName: spec.scheduler, Containers: []v1.Container{container}},
	}
	one := &p.Spec.Containers[0]
	if spec.claim != "" {
		p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &spec.claim}}
		one.Resources.Claims = []v1.ResourceClaim{{Name: "gpu"}}
	}
	if spec.whole > 0 {
		one.Resources.Limits = v1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(spec.whole), resource.DecimalSI)}
	}
	if spec.change != nil {
		spec.change(p)
	}
	_, err := c.Client.CoreV1().Pods(cmp.Or(spec.namespace, namespace)).Create(ctx, p, metav1.CreateOptions{})
	check(t, err)
}

// sharing is a pod with a claim of its own and consent.
func sharing(t *testing.T, c *controlplane.Cluster, name, profileName, memory string) {
	t.Helper()
	claim(t, c, name, memory)
	makePod(t, c, podSpec{name: name, claim: name, annotations: map[string]string{
		objects.ProfileAnnotation: profileName, objects.ShareAnnotation: "same-tenant",
	}})
}

// end deletes a pod and its claim, and takes the claim's finalizer off, which is the controller manager's part.
func end(t *testing.T, c *controlplane.Cluster, name string) {
	t.Helper()
	endOf(t, c, namespace, name)
}

func endOf(t *testing.T, c *controlplane.Cluster, namespace, name string) {
	t.Helper()
	grace := int64(0)
	check(t, c.Client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &grace}))
	claims := c.Client.ResourceV1().ResourceClaims(namespace)
	check(t, claims.Delete(ctx, name, metav1.DeleteOptions{}))
	_, err := claims.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) { // it was not allocated, and went at once
		check(t, err)
	}
}

func until(t *testing.T, c *controlplane.Cluster, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			log := c.SchedulerLog()
			t.Fatalf("%s: not within %v\n%s\n%s", what, within, kubectl(t, c, "get", "pods,events", "-A", "-o", "wide"), log[max(0, len(log)-3000):])
		}
	}
}

func get(t *testing.T, c *controlplane.Cluster, name string) *v1.Pod {
	t.Helper()
	p, err := c.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	check(t, err)
	return p
}

// bound waits for a pod and tells its node.
func bound(t *testing.T, c *controlplane.Cluster, name string) string {
	t.Helper()
	until(t, c, name+" is bound", func() bool { return get(t, c, name).Spec.NodeName != "" })
	return get(t, c, name).Spec.NodeName
}

// refused waits for a pod to be refused.
func refused(t *testing.T, c *controlplane.Cluster, name string) {
	t.Helper()
	until(t, c, name+" is refused", func() bool {
		for _, condition := range get(t, c, name).Status.Conditions {
			if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionFalse {
				return true
			}
		}
		return false
	})
}

// events about a pod, a line each.
func events(t *testing.T, c *controlplane.Cluster, name string) string {
	t.Helper()
	return kubectl(t, c, "get", "events.events.k8s.io", "--field-selector", "regarding.name="+name, "-o",
		"jsonpath={range .items[*]}{.reason}: {.note}{\"\\n\"}{end}")
}

// said waits for an event about a pod that says it all: the scheduler's own events repeat parts of ours.
func said(t *testing.T, c *controlplane.Cluster, name string, words ...string) {
	t.Helper()
	until(t, c, fmt.Sprintf("%s is told %q", name, words), func() bool {
		for line := range strings.Lines(events(t, c, name)) {
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
				return true
			}
		}
		return false
	})
}

// metric is the value of the scheduler's metric whose line begins so; 0 of none.
func metric(c *controlplane.Cluster, begins string) float64 { return metricOf(c.Metrics(), begins) }

func metricOf(metrics, begins string) (value float64) {
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, begins) {
			fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &value)
		}
	}
	return value
}

func device(t *testing.T, c *controlplane.Cluster, claimName string) string {
	t.Helper()
	found, err := c.Client.ResourceV1().ResourceClaims(namespace).Get(ctx, claimName, metav1.GetOptions{})
	check(t, err)
	if found.Status.Allocation == nil {
		return ""
	}
	one := found.Status.Allocation.Devices.Results[0]
	return one.Pool + "/" + one.Device
}

func decision(t *testing.T, c *controlplane.Cluster, name string) plugin.Decision {
	t.Helper()
	var d plugin.Decision
	check(t, json.Unmarshal([]byte(get(t, c, name).Annotations[objects.DecisionAnnotation]), &d))
	return d
}

func TestPodsThatConsentShareOneGPUAndSayBesideWhom(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 1)
	profile(t, c, "light", 20, 8_000)
	sharing(t, c, "a", "light", "16Gi")
	bound(t, c, "a")
	sharing(t, c, "b", "light", "16Gi")
	bound(t, c, "b")
	if device(t, c, "a") != "n1/gpu-0" || device(t, c, "b") != "n1/gpu-0" {
		t.Errorf("expected both on the only GPU, found %s and %s", device(t, c, "a"), device(t, c, "b"))
	}
	first, second := decision(t, c, "a"), decision(t, c, "b")
	if len(first.Beside) != 0 || len(second.Beside) != 1 || second.Beside[0] != "default/a" || second.Slowdown < 1 || second.Devices[0] != "GPU-n1-0" {
		t.Errorf("expected b beside default/a, found %+v and %+v", first, second)
	}
	claim(t, c, "alone", "16Gi")
	makePod(t, c, podSpec{name: "alone", claim: "alone"})
	said(t, c, "alone", "HorusRefused", "exclusive") // a pod without consent waits for a GPU of its own
	sharing(t, c, "large", "light", "64Gi")
	said(t, c, "large", "HorusRefused", "MiB")
	end(t, c, "a")
	end(t, c, "b")
	until(t, c, "one of those that wait comes in", func() bool {
		return get(t, c, "alone").Spec.NodeName != "" || get(t, c, "large").Spec.NodeName != ""
	})
}

func TestANamespaceSharesAsManyGPUsAsItMay(t *testing.T) {
	t.Parallel()
	c := start(t, `{mode: place, placing: {sharedGPUs: {default: 1}}}`)
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 3)
	profile(t, c, "light", 5, 8_000)                          // each counts half in the limit of three
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"} // six on the GPU that may be shared, and one on each of the others
	tenants := map[string]int{}
	for _, name := range names {
		sharing(t, c, name, "light", "10Gi")
		bound(t, c, name)
		tenants[device(t, c, name)]++
	}
	most := 0
	for _, count := range tenants {
		most = max(most, count)
	}
	if len(tenants) != 3 || most != 6 {
		t.Errorf("expected six pods on one GPU and one on each of the others, found %v", tenants)
	}
	sharing(t, c, "i", "light", "10Gi")
	said(t, c, "i", "HorusRefused", "Namespace default shares 1 GPUs and may share 1")
}

// One place comes free, and the work of the pod that came later is worth more. The other is passed over: it is told so, not tried, and comes in
// with the next place.
func TestThePodWhoseWorkIsWorthMostGoesNext(t *testing.T) {
	t.Parallel()
	c := start(t, `{mode: place, placing: {choose: true, maxTenants: 2}}`)
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 1)
	profile(t, c, "light", 15, 8_000)
	profile(t, c, "busy", 45, 8_000)
	for name, runs := range map[string]string{"stays": "busy", "goes": "light"} {
		sharing(t, c, name, runs, "10Gi")
		bound(t, c, name)
	}
	sharing(t, c, "early", "busy", "10Gi")
	refused(t, c, "early") // nothing is free: it is told, as by any scheduler
	sharing(t, c, "late", "light", "10Gi")
	refused(t, c, "late")
	time.Sleep(2 * time.Second) // whom the last updates of bound pods woke has been tried
	tries := metric(c, `horus_refusals_total{reason="tenant_limit"}`)
	end(t, c, "goes")
	bound(t, c, "late")
	said(t, c, "early", "HorusPassedOver", "Others of its priority that wait go first")
	if get(t, c, "early").Spec.NodeName != "" || metric(c, `horus_refusals_total{reason="tenant_limit"}`) != tries {
		t.Errorf("expected early to wait and not to be tried: it was refused %v times before and %v after", tries, metric(c, `horus_refusals_total{reason="tenant_limit"}`))
	}
	end(t, c, "late")
	bound(t, c, "early")
}

func TestTheGPUOfTheLeastInterferenceIsChosenAndNotTheFirst(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 2)
	profile(t, c, "heavy", 95, 30_000)
	sharing(t, c, "a", "heavy", "32Gi")
	bound(t, c, "a")
	sharing(t, c, "b", "heavy", "32Gi")
	bound(t, c, "b")
	if device(t, c, "a") == device(t, c, "b") {
		t.Errorf("two busy jobs fit on one GPU and would slow each other: expected a GPU each, found %s twice", device(t, c, "a"))
	}
}

func TestWholeGPUsAreNeverOverCommitted(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	node(t, c, "n1", 4, nil)
	node(t, c, "n2", 2, nil)
	makePod(t, c, podSpec{name: "four", whole: 4})
	if where := bound(t, c, "four"); where != "n1" {
		t.Errorf("four GPUs are on n1 alone, found %s", where)
	}
	makePod(t, c, podSpec{name: "two", whole: 2, scheduler: "default-scheduler"})
	bound(t, c, "two")
	makePod(t, c, podSpec{name: "one", whole: 1})
	refused(t, c, "one")
	check(t, c.Client.CoreV1().Pods(namespace).Delete(ctx, "two", metav1.DeleteOptions{}))
	if where := bound(t, c, "one"); where != "n2" {
		t.Errorf("expected the GPUs that another scheduler's pod left, found %s", where)
	}
}

// The nodes that cost least are closed to the pod in ways that the library does not know.
func TestWhatOtherPluginsRefuseIsFoundElsewhere(t *testing.T) {
	t.Parallel()
	c := start(t, `{mode: place, placing: {candidates: 1}}`)
	node(t, c, "a-tainted", 0, func(n *v1.Node) {
		n.Spec.Taints = []v1.Taint{{Key: "maintenance", Effect: v1.TaintEffectNoSchedule}}
	})
	node(t, c, "b-wrong", 0, nil)
	node(t, c, "c-busy", 0, func(n *v1.Node) { n.Labels["pool"] = "batch" })
	node(t, c, "d-right", 0, func(n *v1.Node) { n.Labels["pool"] = "batch" })
	for _, name := range []string{"a-tainted", "b-wrong", "c-busy", "d-right"} {
		slice(t, c, name, 1)
	}
	cpu := func(cores string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cores)}
		}
	}
	makePod(t, c, podSpec{name: "filler", change: func(p *v1.Pod) { cpu("60")(p); p.Spec.NodeName = "c-busy" }})
	for _, name := range []string{"first", "second"} {
		claim(t, c, name, "")
		makePod(t, c, podSpec{name: name, claim: name, change: func(p *v1.Pod) {
			cpu("10")(p)
			p.Spec.NodeSelector = map[string]string{"pool": "batch"}
		}})
		if name == "first" {
			if where := bound(t, c, name); where != "d-right" || device(t, c, name) != "d-right/gpu-0" {
				t.Errorf("expected d-right/gpu-0, found %s and %s", where, device(t, c, name))
			}
		}
	}
	refused(t, c, "second")
	check(t, c.Client.CoreV1().Pods(namespace).Delete(ctx, "filler", metav1.DeleteOptions{}))
	if where := bound(t, c, "second"); where != "c-busy" {
		t.Errorf("expected the node that became free, found %s", where)
	}
}

func classes(t *testing.T, c *controlplane.Cluster, values map[string]int32) {
	t.Helper()
	for name, value := range values {
		_, err := c.Client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{})
		check(t, err)
	}
}

func ofClass(class string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.PriorityClassName = class }
}

// One victim is enough, and it is the pod of least priority. Devices of claims are not freed in the scheduler's dry run: who
// holds them is not preempted.
func TestPreemptionTakesAsManyGPUsAsItNeeds(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	classes(t, c, map[string]int32{"low": 1, "middle": 2, "high": 3})
	node(t, c, "whole", 2, nil)
	node(t, c, "claimed", 0, nil)
	slice(t, c, "claimed", 1)
	for name, class := range map[string]string{"low": "low", "middle": "middle"} {
		makePod(t, c, podSpec{name: name, whole: 1, change: ofClass(class)})
		bound(t, c, name)
	}
	claim(t, c, "holder", "")
	makePod(t, c, podSpec{name: "holder", claim: "holder", change: ofClass("low")})
	bound(t, c, "holder")
	claim(t, c, "waits", "")
	makePod(t, c, podSpec{name: "waits", claim: "waits", change: ofClass("high")})
	refused(t, c, "waits")
	makePod(t, c, podSpec{name: "high", whole: 1, change: ofClass("high")})
	if at := bound(t, c, "high"); at != "whole" {
		t.Errorf("expected the place of low, found %s", at)
	}
	left := kubectl(t, c, "get", "pods", "-o", "name")
	if strings.Contains(left, "pod/low") || !strings.Contains(left, "pod/middle") || !strings.Contains(left, "pod/holder") {
		t.Errorf("expected low to be preempted and nobody else, found %s", left)
	}
}

// A pod that the cheapest nodes have no cores for preempts nobody while others are free.
func TestNobodyIsPreemptedForWhatWasNotLookedAt(t *testing.T) {
	t.Parallel()
	c := start(t, `{mode: place, placing: {candidates: 1}}`)
	classes(t, c, map[string]int32{"low": -10, "high": 10})
	cpu := func(cores, class string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.PriorityClassName = class
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cores)}
		}
	}
	node(t, c, "n1", 1, nil)
	node(t, c, "n2", 1, nil)
	makePod(t, c, podSpec{name: "hog", change: func(p *v1.Pod) { cpu("60", "low")(p); p.Spec.NodeName = "n1" }})
	makePod(t, c, podSpec{name: "a", whole: 1, change: cpu("10", "high")})
	if where := bound(t, c, "a"); where != "n2" {
		t.Errorf("expected the free node, found %s", where)
	}
	if get(t, c, "hog").DeletionTimestamp != nil {
		t.Error("expected nobody to be preempted")
	}
}

// A claim that has its device already is followed; a second pod of it shares the device, and nothing else is taken.
func TestPodsOfOneClaimAreWhereItIs(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 2)
	claim(t, c, "one", "")
	makePod(t, c, podSpec{name: "a", claim: "one"})
	bound(t, c, "a")
	makePod(t, c, podSpec{name: "b", claim: "one"})
	bound(t, c, "b")
	claim(t, c, "two", "")
	makePod(t, c, podSpec{name: "c", claim: "two"})
	bound(t, c, "c")
	if device(t, c, "one") == device(t, c, "two") {
		t.Errorf("expected a device for each claim, found %s twice", device(t, c, "one"))
	}
}

func TestWhatIsMendedComesIn(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 1)
	profile(t, c, "light", 20, 8_000)
	claim(t, c, "a", "16Gi")
	makePod(t, c, podSpec{name: "a", claim: "a", annotations: map[string]string{objects.ProfileAnnotation: "light", objects.ShareAnnotation: "same"}})
	said(t, c, "a", "HorusInvalid")
	kubectl(t, c, "annotate", "pod", "a", "--overwrite", objects.ShareAnnotation+"=same-tenant")
	bound(t, c, "a")
}

func TestWrongWordsGetAnEventThatNamesThem(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	node(t, c, "n1", 1, nil)
	for _, one := range []struct{ name, annotation, value, says string }{
		{"share", objects.ShareAnnotation, "everyone", `expected same-tenant or anyone, found "everyone"`},
		{"bound", objects.BoundAnnotation, "1,5", `expected a number from 1 to 1000, found "1,5"`},
		{"profile", objects.ProfileAnnotation, "nobody", `"nobody" not found`},
	} {
		makePod(t, c, podSpec{name: one.name, whole: 1, annotations: map[string]string{one.annotation: one.value}})
		said(t, c, one.name, "HorusInvalid", one.annotation, one.says)
	}
}

func TestAPodThatNamesAProfileBeforeItIsMadeComesInWithIt(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 1)
	sharing(t, c, "a", "late", "16Gi")
	refused(t, c, "a")
	profile(t, c, "late", 20, 8_000)
	bound(t, c, "a")
}

// After a crash the state is the API server's: what is bound keeps its GPUs, and what came meanwhile is placed beside it.
func TestACrashLosesNothing(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	const nodes, gpus, pods = 3, 2, 12
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		node(t, c, name, 0, nil)
		slice(t, c, name, gpus)
	}
	profile(t, c, "light", 20, 8_000)
	for i := range pods {
		sharing(t, c, fmt.Sprintf("p%d", i), "light", "24Gi")
		if i%3 == 1 {
			c.KillScheduler()
			c.StartScheduler(placing)
		}
	}
	for i := range pods {
		bound(t, c, fmt.Sprintf("p%d", i))
	}
	held := map[string]int{}
	for i := range pods {
		name := fmt.Sprintf("p%d", i)
		at := device(t, c, name)
		if held[at]++; held[at] > 3 {
			t.Errorf("%s: three claims of 24 GiB fill a GPU of 80 GiB, found a fourth", at)
		}
		if where := get(t, c, name).Spec.NodeName; !strings.HasPrefix(at, where+"/") {
			t.Errorf("%s: bound to %s and allocated %s", name, where, at)
		}
	}
	until(t, c, "the mirror has every pod", func() bool { return metric(c, "horus_mirrored_pods") == pods })
}

func TestShadowBindsNothingAndTellsWhatOthersCost(t *testing.T) {
	t.Parallel()
	c := start(t, `mode: shadow`)
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 2)
	profile(t, c, "heavy", 95, 30_000)
	consent := map[string]string{objects.ProfileAnnotation: "heavy", objects.ShareAnnotation: "same-tenant"}
	for _, name := range []string{"a", "b"} { // first fit: both on gpu-0
		claim(t, c, name, "32Gi")
		makePod(t, c, podSpec{name: name, scheduler: "default-scheduler", claim: name, annotations: consent})
		bound(t, c, name)
	}
	if device(t, c, "a") != device(t, c, "b") {
		t.Fatalf("the in-tree allocator takes the first device that fits, found %s and %s", device(t, c, "a"), device(t, c, "b"))
	}
	until(t, c, "both choices are judged", func() bool {
		return metric(c, `horus_shadow_decisions_total{ours="same"`)+metric(c, `horus_shadow_decisions_total{ours="elsewhere"`) == 2
	})
	if elsewhere, cost := metric(c, `horus_shadow_decisions_total{ours="elsewhere"`), metric(c, "horus_shadow_regret_gpus"); elsewhere != 1 || cost <= 0 {
		t.Errorf("expected the second pod elsewhere, at a regret, found %v and %v", elsewhere, cost)
	}
	makePod(t, c, podSpec{name: "ours", whole: 1})
	until(t, c, "a pod that names us is told", func() bool {
		return strings.Contains(kubectl(t, c, "get", "pod", "ours", "-o", "yaml"), "shadow mode")
	})
	said(t, c, "ours", "HorusDryRun", "It would wait: no node")
	claim(t, c, "tried", "10Gi")
	makePod(t, c, podSpec{name: "tried", claim: "tried"})
	said(t, c, "tried", "HorusDryRun", "It would be bound to n1", "device 1")
	node(t, c, "whole", 1, nil)
	makePod(t, c, podSpec{name: "all", whole: 1})
	said(t, c, "all", "HorusDryRun", "It would be bound to whole")
	if get(t, c, "tried").Spec.NodeName != "" || get(t, c, "all").Spec.NodeName != "" {
		t.Error("expected nothing to be bound")
	}
}
