// SPDX-License-Identifier: Apache-2.0

// Package plugin places pods with GPUs inside kube-scheduler: libhorus says which nodes can take a pod, how good each is, and
// which devices it is to have there.
package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/feed"
	"libhorus.org/kubernetes/internal/library"
	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
)

// Name of the plugin.
const Name = "Horus"

// Horus is the plugin.
type Horus struct {
	args     Args
	owner    objects.Owner
	handle   fwk.Handle
	mirror   *mirror.Mirror
	profiles *feed.Profiles
	synced   []cache.InformerSynced
	groups   podGroupLister
	gangs    *gangs
	turns    *turns
	wide     sync.Map // UIDs of pods that the candidates were closed to
	invalid  sync.Map // UID -> *v1.Pod, of those whose objects are wrong
	refused  sync.Map // UID -> *v1.Pod, of those that found no GPU
	grown    atomic.Bool
}

// forget a pod that came in or went.
func (pl *Horus) forget(uid types.UID) {
	pl.wide.Delete(uid)
	pl.invalid.Delete(uid)
	pl.refused.Delete(uid)
}

// New makes the plugin and mirrors the cluster from the scheduler's own informers.
func New(ctx context.Context, raw runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := parseArgs(raw)
	if err != nil {
		return nil, err
	}
	args.Choose = args.Mode == Place && args.Choose
	pl := &Horus{args: args, handle: handle, owner: objects.Owner{Scheduler: handle.ProfileName(), Only: args.Mode == Place && !args.AllNodes}}
	lookups := objects.Lookups{Claim: pl.claim, Profile: func(namespace, name string) (objects.Profile, error) { return pl.profiles.Get(namespace, name) }, Pod: pl.pod}
	var lib library.Library
	if args.Isolated {
		lib, err = library.Child(args.Placer(), args.CallTimeout.Duration)
	} else {
		lib, err = library.Local(args.Placer())
	}
	if err != nil {
		return nil, err
	}
	settings := args.Settings()
	settings.Owner = pl.owner
	pl.mirror = mirror.New(settings, lookups, lib)
	if args.Isolated {
		go pl.mirror.KeepAlive(ctx)
	} else {
		go pl.watchCalls(ctx)
	}
	go running.run(ctx)
	pl.mirror.Grown, pl.mirror.Early = pl.tryAgain, args.Mode == Place
	if args.Mode == Place {
		pl.mirror.Contradicts = func(pod *v1.Pod, sentence string) { pl.tell(pod, v1.EventTypeWarning, "HorusContradiction", sentence) }
	} else {
		registerShadow()
		pl.mirror.Seen = judges(handle.ProfileName())
	}
	pl.gangs = &gangs{handle: handle, groups: pl.groups.get, plan: pl.planGang, freed: pl.mirror.Freed, all: map[string]*gang{}}
	pl.turns = &turns{
		handle: handle, patience: args.Patience.Duration, known: pl.pod, plan: pl.planTurns, tell: pl.passedOver, pods: map[types.UID]*waiter{},
		takesPart: func(pod *v1.Pod) bool { _, part := pl.turnOf(pod); return part },
	}
	if err := pl.watch(ctx); err != nil {
		return nil, err
	}
	if args.Choose {
		go wait.UntilWithContext(ctx, func(context.Context) {
			if pl.ready() {
				pl.turns.next()
			}
		}, planEvery)
	}
	pl.register()
	return pl, pl.followModel(ctx)
}

func (pl *Horus) Name() string { return Name }

// PreFilter asks the library for all nodes in one call, and leaves the best of those that fit to the other plugins: as many
// as Candidates, all of them once the pod came back from those.
func (pl *Horus) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	chosen.Store(nil)
	view, err := pl.mirror.Read(pod)
	if err != nil {
		return nil, pl.refuse(pod, err)
	}
	if view.Beyond != "" && !view.Allocated && pl.args.Mode == Place {
		return nil, pl.refuse(pod, errors.New(view.Beyond))
	}
	gpus := view.Backend != objects.NoGPUs
	if !gpus && (gangOf(pod) == "" || pl.args.Mode == Shadow) {
		return nil, pl.skip()
	}
	if pl.args.Mode == Shadow {
		if gangOf(pod) == "" && pl.ready() {
			pl.dryRun(view, pod, nodes)
		}
		return nil, never("it runs in shadow mode and binds nothing")
	}
	if !pl.ready() {
		return nil, failed(errors.New("the cluster is not mirrored yet"))
	}
	if status := pl.follow(ctx, pod, view); status != nil {
		return nil, status
	}
	planned, wait := pl.enter(pod)
	if wait != nil {
		return nil, wait
	}
	planned = cmp.Or(planned, pl.turns.node(pod.UID))
	if !gpus || view.Allocated {
		return nil, pl.skip() // devices that a claim has already are followed, not chosen
	}
	begin := running.beat()
	rules, err := pl.rules(view)
	if err != nil {
		return nil, pl.refuse(pod, err)
	}
	c, err := pl.ask(view, rules, pod, nodes, planned, state.IsPodGroupSchedulingCycle())
	verdictSeconds.Observe(time.Since(begin).Seconds())
	if errors.Is(err, horus.ErrInvalidArgument) || errors.Is(err, horus.ErrNotFound) || errors.Is(err, horus.ErrLimit) {
		return nil, pl.refuse(pod, err) // what the profile says, as the library reads it
	}
	if errors.Is(err, library.ErrGone) && pl.args.FailurePolicy == Ignore {
		withoutLibrary.Inc()
		return nil, pl.skip()
	}
	if err != nil {
		return nil, failed(err)
	}
	c.began = begin
	state.Write(Name, c)
	if len(c.kept) == 0 {
		return nil, nil // Filter tells each node's reason, and preemption may look at it
	}
	return &fwk.PreFilterResult{NodeNames: sets.KeySet(c.kept)}, nil
}

// dryRun tells the owner of a pod where it would go, by what the library and the pod's own rules say.
func (pl *Horus) dryRun(view objects.Pod, pod *v1.Pod, nodes []fwk.NodeInfo) {
	rules, err := pl.rules(view)
	var c *cycle
	if err == nil {
		c, err = pl.ask(view, rules, pod, nodes, "", false)
		chosen.Store(nil)
	}
	if err != nil {
		pl.refuse(pod, err)
		return
	}
	var told string
	if len(c.kept) > 0 {
		best := slices.MinFunc(slices.Collect(maps.Keys(c.kept)), func(a, b string) int {
			return cmp.Or(cmp.Compare(c.kept[a].cost, c.kept[b].cost), cmp.Compare(a, b))
		})
		if told = "It would be bound to " + best + "."; c.kept[best].choice != nil {
			told += " " + c.kept[best].choice.Decision.Text
		}
	} else {
		near, err := pl.mirror.Nearest(view, objects.OpennessOf(pod, pl.owner))
		if err != nil {
			return
		}
		told = "It would wait: " + near + "." + c.why()
	}
	pl.tell(pod, v1.EventTypeNormal, "HorusDryRun", told)
}

// skip is for a pod of which Filter looks at the nodes' owner alone.
func (pl *Horus) skip() *fwk.Status {
	if pl.owner.Only {
		return nil
	}
	return fwk.NewStatus(fwk.Skip)
}

// refuse tells a pod's owner what is wrong with it.
func (pl *Horus) refuse(pod *v1.Pod, err error) *fwk.Status {
	invalidPods.Inc()
	pl.invalid.Store(pod.UID, pod)
	pl.tell(pod, v1.EventTypeWarning, "HorusInvalid", err.Error())
	return never("%v", err)
}

func (pl *Horus) tell(pod *v1.Pod, kind, reason, text string) {
	pl.handle.EventRecorder().Eventf(pod, nil, kind, reason, "Scheduling", "%s", note(text))
}

// mostNote is what the API server takes as the note of an event, in bytes (NoteLengthLimit of its validation, less the dots);
// it drops an event with a longer one.
const mostNote = 1024 - 4

// note cuts a sentence that quotes what a stranger wrote.
func note(text string) string {
	if len(text) <= mostNote {
		return text
	}
	return strings.ToValidUTF8(text[:mostNote], "") + "…"
}

// never is the status of a pod, or of a node for it, that nobody's leaving helps.
func never(format string, args ...any) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, note("Horus: "+fmt.Sprintf(format, args...)))
}

func failed(err error) *fwk.Status { return fwk.AsStatus(fmt.Errorf("Horus: %w", err)) }

func (pl *Horus) PreFilterExtensions() fwk.PreFilterExtensions { return pl }

// AddPod counts a nominated pod on a node.
func (pl *Horus) AddPod(_ context.Context, state fwk.CycleState, _ *v1.Pod, added fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	c := cycleOf(state)
	if c == nil {
		return nil
	}
	name := node.Node().Name
	if i := slices.Index(c.gone[name], added.GetPod().UID); i >= 0 { // a victim that is put back
		c.gone[name] = slices.Delete(slices.Clone(c.gone[name]), i, i+1)
		return nil
	}
	if view, err := pl.mirror.Read(added.GetPod()); err == nil && view.Backend != objects.NoGPUs && !pl.mirror.Has(added.GetPod().UID) {
		c.first[name] = append(slices.Clip(c.first[name]), view)
	}
	return nil
}

func (pl *Horus) RemovePod(_ context.Context, state fwk.CycleState, _ *v1.Pod, removed fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	if c := cycleOf(state); c != nil {
		name := node.Node().Name
		c.gone[name] = append(slices.Clip(c.gone[name]), removed.GetPod().UID)
	}
	return nil
}

// Filter answers by PreFilter's verdict, and anew where preemption supposes something of the node.
func (pl *Horus) Filter(_ context.Context, state fwk.CycleState, _ *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	if !pl.owner.May(info.Node()) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "Horus: the node is not its own: no label "+objects.SchedulerLabel+"="+pl.owner.Scheduler)
	}
	c := cycleOf(state)
	if c == nil {
		return nil
	}
	name := info.Node().Name
	verdict := c.verdictOf(name)
	if !verdict.Known {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "Horus: no GPUs that it places")
	}
	reason, supposed := verdict.Reason, len(c.gone[name]) > 0 || len(c.first[name]) > 0
	if supposed && c.view.HAMi.Names() {
		return never("a pod that names types or UUIDs of GPUs preempts nobody")
	}
	if supposed {
		var err error
		if reason, err = pl.mirror.FitsWithout(c.view, name, c.gone[name], c.first[name]); err != nil {
			return failed(err)
		}
	}
	if reason == horus.ReasonNone {
		if _, planned := c.kept[name]; c.view.Backend.Names() && !planned && !supposed {
			return fwk.NewStatus(fwk.Unschedulable, "Horus: no devices were chosen there") // others than it allows would be taken
		}
		return nil
	}
	code := fwk.Unschedulable
	if reason == horus.ReasonGPUType {
		code = fwk.UnschedulableAndUnresolvable // nobody's leaving changes the type
	}
	return fwk.NewStatus(code, "Horus: "+reason.String())
}

// PostFilter tells the pod, once an attempt, how near it was; whom to preempt is left to the next plugin.
func (pl *Horus) PostFilter(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	c := cycleOf(state)
	if c == nil || !c.narrowed {
		pl.gangs.fail(pod)
		pl.turns.attempt(pod.UID, false, true)
	}
	code := fwk.Unschedulable
	if gangOf(pod) != "" {
		code = fwk.UnschedulableAndUnresolvable // nobody is preempted for one pod of a gang
	}
	if c == nil {
		return withdrawn(pod), fwk.NewStatus(code)
	}
	if c.narrowed || running.void(c.began) {
		// The candidates were closed to the pod by other plugins, or the picture was old: the next attempt looks at all nodes,
		// and comes at once.
		pl.wide.Store(pod.UID, true)
		activate(pl.handle, pod)
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable) // and nobody is preempted for what was not looked at
	}
	pl.refused.Store(pod.UID, pod)
	refusals.WithLabelValues(c.mainReason().String()).Inc()
	if len(c.kept) == 0 {
		if near, err := pl.mirror.Nearest(c.view, objects.OpennessOf(pod, pl.owner)); err == nil {
			pl.tell(pod, v1.EventTypeWarning, "HorusRefused", near+"."+c.why())
		}
	}
	return withdrawn(pod), fwk.NewStatus(code)
}

// withdrawn ends the nomination of a pod that preempts nobody. The scheduler nominates a node before it binds a pod; where it
// dies in between, the node would be kept free for a pod that may never come. Of other pods preemption ends it.
func withdrawn(pod *v1.Pod) *fwk.PostFilterResult {
	never := pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == v1.PreemptNever
	if pod.Status.NominatedNodeName == "" || (gangOf(pod) == "" && !never) {
		return nil
	}
	return &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride}}
}

// Score ranks by cost: 100 is the best of the nodes that fit, 0 the worst.
func (pl *Horus) Score(_ context.Context, state fwk.CycleState, _ *v1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	c := cycleOf(state)
	if c == nil || !(c.worst > c.best) {
		return fwk.MaxNodeScore, nil
	}
	share := (c.worst - c.verdictOf(info.Node().Name).Cost) / (c.worst - c.best)
	return int64(share*float64(fwk.MaxNodeScore) + 0.5), nil
}

// ScoreExtensions are none: scores are on the scheduler's scale.
func (pl *Horus) ScoreExtensions() fwk.ScoreExtensions { return nil }

func (pl *Horus) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	c := cycleOf(state)
	if c == nil {
		return nil
	}
	view, kept := c.view, c.kept[node]
	if kept.alone {
		view = alone(view)
	}
	choice, err := pl.mirror.Reserve(pod, view, node, kept.choice)
	if errors.Is(err, mirror.ErrNoPlace) {
		return fwk.NewStatus(fwk.Unschedulable, "Horus: "+choice.Decision.Reason.String()+", since it was looked at")
	}
	if err != nil {
		return failed(err)
	}
	if c.choice = choice; view.Mixed {
		c.choice.Devices = nil // they are in its claims
	}
	pl.forget(pod.UID)
	pl.turns.attempt(pod.UID, true, false)
	return nil
}

func (pl *Horus) Unreserve(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) {
	pl.mirror.Unreserve(pod.UID)
	pl.gangs.fail(pod)
	pl.turns.attempt(pod.UID, false, false)
}

// SignPod: pods without GPUs are alike to this plugin. Those with GPUs are not batched: each one changes what the next costs.
func (pl *Horus) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if view, err := pl.mirror.Read(pod); err == nil && view.Backend == objects.NoGPUs {
		return nil, nil
	}
	return nil, fwk.NewStatus(fwk.Unschedulable, "Horus: each pod with GPUs changes the costs of the next")
}

// ExitHung is the exit code of a process in which a call of the library did not return: EX_SOFTWARE of sysexits.h.
const ExitHung = 70

// watchCalls ends the process where a call of the library does not return. The lease would be renewed for ever and /livez
// would answer, and so neither the other replica nor the kubelet would do anything.
func (pl *Horus) watchCalls(ctx context.Context) {
	limit := pl.args.CallTimeout.Duration
	pl.mirror.Watch(ctx, limit, func() {
		klog.ErrorS(nil, "Horus: a call of libhorus does not return. The process ends, so that it starts again and another replica takes the lease",
			"callTimeout", limit, "exitCode", ExitHung)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1) // which call it is
		klog.FlushAndExit(klog.ExitFlushTimeout, ExitHung)
	})
}
