// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
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
func (v View) Regret(ctx context.Context, may func(*v1.Node) bool) (out horus.Regret, err error) {
	err = v.m.closing(v.otherKinds(), func() (err error) {
		out, err = v.m.library.Regret(ctx, v.Job, v.Slots, v.m.idsOf(v.Backend, may))
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

// NodeName is the name of a node of a slot; "" of one that is gone.
func (v View) NodeName(id uint64) string { return v.m.names()[id] }

// hosts count what pods request of the cores and memory of nodes. Where Horus places, the scheduler's own plugins look at
// them; where it only says where it would have placed, nobody else does.
type hosts struct {
	pods  map[types.UID]hostRequest
	nodes map[string]hostRequest // sums
}

type hostRequest struct {
	node                string
	cpuMilli, memory, n int64
}

func requestOfHost(object *v1.Pod) hostRequest {
	requests := resourcehelper.PodRequests(object, resourcehelper.PodResourcesOptions{})
	return hostRequest{object.Spec.NodeName, requests.Cpu().MilliValue(), requests.Memory().Value(), 1}
}

func (h *hosts) set(object *v1.Pod) {
	h.drop(object.UID)
	if object.Spec.NodeName != "" && !done(object) {
		one := requestOfHost(object)
		h.pods[object.UID] = one
		h.add(one, 1)
	}
}

func (h *hosts) drop(uid types.UID) {
	if one, known := h.pods[uid]; known {
		delete(h.pods, uid)
		h.add(one, -1)
	}
}

func (h *hosts) add(one hostRequest, sign int64) {
	sum := h.nodes[one.node]
	sum.cpuMilli, sum.memory, sum.n = sum.cpuMilli+sign*one.cpuMilli, sum.memory+sign*one.memory, sum.n+sign
	if h.nodes[one.node] = sum; sum.n == 0 {
		delete(h.nodes, one.node)
	}
}

// HasRoom says whether a node has the cores and the memory of its host left that the pod requests.
func (v View) HasRoom(node *v1.Node) bool {
	used, more, free := v.m.hosts.nodes[node.Name], requestOfHost(v.Pod), node.Status.Allocatable
	return used.cpuMilli+more.cpuMilli <= free.Cpu().MilliValue() && used.memory+more.memory <= free.Memory().Value()
}
