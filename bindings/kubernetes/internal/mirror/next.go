// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

// Turn is what a plan for those who wait says of one of them.
type Turn struct {
	Verdict horus.Verdict
	Reason  horus.Reason
	Node    string // of who goes
}

// Next decides who of those who wait goes, and where, among the nodes that `may` allows.
func (m *Mirror) Next(ctx context.Context, views []objects.Pod, may func(*v1.Node) bool, options horus.BatchOptions) ([]Turn, error) {
	m.enter()
	defer m.mu.Unlock()
	turns := make([]Turn, len(views))
	names := m.names()
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
		planned, err := m.library.PlanBatch(ctx, jobs, m.idsOf(backend, may), options)
		if err != nil {
			return nil, err
		}
		for _, one := range planned {
			turn := Turn{Verdict: one.Verdict, Reason: one.Reason}
			if one.Verdict == horus.Place {
				turn.Node = names[one.Slots[0].Node]
			}
			turns[rows[one.JobID-jobs[0].ID]] = turn
		}
	}
	return turns, nil
}
