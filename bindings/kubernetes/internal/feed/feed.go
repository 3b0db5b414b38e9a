// SPDX-License-Identifier: Apache-2.0

// Package feed tells a mirror what informers bring.
package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
)

const listWithin = 10 * time.Second

// Connect to the API server of a kubeconfig; none = by the pod's service account.
func Connect(kubeconfig string) (kubernetes.Interface, dynamic.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	others, err := dynamic.NewForConfig(config)
	return client, others, err
}

// Pods is told of pods after the mirror.
type Pods struct{ Set, Gone func(*v1.Pod) }

// Follow has the mirror told of nodes, slices, claims and pods. Claims are listed before it returns, the rest as the factory is
// started.
func Follow(ctx context.Context, factory informers.SharedInformerFactory, m *mirror.Mirror, pods Pods) ([]cache.InformerSynced, error) {
	claims := factory.Resource().V1().ResourceClaims().Informer()
	if err := listFirst(ctx, claims, "resourceclaims.resource.k8s.io"); err != nil {
		return nil, err
	}
	nodes, failedNodes := Handle(factory.Core().V1().Nodes().Informer(), m.SetNode, func(node *v1.Node) { m.DeleteNode(node.Name) })
	slices, failedSlices := Handle(factory.Resource().V1().ResourceSlices().Informer(), m.SetSlice, m.DeleteSlice)
	claimed, failedClaims := Handle(claims, m.SetClaim, m.DeleteClaim)
	all, failedPods := Handle(factory.Core().V1().Pods().Informer(), func(pod *v1.Pod) {
		m.SetPod(pod)
		pods.Set(pod)
	}, func(pod *v1.Pod) {
		m.DeletePod(pod.UID)
		pods.Gone(pod)
	})
	return []cache.InformerSynced{nodes, slices, claimed, all}, errors.Join(failedNodes, failedSlices, failedClaims, failedPods)
}

// Handle tells of an informer's objects as they are, and of those that are gone, unless `gone` is nil.
func Handle[T any](informer cache.SharedIndexInformer, set, gone func(T)) (cache.InformerSynced, error) {
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(now any) { set(now.(T)) }, UpdateFunc: func(_, now any) { set(now.(T)) }}
	if gone != nil {
		handler.DeleteFunc = func(o any) {
			if last, missed := o.(cache.DeletedFinalStateUnknown); missed {
				o = last.Obj
			}
			gone(o.(T))
		}
	}
	registration, err := informer.AddEventHandler(handler)
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
	if _, err := Handle(informer.Informer(), changed, nil); err != nil {
		return nil, err
	}
	return &Profiles{informer.Lister()}, listFirst(ctx, informer.Informer(), objects.ProfilesResource+"."+objects.Group)
}

func (p *Profiles) All() []*unstructured.Unstructured {
	listed, _ := p.lister.List(labels.Everything())
	out := make([]*unstructured.Unstructured, len(listed))
	for i, one := range listed {
		out[i] = one.(*unstructured.Unstructured)
	}
	return out
}

func (p *Profiles) Object(namespace, name string) (*unstructured.Unstructured, error) {
	found, err := p.lister.ByNamespace(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	return found.(*unstructured.Unstructured), nil
}

func (p *Profiles) Get(namespace, name string) (objects.Profile, error) {
	object, err := p.Object(namespace, name)
	if err != nil {
		return objects.Profile{}, err
	}
	return objects.ProfileOf(object.Object["spec"], object.Object["status"])
}
