// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"libhorus.org/horus"
	"libhorus.org/slurm/internal/slurm"
)

type device struct {
	gres, model string
	memMiB      int64 // of the card, less what placers keep free
	shards      int
	uses        map[string]int // shards of each job; -1 = the whole GPU
}

// is says whether a device is of a gres type, as it is called now or was called before "horus-slurm migrate".
func (d *device) is(gres string) bool {
	return gres == "" || strings.EqualFold(gres, d.gres) || strings.EqualFold(gres, numbered.ReplaceAllString(d.gres, ""))
}

func (d *device) used() int {
	sum := 0
	for _, n := range d.uses {
		if n < 0 {
			return 1 << 20
		}
		sum += n
	}
	return sum
}

type machine struct {
	slurm.Node
	devices []*device
}

const mostGPUs = 1024 // of a type on a node, as Slurm allows

// numbered is the type of one GPU after "horus-slurm migrate". A longer number is part of a name: rtx_3090.
var numbered = regexp.MustCompile(`_[0-9]{1,2}$`)

// machines with GPUs, migrated or not.
func machines(nodes []slurm.Node, types map[string]string) (map[string]*machine, []*machine, error) {
	catalogue, err := horus.DefaultCatalogue()
	if err != nil {
		return nil, nil, err
	}
	defer catalogue.Close()
	byName, all := map[string]*machine{}, []*machine(nil)
	for _, node := range slices.SortedFunc(slices.Values(nodes), func(a, b slurm.Node) int { return cmp.Compare(a.Name, b.Name) }) {
		m := &machine{Node: node}
		gres := slurm.GresOf(node.Gres)
		for _, g := range gres {
			if g.Name != "gpu" {
				continue
			}
			gpu, err := modelOf(catalogue, g.Type, types)
			if err == nil && g.Count > mostGPUs {
				err = fmt.Errorf("expected at most %d GPUs, found %d", mostGPUs, g.Count)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("node %s: %w", node.Name, err)
			}
			for range g.Count {
				m.devices = append(m.devices, &device{gres: g.Type, model: gpu.Name, memMiB: gpu.MemMiB - 500, uses: map[string]int{}})
			}
		}
		for _, g := range gres {
			of := slices.DeleteFunc(slices.Clone(m.devices), func(d *device) bool { return g.Name != "shard" || !d.is(g.Type) })
			for _, d := range of {
				d.shards += g.Count / len(of)
			}
		}
		if len(m.devices) > 0 {
			byName[node.Name], all = m, append(all, m)
		}
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("expected nodes with GPUs, found none")
	}
	return byName, all, nil
}

// modelOf a gres type: what the options say of it, or of it without its number, else what the catalogue calls so.
func modelOf(catalogue *horus.Catalogue, gres string, types map[string]string) (horus.GPU, error) {
	bare := numbered.ReplaceAllString(gres, "")
	said := cmp.Or(bare, "gpu")
	var wrong error
	for _, name := range []string{cmp.Or(types[gres], types[said], gres), bare} {
		at, err := catalogue.Find(name)
		if err == nil {
			return catalogue.At(at)
		}
		wrong = cmp.Or(wrong, err)
	}
	return horus.GPU{}, fmt.Errorf("gres type %q: %w (say --types %s=NAME)", gres, wrong, said)
}

// fits says whether a node has room for so many shards on one device, or for a whole one.
func (d *device) fits(shards int) bool {
	return shards > 0 && d.used()+shards <= d.shards || d.used() == 0
}

// take GPUs for a job, for each of its nodes: Slurm does not write down which. One after another comes from the node that gave
// fewest, the first that is free there, or that has room for the job's shards; else the least used.
func take(job *ran, on []*machine) ([][]int, error) {
	out := make([][]int, len(on))
	shards := job.shards / len(on)
	var wanted []string // the gres type of each GPU, "" = any
	count, all := job.gpus, 0
	if job.shards > 0 { // on one GPU of each node
		wanted, count = slices.Sorted(maps.Keys(job.types)), len(on)
	}
	for _, m := range on {
		all += len(m.devices)
	}
	if count > all {
		return nil, fmt.Errorf("expected %d GPUs on %s, found %d", count, strings.Join(job.hosts, ","), all)
	}
	if job.shards == 0 {
		for _, model := range slices.Sorted(maps.Keys(job.types)) {
			wanted = append(wanted, slices.Repeat([]string{model}, job.types[model])...)
		}
	}
	for i := range count {
		model := ""
		if i < len(wanted) {
			model = wanted[i]
		}
		host, best := -1, -1
		for h, m := range on {
			at := m.first(model, shards, out[h])
			switch {
			case at < 0:
			case host < 0, m.devices[at].fits(shards) && !on[host].devices[best].fits(shards),
				m.devices[at].fits(shards) == on[host].devices[best].fits(shards) && len(out[h]) < len(out[host]):
				host, best = h, at
			}
		}
		if host < 0 {
			return nil, fmt.Errorf("expected %d GPUs on %s, of the types in AllocTRES, found %d", count, strings.Join(job.hosts, ","), i)
		}
		out[host] = append(out[host], best)
	}
	for _, devices := range out {
		slices.Sort(devices)
	}
	return out, nil
}

// first device of a type that a job does not have yet: one with room before one without, then the least used. -1 = none.
func (m *machine) first(gres string, shards int, not []int) int {
	best := -1
	for i, d := range m.devices {
		if !d.is(gres) || slices.Contains(not, i) {
			continue
		}
		if best < 0 || d.fits(shards) && !m.devices[best].fits(shards) ||
			!d.fits(shards) && !m.devices[best].fits(shards) && d.used() < m.devices[best].used() {
			best = i
		}
	}
	return best
}

// told are the devices that a record tells, "0;2-3" of each node; false where it does not tell of all GPUs.
func told(job *ran, on []*machine) ([][]int, bool) {
	out := make([][]int, len(job.devices))
	for h, list := range job.devices {
		for _, part := range strings.FieldsFunc(list, func(r rune) bool { return r == ';' }) {
			low, high, ranged := strings.Cut(part, "-")
			from, err := strconv.Atoi(low)
			to := from
			if ranged && err == nil {
				to, err = strconv.Atoi(high)
			}
			if err != nil || from < 0 || to >= len(on[h].devices) {
				return nil, false
			}
			for i := from; i <= to; i++ {
				out[h] = append(out[h], i)
			}
		}
	}
	return out, len(slices.Concat(out...)) > 0
}
