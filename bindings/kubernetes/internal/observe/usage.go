// SPDX-License-Identifier: Apache-2.0

package observe

import "math"

// usage of a device as its exporter tells it; NaN = it does not.
type usage struct {
	active float64 // share of time in which a kernel runs, 0 to 1
	dram   float64 // share of the memory bandwidth, 0 to 1
	memMiB float64
}

// source is a metric that tells a value of a device, the most exact of a value first.
type source struct {
	metric, label string
	scale         float64
	of            func(*usage) *float64
}

// From the default counters of the DCGM exporter, and HAMi's monitor, whose ratio is 0 to 100.
var sources = []source{
	{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "UUID", 1, func(u *usage) *float64 { return &u.active }},
	{"DCGM_FI_DEV_GPU_UTIL", "UUID", 0.01, func(u *usage) *float64 { return &u.active }},
	{"hami_host_gpu_utilization_ratio", "device_uuid", 0.01, func(u *usage) *float64 { return &u.active }},
	{"DCGM_FI_PROF_DRAM_ACTIVE", "UUID", 1, func(u *usage) *float64 { return &u.dram }},
	{"DCGM_FI_DEV_FB_USED", "UUID", 1, func(u *usage) *float64 { return &u.memMiB }},
	{"hami_host_gpu_memory_used_bytes", "device_uuid", 1.0 / (1 << 20), func(u *usage) *float64 { return &u.memMiB }},
}

// usages of devices by UUID, and the UUIDs of the devices that a pod (namespace/name) was seen on, where the exporter tells.
type usages struct {
	of   map[string]usage
	pods map[string]map[string]bool
}

func noUsages() usages { return usages{map[string]usage{}, map[string]map[string]bool{}} }

// add what an exporter answered. Rows of MIG instances are left out: they repeat the UUID of the card.
func (out usages) add(found families) {
	for _, source := range sources {
		family := found[source.metric]
		if family == nil {
			continue
		}
		for _, row := range family.GetMetric() {
			uuid, value := labelOf(row, source.label), valueOf(row)*source.scale
			if uuid == "" || labelOf(row, "GPU_I_ID") != "" || math.IsNaN(value) || value < 0 {
				continue
			}
			u, known := out.of[uuid]
			if !known {
				u = usage{math.NaN(), math.NaN(), math.NaN()}
			}
			if into := source.of(&u); math.IsNaN(*into) {
				*into = value
			}
			out.of[uuid] = u
			if pod := labelOf(row, "pod"); pod != "" {
				pod = labelOf(row, "namespace") + "/" + pod
				if out.pods[pod] == nil {
					out.pods[pod] = map[string]bool{}
				}
				out.pods[pod][uuid] = true
			}
		}
	}
}
