// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/internal/webhook"
	"libhorus.org/kubernetes/test/controlplane"
)

// patient is for tests that are not about the chart's timeout of a second: a loaded machine may take longer.
func patient(manifest string) string {
	return strings.Replace(manifest, "timeoutSeconds: 1", "timeoutSeconds: 20", 1)
}

// advising installs the chart with the webhook, which the API server calls on loopback, and opts the namespace in.
type advising struct {
	*controlplane.Advise
	t    *testing.T
	c    *controlplane.Cluster
	args []string
}

func advise(t *testing.T, change func(manifest string) string) *advising {
	t.Helper()
	c := start(t, "")
	a := &advising{Advise: c.NewAdvise("horus-advise"), t: t, c: c}
	manifest, err := controlplane.Render(programs(t), system, version(t), "advise: {enabled: true}")
	if err != nil {
		t.Fatalf("%v: %s", err, manifest)
	}
	const service = "service: {name: horus-advise, namespace: " + system + ", path: /advise}"
	if strings.Count(manifest, service) != 1 {
		t.Fatalf("expected the webhook's service once, found %s", manifest)
	}
	manifest = change(strings.Replace(manifest, service, fmt.Sprintf("url: https://%s/advise", a.Address()), 1))
	bundle := regexp.MustCompile("caBundle: .+") // the chart's certificate is for the Service
	manifest = bundle.ReplaceAllLiteralString(manifest, "caBundle: "+base64.StdEncoding.EncodeToString(a.CA))
	_, err = c.Client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}, metav1.CreateOptions{})
	check(t, err)
	path := filepath.Join(t.TempDir(), "chart.yaml")
	check(t, os.WriteFile(path, []byte(manifest), 0o600))
	kubectl(t, c, "apply", "--server-side", "--validate=strict", "-f", path)
	kubectl(t, c, "label", "namespace", namespace, "libhorus.org/advise=enabled")
	deployment, err := c.Client.AppsV1().Deployments(system).Get(ctx, "horus-advise", metav1.GetOptions{})
	check(t, err)
	a.args = deployment.Spec.Template.Spec.Containers[0].Args
	node(t, c, "large", 1, nil)
	node(t, c, "small", 1, func(n *v1.Node) { n.Labels["nvidia.com/gpu.product"] = "Tesla-T4" })
	profile(t, c, "light", 20, 8_000) // on H100 alone
	a.begin()
	return a
}

// begin starts the program and waits until pods are advised.
func (a *advising) begin() {
	a.t.Helper()
	a.Start(token(a.t, a.c, "horus-advise"), a.args)
	a.awaitAdvice()
}

func (a *advising) awaitAdvice() {
	a.t.Helper()
	until(a.t, a.c, "a pod is advised", func() bool { return advised(a.pod("probe", namespace, true)) })
}

func (a *advising) pod(name, namespace string, dry bool, change ...func(*v1.Pod)) *v1.Pod {
	a.t.Helper()
	p := wholeGPU(name)
	for _, do := range change {
		do(p)
	}
	options := metav1.CreateOptions{}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	made, err := a.c.Client.CoreV1().Pods(namespace).Create(ctx, p, options)
	check(a.t, err)
	return made
}

func wholeGPU(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{objects.ProfileAnnotation: "light"}},
		Spec: v1.PodSpec{SchedulerName: "nobody", Containers: []v1.Container{{Name: "c", Image: "none", Resources: v1.ResourceRequirements{
			Limits: v1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(1, resource.DecimalSI)},
		}}}},
	}
}

func advised(p *v1.Pod) bool { return p.Annotations[webhook.AdviceAnnotation] != "" }

func TestPodsAndClaimsAreAdvisedAndWhatTheyStateStays(t *testing.T) {
	a := advise(t, patient)
	slice(t, a.c, "shared", 1)
	node(t, a.c, "shared", 0, nil)
	profiles := a.c.Dynamic.Resource(schema.GroupVersionResource{Group: objects.Group, Version: objects.Version, Resource: objects.ProfilesResource})
	light, err := profiles.Namespace(namespace).Get(ctx, "light", metav1.GetOptions{})
	check(t, err)
	light.SetNamespace(system)
	light.SetResourceVersion("")
	_, err = profiles.Namespace(system).Create(ctx, light, metav1.CreateOptions{})
	check(t, err)

	pod := a.pod("a", namespace, false)
	var told struct {
		Profile       string
		GPUTypes      []string
		MemRequestMiB int64
		FilledIn      []string
	}
	check(t, json.Unmarshal([]byte(get(t, a.c, "a").Annotations[webhook.AdviceAnnotation]), &told))
	if told.Profile != "light" || !slices.Equal(told.GPUTypes, []string{"h100-sxm"}) || told.MemRequestMiB != 8_000 || !slices.Equal(told.FilledIn, []string{"nodeAffinity"}) {
		t.Errorf("expected the profile's memory on h100-sxm, and the affinity that was filled in, found %+v", told)
	}
	if text, _ := json.Marshal(pod.Spec.Affinity); !strings.Contains(string(text), `{"key":"nvidia.com/gpu.product","operator":"NotIn","values":["Tesla-T4"]}`) {
		t.Errorf("expected the pod to be kept off the T4, found %s", text)
	}
	chosen := a.pod("chosen", namespace, false, func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.memory": "81559"} })
	if chosen.Spec.Affinity != nil || !advised(chosen) {
		t.Errorf("what the pod says of GPUs stands: expected no affinity and advice, found %+v", chosen)
	}
	for name, change := range map[string]func(*v1.Pod){
		"declined": func(p *v1.Pod) { p.Annotations[webhook.AdviceAnnotation] = "none" },
		"unknown":  func(p *v1.Pod) { p.Annotations[objects.ProfileAnnotation] = "nobody" },
	} {
		if found := a.pod(name, namespace, true, change); found.Spec.Affinity != nil {
			t.Errorf("%s: expected the pod as it is, found %+v", name, found)
		}
	}
	if found := a.pod("elsewhere", system, true); advised(found) {
		t.Errorf("a namespace that did not opt in: expected the pod as it is, found %+v", found)
	}
	until(t, a.c, "claims are advised", func() bool { // once the webhook has looked at the slice
		claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "probe", Annotations: map[string]string{objects.ProfileAnnotation: "light"}}, Spec: resourceapi.ResourceClaimSpec{
			Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com"}}}},
		}}
		made, err := a.c.Client.ResourceV1().ResourceClaims(namespace).Create(ctx, claim, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		check(t, err)
		return made.Annotations[webhook.AdviceAnnotation] != ""
	})
	for memory, want := range map[string]string{"": "8000Mi", "1Gi": "1Gi"} {
		annotations := map[string]string{objects.ProfileAnnotation: "light"}
		exactly := &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com"}
		if memory != "" {
			exactly.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}}
		}
		spec := resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "gpu", Exactly: exactly}}}}
		meta := metav1.ObjectMeta{Name: "c" + strings.ToLower(memory), Annotations: annotations}
		claim, err := a.c.Client.ResourceV1().ResourceClaims(namespace).Create(ctx, &resourceapi.ResourceClaim{ObjectMeta: meta, Spec: spec}, metav1.CreateOptions{})
		check(t, err)
		template, err := a.c.Client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, &resourceapi.ResourceClaimTemplate{
			ObjectMeta: meta, Spec: resourceapi.ResourceClaimTemplateSpec{Spec: spec},
		}, metav1.CreateOptions{})
		check(t, err)
		for what, found := range map[string]*resourceapi.ExactDeviceRequest{"claim": claim.Spec.Devices.Requests[0].Exactly, "template": template.Spec.Spec.Devices.Requests[0].Exactly} {
			if found.Capacity == nil || !found.Capacity.Requests["memory"].Equal(resource.MustParse(want)) {
				t.Errorf("%s with memory %q: expected %s, found %+v", what, memory, want, found)
			}
		}
	}
	if found := metricOf(a.Metrics(), `horus_advise_reviews_total{outcome="advised"}`); found < 4 {
		t.Errorf("expected four objects to be counted, found %v", found)
	}
	if log := a.Log(); strings.Contains(log, "forbidden") {
		t.Errorf("the chart's roles lack a right: %s", log)
	}
}

// Killed or standing still, with the chart's own timeout: nobody waits for advice.
func TestPodsComeWithoutAdviceWhereNobodyAnswers(t *testing.T) {
	a := advise(t, func(manifest string) string { return manifest })
	a.Signal(syscall.SIGSTOP)
	if found := a.pod("stopped", namespace, false); advised(found) {
		t.Errorf("expected a pod without advice, found %+v", found)
	}
	a.Signal(syscall.SIGCONT)
	a.awaitAdvice()
	a.Signal(syscall.SIGKILL)
	a.Wait()
	if found := a.pod("killed", namespace, false); advised(found) {
		t.Errorf("expected a pod without advice, found %+v", found)
	}
	a.begin()
}

// served is the certificate that a server shows.
func served(t *testing.T, address string) *x509.Certificate {
	t.Helper()
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) // it is the API server that verifies
	check(t, err)
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0]
}

// A Secret that changes is served without a restart.
func TestTheCertificateThatIsMountedIsServed(t *testing.T) {
	a := advise(t, patient)
	first := served(t, a.Address())
	a.Certify()
	if now := served(t, a.Address()); now.SerialNumber.Cmp(first.SerialNumber) == 0 {
		t.Fatal("expected the certificate that is mounted now, found the one before")
	}
	if found := metricOf(a.Metrics(), "horus_advise_certificate_expiry_seconds"); found < float64(time.Now().Unix()) {
		t.Errorf("expected when it expires, found %v", found)
	}
}

// HORUS_K8S_ADVISE=300 makes so many pods that are advised, and as many that name no profile, in turn, one after the other.
func TestTheTimeOfAdvice(t *testing.T) {
	count, _ := strconv.Atoi(os.Getenv("HORUS_K8S_ADVISE"))
	if count == 0 {
		t.Skip("HORUS_K8S_ADVISE is not set")
	}
	a := advise(t, patient)
	took := map[bool][]time.Duration{}
	for i := range 2 * count {
		with := i%2 == 0
		begin := time.Now()
		a.pod(fmt.Sprintf("p%d", i), namespace, false, func(p *v1.Pod) {
			if !with {
				p.Annotations = nil
			}
		})
		took[with] = append(took[with], time.Since(begin))
	}
	for with, all := range took {
		slices.Sort(all)
		t.Logf("advised %v: a pod is made in %v (median), %v (p99), %v (most)", with, all[count/2], all[count*99/100], all[count-1])
	}
	t.Logf("the answers alone:\n%s", strings.Join(linesWith(a.Metrics(), "horus_advise_review_seconds"), ""))
	text, err := a.c.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	check(t, err)
	t.Logf("as the API server measured it:\n%s", strings.Join(linesWith(string(text), "apiserver_admission_webhook_admission_duration_seconds"), ""))
}

func linesWith(text, begins string) (found []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begins) {
			found = append(found, line)
		}
	}
	return found
}
