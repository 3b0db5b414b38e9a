// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"libhorus.org/kubernetes/internal/feed"
	"libhorus.org/kubernetes/internal/model"
	"libhorus.org/kubernetes/internal/objects"
)

func (pl *Horus) watch(ctx context.Context) error {
	client, err := dynamic.NewForConfig(pl.handle.KubeConfig())
	if err != nil {
		return err
	}
	pl.profiles, err = feed.FollowProfiles(ctx, client, pl.profileChanged)
	if err != nil {
		return err
	}
	if pl.args.Mode == Place {
		go pl.groups.follow(ctx, pl.handle.ClientSet().Discovery(), client, pl.gangs.again)
	}
	pl.synced, err = feed.Follow(ctx, pl.handle.SharedInformerFactory(), pl.mirror, feed.Pods{
		Set:  pl.gangs.set,
		Gone: func(pod *v1.Pod) { pl.gangs.gone(pod); pl.forget(pod.UID) },
	})
	return err
}

// profileChanged: pods that run count by it as it is now, and a pod that named a profile before it came is tried again at once.
func (pl *Horus) profileChanged(profile *unstructured.Unstructured) {
	pl.mirror.ProfileChanged(profile.GetNamespace(), profile.GetName())
	pl.activate(&pl.invalid, func(pod *v1.Pod) bool {
		return pod.Namespace == profile.GetNamespace() && pod.Annotations[objects.ProfileAnnotation] == profile.GetName()
	})
}

func (pl *Horus) claim(namespace, name string) (*resourceapi.ResourceClaim, error) {
	// The tracker knows of allocations that are on their way, and may lag behind the informer whose event brought us here.
	tracked, err := pl.handle.SharedDRAManager().ResourceClaims().Get(namespace, name)
	if err == nil && tracked.Status.Allocation != nil {
		return tracked, nil
	}
	listed, unlisted := pl.handle.SharedInformerFactory().Resource().V1().ResourceClaims().Lister().ResourceClaims(namespace).Get(name)
	if unlisted == nil && (err != nil || listed.Status.Allocation != nil) {
		return listed, nil
	}
	return tracked, err
}

func (pl *Horus) pod(namespace, name string) *v1.Pod {
	known, _ := pl.handle.SharedInformerFactory().Core().V1().Pods().Lister().Pods(namespace).Get(name) // with an error nil
	return known
}

func (pl *Horus) ready() bool {
	return !slices.ContainsFunc(pl.synced, func(synced cache.InformerSynced) bool { return !synced() })
}

// tryModelAgain is when a model that was not taken is tried again: the child process may have been gone.
const tryModelAgain = time.Minute

// followModel takes over what the observer learned, each time that it learned more. A model that cannot be read leaves the one
// that counts.
func (pl *Horus) followModel(ctx context.Context) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(pl.args.Learned)
	if err != nil || name == "" {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(pl.handle.ClientSet(), tryModelAgain, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}))
	taken := "" // its version as the API server counts
	take := func(object *v1.ConfigMap) {
		if object.ResourceVersion == taken {
			return
		}
		learned, err := model.Of(object)
		if err == nil {
			err = pl.mirror.Learn(learned.Observations)
		}
		if err != nil {
			modelsRefused.Inc()
			klog.ErrorS(err, "Horus: the model is not taken")
			return
		}
		taken = object.ResourceVersion
		modelVersion.Set(float64(learned.Version))
		klog.InfoS("Model", "version", learned.Version, "windows", learned.Windows)
	}
	_, err = feed.Handle(factory.Core().V1().ConfigMaps().Informer(), take, nil)
	factory.Start(ctx.Done())
	return err
}

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
