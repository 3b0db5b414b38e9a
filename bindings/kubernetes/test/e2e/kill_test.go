// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// The scheduler is killed at any moment while pods come and go; the auditor finds nothing wrong at any time.
// HORUS_K8S_KILLS says how often; 3 otherwise.
func TestKilledAgainAndAgain(t *testing.T) {
	kills := 3
	if given := os.Getenv("HORUS_K8S_KILLS"); given != "" {
		var err error
		kills, err = strconv.Atoi(given)
		check(t, err)
	}
	c := start(t, placing)
	f := fleet(t, c, 20, 4)
	f.come(200)
	var recovery []float64
	for kill := range kills {
		f.leave(10) // the oldest leave, as many come, and the scheduler dies among them
		f.come(10)
		time.Sleep(time.Duration(kill%7) * 30 * time.Millisecond)
		c.KillScheduler()
		begin := time.Now()
		c.StartScheduler(placing)
		recovery = append(recovery, time.Since(begin).Seconds())
		if kill%10 == 9 {
			f.audit(false)
		}
	}
	f.settle()
	slices.Sort(recovery)
	t.Logf("%d kills, %d pods placed: ready again after %.2f s (median), %.2f s (p99)", kills, f.made, recovery[len(recovery)/2], recovery[len(recovery)*99/100])
}
