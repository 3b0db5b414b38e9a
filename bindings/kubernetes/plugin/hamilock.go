// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// hamiLock is HAMi's lock on a node, an annotation "time,namespace,name". From the binding of a pod until HAMi's device plugin has
// served it no other pod of the node may be in between: the plugin finds the pod by the lock.
type hamiLock struct {
	nodes  corelisters.NodeLister
	client kubernetes.Interface
	expiry time.Duration
	pod    *v1.Pod
	node   string
	value  string // of ours
}

const (
	hamiLockAnnotation = "hami.io/mutex.lock"
	hamiLockPath       = "/metadata/annotations/hami.io~1mutex.lock" // as a JSON pointer
	lockWithin         = 30 * time.Second                            // then the pod gives its place back and is tried again
	lockTriedEvery     = 100 * time.Millisecond
	lockFreedWithin    = 5 * time.Second
)

func (l *hamiLock) take(ctx context.Context) error {
	var held error
	err := wait.PollUntilContextTimeout(ctx, lockTriedEvery, lockWithin, true, func(ctx context.Context) (taken bool, err error) {
		held, err = l.try(ctx)
		return held == nil && err == nil, err
	})
	if err != nil && ctx.Err() == nil && held != nil {
		return fmt.Errorf("Horus: %w", held)
	}
	if err != nil {
		return fmt.Errorf("Horus: node %s: annotation %s: %w", l.node, hamiLockAnnotation, err)
	}
	return nil
}

// try takes it if it is free or void; held says by whom it is held.
func (l *hamiLock) try(ctx context.Context) (held, err error) {
	node, err := l.nodes.Get(l.node)
	if err != nil {
		return nil, err
	}
	found, locked := node.Annotations[hamiLockAnnotation]
	if locked {
		if held, err = l.holds(ctx, found); held != nil || err != nil {
			return held, err
		}
		klog.InfoS("Horus: HAMi's lock is void", "node", l.node, "lock", found, "pod", klog.KObj(l.pod))
	}
	l.value = strings.Join([]string{time.Now().UTC().Format(time.RFC3339), l.pod.Namespace, l.pod.Name}, ",")
	patch := map[string]any{"metadata": map[string]any{
		"resourceVersion": node.ResourceVersion, "annotations": map[string]any{hamiLockAnnotation: l.value},
	}}
	if err = l.patch(ctx, types.MergePatchType, patch); apierrors.IsConflict(err) { // the node is another already
		return fmt.Errorf("node %s: annotation %s: expected it free, found the node changed in the meantime", l.node, hamiLockAnnotation), nil
	}
	return nil, err
}

// holds says why a lock holds, by HAMi's rules: it is younger than its expiry, and its pod is there. One that can no longer be served
// on the node does not hold, as one in the name of this very pod, from an attempt that was cut off.
func (l *hamiLock) holds(ctx context.Context, found string) (held, err error) {
	at, owner, named := strings.Cut(found, ",")
	namespace, name, whole := strings.Cut(owner, ",")
	since, wrong := time.Parse(time.RFC3339, at)
	if wrong != nil || (named && (!whole || strings.Contains(name, ","))) {
		return fmt.Errorf("node %s: annotation %s: expected time,namespace,name, found %q", l.node, hamiLockAnnotation, found), nil
	}
	held = fmt.Errorf("node %s: annotation %s: expected it free, found it held since %s by pod %s/%s", l.node, hamiLockAnnotation, at, namespace, name)
	switch {
	case time.Since(since) > l.expiry || (namespace == l.pod.Namespace && name == l.pod.Name):
		return nil, nil
	case namespace == "" || name == "":
		return held, nil
	}
	pod, err := l.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case pod.Spec.NodeName != "" && pod.Spec.NodeName != l.node, podutil.IsPodTerminal(pod):
		return nil, nil
	}
	return held, nil
}

// free gives it back where it is still ours. What fails here expires.
func (l *hamiLock) free() {
	ctx, cancel := context.WithTimeout(context.Background(), lockFreedWithin)
	defer cancel()
	err := l.patch(ctx, types.JSONPatchType, []any{
		map[string]any{"op": "test", "path": hamiLockPath, "value": l.value},
		map[string]any{"op": "remove", "path": hamiLockPath},
	})
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) {
		klog.ErrorS(err, "Horus: HAMi's lock is not freed", "node", l.node, "lock", l.value)
	}
}

func (l *hamiLock) patch(ctx context.Context, kind types.PatchType, patch any) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = l.client.CoreV1().Nodes().Patch(ctx, l.node, kind, text, metav1.PatchOptions{})
	return err
}
