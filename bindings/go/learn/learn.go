// SPDX-License-Identifier: Apache-2.0

// Package learn is the loop of a scheduler that learns from jobs that run: what they do alone on a GPU, and what they lose beside
// each other. Exporters of the GPUs and the jobs are scraped, a Recorder makes windows of what they tell, a Learner makes models.
package learn

import (
	"bytes"
	"math"
	"slices"
	"time"

	"libhorus.org/horus"
)

// Outcome of a window.
type Outcome string

// Outcomes.
const (
	Alone         Outcome = "alone"         // it is known better now what the job does alone
	Learned       Outcome = "learned"       // what each job lost beside the others is observed
	NoProfile     Outcome = "no-profile"    // a job names none, so that nothing is remembered by it
	SeveralGPUs   Outcome = "several-gpus"  // a step waits for the slowest of its GPUs, and that is not told
	AloneUnknown  Outcome = "alone-unknown" // a job was never seen alone on such a device
	Contradiction Outcome = "contradiction" // the step times and the exporter cannot both be right
	NoWitness     Outcome = "no-witness"    // no job keeps the device busy for long enough that the exporter could contradict it
	OutOfRange    Outcome = "out-of-range"  // the library does not take it
)

// Outcomes are all there are.
var Outcomes = []Outcome{Alone, Learned, NoProfile, SeveralGPUs, AloneUnknown, Contradiction, NoWitness, OutOfRange}

// Kind is a kind of job on a GPU type, as its profile spells it. Owner is whose profiles these are: a namespace, an account.
type Kind struct{ Owner, Profile, GPUType string }

// mostAlone windows count for what a job does alone; older ones fade.
const mostAlone = 20

// tolerance of what the step times imply of the share of time in which a device is busy, in parts of what the exporter tells: so
// much may caches and context switches change how long kernels take beside others. A choice.
const tolerance = 0.2

// slack is added to it: exporters round, and their looks are not ours.
const slack = 0.02

// unseen: the tolerance is so many times as large where the use of a job alone is known from its profile only.
const unseen = 2

// Learner is used by one caller at a time.
type Learner struct {
	catalogue *horus.Catalogue
	seen      *horus.Observations
	alone     map[Kind]*Observed
	loads     map[Kind]*load // of kinds that were never seen alone
	changed   map[Kind]bool  // since they were last asked for

	now, before Model
	model       *horus.Interference // as now says
	last        *horus.Interference // as before says; nil = there is none
	since       []scored            // what came after now was committed
	windows     int
}

// scored is an observation with how far off the two models were, as |ln(predicted/observed)|.
type scored struct {
	horus.SlowdownObservation
	now, before float64
}

// NewLearner goes on from a model, and from what is known of jobs alone.
func NewLearner(now, before Model, alone map[Kind]Observed) (*Learner, error) {
	l := &Learner{alone: map[Kind]*Observed{}, loads: map[Kind]*load{}, changed: map[Kind]bool{}}
	for kind, known := range alone {
		l.alone[kind] = &known
	}
	var err error
	if l.catalogue, err = horus.DefaultCatalogue(); err != nil {
		return nil, err
	}
	return l, l.become(now, before)
}

// Follow goes on from another model, which somebody put in the place of its own. False: it is its own. Another cluster's may have
// the same version.
func (l *Learner) Follow(now, before Model) (bool, error) {
	if now.Version == l.now.Version && bytes.Equal(now.Observations, l.now.Observations) {
		return false, nil
	}
	return true, l.become(now, before)
}

// become what two models say.
func (l *Learner) become(now, before Model) error {
	seen, err := observationsOf(now)
	if err != nil {
		return err
	}
	answers, err := l.modelOf(now)
	if err != nil {
		return err
	}
	l.now, l.before, l.seen, l.model, l.last, l.since, l.windows = now, before, seen, answers, nil, nil, now.Windows
	if now.Version > 0 {
		l.last, err = l.modelOf(before)
	}
	return err
}

func observationsOf(of Model) (*horus.Observations, error) {
	if len(of.Observations) == 0 {
		return horus.NewObservations(0)
	}
	return horus.RestoreObservations(of.Observations)
}

func (l *Learner) modelOf(of Model) (*horus.Interference, error) {
	if len(of.Observations) == 0 {
		return horus.NewInterference("")
	}
	return Corrected(l.catalogue, of.Observations)
}

// Take learns from a window, and tells what each tenant lost, where that was learned.
func (l *Learner) Take(w Window) (Outcome, []float64) {
	kinds, demands := make([]Kind, len(w.Tenants)), make([]horus.Demand, len(w.Tenants))
	for i, tenant := range w.Tenants {
		if tenant.GPUs != 1 {
			return SeveralGPUs, nil
		}
		if kinds[i], demands[i] = tenant.Kind, tenant.Demand; kinds[i].Profile == "" || demands[i].ProfileID == 0 {
			return NoProfile, nil
		}
	}
	if len(w.Tenants) == 1 {
		l.takeAlone(kinds[0], w)
		return Alone, nil
	}
	device := horus.SharedDevice{GPUType: w.GPUType, SharingMode: w.SharingMode}
	predicted, err := l.model.Slowdowns(l.catalogue, device, demands)
	if err != nil {
		return OutOfRange, nil
	}
	stepUs, busy, loads := make([]float64, len(kinds)), make([]float64, len(kinds)), make([]*load, len(kinds))
	implied, doubt, known := 0.0, tolerance*w.Active+slack, true
	for i, kind := range kinds {
		util := 0.0
		if alone := l.alone[kind]; alone != nil {
			near := false
			if stepUs[i], near = alone.stepAt(w.running(i)); !near {
				return AloneUnknown, nil
			}
			util = alone.GPUUtilPct
		} else if w.running(i) > 0 {
			return AloneUnknown, nil // its profile does not say at which load
		} else if loads[i] = l.loadOf(kind, demands[i]); loads[i] == nil {
			return AloneUnknown, nil
		} else {
			stepUs[i], util = loads[i].alone(demands[i])
			doubt = unseen*tolerance*w.Active + slack
			loads[i].windows++
			known = known && loads[i].windows > leastWindows
		}
		busy[i] = util / 100 * stepUs[i] / w.StepUs[i]
		implied += busy[i]
	}
	// Under MPS kernels of several tenants run at once, and the device is busy for less than their sum.
	shared := w.SharingMode == horus.MPS
	if w.Active > implied+doubt || (!shared && w.Active < min(implied, 1)-doubt) {
		return Contradiction, nil
	}
	for i := range w.Busy { // each by itself, where the exporter tells
		if !shared {
			weigh(loads[i:i+1], busy[i:i+1], w.Busy[i])
		}
	}
	if !shared && w.Busy == nil {
		weigh(loads, busy, w.Active)
	}
	if !known {
		return AloneUnknown, nil
	}
	slowdowns := make([]float64, len(kinds))
	for i := range kinds {
		slowdowns[i] = w.StepUs[i] / stepUs[i]
	}
	return l.takeShared(w, device, demands, predicted, slowdowns, func(i int) bool { return busy[i] > doubt }), slowdowns
}

// loadOf a kind that was never seen alone; nil where its profile says too little.
func (l *Learner) loadOf(kind Kind, demand horus.Demand) *load {
	if l.loads[kind] == nil && demand.StepTimeUs > 0 && demand.GPUUtilPct > 0 {
		l.loads[kind] = newLoad(demand)
	}
	return l.loads[kind]
}

func (l *Learner) takeAlone(kind Kind, w Window) {
	known, running := l.alone[kind], w.running(0)
	if known != nil && known.Running > 0 && running == 0 {
		return // asked for nothing at any look: no batch to compare by
	}
	if known == nil || known.Running == 0 && running > 0 {
		before := known
		known = &Observed{}
		if before != nil {
			known.MemMiB = before.MemMiB // what was seen at batches that nobody told is of no step, but of its memory
		}
		l.alone[kind] = known
	}
	known.Windows = min(known.Windows+1, mostAlone)
	share := 1 / float64(known.Windows)
	mean := func(of *float64, value float64) {
		if !math.IsNaN(value) {
			*of += (value - *of) * share
		}
	}
	off, late := running-known.Running, w.StepUs[0]-known.StepTimeUs
	known.RunningVar = (1 - share) * (known.RunningVar + share*off*off)
	known.RunningStepCov = (1 - share) * (known.RunningStepCov + share*off*late)
	mean(&known.Running, running)
	mean(&known.StepTimeUs, w.StepUs[0])
	mean(&known.GPUUtilPct, 100*min(w.Active, 1))
	mean(&known.MemBWUtilPct, 100*min(w.DRAM, 1))
	if w.MemMiB > known.MemMiB {
		known.MemMiB = w.MemMiB
	}
	l.changed[kind] = true
}

// takeShared adds what each tenant lost. One that says to keep the device busy for less than is in doubt has no witness: it teaches
// nothing, and its slowdown becomes NaN. So what the others say is wrong by a factor of two at most.
func (l *Learner) takeShared(w Window, device horus.SharedDevice, demands []horus.Demand, predicted []horus.Slowdown, slowdowns []float64, witnessed func(i int) bool) Outcome {
	earlier := predicted
	if l.last != nil {
		var err error
		if earlier, err = l.last.Slowdowns(l.catalogue, device, demands); err != nil {
			return OutOfRange
		}
	}
	before := len(l.since)
	for i := range demands {
		if !witnessed(i) {
			slowdowns[i] = math.NaN()
			continue
		}
		seen := horus.SlowdownObservation{
			Device: device, Job: demands[i], CoTenants: slices.Delete(slices.Clone(demands), i, i+1), Slowdown: slowdowns[i],
			Predicted: float64(predicted[i].Expected), PredictedUpper: float64(predicted[i].Upper),
		}
		if err := l.seen.AddSlowdown(l.catalogue, seen); err != nil {
			return OutOfRange
		}
		l.since = append(l.since, scored{
			seen, math.Abs(math.Log(float64(predicted[i].Expected) / slowdowns[i])), math.Abs(math.Log(float64(earlier[i].Expected) / slowdowns[i])),
		})
	}
	if len(l.since) == before {
		return NoWitness
	}
	if len(l.since) > mostSince {
		l.since = slices.Delete(l.since, 0, len(l.since)-mostSince)
	}
	l.windows++
	return Learned
}

// What a commit is judged by.
const (
	mostSince   = 4_096
	leastToTell = 20 // observations
	clearly     = 2  // standard errors of the mean difference
)

// worse says whether predictions became worse by the last commit, on what came after it.
func (l *Learner) worse() bool {
	if l.last == nil || len(l.since) < leastToTell {
		return false
	}
	n, sum, squares := float64(len(l.since)), 0.0, 0.0
	for _, one := range l.since {
		difference := one.now - one.before
		sum, squares = sum+difference, squares+difference*difference
	}
	mean := sum / n
	return mean > clearly*math.Sqrt(max(squares/n-mean*mean, 0)/n) && mean > 0
}

// Commit makes a new model of what was seen since the last, or takes the last one back where it made predictions worse. False:
// there is nothing new.
func (l *Learner) Commit(at time.Time) (Model, bool, error) {
	if l.worse() {
		return l.rollBack(at)
	}
	if len(l.since) == 0 {
		return Model{}, false, nil
	}
	snapshot, err := l.seen.Snapshot()
	if err != nil || bytes.Equal(snapshot, l.now.Observations) {
		return Model{}, false, err
	}
	next := Model{Version: l.now.Version + 1, At: at, Observations: snapshot, Windows: l.windows}
	return next, true, l.become(next, l.now)
}

// rollBack goes on from the model before, with what came since.
func (l *Learner) rollBack(at time.Time) (Model, bool, error) {
	seen, err := observationsOf(l.before)
	if err != nil {
		return Model{}, false, err
	}
	defer seen.Close()
	for _, one := range l.since {
		if err := seen.AddSlowdown(l.catalogue, one.SlowdownObservation); err != nil {
			return Model{}, false, err
		}
	}
	snapshot, err := seen.Snapshot()
	if err != nil {
		return Model{}, false, err
	}
	next := Model{
		Version: l.now.Version + 1, At: at, Observations: snapshot, RolledBack: l.now.Version,
		Windows: l.before.Windows + l.windows - l.now.Windows,
	}
	return next, true, l.become(next, l.before)
}

// Calibration of the predictions that were observed.
func (l *Learner) Calibration() horus.Calibration {
	calibration, _ := l.seen.Calibration()
	return calibration
}

// KnownAlone tells what is known of jobs alone and changed since it was asked last.
func (l *Learner) KnownAlone() map[Kind]Observed {
	out := map[Kind]Observed{}
	for kind := range l.changed {
		out[kind] = *l.alone[kind]
	}
	clear(l.changed)
	return out
}
