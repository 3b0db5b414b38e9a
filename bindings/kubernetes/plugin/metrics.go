// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

// What is counted, beside the scheduler's own metrics.
var (
	verdictSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Name: "horus_verdicts_seconds", Help: "Time of the library's answer for one pod over all nodes.",
		Buckets: metrics.ExponentialBuckets(0.0001, 2, 14),
	})
	placements = metrics.NewCounterVec(&metrics.CounterOpts{Name: "horus_placements_total", Help: "Pods bound, by whether they share a GPU."}, []string{"shares"})
	refusals   = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "horus_refusals_total", Help: "Scheduling attempts that found no GPU, by the reason on most nodes.",
	}, []string{"reason"})
	invalidPods    = metrics.NewCounter(&metrics.CounterOpts{Name: "horus_invalid_pods_total", Help: "Attempts refused for what the pod or its objects say."})
	modelVersion   = metrics.NewGauge(&metrics.GaugeOpts{Name: "horus_model_version", Help: "Version of the learned model that places pods; 0 = the library's own."})
	modelsRefused  = metrics.NewCounter(&metrics.CounterOpts{Name: "horus_models_refused_total", Help: "Learned models that could not be read."})
	withoutLibrary = metrics.NewCounter(&metrics.CounterOpts{
		Name: "horus_without_library_total", Help: "Attempts that went on without the library, whose process was gone (failurePolicy Ignore).",
	})
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
