// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/learn"
)

// View is a pod that somebody bound, while the mirror holds still.
type View struct {
	m       *Mirror
	Pod     *v1.Pod
	Job     horus.Job
	Slots   []horus.Slot
	Backend objects.Backend
}

// Regret compares where the pod was put with what the placer would have done among the nodes that `may` allows.
func (v View) Regret(may func(*v1.Node) bool) (out horus.Regret, err error) {
	err = v.m.closing(v.otherKinds(), func() (err error) {
		out, err = v.m.library.Regret(v.Job, v.Slots, v.m.idsOf(v.Backend, may))
		return err
	})
	return out, err
}

// otherKinds are the partitions of other profiles than the pod was given, and cards where it was given a partition: what it was given
// tells which it asked for.
func (v View) otherKinds() (out []horus.Slot) {
	given := v.m.nodes[v.Pod.Spec.NodeName].view.Horus.Devices[v.Slots[0].Device]
	for _, n := range v.m.nodes {
		for i := 0; i < len(n.view.Devices) && n.view.Counts(); i++ {
			if n.view.Horus.Devices[i].MIGProfile != given.MIGProfile && !n.shut[uint32(i)] {
				out = append(out, horus.Slot{Node: n.id, Device: uint32(i)})
			}
		}
	}
	return out
}

// NodeName of slots; "" where there are none.
func (v View) NodeName(slots []horus.Slot) string { return v.m.nodeName(slots) }

// hostRequest is what a pod requests of the cores and memory of its node. Where Horus places, the scheduler's own plugins look at
// them; where it only says where it would have placed, nobody else does.
type hostRequest struct{ cpuMilli, memory int64 }

func requestOfHost(object *v1.Pod) hostRequest {
	requests := resourcehelper.PodRequests(object, resourcehelper.PodResourcesOptions{})
	return hostRequest{requests.Cpu().MilliValue(), requests.Memory().Value()}
}

// Room says of a node whether it has the cores and the memory of its host left that the pod requests.
func (v View) Room() func(*v1.Node) bool {
	asked := requestOfHost(v.Pod)
	return func(node *v1.Node) bool {
		sum, free := asked, node.Status.Allocatable
		for _, used := range v.m.hosts.nodes[node.Name] {
			sum.cpuMilli, sum.memory = sum.cpuMilli+used.cpuMilli, sum.memory+used.memory
		}
		return sum.cpuMilli <= free.Cpu().MilliValue() && sum.memory <= free.Memory().Value()
	}
}

// Tenant is a pod that holds devices.
type Tenant struct {
	Pod *v1.Pod
	Job horus.Job
}

// Occupied tells all devices that pods hold, by node and position, and those pods by their keys. Kinds and demands are left out.
func (m *Mirror) Occupied() (out []learn.Device, tenants map[string]Tenant) {
	defer m.enter()()
	tenants = map[string]Tenant{}
	for _, name := range m.ranks.names {
		n := m.nodes[name]
		on, here := make([][]learn.Tenant, len(n.view.Devices)), map[string]Tenant{}
		for uid, p := range n.pods {
			view, err := m.Read(p.object)
			if err != nil {
				continue // what it does is unknown, and so is what those beside it lose
			}
			view.Horus.SMCapPct = n.capOf(view, p.slots)
			here[string(uid)] = Tenant{p.object, view.Horus}
			for _, slot := range p.slots {
				on[slot.Device] = append(on[slot.Device], learn.Tenant{Key: string(uid), Pod: m.nameOf(p.id), GPUs: len(p.slots)})
			}
		}
		for i, all := range on {
			if len(all) == 0 || len(all) != m.tenants[horus.Slot{Node: n.id, Device: uint32(i)}] {
				continue
			}
			for _, one := range all {
				tenants[one.Key] = here[one.Key]
			}
			slices.SortFunc(all, func(a, b learn.Tenant) int { return cmp.Compare(a.Key, b.Key) })
			device := n.deviceNow(i)
			out = append(out, learn.Device{Node: name, ID: n.view.Devices[i].UUID, GPUType: device.GPUType, SharingMode: device.SharingMode, Tenants: all})
		}
	}
	return out, tenants
}

// Learn corrects the library's model by a snapshot of observations; none = by nothing. The lock is held for the change alone.
func (m *Mirror) Learn(observations []byte) error {
	use, err := m.library.Learn(observations)
	if err != nil {
		return err
	}
	defer m.enter()()
	return use()
}

// Reviewed is what the library says of a pod that shares.
type Reviewed struct {
	horus.TenantReview
	Pod *v1.Pod
	To  string // node to which it is better moved; "" = none
}

// Review looks at the pods that share, broken bounds first.
func (m *Mirror) Review(options horus.RebalanceOptions) ([]Reviewed, error) {
	defer m.enter()()
	reviews, err := m.library.Review(options)
	if err != nil {
		return nil, err
	}
	to := map[uint64]string{}
	for _, move := range reviews.Moves {
		to[move.JobID] = m.nodeName(move.To)
	}
	out := make([]Reviewed, 0, len(reviews.Tenants))
	for _, review := range reviews.Tenants {
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
