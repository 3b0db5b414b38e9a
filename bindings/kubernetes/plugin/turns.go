// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
// Kubernetes'. The next plan waits until the places of this one are taken. A pod that has nobody to be weighed against is not held.
//
// PreEnqueue is called under the lock of the scheduler's queue, which Activate takes: nothing here is locked around Activate, and
// PreEnqueue does not wait for a plan.
type turns struct {
	handle    activator
	patience  time.Duration                        // an older pod is not passed over
	takesPart func(*v1.Pod) bool                   // it shares and is no gang's
	known     func(namespace, name string) *v1.Pod // as we were told of it last; nil = none
	plan      func([]*v1.Pod) (map[types.UID]mirror.Turn, error)
	tell      func(*v1.Pod) // that it is passed over

	mu      sync.Mutex
	pods    map[types.UID]*waiter
	stale   bool // somebody came or went since the last plan
	planned time.Time
	took    time.Duration // the plan
	taken   time.Time     // when one of those who had a place took it, or was refused
	leads   bool          // pods were tried here: a replica without the lease has the same queue, tells nobody and gives nobody up
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
	rests      = 5 // times the time that a plan takes, in which no pod is placed, from one to the next

	mostOpen        = 50     // pods, the first of those who wait, whose nodes are planned with
	mostEvaluations = 20_000 // of places: tens of milliseconds, in which no pod is placed
)

func (pl *Horus) passedOver(pod *v1.Pod) {
	until := pod.CreationTimestamp.Add(pl.args.Patience.Duration).UTC().Format(time.RFC3339)
	pl.tell(pod, v1.EventTypeNormal, "HorusPassedOver", "Others of its priority that wait go first. From "+until+" on it is not held.")
}

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
	w.open = w.open || now.Before(w.out) || t.patient(pod, now) || t.alone(pod)
	w.pod, w.held, t.stale = pod, !w.open, true
	return w.open
}

// alone: nobody of its priority or a higher one waits beside it.
func (t *turns) alone(pod *v1.Pod) bool {
	for uid, other := range t.pods { // the first one met mostly answers
		if uid != pod.UID && !other.taken && corev1helpers.PodPriority(other.pod) >= corev1helpers.PodPriority(pod) {
			return false
		}
	}
	return true
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

// attempt at a pod: it has its devices (taken), found no place (refused) and is held again, or neither, for its binding failed. The
// queue tries the last again, and whom the scheduler does not put where the plan does: no plan counts on them for a while.
func (t *turns) attempt(uid types.UID, taken, refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.pods[uid]
	if w == nil {
		return
	}
	now, planned := time.Now(), !w.given.IsZero()
	if planned { // else it is no progress of those who have a place
		t.taken = now
	}
	if refused {
		w.tried = now
	}
	if !taken && (planned || !refused) {
		w.out = now.Add(outFor)
	}
	w.held, w.taken, w.open, w.node, w.given, t.stale = false, taken, !refused, "", time.Time{}, true
}

// next makes a plan, if there is something to decide, and lets those enter who may.
func (t *turns) next() {
	waiting, passed := t.due()
	if waiting != nil {
		turns, err := t.decide(waiting)
		if err != nil {
			klog.V(2).InfoS("Horus: no plan for those who wait: they go in the queue's order", "err", err)
		}
		passed = append(passed, t.follow(waiting, turns, err)...)
	}
	activate(t.handle, passed...)
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
			t.stale = true
			continue
		}
		if known != w.pod && !t.takesPart(known) {
			if delete(t.pods, uid); w.held {
				passed = append(passed, known)
			}
			continue
		}
		w.pod = known
		if !w.given.IsZero() && now.Sub(w.given) > takeWithin && now.Sub(t.taken) > takeWithin {
			if w.given, w.node = (time.Time{}), ""; t.leads {
				w.out = now.Add(outFor)
			}
		}
		held, coming = held || w.held, coming || !w.given.IsZero()
	}
	plans := held && !coming && now.Sub(t.planned) >= rests*t.took && (t.stale || now.Sub(t.planned) >= lookEvery)
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

// decide plans for all. Where a pod past its patience fits, no younger one of its priority or a lower one takes its place.
func (t *turns) decide(waiting []*v1.Pod) (map[types.UID]mirror.Turn, error) {
	turns, err := t.plan(waiting)
	now := time.Now()
	for _, old := range waiting {
		if err != nil || turns[old.UID].Reason != horus.ReasonPassedOver || !t.patient(old, now) {
			continue
		}
		first := []*v1.Pod{}
		for _, pod := range waiting {
			if t.patient(pod, now) || corev1helpers.PodPriority(pod) > corev1helpers.PodPriority(old) {
				first = append(first, pod)
			} else if turns[pod.UID].Verdict == horus.Place {
				turns[pod.UID] = mirror.Turn{Verdict: horus.Defer, Reason: horus.ReasonPassedOver}
			}
		}
		if len(first) < len(waiting) {
			again, err := t.decide(first)
			maps.Copy(turns, again)
			return turns, err
		}
	}
	return turns, err
}

// follow a plan, if there is one: without, all may enter. It returns those who may now.
func (t *turns) follow(waiting []*v1.Pod, turns map[types.UID]mirror.Turn, failed error) (passed []*v1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.took = now.Sub(t.planned)
	for _, pod := range waiting {
		w, turn := t.pods[pod.UID], turns[pod.UID]
		if w == nil || w.taken {
			continue
		}
		waits := w.held
		switch {
		case failed != nil:
		case turn.Verdict == horus.Place:
			w.node, w.given = turn.Node, now
			waits = waits || !w.tried.IsZero() // it may be in backoff, where others would overtake it
		case turn.Reason == horus.ReasonPassedOver && t.patient(pod, now):
		case turn.Reason == horus.ReasonPassedOver:
			if w.held && !w.told && t.leads {
				w.told = true
				t.tell(pod)
			}
			continue
		case turn.Verdict == horus.Reject: // it never fits: nobody is to wait for it
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

func (pl *Horus) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	if pl.turns.enter(pod) {
		return nil
	}
	return never("others who wait go first")
}

// turnOf reads a pod, if the library has a say in when it goes. A pod for which others were preempted is not held, nor one that has
// devices.
func (pl *Horus) turnOf(pod *v1.Pod) (view objects.Pod, takesPart bool) {
	_, wrong := pl.invalid.Load(pod.UID) // one such pod and no plan is made
	if !pl.args.Choose || wrong || pod.Annotations[objects.ProfileAnnotation] == "" || pod.Spec.SchedulingGroup != nil || gangOf(pod) != "" ||
		len(pod.Spec.SchedulingGates) > 0 || pod.Status.NominatedNodeName != "" {
		return view, false
	}
	view, err := pl.mirror.Read(pod)
	view.Horus.SubmitUs = pod.CreationTimestamp.UnixMicro()
	return view, err == nil && view.Backend.Names() && !view.Horus.Exclusive && !view.Allocated && view.Beyond == "" && !view.SizedByNode()
}

func (pl *Horus) planTurns(pods []*v1.Pod) (map[types.UID]mirror.Turn, error) {
	turns := map[types.UID]mirror.Turn{}
	var views []objects.Pod
	var uids []types.UID
	var open []objects.Openness
	for _, pod := range pods {
		view, takesPart := pl.turnOf(pod)
		if !takesPart {
			turns[pod.UID] = mirror.Turn{Verdict: horus.Reject}
			continue
		}
		views, uids = append(views, view), append(uids, pod.UID)
		if len(open) < mostOpen {
			open = append(open, objects.OpennessOf(pod, pl.owner))
		}
	}
	may := func(node *v1.Node) bool {
		return slices.ContainsFunc(open, func(one objects.Openness) bool { return one.To(node) })
	}
	// The library's own patience would keep GPUs empty for a pod that fits nowhere.
	planned, err := pl.mirror.Next(views, may, horus.BatchOptions{MaxEvaluations: mostEvaluations})
	for i := range planned {
		turns[uids[i]] = planned[i]
	}
	return turns, err
}
