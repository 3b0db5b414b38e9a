// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
)

// turns says who of the pods that share goes next. The library plans for all that wait at once; those that it passes over, though
// they fit, stay before the scheduler's queue: PreEnqueue says no, so that no attempt fails, nothing is preempted and no condition
// tells an autoscaler. Who has a place in the plan, and who fits nowhere, is activated and goes through the queue, whose order is
// Kubernetes'. The next plan waits until the places of this one are taken.
//
// PreEnqueue is called under the lock of the scheduler's queue, which Activate takes: nothing here is locked around Activate, and
// PreEnqueue does not wait for a plan.
type turns struct {
	handle    activator
	patience  time.Duration                        // an older pod is not passed over
	takesPart func(*v1.Pod) bool                   // it shares and is no gang's
	known     func(namespace, name string) *v1.Pod // as we were told of it last; nil = none
	plan      func(context.Context, []*v1.Pod) ([]mirror.Turn, error)
	tell      func(*v1.Pod) // that it is passed over

	mu      sync.Mutex
	pods    map[types.UID]*waiter
	stale   bool // somebody came or went since the last plan
	planned time.Time
	taken   time.Time // when one of those who had a place took it, or was refused
	leads   bool      // pods were tried here: a replica without the lease has the same queue, and tells nobody
}

type activator interface {
	Activate(logger klog.Logger, pods map[string]*v1.Pod)
}

// waiter is a pod that takes part and is not bound.
type waiter struct {
	pod   *v1.Pod
	held  bool      // before the queue, by our answer
	open  bool      // it may enter, until it is refused
	taken bool      // it has its devices, and is about to be bound
	node  string    // where it is to go by the last plan
	given time.Time // since when that place is its own; zero = it has none
	out   time.Time // it takes no part until then: the plan's place was none to the scheduler
	tried time.Time // it was refused then
	told  bool
}

const (
	planEvery  = 50 * time.Millisecond // what comes at once is planned together
	lookEvery  = time.Second           // again, while somebody is held
	takeWithin = 5 * time.Second
	tryEvery   = 5 * time.Minute // who fits nowhere, as often as upstream does by itself
	outFor     = time.Minute
)

func newTurns(pl *Horus) *turns {
	return &turns{
		handle: pl.handle, patience: pl.args.Patience.Duration, known: pl.pod, plan: pl.planTurns,
		takesPart: func(pod *v1.Pod) bool { _, part := pl.turnOf(pod); return part },
		tell: func(pod *v1.Pod) {
			pl.handle.EventRecorder().Eventf(pod, nil, v1.EventTypeNormal, "HorusPassedOver", "Scheduling",
				"Others of its priority that wait go first. From %s on it is not held.", pod.CreationTimestamp.Add(pl.args.Patience.Duration).UTC().Format(time.RFC3339))
		},
		pods: map[types.UID]*waiter{},
	}
}

// enter says whether a pod may enter the queue.
func (t *turns) enter(pod *v1.Pod) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.pods[pod.UID]
	if w == nil || w.pod != pod { // as it is, it was read before
		if !t.takesPart(pod) {
			delete(t.pods, pod.UID)
			return true
		}
		if w == nil {
			w = &waiter{}
			t.pods[pod.UID] = w
		}
	}
	// Who is passed over no more goes by the queue, and is to wait out its backoff there: what Activate wakes does not.
	now := time.Now()
	w.open = w.open || now.Before(w.out) || t.patient(pod, now)
	w.pod, w.held, t.stale = pod, !w.open, true
	return w.open
}

// patient: nobody passes it any more.
func (t *turns) patient(pod *v1.Pod, now time.Time) bool {
	return now.Sub(pod.CreationTimestamp.Time) >= t.patience
}

// node that a pod is to go to by the plan; "" = any.
func (t *turns) node(uid types.UID) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leads = true
	if w := t.pods[uid]; w != nil {
		return w.node
	}
	return ""
}

// take: it has its devices, or has them no more.
func (t *turns) take(uid types.UID, taken bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.pods[uid]; w != nil {
		w.taken, w.given, w.tried = taken, time.Time{}, time.Time{}
		t.taken, t.stale = time.Now(), true
	}
}

// refuse: it was tried and found no place. It is held again, until the next plan.
func (t *turns) refuse(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.pods[uid]
	if w == nil {
		return
	}
	t.taken, t.stale = time.Now(), true
	w.open, w.tried = false, t.taken
	if !w.given.IsZero() {
		w.out = w.tried.Add(outFor)
	}
	w.given, w.node = time.Time{}, ""
}

// gone: it is bound, or is no more.
func (t *turns) gone(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pods[uid] != nil {
		delete(t.pods, uid)
		t.stale = true
	}
}

func (t *turns) run(ctx context.Context, ready func() bool) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if ready() {
			t.next(ctx)
		}
	}, planEvery)
}

// next makes a plan, if there is something to decide, and lets those enter who may.
func (t *turns) next(ctx context.Context) {
	waiting, passed := t.due()
	if waiting != nil {
		turns, err := t.plan(ctx, waiting)
		if err != nil {
			klog.V(2).InfoS("Horus: no plan for those who wait: they go in the queue's order", "err", err)
		}
		passed = append(passed, t.follow(waiting, turns, err)...)
	}
	if len(passed) > 0 {
		enter := map[string]*v1.Pod{}
		for _, pod := range passed {
			enter[pod.Namespace+"/"+pod.Name] = pod
		}
		t.handle.Activate(klog.FromContext(ctx), enter)
	}
}

// due are the pods to plan for, in the queue's order, or none while there is nothing to decide; and those that enter without a plan.
func (t *turns) due() (waiting, passed []*v1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, held, coming := time.Now(), false, false
	for uid, w := range t.pods {
		known := t.known(w.pod.Namespace, w.pod.Name)
		if known == nil || known.UID != uid || known.Spec.NodeName != "" || ended(known) {
			delete(t.pods, uid)
			continue
		}
		w.pod = known
		if !w.given.IsZero() && now.Sub(w.given) > takeWithin && now.Sub(t.taken) > takeWithin {
			w.given, w.node, w.out = time.Time{}, "", now.Add(outFor)
		}
		held, coming = held || w.held, coming || !w.given.IsZero()
	}
	plans := held && !coming && (t.stale || now.Sub(t.planned) >= lookEvery)
	for _, w := range t.pods {
		out := now.Before(w.out)
		if plans && !w.taken && !out {
			waiting = append(waiting, w.pod)
		} else if w.held && (out || t.patient(w.pod, now)) {
			w.open, w.held = true, false
			passed = append(passed, w.pod)
		}
	}
	if plans {
		t.stale, t.planned = false, now
	}
	slices.SortFunc(waiting, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(corev1helpers.PodPriority(b), corev1helpers.PodPriority(a)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	return waiting, passed
}

// follow a plan, if there is one: without, all may enter. It returns those who may now.
func (t *turns) follow(waiting []*v1.Pod, turns []mirror.Turn, failed error) (passed []*v1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for i, pod := range waiting {
		w := t.pods[pod.UID]
		if w == nil || w.taken {
			continue
		}
		waits := w.held
		switch {
		case failed != nil:
		case turns[i].Verdict == horus.Place:
			w.node, w.given = turns[i].Node, now
			waits = waits || !w.tried.IsZero() // it may be in backoff, where others would overtake it
		case turns[i].Reason == horus.ReasonPassedOver && t.patient(pod, now):
		case turns[i].Reason == horus.ReasonPassedOver:
			if w.held && !w.told && t.leads {
				w.told = true
				t.tell(pod)
			}
			continue
		case turns[i].Verdict == horus.Reject: // it never fits: nobody is to wait for it
			w.out = now.Add(outFor)
		case now.Sub(w.tried) < tryEvery:
			continue // it was told
		}
		if w.open, w.held = true, false; waits {
			passed = append(passed, pod)
		}
	}
	return passed
}

// PreEnqueue holds a pod while others who wait go first.
func (pl *Horus) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	if pl.turns.enter(pod) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "Horus: others who wait go first")
}

// turnOf reads a pod, if the library has a say in when it goes. A pod for which others were preempted is not held, nor one that has
// devices.
func (pl *Horus) turnOf(pod *v1.Pod) (view objects.Pod, takesPart bool) {
	if !pl.args.Choose || pod.Annotations[objects.ProfileAnnotation] == "" || pod.Spec.SchedulingGroup != nil || gangOf(pod) != "" ||
		len(pod.Spec.SchedulingGates) > 0 || pod.Status.NominatedNodeName != "" {
		return view, false
	}
	view, err := pl.mirror.Read(pod)
	view.Horus.SubmitUs = pod.CreationTimestamp.UnixMicro()
	return view, err == nil && view.Backend.Names() && !view.Horus.Exclusive && !view.Allocated && view.Beyond == ""
}

// planTurns asks the library.
func (pl *Horus) planTurns(ctx context.Context, pods []*v1.Pod) ([]mirror.Turn, error) {
	turns := make([]mirror.Turn, len(pods))
	var views []objects.Pod
	var rows []int
	var open []objects.Openness
	for row, pod := range pods {
		turns[row].Verdict = horus.Reject // of one that takes no part any more
		view, takesPart := pl.turnOf(pod)
		if !takesPart {
			continue
		}
		views, rows = append(views, view), append(rows, row)
		if len(open) < mostOpen {
			open = append(open, objects.OpennessOf(pod, pl.owner))
		}
	}
	may := func(node *v1.Node) bool {
		return slices.ContainsFunc(open, func(one objects.Openness) bool { return one.To(node) })
	}
	planned, err := pl.mirror.Next(ctx, views, may, horus.BatchOptions{
		NowUs: time.Now().UnixMicro(), PatienceUs: pl.args.Patience.Microseconds(), MaxEvaluations: mostEvaluations,
	})
	for i := range planned {
		turns[rows[i]] = planned[i]
	}
	return turns, err
}

const (
	mostOpen        = 50     // pods, the first of those who wait, whose nodes are planned with
	mostEvaluations = 20_000 // of places: tens of milliseconds, in which no pod is placed
)
