// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"libhorus.org/learn"
)

// StepsAnnotation says where a pod tells its steps: PORT[/PATH] [METRIC], as learn.ReadingOf takes it.
const StepsAnnotation = "libhorus.org/steps"

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
	out := told{metric: learn.DefaultSteps}
	if path == "" {
		path = "metrics"
	}
	out.url = "http://" + net.JoinHostPort(pod.Status.PodIP, port) + "/" + path
	if len(given) == 2 {
		out.metric = given[1]
	}
	return out, nil
}
