// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
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

func (w *waitingPod) Allow(string) {
	w.allowed = true
	delete(w.of.waiting, w.pod.UID)
}

func (w *waitingPod) Reject(string, string) bool {
	delete(w.of.waiting, w.pod.UID)
	w.of.gangs.fail(w.pod)
	return true
}

// Many gangs want the same GPUs, pods come in any order, some are refused by another plugin or go: no GPU is ever held by two
// gangs that are not complete, a gang is let through whole, and when no pod is left to try nothing is held in vain.
func TestGangsNeverHoldGPUsAgainstEachOther(t *testing.T) {
	synctest.Test(t, gangsAmongThemselves)
}

func gangsAmongThemselves(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		const capacity, gangCount, size = 6, 4, 4
		s := &fakeScheduler{waiting: map[types.UID]*waitingPod{}, active: map[string]*v1.Pod{}}
		bound := map[types.UID]*v1.Pod{}
		used := func() int { return len(bound) + len(s.waiting) }
		g := newGangs(s,
			func(string, string) (podGroup, error) { return podGroup{size, time.Hour}, nil },
			func(_ context.Context, members []*v1.Pod) (map[types.UID]string, error) {
				if used()+len(members) > capacity {
					return nil, noPlace("full")
				}
				return map[types.UID]string{}, nil
			})
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
		complete := map[string]bool{}
		for step := 0; len(queue) > 0 && step < 2000; step++ {
			time.Sleep(100 * time.Millisecond) // by the clock of synctest
			pod := queue[0]
			queue = queue[1:]
			_, wait, err := g.enter(context.Background(), pod)
			switch {
			case wait != nil || err != nil || used() >= capacity || random.IntN(8) == 0:
				g.fail(pod) // PostFilter
			default:
				assumed := pod.DeepCopy() // as the scheduler shows it
				assumed.Spec.NodeName = "n"
				status, _ := g.permit(context.Background(), assumed)
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
				if complete[name] = complete[name] || n >= size; !complete[name] {
					t.Fatalf("seed %d: %s is let through with %d of %d pods", seed, name, n, size)
				}
			}
			incomplete := map[string]bool{}
			for _, one := range s.waiting {
				if name := gangOf(one.pod); !complete[name] {
					incomplete[name] = true
				}
			}
			if len(incomplete) > 1 {
				t.Fatalf("seed %d: held by gangs that are not complete: %v", seed, incomplete)
			}
			ended := random.IntN(3) == 0
			if ended {
				for name := range complete {
					for uid, pod := range bound {
						if gangOf(pod) == name {
							g.gone(pod)
							delete(bound, uid)
						}
					}
					delete(complete, name)
					break
				}
			}
			g.mu.Lock() // which the timers that activate pods hold too
			for _, one := range g.all {
				if ended { // its event tries all pods again
					maps.Copy(s.active, one.unbound())
				}
			}
			for _, pod := range s.active {
				again := true
				for _, queued := range queue {
					again = again && queued.UID != pod.UID
				}
				if again && bound[pod.UID] == nil && s.waiting[pod.UID] == nil {
					queue = append(queue, pod)
				}
			}
			clear(s.active)
			g.mu.Unlock()
		}
		if g.turn != nil && len(queue) == 0 {
			t.Fatalf("seed %d: nobody is left to try and %s holds the turn", seed, g.turn.name)
		}
	}
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
