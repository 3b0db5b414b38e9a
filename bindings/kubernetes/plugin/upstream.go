// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"

	"libhorus.org/kubernetes/internal/objects"
)

// DRAName is the plugin that takes the place of DynamicResources in a profile with Horus.
const DRAName = "HorusDynamicResources"

// draPlugin is upstream's DynamicResources, which allocates the first device that fits. It sees of a node's GPUs only those
// that Horus chose for the pod of the present cycle; all other devices it sees as they are.
type draPlugin struct {
	*dynamicresources.DynamicResources
	handle fwk.Handle
}

func (draPlugin) Name() string { return DRAName }

// PostFilter has nothing to give back of a pod that was refused before its claims were looked at.
func (pl draPlugin) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if _, err := state.Read(dynamicresources.Name); err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	return pl.DynamicResources.PostFilter(ctx, state, pod, statuses)
}

// PreBind writes the devices into the claims.
func (pl draPlugin) PreBind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	if void := fenced(state); void != nil {
		return void
	}
	status := pl.DynamicResources.PreBind(ctx, state, pod, node)
	if !status.IsSuccess() {
		pl.awaitClaims(ctx, pod)
	}
	return status
}

// awaitClaims waits until the scheduler knows of each claim of a pod what the API server has stored.
func (pl draPlugin) awaitClaims(ctx context.Context, pod *v1.Pod) {
	for _, name := range objects.ClaimNames(pod) {
		untilAnswered(ctx, func(ctx context.Context) (bool, error) {
			stored, err := pl.handle.ClientSet().ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			known, err := pl.handle.SharedDRAManager().ResourceClaims().Get(pod.Namespace, name)
			return stored.Status.Allocation == nil || err != nil || known.UID != stored.UID || known.Status.Allocation != nil, nil
		})
	}
}

// NewDRA makes it, with upstream's defaults.
func NewDRA(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	defaults, args := &kubeschedulerv1.DynamicResourcesArgs{}, &config.DynamicResourcesArgs{}
	scheme.Scheme.Default(defaults)
	if err := scheme.Scheme.Convert(defaults, args, nil); err != nil {
		return nil, err
	}
	upstream, err := dynamicresources.New(ctx, args, draHandle{handle}, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	if err != nil {
		return nil, err
	}
	return draPlugin{upstream.(*dynamicresources.DynamicResources), handle}, nil
}

// chosen are the devices that the pod of the present cycle may have; nil = any. Cycles come one after the other.
var chosen atomic.Pointer[choices]

type choices struct {
	driver string
	nodes  map[string][]objects.Device
}

type draHandle struct{ fwk.Handle }

func (h draHandle) SharedDRAManager() fwk.SharedDRAManager {
	return draManager{h.Handle.SharedDRAManager()}
}

type draManager struct{ fwk.SharedDRAManager }

func (m draManager) ResourceSlices() fwk.ResourceSliceLister {
	return draSlices{m.SharedDRAManager.ResourceSlices()}
}

type draSlices struct{ fwk.ResourceSliceLister }

// ListWithDeviceTaintRules leaves out the GPUs that Horus did not choose. The pools of the nodes chosen stay whole, slice by
// slice, for the allocator refuses incomplete ones.
func (l draSlices) ListWithDeviceTaintRules() ([]*resourceapi.ResourceSlice, error) {
	all, err := l.ResourceSliceLister.ListWithDeviceTaintRules()
	now := chosen.Load()
	if err != nil || now == nil {
		return all, err
	}
	out := make([]*resourceapi.ResourceSlice, 0, len(now.nodes))
	for _, slice := range all {
		if slice.Spec.Driver != now.driver || slice.Spec.NodeName == nil {
			out = append(out, slice)
			continue
		}
		devices, considered := now.nodes[*slice.Spec.NodeName]
		if !considered {
			continue
		}
		reduced := *slice // shallow: only the list of devices is another
		reduced.Spec.Devices = nil
		for _, device := range devices {
			for i := range slice.Spec.Devices {
				if slice.Spec.Pool.Name == device.Pool && slice.Spec.Devices[i].Name == device.Name {
					reduced.Spec.Devices = append(reduced.Spec.Devices, slice.Spec.Devices[i])
				}
			}
		}
		out = append(out, &reduced)
	}
	return out, nil
}

// follow is for a pod some of whose claims have devices already, with other pods or from an attempt that was cut off. It takes
// them back where the pod may not have them: one that does not share came first, or they are not all that it asks for.
func (pl *Horus) follow(ctx context.Context, pod *v1.Pod, view objects.Pod) *fwk.Status {
	if len(pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	beside := pl.mirror.Follow(pod)
	if beside == "" && !view.Partly {
		return nil
	}
	for _, name := range objects.ClaimNames(pod) {
		claim, err := pl.claim(pod.Namespace, name)
		if err != nil || claim.Status.Allocation == nil {
			continue
		}
		for _, consumer := range claim.Status.ReservedFor {
			if consumer.UID != pod.UID && view.Partly {
				return pl.refuse(pod, fmt.Errorf("resource claim %s: has its devices with pod %s: expected the same of the pod's other claims, found some without", claim.Name, consumer.Name))
			}
			if consumer.UID != pod.UID {
				return never("the devices of resource claim %s are pod %s's, which does not share them with it", claim.Name, beside)
			}
		}
		claim = claim.DeepCopy()
		claim.Status.Allocation, claim.Status.ReservedFor, claim.Status.Devices = nil, nil, nil
		if _, err := pl.handle.ClientSet().ResourceV1().ResourceClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
			return fwk.AsStatus(err)
		}
	}
	return never("devices that its claims had from another attempt are given back")
}

// TaintsName is the plugin that takes the place of TaintToleration in a profile with Horus.
const TaintsName = "HorusTaintToleration"

// taintsPlugin is upstream's TaintToleration for pods that all tolerate the taint of this scheduler's nodes.
type taintsPlugin struct {
	*tainttoleration.TaintToleration
	owner objects.Owner
}

func NewTaints(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	upstream, err := tainttoleration.New(ctx, args, handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	if err != nil {
		return nil, err
	}
	return taintsPlugin{upstream.(*tainttoleration.TaintToleration), objects.Owner{Scheduler: handle.ProfileName()}}, nil
}

func (taintsPlugin) Name() string { return TaintsName }

func (pl taintsPlugin) Filter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	if len(info.Node().Spec.Taints) == 0 {
		return nil
	}
	return pl.TaintToleration.Filter(ctx, state, pl.owner.Tolerant(pod), info)
}

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
