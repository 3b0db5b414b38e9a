// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"maps"
	"math"
	"slices"
)

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

// perPod is what the DCGM exporter may tell of each pod on a device that is shared by replicas.
const perPod = "DCGM_FI_DEV_GPU_UTIL"

// From the default counters of the DCGM exporter, HAMi's monitor, whose ratio is 0 to 100, and horus-slurm exporter.
var sources = []source{
	{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "UUID", 1, func(u *usage) *float64 { return &u.active }},
	{perPod, "UUID", 0.01, func(u *usage) *float64 { return &u.active }},
	{"hami_host_gpu_utilization_ratio", "device_uuid", 0.01, func(u *usage) *float64 { return &u.active }},
	{"horus_gpu_busy_ratio", "UUID", 1, func(u *usage) *float64 { return &u.active }},
	{"DCGM_FI_PROF_DRAM_ACTIVE", "UUID", 1, func(u *usage) *float64 { return &u.dram }},
	{"DCGM_FI_DEV_FB_USED", "UUID", 1, func(u *usage) *float64 { return &u.memMiB }},
	{"horus_gpu_memory_used_mib", "UUID", 1, func(u *usage) *float64 { return &u.memMiB }},
	{"hami_host_gpu_memory_used_bytes", "device_uuid", 1.0 / (1 << 20), func(u *usage) *float64 { return &u.memMiB }},
}

// Usages of devices by ID, and the IDs of the devices that a pod (namespace/name) was seen on, where the exporter tells.
type Usages struct {
	of     map[string]usage
	pods   map[string]map[string]bool
	shares map[string]map[string]float64 // of each device, the share of time in which the kernels of each pod run
}

// NoUsages knows of no device.
func NoUsages() Usages {
	return Usages{map[string]usage{}, map[string]map[string]bool{}, map[string]map[string]float64{}}
}

// ByUUID makes the UUID of a device its ID.
func ByUUID(uuid, _ string) string { return uuid }

// Add what an exporter answered. `id` makes a device's ID of its UUID and its index on the node; "" leaves it out. Rows of MIG
// instances are left out: they repeat the UUID of the card.
func (out Usages) Add(found Families, id func(uuid, index string) string) {
	each := map[string]map[string]float64{}
	for _, source := range sources {
		family := found[source.metric]
		if family == nil {
			continue
		}
		for _, row := range family.GetMetric() {
			device, value := id(labelOf(row, source.label), labelOf(row, "gpu")), valueOf(row)*source.scale
			if device == "" || labelOf(row, "GPU_I_ID") != "" || math.IsNaN(value) || value < 0 {
				continue
			}
			pod := labelOf(row, "pod")
			if pod != "" {
				pod = labelOf(row, "namespace") + "/" + pod
				if out.pods[pod] == nil {
					out.pods[pod] = map[string]bool{}
				}
				out.pods[pod][device] = true
			}
			if pod != "" && source.metric == perPod && labelOf(row, "vgpu") != "" { // a pod with several replicas has as many rows
				if each[device] == nil {
					each[device] = map[string]float64{}
				}
				each[device][pod] = value
				continue
			}
			u, known := out.of[device]
			if !known {
				u = usage{math.NaN(), math.NaN(), math.NaN()}
			}
			if into := source.of(&u); math.IsNaN(*into) {
				*into = value
			}
			out.of[device] = u
		}
	}
	for device, shares := range each {
		out.divide(device, shares)
	}
}

// divide takes in what rows of the pods of a device tell. With --kubernetes-virtual-gpus the DCGM exporter tells of each pod what its
// own processes do from 4.8 on, and before that of each the whole device: then all are the same, and may be more than there is.
func (out Usages) divide(device string, shares map[string]float64) {
	values := slices.Sorted(maps.Values(shares))
	least, most, sum := values[0], values[len(values)-1], 0.0
	for _, value := range values {
		sum += value
	}
	u, known := out.of[device]
	if !known {
		u = usage{math.NaN(), math.NaN(), math.NaN()}
	}
	told := !math.IsNaN(u.active)
	alike := most-least <= slack
	switch {
	case len(values) == 1 || (alike && sum > 1+slack):
		if !told {
			u.active = most
		}
	case sum > 1+slack || (alike && (!told || math.Abs(u.active-most) < math.Abs(u.active-sum))):
		// Nobody can say which of the two it is, or it is the device's.
	case !told:
		u.active, out.shares[device] = sum, shares
	case sum > 0:
		for pod := range shares {
			shares[pod] *= u.active / sum // NVML samples processes; DCGM counts the whole
		}
		out.shares[device] = shares
	}
	out.of[device] = u
}
