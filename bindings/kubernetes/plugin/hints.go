// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"libhorus.org/kubernetes/internal/objects"
)

// EventsToRegister says what can make a pod fit that was refused. Each change is held against each refused pod, so that the
// hints leave out what helps nobody: thousands of pods may wait.
func (pl *Horus) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete | fwk.Update}, QueueingHintFn: pl.afterPod},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable | fwk.UpdateNodeLabel | fwk.UpdateNodeTaint}},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeAnnotation}, QueueingHintFn: afterAnnotation},
		{Event: fwk.ClusterEvent{Resource: fwk.ResourceClaim, ActionType: fwk.Add | fwk.Update | fwk.Delete}, QueueingHintFn: afterClaim},
		{Event: fwk.ClusterEvent{Resource: fwk.ResourceSlice, ActionType: fwk.Add | fwk.Update}},
		{Event: fwk.ClusterEvent{Resource: fwk.DeviceClass, ActionType: fwk.Add | fwk.Update}},
	}, nil
}

// afterPod: a pod with GPUs left, or the refused one says something else now.
func (pl *Horus) afterPod(_ klog.Logger, refused *v1.Pod, before, now any) (fwk.QueueingHint, error) {
	old, known := before.(*v1.Pod)
	if !known {
		return fwk.Queue, nil // what it was is unknown
	}
	if pod, changed := now.(*v1.Pod); changed {
		return hint(pod.UID == refused.UID && !alike(old, pod))
	}
	view, err := pl.mirror.Read(old)
	return hint(err != nil || view.Backend != objects.NoGPUs)
}

func hint(helps bool) (fwk.QueueingHint, error) {
	if helps {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// afterAnnotation: HAMi lists other GPUs. Its lock on a node changes with each pod and helps nobody who was refused.
func afterAnnotation(_ klog.Logger, _ *v1.Pod, before, now any) (fwk.QueueingHint, error) {
	old, _ := before.(*v1.Node)
	node, _ := now.(*v1.Node)
	return hint(old == nil || node == nil || old.Annotations[objects.HAMiRegisterAnnotation] != node.Annotations[objects.HAMiRegisterAnnotation])
}

// alike: both say the same to the scheduler.
func alike(a, b *v1.Pod) bool {
	return equality.Semantic.DeepEqual(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.Labels, b.Labels) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec) &&
		equality.Semantic.DeepEqual(a.Status.ResourceClaimStatuses, b.Status.ResourceClaimStatuses)
}

// afterClaim: devices came free, or it is a claim of the refused pod.
func afterClaim(_ klog.Logger, refused *v1.Pod, before, now any) (fwk.QueueingHint, error) {
	old, _ := before.(*resourceapi.ResourceClaim)
	claim, _ := now.(*resourceapi.ResourceClaim)
	unknown := old == nil && claim == nil // what it was
	freed := old != nil && old.Status.Allocation != nil && (claim == nil || claim.Status.Allocation == nil)
	return hint(unknown || freed || (claim != nil && objects.NamesClaim(refused, claim)))
}

// tryAgain wakes the refused pods once GPUs came that we know. The scheduler's own queue may have woken them before we did.
func (pl *Horus) tryAgain() {
	if pl.grown.Swap(true) {
		return // somebody is about to
	}
	time.AfterFunc(settling, func() {
		pl.grown.Store(false)
		pl.activate(&pl.refused, func(*v1.Pod) bool { return true })
	})
}

// activate has those of the pods tried again that help may have come for.
func (pl *Horus) activate(pods *sync.Map, helps func(*v1.Pod) bool) {
	var again []*v1.Pod
	for _, value := range pods.Range {
		if pod := value.(*v1.Pod); helps(pod) {
			again = append(again, pod)
		}
	}
	activate(pl.handle, again...)
}

// activator is the scheduler, which tries pods again.
type activator interface {
	Activate(logger klog.Logger, pods map[string]*v1.Pod)
}

func activate(handle activator, pods ...*v1.Pod) {
	again := map[string]*v1.Pod{}
	for _, pod := range pods {
		again[pod.Namespace+"/"+pod.Name] = pod
	}
	if len(again) > 0 {
		handle.Activate(klog.Background(), again)
	}
}

// settling lets nodes that come together wake once.
const settling = 50 * time.Millisecond
