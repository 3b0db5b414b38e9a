// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"libhorus.org/kubernetes/internal/feed"
	"libhorus.org/kubernetes/internal/objects"
)

// watch feeds the mirror.
func (pl *Horus) watch(ctx context.Context) error {
	client, err := dynamic.NewForConfig(pl.handle.KubeConfig())
	if err != nil {
		return err
	}
	pl.profiles, err = feed.FollowProfiles(ctx, client, func(profile *unstructured.Unstructured) { pl.profileChanged(ctx, profile) })
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
func (pl *Horus) profileChanged(ctx context.Context, profile *unstructured.Unstructured) {
	pl.mirror.ProfileChanged(profile.GetNamespace(), profile.GetName())
	pl.activate(ctx, &pl.invalid, func(pod *v1.Pod) bool {
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
	for _, synced := range pl.synced {
		if !synced() {
			return false
		}
	}
	return true
}
