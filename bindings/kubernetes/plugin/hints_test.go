// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
)

func waitingFor(claim string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "waits", UID: "waits", Annotations: map[string]string{objects.ProfileAnnotation: "x"}},
		Spec:       v1.PodSpec{ResourceClaims: []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To(claim)}}},
	}
}

func TestARefusedPodIsTriedAgainWhenAClaimHelpsIt(t *testing.T) {
	claim := func(namespace, name string, allocated bool) *resourceapi.ResourceClaim {
		out := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if allocated {
			out.Status.Allocation = &resourceapi.AllocationResult{}
		}
		return out
	}
	for name, one := range map[string]struct {
		before, now any
		expected    fwk.QueueingHint
	}{
		"its own comes":                   {nil, claim("a", "mine", false), fwk.Queue},
		"its own changes":                 {claim("a", "mine", false), claim("a", "mine", false), fwk.Queue},
		"another comes":                   {nil, claim("a", "other", false), fwk.QueueSkip},
		"one of that name elsewhere":      {nil, claim("b", "mine", false), fwk.QueueSkip},
		"another is given devices":        {claim("b", "other", false), claim("b", "other", true), fwk.QueueSkip},
		"another gives its devices back":  {claim("b", "other", true), claim("b", "other", false), fwk.Queue},
		"another leaves with its devices": {claim("b", "other", true), nil, fwk.Queue},
		"another leaves without":          {claim("b", "other", false), nil, fwk.QueueSkip},
		"one left while nobody looked":    {cache.DeletedFinalStateUnknown{}, nil, fwk.Queue},
	} {
		if hint, err := afterClaim(klog.Background(), waitingFor("mine"), one.before, one.now); hint != one.expected || err != nil {
			t.Errorf("%s: expected %v, found %v, %v", name, one.expected, hint, err)
		}
	}
}

func TestARefusedPodIsTriedAgainWhenAPodHelpsIt(t *testing.T) {
	args, err := parseArgs(nil)
	if err != nil {
		t.Fatal(err)
	}
	pl := &Horus{mirror: mirror.New(args.Settings(), objects.Lookups{}, nil)}
	idle := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "idle", UID: "idle"}}
	busy := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "busy", UID: "busy"}}
	busy.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Limits: v1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}
	edited, refusedAgain, running := waitingFor("mine"), waitingFor("mine"), busy.DeepCopy()
	edited.Annotations[objects.ProfileAnnotation] = "y"
	refusedAgain.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse}}
	running.Status.Phase = v1.PodRunning
	for name, change := range map[string]struct {
		before, now any
		expected    fwk.QueueingHint
	}{
		"one with GPUs leaves":           {busy, nil, fwk.Queue},
		"one without GPUs leaves":        {idle, nil, fwk.QueueSkip},
		"one left while nobody looked":   {cache.DeletedFinalStateUnknown{}, nil, fwk.Queue},
		"another runs":                   {busy, running, fwk.QueueSkip},
		"its owner edits it":             {waitingFor("mine"), edited, fwk.Queue},
		"it is told that it was refused": {waitingFor("mine"), refusedAgain, fwk.QueueSkip},
	} {
		if hint, err := pl.afterPod(klog.Background(), waitingFor("mine"), change.before, change.now); hint != change.expected || err != nil {
			t.Errorf("%s: expected %v, found %v, %v", name, change.expected, hint, err)
		}
	}
}
