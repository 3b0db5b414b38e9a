// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/test/controlplane"
)

// crowd is pods that share GPUs and come and go, the oldest first.
type crowd struct {
	t          *testing.T
	c          *controlplane.Cluster
	made, gone int
	gpus       int
	alone      int           // pods that wait for a GPU of their own while none is idle, by the last audit
	tenants    []string      // none = all are alike, of one namespace
	metrics    func() string // of the scheduler that is to have mirrored them
}

// mixed lets its pods be of several namespaces, and share with their own, with anyone or with nobody, some of them in gangs.
func (f *crowd) mixed() *crowd {
	f.t.Helper()
	f.tenants = []string{"team-a", "team-b", "team-c"}
	for _, name := range f.tenants {
		tenant(f.t, f.c, name)
		profileOf(f.t, f.c, name, "light", 20, 8_000)
	}
	return f
}

const gangSize = 4

// one of the crowd.
func (f *crowd) one(i int) {
	f.t.Helper()
	name, spec := f.name(i), podSpec{annotations: map[string]string{objects.ProfileAnnotation: "light", objects.ShareAnnotation: "same-tenant"}}
	spec.name, spec.claim, spec.namespace = name, name, f.home(i)
	switch gang, first := f.gang(i); {
	case gang != "":
		if first {
			groupOf(f.t, f.c, spec.namespace, gang, map[string]any{"minMember": int64(gangSize)})
		}
		spec.change = member(gang)
	case f.tenants != nil && i%8 == 6:
		spec.annotations[objects.ShareAnnotation] = "anyone"
	case f.tenants != nil && i%8 == 7:
		delete(spec.annotations, objects.ShareAnnotation)
	}
	claimOf(f.t, f.c, spec.namespace, name, "25Gi")
	makePod(f.t, f.c, spec)
}

// home is the namespace of a pod.
func (f *crowd) home(i int) string {
	if f.tenants == nil {
		return namespace
	}
	return f.tenants[i/8%len(f.tenants)]
}

// gang of a pod; "" = none. Of eight pods the first four are one.
func (f *crowd) gang(i int) (name string, first bool) {
	if f.tenants == nil || i%8 >= gangSize {
		return "", false
	}
	return fmt.Sprintf("g%d", i/8), i%8 == 0
}

// fleet makes nodes with GPUs of 80 GiB, and a crowd of nobody yet.
func fleet(t *testing.T, c *controlplane.Cluster, nodes, gpus int) *crowd {
	t.Helper()
	parallel(nodes, func(i int) {
		node(t, c, fmt.Sprintf("n%d", i), 0, nil)
		slice(t, c, fmt.Sprintf("n%d", i), gpus)
	})
	profile(t, c, "light", 12, 8_000)
	return &crowd{t: t, c: c, gpus: nodes * gpus, metrics: c.Metrics}
}

func (f *crowd) name(i int) string { return fmt.Sprintf("p%d", i) }

// come makes pods; three fill a GPU.
func (f *crowd) come(n int) {
	f.t.Helper()
	parallel(n, func(i int) { f.one(f.made + i) })
	f.made += n
}

// leave ends the oldest.
func (f *crowd) leave(n int) {
	f.t.Helper()
	for range n {
		endOf(f.t, f.c, f.home(f.gone), f.name(f.gone))
		f.gone++
	}
}

// audit reads claims and pods from the API server alone: it looks for devices beyond their memory, pods beside others that do not
// share with them, claims without a pod, pods without the device that their claim names, and, with `all`, pods that nobody
// places. It tells how many are not bound that could be.
func (f *crowd) audit(all bool) int {
	t, c := f.t, f.c
	t.Helper()
	// Pods first: what is bound by then was allocated before.
	pods, err := c.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	check(t, err)
	claims, err := c.Client.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	check(t, err)
	of := map[string]*v1.Pod{} // by claim
	for i := range pods.Items {
		for _, entry := range pods.Items[i].Spec.ResourceClaims {
			of[pods.Items[i].Namespace+"/"+*entry.ResourceClaimName] = &pods.Items[i]
		}
	}
	held, on, at, memory := map[string]int64{}, map[string][]*v1.Pod{}, map[string]string{}, resource.MustParse("80Gi")
	for _, claim := range claims.Items {
		if claim.Status.Allocation == nil {
			continue
		}
		name := claim.Namespace + "/" + claim.Name
		owner := of[name]
		if owner == nil {
			t.Errorf("%s: expected a pod of the claim, which has a device, found none", name)
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			consumed, device := result.ConsumedCapacity["memory"], result.Pool+"/"+result.Device
			held[device] += consumed.Value()
			at[name] = result.Pool
			for _, other := range on[device] {
				if !share(owner, other) {
					t.Errorf("%s: %s and %s/%s do not share it with each other, and have it both", device, name, other.Namespace, other.Name)
				}
			}
			on[device] = append(on[device], owner)
		}
	}
	for device, bytes := range held {
		if bytes > memory.Value() {
			t.Errorf("%s: %d bytes are allocated of %d", device, bytes, memory.Value())
		}
	}
	if expected := f.made - f.gone; len(pods.Items) != expected {
		t.Errorf("expected %d pods, found %d", expected, len(pods.Items))
	}
	unbound := 0
	f.alone = 0
	for _, pod := range pods.Items {
		if name := pod.Namespace + "/" + pod.Name; pod.Spec.NodeName == "" && len(on) == f.gpus && pod.Annotations[objects.ShareAnnotation] == "" {
			f.alone++
		} else if pod.Spec.NodeName == "" {
			unbound++
		} else if at[name] != pod.Spec.NodeName {
			t.Errorf("%s: bound to %s, and its device is on %q", name, pod.Spec.NodeName, at[name])
		}
	}
	if all && unbound > 0 {
		t.Errorf("%d pods wait though there is room", unbound)
	}
	return unbound
}

// settle waits until all are bound and the scheduler has mirrored them.
func (f *crowd) settle() {
	f.t.Helper()
	until(f.t, f.c, "every pod is bound", func() bool { return f.audit(false) == 0 })
	f.audit(true)
	until(f.t, f.c, "the mirror has every pod", func() bool { return metricOf(f.metrics(), "horus_mirrored_pods") == float64(f.made-f.gone-f.alone) })
	if over := metricOf(f.metrics(), "horus_overcommitted_devices"); over != 0 {
		f.t.Errorf("expected no GPU over-committed, found %v", over)
	}
}

// share says whether two pods agree to be on one device.
func share(a, b *v1.Pod) bool {
	one, other := a.Annotations[objects.ShareAnnotation], b.Annotations[objects.ShareAnnotation]
	return one != "" && other != "" && (a.Namespace == b.Namespace || (one == "anyone" && other == "anyone"))
}
