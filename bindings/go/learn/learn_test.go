// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"math"
	"reflect"
	"testing"
	"time"

	"libhorus.org/horus"
)

// jobs by the name of their profile: what each does alone on an A100.
type alone struct {
	util   float64 // 0 to 1
	stepUs float64
}

var jobs = map[string]alone{"train": {0.6, 100_000}, "serve": {0.5, 20_000}, "small": {0.05, 10_000}, "quiet": {0.3, 40_000}, "tiny": {0.03, 5_000}}

func tenantOf(profile string) Tenant {
	id := uint64(0)
	for _, letter := range profile {
		id = id*31 + uint64(letter)
	}
	demand := horus.Demand{ProfileID: id, GPUUtilPct: float32(100 * jobs[profile].util), MemMiB: 4_000, StepTimeUs: int64(jobs[profile].stepUs)}
	return Tenant{Key: profile, Kind: Kind{"a", profile, "a100-40gb"}, Demand: demand, GPUs: 1}
}

// windowOf jobs that are slowed; `claimed` is what they say, and the exporter sees the truth.
func windowOf(truth, claimed map[string]float64) Window {
	out := Window{Seconds: 60, MemMiB: 5_000, DRAM: 0.2}
	out.GPUType, out.SharingMode = "NVIDIA A100-SXM4-40GB", horus.TimeSlice
	for _, profile := range []string{"quiet", "serve", "small", "tiny", "train"} {
		if slowdown, on := truth[profile]; on {
			if claimed[profile] != 0 {
				slowdown = claimed[profile]
			}
			out.Tenants = append(out.Tenants, tenantOf(profile))
			out.StepUs = append(out.StepUs, jobs[profile].stepUs*slowdown)
			out.Active += jobs[profile].util / truth[profile]
		}
	}
	return out
}

func learner(t *testing.T) *Learner {
	t.Helper()
	l, err := NewLearner(Model{}, Model{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for profile := range jobs {
		for range trustedWindows {
			take(t, l, Alone, map[string]float64{profile: 1}, nil)
		}
	}
	return l
}

const trustedWindows = 3

func take(t *testing.T, l *Learner, expected Outcome, truth, claimed map[string]float64) {
	t.Helper()
	if found, _ := l.Take(windowOf(truth, claimed)); found != expected {
		t.Fatalf("expected %s, found %s", expected, found)
	}
}

func commit(t *testing.T, l *Learner) Model {
	t.Helper()
	made, some, err := l.Commit(time.Now())
	if err != nil || !some {
		t.Fatalf("expected a model, found %v, %v", some, err)
	}
	return made
}

func (l *Learner) predict(t *testing.T, profiles ...string) []float64 {
	t.Helper()
	var demands []horus.Demand
	for _, profile := range profiles {
		demands = append(demands, tenantOf(profile).Demand)
	}
	found, err := l.model.Slowdowns(l.catalogue, horus.SharedDevice{GPUType: "a100-40gb"}, demands)
	if err != nil {
		t.Fatal(err)
	}
	var out []float64
	for _, one := range found {
		out = append(out, float64(one.Expected))
	}
	return out
}

func TestWhatPodsLoseBesideEachOtherIsLearned(t *testing.T) {
	l := learner(t)
	truth := map[string]float64{"train": 1.9, "serve": 1.4}
	before := l.predict(t, "train", "serve")
	for range 5 {
		take(t, l, Learned, truth, nil)
	}
	made := commit(t, l)
	after := l.predict(t, "train", "serve")
	if math.Abs(after[0]-1.9) > 0.1 || math.Abs(after[1]-1.4) > 0.1 {
		t.Errorf("seen 5 times to lose 1.9 and 1.4: expected about that, found %v, before %v", after, before)
	}
	if made.Version != 1 || made.Windows != 5 {
		t.Errorf("expected version 1 of 5 windows, found %+v", made)
	}
	again, err := NewLearner(made, Model{}, nil) // another process
	if err != nil {
		t.Fatal(err)
	}
	if restored := again.predict(t, "train", "serve"); math.Abs(restored[0]-after[0]) > 1e-4 {
		t.Errorf("expected the same answers after a restart, found %v and %v", restored, after)
	}
	if _, some, err := again.Commit(time.Now()); some || err != nil {
		t.Errorf("nothing came: expected no model, found %v, %v", some, err)
	}
	other := learner(t)
	take(t, other, Learned, truth, nil)
	theirs := commit(t, other)
	if followed, err := again.Follow(theirs, Model{}); !followed || err != nil {
		t.Errorf("another cluster's model of the same version: expected it to be followed, found %v, %v", followed, err)
	}
	if followed, err := again.Follow(theirs, Model{}); followed || err != nil {
		t.Errorf("its own model: expected nothing to be done, found %v, %v", followed, err)
	}
}

// An engine's tokens take longer with more requests in its batch: that is no interference.
func TestEnginesAreComparedAtEqualBatches(t *testing.T) {
	token := func(running float64) float64 { return jobs["serve"].stepUs * (0.7 + 0.3*running/8) }
	window := func(running float64, truth map[string]float64) Window {
		w := windowOf(truth, nil)
		w.Running = make([]float64, len(w.Tenants))
		for i, tenant := range w.Tenants {
			if tenant.Key == "serve" {
				w.Running[i], w.StepUs[i] = running, token(running)*truth["serve"]
			}
		}
		return w
	}
	shared := map[string]float64{"train": 1.9, "serve": 1.4}
	for _, test := range []struct {
		alone   []float64 // requests in the batch in each window alone
		running float64   // beside the trainer
		expect  Outcome
	}{
		{nil, 8, AloneUnknown},
		{[]float64{8, 8, 8}, 8.5, Learned},
		{[]float64{8, 8, 8}, 12, AloneUnknown},
		{[]float64{4, 8, 12, 8}, 11, Learned},
		{[]float64{4, 8, 12, 8}, 30, AloneUnknown},
		{[]float64{0, 0, 8, 8, 8}, 8, Learned},    // told from the third window on
		{[]float64{8, 0, 8, 0, 8, 0}, 8, Learned}, // asked for nothing at some looks
		{[]float64{2, 20, 2, 20}, 0, AloneUnknown},
	} {
		l, err := NewLearner(Model{}, Model{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range trustedWindows {
			take(t, l, Alone, map[string]float64{"train": 1}, nil)
		}
		for _, running := range test.alone {
			l.Take(window(running, map[string]float64{"serve": 1}))
		}
		found, lost := l.Take(window(test.running, shared))
		if found != test.expect || found == Learned && math.Abs(lost[0]-shared["serve"]) > 0.05 {
			t.Errorf("%+v: found %s, lost %v", test, found, lost)
		}
	}
}

func TestWhoWasNeverSeenAloneTeachesNothing(t *testing.T) {
	l, err := NewLearner(Model{}, Model{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	take(t, l, AloneUnknown, map[string]float64{"train": 1.5, "serve": 1.5}, nil)
	w := windowOf(map[string]float64{"train": 1}, nil)
	w.Tenants[0].GPUs = 2
	if found, _ := l.Take(w); found != SeveralGPUs {
		t.Errorf("expected %s, found %s", SeveralGPUs, found)
	}
	w.Tenants[0].GPUs, w.Tenants[0].Kind = 1, Kind{}
	if found, _ := l.Take(w); found != NoProfile {
		t.Errorf("expected %s, found %s", NoProfile, found)
	}
}

func TestStepTimesThatTheExporterContradictsTeachNothing(t *testing.T) {
	l := learner(t)
	for slowdown := 1.2; slowdown < 5; slowdown++ {
		truth := map[string]float64{"train": slowdown, "serve": slowdown}
		take(t, l, Contradiction, truth, map[string]float64{"train": 5 * slowdown}) // as if it were harmed
	}
	take(t, l, Contradiction, map[string]float64{"train": 1.9, "serve": 1.9}, map[string]float64{"train": 1.1, "serve": 1.1}) // as if nobody were
	if _, some, _ := l.Commit(time.Now()); some {
		t.Error("expected nothing to commit")
	}
}

// Little of the device's time goes to a small job, so that the exporter cannot contradict what it says.
func TestALiarMovesNothingThatIsBelievedOfOthers(t *testing.T) {
	l := learner(t)
	honest := map[string]float64{"train": 1.6, "serve": 1.5}
	for range 5 {
		take(t, l, Learned, honest, nil)
	}
	commit(t, l)
	pairs := [][]string{{"train", "serve"}, {"quiet", "serve"}, {"quiet", "train"}}
	believed := func() (out [][]float64) {
		for _, pair := range pairs {
			out = append(out, l.predict(t, pair...))
		}
		return out
	}
	// What serve says of itself beside it is witnessed, and is learned with a liar as without.
	beside := map[string]float64{"small": 1.1, "serve": 1.05}
	for range 50 {
		take(t, l, Learned, beside, map[string]float64{"small": 30})
	}
	commit(t, l)
	lied := believed()
	l = learner(t)
	for range 5 {
		take(t, l, Learned, honest, nil)
	}
	commit(t, l)
	for range 50 {
		take(t, l, Learned, beside, nil)
	}
	commit(t, l)
	if truth := believed(); !reflect.DeepEqual(lied, truth) {
		t.Errorf("expected %v as without the lie, found %v", truth, lied)
	}
	take(t, l, NoWitness, map[string]float64{"small": 1.1, "tiny": 1}, map[string]float64{"small": 3})
}

// Who keeps the device busy can say what is off by a factor of two at most.
func TestALieThatTheExporterDoesNotContradictIsAHalfTruth(t *testing.T) {
	for _, truth := range []map[string]float64{{"train": 1.3, "serve": 1.2}, {"train": 2, "quiet": 1.5}, {"serve": 1.1, "quiet": 1.1}} {
		for liar := range truth {
			for factor := 1.0; factor < 100; factor *= 1.02 {
				l := learner(t)
				w := windowOf(truth, map[string]float64{liar: truth[liar] * factor})
				outcome, slowdowns := l.Take(w)
				for i, tenant := range w.Tenants {
					if name := tenant.Key; outcome == Learned && slowdowns[i]/truth[name] > 2.1 {
						t.Fatalf("%v, %s lies by %.1f: expected that it is not believed, found %v", truth, name, factor, slowdowns)
					}
				}
			}
		}
	}
}

func TestACommitThatMadePredictionsWorseIsTakenBack(t *testing.T) {
	l := learner(t)
	for range 60 {
		take(t, l, Learned, map[string]float64{"train": 3, "serve": 3}, nil)
	}
	bad, was := commit(t, l), l.predict(t, "train", "serve")
	truth := map[string]float64{"train": 1.35, "serve": 1.3}
	for range 15 {
		take(t, l, Learned, truth, nil)
	}
	back := commit(t, l)
	found := l.predict(t, "train", "serve")
	if back.RolledBack != bad.Version || back.Version != 2 || back.Windows != 15 {
		t.Errorf("expected version 2 of 15 windows to take back 1, found version %d of %d, that takes back %d", back.Version, back.Windows, back.RolledBack)
	}
	if was[0] < 2.5 || math.Abs(found[0]-1.35) > 0.1 {
		t.Errorf("expected train at 1.35, found %v, before %v", found, was)
	}
	take(t, l, Learned, truth, nil)
	if next := commit(t, l); next.RolledBack != 0 || next.Version != 3 || next.Windows != 16 {
		t.Errorf("expected it to go on with version 3 of 16 windows, found %+v", next)
	}
}
