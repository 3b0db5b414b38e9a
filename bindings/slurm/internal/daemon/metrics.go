// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"libhorus.org/slurm/internal/place"
	"libhorus.org/slurm/internal/words"
)

// metrics of a daemon, in a registry of its own.
type metrics struct {
	registry               *prometheus.Registry
	passes, failed         prometheus.Counter
	placed, left, refused  prometheus.Counter
	pinned, kept, oldest   prometheus.Gauge
	last, seconds, problem prometheus.Gauge
	waiting                *prometheus.GaugeVec
}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for name, one := range map[string]struct {
		into *prometheus.Counter
		help string
	}{
		"passes_total":  {&m.passes, "Passes over nodes and jobs; a picture that did not change needs none."},
		"failed_total":  {&m.failed, "Looks at the controller that failed."},
		"placed_total":  {&m.placed, "Places that Slurm took for jobs; a job that is placed anew counts again."},
		"left_total":    {&m.left, "Jobs that were left to Slurm; their admin comments say why."},
		"refused_total": {&m.refused, "Changes that Slurm refused."},
	} {
		*one.into = prometheus.NewCounter(prometheus.CounterOpts{Name: "horus_slurm_" + name, Help: one.help})
		m.registry.MustRegister(*one.into)
	}
	for name, one := range map[string]struct {
		into *prometheus.Gauge
		help string
	}{
		"pinned_jobs":            {&m.pinned, "Jobs that wait for Slurm to start them where they were placed."},
		"kept_gpus":              {&m.kept, "GPUs that are kept for jobs which others would pass."},
		"oldest_waiting_seconds": {&m.oldest, "How long the job that waits longest without a place has waited; 0 = there is none."},
		"last_success_time":      {&m.last, "When the controller was last looked at, in seconds since 1970."},
		"pass_seconds":           {&m.seconds, "Time that the last pass took to read and plan."},
		"problems":               {&m.problem, "Nodes and jobs that the last pass left out; the log says which."},
	} {
		*one.into = prometheus.NewGauge(prometheus.GaugeOpts{Name: "horus_slurm_" + name, Help: one.help})
		m.registry.MustRegister(*one.into)
	}
	m.waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "horus_slurm_waiting_jobs", Help: "Jobs that wait without a place, by reason."}, []string{"reason"})
	m.registry.MustRegister(m.waiting)
	return m
}

func (m *metrics) pass(result place.Result, took time.Duration) {
	m.passes.Inc()
	m.pinned.Set(float64(result.Pinned))
	m.kept.Set(float64(result.Kept))
	m.oldest.Set(float64(result.Oldest))
	m.seconds.Set(took.Seconds())
	m.problem.Set(float64(len(result.Problems)))
	m.waiting.Reset()
	for reason, jobs := range result.Reasons {
		m.waiting.WithLabelValues(reason).Set(float64(jobs))
	}
}

// told counts what Slurm answered to the changes of a pass. Places that were put off, refused or not told are none.
func (m *metrics) told(result place.Result, answers []error) (placed, left, refused int) {
	for i, err := range answers {
		switch verb := recordOf(result.Changes[i]).Verb; {
		case err != nil:
			refused++
		case verb == words.Placed:
			placed++
		case verb == words.Left:
			left++
		}
	}
	m.placed.Add(float64(placed))
	m.left.Add(float64(left))
	m.refused.Add(float64(refused))
	m.pinned.Set(float64(result.Pinned + placed))
	return placed, left, refused
}

// Metrics serves what the daemon does, as text for Prometheus.
func (d *Daemon) Metrics() http.Handler {
	return promhttp.HandlerFor(d.metrics.registry, promhttp.HandlerOpts{})
}
