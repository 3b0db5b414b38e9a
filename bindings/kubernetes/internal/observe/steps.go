// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	v1 "k8s.io/api/core/v1"
)

// StepsAnnotation says where a pod tells its steps: PORT[/PATH] [METRIC]. The metric is a summary or histogram of the time of a
// step in seconds, or a counter of steps.
const StepsAnnotation = "libhorus.org/steps"

const defaultSteps = "horus_job_step_seconds"

// told is where a pod tells its steps.
type told struct{ url, metric string }

// stepsOf a pod; "" = it tells none.
func stepsOf(pod *v1.Pod) (told, error) {
	given := strings.Fields(pod.Annotations[StepsAnnotation])
	if len(given) == 0 || pod.Status.PodIP == "" {
		return told{}, nil
	}
	port, path, _ := strings.Cut(given[0], "/")
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || len(given) > 2 {
		return told{}, fmt.Errorf("annotation %s: expected PORT[/PATH] [METRIC], found %q", StepsAnnotation, pod.Annotations[StepsAnnotation])
	}
	out := told{metric: defaultSteps}
	if path == "" {
		path = "metrics"
	}
	out.url = "http://" + net.JoinHostPort(pod.Status.PodIP, port) + "/" + path
	if len(given) == 2 {
		out.metric = given[1]
	}
	return out, nil
}

// reading of a job's steps since it started. Seconds are NaN where it counts steps alone.
type reading struct{ steps, seconds float64 }

// readingOf the metric, over all its labels.
func readingOf(found families, metric string) (reading, error) {
	family := found[metric]
	if family == nil {
		return reading{}, fmt.Errorf("metric %s: expected it, found none", metric)
	}
	var out reading
	for _, row := range family.GetMetric() {
		switch family.GetType() {
		case dto.MetricType_SUMMARY:
			out.steps, out.seconds = out.steps+float64(row.GetSummary().GetSampleCount()), out.seconds+row.GetSummary().GetSampleSum()
		case dto.MetricType_HISTOGRAM:
			out.steps, out.seconds = out.steps+float64(row.GetHistogram().GetSampleCount()), out.seconds+row.GetHistogram().GetSampleSum()
		case dto.MetricType_COUNTER, dto.MetricType_UNTYPED:
			out.steps, out.seconds = out.steps+valueOf(row), math.NaN()
		default:
			return reading{}, fmt.Errorf("metric %s: expected a summary, a histogram or a counter, found a %s", metric, strings.ToLower(family.GetType().String()))
		}
	}
	if !(out.steps >= 0) || out.seconds < 0 || math.IsInf(out.steps, 0) || math.IsInf(out.seconds, 0) {
		return reading{}, fmt.Errorf("metric %s: expected a sum and a count of at least 0, found %g and %g", metric, out.seconds, out.steps)
	}
	return out, nil
}
