// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

// What a JobProfile of a service says is what the scheduler reads.
func TestAServiceIsAProfile(t *testing.T) {
	flags := profileFlags{framework: "vllm", gpus: []string{"h100-sxm", "t4"}, tokenMs: 50,
		load: horus.ServiceLoad{RequestsPerS: 3, TokensIn: 1024, TokensOut: 256}}
	var out, problems bytes.Buffer
	if err := profile(&out, &problems, "llama-3.1-8b", flags); err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(out.Bytes(), &object); err != nil {
		t.Fatal(err)
	}
	read, err := objects.ProfileOf(object["spec"], nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Demands) != 1 || read.Demands[0].GPUType != "h100-sxm" || read.Kind != horus.InferenceJob {
		t.Fatalf("expected the type that serves, found %+v", read.Demands)
	}
	if d := read.Demands[0].Demand; d.SlowdownBound < 1 || d.Duty <= 0 || d.Duty >= 1 {
		t.Errorf("expected what a service keeps, found %+v", d)
	}
	if !strings.Contains(out.String(), "--gpu-memory-utilization 0.") {
		t.Errorf("expected what to tell the engine, found\n%s", out.String())
	}
	flags.gpus = []string{"t4"}
	if err := profile(&out, &problems, "llama-3.1-8b", flags); err == nil || !strings.Contains(err.Error(), "found none") {
		t.Errorf("expected that no type serves, found %v", err)
	}
	flags.framework = "pytorch"
	if err := profile(&out, &problems, "llama-3.1-8b", flags); err == nil || !strings.Contains(err.Error(), "expected vllm") {
		t.Errorf("expected the engines, found %v", err)
	}
}
