// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// The scheduler is killed at any moment while pods of several namespaces come and go, that share with their own, with anyone or
// with nobody, some in gangs; the auditor finds nothing wrong at any time. HORUS_K8S_KILLS says how often, HORUS_K8S_KILL_NODES on
// how many nodes of four GPUs and HORUS_K8S_KILL_PODS among how many pods; large ones need HORUS_K8S_WITHIN too.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	kills, nodes, pods := size(t, "HORUS_K8S_KILLS", 3), size(t, "HORUS_K8S_KILL_NODES", 30), size(t, "HORUS_K8S_KILL_PODS", 200)
	c := startWithGroups(t, placing)
	f := fleet(t, c, nodes, 4).mixed()
	const octet = 8 // whose gang comes and goes whole
	f.come(pods / 2 / octet * octet)
	var recovery []float64
	for kill := range kills {
		f.leave(octet) // the oldest leave, more come, and the scheduler dies among them
		f.come(octet + pods/2/kills/octet*octet)
		time.Sleep(time.Duration(kill%7) * 30 * time.Millisecond)
		c.KillScheduler()
		f.audit(false)
		begin := time.Now()
		c.StartScheduler(placing)
		recovery = append(recovery, time.Since(begin).Seconds())
		if kill%100 == 99 {
			t.Logf("%d kills, the longest restart took %.2f s", kill+1, slices.Max(recovery))
		}
	}
	f.settle()
	slices.Sort(recovery)
	t.Logf("%d kills, %d nodes, %d pods placed: ready again after %.2f s (median), %.2f s (p99), %.2f s (the longest)",
		kills, nodes, f.made, recovery[len(recovery)/2], recovery[len(recovery)*99/100], recovery[len(recovery)-1])
}

// size is a number of the environment.
func size(t *testing.T, name string, otherwise int) int {
	t.Helper()
	given := os.Getenv(name)
	if given == "" {
		return otherwise
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 {
		t.Fatalf("%s: expected a number of at least 1, found %q", name, given)
	}
	return n
}
