// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"k8s.io/klog/v2"

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

// reshut closes to newcomers the devices of a node that those in use leave nothing for, and those that one claim shares by settings of
// its own, in the mode that it says; and opens them again.
func (m *Mirror) reshut(n *node) {
	if !n.added || n.view.Backend != objects.DRA {
		return
	}
	shut, modes := map[uint32]bool{}, map[uint32]horus.SharingMode{}
	for _, p := range n.pods {
		for _, slot := range p.slots {
			many := n.view.Raw[slot.Device].AllowMultipleAllocations
			if mode := n.view.Horus.Devices[slot.Device].SharingMode; mode == horus.Exclusive && p.mode != 0 {
				modes[slot.Device], shut[slot.Device] = p.mode, true
			} else if mode == horus.MIG && (many == nil || !*many) {
				shut[slot.Device] = true // the library lets several jobs onto an instance
			}
		}
	}
	if n.view.Counts() {
		room, _ := n.view.Left(m.held(n))
		for i, fits := range room {
			if !fits {
				shut[uint32(i)] = true
			}
		}
	}
	if !maps.Equal(modes, n.modes) {
		before := n.modes
		n.modes = modes
		changed := n.view.Horus
		changed.Devices = make([]horus.Device, len(n.view.Horus.Devices))
		for i := range changed.Devices {
			changed.Devices[i] = n.deviceNow(i)
		}
		if err := m.library.ChangeNode(changed); err != nil {
			n.modes = before
			klog.ErrorS(err, "Horus: how claims share their GPUs is not counted", "node", n.object.Name)
		}
	}
	for device := range n.view.Devices {
		if now := shut[uint32(device)]; now != n.shut[uint32(device)] {
			_ = m.library.Drain(n.id, uint32(device), now)
		}
	}
	n.shut = shut
}

// deviceNow is a device in the mode in which it is shared now.
func (n *node) deviceNow(i int) horus.Device {
	device := n.view.Horus.Devices[i]
	if mode, set := n.modes[uint32(i)]; set {
		device.SharingMode = mode
	}
	return device
}

// capOf is the cap under which a pod runs on those devices of the node: nothing but MPS keeps to one.
func (n *node) capOf(view objects.Pod, slots []horus.Slot) int32 {
	if len(slots) == 0 || int(slots[0].Device) >= len(n.view.Horus.Devices) || n.deviceNow(int(slots[0].Device)).SharingMode != horus.MPS {
		return 0
	}
	return view.SMCapPct
}

func (m *Mirror) held(n *node) func(int) bool {
	return func(i int) bool { return m.tenants[horus.Slot{Node: n.id, Device: uint32(i)}] > 0 }
}

// closing does what is to be done while devices are closed.
func (m *Mirror) closing(devices []horus.Slot, do func() error) (err error) {
	for _, slot := range devices {
		if err := m.library.Drain(slot.Node, slot.Device, true); err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, m.library.Drain(slot.Node, slot.Device, false)) }()
	}
	return do()
}

const mostSelectors = 64 // sets of which a node keeps the answer

// closed are the devices of a node that a pod does not allow, of those that are open.
func (n *node) closed(rules Rules) (out []horus.Slot) {
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
		if n.shut[uint32(i)] {
			continue
		}
		if !matches[i] || rules.Tainted[objects.Device{Pool: d.Pool, Name: d.Name}] || (rules.Holds != nil && !rules.Holds(d, n.view.Raw[i])) {
			out = append(out, horus.Slot{Node: n.id, Device: uint32(i)})
		}
	}
	return out
}

// spare are the partitions of cards that nobody uses, which are better kept whole.
func (m *Mirror) spare(n *node, closed []horus.Slot) (out []horus.Slot) {
	if !n.view.Counts() {
		return nil
	}
	_, cut := n.view.Left(m.held(n))
	for i, device := range n.view.Horus.Devices {
		slot := horus.Slot{Node: n.id, Device: uint32(i)}
		if device.SharingMode == horus.MIG && !cut[i] && !n.shut[slot.Device] && !slices.Contains(closed, slot) {
			out = append(out, slot)
		}
	}
	return out
}

// takesAll says whether a claim that asks for no memory gets all of the device's.
func takesAll(device *resourceapi.Device) bool {
	memory, counted := device.Capacity["memory"]
	return counted && (memory.RequestPolicy == nil || memory.RequestPolicy.Default == nil || memory.RequestPolicy.Default.Cmp(memory.Value) >= 0)
}
