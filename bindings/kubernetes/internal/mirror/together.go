// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
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
// already. may: node open to the job of that row. Where there is no place for all, it returns the library's sentence.
func (m *Mirror) Together(ctx context.Context, views []objects.Pod, may func(row int, node *v1.Node) bool) (nodes []string, miss string, err error) {
	m.enter()
	defer m.mu.Unlock()
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
		if miss, err = m.planTogether(ctx, kinds, jobs, among, nodes); miss != "" || err != nil {
			return nil, miss, err
		}
	}
	return nodes, "", nil
}

func kindsOf(views []objects.Pod) map[objects.Backend][]*alike {
	out := map[objects.Backend][]*alike{}
next:
	for row, view := range views {
		if view.Backend == objects.NoGPUs || view.Allocated {
			continue
		}
		for _, kind := range out[view.Backend] {
			job := view.Horus
			job.Name = kind.job.Name
			if reflect.DeepEqual(job, kind.job) {
				kind.rows = append(kind.rows, row)
				continue next
			}
		}
		out[view.Backend] = append(out[view.Backend], &alike{view.Horus, []int{row}})
	}
	return out
}

func (m *Mirror) planTogether(ctx context.Context, kinds []*alike, jobs []horus.Job, among []uint64, nodes []string) (string, error) {
	planned, err := m.library.Plan(ctx, jobs, among)
	if err != nil {
		return "", err
	}
	names := map[uint64]string{}
	for name, n := range m.nodes {
		names[n.id] = name
	}
	for _, one := range planned {
		kind := kinds[one.JobID-jobs[0].ID]
		if one.Verdict != horus.Place {
			return m.named(one.Text), nil
		}
		each := len(one.Slots) / len(kind.rows)
		for task, row := range kind.rows {
			nodes[row] = names[one.Slots[task*each].Node]
		}
	}
	return "", nil
}
