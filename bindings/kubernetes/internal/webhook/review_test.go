// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"libhorus.org/kubernetes/advise"
)

const product = "nvidia.com/gpu.product"

func typed(name string, memMiB int64, means advise.Means, label string) advise.NodeType {
	return advise.NodeType{GPUType: name, MemMiB: memMiB, Means: means, CountsMemory: means != advise.Whole, Labels: map[string]string{product: label}}
}

// handler knows the profiles measured (at most 3,000 MiB), predicted (the same) and large (it fits on the A100 alone).
func handler(t testing.TB, types ...advise.NodeType) *Handler {
	t.Helper()
	of := func(more string) advise.Profile {
		var spec any
		check(t, yaml.Unmarshal([]byte(`{demands: [{gpuType: t4, gpuUtilPct: 5, memMiB: 1000, `+more+`}, {gpuType: a100-80gb, gpuUtilPct: 5, memMiB: 1000, `+more+`}]}`), &spec))
		profile, err := advise.ProfileOf(spec, nil)
		check(t, err)
		return profile
	}
	profiles := map[string]advise.Profile{
		"measured": of("memMiBUpper: 3000, measured: true"), "predicted": of("memMiBUpper: 3000, prediction: {}, largestBatch: 17"),
		"large": of("memMiBUpper: 70000"), "huge": of("memMiBUpper: 90000"),
	}
	return &Handler{
		Types: func() []advise.NodeType { return types },
		Profile: func(namespace, name string) (advise.Profile, error) {
			if name == "panic" {
				panic("planted")
			}
			if profile, known := profiles[name]; known && namespace == "team" {
				return profile, nil
			}
			if name == "broken" {
				return advise.ProfileOf(map[string]any{}, nil)
			}
			return advise.Profile{}, apierrors.NewNotFound(schema.GroupResource{Resource: "jobprofiles"}, name)
		},
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func jsonOf(t testing.TB, text string) []byte {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(text))
	check(t, err)
	return out
}

func body(kind string, object []byte) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","kind":{"kind":%q},"namespace":"team","operation":"CREATE","object":%s}}`, kind, object)
}

func answer(h *Handler, body []byte) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/advise", bytes.NewReader(body)))
	return w
}

// ask sends an object, and returns it with the patch, and the warnings.
func ask(t testing.TB, h *Handler, kind, object string) (patched map[string]any, warnings []string) {
	t.Helper()
	before := jsonOf(t, object)
	w := answer(h, body(kind, before))
	var review admissionv1.AdmissionReview
	check(t, json.Unmarshal(w.Body.Bytes(), &review))
	if w.Code != http.StatusOK || review.Response == nil || !review.Response.Allowed || review.Response.UID != "u1" || review.Kind != "AdmissionReview" {
		t.Fatalf("expected it to be allowed, found %d %s", w.Code, w.Body)
	}
	after := before
	if review.Response.Patch != nil {
		patch, err := jsonpatch.DecodePatch(review.Response.Patch)
		check(t, err)
		after, err = patch.Apply(before)
		check(t, err)
	}
	check(t, json.Unmarshal(after, &patched))
	return patched, review.Response.Warnings
}

// at is what stands in an object, as compact JSON; "" of nothing.
func at(object any, path ...any) string {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := object.(map[string]any)
			object = m[s]
		case int:
			l, _ := object.([]any)
			if s >= len(l) {
				return ""
			}
			object = l[s]
		}
	}
	if object == nil {
		return ""
	}
	text, _ := json.Marshal(object)
	return strings.Trim(string(text), `"`)
}

func advisedPod(profile, more string) string {
	return `{metadata: {name: p, annotations: {libhorus.org/profile: ` + profile + `}}, spec: {containers: [{name: side}, {name: main, resources: {limits: {nvidia.com/gpu: 1}}}]` + more + `}}`
}

var (
	t4   = typed("t4", 15_360, advise.Whole, "Tesla-T4")
	a100 = typed("a100-80gb", 81_920, advise.Whole, "A100")
)

const required = "requiredDuringSchedulingIgnoredDuringExecution"

func TestAPodIsKeptOffGPUsOnWhichItDoesNotFit(t *testing.T) {
	off := `{"key":"nvidia.com/gpu.product","operator":"NotIn","values":["Tesla-T4"]}`
	for more, want := range map[string]string{
		``:                               `[{"matchExpressions":[` + off + `]}]`,
		`, affinity: {podAffinity: {}}`:  `[{"matchExpressions":[` + off + `]}]`,
		`, affinity: {nodeAffinity: {}}`: `[{"matchExpressions":[` + off + `]}]`,
		`, nodeSelector: {` + product + `: A100}`: ``,
		`, affinity: {nodeAffinity: {` + required + `: {nodeSelectorTerms: [{matchExpressions: [{key: z, operator: Exists}]}, {}]}}}`: `[{"matchExpressions":[{"key":"z","operator":"Exists"},` + off + `]},{}]`,
	} {
		pod, _ := ask(t, handler(t, t4, a100), "Pod", advisedPod("large", more))
		if found := at(pod, "spec", "affinity", "nodeAffinity", required, "nodeSelectorTerms"); found != want {
			t.Errorf("%q: expected %s, found %s", more, want, found)
		}
	}
	pod, _ := ask(t, handler(t, t4, a100), "Pod", advisedPod("measured", ""))
	if found := at(pod, "spec", "affinity"); found != "" {
		t.Errorf("a pod that fits everywhere: expected no affinity, found %s", found)
	}
}

func TestWhatWasToldStandsOnThePod(t *testing.T) {
	pod, _ := ask(t, handler(t, t4, a100), "Pod", advisedPod("predicted", ""))
	want := `{"profile":"predicted","gpuTypes":["a100-80gb","t4"],"evidence":"predicted","memRequestMiB":3000,"largestBatch":17,"filledIn":["libhorus.org/largest-batch"]}`
	annotations := pod["metadata"].(map[string]any)["annotations"].(map[string]any)
	if annotations[AdviceAnnotation] != want || annotations[BatchAnnotation] != "17" {
		t.Errorf("expected %s and 17, found %v", want, annotations)
	}
}

func TestHAMiIsGivenALimitThatIsMeasuredAndNoOther(t *testing.T) {
	hami := []advise.NodeType{typed("t4", 15_360, advise.HAMi, "Tesla-T4"), typed("a100-80gb", 81_920, advise.HAMi, "A100")}
	const ours = ", schedulerName: hami-scheduler"
	for name, one := range map[string]struct{ pod, want string }{
		"measured":          {advisedPod("measured", ours), "3000"},
		"predicted":         {advisedPod("predicted", ours), ""},
		"not HAMi's":        {advisedPod("measured", ", schedulerName: horus"), ""},
		"stated":            {strings.Replace(advisedPod("measured", ours), "nvidia.com/gpu: 1", "nvidia.com/gpu: 1, nvidia.com/gpumem: 5000", 1), "5000"},
		"stated as a share": {strings.Replace(advisedPod("measured", ours), "nvidia.com/gpu: 1", "nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 50", 1), ""},
		"two containers":    {strings.Replace(advisedPod("measured", ours), "{name: side}", "{name: side, resources: {limits: {nvidia.com/gpu: 1}}}", 1), ""},
	} {
		pod, _ := ask(t, handler(t, hami...), "Pod", one.pod)
		if found := at(pod, "spec", "containers", 1, "resources", "limits", "nvidia.com/gpumem"); found != one.want {
			t.Errorf("%s: expected %q, found %q", name, one.want, found)
		}
		if found := at(pod, "spec", "containers", 1, "resources", "requests", "nvidia.com/gpumem"); name == "measured" && found != one.want {
			t.Errorf("%s: expected the request to be the limit, found %q", name, found)
		}
	}
}

// A pod of KAI's gets a part of a GPU by annotations alone.
func TestKAIIsToldThePartOfAPodThatConsents(t *testing.T) {
	pod := func(profile, annotations, spec string) string {
		return `{metadata: {name: p, annotations: {libhorus.org/profile: ` + profile + annotations + `}}, spec: {containers: [{name: main` + spec + `}], schedulerName: kai-scheduler}}`
	}
	const consent = ", libhorus.org/share: anyone"
	for name, one := range map[string]struct{ pod, memory, affinity string }{
		"measured":          {pod("measured", consent, ""), "3000", "null"},
		"large":             {pod("large", consent, ""), "70000", `"NotIn"`},
		"predicted":         {pod("predicted", consent, ""), "null", "null"},
		"no consent":        {pod("measured", "", ""), "null", "null"},
		"stated":            {pod("large", consent+`, gpu-memory: "5000"`, ""), `"5000"`, `"NotIn"`},
		"a fraction":        {pod("large", `, gpu-fraction: "0.5"`, ""), "null", `"NotIn"`},
		"of a container":    {pod("large", `, nvidia.cdi.k8s.io/main.gpu-memory.request: 30GiB`, ""), "null", `"NotIn"`},
		"whole GPUs":        {pod("measured", consent, ", resources: {limits: {nvidia.com/gpu: 1}}"), "null", "null"},
		"another scheduler": {strings.Replace(pod("measured", consent, ""), "kai-scheduler", "volcano", 1), "null", "null"},
	} {
		patched, _ := ask(t, handler(t, t4, a100), "Pod", one.pod)
		annotations := patched["metadata"].(map[string]any)["annotations"].(map[string]any)
		memory, err := json.Marshal(annotations["gpu-memory"])
		check(t, err)
		if strings.Trim(string(memory), `"`) != strings.Trim(one.memory, `"`) {
			t.Errorf("%s: expected %s MiB, found %s", name, one.memory, memory)
		}
		if found := at(patched, "spec", "affinity"); strings.Contains(found, "NotIn") != (one.affinity != "null") {
			t.Errorf("%s: expected affinity with %s, found %s", name, one.affinity, found)
		}
		if _, told := annotations[BatchAnnotation]; told && name != "whole GPUs" {
			t.Errorf("%s: expected no batch for a part of a GPU, found %v", name, annotations)
		}
	}
}

// HAMi's webhook may come after ours, and ours is then called again.
func TestASecondCallFillsInWhatIsLeft(t *testing.T) {
	h := handler(t, typed("t4", 15_360, advise.HAMi, "Tesla-T4"), typed("a100-80gb", 81_920, advise.HAMi, "A100"))
	first, _ := ask(t, h, "Pod", advisedPod("large", ""))
	second, _ := ask(t, h, "Pod", at(first))
	if !reflect.DeepEqual(first, second) {
		t.Errorf("expected nothing more, found %v and %v", first, second)
	}
	first["spec"].(map[string]any)["schedulerName"] = hamiScheduler
	third, _ := ask(t, h, "Pod", at(first))
	told := third["metadata"].(map[string]any)["annotations"].(map[string]any)[AdviceAnnotation].(string)
	if at(third, "spec", "containers", 1, "resources", "limits", "nvidia.com/gpumem") != "70000" || !strings.Contains(told, `"filledIn":["nodeAffinity","nvidia.com/gpumem"]`) {
		t.Errorf("expected the limit, and both in the advice, found %s", at(third))
	}
}

func TestAClaimIsGivenTheMemoryThatItLeavesOut(t *testing.T) {
	dra := []advise.NodeType{typed("t4", 15_360, advise.Claims, ""), typed("a100-80gb", 81_920, advise.Claims, "")}
	silent := append(slices.Clone(dra), advise.NodeType{GPUType: "t4", MemMiB: 15_360, Means: advise.Claims})
	request := func(exactly string) string {
		return `metadata: {annotations: {libhorus.org/profile: predicted}}, spec: {devices: {requests: [{name: nic, exactly: {deviceClassName: nic}}, {name: gpu, ` + exactly + `}]}}`
	}
	const left = `exactly: {deviceClassName: gpu.nvidia.com}`
	for name, one := range map[string]struct {
		types         []advise.NodeType
		exactly, want string
	}{
		"left out":                      {dra, left, "3000Mi"},
		"other capacity":                {dra, `exactly: {deviceClassName: gpu.nvidia.com, capacity: {requests: {cores: 3}}}`, "3000Mi"},
		"stated":                        {dra, `exactly: {deviceClassName: gpu.nvidia.com, capacity: {requests: {memory: 1Gi}}}`, "1Gi"},
		"all devices":                   {dra, `exactly: {deviceClassName: gpu.nvidia.com, allocationMode: All}`, ""},
		"administrator":                 {dra, `exactly: {deviceClassName: gpu.nvidia.com, adminAccess: true}`, ""},
		"alternatives":                  {dra, `firstAvailable: [{name: a, deviceClassName: gpu.nvidia.com}]`, ""},
		"a device that tells no memory": {silent, left, ""},
	} {
		claim, _ := ask(t, handler(t, one.types...), "ResourceClaim", "{"+request(one.exactly)+"}")
		template, _ := ask(t, handler(t, one.types...), "ResourceClaimTemplate", "{"+strings.Replace(request(one.exactly), "spec: {devices", "spec: {spec: {devices", 1)+"}}")
		path := []any{"spec", "devices", "requests", 1, "exactly", "capacity", "requests", "memory"}
		inTemplate := append([]any{"spec"}, path...)
		if at(claim, path...) != one.want || at(template, inTemplate...) != one.want {
			t.Errorf("%s: expected %q, found %q in a claim and %q in a template", name, one.want, at(claim, path...), at(template, inTemplate...))
		}
		if at(claim, "spec", "devices", "requests", 0, "exactly", "capacity") != "" {
			t.Errorf("%s: expected other devices to be left alone, found %s", name, at(claim))
		}
	}
}

func TestInDoubtAnObjectIsLeftAsItIsAndWhoMadeItIsTold(t *testing.T) {
	for name, one := range map[string]struct{ kind, object, says string }{
		"no profile":         {"Pod", strings.Replace(advisedPod("large", ""), "libhorus.org/profile", "other", 1), ""},
		"no such profile":    {"Pod", advisedPod("nobody", ""), ""},
		"declined":           {"Pod", strings.Replace(advisedPod("large", ""), "annotations: {", "annotations: {libhorus.org/advice: none, ", 1), ""},
		"no GPUs":            {"Pod", strings.Replace(advisedPod("large", ""), "nvidia.com/gpu", "cpu", 1), ""},
		"fits nowhere":       {"Pod", advisedPod("huge", ""), "fits on none"},
		"unreadable":         {"Pod", advisedPod("broken", ""), "spec.demands"},
		"a fault":            {"Pod", advisedPod("panic", ""), ""},
		"not a pod":          {"Pod", `{metadata: {annotations: {libhorus.org/profile: large}}, spec: {containers: 3}}`, ""},
		"another kind":       {"Service", advisedPod("large", ""), ""},
		"a claim, no slices": {"ResourceClaim", `{metadata: {annotations: {libhorus.org/profile: large}}, spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com}}]}}}`, "fits on none"},
	} {
		after, warnings := ask(t, handler(t, t4, a100), one.kind, one.object)
		var before map[string]any
		check(t, yaml.Unmarshal([]byte(one.object), &before))
		if at(after) != at(before) {
			t.Errorf("%s: expected it as it is, found %s", name, at(after))
		}
		if told := strings.Join(warnings, " "); (told != "") != (one.says != "") || !strings.Contains(told, one.says) {
			t.Errorf("%s: expected to be told %q, found %q", name, one.says, told)
		}
	}
	update := bytes.Replace(body("Pod", jsonOf(t, advisedPod("large", ""))), []byte("CREATE"), []byte("UPDATE"), 1)
	if found := answer(handler(t, t4, a100), update).Body.String(); strings.Contains(found, "patch") {
		t.Errorf("an update: expected no patch, found %s", found)
	}
}

func TestWhatIsNoReviewIsRefusedByItsSizeOrForm(t *testing.T) {
	for says, given := range map[string][]byte{
		"at most 8388608 bytes": bytes.Repeat([]byte(" "), mostBody+1), "an AdmissionReview with a request": []byte(`{}`), "found invalid": []byte(`}`),
	} {
		if w := answer(handler(t), given); w.Code/100 != 4 || !strings.Contains(w.Body.String(), says) {
			t.Errorf("expected %q, found %d %s", says, w.Code, w.Body)
		}
	}
}

// missing is what stood in an object and does not any more.
func missing(before, after any, path string) string {
	switch b := before.(type) {
	case map[string]any:
		a, _ := after.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(b)) {
			if gone := missing(b[key], a[key], path+"/"+key); gone != "" && b[key] != nil {
				return gone
			}
		}
		return ""
	case []any:
		a, _ := after.([]any)
		for i := range b {
			if i >= len(a) {
				return path
			}
			if gone := missing(b[i], a[i], fmt.Sprint(path, "/", i)); gone != "" {
				return gone
			}
		}
		return ""
	}
	if !reflect.DeepEqual(before, after) {
		return path
	}
	return ""
}

// Whatever object a tenant makes, it is allowed, and what it says stays.
func FuzzWhateverComesIsAllowedAndNothingStatedChanges(f *testing.F) {
	h := handler(f, t4, a100, typed("a100-80gb", 81_920, advise.HAMi, "A100"), typed("t4", 15_360, advise.Claims, "Tesla-T4"))
	for _, profile := range []string{"measured", "predicted", "large", "panic"} {
		f.Add("Pod", jsonOf(f, advisedPod(profile, ", schedulerName: hami-scheduler, nodeSelector: {a: b}")))
		f.Add("Pod", jsonOf(f, advisedPod(profile, ", affinity: {nodeAffinity: {"+required+": {nodeSelectorTerms: [{matchExpressions: [{key: z, operator: Exists}]}]}}}")))
		claim := `metadata: {annotations: {libhorus.org/profile: ` + profile + `}}, spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com, capacity: {}}}]}}`
		f.Add("ResourceClaim", jsonOf(f, "{"+claim+"}"))
		f.Add("ResourceClaimTemplate", jsonOf(f, "{"+strings.Replace(claim, "spec: {devices", "spec: {spec: {devices", 1)+"}}"))
	}
	f.Add("Pod", []byte(`{"metadata":{"annotations":{"libhorus.org/profile":"large"}},"Spec":{"containers":[{}]},"spec":null}`))
	f.Fuzz(func(t *testing.T, kind string, object []byte) {
		if !json.Valid(object) {
			answer(h, body(kind, object)) // and does not panic
			return
		}
		w := answer(h, body(kind, object))
		var review admissionv1.AdmissionReview
		if w.Code == http.StatusBadRequest {
			return // the kind is no JSON string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || review.Response == nil || !review.Response.Allowed {
			t.Fatalf("expected it to be allowed, found %s", w.Body)
		}
		if review.Response.Patch == nil {
			return
		}
		patch, err := jsonpatch.DecodePatch(review.Response.Patch)
		check(t, err)
		text, err := patch.Apply(object)
		if err != nil {
			t.Fatalf("%s of %s: %v", review.Response.Patch, object, err)
		}
		var before, after map[string]any
		check(t, json.Unmarshal(object, &before))
		check(t, json.Unmarshal(text, &after))
		delete(before["metadata"].(map[string]any)["annotations"].(map[string]any), AdviceAnnotation)
		if gone := missing(before, after, ""); gone != "" {
			t.Errorf("%s changed from %s to %s", gone, object, text)
		}
	})
}

func BenchmarkReview(b *testing.B) {
	h := handler(b, t4, a100)
	review := body("Pod", jsonOf(b, advisedPod("large", "")))
	for b.Loop() {
		answer(h, review)
	}
}
