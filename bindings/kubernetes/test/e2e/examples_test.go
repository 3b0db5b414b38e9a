// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheExamplesRunAndAreExplained(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	node(t, c, "whole", 2, nil)
	node(t, c, "shared", 0, nil)
	slice(t, c, "shared", 1)
	kubectl(t, c, "apply", "--validate=strict", "-f", "../../../../examples/kubernetes")
	for name, where := range map[string]string{"training": "whole", "serving-a": "shared", "serving-b": "shared"} {
		if found := bound(t, c, name); found != where {
			t.Errorf("%s: expected %s, found %s", name, where, found)
		}
	}
	explain := func(name string) string {
		cmd := exec.Command(filepath.Join(os.Getenv("HORUS_K8S_BIN"), "kubectl-horus"), "explain", name)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
		out, err := cmd.CombinedOutput()
		check(t, err)
		return string(out)
	}
	both := explain("serving-a") + explain("serving-b")
	for _, words := range []string{"GPU-shared-0", "beside default/serving-", "times its step time alone", "by JobProfile resnet50-serving", "alone on its GPUs when it came", "slows default/serving-"} {
		if !strings.Contains(both, words) {
			t.Errorf("expected %q, found %s", words, both)
		}
	}
	t.Log(both)
	makePod(t, c, podSpec{name: "late", whole: 1})
	said(t, c, "late", "HorusRefused")
	if told := explain("late"); !strings.Contains(told, "default/late waits") || !strings.Contains(told, "HorusRefused: ") {
		t.Errorf("expected why it waits, found %s", told)
	}
}
