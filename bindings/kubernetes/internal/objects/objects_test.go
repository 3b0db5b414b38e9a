// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/horus"
)

var settings = Settings{
	Driver: "gpu.nvidia.com", DeviceClasses: []string{"gpu.nvidia.com"}, Resource: "nvidia.com/gpu",
}

func known(t *testing.T) Finder {
	t.Helper()
	catalogue, err := horus.DefaultCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { catalogue.Close() })
	return func(name, profile string) (err error) {
		if _, err = catalogue.Find(name); err == nil && profile != "" {
			_, err = catalogue.FindProfile(name, profile)
		}
		return err
	}
}

func nodeWith(gpus int64, labels map[string]string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: labels}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("3500m"), v1.ResourceMemory: resource.MustParse("2Gi"),
		"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI),
	}}}
}

func TestANodesGPUsAreReadFromItsLabels(t *testing.T) {
	for _, one := range []struct {
		name   string
		gpus   int64
		labels map[string]string
		want   int
		says   string
	}{
		{"feature discovery", 8, map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, 8, ""},
		{"no label", 2, nil, 0, "no label names their type"},
		{"unknown type", 1, map[string]string{"nvidia.com/gpu.product": "NVIDIA-Z9"}, 0, "nvidia.com/gpu.product"},
		{"replicas", 8, map[string]string{"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"}, 0, "replicas"},
		{"MIG", 7, map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}, 0, "MIG"},
		{"too many", 5_000, map[string]string{"nvidia.com/gpu.product": "Tesla-T4"}, 0, "at most 1024"},
		{"no GPUs", 0, map[string]string{"nvidia.com/gpu.product": "Tesla-T4"}, 0, ""},
	} {
		n := NodeOf(settings, nodeWith(one.gpus, one.labels), nil, known(t))
		if len(n.Devices) != one.want || len(n.Horus.Devices) != one.want || !strings.Contains(n.Problem, one.says) || (one.says == "") != (n.Problem == "") {
			t.Errorf("%s: expected %d GPUs and a problem that says %q, found %d and %q", one.name, one.want, one.says, len(n.Devices), n.Problem)
		}
		if n.Horus.CPUMilli != 3500 || n.Horus.MemMiB != 2048 {
			t.Errorf("%s: expected 3500 milli-cores and 2048 MiB, found %d and %d", one.name, n.Horus.CPUMilli, n.Horus.MemMiB)
		}
	}
}

func sliceOf(name string, generation int64, devices ...resourceapi.Device) *resourceapi.ResourceSlice {
	return &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
		Driver: "gpu.nvidia.com", Pool: resourceapi.ResourcePool{Name: "n1", Generation: generation}, Devices: devices,
	}}
}

func deviceOf(name, product string, shared bool) resourceapi.Device {
	uuid := "GPU-" + name
	return resourceapi.Device{
		Name: name, AllowMultipleAllocations: &shared,
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"gpu.nvidia.com/productName": {StringValue: &product}, "uuid": {StringValue: &uuid},
		},
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
	}
}

func TestOfSlicesTheNewestGenerationCounts(t *testing.T) {
	slices := []*resourceapi.ResourceSlice{
		sliceOf("old", 1, deviceOf("gpu-9", "Tesla T4", false)),
		sliceOf("b", 2, deviceOf("gpu-1", "NVIDIA H100 80GB HBM3", false)),
		sliceOf("a", 2, deviceOf("gpu-0", "NVIDIA H100 80GB HBM3", true)),
	}
	n := NodeOf(settings, nodeWith(8, nil), slices, known(t))
	if n.Backend != DRA || len(n.Devices) != 2 || n.Devices[0].Name != "gpu-0" || n.Devices[1].Name != "gpu-1" {
		t.Fatalf("expected gpu-0 and gpu-1, found %+v", n)
	}
	first, second := n.Horus.Devices[0], n.Horus.Devices[1]
	if first.SharingMode != horus.TimeSlice || second.SharingMode != horus.Exclusive || first.ID != "GPU-gpu-0" || first.MemMiB != 81_920 {
		t.Errorf("expected a device for several claims and one for a single, found %+v and %+v", first, second)
	}
	wrong := NodeOf(settings, nodeWith(8, nil), []*resourceapi.ResourceSlice{sliceOf("a", 1, deviceOf("gpu-0", "", false))}, known(t))
	if wrong.Backend != NoGPUs || !strings.Contains(wrong.Problem, "productName") {
		t.Errorf("expected the attribute that is missing, found %+v", wrong)
	}
}

func TestMIGInstancesAreInstancesOfTheirCard(t *testing.T) {
	instance := func(name, profile, card string) resourceapi.Device {
		d := deviceOf(name, "NVIDIA H100 80GB HBM3", false)
		kind := "mig"
		d.Attributes["type"] = resourceapi.DeviceAttribute{StringValue: &kind}
		d.Attributes["profile"] = resourceapi.DeviceAttribute{StringValue: &profile}
		d.Attributes["parentUUID"] = resourceapi.DeviceAttribute{StringValue: &card}
		return d
	}
	n := NodeOf(settings, nodeWith(8, nil), []*resourceapi.ResourceSlice{sliceOf("a", 1,
		instance("gpu-0-mig-0", "1g.10gb", "GPU-0"), instance("gpu-0-mig-1", "3g.40gb", "GPU-0"), instance("gpu-1-mig-0", "1g.10gb", "GPU-1"),
		deviceOf("gpu-2", "NVIDIA H100 80GB HBM3", false))}, known(t))
	d := n.Horus.Devices
	if len(d) != 4 || d[0].MIGProfile != "1g.10gb" || d[0].SharingMode != horus.MIG || d[0].Card != d[1].Card || d[0].Card == d[2].Card || d[3].MIGProfile != "" {
		t.Fatalf("expected two instances of a card, one of another and a whole card, found %+v", d)
	}
	takes(t, n)
}

func TestUpstreamsAllocatorPicksWhatIsMoreThanANumberOfOneKind(t *testing.T) {
	const gpu, mig = "gpu.nvidia.com", "mig.nvidia.com"
	both := settings
	both.DeviceClasses = []string{gpu, mig}
	ask := func(class, expression string) resourceapi.DeviceRequest {
		r := resourceapi.DeviceRequest{Name: class, Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class, Count: 1}}
		if expression != "" {
			r.Exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
		}
		return r
	}
	all := ask(gpu, "")
	all.Exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
	either := resourceapi.DeviceRequest{Name: "either", FirstAvailable: []resourceapi.DeviceSubRequest{{Name: "large", DeviceClassName: gpu}, {Name: "small", DeviceClassName: mig}}}
	cards := resourceapi.DeviceRequest{Name: "cards", FirstAvailable: []resourceapi.DeviceSubRequest{{Name: "fast", DeviceClassName: "nic"}}}
	tied := []resourceapi.DeviceConstraint{{}}
	for _, one := range []struct {
		requests    []resourceapi.DeviceRequest
		constraints []resourceapi.DeviceConstraint
		mixed, all  bool
		gpus        int32 // at least
	}{
		{[]resourceapi.DeviceRequest{ask(gpu, "a"), ask(gpu, "a")}, nil, false, false, 2},
		{[]resourceapi.DeviceRequest{ask(gpu, "a"), ask(gpu, "b")}, nil, true, false, 1},
		{[]resourceapi.DeviceRequest{ask(gpu, ""), ask(mig, "")}, nil, true, false, 1},
		{[]resourceapi.DeviceRequest{ask(gpu, "")}, tied, false, false, 1},
		{[]resourceapi.DeviceRequest{ask(gpu, ""), ask("nic", "")}, tied, false, false, 1},
		{[]resourceapi.DeviceRequest{ask(gpu, ""), ask(gpu, "")}, tied, true, false, 1},
		{[]resourceapi.DeviceRequest{all}, nil, true, true, 1},
		{[]resourceapi.DeviceRequest{either}, nil, true, false, 1},
		{[]resourceapi.DeviceRequest{cards, ask(gpu, "")}, nil, false, false, 1},
	} {
		claims := lookups
		claims.Claim = func(string, string) (*resourceapi.ResourceClaim, error) {
			return &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: one.requests, Constraints: one.constraints}}}, nil
		}
		view, err := JobOf(both, podOf(0, map[string]string{ProfileAnnotation: "light", ShareAnnotation: "anyone"}, "c"), claims)
		if err != nil || view.Backend != DRA || view.Mixed != one.mixed || view.AllOf != one.all || view.Horus.GPUsPerTask != one.gpus || view.Horus.Exclusive != one.mixed {
			t.Errorf("%+v: expected mixed %v, all %v and %d GPUs, found %+v, %v", one.requests, one.mixed, one.all, one.gpus, view, err)
		}
	}
}

func podOf(whole int64, annotations map[string]string, claims ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p", Annotations: annotations}}
	p.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Limits: v1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(whole, resource.DecimalSI)}}}}
	for _, name := range claims {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, v1.PodResourceClaim{Name: name, ResourceClaimName: &name})
	}
	return p
}

var lookups = Lookups{
	Claim: func(_, name string) (*resourceapi.ResourceClaim, error) {
		request := resourceapi.DeviceRequest{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Count: 1}}
		switch name {
		case "part":
			request.Exactly.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("1.5Gi")}}
		case "nic":
			request.Exactly.DeviceClassName = "nic"
		default:
			return nil, errors.New("not found")
		}
		return &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{request}}}}, nil
	},
	Profile: func(_, name string) (Profile, error) {
		if name != "light" {
			return Profile{}, errors.New("not found")
		}
		return ProfileOf(map[string]any{"kind": "inference", "demands": []any{map[string]any{"gpuType": "t4", "gpuUtilPct": 20, "memMiB": 900}}}, nil)
	},
}

func TestWhatAPodSaysBecomesAJob(t *testing.T) {
	whole, err := JobOf(settings, podOf(2, nil), lookups)
	if err != nil || whole.Backend != Whole || whole.Horus.GPUsPerTask != 2 || !whole.Horus.Exclusive || whole.Horus.Tenant != "team" {
		t.Errorf("expected two GPUs for itself, found %+v, %v", whole, err)
	}
	none, err := JobOf(settings, podOf(0, nil, "nic"), lookups)
	if err != nil || none.Backend != NoGPUs {
		t.Errorf("expected no GPUs in a claim for a network card, found %+v, %v", none, err)
	}
	part, err := JobOf(settings, podOf(0, map[string]string{ProfileAnnotation: "light", ShareAnnotation: "anyone", BoundAnnotation: "1.5"}, "part"), lookups)
	if err != nil || part.Backend != DRA || part.Horus.Exclusive || part.Horus.GPUMemRequestMiB != 1536 || part.Horus.SlowdownBound != 1.5 ||
		part.Horus.Share != horus.ShareAnyone || part.Horus.Kind != horus.InferenceJob || part.Horus.Demands[0].Demand.ProfileID == 0 {
		t.Errorf("expected a job that shares, found %+v, %v", part, err)
	}
	quiet, err := JobOf(settings, podOf(0, map[string]string{ProfileAnnotation: "light"}, "part"), lookups)
	if err != nil || !quiet.Horus.Exclusive {
		t.Errorf("a pod that does not consent is alone, found %+v, %v", quiet, err)
	}
}

func TestWrongPodsAreToldWhatIsWrong(t *testing.T) {
	for says, pod := range map[string]*v1.Pod{
		"found both":                   podOf(1, nil, "part"),
		"resource claim gone":          podOf(0, nil, "gone"),
		"profile heavy: not found":     podOf(1, map[string]string{ProfileAnnotation: "heavy"}),
		"never shared":                 podOf(1, map[string]string{ProfileAnnotation: "light", ShareAnnotation: "anyone"}),
		"nothing is known of the job":  podOf(0, map[string]string{ShareAnnotation: "anyone"}, "part"),
		`found "all"`:                  podOf(0, map[string]string{ShareAnnotation: "all"}, "part"),
		`from 1 to 1000, found "NaN"`:  podOf(1, map[string]string{BoundAnnotation: "NaN"}),
		`from 0.5 to 0.999, found "1"`: podOf(1, map[string]string{ConfidenceAnnotation: "1"}),
	} {
		if _, err := JobOf(settings, pod, lookups); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("expected %q, found %v", says, err)
		}
	}
}

func TestInitContainersAndSidecarsCountAsTheKubeletCounts(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	gpus := func(n int64) v1.ResourceRequirements {
		return v1.ResourceRequirements{Limits: v1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(n, resource.DecimalSI)}}
	}
	p := podOf(2, nil)
	p.Spec.InitContainers = []v1.Container{{Resources: gpus(1), RestartPolicy: &always}, {Resources: gpus(4)}}
	if job, err := JobOf(settings, p, lookups); err != nil || job.Horus.GPUsPerTask != 5 {
		t.Errorf("expected the sidecar beside the larger of both, found %d, %v", job.Horus.GPUsPerTask, err)
	}
}

func TestAProfileIsReadOrRefusedByItsField(t *testing.T) {
	demand := map[string]any{"gpuType": "t4", "gpuUtilPct": 20, "memMiB": 900}
	first, err := ProfileOf(map[string]any{"demands": []any{demand}}, nil)
	if err != nil || first.Kind != horus.TrainingJob || first.Demands[0].Demand.MemMiB != 900 {
		t.Fatalf("expected a training job, found %+v, %v", first, err)
	}
	again, _ := ProfileOf(map[string]any{"demands": []any{demand}}, nil)
	other, _ := ProfileOf(map[string]any{"demands": []any{map[string]any{"gpuType": "t4", "gpuUtilPct": 21, "memMiB": 900}}}, nil)
	id := func(p Profile) uint64 { return p.Demands[0].Demand.ProfileID }
	if id(first) != id(again) || id(first) == id(other) {
		t.Error("expected one id for equal specs, and another for another")
	}
	for says, spec := range map[string]any{
		"spec.kind":               map[string]any{"kind": "batch", "demands": []any{demand}},
		"spec.demands: expected":  map[string]any{},
		"spec.demands[0].gpuType": map[string]any{"demands": []any{map[string]any{"gpuUtilPct": 1, "memMiB": 1}}},
		"cannot unmarshal":        map[string]any{"demands": "none"},
		"unsupported type":        map[string]any{"demands": make(chan int)},
	} {
		if _, err := ProfileOf(spec, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("expected %q, found %v", says, err)
		}
	}
}

// dynamicMIG are the slices of a node as NVIDIA's driver 0.5 publishes them with DynamicMIG: the counters of each card in one, its whole
// cards and all partitions that it could make in another.
func dynamicMIG(cards int) []*resourceapi.ResourceSlice {
	slices := []*resourceapi.ResourceSlice{sliceOf("counters", 1), sliceOf("devices", 1)}
	for card := range cards {
		set, uuid := fmt.Sprintf("gpu-%d-counter-set", card), fmt.Sprintf("GPU-gpu-%d", card)
		counters := func(multiprocessors int64, memory string, first, count int) map[string]resourceapi.Counter {
			out := map[string]resourceapi.Counter{
				"multiprocessors": {Value: *resource.NewQuantity(multiprocessors, resource.DecimalSI)}, "memory": {Value: resource.MustParse(memory)},
			}
			for i := range count {
				out[fmt.Sprintf("memory-slice-%d", first+i)] = resourceapi.Counter{Value: resource.MustParse("1")}
			}
			return out
		}
		add := func(name, kind, profile string, taken map[string]resourceapi.Counter) {
			d := deviceOf(name, "NVIDIA H100 80GB HBM3", false)
			d.AllowMultipleAllocations = nil
			d.Attributes["type"] = resourceapi.DeviceAttribute{StringValue: &kind}
			d.Capacity["memory"] = resourceapi.DeviceCapacity{Value: taken["memory"].Value}
			if kind == "mig" { // it has no UUID before it is made
				delete(d.Attributes, "uuid")
				d.Attributes["profile"], d.Attributes["parentUUID"] = resourceapi.DeviceAttribute{StringValue: &profile}, resourceapi.DeviceAttribute{StringValue: &uuid}
			}
			d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: set, Counters: taken}}
			slices[1].Spec.Devices = append(slices[1].Spec.Devices, d)
		}
		whole := counters(132, "80Gi", 0, 8)
		slices[0].Spec.SharedCounters = append(slices[0].Spec.SharedCounters, resourceapi.CounterSet{Name: set, Counters: whole})
		add(fmt.Sprintf("gpu-%d", card), "gpu", "", whole)
		for i := range 7 {
			add(fmt.Sprintf("gpu-%d-mig-1g10gb-19-%d", card, i), "mig", "1g.10gb", counters(16, "9984Mi", i, 1))
			add(fmt.Sprintf("gpu-%d-mig-1g10gbme-20-%d", card, i), "mig", "1g.10gb+me", counters(16, "9984Mi", i, 1))
		}
		for i := range 2 {
			add(fmt.Sprintf("gpu-%d-mig-3g40gb-9-%d", card, 4*i), "mig", "3g.40gb", counters(60, "40448Mi", 4*i, 4))
		}
	}
	return slices
}

func TestWhatPartitionsTakeOfTheirCardIsCounted(t *testing.T) {
	n := NodeOf(settings, nodeWith(0, nil), dynamicMIG(2), known(t))
	if n.Backend != DRA || n.Problem != "" || len(n.Devices) != 2*10 || n.Skipped[UnknownProfile] != 2*7 {
		t.Fatalf("expected a whole card, seven partitions of 1g and two of 3g for each of two cards, found %d devices, %v, %q", len(n.Devices), n.Skipped, n.Problem)
	}
	takes(t, n)
	at := map[string]int{}
	for i, d := range n.Devices {
		at[d.Name] = i
	}
	if d := n.Horus.Devices[at["gpu-1"]]; d.SharingMode != horus.Exclusive || d.MemMiB != 81_920 || d.ID != "GPU-gpu-1" {
		t.Errorf("expected a whole GPU, found %+v", d)
	}
	if d := n.Horus.Devices[at["gpu-0-mig-3g40gb-9-4"]]; d.SharingMode != horus.MIG || d.MIGProfile != "3g.40gb" || d.MemMiB != 40_448 {
		t.Errorf("expected an instance, found %+v", d)
	}
	for _, one := range []struct{ held, fit, misfit []string }{
		{nil, []string{"gpu-0", "gpu-1", "gpu-0-mig-1g10gb-19-0", "gpu-1-mig-3g40gb-9-4"}, nil},
		{[]string{"gpu-0"}, []string{"gpu-1", "gpu-1-mig-1g10gb-19-0"}, []string{"gpu-0-mig-1g10gb-19-6", "gpu-0-mig-3g40gb-9-0"}},
		{[]string{"gpu-0-mig-1g10gb-19-1"}, []string{"gpu-1", "gpu-0-mig-1g10gb-19-0", "gpu-0-mig-3g40gb-9-4"}, []string{"gpu-0", "gpu-0-mig-3g40gb-9-0"}},
		{[]string{"gpu-0-mig-3g40gb-9-0", "gpu-0-mig-3g40gb-9-4"}, []string{"gpu-1"}, []string{"gpu-0", "gpu-0-mig-1g10gb-19-3"}}, // no slice of memory is left
	} {
		room, cut := n.Left(func(i int) bool { return slices.Contains(one.held, n.Devices[i].Name) })
		for _, name := range one.fit {
			if !room[at[name]] {
				t.Errorf("beside %v: expected room for %s, found none", one.held, name)
			}
		}
		for _, name := range one.misfit {
			if room[at[name]] {
				t.Errorf("beside %v: expected no room for %s, found some", one.held, name)
			}
		}
		if used := cut[at["gpu-0-mig-1g10gb-19-6"]]; used != (len(one.held) > 0) || cut[at["gpu-1-mig-1g10gb-19-6"]] {
			t.Errorf("beside %v: expected partitions of gpu-0 alone to be on a card in use, found %v", one.held, used)
		}
	}
	late := NodeOf(settings, nodeWith(0, nil), dynamicMIG(1)[1:], known(t))
	if room, _ := late.Left(func(int) bool { return false }); slices.Contains(room, true) {
		t.Error("expected no room before the slice with the counters is there")
	}
}

// A driver may list a card beside the instances into which an administrator cut it: https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/719.
// A card for virtual machines is listed beside itself.
func TestACardIsCountedOnce(t *testing.T) {
	of := func(name, kind, profile, parent string) resourceapi.Device {
		d := deviceOf(name, "NVIDIA H100 80GB HBM3", false)
		d.Attributes["type"], d.Attributes["profile"], d.Attributes["parentUUID"] = resourceapi.DeviceAttribute{StringValue: &kind}, resourceapi.DeviceAttribute{StringValue: &profile}, resourceapi.DeviceAttribute{StringValue: &parent}
		if kind != "mig" {
			delete(d.Attributes, "parentUUID")
		}
		return d
	}
	n := NodeOf(settings, nodeWith(0, nil), []*resourceapi.ResourceSlice{sliceOf("a", 1,
		of("gpu-0", "gpu", "", ""), of("gpu-0-mig-1g10gb-19-0", "mig", "1g.10gb", "GPU-gpu-0"), of("gpu-1", "gpu", "", ""), of("gpu-vfio-1", "vfio", "", ""))}, known(t))
	if len(n.Devices) != 2 || n.Devices[0].Name != "gpu-0-mig-1g10gb-19-0" || n.Devices[1].Name != "gpu-1" {
		t.Errorf("expected the instance and the card that is not cut, found %+v", n.Devices)
	}
}

func TestDevicesThatAreLeftOutAreCounted(t *testing.T) {
	hami := nodeWith(20, nil)
	hami.Annotations = map[string]string{HAMiRegisterAnnotation: "GPU-1,10,46068,100,NVIDIA L40S,0,true:GPU-2,10,46068,100,NVIDIA L40S,0,false:"}
	if n := NodeOf(withHAMi, hami, nil, known(t)); len(n.Devices) != 1 || n.Skipped[Unhealthy] != 1 {
		t.Errorf("expected a healthy GPU and one that is not, found %+v", n)
	}
	none := NodeOf(settings, &v1.Node{}, nil, known(t))
	if len(none.Skipped) != 0 || none.Problem != "" {
		t.Errorf("expected nothing said of a node without GPUs, found %+v", none)
	}
}

func TestWhichGPUsLieCloseIsToldByTheirPCIeRootAndNUMANode(t *testing.T) {
	card := func(name, root string, numa ...int64) resourceapi.Device {
		d := deviceOf(name, "NVIDIA H100 80GB HBM3", false)
		if root != "" {
			d.Attributes["resource.kubernetes.io/pcieRoot"] = resourceapi.DeviceAttribute{StringValue: &root}
		}
		if len(numa) == 1 {
			d.Attributes["resource.kubernetes.io/numaNode"] = resourceapi.DeviceAttribute{IntValue: &numa[0]}
		} else if len(numa) > 1 { // with DRAListTypeAttributes
			d.Attributes["resource.kubernetes.io/numaNode"] = resourceapi.DeviceAttribute{IntValues: numa}
		}
		return d
	}
	part := func(name, parent string) resourceapi.Device {
		d, kind, profile := card(name, ""), "mig", "1g.10gb"
		delete(d.Attributes, "uuid")
		d.Attributes["type"], d.Attributes["profile"], d.Attributes["parentUUID"] = resourceapi.DeviceAttribute{StringValue: &kind}, resourceapi.DeviceAttribute{StringValue: &profile}, resourceapi.DeviceAttribute{StringValue: &parent}
		d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: parent}}
		return d
	}
	for _, one := range []struct {
		says     string
		devices  []resourceapi.Device
		switches []int32
		sockets  []int32
	}{
		{"both", []resourceapi.Device{card("a", "pci0000:07", 0), card("b", "pci0000:07", 0), card("c", "pci0000:48", 1)}, []int32{1, 1, 2}, []int32{0, 0, 1}},
		{"lists", []resourceapi.Device{card("a", "pci0000:07", 0, 1), card("b", "pci0000:48", 1, 0)}, []int32{1, 2}, []int32{0, 1}},
		{"not of every GPU", []resourceapi.Device{card("a", "pci0000:07", 1), card("b", "")}, []int32{0, 0}, []int32{0, 0}},
		{"NUMA alone", []resourceapi.Device{card("a", "", 1), card("b", "", 0)}, []int32{0, 0}, []int32{1, 0}},
		{"a root on two NUMA nodes", []resourceapi.Device{card("a", "pci0000:07", 1), card("b", "pci0000:07", 0)}, []int32{1, 1}, []int32{1, 1}},
		{"no number of a NUMA node", []resourceapi.Device{card("a", "", -1), card("b", "", 0)}, []int32{0, 0}, []int32{0, 0}},
		{"a partition is on its card", []resourceapi.Device{card("a", "pci0000:07", 0), card("b", "pci0000:48", 1), part("b-mig", "GPU-b")}, []int32{1, 2, 2}, []int32{0, 1, 1}},
	} {
		n := NodeOf(settings, nodeWith(0, nil), []*resourceapi.ResourceSlice{sliceOf("a", 1, one.devices...)}, known(t))
		var switches, sockets []int32
		for _, d := range n.Horus.Devices {
			switches, sockets = append(switches, d.PCIeSwitch), append(sockets, d.Socket)
		}
		if !slices.Equal(switches, one.switches) || !slices.Equal(sockets, one.sockets) {
			t.Errorf("%s: expected switches %v and sockets %v, found %v and %v", one.says, one.switches, one.sockets, switches, sockets)
		}
		takes(t, n)
	}
}

// takes says whether the library takes a node.
func takes(t *testing.T, n Node) {
	t.Helper()
	catalogue, err := horus.DefaultCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := horus.NewCluster(catalogue)
	if err != nil {
		t.Fatal(err)
	}
	if n.Horus.ID = 1; cluster.AddNode(n.Horus) != nil {
		t.Errorf("expected a node that the library takes, found %v", cluster.AddNode(n.Horus))
	}
}

// NVIDIA's driver with --consumable-shares=N, =memory and =unlimited.
func TestSharesAreTheMostTenantsOfADevice(t *testing.T) {
	of := func(text string) *resource.Quantity { q := resource.MustParse(text); return &q }
	capacity := func(value, least, otherwise string) resourceapi.DeviceCapacity {
		return resourceapi.DeviceCapacity{Value: *of(value), RequestPolicy: &resourceapi.CapacityRequestPolicy{
			Default: of(otherwise), ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: of(least), Max: of(value), Step: of(least)},
		}}
	}
	for _, one := range []struct {
		capacities map[resourceapi.QualifiedName]resourceapi.DeviceCapacity
		want       int32
	}{
		{map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": capacity("80Gi", "0", "0"), "shares": capacity("8", "1", "1")}, 8},
		{map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": capacity("80Gi", "0", "0"), "shares": capacity("1000", "1", "1")}, 256}, // the library's most
		{map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": capacity("80Gi", "1Mi", "80Gi")}, 0},                                    // the placer's own limit
		{map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": capacity("80Gi", "0", "0")}, 0},
	} {
		device := deviceOf("gpu-0", "NVIDIA H100 80GB HBM3", true)
		device.Capacity = one.capacities
		n := NodeOf(settings, nodeWith(0, nil), []*resourceapi.ResourceSlice{sliceOf("a", 1, device)}, known(t))
		if len(n.Horus.Devices) != 1 || n.Horus.Devices[0].MaxTenants != one.want {
			t.Errorf("%v: expected %d tenants at most, found %+v", one.capacities, one.want, n.Horus.Devices)
		}
		takes(t, n)
	}
}
