// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

// given is what counts against what a pod says. The list is what it has on a node of HAMi's: what the scheduler recorded as it bound it,
// else the annotation as it was first read.
type given struct {
	list  string // "" = it has none, or it could not be read yet
	doubt string // what is wrong with it, in a sentence

	profile string // how its profile contradicts what it asks for
	told    string // of that, or of what the pod says now
}

func (m *Mirror) givenTo(object *v1.Pod) *given {
	g := m.given[object.UID]
	if g == nil {
		g = &given{}
		m.given[object.UID] = g
	}
	return g
}

// heldByHAMi tells the devices of a pod, and makes its job one that has what HAMi gave it there.
func (m *Mirror) heldByHAMi(n *node, object *v1.Pod, view *objects.Pod) (slots []horus.Slot, known bool) {
	g := m.givenTo(object)
	ours := cmp.Or(objects.RecordedByHAMi(object), g.list)
	list := cmp.Or(ours, object.Annotations[objects.HAMiAllocated])
	devices, held, doubt, err := objects.HeldByHAMi(m.settings, object, list, n.view.Devices)
	if err != nil && ours == "" { // else its card is away for a while
		m.contradicts(object, err.Error())
	}
	if err != nil {
		return nil, false
	}
	g.list, g.doubt = list, doubt
	for _, device := range devices {
		index, _ := n.device("", device.UUID)
		slots = append(slots, horus.Slot{Node: n.id, Device: index})
	}
	*view = view.Holding(devices, held)
	m.compare(object)
	return slots, true
}

// compare looks whether a pod says what counts.
func (m *Mirror) compare(object *v1.Pod) {
	g := m.given[object.UID]
	if g == nil {
		return
	}
	changed := ""
	if found := object.Annotations[objects.HAMiAllocated]; g.list != "" && found != g.list {
		changed = fmt.Sprintf("annotation %s: expected %.200q, as the pod was bound, found %.200q: the first counts", objects.HAMiAllocated, g.list, found)
	}
	m.contradicts(object, cmp.Or(g.doubt, changed, g.profile))
}

// contradicts tells a sentence against a pod where it is another than before; "" = there is none.
func (m *Mirror) contradicts(object *v1.Pod, sentence string) {
	g := m.givenTo(object)
	if g.told == sentence {
		return
	}
	if g.told = sentence; sentence != "" {
		klog.InfoS("A pod says else than what counts", "pod", klog.KObj(object), "node", object.Spec.NodeName, "why", sentence)
		if m.Contradicts != nil {
			m.Contradicts(object, sentence)
		}
	}
}
