// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"libhorus.org/kubernetes/internal/objects"
)

// asksFor says whether a pod gets its GPUs by these means. A claim does by itself.
func asksFor(pod *v1.Pod, settings Settings, means Means) bool {
	switch {
	case pod == nil:
		return means == Claims
	case objects.WholeGPUs(settings.OrDefault(), pod) > 0:
		return means == Whole || means == HAMi
	case SharesByKAI(settings, pod):
		return means == Whole
	}
	return len(pod.Spec.ResourceClaims) > 0 && means == Claims
}

// SharesByKAI says whether a pod gets a part of a GPU from KAI's scheduler, which annotations ask for: it consents to share, or
// states how much.
func SharesByKAI(settings Settings, pod *v1.Pod) bool {
	return pod.Spec.SchedulerName == "kai-scheduler" && len(pod.Spec.ResourceClaims) == 0 && objects.WholeGPUs(settings.OrDefault(), pod) == 0 &&
		(pod.Annotations[objects.ShareAnnotation] != "" || StatesPartOfKAI(pod))
}

// StatesPartOfKAI says whether the pod says how large the part is.
func StatesPartOfKAI(pod *v1.Pod) bool {
	for key := range pod.Annotations {
		if key == "gpu-fraction" || key == KAIMemory || strings.HasSuffix(key, ".gpu-memory.request") {
			return true
		}
	}
	return false
}

// KAIMemory is the annotation for MiB of a GPU, which all versions of KAI read.
const KAIMemory = "gpu-memory"

// AsksForGPUs says whether a pod does, as far as itself tells: its claims may be for other devices.
func AsksForGPUs(settings Settings, pod *v1.Pod) bool {
	return asksFor(pod, settings, Whole) || asksFor(pod, settings, Claims)
}

// requiredTerms of node affinity; nil = none.
func requiredTerms(pod *v1.Pod) []v1.NodeSelectorTerm {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	return nil
}

// choosesNodes says whether the pod says itself on which GPUs, or on which very nodes, it wants to run.
func choosesNodes(pod *v1.Pod) bool {
	keys := slices.Collect(maps.Keys(pod.Spec.NodeSelector))
	terms := requiredTerms(pod)
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		for _, one := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			terms = append(terms[:len(terms):len(terms)], one.Preference)
		}
	}
	for _, term := range terms {
		if len(term.MatchFields) > 0 {
			return true
		}
		for _, one := range term.MatchExpressions {
			keys = append(keys, one.Key)
		}
	}
	return pod.Spec.NodeName != "" || slices.ContainsFunc(keys, choosing) || pod.Annotations[objects.HAMiUseType]+pod.Annotations[objects.HAMiNoType] != ""
}

func choosing(key string) bool {
	return key == objects.HostLabel || strings.HasPrefix(key, "nvidia.com/") || slices.Contains(typeLabels, key)
}

// allows says which GPU types the pod's selectors and required affinity leave, by the labels that name types alone: what else
// they say may be so on some node of the type.
func allows(pod *v1.Pod) func(labels map[string]string) bool {
	if pod == nil {
		return func(map[string]string) bool { return true }
	}
	about := &v1.Pod{Spec: v1.PodSpec{NodeSelector: maps.Clone(pod.Spec.NodeSelector)}}
	maps.DeleteFunc(about.Spec.NodeSelector, func(key, _ string) bool { return !slices.Contains(typeLabels, key) })
	var kept []v1.NodeSelectorTerm
	for _, term := range requiredTerms(pod) {
		one := v1.NodeSelectorTerm{MatchExpressions: slices.DeleteFunc(slices.Clone(term.MatchExpressions), func(e v1.NodeSelectorRequirement) bool {
			return !slices.Contains(typeLabels, e.Key)
		})}
		if len(one.MatchExpressions) == 0 { // terms are alternatives
			kept = nil
			break
		}
		kept = append(kept, one)
	}
	if len(kept) > 0 {
		about.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: kept},
		}}
	}
	required := nodeaffinity.GetRequiredNodeAffinity(about)
	return func(labels map[string]string) bool {
		matches, err := required.Match(&v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
		return err != nil || matches
	}
}
