// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

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
