// SPDX-License-Identifier: Apache-2.0

package horus

/*
#include <horus/horus.h>
*/
import "C"

import "unsafe"

// Plan is decisions for some jobs, to be applied all or nothing. Immutable.
type Plan struct{ handle[*C.horus_plan] }

func freePlan(p *C.horus_plan) { C.horus_plan_free(p) }

// Close frees the plan.
func (p *Plan) Close() error { p.close(freePlan); return nil }

// Len is the number of decisions, one a job in planning order; 0 of a closed plan.
func (p *Plan) Len() int {
	n := 0
	_ = p.shared(func(plan *C.horus_plan) error {
		info, err := infoOf(plan)
		n = int(info.decisions)
		return err
	})
	return n
}

func infoOf(plan *C.horus_plan) (C.horus_plan_info, error) {
	var info C.horus_plan_info
	err := call(func(a *arena, e *C.horus_error) C.horus_status {
		c := row[C.horus_plan_info](a)
		c.struct_size = C.uint32_t(unsafe.Sizeof(*c))
		status := C.horus_plan_get_info(plan, c, e)
		info = *c
		return status
	})
	return info, err
}

// Miss is the nearest miss of a refusal.
type Miss struct {
	Reason    Reason // ReasonNone = none known
	Node      uint64
	Device    uint32  // WholeNode = the node as a whole
	Needed    float64 // in Unit; for slowdowns the bound
	Available float64 // and what there is; for slowdowns what was predicted
	Estimate  float64 // where the amount is an upper bound: what is expected; else 0
	Unit      string  // such as "MiB"
}

// Decision on one job.
type Decision struct {
	JobID          uint64
	Verdict        Verdict
	Reason         Reason // the constraint that refused most devices; ReasonNone when placed
	Slots          []Slot // empty unless placed
	Slowdown       float32
	SlowdownUpper  float32
	InPlan         float32 // Slowdown once the whole plan is applied: jobs decided later may come beside it
	InPlanUpper    float32
	PassedBy       uint64  // of ReasonPassedOver: the job that took its place; 0 = nobody who can be named
	Cost           float64 // of the place chosen, lower is better
	RunnerUpCost   float64 // of the next best place; NaN when there is none
	Miss           Miss
	Text           string      // one sentence for people
	Probe          bool        // placed alone to be observed
	Trial          bool        // it shares where that pays by expectation, not by the upper bounds
	PredictedNever bool        // Defer, though the empty cluster would refuse it too: by a prediction alone
	Alternative    int         // position of the way to run; -1 = the job states none
	SharingMode    SharingMode // when placed: of its GPUs; 0 = none
	SMCapPct       int         // when placed: most of a GPU's SMs that the job may use there; 0 = no cap
	SMCapSlowdown  float32     // by that cap alone, which Slowdown does not count
	// When placed: device memory per GPU that the job is granted there, and may ever hold; 1 << 32 = no limit is known.
	GPUMemRequestMiB, GPUMemLimitMiB int64
	CPUMilli                         int64 // of each task, when placed: what it states or, of a job with a Sensitivity, what it gets
	MemMiB                           int64
}

// Decision returns decision `index` with its slots. Errors: ErrNotFound.
func (p *Plan) Decision(index int) (Decision, error) {
	var d Decision
	err := p.shared(func(plan *C.horus_plan) error {
		err := call(func(a *arena, e *C.horus_error) C.horus_status {
			c := row[C.horus_decision](a)
			c.struct_size = C.uint32_t(unsafe.Sizeof(*c))
			status := C.horus_plan_get(plan, C.size_t(index), c, e)
			d = decisionOf(c)
			return status
		})
		if err != nil || d.Verdict != Place {
			return err
		}
		d.Slots, err = readSlots(func(out *C.horus_slots, count *C.size_t, e *C.horus_error) C.horus_status {
			return C.horus_plan_slots(plan, C.HORUS_SLOTS_DECISION, C.size_t(index), out, count, e)
		})
		return err
	})
	return d, err
}

func decisionOf(c *C.horus_decision) Decision {
	return Decision{
		JobID: uint64(c.job_id), Verdict: Verdict(c.verdict), Reason: Reason(c.reason),
		Slowdown: float32(c.slowdown), SlowdownUpper: float32(c.slowdown_upper),
		InPlan: float32(c.slowdown_in_plan), InPlanUpper: float32(c.slowdown_in_plan_upper), PassedBy: uint64(c.passed_by),
		Cost: float64(c.cost), RunnerUpCost: float64(c.runner_up_cost), Text: C.GoString(c.text),
		Probe: c.probe == 1, Trial: c.trial == 1, PredictedNever: c.predicted_never == 1, Alternative: int(c.alternative),
		CPUMilli: int64(c.cpu_milli), MemMiB: int64(c.mem_mib), SharingMode: SharingMode(c.sharing_mode),
		SMCapPct: int(c.sm_cap_pct), SMCapSlowdown: float32(c.sm_cap_slowdown),
		GPUMemRequestMiB: int64(c.gpu_mem_request_mib), GPUMemLimitMiB: int64(c.gpu_mem_limit_mib),
		Miss: Miss{
			Reason: Reason(c.miss_reason), Node: uint64(c.miss_node), Device: uint32(c.miss_device),
			Needed: float64(c.miss_needed), Available: float64(c.miss_available), Estimate: float64(c.miss_estimate),
			Unit: C.GoString(c.miss_unit),
		},
	}
}

// Effect is what a decision does to one tenant of a device that it uses, the job itself included.
type Effect struct {
	JobID         uint64
	Node          uint64
	Device        uint32
	Before        float32 // slowdown; 1 for the job itself
	After         float32
	AfterUpper    float32
	CalibratedFor float32 // with which probability at most that bound was seen to hold
}

// Effects of decision `index`. Errors: ErrNotFound.
func (p *Plan) Effects(index int) ([]Effect, error) {
	var out []Effect
	err := p.shared(func(plan *C.horus_plan) error {
		_, err := grown(8, func(capacity int, count *C.size_t) error {
			return call(func(a *arena, e *C.horus_error) C.horus_status {
				c := row[C.horus_effects](a)
				c.struct_size, c.capacity = C.uint32_t(unsafe.Sizeof(*c)), C.size_t(capacity)
				jobs, nodes := rows[C.uint64_t](a, capacity), rows[C.uint64_t](a, capacity)
				devices := rows[C.uint32_t](a, capacity)
				before, after := rows[C.float](a, capacity), rows[C.float](a, capacity)
				upper, calibrated := rows[C.float](a, capacity), rows[C.float](a, capacity)
				c.job_ids, c.node_ids = unsafe.SliceData(jobs), unsafe.SliceData(nodes)
				c.devices = unsafe.SliceData(devices)
				c.slowdown_before, c.slowdown_after = unsafe.SliceData(before), unsafe.SliceData(after)
				c.slowdown_after_upper, c.calibrated_up_to = unsafe.SliceData(upper), unsafe.SliceData(calibrated)
				status := C.horus_plan_effects(plan, C.size_t(index), c, count, e)
				if status != C.HORUS_OK {
					return status
				}
				out = make([]Effect, int(*count))
				for i := range out {
					out[i] = Effect{
						JobID: uint64(jobs[i]), Node: uint64(nodes[i]), Device: uint32(devices[i]),
						Before: float32(before[i]), After: float32(after[i]), AfterUpper: float32(upper[i]),
						CalibratedFor: float32(calibrated[i]),
					}
				}
				return status
			})
		})
		return err
	})
	return out, err
}

// Refusals says how many devices (nodes for a job without GPUs) each constraint refused. Errors: ErrNotFound.
func (p *Plan) Refusals(index int) (map[Reason]uint64, error) {
	out := map[Reason]uint64{}
	err := p.shared(func(plan *C.horus_plan) error {
		_, err := grown(32, func(capacity int, count *C.size_t) error {
			return call(func(a *arena, e *C.horus_error) C.horus_status {
				reasons, counts := rows[C.int32_t](a, capacity), rows[C.uint64_t](a, capacity)
				status := C.horus_plan_refusals(plan, C.size_t(index), C.size_t(capacity), unsafe.SliceData(reasons),
					unsafe.SliceData(counts), count, e)
				for i := 0; status == C.HORUS_OK && i < int(*count); i++ {
					out[Reason(reasons[i])] = uint64(counts[i])
				}
				return status
			})
		})
		return err
	})
	return out, err
}
