// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

const horus = "../../charts/horus"

func rendered(values string, served ...string) (string, error) {
	return render(append([]string{horus, "horus", "gpu-system", "v1.37.0", values}, served...))
}

// A right that no shadow needs: it writes the status of any pod.
func TestShadowMayWriteNoPodUnlessItMayTellDryRuns(t *testing.T) {
	for values, may := range map[string]bool{"mode: shadow": false, "{mode: shadow, dryRuns: true}": true} {
		if text, err := rendered(values); err != nil || strings.Contains(text, "pods/status") != may {
			t.Errorf("%s: expected %v, found another, %v", values, may, err)
		}
	}
}

// Each of these ends a program as it starts.
func TestWhatTheProgramsRefuseTheChartRefusesByName(t *testing.T) {
	for values, says := range map[string]string{
		"placing: {failurePolicy: Ignore}":                                  "isolated",
		"placing: {failurePolicy: Ignore, isolated: false}":                 "isolated",
		"placing: {callTimeout: 0s}":                                        "callTimeout",
		"placing: {callTimeout: 99999999h}":                                 "callTimeout", // beyond Go's durations
		"placing: {choose: true, patience: 0s}":                             "patience",
		"placing: {candidates: 0}":                                          "candidates",
		"placing: {sharingQuota: -0.5}":                                     "sharingQuota",
		"placing: {slowdownBound: 0.5}":                                     "slowdownBound",
		"placing: {maxTenants: 257}":                                        "maxTenants",
		"placing: {sharedGPUs: {team: -1}}":                                 "sharedGPUs",
		"gpus: {driver: null}":                                              "driver",
		`gpus: {driver: ""}`:                                                "driver",
		"gpus: {hami: {lockExpiry: 99999999h}}":                             "lockExpiry",
		"schedulerName: null":                                               "schedulerName",
		"logVerbosity: null":                                                "logVerbosity",
		"observer: {enabled: true, every: null}":                            "every",
		"observer: {enabled: true, window: 10s}":                            "observer.window: expected at least observer.every (15s), found 10s",
		"observer: {enabled: true, every: 11m}":                             "observer.window",
		"observer: {enabled: true, commit: 14999ms}":                        "observer.commit",
		"observer: {enabled: true, exporters: []}":                          "exporters",
		"observer: {exporters: [{namespace: a/b, labels: a=b, port: 1}]}":   "namespace",
		"observer: {exporters: [{namespace: a, labels: a=b=c, port: 1}]}":   "labels",
		"observer: {exporters: [{namespace: a, labels: 'a=b,', port: 1}]}":  "labels",
		"observer: {exporters: [{namespace: a, labels: a/b/c=d, port: 1}]}": "labels",
		"observer: {evictionsPerHour: -1}":                                  "evictionsPerHour",
		"advise: {certificateLifetime: 2160h}":                              "certificateLifetime",
	} {
		if out, err := rendered(values); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: expected a refusal that names %s, found %v, %d bytes", values, says, err, len(out))
		}
	}
	for _, values := range []string{
		"placing: {failurePolicy: Ignore, isolated: true}", "placing: {failurePolicy: Fail, isolated: true}", "placing: {isolated: false}",
		"placing: {callTimeout: 1s, sharingQuota: -1, slowdownBound: 1}", "placing: {sharingQuota: 1, slowdownBound: 0}", "placing: {choose: true, patience: 30m}", "placing: {candidates: null}",
		"observer: {enabled: true, every: 1m, window: 60s, commit: 1h}",
		"observer: {enabled: true, exporters: [{namespace: a, labels: 'a.b/c=d,e!=f,g==h,i,k=', port: 1}]}",
	} {
		if _, err := rendered(values); err != nil {
			t.Errorf("%s: expected it to be taken, found %v", values, err)
		}
	}
}

// object is what is looked at of what the chart makes.
type object struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     map[string]any
		}
		PodSelector struct{ MatchLabels map[string]string }
		PolicyTypes []string
		Ingress     []struct {
			Ports []struct{ Port int }
			From  []any
		}
		Egress []any
	}
	Rules []struct {
		APIGroups, Resources, ResourceNames, Verbs []string
	}
}

func objects(t *testing.T, values, kind string) (found []object) {
	t.Helper()
	text, err := rendered(values)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(text, "\n---\n") {
		var one object
		if err := yaml.Unmarshal([]byte(document), &one); err != nil {
			t.Fatalf("%v: %s", err, document)
		}
		if one.Kind == kind {
			found = append(found, one)
		}
	}
	return found
}

const everything = "observer: {enabled: true}, advise: {enabled: true}"

func TestAllPodsGoWhereTheValuesSay(t *testing.T) {
	pods := objects(t, "{"+everything+`, nodeSelector: {pool: system}, tolerations: [{key: system}], affinity: {nodeAffinity: {}}, priorityClassName: high, imagePullSecrets: [{name: s}]}`, "Deployment")
	for _, one := range pods {
		for _, field := range []string{"nodeSelector", "tolerations", "affinity", "priorityClassName", "imagePullSecrets"} {
			if one.Spec.Template.Spec[field] == nil {
				t.Errorf("%s: expected %s, found none", one.Metadata.Name, field)
			}
		}
	}
	if len(pods) != 3 {
		t.Errorf("expected three Deployments, found %d", len(pods))
	}
}

// The API server reaches the webhook, Prometheus the metrics and the kubelet the probes, and nobody another port.
func TestTheNetworkPolicyLetsInWhatIsServed(t *testing.T) {
	ports := func(one object) (out []int) {
		for _, container := range one.Spec.Template.Spec["containers"].([]any) {
			for _, port := range container.(map[string]any)["ports"].([]any) {
				out = append(out, int(port.(map[string]any)["containerPort"].(float64)))
			}
		}
		return out
	}
	for values, narrowed := range map[string]bool{"": false, ", networkPolicy: {metricsFrom: [{podSelector: {}}], webhookFrom: [{ipBlock: {cidr: 10.0.0.0/28}}]}": true} {
		policies := objects(t, "{"+everything+values+"}", "NetworkPolicy")
		for _, pod := range objects(t, "{"+everything+values+"}", "Deployment") {
			var open []int
			for _, policy := range policies {
				matches := true
				for key, value := range policy.Spec.PodSelector.MatchLabels {
					matches = matches && pod.Spec.Template.Metadata.Labels[key] == value
				}
				if !matches {
					continue
				}
				if !slices.Equal(policy.Spec.PolicyTypes, []string{"Ingress"}) {
					t.Errorf("%s: expected what goes out to be free, since nobody knows the API server's address, found %v", policy.Metadata.Name, policy.Spec.PolicyTypes)
				}
				for _, rule := range policy.Spec.Ingress {
					if (len(rule.From) > 0) != narrowed {
						t.Errorf("%s: expected narrowed %v, found %v", policy.Metadata.Name, narrowed, rule.From)
					}
					for _, port := range rule.Ports {
						open = append(open, port.Port)
					}
				}
			}
			if !slices.Equal(open, ports(pod)) {
				t.Errorf("%s: expected the ports that it serves (%v), found %v", pod.Metadata.Name, ports(pod), open)
			}
		}
	}
	if off := objects(t, "{"+everything+", networkPolicy: {enabled: false}}", "NetworkPolicy"); len(off) > 0 {
		t.Errorf("expected none, found %d", len(off))
	}
}

// What an observer that is taken over could read or change: its models. Only creation cannot be held to names.
func TestTheObserversRoleEndsAtItsModels(t *testing.T) {
	for _, role := range objects(t, "{"+everything+"}", "Role") {
		for _, rule := range role.Rules {
			if role.Metadata.Name == "horus-observer" && len(rule.ResourceNames) == 0 && !slices.Equal(rule.Verbs, []string{"create"}) {
				t.Errorf("expected names beside all verbs but create, found %+v", rule)
			}
		}
	}
	for _, role := range objects(t, "{"+everything+"}", "ClusterRole") {
		for _, rule := range role.Rules {
			if strings.Contains(role.Metadata.Name, "observer") && (slices.Contains(rule.Resources, "configmaps") || slices.Contains(rule.Resources, "secrets")) {
				t.Errorf("expected no ConfigMap of other namespaces, found %+v", rule)
			}
		}
	}
}

// The API server calls a Service by NAME.NAMESPACE.svc, and trusts the bundle of the configuration alone.
func TestTheWebhooksCertificateIsTheOneThatTheAPIServersTrust(t *testing.T) {
	text, err := rendered("advise: {enabled: true}")
	if err != nil {
		t.Fatal(err)
	}
	bundle := regexp.MustCompile(`caBundle: (\S+)`).FindStringSubmatch(text)
	served := regexp.MustCompile(`tls.crt: (\S+)`).FindStringSubmatch(text)
	if bundle == nil || served == nil || !strings.Contains(text, "secretName: horus-advise-tls") {
		t.Fatalf("expected a Secret that is mounted and a bundle, found %v, %v", served, bundle)
	}
	ca, _ := base64.StdEncoding.DecodeString(bundle[1])
	chain, _ := base64.StdEncoding.DecodeString(served[1])
	block, _ := pem.Decode(chain)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "horus-advise.gpu-system.svc", CurrentTime: time.Now().AddDate(9, 0, 0)}); err != nil {
		t.Error(err)
	}
	managed, err := rendered("advise: {enabled: true}", "cert-manager.io/v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"cert-manager.io/inject-ca-from: gpu-system/horus-advise}", "secret: {secretName: horus-advise-issued,", "secretName: horus-advise-issued\n", "dnsNames: [horus-advise.gpu-system.svc]"} {
		if !strings.Contains(managed, part) {
			t.Errorf("with cert-manager: expected %q, found none", part)
		}
	}
	if strings.Contains(managed, "kind: Secret\n") || strings.Contains(managed, "caBundle") {
		t.Error("with cert-manager: expected no certificate of the chart's")
	}
}

// --reuse-values leaves out the defaults that a newer chart brings.
func TestNotesAndDocsNameTheSameUpgrade(t *testing.T) {
	for _, path := range []string{horus + "/templates/NOTES.txt", "../../../../docs/kubernetes.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`helm upgrade [^\n]*--set`).FindAllString(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s: expected an upgrade, found none", path)
		}
		for _, line := range found {
			if !strings.Contains(line, " --reset-then-reuse-values ") {
				t.Errorf("%s: expected --reset-then-reuse-values, found %s", path, line)
			}
		}
	}
}
