// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	resourcehelper "k8s.io/component-helpers/resource"

	"libhorus.org/horus"
	"libhorus.org/learn"
)

// Group, version and resource of what is known of a kind of job.
const (
	Group            = "libhorus.org"
	Version          = "v1alpha1"
	ProfilesResource = "jobprofiles"
)

var Profiles = schema.GroupVersionResource{Group: Group, Version: Version, Resource: ProfilesResource}

// Profile is what a JobProfile says: the demand of a job on each GPU type that it may run on.
type Profile struct {
	Kind         horus.JobKind
	Demands      []horus.TypeDemand
	Memory       []horus.DemandFlags // what the memory of each of Demands rests on, whatever was observed of the rest
	LargestBatch []int64             // whose memory fits each type of Demands alone, in samples per GPU and step; 0 = unknown
	Sensitivity  *Sensitivity        // to cores and memory; nil = unknown
}

// demandFields: those of horus.Demand have its names, in whatever case. What only a predictor tells stands below `prediction`.
type demandFields struct {
	horus.Demand
	GPUType      string      `json:"gpuType"`
	Measured     bool        `json:"measured"`
	LargestBatch int64       `json:"largestBatch"`
	Prediction   *Prediction `json:"prediction"`
}

// Prediction is what a predictor says beside the values, as horus.Demand has it.
type Prediction struct {
	Outside      bool      `json:"outside,omitempty"`
	Uncalibrated bool      `json:"uncalibrated,omitempty"`
	TooLarge     bool      `json:"tooLarge,omitempty"`
	Distance     float32   `json:"distance,omitempty"`
	Traits       []float32 `json:"traits,omitempty"`
}

func PredictionOf(d horus.Demand) Prediction {
	return Prediction{
		Outside: d.Flags&horus.Outside != 0, Uncalibrated: d.Flags&horus.Uncalibrated != 0, TooLarge: d.Flags&horus.TooLarge != 0,
		Distance: d.Distance, Traits: d.Traits[:],
	}
}

func (p *Prediction) put(d *horus.Demand) error {
	d.Flags, d.Distance = horus.Predicted, p.Distance
	for flag, on := range map[horus.DemandFlags]bool{horus.Outside: p.Outside, horus.Uncalibrated: p.Uncalibrated, horus.TooLarge: p.TooLarge} {
		if on {
			d.Flags |= flag
		}
	}
	if len(p.Traits) > len(d.Traits) {
		return fmt.Errorf("traits: expected %d at most, found %d", len(d.Traits), len(p.Traits))
	}
	copy(d.Traits[:], p.Traits)
	return nil
}

var kinds = map[string]horus.JobKind{
	"": horus.TrainingJob, "training": horus.TrainingJob, "inference": horus.InferenceJob, "best-effort": horus.BestEffortJob,
}

// ProfileOf reads the spec of a JobProfile, and its status: what was observed, which only the observer writes. Jobs of one spec
// share what is observed of them.
func ProfileOf(spec, status any) (Profile, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return Profile{}, fmt.Errorf("spec: %w", err)
	}
	var fields struct {
		Kind        string         `json:"kind"`
		Demands     []demandFields `json:"demands"`
		Sensitivity *Sensitivity   `json:"sensitivity"`
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return Profile{}, fmt.Errorf("spec: %w", err)
	}
	kind, known := kinds[fields.Kind]
	if !known {
		return Profile{}, fmt.Errorf("spec.kind: expected training, inference or best-effort, found %q", fields.Kind)
	}
	if len(fields.Demands) == 0 {
		return Profile{}, fmt.Errorf("spec.demands: expected one for each GPU type that the job may run on, found none")
	}
	hash := fnv.New64a()
	hash.Write(raw)
	id := hash.Sum64() | 1 // 0 would be "none"
	out := Profile{Kind: kind, Sensitivity: fields.Sensitivity}
	if out.Sensitivity != nil {
		if err := out.Sensitivity.check(); err != nil {
			return Profile{}, fmt.Errorf("spec.sensitivity.%w", err)
		}
	}
	for i, d := range fields.Demands {
		if d.GPUType == "" {
			return Profile{}, fmt.Errorf("spec.demands[%d].gpuType: expected a GPU type, found none", i)
		}
		demand := d.Demand
		demand.Flags, demand.ProfileID, demand.Distance, demand.Traits = horus.Given, id, 0, horus.Demand{}.Traits
		if d.Prediction != nil {
			if err := d.Prediction.put(&demand); err != nil {
				return Profile{}, fmt.Errorf("spec.demands[%d].prediction.%w", i, err)
			}
		}
		if d.Measured {
			demand.Flags = horus.Measured
		}
		out.Memory = append(out.Memory, demand.Flags)
		for _, seen := range ObservedOf(status) {
			if seen.GPUType == d.GPUType {
				seen.Put(&demand)
			}
		}
		out.Demands = append(out.Demands, horus.TypeDemand{GPUType: d.GPUType, Demand: demand})
		out.LargestBatch = append(out.LargestBatch, max(d.LargestBatch, 0))
	}
	return out, nil
}

// ObservedOf the status of a JobProfile, which is status.observed; none where it says nothing that can be read.
func ObservedOf(status any) []learn.Observed {
	raw, err := json.Marshal(status)
	if err != nil {
		return nil
	}
	var fields struct {
		Observed []learn.Observed `json:"observed"`
	}
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields.Observed
}

// Sensitivity is what CPU cores and memory do to jobs of a profile, as `horus profile --sensitivity` measures it: speeds by
// both, per GPU, relative to each other.
type Sensitivity struct {
	HostUs   float64   `json:"hostUs"` // of a step's input at speed 1; 0 = speeds are of the whole job, whose best is the GPU's
	CPUMilli []int64   `json:"cpuMilli"`
	MemMiB   []int64   `json:"memMiB"` // none = memory does not matter
	Speeds   []float64 `json:"speeds"` // row by row of CPUMilli
}

func (s *Sensitivity) check() error {
	for of, axis := range [][]int64{s.CPUMilli, s.MemMiB} {
		for i, v := range axis {
			if v <= 0 || i > 0 && v <= axis[i-1] {
				return fmt.Errorf("%s[%d]: expected values above 0 that ascend, found %d", []string{"cpuMilli", "memMiB"}[of], i, v)
			}
		}
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
