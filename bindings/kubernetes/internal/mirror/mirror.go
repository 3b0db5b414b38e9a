// SPDX-License-Identifier: Apache-2.0

// Package mirror keeps a libhorus cluster as the API server tells it: nodes with their GPUs, and the pods on them,
// whoever put them there. It is rebuilt from objects alone, at the start and whenever one changes.
package mirror

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/library"
	"libhorus.org/kubernetes/internal/objects"
)

// Mirror is safe for concurrent use.
type Mirror struct {
	settings objects.Settings
	lookups  objects.Lookups

	mu      watched
	library *library.Library
	revival revival
	lastID  uint64
	nodes   map[string]*node
	pods    map[types.UID]*pod
	jobs    map[uint64]*pod
	tenants map[horus.Slot]int // pods on each device
	waiting map[types.UID]waiting
	waiters map[string]map[types.UID]waiting // the same, by node
	order   order
	ranks   ranked
	hosts   hosts

	// Grown is told that a node offers GPUs, or others than before; with the lock held. May be nil.
	Grown func()
	// Seen is told each pod that another scheduler bound, just before it is taken in; with the lock held. May be nil.
	Seen func(View)
}

// order is the scheduler's list of nodes as it was asked last, and the library's ids for it.
type order struct {
	names   []string
	nodes   []*node // nil = not known here
	backend objects.Backend
	ids     []uint64
	rows    []int // of each id, the position in names
	stale   bool  // a node came, went or changed its devices
}

type node struct {
	id     uint64
	object *v1.Node
	slices map[string]*resourceapi.ResourceSlice
	view   objects.Node
	added  bool // the library has it
	pods   map[types.UID]*pod

	matches map[string][]bool // of each set of selectors that was asked for, the devices that match

	seen int64 // generation of the scheduler's own picture that was compared last
}

// waiting is a bound pod of which nobody can tell yet what it holds.
type waiting struct {
	object *v1.Pod
	first  bool // it was not shown to Seen
}

type pod struct {
	id     uint64
	object *v1.Pod
	node   string
	slots  []horus.Slot
	bound  bool // the API server says so; else it is reserved by us
}

// New makes an empty mirror, whose cluster is the library's.
func New(settings objects.Settings, lookups objects.Lookups, lib *library.Library) *Mirror {
	return &Mirror{
		settings: settings, lookups: lookups, library: lib,
		nodes: map[string]*node{}, pods: map[types.UID]*pod{}, jobs: map[uint64]*pod{},
		tenants: map[horus.Slot]int{}, waiting: map[types.UID]waiting{}, waiters: map[string]map[types.UID]waiting{},
		hosts: hosts{map[types.UID]hostRequest{}, map[string]hostRequest{}},
	}
}

func (m *Mirror) nextID() uint64 { m.lastID++; return m.lastID }

func (m *Mirror) find(gpuType string) error {
	if gpuType == "" {
		return errors.New("expected the GPU's product name, found none")
	}
	return m.library.Find(gpuType)
}

// SetNode takes in a node as it is now.
func (m *Mirror) SetNode(object *v1.Node) {
	m.enter()
	defer m.mu.Unlock()
	m.node(object.Name).object = object
	m.refresh(object.Name)
}

// DeleteNode takes a node away, with the pods on it.
func (m *Mirror) DeleteNode(name string) {
	m.enter()
	defer m.mu.Unlock()
	if n := m.nodes[name]; n != nil {
		n.object = nil
		m.refresh(name)
	}
}

// SetSlice takes in a ResourceSlice; other drivers' are ignored.
func (m *Mirror) SetSlice(slice *resourceapi.ResourceSlice) {
	if slice.Spec.Driver != m.settings.Driver || slice.Spec.NodeName == nil {
		return
	}
	m.enter()
	defer m.mu.Unlock()
	m.node(*slice.Spec.NodeName).slices[slice.Name] = slice
	m.refresh(*slice.Spec.NodeName)
}

// DeleteSlice takes a ResourceSlice away.
func (m *Mirror) DeleteSlice(slice *resourceapi.ResourceSlice) {
	if slice.Spec.Driver != m.settings.Driver || slice.Spec.NodeName == nil {
		return
	}
	m.enter()
	defer m.mu.Unlock()
	if n := m.nodes[*slice.Spec.NodeName]; n != nil {
		delete(n.slices, slice.Name)
		m.refresh(*slice.Spec.NodeName)
	}
}

func (m *Mirror) node(name string) *node {
	n := m.nodes[name]
	if n == nil {
		n = &node{id: m.ranks.add(name), slices: map[string]*resourceapi.ResourceSlice{}, pods: map[types.UID]*pod{}}
		m.nodes[name] = n
	}
	return n
}

// refresh brings the library's node to what the objects say. Where devices change under pods, the node is taken down and
// built anew, and its pods are adopted again from what the API server says of them.
func (m *Mirror) refresh(name string) {
	n := m.nodes[name]
	view := m.viewOf(n)
	n.matches = nil
	if n.added == (view.Backend != objects.NoGPUs) && sameNode(n.view, view) && n.object != nil {
		n.view.Raw = view.Raw
		return
	}
	m.rebuild(name, view)
}

// viewOf a node is what its objects say.
func (m *Mirror) viewOf(n *node) objects.Node {
	view := objects.Node{}
	if n.object != nil {
		offered := make([]*resourceapi.ResourceSlice, 0, len(n.slices))
		for _, slice := range n.slices {
			offered = append(offered, slice)
		}
		slices.SortFunc(offered, func(a, b *resourceapi.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
		view = objects.NodeOf(m.settings, n.object, offered, m.find)
	}
	view.Horus.ID = n.id
	return view
}

// rebuild puts a node into the library as it is to be, with its pods.
func (m *Mirror) rebuild(name string, view objects.Node) {
	n := m.nodes[name]
	if view.Problem != n.view.Problem && view.Problem != "" {
		klog.InfoS("GPUs are not used", "node", name, "why", view.Problem)
	}
	m.order.stale = true
	var residents []*v1.Pod
	reserved := map[*pod][]objects.Device{}
	for uid, p := range n.pods {
		if p.bound {
			residents = append(residents, p.object)
		} else {
			for _, slot := range p.slots {
				reserved[p] = append(reserved[p], n.view.Devices[slot.Device])
			}
		}
		m.drop(uid)
	}
	if n.added {
		_ = m.library.RemoveNode(n.id) // empty by now
		n.added = false
	}
	n.view = view
	if view.Backend != objects.NoGPUs {
		if err := m.library.AddNode(view.Horus); err != nil {
			n.view.Backend, n.view.Problem = objects.NoGPUs, fmt.Sprintf("node %s: %v", name, err)
		} else {
			n.added = true
			if m.Grown != nil {
				m.Grown()
			}
		}
	}
	if n.object == nil && len(n.slices) == 0 {
		delete(m.nodes, name)
		m.ranks.drop(name)
	}
	for _, p := range residents {
		m.setPod(p, false)
	}
	for p, devices := range reserved {
		m.reserveAgain(n, p, devices)
	}
	for _, one := range slices.Collect(maps.Values(m.waiters[name])) { // setPod takes them out
		m.setPod(one.object, one.first)
	}
}

// reserveAgain puts a pod that is on its way back on the devices that were chosen for it, wherever they are listed now.
func (m *Mirror) reserveAgain(n *node, p *pod, devices []objects.Device) {
	var slots []horus.Slot
	for i, d := range devices {
		index, found := n.device(d.Pool, d.Name)
		if d.Name == "" { // whole GPUs have no names
			index, found = uint32(i), i < len(n.view.Devices)
		}
		if !n.added || !found {
			return
		}
		slots = append(slots, horus.Slot{Node: n.id, Device: index})
	}
	if view, err := objects.JobOf(m.settings, p.object, m.lookups); err == nil {
		view = view.Sized(n.memory())
		view.Horus.ID = m.nextID()
		n.aloneOn(slots, &view)
		_ = m.adopt(p.object, p.node, view, slots, false)
	}
}

func sameNode(a, b objects.Node) bool {
	if a.Backend != b.Backend || a.Problem != b.Problem || len(a.Devices) != len(b.Devices) ||
		a.Horus.CPUMilli != b.Horus.CPUMilli || a.Horus.MemMiB != b.Horus.MemMiB {
		return false
	}
	for i := range a.Devices {
		if a.Devices[i] != b.Devices[i] || a.Horus.Devices[i] != b.Horus.Devices[i] {
			return false
		}
	}
	return true
}

// SetPod takes in a pod as it is now: bound and alive it holds its GPUs, done or gone it holds none.
func (m *Mirror) SetPod(object *v1.Pod) {
	m.enter()
	defer m.mu.Unlock()
	m.setPod(object, true)
}

// DeletePod releases what a pod holds.
func (m *Mirror) DeletePod(uid types.UID) {
	m.enter()
	defer m.mu.Unlock()
	m.unwait(uid)
	m.drop(uid)
	m.hosts.drop(uid)
}

// SetClaim looks again at the pods for which a claim is reserved.
func (m *Mirror) SetClaim(claim *resourceapi.ResourceClaim) {
	m.enter()
	defer m.mu.Unlock()
	for _, consumer := range claim.Status.ReservedFor {
		if one, waits := m.waiting[consumer.UID]; waits {
			m.setPod(one.object, one.first)
		}
	}
}

// ProfileChanged takes the bound pods that name a profile in anew.
func (m *Mirror) ProfileChanged(namespace, name string) {
	m.enter()
	defer m.mu.Unlock()
	var named []*v1.Pod
	for _, p := range m.pods {
		if p.bound && p.object.Namespace == namespace && p.object.Annotations[objects.ProfileAnnotation] == name {
			named = append(named, p.object)
		}
	}
	for _, object := range named {
		m.drop(object.UID)
		m.setPod(object, false)
	}
}

func (m *Mirror) drop(uid types.UID) {
	p := m.pods[uid]
	if p == nil {
		return
	}
	_ = m.library.Release(p.id) // NOT_FOUND: its node went first
	delete(m.jobs, p.id)
	delete(m.pods, uid)
	for _, slot := range p.slots {
		if m.tenants[slot]--; m.tenants[slot] == 0 {
			delete(m.tenants, slot)
		}
	}
	if n := m.nodes[p.node]; n != nil {
		delete(n.pods, uid)
	}
}

func (m *Mirror) wait(one waiting) {
	uid, node := one.object.UID, one.object.Spec.NodeName
	m.waiting[uid] = one
	if m.waiters[node] == nil {
		m.waiters[node] = map[types.UID]waiting{}
	}
	m.waiters[node][uid] = one
}

func (m *Mirror) unwait(uid types.UID) {
	one, waits := m.waiting[uid]
	if !waits {
		return
	}
	node := one.object.Spec.NodeName
	delete(m.waiting, uid)
	if delete(m.waiters[node], uid); len(m.waiters[node]) == 0 {
		delete(m.waiters, node)
	}
}

func done(object *v1.Pod) bool {
	return object.Status.Phase == v1.PodSucceeded || object.Status.Phase == v1.PodFailed
}

// setPod takes a pod in. first: it was not shown to Seen.
func (m *Mirror) setPod(object *v1.Pod, first bool) {
	_, waited := m.waiting[object.UID]
	m.unwait(object.UID)
	defer func() {
		if one, waits := m.waiting[object.UID]; !waits || !one.first { // its cores count from when its GPUs do
			m.hosts.set(object)
		}
	}()
	if object.Spec.NodeName == "" {
		return // reserved by us, or nobody's yet
	}
	if done(object) {
		m.drop(object.UID)
		return
	}
	if p := m.pods[object.UID]; p != nil {
		if p.node == object.Spec.NodeName {
			p.object, p.bound = object, true
			return
		}
		m.drop(object.UID) // bound elsewhere than we reserved
	}
	view, err := objects.JobOf(m.settings, object, m.lookups)
	if view.Backend == objects.NoGPUs && (err == nil || len(object.Spec.ResourceClaims) == 0) {
		return
	}
	if view.Backend == objects.NoGPUs { // a request that is not placed here holds its devices all the same
		view.Backend = objects.DRA
		view.Horus.Demands = objects.Unknown(0)
	}
	slots, found := m.slotsOf(object, &view)
	if !found {
		if _, _, err := objects.HeldByHAMi(object); err != nil && !waited && m.isHAMi(object.Spec.NodeName) {
			klog.InfoS("GPUs of a pod cannot be told", "pod", klog.KObj(object), "node", object.Spec.NodeName, "why", err)
		}
		m.wait(waiting{object, first})
		return
	}
	if len(slots) == 0 {
		return // claims of other devices
	}
	view.Horus.GPUsPerTask = int32(len(slots))
	// A pod whose annotations are wrong holds what it asks for all the same.
	view.Horus.ID = m.nextID()
	m.nodes[object.Spec.NodeName].aloneOn(slots, &view)
	if m.Seen != nil && first {
		m.Seen(View{m: m, Pod: object, Job: view.Horus, Slots: slots, Backend: view.Backend})
	}
	if err := m.adopt(object, object.Spec.NodeName, view, slots, true); err != nil {
		m.wait(waiting{object: object})
	}
}

// overCommitted are the rules that nobody's prediction decides.
var overCommitted = []horus.Reason{horus.ReasonExclusive, horus.ReasonTenantLimit, horus.ReasonGPUMemory, horus.ReasonOwner}

func (m *Mirror) adopt(object *v1.Pod, node string, view objects.Pod, slots []horus.Slot, bound bool) error {
	reason, err := m.library.Adopt(view.Horus, slots)
	if err != nil {
		// The job's own fields are out of range: what it holds is what counts.
		plain := horus.Job{
			ID: view.Horus.ID, Name: view.Horus.Name, Exclusive: true, GPUsPerTask: view.Horus.GPUsPerTask,
			Demands: objects.Unknown(0),
		}
		if reason, err = m.library.Adopt(plain, slots); err != nil {
			return err
		}
	}
	if bound && slices.Contains(overCommitted, reason) {
		klog.InfoS("GPUs are over-committed", "pod", klog.KObj(object), "node", node, "rule", reason.String())
	}
	p := &pod{id: view.Horus.ID, object: object, node: node, slots: slots, bound: bound}
	for _, slot := range slots {
		m.tenants[slot]++
	}
	m.jobs[p.id], m.pods[object.UID], m.nodes[node].pods[object.UID] = p, p, p
	return nil
}

// slotsOf tells the devices of a bound pod: those of its claims, those that HAMi's annotations name, or for whole GPUs the first
// free ones, since the kubelet tells nobody which it gave.
func (m *Mirror) slotsOf(object *v1.Pod, view *objects.Pod) ([]horus.Slot, bool) {
	n := m.nodes[object.Spec.NodeName]
	if n == nil || !n.added || !view.Backend.On(n.view.Backend) {
		return nil, false
	}
	switch n.view.Backend {
	case objects.Whole:
		return m.freeDevices(n, int(view.Horus.GPUsPerTask))
	case objects.HAMi:
		return n.heldByHAMi(object, view)
	}
	var slots []horus.Slot
	for i := range object.Spec.ResourceClaims {
		claim, err := m.lookups.Claim(object.Namespace, objects.ClaimName(object, &object.Spec.ResourceClaims[i]))
		if err != nil || claim.Status.Allocation == nil {
			return nil, false
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.Driver != m.settings.Driver {
				continue
			}
			index, found := n.device(result.Pool, result.Device)
			if !found {
				return nil, false
			}
			slots = append(slots, horus.Slot{Node: n.id, Device: index})
		}
	}
	return slots, true
}

// heldByHAMi tells the devices of a pod, and makes its job one that has what HAMi gave it there.
func (n *node) heldByHAMi(object *v1.Pod, view *objects.Pod) (slots []horus.Slot, known bool) {
	uuids, held, err := objects.HeldByHAMi(object)
	if err != nil {
		return nil, false
	}
	devices := make([]objects.Device, len(uuids))
	for i, uuid := range uuids {
		index, found := n.device("", uuid)
		if !found {
			return nil, false
		}
		slots, devices[i] = append(slots, horus.Slot{Node: n.id, Device: index}), n.view.Devices[index]
	}
	*view = view.Holding(devices, held)
	return slots, true
}

func (m *Mirror) isHAMi(name string) bool {
	n := m.nodes[name]
	return n != nil && n.view.Backend == objects.HAMi
}

// memory is that of the node's largest device, by which percentages are counted.
func (n *node) memory() (most int64) {
	for _, device := range n.view.Devices {
		most = max(most, device.MemMiB)
	}
	return most
}

func (n *node) device(pool, name string) (uint32, bool) {
	for i, d := range n.view.Devices {
		if d.Pool == pool && d.Name == name {
			return uint32(i), true
		}
	}
	return 0, false
}

func (m *Mirror) freeDevices(n *node, count int) ([]horus.Slot, bool) {
	var free, used []horus.Slot
	for i := range n.view.Devices {
		slot := horus.Slot{Node: n.id, Device: uint32(i)}
		if m.tenants[slot] == 0 {
			free = append(free, slot)
		} else {
			used = append(used, slot)
		}
	}
	all := append(free, used...) // more than there are: the node is over-committed, and so is the mirror
	if len(all) < count {
		return nil, false
	}
	return all[:count], true
}

// Counts of what is mirrored. Unused: nodes whose GPUs are not placed, and the log says why.
type Counts struct{ Nodes, Devices, Pods, Waiting, Unused int }

// Counts tells how much is mirrored.
func (m *Mirror) Counts() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := Counts{Pods: len(m.pods), Waiting: len(m.waiting)}
	for _, n := range m.nodes {
		if n.added {
			out.Nodes++
			out.Devices += len(n.view.Devices)
		}
		if n.view.Problem != "" {
			out.Unused++
		}
	}
	return out
}

// follow brings a node to the scheduler's own picture of it, whose events may come before ours: a pod that has left there
// has left here, and one that is assumed there holds its GPUs here.
func (m *Mirror) follow(n *node, info fwk.NodeInfo) {
	n.seen = info.GetGeneration()
	there := make(map[types.UID]bool, len(info.GetPods()))
	for _, one := range info.GetPods() {
		object := one.GetPod()
		there[object.UID] = true
		if n.pods[object.UID] == nil {
			m.setPod(object, false)
		}
	}
	for uid, p := range n.pods {
		if p.bound && !there[uid] && !m.lookups.Lives(p.object) {
			m.drop(uid)
		}
	}
}

// Read is a pod as a job; the error is for its owner.
func (m *Mirror) Read(object *v1.Pod) (objects.Pod, error) {
	return objects.JobOf(m.settings, object, m.lookups)
}
