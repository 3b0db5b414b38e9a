// SPDX-License-Identifier: Apache-2.0

// Package objects turns API objects into what libhorus takes: nodes with their GPUs, pods as jobs, profiles as demands.
// Pure functions; whatever a stranger wrote comes back as a sentence, never as a panic.
package objects

import (
	"fmt"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"libhorus.org/horus"
)

// Settings say what a GPU is in this cluster.
type Settings struct {
	Driver        string          // of the ResourceSlices whose devices are GPUs
	DeviceClasses map[string]bool // classes whose requests ask for such devices
	Resource      v1.ResourceName // extended resource of whole GPUs
	HAMi          bool            // nodes that HAMi shares are used
	Owner         Owner           // who places
}

// Backend is how pods get the GPUs of a node.
type Backend int

// Backends. NoGPUs: nothing here is placed by us.
const (
	NoGPUs Backend = iota
	Whole          // an extended resource: whole GPUs, the kubelet picks which
	DRA            // ResourceSlices: the scheduler names the device
	HAMi           // annotations of HAMi: the scheduler names the device and the part of it
)

// On says whether its pods may go to nodes of a backend: whole GPUs are found where HAMi shares GPUs, too.
func (b Backend) On(node Backend) bool { return b == node || (b == Whole && node == HAMi) }

// Names says whether its pods ask for devices that are told apart, so that they are chosen before the node is.
func (b Backend) Names() bool { return b == DRA || b == HAMi }

// Device is a GPU by its names.
type Device struct {
	Pool, Name string // of a ResourceSlice; empty for whole GPUs. HAMi's have no pool and their UUID for a name
	UUID       string
	MemMiB     int64 // of HAMi's
}

// Node is a node as libhorus takes it.
type Node struct {
	Backend Backend
	Horus   horus.Node            // ID is left 0
	Devices []Device              // in the order of Horus.Devices
	Raw     []*resourceapi.Device // of slices, in that order; HAMi's in the same words
	Problem string                // why its GPUs are not used, in a sentence
	Skipped map[string]int        // devices that are not used while others are, by reason
}

// Reasons for which single devices are not used.
const (
	Partition = "partition" // the driver would make it when asked (DynamicMIG): what one takes, others lose
	Unhealthy = "unhealthy" // HAMi says so
	NoNode    = "no-node"   // its slice names no node
)

// SkipReasons are all of them.
var SkipReasons = []string{Partition, Unhealthy, NoNode}

// HostLabel is the label by which a job can be held to one node.
const HostLabel = "kubernetes.io/hostname"

const (
	mib             = 1 << 20
	productLabel    = "nvidia.com/gpu.product"
	replicasLabel   = "nvidia.com/gpu.replicas"
	sharedSuffix    = "-SHARED"
	mostDevices     = 1024
	attributeMemory = "memory"
)

// TypeLabels name a node's GPU type, the most exact first.
var TypeLabels = []string{
	productLabel, "cloud.google.com/gke-accelerator", "karpenter.k8s.aws/instance-gpu-name", "k8s.amazonaws.com/accelerator",
	"kubernetes.azure.com/accelerator",
}

// NodeOf describes a node by its labels and the slices of its GPUs. `find` says whether a GPU type is known.
func NodeOf(settings Settings, node *v1.Node, slices []*resourceapi.ResourceSlice, find func(string) error) Node {
	out := Node{Skipped: map[string]int{}, Horus: horus.Node{
		Name: node.Name, CPUMilli: node.Status.Allocatable.Cpu().MilliValue(),
		MemMiB: node.Status.Allocatable.Memory().Value() / mib,
		Labels: []horus.Label{{Key: HostLabel, Value: node.Name}},
	}}
	if len(slices) > 0 {
		return fromSlices(out, slices, find)
	}
	if _, registered := node.Annotations[HAMiRegisterAnnotation]; registered {
		return fromHAMi(out, settings, node, find)
	}
	count := node.Status.Allocatable[settings.Resource]
	if count.Value() <= 0 {
		return out
	}
	return fromLabels(out, settings, node, count.Value(), find)
}

func fromLabels(out Node, settings Settings, node *v1.Node, count int64, find func(string) error) Node {
	label, product := "", ""
	for _, label = range TypeLabels {
		if product = node.Labels[label]; product != "" {
			break
		}
	}
	replicas := node.Labels[replicasLabel]
	switch {
	case product == "":
		out.Problem = fmt.Sprintf("node %s offers %d %s, and no label names their type: expected one of %s", node.Name, count,
			settings.Resource, strings.Join(TypeLabels, ", "))
	case strings.HasSuffix(product, sharedSuffix) || (replicas != "" && replicas != "0" && replicas != "1"):
		out.Problem = fmt.Sprintf("node %s: its device plugin shares GPUs by replicas, and no scheduler learns which GPU a pod gets: "+
			"share them through dynamic resource allocation", node.Name)
	case strings.Contains(product, "-MIG-"):
		out.Problem = fmt.Sprintf("node %s: MIG instances behind a device plugin are not placed: offer them through dynamic "+
			"resource allocation", node.Name)
	case count > mostDevices:
		out.Problem = fmt.Sprintf("node %s: %s: expected at most %d, found %d", node.Name, settings.Resource, mostDevices, count)
	}
	if out.Problem != "" {
		return out
	}
	if err := find(product); err != nil {
		out.Problem = fmt.Sprintf("node %s: label %s: %v", node.Name, label, err)
		return out
	}
	out.Backend = Whole
	for range count {
		out.Horus.Devices = append(out.Horus.Devices, horus.Device{GPUType: product, SharingMode: horus.Exclusive})
		out.Devices = append(out.Devices, Device{})
	}
	return out
}

// fromSlices takes the newest generation of each pool, devices by name.
func fromSlices(out Node, slices []*resourceapi.ResourceSlice, find func(string) error) Node {
	newest := map[string]int64{}
	for _, slice := range slices {
		newest[slice.Spec.Pool.Name] = max(newest[slice.Spec.Pool.Name], slice.Spec.Pool.Generation)
	}
	type found struct {
		device Device
		horus  horus.Device
		raw    *resourceapi.Device
	}
	var all []found
	cards := map[string]int32{} // of MIG instances, by the card's UUID
	for _, slice := range slices {
		if slice.Spec.Pool.Generation != newest[slice.Spec.Pool.Name] {
			continue
		}
		for i := range slice.Spec.Devices {
			one := &slice.Spec.Devices[i]
			if len(one.ConsumesCounters) > 0 {
				out.Skipped[Partition]++
				continue
			}
			product, uuid := text(one, "productName", "product"), text(one, "uuid")
			if err := find(product); err != nil {
				out.Problem = fmt.Sprintf("node %s: device %s of %s: productName: %v", out.Horus.Name, one.Name, slice.Name, err)
				return out
			}
			device := horus.Device{GPUType: product, ID: uuid, SharingMode: horus.Exclusive}
			if one.AllowMultipleAllocations != nil && *one.AllowMultipleAllocations {
				device.SharingMode = horus.TimeSlice
			}
			if memory, ok := one.Capacity[attributeMemory]; ok {
				device.MemMiB = memory.Value.Value() / mib
			}
			if text(one, "type") == "mig" {
				parent := text(one, "parentUUID")
				if cards[parent] == 0 {
					cards[parent] = int32(len(cards)) + 1
				}
				device.SharingMode, device.MIGProfile, device.Card = horus.MIG, text(one, "profile"), cards[parent]
			}
			all = append(all, found{Device{Pool: slice.Spec.Pool.Name, Name: one.Name, UUID: uuid}, device, one})
		}
	}
	if len(all) > mostDevices {
		out.Problem = fmt.Sprintf("node %s: expected at most %d devices, found %d", out.Horus.Name, mostDevices, len(all))
		return out
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i].device, all[j].device
		return a.Pool < b.Pool || (a.Pool == b.Pool && a.Name < b.Name)
	})
	for _, one := range all {
		out.Devices, out.Horus.Devices, out.Raw = append(out.Devices, one.device), append(out.Horus.Devices, one.horus), append(out.Raw, one.raw)
	}
	if len(all) > 0 {
		out.Backend = DRA
	} else if count := out.Skipped[Partition]; count > 0 {
		out.Problem = fmt.Sprintf("node %s: expected GPUs or MIG instances, found %d partitions that the driver would make (DynamicMIG), which are not placed",
			out.Horus.Name, count)
	}
	return out
}

// text is the first of the string attributes that a device has, whatever domain its name is in.
func text(device *resourceapi.Device, names ...string) string {
	for _, name := range names {
		for key, value := range device.Attributes {
			if short := string(key)[strings.LastIndex(string(key), "/")+1:]; short == name && value.StringValue != nil {
				return *value.StringValue
			}
		}
	}
	return ""
}
