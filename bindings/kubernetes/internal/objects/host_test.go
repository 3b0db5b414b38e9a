// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func hungry() map[string]any {
	return map[string]any{
		"demands":     []any{map[string]any{"gpuType": "t4", "gpuUtilPct": 80, "memMiB": 900, "stepTimeUs": 100_000}},
		"sensitivity": map[string]any{"cpuMilli": []any{1000, 4000}, "memMiB": []any{1024, 8192}, "speeds": []any{0.25, 0.5, 0.5, 1}},
	}
}

func podWith(cpu, memory string) *v1.Pod {
	requests := v1.ResourceList{}
	for name, quantity := range map[v1.ResourceName]string{v1.ResourceCPU: cpu, v1.ResourceMemory: memory} {
		if quantity != "" {
			requests[name] = resource.MustParse(quantity)
		}
	}
	return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: requests}}}}}
}

func TestTheHostsTimeFollowsFromWhatAPodHolds(t *testing.T) {
	profile, err := ProfileOf(hungry(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cpu, memory string
		gpus        int32
		us          float64
	}{
		{"4", "8Gi", 1, 100_000}, {"1", "8Gi", 1, 200_000}, {"1500m", "2Gi", 1, 400_000}, {"4", "", 1, 100_000},
		{"8", "16Gi", 2, 100_000}, {"500m", "8Gi", 1, 0}, {"", "8Gi", 1, 0},
	} {
		if got := profile.withHost(podWith(c.cpu, c.memory), c.gpus)[0].Demand.HostUs; got != c.us {
			t.Errorf("%s cores and %s for %d GPUs: expected %g us, found %g", c.cpu, c.memory, c.gpus, c.us, got)
		}
	}
	if profile.Demands[0].Demand.HostUs != 0 {
		t.Error("a pod changed its profile")
	}
}

func TestSpeedsOfAPipelineAloneGiveItsOwnTime(t *testing.T) {
	spec := hungry()
	spec["sensitivity"].(map[string]any)["hostUs"] = 50_000
	profile, err := ProfileOf(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := profile.withHost(podWith("1", "8Gi"), 1)[0].Demand.HostUs; got != 100_000 {
		t.Errorf("expected 50 ms at speed 1 to be 100 ms at speed 0.5, found %g us", got)
	}
}

func TestWrongSensitivitiesAreNamed(t *testing.T) {
	for key, c := range map[string]struct {
		value any
		says  string
	}{
		"cpuMilli": {[]any{4000, 1000}, "spec.sensitivity.cpuMilli[1]: expected values above 0 that ascend, found 1000"},
		"memMiB":   {[]any{0, 8192}, "spec.sensitivity.memMiB[0]"},
		"speeds":   {[]any{1, 2}, "spec.sensitivity.speeds: expected 4, one for each of cpuMilli x memMiB and at least one, found 2"},
	} {
		spec := hungry()
		spec["sensitivity"].(map[string]any)[key] = c.value
		if _, err := ProfileOf(spec, nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: expected %q, found %v", key, c.says, err)
		}
	}
}
