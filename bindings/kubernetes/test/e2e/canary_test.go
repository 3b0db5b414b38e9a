// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The example's policy, as the API server reads it: a share of the workloads of the namespaces that are named.
func TestACanaryTakesAShareOfTheWorkloads(t *testing.T) {
	t.Parallel()
	c := start(t, "")
	kubectl(t, c, "apply", "--validate=strict", "-f", "../../../../examples/kubernetes/canary.yaml")
	kubectl(t, c, "label", "namespace", namespace, "libhorus.org/canary=true")
	kubectl(t, c, "create", "namespace", "other")
	scheduler := func(namespace, owner string, change func(*v1.Pod)) string {
		t.Helper()
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "none", Resources: v1.ResourceRequirements{
			Limits: v1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(1, resource.DecimalSI)},
		}}}}}
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: types.UID(owner)}}
		}
		change(p)
		made, err := c.Client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		check(t, err)
		return made.Spec.SchedulerName
	}
	as := func(*v1.Pod) {}
	until(t, c, "the policy counts", func() bool { return scheduler(namespace, "3f", as) == "horus" })
	for what, found := range map[string]string{
		"beyond the share":    scheduler(namespace, "4f", as),
		"another namespace":   scheduler("other", "3f", as),
		"without an owner":    scheduler(namespace, "", as),
		"without GPUs":        scheduler(namespace, "3f", func(p *v1.Pod) { p.Spec.Containers[0].Resources = v1.ResourceRequirements{} }),
		"without limits":      scheduler(namespace, "3f", func(p *v1.Pod) { p.Spec.Containers[0].Resources.Limits = nil }),
		"another scheduler's": scheduler(namespace, "3f", func(p *v1.Pod) { p.Spec.SchedulerName = "volcano" }),
	} {
		if found != v1.DefaultSchedulerName && found != "volcano" {
			t.Errorf("%s: expected the pod as it is, found it with %s", what, found)
		}
	}
	claims := func(p *v1.Pod) {
		p.Spec.Containers[0].Resources = v1.ResourceRequirements{Claims: []v1.ResourceClaim{{Name: "gpu"}}}
		p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &p.Name}}
	}
	if found := scheduler(namespace, "0a", claims); found != "horus" {
		t.Errorf("by a claim: expected horus, found %s", found)
	}
}
