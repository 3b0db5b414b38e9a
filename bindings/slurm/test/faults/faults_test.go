// SPDX-License-Identifier: Apache-2.0

// Package faults asks whether each end-to-end test can fail: it plants a fault, builds horus-slurm with it and runs the test.
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

const root = "../.." // bindings/slurm

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
			if !faulted[match[1]] {
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

// HORUS_SLURM_FAULTS=1 plants each fault in turn, a quarter of an hour on two cores.
func TestFaultsAreFound(t *testing.T) {
	if os.Getenv("HORUS_SLURM_FAULTS") == "" || os.Getenv("HORUS_SLURM_BIN") == "" {
		t.Skip("HORUS_SLURM_FAULTS is not set")
	}
	tests := filepath.Join(t.TempDir(), "e2e.test")
	run(t, "go", "test", "-c", "-o", tests, "../e2e")
	for i, f := range list {
		t.Run(fmt.Sprintf("%d %s %s", i, f.test, f.file), func(t *testing.T) {
			cmd := exec.Command(tests, "-test.run", "^"+f.test+"$", "-test.v", "-test.timeout", "10m")
			cmd.Dir = "../e2e"
			cmd.Env = append(append(os.Environ(), "HORUS_SLURM_WITHIN="+cmp.Or(f.within, "20s")), build(t, f)...)
			out, _ := cmd.CombinedOutput()
			failed := strings.Join(failure.FindAllString(string(out), -1), "\n")
			switch {
			case !strings.Contains(string(out), "--- FAIL: "+f.test):
				t.Errorf("the fault is not found: expected %s to fail\n%s", f.test, out)
			case !strings.Contains(failed, f.says):
				t.Errorf("expected an assertion that says %q, found %q\n%s", f.says, failed, out)
			default:
				t.Logf("found: %.200s", failed)
			}
		})
	}
}

// failure is what a test said at one of its own lines.
var failure = regexp.MustCompile(`(?m)^ +\w+_test\.go:\d+: .*`)

// build makes horus-slurm with the fault, and tells the environment of a test that uses it.
func build(t *testing.T, f fault) []string {
	t.Helper()
	work, text := t.TempDir(), planted(t, f)
	replacement := filepath.Join(work, filepath.Base(f.file))
	write(t, replacement, text)
	switch filepath.Ext(f.file) {
	case ".lua":
		return []string{"HORUS_SLURM_SUBMIT=" + replacement}
	case ".c":
		run(t, root+"/spank/build", work+"/spank_horus.so", replacement)
		return []string{"HORUS_SLURM_SPANK=" + work + "/spank_horus.so"}
	case "":
		return []string{"HORUS_SLURM_WRAPPER=" + replacement}
	}
	source, err := filepath.Abs(filepath.Join(root, f.file))
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(work, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {source: replacement}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, overlay, string(replace))
	run(t, "go", "build", "-overlay", overlay, "-o", work+"/", root+"/cmd/...")
	return []string{"HORUS_SLURM_BIN=" + work}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
