// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"testing"

	"libhorus.org/slurm/internal/place"
	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/internal/words"
)

func TestAPlaceCountsOnceSlurmTookIt(t *testing.T) {
	change := func(verbs ...words.Verb) (out slurm.Change) {
		for _, verb := range verbs {
			out.Steps = append(out.Steps, slurm.Step{{Field: "AdminComment", Value: words.Record{Verb: verb}.String()}})
		}
		return out
	}
	result := place.Result{Pinned: 5, Changes: []slurm.Change{
		change(words.Waits, words.Placed), change(words.Placed), change(words.Left), change(words.Waits), change(words.Placed),
	}}
	placed, left, refused := newMetrics().told(result, []error{nil, errors.New("no"), nil, nil}) // the fifth was not told
	if placed != 1 || left != 1 || refused != 1 {
		t.Errorf("expected one placed, left and refused each, found %d, %d and %d", placed, left, refused)
	}
}
