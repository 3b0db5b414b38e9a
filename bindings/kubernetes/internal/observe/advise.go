// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"time"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
)

// Advisor says which pods are better moved, and evicts them where it may.
type Advisor struct {
	Client  kubernetes.Interface
	Events  events.EventRecorder
	Review  func(horus.RebalanceOptions) ([]mirror.Reviewed, error)
	Evict   bool
	Limiter *rate.Limiter // of evictions

	pods map[types.UID]*evidence
}

// evidence is what was seen of a pod, and told.
type evidence struct {
	beyond int // windows in a row in which it was seen beyond its bound
	shared int // windows in which it was seen beside others
	said   string
	at     time.Time
}

// What was done with advice.
const (
	toldOnly = "told"
	evicted  = "evicted"
	refused  = "refused"
)

// Windows that make evidence: one may be chance.
const enough = 3

const forgotten = time.Hour

func (a *Advisor) of(uid types.UID) *evidence {
	if a.pods == nil {
		a.pods = map[types.UID]*evidence{}
	}
	if a.pods[uid] == nil {
		a.pods[uid] = &evidence{}
	}
	a.pods[uid].at = time.Now()
	return a.pods[uid]
}

// saw a pod in a window of a shared device which the exporter does not contradict. One without a witness, whose slowdown is NaN,
// adds nothing to what is known of it.
func (a *Advisor) saw(tenant mirror.Tenant, slowdown float64) {
	if math.IsNaN(slowdown) {
		return
	}
	pod, bound := a.of(tenant.Pod.UID), float64(tenant.Job.SlowdownBound)
	pod.shared++
	if pod.beyond++; bound == 0 || slowdown <= bound {
		pod.beyond = 0
	}
}

// tell a pod's owner, once.
func (a *Advisor) tell(pod *v1.Pod, severity, reason, text string) bool {
	known := a.of(pod.UID)
	if known.said == reason+text {
		return false
	}
	known.said = reason + text
	a.Events.Eventf(pod, nil, severity, reason, "Observing", "%s", text)
	return true
}

// advise looks at all pods that share. Only the pod that is harmed is moved, never those beside it, and only where both its own
// step times and the exporter say so.
func (a *Advisor) advise(ctx context.Context) {
	maps.DeleteFunc(a.pods, func(_ types.UID, known *evidence) bool { return time.Since(known.at) > forgotten })
	reviews, err := a.Review(horus.RebalanceOptions{})
	if err != nil {
		klog.ErrorS(err, "Horus: pods that share are not reviewed")
		return
	}
	for _, review := range reviews {
		pod := review.Pod
		known, trial := a.of(pod.UID), isTrial(pod)
		switch {
		case review.Broken && review.Advice != horus.Stay && known.beyond >= enough:
			a.move(ctx, review, fmt.Sprintf("It was slowed beyond its bound of %.2f for %d windows, and %.2f times is expected", review.Bound, known.beyond, review.Slowdown))
		case trial && review.PackWork < 1 && review.Advice != horus.Stay && known.shared >= enough:
			a.move(ctx, review, fmt.Sprintf("The trial ends: the pods on its GPU do %.2f of the work of one alone", review.PackWork))
		case trial && review.PackWork >= 1 && known.shared >= enough:
			a.tell(pod, v1.EventTypeNormal, "HorusTrialConfirmed", fmt.Sprintf("The pods on its GPU do %.2f times the work of one alone.", review.PackWork))
		}
	}
}

func isTrial(pod *v1.Pod) bool {
	var decision struct{ Trial bool }
	return json.Unmarshal([]byte(pod.Annotations[objects.DecisionAnnotation]), &decision) == nil && decision.Trial
}

func (a *Advisor) move(ctx context.Context, review mirror.Reviewed, why string) {
	pod, where := review.Pod, "No place is better: it, or a pod beside it, has to leave."
	if review.To != "" {
		where = "It is better on " + review.To + "."
	}
	done := toldOnly
	if a.Evict && review.To != "" && metav1.GetControllerOf(pod) != nil && a.Limiter.Allow() {
		done = evicted
		err := a.evict(ctx, pod)
		if err != nil { // a disruption budget, most often
			done, where = refused, where+" Its eviction was refused: "+err.Error()
		}
	}
	if a.tell(pod, v1.EventTypeWarning, "HorusMove", why+". "+where) || done != toldOnly {
		advised.WithLabelValues(done).Inc()
	}
}

// evict a pod by the API, without waiting where a disruption budget says later.
func (a *Advisor) evict(ctx context.Context, pod *v1.Pod) error {
	return a.Client.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
		MaxRetries(0).Body(&policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	}).Do(ctx).Error()
}
