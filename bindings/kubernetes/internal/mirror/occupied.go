// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

// Occupied is a device with the pods that hold it.
type Occupied struct {
	Node    string
	Device  objects.Device
	Horus   horus.Device
	Tenants []Tenant // by UID
}

// Tenant is a pod on a device.
type Tenant struct {
	Pod  *v1.Pod
	Job  horus.Job
	GPUs int // that it holds in all
}

// Occupied tells all devices that pods hold, by node and position.
func (m *Mirror) Occupied() []Occupied {
	m.enter()
	defer m.mu.Unlock()
	var out []Occupied
	for _, name := range m.ranks.names {
		n := m.nodes[name]
		if n == nil || !n.added || len(n.pods) == 0 {
			continue
		}
		on := make([][]Tenant, len(n.view.Devices))
		for _, p := range n.pods {
			view, err := m.Read(p.object)
			if err != nil {
				continue // what it does is unknown, and so is what those beside it lose
			}
			view.Horus.SMCapPct = n.capOf(view, p.slots)
			for _, slot := range p.slots {
				on[slot.Device] = append(on[slot.Device], Tenant{Pod: p.object, Job: view.Horus, GPUs: len(p.slots)})
			}
		}
		for i, tenants := range on {
			if len(tenants) == 0 || len(tenants) != m.tenants[horus.Slot{Node: n.id, Device: uint32(i)}] {
				continue
			}
			slices.SortFunc(tenants, func(a, b Tenant) int { return cmp.Compare(a.Pod.UID, b.Pod.UID) })
			out = append(out, Occupied{Node: name, Device: n.view.Devices[i], Horus: n.deviceNow(i), Tenants: tenants})
		}
	}
	return out
}

// Learn corrects the library's model by a snapshot of observations; none = by nothing. The lock is held for the change alone.
func (m *Mirror) Learn(observations []byte) error {
	model, err := m.library.Prepare(observations)
	if err != nil {
		return err
	}
	m.enter()
	defer m.mu.Unlock()
	return m.library.Use(model)
}

// Reviewed is what the library says of a pod that shares.
type Reviewed struct {
	horus.TenantReview
	Pod *v1.Pod
	To  string // node to which it is better moved; "" = none
}

// Review looks at the pods that share, broken bounds first.
func (m *Mirror) Review(options horus.RebalanceOptions) ([]Reviewed, error) {
	m.enter()
	defer m.mu.Unlock()
	reviews, moves, err := m.library.Review(options)
	if err != nil {
		return nil, err
	}
	names := m.names()
	to := map[uint64]string{}
	for _, move := range moves {
		if len(move.To) > 0 {
			to[move.JobID] = names[move.To[0].Node]
		}
	}
	out := make([]Reviewed, 0, len(reviews))
	for _, review := range reviews {
		if p := m.jobs[review.JobID]; p != nil {
			out = append(out, Reviewed{review, p.object, to[review.JobID]})
		}
	}
	return out, nil
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
