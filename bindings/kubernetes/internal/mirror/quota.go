// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"slices"

	"libhorus.org/horus"
)

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
