// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"libhorus.org/kubernetes/advise"
	"libhorus.org/kubernetes/internal/feed"
)

// lookEvery is when the nodes' GPU types are looked at again. Most updates of nodes are heartbeats, which change nothing here.
const lookEvery = 5 * time.Second

// Watched is what advice rests on, as the API server told it.
type Watched struct {
	profiles *feed.Profiles
	types    atomic.Pointer[[]advise.NodeType]
}

// Watch begins to watch.
func Watch(ctx context.Context, settings advise.Settings, client kubernetes.Interface, others dynamic.Interface) (*Watched, error) {
	profiles, err := feed.FollowProfiles(ctx, others, func(*unstructured.Unstructured) {})
	if err != nil {
		return nil, err
	}
	w := &Watched{profiles: profiles}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slim))
	nodes, slices := factory.Core().V1().Nodes().Lister(), factory.Resource().V1().ResourceSlices().Lister()
	factory.Start(ctx.Done())
	go func() {
		factory.WaitForCacheSync(ctx.Done())
		wait.UntilWithContext(ctx, func(context.Context) {
			allNodes, _ := nodes.List(labels.Everything()) // of what is in memory
			allSlices, _ := slices.List(labels.Everything())
			types := advise.TypesOf(settings, allNodes, allSlices)
			w.types.Store(&types)
		}, lookEvery)
	}()
	return w, nil
}

// slim leaves out what is most of a node and read by nobody here.
func slim(o any) (any, error) {
	if node, is := o.(*v1.Node); is {
		node.ManagedFields, node.Status.Images = nil, nil
	}
	return o, nil
}

// Synced says whether all was told once.
func (w *Watched) Synced() bool { return w.types.Load() != nil }

// Profile is a JobProfile.
func (w *Watched) Profile(namespace, name string) (advise.Profile, error) {
	return w.profiles.Get(namespace, name)
}

// Types are those of the cluster's nodes, each once.
func (w *Watched) Types() (types []advise.NodeType) {
	if now := w.types.Load(); now != nil {
		types = *now
	}
	return types
}
