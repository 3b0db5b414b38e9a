// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"math"

	"libhorus.org/horus"
)

// Observed is what jobs of a kind were seen to do alone on a GPU type.
type Observed struct {
	GPUType      string  `json:"gpuType"`
	Windows      int     `json:"windows"` // that it rests on, up to 20; older ones fade
	StepTimeUs   float64 `json:"stepTimeUs"`
	GPUUtilPct   float64 `json:"gpuUtilPct"`
	MemBWUtilPct float64 `json:"memBwUtilPct"` // 0 = not told
	MemMiB       float64 `json:"memMiB"`       // peak; 0 = not told

	// Of an engine: the requests in its batch, their variance over the windows, and its covariance with the time of a step.
	Running        float64 `json:"running,omitempty"`
	RunningVar     float64 `json:"runningVar,omitempty"`
	RunningStepCov float64 `json:"runningStepCov,omitempty"`
}

// Engines' steps are compared at equal batches. A choice: a tenth more requests change a token's time by less than its noise.
const alikeRunning = 0.1

// stepAt tells the time of a step alone with so many requests in the batch, by a line through what was seen. False: nothing was seen
// near that.
func (o Observed) stepAt(running float64) (us float64, known bool) {
	if running == 0 && o.Running > 0 {
		return 0, false // an engine that was asked for nothing at any look
	}
	off, seen := running-o.Running, alikeRunning*o.Running
	if o.Running == 0 || math.Abs(off) <= seen {
		return o.StepTimeUs, running == 0 || o.Running > 0 // not of windows in which its batch was not told
	}
	spread := math.Sqrt(o.RunningVar)
	if o.Windows < trusted || spread < seen || math.Abs(off) > 2*spread {
		return 0, false
	}
	return o.StepTimeUs + max(o.RunningStepCov/o.RunningVar, 0)*off, true
}

// trusted windows: what was seen so often stands in place of what was stated or predicted.
const trusted = 3

// Put what was seen into a demand, once it was seen often enough. Memory grows alone: what a job may take is not known from what
// it took.
func (o Observed) Put(d *horus.Demand) {
	if o.Windows < trusted || !(o.StepTimeUs >= 1) || !(o.GPUUtilPct > 0 && o.GPUUtilPct <= 100) {
		return
	}
	d.Flags, d.Distance = horus.Measured, 0
	d.StepTimeUs, d.StepTimeUsUpper = int64(o.StepTimeUs), 0
	d.GPUUtilPct, d.GPUUtilPctUpper = float32(o.GPUUtilPct), 0
	if o.MemBWUtilPct > 0 && o.MemBWUtilPct <= 100 {
		d.MemBWUtilPct, d.MemBWUtilPctUpper = float32(o.MemBWUtilPct), 0
	}
	if peak := int64(math.Ceil(o.MemMiB)); peak > d.MemMiB && peak < horus.MemMiBUnbounded {
		d.MemMiB = peak
		if d.MemMiBUpper != 0 {
			d.MemMiBUpper = max(d.MemMiBUpper, peak)
		}
	}
}
