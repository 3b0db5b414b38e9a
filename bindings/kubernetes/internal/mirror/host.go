// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
)

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
