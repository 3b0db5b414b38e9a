// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"fmt"
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// DefaultSteps is the metric of horus.steps, a Python module for jobs.
const DefaultSteps = "horus_job_step_seconds"

// Reading of a job's steps since it started. Seconds are NaN where it counts steps alone. Running are the requests that an engine
// has in its batch now, on which the time of a token depends; 0 = it has none, or does not tell.
type Reading struct{ Steps, Seconds, Running float64 }

// running is where an engine tells them, by how its metrics begin.
var running = map[string]string{"vllm:": "vllm:num_requests_running", "sglang:": "sglang:num_running_reqs", "tgi_": "tgi_batch_current_size"}

// ReadingOf a summary or histogram of the time of a step in seconds, or a counter of steps, over all its labels.
func ReadingOf(found Families, metric string) (Reading, error) {
	family := found[metric]
	if family == nil {
		return Reading{}, fmt.Errorf("metric %s: expected it, found none", metric)
	}
	var out Reading
	for _, row := range family.GetMetric() {
		switch family.GetType() {
		case dto.MetricType_SUMMARY:
			out.Steps, out.Seconds = out.Steps+float64(row.GetSummary().GetSampleCount()), out.Seconds+row.GetSummary().GetSampleSum()
		case dto.MetricType_HISTOGRAM:
			out.Steps, out.Seconds = out.Steps+float64(row.GetHistogram().GetSampleCount()), out.Seconds+row.GetHistogram().GetSampleSum()
		case dto.MetricType_COUNTER, dto.MetricType_UNTYPED:
			out.Steps, out.Seconds = out.Steps+valueOf(row), math.NaN()
		default:
			return Reading{}, fmt.Errorf("metric %s: expected a summary, a histogram or a counter, found a %s", metric, strings.ToLower(family.GetType().String()))
		}
	}
	for engine, gauge := range running {
		if strings.HasPrefix(metric, engine) {
			for _, row := range found[gauge].GetMetric() {
				out.Running += valueOf(row)
			}
		}
	}
	if !(out.Running >= 0) || math.IsInf(out.Running, 0) {
		return Reading{}, fmt.Errorf("metric %s: expected running requests of at least 0, found %g", metric, out.Running)
	}
	if !(out.Steps >= 0) || out.Seconds < 0 || math.IsInf(out.Steps, 0) || math.IsInf(out.Seconds, 0) {
		return Reading{}, fmt.Errorf("metric %s: expected a sum and a count of at least 0, found %g and %g", metric, out.Seconds, out.Steps)
	}
	return out, nil
}
