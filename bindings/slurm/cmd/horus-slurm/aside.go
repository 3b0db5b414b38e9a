// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"libhorus.org/slurm/internal/place"
	"libhorus.org/slurm/internal/slurm"
)

func runAside(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("horus-slurm aside", flag.ContinueOnError)
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	client := slurm.Client{}
	jobs, err := client.Jobs(ctx)
	if err != nil {
		return err
	}
	replaces, err := client.Replaces(ctx)
	if err != nil {
		return err
	}
	changes := place.Aside(jobs, time.Now().Unix(), replaces)
	answers, err := client.Tell(ctx, changes, time.Hour, "")
	if err != nil {
		return err
	}
	refused := 0
	for _, err := range answers {
		if err != nil {
			refused++
			fmt.Fprintln(os.Stderr, err)
		}
	}
	fmt.Printf("%d jobs left to Slurm\n", len(answers)-refused)
	if refused > 0 {
		return fmt.Errorf("%d jobs were refused: they start when their time has come", refused)
	}
	return nil
}
