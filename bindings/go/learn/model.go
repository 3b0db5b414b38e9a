// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"time"

	"libhorus.org/horus"
)

// Model is what was learned: a snapshot of observations that correct the library's own model.
type Model struct {
	Version      int // 0 = nothing was learned
	At           time.Time
	Observations []byte
	Windows      int // of shared devices that it rests on
	RolledBack   int // the version that this one takes back; 0 = none
}

// Check says whether the library can read it.
func (m Model) Check() error {
	seen, err := horus.RestoreObservations(m.Observations)
	if err != nil {
		return err
	}
	return seen.Close()
}

// Placer by the built-in model, corrected by a snapshot of observations; none = as it is.
func Placer(catalogue *horus.Catalogue, options horus.PlacerOptions, observations []byte) (*horus.Placer, error) {
	if len(observations) > 0 {
		model, err := Corrected(catalogue, observations)
		if err != nil {
			return nil, err
		}
		defer model.Close()
		options.Interference = model
	}
	return horus.NewPlacer(options)
}

// Corrected is the built-in model, corrected by a snapshot of observations.
func Corrected(catalogue *horus.Catalogue, observations []byte) (*horus.Interference, error) {
	seen, err := horus.RestoreObservations(observations)
	if err != nil {
		return nil, err
	}
	defer seen.Close()
	base, err := horus.NewInterference("")
	if err != nil {
		return nil, err
	}
	defer base.Close()
	return base.Commit(catalogue, seen)
}
