// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/kubernetes/internal/objects"
)

const product = "nvidia.com/gpu.product"

var (
	t4   = NodeType{GPUType: "t4", MemMiB: 15_360, Means: Whole, Labels: map[string]string{product: "Tesla-T4"}}
	a100 = NodeType{GPUType: "a100-80gb", MemMiB: 81_920, Means: Whole, Labels: map[string]string{product: "NVIDIA-A100-SXM4-80GB"}}
	h100 = NodeType{GPUType: "h100-sxm", MemMiB: 81_559, Means: Whole, Labels: map[string]string{product: "NVIDIA-H100-80GB-HBM3"}}
)

func by(means Means, types ...NodeType) (out []NodeType) {
	for _, t := range types {
		t.Means, t.CountsMemory = means, means != Whole
		out = append(out, t)
	}
	return out
}

// row of a profile: its memory, and what else is said as name and value in turn.
func row(gpuType string, memMiB, upper int64, more ...any) map[string]any {
	out := map[string]any{"gpuType": gpuType, "gpuUtilPct": 50, "memMiB": memMiB, "memMiBUpper": upper}
	for i := 0; i < len(more); i += 2 {
		out[more[i].(string)] = more[i+1]
	}
	return out
}

func profileOf(t *testing.T, rows ...any) Profile {
	t.Helper()
	profile, err := ProfileOf(map[string]any{"demands": rows}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return profile
}

func podWith(change ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{
		Limits: v1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
	}}}}}
	for _, do := range change {
		do(pod)
	}
	return pod
}

func claiming(pod *v1.Pod) {
	pod.Spec.Containers[0].Resources.Limits = nil
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu"}}
}

func selecting(key, value string) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Spec.NodeSelector = map[string]string{key: value} }
}

func requiring(terms ...v1.NodeSelectorTerm) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
}

func in(key string, values ...string) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: values}}}
}

func advice(t *testing.T, profile Profile, pod *v1.Pod, types ...NodeType) Advice {
	t.Helper()
	found, err := For(profile, pod, Cluster{Types: types})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTheJobFitsWhereItsBoundDoesAndTheProfileSaysThatItMayRun(t *testing.T) {
	t4Unfit := []Label{{product, "Tesla-T4"}}
	for name, one := range map[string]struct {
		rows  []any
		types []string
		unfit []Label
	}{
		"the bound counts, not the estimate": {[]any{row("t4", 15_000, 15_361), row("a100-80gb", 15_000, 16_000)}, []string{"a100-80gb"}, t4Unfit},
		"to the last MiB":                    {[]any{row("t4", 15_000, 15_360), row("a100-80gb", 15_000, 16_000)}, []string{"a100-80gb", "t4"}, nil},
		"too large by prediction":            {[]any{row("t4", 9, 9, "prediction", map[string]any{"tooLarge": true}), row("a100-80gb", 9, 9)}, []string{"a100-80gb"}, t4Unfit},
		"a type that the profile leaves out": {[]any{row("NVIDIA A100-SXM4-80GB", 9, 9)}, []string{"a100-80gb"}, t4Unfit},
		"no bound is known":                  {[]any{row("t4", 15_361, 1<<32), row("a100-80gb", 16_000, 1<<32)}, []string{"a100-80gb"}, t4Unfit},
		"nowhere":                            {[]any{row("t4", 90_000, 90_000), row("a100-80gb", 90_000, 90_000)}, nil, nil},
	} {
		found := advice(t, profileOf(t, one.rows...), podWith(), t4, a100)
		if !slices.Equal(found.GPUTypes, one.types) || !slices.Equal(found.Unfit, one.unfit) {
			t.Errorf("%s: expected %v and %v unfit, found %+v", name, one.types, one.unfit, found)
		}
	}
	if _, err := For(profileOf(t, row("t5", 1, 1)), podWith(), Cluster{Types: []NodeType{t4}}); err == nil || !strings.Contains(err.Error(), "spec.demands[0].gpuType") {
		t.Errorf("expected the type that nobody knows, found %v", err)
	}
}

func TestMemoryIsTheLargestBoundAndALimitWhereNothingIsPredicted(t *testing.T) {
	predicted, outside := map[string]any{}, map[string]any{"outside": true}
	for name, one := range map[string]struct {
		rows           []any
		request, limit int64
		evidence       Evidence
	}{
		"measured":         {[]any{row("t4", 1, 2_000, "measured", true), row("a100-80gb", 1, 3_000, "measured", true)}, 3_000, 3_000, Measured},
		"stated":           {[]any{row("t4", 1, 2_000, "measured", true), row("a100-80gb", 1_000, 0)}, 2_000, 2_000, Stated},
		"one is predicted": {[]any{row("t4", 1, 2_000, "measured", true), row("a100-80gb", 1, 3_000, "prediction", predicted)}, 3_000, 0, Predicted},
		"one is a guess":   {[]any{row("t4", 1, 2_000, "prediction", outside), row("a100-80gb", 1, 3_000, "prediction", predicted)}, 3_000, 0, Outside},
		"one has no bound": {[]any{row("t4", 1, 2_000), row("a100-80gb", 1, 1<<32)}, 0, 0, Stated},
		"a type where it does not fit counts for nothing": {[]any{row("t4", 1, 2_000), row("a100-80gb", 1, 90_000, "prediction", outside)}, 2_000, 2_000, Stated},
	} {
		found := advice(t, profileOf(t, one.rows...), podWith(), t4, a100)
		if found.MemRequestMiB != one.request || found.MemLimitMiB != one.limit || found.Evidence != one.evidence {
			t.Errorf("%s: expected a request of %d, a limit of %d, %s, found %+v", name, one.request, one.limit, one.evidence, found)
		}
	}
}

// What was seen makes the request larger, and the rest of a prediction measured, but no limit of a predicted bound.
func TestWhatWasSeenOfOtherThingsMakesNoLimit(t *testing.T) {
	seen := map[string]any{"observed": []any{map[string]any{"gpuType": "t4", "windows": 5, "stepTimeUs": 100, "gpuUtilPct": 50, "memMiB": 2_500}}}
	profile, err := ProfileOf(map[string]any{"demands": []any{row("t4", 1_000, 2_000, "prediction", map[string]any{})}}, seen)
	if err != nil {
		t.Fatal(err)
	}
	if found := advice(t, profile, podWith(), t4); found.MemRequestMiB != 2_500 || found.MemLimitMiB != 0 || found.Evidence != Predicted {
		t.Errorf("expected a request of what was seen and no limit, found %+v", found)
	}
}

func TestTheLargestBatchIsTheLeastAndOfWholeGPUs(t *testing.T) {
	both := profileOf(t, row("t4", 1, 1, "largestBatch", 17), row("a100-80gb", 1, 1, "largestBatch", 90))
	one := profileOf(t, row("t4", 1, 1, "largestBatch", 17), row("a100-80gb", 1, 1))
	for name, c := range map[string]struct {
		profile Profile
		pod     *v1.Pod
		types   []NodeType
		want    int64
	}{
		"the least":           {both, podWith(), []NodeType{a100, t4}, 17},
		"of the cluster":      {both, podWith(), []NodeType{a100}, 90},
		"one is not known":    {one, podWith(), []NodeType{t4, a100}, 0},
		"of a part of a GPU":  {both, podWith(claiming), by(Claims, t4, a100), 0},
		"HAMi gives a part":   {both, podWith(), by(HAMi, t4, a100), 0},
		"that the pod allows": {both, podWith(selecting(product, "NVIDIA-A100-SXM4-80GB")), []NodeType{t4, a100}, 90},
	} {
		if found := advice(t, c.profile, c.pod, c.types...); found.LargestBatch != c.want {
			t.Errorf("%s: expected %d, found %+v", name, c.want, found)
		}
	}
}

func TestWhoSaysWhichNodesItWantsIsKeptOffNone(t *testing.T) {
	profile := profileOf(t, row("t4", 1, 2_000), row("a100-80gb", 1, 3_000), row("h100-sxm", 1, 90_000))
	type pods map[string]*v1.Pod
	host := v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{"n"}}}}
	preferred := func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{
			{Weight: 1, Preference: in("nvidia.com/gpu.family", "ampere")},
		}}}
	}
	annotated := func(p *v1.Pod) { p.Annotations = map[string]string{"nvidia.com/use-gputype": "A100"} }
	for says, given := range map[bool]pods{
		true: {
			"selector": podWith(selecting(product, "Tesla-T4")), "other label of types": podWith(selecting("nvidia.com/gpu.memory", "15360")),
			"instances": podWith(selecting(v1.LabelInstanceTypeStable, "g4dn.xlarge")), "host": podWith(requiring(host)),
			"required": podWith(requiring(in("zone", "a"), in(product, "Tesla-T4"))), "preferred": podWith(preferred), "HAMi": podWith(annotated),
			"node": podWith(func(p *v1.Pod) { p.Spec.NodeName = "n" }),
		},
		false: {"nothing": podWith(), "zone": podWith(selecting("zone", "a")), "required zone": podWith(requiring(in("zone", "a")))},
	} {
		for name, pod := range given {
			found := advice(t, profile, pod, t4, a100, h100, NodeType{GPUType: "t4", MemMiB: 15_360, Means: Whole, Labels: map[string]string{v1.LabelInstanceTypeStable: "g4dn.xlarge"}})
			if (len(found.Unfit) == 0) != says || len(found.GPUTypes) == 0 {
				t.Errorf("%s: expected it to choose: %v, found %+v", name, says, found)
			}
		}
	}
	for name, pod := range map[string]*v1.Pod{
		"selector": podWith(selecting(product, "Tesla-T4")), "required": podWith(requiring(in(product, "Tesla-T4"))),
		"alternatives": podWith(requiring(in(product, "Tesla-T4"), in(product, "NVIDIA-H100-80GB-HBM3"))),
	} {
		if found := advice(t, profile, pod, t4, a100, h100); found.MemRequestMiB != 2_000 {
			t.Errorf("%s: expected the memory of the types that are left, found %+v", name, found)
		}
	}
	if found := advice(t, profile, podWith(requiring(in("zone", "a"), in(product, "Tesla-T4"))), t4, a100); found.MemRequestMiB != 3_000 {
		t.Errorf("expected every type in zone a to be left, found %+v", found)
	}
}

func TestAPodIsAdvisedByTheMeansThatItUses(t *testing.T) {
	profile := profileOf(t, row("t4", 1, 2_000), row("a100-80gb", 1, 3_000))
	types := append(by(Claims, a100), t4)
	for name, one := range map[string]struct {
		pod  *v1.Pod
		want []string
	}{
		"whole": {podWith(), []string{"t4"}}, "claims": {podWith(claiming), []string{"a100-80gb"}}, "a claim by itself": {nil, []string{"a100-80gb"}},
		"none": {&v1.Pod{}, nil},
	} {
		if found := advice(t, profile, one.pod, types...); !slices.Equal(found.GPUTypes, one.want) {
			t.Errorf("%s: expected %v, found %+v", name, one.want, found)
		}
	}
}

func TestALabelOfNodesWhereItFitsIsNotCalledUnfit(t *testing.T) {
	small := a100
	small.GPUType, small.MemMiB = "a100-40gb", 40_960 // two types by one label, as clouds name them
	profile := profileOf(t, row("a100-40gb", 1, 50_000), row("a100-80gb", 1, 50_000))
	if found := advice(t, profile, podWith(), small, a100); len(found.Unfit) != 0 || len(found.GPUTypes) != 1 {
		t.Errorf("expected one type and nothing unfit, found %+v", found)
	}
}

func nodeOf(name string, labels, annotations map[string]string, gpus int64) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{
		"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI),
	}}}
}

func sliceOf(node, productName, memory string) *resourceapi.ResourceSlice {
	device := resourceapi.Device{Name: "gpu-0", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"productName": {StringValue: &productName}}}
	if memory != "" {
		device.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}}
	}
	return &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourceapi.ResourceSliceSpec{
		Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, Generation: 1}, Devices: []resourceapi.Device{device},
	}}
}

func TestTypesAreReadFromNodesAndSlices(t *testing.T) {
	labels := map[string]string{product: "Tesla-T4", "zone": "a"}
	hami := map[string]string{objects.HAMiRegisterAnnotation: `[{"id":"GPU-1","count":10,"devmem":32768,"type":"NVIDIA-Tesla V100-PCIE-32GB","health":true}]`}
	mig := map[string]string{objects.HAMiRegisterAnnotation: `[{"id":"GPU-1","count":10,"devmem":9,"type":"NVIDIA-Tesla V100-PCIE-32GB","health":true,"mode":"mig"}]`}
	types := TypesOf(Settings{}, []*v1.Node{
		nodeOf("a", labels, nil, 4), nodeOf("b", labels, nil, 8), nodeOf("no GPUs", labels, nil, 0), nodeOf("unknown", map[string]string{product: "Z9"}, nil, 1),
		nodeOf("slice", nil, nil, 0), nodeOf("no memory", nil, nil, 0), nodeOf("hami", nil, hami, 10), nodeOf("HAMi by MIG", nil, mig, 10),
	}, []*resourceapi.ResourceSlice{sliceOf("slice", "NVIDIA H100 80GB HBM3", "70Gi"), sliceOf("no memory", "Tesla T4", "")})
	var found []string
	for _, one := range types {
		found = append(found, fmt.Sprint(one.GPUType, " ", one.MemMiB, " ", one.Means, " ", one.CountsMemory, " ", len(one.Labels)))
	}
	want := []string{
		fmt.Sprint("h100-sxm 71680 ", Claims, " true 0"), fmt.Sprint("t4 15360 ", Whole, " false 1"), fmt.Sprint("t4 15360 ", Claims, " false 0"),
		fmt.Sprint("v100-pcie-32gb 32768 ", HAMi, " true 0"),
	}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("expected %q, found %q", want, found)
	}
}

func BenchmarkFor(b *testing.B) {
	profile, err := ProfileOf(map[string]any{"demands": []any{row("t4", 1, 2), row("a100-80gb", 1, 90_000), row("h100-sxm", 1, 2)}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	cluster, pod := Cluster{Types: []NodeType{t4, a100, h100}}, podWith()
	for b.Loop() {
		if _, err := For(profile, pod, cluster); err != nil {
			b.Fatal(err)
		}
	}
}
