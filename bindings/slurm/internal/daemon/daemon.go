// SPDX-License-Identifier: Apache-2.0

// Package daemon looks at the controller again and again and lets jobs start where the planner puts them.
package daemon

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"libhorus.org/slurm/internal/file"
	"libhorus.org/slurm/internal/observe"
	"libhorus.org/slurm/internal/place"
	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/internal/words"
)

// Options of a daemon. Zero values are defaults.
type Options struct {
	place.Options
	Period    time.Duration   // between two looks at the controller; 0 = 2 s
	AliveFile string          // says until when the job_submit script may mark jobs for us; "" = none
	Observe   observe.Options // Exporter "" = nothing is observed
	DryRun    io.Writer       // is told what would be changed, and the controller nothing; nil = the controller is told
}

// Daemon remembers nothing that it could not read from the controller again.
type Daemon struct {
	options Options
	client  slurm.Client
	reader  slurm.Reader
	planner *place.Planner
	watcher *observe.Observer // nil = nothing is observed
	mark    string
	boot    string // of the controller, from before what is known of it was read
	planned time.Time
	next    int64                // when a pass is due though nothing changes, in s since 1970; 0 = it is not known to be
	told    map[string]time.Time // problems that were logged
	dry     map[uint64]string    // of a dry run: what was told of each job last
	metrics *metrics
}

// New makes a daemon.
func New(options Options) (*Daemon, error) {
	options.Period = cmp.Or(options.Period, 2*time.Second)
	planner, err := place.New(options.Options)
	if err != nil {
		return nil, err
	}
	d := &Daemon{options: options, planner: planner, told: map[string]time.Time{}, dry: map[uint64]string{}, metrics: newMetrics()}
	if options.Observe.Exporter != "" {
		d.watcher, err = observe.New(options.Observe)
	}
	return d, err
}

const (
	// rest is how long the daemon rests after a look, as a multiple of what it took to read and plan: an eighth of one core.
	rest = 7
	// longest rest, and longest time of telling: what is told grows old meanwhile.
	longestRest, longestTelling = 10 * time.Second, 10 * time.Second
	// stalest is how old a picture may be: leases, grace and nodes change without a mark.
	stalest = 15 * time.Second
	// lasts is how long the job_submit script goes on marking jobs after our last sign of life.
	lasts = 60 * time.Second
)

// Run until the context ends.
func (d *Daemon) Run(ctx context.Context) error {
	if d.watcher != nil {
		go d.watcher.Run(ctx)
	}
	for ctx.Err() == nil {
		busy, err := d.look(ctx)
		beat()
		if err != nil && ctx.Err() == nil {
			d.metrics.failed.Inc()
			slog.Error("the controller did not answer as expected; jobs start by themselves when their time has come", "error", err)
		}
		if err == nil {
			d.metrics.last.SetToCurrentTime()
			d.alive()
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(d.options.Period, min(rest*busy, longestRest))):
		}
	}
	return nil
}

// look at the controller, and plan where anything changed. It returns how long that took, but for what was told.
func (d *Daemon) look(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	if d.boot == "" {
		config, err := d.client.Config(ctx)
		if err != nil {
			return time.Since(begin), err
		}
		d.planner.Basic(config.Basic)
		d.boot, d.mark, d.reader = config.Boot, "", slurm.Reader{} // a job that ended may run again for another controller
	}
	mark, err := d.reader.Look(ctx)
	due := d.next != 0 && begin.Unix() >= d.next
	if err != nil || mark == d.mark && time.Since(d.planned) < stalest && !due {
		return time.Since(begin), err
	}
	changes, busy, err := d.pass(ctx, begin)
	if err != nil {
		return busy, err
	}
	d.planned, d.mark = time.Now(), mark
	if changes > 0 {
		d.mark = "" // what was told changes what there is
	}
	return busy, nil
}

// pass plans what was looked at at `begin`, and tells. It returns how many jobs it changed, and how long it read and planned.
func (d *Daemon) pass(ctx context.Context, begin time.Time) (changes int, busy time.Duration, err error) {
	jobs, err := d.reader.Jobs(ctx)
	if err != nil {
		return 0, time.Since(begin), err
	}
	nodes, err := d.client.Nodes(ctx)
	if err != nil {
		return 0, time.Since(begin), err
	}
	read := time.Since(begin)
	if err := d.takeLearned(); err != nil {
		return 0, time.Since(begin), err
	}
	result, err := d.planner.Pass(ctx, nodes, jobs, time.Now().Unix())
	if err != nil {
		return 0, time.Since(begin), err
	}
	busy = time.Since(begin)
	d.metrics.pass(result, busy)
	d.next = result.Next
	if d.watcher != nil {
		d.watcher.Seen(result.Watched)
	}
	if d.reader.Wrong != "" {
		result.Problems = append(result.Problems, d.reader.Wrong+"; jobs are read from squeue --json, which takes longer")
	}
	for _, problem := range result.Problems {
		if time.Since(d.told[problem]) > time.Hour {
			d.told[problem] = time.Now()
			slog.Warn("left out", "why", problem)
		}
	}
	if d.options.DryRun != nil {
		d.wouldTell(result.Changes)
		return 0, busy, nil
	}
	answers, err := d.client.Tell(ctx, result.Changes, longestTelling, d.boot)
	if err != nil {
		d.boot = "" // it may be another
		return 0, time.Since(begin), err
	}
	for i, err := range answers {
		if err != nil { // it started or ended meanwhile, or Slurm will not have it so: the next pass sees which
			d.planner.Refused(result.Changes[i].Job, err.Error())
			slog.Warn("refused", "error", err)
		}
	}
	placed, left, refused := d.metrics.told(result, answers)
	if len(answers) > 0 {
		slog.Info("pass", "placed", placed, "waiting", result.Waiting, "left", left, "refused", refused,
			"told", len(answers), "of", len(result.Changes),
			"read", read.Round(time.Millisecond), "planned", (busy - read).Round(time.Millisecond),
			"all", time.Since(begin).Round(time.Millisecond))
	}
	return len(answers), busy, nil
}

// recordOf a change is what the job's admin comment says once all of it is made.
func recordOf(change slurm.Change) (last words.Record) {
	for _, step := range change.Steps {
		for _, one := range step {
			if record, is := words.RecordOf(one.Value); is && one.Field == "AdminComment" {
				last = record
			}
		}
	}
	return last
}

// wouldTell writes the changes of a dry run that are not those of the pass before.
func (d *Daemon) wouldTell(changes []slurm.Change) {
	now := make(map[uint64]string, len(changes))
	for _, change := range changes {
		record := recordOf(change)
		said := fmt.Sprintf("%s %s", record.Verb, strings.Join(strings.Fields(record.On+" "+record.Text), " "))
		if now[change.Job] = said; d.dry[change.Job] != said {
			fmt.Fprintf(d.options.DryRun, "job %d: %s\n", change.Job, said)
		}
	}
	d.dry = now
}

// takeLearned lets the planner know what was learned since.
func (d *Daemon) takeLearned() error {
	if d.watcher == nil {
		return nil
	}
	observations, alone, changed := d.watcher.Learned()
	if !changed {
		return nil
	}
	return d.planner.Use(observations, alone)
}

// alive writes until when we count as alive.
func (d *Daemon) alive() {
	if d.options.AliveFile == "" || d.options.DryRun != nil {
		return
	}
	if err := file.Replace(d.options.AliveFile, strconv.FormatInt(time.Now().Add(lasts).Unix(), 10)+"\n"); err != nil {
		slog.Error("sign of life", "error", err)
	}
}

// beat tells systemd that the daemon goes round: a look that hangs longer than WatchdogSec has it started anew.
func beat() {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return
	}
	if socket, err := net.Dial("unixgram", address); err == nil {
		_, _ = socket.Write([]byte("READY=1\nWATCHDOG=1"))
		socket.Close()
	}
}
