// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"libhorus.org/learn"
)

func TestWhatIsKnownOfJobsAloneIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "learned")
	alone := map[learn.Kind]learn.Observed{
		{Owner: "physics", Profile: "1f", GPUType: "a100-40gb"}: {GPUType: "a100-40gb", Windows: 7, StepTimeUs: 20_000, GPUUtilPct: 60},
		{Owner: "physics", Profile: "2f", GPUType: "a100-40gb"}: {GPUType: "a100-40gb", Windows: 3, StepTimeUs: 10_000, GPUUtilPct: 50},
	}
	var kept state
	kept.put(alone)
	if err := kept.save(path); err != nil {
		t.Fatal(err)
	}
	o, err := New(Options{File: path, Every: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, found, changed := o.Learned(); !changed || !reflect.DeepEqual(found, alone) {
		t.Errorf("expected %v, found %v", alone, found)
	}
	if _, _, changed := o.Learned(); changed {
		t.Error("expected no news the second time, found some")
	}
}

func TestAFileThatHoldsSomethingElseIsPutAside(t *testing.T) {
	for _, text := range []string{"", "{", `{"now": {"Version": 1, "Observations": "AAAA"}}`} {
		path := filepath.Join(t.TempDir(), "learned")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Options{File: path, Every: time.Second}); err != nil {
			t.Errorf("%q: expected that learning begins anew, found %v", text, err)
		}
		if found, _ := os.ReadFile(path + unreadable); string(found) != text {
			t.Errorf("%q: expected it beside the file's name, found %q", text, found)
		}
	}
}
