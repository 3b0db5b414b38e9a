// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/model"
	"libhorus.org/kubernetes/test/controlplane"
)

// modelTool is kubectl horus model.
func modelTool(t *testing.T, c *controlplane.Cluster, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(filepath.Join(os.Getenv("HORUS_K8S_BIN"), "kubectl-horus"), append([]string{"model", "-n", system}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// learnedOf so many windows in which a pair of jobs lost half.
func learnedOf(t *testing.T, windows int) model.Model {
	t.Helper()
	seen, err := horus.NewObservations(0)
	check(t, err)
	defer seen.Close()
	demand := horus.Demand{ProfileID: 7, GPUUtilPct: 40, MemMiB: 2_000, StepTimeUs: 10_000}
	for range windows {
		check(t, seen.AddSlowdown(nil, horus.SlowdownObservation{
			Device: horus.SharedDevice{GPUType: "h100-sxm"}, Job: demand, CoTenants: []horus.Demand{demand}, Slowdown: 1.5,
		}))
	}
	snapshot, err := seen.Snapshot()
	check(t, err)
	return model.Model{Version: windows, At: time.Now(), Observations: snapshot, Windows: windows}
}

func TestWhatAClusterLearnedMovesToAnother(t *testing.T) {
	c := start(t, "")
	install(t, c, "mode: place\nobserver: {enabled: true}")
	profile(t, c, "secret-project", 20, 8_000)
	store := model.Store{Client: c.Client, Namespace: system, Name: "horus-model"}
	for version := 1; version <= 7; version++ {
		check(t, store.Save(ctx, learnedOf(t, version)))
	}
	takes := func(version float64) {
		t.Helper()
		until(t, c, "the scheduler takes the model", func() bool { return metric(c, "horus_model_version") == version })
	}
	takes(7)
	if listed, err := modelTool(t, c, "list"); err != nil || strings.Count(listed, "windows") != 5 || !strings.HasPrefix(listed, "7\t") {
		t.Errorf("expected the last 5 versions, the newest first, found %v, %s", err, listed)
	}
	exported, err := modelTool(t, c, "export")
	if err != nil || strings.Contains(exported, "secret-project") {
		t.Errorf("expected a model without the names of jobs, found %v, %s", err, exported)
	}
	path := filepath.Join(t.TempDir(), "model.yaml")
	withProfiles, err := modelTool(t, c, "export", "--profiles")
	if err != nil || !strings.Contains(withProfiles, "secret-project") {
		t.Errorf("expected the profiles that were asked for, found %v, %s", err, withProfiles)
	}
	check(t, os.WriteFile(path, []byte(withProfiles), 0o600))
	if said, err := modelTool(t, c, "rollback", "3"); err != nil || !strings.Contains(said, "version 8") {
		t.Errorf("expected version 8, found %v, %s", err, said)
	}
	takes(8)
	if said, err := modelTool(t, c, "rollback", "1"); err == nil || !strings.Contains(said, "expected version 1, found others") {
		t.Errorf("a version that is gone: expected a refusal, found %s", said)
	}
	// Another cluster, in which nothing was learned.
	kubectl(t, c, "delete", "configmaps", "-n", system, "-l", "libhorus.org/model=learned")
	kubectl(t, c, "delete", "jobprofile", "secret-project")
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	check(t, os.WriteFile(bad, []byte(strings.Replace(withProfiles, "observations.gz: H4sI", "observations.gz: H4sJ", 1)), 0o600))
	if said, err := modelTool(t, c, "import", bad); err == nil || !strings.Contains(said, "observations.gz") {
		t.Errorf("a spoilt file: expected a refusal, found %s", said)
	}
	if found, err := c.Client.CoreV1().ConfigMaps(system).List(ctx, metav1.ListOptions{LabelSelector: "libhorus.org/model"}); err != nil || len(found.Items) > 0 {
		t.Errorf("a spoilt file: expected that nothing is done, found %v, %v", found.Items, err)
	}
	if said, err := modelTool(t, c, "import", path); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	takes(1)
	now, _, err := store.Load(ctx)
	if err != nil || now.Windows != 7 {
		t.Errorf("expected the model of 7 windows, found %d, %v", now.Windows, err)
	}
	kubectl(t, c, "get", "jobprofile", "secret-project")
	forbidden(t, c)
	// What a stranger writes there does not reach the library.
	kubectl(t, c, "patch", "configmap", "horus-model", "-n", system, "--type=merge", "-p", `{"binaryData":{"observations.gz":"bm8="}}`)
	until(t, c, "the scheduler refuses it", func() bool { return metric(c, "horus_models_refused_total") == 1 })
	takes(1)
}
