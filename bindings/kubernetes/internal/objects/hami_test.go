// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"libhorus.org/horus"
)

var withHAMi = func() Settings { s := settings; s.HAMi = true; return s }()

func hamiNodeOf(t *testing.T, register string, labels map[string]string) Node {
	t.Helper()
	n := nodeWith(20, labels)
	n.Annotations = map[string]string{HAMiRegisterAnnotation: register}
	return NodeOf(withHAMi, n, nil, known(t))
}

// The strings are as HAMi's EncodeNodeDevices (up to 2.4, later with index and mode) and MarshalNodeDevices write them.
func TestHAMisGPUsAreReadInEachOfItsForms(t *testing.T) {
	const json = `[{"id":"GPU-1","index":1,"count":10,"devmem":46068,"devcore":100,"type":"NVIDIA-NVIDIA L40S","numa":1,"mode":"hami-core","health":true},` +
		`{"id":"GPU-2","count":4,"devmem":46068,"devcore":100,"type":"NVIDIA L40S","mode":"hami-core","health":true},` +
		`{"id":"GPU-3","index":3,"count":10,"devmem":46068,"devcore":100,"type":"NVIDIA L40S","mode":"hami-core"}]` // HAMi leaves false out
	for name, register := range map[string]string{
		"JSON":         json,
		"seven fields": "GPU-1,10,46068,100,NVIDIA-NVIDIA L40S,0,true:GPU-2,4,46068,100,NVIDIA-NVIDIA L40S,1,true:GPU-3,4,46068,100,NVIDIA-NVIDIA L40S,1,false:",
		"nine fields":  "GPU-1,10,46068,100,NVIDIA NVIDIA L40S,0,true,0,hami-core:GPU-2,4,46068,100,NVIDIA-NVIDIA L40S,1,true,1,hami-core:",
	} {
		n := hamiNodeOf(t, register, nil)
		if n.Backend != HAMi || len(n.Devices) != 2 || n.Devices[0] != (Device{Name: "GPU-1", UUID: "GPU-1", MemMiB: 46_068}) {
			t.Errorf("%s: expected the two healthy devices, found %+v", name, n)
			continue
		}
		first, second := n.Horus.Devices[0], n.Horus.Devices[1]
		if first.MaxTenants != 10 || second.MaxTenants != 4 || first.MemMiB != 46_068 || first.SharingMode != horus.TimeSlice || first.ID != "GPU-1" {
			t.Errorf("%s: expected 10 and 4 tenants of 46068 MiB, found %+v and %+v", name, first, second)
		}
	}
	labelled := hamiNodeOf(t, "GPU-1,10,46068,100,NVIDIA-Mystery,0,true:", map[string]string{"nvidia.com/gpu.product": "NVIDIA-L40S"})
	if labelled.Backend != HAMi || labelled.Horus.Devices[0].GPUType != "NVIDIA-L40S" {
		t.Errorf("expected the label's type where HAMi's is unknown, found %+v", labelled)
	}
}

func TestWhatHAMiRegistersWronglyIsNamed(t *testing.T) {
	for says, register := range map[string]string{
		`device 1: expected UUID,count,MiB,cores,type,numa,health[,index,mode], found "GPU-2,10"`: "GPU-1,10,46068,100,NVIDIA L40S,0,true:GPU-2,10:",
		`device 0: count: expected a whole number, found "ten"`:                                   "GPU-1,ten,46068,100,NVIDIA L40S,0,true:",
		`device 0: devmem: expected a whole number of MiB, found "45Gi"`:                          "GPU-1,10,45Gi,100,NVIDIA L40S,0,true:",
		`device 0: health: expected true or false, found "good"`:                                  "GPU-1,10,46068,100,NVIDIA L40S,0,good:",
		`device GPU-1: count: expected 1 or more, found 0`:                                        "GPU-1,0,46068,100,NVIDIA L40S,0,true:",
		`device GPU-1: devmem: expected 1 MiB or more, found 0`:                                   `[{"id":"GPU-1","count":1,"type":"NVIDIA L40S","health":true}]`,
		`device 0: id: expected a UUID, found ""`:                                                 `[{"count":1,"devmem":1,"type":"NVIDIA L40S","health":true}]`,
		`device GPU-1: mode: expected hami-core, found "mig"`:                                     `[{"id":"GPU-1","count":7,"devmem":46068,"type":"NVIDIA L40S","mode":"mig","health":true}]`,
		`device GPU-1: type: `:                       "GPU-1,10,46068,100,NVIDIA-Z9,0,true:",
		`expected a JSON list of devices`:            `[{"id":`,
		`expected a healthy device, found none of 0`: `[]`,
		`expected a healthy device, found none of 1`: "GPU-1,10,46068,100,NVIDIA L40S,0,false:",
	} {
		n := hamiNodeOf(t, register, nil)
		if n.Backend != NoGPUs || len(n.Devices) != 0 || !strings.Contains(n.Problem, "node n1: annotation "+HAMiRegisterAnnotation+": "+says) {
			t.Errorf("%s: expected %q, found %+v", register, says, n.Problem)
		}
	}
	off := nodeWith(20, map[string]string{"nvidia.com/gpu.product": "NVIDIA-L40S"})
	off.Annotations = map[string]string{HAMiRegisterAnnotation: "GPU-1,10,46068,100,NVIDIA L40S,0,true:"}
	if n := NodeOf(settings, off, nil, known(t)); n.Backend != NoGPUs || !strings.Contains(n.Problem, "gpus.hami.enabled") {
		t.Errorf("its parts of GPUs are not whole ones: expected no GPUs while HAMi is off, found %+v", n)
	}
}

// limits such as "gpu=1 gpumem=3000".
func limits(t *testing.T, text string) v1.ResourceRequirements {
	t.Helper()
	out := v1.ResourceList{}
	for _, one := range strings.Fields(text) {
		name, value, _ := strings.Cut(one, "=")
		out[v1.ResourceName("nvidia.com/"+name)] = resource.MustParse(value)
	}
	return v1.ResourceRequirements{Limits: out}
}

func hamiPodOf(t *testing.T, annotations map[string]string, containers ...string) *v1.Pod {
	t.Helper()
	p := podOf(0, annotations)
	p.Spec.Containers = nil
	for i, text := range containers {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: fmt.Sprintf("c%d", i), Resources: limits(t, text)})
	}
	return p
}

func TestWhatAPodAsksOfHAMiBecomesAJob(t *testing.T) {
	for _, one := range []struct {
		asks      string
		backend   Backend
		alone     bool
		mem, core int64
	}{
		{"gpu=1", Whole, true, 0, 0},
		{"gpu=1 gpumem=3000", HAMi, false, 3000, 0},
		{"gpu=1 gpumem=3000 gpucores=30", HAMi, false, 3000, 300},
		{"gpu=1 gpumem=3000 gpucores=100", HAMi, true, 3000, 0}, // HAMi's way to ask for a GPU alone
		{"gpu=1 gpucores=30", HAMi, true, 0, 0},                 // all memory
		{"gpu=1 gpumem-percentage=100", HAMi, true, 0, 0},
		{"gpu=1 gpumem-percentage=25", HAMi, false, 10_000, 0},
	} {
		view, err := JobOf(withHAMi, hamiPodOf(t, nil, one.asks), lookups)
		job := view.Sized(40_000).Horus
		if err != nil || view.Beyond != "" || view.Backend != one.backend || job.Exclusive != one.alone || job.GPUMemRequestMiB != one.mem || int64(job.GPUMilli) != one.core {
			t.Errorf("%s: expected backend %d, alone %v, %d MiB and %d milli, found %d, %+v, %v", one.asks, one.backend, one.alone, one.mem, one.core, view.Backend, job, err)
		}
		if !job.Exclusive && (job.Share != horus.ShareAnyone || job.Demands[0].Demand.MemMiB != one.mem) {
			t.Errorf("%s: expected to share with anyone by its memory, found %+v", one.asks, job)
		}
	}
	narrow, err := JobOf(withHAMi, hamiPodOf(t, map[string]string{ShareAnnotation: "same-tenant"}, "gpu=1 gpumem=3000 gpucores=30"), lookups)
	if err != nil || narrow.Horus.Exclusive || narrow.Horus.Share != horus.ShareSameTenant || narrow.Horus.Demands[0].Demand.GPUUtilPct != 30 {
		t.Errorf("expected to share with its namespace, busy for 30 %% at most, found %+v, %v", narrow, err)
	}
	profiled, err := JobOf(withHAMi, hamiPodOf(t, map[string]string{ProfileAnnotation: "light"}, "gpu=1 gpumem-percentage=50"), lookups)
	if err != nil || profiled.Sized(40_000).Horus.Demands[0].GPUType != "t4" || profiled.Sized(40_000).Horus.GPUMemRequestMiB != 20_000 {
		t.Errorf("expected the profile's demand with half of the memory, found %+v, %v", profiled.Sized(40_000), err)
	}
}

func TestWhatIsNotDoneOfHAMiIsRefusedByName(t *testing.T) {
	privileged := hamiPodOf(t, nil, "gpu=1 gpumem=1")
	yes := true
	privileged.Spec.Containers[0].SecurityContext = &v1.SecurityContext{Privileged: &yes}
	part := "gpu=1 gpumem=3000"
	for says, pod := range map[string]*v1.Pod{
		"nvidia.com/numa-bind":                                  hamiPodOf(t, map[string]string{hamiNUMA: "true"}, part),
		`nvidia.com/vgpu-mode: expected hami-core, found "mig"`: hamiPodOf(t, map[string]string{hamiMode: "mig"}, part),
		`hami.io/gpu-scheduler-policy: "topology-aware"`:        hamiPodOf(t, map[string]string{hamiGPUs: "topology-aware"}, "gpu=2"),
		`hami.io/node-scheduler-policy: "spread"`:               hamiPodOf(t, map[string]string{hamiNodes: "spread"}, part),
		"nvidia.com/priority":                                   hamiPodOf(t, nil, part+" priority=1"),
		"different parts":                                       hamiPodOf(t, nil, part, "gpu=1 gpumem=4000"),
		"gpucores below 100 of several":                         hamiPodOf(t, nil, "gpu=2 gpumem=3000 gpucores=30"),
		"container c0 is privileged":                            privileged,
	} {
		view, err := JobOf(withHAMi, pod, lookups)
		if err != nil || view.Backend != HAMi || !strings.Contains(view.Beyond, says) {
			t.Errorf("expected %q, found %q, %v", says, view.Beyond, err)
		}
	}
	for says, pod := range map[string]*v1.Pod{
		"found both": hamiPodOf(t, nil, "gpu=1 gpumem=3000 gpumem-percentage=20"),
		"container c0: nvidia.com/gpumem: expected 0 to 16777216 MiB, found 3221225472": hamiPodOf(t, nil, "gpu=1 gpumem=3Gi"),
		"nvidia.com/gpumem-percentage: expected 0 to 100, found 101":                    hamiPodOf(t, nil, "gpu=1 gpumem-percentage=101"),
		"nvidia.com/gpucores: expected 0 to 100, found 200":                             hamiPodOf(t, nil, "gpu=1 gpucores=200"),
		"container c1: expected nvidia.com/gpu beside":                                  hamiPodOf(t, nil, "gpu=1", "gpumem=3000"),
		"all of a GPU is never shared":                                                  hamiPodOf(t, map[string]string{ShareAnnotation: "anyone"}, "gpu=1 gpucores=50"),
	} {
		if view, err := JobOf(withHAMi, pod, lookups); err == nil || view.Backend != HAMi || !strings.Contains(err.Error(), says) {
			t.Errorf("expected %q, found %+v, %v", says, view, err)
		}
	}
	if view, err := JobOf(settings, hamiPodOf(t, nil, part), lookups); err == nil || view.Backend != Whole || !strings.Contains(err.Error(), "gpus.hami.enabled") {
		t.Errorf("while HAMi is off, expected that said and its GPU counted where it has one, found %+v, %v", view, err)
	}
	if view, err := JobOf(withHAMi, hamiPodOf(t, map[string]string{HAMiNoType: "T4"}, ""), lookups); err != nil || view.Backend != NoGPUs {
		t.Errorf("expected nothing asked by an annotation without GPUs, found %+v, %v", view, err)
	}
}

func TestTypesAndUUIDsOfAPodsAnnotationsAreThoseOfItsGPUs(t *testing.T) {
	raw := hamiNodeOf(t, "GPU-1,10,46068,100,NVIDIA-NVIDIA L40S,0,true:", nil).Raw[0]
	for _, one := range []struct {
		annotation, value string
		want              bool
	}{
		{HAMiUseType, "A100,l40s", true}, {HAMiUseType, "A100", false}, {HAMiUseType, " , ", false},
		{HAMiNoType, "A100, L40", false}, {HAMiNoType, "A100", true}, {HAMiNoType, ",", true},
		{hamiUseUUID, "GPU-2, GPU-1", true}, {hamiUseUUID, "GPU-11", false}, {hamiNoUUID, "GPU-1", false}, {hamiNoUUID, "GPU-11", true},
	} {
		view, err := JobOf(withHAMi, hamiPodOf(t, map[string]string{one.annotation: one.value}, "gpu=1"), lookups)
		if err != nil || view.Backend != HAMi || view.HAMi.Allows(raw) != one.want {
			t.Errorf("%s=%s: expected %v, found %v, %v", one.annotation, one.value, one.want, !one.want, err)
		}
	}
}

func TestABoundPodSaysWhatHAMisDevicePluginReads(t *testing.T) {
	devices := []Device{{UUID: "GPU-1", MemMiB: 40_000}, {UUID: "GPU-2", MemMiB: 20_000}}
	now := time.Unix(1_700_000_000, 0)
	list := func(t *testing.T, p *v1.Pod) string {
		t.Helper()
		view, err := JobOf(withHAMi, p, lookups)
		if err != nil {
			t.Fatal(err)
		}
		return HAMiBinding(withHAMi, p, view, "n1", devices[:view.Horus.GPUsPerTask], now)[hamiToAllocate]
	}
	withInit := hamiPodOf(t, nil, "gpu=1 gpumem=3000")
	withInit.Spec.InitContainers = []v1.Container{{}, {Resources: limits(t, "gpu=1 gpumem=3000")}}
	for want, p := range map[string]*v1.Pod{
		"GPU-1,NVIDIA,3000,30:;":                            hamiPodOf(t, nil, "gpu=1 gpumem=3000 gpucores=30"),
		"GPU-1,NVIDIA,20000,0:GPU-2,NVIDIA,10000,0:;":       hamiPodOf(t, nil, "gpu=2 gpumem-percentage=50"),
		"GPU-1,NVIDIA,40000,100:;;GPU-2,NVIDIA,20000,100:;": hamiPodOf(t, nil, "gpu=1", "", "gpu=1"),
		";GPU-1,NVIDIA,3000,0:;GPU-1,NVIDIA,3000,0:;":       withInit,
		"GPU-1,NVIDIA,40000,30:;":                           hamiPodOf(t, nil, "gpu=1 gpucores=30"),
	} {
		if found := list(t, p); found != want {
			t.Errorf("expected %s, found %s", want, found)
		}
	}
	view, _ := JobOf(withHAMi, hamiPodOf(t, nil, "gpu=1"), lookups)
	all := HAMiBinding(withHAMi, hamiPodOf(t, nil, "gpu=1"), view, "n1", devices[:1], now)
	want := map[string]string{
		"hami.io/vgpu-node": "n1", "hami.io/vgpu-time": "1700000000", "hami.io/bind-time": "1700000000", "hami.io/bind-phase": "allocating",
		"hami.io/vgpu-devices-to-allocate": "GPU-1,NVIDIA,40000,100:;", "hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,40000,100:;",
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("expected %v, found %v", want, all)
	}
}

// held is what a list gives a pod on a node with GPU-1 and GPU-2, of 40,000 MiB each.
func held(p *v1.Pod, list string) (out, doubt string, err error) {
	p.Spec.NodeName = "n1"
	devices, held, doubt, err := HeldByHAMi(withHAMi, p, list, []Device{{UUID: "GPU-1", MemMiB: 40_000}, {UUID: "GPU-2", MemMiB: 40_000}})
	for _, device := range devices {
		out += fmt.Sprintf("%s %d %d;", device.UUID, held[device.UUID].MemMiB, held[device.UUID].CoresPercent)
	}
	return out, doubt, err
}

func TestOfAListAndAPodsLimitsWhatNobodyCanChangeCounts(t *testing.T) {
	for _, one := range []struct {
		asks, list, want string
		doubted          bool
	}{
		{"gpu=1 gpumem=30000 gpucores=20", "GPU-1,NVIDIA,30000,20:;", "GPU-1 30000 20;", false},
		{"gpu=1 gpumem=30000 gpucores=20", "GPU-1,NVIDIA,1,0:;", "GPU-1 30000 20;", true},
		{"gpu=1 gpumem=30000 gpucores=20", "GPU-1,NVIDIA,40000,100:;", "GPU-1 30000 20;", true},
		{"gpu=1 gpumem-percentage=25", "GPU-2,NVIDIA,10000,0:;", "GPU-2 10000 0;", false},
		{"gpu=1 gpumem-percentage=25", "GPU-2,NVIDIA,40000,0:;", "GPU-2 10000 0;", true},
		{"gpu=1", "GPU-1,NVIDIA,5000,30:;", "GPU-1 5000 30;", false}, // HAMi's defaults may be less than all
		{"gpu=1", "GPU-1,NVIDIA,2000000,9000:;", "GPU-1 40000 100;", true},
		{"gpu=1 gpumem=50000", "GPU-1,NVIDIA,50000,0:;", "GPU-1 40000 0;", true},
		{"gpu=2 gpumem=100", "GPU-1,NVIDIA,100,0:GPU-2,NVIDIA,39000,0:;", "GPU-1 100 0;GPU-2 100 0;", true},
	} {
		found, doubt, err := held(hamiPodOf(t, nil, one.asks), one.list)
		if err != nil || found != one.want || (doubt != "") != one.doubted {
			t.Errorf("%s, %s: expected %s, doubted %v, found %s, %q, %v", one.asks, one.list, one.want, one.doubted, found, doubt, err)
		}
	}
}

func TestWhatABoundPodHoldsIsReadFromHAMisAnnotations(t *testing.T) {
	two := hamiPodOf(t, nil, "gpu=1", "gpu=1")
	withInit := hamiPodOf(t, nil, "gpu=1", "gpu=1")
	withInit.Spec.InitContainers = []v1.Container{{Resources: limits(t, "gpu=1")}}
	for _, one := range []struct {
		pod        *v1.Pod
		list, want string
	}{
		{two, "GPU-1,NVIDIA,3000,30:;GPU-2,NVIDIA,4000,0:;", "GPU-1 3000 30;GPU-2 4000 0;"},
		{hamiPodOf(t, nil, "gpu=1", ""), "GPU-1,NVIDIA,3000,30:;;", "GPU-1 3000 30;"},
		{two, "GPU-1,NVIDIA,3000,30:;GPU-1,NVIDIA,4000,0:;", "GPU-1 7000 30;"},                         // both on one
		{withInit, "GPU-1,NVIDIA,9000,0:;GPU-1,NVIDIA,3000,0:;GPU-1,NVIDIA,4000,0:;", "GPU-1 9000 0;"}, // one after the other
		{withInit, "GPU-1,NVIDIA,3000,0:;GPU-1,NVIDIA,4000,0:;", "GPU-1 7000 0;"},                      // as versions wrote that left init containers out
		{hamiPodOf(t, nil, "gpu=1"), "GPU-1[0-1],NVIDIA,3000,30:;", "GPU-1 3000 30;"},
	} {
		if found, doubt, err := held(one.pod, one.list); err != nil || found != one.want || doubt != "" {
			t.Errorf("%s: expected %s, found %s, %q, %v", one.list, one.want, found, doubt, err)
		}
	}
	for says, list := range map[string]string{
		`expected UUID,type,MiB,cores of each device, found "GPU-1"`:       "GPU-1:;",
		`expected UUID,type,MiB,cores of each device, found ",NVIDIA,1,1"`: ",NVIDIA,1,1:;",
		`device GPU-1: expected a number of MiB, found "-3"`:               "GPU-1,NVIDIA,-3,0:;",
		`device GPU-1: expected a percentage of cores, found "all"`:        "GPU-1,NVIDIA,3,all:;",
		`container 0: expected the 1 GPUs that it asks for, found 0`:       ";;",
		`container 0: expected the 1 GPUs that it asks for, found 2`:       "GPU-1,NVIDIA,1,0:GPU-2,NVIDIA,1,0:;GPU-2,NVIDIA,1,0:;",
		`container 1: expected the 1 GPUs that it asks for, found 0`:       "GPU-1,NVIDIA,1,0:;",
		`container 2: expected the 0 GPUs that it asks for, found 1`:       "GPU-1,NVIDIA,1,0:;GPU-2,NVIDIA,1,0:;GPU-2,NVIDIA,1,0:;",
		`device GPU-9: expected a healthy GPU of node n1`:                  "GPU-9,NVIDIA,1,0:;GPU-1,NVIDIA,1,0:;",
	} {
		if _, _, err := held(two, list); err == nil || !strings.Contains(err.Error(), "annotation "+HAMiAllocated+": "+says) {
			t.Errorf("%s: expected %q, found %v", list, says, err)
		}
	}
	plain, _ := JobOf(withHAMi, hamiPodOf(t, nil, "gpu=1"), lookups)
	device := []Device{{UUID: "GPU-1", MemMiB: 40_000}}
	part := plain.Holding(device, map[string]HAMiHeld{"GPU-1": {5_000, 30}}).Horus // HAMi's defaults may be less than all
	whole := plain.Holding(device, map[string]HAMiHeld{"GPU-1": {40_000, 0}}).Horus
	if part.Exclusive || part.GPUMemRequestMiB != 5_000 || part.GPUMilli != 300 || part.Share != horus.ShareAnyone || !whole.Exclusive {
		t.Errorf("expected what it was given, found %+v and %+v", part, whole)
	}
}
