// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"libhorus.org/slurm/internal/words"
	"libhorus.org/slurm/test/cluster"
)

// play is what a GPU and the jobs on it would tell: null devices do no work. Jobs make their steps while the controller says
// that they run.
type play struct {
	mu     sync.Mutex
	jobs   map[uint64]*played
	harm   float64 // slowdown of each beside another
	active float64 // share of the time in which the GPU is busy now
}

type played struct {
	util, stepS    float64 // alone
	steps, seconds float64 // since it began
	runs           bool
}

// startPlay serves the GPU's exporter, and returns its port.
func startPlay(t *testing.T, c *cluster.Cluster, harm float64) (*play, string) {
	p := &play{jobs: map[uint64]*played{}, harm: harm}
	port := p.serve(t, "127.0.0.1:0", func() string {
		return fmt.Sprintf("# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge\nDCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"0\",UUID=\"GPU-1\"} %g\n", p.active)
	})
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Add(1)
	t.Cleanup(func() { close(stop); done.Wait() }) // before the cluster goes: its cleanup was registered first
	go func() {
		defer done.Done()
		last := time.Now()
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			out, err := c.Slurm("squeue", "-h", "-t", "R", "-o", "%i")
			if err != nil {
				continue
			}
			p.step(strings.Fields(out), time.Since(last).Seconds())
			last = time.Now()
		}
	}()
	return p, port
}

// step lets those that ran do their steps, and takes in who runs now.
func (p *play) step(running []string, seconds float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	on, slowdown := 0, 1.0
	for _, job := range p.jobs {
		if job.runs {
			on++
		}
	}
	if on > 1 {
		slowdown = p.harm
	}
	p.active = 0
	for _, job := range p.jobs {
		if job.runs {
			job.steps += seconds / job.stepS / slowdown
			job.seconds += seconds
			p.active += job.util / slowdown
		}
		job.runs = false
	}
	for _, id := range running {
		var number uint64
		_, _ = fmt.Sscan(id, &number)
		if job := p.jobs[number]; job != nil {
			job.runs = true
		}
	}
}

func (p *play) serve(t *testing.T, address string, text func() string) (port string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		fmt.Fprint(w, text())
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port
}

// submit a job of a kind that tells its steps where horus.steps would.
func (p *play) submit(t *testing.T, c *cluster.Cluster, kind string, util, stepMs float64, more ...string) uint64 {
	t.Helper()
	comment := fmt.Sprintf("horus:profile=%s,gpu_util_pct=%g,gpu_memory_gib=4,step_time_ms=%g,steps=horus,slowdown_bound=3,wait=60", kind, 100*util, stepMs)
	id := c.Submit("120", shared(comment, more...)...)
	job := &played{util: util, stepS: stepMs / 1000}
	p.mu.Lock()
	p.jobs[id] = job
	p.mu.Unlock()
	p.serve(t, fmt.Sprintf("127.0.0.1:%d", words.Steps{Port: words.OwnPort}.For(id).Port), func() string {
		return fmt.Sprintf("# TYPE horus_job_step_seconds summary\nhorus_job_step_seconds_sum %g\nhorus_job_step_seconds_count %g\n", job.seconds, float64(int(job.steps)))
	})
	return id
}

// Two kinds of jobs slow each other five times, which no model expects of them. Once that was seen they share no longer, by a
// daemon that was started anew too.
func TestJobsThatHarmEachOtherAreSeenAndKeptApart(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	p, port := startPlay(t, c, 5)
	// A window is longer than squeue takes on a busy machine: until then the exporter tells the GPU's use of who ran before.
	options := []string{"--exporter", port + "/%n", "--learned", c.Dir + "/learned", "--every", "200ms", "--window", "3s", "--steps", "5", "--commit", "2s"}
	d := c.StartDaemon(options...)
	told := func(what string, times int) {
		t.Helper()
		c.Wait(fmt.Sprintf("%d windows are %s", times, what), time.Minute, func() bool {
			return strings.Count(c.Read("horus-slurm.out"), "outcome="+what) >= times
		})
	}
	train := p.submit(t, c, "train", 0.6, 20)
	running(c, train)
	told("alone", 3)
	_, _ = c.Slurm("scancel", fmt.Sprint(train))
	serve := p.submit(t, c, "serve", 0.5, 10)
	running(c, serve)
	told("alone", 6)
	train = p.submit(t, c, "train", 0.6, 20)
	if jobs := running(c, serve, train); on(t, jobs[0])[0] != on(t, jobs[1])[0] {
		t.Fatal("expected that they share, as nothing was learned yet")
	}
	told("learned", 5)
	c.Wait("a model is made of it", time.Minute, func() bool { return strings.Count(c.Read("horus-slurm.out"), "INFO model") >= 2 })
	for range 2 {
		_, _ = c.Slurm("scancel", fmt.Sprint(train))
		train = p.submit(t, c, "train", 0.6, 20)
		c.Wait("it waits for a GPU of its own", time.Minute, func() bool { return record(c.Job(train)).Verb == words.Waits })
		if text := record(c.Job(train)).Text; !strings.Contains(text, "slow") {
			t.Errorf("expected that it is deferred for the slowdown that was seen, found %q", text)
		}
		d.Kill()
		d = c.StartDaemon(options...)
	}
}
