// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"maps"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

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
