// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"libhorus.org/horus"
	"libhorus.org/slurm/internal/daemon"
	"libhorus.org/slurm/internal/slurm"
)

// pairs are "a100=a100-40gb,v100=v100-sxm2-16gb".
func pairs(text string) (map[string]string, error) {
	out := map[string]string{}
	for _, one := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		from, to, is := strings.Cut(one, "=")
		if !is || from == "" || to == "" {
			return nil, fmt.Errorf("--types: expected GRES_TYPE=GPU,…, found %q", one)
		}
		out[from] = to
	}
	return out, nil
}

func runDaemon(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("horus-slurm run", flag.ContinueOnError)
	var options daemon.Options
	partitions := flags.String("partitions", "", "`NAME,…` of the partitions whose jobs it places")
	types := flags.String("types", "", "`GRES_TYPE=GPU,…`: which GPU of horus gpus a gres type is, where its name does not say")
	wait := flags.Duration("wait", 5*time.Minute, "how long a job waits at most once the daemon is silent")
	grace := flags.Duration("grace", time.Minute, "how long Slurm may take to start a job that was placed")
	patience := flags.Duration("patience", time.Hour, "how long jobs that share may be passed over for others of their priority whose work is worth more; 0 = never")
	tenants := flags.Int("max-tenants", 3, "jobs on a GPU")
	quota := flags.Float64("sharing-quota", 0, "share of the GPUs that may have several jobs: 0 = all, -1 = none")
	mps := flags.Bool("mps", false, "GPUs are shared through MPS; else they take turns")
	flags.IntVar(&options.Depth, "depth", 100, "jobs of each user that a pass looks at")
	flags.DurationVar(&options.Period, "period", 2*time.Second, "time between two looks at the controller")
	flags.StringVar(&options.AliveFile, "alive-file", "", "`FILE` that tells job_submit.lua that the daemon is there")
	careless := flags.Bool("whole-may-share", false, carelessText)
	dry := flags.Bool("dry-run", false, "writes what it would do, and tells Slurm nothing")
	listen := flags.String("metrics", "", "`ADDRESS` of /metrics, such as 127.0.0.1:9401; none = they are not served")
	watch := &options.Observe
	flags.StringVar(&watch.Exporter, "exporter", "", "`PORT[/PATH]` of each node where its GPUs' use is told (DCGM's or horus-slurm exporter: 9400); none = nothing is learned")
	flags.StringVar(&watch.File, "learned", "", "`FILE` that keeps what was learned")
	flags.DurationVar(&watch.Every, "every", 15*time.Second, "time between two looks at exporters and jobs")
	flags.DurationVar(&watch.Window, "window", time.Minute, "for how long a GPU is watched at a time, and a job warms up before")
	flags.Float64Var(&watch.Steps, "steps", 10, "that each job makes in a window")
	flags.DurationVar(&watch.Commit, "commit", 10*time.Minute, "time between two models")
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	if watch.Exporter == "" && watch.File != "" {
		return fmt.Errorf("--learned: expected beside --exporter, found alone")
	}
	if port, _, _ := strings.Cut(watch.Exporter, "/"); watch.Exporter != "" {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return fmt.Errorf("--exporter: expected PORT[/PATH], found %q", watch.Exporter)
		}
	}
	if watch.Every <= 0 || watch.Window < watch.Every || watch.Commit < watch.Every || watch.Steps < 1 {
		return fmt.Errorf("expected --every > 0, --window and --commit at least as long and --steps of 1 or more")
	}
	options.Watch = watch.Exporter != ""
	var err error
	if options.Types, err = pairs(*types); err != nil {
		return err
	}
	options.Partitions = strings.FieldsFunc(*partitions, func(r rune) bool { return r == ',' })
	if len(options.Partitions) == 0 {
		return fmt.Errorf("--partitions: expected a name, found none")
	}
	if *wait < 10*time.Second || *grace < time.Second {
		return fmt.Errorf("--wait, --grace: expected at least 10s and 1s, found %v and %v", *wait, *grace)
	}
	if *patience < 0 || *patience > 0 && *patience < time.Second {
		return fmt.Errorf("--patience: expected 0 or at least 1s, found %v", *patience)
	}
	options.WaitS, options.GraceS = int64(wait.Seconds()), int64(grace.Seconds())
	options.PatienceS = cmp.Or(int64(patience.Seconds()), -1)
	options.MaxTenants, options.SharingQuota = int32(*tenants), float32(*quota)
	options.Sharing = horus.TimeSlice
	if *mps {
		options.Sharing = horus.MPS
	}
	if *dry {
		options.DryRun = os.Stdout
	}
	if options.Replaces, err = (slurm.Client{}).Replaces(ctx); err != nil {
		slog.Warn("jobs are placed in the steps that every version of Slurm takes", "error", err)
	} else if !options.Replaces && !*careless && !*dry {
		return errors.New(carelessWhy)
	}
	d, err := daemon.New(options)
	if err != nil {
		return err
	}
	if *listen != "" {
		go func() {
			if err := serve(ctx, *listen, d.Metrics()); err != nil {
				slog.Error("metrics", "error", err)
			}
		}()
	}
	slog.Info("horus-slurm", "partitions", options.Partitions, "wait", wait.String())
	return d.Run(ctx)
}
