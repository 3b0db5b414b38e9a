// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"math"
	"testing"
)

// unseen pairs of jobs, none of which ever has a GPU to itself, and what they lose.
var pairs = []map[string]float64{
	{"train": 1.9, "serve": 1.4}, {"train": 1.5, "quiet": 1.6}, {"serve": 1.2, "quiet": 1.1},
}

// neverAlone learns from pairs whose steps alone take `off` times as long as their profiles say, and tells what it believes that
// they lose.
func neverAlone(t *testing.T, off map[string]float64) (*Learner, map[string][]float64) {
	t.Helper()
	l, err := NewLearner(Model{}, Model{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	believed := map[string][]float64{}
	for range 40 {
		clear(believed)
		for _, truth := range pairs {
			w := windowOf(truth, nil)
			for i, tenant := range w.Tenants {
				if by := off[tenant.Key]; by != 0 {
					w.StepUs[i] *= by
				}
			}
			if outcome, slowdowns := l.Take(w); outcome == Learned {
				for i, tenant := range w.Tenants {
					believed[tenant.Key] = append(believed[tenant.Key], slowdowns[i]/truth[tenant.Key])
				}
			}
		}
	}
	return l, believed
}

func TestWhatTheModelExpectsOfKindsNeverSeenAloneConfirmsNothing(t *testing.T) {
	l, _ := neverAlone(t, nil)
	before := l.predict(t, "train", "serve")
	commit(t, l)
	after := l.predict(t, "train", "serve")
	if math.Abs(before[0]-1.9) < 0.2 {
		t.Fatalf("expected a model that does not know it yet, found %v", before)
	}
	if math.Abs(after[0]-1.9) > 0.1 || math.Abs(after[1]-1.4) > 0.1 {
		t.Errorf("profiles say the truth: expected 1.9 and 1.4 to be learned, found %v, before %v", after, before)
	}
}

// The exporter says that train keeps the device busy for longer than its profile tells. Without another word half of that may be
// its step time, and half its use of the GPU.
func TestTheExporterTellsHowFarAProfileIsOff(t *testing.T) {
	const off = 1.4
	l, believed := neverAlone(t, map[string]float64{"train": off})
	for kind, load := range l.loads {
		want := 0.0
		if kind.Profile == "train" {
			want = math.Log(off)
		}
		if math.Abs(load.beyond-want) > 0.07 {
			t.Errorf("%s: expected a load off by %.2f, found %.2f", kind.Profile, want, load.beyond)
		}
	}
	for name, want := range map[string]float64{"train": math.Sqrt(off), "serve": 1, "quiet": 1} {
		for _, found := range believed[name] {
			if math.Abs(found/want-1) > 0.07 {
				t.Errorf("%s: expected to be believed %.2f times its slowdown, found %.2f", name, want, found)
			}
		}
		if len(believed[name]) == 0 {
			t.Errorf("%s: expected that it is learned of", name)
		}
	}
}

// Together the two keep the device as busy as their profiles say, and each is off: only who tells of each pod can know.
func TestFiguresOfEachPodTellWhoseProfileIsOff(t *testing.T) {
	const off = 1.25
	truth := map[string]float64{"train": 1.5, "serve": 1.5}
	train, serve := jobs["train"].util/1.5, jobs["serve"].util/1.5
	for _, each := range []bool{true, false} {
		l, err := NewLearner(Model{}, Model{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			w := windowOf(truth, nil) // serve, train
			w.StepUs[1] *= off
			w.StepUs[0] /= 1 + (1-1/off)*train/serve
			if each {
				w.Busy = []float64{serve, train}
			}
			l.Take(w)
		}
		for kind, load := range l.loads {
			want := math.Log(off)
			if kind.Profile == "serve" {
				want = -math.Log(1 + (1-1/off)*train/serve)
			}
			if near := math.Abs(load.beyond-want) < 0.05; near != each {
				t.Errorf("%s: told of each pod: %v: expected a load off by %.2f, found %.2f", kind.Profile, each, want, load.beyond)
			}
		}
	}
}

func TestAProfileThatIsFarOffTeachesNothing(t *testing.T) {
	if _, believed := neverAlone(t, map[string]float64{"train": 4, "serve": 4, "quiet": 4}); len(believed) > 0 {
		t.Errorf("steps four times as long as the profiles say, on a device as busy as they say: expected nothing learned, found %v", believed)
	}
}
