// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"libhorus.org/kubernetes/test/controlplane"
)

// importing has horus read what kubectl lists, and tells its exit code and words.
func importing(t *testing.T, c *controlplane.Cluster, horus, resources, out string) (int, string) {
	t.Helper()
	objects := filepath.Join(t.TempDir(), "objects.json")
	check(t, os.WriteFile(objects, []byte(kubectl(t, c, "get", resources, "-A", "-o", "json")), 0o600))
	cmd := exec.Command(horus, "import", objects, "--out", out)
	said, err := cmd.CombinedOutput()
	if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(said)
}

// What docs/kubernetes.md has people do before they install anything.
func TestWhatKubectlListsIsImported(t *testing.T) {
	t.Parallel()
	horus := os.Getenv("HORUS_COMMAND")
	if horus == "" {
		t.Skip("HORUS_COMMAND names no horus command: build it, then test/run finds it")
	}
	c := start(t, "")
	node(t, c, "whole", 4, nil)
	node(t, c, "shared", 0, nil)
	slice(t, c, "shared", 2)
	claim(t, c, "part", "16Gi")
	makePod(t, c, podSpec{name: "parted", claim: "part", scheduler: "nobody"})
	for i := range 510 { // more than kubectl lists at a time
		makePod(t, c, podSpec{name: fmt.Sprintf("p%d", i), whole: 1, scheduler: "nobody"})
	}
	makePod(t, c, podSpec{name: "runs", whole: 1, change: func(p *v1.Pod) { p.Spec.NodeName = "whole" }})
	until(t, c, "the pod runs", func() bool { return get(t, c, "runs").Status.Phase == v1.PodRunning })
	const all = "nodes,pods,resourceslices,resourceclaims"
	for resources, says := range map[string]string{all: "1 jobs run, 511 wait", "nodes,pods": "1 jobs run, 510 wait"} {
		if code, out := importing(t, c, horus, resources, t.TempDir()); code != 0 && resources == all || !strings.Contains(out, says) {
			t.Errorf("%s: expected %q, found exit code %d: %s", resources, says, code, out)
		}
	}
	node(t, c, "unknown", 1, func(n *v1.Node) { n.Labels["nvidia.com/gpu.product"] = "Nobodys-GPU" })
	if code, out := importing(t, c, horus, all, t.TempDir()); code != 3 || !strings.Contains(out, "unknown") {
		t.Errorf("a node is left out: expected exit code 3 and its name, found %d: %s", code, out)
	}
}
