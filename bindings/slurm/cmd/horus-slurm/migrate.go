// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"libhorus.org/slurm/internal/file"
	"libhorus.org/slurm/internal/migrate"
	"libhorus.org/slurm/internal/slurm"
)

// What is put behind the names of files that are kept: as they were, and as they were made of those.
const before, after = ".before-horus", ".after-horus"

func runMigrate(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("horus-slurm migrate", flag.ContinueOnError)
	shards := flags.Int("shards", 8, "of a GPU: a job's share of its memory is a multiple of one")
	undo := flags.Bool("undo", false, "takes back what was changed; what was edited since is kept")
	found := flags.String("found", "", "`FILE` of what slurmd -G printed on nodes with AutoDetect, by pdsh or clush")
	careless := flags.Bool("whole-may-share", false, carelessText)
	if err := parse(flags, args, 1); err != nil {
		return err
	}
	dir := flags.Arg(0)
	files := []string{filepath.Join(dir, "gres.conf"), filepath.Join(dir, "slurm.conf")}
	for i, path := range files {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		files[i] = real
	}
	if *undo {
		return undoMigrate(ctx, files)
	}
	if *shards < 2 || *shards > 1000 {
		return fmt.Errorf("--shards: expected 2 to 1000, found %d", *shards)
	}
	options := migrate.Options{Shards: *shards}
	if *found != "" {
		text, err := os.ReadFile(*found)
		if err != nil {
			return err
		}
		options.Found = string(text)
	}
	version := controllerOf(ctx, files[1])
	if newer, err := slurm.ReplacesOf(version); err == nil && !newer && !*careless {
		return fmt.Errorf("Slurm %s: %s", version, carelessWhy)
	}
	old, err := unmigrated(files)
	if err != nil {
		return err
	}
	made, err := migrate.Files(old[0], old[1], options)
	if err != nil {
		return err
	}
	if err := keepAndReplace(files, old, []string{made.Gres, made.Slurm}); err != nil {
		return err
	}
	tellMigrated(dir, *shards, made)
	if version == "" {
		fmt.Println("Slurm before 24.11 starts jobs of whole GPUs beside jobs that share one, once another of those has ended: keep both on nodes of their own there")
	}
	return nil
}

// What --whole-may-share is for.
const (
	carelessText = "with Slurm before 24.11, which starts jobs of whole GPUs on GPUs that jobs still share"
	carelessWhy  = "expected Slurm 24.11 or newer: before, once one of the jobs that share a GPU ends, it starts jobs of whole GPUs beside the others. " +
		"Where jobs of whole GPUs do not run on nodes that are shared, or may, say --whole-may-share"
)

// controllerOf is the version of the controller that runs by a slurm.conf; "" where none does.
func controllerOf(ctx context.Context, conf string) string {
	ctx, done := context.WithTimeout(ctx, 5*time.Second)
	defer done()
	out, _ := exec.CommandContext(ctx, "scontrol", "show", "config").Output()
	told := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(SLURM_CONF|SLURM_VERSION) *= (\S+)`).FindAllStringSubmatch(string(out), -1) {
		told[m[1]] = m[2]
	}
	if real, err := filepath.EvalSymlinks(told["SLURM_CONF"]); err != nil || real != conf {
		return ""
	}
	return told["SLURM_VERSION"]
}

func tellMigrated(dir string, shards int, made migrate.Result) {
	fmt.Printf("each GPU has a type of its own and %d shards; what was before is in *%s\n", shards, before)
	types := "" // in quotes: a type may hold what no name of Lua does
	for _, model := range made.Models {
		types += fmt.Sprintf("[%q] = true, ", model)
	}
	fmt.Printf("in job_submit.lua: shards = %d, migrated = { %s}\n", shards, types)
	for _, setting := range made.ByHand {
		fmt.Println("change by hand, no job has GPUs of that type any more:", setting)
	}
	fmt.Println("once no GPU job runs: restart slurmctld and the slurmd of all nodes; back by: horus-slurm migrate --undo", dir)
}

// unmigrated reads files, of which none may be migrated. One that is kept and was not replaced was left by a migration that failed.
func unmigrated(files []string) ([]string, error) {
	var out []string
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if kept, err := os.ReadFile(path + before); err == nil && string(kept) != string(text) {
			return nil, fmt.Errorf("%s: expected a configuration that was not migrated, found one (migrate --undo)", path+before)
		}
		out = append(out, string(text))
	}
	return out, nil
}

// keepAndReplace both files or neither.
func keepAndReplace(files, old, made []string) error {
	for i, path := range files { // both are kept before one is written
		if err := errors.Join(file.Replace(path+before, old[i]), file.Replace(path+after, made[i])); err != nil {
			return errors.Join(err, forget(files))
		}
	}
	if err := replaceBoth(files, old, made); err != nil {
		return errors.Join(err, forget(files))
	}
	return nil
}

func replaceBoth(files, old, made []string) error {
	for i, path := range files {
		if err := file.Replace(path, made[i]); err != nil {
			for j := range i {
				err = errors.Join(err, file.Replace(files[j], old[j]))
			}
			return err
		}
	}
	return nil
}

// forget what is kept.
func forget(files []string) error {
	var all error
	for _, path := range files {
		for _, kept := range []string{before, after} {
			if err := os.Remove(path + kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
				all = errors.Join(all, err)
			}
		}
	}
	return all
}

// undoMigrate takes back what migrate changed in both files, or in neither. What was edited since is kept where diff3 can tell
// it from what migrate changed.
func undoMigrate(ctx context.Context, files []string) error {
	var old, back []string
	for _, path := range files {
		var text [3]string
		for i, name := range []string{path, path + after, path + before} {
			read, err := os.ReadFile(name)
			if err != nil {
				return fmt.Errorf("expected what migrate had kept: %w; nothing was changed", err)
			}
			text[i] = string(read)
		}
		old, back = append(old, text[0]), append(back, text[2])
		if text[0] == text[1] || text[0] == text[2] {
			continue
		}
		merged, err := exec.CommandContext(ctx, "diff3", "-m", "-E", path, path+after, path+before).Output()
		if err != nil {
			return fmt.Errorf("%s: expected edits beside what migrate changed, found some in it (%w): put back by hand what diff %s %s shows; nothing was changed",
				path, err, path+before, path+after)
		}
		back[len(back)-1] = string(merged)
		fmt.Println("what was edited since is kept:", path)
	}
	if err := replaceBoth(files, old, back); err != nil {
		return err
	}
	fmt.Println("what migrate changed is taken back: restart slurmctld and the slurmd of all nodes")
	return forget(files)
}
