// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/model"
	"libhorus.org/learn"
)

// learnedOf so many windows in which a pair of jobs lost half.
func learnedOf(t *testing.T, windows int) learn.Model {
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
	return learn.Model{Version: windows, At: time.Now(), Observations: snapshot, Windows: windows}
}

func TestWhatAClusterLearnedMovesToAnother(t *testing.T) {
	t.Parallel()
	c := start(t, "")
	install(t, c, "mode: place\nobserver: {enabled: true}")
	store := model.Store{Client: c.Client, Namespace: system, Name: "horus-model"}
	for version := 1; version <= 7; version++ {
		check(t, store.Save(ctx, learnedOf(t, version)))
	}
	takes := func(version float64) {
		t.Helper()
		until(t, c, "the scheduler takes the model", func() bool { return metric(c, "horus_model_version") == version })
	}
	// As docs/kubernetes.md has it: what is kept of a ConfigMap, under the name of the one that counts.
	file := func(name string) string {
		t.Helper()
		var kept, stored map[string]any
		check(t, json.Unmarshal([]byte(kubectl(t, c, "get", "configmap", name, "-n", system, "-o", "json")), &stored))
		kept = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "horus-model"}, "data": stored["data"], "binaryData": stored["binaryData"]}
		text, err := json.Marshal(kept)
		check(t, err)
		path := filepath.Join(t.TempDir(), "model.json")
		check(t, os.WriteFile(path, text, 0o600))
		return path
	}
	apply := func(path string) {
		t.Helper()
		kubectl(t, c, "apply", "-n", system, "--server-side", "--force-conflicts", "-f", path)
	}
	takes(7)
	exported := file("horus-model")
	apply(file("horus-model-3"))
	takes(3)
	// Another cluster, in which nothing was learned.
	kubectl(t, c, "delete", "configmaps", "-n", system, "-l", "libhorus.org/model=learned")
	kubectl(t, c, "delete", "configmap", "horus-model", "-n", system, "--ignore-not-found")
	apply(exported)
	takes(7)
	now, _, err := store.Load(ctx)
	if err != nil || now.Windows != 7 {
		t.Errorf("expected the model of 7 windows, found %d, %v", now.Windows, err)
	}
	forbidden(t, c)
	// What a stranger writes there does not reach the library.
	kubectl(t, c, "patch", "configmap", "horus-model", "-n", system, "--type=merge", "-p", `{"binaryData":{"observations.gz":"bm8="}}`)
	until(t, c, "the scheduler refuses it", func() bool { return metric(c, "horus_models_refused_total") == 1 })
	takes(7)
}
