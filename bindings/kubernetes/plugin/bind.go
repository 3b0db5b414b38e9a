// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

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
		if device.UUID != "" || device.Name != "" { // whole GPUs have neither
			out.Devices = append(out.Devices, cmp.Or(device.UUID, device.Pool+"/"+device.Name))
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

// hamiLock is HAMi's lock on a node, an annotation "time,namespace,name". From the binding of a pod until HAMi's device plugin has
// served it no other pod of the node may be in between: the plugin finds the pod by the lock.
type hamiLock struct {
	nodes  corelisters.NodeLister
	client kubernetes.Interface
	expiry time.Duration
	pod    *v1.Pod
	node   string
	value  string // of ours
}

const (
	hamiLockAnnotation = "hami.io/mutex.lock"
	hamiLockPath       = "/metadata/annotations/hami.io~1mutex.lock" // as a JSON pointer
	lockWithin         = 30 * time.Second                            // then the pod gives its place back and is tried again
	lockTriedEvery     = 100 * time.Millisecond
	lockFreedWithin    = 5 * time.Second
)

func (l *hamiLock) take(ctx context.Context) error {
	var held error
	err := wait.PollUntilContextTimeout(ctx, lockTriedEvery, lockWithin, true, func(ctx context.Context) (taken bool, err error) {
		held, err = l.try(ctx)
		return held == nil && err == nil, err
	})
	if err != nil && ctx.Err() == nil && held != nil {
		return fmt.Errorf("Horus: %w", held)
	}
	if err != nil {
		return fmt.Errorf("Horus: node %s: annotation %s: %w", l.node, hamiLockAnnotation, err)
	}
	return nil
}

// try takes it if it is free or void; held says by whom it is held.
func (l *hamiLock) try(ctx context.Context) (held, err error) {
	node, err := l.nodes.Get(l.node)
	if err != nil {
		return nil, err
	}
	found, locked := node.Annotations[hamiLockAnnotation]
	if locked {
		if held, err = l.holds(ctx, found); held != nil || err != nil {
			return held, err
		}
		klog.InfoS("Horus: HAMi's lock is void", "node", l.node, "lock", found, "pod", klog.KObj(l.pod))
	}
	l.value = strings.Join([]string{time.Now().UTC().Format(time.RFC3339), l.pod.Namespace, l.pod.Name}, ",")
	patch := map[string]any{"metadata": map[string]any{
		"resourceVersion": node.ResourceVersion, "annotations": map[string]any{hamiLockAnnotation: l.value},
	}}
	if err = l.patch(ctx, types.MergePatchType, patch); apierrors.IsConflict(err) { // the node is another already
		return fmt.Errorf("node %s: annotation %s: expected it free, found the node changed in the meantime", l.node, hamiLockAnnotation), nil
	}
	return nil, err
}

// holds says why a lock holds, by HAMi's rules: it is younger than its expiry, and its pod is there. One that can no longer be served
// on the node does not hold, as one in the name of this very pod, from an attempt that was cut off.
func (l *hamiLock) holds(ctx context.Context, found string) (held, err error) {
	at, owner, named := strings.Cut(found, ",")
	namespace, name, whole := strings.Cut(owner, ",")
	since, wrong := time.Parse(time.RFC3339, at)
	if wrong != nil || (named && (!whole || strings.Contains(name, ","))) {
		return fmt.Errorf("node %s: annotation %s: expected time,namespace,name, found %q", l.node, hamiLockAnnotation, found), nil
	}
	held = fmt.Errorf("node %s: annotation %s: expected it free, found it held since %s by pod %s/%s", l.node, hamiLockAnnotation, at, namespace, name)
	switch {
	case time.Since(since) > l.expiry || (namespace == l.pod.Namespace && name == l.pod.Name):
		return nil, nil
	case namespace == "" || name == "":
		return held, nil
	}
	pod, err := l.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case pod.Spec.NodeName != "" && pod.Spec.NodeName != l.node, podutil.IsPodTerminal(pod):
		return nil, nil
	}
	return held, nil
}

// free gives it back where it is still ours. What fails here expires.
func (l *hamiLock) free() {
	ctx, cancel := context.WithTimeout(context.Background(), lockFreedWithin)
	defer cancel()
	err := l.patch(ctx, types.JSONPatchType, []any{
		map[string]any{"op": "test", "path": hamiLockPath, "value": l.value},
		map[string]any{"op": "remove", "path": hamiLockPath},
	})
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) {
		klog.ErrorS(err, "Horus: HAMi's lock is not freed", "node", l.node, "lock", l.value)
	}
}

func (l *hamiLock) patch(ctx context.Context, kind types.PatchType, patch any) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = l.client.CoreV1().Nodes().Patch(ctx, l.node, kind, text, metav1.PatchOptions{})
	return err
}
