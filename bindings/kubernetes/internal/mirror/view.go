// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"

	v1 "k8s.io/api/core/v1"

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
