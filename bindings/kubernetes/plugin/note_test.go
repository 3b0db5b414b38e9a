// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestANoteIsNeverLongerThanTheAPIServerTakes(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("p", 1024), strings.Repeat("é", 200_000), "x" + strings.Repeat("é", 600)} {
		cut := note(text)
		if len(cut) >= 1024 || !utf8.ValidString(cut) || (len(text) < 1000 && cut != text) {
			t.Errorf("%d bytes: expected less than 1024 valid ones, found %d", len(text), len(cut))
		}
	}
}
