// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"maps"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"libhorus.org/kubernetes/internal/mirror"
)

// Window is a device that was watched for a while, in which nobody came or went.
type Window struct {
	mirror.Occupied
	Seconds float64
	StepUs  []float64 // mean time of a step of each tenant
	Active  float64   // share of time in which a kernel ran, 0 to 1
	DRAM    float64   // share of the memory bandwidth, 0 to 1; NaN = not told
	MemMiB  float64   // peak of the device; NaN = not told
}

// Shortest says how little makes a window.
type Shortest struct {
	Window time.Duration // and as long passes after somebody came or went, while programs warm up
	Steps  float64       // of each tenant
}

// recorder of windows. Times are of the monotonic clock, so that setting the clock changes nothing.
type recorder struct {
	shortest Shortest
	gap      time.Duration // between two looks; a longer one ends all windows: what happened in it is unknown
	devices  map[string]*recording
}

type recording struct {
	tenants map[types.UID]bool
	settled time.Time // since when the tenants are these, and the time to warm up
	begun   time.Time // zero = not yet
	looked  time.Time
	first   map[types.UID]reading
	last    map[types.UID]reading
	active  float64
	dram    float64
	memMiB  float64
	looks   float64
}

// look takes in what is seen at one time, and returns the windows that end with it.
func (r *recorder) look(now time.Time, devices []mirror.Occupied, seen usages, steps map[types.UID]reading) []Window {
	var out []Window
	known := make(map[string]*recording, len(devices))
	for _, device := range devices {
		uuid := uuidOf(device, seen)
		key := device.Node + " " + uuid
		one := r.devices[key]
		tenants := map[types.UID]bool{}
		for _, tenant := range device.Tenants {
			tenants[tenant.Pod.UID] = true
		}
		if one == nil || !maps.Equal(one.tenants, tenants) {
			one = &recording{tenants: tenants, settled: now.Add(r.shortest.Window)}
		}
		known[key] = one
		if window, ended := one.look(now, r, device, seen.of[uuid], steps); ended {
			out = append(out, window)
		}
	}
	r.devices = known
	return out
}

// uuidOf a device; a GPU of a device plugin is known by the pod that is alone on it, where the exporter names pods.
func uuidOf(device mirror.Occupied, seen usages) string {
	if device.Device.UUID != "" || len(device.Tenants) != 1 || device.Tenants[0].GPUs != 1 {
		return device.Device.UUID
	}
	pod := device.Tenants[0].Pod
	if on := seen.pods[pod.Namespace+"/"+pod.Name]; len(on) == 1 {
		for uuid := range on {
			return uuid
		}
	}
	return ""
}

func (one *recording) look(now time.Time, r *recorder, device mirror.Occupied, told usage, steps map[types.UID]reading) (Window, bool) {
	usable := told.active > 0 && !math.IsNaN(told.active) && now.Sub(one.looked) <= r.gap
	for uid := range one.tenants {
		reading, known := steps[uid]
		last, before := one.last[uid]
		usable = usable && known && (!before || (reading.steps >= last.steps && !(reading.seconds < last.seconds))) // a program that started again
	}
	one.looked = now
	if !usable || one.begun.IsZero() {
		one.begin(now, steps, !now.Before(one.settled))
		return Window{}, false
	}
	one.active, one.dram, one.looks = one.active+told.active, one.dram+told.dram, one.looks+1
	one.memMiB, one.last = math.Max(one.memMiB, told.memMiB), steps
	if now.Sub(one.begun) < r.shortest.Window {
		return Window{}, false
	}
	out := Window{
		Occupied: device, Seconds: now.Sub(one.begun).Seconds(),
		Active: one.active / one.looks, DRAM: one.dram / one.looks, MemMiB: one.memMiB,
	}
	for _, tenant := range device.Tenants {
		from, to := one.first[tenant.Pod.UID], steps[tenant.Pod.UID]
		made := to.steps - from.steps
		if made < r.shortest.Steps {
			return Window{}, false // it goes on until there are enough
		}
		seconds := to.seconds - from.seconds
		if math.IsNaN(seconds) {
			seconds = out.Seconds
		}
		out.StepUs = append(out.StepUs, seconds/made*1e6)
	}
	one.begin(now, steps, true)
	return out, true
}

// begin a window, if it may.
func (one *recording) begin(now time.Time, steps map[types.UID]reading, may bool) {
	one.begun, one.first, one.last = time.Time{}, nil, nil
	one.active, one.dram, one.memMiB, one.looks = 0, 0, 0, 0
	for uid := range one.tenants {
		_, known := steps[uid]
		may = may && known
	}
	if may {
		one.begun, one.first, one.last = now, steps, steps
	}
}
