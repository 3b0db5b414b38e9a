// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"libhorus.org/horus"
)

type quantities = map[resourceapi.QualifiedName]resource.Quantity

// FitsBeside says whether a device has what each of the pod's requests takes of each of its capacities (memory, shares and whatever
// else a driver counts), beside what is used of them.
func (p Pod) FitsBeside(device *resourceapi.Device, used map[resourceapi.QualifiedName]*resource.Quantity) bool {
	return !slices.ContainsFunc(p.capacities, func(asked quantities) bool {
		for name := range asked {
			if _, has := device.Capacity[name]; !has {
				return true
			}
		}
		for name, capacity := range device.Capacity {
			sum := taken(asked, name, capacity)
			if violates(sum, capacity.RequestPolicy) {
				return true
			}
			if before := used[name]; before != nil {
				sum.Add(*before)
			}
			if sum.Cmp(capacity.Value) > 0 {
				return true
			}
		}
		return false
	})
}

// CountedByMemory says whether the library counts what the pod takes of a device to the MiB, so that nobody else need: the device goes
// to one claim, or has a memory alone of which each takes what it asks for.
func (p Pod) CountedByMemory(device *resourceapi.Device) bool {
	if !ptr.Deref(device.AllowMultipleAllocations, false) {
		return true
	}
	memory, counted := device.Capacity[attributeMemory]
	if !counted || len(device.Capacity) > 1 || p.AskedMiB == 0 {
		return false
	}
	policy := memory.RequestPolicy
	return policy == nil || (policy.ValidRange != nil && (policy.ValidRange.Step == nil || policy.ValidRange.Step.CmpInt64(mib) <= 0) &&
		(policy.ValidRange.Min == nil || policy.ValidRange.Min.CmpInt64(mib) <= 0))
}

// mostAllocations of a device that takes several, by what each takes at least of capacities such as shares; 0 = they limit no number.
func mostAllocations(device *resourceapi.Device) int32 {
	most := int64(0)
	for name, capacity := range device.Capacity {
		least := taken(quantities{name: {}}, name, capacity)
		if fit := capacity.Value.Value() / max(least.Value(), 1); name != attributeMemory && least.Value() > 0 && (most == 0 || fit < most) {
			most = fit
		}
	}
	return int32(min(most, mostTenants))
}

// taken of a capacity, as DRA rounds what is asked for: https://kep.k8s.io/5075.
func taken(asked quantities, name resourceapi.QualifiedName, capacity resourceapi.DeviceCapacity) resource.Quantity {
	request, stated := asked[name]
	policy := capacity.RequestPolicy
	switch {
	case !stated && policy != nil && policy.Default != nil:
		return policy.Default.DeepCopy()
	case !stated:
		return capacity.Value.DeepCopy()
	case policy == nil:
	case policy.ValidRange != nil && policy.ValidRange.Min != nil:
		least, step := policy.ValidRange.Min, policy.ValidRange.Step
		if request.Cmp(*least) <= 0 {
			return least.DeepCopy()
		}
		if over := request.Value() - least.Value(); step != nil && step.Value() > 0 && over%step.Value() != 0 {
			request.Add(*resource.NewQuantity(step.Value()-over%step.Value(), request.Format))
		}
	default:
		for _, valid := range policy.ValidValues {
			if request.Cmp(valid) <= 0 {
				return valid.DeepCopy()
			}
		}
	}
	return request.DeepCopy()
}

func violates(value resource.Quantity, policy *resourceapi.CapacityRequestPolicy) bool {
	if policy == nil || (policy.Default != nil && value.Cmp(*policy.Default) == 0) {
		return false
	}
	if policy.ValidRange != nil {
		return policy.ValidRange.Max != nil && value.Cmp(*policy.ValidRange.Max) > 0
	}
	return len(policy.ValidValues) > 0 && !slices.ContainsFunc(policy.ValidValues, func(valid resource.Quantity) bool { return value.Cmp(valid) == 0 })
}

// reserve sets the memory that counts of each of its devices: what is asked for, or what its profile says where that is more. Then no
// request is stated to the library, which takes the bound of the demand on each GPU type.
func (p *Pod) reserve(askedMiB int64) {
	p.AskedMiB, p.Horus.GPUMemRequestMiB, p.Contradiction = askedMiB, askedMiB, ""
	if !p.profiled || askedMiB == 0 {
		return
	}
	demands := slices.Clone(p.Horus.Demands)
	for i := range demands {
		d := &demands[i].Demand
		needs := BoundOf(*d)
		if d.MemMiBUpper = max(needs, askedMiB); needs > askedMiB {
			p.Contradiction = fmt.Sprintf("its profile says %d MiB on %s, and it asks for %d MiB of each GPU: the larger figure counts",
				needs, demands[i].GPUType, askedMiB)
		}
	}
	if p.Contradiction != "" {
		p.Horus.GPUMemRequestMiB, p.Horus.Demands = 0, demands
	}
}

// BoundOf a demand's memory; its estimate where there is none.
func BoundOf(d horus.Demand) int64 {
	if d.MemMiBUpper == 0 || d.MemMiBUpper >= horus.MemMiBUnbounded {
		return d.MemMiB
	}
	return d.MemMiBUpper
}

// ReservedMiB is the memory that a job has of each of its devices, at most.
func ReservedMiB(job horus.Job) int64 {
	most := job.GPUMemRequestMiB
	for i := 0; i < len(job.Demands) && job.GPUMemRequestMiB == 0; i++ {
		most = max(most, BoundOf(job.Demands[i].Demand))
	}
	return most
}
