// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"strings"

	"libhorus.org/horus"
	"libhorus.org/learn"
	"libhorus.org/slurm/internal/words"
)

// mostModel is the size of a model file that is read, in bytes: graphs without weights have a few MiB.
const mostModel = 256 << 20

// run of a model on some types, as words can say it: runs that are equal have the same demands.
type run struct {
	model              string
	size, modified     int64
	mode               horus.Mode
	precision          horus.Precision
	optimizer          horus.Optimizer
	framework          horus.Framework
	channelsLast       bool
	batch, checkpoints int64
	dims, types        string
}

// predicted demands of a run, or why there are none.
type predicted struct {
	demands []horus.TypeDemand
	err     error
}

// predict what a wish's model asks of each type. Users name the file: only what is a regular file is opened.
func (p *Planner) predict(w words.Wish, types []string) ([]horus.TypeDemand, error) {
	info, err := os.Stat(w.Model)
	switch {
	case err != nil:
		return nil, fmt.Errorf("model: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("model: %s: expected a regular file", w.Model)
	case info.Size() > mostModel:
		return nil, fmt.Errorf("model: %s: expected at most %d MiB, found %d (weights are not needed)", w.Model, mostModel>>20, info.Size()>>20)
	}
	r := w.Run
	key := run{
		w.Model, info.Size(), info.ModTime().UnixNano(), r.Mode, r.Precision, r.Optimizer, r.Framework, r.ChannelsLast,
		r.Batch, r.CheckpointSegments, fmt.Sprintf("%#v", r.Dims), strings.Join(types, " "),
	}
	known, is := p.predictions[key]
	if !is {
		known.demands, known.err = p.askPredictor(w, types)
		if len(p.predictions) >= mostPredictions {
			clear(p.predictions)
		}
		p.predictions[key] = known
	}
	return known.demands, known.err
}

const mostPredictions = 10_000 // kept, of a few hundred bytes each

func (p *Planner) askPredictor(w words.Wish, types []string) ([]horus.TypeDemand, error) {
	graph, err := horus.ReadGraph(w.Model)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	defer graph.Close()
	demands, err := p.predictor.Demand(p.catalogue, graph, w.Run, types...)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	out := make([]horus.TypeDemand, len(types))
	for i, name := range types {
		out[i] = horus.TypeDemand{GPUType: name, Demand: demands[i]}
	}
	return out, nil
}

// demands of a wish on each type that it may use. Without model and figures a job is taken to use all of a GPU, and as much
// memory as the shards that it asked for have; without shards it has the GPU to itself.
func (s *pass) demands(w words.Wish, asked ask, owner string) ([]horus.TypeDemand, error) {
	types := s.models
	if len(types) == 0 {
		return nil, fmt.Errorf("expected nodes with a gres type for each GPU in the partition, found none")
	}
	if len(w.GPUTypes) > 0 {
		types = nil
		for _, name := range w.GPUTypes {
			gpu, err := s.planner.modelOf(name)
			if err != nil {
				return nil, fmt.Errorf("comment: gpu_types: %w", err)
			}
			if slices.Contains(s.models, gpu.Name) && !slices.Contains(types, gpu.Name) {
				types = append(types, gpu.Name)
			}
		}
		if len(types) == 0 {
			return nil, fmt.Errorf("comment: gpu_types: expected some of %v, which the partition has, found %v", s.models, w.GPUTypes)
		}
	}
	var out []horus.TypeDemand
	if w.Model != "" {
		known, err := s.planner.predict(w, types)
		if err != nil {
			return nil, err
		}
		out = slices.Clone(known)
	} else {
		for _, name := range types {
			demand := horus.Demand{Flags: horus.Given, GPUUtilPct: 100, MemMiB: 1}
			if w.Given != nil {
				demand = *w.Given
			} else if asked.shards > 0 {
				demand.MemMiB = int64(asked.shards) * s.units[name]
			}
			out = append(out, horus.TypeDemand{GPUType: name, Demand: demand})
		}
	}
	for i := range out {
		one := &out[i].Demand
		if w.Profile != "" {
			one.ProfileID = profileOf(owner, w.Profile)
		}
		if seen, known := s.planner.alone[kindOf(owner, out[i])]; known {
			seen.Put(one)
		}
	}
	if asked.shards > 0 {
		for i := range out {
			wholeShards(&out[i].Demand, s.units[out[i].GPUType])
		}
	}
	return out, nil
}

// profileOf an account's name for jobs that do the same.
func profileOf(owner, name string) uint64 {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%q %q", owner, name)
	return max(1, hash.Sum64())
}

// kindOf a demand.
func kindOf(owner string, of horus.TypeDemand) learn.Kind {
	if of.Demand.ProfileID == 0 {
		return learn.Kind{}
	}
	return learn.Kind{Owner: owner, Profile: strconv.FormatUint(of.Demand.ProfileID, 16), GPUType: of.GPUType}
}

// wholeShards rounds the memory that is counted for a job up to shards, so that Slurm and libhorus count alike.
func wholeShards(d *horus.Demand, unit int64) {
	upper := max(d.MemMiB, d.MemMiBUpper)
	if unit > 0 && upper < horus.MemMiBUnbounded-unit {
		d.MemMiBUpper = (upper + unit - 1) / unit * unit
	}
}
