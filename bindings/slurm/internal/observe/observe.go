// SPDX-License-Identifier: Apache-2.0

// Package observe looks at what runs, and learns what jobs do alone and what they lose beside each other.
package observe

import (
	"context"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"libhorus.org/learn"
	"libhorus.org/slurm/internal/place"
)

// Options of an observer.
type Options struct {
	Exporter string        // PORT[/PATH] of each node, where something tells the use of its GPUs; %n in the path is the node's name
	File     string        // keeps what was learned; "" = none, and a daemon that starts anew knows nothing
	Every    time.Duration // between two looks
	Commit   time.Duration // between two models
	learn.Shortest
}

// Observer looks beside the daemon's passes, which tell it what runs.
type Observer struct {
	options  Options
	learner  *learn.Learner
	recorder learn.Recorder
	kept     state
	told     map[string]time.Time // URLs that did not answer, and when that was said

	mu    sync.Mutex
	runs  []place.Watched
	fresh bool // what was learned changed since it was asked for
	alone map[learn.Kind]learn.Observed
	model []byte // observations that correct the library's
}

const lookGap = 2.5 // looks: one may be lost

// New goes on from what the file keeps.
func New(options Options) (*Observer, error) {
	kept, err := load(options.File)
	if err != nil {
		return nil, err
	}
	o := &Observer{
		options: options, kept: kept, told: map[string]time.Time{}, fresh: true, alone: map[learn.Kind]learn.Observed{}, model: kept.Now.Observations,
		recorder: learn.Recorder{Shortest: options.Shortest, Gap: time.Duration(lookGap * float64(options.Every))},
	}
	for _, one := range kept.Alone {
		o.alone[learn.Kind{Owner: one.Owner, Profile: one.Profile, GPUType: one.GPUType}] = one.Observed
	}
	o.learner, err = learn.NewLearner(kept.Now, kept.Before, maps.Clone(o.alone))
	return o, err
}

// Run looks until the context ends.
func (o *Observer) Run(ctx context.Context) {
	learn.Run(ctx, o.options.Every, o.look, o.options.Commit, func(context.Context) { o.commit() })
}

// Seen tells what runs. The devices are the observer's from then on.
func (o *Observer) Seen(devices []place.Watched) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs = devices
}

// Learned tells what was learned, where it changed since it was asked last.
func (o *Observer) Learned() (observations []byte, alone map[learn.Kind]learn.Observed, changed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	changed, o.fresh = o.fresh, false
	return o.model, maps.Clone(o.alone), changed
}

func (o *Observer) look(ctx context.Context) {
	o.mu.Lock()
	runs := o.runs
	o.mu.Unlock()
	devices := make([]learn.Device, len(runs))
	for i, one := range runs {
		devices[i] = one.Device
	}
	seen, steps := o.scrapeAll(ctx, runs)
	for _, window := range o.recorder.Look(time.Now(), devices, seen, steps) {
		outcome, _ := o.learner.Take(window)
		slog.Info("window", "node", window.Node, "gpu", window.ID, "jobs", len(window.Tenants), "outcome", string(outcome))
	}
}

// scrapeAll asks the exporters of nodes, and the jobs on them.
func (o *Observer) scrapeAll(ctx context.Context, runs []place.Watched) (learn.Usages, map[string]learn.Reading) {
	seen, steps := learn.NoUsages(), map[string]learn.Reading{}
	var questions []learn.Question
	asked := map[string]bool{}
	ask := func(key string, question learn.Question) {
		if !asked[key] {
			asked[key] = true
			questions = append(questions, question)
		}
	}
	port, path, _ := strings.Cut(o.options.Exporter, "/")
	for _, one := range runs {
		exporter := learn.URL(one.Address, port, strings.ReplaceAll(path, "%n", one.Node))
		ask("node "+one.Node, learn.Question{URL: exporter, Take: func(found learn.Families) error {
			seen.Add(found, func(_, index string) string { return place.DeviceID(one.Node, index) })
			return nil
		}})
		for key, where := range one.Steps {
			ask(key, learn.StepsOf(key, learn.URL(one.Address, strconv.Itoa(where.Port), where.Path), where.Metric, steps))
		}
	}
	learn.ScrapeAll(ctx, questions, func(question learn.Question, err error) {
		if err != nil && ctx.Err() == nil && time.Since(o.told[question.URL]) > time.Hour {
			o.told[question.URL] = time.Now()
			slog.Warn("not scraped", "url", question.URL, "why", err)
		}
	})
	return seen, steps
}

// commit makes a model of what was seen, and keeps it.
func (o *Observer) commit() {
	made, some, err := o.learner.Commit(time.Now())
	if err != nil {
		slog.Error("no model is made of what was observed", "error", err)
		return
	}
	known := o.learner.KnownAlone()
	if !some && len(known) == 0 {
		return
	}
	o.mu.Lock()
	o.fresh = true
	for kind, one := range known {
		one.GPUType = kind.GPUType
		o.alone[kind] = one
	}
	if some {
		o.model = made.Observations
	}
	alone := maps.Clone(o.alone)
	o.mu.Unlock()
	if some {
		slog.Info("model", "version", made.Version, "windows", made.Windows, "takes back", made.RolledBack)
		if made.RolledBack == 0 {
			o.kept.Before = o.kept.Now
		}
		o.kept.Now = made
	}
	o.kept.put(alone)
	if err := o.kept.save(o.options.File); err != nil {
		slog.Error("what was learned is not kept", "error", err)
	}
}
