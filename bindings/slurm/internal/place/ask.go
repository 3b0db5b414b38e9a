// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"libhorus.org/slurm/internal/slurm"
)

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
