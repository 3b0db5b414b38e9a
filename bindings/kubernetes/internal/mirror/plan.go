// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/library"
	"libhorus.org/kubernetes/internal/objects"
)

// Verdict of one node on a job.
type Verdict struct {
	Cost   float64
	Reason horus.Reason // ReasonNone: it fits
	Known  bool         // the node has GPUs of the job's backend
}

// Verdicts asks all nodes of the scheduler's picture for a job, in one call. The row of a node without GPUs of the job's
// backend is not Known.
func (m *Mirror) Verdicts(view objects.Pod, nodes []fwk.NodeInfo) ([]Verdict, error) {
	defer m.enter()()
	o := &m.order
	known := slices.EqualFunc(nodes, o.names, func(info fwk.NodeInfo, name string) bool { return info.Node().Name == name })
	if !known || o.stale || o.backend != view.Backend {
		m.lookUp(view.Backend, nodes)
	}
	for i, info := range nodes {
		if n := o.nodes[i]; n != nil && n.seen != info.GetGeneration() {
			m.follow(n, info)
		}
	}
	out := make([]Verdict, len(nodes))
	for i := range out {
		out[i].Reason = horus.ReasonGPUType
	}
	if !view.SizedByNode() {
		return out, m.verdicts(view, o.ids, o.rows, out)
	}
	ids, rows := map[int64][]uint64{}, map[int64][]int{} // by the memory of devices
	for i, row := range o.rows {
		memory := o.nodes[row].memory()
		ids[memory], rows[memory] = append(ids[memory], o.ids[i]), append(rows[memory], row)
	}
	for memory := range ids {
		if err := m.verdicts(view.Sized(memory), ids[memory], rows[memory], out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (m *Mirror) verdicts(view objects.Pod, ids []uint64, rows []int, out []Verdict) error {
	view.Horus.ID = m.lastID + 1
	verdicts, err := m.library.Verdicts(view.Horus, ids)
	if err != nil {
		return err
	}
	for i, row := range rows {
		out[row] = Verdict{Cost: verdicts.Costs[i], Reason: verdicts.Reasons[i], Known: true}
	}
	return nil
}

func (m *Mirror) lookUp(backend objects.Backend, nodes []fwk.NodeInfo) {
	m.order = order{backend: backend, names: make([]string, len(nodes)), nodes: make([]*node, len(nodes))}
	for i, info := range nodes {
		name := info.Node().Name
		n := m.nodes[name]
		m.order.names[i], m.order.nodes[i] = name, n
		if n != nil && n.added && backend.On(n.view.Backend) {
			m.order.ids, m.order.rows = append(m.order.ids, n.id), append(m.order.rows, i)
		}
	}
}

// Choice is where a job would go on one node.
type Choice struct {
	Node     string
	Backend  objects.Backend // of the node
	Slots    []horus.Slot
	Devices  []objects.Device
	Decision horus.Decision
	Beside   []string // pods on the same devices, as namespace/name
}

// ErrNoPlace says that the job does not fit on the node now; the choice's decision says why.
var ErrNoPlace = errors.New("no place on the node")

// ErrNotAllowed is ErrNoPlace where its claims or annotations allow too few of the node's devices.
var ErrNotAllowed = fmt.Errorf("%w: it allows too few devices", ErrNoPlace)

// Choose plans a job on those devices of one node that it allows.
func (m *Mirror) Choose(view objects.Pod, name string, rules Rules) (out Choice, err error) {
	defer m.enter()()
	n := m.nodes[name]
	if n == nil || !n.added {
		return Choice{Node: name}, ErrNoPlace
	}
	view = view.Sized(n.memory())
	if view.Mixed {
		return m.chooseMixed(view, n)
	}
	closed := n.closed(rules)
	open := len(n.view.Devices) - len(n.shut) - len(closed)
	if open < int(view.Horus.GPUsPerTask) {
		return Choice{Node: name}, ErrNotAllowed
	}
	choose := func() (err error) { out, err = m.choose(view, n); return err }
	err = m.closing(closed, func() error {
		if spare := m.spare(n, closed); len(spare) > 0 && len(spare) < open {
			if err := m.closing(spare, choose); !errors.Is(err, ErrNoPlace) {
				return err
			}
		}
		return choose()
	})
	return out, err
}

// chooseMixed leaves all free devices of a node to upstream's allocator.
func (m *Mirror) chooseMixed(view objects.Pod, n *node) (Choice, error) {
	out, err := m.choose(view, n)
	out.Slots, out.Devices = nil, nil
	for i, device := range n.view.Devices {
		if slot := (horus.Slot{Node: n.id, Device: uint32(i)}); m.tenants[slot] == 0 && !n.shut[slot.Device] {
			out.Slots, out.Devices = append(out.Slots, slot), append(out.Devices, device)
		}
	}
	if err == nil && view.AllOf && len(out.Devices) < len(n.view.Devices) {
		err = ErrNoPlace
	}
	return out, err
}

func (m *Mirror) choose(view objects.Pod, n *node) (Choice, error) {
	out := Choice{Node: n.view.Horus.Name, Backend: n.view.Backend}
	planned, err := m.plan(view.Sized(n.memory()), []uint64{n.id})
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
	for _, effect := range planned.Effects {
		if name := m.nameOf(effect.JobID); effect.JobID != planned.JobID && !slices.Contains(out.Beside, name) {
			out.Beside = append(out.Beside, name)
		}
	}
	out.Decision.Text = m.named(out.Decision.Text)
	return out, nil
}

func (m *Mirror) plan(view objects.Pod, nodes []uint64) (library.Planned, error) {
	view.Horus.ID = m.lastID + 1
	planned, err := m.library.Plan([]horus.Job{view.Horus}, nodes)
	if err != nil {
		return library.Planned{}, err
	}
	return planned[0], nil
}

// sized by the largest device there is, where one size is to do for many nodes: where devices are smaller, it asks for too much.
func (m *Mirror) sized(view objects.Pod) objects.Pod {
	most := int64(0)
	if view.SizedByNode() {
		for _, n := range m.nodes {
			most = max(most, n.memory())
		}
	}
	return view.Sized(most)
}

// idsOf the nodes with GPUs of a backend that `may` allows, ascending.
func (m *Mirror) idsOf(backend objects.Backend, may func(*v1.Node) bool) []uint64 {
	ids := []uint64{}
	for _, n := range m.nodes {
		if n.added && backend.On(n.view.Backend) && may(n.object) {
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
func (m *Mirror) Reserve(object *v1.Pod, view objects.Pod, name string, planned *Choice) (Choice, error) {
	defer m.enter()()
	m.drop(object.UID)
	n := m.nodes[name]
	if n == nil || !n.added {
		return Choice{Decision: horus.Decision{Reason: horus.ReasonDeviceDown}}, ErrNoPlace
	}
	view = view.Sized(n.memory())
	if planned == nil {
		choice, err := m.choose(view, n)
		if err != nil {
			return choice, err
		}
		planned = &choice
	} else if reason, err := m.stillFits(view, n, *planned); err != nil || reason != horus.ReasonNone {
		return Choice{Decision: horus.Decision{Reason: reason}}, cmp.Or(err, ErrNoPlace)
	}
	return *planned, m.adopt(object, name, m.jobOn(n, planned.Slots, view), planned.Slots, reserved)
}

// jobOn is a pod as a new job on those devices. It shares with nobody where its claim got all memory of one.
func (m *Mirror) jobOn(n *node, slots []horus.Slot, view objects.Pod) objects.Pod {
	m.lastID++
	view.Horus.ID, view.Horus.GPUsPerTask = m.lastID, int32(len(slots))
	for _, slot := range slots {
		if view.AskedMiB == 0 && int(slot.Device) < len(n.view.Raw) && takesAll(n.view.Raw[slot.Device]) {
			view.Horus.Exclusive = true
		}
	}
	return view
}

func (m *Mirror) stillFits(view objects.Pod, n *node, planned Choice) (horus.Reason, error) {
	for i, slot := range planned.Slots {
		if int(slot.Device) >= len(n.view.Devices) || n.view.Devices[slot.Device] != planned.Devices[i] {
			return horus.ReasonDeviceDown, nil
		}
		if view.Mixed && (m.tenants[slot] > 0 || n.shut[slot.Device]) {
			return horus.ReasonExclusive, nil
		}
	}
	if view.Mixed {
		return horus.ReasonNone, nil
	}
	view.Horus.ID = m.lastID + 1
	found, err := m.library.Appraise(view.Horus, planned.Slots)
	return found.Reason, err
}

// Unreserve gives back what Reserve took; a pod that the API server calls bound keeps it.
func (m *Mirror) Unreserve(uid types.UID) {
	defer m.enter()()
	if p := m.pods[uid]; p != nil && p.hold != bound {
		m.drop(uid)
		m.claim(p.object.Namespace, p.object.Name, uid) // what they have by now stays
	}
}

// FitsWithout says whether a job would fit on a node once the named pods had left it, beside those that are to come first.
func (m *Mirror) FitsWithout(view objects.Pod, name string, gone []types.UID, first []objects.Pod) (horus.Reason, error) {
	defer m.enter()()
	n := m.nodes[name]
	if n == nil || !n.added || !view.Backend.On(n.view.Backend) {
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
		job := one.Sized(n.memory()).Horus
		job.ID, job.Selectors = m.lastID+1+uint64(len(jobs)), here
		jobs = append(jobs, job)
	}
	planned, err := m.library.PlanWithout(ids, jobs)
	if err != nil {
		return horus.ReasonNone, err
	}
	at := slices.IndexFunc(planned, func(one library.Planned) bool { return one.JobID == jobs[len(jobs)-1].ID })
	if at < 0 {
		return horus.ReasonNone, fmt.Errorf("a plan without a decision on job %d", jobs[len(jobs)-1].ID)
	}
	return planned[at].Reason, nil // none when it is placed
}

// noNodes says that no node that is open to a pod offers GPUs of its backend.
func (m *Mirror) noNodes(backend objects.Backend) string {
	const none = "no node that is open to it offers GPUs in the way that it asks for them"
	owner := m.settings.Owner
	others := len(m.idsOf(backend, func(node *v1.Node) bool { return !owner.May(node) }))
	if others == 0 {
		return none
	}
	return fmt.Sprintf("%s. %d nodes that do are not this scheduler's: expected the label %s=%s", none, others, objects.SchedulerLabel, owner.Scheduler)
}

// Nearest is the nearest miss of a job over the nodes that are open to it, in the library's sentence.
func (m *Mirror) Nearest(view objects.Pod, open objects.Openness) (string, error) {
	defer m.enter()()
	nodes := m.idsOf(view.Backend, open.To)
	if len(nodes) == 0 {
		return m.noNodes(view.Backend), nil
	}
	decision, err := m.plan(m.sized(view), nodes)
	if err != nil {
		return "", err
	}
	if decision.Verdict == horus.Place {
		return "GPUs are free for it, and what else it asks for is not there", nil
	}
	return m.named(strings.TrimSuffix(decision.Text, ".")), nil
}

// alike are jobs that differ in their names alone: the library places them as one job of many tasks.
type alike struct {
	job  horus.Job
	rows []int
}

// Together finds a node for each of several jobs that are placed all or none; "" for one that asks for no GPUs or has its devices
// already. may: node open to the job of that row; rules: all that there are among them. Where there is no place for all, it returns the
// library's sentence.
func (m *Mirror) Together(views []objects.Pod, rules []Rules, may func(row int, node *v1.Node) bool) (nodes []string, miss string, err error) {
	defer m.enter()()
	nodes = make([]string, len(views))
	views = slices.Clone(views)
	for i := range views {
		views[i] = m.sized(views[i])
	}
	for backend, kinds := range kindsOf(views) {
		among := m.idsOf(backend, func(node *v1.Node) bool {
			return slices.ContainsFunc(kinds, func(kind *alike) bool { // alike for the library; their selectors need not be
				return slices.ContainsFunc(kind.rows, func(row int) bool { return may(row, node) })
			})
		})
		if len(among) == 0 {
			return nil, m.noNodes(backend), nil
		}
		jobs := make([]horus.Job, len(kinds))
		for i, kind := range kinds {
			jobs[i] = kind.job
			jobs[i].ID, jobs[i].Tasks = m.lastID+1+uint64(i), int32(len(kind.rows))
		}
		closed, among := m.closedToAll(backend, among, rules)
		err = m.closing(closed, func() (err error) {
			miss, err = m.planClose(kinds, jobs, among, nodes)
			return err
		})
		if miss != "" || err != nil {
			return nil, miss, err
		}
	}
	return nodes, "", nil
}

// closedToAll are the devices that none of the rules allows, of those nodes that have others.
func (m *Mirror) closedToAll(backend objects.Backend, among []uint64, rules []Rules) (out []horus.Slot, left []uint64) {
	if !backend.Names() || len(rules) == 0 {
		return nil, among
	}
	for _, id := range among {
		n := m.byID[id]
		closed := n.closed(rules[0])
		for _, other := range rules[1:] {
			also := n.closed(other)
			closed = slices.DeleteFunc(closed, func(slot horus.Slot) bool { return !slices.Contains(also, slot) })
		}
		if len(closed) < len(n.view.Devices) {
			out, left = append(out, closed...), append(left, id)
		}
	}
	return out, left
}

// planClose plans on all nodes, of which the library takes one rack while that has room, and where it takes several racks, on those of one
// block after the other.
func (m *Mirror) planClose(kinds []*alike, jobs []horus.Job, among []uint64, nodes []string) (string, error) {
	miss, err := m.planTogether(kinds, jobs, among, nodes)
	if miss != "" || err != nil {
		return miss, err
	}
	racks, crossed := m.spread(nodes)
	if racks < 2 || !crossed {
		return "", nil
	}
	blocks := map[string][]uint64{}
	for _, id := range among {
		if block := m.byID[id].view.Block; block != "" {
			blocks[block] = append(blocks[block], id)
		}
	}
	best := 0
	for _, block := range slices.Sorted(maps.Keys(blocks)) {
		inside := make([]string, len(nodes))
		if miss, err = m.planTogether(kinds, jobs, blocks[block], inside); err != nil {
			return "", err
		}
		if racks, _ = m.spread(inside); miss == "" && (best == 0 || racks < best) {
			best = racks
			copy(nodes, inside)
		}
	}
	return "", nil
}

// spread tells over how many racks nodes are, and whether over several blocks.
func (m *Mirror) spread(nodes []string) (racks int, crossed bool) {
	ids, blocks := map[uint64]bool{}, map[string]bool{}
	for _, name := range nodes {
		if n := m.nodes[name]; n != nil {
			ids[n.view.Horus.Rack], blocks[n.view.Block] = true, true
		}
	}
	return len(ids), len(blocks) > 1
}

func kindsOf(views []objects.Pod) map[objects.Backend][]*alike {
	out := map[objects.Backend][]*alike{}
	for row, view := range views {
		if view.Backend == objects.NoGPUs || view.Allocated {
			continue
		}
		at := slices.IndexFunc(out[view.Backend], func(kind *alike) bool {
			job := view.Horus
			job.Name = kind.job.Name
			return reflect.DeepEqual(job, kind.job)
		})
		if at < 0 {
			out[view.Backend] = append(out[view.Backend], &alike{view.Horus, []int{row}})
		} else {
			out[view.Backend][at].rows = append(out[view.Backend][at].rows, row)
		}
	}
	return out
}

func (m *Mirror) planTogether(kinds []*alike, jobs []horus.Job, among []uint64, nodes []string) (string, error) {
	planned, err := m.library.Plan(jobs, among)
	if err != nil {
		return "", err
	}
	for _, one := range planned {
		kind := kinds[one.JobID-jobs[0].ID]
		if one.Verdict != horus.Place {
			return m.named(one.Text), nil
		}
		each := len(one.Slots) / len(kind.rows)
		for task, row := range kind.rows {
			nodes[row] = m.nodeName(one.Slots[task*each:])
		}
	}
	return "", nil
}

// Turn is what a plan for those who wait says of one of them.
type Turn struct {
	Verdict horus.Verdict
	Reason  horus.Reason
	Node    string // of who goes
}

// Next decides who of those who wait goes, and where, among the nodes that `may` allows.
func (m *Mirror) Next(views []objects.Pod, may func(*v1.Node) bool, options horus.BatchOptions) ([]Turn, error) {
	defer m.enter()()
	turns := make([]Turn, len(views))
	rows := map[objects.Backend][]int{}
	for row, view := range views {
		rows[view.Backend] = append(rows[view.Backend], row)
	}
	for backend, rows := range rows {
		jobs := make([]horus.Job, len(rows))
		for i, row := range rows {
			jobs[i] = views[row].Horus
			jobs[i].ID = m.lastID + 1 + uint64(i)
		}
		planned, err := m.library.PlanBatch(jobs, m.idsOf(backend, may), options)
		if err != nil {
			return nil, err
		}
		for _, one := range planned {
			turns[rows[one.JobID-jobs[0].ID]] = Turn{one.Verdict, one.Reason, m.nodeName(one.Slots)}
		}
	}
	return turns, nil
}
