// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/kubernetes/test/controlplane"
)

// crowd is pods that share GPUs and come and go, the oldest first.
type crowd struct {
	t          *testing.T
	c          *controlplane.Cluster
	made, gone int
	metrics    func() string // of the scheduler that is to have mirrored them
}

// fleet makes nodes with GPUs of 80 GiB, and a crowd of nobody yet.
func fleet(t *testing.T, c *controlplane.Cluster, nodes, gpus int) *crowd {
	t.Helper()
	parallel(nodes, func(i int) {
		node(t, c, fmt.Sprintf("n%d", i), 0, nil)
		slice(t, c, fmt.Sprintf("n%d", i), gpus)
	})
	profile(t, c, "light", 20, 8_000)
	return &crowd{t: t, c: c, metrics: c.Metrics}
}

func (f *crowd) name(i int) string { return fmt.Sprintf("p%d", i) }

// come makes pods; three fill a GPU.
func (f *crowd) come(n int) {
	f.t.Helper()
	parallel(n, func(i int) { sharing(f.t, f.c, f.name(f.made+i), "light", "25Gi") })
	f.made += n
}

// leave ends the oldest.
func (f *crowd) leave(n int) {
	f.t.Helper()
	for range n {
		end(f.t, f.c, f.name(f.gone))
		f.gone++
	}
}

// audit reads claims and pods from the API server alone: it looks for devices beyond their memory, pods without the device
// that their claim names, and, with `all`, pods that nobody places. It tells how many are not bound.
func (f *crowd) audit(all bool) int { f.t.Helper(); return audit(f.t, f.c, f.made-f.gone, all) }

// settle waits until all are bound and the scheduler has mirrored them.
func (f *crowd) settle() {
	f.t.Helper()
	until(f.t, f.c, "every pod is bound", func() bool { return f.audit(false) == 0 })
	f.audit(true)
	until(f.t, f.c, "the mirror has every pod", func() bool { return metricOf(f.metrics(), "horus_mirrored_pods") == float64(f.made-f.gone) })
}

func audit(t *testing.T, c *controlplane.Cluster, expected int, all bool) int {
	t.Helper()
	// Pods first: what is bound by then was allocated before.
	pods, err := c.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	check(t, err)
	claims, err := c.Client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	check(t, err)
	held, at, memory := map[string]int64{}, map[string]string{}, resource.MustParse("80Gi")
	for _, claim := range claims.Items {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			consumed := result.ConsumedCapacity["memory"]
			held[result.Pool+"/"+result.Device] += consumed.Value()
			at[claim.Name] = result.Pool
		}
	}
	for device, bytes := range held {
		if bytes > memory.Value() {
			t.Errorf("%s: %d bytes are allocated of %d", device, bytes, memory.Value())
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
