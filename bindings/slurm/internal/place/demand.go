// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"strings"

	"libhorus.org/horus"
	"libhorus.org/learn"
	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/internal/words"
)

// mostModel is the size of a model file that is read, in bytes: graphs without weights have a few MiB.
const mostModel = 256 << 20

// predicted demands of a run on some types, and what a service's engine is to be told on each; or why there are none.
type predicted struct {
	demands []horus.TypeDemand
	engine  []string
	err     error
}

// predict what a wish's model asks of each type. Users name the file: only what is a regular file is opened.
func (p *Planner) predict(w words.Wish, types []string) predicted {
	stamp := ""
	if !words.Named(w.Model) {
		info, err := os.Stat(w.Model)
		switch {
		case err != nil:
			return predicted{err: fmt.Errorf("model: %w", err)}
		case !info.Mode().IsRegular():
			return predicted{err: fmt.Errorf("model: %s: expected a regular file", w.Model)}
		case info.Size() > mostModel:
			return predicted{err: fmt.Errorf("model: %s: expected at most %d MiB, found %d (weights are not needed)", w.Model, mostModel>>20, info.Size()>>20)}
		}
		stamp = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	}
	key := fmt.Sprintf("%q %s %#v %#v %#v %q", w.Model, stamp, w.Run, w.Config, w.Load, types)
	known, is := p.predictions[key]
	if !is {
		if known, known.err = p.askPredictor(w, types); known.err != nil {
			known.err = fmt.Errorf("model: %w", known.err)
		}
		if len(p.predictions) >= mostPredictions {
			clear(p.predictions)
		}
		p.predictions[key] = known
	}
	return known
}

const mostPredictions = 10_000 // kept, of a few hundred bytes each

func graphOf(w words.Wish) (*horus.Graph, error) {
	config := w.Model
	switch {
	case strings.HasSuffix(w.Model, ".json"):
		text, err := os.ReadFile(w.Model)
		if err != nil {
			return nil, err
		}
		config = string(text)
	case !words.Named(w.Model):
		return horus.ReadGraph(w.Model)
	}
	w.Config.Training = w.Run.Mode == horus.Training
	return horus.GraphFromConfig(config, w.Config)
}

func (p *Planner) askPredictor(w words.Wish, types []string) (out predicted, err error) {
	graph, err := graphOf(w)
	if err != nil {
		return out, err
	}
	defer graph.Close()
	if w.Load.TokensIn > 0 {
		services, err := p.predictor.Serve(p.catalogue, graph, w.Run, w.Load, types...)
		for i, one := range services {
			out.demands = append(out.demands, horus.TypeDemand{GPUType: types[i], Demand: one.Demand})
			out.engine = append(out.engine, one.EngineArguments)
		}
		return out, err
	}
	demands, err := p.predictor.Demand(p.catalogue, graph, w.Run, types...)
	for i, one := range demands {
		out.demands = append(out.demands, horus.TypeDemand{GPUType: types[i], Demand: one})
	}
	return out, err
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
	if asked.shards > 0 && w.Config.TensorParallel > 1 {
		return nil, fmt.Errorf("comment: tensor_parallel: expected 1 of a job that shares a GPU, found %d (ask for whole GPUs)", w.Config.TensorParallel)
	}
	var out []horus.TypeDemand
	if w.Model != "" {
		known := s.planner.predict(w, types)
		if known.err != nil {
			return nil, known.err
		}
		out = slices.Clone(known.demands)
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

// ask is the request for a share of a GPU that a job was submitted with.
type ask struct {
	shards  int
	request string // value of TresPerNode
}

// letter before a request in a record.
const letter = "node:"

// askOf a job that waits: what a record of ours remembers, else what it asks for now. The error says why Slurm has to place it.
func askOf(job slurm.Job, remembered string) (ask, error) {
	request, is := strings.CutPrefix(remembered, letter)
	elsewhere := cmp.Or(job.Tres.PerJob, job.Tres.PerTask, job.Tres.PerSocket)
	if !is {
		request = cmp.Or(job.Tres.PerNode, elsewhere)
	}
	all := slurm.GresOf(request)
	switch {
	case len(all) == 0:
		return ask{}, errors.New("it asks for no GPU: expected --gres=shard:N for a share of one")
	case all[0].Name != "shard":
		return ask{}, errors.New("it asks for whole GPUs, which Slurm places")
	case len(all) > 1 || strings.Contains(request, ",") || elsewhere != "":
		return ask{}, fmt.Errorf("it asks for %s: expected --gres=shard:N alone", strings.Join(strings.Fields(job.Tres.PerNode+" "+elsewhere), " and "))
	case all[0].Type != "":
		return ask{}, fmt.Errorf("it asks for GPUs of type %s: expected no type, and gpu_types=… in the comment", all[0].Type)
	case all[0].Count < 1:
		return ask{}, fmt.Errorf("it asks for no GPU: %s", request)
	case job.NodeCount > 1:
		return ask{}, fmt.Errorf("it asks for shards on %d nodes: expected one, as a job that shares has one GPU", job.NodeCount)
	}
	return ask{all[0].Count, request}, nil
}

// remember is what a record keeps of it.
func (a ask) remember() string {
	if a.request == "" {
		return ""
	}
	return letter + a.request
}

// restore makes a job ask again for what it was submitted with; nil where it does. A request that has types by now keeps them
// (slurm.Retype), unless Slurm puts a new one in its place.
func (a ask) restore(now slurm.Tres, replaces bool) []slurm.Setting {
	want := a.request
	if slurm.Typed(now.PerNode) && !replaces {
		want = fmt.Sprintf("gres:shard:%s:%d", slurm.GresOf(now.PerNode)[0].Type, a.shards)
	}
	if now.PerNode == want {
		return nil
	}
	return []slurm.Setting{{Field: "TresPerNode", Value: want}}
}
