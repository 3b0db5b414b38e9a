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

// importing runs kubectl horus import and tells its exit code and words.
func importing(t *testing.T, c *controlplane.Cluster, args ...string) (int, string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(os.Getenv("HORUS_K8S_BIN"), "kubectl-horus"), append([]string{"import"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestImportMakesTheFilesThatKubectlsOutputMakes(t *testing.T) {
	horus := os.Getenv("HORUS_COMMAND")
	if horus == "" {
		t.Skip("HORUS_COMMAND names no horus command, and kubectl horus import is not tested: build it, then test/run finds it")
	}
	c := start(t, "")
	node(t, c, "whole", 4, func(n *v1.Node) { n.Labels["example.com/row"] = "r1" })
	node(t, c, "shared", 0, nil)
	slice(t, c, "shared", 2)
	claim(t, c, "part", "16Gi")
	makePod(t, c, podSpec{name: "parted", claim: "part", scheduler: "nobody"})
	for i := range 510 { // more than a page
		makePod(t, c, podSpec{name: fmt.Sprintf("p%d", i), whole: 1, scheduler: "nobody"})
	}
	makePod(t, c, podSpec{name: "runs", whole: 1, change: func(p *v1.Pod) { p.Spec.NodeName = "whole" }})
	until(t, c, "the pod runs", func() bool { return get(t, c, "runs").Status.Phase == v1.PodRunning })
	ours, theirs, objects := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "objects.json")
	if code, out := importing(t, c, "--horus", horus, "--out", ours, "--rack-label", "example.com/row"); code != 0 || !strings.Contains(out, "1 jobs run, 511 wait") {
		t.Fatalf("expected 1 job that runs and 511 that wait, found exit code %d: %s", code, out)
	}
	check(t, os.WriteFile(objects, []byte(kubectl(t, c, "get", "nodes,pods,resourceslices,resourceclaims", "-A", "-o", "json")), 0o600))
	if out, err := exec.Command(horus, "import", objects, "--out", theirs, "--rack-label", "example.com/row").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"cluster.yaml", "jobs.yaml", "decisions.csv", "now.yaml", "waiting.yaml"} {
		a, err := os.ReadFile(filepath.Join(ours, name))
		check(t, err)
		b, err := os.ReadFile(filepath.Join(theirs, name))
		check(t, err)
		if string(a) != string(b) {
			t.Errorf("%s: expected what kubectl's output makes\n%s\nfound\n%s", name, b, a)
		}
	}

	node(t, c, "unknown", 1, func(n *v1.Node) { n.Labels["nvidia.com/gpu.product"] = "Nobodys-GPU" })
	if code, out := importing(t, c, "--horus", horus, "--out", ours, "--json"); code != 3 || !strings.Contains(out, `"schema": "horus-import"`) {
		t.Errorf("a node is left out: expected the command's own exit code 3 and JSON, found %d: %s", code, out)
	}
}

func TestImportThatCannotBeWholeWritesNothing(t *testing.T) {
	c := start(t, "")
	node(t, c, "whole", 4, nil)
	out := filepath.Join(t.TempDir(), "out")
	code, said := importing(t, c, "--horus", "no-such-horus", "--out", out)
	if code != 1 || !strings.Contains(said, "put it onto your PATH") || !strings.Contains(said, "no-such-horus") {
		t.Errorf("expected what to do about a command that is missing, found exit code %d: %s", code, said)
	}
	horus := os.Getenv("HORUS_COMMAND")
	if horus == "" {
		t.Skip("HORUS_COMMAND names no horus command, and a fetch that fails is not tested: build it, then test/run finds it")
	}
	if code, said := importing(t, c, "--horus", horus, "--out", out, "--gpus-file", "no-such-file"); code != 2 || !strings.Contains(said, "no-such-file") {
		t.Errorf("expected the command's own words and exit code 2, found %d: %s", code, said)
	}
	kubectl(t, c, "create", "serviceaccount", "reader")
	kubectl(t, c, "create", "clusterrole", "reader", "--verb=list", "--resource=nodes,pods")
	kubectl(t, c, "create", "clusterrolebinding", "reader", "--clusterrole=reader", "--serviceaccount=default:reader")
	kubectl(t, c, "config", "set-credentials", "u", "--token="+strings.TrimSpace(kubectl(t, c, "create", "token", "reader")))
	if code, said := importing(t, c, "--horus", horus, "--out", out); code != 1 || !strings.Contains(said, "resourceslices") || !strings.Contains(said, "forbidden") {
		t.Errorf("expected what cannot be listed, found exit code %d: %s", code, said)
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("expected nothing written, found %v", err)
	}
}
