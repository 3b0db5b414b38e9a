// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
)

// Decision stands on a bound pod as JSON: what was decided, and on what evidence.
type Decision struct {
	Devices         []string `json:"devices,omitempty"` // pool/name of each, or UUIDs where they are known
	Slowdown        float32  `json:"slowdown"`          // expected; 1 = alone
	SlowdownUpper   float32  `json:"slowdownUpper"`     // not exceeded with a probability of 0.9
	Beside          []string `json:"beside,omitempty"`  // pods on the same devices, as namespace/name
	Trial           bool     `json:"trial,omitempty"`   // it shares by expectation, not by the bounds
	Cost            float64  `json:"cost"`
	RunnerUpCost    *float64 `json:"runnerUpCost,omitempty"`
	Text            string   `json:"text"`
	EvidenceProfile string   `json:"profile,omitempty"` // the JobProfile that it rests on
}

func decisionOf(pod *v1.Pod, choice mirror.Choice) Decision {
	d := choice.Decision
	out := Decision{
		Slowdown: d.Slowdown, SlowdownUpper: d.SlowdownUpper, Beside: choice.Beside, Trial: d.Trial, Cost: d.Cost, Text: d.Text,
		EvidenceProfile: pod.Annotations[objects.ProfileAnnotation],
	}
	if d.RunnerUpCost == d.RunnerUpCost { // NaN: there is none
		out.RunnerUpCost = &d.RunnerUpCost
	}
	for _, device := range choice.Devices {
		switch {
		case device.UUID != "":
			out.Devices = append(out.Devices, device.UUID)
		case device.Name != "":
			out.Devices = append(out.Devices, device.Pool+"/"+device.Name)
		}
	}
	return out
}

// Bind binds the pods that it reserved devices for. The decision goes with the binding and so onto the pod, in one call of
// the API.
func (pl *Horus) Bind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	c := cycleOf(state)
	if c == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	if void := fenced(state); void != nil {
		return void
	}
	told, err := json.Marshal(decisionOf(pod, c.choice))
	if err != nil {
		return fwk.AsStatus(err)
	}
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			Annotations: map[string]string{objects.DecisionAnnotation: string(told)},
		},
		Target: v1.ObjectReference{Kind: "Node", Name: node},
	}
	bind := pl.bind
	if c.choice.Backend == objects.HAMi {
		bind = func(ctx context.Context, binding *v1.Binding) error { return pl.bindHAMi(ctx, state, pod, binding) }
	}
	if err := bind(ctx, binding); err != nil {
		return fwk.AsStatus(err)
	}
	placements.WithLabelValues(strconv.FormatBool(len(c.choice.Beside) > 0)).Inc()
	return nil
}

// bindHAMi binds under the node's lock, which HAMi's device plugin frees when it has given the devices to the pod.
func (pl *Horus) bindHAMi(ctx context.Context, state fwk.CycleState, pod *v1.Pod, binding *v1.Binding) error {
	lock := newHAMiLock(pl.handle, pl.args.HAMi.LockExpiry.Duration, pod, binding.Target.Name)
	if err := lock.take(ctx); err != nil {
		return err
	}
	c, now := cycleOf(state), time.Now()
	given := objects.HAMiBinding(pl.args.Settings(), pod, c.view, c.choice.Node, c.choice.Devices, now)
	maps.Copy(binding.Annotations, given)
	err := fenced(state).AsError() // it may have waited for the lock
	if err == nil {
		err = pl.record(ctx, pod, objects.HAMiRecord(c.choice.Node, given, now))
	}
	if err == nil {
		err = pl.bind(ctx, binding)
	}
	if err != nil {
		lock.free()
	}
	return err
}

// record writes a condition into a pod's status.
func (pl *Horus) record(ctx context.Context, pod *v1.Pod, condition v1.PodCondition) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID}, "status": map[string]any{"conditions": []v1.PodCondition{condition}},
	})
	if err != nil {
		return err
	}
	_, err = pl.handle.ClientSet().CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func (pl *Horus) bind(ctx context.Context, binding *v1.Binding) error {
	err := pl.post(ctx, binding)
	if err != nil && pl.isBound(ctx, binding) {
		return nil
	}
	return err
}

func (pl *Horus) post(ctx context.Context, binding *v1.Binding) error {
	if cacher := pl.handle.APICacher(); cacher != nil {
		done, err := cacher.BindPod(binding)
		if err != nil {
			return err
		}
		return cacher.WaitOnFinish(ctx, done)
	}
	return pl.handle.ClientSet().CoreV1().Pods(binding.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
}
