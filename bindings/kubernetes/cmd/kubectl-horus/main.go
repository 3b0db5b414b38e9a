// SPDX-License-Identifier: Apache-2.0

// Command kubectl-horus is a plugin of kubectl: why a pod is where it is, and profiles of models.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
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
