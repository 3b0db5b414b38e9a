// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"libhorus.org/horus"
	"libhorus.org/learn"
	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/internal/words"
)

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
