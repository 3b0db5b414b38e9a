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
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/library"
	"libhorus.org/kubernetes/internal/objects"
)

// Mirror is safe for concurrent use.
type Mirror struct {
	settings objects.Settings
	lookups  objects.Lookups

	mu      watched
	library library.Library
	revived time.Time // no earlier is a library that is gone started again
	pause   time.Duration
	lastID  uint64
	freed   atomic.Uint64
	nodes   map[string]*node
	byID    map[uint64]*node
	pods    map[types.UID]*pod
	jobs    map[uint64]*pod
	tenants map[horus.Slot]int               // pods on each device
	waiting byNode[waiting]                  // at "" of a pod that is not bound
	claims  map[types.UID]map[types.UID]*pod // who has devices by a claim
	pools   map[string]string                // node of each pool of devices
	order   order
	ranks   ranked
	hosts   byNode[hostRequest]
	astray  map[string]int // devices of slices that name no node, by slice
	given   map[types.UID]*given
	found   map[[2]string]error // of GPU types and MIG profiles that were looked up

	// Early: a claim's devices are held from when it has them, and not from when its pod is bound. For who places pods.
	Early bool
	// Grown is told that a node offers GPUs, or others than before; with the lock held. May be nil.
	Grown func()
	// Contradicts is told of a pod on a node what it says against what counts, once; with the lock held. May be nil.
	Contradicts func(pod *v1.Pod, sentence string)
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
	shut   map[uint32]bool              // devices that those in use leave nothing for, or that are one claim's
	modes  map[uint32]horus.SharingMode // of devices that a claim has, where its settings share them in another way

	matches map[string][]bool // of each set of selectors that was asked for, the devices that match

	seen int64 // generation of the scheduler's own picture that was compared last
}

// waiting is a pod, bound or with a claim that has devices, of which nobody can tell yet what it holds.
type waiting struct {
	object *v1.Pod
	first  bool // it was not shown to Seen
}

type pod struct {
	id     uint64
	object *v1.Pod
	node   string
	job    horus.Job
	slots  []horus.Slot
	claims []types.UID // by which it has them
	hold   hold
	mode   horus.SharingMode // in which its claims share them; 0 = they do not say
	mixed  bool
}

// hold is by what right a pod has its devices.
type hold int

const (
	reserved hold = iota // by us
	claimed              // its claims have them, and it is not bound
	bound                // the API server says so
)

// New makes an empty mirror, whose cluster is the library's.
func New(settings objects.Settings, lookups objects.Lookups, lib library.Library) *Mirror {
	return &Mirror{
		settings: settings, lookups: lookups, library: lib,
		nodes: map[string]*node{}, byID: map[uint64]*node{}, pods: map[types.UID]*pod{}, jobs: map[uint64]*pod{},
		tenants: map[horus.Slot]int{}, waiting: newByNode[waiting](),
		claims: map[types.UID]map[types.UID]*pod{}, pools: map[string]string{}, astray: map[string]int{}, given: map[types.UID]*given{}, found: map[[2]string]error{},
		hosts: newByNode[hostRequest](),
	}
}

func (m *Mirror) find(gpuType, profile string) error {
	if gpuType == "" {
		return errors.New("expected the GPU's product name, found none")
	}
	key := [2]string{gpuType, profile}
	err, known := m.found[key]
	if !known {
		if err = m.library.Find(gpuType, profile); !errors.Is(err, library.ErrGone) {
			m.found[key] = err
		}
	}
	return err
}

// SetNode takes in a node as it is now.
func (m *Mirror) SetNode(object *v1.Node) {
	defer m.enter()()
	m.freed.Add(1)
	m.node(object.Name).object = object
	m.refresh(object.Name)
}

// Freed grows where a pod that had no place may have one now.
func (m *Mirror) Freed() uint64 { return m.freed.Load() }

// DeleteNode takes a node away, with the pods on it.
func (m *Mirror) DeleteNode(name string) {
	defer m.enter()()
	if n := m.nodes[name]; n != nil {
		n.object = nil
		m.refresh(name)
	}
}

// SetSlice takes in a ResourceSlice; other drivers' are ignored.
func (m *Mirror) SetSlice(slice *resourceapi.ResourceSlice) {
	if slice.Spec.Driver != m.settings.Driver {
		return
	}
	defer m.enter()()
	if slice.Spec.NodeName == nil {
		if devices := len(slice.Spec.Devices); m.astray[slice.Name] != devices {
			m.astray[slice.Name] = devices
			klog.InfoS("GPUs are not used", "slice", slice.Name, "devices", devices, "why", "the slice names no node")
		}
		return
	}
	m.node(*slice.Spec.NodeName).slices[slice.Name] = slice
	m.refresh(*slice.Spec.NodeName)
}

// DeleteSlice takes a ResourceSlice away.
func (m *Mirror) DeleteSlice(slice *resourceapi.ResourceSlice) {
	if slice.Spec.Driver != m.settings.Driver {
		return
	}
	defer m.enter()()
	if delete(m.astray, slice.Name); slice.Spec.NodeName == nil {
		return
	}
	if n := m.nodes[*slice.Spec.NodeName]; n != nil {
		delete(n.slices, slice.Name)
		m.refresh(*slice.Spec.NodeName)
	}
}

func (m *Mirror) node(name string) *node {
	n := m.nodes[name]
	if n == nil {
		n = &node{id: m.ranks.add(name), slices: map[string]*resourceapi.ResourceSlice{}, pods: map[types.UID]*pod{}}
		m.nodes[name], m.byID[n.id] = n, n
	}
	return n
}

// nodeName of slots; "" where there are none, or it is gone.
func (m *Mirror) nodeName(slots []horus.Slot) string {
	if len(slots) == 0 || m.byID[slots[0].Node] == nil {
		return ""
	}
	return m.byID[slots[0].Node].view.Horus.Name
}

// refresh brings the library's node to what the objects say. Where devices change under pods, the node is taken down and
// built anew, and its pods are adopted again from what the API server says of them.
func (m *Mirror) refresh(name string) {
	n := m.nodes[name]
	view := m.viewOf(n)
	n.matches = nil
	if len(view.Skipped) > 0 && !maps.Equal(view.Skipped, n.view.Skipped) {
		klog.InfoS("GPUs are not used", "node", name, "devices", view.Skipped)
	}
	if n.added == (view.Backend != objects.NoGPUs) && sameNode(n.view, view) && n.object != nil {
		n.view = view
		m.reshut(n)
		return
	}
	m.rebuild(name, view)
}

func (m *Mirror) viewOf(n *node) objects.Node {
	view := objects.Node{}
	if n.object != nil {
		offered := slices.SortedFunc(maps.Values(n.slices), func(a, b *resourceapi.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
		view = objects.NodeOf(m.settings, n.object, offered, m.find)
	}
	view.Horus.ID = n.id
	return view
}

// rebuild puts a node into the library as it is to be, with its pods.
func (m *Mirror) rebuild(name string, view objects.Node) {
	m.freed.Add(1)
	n := m.nodes[name]
	if view.Problem != n.view.Problem && view.Problem != "" {
		klog.InfoS("GPUs are not used", "node", name, "why", view.Problem)
	}
	m.order.stale = true
	var residents []*v1.Pod
	coming := map[*pod][]objects.Device{}
	for uid, p := range n.pods {
		if p.hold != reserved {
			residents = append(residents, p.object)
		} else {
			for _, slot := range p.slots {
				coming[p] = append(coming[p], n.view.Devices[slot.Device])
			}
		}
		m.drop(uid)
	}
	for _, device := range n.view.Devices {
		delete(m.pools, device.Pool)
	}
	for _, device := range view.Devices {
		m.pools[device.Pool] = name
	}
	if n.added {
		_ = m.library.RemoveNode(n.id) // empty by now
		n.added = false
	}
	n.view, n.shut, n.modes = view, nil, nil
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
		delete(m.byID, n.id)
		m.ranks.drop(name)
	}
	for _, p := range residents {
		m.setPod(p, false)
	}
	for p, devices := range coming {
		m.reserveAgain(n, p, devices)
	}
	for _, one := range append(m.waiting.on(name), m.waiting.on("")...) { // setPod takes them out
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
	if view, err := m.Read(p.object); err == nil {
		_ = m.adopt(p.object, p.node, m.jobOn(n, slots, view.Sized(n.memory())), slots, reserved)
	}
}

func sameNode(a, b objects.Node) bool {
	return a.Backend == b.Backend && a.Problem == b.Problem && slices.Equal(a.Devices, b.Devices) && slices.Equal(a.Horus.Devices, b.Horus.Devices) &&
		a.Horus.CPUMilli == b.Horus.CPUMilli && a.Horus.MemMiB == b.Horus.MemMiB && a.Horus.Rack == b.Horus.Rack
}

// SetPod takes in a pod as it is now: bound and alive it holds its GPUs, done or gone it holds none. One that is not bound yet
// holds those that its claims have.
func (m *Mirror) SetPod(object *v1.Pod) {
	defer m.enter()()
	m.setPod(object, true)
}

// DeletePod releases what a pod holds.
func (m *Mirror) DeletePod(uid types.UID) {
	defer m.enter()()
	m.waiting.drop(uid)
	m.drop(uid)
	m.hosts.drop(uid)
	delete(m.given, uid)
}

// ProfileChanged takes the pods that name a profile in anew.
func (m *Mirror) ProfileChanged(namespace, name string) {
	defer m.enter()()
	m.freed.Add(1)
	var named []*v1.Pod
	for _, p := range m.pods {
		if p.hold != reserved && p.object.Namespace == namespace && p.object.Annotations[objects.ProfileAnnotation] == name {
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
	m.freed.Add(1)
	_ = m.library.Release(p.id) // NOT_FOUND: its node went first
	delete(m.jobs, p.id)
	delete(m.pods, uid)
	for _, slot := range p.slots {
		if m.tenants[slot]--; m.tenants[slot] == 0 {
			delete(m.tenants, slot)
		}
	}
	for _, claim := range p.claims {
		if delete(m.claims[claim], uid); len(m.claims[claim]) == 0 {
			delete(m.claims, claim)
		}
	}
	if n := m.nodes[p.node]; n != nil {
		delete(n.pods, uid)
		m.reshut(n)
	}
}

// byNode is what is known of pods, by their nodes.
type byNode[T any] struct {
	nodes map[string]map[types.UID]T
	at    map[types.UID]string
}

func newByNode[T any]() byNode[T] {
	return byNode[T]{map[string]map[types.UID]T{}, map[types.UID]string{}}
}

func (b byNode[T]) set(object *v1.Pod, value T) {
	b.drop(object.UID)
	node := object.Spec.NodeName
	if b.nodes[node] == nil {
		b.nodes[node] = map[types.UID]T{}
	}
	b.nodes[node][object.UID], b.at[object.UID] = value, node
}

func (b byNode[T]) drop(uid types.UID) {
	node := b.at[uid]
	delete(b.at, uid)
	if delete(b.nodes[node], uid); len(b.nodes[node]) == 0 {
		delete(b.nodes, node)
	}
}

func (b byNode[T]) on(node string) []T { return slices.Collect(maps.Values(b.nodes[node])) }

// setPod takes a pod in. first: it was not shown to Seen.
func (m *Mirror) setPod(object *v1.Pod, first bool) {
	m.waiting.drop(object.UID)
	defer func() {
		if m.waiting.nodes[object.Spec.NodeName][object.UID].first { // its cores count from when its GPUs do
			return
		}
		if m.hosts.drop(object.UID); object.Spec.NodeName != "" && !podutil.IsPodTerminal(object) {
			m.hosts.set(object, requestOfHost(object))
		}
	}()
	name, by, p := object.Spec.NodeName, bound, m.pods[object.UID]
	if name == "" {
		if p != nil && p.hold != claimed {
			return // it is on its way
		}
		pool := m.early(object)
		if pool == "" {
			m.drop(object.UID)
			return // nobody's yet
		}
		name, by = m.pools[pool], claimed
	}
	if podutil.IsPodTerminal(object) {
		m.drop(object.UID)
		delete(m.given, object.UID)
		return
	}
	if p != nil && p.node == name && !(p.mixed && p.hold == reserved) { // what of a node it was given is in its claims now
		if p.hold == reserved && by == bound && m.nodes[name].view.Backend == objects.HAMi {
			m.givenTo(object).list = objects.ListedByHAMi(object)
		}
		p.object, p.hold = object, by
		m.compare(object)
		return
	}
	m.drop(object.UID) // bound elsewhere than we reserved
	view, err := m.Read(object)
	if view.Backend == objects.NoGPUs && (err == nil || len(object.Spec.ResourceClaims) == 0) {
		return
	}
	if view.Backend == objects.NoGPUs { // a request that is not placed here holds its devices all the same
		view.Backend = objects.DRA
		view.Horus.Demands = objects.Unknown(0)
	}
	slots, found := m.slotsOf(object, name, &view)
	if !found {
		m.standDown(object)
		m.waiting.set(object, waiting{object, first})
		return
	}
	if len(slots) == 0 {
		return // claims of other devices
	}
	// A pod whose annotations are wrong holds what it asks for all the same.
	view = m.jobOn(m.nodes[name], slots, view)
	if m.Seen != nil && first {
		m.Seen(View{m: m, Pod: object, Job: view.Horus, Slots: slots, Backend: view.Backend})
	}
	if err := m.adopt(object, name, view, slots, by); err != nil {
		m.standDown(object)
		m.waiting.set(object, waiting{object: object})
	}
}

// overCommitted are the rules that nobody's prediction decides.
var overCommitted = []horus.Reason{horus.ReasonExclusive, horus.ReasonTenantLimit, horus.ReasonGPUMemory, horus.ReasonOwner}

func (m *Mirror) adopt(object *v1.Pod, node string, view objects.Pod, slots []horus.Slot, by hold) error {
	p := &pod{id: view.Horus.ID, object: object, node: node, job: view.Horus, slots: slots, hold: by, mode: view.Sharing, mixed: view.Mixed}
	for _, slot := range slots {
		m.tenants[slot]++
	}
	m.jobs[p.id], m.pods[object.UID], m.nodes[node].pods[object.UID] = p, p, p
	m.reshut(m.nodes[node]) // before it is there, since no device changes its mode under a job
	p.job.SMCapPct = m.nodes[node].capOf(view, slots)
	reason, err := m.library.Adopt(p.job, slots)
	if err != nil {
		// The job's own fields are out of range: what it holds is what counts.
		plain := horus.Job{
			ID: view.Horus.ID, Name: view.Horus.Name, Exclusive: true, GPUsPerTask: view.Horus.GPUsPerTask,
			Demands: objects.Unknown(0),
		}
		if reason, err = m.library.Adopt(plain, slots); err != nil {
			m.drop(object.UID)
			return err
		}
	}
	if by == bound && slices.Contains(overCommitted, reason) {
		klog.InfoS("GPUs are over-committed", "pod", klog.KObj(object), "node", node, "rule", reason.String())
	}
	if by != reserved {
		m.link(p)
	}
	if view.Contradiction != "" || m.given[object.UID] != nil {
		m.givenTo(object).profile = view.Contradiction
		m.compare(object)
	}
	return nil
}

// slotsOf tells the devices of a pod on a node: those of its claims, those that HAMi's annotations name, or for whole GPUs the first
// free ones, since the kubelet tells nobody which it gave.
func (m *Mirror) slotsOf(object *v1.Pod, name string, view *objects.Pod) ([]horus.Slot, bool) {
	n := m.nodes[name]
	if n == nil || !n.added || !view.Backend.On(n.view.Backend) {
		return nil, false
	}
	switch n.view.Backend {
	case objects.Whole:
		return m.freeDevices(n, int(view.Horus.GPUsPerTask))
	case objects.HAMi:
		return m.heldByHAMi(n, object, view)
	}
	var slots []horus.Slot
	claims, all := m.claimsOf(object)
	if !all && object.Spec.NodeName != "" {
		return nil, false
	}
	for _, claim := range claims {
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
	if len(n.view.Devices) < count {
		return nil, false
	}
	out := make([]horus.Slot, len(n.view.Devices))
	for i := range out {
		out[i] = horus.Slot{Node: n.id, Device: uint32(i)}
	}
	slices.SortStableFunc(out, func(a, b horus.Slot) int { // more than there are: the node is over-committed, and so is the mirror
		return cmp.Compare(min(m.tenants[a], 1), min(m.tenants[b], 1))
	})
	return out[:count], true
}

// Counts of what is mirrored. Unused: nodes whose GPUs are not placed, though their device plugin neither shares nor cuts
// them, and the log says why. Contradicting: pods that say something else than what counts.
type Counts struct{ Nodes, Devices, Pods, Waiting, Unused, Contradicting int }

// Counts tells how much is mirrored.
func (m *Mirror) Counts() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := Counts{Pods: len(m.pods)}
	for name, waiters := range m.waiting.nodes {
		if n := m.nodes[name]; n == nil || n.view.Skipped[objects.ByPlugin] == 0 { // else nobody ever learns
			out.Waiting += len(waiters)
		}
	}
	for _, g := range m.given {
		if g.told != "" {
			out.Contradicting++
		}
	}
	for _, n := range m.nodes {
		if n.added {
			out.Nodes++
			out.Devices += len(n.view.Devices)
		}
		if n.view.Problem != "" && n.view.Skipped[objects.ByPlugin] == 0 {
			out.Unused++
		}
	}
	return out
}

// Skipped counts the devices that are not used, by reason; the log says where.
func (m *Mirror) Skipped() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]int{}
	for _, devices := range m.astray {
		out[objects.NoNode] += devices
	}
	for _, n := range m.nodes {
		for reason, devices := range n.view.Skipped {
			out[reason] += devices
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
		if p.hold == bound && !there[uid] && !m.lives(p.object) {
			m.drop(uid)
		}
	}
}

func (m *Mirror) lives(object *v1.Pod) bool {
	known := m.lookups.Pod(object.Namespace, object.Name)
	return known != nil && known.UID == object.UID
}

// Read is a pod as a job; the error is for its owner.
func (m *Mirror) Read(object *v1.Pod) (objects.Pod, error) {
	return objects.JobOf(m.settings, object, m.lookups)
}

// Distance of ids at either end; between two neighbours there is room for 40 halvings, and names in random order need some
// 4.3 ln(nodes) of them (the height of a random search tree).
const stride = 1 << 40

// ranked keeps names in order and gives each an id that orders alike, so that of equal places the library takes the one
// whose node comes first by name, in whatever order nodes became known.
type ranked struct {
	names []string
	ids   []uint64
	spare uint64 // of the next id that had no room at its place
}

func (r *ranked) add(name string) uint64 {
	at, _ := slices.BinarySearch(r.names, name)
	var id uint64
	switch {
	case len(r.names) == 0:
		id = 1 << 63
	case at == 0:
		id = r.ids[0] - stride
	case at == len(r.names):
		id = r.ids[at-1] + stride
	default:
		id = r.ids[at-1] + (r.ids[at]-r.ids[at-1])/2
	}
	if slices.Contains(r.ids, id) { // crowded: any other will do
		r.spare++
		id = r.spare
	}
	r.names, r.ids = slices.Insert(r.names, at, name), slices.Insert(r.ids, at, id)
	return id
}

func (r *ranked) drop(name string) {
	if at, found := slices.BinarySearch(r.names, name); found {
		r.names, r.ids = slices.Delete(r.names, at, at+1), slices.Delete(r.ids, at, at+1)
	}
}
