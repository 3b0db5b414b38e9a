// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"libhorus.org/kubernetes/internal/objects"
)

// watch feeds the mirror.
func (pl *Horus) watch(ctx context.Context) error {
	client, err := dynamic.NewForConfig(pl.handle.KubeConfig())
	if err != nil {
		return err
	}
	if err := pl.watchProfiles(ctx, client); err != nil {
		return err
	}
	if pl.args.Mode == Place {
		go pl.groups.follow(ctx, pl.handle.ClientSet().Discovery(), client, pl.gangs.again)
	}
	factory := pl.handle.SharedInformerFactory()
	claims := factory.Resource().V1().ResourceClaims().Informer()
	if err := listFirst(ctx, claims, "resourceclaims.resource.k8s.io"); err != nil {
		return err
	}
	for _, one := range []struct {
		informer cache.SharedIndexInformer
		set      func(any)
		gone     func(any)
	}{
		{factory.Core().V1().Nodes().Informer(),
			func(o any) { pl.mirror.SetNode(o.(*v1.Node)) }, func(o any) { pl.mirror.DeleteNode(o.(*v1.Node).Name) }},
		{factory.Resource().V1().ResourceSlices().Informer(),
			func(o any) { pl.mirror.SetSlice(o.(*resourceapi.ResourceSlice)) },
			func(o any) { pl.mirror.DeleteSlice(o.(*resourceapi.ResourceSlice)) }},
		{claims, func(o any) { pl.mirror.SetClaim(o.(*resourceapi.ResourceClaim)) }, func(any) {}},
		{factory.Core().V1().Pods().Informer(),
			func(o any) { pl.mirror.SetPod(o.(*v1.Pod)); pl.gangs.set(o.(*v1.Pod)) },
			func(o any) {
				pod := o.(*v1.Pod)
				pl.mirror.DeletePod(pod.UID)
				pl.gangs.gone(pod)
				pl.forget(pod.UID)
			}},
	} {
		registration, err := one.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    one.set,
			UpdateFunc: func(_, now any) { one.set(now) },
			DeleteFunc: func(o any) {
				if last, missed := o.(cache.DeletedFinalStateUnknown); missed {
					o = last.Obj
				}
				one.gone(o)
			},
		})
		if err != nil {
			return err
		}
		pl.synced = append(pl.synced, registration.HasSynced)
	}
	return nil
}

// watchProfiles keeps what is known of jobs. Pods that run count by it as it is now, and a pod that named a profile before it
// came is tried again at once.
func (pl *Horus) watchProfiles(ctx context.Context, client dynamic.Interface) error {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	profiles := factory.ForResource(schema.GroupVersionResource{Group: objects.Group, Version: objects.Version, Resource: objects.ProfilesResource})
	pl.profiles = profiles.Lister()
	again := func(o any) {
		profile, ok := o.(*unstructured.Unstructured)
		if !ok {
			return
		}
		pl.mirror.ProfileChanged(profile.GetNamespace(), profile.GetName())
		refused := map[string]*v1.Pod{}
		pl.invalid.Range(func(_, value any) bool {
			pod := value.(*v1.Pod)
			if pod.Namespace == profile.GetNamespace() && pod.Annotations[objects.ProfileAnnotation] == profile.GetName() {
				refused[pod.Namespace+"/"+pod.Name] = pod
			}
			return true
		})
		if len(refused) > 0 {
			pl.handle.Activate(klog.FromContext(ctx), refused)
		}
	}
	if _, err := profiles.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: again, UpdateFunc: func(_, now any) { again(now) }}); err != nil {
		return err
	}
	return listFirst(ctx, profiles.Informer(), objects.ProfilesResource+"."+objects.Group)
}

// listFirst lists what pods name before it lists pods. Without its profile a pod that runs would count as one that shares with
// nobody. Without their claims all pods that wait would be held back, and the scheduler holds each claim that comes against each
// of those: half a minute for 8,000 pods.
func listFirst(ctx context.Context, informer cache.SharedIndexInformer, what string) error {
	go informer.Run(ctx.Done())
	bounded, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	if !cache.WaitForCacheSync(bounded.Done(), informer.HasSynced) {
		return fmt.Errorf("Horus: %s cannot be listed: expected the chart's CRD and the right to read it", what)
	}
	return nil
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

func (pl *Horus) lives(pod *v1.Pod) bool {
	known, err := pl.handle.SharedInformerFactory().Core().V1().Pods().Lister().Pods(pod.Namespace).Get(pod.Name)
	return err == nil && known.UID == pod.UID
}

func (pl *Horus) profile(namespace, name string) (objects.Profile, error) {
	found, err := pl.profiles.ByNamespace(namespace).Get(name)
	if err != nil {
		return objects.Profile{}, err
	}
	object, ok := found.(*unstructured.Unstructured)
	if !ok {
		return objects.Profile{}, fmt.Errorf("expected an object, found %T", found)
	}
	return objects.ProfileOf(object.Object["spec"])
}

func (pl *Horus) ready() bool {
	for _, synced := range pl.synced {
		if !synced() {
			return false
		}
	}
	return true
}
