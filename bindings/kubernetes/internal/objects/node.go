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
	"k8s.io/apimachinery/pkg/api/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

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

// listed is a device of a slice.
type listed struct {
	pool string
	*resourceapi.Device
}

// use is what a device takes of a counter of its node.
type use struct {
	counter int
	set     string // of counters: those of one card
	amount  int64
}

// isPartition says whether the driver would make a device when it is asked for (DynamicMIG).
func (d listed) isPartition() bool {
	return text(d.Device, "type") == "mig" && len(d.ConsumesCounters) > 0
}

// fromSlices takes the newest generation of each pool, devices by name.
func fromSlices(out Node, all []*resourceapi.ResourceSlice, find Finder) Node {
	newest := map[string]int64{}
	for _, slice := range all {
		newest[slice.Spec.Pool.Name] = max(newest[slice.Spec.Pool.Name], slice.Spec.Pool.Generation)
	}
	var devices []listed
	counters := map[[3]string]int{} // by pool, set and name
	cut := map[string]bool{}        // cards, by UUID, that the driver lists beside the instances into which they are cut
	for _, slice := range all {
		if slice.Spec.Pool.Generation != newest[slice.Spec.Pool.Name] {
			continue
		}
		for i := range slice.Spec.Devices {
			one := listed{slice.Spec.Pool.Name, &slice.Spec.Devices[i]}
			devices = append(devices, one)
			if !one.isPartition() {
				cut[text(one.Device, "parentUUID")] = true
			}
		}
		for _, set := range slice.Spec.SharedCounters {
			for name, counter := range set.Counters {
				counters[[3]string{slice.Spec.Pool.Name, set.Name, name}] = len(out.counters)
				out.counters = append(out.counters, counter.Value.Value())
			}
		}
	}
	delete(cut, "")
	slices.SortFunc(devices, func(a, b listed) int { return cmp.Or(cmp.Compare(a.pool, b.pool), cmp.Compare(a.Name, b.Name)) })
	cards := map[string]int32{} // of MIG instances, by the card's UUID
	for _, one := range devices {
		kind, uuid, parent := text(one.Device, "type"), text(one.Device, "uuid"), text(one.Device, "parentUUID")
		if (kind != "" && kind != "gpu" && kind != "mig") || (kind != "mig" && cut[uuid]) {
			continue
		}
		device := horus.Device{GPUType: text(one.Device, "productName", "product"), ID: uuid, SharingMode: horus.Exclusive}
		if err := find(device.GPUType, ""); err != nil {
			return Node{Skipped: out.Skipped, Horus: out.Horus, Problem: fmt.Sprintf("node %s: device %s of pool %s: productName: %v", out.Horus.Name, one.Name, one.pool, err)}
		}
		if ptr.Deref(one.AllowMultipleAllocations, false) {
			device.SharingMode, device.MaxTenants = horus.TimeSlice, mostAllocations(one.Device)
		}
		if memory, ok := one.Capacity[attributeMemory]; ok {
			device.MemMiB = memory.Value.Value() / mib
		}
		if kind == "mig" {
			device.SharingMode, device.MIGProfile = horus.MIG, text(one.Device, "profile")
			if find(device.GPUType, device.MIGProfile) != nil {
				out.Skipped[UnknownProfile]++
				continue
			}
			if !one.isPartition() { // partitions of a card may add up to more than the card
				if cards[parent] == 0 {
					cards[parent] = int32(len(cards)) + 1
				}
				device.Card = cards[parent]
			}
		}
		out.Devices, out.Raw = append(out.Devices, Device{Pool: one.pool, Name: one.Name, UUID: uuid}), append(out.Raw, one.Device)
		out.Horus.Devices, out.uses = append(out.Horus.Devices, device), append(out.uses, out.usesOf(one, counters))
	}
	switch {
	case len(out.Devices) > mostDevices:
		return Node{Skipped: out.Skipped, Horus: out.Horus, Problem: fmt.Sprintf("node %s: expected at most %d devices, found %d", out.Horus.Name, mostDevices, len(out.Devices))}
	case len(out.Devices) > 0:
		out.Backend = DRA
	}
	out.locate()
	return out
}

// usesOf a device. A counter that no slice lists yet has nothing to give.
func (n *Node) usesOf(one listed, counters map[[3]string]int) (uses []use) {
	for _, consumption := range one.ConsumesCounters {
		for name, counter := range consumption.Counters {
			key := [3]string{one.pool, consumption.CounterSet, name}
			if _, listed := counters[key]; !listed {
				counters[key], n.counters = len(n.counters), append(n.counters, 0)
			}
			uses = append(uses, use{counters[key], one.pool + "/" + consumption.CounterSet, counter.Value.Value()})
		}
	}
	return uses
}

// Left says of each device whether those that are held leave it what it takes of the counters (room), and whether its card has one of
// these (cut).
func (n *Node) Left(held func(device int) bool) (room, cut []bool) {
	room, cut = make([]bool, len(n.uses)), make([]bool, len(n.uses))
	left, touched := slices.Clone(n.counters), map[string]bool{}
	for i, uses := range n.uses {
		if !held(i) {
			continue
		}
		for _, u := range uses {
			left[u.counter], touched[u.set] = left[u.counter]-u.amount, true
		}
	}
	for i, uses := range n.uses {
		room[i] = held(i) || !slices.ContainsFunc(uses, func(u use) bool { return u.amount > left[u.counter] })
		cut[i] = slices.ContainsFunc(uses, func(u use) bool { return touched[u.set] })
	}
	return room, cut
}

// Counts says whether devices of the node take from one another.
func (n *Node) Counts() bool { return len(n.counters) > 0 }

// locate numbers PCIe roots and NUMA nodes. What is not told of every GPU is told of none.
func (n *Node) locate() {
	roots, numas := make([]string, len(n.Raw)), make([]int64, len(n.Raw))
	cards := map[string]int{}
	for i, raw := range n.Raw {
		roots[i] = text(raw, "pcieRoot")
		numa := raw.Attributes["resource.kubernetes.io/numaNode"]
		if numas[i] = ptr.Deref(numa.IntValue, -1); len(numa.IntValues) > 0 {
			numas[i] = numa.IntValues[0] // its own comes first
		}
		cards[n.Devices[i].UUID] = i
	}
	delete(cards, "")
	numbers, sockets := map[string]int32{}, map[string]int64{}
	for i, raw := range n.Raw {
		if card, listed := cards[text(raw, "parentUUID")]; listed && roots[i] == "" {
			roots[i], numas[i] = roots[card], numas[card]
		}
		if numbers[roots[i]] == 0 {
			numbers[roots[i]], sockets[roots[i]] = int32(len(numbers))+1, numas[i]
		}
	}
	if !slices.Contains(roots, "") {
		for i, root := range roots {
			n.Horus.Devices[i].PCIeSwitch, numas[i] = numbers[root], sockets[root]
		}
	}
	if slices.ContainsFunc(numas, func(numa int64) bool { return numa < 0 || numa > mostSocket }) {
		return
	}
	for i, numa := range numas {
		n.Horus.Devices[i].Socket = int32(numa)
	}
}

const mostSocket = 1<<15 - 1

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
