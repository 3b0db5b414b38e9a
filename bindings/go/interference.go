// SPDX-License-Identifier: Apache-2.0

package horus

/*
#include <horus/horus.h>
*/
import "C"

import "unsafe"

// Interference predicts how much each tenant of one device slows down. Immutable.
type Interference struct{ handle[*C.horus_interference] }

func freeInterference(p *C.horus_interference) { C.horus_interference_free(p) }

func newInterference(create func(a *arena, out **C.horus_interference, e *C.horus_error) C.horus_status) (*Interference, error) {
	var out *C.horus_interference
	err := call(func(a *arena, e *C.horus_error) C.horus_status { return create(a, &out, e) })
	if err != nil {
		return nil, err
	}
	m := &Interference{}
	own(&m.handle, out, freeInterference)
	return m, nil
}

// with runs f with the C model; nil stands for the placer's default.
func (m *Interference) with(f func(*C.horus_interference) error) error {
	if m == nil {
		return f(nil)
	}
	return m.shared(f)
}

// NewInterference is the built-in model called `name`; "" = "horus". Errors: ErrNotFound (lists the names).
func NewInterference(name string) (*Interference, error) {
	return newInterference(func(a *arena, out **C.horus_interference, e *C.horus_error) C.horus_status {
		n := a.text("name", name)
		if a.err != nil {
			return 0
		}
		return C.horus_interference_create(n, out, e)
	})
}

// LoadInterference is the model "horus" of a trained bundle's bytes. Errors: ErrCorrupt, ErrVersion, ErrState, ErrLimit.
func LoadInterference(catalogue *Catalogue, bundle []byte) (*Interference, error) {
	var made *Interference
	err := catalogue.with(func(types *C.horus_catalogue) (err error) {
		made, err = newInterference(func(_ *arena, out **C.horus_interference, e *C.horus_error) C.horus_status {
			return C.horus_interference_from_bytes(types, unsafe.Pointer(unsafe.SliceData(bundle)), C.size_t(len(bundle)), nil, out, e)
		})
		return err
	})
	return made, err
}

// MeasuredPair is one pair of jobs, known by the profile ids of their demands, on one device.
type MeasuredPair struct {
	GPUType              string
	SharingMode          SharingMode // 0 = TimeSlice
	ProfileA, ProfileB   uint64      // equal for two copies of a job
	SlowdownA, SlowdownB float64     // 0.5 to 1,000; NaN = not measured
}

// NewMeasuredInterference answers with what was measured, and with `fallback` (nil = "horus") elsewhere. `noise`: a bound
// is so much above what was measured; 0 = 0.05. Errors: ErrInvalidArgument (row, column), ErrNotFound (type), ErrLimit.
func NewMeasuredInterference(catalogue *Catalogue, pairs []MeasuredPair, noise float64, fallback *Interference) (*Interference, error) {
	var made *Interference
	err := catalogue.with(func(types *C.horus_catalogue) error {
		return fallback.with(func(beneath *C.horus_interference) (err error) {
			made, err = newInterference(func(a *arena, out **C.horus_interference, e *C.horus_error) C.horus_status {
				n := len(pairs)
				names, modes := rows[*C.char](a, n), rows[C.int32_t](a, n)
				first, second := rows[C.uint64_t](a, n), rows[C.uint64_t](a, n)
				slow1, slow2 := rows[C.double](a, n), rows[C.double](a, n)
				for i, pair := range pairs {
					names[i], modes[i] = a.required("GPUType", pair.GPUType), C.int32_t(pair.SharingMode)
					if pair.SharingMode == 0 {
						modes[i] = C.HORUS_SHARING_TIME_SLICE
					}
					first[i], second[i] = C.uint64_t(pair.ProfileA), C.uint64_t(pair.ProfileB)
					slow1[i], slow2[i] = C.double(pair.SlowdownA), C.double(pair.SlowdownB)
				}
				table := row[C.horus_pair_table](a)
				table.struct_size, table.count = C.uint32_t(unsafe.Sizeof(*table)), C.size_t(n)
				table.gpu_types, table.sharing_modes = unsafe.SliceData(names), unsafe.SliceData(modes)
				table.profiles_a, table.profiles_b = unsafe.SliceData(first), unsafe.SliceData(second)
				table.slowdown_a, table.slowdown_b = unsafe.SliceData(slow1), unsafe.SliceData(slow2)
				table.noise = C.double(noise)
				if a.err != nil {
					return 0
				}
				return C.horus_interference_from_table(types, table, beneath, out, e)
			})
			return err
		})
	})
	return made, err
}

// Close frees the model; placers keep what they need of it.
func (m *Interference) Close() error { m.close(freeInterference); return nil }

// Epoch differs between models that answer differently; 0 of a closed model.
func (m *Interference) Epoch() uint64 {
	var epoch uint64
	_ = m.shared(func(p *C.horus_interference) error {
		return call(func(a *arena, e *C.horus_error) C.horus_status {
			out := row[C.horus_interference_info](a)
			out.struct_size = C.uint32_t(unsafe.Sizeof(*out))
			status := C.horus_interference_get_info(p, out, e)
			epoch = uint64(out.epoch)
			return status
		})
	})
	return epoch
}

// SharedDevice is a device as an interference model sees it.
type SharedDevice struct {
	GPUType      string
	SharingMode  SharingMode // 0 = TimeSlice
	ComputeShare float64     // of a MIG instance, up to 1; 0 = 1, the whole GPU
}

func (d SharedDevice) c(a *arena) *C.horus_device {
	out := row[C.horus_device](a)
	out.struct_size = C.uint32_t(unsafe.Sizeof(*out))
	out.gpu_type, out.sharing_mode = a.required("GPUType", d.GPUType), C.int32_t(d.SharingMode)
	out.compute_share = C.double(d.ComputeShare)
	return out
}

// Slowdown of one tenant.
type Slowdown struct{ Expected, Upper float32 }

// Slowdowns of the tenants of a device: expected, and not exceeded with a probability of 0.9.
// Errors: ErrNotFound (type), ErrInvalidArgument.
func (m *Interference) Slowdowns(catalogue *Catalogue, device SharedDevice, tenants []Demand) ([]Slowdown, error) {
	out := make([]Slowdown, len(tenants))
	err := catalogue.with(func(types *C.horus_catalogue) error {
		return m.shared(func(model *C.horus_interference) error {
			return call(func(a *arena, e *C.horus_error) C.horus_status {
				pointers := putDemands(a, tenants)
				expected, upper := rows[C.float](a, len(tenants)), rows[C.float](a, len(tenants))
				d := device.c(a)
				if a.err != nil {
					return 0
				}
				columns := row[C.horus_slowdowns](a)
				columns.struct_size = C.uint32_t(unsafe.Sizeof(*columns))
				columns.slowdown, columns.slowdown_upper = unsafe.SliceData(expected), unsafe.SliceData(upper)
				status := C.horus_interference_slowdown(model, types, d, C.size_t(len(tenants)), pointers, 0, columns, e)
				for i := range out {
					out[i] = Slowdown{Expected: float32(expected[i]), Upper: float32(upper[i])}
				}
				return status
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// putDemands puts demands into C memory.
func putDemands(a *arena, given []Demand) **C.horus_demand {
	demands, pointers := demandRows(a, len(given))
	for i := range given {
		given[i].put(&demands[i])
	}
	return pointers
}

// Commit makes a model that m (which stays) becomes by what was observed; observations count once.
func (m *Interference) Commit(catalogue *Catalogue, observations *Observations) (*Interference, error) {
	var made *Interference
	err := catalogue.with(func(types *C.horus_catalogue) error {
		return m.shared(func(model *C.horus_interference) error {
			return observations.alone(func(o *C.horus_observations) (err error) {
				made, err = newInterference(func(_ *arena, out **C.horus_interference, e *C.horus_error) C.horus_status {
					return C.horus_interference_commit(model, types, o, nil, nil, out, e)
				})
				return err
			})
		})
	})
	return made, err
}

// Bytes is the bundle of a trained model, for LoadInterference. Errors: ErrUnsupported (a model of another origin).
func (m *Interference) Bytes() ([]byte, error) {
	var out []byte
	err := m.shared(func(p *C.horus_interference) (err error) {
		out, err = readBytes(func(capacity C.size_t, bytes unsafe.Pointer, count *C.size_t, e *C.horus_error) C.horus_status {
			return C.horus_interference_to_bytes(p, capacity, bytes, count, e)
		})
		return err
	})
	return out, err
}
