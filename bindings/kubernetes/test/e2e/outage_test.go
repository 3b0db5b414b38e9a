// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mirrored waits until the scheduler's own counts are what the API server says.
func (f *crowd) mirrored() {
	f.t.Helper()
	until(f.t, f.c, "the mirror is as the API server says", func() bool {
		slices, err := f.c.Client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
		check(f.t, err)
		pods, err := f.c.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		check(f.t, err)
		devices, bound := 0, 0
		for _, slice := range slices.Items {
			devices += len(slice.Spec.Devices)
		}
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != "" {
				bound++
			}
		}
		text := f.metrics()
		for name, want := range map[string]int{
			"nodes": len(slices.Items), "devices": devices, "pods": bound,
		} {
			if metricOf(text, "horus_mirrored_"+name+" ") != float64(want) {
				return false
			}
		}
		return metricOf(text, "horus_waiting_pods ") == 0 && metricOf(text, "horus_unused_nodes ") == 0
	})
}

// The API server dies while pods are placed. When it is back, pods leave and come and a node appears before the scheduler
// watches again.
func TestTheAPIServerGoesAwayAndComesBack(t *testing.T) {
	c := start(t, placing)
	f := fleet(t, c, 6, 4)
	f.come(40)
	f.settle()
	for _, away := range []time.Duration{0, 15 * time.Second} {
		t.Run(away.String(), func(t *testing.T) {
			f.t = t
			f.leave(10)
			f.come(20)
			c.KillAPIServer()
			time.Sleep(away)
			c.StartAPIServer()
			f.leave(10)
			f.come(5)
			node(t, c, "late-"+away.String(), 0, nil)
			slice(t, c, "late-"+away.String(), 2)
			f.settle()
			f.mirrored()
		})
	}
}

// With the chart's lease a leader that cannot renew it ends; the other takes over when the API server is back.
func TestAnOutageLongerThanTheLeaseLeavesAReplica(t *testing.T) {
	c := start(t, "")
	r := startReplicas(t, c)
	f := fleet(t, c, 6, 4)
	f.metrics = r.metrics
	f.come(30)
	f.settle()
	old := r.leader("")
	f.come(10)
	c.KillAPIServer()
	if code := r.of[old].Wait(); code != 1 {
		t.Errorf("expected the leader to end with 1, as upstream does without its lease, found %d", code)
	}
	c.StartAPIServer()
	begin := time.Now()
	f.leave(10)
	f.settle()
	f.mirrored()
	t.Logf("every pod was bound %.1f s after the API server was back", time.Since(begin).Seconds())
	r.start(old)
	r.of[old].Await()
}
