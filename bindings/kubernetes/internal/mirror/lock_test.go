// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// watch tells after how long a lock that is used so counts as hung; 0 = never in the time.
func watch(t *testing.T, limit time.Duration, use func(*watched)) (after time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, begin := &Mirror{}, time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		go m.Watch(ctx, limit, func() { after = time.Since(begin) })
		use(&m.mu)
		cancel()
	})
	return after
}

func TestACallThatDoesNotReturnIsSeenAfterItsTime(t *testing.T) {
	after := watch(t, 10*time.Second, func(mu *watched) { mu.Lock(); time.Sleep(time.Minute) })
	if after < 10*time.Second || after > 12*time.Second {
		t.Errorf("expected 10 s or one look longer, found %v", after)
	}
}

func TestCallsThatReturnAreNeverSeenHoweverMany(t *testing.T) {
	after := watch(t, 10*time.Second, func(mu *watched) {
		for range 100 { // held nearly always
			mu.Lock()
			time.Sleep(9 * time.Second)
			mu.Unlock()
		}
		time.Sleep(time.Minute)
	})
	if after != 0 {
		t.Errorf("expected none that hangs, found one after %v", after)
	}
}

func BenchmarkLockThatIsWatched(b *testing.B) {
	var mu watched
	for b.Loop() {
		mu.Lock()
		mu.Unlock()
	}
}
