// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"math"
	"testing"
	"time"
)

const uuid = "GPU-1"

func deviceWith(pods ...string) Device {
	out := Device{Node: "n", ID: uuid}
	for _, name := range pods {
		out.Tenants = append(out.Tenants, Tenant{Key: name, Pod: name, GPUs: 1})
	}
	return out
}

// bench looks every second at a device whose tenants make steps.
type bench struct {
	Recorder
	now    time.Time
	steps  map[string]Reading
	active float64
	shares map[string]float64
	ended  []Window
}

func newBench() *bench {
	return &bench{
		Recorder: Recorder{Shortest: Shortest{Window: 5 * time.Second, Steps: 10}, Gap: 2500 * time.Millisecond},
		now:      time.Now(), steps: map[string]Reading{}, active: 0.5,
	}
}

func (b *bench) run(seconds int, stepUs float64, pods ...string) {
	for range seconds {
		b.now = b.now.Add(time.Second)
		steps := map[string]Reading{}
		for _, name := range pods {
			old := b.steps[name]
			steps[name] = Reading{Steps: old.Steps + 1e6/stepUs, Seconds: old.Seconds + 1}
		}
		b.steps = steps
		b.look(b.now, pods)
	}
}

func (b *bench) look(now time.Time, pods []string) {
	seen := NoUsages()
	if b.active > 0 {
		seen.of[uuid] = usage{active: b.active, dram: 0.25, memMiB: 1000}
		seen.shares[uuid] = b.shares
	}
	b.ended = append(b.ended, b.Recorder.Look(now, []Device{deviceWith(pods...)}, seen, b.steps)...)
}

func TestAWindowTellsTheMeanTimeOfAStep(t *testing.T) {
	b := newBench()
	b.run(12, 50_000, "p", "q")
	if len(b.ended) != 1 {
		t.Fatalf("12 s, of which 5 are to warm up: expected 1 window of 5 s, found %d", len(b.ended))
	}
	w := b.ended[0]
	if w.Seconds != 5 || len(w.StepUs) != 2 || math.Abs(w.StepUs[0]-50_000) > 1 || w.Active != 0.5 || w.DRAM != 0.25 || w.MemMiB != 1000 {
		t.Errorf("expected steps of 50,000 us at half of the device, found %+v", w)
	}
}

func TestAWindowTellsHowBusyEachTenantIsWhereAllAreTold(t *testing.T) {
	for what, told := range map[string]map[string]float64{"both": {"p": 0.1, "q": 0.4}, "one": {"p": 0.1}, "none": nil} {
		b := newBench()
		b.shares = told
		b.run(12, 50_000, "p", "q")
		if w := b.ended[0]; what != "both" && w.Busy != nil || what == "both" && (len(w.Busy) != 2 || math.Abs(w.Busy[0]-0.1) > 1e-9 || math.Abs(w.Busy[1]-0.4) > 1e-9) {
			t.Errorf("%s told: found %v", what, w.Busy)
		}
	}
}

func TestNothingIsLearnedOfATimeInWhichSomethingHappened(t *testing.T) {
	for what, happens := range map[string]func(b *bench){
		"somebody came":           func(b *bench) { b.run(1, 50_000, "p", "q") },
		"the program began anew":  func(b *bench) { b.steps["p"] = Reading{} },
		"the exporter was silent": func(b *bench) { b.active = 0; b.run(1, 50_000, "p"); b.active = 0.5 },
		"the job was silent":      func(b *bench) { old := b.steps; b.steps = nil; b.look(b.now, []string{"p"}); b.steps = old },
		"the observer stood still": func(b *bench) {
			b.now = b.now.Add(time.Hour)
		},
		"no step was made for long": func(b *bench) {
			for range 4 {
				b.now = b.now.Add(time.Second)
				b.look(b.now, []string{"p"})
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBench()
			b.run(9, 50_000, "p") // in the midst of the first window
			happens(b)
			b.run(30, 50_000, "p")
			if len(b.ended) < 3 {
				t.Errorf("expected windows after it, found %d", len(b.ended))
			}
			for _, w := range b.ended {
				if len(w.Tenants) != 1 || w.Seconds > 10 || w.Active != 0.5 || math.Abs(w.StepUs[0]-50_000) > 1 {
					t.Errorf("expected windows of one tenant that does its steps, found %+v", w)
				}
			}
		})
	}
}

func TestAWindowWaitsForEnoughSteps(t *testing.T) {
	b := newBench()
	b.run(40, 1e6, "p") // a step a second
	if len(b.ended) < 2 || b.ended[0].Seconds < 10 {
		t.Errorf("expected windows of at least 10 steps, found %+v", b.ended)
	}
}
