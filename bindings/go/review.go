// SPDX-License-Identifier: Apache-2.0

package horus

/*
#include <horus/horus.h>
*/
import "C"

import "unsafe"

// RebalanceOptions of Review and Rebalance. Zero values are the defaults.
type RebalanceOptions struct {
	MaxMigrations uint32  // 0 = 16
	DowntimeS     float64 // that a migration costs the job; 0 = 30, -1 = none
	HorizonS      float64 // over which the gain counts; 0 = 3,600
	MinGain       float64 // beyond the cost, in units of work
	MaxSearches   uint64  // bounds the time; 0 = 10,000
}

func (o RebalanceOptions) c(a *arena) *C.horus_rebalance_options {
	out := row[C.horus_rebalance_options](a)
	out.struct_size, out.max_migrations = C.uint32_t(unsafe.Sizeof(*out)), C.uint32_t(o.MaxMigrations)
	out.downtime_s, out.horizon_s, out.min_gain = C.double(o.DowntimeS), C.double(o.HorizonS), C.double(o.MinGain)
	out.max_searches = C.uint64_t(o.MaxSearches)
	return out
}

// Advice on a job that shares.
type Advice int32

// Advice.
const (
	Stay     Advice = C.HORUS_ADVICE_STAY
	MoveIt   Advice = C.HORUS_ADVICE_MOVE      // the plan moves it
	RunAlone Advice = C.HORUS_ADVICE_RUN_ALONE // no place is better: it, or who is beside it, has to leave
)

// TenantReview is a job that shares, on the device where it is slowest.
type TenantReview struct {
	JobID         uint64
	Node          uint64
	Device        uint32
	Advice        Advice
	Slowdown      float32 // expected
	SlowdownUpper float32
	Held          float64 // the slowdown not exceeded with the job's confidence
	Bound         float64 // its own or the placer's; infinity = none
	Broken        bool    // Held is beyond Bound
	PackWork      float64 // of all who are on that device, 1 = one of them alone; below 1 taking turns does more
	Trial         bool    // by the upper bounds PackWork is below 1
}

// Review looks at the jobs that share, by the placer's model as it is now: to be called after a commit. The plan moves those of
// MoveIt. Errors: ErrInvalidArgument.
func (p *Placer) Review(cluster *Cluster, options RebalanceOptions) (*Plan, error) {
	return p.improve(cluster, func(a *arena, placer *C.horus_placer, c *C.horus_cluster, out **C.horus_plan, e *C.horus_error) C.horus_status {
		return C.horus_placer_review(placer, c, options.c(a), out, e)
	})
}

// Rebalance finds migrations that gain more work than they cost. Errors: ErrInvalidArgument.
func (p *Placer) Rebalance(cluster *Cluster, options RebalanceOptions) (*Plan, error) {
	return p.improve(cluster, func(a *arena, placer *C.horus_placer, c *C.horus_cluster, out **C.horus_plan, e *C.horus_error) C.horus_status {
		return C.horus_placer_rebalance(placer, c, options.c(a), out, e)
	})
}

func (p *Placer) improve(cluster *Cluster, f func(a *arena, p *C.horus_placer, c *C.horus_cluster, out **C.horus_plan, e *C.horus_error) C.horus_status) (*Plan, error) {
	var out *C.horus_plan
	err := p.use(cluster, func(a *arena, placer *C.horus_placer, c *C.horus_cluster, e *C.horus_error) C.horus_status {
		return f(a, placer, c, &out, e)
	})
	if err != nil {
		return nil, err
	}
	plan := &Plan{}
	own(&plan.handle, out, freePlan)
	return plan, nil
}

// Reviews of a plan of Review: broken bounds first, the furthest ahead, then by PackWork.
func (p *Plan) Reviews() ([]TenantReview, error) {
	var out []TenantReview
	err := p.each(func(info *C.horus_plan_info) C.uint64_t { return info.reviews },
		func(plan *C.horus_plan, index C.size_t) error {
			return call(func(a *arena, e *C.horus_error) C.horus_status {
				c := row[C.horus_tenant_review](a)
				c.struct_size = C.uint32_t(unsafe.Sizeof(*c))
				status := C.horus_plan_get_review(plan, index, c, e)
				out = append(out, TenantReview{
					JobID: uint64(c.job_id), Node: uint64(c.node_id), Device: uint32(c.device), Advice: Advice(c.advice),
					Slowdown: float32(c.slowdown), SlowdownUpper: float32(c.slowdown_upper), Held: float64(c.held),
					Bound: float64(c.bound), Broken: c.broken == 1, PackWork: float64(c.pack_work), Trial: c.trial == 1,
				})
				return status
			})
		})
	return out, err
}

// Migration is a resident that a plan moves.
type Migration struct {
	JobID    uint64
	Gain     float64 // work of the cluster by this move, after those before it
	Cost     float64 // its downtime's work, spread over the horizon
	From, To []Slot
}

// Migrations of a plan of Review or Rebalance.
func (p *Plan) Migrations() ([]Migration, error) {
	var out []Migration
	err := p.each(func(info *C.horus_plan_info) C.uint64_t { return info.moves },
		func(plan *C.horus_plan, index C.size_t) error {
			kind, one := C.int32_t(0), Migration{}
			err := call(func(a *arena, e *C.horus_error) C.horus_status {
				c := row[C.horus_move](a)
				c.struct_size = C.uint32_t(unsafe.Sizeof(*c))
				status := C.horus_plan_get_move(plan, index, c, e)
				kind, one.JobID, one.Gain, one.Cost = c.kind, uint64(c.job_id), float64(c.gain), float64(c.cost)
				return status
			})
			if err != nil || kind != C.HORUS_MOVE_MIGRATE {
				return err
			}
			for of, into := range map[C.int32_t]*[]Slot{C.HORUS_SLOTS_MOVE_FROM: &one.From, C.HORUS_SLOTS_MOVE_TO: &one.To} {
				*into, err = readSlots(func(slots *C.horus_slots, count *C.size_t, e *C.horus_error) C.horus_status {
					return C.horus_plan_slots(plan, of, index, slots, count, e)
				})
				if err != nil {
					return err
				}
			}
			out = append(out, one)
			return nil
		})
	return out, err
}

// Resize is a resident that stays, with other CPU and host memory of each task.
type Resize struct {
	JobID                    uint64
	Gain                     float64 // change of the job's speed by its Sensitivity, 1 = speed at its fair share
	CPUMilliBefore, CPUMilli int64
	MemMiBBefore, MemMiB     int64
}

// Resizes of a plan of Place: residents with a Sensitivity whose cores or memory do more work elsewhere.
func (p *Plan) Resizes() ([]Resize, error) {
	var out []Resize
	err := p.each(func(info *C.horus_plan_info) C.uint64_t { return info.moves },
		func(plan *C.horus_plan, index C.size_t) error {
			return call(func(a *arena, e *C.horus_error) C.horus_status {
				c := row[C.horus_move](a)
				c.struct_size = C.uint32_t(unsafe.Sizeof(*c))
				status := C.horus_plan_get_move(plan, index, c, e)
				if status == C.HORUS_OK && c.kind == C.HORUS_MOVE_RESIZE {
					out = append(out, Resize{
						JobID: uint64(c.job_id), Gain: float64(c.gain),
						CPUMilliBefore: int64(c.cpu_milli_before), CPUMilli: int64(c.cpu_milli),
						MemMiBBefore: int64(c.mem_mib_before), MemMiB: int64(c.mem_mib),
					})
				}
				return status
			})
		})
	return out, err
}

// each calls f for the rows that a plan has beside its decisions.
func (p *Plan) each(count func(*C.horus_plan_info) C.uint64_t, f func(plan *C.horus_plan, index C.size_t) error) error {
	return p.shared(func(plan *C.horus_plan) error {
		info, err := infoOf(plan)
		for i, n := C.size_t(0), C.size_t(count(&info)); err == nil && i < n; i++ {
			err = f(plan, i)
		}
		return err
	})
}
