// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"libhorus.org/horus"
)

// Sensitivity is what CPU cores and memory do to jobs of a profile, as `horus profile --sensitivity` measures it: speeds by
// both, per GPU, relative to each other.
type Sensitivity struct {
	HostUs   float64   `json:"hostUs"` // of a step's input at speed 1; 0 = speeds are of the whole job, whose best is the GPU's
	CPUMilli []int64   `json:"cpuMilli"`
	MemMiB   []int64   `json:"memMiB"` // none = memory does not matter
	Speeds   []float64 `json:"speeds"` // row by row of CPUMilli
}

func (s *Sensitivity) check() error {
	ascends := func(name string, axis []int64) error {
		for i, v := range axis {
			if v <= 0 || i > 0 && v <= axis[i-1] {
				return fmt.Errorf("%s[%d]: expected values above 0 that ascend, found %d", name, i, v)
			}
		}
		return nil
	}
	if err := ascends("cpuMilli", s.CPUMilli); err != nil {
		return err
	}
	if err := ascends("memMiB", s.MemMiB); err != nil {
		return err
	}
	cells := len(s.CPUMilli) * max(len(s.MemMiB), 1)
	if cells == 0 || len(s.Speeds) != cells {
		return fmt.Errorf("speeds: expected %d, one for each of cpuMilli x memMiB and at least one, found %d", cells, len(s.Speeds))
	}
	if slices.Max(s.Speeds) <= 0 {
		return fmt.Errorf("speeds: expected one above 0, found none")
	}
	return nil
}

// hostUs is the time in which a pod with so much per GPU makes the input of a step that takes the GPU so long; 0 where less was
// not measured.
func (s *Sensitivity) hostUs(cpuMilli, memMiB int64, stepUs float64) float64 {
	columns := max(len(s.MemMiB), 1)
	speed := 0.0
	for i, cpu := range s.CPUMilli {
		for j := range columns {
			if cpu <= cpuMilli && (len(s.MemMiB) == 0 || memMiB == 0 || s.MemMiB[j] <= memMiB) {
				speed = max(speed, s.Speeds[i*columns+j])
			}
		}
	}
	switch {
	case speed <= 0:
		return 0
	case s.HostUs > 0:
		return s.HostUs / speed
	default:
		return stepUs * slices.Max(s.Speeds) / speed
	}
}

// withHost are the demands of a pod of that profile: the scheduler cannot give it other cores and memory than it asks for, but
// what they make of its step tells who is a good neighbour.
func (p *Profile) withHost(pod *v1.Pod, gpus int32) []horus.TypeDemand {
	if p.Sensitivity == nil || gpus < 1 {
		return p.Demands
	}
	asked, most := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}), resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
	of := func(name v1.ResourceName) int64 {
		quantity, limited := most[name]
		if !limited {
			quantity = asked[name]
		}
		if name == v1.ResourceCPU {
			return quantity.MilliValue() / int64(gpus)
		}
		return quantity.Value() >> 20 / int64(gpus)
	}
	cpu, memory := of(v1.ResourceCPU), of(v1.ResourceMemory)
	if cpu == 0 {
		return p.Demands // it may use whatever is idle
	}
	demands := slices.Clone(p.Demands)
	for i := range demands {
		if d := &demands[i].Demand; d.HostUs == 0 {
			d.HostUs = p.Sensitivity.hostUs(cpu, memory, float64(d.StepTimeUs))
		}
	}
	return demands
}
