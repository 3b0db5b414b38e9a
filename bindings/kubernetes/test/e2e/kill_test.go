// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/kubernetes/test/controlplane"
)

// The scheduler is killed at any moment while pods come and go; an auditor that reads the API server alone looks for devices
// beyond their memory, pods without the device that their claim names, and pods that nobody places. HORUS_K8S_KILLS says how
// often; 3 otherwise.
func TestKilledAgainAndAgain(t *testing.T) {
	kills := 3
	if given := os.Getenv("HORUS_K8S_KILLS"); given != "" {
		var err error
		kills, err = strconv.Atoi(given)
		check(t, err)
	}
	const nodes, gpus, alive = 20, 4, 200
	c := start(t, placing)
	for i := range nodes {
		node(t, c, fmt.Sprintf("n%d", i), 0, nil)
		slice(t, c, fmt.Sprintf("n%d", i), gpus)
	}
	profile(t, c, "light", 20, 8_000)
	made, gone := 0, 0
	more := func(n int) {
		for range n {
			sharing(t, c, fmt.Sprintf("p%d", made), "light", "20Gi")
			made++
		}
	}
	more(alive)
	var recovery []float64
	for kill := range kills {
		for range 10 { // the oldest leave, as many come, and the scheduler dies among them
			end(t, c, fmt.Sprintf("p%d", gone))
			gone++
		}
		more(10)
		time.Sleep(time.Duration(kill%7) * 30 * time.Millisecond)
		c.KillScheduler()
		begin := time.Now()
		c.StartScheduler(placing)
		recovery = append(recovery, time.Since(begin).Seconds())
		if kill%10 == 9 {
			audit(t, c, made-gone, false)
		}
	}
	until(t, c, "every pod is bound", func() bool { return audit(t, c, made-gone, false) == 0 })
	audit(t, c, made-gone, true)
	until(t, c, "the mirror has every pod", func() bool { return metric(c, "horus_mirrored_pods") == float64(made-gone) })
	slices.Sort(recovery)
	t.Logf("%d kills, %d pods placed: ready again after %.2f s (median), %.2f s (p99)", kills, made, recovery[len(recovery)/2], recovery[len(recovery)*99/100])
}

// audit reads claims and pods, and tells how many pods are not bound.
func audit(t *testing.T, c *controlplane.Cluster, expected int, all bool) int {
	t.Helper()
	// Pods first: what is bound by then was allocated before.
	pods, err := c.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	check(t, err)
	claims, err := c.Client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	check(t, err)
	held, at, whole := map[string]int64{}, map[string]string{}, resource.MustParse("80Gi")
	for _, claim := range claims.Items {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			memory := result.ConsumedCapacity["memory"]
			held[result.Pool+"/"+result.Device] += memory.Value()
			at[claim.Name] = result.Pool
		}
	}
	for device, bytes := range held {
		if bytes > whole.Value() {
			t.Errorf("%s: %d bytes are allocated of %d", device, bytes, whole.Value())
		}
	}
	if len(pods.Items) != expected {
		t.Errorf("expected %d pods, found %d", expected, len(pods.Items))
	}
	unbound := 0
	for _, pod := range pods.Items {
		if pod.Spec.NodeName == "" {
			unbound++
		} else if at[pod.Name] != pod.Spec.NodeName {
			t.Errorf("%s: bound to %s, and its device is on %q", pod.Name, pod.Spec.NodeName, at[pod.Name])
		}
	}
	if all && unbound > 0 {
		t.Errorf("%d pods wait though there is room", unbound)
	}
	return unbound
}
