// SPDX-License-Identifier: Apache-2.0

// Package mirror keeps a libhorus cluster as the API server tells it: nodes with their GPUs, and the pods on them,
// whoever put them there. It is rebuilt from objects alone, at the start and whenever one changes.
package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	order   order
	ranks   ranked
	hosts   hosts

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
		tenants: map[horus.Slot]int{}, waiting: map[types.UID]waiting{},
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
	for _, one := range m.waiting {
		if one.object.Spec.NodeName == name {
			m.setPod(one.object, one.first)
		}
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
		view.Horus.ID = m.nextID()
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
	delete(m.waiting, uid)
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

func done(object *v1.Pod) bool {
	return object.Status.Phase == v1.PodSucceeded || object.Status.Phase == v1.PodFailed
}

// setPod takes a pod in. first: it was not shown to Seen.
func (m *Mirror) setPod(object *v1.Pod, first bool) {
	delete(m.waiting, object.UID)
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
	slots, found := m.slotsOf(object, view)
	if !found {
		m.waiting[object.UID] = waiting{object, first}
		return
	}
	if len(slots) == 0 {
		return // claims of other devices
	}
	view.Horus.GPUsPerTask = int32(len(slots))
	// A pod whose annotations are wrong holds what it asks for all the same.
	view.Horus.ID = m.nextID()
	if m.Seen != nil && first {
		m.Seen(View{m: m, Pod: object, Job: view.Horus, Slots: slots, Backend: view.Backend})
	}
	if err := m.adopt(object, object.Spec.NodeName, view, slots, true); err != nil {
		m.waiting[object.UID] = waiting{object: object}
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

// slotsOf tells the devices of a bound pod: those of its claims, or for whole GPUs the first free ones, since the kubelet
// tells nobody which it gave.
func (m *Mirror) slotsOf(object *v1.Pod, view objects.Pod) ([]horus.Slot, bool) {
	n := m.nodes[object.Spec.NodeName]
	if n == nil || !n.added || n.view.Backend != view.Backend {
		return nil, false
	}
	if view.Backend == objects.Whole {
		return m.freeDevices(n, int(view.Horus.GPUsPerTask))
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

// Shared counts the GPUs on which pods of a namespace are not alone.
func (m *Mirror) Shared(namespace string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.shared(namespace))
}

// SharesMore says whether a further pod of the namespace on these devices would make them more.
func (m *Mirror) SharesMore(namespace string, slots []horus.Slot) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	shared := m.shared(namespace)
	return slices.ContainsFunc(slots, func(slot horus.Slot) bool { return m.tenants[slot] > 0 && !shared[slot] })
}

func (m *Mirror) shared(namespace string) map[horus.Slot]bool {
	shared := map[horus.Slot]bool{}
	for _, p := range m.pods {
		if p.object.Namespace != namespace {
			continue
		}
		for _, slot := range p.slots {
			if m.tenants[slot] > 1 {
				shared[slot] = true
			}
		}
	}
	return shared
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

// Verdict of one node on a job.
type Verdict struct {
	Cost   float64
	Reason horus.Reason // ReasonNone: it fits
	Known  bool         // the node has GPUs of the job's backend
}

// Verdicts asks all nodes of the scheduler's picture for a job, in one call. The row of a node without GPUs of the job's
// backend is not Known.
func (m *Mirror) Verdicts(view objects.Pod, nodes []fwk.NodeInfo) ([]Verdict, error) {
	m.enter()
	defer m.mu.Unlock()
	o := &m.order
	if o.stale || o.backend != view.Backend || !o.isOf(nodes) {
		m.lookUp(view.Backend, nodes)
	}
	for i, info := range nodes {
		if n := o.nodes[i]; n != nil && n.seen != info.GetGeneration() {
			m.follow(n, info)
		}
	}
	job := view.Horus
	job.ID = m.lastID + 1
	verdicts, err := m.library.Verdicts(job, o.ids)
	if err != nil {
		return nil, err
	}
	out := make([]Verdict, len(nodes))
	for i := range out {
		out[i].Reason = horus.ReasonGPUType
	}
	for i, row := range o.rows {
		out[row] = Verdict{Cost: verdicts.Costs[i], Reason: verdicts.Reasons[i], Known: true}
	}
	return out, nil
}

func (o *order) isOf(nodes []fwk.NodeInfo) bool {
	if len(nodes) != len(o.names) {
		return false
	}
	for i, info := range nodes {
		if info.Node().Name != o.names[i] {
			return false
		}
	}
	return true
}

func (m *Mirror) lookUp(backend objects.Backend, nodes []fwk.NodeInfo) {
	m.order = order{backend: backend, names: make([]string, len(nodes)), nodes: make([]*node, len(nodes))}
	for i, info := range nodes {
		name := info.Node().Name
		n := m.nodes[name]
		m.order.names[i], m.order.nodes[i] = name, n
		if n != nil && n.added && n.view.Backend == backend {
			m.order.ids, m.order.rows = append(m.order.ids, n.id), append(m.order.rows, i)
		}
	}
}

// Choice is where a job would go on one node.
type Choice struct {
	Node     string
	Slots    []horus.Slot
	Devices  []objects.Device
	Decision horus.Decision
	Beside   []string // pods on the same devices, as namespace/name
}

// ErrNoPlace says that the job does not fit on the node now; the choice's decision says why.
var ErrNoPlace = errors.New("no place on the node")

// ErrNotAllowed is ErrNoPlace where its claims allow too few of the node's devices.
var ErrNotAllowed = fmt.Errorf("%w: its claims allow too few devices", ErrNoPlace)

// Choose plans a job on those devices of one node that its claims allow.
func (m *Mirror) Choose(ctx context.Context, view objects.Pod, name string, rules Rules) (out Choice, err error) {
	m.enter()
	defer m.mu.Unlock()
	n := m.nodes[name]
	if n == nil || !n.added {
		return Choice{Node: name}, ErrNoPlace
	}
	closed := n.closed(rules)
	if len(n.view.Devices)-len(closed) < int(view.Horus.GPUsPerTask) {
		return Choice{Node: name}, ErrNotAllowed
	}
	for _, device := range closed {
		if err := m.library.Drain(n.id, device, true); err != nil {
			return Choice{}, err
		}
		defer func() { err = cmp.Or(err, m.library.Drain(n.id, device, false)) }()
	}
	return m.choose(ctx, view, name)
}

func (m *Mirror) choose(ctx context.Context, view objects.Pod, name string) (Choice, error) {
	out := Choice{Node: name}
	n := m.nodes[name]
	if n == nil || !n.added {
		return out, ErrNoPlace
	}
	planned, err := m.plan(ctx, view, []uint64{n.id})
	if err != nil {
		return out, err
	}
	if out.Decision = planned.Decision; planned.Verdict != horus.Place {
		return out, ErrNoPlace
	}
	out.Slots = out.Decision.Slots
	for _, slot := range out.Slots {
		out.Devices = append(out.Devices, n.view.Devices[slot.Device])
	}
	seen := map[uint64]bool{planned.JobID: true}
	for _, effect := range planned.Effects {
		if !seen[effect.JobID] {
			seen[effect.JobID] = true
			out.Beside = append(out.Beside, m.nameOf(effect.JobID))
		}
	}
	out.Decision.Text = m.named(out.Decision.Text)
	return out, nil
}

// plan decides one job among the nodes.
func (m *Mirror) plan(ctx context.Context, view objects.Pod, nodes []uint64) (library.Planned, error) {
	job := view.Horus
	job.ID = m.lastID + 1
	planned, err := m.library.Plan(ctx, []horus.Job{job}, nodes)
	if err != nil {
		return library.Planned{}, err
	}
	return planned[0], nil
}

// idsOf the nodes with GPUs of a backend that `may` allows, ascending.
func (m *Mirror) idsOf(backend objects.Backend, may func(*v1.Node) bool) []uint64 {
	ids := []uint64{}
	for _, n := range m.nodes {
		if n.added && n.view.Backend == backend && may(n.object) {
			ids = append(ids, n.id)
		}
	}
	slices.Sort(ids)
	return ids
}

var jobNumber = regexp.MustCompile(`\bjob (\d+)\b`)

// named puts pods' names into a sentence of the library, which knows numbers.
func (m *Mirror) named(text string) string {
	return jobNumber.ReplaceAllStringFunc(text, func(found string) string {
		id, err := strconv.ParseUint(strings.TrimPrefix(found, "job "), 10, 64)
		if name := m.nameOf(id); err == nil && name != "" {
			return name
		}
		return found
	})
}

func (m *Mirror) nameOf(job uint64) string {
	p := m.jobs[job]
	if p == nil {
		return ""
	}
	return p.object.Namespace + "/" + p.object.Name
}

// Reserve takes a pod in where it was planned, or, with nil, where a plan on the node says now. What came in between is looked
// at again: ErrNoPlace where the pod does not fit any more, or the node has other devices.
func (m *Mirror) Reserve(ctx context.Context, object *v1.Pod, view objects.Pod, name string, planned *Choice) (Choice, error) {
	m.enter()
	defer m.mu.Unlock()
	m.drop(object.UID)
	if planned == nil {
		choice, err := m.choose(ctx, view, name)
		if err != nil {
			return choice, err
		}
		planned = &choice
	} else if reason, err := m.stillFits(view, name, *planned); err != nil || reason != horus.ReasonNone {
		return Choice{Decision: horus.Decision{Reason: reason}}, cmp.Or(err, ErrNoPlace)
	}
	view.Horus.ID = m.nextID()
	return *planned, m.adopt(object, name, view, planned.Slots, false)
}

func (m *Mirror) stillFits(view objects.Pod, name string, planned Choice) (horus.Reason, error) {
	n := m.nodes[name]
	for i, slot := range planned.Slots {
		if n == nil || int(slot.Device) >= len(n.view.Devices) || n.view.Devices[slot.Device] != planned.Devices[i] {
			return horus.ReasonDeviceDown, nil
		}
	}
	view.Horus.ID = m.lastID + 1
	found, err := m.library.Appraise(view.Horus, planned.Slots)
	return found.Reason, err
}

// Unreserve gives back what Reserve took; a pod that the API server calls bound keeps it.
func (m *Mirror) Unreserve(uid types.UID) {
	m.enter()
	defer m.mu.Unlock()
	if p := m.pods[uid]; p != nil && !p.bound {
		m.drop(uid)
	}
}

// FitsWithout says whether a job would fit on a node once the named pods had left it, beside those that are to come first.
func (m *Mirror) FitsWithout(view objects.Pod, name string, gone []types.UID, first []objects.Pod) (horus.Reason, error) {
	m.enter()
	defer m.mu.Unlock()
	n := m.nodes[name]
	if n == nil || !n.added || n.view.Backend != view.Backend {
		return horus.ReasonGPUType, nil
	}
	var ids []uint64
	for _, uid := range gone {
		if p := m.pods[uid]; p != nil && p.node == name {
			ids = append(ids, p.id)
		}
	}
	here := []horus.Label{{Key: objects.HostLabel, Value: name}}
	var jobs []horus.Job
	for _, one := range append(first[:len(first):len(first)], view) {
		job := one.Horus
		job.ID, job.Selectors = m.lastID+1+uint64(len(jobs)), here
		jobs = append(jobs, job)
	}
	planned, err := m.library.PlanWithout(ids, jobs)
	if err != nil {
		return horus.ReasonNone, err
	}
	for _, one := range planned {
		if one.JobID == jobs[len(jobs)-1].ID {
			return one.Reason, nil // none when it is placed
		}
	}
	return horus.ReasonNone, fmt.Errorf("a plan without a decision on job %d", jobs[len(jobs)-1].ID)
}

// View is a pod that somebody bound, while the mirror holds still.
type View struct {
	m       *Mirror
	Pod     *v1.Pod
	Job     horus.Job
	Slots   []horus.Slot
	Backend objects.Backend
}

// Regret compares where the pod was put with what the placer would have done among the nodes that `may` allows.
func (v View) Regret(ctx context.Context, may func(*v1.Node) bool) (horus.Regret, error) {
	return v.m.library.Regret(ctx, v.Job, v.Slots, v.m.idsOf(v.Backend, may))
}

// NodeName is the name of a node of a slot; "" of one that is gone.
func (v View) NodeName(id uint64) string {
	for name, n := range v.m.nodes {
		if n.id == id {
			return name
		}
	}
	return ""
}

const noNodes = "no node that is open to it offers GPUs in the way that it asks for them"

// Nearest is the nearest miss of a job over the nodes that are open to it, in the library's sentence.
func (m *Mirror) Nearest(ctx context.Context, view objects.Pod, open objects.Openness) (string, error) {
	m.enter()
	defer m.mu.Unlock()
	nodes := m.idsOf(view.Backend, open.To)
	if len(nodes) == 0 {
		return noNodes, nil
	}
	decision, err := m.plan(ctx, view, nodes)
	if err != nil {
		return "", err
	}
	if decision.Verdict == horus.Place {
		return "GPUs are free for it, and what else it asks for is not there", nil
	}
	return m.named(strings.TrimSuffix(decision.Text, ".")), nil
}
