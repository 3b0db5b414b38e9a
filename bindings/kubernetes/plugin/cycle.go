// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured/schedulerapi"
	fwk "k8s.io/kube-scheduler/framework"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
)

// cycle is what is known of a pod while it is scheduled.
type cycle struct {
	view     objects.Pod
	allows   mirror.Rules
	began    time.Time
	verdicts []mirror.Verdict // of the scheduler's nodes, in its order
	rows     func() map[string]int
	kept     map[string]candidate
	narrowed bool    // more nodes fit than were kept
	barred   int     // nodes that fit, of whose devices the pod allows too few
	full     string  // its namespace shares as many GPUs as it may; a sentence
	best     float64 // least and largest cost of those kept
	worst    float64
	gone     map[string][]types.UID   // of a dry run of preemption, by node
	first    map[string][]objects.Pod // nominated pods that count before this one
	choice   mirror.Choice            // once reserved
}

// candidate is a node that is left to the other plugins.
type candidate struct {
	cost   float64
	choice *mirror.Choice // of the devices, for pods that are given them by name
	alone  bool           // on them, by its namespace's quota
}

func alone(view objects.Pod) objects.Pod {
	view.Horus.Exclusive = true
	return view
}

// verdictOf a node; rows are made once, for attempts in which the scheduler asks about more than the candidates.
func (c *cycle) verdictOf(name string) mirror.Verdict {
	if one, ok := c.kept[name]; ok {
		return mirror.Verdict{Cost: one.cost, Known: true}
	}
	if row, ok := c.rows()[name]; ok {
		return c.verdicts[row]
	}
	return mirror.Verdict{Reason: horus.ReasonGPUType}
}

// Clone lets preemption try its dry runs apart.
func (c *cycle) Clone() fwk.StateData {
	out := *c
	out.gone, out.first = maps.Clone(c.gone), maps.Clone(c.first)
	return &out
}

func cycleOf(state fwk.CycleState) *cycle {
	data, err := state.Read(Name)
	if err != nil {
		return nil // a pod without GPUs
	}
	return data.(*cycle)
}

// ask gets the verdicts and picks the candidates: the planned node alone, where it takes the pod; else the cheapest. whole: the
// pod is tried once, and all that fit are candidates.
func (pl *Horus) ask(view objects.Pod, rules mirror.Rules, pod *v1.Pod, nodes []fwk.NodeInfo, planned string, whole bool) (*cycle, error) {
	c := &cycle{view: view, allows: rules, kept: map[string]candidate{}, gone: map[string][]types.UID{}, first: map[string][]objects.Pod{}}
	c.rows = sync.OnceValue(func() map[string]int {
		rows := make(map[string]int, len(nodes))
		for i, info := range nodes {
			rows[info.Node().Name] = i
		}
		return rows
	})
	if quota, limited := pl.args.quota(pod.Namespace); limited && !view.Horus.Exclusive {
		if shared := pl.mirror.Shared(pod.Namespace); shared >= quota {
			c.full = fmt.Sprintf(" Namespace %s shares %d GPUs and may share %d: its pods come in alone, or where it shares.", pod.Namespace, shared, quota)
		}
	}
	var err error
	if c.verdicts, err = pl.mirror.Verdicts(view, nodes); err != nil {
		return nil, err
	}
	fits := make([]int, 0, len(nodes))
	for i := range c.verdicts {
		if c.verdicts[i].Reason == horus.ReasonNone {
			fits = append(fits, i)
		}
	}
	slices.SortStableFunc(fits, func(a, b int) int { return cmp.Compare(c.verdicts[a].Cost, c.verdicts[b].Cost) })
	most := pl.args.Candidates
	if _, again := pl.wide.Load(pod.UID); again || whole || most < 0 {
		most = len(fits)
	} else if planned != "" {
		if at := slices.IndexFunc(fits, func(i int) bool { return nodes[i].Node().Name == planned }); at >= 0 {
			first := fits[at]
			fits, most = slices.Insert(slices.Delete(fits, at, at+1), 0, first), 1
		}
	}
	return c, pl.keep(c, fits, objects.OpennessOf(pod, pl.owner), nodes, most)
}

// keep walks the nodes that fit, in order, until it has `most`. Of those that are open to the pod it picks the devices, where they
// have names, and shows the allocator of claims no others.
func (pl *Horus) keep(c *cycle, fits []int, open objects.Openness, nodes []fwk.NodeInfo, most int) error {
	devices := map[string][]objects.Device{}
	for _, i := range fits {
		if len(c.kept) == most {
			c.narrowed = true
			break
		}
		if !open.To(nodes[i].Node()) {
			continue
		}
		name, one := nodes[i].Node().Name, candidate{cost: c.verdicts[i].Cost}
		if c.view.Backend.Names() {
			choice, err := pl.mirror.Choose(c.view, name, c.allows)
			if err == nil && c.full != "" && pl.mirror.SharesMore(c.view.Horus.Tenant, choice.Slots) {
				choice, err = pl.mirror.Choose(alone(c.view), name, c.allows)
				one.alone, one.cost = true, choice.Decision.Cost
			}
			if errors.Is(err, mirror.ErrNotAllowed) {
				c.barred++
			}
			if errors.Is(err, mirror.ErrNoPlace) {
				continue
			}
			if err != nil {
				return err
			}
			if one.choice = &choice; c.view.Backend == objects.DRA {
				devices[name] = choice.Devices
			}
		}
		if len(c.kept) == 0 {
			c.best, c.worst = one.cost, one.cost
		}
		c.best, c.worst, c.kept[name] = min(c.best, one.cost), max(c.worst, one.cost), one
	}
	if len(devices) > 0 {
		chosen.Store(&choices{driver: pl.args.Driver, nodes: devices})
	}
	return nil
}

// why a pod that the library would place is not.
func (c *cycle) why() string {
	why := c.full
	if c.view.Contradiction != "" {
		why += " Note that " + c.view.Contradiction + "."
	}
	switch {
	case c.barred == 0:
		return why
	case c.view.Backend == objects.HAMi:
		return why + fmt.Sprintf(" On %d nodes with room its annotations allow too few GPUs, by type or UUID.", c.barred)
	}
	return why + fmt.Sprintf(" On %d nodes with room its claims allow too few GPUs: by selectors, device taints, capacities such as shares, or since they ask for no memory and so get all of it.", c.barred)
}

func (c *cycle) mainReason() horus.Reason {
	counts := map[horus.Reason]int{}
	most := horus.ReasonNone
	for _, v := range c.verdicts {
		if counts[v.Reason]++; counts[v.Reason] > counts[most] || (counts[v.Reason] == counts[most] && v.Reason < most) {
			most = v.Reason
		}
	}
	return most
}

// mostExpressions is how many compiled selectors are kept, as upstream's plugin keeps them.
const mostExpressions = 128

var expressions = cel.NewCache(mostExpressions, cel.Features{EnableConsumableCapacity: true})

// rules of a pod's claims, as upstream's allocator applies them: the selectors of class and request, and of devices the taints and
// what is left of their capacities. Of HAMi's, those of its annotations.
func (pl *Horus) rules(view objects.Pod) (mirror.Rules, error) {
	if view.Backend == objects.HAMi {
		return mirror.Rules{Selectors: view.HAMi.Key(), Matches: view.HAMi.Allows}, nil
	}
	if view.Backend != objects.DRA || view.Mixed { // upstream's allocator applies those of each request
		return mirror.Rules{Matches: func(*resourceapi.Device) bool { return true }}, nil
	}
	class, err := pl.handle.SharedDRAManager().DeviceClasses().Get(view.Allows.Class)
	if err != nil {
		return mirror.Rules{}, fmt.Errorf("device class %s: %w", view.Allows.Class, err)
	}
	all := append(objects.Expressions(class.Spec.Selectors), view.Allows.Selectors...)
	var compiled []cel.CompilationResult
	for _, expression := range all {
		one := expressions.GetOrCompile(expression)
		if one.Error != nil {
			return mirror.Rules{}, fmt.Errorf("selector %s: %w", expression, one.Error)
		}
		compiled = append(compiled, one)
	}
	out := mirror.Rules{
		Selectors: strings.Join(all, "\x00"), Tainted: map[objects.Device]bool{},
		Matches: func(device *resourceapi.Device) bool {
			for _, one := range compiled {
				matches, _, err := one.DeviceMatches(context.Background(), cel.Device{
					Driver: pl.args.Driver, AllowMultipleAllocations: device.AllowMultipleAllocations,
					Attributes: device.Attributes, Capacity: device.Capacity,
				})
				if err != nil || !matches { // an attribute that this device lacks: the allocator would fail on it
					return false
				}
			}
			return true
		},
	}
	listed, err := pl.handle.SharedDRAManager().ResourceSlices().ListWithDeviceTaintRules()
	if err != nil {
		return out, err
	}
	for _, slice := range listed {
		if slice.Spec.Driver != pl.args.Driver {
			continue
		}
		for i := range slice.Spec.Devices {
			if device := &slice.Spec.Devices[i]; keepsOut(device.Taints, view.Allows.Tolerations) {
				out.Tainted[objects.Device{Pool: slice.Spec.Pool.Name, Name: device.Name}] = true
			}
		}
	}
	used := sync.OnceValue(func() schedulerapi.ConsumedCapacityCollection { // by claims that are on their way, too
		state, err := pl.handle.SharedDRAManager().ResourceClaims().GatherAllocatedState()
		if err != nil {
			return nil // it changes as we look: the allocator decides
		}
		return state.AggregatedCapacity
	})
	out.Holds = func(at objects.Device, device *resourceapi.Device) bool {
		if view.CountedByMemory(device) {
			return view.FitsBeside(device, nil)
		}
		return view.FitsBeside(device, used()[schedulerapi.MakeDeviceID(pl.args.Driver, at.Pool, at.Name)])
	}
	return out, nil
}

func keepsOut(taints []resourceapi.DeviceTaint, tolerations []resourceapi.DeviceToleration) bool {
	return slices.ContainsFunc(taints, func(taint resourceapi.DeviceTaint) bool {
		closes := taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute
		return closes && !slices.ContainsFunc(tolerations, func(one resourceapi.DeviceToleration) bool { return resourceclaim.ToleratesTaint(one, taint) })
	})
}
