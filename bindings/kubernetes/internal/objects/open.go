// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// SchedulerLabel of a node names the scheduler that it belongs to. A taint of that key and value keeps other schedulers' pods away.
const SchedulerLabel = "libhorus.org/scheduler"

// Owner is a scheduler, as nodes name it.
type Owner struct {
	Scheduler string
	Only      bool // it uses only nodes that belong to it
}

// May says whether it may use a node.
func (o Owner) May(node *v1.Node) bool {
	return !o.Only || node.Labels[SchedulerLabel] == o.Scheduler
}

// Tolerant is a pod that tolerates the taint of its own scheduler's nodes.
func (o Owner) Tolerant(pod *v1.Pod) *v1.Pod {
	out := *pod
	out.Spec.Tolerations = append(slices.Clip(pod.Spec.Tolerations), v1.Toleration{Key: SchedulerLabel, Value: o.Scheduler})
	return &out
}

// Openness says which nodes a pod may go to by what stands in both: selectors, affinity, taints and cordons. Free resources,
// volumes and other pods are not looked at.
type Openness struct {
	pod      *v1.Pod
	owner    Owner
	affinity nodeaffinity.RequiredNodeAffinity
}

// OpennessOf prepares the question for many nodes; owner is the pod's scheduler.
func OpennessOf(pod *v1.Pod, owner Owner) Openness {
	return Openness{owner.Tolerant(pod), owner, nodeaffinity.GetRequiredNodeAffinity(pod)}
}

// To a node.
func (o Openness) To(node *v1.Node) bool {
	if !o.owner.May(node) {
		return false
	}
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
