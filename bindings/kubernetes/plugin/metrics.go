// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strconv"
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

// What is counted, beside the scheduler's own metrics.
var (
	verdictSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Name: "horus_verdicts_seconds", Help: "Time of the library's answer for one pod over all nodes.",
		Buckets: metrics.ExponentialBuckets(0.0001, 2, 14),
	})
	placements     = metrics.NewCounterVec(&metrics.CounterOpts{Name: "horus_placements_total", Help: "Pods bound, by whether they share a GPU."}, []string{"shares"})
	refusals       = metrics.NewCounterVec(&metrics.CounterOpts{Name: "horus_refusals_total", Help: "Scheduling attempts that found no GPU, by the reason on most nodes."}, []string{"reason"})
	invalidPods    = metrics.NewCounter(&metrics.CounterOpts{Name: "horus_invalid_pods_total", Help: "Attempts refused for what the pod or its objects say."})
	modelVersion   = metrics.NewGauge(&metrics.GaugeOpts{Name: "horus_model_version", Help: "Version of the learned model that places pods; 0 = the library's own."})
	modelsRefused  = metrics.NewCounter(&metrics.CounterOpts{Name: "horus_models_refused_total", Help: "Learned models that could not be read."})
	withoutLibrary = metrics.NewCounter(&metrics.CounterOpts{Name: "horus_without_library_total", Help: "Attempts that went on without the library, whose process was gone (failurePolicy Ignore)."})
)

var registerOnce sync.Once

// register makes them known, with gauges of the mirror.
func (pl *Horus) register() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(verdictSeconds, placements, refusals, invalidPods, withoutLibrary, modelVersion, modelsRefused)
		// From 0, so that the first event is an increase.
		for _, shares := range []bool{false, true} {
			placements.WithLabelValues(strconv.FormatBool(shares))
		}
		for reason := horus.ReasonNone; reason <= horus.ReasonSharingQuota; reason++ {
			refusals.WithLabelValues(reason.String())
		}
		for _, reason := range objects.SkipReasons {
			legacyregistry.RawMustRegister(metrics.NewGaugeFunc(&metrics.GaugeOpts{
				Name: "horus_skipped_devices", Help: "GPUs that are not used, by reason; the log says where.",
				ConstLabels: map[string]string{"reason": reason},
			}, func() float64 { return float64(pl.mirror.Skipped()[reason]) }))
		}
		counts := pl.mirror.Counts
		for _, gauge := range []struct {
			name, help string
			of         func() int
		}{
			{"horus_mirrored_nodes", "Nodes whose GPUs are placed.", func() int { return counts().Nodes }},
			{"horus_mirrored_devices", "GPUs of those nodes.", func() int { return counts().Devices }},
			{"horus_mirrored_pods", "Pods that hold GPUs, whoever bound them.", func() int { return counts().Pods }},
			{"horus_waiting_pods", "Bound pods whose GPUs cannot be told yet.", func() int { return counts().Waiting }},
			{"horus_unused_nodes", "Nodes whose GPUs are not used; the log says why.", func() int { return counts().Unused }},
			{"horus_contradicting_pods", "Pods that say something else than what counts; their events say what.", func() int { return counts().Contradicting }},
			{"horus_overcommitted_devices", "GPUs with pods that do not share them with each other, or with more memory taken than they have.", pl.mirror.OverCommitted},
			{"horus_gang_waits", "Gangs (by the label) with pods that have no place.", pl.gangs.waits},
		} {
			of := func() float64 { return float64(gauge.of()) }
			legacyregistry.RawMustRegister(metrics.NewGaugeFunc(&metrics.GaugeOpts{Name: gauge.name, Help: gauge.help}, of))
		}
		legacyregistry.RawMustRegister(metrics.NewGaugeFunc(&metrics.GaugeOpts{
			Name: "horus_oldest_pending_seconds", Help: "Age of the oldest pod that was tried and refused; 0 = there is none.",
		}, pl.oldestPending))
	})
}

func (pl *Horus) oldestPending() float64 {
	now := time.Now()
	oldest := now
	for _, pods := range []*sync.Map{&pl.refused, &pl.invalid} {
		for _, value := range pods.Range {
			if made := value.(*v1.Pod).CreationTimestamp.Time; made.Before(oldest) {
				oldest = made
			}
		}
	}
	return now.Sub(oldest).Seconds()
}

// What other schedulers' choices cost beside ours, decision by decision.
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

// registerShadow makes these known; once a process.
var registerShadow = sync.OnceFunc(func() {
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

// judges says what is to be told of each pod that is bound from now on, but by our own scheduler.
func judges(ours string) func(mirror.View) {
	since := time.Now().Truncate(time.Second)
	return func(view mirror.View) {
		if view.Pod.Spec.SchedulerName != ours && !boundAt(view.Pod).Before(since) {
			judge(view)
		}
	}
}

func judge(view mirror.View) {
	pod, scheduler := view.Pod, view.Pod.Spec.SchedulerName
	open, room := objects.OpennessOf(pod, objects.Owner{Scheduler: scheduler}), view.Room()
	r, err := view.Regret(func(node *v1.Node) bool {
		return node != nil && (node.Name == pod.Spec.NodeName || (open.To(node) && room(node)))
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
