// SPDX-License-Identifier: Apache-2.0

package horus

/*
#include <horus/horus.h>
*/
import "C"

import "unsafe"

// Observations are what running jobs were seen to take and lose, to be committed to a Predictor or an Interference. One
// call at a time; others wait.
type Observations struct{ handle[*C.horus_observations] }

func freeObservations(p *C.horus_observations) { C.horus_observations_free(p) }

// NewObservations has room for `capacity` pairs of profile and GPU type (0 = 65,536); the longest unseen goes first.
func NewObservations(capacity int) (*Observations, error) {
	if capacity < 0 {
		return nil, invalid("capacity: expected 0 (65,536) or more, found %d", capacity)
	}
	return newObservations(func(out **C.horus_observations, e *C.horus_error) C.horus_status {
		return C.horus_observations_create(C.size_t(capacity), out, e)
	})
}

// RestoreObservations takes the bytes of Snapshot. Errors: ErrCorrupt, ErrVersion.
func RestoreObservations(snapshot []byte) (*Observations, error) {
	return newObservations(func(out **C.horus_observations, e *C.horus_error) C.horus_status {
		return C.horus_observations_restore(unsafe.Pointer(unsafe.SliceData(snapshot)), C.size_t(len(snapshot)), out, e)
	})
}

func newObservations(create func(out **C.horus_observations, e *C.horus_error) C.horus_status) (*Observations, error) {
	var out *C.horus_observations
	err := call(func(_ *arena, e *C.horus_error) C.horus_status { return create(&out, e) })
	if err != nil {
		return nil, err
	}
	o := &Observations{}
	own(&o.handle, out, freeObservations)
	return o, nil
}

// Close frees the observations.
func (o *Observations) Close() error { o.close(freeObservations); return nil }

// Seat is a device that a job of a cluster is on.
type Seat struct {
	Cluster *Cluster
	Job     uint64
	Node    uint64
	Device  uint32
}

// call runs f with the C cluster, nil where there is no seat.
func (s *Seat) call(a *arena, f func(cluster *C.horus_cluster, seat Seat) C.horus_status) (status C.horus_status) {
	if s == nil {
		return f(nil, Seat{})
	}
	if s.Cluster == nil {
		a.err = invalid("Seat.Cluster: expected a cluster, found nil")
		return 0
	}
	a.err = s.Cluster.shared(func(p *C.horus_cluster) error { status = f(p, *s); return nil })
	return status
}

// DemandObservation is what a job was seen to take, alone on its GPU. Values of 0 were not measured.
type DemandObservation struct {
	Seat         *Seat // of a resident: then ProfileID and GPUType are read there, and left unset here; nil = as stated
	ProfileID    uint64
	GPUType      string
	GPUUtilPct   float64 // mean over the steps
	MemBWUtilPct float64
	MemMiB       float64 // peak
	StepTimeUs   float64
}

// AddDemand collects one observation. Errors: ErrInvalidArgument (field, expected, found), ErrNotFound (GPU type; nobody of
// that name has the seat).
func (o *Observations) AddDemand(catalogue *Catalogue, seen DemandObservation) error {
	return o.add(catalogue, func(a *arena, p *C.horus_observations, types *C.horus_catalogue, e *C.horus_error) C.horus_status {
		c := row[C.horus_demand_observation](a)
		c.struct_size, c.profile_id = C.uint32_t(unsafe.Sizeof(*c)), C.uint64_t(seen.ProfileID)
		if seen.Seat == nil {
			c.gpu_type = a.required("GPUType", seen.GPUType)
		} else {
			c.gpu_type = a.text("GPUType", seen.GPUType)
		}
		for _, value := range []struct {
			of   float64
			flag C.uint32_t
		}{
			{seen.GPUUtilPct, C.HORUS_OBSERVED_GPU_UTIL}, {seen.MemBWUtilPct, C.HORUS_OBSERVED_MEM_BW_UTIL},
			{seen.MemMiB, C.HORUS_OBSERVED_MEMORY}, {seen.StepTimeUs, C.HORUS_OBSERVED_STEP_TIME},
		} {
			if value.of != 0 {
				c.measured |= value.flag
			}
		}
		c.gpu_util_pct, c.mem_bw_util_pct = C.double(seen.GPUUtilPct), C.double(seen.MemBWUtilPct)
		c.mem_mib, c.step_time_us = C.double(seen.MemMiB), C.double(seen.StepTimeUs)
		if a.err != nil {
			return 0
		}
		return seen.Seat.call(a, func(cluster *C.horus_cluster, seat Seat) C.horus_status {
			c.cluster, c.job_id, c.node_id, c.device = cluster, C.uint64_t(seat.Job), C.uint64_t(seat.Node), C.uint32_t(seat.Device)
			return C.horus_observations_add_demand(p, types, c, e)
		})
	})
}

func (o *Observations) add(catalogue *Catalogue, f func(a *arena, p *C.horus_observations, types *C.horus_catalogue, e *C.horus_error) C.horus_status) error {
	return catalogue.with(func(types *C.horus_catalogue) error {
		return o.alone(func(p *C.horus_observations) error {
			return call(func(a *arena, e *C.horus_error) C.horus_status { return f(a, p, types, e) })
		})
	})
}

// SlowdownObservation is one tenant of a shared device, seen for a while.
type SlowdownObservation struct {
	Seat           *Seat // of a resident: then Device, Job and CoTenants are read there, and left unset here; nil = as stated
	Device         SharedDevice
	Job            Demand   // on that type; ProfileID not 0
	CoTenants      []Demand // 1 to 15
	Slowdown       float64  // step time shared / step time alone, 0.5 to 1,000
	Predicted      float64  // what the decision said; 0 = unknown
	PredictedUpper float64
	DeviceID       uint64 // the caller's; 0 = none
}

// AddSlowdown collects one observation. Errors: as AddDemand.
func (o *Observations) AddSlowdown(catalogue *Catalogue, seen SlowdownObservation) error {
	return o.add(catalogue, func(a *arena, p *C.horus_observations, types *C.horus_catalogue, e *C.horus_error) C.horus_status {
		c := row[C.horus_slowdown_observation](a)
		c.struct_size, c.sharing_mode = C.uint32_t(unsafe.Sizeof(*c)), C.int32_t(seen.Device.SharingMode)
		c.compute_share = C.double(seen.Device.ComputeShare)
		if seen.Seat == nil {
			c.gpu_type = a.required("Device.GPUType", seen.Device.GPUType)
			c.job = row[C.horus_demand](a)
			seen.Job.put(c.job)
		} else {
			c.gpu_type = a.text("Device.GPUType", seen.Device.GPUType)
		}
		c.co_tenant_count, c.co_tenants = C.size_t(len(seen.CoTenants)), putDemands(a, seen.CoTenants)
		c.slowdown, c.predicted = C.double(seen.Slowdown), C.double(seen.Predicted)
		c.predicted_upper, c.device_id = C.double(seen.PredictedUpper), C.uint64_t(seen.DeviceID)
		if a.err != nil {
			return 0
		}
		return seen.Seat.call(a, func(cluster *C.horus_cluster, seat Seat) C.horus_status {
			c.cluster, c.job_id, c.node_id, c.device = cluster, C.uint64_t(seat.Job), C.uint64_t(seat.Node), C.uint32_t(seat.Device)
			return C.horus_observations_add_slowdown(p, types, c, e)
		})
	})
}

// Calibration says how right predictions were, over the observations that came with one.
type Calibration struct {
	Predictions float64 // that count, up to 1,000
	Error       float64 // mean of |observed / predicted - 1|
	Bias        float64 // mean of observed / predicted - 1
	Bounds      float64 // predictions with a bound that count
	Covered     float64 // share of them at or above what was observed
}

// Calibration of the predictions so far.
func (o *Observations) Calibration() (Calibration, error) {
	var out Calibration
	err := o.alone(func(p *C.horus_observations) error {
		return call(func(a *arena, e *C.horus_error) C.horus_status {
			c := row[C.horus_calibration](a)
			c.struct_size = C.uint32_t(unsafe.Sizeof(*c))
			status := C.horus_observations_get_calibration(p, c, e)
			out = Calibration{
				Predictions: float64(c.predictions), Error: float64(c.error), Bias: float64(c.bias),
				Bounds: float64(c.bounds), Covered: float64(c.covered),
			}
			return status
		})
	})
	return out, err
}

// Snapshot is all that was collected.
func (o *Observations) Snapshot() ([]byte, error) {
	var out []byte
	err := o.alone(func(p *C.horus_observations) (err error) {
		out, err = readBytes(func(capacity C.size_t, bytes unsafe.Pointer, count *C.size_t, e *C.horus_error) C.horus_status {
			return C.horus_observations_snapshot(p, capacity, bytes, count, e)
		})
		return err
	})
	return out, err
}
