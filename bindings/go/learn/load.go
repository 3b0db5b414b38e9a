// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"math"

	"libhorus.org/horus"
)

// load of a kind that was never seen alone: by how much the time of a step in which it keeps the GPU busy differs from what its
// profile says. The exporter tells it: a device is busy for the sum of what its tenants' steps take of it, whoever waits for whom.
// What the model expects plays no part, so that nothing that it says confirms itself.
type load struct {
	beyond   float64 // ln(busy time of a step / what its profile says)
	variance float64 // of that
	ofStep   float64 // share of `beyond` that the step time is off by; the rest is the use of the GPU
	windows  int
}

const (
	leastWindows = 3               // after which a load counts
	mostBeyond   = 0.5             // ln: a profile may be off by a factor of 1.6; beyond that its pods teach nothing
	leastKnown   = 0.05 * 0.05     // variance: so well is a load known at best, since jobs change
	unsaid       = 0.2             // standard deviation of ln of a figure of which a profile states no bound: a choice
	ninetieth    = 1.2815515655446 // of a Gaussian, in standard deviations: a profile's bounds hold for nine of ten
	witness      = tolerance / 2   // standard deviation of ln of what the exporter tells
	saturated    = 1 - slack       // a device that is busy all the time says no more than that
)

func newLoad(demand horus.Demand) *load {
	step := deviation(float64(demand.StepTimeUs), float64(demand.StepTimeUsUpper))
	use := deviation(float64(demand.GPUUtilPct), float64(demand.GPUUtilPctUpper))
	return &load{variance: step*step + use*use, ofStep: step * step / (step*step + use*use)}
}

func deviation(expected, upper float64) float64 {
	if upper <= expected {
		return unsaid
	}
	return math.Log(upper/expected) / ninetieth
}

// alone tells the step time and the use of the GPU that the kind is believed to have by itself.
func (l *load) alone(demand horus.Demand) (stepUs, utilPct float64) {
	busy := float64(demand.StepTimeUs) * float64(demand.GPUUtilPct) * math.Exp(l.beyond)
	utilPct = min(float64(demand.GPUUtilPct)*math.Exp((1-l.ofStep)*l.beyond), 100)
	return busy / utilPct, utilPct
}

// weigh what the exporter tells of a device against what its tenants' loads imply: busy[i] is the share of the time that the load
// of tenant i implies, nil a tenant that was seen alone. A Kalman filter without the covariances.
func weigh(loads []*load, busy []float64, active float64) {
	implied := 0.0
	for _, share := range busy {
		implied += share
	}
	if active >= saturated && implied >= active {
		return
	}
	off, variance := math.Log(active/implied), witness*witness
	for i, l := range loads {
		if l != nil {
			variance += l.variance * busy[i] / implied * busy[i] / implied
		}
	}
	for i, l := range loads {
		if l != nil {
			share := busy[i] / implied
			gain := l.variance * share / variance
			l.beyond = min(max(l.beyond+gain*off, -mostBeyond), mostBeyond)
			l.variance = max(l.variance*(1-gain*share), leastKnown)
		}
	}
}
