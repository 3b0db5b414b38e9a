// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	resourceapi "k8s.io/api/resource/v1"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

// Rules say which devices a pod's claims or annotations allow.
type Rules struct {
	Selectors string                         // all of them, as a key under which answers are kept
	Matches   func(*resourceapi.Device) bool // by the selectors
	Tainted   map[objects.Device]bool        // without UUID: taints that are not tolerated

	// Holds says whether a device has what is asked of its capacities left; nil = all do.
	Holds func(at objects.Device, device *resourceapi.Device) bool
}

const mostSelectors = 64 // sets of which a node keeps the answer

// closed are the devices of a node that a pod does not allow.
func (n *node) closed(rules Rules) (out []uint32) {
	matches, known := n.matches[rules.Selectors]
	if !known {
		matches = make([]bool, len(n.view.Raw))
		for i, raw := range n.view.Raw {
			matches[i] = rules.Matches(raw)
		}
		if n.matches == nil || len(n.matches) == mostSelectors {
			n.matches = map[string][]bool{}
		}
		n.matches[rules.Selectors] = matches
	}
	for i, d := range n.view.Devices {
		if !matches[i] || rules.Tainted[objects.Device{Pool: d.Pool, Name: d.Name}] || (rules.Holds != nil && !rules.Holds(d, n.view.Raw[i])) {
			out = append(out, uint32(i))
		}
	}
	return out
}

// takesAll says whether a claim that asks for no memory gets all of the device's.
func takesAll(device *resourceapi.Device) bool {
	memory, counted := device.Capacity["memory"]
	return counted && (memory.RequestPolicy == nil || memory.RequestPolicy.Default == nil || memory.RequestPolicy.Default.Cmp(memory.Value) >= 0)
}

// aloneOn makes a pod one that shares with nobody, where its claim got all memory of its devices.
func (n *node) aloneOn(slots []horus.Slot, view *objects.Pod) {
	for _, slot := range slots {
		if view.AskedMiB == 0 && int(slot.Device) < len(n.view.Raw) && takesAll(n.view.Raw[slot.Device]) {
			view.Horus.Exclusive = true
		}
	}
}
