// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// oneLine leaves of a stranger's text what a terminal shows and does not obey: no control characters, those of C1 included, nothing
// that turns the direction of writing, and no line that looks like ours.
var oneLine = runes.Map(func(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
})

// plain is a writer of many lines for which the same holds, whatever stands in what is printed.
func plain(out io.Writer) io.Writer {
	breaks := runes.Predicate(func(r rune) bool { return r == '\n' || r == '\t' })
	return transform.NewWriter(out, runes.If(breaks, nil, oneLine))
}
