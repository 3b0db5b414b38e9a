// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"context"
	"maps"
	"math"
	"time"

	"libhorus.org/horus"
)

// Device with the jobs on it.
type Device struct {
	Node        string
	ID          string // as Usages know it; "" = it is known by the pod that is alone on it, where the exporter names pods
	GPUType     string
	SharingMode horus.SharingMode
	Tenants     []Tenant // sorted by Key
}

// Tenant is a job on a device.
type Tenant struct {
	Key    string // of this job, among all that run
	Pod    string // namespace/name, as exporters name it; "" = it is none
	Kind   Kind   // Profile "" = nothing can be remembered of it
	Demand horus.Demand
	GPUs   int // that it holds in all
}

// Window is a device that was watched for a while, in which nobody came or went.
type Window struct {
	Device
	Seconds float64
	StepUs  []float64 // mean time of a step of each tenant
	Active  float64   // share of time in which a kernel ran, 0 to 1
	DRAM    float64   // share of the memory bandwidth, 0 to 1; NaN = not told
	MemMiB  float64   // peak of the device; NaN = not told
	Busy    []float64 // share of time in which a kernel of each tenant ran; nil = not told of all
	Running []float64 // requests in the batch of each tenant that is an engine, in the mean; 0 = it is none
}

// Shortest says how little makes a window.
type Shortest struct {
	Window time.Duration // and as long passes after somebody came or went, while programs warm up
	Steps  float64       // of each tenant
}

// Recorder of windows. Times are of the monotonic clock, so that setting the clock changes nothing. Used by one caller at a time.
type Recorder struct {
	Shortest
	Gap time.Duration // between two looks; a longer one ends all windows: what happened in it is unknown

	devices map[string]*recording
}

type recording struct {
	tenants map[string]bool
	settled time.Time // since when the tenants are these, and the time to warm up
	begun   time.Time // zero = not yet
	looked  time.Time
	first   map[string]Reading
	last    map[string]Reading
	active  float64
	dram    float64
	memMiB  float64
	looks   float64
	busy    map[string]float64 // sums by the names of pods
	told    float64            // looks in which they were told of
	running map[string]float64 // sums of Reading.Running, by tenant
}

// Run looks and commits, each in its own time, until the context ends.
func Run(ctx context.Context, every time.Duration, look func(context.Context), each time.Duration, commit func(context.Context)) {
	looks, commits := time.NewTicker(every), time.NewTicker(each)
	defer looks.Stop()
	defer commits.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-looks.C:
			look(ctx)
		case <-commits.C:
			commit(ctx)
		}
	}
}

// Look takes in what is seen at one time, and returns the windows that end with it. Steps are by the tenants' keys.
func (r *Recorder) Look(now time.Time, devices []Device, seen Usages, steps map[string]Reading) []Window {
	var out []Window
	known := make(map[string]*recording, len(devices))
	for _, device := range devices {
		id := idOf(device, seen)
		key := device.Node + " " + id
		one := r.devices[key]
		tenants := map[string]bool{}
		for _, tenant := range device.Tenants {
			tenants[tenant.Key] = true
		}
		if one == nil || !maps.Equal(one.tenants, tenants) {
			one = &recording{tenants: tenants, settled: now.Add(r.Window)}
		}
		known[key] = one
		if window, ended := one.look(now, r, device, seen.of[id], seen.shares[id], steps); ended {
			out = append(out, window)
		}
	}
	r.devices = known
	return out
}

func idOf(device Device, seen Usages) string {
	if device.ID != "" || len(device.Tenants) != 1 || device.Tenants[0].GPUs != 1 {
		return device.ID
	}
	if on := seen.pods[device.Tenants[0].Pod]; len(on) == 1 {
		for id := range on {
			return id
		}
	}
	return ""
}

func (one *recording) look(now time.Time, r *Recorder, device Device, told usage, shares map[string]float64, steps map[string]Reading) (Window, bool) {
	usable := told.active > 0 && !math.IsNaN(told.active) && now.Sub(one.looked) <= r.Gap
	for key := range one.tenants {
		reading, known := steps[key]
		last, before := one.last[key]
		usable = usable && known && (!before || (reading.Steps >= last.Steps && !(reading.Seconds < last.Seconds))) // a program that started again
	}
	one.looked = now
	if !usable || one.begun.IsZero() {
		one.begin(now, steps, !now.Before(one.settled))
		return Window{}, false
	}
	one.active, one.dram, one.looks = one.active+told.active, one.dram+told.dram, one.looks+1
	one.memMiB, one.last = math.Max(one.memMiB, told.memMiB), steps
	if len(shares) > 0 {
		one.told++
	}
	for pod, share := range shares {
		one.busy[pod] += share
	}
	for key := range one.tenants {
		one.running[key] += steps[key].Running
	}
	if now.Sub(one.begun) < r.Window {
		return Window{}, false
	}
	out := Window{
		Device: device, Seconds: now.Sub(one.begun).Seconds(),
		Active: one.active / one.looks, DRAM: one.dram / one.looks, MemMiB: one.memMiB,
	}
	for _, tenant := range device.Tenants {
		from, to := one.first[tenant.Key], steps[tenant.Key]
		made := to.Steps - from.Steps
		if made < r.Shortest.Steps {
			return Window{}, false // it goes on until there are enough
		}
		seconds := to.Seconds - from.Seconds
		if math.IsNaN(seconds) {
			seconds = out.Seconds
		}
		out.StepUs = append(out.StepUs, seconds/made*1e6)
		out.Running = append(out.Running, one.running[tenant.Key]/one.looks)
		if busy := one.busy[tenant.Pod]; one.told == one.looks && busy > 0 {
			out.Busy = append(out.Busy, busy/one.looks)
		}
	}
	if len(out.Busy) < len(out.StepUs) {
		out.Busy = nil
	}
	one.begin(now, steps, true)
	return out, true
}

// begin a window, if it may.
func (one *recording) begin(now time.Time, steps map[string]Reading, may bool) {
	one.begun, one.first, one.last = time.Time{}, nil, nil
	one.active, one.dram, one.memMiB, one.looks, one.told = 0, 0, 0, 0, 0
	one.busy, one.running = map[string]float64{}, map[string]float64{}
	for key := range one.tenants {
		_, known := steps[key]
		may = may && known
	}
	if may {
		one.begun, one.first, one.last = now, steps, steps
	}
}

func (w Window) running(tenant int) float64 {
	if w.Running == nil {
		return 0
	}
	return w.Running[tenant]
}
