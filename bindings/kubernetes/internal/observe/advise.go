// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"
	"fmt"
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

	beyond map[types.UID]int       // windows in a row in which a pod was seen beyond its bound
	shared map[types.UID]int       // windows in which a pod was seen beside others
	said   map[types.UID]string    // what a pod was told last
	looked map[types.UID]time.Time // when something was kept of it last
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

func (a *Advisor) keep(uid types.UID) {
	if a.beyond == nil {
		a.beyond, a.shared, a.said, a.looked = map[types.UID]int{}, map[types.UID]int{}, map[types.UID]string{}, map[types.UID]time.Time{}
	}
	now := time.Now()
	a.looked[uid] = now
	for old, at := range a.looked {
		if len(a.looked) > 1024 && now.Sub(at) > forgotten {
			delete(a.beyond, old)
			delete(a.shared, old)
			delete(a.said, old)
			delete(a.looked, old)
		}
	}
}

// saw a window of a shared device which the exporter does not contradict.
func (a *Advisor) saw(w Window, slowdowns []float64) {
	for i, tenant := range w.Tenants {
		uid, bound := tenant.Pod.UID, float64(tenant.Job.SlowdownBound)
		a.keep(uid)
		a.shared[uid]++
		if bound > 0 && slowdowns[i] > bound { // not of one without a witness, which is NaN
			a.beyond[uid]++
		} else {
			a.beyond[uid] = 0
		}
	}
}

// tell a pod's owner, once.
func (a *Advisor) tell(pod *v1.Pod, severity, reason, text string) bool {
	a.keep(pod.UID)
	if a.said[pod.UID] == reason+text {
		return false
	}
	a.said[pod.UID] = reason + text
	a.Events.Eventf(pod, nil, severity, reason, "Observing", "%s", text)
	return true
}

// advise looks at all pods that share. Only the pod that is harmed is moved, never those beside it, and only where both its own
// step times and the exporter say so.
func (a *Advisor) advise(ctx context.Context) {
	reviews, err := a.Review(horus.RebalanceOptions{})
	if err != nil {
		klog.ErrorS(err, "Horus: pods that share are not reviewed")
		return
	}
	for _, review := range reviews {
		pod := review.Pod
		trial := isTrial(pod)
		switch {
		case review.Broken && review.Advice != horus.Stay && a.beyond[pod.UID] >= enough:
			a.move(ctx, review, fmt.Sprintf("It was slowed beyond its bound of %.2f for %d windows, and %.2f times is expected", review.Bound, a.beyond[pod.UID], review.Slowdown))
		case trial && review.PackWork < 1 && review.Advice != horus.Stay && a.shared[pod.UID] >= enough:
			a.move(ctx, review, fmt.Sprintf("The trial ends: the pods on its GPU do %.2f of the work of one alone", review.PackWork))
		case trial && review.PackWork >= 1 && a.shared[pod.UID] >= enough:
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
