// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/library"
	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
)

// yard is a scheduler with upstream's own queue, places that pods take for a while, and a library that knows what each is worth.
type yard struct {
	t      *testing.T
	turns  *turns
	queue  *internalqueue.PriorityQueue
	places int

	mu     sync.Mutex
	pods   map[types.UID]*job
	noRoom map[int]time.Time // since when so many places were not free
	bound  int
	unfair int // bindings before one that was worth more
	upside int // bindings before one of a higher priority
}

type job struct {
	pod     *v1.Pod
	need    int
	worth   float64
	since   time.Time
	told    bool // that it is unschedulable
	ends    time.Duration
	blocked time.Time // since when it fits and waits
}

// recorder is upstream's, which outlives the tests.
var recorder = sync.OnceValue(func() *schedulermetrics.MetricAsyncRecorder {
	schedulermetrics.Register()
	return schedulermetrics.NewMetricsAsyncRecorder(1000, time.Minute, nil)
})

type gate struct{ turns *turns }

func (gate) Name() string { return Name }
func (g gate) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	return (&Horus{turns: g.turns}).PreEnqueue(context.Background(), pod)
}

func (s *yard) free() int {
	free := s.places
	for _, one := range s.pods {
		if one.pod.Spec.NodeName != "" {
			free -= one.need
		}
	}
	return free
}

// waiting in the queue's order.
func (s *yard) waiting() (out []*job) {
	for _, one := range s.pods {
		if one.pod.Spec.NodeName == "" {
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b *job) int {
		return cmp.Or(cmp.Compare(corev1helpers.PodPriority(b.pod), corev1helpers.PodPriority(a.pod)), a.since.Compare(b.since), cmp.Compare(a.pod.UID, b.pod.UID))
	})
	return out
}

// plan as the library does: within a priority whoever is worth most.
func (s *yard) plan(pods []*v1.Pod) (map[types.UID]mirror.Turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.free()
	turns, left := map[types.UID]mirror.Turn{}, free
	for _, pod := range pods {
		turns[pod.UID] = mirror.Turn{Verdict: horus.Defer, Reason: horus.ReasonGPUMemory}
		if one := s.pods[pod.UID]; one != nil && one.need <= free {
			turns[pod.UID] = mirror.Turn{Verdict: horus.Defer, Reason: horus.ReasonPassedOver}
		}
	}
	for {
		best := -1
		for i, pod := range pods {
			one := s.pods[pod.UID]
			if one == nil || turns[pod.UID].Verdict == horus.Place || one.need > left {
				continue
			}
			if best < 0 || (corev1helpers.PodPriority(pod) == corev1helpers.PodPriority(pods[best]) && one.worth > s.pods[pods[best].UID].worth) {
				best = i
			}
		}
		if best < 0 {
			return turns, nil
		}
		turns[pods[best].UID] = mirror.Turn{Verdict: horus.Place, Node: "n"}
		left -= s.pods[pods[best].UID].need
	}
}

// schedule is the scheduler's loop.
func (s *yard) schedule() {
	for {
		entity, err := s.queue.Pop(klog.Background())
		if err != nil || entity == nil {
			return
		}
		info := any(entity).(*framework.QueuedPodInfo)
		s.turns.node(info.Pod.UID)
		time.Sleep(time.Millisecond)
		s.mu.Lock()
		one := s.pods[info.Pod.UID]
		switch {
		case one == nil:
			s.mu.Unlock()
			s.queue.Done(info.Pod.UID)
		case one.need <= s.free():
			s.seize(one)
			s.mu.Unlock()
			s.turns.attempt(one.pod.UID, true, false)
			s.queue.Done(info.Pod.UID)
		default:
			one.told = true
			s.mu.Unlock()
			s.turns.attempt(one.pod.UID, false, true)
			info.UnschedulablePlugins.Insert(Name)
			if err := back(s.queue, info); err != nil {
				s.t.Error(err)
			}
		}
	}
}

// back puts a refused pod into the queue, by the names of 1.37 and of 1.36.
func back(queue any, info *framework.QueuedPodInfo) error {
	switch q := queue.(type) {
	case interface {
		AddUnschedulablePodIfNotPresent(klog.Logger, *framework.QueuedPodInfo, int64) error
	}:
		return q.AddUnschedulablePodIfNotPresent(klog.Background(), info, 0)
	case interface {
		AddUnschedulableIfNotPresent(klog.Logger, *framework.QueuedPodInfo, int64) error
	}:
		return q.AddUnschedulableIfNotPresent(klog.Background(), info, 0)
	}
	return fmt.Errorf("expected a queue that takes pods back, found %T", queue)
}

// seize binds a pod, and looks whom it passes.
func (s *yard) seize(one *job) {
	const settled = 300 * time.Millisecond
	for _, other := range s.waiting() {
		if other == one || other.need > one.need || time.Since(other.since) < settled {
			continue
		}
		if corev1helpers.PodPriority(other.pod) > corev1helpers.PodPriority(one.pod) {
			s.upside++
			break
		}
		if corev1helpers.PodPriority(other.pod) == corev1helpers.PodPriority(one.pod) && other.worth > one.worth {
			s.unfair++
			break
		}
	}
	s.bound++
	pod := one.pod.DeepCopy()
	pod.Spec.NodeName = "n"
	one.pod = pod
	time.AfterFunc(one.ends, func() {
		s.mu.Lock()
		delete(s.pods, pod.UID)
		s.mu.Unlock()
		s.queue.MoveAllToActiveOrBackoffQueue(klog.Background(), framework.EventAssignedPodDelete, pod, nil, nil)
	})
}

func (s *yard) come(one *job) {
	s.mu.Lock()
	one.since = time.Now()
	one.pod.CreationTimestamp = metav1.NewTime(one.since)
	s.pods[one.pod.UID] = one
	pod := one.pod
	s.mu.Unlock()
	s.queue.Add(context.Background(), pod)
}

// newYard stops with the context. chooses: pods are held, else they go in the queue's order.
func newYard(ctx context.Context, t *testing.T, places int, patience time.Duration, chooses bool) *yard {
	s := &yard{t: t, places: places, pods: map[types.UID]*job{}, noRoom: map[int]time.Time{}}
	s.turns = &turns{
		patience: patience, plan: s.plan, pods: map[types.UID]*waiter{}, tell: func(*v1.Pod) {},
		takesPart: func(*v1.Pod) bool { return chooses },
		known: func(_, name string) *v1.Pod {
			s.mu.Lock()
			defer s.mu.Unlock()
			if one := s.pods[types.UID(name)]; one != nil {
				return one.pod
			}
			return nil
		},
	}
	hints := internalqueue.QueueingHintMapPerProfile{"": {framework.EventAssignedPodDelete: {{
		PluginName:     Name,
		QueueingHintFn: func(klog.Logger, *v1.Pod, any, any) (fwk.QueueingHint, error) { return fwk.Queue, nil },
	}}}}
	s.queue = internalqueue.NewTestQueueWithInformerFactory(ctx, (&queuesort.PrioritySort{}).Less, informers.NewSharedInformerFactory(fake.NewClientset(), 0),
		internalqueue.WithMetricsRecorder(recorder()),
		internalqueue.WithQueueingHintMapPerProfile(hints),
		internalqueue.WithPreEnqueuePluginMap(map[string]map[string]fwk.PreEnqueuePlugin{"": {Name: gate{s.turns}}}))
	s.queue.Run(klog.Background())
	s.turns.handle = s.queue
	go wait.UntilWithContext(ctx, func(context.Context) { s.turns.next() }, planEvery)
	return s
}

func jobOf(name string, priority int32, need int, worth float64, ends time.Duration) *job {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
	pod.Spec.Priority = &priority
	return &job{pod: pod, need: need, worth: worth, ends: ends}
}

// Of many pods that come and go, those go first whose work is worth most, within a priority. Who fits is not left waiting beside free
// places, who fits nowhere is told so, and nobody is held for longer than the patience.
func TestThoseWorthMostGoFirstAndNobodyIsHeldInVain(t *testing.T) {
	recorder()
	unfair := map[bool]float64{}
	for _, chooses := range []bool{true, false} {
		bound, count := 0, 0
		for seed := range uint64(4) {
			synctest.Test(t, func(t *testing.T) {
				s := play(t, seed, chooses, false)
				bound, count = bound+s.bound, count+s.unfair
				if chooses && s.upside*50 > s.bound {
					t.Errorf("seed %d: %d of %d pods went before one of a higher priority", seed, s.upside, s.bound)
				}
			})
		}
		unfair[chooses] = float64(count) / float64(bound)
	}
	if unfair[true] > 0.03 || unfair[false] < 0.5 {
		t.Errorf("expected hardly anybody to go before a pod worth more, found a share of %.2f; in the queue's order %.2f", unfair[true], unfair[false])
	}
}

// A replica that waits for the lease hears of the same pods. When it leads, all that holds for a leader holds at once, whatever it held,
// planned and gave before.
func TestTheNextLeaderHoldsNobodyInVain(t *testing.T) {
	recorder()
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			if s := play(t, seed, true, true); s.unfair*10 > s.bound {
				t.Errorf("seed %d: %d of %d pods went before one worth more", seed, s.unfair, s.bound)
			}
		})
	}
}

// forget a pod: Kubernetes 1.36 takes no logger.
func forget(queue any, pod *v1.Pod) {
	switch q := queue.(type) {
	case interface{ Delete(klog.Logger, *v1.Pod) }:
		q.Delete(klog.Background(), pod)
	case interface{ Delete(*v1.Pod) }:
		q.Delete(pod)
	default:
		panic(fmt.Sprintf("expected a queue that forgets pods, found %T", queue))
	}
}

// otherLeads for a while: another replica binds pods in the queue's order, and then dies.
func (s *yard) otherLeads() {
	for range 60 {
		time.Sleep(time.Second)
		s.mu.Lock()
		waiting := s.waiting()
		at := slices.IndexFunc(waiting, func(one *job) bool { return one.need <= s.free() })
		if at >= 0 {
			s.seize(waiting[at])
		}
		s.mu.Unlock()
		if at >= 0 {
			forget(s.queue, waiting[at].pod)
		}
	}
	time.Sleep(10 * time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unfair, s.upside = 0, 0
	for need := range 4 {
		s.noRoom[need] = time.Now()
	}
}

func play(t *testing.T, seed uint64, chooses, standby bool) *yard {
	const patience, count = time.Hour, 150
	ctx, cancel := context.WithCancel(context.Background())
	random := rand.New(rand.NewPCG(seed, 2))
	s := newYard(ctx, t, 6, patience, chooses)
	defer func() { cancel(); s.queue.Close(); synctest.Wait() }()
	go func() {
		for i := range count {
			s.come(jobOf(fmt.Sprintf("p%d", i), int32(random.IntN(8)/7), 1+random.IntN(4)/3, random.Float64(), time.Duration(5+random.IntN(20))*time.Second))
			time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		}
	}()
	if standby {
		s.otherLeads()
	}
	go s.schedule()
	for step := 0; s.bound < count; step++ {
		if time.Sleep(100 * time.Millisecond); step > 20_000 {
			t.Fatalf("seed %d: %d of %d pods were bound", seed, s.bound, count)
		}
		s.mu.Lock()
		free := s.free()
		for need := range 4 {
			if free >= need {
				s.noRoom[need] = time.Now()
			}
		}
		for _, one := range s.waiting() {
			if one.blocked.IsZero() || free < one.need {
				one.blocked = time.Now()
			}
			if waited := time.Since(one.blocked); chooses && waited > 3*time.Second {
				t.Errorf("seed %d: %s fits and waits for %v", seed, one.pod.Name, waited)
			}
			if none := min(time.Since(s.noRoom[one.need]), time.Since(one.since)); none > 3*time.Second && !one.told {
				t.Errorf("seed %d: %s has had no place for %v and was not told", seed, one.pod.Name, none)
			}
		}
		s.mu.Unlock()
	}
	return s
}

// bench are turns that are taken by hand. Of those who wait and fit, the last by name goes first.
type bench struct {
	*turns
	t       *testing.T
	pods    map[string]*v1.Pod
	room    int             // places
	large   map[string]bool // who fits nowhere
	takes   time.Duration   // a plan
	fails   error
	active  map[string]*v1.Pod
	planned [][]string // who was planned for, each time
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, pods: map[string]*v1.Pod{}, room: 1, large: map[string]bool{}, active: map[string]*v1.Pod{}}
	b.turns = &turns{
		handle: &fakeScheduler{active: b.active}, patience: time.Hour, pods: map[types.UID]*waiter{}, tell: func(*v1.Pod) {}, leads: true,
		takesPart: func(pod *v1.Pod) bool { return pod.Status.NominatedNodeName == "" },
		known:     func(_, name string) *v1.Pod { return b.pods[name] }, plan: b.decideAll,
	}
	return b
}

func (b *bench) decideAll(waiting []*v1.Pod) (map[types.UID]mirror.Turn, error) {
	turns, names, room := map[types.UID]mirror.Turn{}, []string{}, b.room
	waiting = slices.Clone(waiting)
	slices.SortFunc(waiting, func(x, y *v1.Pod) int {
		return cmp.Or(cmp.Compare(corev1helpers.PodPriority(y), corev1helpers.PodPriority(x)), cmp.Compare(y.Name, x.Name))
	})
	for _, pod := range waiting {
		names = append(names, pod.Name)
		switch {
		case b.large[pod.Name]:
			turns[pod.UID] = mirror.Turn{Verdict: horus.Defer, Reason: horus.ReasonGPUMemory}
		case room > 0:
			room--
			turns[pod.UID] = mirror.Turn{Verdict: horus.Place, Node: "n"}
		default:
			turns[pod.UID] = mirror.Turn{Verdict: horus.Defer, Reason: horus.ReasonPassedOver}
		}
	}
	b.planned = append(b.planned, names)
	time.Sleep(b.takes)
	return turns, b.fails
}

// come makes a pod and says whether it enters at once.
func (b *bench) come(name string, priority int32) bool {
	b.pods[name] = &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), CreationTimestamp: metav1.Now()},
		Spec:       v1.PodSpec{Priority: &priority},
	}
	return b.enter(b.pods[name])
}

// step is the next look: who enters by it.
func (b *bench) step(expected ...string) {
	b.t.Helper()
	clear(b.active)
	b.next()
	found := []string{}
	for _, pod := range b.active {
		found = append(found, pod.Name)
		if !b.enter(pod) {
			b.t.Errorf("expected %s to enter", pod.Name)
		}
	}
	if slices.Sort(found); !slices.Equal(found, expected) {
		b.t.Errorf("expected %v to go, found %v, by plans for %v", expected, found, b.planned)
	}
}

// A pod alone is as fast as without turns, and tried as often: there is nobody to weigh it against. One of a lower priority does not
// hold it up.
func TestWhoHasNobodyBesideItIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for range 3 {
			if !b.come("low", 0) {
				t.Error("expected a pod alone to enter, found it held")
			}
			b.attempt("low", false, true)
		}
		if !b.come("high", 1) {
			t.Error("expected a pod of a higher priority to enter, found it held")
		}
		if b.come("other", 0) {
			t.Error("expected a pod to be held while another of its priority waits")
		}
		b.attempt("low", true, false)
		if b.come("another", 0) {
			t.Error("expected a pod to be held while one of a higher priority waits")
		}
		b.attempt("high", true, false)
		b.attempt("other", true, false)
		delete(b.pods, "another")
		b.step()
		if !b.come("last", 0) {
			t.Error("expected a pod to enter, since the others have their places")
		}
		if b.step(); len(b.planned) > 0 {
			t.Errorf("expected no plan, found %v", b.planned)
		}
	})
}

// The plan gives the place to a pod that the scheduler does not put there: it is out of the plan for a while, and another goes.
func TestAPlaceThatTheSchedulerRefusesIsGivenToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for _, name := range []string{"a", "b", "c"} {
			b.come(name, 0)
		}
		b.attempt("a", false, true)
		b.step("c")
		if b.node("c") != "n" {
			t.Errorf("expected the plan's node, found %q", b.node("c"))
		}
		time.Sleep(time.Second)
		if b.step(); len(b.planned) > 1 { // until it has taken its place
			t.Errorf("expected no plan while a place is not taken, found %v", b.planned)
		}
		b.attempt("c", false, true)
		b.step("b")
		b.attempt("b", true, false)
		if b.enter(b.pods["a"]) || !b.enter(b.pods["c"]) {
			t.Error("expected a to be held, and c, which is out of plans, to be the queue's")
		}
		b.fails = errors.New("no library")
		b.step("a") // in the queue's order
	})
}

// Nobody waits for long for a pod that has a place and never tries it, whatever others do meanwhile.
func TestAPlaceThatIsNotTakenIsGivenToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for _, name := range []string{"a", "b", "c"} {
			b.come(name, 0)
		}
		b.attempt("a", false, true)
		b.step("c")
		for begin := time.Now(); time.Since(begin) <= takeWithin; time.Sleep(time.Second) {
			b.step()
			b.attempt("a", true, false) // it is about to be bound again and again
			b.attempt("a", false, false)
		}
		b.step("b")
	})
}

// A replica without the lease plans like the leader, and nobody takes the places that it gives: when it leads, nobody is left out of
// its plans for that.
func TestAReplicaWithoutTheLeaseGivesNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.leads = false
		for _, name := range []string{"a", "b", "c"} {
			b.come(name, 0)
		}
		b.attempt("a", false, true)
		for range 10 {
			b.next()
			time.Sleep(takeWithin)
		}
		for _, plan := range b.planned {
			if len(plan) != 3 {
				t.Errorf("expected all to be planned for each time, found %v", b.planned)
			}
		}
		b.node("c") // it is tried here: the replica leads
		b.attempt("c", true, false)
		b.step("b")
	})
}

// A pod past its patience is not held. Where it fits, no younger one of its priority or a lower one takes its place; where it does
// not, they go, so that no GPU is idle for it.
func TestNobodyPassesAPodPastItsPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.large["a-large"] = true
		for _, name := range []string{"a", "a-large"} {
			b.come(name, 1)
			b.attempt(types.UID(name), false, true)
		}
		time.Sleep(b.patience)
		if b.come("b", 1) || b.come("c", 0) || !b.come("d", 2) {
			t.Error("expected the young to be held, but of a higher priority")
		}
		b.step() // the place is d's, and would be a's before b's
		b.attempt("d", true, false)
		b.step("a")
		b.attempt("a", true, false)
		b.step("b")
		b.attempt("b", true, false)
		b.step("c")
	})
}

// A pod for which others are preempted, or that is no pod of ours any more, is let go at the next look.
func TestWhoTakesPartNoMoreIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for _, name := range []string{"a", "b", "c"} {
			b.come(name, 0)
		}
		b.step("c")
		changed := b.pods["b"].DeepCopy()
		changed.Status.NominatedNodeName = "n"
		b.pods["b"] = changed
		b.step("b")
	})
}

// Gangs, pods without a profile or consent, those for which others were preempted, and those that somebody else holds.
func TestOnlyPodsThatShareTakeTurns(t *testing.T) {
	args := Args{Choose: true, Driver: "gpu.nvidia.com", DeviceClasses: []string{"gpu.nvidia.com"}, ExtendedResource: "nvidia.com/gpu"}
	lib, err := library.Local(library.Options{})
	if err != nil {
		t.Fatal(err)
	}
	claim := &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{
		{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Count: 1}},
	}}}}
	pl := &Horus{args: args, mirror: mirror.New(args.Settings(), objects.Lookups{
		Claim: func(string, string) (*resourceapi.ResourceClaim, error) { return claim, nil },
		Profile: func(string, string) (objects.Profile, error) {
			return objects.ProfileOf(map[string]any{"demands": []any{map[string]any{"gpuType": "t4", "gpuUtilPct": 15, "memMiB": 2_000}}}, nil)
		},
	}, lib)}
	for what, change := range map[string]func(*v1.Pod){
		"":                     func(*v1.Pod) {},
		"no profile":           func(p *v1.Pod) { delete(p.Annotations, objects.ProfileAnnotation) },
		"no consent":           func(p *v1.Pod) { delete(p.Annotations, objects.ShareAnnotation) },
		"a gang":               func(p *v1.Pod) { p.Labels = map[string]string{GroupLabel: "g"} },
		"Kubernetes' gang":     func(p *v1.Pod) { p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{} },
		"a scheduling gate":    func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "quota"}} },
		"others made room":     func(p *v1.Pod) { p.Status.NominatedNodeName = "n" },
		"no GPU":               func(p *v1.Pod) { p.Spec.ResourceClaims = nil },
		"wrong bound":          func(p *v1.Pod) { p.Annotations[objects.BoundAnnotation] = "x" },
		"its claim has some":   func(*v1.Pod) { claim.Status.Allocation = &resourceapi.AllocationResult{} },
		"was refused for good": func(p *v1.Pod) { pl.invalid.Store(p.UID, p) },
	} {
		claim.Status.Allocation = nil
		pl.invalid.Clear()
		name := "gpu"
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p", Annotations: map[string]string{
			objects.ProfileAnnotation: "light", objects.ShareAnnotation: "same-tenant",
		}}, Spec: v1.PodSpec{ResourceClaims: []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}}}
		change(pod)
		if _, takesPart := pl.turnOf(pod); takesPart != (what == "") {
			t.Errorf("%q: expected %v, found %v", what, what == "", takesPart)
		}
	}
}

// What Activate wakes skips the queue's backoff: a refused pod would be tried as often as anything changes.
func TestWhoIsPassedOverNoMoreIsHeldByTheQueueAlone(t *testing.T) {
	pods := map[string]*v1.Pod{}
	turns := &turns{
		patience: time.Hour, takesPart: func(*v1.Pod) bool { return true }, known: func(_, name string) *v1.Pod { return pods[name] }, pods: map[types.UID]*waiter{},
	}
	for name, age := range map[string]time.Duration{"patient": 2 * time.Hour, "new": 0} {
		pods[name] = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Now().Add(-age))}}
	}
	if !turns.enter(pods["patient"]) || turns.enter(pods["new"]) {
		t.Error("expected the patient one to enter, and the new one to be held")
	}
	turns.pods["new"].given = time.Now() // a place that turns out to be none
	for name, pod := range pods {
		turns.attempt(pod.UID, false, true)
		if !turns.enter(pod) {
			t.Errorf("%s: expected it to enter by the queue, found it held", name)
		}
	}
	if _, passed := turns.due(); len(passed) > 0 {
		t.Errorf("expected nobody to be woken, found %v", passed)
	}
}

// A plan that takes long is made seldom: no pod is placed meanwhile.
func TestPlansLeaveTimeForPlacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.room, b.takes = 0, 4*time.Second
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		b.come("a", 0)
		b.come("b", 0)
		wait.UntilWithContext(ctx, func(context.Context) { b.next() }, planEvery)
		if found := len(b.planned); found < 2 || found > 4 {
			t.Errorf("expected plans of %v each for a fifth of a minute at most, found %d", b.takes, found)
		}
	})
}
