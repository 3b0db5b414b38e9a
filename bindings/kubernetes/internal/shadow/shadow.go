// SPDX-License-Identifier: Apache-2.0

// Package shadow tells what other schedulers' choices cost beside ours, decision by decision.
package shadow

import (
	"context"
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
	lost = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "horus_shadow_lost_gpus", Help: "Useful work that theirs gained more, in GPUs, over decisions that both took.",
	}, []string{"scheduler"})
	beyond = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "horus_shadow_beyond_bound_total", Help: "Tenants whose slowdown bound their choice breaks.",
	}, []string{"scheduler"})
	broken = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "horus_shadow_broken_rules_total", Help: "Choices that break a rule of ours, by the first.",
	}, []string{"scheduler", "rule"})
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

// Watcher compares.
type Watcher struct {
	ours  string // name of our own scheduler, whose choices are not judged
	since time.Time
}

// New judges what is bound from now on.
func New(ours string) *Watcher { return &Watcher{ours: ours, since: time.Now().Truncate(time.Second)} }

// Seen judges one choice. What was bound before the watcher began is no choice that it saw.
func (w *Watcher) Seen(view mirror.View) {
	pod := view.Pod
	if pod.Spec.SchedulerName == w.ours || boundAt(pod).Before(w.since) {
		return
	}
	open := objects.OpennessOf(pod, objects.Owner{Scheduler: pod.Spec.SchedulerName})
	r, err := view.Regret(context.Background(), func(node *v1.Node) bool {
		return node != nil && (node.Name == pod.Spec.NodeName || (open.To(node) && view.HasRoom(node)))
	})
	scheduler := pod.Spec.SchedulerName
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
	where := ""
	if len(r.Slots) > 0 {
		where = view.NodeName(r.Slots[0].Node)
	}
	klog.InfoS("Shadow", "pod", klog.KObj(pod), "scheduler", scheduler, "theirs", pod.Spec.NodeName, "ours", where,
		"verdict", ours, "regretGPUs", r.Work(), "theirRule", r.Theirs.Reason.String(), "why", r.Text)
}

// boundAt is when the pod was bound, by its own condition.
func boundAt(pod *v1.Pod) time.Time {
	if _, c := podutil.GetPodCondition(&pod.Status, v1.PodScheduled); c != nil && c.Status == v1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Now() // bound without the condition: by whoever wrote the node's name, just now
}
