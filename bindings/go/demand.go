// SPDX-License-Identifier: Apache-2.0

package horus

/*
#include <horus/horus.h>
*/
import "C"

import "unsafe"

// DemandFlags say where a demand comes from.
type DemandFlags uint32

// Flags of a demand.
const (
	Given        DemandFlags = C.HORUS_DEMAND_GIVEN        // stated by the caller
	Measured     DemandFlags = C.HORUS_DEMAND_MEASURED     // rests on observations of this very profile
	Outside      DemandFlags = C.HORUS_DEMAND_OUTSIDE      // the job lies outside what the predictor was trained on
	Uncalibrated DemandFlags = C.HORUS_DEMAND_UNCALIBRATED // the upper bounds hold at no stated coverage
	Predicted    DemandFlags = C.HORUS_DEMAND_PREDICTED    // memory or step time are neither stated nor measured
	TooLarge     DemandFlags = C.HORUS_DEMAND_TOO_LARGE    // what must be kept exceeds the memory of the GPU type
)

// MemMiBUnbounded is Demand.MemMiBUpper where no bound is known: such a job runs alone.
const MemMiBUnbounded = int64(C.HORUS_MEM_MIB_UNBOUNDED)

// Demand is what a job asks of one GPU of one type: estimates and upper bounds. An upper bound of 0 beside a positive
// estimate means "the same".
type Demand struct {
	Flags             DemandFlags
	ProfileID         uint64  // fingerprint of graph and run; 0 = none
	GPUUtilPct        float32 // time in which any kernel runs, alone on the GPU, 0-100
	GPUUtilPctUpper   float32
	MemBWUtilPct      float32 // share of the memory bandwidth, 0-100
	MemBWUtilPctUpper float32
	MemMiB            int64 // peak, context included
	MemMiBUpper       int64 // what placement reserves
	StepTimeUs        int64 // one step alone; 0 = unknown
	StepTimeUsUpper   int64
	GradientMiB       int64 // all-reduced per step by a data-parallel gang
	Traits            [C.HORUS_TRAIT_COUNT]float32
	PowerW            float32 // 0 = unknown
	PowerWUpper       float32
	Distance          float32 // ln of "times beyond what the predictor was trained on"
	OperatorUs        float32 // mean time of an operator, weighted by that time; 0 = unknown
	HostUs            float64 // in which the host makes a step's input; a step is the slower of this and the GPU's
	Duty              float32 // share of the time in which a service has steps to do; 0 = by the request rate, else always
	SlowdownBound     float32 // largest at which a service keeps its promises here; below 1 = not even alone; 0 = none
}

func (d *Demand) put(out *C.horus_demand) {
	out.struct_size = C.uint32_t(unsafe.Sizeof(*out))
	out.flags, out.profile_id = C.uint32_t(d.Flags), C.uint64_t(d.ProfileID)
	out.gpu_util_pct, out.gpu_util_pct_upper = C.float(d.GPUUtilPct), C.float(d.GPUUtilPctUpper)
	out.mem_bw_util_pct, out.mem_bw_util_pct_upper = C.float(d.MemBWUtilPct), C.float(d.MemBWUtilPctUpper)
	out.mem_mib, out.mem_mib_upper = C.int64_t(d.MemMiB), C.int64_t(d.MemMiBUpper)
	out.step_time_us, out.step_time_us_upper = C.int64_t(d.StepTimeUs), C.int64_t(d.StepTimeUsUpper)
	out.gradient_mib = C.int64_t(d.GradientMiB)
	for i, trait := range d.Traits {
		out.traits[i] = C.float(trait)
	}
	out.power_w, out.power_w_upper = C.float(d.PowerW), C.float(d.PowerWUpper)
	out.distance, out.operator_us = C.float(d.Distance), C.float(d.OperatorUs)
	out.host_us = C.double(d.HostUs)
	out.duty, out.slowdown_bound = C.float(d.Duty), C.float(d.SlowdownBound)
}

func demandOf(c *C.horus_demand) Demand {
	d := Demand{
		Flags: DemandFlags(c.flags), ProfileID: uint64(c.profile_id),
		GPUUtilPct: float32(c.gpu_util_pct), GPUUtilPctUpper: float32(c.gpu_util_pct_upper),
		MemBWUtilPct: float32(c.mem_bw_util_pct), MemBWUtilPctUpper: float32(c.mem_bw_util_pct_upper),
		MemMiB: int64(c.mem_mib), MemMiBUpper: int64(c.mem_mib_upper),
		StepTimeUs: int64(c.step_time_us), StepTimeUsUpper: int64(c.step_time_us_upper),
		GradientMiB: int64(c.gradient_mib), PowerW: float32(c.power_w), PowerWUpper: float32(c.power_w_upper),
		Distance: float32(c.distance), OperatorUs: float32(c.operator_us),
		HostUs: float64(c.host_us), Duty: float32(c.duty), SlowdownBound: float32(c.slowdown_bound),
	}
	for i := range d.Traits {
		d.Traits[i] = float32(c.traits[i])
	}
	return d
}

// demandRows are n demands in C memory and the pointers to them that the library takes.
func demandRows(a *arena, n int) ([]C.horus_demand, **C.horus_demand) {
	demands, pointers := rows[C.horus_demand](a, n), rows[*C.horus_demand](a, n)
	for i := range demands {
		demands[i].struct_size = C.uint32_t(unsafe.Sizeof(demands[i]))
		pointers[i] = &demands[i]
	}
	return demands, unsafe.SliceData(pointers)
}

// Predictor predicts demands from graphs. Immutable.
type Predictor struct{ handle[*C.horus_predictor] }

func freePredictor(p *C.horus_predictor) { C.horus_predictor_free(p) }

func newPredictor(create func(out **C.horus_predictor, e *C.horus_error) C.horus_status) (*Predictor, error) {
	var out *C.horus_predictor
	err := call(func(_ *arena, e *C.horus_error) C.horus_status { return create(&out, e) })
	if err != nil {
		return nil, err
	}
	p := &Predictor{}
	own(&p.handle, out, freePredictor)
	return p, nil
}

// NewPredictor is the built-in predictor. Errors: ErrUnsupported (a library without ONNX).
func NewPredictor() (*Predictor, error) {
	return newPredictor(func(out **C.horus_predictor, e *C.horus_error) C.horus_status {
		return C.horus_predictor_default(out, e)
	})
}

// LoadPredictor is a predictor from a trained bundle's bytes, which are not kept.
// Errors: ErrCorrupt, ErrVersion, ErrState (another feature schema: train again), ErrLimit, ErrUnsupported.
func LoadPredictor(bundle []byte) (*Predictor, error) {
	return newPredictor(func(out **C.horus_predictor, e *C.horus_error) C.horus_status {
		return C.horus_predictor_from_bytes(unsafe.Pointer(unsafe.SliceData(bundle)), C.size_t(len(bundle)), out, e)
	})
}

// Close frees the predictor.
func (p *Predictor) Close() error { p.close(freePredictor); return nil }

// Demand predicts what the graph asks of each GPU type, in their order.
// Errors: ErrNotFound (type), ErrInvalidArgument (the run does not fit the graph), ErrUnsupported, ErrLimit.
func (p *Predictor) Demand(catalogue *Catalogue, graph *Graph, run RunSpec, gpuTypes ...string) ([]Demand, error) {
	out := make([]Demand, len(gpuTypes))
	err := catalogue.with(func(types *C.horus_catalogue) error {
		return p.shared(func(predictor *C.horus_predictor) error {
			return graph.shared(func(g *C.horus_graph) error {
				return call(func(a *arena, e *C.horus_error) C.horus_status {
					spec, names := run.c(a), a.texts("gpuTypes", gpuTypes)
					demands, pointers := demandRows(a, len(gpuTypes))
					if a.err != nil {
						return 0
					}
					status := C.horus_predictor_demand(predictor, types, g, spec, C.size_t(len(gpuTypes)), names, pointers, e)
					for i := range demands {
						out[i] = demandOf(&demands[i])
					}
					return status
				})
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Solution is the largest batch on one GPU type.
type Solution struct {
	Largest     int64       // samples per GPU and step; 0 = not even the least that the graph takes fits
	MemMiBUpper int64       // bound of memory there; 0 where Largest is 0
	Flags       DemandFlags // of the predictions made
}

// LargestBatch is the largest batch whose bound of memory fits each GPU type alone, in their order. run.Batch must be 0, and all
// other dimensions of the inputs bound. Errors: as of Demand; ErrState (the graph is understood too little to bound its memory).
func (p *Predictor) LargestBatch(catalogue *Catalogue, graph *Graph, run RunSpec, gpuTypes ...string) ([]Solution, error) {
	out := make([]Solution, len(gpuTypes))
	err := catalogue.with(func(types *C.horus_catalogue) error {
		return p.shared(func(predictor *C.horus_predictor) error {
			return graph.shared(func(g *C.horus_graph) error {
				return call(func(a *arena, e *C.horus_error) C.horus_status {
					spec, names := run.c(a), a.texts("gpuTypes", gpuTypes)
					solutions, pointers := rows[C.horus_solution](a, len(gpuTypes)), rows[*C.horus_solution](a, len(gpuTypes))
					for i := range solutions {
						solutions[i].struct_size = C.uint32_t(unsafe.Sizeof(solutions[i]))
						pointers[i] = &solutions[i]
					}
					if a.err != nil {
						return 0
					}
					status := C.horus_predictor_solve(predictor, types, g, spec, nil, C.size_t(len(gpuTypes)), names, nil, nil,
						unsafe.SliceData(pointers), e)
					for i := range solutions {
						out[i] = Solution{int64(solutions[i].largest), int64(solutions[i].mem_mib_upper), DemandFlags(solutions[i].flags)}
					}
					return status
				})
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ServiceRun is what was measured of a service on a GPU type: means, with so many users at once. A time of 0 was not measured.
type ServiceRun struct {
	GPUType               string
	Concurrency           float64
	FirstTokenUs, TokenUs float64
}

// ServiceLoad is what is asked of a language model that an engine serves. Either RequestsPerS or Concurrency is above 0.
type ServiceLoad struct {
	RequestsPerS        float64      // of independent users
	Concurrency         float64      // users who ask again as soon as they are answered
	TokensIn, TokensOut float64      // of a prompt and of an answer, mean; none of a model that answers in one step
	Longest             float64      // tokens of the longest request, both together; 0 = four times the mean
	FirstTokenUs        int64        // promised time to the first token, or to the answer; 0 = none
	TokenUs             int64        // promised time of each further token; 0 = none
	Confidence          float32      // share of the requests that must keep them; 0 = 0.9
	Measured            []ServiceRun // correct the times on their GPU type
}

// Verdict of a service on a GPU type.
type ServiceVerdict int32

const (
	Served     ServiceVerdict = C.HORUS_SERVICE_SERVED
	NoRoom     ServiceVerdict = C.HORUS_SERVICE_NO_ROOM
	Overloaded ServiceVerdict = C.HORUS_SERVICE_OVERLOADED
	Late       ServiceVerdict = C.HORUS_SERVICE_LATE
	// The engine does not run on the GPU type, or not in the model's numbers.
	Unsupported ServiceVerdict = C.HORUS_SERVICE_UNSUPPORTED
)

// Service is a language model under a load, on one GPU of those that share it.
type Service struct {
	Verdict                         ServiceVerdict
	CacheTokens                     float64
	Running, MostRunning            float64 // requests at once: mean, and the most that the engine should admit
	FirstTokenUs, FirstTokenUsUpper float64
	TokenUs, TokenUsUpper           float64
	RequestsPerS, MostRequestsPerS  float64
	LargestSlowdown                 float64
	EngineArguments                 string // that tell the engine to take no more; empty where it is not served
	Demand                          Demand // what to place
}

// Serve predicts how an engine serves the load on each GPU type, in their order. run leaves batch, seq and past open.
// Errors: as of Demand.
func (p *Predictor) Serve(catalogue *Catalogue, graph *Graph, run RunSpec, load ServiceLoad, gpuTypes ...string) ([]Service, error) {
	out := make([]Service, len(gpuTypes))
	err := catalogue.with(func(types *C.horus_catalogue) error {
		return p.shared(func(predictor *C.horus_predictor) error {
			return graph.shared(func(g *C.horus_graph) error {
				return call(func(a *arena, e *C.horus_error) C.horus_status {
					spec, names, asked := run.c(a), a.texts("gpuTypes", gpuTypes), rows[C.horus_service_load](a, 1)
					services, pointers := rows[C.horus_service](a, len(gpuTypes)), rows[*C.horus_service](a, len(gpuTypes))
					demands, demandPointers := demandRows(a, len(gpuTypes))
					runs, measured := rows[C.horus_service_run](a, len(load.Measured)), rows[*C.horus_service_run](a, len(load.Measured))
					for i, run := range load.Measured {
						runs[i] = C.horus_service_run{
							struct_size: C.uint32_t(unsafe.Sizeof(runs[i])), gpu_type: a.text("GPUType", run.GPUType),
							concurrency: C.double(run.Concurrency), first_token_us: C.double(run.FirstTokenUs), token_us: C.double(run.TokenUs),
						}
						measured[i] = &runs[i]
					}
					if a.err != nil {
						return 0
					}
					asked[0] = C.horus_service_load{
						measured_count: C.size_t(len(measured)), measured: unsafe.SliceData(measured),
						struct_size: C.uint32_t(unsafe.Sizeof(asked[0])), confidence: C.float(load.Confidence),
						requests_per_s: C.double(load.RequestsPerS), concurrency: C.double(load.Concurrency),
						tokens_in: C.double(load.TokensIn), tokens_out: C.double(load.TokensOut), longest: C.double(load.Longest),
						first_token_us: C.int64_t(load.FirstTokenUs), token_us: C.int64_t(load.TokenUs),
					}
					for i := range services {
						services[i].struct_size = C.uint32_t(unsafe.Sizeof(services[i]))
						pointers[i] = &services[i]
					}
					status := C.horus_predictor_service(predictor, types, g, spec, &asked[0], C.size_t(len(gpuTypes)), names,
						unsafe.SliceData(pointers), demandPointers, e)
					for i := range services {
						s := &services[i]
						out[i] = Service{
							Verdict: ServiceVerdict(s.verdict), CacheTokens: float64(s.cache_tokens),
							Running: float64(s.running), MostRunning: float64(s.most_running),
							FirstTokenUs: float64(s.first_token_us), FirstTokenUsUpper: float64(s.first_token_us_upper),
							TokenUs: float64(s.token_us), TokenUsUpper: float64(s.token_us_upper),
							RequestsPerS: float64(s.requests_per_s), MostRequestsPerS: float64(s.most_requests_per_s),
							LargestSlowdown: float64(s.largest_slowdown), EngineArguments: C.GoString(&s.engine_arguments[0]),
							Demand: demandOf(&demands[i]),
						}
					}
					return status
				})
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Commit makes a predictor that answers with what was measured where it was. p stays as it is.
func (p *Predictor) Commit(observations *Observations) (*Predictor, error) {
	var made *Predictor
	err := p.shared(func(predictor *C.horus_predictor) error {
		return observations.alone(func(o *C.horus_observations) (err error) {
			made, err = newPredictor(func(out **C.horus_predictor, e *C.horus_error) C.horus_status {
				return C.horus_predictor_commit(predictor, o, out, e)
			})
			return err
		})
	})
	return made, err
}
