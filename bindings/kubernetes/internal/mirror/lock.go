// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// A library that is gone is started again at once, and later each time that it does not last.
const (
	firstPause = time.Second
	mostPause  = 30 * time.Second
	lasting    = time.Minute // a library that lived so long is trusted anew
)

// enter takes the lock, and returns what gives it back. A library that is gone is started again when it is time, and all nodes and
// pods are put into it; while it is gone, what is asked of it fails, and what is told is kept for then.
func (m *Mirror) enter() (leave func()) {
	m.mu.Lock()
	if now := time.Now(); m.library.Gone() && !now.Before(m.revived) {
		m.revive(now)
	}
	return m.mu.Unlock
}

// KeepAlive starts a library that is gone where nothing else is asked of the mirror.
func (m *Mirror) KeepAlive(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) { m.enter()() }, firstPause)
}

func (m *Mirror) revive(now time.Time) {
	if now.After(m.revived.Add(lasting)) {
		m.pause = 0
	}
	m.pause = min(max(2*m.pause, firstPause), mostPause)
	m.revived = now.Add(m.pause)
	if err := m.library.Start(); err != nil {
		klog.ErrorS(err, "Horus: libhorus does not start", "nextTry", m.revived)
		return
	}
	for _, name := range slices.Collect(maps.Keys(m.nodes)) { // rebuild may take nodes away
		n := m.nodes[name]
		n.added = false
		m.rebuild(name, m.viewOf(n))
	}
	if !m.library.Gone() {
		klog.InfoS("Horus: libhorus is back", "nodes", len(m.nodes), "pods", len(m.pods))
	}
}

// watched is the mirror's lock, under which all calls of the library are made. It counts its turns, so that a call that does
// not return is seen from outside.
type watched struct {
	sync.Mutex
	turns atomic.Uint64 // odd while it is held
}

func (w *watched) Lock() { w.Mutex.Lock(); w.turns.Add(1) }

func (w *watched) Unlock() { w.turns.Add(1); w.Mutex.Unlock() }

// looks at the lock in the time that a call may take.
const looks = 10

// Watch calls `hung` and ends once one and the same call has held the lock for `limit`, or a look longer. It counts its own
// looks and not the time, since a process that was suspended has not hung.
func (m *Mirror) Watch(ctx context.Context, limit time.Duration, hung func()) {
	ticker := time.NewTicker(limit / looks)
	defer ticker.Stop()
	for last, same := uint64(0), 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := m.mu.turns.Load()
		if now%2 == 0 || now != last {
			last, same = now, 0
		} else if same++; same == looks {
			hung()
			return
		}
	}
}
