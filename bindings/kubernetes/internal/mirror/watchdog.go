// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

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
