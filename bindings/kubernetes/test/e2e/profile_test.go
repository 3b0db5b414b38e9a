// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

// What the predictor says of a model comes through the API server whole: values, bounds, and what they rest on.
func TestAProfileOfAModelIsWhatThePredictorSays(t *testing.T) {
	t.Parallel()
	c := start(t, "")
	const model = "../../../../examples/models/graphs/resnet50.onnx"
	types := []string{"h100-sxm", "t4"}
	tool := exec.Command(filepath.Join(os.Getenv("HORUS_K8S_BIN"), "kubectl-horus"), "profile", model, "--inference", "--batch", "8", "--gpus", "h100-sxm,t4", "--name", "resnet")
	text, err := tool.Output()
	check(t, err)
	path := filepath.Join(t.TempDir(), "profile.yaml")
	check(t, os.WriteFile(path, text, 0o600))
	kubectl(t, c, "apply", "--validate=strict", "-f", path)

	stored, err := c.Dynamic.Resource(objects.Profiles).Namespace(namespace).Get(ctx, "resnet", metav1.GetOptions{})
	check(t, err)
	found, err := objects.ProfileOf(stored.Object["spec"], nil)
	check(t, err)

	graph, err := horus.ReadGraph(model)
	check(t, err)
	predictor, err := horus.NewPredictor()
	check(t, err)
	expected, err := predictor.Demand(nil, graph, horus.RunSpec{Batch: 8, Mode: horus.Inference}, types...)
	check(t, err)
	largest, err := predictor.LargestBatch(nil, graph, horus.RunSpec{Mode: horus.Inference}, types...)
	check(t, err)
	for i, want := range expected {
		if found.LargestBatch[i] != largest[i].Largest || largest[i].Largest < 8 {
			t.Errorf("%s: expected the largest batch %d, found %d", types[i], largest[i].Largest, found.LargestBatch[i])
		}
		demand := found.Demands[i].Demand
		demand.ProfileID = want.ProfileID // of the spec, so that what is observed of it is kept together
		if found.Demands[i].GPUType != types[i] || demand != want || demand.Flags&horus.Predicted == 0 {
			t.Errorf("%s: expected %+v, found %+v", types[i], want, demand)
		}
	}
}
