// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// GroupLabel names the PodGroup (scheduling.x-k8s.io, the coscheduling plugin's) that a pod belongs to.
const GroupLabel = "scheduling.x-k8s.io/pod-group"

var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

const (
	lookForPodGroups = 30 * time.Second // how often, while the API server does not serve them
	defaultTimeout   = 60               // seconds, of a gang whose PodGroup states none, as coscheduling has it
	longestTimeout   = 15 * 60          // seconds: the scheduler lets no pod wait longer
	mostMembers      = 10_000
)

// podGroupLister reads PodGroups once the API server serves them: their CRD is not ours, and may come later.
type podGroupLister struct {
	lister atomic.Pointer[cache.GenericLister]
}

// follow looks for the CRD, and then tells each PodGroup that comes or changes.
func (l *podGroupLister) follow(ctx context.Context, served discovery.DiscoveryInterface, client dynamic.Interface, changed func(namespace, name string)) {
	_ = wait.PollUntilContextCancel(ctx, lookForPodGroups, true, func(context.Context) (bool, error) {
		is, _ := discovery.IsResourceEnabled(served, podGroups)
		return is, nil
	})
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	groups := factory.ForResource(podGroups)
	tell := func(o any) {
		if group, ok := o.(*unstructured.Unstructured); ok {
			changed(group.GetNamespace(), group.GetName())
		}
	}
	if _, err := groups.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, now any) { tell(now) }}); err != nil {
		return
	}
	lister := groups.Lister()
	l.lister.Store(&lister)
	factory.Start(ctx.Done())
}

// podGroup is what a PodGroup says.
type podGroup struct {
	minMember int
	timeout   time.Duration
}

func (l *podGroupLister) get(namespace, name string) (podGroup, error) {
	lister := l.lister.Load()
	if lister == nil {
		return podGroup{}, fmt.Errorf("expected %s, found no such resource in the cluster", podGroups.GroupResource())
	}
	found, err := (*lister).ByNamespace(namespace).Get(name)
	if err != nil {
		return podGroup{}, err
	}
	object, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(found)
	spec, _, _ := unstructured.NestedMap(object, "spec")
	number := func(field string, most int64, otherwise any) (int64, error) {
		value, stated := spec[field]
		if !stated {
			value = otherwise
		}
		n, is := value.(int64)
		if !is || n < 1 || n > most {
			return 0, fmt.Errorf("spec.%s: expected 1 to %d, found %v", field, most, value)
		}
		return n, nil
	}
	members, err := number("minMember", mostMembers, "none")
	if err != nil {
		return podGroup{}, err
	}
	seconds, err := number("scheduleTimeoutSeconds", longestTimeout, int64(defaultTimeout))
	return podGroup{int(members), time.Duration(seconds) * time.Second}, err
}
