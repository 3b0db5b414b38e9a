// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/plugin"
)

// shim compiles the library that stands before libhorus, and tells its path.
func shim(t *testing.T) string {
	t.Helper()
	flags, err := exec.Command("pkg-config", "--cflags", "horus").Output()
	check(t, err)
	path := filepath.Join(t.TempDir(), "shim.so")
	args := append([]string{"-std=c++20", "-shared", "-fPIC", "-o", path, "testdata/shim.cc", "-ldl"}, strings.Fields(string(flags))...)
	if out, err := exec.Command("c++", args...).CombinedOutput(); err != nil {
		t.Fatalf("c++ %v: %v\n%s", args, err, out)
	}
	return path
}

// Native code that crashes, throws, aborts or hangs while pods are placed ends the process, and the next one goes on where the
// API server stands. A call that only fails ends nothing.
func TestNativeCodeThatFailsLosesNothing(t *testing.T) {
	t.Parallel()
	const values = `{mode: place, placing: {callTimeout: 2s}}`
	const goCrash = 2 // exit code of Go's runtime on a signal
	c := start(t, "")
	trigger := filepath.Join(t.TempDir(), "fault")
	c.Env = []string{"LD_PRELOAD=" + shim(t), "HORUS_FAULT=" + trigger}
	c.StartScheduler(values)
	f := fleet(t, c, 4, 4)
	f.come(20)
	for _, one := range []struct {
		function, fault string
		code            int // 0 = it lives
		says            string
	}{
		{"horus_placer_verdicts", "segv", goCrash, "SIGSEGV"},
		{"horus_placer_plan", "throw", goCrash, "bad_alloc"},
		{"horus_placer_appraise", "abort", goCrash, "SIGABRT"},
		{"horus_cluster_adopt", "segv", goCrash, "SIGSEGV"},
		{"horus_placer_verdicts", "hang", plugin.ExitHung, "a call of libhorus does not return"},
		{"horus_cluster_adopt", "hang", plugin.ExitHung, "a call of libhorus does not return"},
		{"horus_placer_verdicts", "error", 0, "Horus: "},
		{"horus_placer_appraise", "error", 0, "Horus: "},
	} {
		t.Run(one.function+" "+one.fault, func(t *testing.T) {
			logged := len(c.SchedulerLog())
			check(t, os.WriteFile(trigger, []byte(one.function+" "+one.fault), 0o600))
			f.leave(5)
			f.come(5)
			if one.code == 0 {
				until(t, c, "the log says "+one.says, func() bool { return strings.Contains(c.SchedulerLog()[logged:], one.says) })
			} else if code := c.AwaitEnd(); code != one.code {
				t.Fatalf("expected exit code %d, found %d\n%s", one.code, code, c.SchedulerLog()[logged:])
			}
			if log := c.SchedulerLog()[logged:]; !strings.Contains(log, one.says) {
				t.Errorf("expected %q, found %s", one.says, log)
			}
			f.audit(false)
			check(t, os.Remove(trigger))
			if one.code != 0 {
				c.StartScheduler(values)
			}
			f.settle()
		})
	}
}

// As inside a cluster's first scheduler: native code runs in a child process, and what happens to it is not the scheduler's end.
// With Ignore pods are placed without it, with Fail they wait until it is back.
func TestAChildProcessThatFailsIsNotTheSchedulersEnd(t *testing.T) {
	t.Parallel()
	for policy, faults := range map[string][]string{
		plugin.Ignore: {"horus_placer_verdicts segv", "horus_cluster_adopt hang"},
		plugin.Fail:   {"horus_placer_verdicts hang", "horus_placer_plan throw"},
	} {
		t.Run(policy, func(t *testing.T) {
			c := start(t, "")
			trigger := filepath.Join(t.TempDir(), "fault")
			c.Env = []string{"LD_PRELOAD=" + shim(t), "HORUS_FAULT=" + trigger}
			c.StartScheduler(`{mode: place, placing: {isolated: true, callTimeout: 2s, failurePolicy: ` + policy + `}}`)
			f := fleet(t, c, 4, 4)
			f.come(5)
			f.settle()
			for _, fault := range faults {
				logged := len(c.SchedulerLog())
				check(t, os.WriteFile(trigger, []byte(fault), 0o600))
				first := f.made
				f.come(5)
				if policy == plugin.Ignore {
					until(t, c, "every pod is bound without the library", func() bool { return f.audit(false) == 0 })
				} else {
					until(t, c, "the child is gone", func() bool {
						return strings.Contains(c.SchedulerLog()[logged:], "the child process with libhorus is gone")
					})
					if told := get(t, c, f.name(first)).Annotations[objects.DecisionAnnotation]; told != "" && strings.HasPrefix(fault, "horus_placer_verdicts") {
						t.Errorf("%s: expected the pod to wait, found the decision %s", fault, told)
					}
				}
				check(t, os.Remove(trigger))
				f.settle() // the mirror has them all, in a child that was started again
				f.come(1)
				f.settle()
				if told := get(t, c, f.name(f.made-1)).Annotations[objects.DecisionAnnotation]; told == "" {
					t.Errorf("%s: expected the next pod to be placed by the library again", fault)
				}
				f.leave(6)
			}
		})
	}
}
