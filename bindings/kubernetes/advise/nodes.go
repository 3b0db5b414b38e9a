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
type Settings struct {
	Driver        string          // of the ResourceSlices whose devices are GPUs
	DeviceClasses []string        // whose requests ask for such devices
	Resource      v1.ResourceName // extended resource of whole GPUs
}

func (s Settings) orDefault() objects.Settings {
	out := objects.Settings{Driver: s.Driver, Resource: s.Resource, DeviceClasses: map[string]bool{}, HAMi: true}
	if out.Driver == "" {
		out.Driver = "gpu.nvidia.com"
	}
	if out.Resource == "" {
		out.Resource = "nvidia.com/gpu"
	}
	for _, class := range s.Classes() {
		out.DeviceClasses[class] = true
	}
	return out
}

// Classes of devices that are GPUs.
func (s Settings) Classes() []string {
	if len(s.DeviceClasses) == 0 {
		return []string{"gpu.nvidia.com", "mig.nvidia.com"}
	}
	return s.DeviceClasses
}

// Means by which pods get the GPUs of a node.
type Means int

// Means. Memory is asked for with Claims and HAMi alone.
const (
	Whole  Means = iota // an extended resource
	Claims              // resource claims (DRA)
	HAMi                // HAMi's device plugin and scheduler, which hold a pod to the memory that it asks for
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

func (t NodeType) key() string {
	return fmt.Sprintln(t.GPUType, t.MemMiB, t.Means, t.CountsMemory, t.Labels)
}

// TypesOf nodes and their slices, each once. Nodes whose GPUs are of no known type are left out, and so never called unfit.
func TypesOf(settings Settings, nodes []*v1.Node, all []*resourceapi.ResourceSlice) []NodeType {
	byNode := map[string][]*resourceapi.ResourceSlice{}
	for _, slice := range all {
		if settings.IsOurs(slice) {
			byNode[*slice.Spec.NodeName] = append(byNode[*slice.Spec.NodeName], slice)
		}
	}
	var types []NodeType
	for _, node := range nodes {
		types = append(types, TypesOfNode(settings, node, byNode[node.Name])...)
	}
	return Distinct(types)
}

// IsOurs says whether a slice has GPUs of one node.
func (s Settings) IsOurs(slice *resourceapi.ResourceSlice) bool {
	return slice.Spec.Driver == s.orDefault().Driver && slice.Spec.NodeName != nil
}

// Distinct types, each once.
func Distinct(types []NodeType) []NodeType {
	found := map[string]NodeType{}
	for _, t := range types {
		found[t.key()] = t
	}
	out := make([]NodeType, 0, len(found))
	for _, key := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[key])
	}
	return out
}

// TypesOfNode are those of one node, whose slices these are. The memory that HAMi gives away may be more than a card has.
func TypesOfNode(settings Settings, node *v1.Node, ofNode []*resourceapi.ResourceSlice) []NodeType {
	labels := map[string]string{}
	for _, key := range typeLabels {
		if value := node.Labels[key]; value != "" {
			labels[key] = value
		}
	}
	known := objects.NodeOf(settings.orDefault(), node, ofNode, func(name, _ string) error { _, err := find(name); return err })
	if known.Backend == objects.NoGPUs {
		return nil
	}
	largest := map[string]int64{}
	means := map[objects.Backend]Means{objects.Whole: Whole, objects.DRA: Claims, objects.HAMi: HAMi}[known.Backend]
	counts := means != Whole
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
		out = append(out, NodeType{GPUType: name, MemMiB: largest[name], Means: means, CountsMemory: counts, Labels: labels})
	}
	return out
}

// GPUs is the extended resource of whole GPUs.
func (s Settings) GPUs() v1.ResourceName { return s.orDefault().Resource }
