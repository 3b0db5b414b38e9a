// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"libhorus.org/kubernetes/internal/objects"
)

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
