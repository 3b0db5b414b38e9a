// SPDX-License-Identifier: Apache-2.0

// Package faults asks whether each end-to-end test can fail: it plants a fault, builds the programs with it and runs the test.
package faults

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.." // bindings/kubernetes

// planted is the file with the fault in it.
func planted(t *testing.T, f fault) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, f.file))
	if err != nil {
		t.Fatal(err)
	}
	if found := strings.Count(string(text), f.before); found != 1 {
		t.Fatalf("%s, for %s: expected %q exactly once, found it %d times", f.file, f.test, f.before, found)
	}
	return strings.Replace(string(text), f.before, f.after, 1)
}

func TestEachEndToEndTestHasAFaultThatStandsStill(t *testing.T) {
	faulted := map[string]bool{}
	for _, f := range list {
		planted(t, f)
		faulted[f.test] = true
	}
	files, err := filepath.Glob("../e2e/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("expected the tests of test/e2e, found %v, %v", files, err)
	}
	known := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			known[match[1]] = true
			if !faulted[match[1]] && unfaulted[match[1]] == "" {
				t.Errorf("%s of %s: expected a fault in list_test.go that it finds, found none", match[1], filepath.Base(file))
			}
		}
	}
	for name := range faulted {
		if !known[name] {
			t.Errorf("%s: expected a test of test/e2e, found none of that name", name)
		}
	}
}

// HORUS_K8S_FAULTS=1 plants each fault in turn: half an hour on two cores, so give test/run -timeout 60m too.
func TestFaultsAreFound(t *testing.T) {
	bin := os.Getenv("HORUS_K8S_BIN")
	if os.Getenv("HORUS_K8S_FAULTS") == "" || bin == "" {
		t.Skip("HORUS_K8S_FAULTS is not set")
	}
	tests := filepath.Join(t.TempDir(), "e2e.test")
	run(t, "go", "test", "-c", "-o", tests, "../e2e")
	for i, f := range list {
		t.Run(fmt.Sprintf("%d %s %s", i, f.test, f.file), func(t *testing.T) {
			cmd := exec.Command(tests, "-test.run", "^"+f.test+"$", "-test.v", "-test.timeout", "10m")
			cmd.Dir = "../e2e"
			cmd.Env = append(append(os.Environ(), "HORUS_K8S_WITHIN="+cmp.Or(f.within, "15s")), build(t, f, bin)...)
			out, _ := cmd.CombinedOutput()
			failed := failure.FindAllString(string(out), -1)
			switch {
			case !strings.Contains(string(out), "--- FAIL: "+f.test):
				t.Errorf("the fault is not found: expected %s to fail\n%s", f.test, out)
			case !strings.Contains(strings.Join(failed, "\n"), f.says):
				t.Errorf("expected an assertion that says %q, found %q\n%s", f.says, failed, out)
			default:
				t.Logf("found: %.200s", failed[0])
			}
		})
	}
}

// failure is what a test said at one of its own lines.
var failure = regexp.MustCompile(`(?m)^ +\w+_test\.go:\d+: .*`)

// build makes a folder of programs with the fault and tells the environment of a test that uses them. A fault of the chart is
// planted in a copy of it.
func build(t *testing.T, f fault, bin string) []string {
	t.Helper()
	dir, text := t.TempDir(), planted(t, f)
	if inChart, is := strings.CutPrefix(f.file, "charts/horus/"); is {
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "charts/horus"))); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, inChart), text)
		return []string{"HORUS_K8S_CHART=" + dir}
	}
	programs, err := os.ReadDir(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		name := program.Name()
		if _, err := os.Stat(filepath.Join(root, "cmd", name)); err != nil { // ours are built with the fault
			if err := os.Symlink(filepath.Join(bin, name), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	source, err := filepath.Abs(filepath.Join(root, f.file))
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	replacement, overlay := filepath.Join(work, "fault.go"), filepath.Join(work, "overlay.json")
	write(t, replacement, text)
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {source: replacement}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, overlay, string(replace))
	run(t, "go", "build", "-overlay", overlay, "-ldflags", os.Getenv("HORUS_K8S_LDFLAGS"), "-o", dir+"/", root+"/cmd/...")
	return []string{"HORUS_K8S_BIN=" + dir}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
