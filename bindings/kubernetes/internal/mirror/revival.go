// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// revival says when a library that is gone is started again: at once, and later each time that it does not last.
type revival struct {
	next  time.Time
	pause time.Duration
}

const (
	firstPause = time.Second
	mostPause  = 30 * time.Second
	lasting    = time.Minute // a library that lived so long is trusted anew
)

// enter takes the lock. A library that is gone is started again when it is time, and all nodes and pods are put into it; while it
// is gone, what is asked of it fails, and what is told is kept for then.
func (m *Mirror) enter() {
	m.mu.Lock()
	if now := time.Now(); m.library.Gone() && !now.Before(m.revival.next) {
		m.revive(now)
	}
}

// KeepAlive starts a library that is gone where nothing else is asked of the mirror.
func (m *Mirror) KeepAlive(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) {
		m.enter()
		m.mu.Unlock()
	}, firstPause)
}

func (m *Mirror) revive(now time.Time) {
	if now.After(m.revival.next.Add(lasting)) {
		m.revival.pause = 0
	}
	m.revival.pause = min(max(2*m.revival.pause, firstPause), mostPause)
	m.revival.next = now.Add(m.revival.pause)
	if err := m.library.Start(); err != nil {
		klog.ErrorS(err, "Horus: libhorus does not start", "nextTry", m.revival.next)
		return
	}
	for _, name := range slices.Collect(maps.Keys(m.nodes)) { // rebuild may take nodes away
		n := m.nodes[name]
		view := m.viewOf(n)
		n.added = false
		m.rebuild(name, view)
	}
	if !m.library.Gone() {
		klog.InfoS("Horus: libhorus is back", "nodes", len(m.nodes), "pods", len(m.pods))
	}
}
