// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured/schedulerapi"

	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
)

// mostExpressions is how many compiled selectors are kept, as upstream's plugin keeps them.
const mostExpressions = 128

var expressions = cel.NewCache(mostExpressions, cel.Features{EnableConsumableCapacity: true})

// rules of a pod's claims, as upstream's allocator applies them: the selectors of class and request, and of devices the taints and
// what is left of their capacities. Of HAMi's, those of its annotations.
func (pl *Horus) rules(ctx context.Context, view objects.Pod) (mirror.Rules, error) {
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
	var all []string
	for _, selector := range class.Spec.Selectors {
		if selector.CEL != nil {
			all = append(all, selector.CEL.Expression)
		}
	}
	all = append(all, view.Allows.Selectors...)
	var compiled []cel.CompilationResult
	for _, expression := range all {
		one := expressions.GetOrCompile(expression)
		if one.Error != nil {
			return mirror.Rules{}, fmt.Errorf("selector %s: %w", expression, one.Error)
		}
		compiled = append(compiled, one)
	}
	out := mirror.Rules{
		Selectors: strings.Join(all, "\x00"),
		Matches: func(device *resourceapi.Device) bool {
			for _, one := range compiled {
				matches, _, err := one.DeviceMatches(ctx, cel.Device{
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
				if out.Tainted == nil {
					out.Tainted = map[objects.Device]bool{}
				}
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
