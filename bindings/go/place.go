// SPDX-License-Identifier: Apache-2.0

package horus

/*
#include <horus/horus.h>

extern int32_t horusGoProgress(void* user, double done);

// `user` is a number and no pointer: 0 = nobody is to be asked.
static inline horus_status horus_go_plan(horus_placer* placer, const horus_cluster* cluster, size_t job_count,
                                         horus_job** jobs, size_t node_count, const uint64_t* node_ids, uintptr_t user,
                                         horus_plan** out, horus_error* error) {
  return horus_placer_plan(placer, cluster, job_count, (const horus_job* const*)jobs, node_count, node_ids,
                           user == 0 ? NULL : horusGoProgress, (void*)user, out, error);
}

static inline horus_status horus_go_plan_batch(horus_placer* placer, const horus_cluster* cluster, size_t job_count,
                                               horus_job** jobs, size_t node_count, const uint64_t* node_ids,
                                               const horus_batch_options* options, uintptr_t user, horus_plan** out,
                                               horus_error* error) {
  return horus_placer_plan_batch(placer, cluster, job_count, (const horus_job* const*)jobs, node_count, node_ids, options,
                                 user == 0 ? NULL : horusGoProgress, (void*)user, out, error);
}
*/
import "C"

import (
	"context"
	"runtime/cgo"
	"unsafe"
)

//export horusGoProgress
func horusGoProgress(user unsafe.Pointer, _ C.double) C.int32_t {
	ctx := cgo.Handle(uintptr(user)).Value().(context.Context)
	return flag(ctx.Err() != nil)
}

// HostGrants say what becomes of the cores and host memory of jobs with a Sensitivity.
type HostGrants int32

// Ways to grant cores and host memory, to "horus" and "oracle".
const (
	GrantResize    HostGrants = C.HORUS_HOST_GRANTS_RESIZE    // what does most work, running jobs resized
	GrantPlacement HostGrants = C.HORUS_HOST_GRANTS_PLACEMENT // the same of what is free; nobody is resized
	GrantStated    HostGrants = C.HORUS_HOST_GRANTS_STATED    // what each states
)

// PlacerOptions of NewPlacer. Zero values are the defaults.
type PlacerOptions struct {
	Policy               string        // "" = "horus"; see Policies
	Interference         *Interference // nil = the built-in "horus"
	MaxTenants           int32         // per device that states none, light jobs counting less; 0 = 3
	SlowdownBound        float32       // for jobs without their own; 0 = the policy's default, +Inf = none
	SharingQuota         float32       // share of the cluster's GPUs that may have several tenants; 0 = all, -1 = none
	MemHeadroomMiB       int64         // device memory to keep free; 0 = 500, -1 = none
	MemOvercommit        float64       // limits may sum to this many times the memory; 0 = 1: none
	ProbeOutside         bool          // a job outside what the predictor knows runs alone first
	RackOversubscription float64       // how much less links between racks carry; 0 = 1
	GPUPrice             float64       // of jobs with alternatives; 0 = 0.5, -1 = none
	HostGrants           HostGrants    // cores and host memory of jobs with a Sensitivity
	SMCaps               bool          // whoever starts a job sets Decision.SMCapPct
	MaxJobs              uint64        // of one plan; 0 = 1,048,576
	CacheBytes           uint64        // of what was scored before; 0 = 256 MiB
	MaxCandidates        uint32        // jobs of one GPU: price at most so many devices; 0 = all
	Seed                 uint64
	Terse                bool // decisions that defer do not tell why
}

// Policies are the names of the built-in policies, "horus" first.
func Policies() []string { return namesOf(libraryInfo().policies) }

// Placer places jobs by one policy and one interference model. It serves one call at a time; others wait.
type Placer struct{ handle[*C.horus_placer] }

func freePlacer(p *C.horus_placer) { C.horus_placer_free(p) }

// NewPlacer makes a placer. Errors: ErrNotFound (policy; the names are listed), ErrInvalidArgument.
func NewPlacer(options PlacerOptions) (*Placer, error) {
	var out *C.horus_placer
	err := options.Interference.with(func(model *C.horus_interference) error {
		return call(func(a *arena, e *C.horus_error) C.horus_status {
			o := row[C.horus_placer_options](a)
			o.struct_size = C.uint32_t(unsafe.Sizeof(*o))
			o.policy, o.interference = a.text("Policy", options.Policy), model
			o.max_tenants, o.slowdown_bound = C.int32_t(options.MaxTenants), C.float(options.SlowdownBound)
			o.sharing_quota, o.mem_headroom_mib = C.float(options.SharingQuota), C.int64_t(options.MemHeadroomMiB)
			o.mem_overcommit, o.probe_outside = C.double(options.MemOvercommit), flag(options.ProbeOutside)
			o.rack_oversubscription, o.gpu_price = C.double(options.RackOversubscription), C.double(options.GPUPrice)
			o.host_grants, o.sm_caps = C.int32_t(options.HostGrants), flag(options.SMCaps)
			o.max_jobs, o.cache_bytes = C.uint64_t(options.MaxJobs), C.uint64_t(options.CacheBytes)
			o.max_candidates, o.seed, o.terse = C.uint32_t(options.MaxCandidates), C.uint64_t(options.Seed), flag(options.Terse)
			if a.err != nil {
				return 0
			}
			return C.horus_placer_create(o, &out, e)
		})
	})
	if err != nil {
		return nil, err
	}
	p := &Placer{}
	own(&p.handle, out, freePlacer)
	return p, nil
}

// Close frees the placer; plans made by it stay valid.
func (p *Placer) Close() error { p.close(freePlacer); return nil }

// use runs a call of this placer on a cluster.
func (p *Placer) use(cluster *Cluster, f func(a *arena, p *C.horus_placer, c *C.horus_cluster, e *C.horus_error) C.horus_status) error {
	return p.alone(func(placer *C.horus_placer) error {
		return cluster.read(func(a *arena, c *C.horus_cluster, e *C.horus_error) C.horus_status { return f(a, placer, c, e) })
	})
}

// Plan decides jobs, in the order (priority descending, submission time, id), each seeing those before it. `nodes`: the
// only ones to consider. nil is ALL nodes, an empty slice none: a filter that leaves nothing must not end as nil. A job that does not fit is no error: its decision says Defer or Reject. The context
// ends the call between two jobs and about once a millisecond.
// Errors: ErrInvalidArgument (job and field named), ErrExists (a job id is resident or given twice), ErrNotFound (node,
// GPU type), ErrLimit, ErrCancelled and the context's error.
func (p *Placer) Plan(ctx context.Context, cluster *Cluster, jobs []Job, nodes []uint64) (*Plan, error) {
	return p.plan(ctx, cluster, jobs, func(_ *arena, placer *C.horus_placer, c *C.horus_cluster, rows **C.horus_job, user C.uintptr_t, out **C.horus_plan, e *C.horus_error) C.horus_status {
		return C.horus_go_plan(placer, c, C.size_t(len(jobs)), rows, C.size_t(len(nodes)), (*C.uint64_t)(unsafe.SliceData(nodes)), user, out, e)
	})
}

// BatchOptions of PlanBatch. Zero values are the defaults.
type BatchOptions struct {
	Window         uint32 // of the jobs that fit, in planning order, so many are compared; 0 = 50
	NowUs          int64  // on the clock of Job.SubmitUs
	PatienceUs     int64  // nobody who wants such GPUs passes a job that waits for so long; 0 = no limit
	NoPrices       bool   // jobs are not weighed by what their kind of work is worth while others wait
	MaxEvaluations uint64 // places priced in all: bounds the time of small batches; 0 = 800,000
}

// PlanBatch is Plan for the jobs of a queue, weighed together: where there is not room for all, the job whose place is worth most
// goes next, within a priority. Who fitted and has to wait answers Defer with ReasonPassedOver. Errors: as Plan.
func (p *Placer) PlanBatch(ctx context.Context, cluster *Cluster, jobs []Job, nodes []uint64, options BatchOptions) (*Plan, error) {
	return p.plan(ctx, cluster, jobs, func(a *arena, placer *C.horus_placer, c *C.horus_cluster, rows **C.horus_job, user C.uintptr_t, out **C.horus_plan, e *C.horus_error) C.horus_status {
		o := row[C.horus_batch_options](a)
		o.struct_size = C.uint32_t(unsafe.Sizeof(*o))
		o.window, o.max_evaluations, o.prices = C.uint32_t(options.Window), C.uint64_t(options.MaxEvaluations), -flag(options.NoPrices)
		o.now_us, o.patience_us = C.int64_t(options.NowUs), C.int64_t(options.PatienceUs)
		return C.horus_go_plan_batch(placer, c, C.size_t(len(jobs)), rows, C.size_t(len(nodes)), (*C.uint64_t)(unsafe.SliceData(nodes)), o, user, out, e)
	})
}

func (p *Placer) plan(ctx context.Context, cluster *Cluster, jobs []Job,
	ask func(a *arena, placer *C.horus_placer, c *C.horus_cluster, rows **C.horus_job, user C.uintptr_t, out **C.horus_plan, e *C.horus_error) C.horus_status) (*Plan, error) {
	var out *C.horus_plan
	err := p.use(cluster, func(a *arena, placer *C.horus_placer, c *C.horus_cluster, e *C.horus_error) C.horus_status {
		pointers := putJobs(a, jobs)
		if a.err != nil {
			return 0
		}
		var user cgo.Handle
		if ctx.Done() != nil {
			user = cgo.NewHandle(ctx)
			defer user.Delete()
		}
		return ask(a, placer, c, pointers, C.uintptr_t(user), &out, e)
	})
	if err != nil {
		return nil, ended(ctx, err)
	}
	plan := &Plan{}
	own(&plan.handle, out, freePlan)
	return plan, nil
}

// Verdict on a job: Place, Defer (does not fit now) or Reject (never fits this cluster).
type Verdict int32

// Verdicts.
const (
	Place  Verdict = C.HORUS_VERDICT_PLACE
	Defer  Verdict = C.HORUS_VERDICT_DEFER
	Reject Verdict = C.HORUS_VERDICT_REJECT
)

func (v Verdict) String() string {
	switch v {
	case Place:
		return "place"
	case Defer:
		return "defer"
	case Reject:
		return "reject"
	}
	return "unknown"
}

// Reason why a device or node cannot take a job.
type Reason int32

// Reasons.
const (
	ReasonNone              Reason = C.HORUS_REASON_NONE
	ReasonNodeDown          Reason = C.HORUS_REASON_NODE_DOWN
	ReasonNodeDrained       Reason = C.HORUS_REASON_NODE_DRAINED
	ReasonDeviceDown        Reason = C.HORUS_REASON_DEVICE_DOWN
	ReasonDeviceDrained     Reason = C.HORUS_REASON_DEVICE_DRAINED
	ReasonNotInSubset       Reason = C.HORUS_REASON_NOT_IN_SUBSET
	ReasonGPUType           Reason = C.HORUS_REASON_GPU_TYPE
	ReasonLabel             Reason = C.HORUS_REASON_LABEL
	ReasonCPU               Reason = C.HORUS_REASON_CPU
	ReasonHostMemory        Reason = C.HORUS_REASON_HOST_MEMORY
	ReasonStorageBandwidth  Reason = C.HORUS_REASON_STORAGE_BANDWIDTH
	ReasonGPUMemory         Reason = C.HORUS_REASON_GPU_MEMORY
	ReasonGPUMilli          Reason = C.HORUS_REASON_GPU_MILLI
	ReasonTenantLimit       Reason = C.HORUS_REASON_TENANT_LIMIT
	ReasonExclusive         Reason = C.HORUS_REASON_EXCLUSIVE
	ReasonSharingMode       Reason = C.HORUS_REASON_SHARING_MODE
	ReasonSlowdownOwn       Reason = C.HORUS_REASON_SLOWDOWN_OWN
	ReasonSlowdownNeighbour Reason = C.HORUS_REASON_SLOWDOWN_NEIGHBOUR
	ReasonGang              Reason = C.HORUS_REASON_GANG
	ReasonPolicy            Reason = C.HORUS_REASON_POLICY
	ReasonOwner             Reason = C.HORUS_REASON_OWNER
	ReasonAntiAffinity      Reason = C.HORUS_REASON_ANTI_AFFINITY
	ReasonMemoryUnknown     Reason = C.HORUS_REASON_MEMORY_UNKNOWN
	ReasonSharingQuota      Reason = C.HORUS_REASON_SHARING_QUOTA
	ReasonPassedOver        Reason = C.HORUS_REASON_PASSED_OVER
)

// String is the reason's name, such as "gpu_memory".
func (r Reason) String() string { return C.GoString(C.horus_reason_name(C.int32_t(r))) }

// Text is the reason in one sentence.
func (r Reason) Text() string { return C.GoString(C.horus_reason_text(C.int32_t(r))) }

// NodeVerdicts are columns, a row a node that was asked.
type NodeVerdicts struct {
	Verdicts []Verdict
	Costs    []float64 // lower is better; NaN unless Place
	Reasons  []Reason
}

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Verdicts asks all `nodes` for one job in one call: a scheduler's filter and score steps. A gang is answered for one of
// its tasks; the job may be resident. The columns of `out` are used again. Errors: as Plan.
func (p *Placer) Verdicts(cluster *Cluster, job Job, nodes []uint64, out *NodeVerdicts) error {
	n := len(nodes)
	out.Verdicts, out.Costs, out.Reasons = resized(out.Verdicts, n), resized(out.Costs, n), resized(out.Reasons, n)
	if n == 0 {
		return nil
	}
	return p.use(cluster, func(a *arena, placer *C.horus_placer, c *C.horus_cluster, e *C.horus_error) C.horus_status {
		j := putJob(a, &job)
		if a.err != nil {
			return 0
		}
		return C.horus_placer_verdicts(placer, c, j, C.size_t(n), (*C.uint64_t)(&nodes[0]),
			(*C.int32_t)(&out.Verdicts[0]), (*C.double)(&out.Costs[0]), (*C.int32_t)(&out.Reasons[0]), e)
	})
}

// Appraisal is what a place of a job would do, whoever chose it.
type Appraisal struct {
	Reason        Reason  // the first constraint that the job would break there
	Work          float64 // useful work gained: 1 = one job alone on its fastest GPU
	Slowdown      float32 // predicted for the job
	SlowdownUpper float32
	Tenants       uint32 // of its devices, the job counted once for each
	Shared        uint32 // of its devices: those that have tenants already
	BeyondBound   uint32 // of the tenants: those whose bound the job would break
}

// Appraise tells what a place would do. The job is not resident. Errors: ErrExists, ErrNotFound, ErrInvalidArgument.
func (p *Placer) Appraise(cluster *Cluster, job Job, slots []Slot) (Appraisal, error) {
	var found Appraisal
	err := p.use(cluster, func(a *arena, placer *C.horus_placer, c *C.horus_cluster, e *C.horus_error) C.horus_status {
		j := putJob(a, &job)
		nodes, devices, tasks := slotColumns(a, slots)
		out := row[C.horus_appraisal](a)
		out.struct_size = C.uint32_t(unsafe.Sizeof(*out))
		if a.err != nil {
			return 0
		}
		status := C.horus_placer_appraise(placer, c, j, C.size_t(len(slots)), nodes, devices, tasks, out, e)
		found = Appraisal{
			Reason: Reason(out.reason), Work: float64(out.work), Slowdown: float32(out.slowdown),
			SlowdownUpper: float32(out.slowdown_upper), Tenants: uint32(out.tenants), Shared: uint32(out.shared),
			BeyondBound: uint32(out.beyond_bound),
		}
		return status
	})
	return found, err
}

// Regret of another scheduler's choice.
type Regret struct {
	Theirs Appraisal
	Ours   Appraisal // zero where Verdict is not Place
	// Verdict is this placer's on the job; Text says why in a sentence.
	Verdict Verdict
	Reason  Reason
	Text    string
	Slots   []Slot // where this placer would have put it
	Same    bool   // on the same devices
}

// Work is what this placer's choice would have gained more, in GPUs of useful work; 0 where it would have waited.
func (r Regret) Work() float64 {
	if r.Verdict != Place {
		return 0
	}
	return r.Ours.Work - r.Theirs.Work
}

// Regret compares `theirs`, where another scheduler puts a job that is not resident yet, with what this placer would do.
// `nodes` as of Plan: those where the job may go by constraints that this library does not know.
func (p *Placer) Regret(ctx context.Context, cluster *Cluster, job Job, theirs []Slot, nodes []uint64) (Regret, error) {
	var r Regret
	var err error
	if r.Theirs, err = p.Appraise(cluster, job, theirs); err != nil {
		return r, err
	}
	plan, err := p.Plan(ctx, cluster, []Job{job}, nodes)
	if err != nil {
		return r, err
	}
	defer plan.Close()
	decision, err := plan.Decision(0)
	if err != nil {
		return r, err
	}
	r.Verdict, r.Reason, r.Text, r.Slots = decision.Verdict, decision.Reason, decision.Text, decision.Slots
	if r.Verdict != Place {
		return r, nil
	}
	r.Same = sameDevices(theirs, r.Slots)
	r.Ours, err = p.Appraise(cluster, job, r.Slots)
	return r, err
}

// sameDevices compares places without their tasks.
func sameDevices(a, b []Slot) bool {
	type place struct {
		node   uint64
		device uint32
	}
	count := map[place]int{}
	for _, slot := range a {
		count[place{slot.Node, slot.Device}]++
	}
	for _, slot := range b {
		count[place{slot.Node, slot.Device}]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
