// SPDX-License-Identifier: Apache-2.0

// Command kubectl-horus is a plugin of kubectl: why a pod is where it is, and profiles of models.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

func main() {
	root := rootCommand(os.Stdout, os.Stderr)
	if err := root.ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(root.ErrOrStderr(), "kubectl horus:", err)
		os.Exit(1)
	}
}

func rootCommand(out, problems io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl-horus", Short: "Placement of pods with GPUs", SilenceUsage: true, SilenceErrors: true,
	}
	root.SetOut(plain(out))
	root.SetErr(plain(problems))
	root.AddCommand(explainCommand(), profileCommand())
	return root
}

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
