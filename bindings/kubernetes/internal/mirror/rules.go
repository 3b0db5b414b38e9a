// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	resourceapi "k8s.io/api/resource/v1"

	"libhorus.org/kubernetes/internal/objects"
)

// Rules say which devices a pod's claims allow.
type Rules struct {
	Selectors string                         // all of them, as a key under which answers are kept
	Matches   func(*resourceapi.Device) bool // by the selectors
	Tainted   map[objects.Device]bool        // without UUID: taints that are not tolerated
}

const mostSelectors = 64 // sets of which a node keeps the answer

// closed are the devices of a node that the rules do not allow.
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
		if !matches[i] || rules.Tainted[objects.Device{Pool: d.Pool, Name: d.Name}] {
			out = append(out, uint32(i))
		}
	}
	return out
}
