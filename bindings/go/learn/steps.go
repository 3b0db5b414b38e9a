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

// Reading of a job's steps since it started. Seconds are NaN where it counts steps alone.
type Reading struct{ Steps, Seconds float64 }

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
	if !(out.Steps >= 0) || out.Seconds < 0 || math.IsInf(out.Steps, 0) || math.IsInf(out.Seconds, 0) {
		return Reading{}, fmt.Errorf("metric %s: expected a sum and a count of at least 0, found %g and %g", metric, out.Seconds, out.Steps)
	}
	return out, nil
}
