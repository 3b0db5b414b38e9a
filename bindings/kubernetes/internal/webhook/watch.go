// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"reflect"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"libhorus.org/kubernetes/advise"
	"libhorus.org/kubernetes/internal/feed"
)

// Watched is what advice rests on, as the API server last told it.
type Watched struct {
	settings advise.Settings
	profiles *feed.Profiles
	synced   []cache.InformerSynced

	mu       sync.Mutex
	nodes    map[string]*v1.Node
	slices   map[string]map[string]*resourceapi.ResourceSlice // by node and name
	types    map[string][]advise.NodeType                     // by node
	distinct []advise.NodeType                                // nil: to be made again
}

// Watch begins to watch.
func Watch(ctx context.Context, settings advise.Settings, client kubernetes.Interface, others dynamic.Interface) (*Watched, error) {
	w := &Watched{
		settings: settings, nodes: map[string]*v1.Node{}, slices: map[string]map[string]*resourceapi.ResourceSlice{},
		types: map[string][]advise.NodeType{},
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slim))
	for _, one := range []struct {
		informer cache.SharedIndexInformer
		set      func(o any, gone bool)
	}{
		{factory.Core().V1().Nodes().Informer(), func(o any, gone bool) { w.setNode(o.(*v1.Node), gone) }},
		{factory.Resource().V1().ResourceSlices().Informer(), func(o any, gone bool) { w.setSlice(o.(*resourceapi.ResourceSlice), gone) }},
	} {
		synced, err := feed.Handle(one.informer, func(o any) { one.set(o, false) }, func(o any) { one.set(o, true) })
		if err != nil {
			return nil, err
		}
		w.synced = append(w.synced, synced)
	}
	factory.Start(ctx.Done())
	var err error
	w.profiles, err = feed.FollowProfiles(ctx, others, func(*unstructured.Unstructured) {})
	return w, err
}

// slim leaves out what is most of a node and read by nobody here.
func slim(o any) (any, error) {
	if node, is := o.(*v1.Node); is {
		node.ManagedFields, node.Status.Images = nil, nil
	}
	return o, nil
}

// Synced says whether all was told once.
func (w *Watched) Synced() bool {
	for _, synced := range w.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// Profile is a JobProfile.
func (w *Watched) Profile(namespace, name string) (advise.Profile, error) {
	object, err := w.profiles.Object(namespace, name)
	if err != nil {
		return advise.Profile{}, err
	}
	return advise.ProfileOf(object.Object["spec"], object.Object["status"])
}

// Types are those of the cluster's nodes, each once.
func (w *Watched) Types() []advise.NodeType {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.distinct == nil {
		var all []advise.NodeType
		for _, types := range w.types {
			all = append(all, types...)
		}
		w.distinct = advise.Distinct(all)
	}
	return w.distinct
}

func (w *Watched) setNode(node *v1.Node, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if gone {
		delete(w.nodes, node.Name)
	} else {
		w.nodes[node.Name] = node
	}
	w.look(node.Name)
}

func (w *Watched) setSlice(slice *resourceapi.ResourceSlice, gone bool) {
	if !w.settings.IsOurs(slice) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	name := *slice.Spec.NodeName
	if w.slices[name] == nil {
		w.slices[name] = map[string]*resourceapi.ResourceSlice{}
	}
	w.slices[name][slice.Name] = slice
	if gone {
		delete(w.slices[name], slice.Name)
	}
	w.look(name)
}

// look at a node again. Most of its updates are heartbeats, which change nothing here.
func (w *Watched) look(name string) {
	var now []advise.NodeType
	if node := w.nodes[name]; node != nil {
		var own []*resourceapi.ResourceSlice
		for _, slice := range w.slices[name] {
			own = append(own, slice)
		}
		now = advise.TypesOfNode(w.settings, node, own)
	}
	if !reflect.DeepEqual(now, w.types[name]) {
		w.types[name], w.distinct = now, nil
	}
	if w.nodes[name] == nil {
		delete(w.types, name)
	}
}
