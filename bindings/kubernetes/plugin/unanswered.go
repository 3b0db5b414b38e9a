// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"libhorus.org/kubernetes/internal/objects"
)

// A write that failed may have been done: an API server that dies has stored what it did not answer. Until that is known, the
// GPUs are neither given back nor given to another pod.

const askAgainEvery = 250 * time.Millisecond

// untilAnswered asks the API server until it answers; settled says whether the answer is enough.
func untilAnswered(ctx context.Context, ask func(ctx context.Context) (settled bool, err error)) {
	_ = wait.PollUntilContextCancel(ctx, askAgainEvery, true, func(ctx context.Context) (bool, error) {
		settled, err := ask(ctx)
		return settled || apierrors.IsNotFound(err) || apierrors.IsForbidden(err), nil
	})
}

// awaitClaims waits until the scheduler knows of each claim of a pod what the API server has stored.
func (pl draPlugin) awaitClaims(ctx context.Context, pod *v1.Pod) {
	for i := range pod.Spec.ResourceClaims {
		name := objects.ClaimName(pod, &pod.Spec.ResourceClaims[i])
		if name == "" {
			continue
		}
		untilAnswered(ctx, func(ctx context.Context) (bool, error) {
			stored, err := pl.handle.ClientSet().ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			known, err := pl.handle.SharedDRAManager().ResourceClaims().Get(pod.Namespace, name)
			return stored.Status.Allocation == nil || err != nil || known.UID != stored.UID || known.Status.Allocation != nil, nil
		})
	}
}

// isBound says whether the API server has stored a binding.
func (pl *Horus) isBound(ctx context.Context, binding *v1.Binding) (bound bool) {
	untilAnswered(ctx, func(ctx context.Context) (bool, error) {
		stored, err := pl.handle.ClientSet().CoreV1().Pods(binding.Namespace).Get(ctx, binding.Name, metav1.GetOptions{})
		bound = err == nil && stored.UID == binding.UID && stored.Spec.NodeName == binding.Target.Name
		return err == nil, err
	})
	return bound
}
