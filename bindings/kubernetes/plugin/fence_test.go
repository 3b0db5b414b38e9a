// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatWasChosenBeforeAStandstillIsVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pulse
		began := p.beat()
		time.Sleep(5 * time.Second) // nothing beats: the process stands still
		if !p.void(began) {
			t.Error("chosen 5 s ago, before a standstill: expected it to be void")
		}
		if !p.void(time.Now()) {
			t.Error("chosen at the very end of a standstill: expected it to be void")
		}
		time.Sleep(catchingUp)
		if p.void(p.beat()) {
			t.Error("chosen when the process knew again what is: expected it to count")
		}
	})
}

func TestAChoiceOfAProcessThatRunsCountsHoweverLongItsBindingTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pulse
		ctx, cancel := context.WithCancel(t.Context())
		began := p.beat()
		go p.run(ctx)
		time.Sleep(10 * time.Minute)
		if p.void(began) {
			t.Error("expected it to count, found it void")
		}
		cancel()
	})
}
