// SPDX-License-Identifier: Apache-2.0

// Package shadow tells what other schedulers' choices cost beside ours, decision by decision.
package shadow

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
)

var (
	decisions = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "horus_shadow_decisions_total", Help: "Pods with GPUs that another scheduler bound, by what ours would have done.",
	}, []string{"scheduler", "ours"})
	regret = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "horus_shadow_regret_gpus", Help: "Useful work that ours would have gained more, in GPUs, over decisions that both took; where it is less, it counts as lost_gpus.",
	}, []string{"scheduler"})
	lost   = metrics.NewCounterVec(&metrics.CounterOpts{Name: "horus_shadow_lost_gpus", Help: "Useful work that theirs gained more, in GPUs, over decisions that both took."}, []string{"scheduler"})
	beyond = metrics.NewCounterVec(&metrics.CounterOpts{Name: "horus_shadow_beyond_bound_total", Help: "Tenants whose slowdown bound their choice breaks."}, []string{"scheduler"})
	broken = metrics.NewCounterVec(&metrics.CounterOpts{Name: "horus_shadow_broken_rules_total", Help: "Choices that break a rule of ours, by the first."}, []string{"scheduler", "rule"})
)

// Register makes the metrics known; once a process.
var Register = sync.OnceFunc(func() {
	legacyregistry.MustRegister(decisions, regret, lost, beyond, broken)
	fromZero(v1.DefaultSchedulerName)
})

// fromZero makes what is counted of a scheduler known, so that its first event is an increase.
func fromZero(scheduler string) {
	for _, ours := range []string{"same", "elsewhere", "waits", "failed"} {
		decisions.WithLabelValues(scheduler, ours)
	}
	for _, counter := range []*metrics.CounterVec{regret, lost, beyond} {
		counter.WithLabelValues(scheduler)
	}
	for reason := horus.ReasonNone + 1; reason <= horus.ReasonSharingQuota; reason++ {
		broken.WithLabelValues(scheduler, reason.String())
	}
}

// Judge says what is to be told of each pod that is bound from now on, but by our own scheduler.
func Judge(ours string) func(mirror.View) {
	since := time.Now().Truncate(time.Second)
	return func(view mirror.View) {
		if view.Pod.Spec.SchedulerName != ours && !boundAt(view.Pod).Before(since) {
			judge(view)
		}
	}
}

func judge(view mirror.View) {
	pod, scheduler := view.Pod, view.Pod.Spec.SchedulerName
	open := objects.OpennessOf(pod, objects.Owner{Scheduler: scheduler})
	r, err := view.Regret(func(node *v1.Node) bool {
		return node != nil && (node.Name == pod.Spec.NodeName || (open.To(node) && view.HasRoom(node)))
	})
	fromZero(scheduler)
	if err != nil {
		decisions.WithLabelValues(scheduler, "failed").Inc()
		klog.ErrorS(err, "Shadow: a choice cannot be judged", "pod", klog.KObj(pod), "node", pod.Spec.NodeName)
		return
	}
	ours := "waits"
	if r.Verdict == horus.Place {
		ours = "elsewhere"
		if r.Same {
			ours = "same"
		}
	}
	decisions.WithLabelValues(scheduler, ours).Inc()
	if work := r.Work(); work >= 0 {
		regret.WithLabelValues(scheduler).Add(work)
	} else {
		lost.WithLabelValues(scheduler).Add(-work)
	}
	beyond.WithLabelValues(scheduler).Add(float64(r.Theirs.BeyondBound))
	if r.Theirs.Reason != horus.ReasonNone {
		broken.WithLabelValues(scheduler, r.Theirs.Reason.String()).Inc()
	}
	klog.InfoS("Shadow", "pod", klog.KObj(pod), "scheduler", scheduler, "theirs", pod.Spec.NodeName, "ours", view.NodeName(r.Slots),
		"verdict", ours, "regretGPUs", r.Work(), "theirRule", r.Theirs.Reason.String(), "why", r.Text)
}

// boundAt is when the pod was bound, by its own condition.
func boundAt(pod *v1.Pod) time.Time {
	if _, c := podutil.GetPodCondition(&pod.Status, v1.PodScheduled); c != nil && c.Status == v1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Now() // bound without the condition: by whoever wrote the node's name, just now
}
