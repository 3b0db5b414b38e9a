// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/internal/observe"
	"libhorus.org/kubernetes/test/controlplane"
)

const (
	operator     = "gpu-operator"
	exporterPort = "9400"
	jobPort      = "9401"
)

// play stands in for what no test has: programs on GPUs, and the exporter that watches those. Pods with an address make steps
// as fast as `slowdown` allows, and tell them; each node's exporter tells how busy its GPUs are. Nobody else knows the truth.
type play struct {
	t        *testing.T
	c        *controlplane.Cluster
	slowdown func(kind string, others []string) float64
	alone    map[string]work // of each kind of job, by the name of its profile

	mu     sync.Mutex
	speed  float64                  // seconds of the play in one
	seen   time.Time                // when it was looked at last
	work   [3]float64               // useful work, tenants and time so far, of all GPUs
	pods   map[string]*player       // by name
	lies   map[string]float64       // factor on the time of a step that a pod tells
	silent bool                     // exporters answer nothing
	gone   map[string]bool          // pods that are done, which may be there for a moment longer
	served map[string]func() string // what is said at an address, which one pod may have after another
}

// work of a kind of job, alone.
type work struct {
	util float64       // share of time in which it keeps the GPU busy
	step time.Duration // of its own
}

type player struct {
	kind, node, address string
	gpus                []string
	steps, seconds      float64
	done                float64 // seconds of work, as if it had been alone
	slowed              float64 // now
}

func startPlay(t *testing.T, c *controlplane.Cluster, alone map[string]work, slowdown func(kind string, others []string) float64) *play {
	t.Helper()
	p := &play{t: t, c: c, slowdown: slowdown, alone: alone, pods: map[string]*player{}, lies: map[string]float64{}, gone: map[string]bool{}, served: map[string]func() string{}, speed: 1, seen: time.Now()}
	_, err := c.Client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operator}}, metav1.CreateOptions{})
	check(t, err)
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for tick := time.NewTicker(50 * time.Millisecond); running.Err() == nil; <-tick.C {
			p.see()
		}
	}()
	return p
}

// exporter is a pod on a node that tells the use of its GPUs.
func (p *play) exporter(node string) {
	p.t.Helper()
	_, err := p.c.Client.CoreV1().Pods(operator).Create(ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "dcgm-" + node, Labels: map[string]string{"app": "nvidia-dcgm-exporter"}},
		Spec:       v1.PodSpec{NodeName: node, Containers: []v1.Container{{Name: "c", Image: "none"}}},
	}, metav1.CreateOptions{})
	check(p.t, err)
}

// see who runs where, and let them make steps until now.
func (p *play) see() {
	pods, err := p.c.Client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return
	}
	claims, err := p.c.Client.ResourceV1().ResourceClaims(namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return
	}
	gpus := map[string][]string{}
	for _, claim := range claims.Items {
		if claim.Status.Allocation != nil {
			for _, result := range claim.Status.Allocation.Devices.Results {
				gpus[claim.Name] = append(gpus[claim.Name], "GPU-"+result.Pool+"-"+strings.TrimPrefix(result.Device, "gpu-"))
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(time.Since(p.seen))
	p.seen = time.Now()
	there := map[string]bool{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.PodIP == "" || pod.Status.Phase != v1.PodRunning {
			continue
		}
		if pod.Namespace == operator {
			p.serve(pod.Status.PodIP, exporterPort, func() string { return p.use(pod.Spec.NodeName) })
			continue
		}
		there[pod.Name] = true
		if p.pods[pod.Name] == nil && !p.gone[pod.Name] && p.alone[pod.Annotations[objects.ProfileAnnotation]] != (work{}) {
			one := &player{kind: pod.Annotations[objects.ProfileAnnotation], node: pod.Spec.NodeName, address: pod.Status.PodIP, gpus: gpus[pod.Name], slowed: 1}
			p.pods[pod.Name] = one
			if pod.Annotations[observe.StepsAnnotation] != "" {
				name := pod.Name
				p.serve(one.address, jobPort, func() string { return p.told(name) })
			}
		}
	}
	maps.DeleteFunc(p.pods, func(name string, _ *player) bool { return !there[name] })
	for name, one := range p.pods {
		one.slowed = p.slowdown(one.kind, p.beside(name))
	}
}

// beside whom a pod runs, as kinds.
func (p *play) beside(name string) []string {
	var out []string
	for other, one := range p.pods {
		if other != name && slices.ContainsFunc(one.gpus, func(gpu string) bool { return slices.Contains(p.pods[name].gpus, gpu) }) {
			out = append(out, one.kind)
		}
	}
	slices.Sort(out)
	return out
}

func (p *play) advance(by time.Duration) {
	seconds := by.Seconds() * p.speed
	p.work[2] += seconds
	for _, one := range p.pods {
		if work, known := p.alone[one.kind]; known {
			one.steps += seconds / (work.step.Seconds() * one.slowed)
			one.seconds += seconds
			one.done += seconds / one.slowed
			p.work[0], p.work[1] = p.work[0]+seconds/one.slowed, p.work[1]+seconds
		}
	}
}

// useful work of a GPU since it was asked last, where a job alone is 1, and how many tenants it had.
func (p *play) useful(gpus int) (work, tenants float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	work, tenants = p.work[0]/p.work[2]/float64(gpus), p.work[1]/p.work[2]/float64(gpus)
	p.work = [3]float64{}
	return work, tenants
}

// done are the pods that have made the seconds of work that they have to.
func (p *play) done(lengths map[string]float64) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for name, one := range p.pods {
		if one.done >= lengths[name] {
			out = append(out, name)
			p.gone[name] = true
			delete(p.pods, name)
			delete(lengths, name)
		}
	}
	return out
}

// told is what a job's own exporter says.
func (p *play) told(name string) string {
	one := p.pods[name]
	if one == nil {
		return ""
	}
	lie := p.lies[name]
	if lie == 0 {
		lie = 1
	}
	return fmt.Sprintf("# TYPE horus_job_step_seconds summary\nhorus_job_step_seconds_sum %g\nhorus_job_step_seconds_count %d\n", one.seconds*lie, int(one.steps))
}

// use is what the exporter of a node says.
func (p *play) use(node string) string {
	if p.silent {
		return ""
	}
	busy := map[string]float64{}
	for _, one := range p.pods {
		if one.node == node {
			for _, gpu := range one.gpus {
				busy[gpu] += p.alone[one.kind].util / one.slowed
			}
		}
	}
	text := "# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge\n"
	for gpu, share := range busy {
		text += fmt.Sprintf("DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"0\",UUID=%q,Hostname=%q} %g\n", gpu, node, math.Min(share, 1))
	}
	return text
}

// serve an address.
func (p *play) serve(ip, port string, text func() string) {
	address := net.JoinHostPort(ip, port)
	_, served := p.served[address]
	if p.served[address] = text; served {
		return
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		p.t.Errorf("%s: %v", address, err)
		return
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if answer := p.served[address](); answer != "" {
			fmt.Fprint(w, answer)
		} else {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})}
	go func() { _ = server.Serve(listener) }()
	p.t.Cleanup(func() { _ = server.Close() })
}

// with the play held still.
func (p *play) with(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}
