// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// fakeScheduler keeps the pods that wait in Permit. A rejected one comes back by Unreserve, as from the scheduler.
type fakeScheduler struct {
	gangs   *gangs
	waiting map[types.UID]*waitingPod
	active  map[string]*v1.Pod
}

type waitingPod struct {
	fwk.WaitingPod
	pod     *v1.Pod
	of      *fakeScheduler
	allowed bool
}

func (s *fakeScheduler) Activate(_ klog.Logger, pods map[string]*v1.Pod) { maps.Copy(s.active, pods) }

func (s *fakeScheduler) GetWaitingPod(uid types.UID) fwk.WaitingPod {
	if one := s.waiting[uid]; one != nil {
		return one
	}
	return nil
}

func (s *fakeScheduler) ProfileName() string { return "horus" }

func (w *waitingPod) Allow(string) {
	w.allowed = true
	delete(w.of.waiting, w.pod.UID)
}

func (w *waitingPod) Reject(string, string) bool {
	delete(w.of.waiting, w.pod.UID)
	w.of.gangs.fail(w.pod)
	return true
}

// Many gangs want the same GPUs, pods come in any order, some are refused by another plugin or go: a gang is let through whole,
// no GPU is promised to two, all gangs come in, and when no pod is left to try nothing is held in vain.
func TestGangsNeverLockEachOther(t *testing.T) {
	synctest.Test(t, gangsAmongThemselves)
}

func gangsAmongThemselves(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		const capacity, gangCount, size = 6, 4, 4
		s := &fakeScheduler{waiting: map[types.UID]*waitingPod{}, active: map[string]*v1.Pod{}}
		bound := map[types.UID]*v1.Pod{}
		used := func() int { return len(bound) + len(s.waiting) }
		freed := uint64(0)
		g := &gangs{handle: s, all: map[string]*gang{}, freed: func() uint64 { return freed },
			groups: func(string, string) (podGroup, error) { return podGroup{size, time.Hour}, nil },
			plan: func(members []*v1.Pod) (map[types.UID]string, error) {
				if used()+len(members) > capacity {
					return nil, noPlace("full")
				}
				planned := map[types.UID]string{}
				for _, member := range members {
					planned[member.UID] = "n"
				}
				return planned, nil
			}}
		s.gangs = g
		queue := []*v1.Pod{}
		for i := range gangCount * size {
			name := fmt.Sprintf("g%d-%d", i%gangCount, i)
			queue = append(queue, &v1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "team", Name: name, UID: types.UID(name), Labels: map[string]string{GroupLabel: name[:2]},
			}})
		}
		random.Shuffle(len(queue), func(a, b int) { queue[a], queue[b] = queue[b], queue[a] })
		held := map[types.UID]*waitingPod{}
		complete, through := map[string]bool{}, 0
		wake := func() {
			g.mu.Lock() // which the timers that activate pods hold too
			defer g.mu.Unlock()
			for _, pod := range s.active {
				if !slices.ContainsFunc(queue, func(one *v1.Pod) bool { return one.UID == pod.UID }) && bound[pod.UID] == nil && s.waiting[pod.UID] == nil {
					queue = append(queue, pod)
				}
			}
			clear(s.active)
		}
		again := func() { // as the scheduler does after an event that frees something
			freed++
			for _, one := range g.all {
				activate(s, one.placeless()...)
			}
		}
		for step := 0; through < gangCount && step < 4000; step++ {
			time.Sleep(100 * time.Millisecond) // by the clock of synctest
			if len(queue) == 0 {
				time.Sleep(mostPause)
				if wake(); len(queue) == 0 && len(s.waiting) > 0 {
					t.Fatalf("seed %d: nobody is left to try and %d GPUs are held", seed, len(s.waiting))
				}
				g.mu.Lock()
				again()
				g.mu.Unlock()
				wake()
				continue
			}
			pod := queue[0]
			queue = queue[1:]
			_, wait, err := g.enter(pod)
			switch {
			case wait != nil || err != nil || used() >= capacity || random.IntN(8) == 0: // the last by another plugin
				g.fail(pod) // PostFilter
			default:
				assumed := pod.DeepCopy() // as the scheduler shows it
				assumed.Spec.NodeName = "n"
				status, _ := g.permit(assumed)
				if status.Code() == fwk.Wait {
					held[pod.UID] = &waitingPod{pod: pod, of: s}
					s.waiting[pod.UID] = held[pod.UID]
				} else {
					bound[pod.UID] = pod
				}
			}
			for uid, one := range held {
				if one.allowed {
					bound[uid] = one.pod
				}
				if one.allowed || s.waiting[uid] == nil {
					delete(held, uid)
				}
			}
			for uid, pod := range bound {
				if pod.Spec.NodeName == "" {
					pod = pod.DeepCopy()
					pod.Spec.NodeName = "n"
					bound[uid] = pod
					g.set(pod)
				}
			}
			count := map[string]int{}
			for _, pod := range bound {
				count[gangOf(pod)]++
			}
			for name, n := range count {
				if n >= size && !complete[name] {
					complete[name] = true
					through++
				}
				if !complete[name] {
					t.Fatalf("seed %d: %s is let through with %d of %d pods", seed, name, n, size)
				}
			}
			g.mu.Lock()
			if coming := len(g.coming()); used()+coming > capacity {
				t.Fatalf("seed %d: %d GPUs are taken and %d promised of %d", seed, used(), coming, capacity)
			}
			g.mu.Unlock()
			if random.IntN(3) == 0 {
				for name := range complete {
					for uid, pod := range bound {
						if gangOf(pod) == name {
							g.gone(pod)
							delete(bound, uid)
						}
					}
					delete(complete, name)
					g.mu.Lock()
					again()
					g.mu.Unlock()
					break
				}
			}
			wake()
		}
		if through < gangCount {
			t.Fatalf("seed %d: expected %d gangs to come in, found %d", seed, gangCount, through)
		}
	}
}

// Pods that cannot be placed are no members; one plan is made for all that can, until a place may have come.
func TestAGangIsPlannedOnceAndForItsOwnPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		planned, freed, room := 0, uint64(0), false
		s := &fakeScheduler{waiting: map[types.UID]*waitingPod{}, active: map[string]*v1.Pod{}}
		g := &gangs{handle: s, all: map[string]*gang{}, freed: func() uint64 { return freed },
			groups: func(string, string) (podGroup, error) { return podGroup{2, time.Hour}, nil },
			plan: func([]*v1.Pod) (map[types.UID]string, error) {
				if planned++; room {
					return map[types.UID]string{}, nil
				}
				return nil, noPlace("full")
			}}
		pod := func(name string, change func(p *v1.Pod)) *v1.Pod {
			p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Labels: map[string]string{GroupLabel: "g"}}}
			if p.Spec.SchedulerName = "horus"; change != nil {
				change(p)
			}
			g.set(p)
			return p
		}
		first := pod("first", nil)
		pod("gated", func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "never"}} })
		pod("foreign", func(p *v1.Pod) { p.Spec.SchedulerName = "nobody" })
		if _, wait, _ := g.enter(first); wait == nil || planned > 0 {
			t.Fatalf("expected one of two pods, and no plan, found %v and %d plans", wait, planned)
		}
		second := pod("second", nil)
		for range 3 {
			for _, one := range []*v1.Pod{first, second} {
				if _, _, err := g.enter(one); err == nil || planned != 1 {
					t.Fatalf("expected no place by one plan, found %v by %d", err, planned)
				}
			}
		}
		freed, room = 1, true
		if _, wait, _ := g.enter(second); wait == nil {
			t.Fatal("expected it to rest after an attempt that came to nothing")
		}
		time.Sleep(mostPause)
		synctest.Wait()
		if len(s.active) != 2 {
			t.Fatalf("expected both pods to be tried again, found %d", len(s.active))
		}
		if _, wait, err := g.enter(second); wait != nil || err != nil {
			t.Fatalf("expected a place, found %v, %v", wait, err)
		}
		g.fail(second)
	})
}

func TestPodGroupsOfKubernetesNeedEveryGateThatTheSchedulerKnows(t *testing.T) {
	for _, one := range []struct {
		known, set string
		off        featuregate.Feature
	}{
		{"1.37", "GenericWorkload=false", "GenericWorkload"}, {"1.37", "GenericWorkload=true", ""},
		{"1.36", "GenericWorkload=true", "GangScheduling"}, {"1.36", "GenericWorkload=true,GangScheduling=true", ""},
	} {
		gates := featuregate.NewFeatureGate()
		known := map[featuregate.Feature]featuregate.FeatureSpec{"GenericWorkload": {PreRelease: featuregate.Alpha}}
		if one.known == "1.36" {
			known["GangScheduling"] = featuregate.FeatureSpec{PreRelease: featuregate.Alpha}
		}
		if err := gates.Add(known); err != nil {
			t.Fatal(err)
		}
		if err := gates.Set(one.set); err != nil {
			t.Fatal(err)
		}
		if off := gateOff(gates); off != one.off {
			t.Errorf("%s with %s: expected %q off, found %q", one.known, one.set, one.off, off)
		}
	}
}
