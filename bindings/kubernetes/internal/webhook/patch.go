// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"libhorus.org/kubernetes/advise"
	"libhorus.org/kubernetes/internal/objects"
)

// What is written on objects, and read from them.
const (
	AdviceAnnotation = "libhorus.org/advice"        // what was told and filled in, as JSON; "none" = this object is left alone
	BatchAnnotation  = "libhorus.org/largest-batch" // a number, which a container may read by the downward API
	declined         = "none"
	hamiScheduler    = "hami-scheduler" // HAMi's own webhook names it in the pods that are HAMi's
)

type note struct {
	Profile string `json:"profile"`
	advise.Advice
	FilledIn []string `json:"filledIn,omitempty"`
}

// operation of a JSON patch: only ever an addition of what is not there.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch of one object, as the API server sent it: a typed copy may lack fields that this program does not know.
type patch struct {
	object     any
	operations []operation
}

// set puts a value where there is none, with the objects above it. It says whether it did.
func (p *patch) set(value any, path ...string) bool {
	at, pointer := p.object, ""
	for i, name := range path {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		var below any
		switch parent := at.(type) {
		case map[string]any:
			if below = parent[name]; below == nil {
				for _, inner := range slices.Backward(path[i+1:]) {
					value = map[string]any{inner: value}
				}
				parent[name] = value
				p.operations = append(p.operations, operation{"add", pointer, value})
				return true
			}
		case []any:
			index, err := strconv.Atoi(name)
			if err != nil || index < 0 || index >= len(parent) {
				return false
			}
			below = parent[index]
		}
		at = below
	}
	return false
}

// pod fills in what a pod leaves out.
func (p *patch) pod(pod *v1.Pod, advice advise.Advice, settings advise.Settings) (filledIn []string) {
	if len(advice.Unfit) > 0 && p.affinity(pod, advice.Unfit) {
		filledIn = append(filledIn, "nodeAffinity")
	}
	if index := hamiContainer(pod, settings); index >= 0 && advice.MemLimitMiB > 0 {
		quantity := strconv.FormatInt(advice.MemLimitMiB, 10)
		at := []string{"spec", "containers", strconv.Itoa(index), "resources"}
		if p.set(quantity, append(at[:4:4], "limits", string(objects.HAMiMem))...) {
			p.set(quantity, append(at[:4:4], "requests", string(objects.HAMiMem))...)
			filledIn = append(filledIn, string(objects.HAMiMem))
		}
	}
	annotate := func(name string, value int64) {
		if value > 0 && p.set(strconv.FormatInt(value, 10), "metadata", "annotations", name) {
			filledIn = append(filledIn, name)
		}
	}
	if advise.SharesByKAI(settings, pod) && !advise.StatesPartOfKAI(pod) {
		annotate(advise.KAIMemory, advice.MemLimitMiB)
	}
	annotate(BatchAnnotation, advice.LargestBatch)
	return filledIn
}

// affinity keeps a pod off nodes with GPUs on which it does not fit, and off no others.
func (p *patch) affinity(pod *v1.Pod, unfit []advise.Label) bool {
	values := map[string][]string{}
	for _, label := range unfit {
		values[label.Key] = append(values[label.Key], label.Value)
	}
	var off []any
	for _, key := range objects.TypeLabels {
		if len(values[key]) > 0 {
			off = append(off, map[string]any{"key": key, "operator": string(v1.NodeSelectorOpNotIn), "values": values[key]})
		}
	}
	at := []string{"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"}
	if p.set([]any{map[string]any{"matchExpressions": off}}, at...) {
		return true
	}
	changed := false
	for i, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchExpressions) == 0 {
			continue // it matches no node, and would with an expression
		}
		for _, one := range off {
			path := fmt.Sprintf("/%s/%d/matchExpressions/-", strings.Join(at, "/"), i)
			p.operations, changed = append(p.operations, operation{"add", path, one}), true
		}
	}
	return changed
}

// hamiContainer is the only container of a pod of HAMi's that asks for GPUs, where it says nothing of memory; -1 otherwise. HAMi
// holds the container to what is filled in.
func hamiContainer(pod *v1.Pod, settings advise.Settings) int {
	found := -1
	resource := settings.OrDefault().Resource
	for i := range pod.Spec.Containers {
		asked := pod.Spec.Containers[i].Resources
		if _, asks := asked.Limits[resource]; !asks {
			continue
		}
		stated := slices.ContainsFunc([]v1.ResourceName{objects.HAMiMem, objects.HAMiPercent}, func(name v1.ResourceName) bool {
			_, limit := asked.Limits[name]
			_, request := asked.Requests[name]
			return limit || request
		})
		if stated || found >= 0 {
			return -1
		}
		found = i
	}
	if pod.Spec.SchedulerName != hamiScheduler || len(pod.Spec.InitContainers) > 0 {
		return -1
	}
	return found
}

// claim fills in the memory of each request of GPUs that asks for none. `at` is where the claim's spec is.
func (p *patch) claim(spec *resourceapi.ResourceClaimSpec, advice advise.Advice, settings advise.Settings, at ...string) (filledIn []string) {
	for i, request := range spec.Devices.Requests {
		exactly := request.Exactly
		if exactly == nil || !slices.Contains(settings.OrDefault().DeviceClasses, exactly.DeviceClassName) || advice.MemRequestMiB == 0 ||
			ptr.Deref(exactly.AdminAccess, false) || exactly.AllocationMode == resourceapi.DeviceAllocationModeAll {
			continue
		}
		asks := false
		for name := range ptr.Deref(exactly.Capacity, resourceapi.CapacityRequirements{}).Requests {
			asks = asks || name[strings.LastIndex(string(name), "/")+1:] == "memory"
		}
		path := append(slices.Clone(at), "devices", "requests", strconv.Itoa(i), "exactly", "capacity", "requests", "memory")
		if !asks && p.set(fmt.Sprintf("%dMi", advice.MemRequestMiB), path...) {
			filledIn = append(filledIn, request.Name+": memory")
		}
	}
	return filledIn
}

// note writes what was filled in, beside what an earlier call for the same object was.
func (p *patch) note(told note, annotations map[string]string) error {
	var before note
	text, noted := annotations[AdviceAnnotation]
	if noted && json.Unmarshal([]byte(text), &before) == nil {
		told.FilledIn = append(before.FilledIn, told.FilledIn...)
	}
	value, err := json.Marshal(told)
	if err != nil {
		return err
	}
	if !p.set(string(value), "metadata", "annotations", AdviceAnnotation) {
		p.operations = append(p.operations, operation{"add", "/metadata/annotations/" + strings.ReplaceAll(AdviceAnnotation, "/", "~1"), string(value)})
	}
	return nil
}
