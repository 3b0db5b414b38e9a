// SPDX-License-Identifier: Apache-2.0

package objects

import (
	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// Openness says which nodes a pod may go to by what stands in both: selectors, affinity, taints and cordons. Free resources,
// volumes and other pods are not looked at.
type Openness struct {
	pod      *v1.Pod
	affinity nodeaffinity.RequiredNodeAffinity
}

// OpennessOf prepares the question for many nodes.
func OpennessOf(pod *v1.Pod) Openness {
	return Openness{pod, nodeaffinity.GetRequiredNodeAffinity(pod)}
}

// To a node.
func (o Openness) To(node *v1.Node) bool {
	taints := node.Spec.Taints
	if node.Spec.Unschedulable {
		taints = append(taints[:len(taints):len(taints)], v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule})
	}
	if len(taints) > 0 {
		_, closed := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), taints, o.pod.Spec.Tolerations,
			func(t *v1.Taint) bool { return t.Effect != v1.TaintEffectPreferNoSchedule }, false)
		if closed {
			return false
		}
	}
	fits, err := o.affinity.Match(node)
	return err == nil && fits
}
