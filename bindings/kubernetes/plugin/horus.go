// SPDX-License-Identifier: Apache-2.0

// Package plugin places pods with GPUs inside kube-scheduler: libhorus says which nodes can take a pod, how good each is, and
// which devices it is to have there.
package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/library"
	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/internal/shadow"
)

// Name of the plugin.
const Name = "Horus"

const stateKey fwk.StateKey = Name

const profilesWithin = 10 * time.Second

// Horus is the plugin.
type Horus struct {
	args     Args
	handle   fwk.Handle
	mirror   *mirror.Mirror
	profiles cache.GenericLister
	synced   []cache.InformerSynced
	groups   podGroupLister
	gangs    *gangs
	wide     sync.Map // UIDs of pods that the candidates were closed to
	invalid  sync.Map // UID -> *v1.Pod, of those whose objects are wrong
}

// forget a pod that came in or went.
func (pl *Horus) forget(uid types.UID) {
	pl.wide.Delete(uid)
	pl.invalid.Delete(uid)
}

var (
	_ fwk.PreFilterPlugin     = &Horus{}
	_ fwk.PreFilterExtensions = &Horus{}
	_ fwk.FilterPlugin        = &Horus{}
	_ fwk.PostFilterPlugin    = &Horus{}
	_ fwk.ScorePlugin         = &Horus{}
	_ fwk.ReservePlugin       = &Horus{}
	_ fwk.PermitPlugin        = &Horus{}
	_ fwk.BindPlugin          = &Horus{}
	_ fwk.EnqueueExtensions   = &Horus{}
	_ fwk.SignPlugin          = &Horus{}
)

// New makes the plugin and mirrors the cluster from the scheduler's own informers.
func New(ctx context.Context, raw runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := parseArgs(raw)
	if err != nil {
		return nil, err
	}
	pl := &Horus{args: args, handle: handle}
	lookups := objects.Lookups{Claim: pl.claim, Profile: pl.profile, Lives: pl.lives}
	var lib *library.Library
	if args.Isolated {
		lib, err = library.Child(args.placer(), args.CallTimeout.Duration)
	} else {
		lib, err = library.Local(args.placer())
	}
	if err != nil {
		return nil, err
	}
	pl.mirror = mirror.New(args.settings(), lookups, lib)
	if args.Isolated {
		go pl.mirror.KeepAlive(ctx)
	} else {
		go pl.watchCalls(ctx)
	}
	go running.run(ctx)
	if args.Mode == Shadow {
		shadow.Register()
		pl.mirror.Seen = shadow.New(handle.ProfileName()).Seen
	}
	pl.gangs = newGangs(handle, pl.groups.get, pl.planGang)
	if err := pl.watch(ctx); err != nil {
		return nil, err
	}
	pl.register()
	return pl, nil
}

// Name of the plugin.
func (pl *Horus) Name() string { return Name }

// watch feeds the mirror.
func (pl *Horus) watch(ctx context.Context) error {
	client, err := dynamic.NewForConfig(pl.handle.KubeConfig())
	if err != nil {
		return err
	}
	if err := pl.watchProfiles(ctx, client); err != nil {
		return err
	}
	if pl.args.Mode == Place {
		go pl.groups.follow(ctx, pl.handle.ClientSet().Discovery(), client, pl.gangs.again)
	}
	factory := pl.handle.SharedInformerFactory()
	for _, one := range []struct {
		informer cache.SharedIndexInformer
		set      func(any)
		gone     func(any)
	}{
		{factory.Core().V1().Nodes().Informer(),
			func(o any) { pl.mirror.SetNode(o.(*v1.Node)) }, func(o any) { pl.mirror.DeleteNode(o.(*v1.Node).Name) }},
		{factory.Resource().V1().ResourceSlices().Informer(),
			func(o any) { pl.mirror.SetSlice(o.(*resourceapi.ResourceSlice)) },
			func(o any) { pl.mirror.DeleteSlice(o.(*resourceapi.ResourceSlice)) }},
		{factory.Resource().V1().ResourceClaims().Informer(), func(o any) { pl.mirror.SetClaim(o.(*resourceapi.ResourceClaim)) }, func(any) {}},
		{factory.Core().V1().Pods().Informer(),
			func(o any) { pl.mirror.SetPod(o.(*v1.Pod)); pl.gangs.set(o.(*v1.Pod)) },
			func(o any) {
				pod := o.(*v1.Pod)
				pl.mirror.DeletePod(pod.UID)
				pl.gangs.gone(pod)
				pl.forget(pod.UID)
			}},
	} {
		registration, err := one.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    one.set,
			UpdateFunc: func(_, now any) { one.set(now) },
			DeleteFunc: func(o any) {
				if last, missed := o.(cache.DeletedFinalStateUnknown); missed {
					o = last.Obj
				}
				one.gone(o)
			},
		})
		if err != nil {
			return err
		}
		pl.synced = append(pl.synced, registration.HasSynced)
	}
	return nil
}

// watchProfiles keeps what is known of jobs. Pods that run count by it as it is now, and a pod that named a profile before it
// came is tried again at once.
func (pl *Horus) watchProfiles(ctx context.Context, client dynamic.Interface) error {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	profiles := factory.ForResource(schema.GroupVersionResource{Group: objects.Group, Version: objects.Version, Resource: objects.ProfilesResource})
	pl.profiles = profiles.Lister()
	again := func(o any) {
		profile, ok := o.(*unstructured.Unstructured)
		if !ok {
			return
		}
		pl.mirror.ProfileChanged(profile.GetNamespace(), profile.GetName())
		refused := map[string]*v1.Pod{}
		pl.invalid.Range(func(_, value any) bool {
			pod := value.(*v1.Pod)
			if pod.Namespace == profile.GetNamespace() && pod.Annotations[objects.ProfileAnnotation] == profile.GetName() {
				refused[pod.Namespace+"/"+pod.Name] = pod
			}
			return true
		})
		if len(refused) > 0 {
			pl.handle.Activate(klog.FromContext(ctx), refused)
		}
	}
	if _, err := profiles.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: again, UpdateFunc: func(_, now any) { again(now) }}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	// Before the pods that name them: without its profile a pod that runs would count as one that shares with nobody.
	bounded, cancel := context.WithTimeout(ctx, profilesWithin)
	defer cancel()
	if !cache.WaitForCacheSync(bounded.Done(), profiles.Informer().HasSynced) {
		return fmt.Errorf("Horus: %s.%s cannot be listed: expected the chart's CRD and the right to read it", objects.ProfilesResource, objects.Group)
	}
	return nil
}

func (pl *Horus) claim(namespace, name string) (*resourceapi.ResourceClaim, error) {
	// The tracker knows of allocations that are on their way, and may lag behind the informer whose event brought us here.
	tracked, err := pl.handle.SharedDRAManager().ResourceClaims().Get(namespace, name)
	if err == nil && tracked.Status.Allocation != nil {
		return tracked, nil
	}
	listed, unlisted := pl.handle.SharedInformerFactory().Resource().V1().ResourceClaims().Lister().ResourceClaims(namespace).Get(name)
	if unlisted == nil && (err != nil || listed.Status.Allocation != nil) {
		return listed, nil
	}
	return tracked, err
}

func (pl *Horus) lives(pod *v1.Pod) bool {
	known, err := pl.handle.SharedInformerFactory().Core().V1().Pods().Lister().Pods(pod.Namespace).Get(pod.Name)
	return err == nil && known.UID == pod.UID
}

func (pl *Horus) profile(namespace, name string) (objects.Profile, error) {
	found, err := pl.profiles.ByNamespace(namespace).Get(name)
	if err != nil {
		return objects.Profile{}, err
	}
	object, ok := found.(*unstructured.Unstructured)
	if !ok {
		return objects.Profile{}, fmt.Errorf("expected an object, found %T", found)
	}
	return objects.ProfileOf(object.Object["spec"])
}

// cycle is what is known of a pod while it is scheduled.
type cycle struct {
	view     objects.Pod
	allows   mirror.Rules
	began    time.Time
	verdicts []mirror.Verdict // of the scheduler's nodes, in its order
	rows     func() map[string]int
	kept     map[string]candidate
	narrowed bool    // more nodes fit than were kept
	barred   int     // nodes that fit, of whose devices the claims allow too few
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
	choice *mirror.Choice // of the devices, for pods with claims
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
	out.gone, out.first = map[string][]types.UID{}, map[string][]objects.Pod{}
	for node, uids := range c.gone {
		out.gone[node] = append([]types.UID(nil), uids...)
	}
	for node, pods := range c.first {
		out.first[node] = append([]objects.Pod(nil), pods...)
	}
	return &out
}

func cycleOf(state fwk.CycleState) *cycle {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil // a pod without GPUs
	}
	return data.(*cycle)
}

func (pl *Horus) ready() bool {
	for _, synced := range pl.synced {
		if !synced() {
			return false
		}
	}
	return true
}

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
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if pl.args.Mode == Shadow {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "Horus: it runs in shadow mode and binds nothing")
	}
	if !pl.ready() {
		return nil, fwk.AsStatus(errors.New("Horus: the cluster is not mirrored yet"))
	}
	planned, wait := pl.enter(ctx, pod)
	if wait != nil {
		return nil, wait
	}
	if !gpus || view.Allocated {
		return nil, fwk.NewStatus(fwk.Skip) // devices that a claim has already are followed, not chosen
	}
	begin := running.beat()
	rules, err := pl.rules(ctx, view)
	if err != nil {
		return nil, pl.refuse(pod, err)
	}
	c, err := pl.ask(ctx, view, rules, pod, nodes, planned, state.IsPodGroupSchedulingCycle())
	verdictSeconds.Observe(time.Since(begin).Seconds())
	if errors.Is(err, horus.ErrInvalidArgument) || errors.Is(err, horus.ErrNotFound) || errors.Is(err, horus.ErrLimit) {
		return nil, pl.refuse(pod, err) // what the profile says, as the library reads it
	}
	if errors.Is(err, library.ErrGone) && pl.args.FailurePolicy == Ignore {
		withoutLibrary.Inc()
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("Horus: %w", err))
	}
	c.began = begin
	state.Write(stateKey, c)
	if len(c.kept) == 0 {
		return nil, nil // Filter tells each node's reason, and preemption may look at it
	}
	return &fwk.PreFilterResult{NodeNames: sets.KeySet(c.kept)}, nil
}

// refuse tells a pod's owner what is wrong with it.
func (pl *Horus) refuse(pod *v1.Pod, err error) *fwk.Status {
	invalidPods.Inc()
	pl.invalid.Store(pod.UID, pod)
	pl.handle.EventRecorder().Eventf(pod, nil, v1.EventTypeWarning, "HorusInvalid", "Scheduling", "%s", note(err.Error()))
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, note("Horus: "+err.Error()))
}

// ask gets the verdicts and picks the candidates: the planned node alone, where it takes the pod; else the cheapest. whole: the
// pod is tried once, and all that fit are candidates.
func (pl *Horus) ask(ctx context.Context, view objects.Pod, rules mirror.Rules, pod *v1.Pod, nodes []fwk.NodeInfo, planned string, whole bool) (*cycle, error) {
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
	} else if at := slices.IndexFunc(fits, func(i int) bool { return nodes[i].Node().Name == planned }); at >= 0 {
		fits[0], fits[at], most = fits[at], fits[0], 1
	}
	return c, pl.keep(ctx, c, fits, objects.OpennessOf(pod), nodes, most)
}

// keep walks the nodes that fit, in order, until it has `most`. Of those that are open to the pod it picks the devices, where it
// has claims, and shows the allocator no others.
func (pl *Horus) keep(ctx context.Context, c *cycle, fits []int, open objects.Openness, nodes []fwk.NodeInfo, most int) error {
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
		if c.view.Backend == objects.DRA {
			choice, err := pl.mirror.Choose(ctx, c.view, name, c.allows)
			if err == nil && c.full != "" && pl.mirror.SharesMore(c.view.Horus.Tenant, choice.Slots) {
				choice, err = pl.mirror.Choose(ctx, alone(c.view), name, c.allows)
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
			one.choice, devices[name] = &choice, choice.Devices
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

// PreFilterExtensions are its own.
func (pl *Horus) PreFilterExtensions() fwk.PreFilterExtensions { return pl }

// AddPod counts a nominated pod on a node.
func (pl *Horus) AddPod(_ context.Context, state fwk.CycleState, _ *v1.Pod, added fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	c := cycleOf(state)
	if c == nil {
		return nil
	}
	name := node.Node().Name
	for i, uid := range c.gone[name] { // a victim that is put back
		if uid == added.GetPod().UID {
			c.gone[name] = append(c.gone[name][:i:i], c.gone[name][i+1:]...)
			return nil
		}
	}
	if view, err := pl.mirror.Read(added.GetPod()); err == nil && view.Backend != objects.NoGPUs {
		c.first[name] = append(c.first[name], view)
	}
	return nil
}

// RemovePod supposes that a pod left a node.
func (pl *Horus) RemovePod(_ context.Context, state fwk.CycleState, _ *v1.Pod, removed fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	if c := cycleOf(state); c != nil {
		name := node.Node().Name
		c.gone[name] = append(c.gone[name], removed.GetPod().UID)
	}
	return nil
}

// Filter answers by PreFilter's verdict, and anew where preemption supposes something of the node.
func (pl *Horus) Filter(_ context.Context, state fwk.CycleState, _ *v1.Pod, info fwk.NodeInfo) *fwk.Status {
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
	if supposed {
		var err error
		if reason, err = pl.mirror.FitsWithout(c.view, name, c.gone[name], c.first[name]); err != nil {
			return fwk.AsStatus(fmt.Errorf("Horus: %w", err))
		}
	}
	if reason == horus.ReasonNone {
		if _, planned := c.kept[name]; c.view.Backend == objects.DRA && !planned && !supposed {
			return fwk.NewStatus(fwk.Unschedulable, "Horus: no devices were chosen there") // the allocator's would be others
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
func (pl *Horus) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	c := cycleOf(state)
	if c == nil || !c.narrowed {
		pl.gangs.fail(pod)
	}
	if c == nil {
		return nil, fwk.NewStatus(unplaced(pod))
	}
	if c.narrowed || running.void(c.began) {
		// The candidates were closed to the pod by other plugins, or the picture was old: the next attempt looks at all nodes,
		// and comes at once.
		pl.wide.Store(pod.UID, true)
		pl.handle.Activate(klog.FromContext(ctx), map[string]*v1.Pod{pod.Namespace + "/" + pod.Name: pod})
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable) // and nobody is preempted for what was not looked at
	}
	refusals.WithLabelValues(c.mainReason().String()).Inc()
	if len(c.kept) == 0 {
		if near, err := pl.mirror.Nearest(ctx, c.view, objects.OpennessOf(pod)); err == nil {
			pl.handle.EventRecorder().Eventf(pod, nil, v1.EventTypeWarning, "HorusRefused", "Scheduling", "%s", note(near+"."+c.why()))
		}
	}
	return nil, fwk.NewStatus(unplaced(pod))
}

// why a pod that the library would place is not.
func (c *cycle) why() string {
	if c.barred == 0 {
		return c.full
	}
	return c.full + fmt.Sprintf(" On %d nodes with room its claims allow too few GPUs, by selectors or device taints.", c.barred)
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

// Reserve takes the devices on the node that the scheduler chose.
func (pl *Horus) Reserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	c := cycleOf(state)
	if c == nil {
		return nil
	}
	view, kept := c.view, c.kept[node]
	if kept.alone {
		view = alone(view)
	}
	choice, err := pl.mirror.Reserve(ctx, pod, view, node, kept.choice)
	if errors.Is(err, mirror.ErrNoPlace) {
		return fwk.NewStatus(fwk.Unschedulable, "Horus: "+choice.Decision.Reason.String()+", since it was looked at")
	}
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("Horus: %w", err))
	}
	c.choice = choice
	pl.forget(pod.UID)
	return nil
}

// Unreserve gives them back.
func (pl *Horus) Unreserve(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) {
	pl.mirror.Unreserve(pod.UID)
	pl.gangs.fail(pod)
}

// SignPod: pods without GPUs are alike to this plugin. Those with GPUs are not batched: each one changes what the next costs.
func (pl *Horus) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if view, err := pl.mirror.Read(pod); err == nil && view.Backend == objects.NoGPUs {
		return nil, nil
	}
	return nil, fwk.NewStatus(fwk.Unschedulable, "Horus: each pod with GPUs changes the costs of the next")
}

// EventsToRegister says what can make a pod fit that was refused.
func (pl *Horus) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete | fwk.Update}},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable | fwk.UpdateNodeLabel | fwk.UpdateNodeTaint}},
		{Event: fwk.ClusterEvent{Resource: fwk.ResourceClaim, ActionType: fwk.Add | fwk.Update | fwk.Delete}},
		{Event: fwk.ClusterEvent{Resource: fwk.ResourceSlice, ActionType: fwk.Add | fwk.Update}},
		{Event: fwk.ClusterEvent{Resource: fwk.DeviceClass, ActionType: fwk.Add | fwk.Update}},
	}, nil
}
