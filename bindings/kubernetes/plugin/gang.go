// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"libhorus.org/kubernetes/internal/feed"
	"libhorus.org/kubernetes/internal/library"
	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
)

// gangs places the pods of a PodGroup of the label all together or not at all. A gang first asks the library for a place for
// every pod that it lacks, beside those that other gangs are about to take, and holds nothing while there is none. Then its pods
// wait in Permit until enough are there. It gives all back as soon as one finds no place, and with its timeout. So no gang waits
// for what another holds.
//
// PodGroups of Kubernetes itself (spec.schedulingGroup) are the scheduler's own matter.
type gangs struct {
	handle scheduler
	groups func(namespace, name string) (podGroup, error)
	plan   func(members []*v1.Pod) (map[types.UID]string, error)
	freed  func() uint64 // grows where a place may have come since

	mu  sync.Mutex
	all map[string]*gang
}

type scheduler interface {
	activator
	GetWaitingPod(uid types.UID) fwk.WaitingPod
	ProfileName() string
}

type gang struct {
	name    string // namespace/name
	members map[types.UID]*v1.Pod
	held    map[types.UID]bool   // through Permit, or waiting in it
	planned map[types.UID]string // node of each, while it is placed
	until   *time.Timer          // while it is placed: it gives back what it holds
	fails   int                  // attempts in a row that came to nothing
	rests   bool                 // after such an attempt: its pods are back in the queue before the next
	barred  bool                 // a pod came meanwhile
	miss    error                // why it had no place when the count of what came free was missed
	missed  uint64
}

// The pauses of a gang after an attempt that came to nothing are those of the scheduler for a pod: a plan of many members takes
// long, and each member would ask for it.
const (
	firstPause = time.Second
	mostPause  = 10 * time.Second
)

func gangOf(pod *v1.Pod) string {
	if name := pod.Labels[GroupLabel]; name != "" && pod.Spec.SchedulingGroup == nil {
		return pod.Namespace + "/" + name
	}
	return ""
}

func ended(pod *v1.Pod) bool { return podutil.IsPodTerminal(pod) || pod.DeletionTimestamp != nil }

// set takes in a pod as it is now. Members are this scheduler's, and may be placed.
func (g *gangs) set(pod *v1.Pod) {
	if gangOf(pod) == "" {
		return
	}
	if ended(pod) || pod.Spec.SchedulerName != g.handle.ProfileName() || len(pod.Spec.SchedulingGates) > 0 {
		g.gone(pod)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of(pod)
}

// of is the gang of a pod, which it takes in.
func (g *gangs) of(pod *v1.Pod) *gang {
	name := gangOf(pod)
	one := g.all[name]
	if one == nil {
		one = &gang{name: name, members: map[types.UID]*v1.Pod{}, held: map[types.UID]bool{}}
		g.all[name] = one
	}
	if known := one.members[pod.UID]; known == nil || !alike(known, pod) {
		one.miss = nil
	}
	one.members[pod.UID] = pod
	return one
}

func (g *gangs) gone(pod *v1.Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.all[gangOf(pod)]
	if one == nil {
		return
	}
	delete(one.members, pod.UID)
	delete(one.held, pod.UID)
	if len(one.members) == 0 {
		delete(g.all, one.name)
		one.stop()
	}
}

func (one *gang) stop() {
	if one.until != nil {
		one.until.Stop()
	}
	one.until, one.planned = nil, nil
}

// placeless are the members that are not bound and hold no place.
func (one *gang) placeless() (out []*v1.Pod) {
	for uid, pod := range one.members {
		if pod.Spec.NodeName == "" && !one.held[uid] {
			out = append(out, pod)
		}
	}
	return out
}

func (one *gang) placed() int { return len(one.members) - len(one.placeless()) }

// lacking are the first `count` members that have no place yet, `pod` among them.
func (one *gang) lacking(pod *v1.Pod, count int) []*v1.Pod {
	out := slices.DeleteFunc(one.placeless(), func(member *v1.Pod) bool { return member.UID == pod.UID })
	slices.SortFunc(out, func(a, b *v1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return append([]*v1.Pod{pod}, out[:min(count-1, len(out))]...)
}

// enter says whether a pod may be placed now, and on which node of its gang's plan; "" = on any. The error is for its owner.
func (g *gangs) enter(pod *v1.Pod) (node string, wait *fwk.Status, err error) {
	name := gangOf(pod)
	if name == "" {
		return "", nil, nil
	}
	group, err := g.groups(pod.Namespace, pod.Labels[GroupLabel])
	if err != nil {
		return "", nil, fmt.Errorf("label %s: PodGroup %s: %w", GroupLabel, name, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.of(pod)
	switch placed := one.placed(); {
	case placed >= group.minMember || one.until != nil:
		return one.planned[pod.UID], nil, nil
	case len(one.members) < group.minMember:
		return "", never("PodGroup %s has %d of its %d pods", name, len(one.members), group.minMember), nil
	case one.miss != nil && one.missed == g.freed():
		return "", nil, one.miss
	case one.rests:
		one.barred = true
		return "", never("PodGroup %s found no place for all, and is tried again soon", name), nil
	default:
		freed := g.freed()
		planned, err := g.plan(append(g.coming(), one.lacking(pod, group.minMember-placed)...))
		if err != nil {
			err = fmt.Errorf("PodGroup %s: %w%s", name, err, g.holders())
			if errors.As(err, new(noPlace)) {
				one.miss, one.missed = err, freed
			}
			g.rest(one)
			return "", nil, err
		}
		one.planned, one.until = planned, time.AfterFunc(group.timeout, func() { g.giveBack(name, "") })
		return planned[pod.UID], nil, nil
	}
}

// coming are the pods of other gangs that have a place in a plan and do not hold it yet.
func (g *gangs) coming() (out []*v1.Pod) {
	for _, one := range g.all {
		for uid := range one.planned {
			if pod := one.members[uid]; pod != nil && pod.Spec.NodeName == "" && !one.held[uid] {
				out = append(out, pod)
			}
		}
	}
	return out
}

const mostHolders = 3 // are named to who finds no place

// holders tells which gangs hold places and are not complete.
func (g *gangs) holders() string {
	var names []string
	for _, one := range g.all {
		if one.until != nil {
			names = append(names, fmt.Sprintf("PodGroup %s has %d of %d pods", one.name, one.placed(), len(one.members)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	if more := len(names) - mostHolders; more > 0 {
		names = append(names[:mostHolders], fmt.Sprintf("%d more", more))
	}
	return ". Places are held until they are complete or give up: " + strings.Join(names, ", ")
}

// waits counts the gangs with pods that have no place.
func (g *gangs) waits() (count int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range g.all {
		if len(one.placeless()) > 0 {
			count++
		}
	}
	return count
}

// permit lets a gang through once enough of its pods are there.
func (g *gangs) permit(pod *v1.Pod) (*fwk.Status, time.Duration) {
	if gangOf(pod) == "" {
		return nil, 0
	}
	group, err := g.groups(pod.Namespace, pod.Labels[GroupLabel])
	if err != nil {
		return failed(err), 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.all[gangOf(pod)]
	if one == nil || one.members[pod.UID] == nil {
		return fwk.NewStatus(fwk.Unschedulable, "Horus: the pod is gone"), 0
	}
	one.held[pod.UID] = true // not the pod that is shown here: it says that it is bound
	if one.placed() < group.minMember {
		activate(g.handle, one.placeless()...)
		return fwk.NewStatus(fwk.Wait, fmt.Sprintf("Horus: PodGroup %s: %d of %d pods have a place", one.name, one.placed(), group.minMember)), group.timeout
	}
	for uid := range one.held {
		if waiting := g.handle.GetWaitingPod(uid); waiting != nil {
			waiting.Allow(Name)
		}
	}
	one.fails = 0
	one.stop()
	return nil, 0
}

// fail takes the place of a pod away, and with it those of its gang.
func (g *gangs) fail(pod *v1.Pod) {
	if name := gangOf(pod); name != "" {
		g.giveBack(name, pod.UID)
	}
}

// giveBack what a gang holds, unless it is complete without the pod that has no place.
func (g *gangs) giveBack(name string, without types.UID) {
	namespace, group, _ := strings.Cut(name, "/")
	known, err := g.groups(namespace, group)
	var back []fwk.WaitingPod
	g.mu.Lock()
	if one := g.all[name]; one != nil {
		delete(one.held, without)
		if err != nil || one.placed() < known.minMember {
			for uid := range one.held {
				if waiting := g.handle.GetWaitingPod(uid); waiting != nil {
					back = append(back, waiting)
					delete(one.held, uid)
				}
			}
			if one.until != nil {
				g.rest(one)
			}
		}
		one.stop()
	}
	g.mu.Unlock()
	for _, waiting := range back { // whose Unreserve comes here again
		waiting.Reject(Name, fmt.Sprintf("Horus: PodGroup %s found no place for all of its pods", name))
	}
}

// rest lets a gang be, and then tries it if a pod of it came meanwhile.
func (g *gangs) rest(one *gang) {
	one.rests = true
	time.AfterFunc(min(firstPause<<one.fails, mostPause), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if one.rests = false; one.barred {
			one.barred = false
			activate(g.handle, one.placeless()...)
		}
	})
	one.fails = min(one.fails+1, 10)
}

// again tries the pods of a PodGroup that came or changed.
func (g *gangs) again(namespace, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one := g.all[namespace+"/"+name]; one != nil {
		one.miss = nil
		activate(g.handle, one.placeless()...)
	}
}

// gateOff is the feature gate without which the scheduler places no PodGroups of Kubernetes itself; "" = it does. With
// GenericWorkload alone, Kubernetes 1.36 would place their pods one by one.
func gateOff(gates featuregate.MutableFeatureGate) featuregate.Feature {
	known := gates.GetAll()
	for _, gate := range []featuregate.Feature{"GenericWorkload", "GangScheduling"} { // the second is 1.36's
		if _, has := known[gate]; has && !gates.Enabled(gate) {
			return gate
		}
	}
	return ""
}

// enter lets a pod without a gang pass, and one with a gang when it is its turn; planned is its node of the gang's plan, if any.
func (pl *Horus) enter(pod *v1.Pod) (planned string, wait *fwk.Status) {
	if pod.Spec.SchedulingGroup != nil {
		if off := gateOff(utilfeature.DefaultMutableFeatureGate); off != "" {
			return "", pl.refuse(pod, fmt.Errorf("spec.schedulingGroup: expected a scheduler with the feature gate %s, found it off", off))
		}
	}
	planned, wait, err := pl.gangs.enter(pod)
	switch {
	case errors.As(err, new(noPlace)):
		pl.tell(pod, v1.EventTypeWarning, "HorusRefused", err.Error())
		return "", never("no place for all of PodGroup %s", gangOf(pod))
	case errors.Is(err, library.ErrGone):
		return "", failed(err)
	case err != nil:
		return "", pl.refuse(pod, err)
	}
	return planned, wait
}

// noPlace is the library's sentence on a gang that does not fit.
type noPlace string

func (miss noPlace) Error() string { return string(miss) }

// planGang finds a node for each member that asks for GPUs.
func (pl *Horus) planGang(members []*v1.Pod) (map[types.UID]string, error) {
	views, open := make([]objects.Pod, len(members)), make([]objects.Openness, len(members))
	var rules []mirror.Rules // each kind once
	for i, member := range members {
		view, err := pl.mirror.Read(member)
		alike := func(other objects.Pod) bool { return other.Backend == view.Backend && other.AsksAs(view) }
		if err == nil && view.Backend.Names() && !view.Allocated && !slices.ContainsFunc(views[:i], alike) {
			var more mirror.Rules
			more, err = pl.rules(view)
			rules = append(rules, more)
		}
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", member.Name, err)
		}
		views[i], open[i] = view, objects.OpennessOf(member, pl.owner)
	}
	nodes, miss, err := pl.mirror.Together(views, rules, func(i int, node *v1.Node) bool { return open[i].To(node) })
	if errors.Is(err, library.ErrGone) && pl.args.FailurePolicy == Ignore {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if miss != "" {
		return nil, noPlace(miss)
	}
	out := map[types.UID]string{}
	for i, member := range members {
		out[member.UID] = nodes[i]
	}
	return out, nil
}

func (pl *Horus) Permit(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	return pl.gangs.permit(pod)
}

// GroupLabel names the PodGroup (scheduling.x-k8s.io, the coscheduling plugin's) that a pod belongs to.
const GroupLabel = "scheduling.x-k8s.io/pod-group"

var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

const (
	lookForPodGroups = 30 * time.Second // how often, while the API server does not serve them
	defaultTimeout   = 60               // seconds, of a gang whose PodGroup states none, as coscheduling has it
	longestTimeout   = 15 * 60          // seconds: the scheduler lets no pod wait longer
	mostMembers      = 10_000
)

// podGroupLister reads PodGroups once the API server serves them: their CRD is not ours, and may come later.
type podGroupLister struct {
	lister atomic.Pointer[cache.GenericLister]
}

// follow looks for the CRD, and then tells each PodGroup that comes or changes.
func (l *podGroupLister) follow(ctx context.Context, served discovery.DiscoveryInterface, client dynamic.Interface, changed func(namespace, name string)) {
	_ = wait.PollUntilContextCancel(ctx, lookForPodGroups, true, func(context.Context) (bool, error) {
		is, _ := discovery.IsResourceEnabled(served, podGroups)
		return is, nil
	})
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	groups := factory.ForResource(podGroups)
	tell := func(group *unstructured.Unstructured) { changed(group.GetNamespace(), group.GetName()) }
	if _, err := feed.Handle(groups.Informer(), tell, nil); err != nil {
		return
	}
	lister := groups.Lister()
	l.lister.Store(&lister)
	factory.Start(ctx.Done())
}

type podGroup struct {
	minMember int
	timeout   time.Duration
}

func (l *podGroupLister) get(namespace, name string) (podGroup, error) {
	lister := l.lister.Load()
	if lister == nil {
		return podGroup{}, fmt.Errorf("expected %s, found no such resource in the cluster", podGroups.GroupResource())
	}
	found, err := (*lister).ByNamespace(namespace).Get(name)
	if err != nil {
		return podGroup{}, err
	}
	spec, _, _ := unstructured.NestedMap(found.(*unstructured.Unstructured).Object, "spec")
	number := func(field string, most int64, otherwise any) (int64, error) {
		value, stated := spec[field]
		if !stated {
			value = otherwise
		}
		n, is := value.(int64)
		if !is || n < 1 || n > most {
			return 0, fmt.Errorf("spec.%s: expected 1 to %d, found %v", field, most, value)
		}
		return n, nil
	}
	members, err := number("minMember", mostMembers, "none")
	if err != nil {
		return podGroup{}, err
	}
	seconds, err := number("scheduleTimeoutSeconds", longestTimeout, int64(defaultTimeout))
	return podGroup{int(members), time.Duration(seconds) * time.Second}, err
}
