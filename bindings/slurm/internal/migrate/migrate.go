// SPDX-License-Identifier: Apache-2.0

// Package migrate gives each GPU of a Slurm configuration a gres type of its own, and shards: only so can a job be put onto one.
package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"libhorus.org/slurm/internal/slurm"
)

// Options of a migration.
type Options struct {
	Shards int    // of a GPU
	Found  string // what slurmd -G printed on nodes with AutoDetect: "n1: slurmd: Gres Name=gpu …"; "" = nothing
}

// Result of a migration.
type Result struct {
	Gres, Slurm string   // the files
	Models      []string // types from before, which are features of nodes now
	ByHand      []string // settings that name such a type and cannot be written anew
}

// nodeLine is a line of slurm.conf with GPUs.
type nodeLine struct {
	s        *statement
	names    []string
	want     map[string]int // GPUs of each model, "" = without a type
	order    []string       // of those models
	others   []string       // other gres
	features string
}

// cluster is what slurm.conf says of nodes.
type cluster struct {
	lines []*nodeLine
	of    map[string]*nodeLine // of a node; nil = it has no GPUs
	names []string             // of nodes with GPUs
}

// Files are gres.conf and slurm.conf with a type and shards for each GPU. They are compared for each node: what one of them
// says and the other does not is an error.
func Files(gres, conf string, o Options) (Result, error) {
	var r Result
	settings, err := parse("slurm.conf", conf)
	if err != nil {
		return r, err
	}
	c, err := clusterOf(settings)
	if err != nil {
		return r, err
	}
	devices, err := parse("gres.conf", gres)
	if err != nil {
		return r, err
	}
	lines, err := gpuLines(devices, c, o.Found)
	if err != nil {
		return r, err
	}
	numbers, err := c.compare(lines)
	if err != nil {
		return r, err
	}
	for _, l := range lines {
		l.write(numbers, o.Shards)
		if l.found { // before what ends the file
			devices = slices.Insert(devices, len(devices)-1, l.s)
		}
	}
	r.Gres = join(devices)
	most := map[string]int{} // GPUs of a model on a node
	for _, l := range c.lines {
		l.write(o.Shards)
		for model, count := range l.want {
			most[model] = max(most[model], count)
		}
	}
	delete(most, "")
	r.Models = slices.Sorted(maps.Keys(most))
	r.ByHand = rewriteSettings(settings, most)
	r.Slurm = join(settings)
	return r, nil
}

// clusterOf reads the nodes of slurm.conf, and adds shard to GresTypes.
func clusterOf(settings []*statement) (*cluster, error) {
	c := &cluster{of: map[string]*nodeLine{}}
	types := false
	var byDefault struct{ gres, features string }
	for _, s := range settings {
		name := s.get("NodeName")
		if list := s.get("GresTypes"); list != "" && name == "" {
			types = types || slices.Contains(strings.Split(list, ","), "gpu")
			if !slices.Contains(strings.Split(list, ","), "shard") {
				s.set("GresTypes", list+",shard")
			}
		}
		if name == "" {
			continue
		}
		gres, features := s.get("Gres"), s.get("Features")+s.get("Feature")
		if strings.EqualFold(name, "DEFAULT") {
			if gres != "" {
				byDefault.gres = gres
				s.drop("Gres") // the lines that it is for say theirs
			}
			if features != "" {
				byDefault.features = features
			}
			continue
		}
		if gres == "" {
			gres = byDefault.gres
		}
		if features == "" {
			features = byDefault.features
		}
		if err := c.add(s, name, gres, features); err != nil {
			return nil, fmt.Errorf("slurm.conf:%d: %w", s.at, err)
		}
	}
	if len(c.lines) == 0 || !types {
		return nil, fmt.Errorf("slurm.conf: expected GresTypes=gpu and nodes with Gres=gpu:…, found none")
	}
	return c, nil
}

// add the nodes of a line.
func (c *cluster) add(s *statement, name, gres, features string) error {
	names, err := slurm.Hosts(name)
	if err != nil {
		return err
	}
	l := &nodeLine{s: s, names: names, want: map[string]int{}, features: features}
	for _, one := range strings.Split(gres, ",") {
		kind, _, _ := strings.Cut(strings.ToLower(one), ":")
		g := slurm.GresOf(one)
		switch {
		case kind == "shard" || kind == "mps":
			return fmt.Errorf("expected no %s yet, found Gres=%s", kind, gres)
		case kind == "gpu" && (len(g) == 0 || g[0].Type == "no_consume"):
			return fmt.Errorf("expected gpu:COUNT or gpu:TYPE:COUNT, found %s", one)
		case kind == "gpu":
			if !slices.Contains(l.order, g[0].Type) {
				l.order = append(l.order, g[0].Type)
			}
			l.want[g[0].Type] += g[0].Count
		case one != "":
			l.others = append(l.others, one)
		}
	}
	if len(l.order) == 0 {
		if gres != "" && s.get("Gres") == "" { // a default that is taken away
			s.set("Gres", gres)
		}
		l = nil
	} else {
		c.lines = append(c.lines, l)
		c.names = append(c.names, names...)
	}
	for _, name := range names {
		if _, twice := c.of[name]; twice {
			return fmt.Errorf("expected each node once, found %s twice", name)
		}
		c.of[name] = l
	}
	return nil
}

// write the GPUs each by itself, and their models as features.
func (l *nodeLine) write(shards int) {
	var gpus, shares []string
	features := l.features
	for _, model := range l.order {
		for n := range l.want[model] {
			gpus = append(gpus, fmt.Sprintf("gpu:%s:1", typeOf(model, n)))
			shares = append(shares, fmt.Sprintf("shard:%s:%d", typeOf(model, n), shards))
		}
		if model != "" && !slices.Contains(strings.Split(features, ","), model) {
			features = strings.TrimPrefix(features+","+model, ",")
		}
	}
	l.s.set("Gres", strings.Join(slices.Concat(gpus, shares, l.others), ","))
	if features == "" {
		return
	}
	if from, _ := l.s.find("Features"); from >= 0 {
		l.s.set("Features", features)
	} else {
		l.s.set("Feature", features)
	}
}

// typeOf one GPU of a node. Those without a type are of the model "gpu".
func typeOf(model string, number int) string {
	if model == "" {
		model = "gpu"
	}
	return fmt.Sprintf("%s_%d", model, number)
}
