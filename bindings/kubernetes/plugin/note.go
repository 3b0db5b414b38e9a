// SPDX-License-Identifier: Apache-2.0

package plugin

import "strings"

// mostNote is what the API server takes as the note of an event, in bytes (NoteLengthLimit of its validation, less the dots);
// it drops an event with a longer one.
const mostNote = 1024 - 4

// note cuts a sentence that quotes what a stranger wrote.
func note(text string) string {
	if len(text) <= mostNote {
		return text
	}
	return strings.ToValidUTF8(text[:mostNote], "") + "…"
}
