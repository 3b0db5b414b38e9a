// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"

	"libhorus.org/kubernetes/internal/objects"
)

// TaintsName is the plugin that takes the place of TaintToleration in a profile with Horus.
const TaintsName = "HorusTaintToleration"

// taintsPlugin is upstream's TaintToleration for pods that all tolerate the taint of this scheduler's nodes.
type taintsPlugin struct {
	*tainttoleration.TaintToleration
	owner objects.Owner
}

// NewTaints makes it.
func NewTaints(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	upstream, err := tainttoleration.New(ctx, args, handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	if err != nil {
		return nil, err
	}
	pl, ok := upstream.(*tainttoleration.TaintToleration)
	if !ok {
		return nil, fmt.Errorf("%s: expected the upstream plugin, found %T", TaintsName, upstream)
	}
	return taintsPlugin{pl, objects.Owner{Scheduler: handle.ProfileName()}}, nil
}

// Name of the plugin.
func (taintsPlugin) Name() string { return TaintsName }

// Filter is upstream's.
func (pl taintsPlugin) Filter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	if len(info.Node().Spec.Taints) == 0 {
		return nil
	}
	return pl.TaintToleration.Filter(ctx, state, pl.owner.Tolerant(pod), info)
}

// EventsToRegister are upstream's.
func (pl taintsPlugin) EventsToRegister(ctx context.Context) ([]fwk.ClusterEventWithHint, error) {
	events, err := pl.TaintToleration.EventsToRegister(ctx)
	for i := range events {
		hint := events[i].QueueingHintFn
		events[i].QueueingHintFn = func(logger klog.Logger, pod *v1.Pod, before, now any) (fwk.QueueingHint, error) {
			return hint(logger, pl.owner.Tolerant(pod), before, now)
		}
	}
	return events, err
}
