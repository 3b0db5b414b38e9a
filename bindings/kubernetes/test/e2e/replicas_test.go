// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/kubernetes/test/controlplane"
)

// replicas are two processes with the chart's own lease, under the shim.
type replicas struct {
	t     *testing.T
	c     *controlplane.Cluster
	shim  string
	of    map[string]*controlplane.Replica
	fault string // folder of the files that let the shim of a replica fail
}

func startReplicas(t *testing.T, c *controlplane.Cluster) *replicas {
	t.Helper()
	_, err := c.Client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}, metav1.CreateOptions{})
	check(t, err)
	r := &replicas{t: t, c: c, shim: shim(t), of: map[string]*controlplane.Replica{}, fault: t.TempDir()}
	r.start("horus-scheduler-a")
	r.start("horus-scheduler-b")
	r.of["horus-scheduler-a"].Await()
	r.of["horus-scheduler-b"].Await()
	return r
}

func (r *replicas) start(name string) {
	r.t.Helper()
	r.c.Env = []string{"LD_PRELOAD=" + r.shim, "HORUS_FAULT=" + filepath.Join(r.fault, name)}
	r.of[name] = r.c.StartReplica(name, placing)
}

// leader waits until one leads that is not `but`.
func (r *replicas) leader(but string) (found string) {
	r.t.Helper()
	until(r.t, r.c, "another replica leads than "+but, func() bool {
		for name, replica := range r.of {
			if name != but && replica.Leads() {
				found = name
			}
		}
		return found != ""
	})
	return found
}

// both starts one again that ended, as a kubelet does: on a busy machine a leader may lose its lease before anything else happens.
func (r *replicas) both() {
	r.t.Helper()
	for name, replica := range r.of {
		if replica.Metrics() == "" {
			replica.Wait()
			r.start(name)
			r.of[name].Await()
		}
	}
}

// metrics of the one that leads.
func (r *replicas) metrics() string { return r.of[r.leader("")].Metrics() }

// The leader dies, is asked to end, or stands still for longer than its lease and goes on, while pods come and go: the other
// takes over and the auditor finds nothing.
func TestTheLeadChangesAndNothingIsLost(t *testing.T) {
	t.Parallel()
	c := start(t, "")
	r := startReplicas(t, c)
	f := fleet(t, c, 6, 4)
	f.metrics = r.metrics
	f.come(48)
	f.settle()
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGSTOP} {
		t.Run(signal.String(), func(t *testing.T) {
			f.t, r.t = t, t
			old := r.leader("")
			f.leave(12)
			f.come(12)
			r.of[old].Signal(signal)
			begin := time.Now()
			until(t, c, "the other replica leads", func() bool {
				if f.gone < 500 { // bounded: until gives up by time
					f.leave(1)
					f.come(1)
				}
				for name, replica := range r.of {
					if name != old && replica.Leads() {
						return true
					}
				}
				return false
			})
			f.come(1)
			bound(t, c, f.name(f.made-1))
			t.Logf("%v: the other replica bound its first pod after %.1f s", signal, time.Since(begin).Seconds())
			if signal == syscall.SIGSTOP {
				f.leave(12)
				f.come(12)
				r.of[old].Signal(syscall.SIGCONT)
			}
			r.of[old].Wait()
			f.leave(1)
			f.settle()
			r.start(old)
			r.of[old].Await()
		})
	}
}

// The leader stands still between its choice and its binding, and goes on when another has the lead and has given the GPU to
// somebody else: what it chose then is void.
func TestAStaleLeadersChoiceIsVoid(t *testing.T) {
	t.Parallel()
	c := start(t, "")
	r := startReplicas(t, c)
	_, err := c.Client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 10}, metav1.CreateOptions{})
	check(t, err)
	for name, whole := range map[string]int{"by the device plugin": 1, "by a claim": 0} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			at := fmt.Sprintf("n%d", whole)
			node(t, c, at, whole, nil)
			function := "horus_cluster_adopt" // of Reserve
			if whole == 0 {
				slice(t, c, at, 1)
				function = "horus_placer_appraise" // of Reserve, where the devices were planned
			}
			pod := func(name, class string) {
				spec := podSpec{name: name, whole: whole, change: func(p *v1.Pod) { p.Spec.PriorityClassName = class }}
				if whole == 0 {
					claim(t, c, name, "")
					spec.claim = name
				}
				makePod(t, c, spec)
			}
			gone := func(name string) {
				if whole == 0 {
					end(t, c, name)
				} else {
					check(t, c.Client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
				}
			}
			old := r.leader("")
			trigger := filepath.Join(r.fault, old)
			check(t, os.WriteFile(trigger, []byte(function+" stop"), 0o600))
			pod("late", "")
			r.of[old].AwaitStop()
			check(t, os.Remove(trigger))
			pod("first", "high")
			r.leader(old)
			bound(t, c, "first")
			r.of[old].Signal(syscall.SIGCONT)
			r.of[old].Wait()
			if where := get(t, c, "late").Spec.NodeName; where != "" {
				t.Errorf("the only GPU is another pod's: expected it to wait, found it on %s", where)
			}
			if whole == 0 && device(t, c, "late") != "" {
				t.Errorf("the only GPU is another pod's: expected none, found %s", device(t, c, "late"))
			}
			gone("first")
			bound(t, c, "late")
			gone("late")
			check(t, c.Client.CoreV1().Nodes().Delete(ctx, at, metav1.DeleteOptions{}))
			r.start(old)
			r.of[old].Await()
		})
	}
}
