// SPDX-License-Identifier: Apache-2.0

// Package objects turns API objects into what libhorus takes: nodes with their GPUs, pods as jobs, profiles as demands.
// Pure functions; whatever a stranger wrote comes back as a sentence, never as a panic.
package objects

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"libhorus.org/horus"
)

// Settings say what a GPU is in this cluster.
type Settings struct {
	Driver        string          // of the ResourceSlices whose devices are GPUs
	DeviceClasses []string        // whose requests ask for such devices
	Resource      v1.ResourceName // extended resource of whole GPUs
	HAMi          bool            // nodes that HAMi shares are used
	Owner         Owner           // who places
}

// OrDefault fills in the names that are left out.
func (s Settings) OrDefault() Settings {
	s.Driver, s.Resource = cmp.Or(s.Driver, "gpu.nvidia.com"), cmp.Or(s.Resource, "nvidia.com/gpu")
	if len(s.DeviceClasses) == 0 {
		s.DeviceClasses = []string{"gpu.nvidia.com", "mig.nvidia.com"}
	}
	return s
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
	Block   string                // of racks, as its labels tell; "" = they do not

	counters []int64 // that devices of slices take from one another, and what each of them takes
	uses     [][]use
}

// Reasons for which single devices are not used.
const (
	UnknownProfile = "profile"   // a MIG profile that the catalogue does not know
	Unhealthy      = "unhealthy" // HAMi says so
	NoNode         = "no-node"   // its slice names no node
	ByPlugin       = "plugin"    // the device plugin shares or cuts them; all of the node
)

var SkipReasons = []string{UnknownProfile, Unhealthy, NoNode, ByPlugin}

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
}

// renamed are a cloud's names that are another board's elsewhere: GKE's G4 machines have the server edition.
var renamed = map[string]string{"nvidia-rtx-pro-6000": "rtx-pro-6000-server"}

// rackLabels name what joins nodes closest, blockLabels what joins racks; the first that a node has counts. src/io/kube reads the same.
var (
	rackLabels = []string{
		"nvidia.com/gpu.clique", "topology.kubernetes.io/rack", "cloud.provider.com/topology-rack", "network.topology.nvidia.com/accelerator",
		"network.topology.nvidia.com/leaf", "topology.k8s.aws/network-node-layer-3", "cloud.google.com/gce-topology-subblock", "rack",
		"topology.kubernetes.io/zone",
	}
	blockLabels = []string{
		"topology.kubernetes.io/block", "cloud.provider.com/topology-block", "network.topology.nvidia.com/spine",
		"topology.k8s.aws/network-node-layer-2", "cloud.google.com/gce-topology-block",
	}
)

const noFabric = "00000000-0000-0000-0000-000000000000" // cluster of a clique, where NVLink ends at the node

// labelOf keys is the first that a node has; "" = none.
func labelOf(labels map[string]string, keys []string) string {
	at := slices.IndexFunc(keys, func(key string) bool { return labels[key] != "" && !strings.HasPrefix(labels[key], noFabric) })
	if at < 0 {
		return ""
	}
	return keys[at]
}

// rackOf a node, as a number; 0 = its labels tell none.
func rackOf(labels map[string]string) uint64 {
	rack := labels[labelOf(labels, rackLabels)]
	if rack == "" {
		return 0
	}
	hash := fnv.New64a()
	hash.Write([]byte(rack))
	return hash.Sum64() | 1
}

// Finder says whether a GPU type is known, and its MIG profile, where that is not "".
type Finder func(gpuType, profile string) error

// NodeOf describes a node by its labels and the slices of its GPUs.
func NodeOf(settings Settings, node *v1.Node, offered []*resourceapi.ResourceSlice, find Finder) Node {
	out := Node{Skipped: map[string]int{}, Horus: horus.Node{
		Name: node.Name, CPUMilli: node.Status.Allocatable.Cpu().MilliValue(),
		MemMiB: node.Status.Allocatable.Memory().Value() / mib,
		Labels: []horus.Label{{Key: HostLabel, Value: node.Name}}, Rack: rackOf(node.Labels),
	}, Block: node.Labels[labelOf(node.Labels, blockLabels)]}
	if len(offered) > 0 {
		return fromSlices(out, offered, find)
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

func fromLabels(out Node, settings Settings, node *v1.Node, count int64, find Finder) Node {
	label := cmp.Or(labelOf(node.Labels, TypeLabels), TypeLabels[0])
	product := cmp.Or(renamed[node.Labels[label]], node.Labels[label])
	replicas := cmp.Or(node.Labels[replicasLabel], node.Labels["cloud.google.com/gke-max-shared-clients-per-gpu"])
	unknown := find(product, "")
	switch {
	case product == "":
		out.Problem = fmt.Sprintf("node %s offers %d %s, and no label names their type: expected one of %s", node.Name, count,
			settings.Resource, strings.Join(TypeLabels, ", "))
	case strings.HasSuffix(product, sharedSuffix) || (replicas != "" && replicas != "0" && replicas != "1"):
		out.Problem = fmt.Sprintf("node %s: its device plugin shares GPUs by replicas, and no scheduler learns which GPU a pod gets: "+
			"share them through dynamic resource allocation", node.Name)
		out.Skipped = map[string]int{ByPlugin: int(count)}
	case strings.Contains(product, "-MIG-") || node.Labels["cloud.google.com/gke-gpu-partition-size"] != "":
		out.Problem = fmt.Sprintf("node %s: MIG instances behind a device plugin are not placed: offer them through dynamic "+
			"resource allocation", node.Name)
		out.Skipped = map[string]int{ByPlugin: int(count)}
	case count > mostDevices:
		out.Problem = fmt.Sprintf("node %s: %s: expected at most %d, found %d", node.Name, settings.Resource, mostDevices, count)
	case unknown != nil:
		out.Problem = fmt.Sprintf("node %s: label %s: %v", node.Name, label, unknown)
	default:
		out.Backend, out.Devices = Whole, make([]Device, count)
		out.Horus.Devices = slices.Repeat([]horus.Device{{GPUType: product, SharingMode: horus.Exclusive}}, int(count))
	}
	return out
}

// SchedulerLabel of a node names the scheduler that it belongs to. A taint of that key and value keeps other schedulers' pods away.
const SchedulerLabel = "libhorus.org/scheduler"

// Owner is a scheduler, as nodes name it.
type Owner struct {
	Scheduler string
	Only      bool // it uses only nodes that belong to it
}

func (o Owner) May(node *v1.Node) bool { return !o.Only || node.Labels[SchedulerLabel] == o.Scheduler }

// Tolerant is a pod that tolerates the taint of its own scheduler's nodes.
func (o Owner) Tolerant(pod *v1.Pod) *v1.Pod {
	out := *pod
	out.Spec.Tolerations = append(slices.Clip(pod.Spec.Tolerations), v1.Toleration{Key: SchedulerLabel, Value: o.Scheduler})
	return &out
}

// Openness says which nodes a pod may go to by what stands in both: selectors, affinity, taints and cordons. Free resources,
// volumes and other pods are not looked at.
type Openness struct {
	pod      *v1.Pod
	owner    Owner
	affinity nodeaffinity.RequiredNodeAffinity
}

// OpennessOf prepares the question for many nodes; owner is the pod's scheduler.
func OpennessOf(pod *v1.Pod, owner Owner) Openness {
	return Openness{owner.Tolerant(pod), owner, nodeaffinity.GetRequiredNodeAffinity(pod)}
}

func (o Openness) To(node *v1.Node) bool {
	if !o.owner.May(node) {
		return false
	}
	taints := node.Spec.Taints
	if node.Spec.Unschedulable {
		taints = append(taints[:len(taints):len(taints)], v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule})
	}
	if _, closed := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), taints, o.pod.Spec.Tolerations,
		func(t *v1.Taint) bool { return t.Effect != v1.TaintEffectPreferNoSchedule }, false); closed {
		return false
	}
	fits, err := o.affinity.Match(node)
	return err == nil && fits
}
