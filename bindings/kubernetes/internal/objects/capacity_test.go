// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"libhorus.org/horus"
)

func asking(requests ...string) Lookups {
	out := lookups
	out.Claim = func(string, string) (*resourceapi.ResourceClaim, error) {
		exactly := &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Count: 1}
		if len(requests) > 0 {
			exactly.Capacity = &resourceapi.CapacityRequirements{Requests: quantities{}}
		}
		for _, one := range requests {
			name, value, _ := strings.Cut(one, "=")
			exactly.Capacity.Requests[resourceapi.QualifiedName(name)] = resource.MustParse(value)
		}
		return &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "gpu", Exactly: exactly}}}}}, nil
	}
	return out
}

// Shares are as NVIDIA's driver publishes them with --consumable-shares=4, memory as it does with =memory.
func TestADeviceTakesWhatItsCapacitiesHaveLeft(t *testing.T) {
	of := func(text string) *resource.Quantity { q := resource.MustParse(text); return &q }
	device := &resourceapi.Device{Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"shares": {Value: resource.MustParse("4"), RequestPolicy: &resourceapi.CapacityRequestPolicy{Default: of("1"), ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: of("1"), Step: of("1"), Max: of("3")}}},
		"memory": {Value: resource.MustParse("80Gi"), RequestPolicy: &resourceapi.CapacityRequestPolicy{Default: of("0"), ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: of("0"), Step: of("1Gi")}}},
		"lanes":  {Value: resource.MustParse("16"), RequestPolicy: &resourceapi.CapacityRequestPolicy{Default: of("0"), ValidValues: []resource.Quantity{*of("0"), *of("2"), *of("8")}}},
	}}
	for _, one := range []struct {
		used map[string]string
		asks []string
		want bool
	}{
		{nil, nil, true},
		{map[string]string{"shares": "3"}, nil, true},
		{map[string]string{"shares": "4"}, nil, false}, // the default is one
		{map[string]string{"shares": "3"}, []string{"shares=2"}, false},
		{nil, []string{"shares=4"}, false},                                       // beyond the most of a request
		{map[string]string{"memory": "78.5Gi"}, []string{"memory=1.2Gi"}, false}, // rounded up to 2Gi
		{map[string]string{"memory": "78Gi"}, []string{"memory=1.2Gi"}, true},
		{map[string]string{"lanes": "9"}, []string{"lanes=3"}, false}, // 8 of them
		{map[string]string{"lanes": "8"}, []string{"lanes=3"}, true},
		{nil, []string{"lanes=9"}, false}, // not a value that there is
		{nil, []string{"tensors=1"}, false},
		{map[string]string{"shares": "2", "memory": "80Gi"}, []string{"shares=2"}, true},
	} {
		used := map[resourceapi.QualifiedName]*resource.Quantity{}
		for name, value := range one.used {
			used[resourceapi.QualifiedName(name)] = of(value)
		}
		view, err := JobOf(settings, podOf(0, nil, "c"), asking(one.asks...))
		if err != nil || view.FitsBeside(device, used) != one.want {
			t.Errorf("%v beside %v: expected a place %v, found %v, %v", one.asks, one.used, one.want, !one.want, err)
		}
	}
	shared, oneMiB, oneGiB := true, of("1Mi"), of("1Gi")
	memory := func(step *resource.Quantity) map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
		return map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi"),
			RequestPolicy: &resourceapi.CapacityRequestPolicy{ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: step, Step: step}}}}
	}
	for _, one := range []struct {
		device resourceapi.Device
		asks   []string
		want   bool
	}{
		{resourceapi.Device{Capacity: device.Capacity}, nil, true}, // one claim's alone
		{resourceapi.Device{Capacity: device.Capacity, AllowMultipleAllocations: &shared}, []string{"memory=1Gi"}, false},
		{resourceapi.Device{Capacity: memory(oneMiB), AllowMultipleAllocations: &shared}, []string{"memory=1Gi"}, true},
		{resourceapi.Device{Capacity: memory(oneMiB), AllowMultipleAllocations: &shared}, nil, false}, // it gets all of it
		{resourceapi.Device{Capacity: memory(oneGiB), AllowMultipleAllocations: &shared}, []string{"memory=1Gi"}, false},
	} {
		if view, err := JobOf(settings, podOf(0, nil, "c"), asking(one.asks...)); err != nil || view.CountedByMemory(&one.device) != one.want {
			t.Errorf("%v of %+v: expected the library's count to do %v, found %v, %v", one.asks, one.device.Capacity, one.want, !one.want, err)
		}
	}
	plain := &resourceapi.Device{Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"shares": {Value: resource.MustParse("4")}}}
	if view, _ := JobOf(settings, podOf(0, nil, "c"), asking()); view.FitsBeside(plain, map[resourceapi.QualifiedName]*resource.Quantity{"shares": of("1")}) {
		t.Error("without a policy a claim that says nothing takes all: expected no place beside another")
	}
}

func TestOfAProfileAndWhatAPodAsksForTheLargerMemoryCounts(t *testing.T) {
	with := func(demands ...any) func(*Lookups) {
		return func(l *Lookups) {
			l.Profile = func(string, string) (Profile, error) { return ProfileOf(map[string]any{"demands": demands}, nil) }
		}
	}
	on := func(gpu string, mem, upper int64, more map[string]any) map[string]any {
		out := map[string]any{"gpuType": gpu, "gpuUtilPct": 20, "memMiB": mem, "memMiBUpper": upper}
		for key, value := range more {
			out[key] = value
		}
		return out
	}
	for _, one := range []struct {
		profile func(*Lookups)
		asks    []string
		counts  []int64 // on each of its types, by the library
		says    string
	}{
		{with(on("h100-sxm", 60_000, 0, nil)), []string{"memory=1Gi"}, []int64{60_000}, "60000 MiB on h100-sxm, and it asks for 1024 MiB"},
		{with(on("h100-sxm", 900, 1_500, nil)), []string{"memory=1Gi"}, []int64{1_500}, "1500 MiB"},
		{with(on("h100-sxm", 900, 1_024, nil)), []string{"memory=1Gi"}, []int64{1_024}, ""},
		{with(on("h100-sxm", 900, 0, nil), on("t4", 2_000, 0, nil)), []string{"memory=1Gi"}, []int64{1_024, 2_000}, "2000 MiB on t4"},
		{with(on("h100-sxm", 900, 0, nil)), []string{"memory=2Gi"}, []int64{2_048}, ""},
		{with(on("h100-sxm", 900, horus.MemMiBUnbounded, nil)), []string{"memory=1Gi"}, []int64{1_024}, ""}, // what is asked for is the bound
		{with(on("h100-sxm", 9_000, horus.MemMiBUnbounded, nil)), []string{"memory=1Gi"}, []int64{9_000}, "9000 MiB"},
		{with(on("h100-sxm", 9_000, 0, nil)), nil, []int64{9_000}, ""}, // nothing is asked for that could contradict
	} {
		claims := asking(one.asks...)
		one.profile(&claims)
		view, err := JobOf(settings, podOf(0, map[string]string{ProfileAnnotation: "p"}, "c"), claims)
		if err != nil || (one.says == "") != (view.Contradiction == "") || !strings.Contains(view.Contradiction, one.says) {
			t.Errorf("%v: expected %q, found %q, %v", one.asks, one.says, view.Contradiction, err)
		}
		for i, want := range one.counts {
			counts := view.Horus.GPUMemRequestMiB
			if counts == 0 {
				counts = max(view.Horus.Demands[i].Demand.MemMiB, view.Horus.Demands[i].Demand.MemMiBUpper)
			}
			if counts != want {
				t.Errorf("%v: expected %d MiB to count on %s, found %d", one.asks, want, view.Horus.Demands[i].GPUType, counts)
			}
		}
	}
	claims := asking()
	with(on("NVIDIA L40S", 30_000, 0, nil))(&claims)
	pod := hamiPodOf(t, map[string]string{ProfileAnnotation: "p"}, "gpu=1 gpumem=3000")
	if view, err := JobOf(withHAMi, pod, claims); err != nil || view.AskedMiB != 3_000 || view.Horus.GPUMemRequestMiB != 0 || !strings.Contains(view.Contradiction, "30000 MiB") {
		t.Errorf("expected the same of HAMi's parts, found %+v, %v", view, err)
	}
}
