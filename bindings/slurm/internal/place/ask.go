// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"strings"

	"libhorus.org/slurm/internal/slurm"
)

// ask is the request for GPUs that a job was submitted with.
type ask struct {
	name    string // gpu or shard
	perNode int
	place   string // field of scontrol update
	request string // its value
}

// places of a request, and the letter that a record has for each.
var places = []struct {
	field, letter string
	of            func(slurm.Tres) string
}{
	{"TresPerNode", "node:", func(t slurm.Tres) string { return t.PerNode }},
	{"TresPerJob", "job:", func(t slurm.Tres) string { return t.PerJob }},
	{"TresPerTask", "task:", func(t slurm.Tres) string { return t.PerTask }},
	{"TresPerSocket", "socket:", func(t slurm.Tres) string { return t.PerSocket }},
}

// askOf a job that waits: what a record of ours remembers, else what it asks for now. The error says why Slurm has to place it.
func askOf(job slurm.Job, remembered string) (ask, error) {
	var out ask
	for _, place := range places {
		request := place.of(job.Tres)
		if remembered != "" {
			var is bool
			if request, is = strings.CutPrefix(remembered, place.letter); !is {
				continue
			}
		}
		if request == "" {
			continue
		}
		if out.request != "" {
			return out, fmt.Errorf("it asks for GPUs in two ways, %s and %s", out.request, request)
		}
		out.place, out.request = place.field, request
	}
	all := slurm.GresOf(out.request)
	if len(all) == 0 {
		return out, fmt.Errorf("it asks for no GPU: expected --gpus or --gres=gpu:N for GPUs of its own, --gres=shard:N for a share of one")
	}
	if len(all) > 1 || strings.Contains(out.request, ",") {
		return out, fmt.Errorf("it asks for %s: expected one request without a type", out.request)
	}
	count := all[0].Count
	switch out.place {
	case "TresPerTask":
		count *= job.Tasks
	case "TresPerSocket":
		return out, fmt.Errorf("it asks for GPUs per socket, which is Slurm's to know")
	}
	if out.place != "TresPerNode" {
		if count%job.NodeCount != 0 {
			return out, fmt.Errorf("it asks for %d GPUs on %d nodes: expected as many on each", count, job.NodeCount)
		}
		count /= job.NodeCount
	}
	out.name, out.perNode = all[0].Name, count
	switch {
	case all[0].Type != "":
		return out, fmt.Errorf("it asks for GPUs of type %s: expected no type, and gpu_types=… in the comment", all[0].Type)
	case count < 1:
		return out, fmt.Errorf("it asks for no GPU: %s", out.request)
	case out.name == "shard" && job.NodeCount > 1:
		return out, fmt.Errorf("it asks for shards on %d nodes: expected one, as a job that shares has one GPU", job.NodeCount)
	}
	return out, nil
}

// remember is what a record keeps of it.
func (a ask) remember() string {
	for _, place := range places {
		if place.field == a.place {
			return place.letter + a.request
		}
	}
	return ""
}

// restore makes a job ask again for what it was submitted with; nil where it does. A request that has types by now keeps them
// (slurm.Retype): the job is then free to go to any node, to a GPU of that number.
func (a ask) restore(now slurm.Tres) []slurm.Setting {
	switch {
	case slurm.Typed(now.PerNode) && a.name == "shard":
		old := slurm.GresOf(now.PerNode)[0]
		if old.Count == a.perNode {
			return nil
		}
		return []slurm.Setting{{Field: "TresPerNode", Value: fmt.Sprintf("gres:shard:%s:%d", old.Type, a.perNode)}}
	case now != slurm.Tres{}:
		return nil
	}
	return []slurm.Setting{{Field: a.place, Value: a.request}}
}
