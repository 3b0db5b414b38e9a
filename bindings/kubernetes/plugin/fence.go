// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	fwk "k8s.io/kube-scheduler/framework"
)

// A process that stands still for a while, as a suspended machine or a frozen cgroup lets it, may go on when another replica
// leads and has given the GPUs away. It learns of its lost lease within milliseconds, and would have written its choice by
// then. So what was chosen before a standstill, or just after it, is void, and nobody is preempted for it.
const (
	beatEvery = 100 * time.Millisecond
	// The chart's lease leaves 2 s between the end of a leader that cannot renew and the next leader: half of it.
	standstill = time.Second
	// Until the process knows what it missed. It takes milliseconds.
	catchingUp = 250 * time.Millisecond
)

// pulse tells when the process stood still last.
type pulse struct {
	mu    sync.Mutex
	seen  time.Time // running
	stood time.Time // the end of the last standstill; zero = never
}

// beat says that the process runs, and tells the time.
func (p *pulse) beat() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	// By the wall clock too: the monotonic one may stand while a machine is suspended.
	if gap := max(now.Sub(p.seen), now.Round(0).Sub(p.seen.Round(0))); !p.seen.IsZero() && gap > standstill {
		p.stood = now
	}
	p.seen = now
	return now
}

func (p *pulse) run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) { p.beat() }, beatEvery)
}

// void says whether what began at a time was overtaken by a standstill.
func (p *pulse) void(began time.Time) bool {
	p.beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stood.IsZero() && began.Before(p.stood.Add(catchingUp))
}

// running is of this process; both plugins look at it before they write.
var running pulse

var errStoodStill = errors.New("Horus: the process stood still since it chose: the choice is void, and the pod is tried again")

func fenced(state fwk.CycleState) *fwk.Status {
	if c := cycleOf(state); c != nil && running.void(c.began) {
		return fwk.AsStatus(errStoodStill)
	}
	return nil
}

// PreBind writes the devices into the claims.
func (pl draPlugin) PreBind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	if void := fenced(state); void != nil {
		return void
	}
	status := pl.DynamicResources.PreBind(ctx, state, pod, node)
	if !status.IsSuccess() {
		pl.awaitClaims(ctx, pod)
	}
	return status
}
