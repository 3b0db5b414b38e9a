// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"libhorus.org/horus"
	"libhorus.org/learn"
	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/internal/words"
)

// stamp is a time as scontrol reads it.
func stamp(at int64) string { return time.Unix(at, 0).Format("2006-01-02T15:04:05") }

// piece of a job that runs: what it holds of one node.
type piece struct {
	node    *node
	devices []uint32
	shards  map[uint32]int // of each device; empty = whole GPUs
	cpus    int
	memMiB  int64
}

// foreign ids lie above those of Slurm's jobs: a job is several residents where it holds unlike parts of nodes.
const foreign = 1 << 40

// resident takes in a job that runs, where Slurm says that it does.
func (s *pass) resident(job slurm.Job) {
	hosts, err := slurm.Hosts(job.Hosts)
	if err != nil {
		s.problem("job %d: %v", job.ID, err)
		return
	}
	var pieces []piece
	for i, host := range hosts {
		n := s.nodes[host]
		if n == nil {
			continue
		}
		one := piece{node: n, shards: map[uint32]int{}, cpus: up(job.CPUs, len(hosts)), memMiB: job.MemMiB / int64(len(hosts))}
		for _, held := range job.Held {
			if held.Node == host {
				one.memMiB = held.MemMiB
				one.cpus = max(held.CPUs, min(one.cpus, n.cpus))
			}
		}
		list := job.Tres.PerNode // of a job that is just starting
		if i < len(job.Gres) {
			list = job.Gres[i]
		}
		for _, g := range slurm.GresOf(list) {
			if at := n.device(g.Type); at >= 0 && g.Count > 0 {
				one.devices = append(one.devices, uint32(at))
				if g.Name == "shard" {
					one.shards[uint32(at)] = g.Count
				}
			}
		}
		pieces = append(pieces, one)
	}
	s.watch(job, pieces)
	s.takeIn(job, pieces)
}

// awaited takes in a job that was given a place and that Slurm has not started yet.
func (s *pass) awaited(job slurm.Job, record words.Record) {
	if n, at := s.at(record.On); n != nil {
		s.takeIn(job, []piece{s.pinned(job, n, at)})
	}
}

// at is the device of a place, "n1/a100_0"; nil where there is none.
func (s *pass) at(place string) (*node, uint32) {
	name, gres, _ := strings.Cut(place, "/")
	if n := s.nodes[name]; n != nil && n.device(gres) >= 0 {
		return n, uint32(n.device(gres))
	}
	return nil, 0
}

// pinned is what a job that waits will hold of a device.
func (s *pass) pinned(job slurm.Job, n *node, at uint32) piece {
	one := piece{node: n, devices: []uint32{at}, shards: map[uint32]int{}, cpus: job.CPUs, memMiB: job.MemMiB}
	for _, g := range slurm.GresOf(job.Tres.PerNode) {
		if g.Name == "shard" && g.Type == n.devices[at].gres {
			one.shards[at] = g.Count
		}
	}
	return one
}

// takeIn a job: as what its comment says it is where it shares one GPU, else as somebody who is alone there.
func (s *pass) takeIn(job slurm.Job, pieces []piece) {
	for i, one := range pieces {
		as, slots := s.resides(job, one)
		as.ID += foreign * uint64(i)
		if _, err := s.cluster.Adopt(as, slots); err != nil {
			s.problem("job %d on %s: %v", job.ID, one.node.name, err)
			// Nobody knows what is free there.
			_ = s.cluster.SetState(one.node.id, horus.WholeNode, horus.Drained)
			continue
		}
		end := int64(math.MaxInt64)
		if job.TimeLimitMin > 0 {
			begin := s.now
			if job.Running() {
				begin = job.Started
			}
			end = begin + 60*job.TimeLimitMin
		}
		for _, device := range one.devices {
			d := &one.node.devices[device]
			s.lowest = min(s.lowest, s.tierOf(job))
			d.tenants, d.ends, d.tier = d.tenants+1, max(d.ends, end), max(d.tier, s.tierOf(job))
			if len(one.shards) > 0 {
				d.sharing++
			}
		}
	}
}

// resides is a job as a resident of what it holds.
func (s *pass) resides(job slurm.Job, one piece) (horus.Job, []horus.Slot) {
	as := horus.Job{
		ID: job.ID, Name: fmt.Sprint(job.ID), Tenant: owner(job), Exclusive: true,
		GPUsPerTask: int32(len(one.devices)), CPUMilli: int64(one.cpus) * 1000, MemMiB: one.memMiB,
		Demands: []horus.TypeDemand{{Demand: horus.Demand{Flags: horus.Given, GPUUtilPct: 100, MemMiB: 1}}},
	}
	var slots []horus.Slot
	for _, device := range one.devices {
		slots = append(slots, horus.Slot{Node: one.node.id, Device: device})
	}
	if len(slots) == 0 {
		as.GPUsPerTask, as.Exclusive, as.Demands = horus.NoGPUs, false, nil
		slots = []horus.Slot{{Node: one.node.id, Device: horus.NoDevice}}
	} else if len(slots) == 1 && len(one.shards) == 1 && words.Ours(job.Comment) {
		s.asItself(&as, job, one.node.devices[one.devices[0]], one.shards[one.devices[0]])
	}
	return as, slots
}

// asItself makes a resident what its comment says, with the memory of the shards that it holds.
func (s *pass) asItself(as *horus.Job, job slurm.Job, on device, shards int) {
	wish, err := words.Parse(job.Comment, job.WorkDir)
	if err != nil {
		return
	}
	demands, err := s.demands(wish, ask{shards: shards}, as.Tenant)
	if err != nil {
		return
	}
	for i := range demands {
		if demands[i].GPUType == on.model {
			demands[i].Demand.MemMiBUpper = int64(shards) * on.unit
			demands[i].Demand.MemMiB = min(demands[i].Demand.MemMiB, demands[i].Demand.MemMiBUpper)
			as.Exclusive, as.Demands, as.Kind = false, demands[i:i+1], wish.Kind
			as.SlowdownBound, as.SlowdownConfidence = wish.SlowdownBound, wish.SlowdownConfidence
			if record, _ := words.RecordOf(job.AdminComment); s.planner.options.Sharing == horus.MPS {
				as.SMCapPct = int32(record.SMCapPct) // as it was told
			}
			if wish.Anyone {
				as.Share = horus.ShareAnyone
			}
		}
	}
}

// Watched is a device with the jobs that run on it.
type Watched struct {
	learn.Device
	Address string                 // of its node
	Steps   map[string]words.Steps // where its tenants tell their steps, by their keys
}

// DeviceID of the GPU at an index of a node, as exporters count them: in the order of gres.conf.
func DeviceID(node, index string) string { return node + "/" + index }

// watch a job that runs: what it is on each device.
func (s *pass) watch(job slurm.Job, pieces []piece) {
	if !s.planner.options.Watch {
		return
	}
	gpus := 0
	for _, one := range pieces {
		gpus += len(one.devices)
	}
	wish, err := words.Parse(job.Comment, job.WorkDir)
	ours := words.Ours(job.Comment) && err == nil
	key := fmt.Sprintf("%d.%d", job.ID, job.Restarts)
	for _, one := range pieces {
		for _, index := range one.devices {
			on := one.node.devices[index]
			id := DeviceID(one.node.name, strconv.Itoa(on.index))
			device := s.watched[id]
			if device == nil {
				device = &Watched{
					Device:  learn.Device{Node: one.node.name, ID: id, GPUType: on.model, SharingMode: s.planner.options.Sharing},
					Address: one.node.address, Steps: map[string]words.Steps{},
				}
				s.watched[id] = device
			}
			tenant := learn.Tenant{Key: key, GPUs: gpus}
			if ours && wish.Steps.Port != 0 {
				device.Steps[key] = wish.Steps.For(job.ID)
			}
			if ours {
				if demands, err := s.demands(wish, ask{}, owner(job)); err == nil {
					if at := slices.IndexFunc(demands, func(d horus.TypeDemand) bool { return d.GPUType == on.model }); at >= 0 {
						tenant.Kind, tenant.Demand = kindOf(owner(job), demands[at]), demands[at].Demand
					}
				}
			}
			device.Tenants = append(device.Tenants, tenant)
		}
	}
}

func (s *pass) tellWatched() {
	for _, one := range s.watched {
		slices.SortFunc(one.Tenants, func(a, b learn.Tenant) int { return cmp.Compare(a.Key, b.Key) })
		s.result.Watched = append(s.result.Watched, *one)
	}
	slices.SortFunc(s.result.Watched, func(a, b Watched) int { return strings.Compare(a.ID, b.ID) })
}
