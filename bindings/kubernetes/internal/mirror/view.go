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
