// SPDX-License-Identifier: Apache-2.0

// Package observe learns from pods that run: what they do alone, and what they lose beside each other.
package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/model"
	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/learn"
)

// Exporter is where the pods of an exporter are found. Its namespace is the administrator's: whoever may label pods there is
// believed.
type Exporter struct {
	Namespace string
	Labels    labels.Selector
	Port      string
}

// Options of an observer.
type Options struct {
	Every     time.Duration // between two looks
	Commit    time.Duration // between two models
	Shortest  learn.Shortest
	Exporters []Exporter
}

// Observer looks at what runs, and learns.
type Observer struct {
	Options
	Mirror    *mirror.Mirror
	Pods      listers.PodLister
	Dynamic   dynamic.Interface
	Store     model.Store
	Learner   *learn.Learner
	Catalogue *horus.Catalogue // which spellings of a GPU type mean the same
	Profiles  func(namespace, name string) (*unstructured.Unstructured, error)
	Events    events.EventRecorder
	Evict     bool          // pods that are better moved; else they are told
	Limiter   *rate.Limiter // of evictions

	recorder learn.Recorder
	evidence map[types.UID]*evidence
}

const lookGap = 2.5 // looks: one may be lost

// Run looks until the context ends.
func (o *Observer) Run(ctx context.Context) {
	o.evidence = map[types.UID]*evidence{}
	o.recorder = learn.Recorder{Shortest: o.Shortest, Gap: time.Duration(lookGap * float64(o.Every))}
	learn.Run(ctx, o.Every, o.look, o.Commit, o.commit)
}

func (o *Observer) look(ctx context.Context) {
	devices, tenants := o.Mirror.Occupied()
	for _, device := range devices {
		for i, one := range device.Tenants {
			device.Tenants[i].Kind, device.Tenants[i].Demand = o.kindOf(device.GPUType, tenants[one.Key])
		}
	}
	seen, steps := o.scrapeAll(ctx, devices, tenants)
	for _, window := range o.recorder.Look(time.Now(), devices, seen, steps) {
		outcome, slowdowns := o.Learner.Take(window)
		windows.WithLabelValues(string(outcome)).Inc()
		if outcome == learn.Learned {
			for i, tenant := range window.Tenants {
				o.saw(tenants[tenant.Key], slowdowns[i])
			}
		}
	}
	calibration := o.Learner.Calibration()
	predictionError.Set(calibration.Error)
	covered.Set(calibration.Covered)
}

// scrapeAll asks the exporters of the devices' nodes and the pods on them.
func (o *Observer) scrapeAll(ctx context.Context, devices []learn.Device, tenants map[string]mirror.Tenant) (learn.Usages, map[string]learn.Reading) {
	seen, steps := learn.NoUsages(), map[string]learn.Reading{}
	var questions []learn.Question
	nodes := map[string]bool{}
	for _, device := range devices {
		nodes[device.Node] = true
	}
	for key, tenant := range tenants {
		url, metric, err := stepsOf(tenant.Pod)
		if err != nil {
			o.tell(tenant.Pod, v1.EventTypeWarning, "HorusSteps", err.Error())
		} else if url != "" {
			questions = append(questions, learn.StepsOf(key, url, metric, steps))
		}
	}
	for _, exporter := range o.Exporters {
		pods, _ := o.Pods.Pods(exporter.Namespace).List(exporter.Labels) // of what is in memory
		for _, pod := range pods {
			if nodes[pod.Spec.NodeName] && pod.Status.PodIP != "" && pod.DeletionTimestamp == nil {
				questions = append(questions, learn.Question{
					Of: "exporter", URL: learn.URL(pod.Status.PodIP, exporter.Port, ""),
					Take: func(found learn.Families) error { seen.Add(found, learn.ByUUID); return nil },
				})
			}
		}
	}
	learn.ScrapeAll(ctx, questions, func(question learn.Question, err error) {
		scrapes.WithLabelValues(question.Of, map[bool]string{false: "failed", true: "ok"}[err == nil]).Inc()
		if err != nil {
			klog.V(4).InfoS("Not scraped", "url", question.URL, "why", err)
		}
	})
	return seen, steps
}

func (o *Observer) commit(ctx context.Context) {
	o.tellProfiles(ctx)
	now, before, err := o.Store.Load(ctx)
	var other bool
	if err == nil {
		other, err = o.Learner.Follow(now, before)
	}
	if err != nil {
		klog.ErrorS(err, "Horus: the model is not read, and no other is made", "version", now.Version)
		return
	}
	if other {
		klog.InfoS("Model of somebody else", "version", now.Version, "windows", now.Windows)
		o.use(now)
	}
	made, some, err := o.Learner.Commit(time.Now())
	if err != nil {
		klog.ErrorS(err, "Horus: no model is made of what was observed")
		return
	}
	if some {
		commits.WithLabelValues(outcomeName[made.RolledBack > 0]).Inc()
		klog.InfoS("Model", "version", made.Version, "windows", made.Windows, "rolledBack", made.RolledBack)
		if err := o.Store.Save(ctx, made); err != nil {
			klog.ErrorS(err, "Horus: the model is not stored", "version", made.Version)
		}
		o.use(made)
	}
	o.advise(ctx)
}

func (o *Observer) use(model learn.Model) {
	version.Set(float64(model.Version))
	if err := o.Mirror.Learn(model.Observations); err != nil {
		klog.ErrorS(err, "Horus: the model is not taken", "version", model.Version)
	}
}

// tellProfiles writes what is known of jobs alone into the status of their profiles.
func (o *Observer) tellProfiles(ctx context.Context) {
	byProfile := map[types.NamespacedName][]learn.Observed{}
	for kind, known := range o.Learner.KnownAlone() {
		known.GPUType = kind.GPUType
		name := types.NamespacedName{Namespace: kind.Owner, Name: kind.Profile}
		byProfile[name] = append(byProfile[name], known)
	}
	for name, known := range byProfile {
		object, err := o.Profiles(name.Namespace, name.Name)
		if err != nil {
			continue // it is gone
		}
		for _, old := range objects.ObservedOf(object.Object["status"]) {
			if !slices.ContainsFunc(known, func(one learn.Observed) bool { return one.GPUType == old.GPUType }) {
				known = append(known, old)
			}
		}
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"observed": known}})
		if err == nil {
			_, err = o.Dynamic.Resource(objects.Profiles).Namespace(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		}
		if err != nil {
			klog.ErrorS(err, "Horus: the status of a profile is not written", "profile", name)
		}
	}
}

// kindOf a tenant on a GPU type, and its demand there; none where it names no profile.
func (o *Observer) kindOf(gpuType string, tenant mirror.Tenant) (learn.Kind, horus.Demand) {
	name := tenant.Pod.Annotations[objects.ProfileAnnotation]
	at, err := o.Catalogue.Find(gpuType)
	if name == "" || err != nil {
		return learn.Kind{}, horus.Demand{}
	}
	for _, demand := range tenant.Job.Demands {
		if its, err := o.Catalogue.Find(demand.GPUType); err == nil && its == at && demand.Demand.ProfileID != 0 {
			return learn.Kind{Owner: tenant.Pod.Namespace, Profile: name, GPUType: demand.GPUType}, demand.Demand
		}
	}
	return learn.Kind{}, horus.Demand{}
}

// StepsAnnotation says where a pod tells its steps: PORT[/PATH] [METRIC], as learn.ReadingOf takes it.
const StepsAnnotation = "libhorus.org/steps"

// stepsOf a pod; "" = it tells none.
func stepsOf(pod *v1.Pod) (url, metric string, err error) {
	given := strings.Fields(pod.Annotations[StepsAnnotation])
	if len(given) == 0 || pod.Status.PodIP == "" {
		return "", "", nil
	}
	port, path, _ := strings.Cut(given[0], "/")
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || len(given) > 2 {
		return "", "", fmt.Errorf("annotation %s: expected PORT[/PATH] [METRIC], found %q", StepsAnnotation, pod.Annotations[StepsAnnotation])
	}
	return learn.URL(pod.Status.PodIP, port, path), append(given, learn.DefaultSteps)[1], nil
}

var (
	windows         = metrics.NewCounterVec(&metrics.CounterOpts{Name: "horus_observer_windows_total", Help: "Times that a device was watched, by what was learned from it."}, []string{"outcome"})
	scrapes         = metrics.NewCounterVec(&metrics.CounterOpts{Name: "horus_observer_scrapes_total", Help: "Scrapes of exporters and jobs."}, []string{"of", "outcome"})
	commits         = metrics.NewCounterVec(&metrics.CounterOpts{Name: "horus_observer_models_total", Help: "Models that were made of what was observed, and those taken back."}, []string{"outcome"})
	advised         = metrics.NewCounterVec(&metrics.CounterOpts{Name: "horus_observer_advice_total", Help: "Pods that are better moved, by what was done."}, []string{"done"})
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

func (o *Observer) of(uid types.UID) *evidence {
	if o.evidence[uid] == nil {
		o.evidence[uid] = &evidence{}
	}
	o.evidence[uid].at = time.Now()
	return o.evidence[uid]
}

// saw a pod in a window of a shared device which the exporter does not contradict. One without a witness, whose slowdown is NaN,
// adds nothing to what is known of it.
func (o *Observer) saw(tenant mirror.Tenant, slowdown float64) {
	if math.IsNaN(slowdown) {
		return
	}
	pod, bound := o.of(tenant.Pod.UID), float64(tenant.Job.SlowdownBound)
	pod.shared++
	if pod.beyond++; bound == 0 || slowdown <= bound {
		pod.beyond = 0
	}
}

// tell a pod's owner, once.
func (o *Observer) tell(pod *v1.Pod, severity, reason, text string) bool {
	known := o.of(pod.UID)
	if known.said == reason+text {
		return false
	}
	known.said = reason + text
	o.Events.Eventf(pod, nil, severity, reason, "Observing", "%s", text)
	return true
}

// advise looks at all pods that share. Only the pod that is harmed is moved, never those beside it, and only where both its own
// step times and the exporter say so.
func (o *Observer) advise(ctx context.Context) {
	maps.DeleteFunc(o.evidence, func(_ types.UID, known *evidence) bool { return time.Since(known.at) > forgotten })
	reviews, err := o.Mirror.Review(horus.RebalanceOptions{})
	if err != nil {
		klog.ErrorS(err, "Horus: pods that share are not reviewed")
		return
	}
	for _, review := range reviews {
		pod := review.Pod
		known, trial := o.of(pod.UID), isTrial(pod)
		switch {
		case review.Broken && review.Advice != horus.Stay && known.beyond >= enough:
			o.move(ctx, review, fmt.Sprintf("It was slowed beyond its bound of %.2f for %d windows, and %.2f times is expected", review.Bound, known.beyond, review.Slowdown))
		case trial && review.PackWork < 1 && review.Advice != horus.Stay && known.shared >= enough:
			o.move(ctx, review, fmt.Sprintf("The trial ends: the pods on its GPU do %.2f of the work of one alone", review.PackWork))
		case trial && review.PackWork >= 1 && known.shared >= enough:
			o.tell(pod, v1.EventTypeNormal, "HorusTrialConfirmed", fmt.Sprintf("The pods on its GPU do %.2f times the work of one alone.", review.PackWork))
		}
	}
}

func isTrial(pod *v1.Pod) bool {
	var decision struct{ Trial bool }
	return json.Unmarshal([]byte(pod.Annotations[objects.DecisionAnnotation]), &decision) == nil && decision.Trial
}

func (o *Observer) move(ctx context.Context, review mirror.Reviewed, why string) {
	pod, where := review.Pod, "No place is better: it, or a pod beside it, has to leave."
	if review.To != "" {
		where = "It is better on " + review.To + "."
	}
	done := toldOnly
	if o.Evict && review.To != "" && metav1.GetControllerOf(pod) != nil && o.Limiter.Allow() {
		done = evicted
		err := o.evict(ctx, pod)
		if err != nil { // a disruption budget, most often
			done, where = refused, where+" Its eviction was refused: "+err.Error()
		}
	}
	if o.tell(pod, v1.EventTypeWarning, "HorusMove", why+". "+where) || done != toldOnly {
		advised.WithLabelValues(done).Inc()
	}
}

// evict a pod by the API, without waiting where a disruption budget says later.
func (o *Observer) evict(ctx context.Context, pod *v1.Pod) error {
	return o.Store.Client.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
		MaxRetries(0).Body(&policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	}).Do(ctx).Error()
}
