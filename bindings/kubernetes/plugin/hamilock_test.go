// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"libhorus.org/kubernetes/internal/objects"
)

// lockOn is the lock that team/mine wants on n1, whose annotation is `found` now; "" = none.
func lockOn(t *testing.T, found string, pods ...*v1.Pod) (*hamiLock, *fake.Clientset) {
	t.Helper()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "7", Annotations: map[string]string{}}}
	if found != "" {
		node.Annotations[hamiLockAnnotation] = found
	}
	client := fake.NewClientset(node)
	for _, pod := range pods {
		if err := client.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := known.Add(node); err != nil {
		t.Fatal(err)
	}
	mine := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine"}}
	return &hamiLock{nodes: corelisters.NewNodeLister(known), client: client, expiry: defaultLockExpiry, pod: mine, node: "n1"}, client
}

func lockIn(t *testing.T, client *fake.Clientset) string {
	t.Helper()
	node, err := client.CoreV1().Nodes().Get(context.Background(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node.Annotations[hamiLockAnnotation]
}

// HAMi writes a lock as ParseNodeLock reads it: a time alone, or with namespace and name of the pod.
func TestHAMisLockHoldsAsItsRulesSay(t *testing.T) {
	at := func(age time.Duration, owner string) string { return time.Now().Add(-age).Format(time.RFC3339) + owner }
	there := func(node string, phase v1.PodPhase) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}, Spec: v1.PodSpec{NodeName: node}, Status: v1.PodStatus{Phase: phase}}
	}
	for name, one := range map[string]struct {
		found string
		pods  []*v1.Pod
		says  string // why it holds; "" = it does not
	}{
		"free":                      {"", nil, ""},
		"of a pod that comes":       {at(time.Minute, ",a,b"), []*v1.Pod{there("", v1.PodPending)}, "found it held since"},
		"of a pod that is served":   {at(4*time.Minute, ",a,b"), []*v1.Pod{there("n1", v1.PodPending)}, "by pod a/b"},
		"of nobody":                 {at(time.Minute, ""), nil, "found it held since"},
		"old":                       {at(6*time.Minute, ",a,b"), []*v1.Pod{there("n1", v1.PodPending)}, ""},
		"old, of nobody":            {at(6*time.Minute, ""), nil, ""},
		"of a pod that is gone":     {at(time.Minute, ",a,b"), nil, ""},
		"of a pod that is done":     {at(time.Minute, ",a,b"), []*v1.Pod{there("n1", v1.PodFailed)}, ""},
		"of a pod elsewhere":        {at(time.Minute, ",a,b"), []*v1.Pod{there("n2", v1.PodPending)}, ""},
		"of this very pod":          {at(time.Minute, ",team,mine"), nil, ""},
		"no time":                   {"yesterday,a,b", nil, `expected time,namespace,name, found "yesterday,a,b"`},
		"too few fields":            {at(time.Minute, ",a"), nil, "expected time,namespace,name"},
		"too many fields, and old":  {at(time.Hour, ",a,b,c"), nil, "expected time,namespace,name"},
		"of its namesake elsewhere": {at(time.Minute, ",b,mine"), []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "mine"}}}, "by pod b/mine"},
	} {
		lock, client := lockOn(t, one.found, one.pods...)
		held, err := lock.try(context.Background())
		if err != nil || (held == nil) != (one.says == "") || (held != nil && !strings.Contains(held.Error(), one.says)) {
			t.Errorf("%s: expected %q, found %v, %v", name, one.says, held, err)
			continue
		}
		now := lockIn(t, client)
		if held != nil {
			if now != one.found {
				t.Errorf("%s: expected it untouched, found %q", name, now)
			}
			continue
		}
		if at, owner, _ := strings.Cut(now, ","); owner != "team,mine" {
			t.Errorf("%s: expected time,team,mine, found %q", name, now)
		} else if _, err := time.Parse(time.RFC3339, at); err != nil {
			t.Errorf("%s: expected a time, found %v", name, err)
		}
		if lock.free(); lockIn(t, client) != "" {
			t.Errorf("%s: expected it freed, found %q", name, lockIn(t, client))
		}
	}
}

func TestALockThatIsAnothersNowIsNotFreed(t *testing.T) {
	lock, client := lockOn(t, "2026-01-01T00:00:00Z,a,b")
	lock.value = "2026-01-01T00:00:00Z,team,mine"
	if lock.free(); lockIn(t, client) != "2026-01-01T00:00:00Z,a,b" {
		t.Errorf("expected the other's lock untouched, found %q", lockIn(t, client))
	}
}

// A change between the look and the write: the lock is the other's. The API server refuses a patch of another version.
func TestALockThatSomebodyTookFirstIsTheirs(t *testing.T) {
	for _, found := range []string{"", "2026-01-01T00:00:00Z,a,b"} {
		lock, client := lockOn(t, found)
		client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if !strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"resourceVersion":"7"`) {
				return false, nil, nil
			}
			return true, nil, apierrors.NewConflict(v1.Resource("nodes"), "n1", errors.New("version 8"))
		})
		if held, err := lock.try(context.Background()); held == nil || err != nil || lockIn(t, client) != found {
			t.Errorf("%q: expected the other's lock untouched, found %q, %v, %v", found, lockIn(t, client), held, err)
		}
	}
}

func TestHAMisLockWakesNobodyAndItsGPUsDo(t *testing.T) {
	node := func(annotation, value string) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotation: value}}}
	}
	for want, pair := range map[fwk.QueueingHint][2]*v1.Node{
		fwk.QueueSkip: {node(hamiLockAnnotation, "a"), node(hamiLockAnnotation, "b")},
		fwk.Queue:     {node(objects.HAMiRegisterAnnotation, "a"), node(objects.HAMiRegisterAnnotation, "b")},
	} {
		if hint, err := afterAnnotation(klog.Background(), nil, pair[0], pair[1]); hint != want || err != nil {
			t.Errorf("expected %v, found %v, %v", want, hint, err)
		}
	}
}
