// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"libhorus.org/horus"
)

// What a pod says, all optional.
const (
	ProfileAnnotation    = "libhorus.org/profile"             // a JobProfile of its namespace
	ShareAnnotation      = "libhorus.org/share"               // "same-tenant" or "anyone"; none = it never shares
	BoundAnnotation      = "libhorus.org/slowdown-bound"      // such as "1.5"
	ConfidenceAnnotation = "libhorus.org/slowdown-confidence" // 0.5 to 0.999
	DecisionAnnotation   = "libhorus.org/decision"            // written when the pod is bound
)

// Pod is a pod as libhorus takes it.
type Pod struct {
	Backend Backend   // NoGPUs: it asks for none
	Horus   horus.Job // ID is left 0
	// Allocated: its claims have devices already, as another pod's that share them have, or from an attempt that was cut off.
	Allocated bool
	Partly    bool // some of its claims have devices and some have not
	Allows    DeviceRules
	Sharing   horus.SharingMode // that its claims' settings state; 0 = none
	SMCapPct  int32             // of MPS, the most of a GPU's SMs, by these settings or its own environment; 0 = none
	// Mixed: its claims ask for more than a number of one kind of device. Upstream's allocator picks them from the free ones of a node.
	Mixed  bool
	AllOf  bool // one of them asks for all that a node has
	HAMi   HAMiAsk
	Beyond string // what it asks of HAMi that is not placed here, in a sentence; it counts where another placed it
	// Contradiction between its profile and what it asks for, in a sentence; the larger figure counts.
	Contradiction string
	AskedMiB      int64 // memory of each device, whatever its profile says; 0 = none

	profiled   bool         // its demands are a profile's
	capacities []quantities // that its requests state; each device is to have what each of them takes
}

// AsksAs says whether two pods allow the same devices, with the same left of their capacities.
func (p Pod) AsksAs(other Pod) bool {
	return reflect.DeepEqual(p.Allows, other.Allows) && reflect.DeepEqual(p.capacities, other.capacities) && p.HAMi.Key() == other.HAMi.Key()
}

// DeviceRules are what claims say of each of their devices.
type DeviceRules struct {
	Class       string   // DeviceClass, whose selectors hold too
	Selectors   []string // CEL expressions of the request, all of which hold
	Tolerations []resourceapi.DeviceToleration
}

// Expressions of selectors, in CEL.
func Expressions(selectors []resourceapi.DeviceSelector) (out []string) {
	for _, selector := range selectors {
		if selector.CEL != nil {
			out = append(out, selector.CEL.Expression)
		}
	}
	return out
}

// Lookups of other objects; an error says that there is none, or what is wrong with it.
type Lookups struct {
	Claim   func(namespace, name string) (*resourceapi.ResourceClaim, error)
	Profile func(namespace, name string) (Profile, error)
	Pod     func(namespace, name string) *v1.Pod // as we were told of it last; nil = none
}

// JobOf reads a pod. The error is of the pod's own objects, in a sentence for its owner.
func JobOf(settings Settings, pod *v1.Pod, lookups Lookups) (Pod, error) {
	out := Pod{Horus: horus.Job{Name: pod.Namespace + "/" + pod.Name, Tenant: pod.Namespace, Exclusive: true}}
	out.Horus.Priority = corev1helpers.PodPriority(pod)
	whole := WholeGPUs(settings, pod)
	devices, err := out.claims(settings, pod, lookups)
	if err != nil {
		return Pod{Horus: out.Horus}, err
	}
	shared := asksHAMi(pod, whole > 0)
	switch {
	case (whole > 0 || shared) && devices > 0:
		return out, fmt.Errorf("expected GPUs by %s or by resource claims, found both", settings.Resource)
	case shared && settings.HAMi:
		out.Backend = HAMi
	case whole > 0 || shared:
		out.Backend = Whole
	case devices > 0:
		out.Backend = DRA
	default:
		return out, nil
	}
	if out.Horus.GPUsPerTask = int32(min(whole+devices, mostDevices+1)); out.Mixed { // more fit nowhere
		out.Horus.GPUsPerTask = 1 // at least
	}
	out.reserve(out.AskedMiB)
	out.Horus.Demands = Unknown(out.AskedMiB)
	if shared && !settings.HAMi {
		return out, errors.New("it asks for GPUs in HAMi's words, and HAMi is off here: leave them out, or switch it on with gpus.hami.enabled")
	}
	if shared {
		if err := out.hami(settings, pod); err != nil {
			return out, err
		}
	}
	err = out.annotations(settings, pod, lookups)
	out.Horus.Exclusive = out.Horus.Exclusive || out.Mixed
	return out, err
}

// Unknown is the demand of a job of which no more is known than the memory that it asks for: all of a GPU of any type.
func Unknown(memMiB int64) []horus.TypeDemand {
	return []horus.TypeDemand{{Demand: horus.Demand{Flags: horus.Given, GPUUtilPct: 100, MemMiB: memMiB}}}
}

// WholeGPUs of a pod, counted as the kubelet does. Requests of extended resources are their limits.
func WholeGPUs(settings Settings, pod *v1.Pod) int64 {
	quantity := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{ExcludeOverhead: true})[settings.Resource]
	return max(quantity.Value(), 0)
}

func isSidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// ClaimNames of a pod, without those that nobody has made yet.
func ClaimNames(pod *v1.Pod) (out []string) {
	for i := range pod.Spec.ResourceClaims {
		if name, _, _ := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); name != nil {
			out = append(out, *name)
		}
	}
	return out
}

// NamesClaim says whether a claim is the pod's.
func NamesClaim(pod *v1.Pod, claim *resourceapi.ResourceClaim) bool {
	return pod.Namespace == claim.Namespace && slices.ContainsFunc(pod.Spec.ResourceClaims, func(entry v1.PodResourceClaim) bool {
		name, _, _ := resourceclaim.Name(pod, &entry)
		return name != nil && *name == claim.Name
	})
}

// claims reads what claims ask of our devices, and counts these.
func (out *Pod) claims(settings Settings, pod *v1.Pod, lookups Lookups) (devices int64, err error) {
	for _, entry := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &entry)
		if err != nil || name == nil {
			return 0, fmt.Errorf("resource claim %s: not made from its template yet", entry.Name)
		}
		claim, err := lookups.Claim(pod.Namespace, *name)
		if err != nil {
			return 0, fmt.Errorf("resource claim %s: %w", *name, err)
		}
		now := claim.Status.Allocation != nil
		if asked := out.claim(settings, claim); asked > 0 {
			out.Partly = out.Partly || (devices > 0 && out.Allocated != now)
			out.Allocated = out.Allocated || now
			devices += asked
		}
	}
	if out.Sharing == horus.MPS {
		out.SMCapPct = lower(out.SMCapPct, ownCap(pod))
	}
	return devices, nil
}

// claim adds one. The rules are one set for all devices: the library chooses among those that the whole job may have.
func (out *Pod) claim(settings Settings, claim *resourceapi.ResourceClaim) (devices int64) {
	for _, r := range claim.Spec.Devices.Requests {
		if r.Exactly == nil {
			if slices.ContainsFunc(r.FirstAvailable, func(sub resourceapi.DeviceSubRequest) bool {
				return slices.Contains(settings.DeviceClasses, sub.DeviceClassName)
			}) {
				devices, out.Mixed = devices+1, true
			}
			continue
		}
		if !slices.Contains(settings.DeviceClasses, r.Exactly.DeviceClassName) || ptr.Deref(r.Exactly.AdminAccess, false) {
			continue
		}
		if r.Exactly.AllocationMode == resourceapi.DeviceAllocationModeAll {
			out.Mixed, out.AllOf = true, true
		}
		devices += max(r.Exactly.Count, 1)
		capacity := ptr.Deref(r.Exactly.Capacity, resourceapi.CapacityRequirements{}).Requests
		if memory, ok := capacity[attributeMemory]; ok {
			out.AskedMiB = max(out.AskedMiB, (memory.Value()+mib-1)/mib)
		}
		rules := DeviceRules{r.Exactly.DeviceClassName, Expressions(r.Exactly.Selectors), r.Exactly.Tolerations}
		if len(out.capacities) == 0 {
			out.Allows = rules
		}
		out.Mixed = out.Mixed || !reflect.DeepEqual(rules, out.Allows)
		out.capacities = append(out.capacities, capacity)
	}
	out.Mixed = out.Mixed || (len(claim.Spec.Devices.Constraints) > 0 && devices > 1)
	for _, one := range claim.Spec.Devices.Config {
		out.share(settings, one.Opaque)
	}
	for _, one := range ptr.Deref(claim.Status.Allocation, resourceapi.AllocationResult{}).Devices.Config { // the class's, then the claim's once more
		out.share(settings, one.Opaque)
	}
	return devices
}

// gpuConfig is what NVIDIA's driver reads of a claim's or a class's configuration, of MIG devices too.
type gpuConfig struct {
	Sharing struct {
		Strategy string `json:"strategy"`
		MPS      struct {
			SMPct  int32              `json:"defaultActiveThreadPercentage"`
			Memory *resource.Quantity `json:"defaultPinnedDeviceMemoryLimit"`
		} `json:"mpsConfig"`
	} `json:"sharing"`
}

func (out *Pod) share(settings Settings, stated *resourceapi.OpaqueDeviceConfiguration) {
	var config gpuConfig
	if stated == nil || stated.Driver != settings.Driver || json.Unmarshal(stated.Parameters.Raw, &config) != nil {
		return // the driver refuses what it cannot read
	}
	switch config.Sharing.Strategy {
	case "TimeSlicing":
		out.Sharing = horus.TimeSlice
	case "MPS":
		out.Sharing = horus.MPS
		out.SMCapPct = lower(out.SMCapPct, config.Sharing.MPS.SMPct)
		if limit := config.Sharing.MPS.Memory; limit != nil {
			out.AskedMiB = max(out.AskedMiB, limit.Value()/mib) // of each of its pods
		}
	}
}

// lower of two caps; of MPS a client's own may only lower that of its server.
func lower(one, other int32) int32 {
	if other < 1 || other > 99 || (one > 0 && one < other) {
		return one
	}
	return other
}

// ownCap is the most that any of the pod's containers may use of a GPU's SMs, where all state it; 0 = none.
func ownCap(pod *v1.Pod) int32 {
	var most int32
	for i := range pod.Spec.Containers {
		at := slices.IndexFunc(pod.Spec.Containers[i].Env, func(v v1.EnvVar) bool { return v.Name == "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE" })
		if at < 0 {
			return 0
		}
		stated, err := strconv.Atoi(pod.Spec.Containers[i].Env[at].Value)
		if err != nil || stated < 1 {
			return 0
		}
		most = max(most, int32(min(stated, 100)))
	}
	return most
}

func (out *Pod) annotations(settings Settings, pod *v1.Pod, lookups Lookups) error {
	job := &out.Horus
	if name := pod.Annotations[ProfileAnnotation]; name != "" {
		profile, err := lookups.Profile(pod.Namespace, name)
		if err != nil {
			return fmt.Errorf("annotation %s: profile %s: %w", ProfileAnnotation, name, err)
		}
		job.Kind, job.Demands, out.profiled = profile.Kind, profile.withHost(pod, job.GPUsPerTask), true
		out.reserve(out.AskedMiB)
	}
	var err error
	if job.SlowdownBound, err = number(pod, BoundAnnotation, 1, 1000); err != nil {
		return err
	}
	if job.SlowdownConfidence, err = number(pod, ConfidenceAnnotation, 0.5, 0.999); err != nil {
		return err
	}
	switch share := pod.Annotations[ShareAnnotation]; share {
	case "":
		return nil
	case "same-tenant":
		job.Share = horus.ShareSameTenant
	case "anyone":
		job.Share = horus.ShareAnyone
	default:
		return fmt.Errorf("annotation %s: expected same-tenant or anyone, found %q", ShareAnnotation, share)
	}
	switch {
	case out.Backend == HAMi && !out.HAMi.Part():
		return fmt.Errorf("annotation %s: all of a GPU is never shared: ask for a part of its memory (%s)", ShareAnnotation, HAMiMem)
	case pod.Annotations[ProfileAnnotation] == "" && out.Backend != HAMi:
		return fmt.Errorf("annotation %s: expected %s beside it, since nothing is known of the job, found none", ShareAnnotation, ProfileAnnotation)
	case out.Backend == Whole:
		return fmt.Errorf("annotation %s: whole GPUs (%s) are never shared: ask for them by a resource claim", ShareAnnotation, settings.Resource)
	}
	job.Exclusive = false
	return nil
}

func number(pod *v1.Pod, annotation string, least, most float64) (float32, error) {
	given := strings.TrimSpace(pod.Annotations[annotation])
	if given == "" {
		return 0, nil
	}
	value, err := strconv.ParseFloat(given, 32)
	if err != nil || !(value >= least && value <= most) {
		return 0, fmt.Errorf("annotation %s: expected a number from %g to %g, found %q", annotation, least, most, given)
	}
	return float32(value), nil
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
