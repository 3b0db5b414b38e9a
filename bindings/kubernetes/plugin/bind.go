// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
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
		if name := device.Pool + "/" + device.Name; device.UUID != "" || name != "/" {
			out.Devices = append(out.Devices, cmp.Or(device.UUID, name))
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
	if c.choice.Backend == objects.HAMi {
		err = pl.bindHAMi(ctx, state, pod, binding)
	} else {
		err = pl.bind(ctx, binding)
	}
	if err != nil {
		return fwk.AsStatus(err)
	}
	placements.WithLabelValues(strconv.FormatBool(len(c.choice.Beside) > 0)).Inc()
	return nil
}

// bindHAMi binds under the node's lock, which HAMi's device plugin frees when it has given the devices to the pod.
func (pl *Horus) bindHAMi(ctx context.Context, state fwk.CycleState, pod *v1.Pod, binding *v1.Binding) error {
	lock := &hamiLock{
		nodes: pl.handle.SharedInformerFactory().Core().V1().Nodes().Lister(), client: pl.handle.ClientSet(),
		expiry: pl.args.HAMi.LockExpiry.Duration, pod: pod, node: binding.Target.Name,
	}
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

func (pl *Horus) bind(ctx context.Context, binding *v1.Binding) (err error) {
	if cacher := pl.handle.APICacher(); cacher == nil {
		err = pl.handle.ClientSet().CoreV1().Pods(binding.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
	} else if done, refused := cacher.BindPod(binding); refused != nil {
		err = refused
	} else {
		err = cacher.WaitOnFinish(ctx, done)
	}
	if err != nil && pl.isBound(ctx, binding) {
		return nil
	}
	return err
}

// A process that stands still for a while, as a suspended machine or a frozen cgroup lets it, may go on when another replica
// leads and has given the GPUs away. It learns of its lost lease within milliseconds, and would have written its choice by
// then. So what was chosen before a standstill, or just after it, is void, and nobody is preempted for it.
const (
	beatEvery = 100 * time.Millisecond
	// The chart's lease leaves 2 s between the end of a leader that cannot renew and the next leader: half of it.
	standstill = time.Second
	// Until the process knows what it missed. It takes milliseconds.
	catchingUp = 250 * time.Millisecond
)

// pulse tells when the process stood still last.
type pulse struct {
	mu    sync.Mutex
	seen  time.Time // running
	stood time.Time // the end of the last standstill; zero = never
}

// beat says that the process runs, and tells the time.
func (p *pulse) beat() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	// By the wall clock too: the monotonic one may stand while a machine is suspended.
	if gap := max(now.Sub(p.seen), now.Round(0).Sub(p.seen.Round(0))); !p.seen.IsZero() && gap > standstill {
		p.stood = now
	}
	p.seen = now
	return now
}

func (p *pulse) run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) { p.beat() }, beatEvery)
}

// void says whether what began at a time was overtaken by a standstill.
func (p *pulse) void(began time.Time) bool {
	p.beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stood.IsZero() && began.Before(p.stood.Add(catchingUp))
}

// running is of this process; both plugins look at it before they write.
var running pulse

func fenced(state fwk.CycleState) *fwk.Status {
	if c := cycleOf(state); c != nil && running.void(c.began) {
		return failed(errors.New("the process stood still since it chose: the choice is void, and the pod is tried again"))
	}
	return nil
}

// A write that failed may have been done: an API server that dies has stored what it did not answer. Until that is known, the
// GPUs are neither given back nor given to another pod.

const askAgainEvery = 250 * time.Millisecond

// untilAnswered asks the API server until it answers; settled says whether the answer is enough.
func untilAnswered(ctx context.Context, ask func(ctx context.Context) (settled bool, err error)) {
	_ = wait.PollUntilContextCancel(ctx, askAgainEvery, true, func(ctx context.Context) (bool, error) {
		settled, err := ask(ctx)
		return settled || apierrors.IsNotFound(err) || apierrors.IsForbidden(err), nil
	})
}

func (pl *Horus) isBound(ctx context.Context, binding *v1.Binding) (bound bool) {
	untilAnswered(ctx, func(ctx context.Context) (bool, error) {
		stored, err := pl.handle.ClientSet().CoreV1().Pods(binding.Namespace).Get(ctx, binding.Name, metav1.GetOptions{})
		bound = err == nil && stored.UID == binding.UID && stored.Spec.NodeName == binding.Target.Name
		return err == nil, err
	})
	return bound
}
