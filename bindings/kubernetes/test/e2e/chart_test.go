// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/kubernetes/test/controlplane"
)

const system = "gpu-system"

// install applies the chart and starts the scheduler with what it made: its configuration, its lease and no more than the
// rights of its service account.
func install(t *testing.T, c *controlplane.Cluster, values string) {
	t.Helper()
	manifest, err := controlplane.Render(programs(t), system, version(t), values)
	if err != nil {
		t.Fatalf("%v: %s", err, manifest)
	}
	_, err = c.Client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}, metav1.CreateOptions{})
	check(t, err)
	path := filepath.Join(t.TempDir(), "chart.yaml")
	check(t, os.WriteFile(path, []byte(manifest), 0o600))
	kubectl(t, c, "apply", "--server-side", "--validate=strict", "-f", path)
	reinstall(t, c)
}

// reinstall starts the scheduler that is installed.
func reinstall(t *testing.T, c *controlplane.Cluster) {
	t.Helper()
	config, err := c.Client.CoreV1().ConfigMaps(system).Get(ctx, "horus-scheduler", metav1.GetOptions{})
	check(t, err)
	deployment, err := c.Client.AppsV1().Deployments(system).Get(ctx, "horus-scheduler", metav1.GetOptions{})
	check(t, err)
	c.StartInstalled(config.Data["scheduler.yaml"], token(t, c, "horus-scheduler"), deployment.Spec.Template.Spec.Containers[0].Args)
}

// token of a service account beside the scheduler's.
func token(t *testing.T, c *controlplane.Cluster, account string) string {
	t.Helper()
	made, err := c.Client.CoreV1().ServiceAccounts(system).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	check(t, err)
	return made.Status.Token
}

func forbidden(t *testing.T, c *controlplane.Cluster) {
	t.Helper()
	for line := range strings.Lines(c.SchedulerLog()) {
		if strings.Contains(line, "forbidden") {
			t.Errorf("the chart's roles lack a right: %s", line)
		}
	}
}

func TestTheChartPlacesWithItsOwnRights(t *testing.T) {
	t.Parallel()
	c := start(t, "")
	install(t, c, "mode: place")
	node(t, c, "n1", 1, nil)
	node(t, c, "n2", 0, nil)
	slice(t, c, "n2", 1)
	profile(t, c, "light", 20, 8_000)
	makePod(t, c, podSpec{name: "whole", whole: 1})
	sharing(t, c, "a", "light", "16Gi")
	sharing(t, c, "b", "light", "16Gi")
	for name, where := range map[string]string{"whole": "n1", "a": "n2", "b": "n2"} {
		if found := bound(t, c, name); found != where {
			t.Errorf("%s: expected %s, found %s", name, where, found)
		}
	}
	makePod(t, c, podSpec{name: "more", whole: 1})
	refused(t, c, "more")
	forbidden(t, c)
}

func TestTheChartWatchesWithNoRightToBind(t *testing.T) {
	t.Parallel()
	c := start(t, "")
	install(t, c, "dryRuns: true")
	node(t, c, "n1", 1, nil)
	makePod(t, c, podSpec{name: "a", whole: 1})
	until(t, c, "the pod is told", func() bool {
		return strings.Contains(kubectl(t, c, "get", "pod", "a", "-o", "yaml"), "shadow mode")
	})
	time.Sleep(2 * time.Second) // reflectors that lack a right say so within a second
	forbidden(t, c)
	for verb, want := range map[string]string{"create pods/binding": "no", "update resourceclaims/status": "no", "get secrets": "no", "patch nodes": "no", "list nodes": "yes"} {
		action, object, _ := strings.Cut(verb, " ")
		object, part, _ := strings.Cut(object, "/") // kubectl takes what stands behind a slash for a name
		cmd := exec.Command(filepath.Join(os.Getenv("HORUS_K8S_BIN"), "kubectl"), "auth", "can-i", action, object, "--subresource", part, "--as", "system:serviceaccount:"+system+":horus-scheduler")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
		if out, _ := cmd.Output(); strings.TrimSpace(string(out)) != want {
			t.Errorf("%s: expected %s, found %s", verb, want, out)
		}
	}
}

func TestValuesOutsideTheSchemaAreRefusedByName(t *testing.T) {
	for values, says := range map[string]string{
		"mode: watch": "mode", "replicas: -1": "replicas", "placing: {candidates: 0}": "candidates", "colour: red": "colour",
		"schedulerName: default-scheduler": "schedulerName", "placing: {sharingQuota: 2}": "sharingQuota",
		"monitoring: {prometheus: {name: prometheus}}": "namespace", "monitoring: {alerts: true}": "alerts",
		"placing: {callTimeout: 0s}": "callTimeout", "gpus: {hami: {lockExpiry: never}}": "lockExpiry",
	} {
		if out, err := controlplane.Render(programs(t), system, version(t), values); err == nil || !strings.Contains(out, says) {
			t.Errorf("%s: expected a refusal that names %s, found %s", values, says, out)
		}
	}
}

// A scheduler may be a minor older than the API server and never newer.
func TestTheChartTakesTheBuildForTheClustersKubernetes(t *testing.T) {
	for kubernetes, says := range map[string]string{
		"v1.35.4": "incompatible", "v1.39.0": "incompatible",
		"v1.36.0": "-k8s1.36\"", "v1.36.3-gke.1245000": "-k8s1.36\"", "v1.37.0-eks-1a2b3c": "-k8s1.37\"", "v1.38.1+k3s1": "-k8s1.37\"",
	} {
		if out, err := controlplane.Render(programs(t), system, kubernetes, ""); (err != nil) != (says == "incompatible") || !strings.Contains(out, says) {
			t.Errorf("Kubernetes %s: expected %s, found %v, %s", kubernetes, says, err, out)
		}
	}
}
