// SPDX-License-Identifier: Apache-2.0

// Package webhook answers the API server's admission reviews with advice (package advise), and watches what the advice rests on.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"

	"libhorus.org/kubernetes/advise"
	"libhorus.org/kubernetes/internal/feed"
	"libhorus.org/kubernetes/internal/objects"
)

// mostBody is what is read of a request. The API server takes objects of 3 MiB at most.
const mostBody = 8 << 20

// Outcomes of a review, as the metric has them.
const (
	advised        = "advised"
	nothing        = "nothing"         // it asks for no GPUs, declines, or says all itself
	fitsNowhere    = "fits_nowhere"    // on no known GPU type of the cluster, or none is known
	unknownProfile = "unknown_profile" // no such JobProfile
	invalidProfile = "invalid_profile" // it cannot be read
	doubt          = "doubt"           // the review or its object cannot be read, or this program is at fault
)

// Handler answers reviews. Whatever comes, the object is allowed; in doubt it is left as it is.
type Handler struct {
	Settings advise.Settings
	Types    func() []advise.NodeType // of the cluster
	Profile  func(namespace, name string) (advise.Profile, error)
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		reviews.WithLabelValues(doubt).Inc()
		http.Error(w, fmt.Sprintf("expected a review of at most %d bytes, found more", mostBody), http.StatusRequestEntityTooLarge)
		return
	}
	var review admissionv1.AdmissionReview
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(body, &review)
	}
	if err != nil || review.Request == nil {
		reviews.WithLabelValues(doubt).Inc()
		http.Error(w, fmt.Sprintf("expected an AdmissionReview with a request, found %v", err), http.StatusBadRequest)
		return
	}
	response, outcome := h.review(review.Request)
	response.UID, response.Allowed = review.Request.UID, true
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(&review); err != nil {
		klog.V(2).InfoS("Answer not written", "err", err)
	}
	reviews.WithLabelValues(outcome).Inc()
	reviewSeconds.Observe(time.Since(begin).Seconds())
}

// review never fails and never panics.
func (h *Handler) review(request *admissionv1.AdmissionRequest) (response *admissionv1.AdmissionResponse, outcome string) {
	about := klog.KRef(request.Namespace, request.Name)
	defer func() {
		if fault := recover(); fault != nil {
			klog.ErrorS(fmt.Errorf("%v", fault), "Advise: a fault of this program; the object is left as it is", "object", about)
			response, outcome = &admissionv1.AdmissionResponse{}, doubt
		}
	}()
	response = &admissionv1.AdmissionResponse{}
	p := &patch{}
	told, outcome, err := h.fill(request, p)
	if err != nil {
		klog.V(2).InfoS("Advise: the object is left as it is", "object", about, "kind", request.Kind.Kind, "why", err)
		if outcome == invalidProfile || outcome == fitsNowhere {
			response.Warnings = []string{fmt.Sprintf("%.200s", "libhorus.org/profile: "+err.Error())}
		}
	}
	if err != nil || outcome != advised {
		return response, outcome
	}
	if response.Patch, err = json.Marshal(p.operations); err != nil {
		return response, doubt
	}
	response.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
	klog.V(3).InfoS("Advised", "object", about, "kind", request.Kind.Kind, "profile", told.Profile, "filledIn", told.FilledIn)
	return response, advised
}

type subject struct {
	meta *metav1.ObjectMeta
	pod  *v1.Pod // nil: a claim, or a template of claims
	fill func(advise.Advice) []string
}

func (h *Handler) fill(request *admissionv1.AdmissionRequest, p *patch) (told note, outcome string, err error) {
	if request.Operation != admissionv1.Create || request.SubResource != "" {
		return told, nothing, nil // what stands is not changed
	}
	about, err := h.subject(request, p)
	if err != nil {
		return told, doubt, err
	}
	name := about.meta.Annotations[objects.ProfileAnnotation]
	before, noted := about.meta.Annotations[AdviceAnnotation]
	if name == "" || before == declined || (about.pod != nil && !advise.AsksForGPUs(h.Settings, about.pod)) {
		return told, nothing, nil
	}
	profile, err := h.Profile(request.Namespace, name)
	if apierrors.IsNotFound(err) {
		return told, unknownProfile, err
	}
	if err != nil {
		return told, invalidProfile, fmt.Errorf("JobProfile %s: %w", name, err)
	}
	cluster := advise.Cluster{Settings: h.Settings, Types: h.Types()}
	// A claim that asks for memory would never get a device that tells none.
	if about.pod == nil && slices.ContainsFunc(cluster.Types, func(t advise.NodeType) bool { return t.Means == advise.Claims && !t.CountsMemory }) {
		return told, nothing, nil
	}
	told.Profile = name
	if told.Advice, err = advise.For(profile, about.pod, cluster); err != nil {
		return told, invalidProfile, fmt.Errorf("JobProfile %s: %w", name, err)
	}
	if len(told.GPUTypes) == 0 {
		return told, fitsNowhere, fmt.Errorf("a job of JobProfile %s fits on none of the GPUs that are known of this cluster", name)
	}
	told.FilledIn = about.fill(told.Advice)
	if len(told.FilledIn) == 0 && (noted || about.pod == nil) {
		return told, nothing, nil
	}
	return told, advised, p.note(told, about.meta.Annotations)
}

func (h *Handler) subject(request *admissionv1.AdmissionRequest, p *patch) (subject, error) {
	if err := json.Unmarshal(request.Object.Raw, &p.object); err != nil {
		return subject{}, err
	}
	read := func(into any) error { return kjson.UnmarshalCaseSensitivePreserveInts(request.Object.Raw, into) }
	var pod v1.Pod
	var claim resourceapi.ResourceClaim
	var template resourceapi.ResourceClaimTemplate
	switch request.Kind.Kind {
	case "Pod":
		return subject{&pod.ObjectMeta, &pod, func(a advise.Advice) []string { return p.pod(&pod, a, h.Settings) }}, read(&pod)
	case "ResourceClaim":
		return subject{&claim.ObjectMeta, nil, func(a advise.Advice) []string { return p.claim(&claim.Spec, a, h.Settings, "spec") }}, read(&claim)
	case "ResourceClaimTemplate":
		return subject{&template.ObjectMeta, nil, func(a advise.Advice) []string { return p.claim(&template.Spec.Spec, a, h.Settings, "spec", "spec") }}, read(&template)
	}
	return subject{}, fmt.Errorf("expected a Pod, a ResourceClaim or a ResourceClaimTemplate, found %s", request.Kind.Kind)
}

var (
	reviews       = metrics.NewCounterVec(&metrics.CounterOpts{Name: "horus_advise_reviews_total", Help: "Objects that the API server asked about, by what came of it. All are allowed."}, []string{"outcome"})
	reviewSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Name: "horus_advise_review_seconds", Help: "Time of an answer, from the first byte of the request.",
		Buckets: metrics.ExponentialBuckets(0.0001, 2, 12),
	})
	// Expiry is set by who reads the certificate.
	Expiry = metrics.NewGauge(&metrics.GaugeOpts{Name: "horus_advise_certificate_expiry_seconds", Help: "When the certificate that is served expires, in seconds since 1970."})
)

// Register makes them known; it may be called again.
var Register = sync.OnceFunc(func() {
	legacyregistry.MustRegister(reviews, reviewSeconds, Expiry)
	for _, outcome := range []string{advised, nothing, fitsNowhere, unknownProfile, invalidProfile, doubt} {
		reviews.WithLabelValues(outcome) // from 0, so that the first one is an increase
	}
})

// lookEvery is when the nodes' GPU types are looked at again. Most updates of nodes are heartbeats, which change nothing here.
const lookEvery = 5 * time.Second

// Watch makes a handler that goes by what the API server tells from now on, and says whether all was told once.
func Watch(ctx context.Context, settings advise.Settings, client kubernetes.Interface, others dynamic.Interface) (h *Handler, synced func() bool, err error) {
	profiles, err := feed.FollowProfiles(ctx, others, func(*unstructured.Unstructured) {})
	if err != nil {
		return nil, nil, err
	}
	var types atomic.Pointer[[]advise.NodeType]
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slim))
	nodes, slices := factory.Core().V1().Nodes().Lister(), factory.Resource().V1().ResourceSlices().Lister()
	factory.Start(ctx.Done())
	go func() {
		factory.WaitForCacheSync(ctx.Done())
		wait.UntilWithContext(ctx, func(context.Context) {
			allNodes, _ := nodes.List(labels.Everything()) // of what is in memory
			allSlices, _ := slices.List(labels.Everything())
			types.Store(ptr.To(advise.TypesOf(settings, allNodes, allSlices)))
		}, lookEvery)
	}()
	h = &Handler{Settings: settings, Types: func() []advise.NodeType { return ptr.Deref(types.Load(), nil) }, Profile: profiles.Get}
	return h, func() bool { return types.Load() != nil }, nil
}

// slim leaves out what is most of a node and read by nobody here.
func slim(o any) (any, error) {
	if node, is := o.(*v1.Node); is {
		node.ManagedFields, node.Status.Images = nil, nil
	}
	return o, nil
}

// What is written on objects, and read from them.
const (
	AdviceAnnotation = "libhorus.org/advice"        // what was told and filled in, as JSON; "none" = this object is left alone
	BatchAnnotation  = "libhorus.org/largest-batch" // a number, which a container may read by the downward API
	declined         = "none"
	hamiScheduler    = "hami-scheduler" // HAMi's own webhook names it in the pods that are HAMi's
)

type note struct {
	Profile string `json:"profile"`
	advise.Advice
	FilledIn []string `json:"filledIn,omitempty"`
}

// operation of a JSON patch: only ever an addition of what is not there.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch of one object, as the API server sent it: a typed copy may lack fields that this program does not know.
type patch struct {
	object     any
	operations []operation
}

// set puts a value where there is none, with the objects above it. It says whether it did.
func (p *patch) set(value any, path ...string) bool {
	at, pointer := p.object, ""
	for i, name := range path {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		var below any
		switch parent := at.(type) {
		case map[string]any:
			if below = parent[name]; below == nil {
				for _, inner := range slices.Backward(path[i+1:]) {
					value = map[string]any{inner: value}
				}
				parent[name] = value
				p.operations = append(p.operations, operation{"add", pointer, value})
				return true
			}
		case []any:
			index, err := strconv.Atoi(name)
			if err != nil || index < 0 || index >= len(parent) {
				return false
			}
			below = parent[index]
		}
		at = below
	}
	return false
}

// pod fills in what a pod leaves out.
func (p *patch) pod(pod *v1.Pod, advice advise.Advice, settings advise.Settings) (filledIn []string) {
	if len(advice.Unfit) > 0 && p.affinity(pod, advice.Unfit) {
		filledIn = append(filledIn, "nodeAffinity")
	}
	if index := hamiContainer(pod, settings); index >= 0 && advice.MemLimitMiB > 0 {
		quantity := strconv.FormatInt(advice.MemLimitMiB, 10)
		at := []string{"spec", "containers", strconv.Itoa(index), "resources"}
		if p.set(quantity, append(at[:4:4], "limits", string(objects.HAMiMem))...) {
			p.set(quantity, append(at[:4:4], "requests", string(objects.HAMiMem))...)
			filledIn = append(filledIn, string(objects.HAMiMem))
		}
	}
	annotate := func(name string, value int64) {
		if value > 0 && p.set(strconv.FormatInt(value, 10), "metadata", "annotations", name) {
			filledIn = append(filledIn, name)
		}
	}
	if advise.SharesByKAI(settings, pod) && !advise.StatesPartOfKAI(pod) {
		annotate(advise.KAIMemory, advice.MemLimitMiB)
	}
	annotate(BatchAnnotation, advice.LargestBatch)
	return filledIn
}

// affinity keeps a pod off nodes with GPUs on which it does not fit, and off no others.
func (p *patch) affinity(pod *v1.Pod, unfit []advise.Label) bool {
	values := map[string][]string{}
	for _, label := range unfit {
		values[label.Key] = append(values[label.Key], label.Value)
	}
	var off []any
	for _, key := range objects.TypeLabels {
		if len(values[key]) > 0 {
			off = append(off, map[string]any{"key": key, "operator": string(v1.NodeSelectorOpNotIn), "values": values[key]})
		}
	}
	at := []string{"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"}
	if p.set([]any{map[string]any{"matchExpressions": off}}, at...) {
		return true
	}
	changed := false
	for i, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchExpressions) == 0 {
			continue // it matches no node, and would with an expression
		}
		for _, one := range off {
			path := fmt.Sprintf("/%s/%d/matchExpressions/-", strings.Join(at, "/"), i)
			p.operations, changed = append(p.operations, operation{"add", path, one}), true
		}
	}
	return changed
}

// hamiContainer is the only container of a pod of HAMi's that asks for GPUs, where it says nothing of memory; -1 otherwise. HAMi
// holds the container to what is filled in.
func hamiContainer(pod *v1.Pod, settings advise.Settings) int {
	found := -1
	resource := settings.OrDefault().Resource
	for i := range pod.Spec.Containers {
		asked := pod.Spec.Containers[i].Resources
		if _, asks := asked.Limits[resource]; !asks {
			continue
		}
		stated := slices.ContainsFunc([]v1.ResourceName{objects.HAMiMem, objects.HAMiPercent}, func(name v1.ResourceName) bool {
			_, limit := asked.Limits[name]
			_, request := asked.Requests[name]
			return limit || request
		})
		if stated || found >= 0 {
			return -1
		}
		found = i
	}
	if pod.Spec.SchedulerName != hamiScheduler || len(pod.Spec.InitContainers) > 0 {
		return -1
	}
	return found
}

// claim fills in the memory of each request of GPUs that asks for none. `at` is where the claim's spec is.
func (p *patch) claim(spec *resourceapi.ResourceClaimSpec, advice advise.Advice, settings advise.Settings, at ...string) (filledIn []string) {
	for i, request := range spec.Devices.Requests {
		exactly := request.Exactly
		if exactly == nil || !slices.Contains(settings.OrDefault().DeviceClasses, exactly.DeviceClassName) || advice.MemRequestMiB == 0 ||
			ptr.Deref(exactly.AdminAccess, false) || exactly.AllocationMode == resourceapi.DeviceAllocationModeAll {
			continue
		}
		asks := false
		for name := range ptr.Deref(exactly.Capacity, resourceapi.CapacityRequirements{}).Requests {
			asks = asks || name[strings.LastIndex(string(name), "/")+1:] == "memory"
		}
		path := append(slices.Clone(at), "devices", "requests", strconv.Itoa(i), "exactly", "capacity", "requests", "memory")
		if !asks && p.set(fmt.Sprintf("%dMi", advice.MemRequestMiB), path...) {
			filledIn = append(filledIn, request.Name+": memory")
		}
	}
	return filledIn
}

// note writes what was filled in, beside what an earlier call for the same object was.
func (p *patch) note(told note, annotations map[string]string) error {
	var before note
	text, noted := annotations[AdviceAnnotation]
	if noted && json.Unmarshal([]byte(text), &before) == nil {
		told.FilledIn = append(before.FilledIn, told.FilledIn...)
	}
	value, err := json.Marshal(told)
	if err != nil {
		return err
	}
	if !p.set(string(value), "metadata", "annotations", AdviceAnnotation) {
		p.operations = append(p.operations, operation{"add", "/metadata/annotations/" + strings.ReplaceAll(AdviceAnnotation, "/", "~1"), string(value)})
	}
	return nil
}
