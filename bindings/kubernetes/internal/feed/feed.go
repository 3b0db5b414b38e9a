// SPDX-License-Identifier: Apache-2.0

// Package feed tells a mirror what informers bring.
package feed

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
)

const listWithin = 10 * time.Second

// Pods is told of pods after the mirror; may be nil.
type Pods struct{ Set, Gone func(*v1.Pod) }

// Follow has the mirror told of nodes, slices, claims and pods. Claims are listed before it returns, the rest as the factory is
// started.
func Follow(ctx context.Context, factory informers.SharedInformerFactory, m *mirror.Mirror, pods Pods) ([]cache.InformerSynced, error) {
	claims := factory.Resource().V1().ResourceClaims().Informer()
	if err := listFirst(ctx, claims, "resourceclaims.resource.k8s.io"); err != nil {
		return nil, err
	}
	var synced []cache.InformerSynced
	for _, one := range []struct {
		informer cache.SharedIndexInformer
		set      func(any)
		gone     func(any)
	}{
		{factory.Core().V1().Nodes().Informer(),
			func(o any) { m.SetNode(o.(*v1.Node)) }, func(o any) { m.DeleteNode(o.(*v1.Node).Name) }},
		{factory.Resource().V1().ResourceSlices().Informer(),
			func(o any) { m.SetSlice(o.(*resourceapi.ResourceSlice)) },
			func(o any) { m.DeleteSlice(o.(*resourceapi.ResourceSlice)) }},
		{claims, func(o any) { m.SetClaim(o.(*resourceapi.ResourceClaim)) },
			func(o any) { m.DeleteClaim(o.(*resourceapi.ResourceClaim)) }},
		{factory.Core().V1().Pods().Informer(),
			func(o any) {
				m.SetPod(o.(*v1.Pod))
				if pods.Set != nil {
					pods.Set(o.(*v1.Pod))
				}
			},
			func(o any) {
				m.DeletePod(o.(*v1.Pod).UID)
				if pods.Gone != nil {
					pods.Gone(o.(*v1.Pod))
				}
			}},
	} {
		done, err := Handle(one.informer, one.set, one.gone)
		if err != nil {
			return nil, err
		}
		synced = append(synced, done)
	}
	return synced, nil
}

// Handle tells of an informer's objects as they are, and of those that are gone.
func Handle(informer cache.SharedIndexInformer, set, gone func(any)) (cache.InformerSynced, error) {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, now any) { set(now) },
		DeleteFunc: func(o any) {
			if last, missed := o.(cache.DeletedFinalStateUnknown); missed {
				o = last.Obj
			}
			gone(o)
		},
	})
	if err != nil {
		return nil, err
	}
	return registration.HasSynced, nil
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

// Profiles are the JobProfiles of the cluster.
type Profiles struct{ lister cache.GenericLister }

// FollowProfiles lists the JobProfiles before it returns, and tells of each that comes or changes.
func FollowProfiles(ctx context.Context, client dynamic.Interface, changed func(*unstructured.Unstructured)) (*Profiles, error) {
	informer := dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(objects.Profiles)
	tell := func(o any) {
		if profile, ok := o.(*unstructured.Unstructured); ok {
			changed(profile)
		}
	}
	if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, now any) { tell(now) }}); err != nil {
		return nil, err
	}
	return &Profiles{informer.Lister()}, listFirst(ctx, informer.Informer(), objects.ProfilesResource+"."+objects.Group)
}

// All of them.
func (p *Profiles) All() []*unstructured.Unstructured {
	listed, _ := p.lister.List(labels.Everything())
	var out []*unstructured.Unstructured
	for _, one := range listed {
		if object, ok := one.(*unstructured.Unstructured); ok {
			out = append(out, object)
		}
	}
	return out
}

// Object of a profile.
func (p *Profiles) Object(namespace, name string) (*unstructured.Unstructured, error) {
	found, err := p.lister.ByNamespace(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	object, ok := found.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("expected an object, found %T", found)
	}
	return object, nil
}

// Get reads a profile.
func (p *Profiles) Get(namespace, name string) (objects.Profile, error) {
	object, err := p.Object(namespace, name)
	if err != nil {
		return objects.Profile{}, err
	}
	return objects.ProfileOf(object.Object["spec"], object.Object["status"])
}
