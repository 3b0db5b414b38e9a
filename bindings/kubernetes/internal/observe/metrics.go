// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"libhorus.org/learn"
)

var (
	windows = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "horus_observer_windows_total", Help: "Times that a device was watched, by what was learned from it.",
	}, []string{"outcome"})
	scrapes = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "horus_observer_scrapes_total", Help: "Scrapes of exporters and jobs.",
	}, []string{"of", "outcome"})
	commits = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "horus_observer_models_total", Help: "Models that were made of what was observed, and those taken back.",
	}, []string{"outcome"})
	advised = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "horus_observer_advice_total", Help: "Pods that are better moved, by what was done.",
	}, []string{"done"})
	version         = metrics.NewGauge(&metrics.GaugeOpts{Name: "horus_observer_model_version", Help: "Version of the model that counts."})
	predictionError = metrics.NewGauge(&metrics.GaugeOpts{Name: "horus_observer_prediction_error", Help: "Mean of |observed / predicted slowdown - 1|, over the last thousand."})
	covered         = metrics.NewGauge(&metrics.GaugeOpts{Name: "horus_observer_bounds_covered", Help: "Share of the slowdowns that their upper bound covered."})
)

// Register makes the metrics known, from 0.
func Register() {
	legacyregistry.MustRegister(windows, scrapes, commits, advised, version, predictionError, covered)
	for _, outcome := range learn.Outcomes {
		windows.WithLabelValues(string(outcome))
	}
	for _, of := range []string{"job", "exporter"} {
		scrapes.WithLabelValues(of, "ok")
		scrapes.WithLabelValues(of, "failed")
	}
	for _, name := range outcomeName {
		commits.WithLabelValues(name)
	}
	for _, done := range []string{toldOnly, evicted, refused} {
		advised.WithLabelValues(done)
	}
}

// outcomeName of a model, by whether it was taken back.
var outcomeName = map[bool]string{false: "committed", true: "rolled-back"}
