// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	"libhorus.org/horus"
	"libhorus.org/slurm/internal/slurm"
)

// device is a GPU, which is a type of gres of its own: that is how a job can be put onto it.
type device struct {
	gres   string // type, such as a100_0
	index  int    // among the node's, as exporters count them
	model  string // type of libhorus's catalogue
	shards int
	unit   int64 // MiB of a shard

	tenants int   // that run or are about to
	sharing int   // of those, with shards
	ends    int64 // when their time limits end, in s since 1970; math.MaxInt64 = one has none
	tier    int   // the highest of theirs
	closed  int64 // who runs longer than till then is not placed on it; 0 = open to all
}

// node is what placing sees of a node.
type node struct {
	id      uint64
	name    string
	address string
	devices []device
	cpus    int
	memMiB  int64
	up      bool // takes jobs
	labels  []horus.Label
}

func (n *node) device(gres string) int {
	return slices.IndexFunc(n.devices, func(d device) bool { return d.gres == gres })
}

// shards is the label of a node each of whose GPUs has some. A controller that has just started knows of none until the node
// registers.
const shards = "shards"

// headroomMiB of a card is no shard's: what drivers and contexts take beyond what jobs allocate. libhorus's own default.
const headroomMiB = 500

var numbered = regexp.MustCompile(`^(.+)_[0-9]+$`)

// modelOf a gres type such as a100_0: what the options say of a100_0 or of a100, else a100 itself.
func (p *Planner) modelOf(gres string) (horus.GPU, error) {
	name := gres
	if m := numbered.FindStringSubmatch(gres); m != nil {
		name = m[1]
	}
	name = cmp.Or(p.options.Types[gres], p.options.Types[name], name)
	if known, is := p.models[name]; is {
		return known, nil
	}
	at, err := p.catalogue.Find(name)
	if err != nil {
		return horus.GPU{}, fmt.Errorf("gres type %s: %w (say --types %s=NAME)", gres, err, name)
	}
	gpu, err := p.catalogue.At(at)
	if err == nil {
		p.models[name] = gpu
	}
	return gpu, err
}

// nodeOf reads the GPUs of a node; nil where it has none.
func (p *Planner) nodeOf(raw slurm.Node) (*node, error) {
	n := &node{name: raw.Name, address: raw.Address, cpus: raw.CPUs, memMiB: raw.MemMiB}
	for _, g := range slurm.GresOf(raw.Gres) {
		at := n.device(g.Type)
		switch {
		case g.Name == "gpu" && g.Count == 1 && g.Type != "" && at < 0:
			gpu, err := p.modelOf(g.Type)
			if err != nil {
				return nil, fmt.Errorf("node %s: %w", raw.Name, err)
			}
			n.devices = append(n.devices, device{gres: g.Type, index: len(n.devices), model: gpu.Name, unit: gpu.MemMiB - headroomMiB})
		case g.Name == "shard" && at >= 0 && g.Count > 0:
			d := &n.devices[at]
			d.shards, d.unit = g.Count, d.unit/int64(g.Count)
		case g.Name == "gpu":
			return nil, fmt.Errorf("node %s: expected a gres type for each GPU, such as gpu:a100_0:1, found gpu:%s:%d (horus-slurm migrate writes them)", raw.Name, g.Type, g.Count)
		}
	}
	if len(n.devices) == 0 {
		return nil, nil
	}
	slices.Reverse(n.devices)
	return n, nil
}

// layout puts the nodes of our partitions into an empty cluster. Of GPUs that are alike the library takes the first, and so does
// Slurm for its own jobs, which may start while we decide: so the last come first here.
func (p *Planner) layout(all []slurm.Node) (*pass, error) {
	cluster, err := horus.NewCluster(p.catalogue)
	if err != nil {
		return nil, err
	}
	s := &pass{
		planner: p, cluster: cluster, nodes: map[string]*node{}, watched: map[string]*Watched{}, never: map[uint64]int64{}, fits: map[uint64]int64{}, taken: map[uint64]bool{}, blocked: map[string]bool{}, units: map[string]int64{},
		tiers: map[string]int{}, contested: map[string]bool{}, heldBack: map[string]uint64{}, lowest: math.MaxInt,
	}
	for _, raw := range all {
		maps.Copy(s.tiers, raw.Tiers)
	}
	for _, raw := range slices.SortedFunc(slices.Values(all), func(a, b slurm.Node) int { return cmp.Compare(b.Name, a.Name) }) {
		if !slices.ContainsFunc(raw.Partitions, p.ours) {
			continue
		}
		n, err := p.nodeOf(raw)
		if err != nil {
			s.problem("%v", err)
			continue
		}
		if n == nil {
			continue
		}
		n.id = uint64(len(s.byID) + 1)
		into := horus.Node{ID: n.id, Name: n.name, CPUMilli: int64(n.cpus) * 1000, MemMiB: n.memMiB}
		for _, name := range raw.Partitions {
			into.Labels = append(into.Labels, horus.Label{Key: "partition/" + name, Value: "1"})
		}
		for _, name := range raw.Features {
			into.Labels = append(into.Labels, horus.Label{Key: "feature/" + name, Value: "1"})
		}
		if !slices.ContainsFunc(n.devices, func(d device) bool { return d.shards == 0 }) {
			into.Labels = append(into.Labels, horus.Label{Key: shards, Value: "1"})
		}
		n.labels = into.Labels
		for _, d := range n.devices {
			shared := horus.Device{GPUType: d.model, ID: d.gres, SharingMode: p.options.Sharing, MemMiB: d.unit * int64(max(1, d.shards))}
			shared.MaxTenants = min(p.options.MaxTenants, int32(max(1, d.shards)))
			into.Devices = append(into.Devices, shared)
			if d.shards > 0 {
				s.units[d.model] = max(s.units[d.model], d.unit)
			}
		}
		if err := cluster.AddNode(into); err != nil {
			s.problem("node %s: %v", raw.Name, err)
			continue
		}
		if n.up = raw.Up; !n.up {
			if err := cluster.SetState(n.id, horus.WholeNode, horus.Drained); err != nil {
				return nil, err
			}
		}
		s.nodes[n.name], s.byID = n, append(s.byID, n)
		for _, d := range n.devices {
			if !slices.Contains(s.models, d.model) {
				s.models = append(s.models, d.model)
			}
		}
	}
	return s, nil
}
