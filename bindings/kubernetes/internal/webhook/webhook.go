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
