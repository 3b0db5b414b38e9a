// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"libhorus.org/slurm/internal/migrate"
)

// before is what is put behind the name of a file that was migrated.
const before = ".before-horus"

func runMigrate(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("horus-slurm migrate", flag.ContinueOnError)
	shards := flags.Int("shards", 8, "of a GPU: a job's share of its memory is a multiple of one")
	undo := flags.Bool("undo", false, "puts the files from before back")
	if err := parse(flags, args, 1); err != nil {
		return err
	}
	dir := flags.Arg(0)
	files := []string{filepath.Join(dir, "gres.conf"), filepath.Join(dir, "slurm.conf")}
	if *undo {
		for _, path := range files {
			if err := os.Rename(path+before, path); err != nil {
				return fmt.Errorf("expected what migrate had kept: %w", err)
			}
		}
		fmt.Println("the files from before are back: restart slurmctld and the slurmd of all nodes")
		return nil
	}
	if *shards < 2 || *shards > 1000 {
		return fmt.Errorf("--shards: expected 2 to 1000, found %d", *shards)
	}
	var old, made [2]string
	for i, path := range files {
		if _, err := os.Stat(path + before); err == nil {
			return fmt.Errorf("%s: expected a configuration that was not migrated, found one (migrate --undo)", path+before)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		old[i] = string(text)
	}
	var models []string
	var err error
	if made[0], err = migrate.Gres(old[0], *shards); err != nil {
		return err
	}
	if made[1], models, err = migrate.Slurm(old[1], *shards); err != nil {
		return err
	}
	for i, path := range files { // both are kept before one is written
		if err := os.WriteFile(path+before, []byte(old[i]), 0o644); err != nil {
			return errors.Join(err, os.Remove(path+before))
		}
	}
	for i, path := range files {
		if err := os.WriteFile(path, []byte(made[i]), 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("each GPU has a type of its own and %d shards; what was before is in *%s\n", *shards, before)
	fmt.Printf("in job_submit.lua: shards = %d, migrated = { %s = true }\n", *shards, strings.Join(models, " = true, "))
	fmt.Println("once no GPU job runs: restart slurmctld and the slurmd of all nodes; back by: horus-slurm migrate --undo", dir)
	return nil
}
