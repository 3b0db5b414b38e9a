// SPDX-License-Identifier: Apache-2.0

// Package advise tells what people guess when they write a pod: how much GPU memory it needs, on which GPU types of the cluster it
// fits at all, and its largest batch. It reads a JobProfile, the pod and the cluster's GPU types, and asks no cluster: cmd/horus-advise
// calls it at admission, and a recommender of Kubeflow Trainer, or any other program, may call it where it makes the pod.
//
//	profile, err := advise.ProfileOf(jobProfile.Object["spec"], jobProfile.Object["status"])
//	cluster := advise.Cluster{Types: advise.TypesOf(advise.Settings{}, nodes, slices)}
//	advice, err := advise.For(profile, &pod, cluster)
package advise

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

// Profile is what a JobProfile says.
type Profile = objects.Profile

// ProfileOf reads the spec of a JobProfile and its status, nil where there is none: any values that encode to their JSON.
func ProfileOf(spec, status any) (Profile, error) { return objects.ProfileOf(spec, status) }

// Cluster is what the pod may run on.
type Cluster struct {
	Settings Settings
	Types    []NodeType
}

// Advice for a pod, or for a resource claim. The zero value of a field: it cannot be told.
type Advice struct {
	// Of the catalogue, those of the cluster on which the job fits and that the pod allows, sorted. The rest is about these.
	GPUTypes      []string `json:"gpuTypes"`
	Evidence      Evidence `json:"evidence,omitempty"`
	MemRequestMiB int64    `json:"memRequestMiB,omitempty"` // of a GPU: the largest bound
	MemLimitMiB   int64    `json:"memLimitMiB,omitempty"`   // the same where all bounds are stated or measured: what enforces it ends jobs
	LargestBatch  int64    `json:"largestBatch,omitempty"`  // of whole GPUs, samples per GPU and step: the least of the types

	// Node labels of GPU types on which the job does not fit. None where the pod itself says which nodes it wants.
	Unfit []Label `json:"-"`
}

// Label of nodes.
type Label struct{ Key, Value string }

// Evidence is what the weakest of the bounds rests on.
type Evidence string

// Evidence, the best first.
const (
	Measured  Evidence = "measured"
	Stated    Evidence = "stated"
	Predicted Evidence = "predicted"
	Outside   Evidence = "outside" // predicted for a job unlike those that the predictor knows
)

var bestFirst = []Evidence{Measured, Stated, Predicted, Outside}

var catalogue = sync.OnceValues(horus.DefaultCatalogue)

// find the catalogue's entry of a GPU type by its name or an alias.
func find(name string) (horus.GPU, error) {
	known, err := catalogue()
	if err != nil {
		return horus.GPU{}, err
	}
	at, err := known.Find(name)
	if err != nil {
		return horus.GPU{}, err
	}
	return known.At(at)
}

// For advises on a pod; nil stands for a resource claim, of which only the profile is known. Advice without GPU types: the pod asks
// for no GPUs, or the job fits on none of the cluster's types, or these are not known; nothing should be filled in then.
// Errors: a GPU type of the profile that nobody knows.
func For(profile Profile, pod *v1.Pod, cluster Cluster) (Advice, error) {
	demands := map[string]int{} // positions by the catalogue's names
	for i, d := range profile.Demands {
		gpu, err := find(d.GPUType)
		if err != nil {
			return Advice{}, fmt.Errorf("spec.demands[%d].gpuType: %w", i, err)
		}
		demands[gpu.Name] = i
	}
	var advice Advice
	var unfit []Label
	var bounds, batches []int64
	fit, weakest := map[Label]bool{}, 0 // labels of nodes where it fits
	allowed := allows(pod)
	for _, t := range cluster.Types {
		if !asksFor(pod, cluster.Settings, t.Means) || !allowed(t.Labels) {
			continue
		}
		label, labelled := t.label()
		at, listed := demands[t.GPUType]
		if !listed || !fits(profile.Demands[at].Demand, t) {
			if labelled {
				unfit = append(unfit, label)
			}
			continue
		}
		fit[label] = true
		batch := profile.LargestBatch[at] // it was told for all of the GPU's memory
		if t.Means != Whole || (pod != nil && SharesByKAI(cluster.Settings, pod)) {
			batch = 0
		}
		weakest = max(weakest, slices.Index(bestFirst, evidence(profile.Memory[at])))
		bounds, batches = append(bounds, bound(profile.Demands[at].Demand)), append(batches, batch)
		advice.GPUTypes = append(advice.GPUTypes, t.GPUType)
	}
	slices.Sort(advice.GPUTypes)
	advice.GPUTypes = slices.Compact(advice.GPUTypes)
	if len(bounds) > 0 {
		advice.Evidence = bestFirst[weakest]
	}
	if len(bounds) > 0 && !slices.Contains(bounds, 0) { // else one is unknown
		advice.MemRequestMiB = slices.Max(bounds)
	}
	if len(batches) > 0 && !slices.Contains(batches, 0) {
		advice.LargestBatch = slices.Min(batches)
	}
	if advice.Evidence == Measured || advice.Evidence == Stated {
		advice.MemLimitMiB = advice.MemRequestMiB
	}
	if len(advice.GPUTypes) > 0 && pod != nil && !choosesNodes(pod) {
		advice.Unfit = slices.DeleteFunc(unfit, func(l Label) bool { return fit[l] })
		slices.SortFunc(advice.Unfit, func(a, b Label) int { return strings.Compare(a.Key+"="+a.Value, b.Key+"="+b.Value) })
		advice.Unfit = slices.Compact(advice.Unfit)
	}
	return advice, nil
}

// bound of a demand's memory; 0 = unknown.
func bound(d horus.Demand) int64 {
	if d.MemMiBUpper >= horus.MemMiBUnbounded {
		return 0
	}
	return objects.BoundOf(d)
}

func fits(d horus.Demand, t NodeType) bool {
	return d.Flags&horus.TooLarge == 0 && max(bound(d), d.MemMiB) <= t.MemMiB
}

func evidence(flags horus.DemandFlags) Evidence {
	switch {
	case flags&(horus.Outside|horus.Uncalibrated) != 0:
		return Outside
	case flags&horus.Predicted != 0:
		return Predicted
	case flags&horus.Measured != 0:
		return Measured
	}
	return Stated
}

// Settings say what a GPU is in this cluster. Fields that are left out: gpu.nvidia.com, its class and mig.nvidia.com, nvidia.com/gpu.
type Settings = objects.Settings

// Means by which pods get the GPUs of a node. Memory is asked for with Claims and HAMi alone.
type Means = objects.Backend

// Means.
const (
	Whole  = objects.Whole // an extended resource
	Claims = objects.DRA   // resource claims
	HAMi   = objects.HAMi  // HAMi's device plugin and scheduler, which hold a pod to the memory that it asks for
)

// NodeType is what nodes have in common: GPUs of one type, by the same labels.
type NodeType struct {
	GPUType      string // the catalogue's name, such as "a100-40gb"
	MemMiB       int64  // of a GPU; of MIG instances the largest
	Means        Means
	CountsMemory bool              // of Claims: every device tells its memory, so that a claim may ask for it
	Labels       map[string]string // those of a node that tell its GPU type
}

var typeLabels = append(slices.Clone(objects.TypeLabels), v1.LabelInstanceTypeStable)

// label is the most exact one.
func (t NodeType) label() (Label, bool) {
	for _, key := range objects.TypeLabels {
		if value := t.Labels[key]; value != "" {
			return Label{key, value}, true
		}
	}
	return Label{}, false
}

// TypesOf nodes and their slices, each once. Nodes whose GPUs are of no known type are left out, and so never called unfit.
func TypesOf(settings Settings, nodes []*v1.Node, all []*resourceapi.ResourceSlice) []NodeType {
	settings = settings.OrDefault()
	settings.HAMi = true
	byNode := map[string][]*resourceapi.ResourceSlice{}
	for _, slice := range all {
		if slice.Spec.Driver == settings.Driver && slice.Spec.NodeName != nil {
			byNode[*slice.Spec.NodeName] = append(byNode[*slice.Spec.NodeName], slice)
		}
	}
	found := map[string]NodeType{}
	for _, node := range nodes {
		for _, t := range typesOfNode(settings, node, byNode[node.Name]) {
			found[fmt.Sprintln(t.GPUType, t.MemMiB, t.Means, t.CountsMemory, t.Labels)] = t
		}
	}
	out := make([]NodeType, 0, len(found))
	for _, key := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[key])
	}
	return out
}

// typesOfNode are those of one node, whose slices these are. The memory that HAMi gives away may be more than a card has.
func typesOfNode(settings Settings, node *v1.Node, ofNode []*resourceapi.ResourceSlice) []NodeType {
	labels := maps.Clone(node.Labels)
	maps.DeleteFunc(labels, func(key, value string) bool { return value == "" || !slices.Contains(typeLabels, key) })
	known := objects.NodeOf(settings, node, ofNode, func(name, _ string) error { _, err := find(name); return err })
	if known.Backend == objects.NoGPUs {
		return nil
	}
	largest := map[string]int64{}
	counts := known.Backend != Whole
	for _, device := range known.Horus.Devices {
		gpu, err := find(device.GPUType)
		if err != nil {
			return nil
		}
		memory := device.MemMiB
		if memory == 0 {
			memory, counts = gpu.MemMiB, false
		}
		largest[gpu.Name] = max(largest[gpu.Name], memory)
	}
	var out []NodeType
	for _, name := range slices.Sorted(maps.Keys(largest)) {
		out = append(out, NodeType{GPUType: name, MemMiB: largest[name], Means: known.Backend, CountsMemory: counts, Labels: labels})
	}
	return out
}

// asksFor says whether a pod gets its GPUs by these means. A claim does by itself.
func asksFor(pod *v1.Pod, settings Settings, means Means) bool {
	switch {
	case pod == nil:
		return means == Claims
	case objects.WholeGPUs(settings.OrDefault(), pod) > 0:
		return means == Whole || means == HAMi
	case SharesByKAI(settings, pod):
		return means == Whole
	}
	return len(pod.Spec.ResourceClaims) > 0 && means == Claims
}

// SharesByKAI says whether a pod gets a part of a GPU from KAI's scheduler, which annotations ask for: it consents to share, or
// states how much.
func SharesByKAI(settings Settings, pod *v1.Pod) bool {
	return pod.Spec.SchedulerName == "kai-scheduler" && len(pod.Spec.ResourceClaims) == 0 && objects.WholeGPUs(settings.OrDefault(), pod) == 0 &&
		(pod.Annotations[objects.ShareAnnotation] != "" || StatesPartOfKAI(pod))
}

// StatesPartOfKAI says whether the pod says how large the part is.
func StatesPartOfKAI(pod *v1.Pod) bool {
	for key := range pod.Annotations {
		if key == "gpu-fraction" || key == KAIMemory || strings.HasSuffix(key, ".gpu-memory.request") {
			return true
		}
	}
	return false
}

// KAIMemory is the annotation for MiB of a GPU, which all versions of KAI read.
const KAIMemory = "gpu-memory"

// AsksForGPUs says whether a pod does, as far as itself tells: its claims may be for other devices.
func AsksForGPUs(settings Settings, pod *v1.Pod) bool {
	return asksFor(pod, settings, Whole) || asksFor(pod, settings, Claims)
}

// requiredTerms of node affinity; nil = none.
func requiredTerms(pod *v1.Pod) []v1.NodeSelectorTerm {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	return nil
}

// choosesNodes says whether the pod says itself on which GPUs, or on which very nodes, it wants to run.
func choosesNodes(pod *v1.Pod) bool {
	keys := slices.Collect(maps.Keys(pod.Spec.NodeSelector))
	terms := requiredTerms(pod)
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		for _, one := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			terms = append(terms[:len(terms):len(terms)], one.Preference)
		}
	}
	for _, term := range terms {
		if len(term.MatchFields) > 0 {
			return true
		}
		for _, one := range term.MatchExpressions {
			keys = append(keys, one.Key)
		}
	}
	return pod.Spec.NodeName != "" || slices.ContainsFunc(keys, func(key string) bool {
		return key == objects.HostLabel || strings.HasPrefix(key, "nvidia.com/") || slices.Contains(typeLabels, key)
	}) || pod.Annotations[objects.HAMiUseType]+pod.Annotations[objects.HAMiNoType] != ""
}

// allows says which GPU types the pod's selectors and required affinity leave, by the labels that name types alone: what else
// they say may be so on some node of the type.
func allows(pod *v1.Pod) func(labels map[string]string) bool {
	if pod == nil {
		return func(map[string]string) bool { return true }
	}
	about := &v1.Pod{Spec: v1.PodSpec{NodeSelector: maps.Clone(pod.Spec.NodeSelector)}}
	maps.DeleteFunc(about.Spec.NodeSelector, func(key, _ string) bool { return !slices.Contains(typeLabels, key) })
	var kept []v1.NodeSelectorTerm
	for _, term := range requiredTerms(pod) {
		one := v1.NodeSelectorTerm{MatchExpressions: slices.DeleteFunc(slices.Clone(term.MatchExpressions), func(e v1.NodeSelectorRequirement) bool {
			return !slices.Contains(typeLabels, e.Key)
		})}
		if len(one.MatchExpressions) == 0 { // terms are alternatives
			kept = nil
			break
		}
		kept = append(kept, one)
	}
	if len(kept) > 0 {
		about.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: kept},
		}}
	}
	required := nodeaffinity.GetRequiredNodeAffinity(about)
	return func(labels map[string]string) bool {
		matches, err := required.Match(&v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
		return err != nil || matches
	}
}
