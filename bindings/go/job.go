// SPDX-License-Identifier: Apache-2.0

package horus

/*
#include <horus/horus.h>
*/
import "C"

import (
	"strconv"
	"unsafe"
)

// JobKind of a job.
type JobKind int32

// Kinds of job.
const (
	TrainingJob   JobKind = C.HORUS_JOB_TRAINING
	InferenceJob  JobKind = C.HORUS_JOB_INFERENCE
	BestEffortJob JobKind = C.HORUS_JOB_BEST_EFFORT
)

// Share says with whose jobs a job shares devices.
type Share int32

// Whose jobs; it holds both ways. 0 is ShareSameTenant.
const (
	ShareSameTenant Share = C.HORUS_SHARE_SAME_TENANT
	ShareAnyone     Share = C.HORUS_SHARE_ANYONE
)

// NoGPUs as GPUsPerTask is a job on the host alone, without demands.
const NoGPUs int32 = C.HORUS_JOB_NO_GPUS

// Label is a node's, or one that a job needs there.
type Label struct{ Key, Value string }

// TypeDemand is what a job asks per GPU of one type; "" = any type, then the only one.
type TypeDemand struct {
	GPUType string
	Demand  Demand
}

// Job is tasks that are placed together, all or nothing, each on GPUsPerTask GPUs of one node. Host resources are per
// task.
type Job struct {
	ID                 uint64
	Kind               JobKind
	Name               string
	Tenant             string      // owner
	Tasks              int32       // 0 = 1
	GPUsPerTask        int32       // 0 = 1; NoGPUs = the host alone
	GPUMilli           int32       // per GPU: 0 = shares as its demand allows; else a hard request of 1-1000 thousandths
	SMCapPct           int32       // most of a GPU's SMs under MPS, 1-99; 0 = no cap
	SharingMode        SharingMode // when adopted where either can be; 0 = MPS with a cap, else TimeSlice
	Exclusive          bool        // alone on its devices
	SpreadTasks        bool        // at most one of its tasks a node
	Share              Share       // with whose jobs; 0 = its own tenant's
	Priority           int32       // higher first
	SlowdownBound      float32     // promised; 0 = the placer's default
	SlowdownConfidence float32     // of the bound, 0.5 to 0.999; 0 = 0.9
	Weight             float32     // of its useful work; 0 = 1
	CPUMilli           int64
	MemMiB             int64
	StorageMBs         int64
	SubmitUs           int64 // the caller's clock
	DeadlineUs         int64 // read by the queue "edf"; 0 = none
	RequestRateHz      float64
	LatencyBoundUs     int64 // of inference: what 99 % of the requests may take; 0 = none
	GPUMemRequestMiB   int64 // guaranteed per GPU; 0 = the demand's upper bound
	GPUMemLimitMiB     int64 // most per GPU; 0 = what it requests
	Demands            []TypeDemand
	Selectors          []Label // node labels that must be present
	Groups             []string
	AvoidGroups        []string // groups that it shares no node with
	Alternatives       []Alternative
	Sensitivity        *Sensitivity // nil = not known
	StatedCPUMilli     int64        // what it asked for, if a synergy policy granted more; 0 = CPUMilli, -1 = nothing
	StatedMemMiB       int64
}

// Sensitivity says how fast a job is with so many cores and so much host memory per GPU, relative to its speed at the
// fair share of a GPU. Both axes ascend.
type Sensitivity struct {
	CPUMilli []int64
	MemMiB   []int64
	Speeds   []float32 // row-major [CPUMilli x MemMiB]; 0 = not measured
	HostUs   float64   // above 0: speeds of the input pipeline alone, which makes a step's input in this time at speed 1
}

func (s *Sensitivity) put(a *arena) *C.horus_sensitivity {
	if s == nil {
		return nil
	}
	if len(s.Speeds) != len(s.CPUMilli)*len(s.MemMiB) {
		if a.err == nil {
			a.err = invalid("Sensitivity.Speeds: expected %d values (cores x memory), found %d",
				len(s.CPUMilli)*len(s.MemMiB), len(s.Speeds))
		}
		return nil
	}
	out := row[C.horus_sensitivity](a)
	out.struct_size = C.uint32_t(unsafe.Sizeof(*out))
	cpu, mem, speeds := rows[C.int64_t](a, len(s.CPUMilli)), rows[C.int64_t](a, len(s.MemMiB)), rows[C.float](a, len(s.Speeds))
	for i, v := range s.CPUMilli {
		cpu[i] = C.int64_t(v)
	}
	for i, v := range s.MemMiB {
		mem[i] = C.int64_t(v)
	}
	for i, v := range s.Speeds {
		speeds[i] = C.float(v)
	}
	out.cpu_count, out.cpu_milli = C.size_t(len(cpu)), unsafe.SliceData(cpu)
	out.mem_count, out.mem_mib = C.size_t(len(mem)), unsafe.SliceData(mem)
	out.speeds, out.host_us = unsafe.SliceData(speeds), C.double(s.HostUs)
	return out
}

// Alternative is one way of running a job, of which the placer picks the one worth most.
type Alternative struct {
	Tasks       int32
	GPUsPerTask int32
	GPUMilli    int32
	Demands     []TypeDemand
	Rate        float64 // progress per second alone on the fastest type, in any unit that all ways share
	CPUMilli    int64   // per task; 0 = what the job states, -1 = none
	MemMiB      int64
	StorageMBs  int64
}

func flag(on bool) C.int32_t {
	if on {
		return 1
	}
	return 0
}

// typeDemands puts demands into columns; the names are nil where a job runs on any type.
func typeDemands(a *arena, given []TypeDemand) (**C.char, **C.horus_demand) {
	demands, pointers := demandRows(a, len(given))
	names := rows[*C.char](a, len(given))
	for i := range given {
		given[i].Demand.put(&demands[i])
		names[i] = a.text("Demands.GPUType", given[i].GPUType)
	}
	return unsafe.SliceData(names), pointers
}

func (a *arena) labels(field string, given []Label) (**C.char, **C.char) {
	keys, values := rows[*C.char](a, len(given)), rows[*C.char](a, len(given))
	for i, label := range given {
		keys[i], values[i] = a.required(field+".Key", label.Key), a.required(field+".Value", label.Value)
	}
	return unsafe.SliceData(keys), unsafe.SliceData(values)
}

func (j *Job) put(a *arena, out *C.horus_job) {
	out.struct_size = C.uint32_t(unsafe.Sizeof(*out))
	out.kind, out.id = C.int32_t(j.Kind), C.uint64_t(j.ID)
	out.name, out.tenant = a.text("Name", j.Name), a.text("Tenant", j.Tenant)
	out.tasks, out.gpus_per_task, out.gpu_milli = C.int32_t(j.Tasks), C.int32_t(j.GPUsPerTask), C.int32_t(j.GPUMilli)
	out.exclusive, out.spread_tasks, out.share = flag(j.Exclusive), flag(j.SpreadTasks), C.int32_t(j.Share)
	out.priority, out.weight = C.int32_t(j.Priority), C.float(j.Weight)
	out.slowdown_bound, out.slowdown_confidence = C.float(j.SlowdownBound), C.float(j.SlowdownConfidence)
	out.cpu_milli, out.mem_mib, out.storage_mb_s = C.int64_t(j.CPUMilli), C.int64_t(j.MemMiB), C.int64_t(j.StorageMBs)
	out.submit_us, out.deadline_us = C.int64_t(j.SubmitUs), C.int64_t(j.DeadlineUs)
	out.request_rate_hz, out.latency_bound_us = C.double(j.RequestRateHz), C.int64_t(j.LatencyBoundUs)
	out.gpu_mem_request_mib, out.gpu_mem_limit_mib = C.int64_t(j.GPUMemRequestMiB), C.int64_t(j.GPUMemLimitMiB)
	out.demand_count = C.size_t(len(j.Demands))
	out.gpu_types, out.demands = typeDemands(a, j.Demands)
	out.selector_count = C.size_t(len(j.Selectors))
	out.selector_keys, out.selector_values = a.labels("Selectors", j.Selectors)
	out.group_count, out.groups = C.size_t(len(j.Groups)), a.texts("Groups", j.Groups)
	out.avoid_count, out.avoid_groups = C.size_t(len(j.AvoidGroups)), a.texts("AvoidGroups", j.AvoidGroups)
	out.alternative_count = C.size_t(len(j.Alternatives))
	out.alternatives = putAlternatives(a, j.Alternatives)
	out.sensitivity = j.Sensitivity.put(a)
	out.sm_cap_pct, out.sharing_mode = C.int32_t(j.SMCapPct), C.int32_t(j.SharingMode)
	out.stated_cpu_milli, out.stated_mem_mib = C.int64_t(j.StatedCPUMilli), C.int64_t(j.StatedMemMiB)
}

// jobOf copies a job of the library.
func jobOf(c *C.horus_job) Job {
	j := Job{
		ID: uint64(c.id), Kind: JobKind(c.kind), Name: C.GoString(c.name), Tenant: C.GoString(c.tenant),
		Tasks: int32(c.tasks), GPUsPerTask: int32(c.gpus_per_task), GPUMilli: int32(c.gpu_milli),
		Exclusive: c.exclusive == 1, SpreadTasks: c.spread_tasks == 1, Share: Share(c.share), Priority: int32(c.priority),
		SlowdownBound: float32(c.slowdown_bound), SlowdownConfidence: float32(c.slowdown_confidence),
		Weight: float32(c.weight), CPUMilli: int64(c.cpu_milli), MemMiB: int64(c.mem_mib), StorageMBs: int64(c.storage_mb_s),
		SubmitUs: int64(c.submit_us), DeadlineUs: int64(c.deadline_us), RequestRateHz: float64(c.request_rate_hz),
		LatencyBoundUs: int64(c.latency_bound_us), GPUMemRequestMiB: int64(c.gpu_mem_request_mib),
		GPUMemLimitMiB: int64(c.gpu_mem_limit_mib), Demands: typeDemandsOf(c.demand_count, c.gpu_types, c.demands),
		Groups: goTexts(c.groups, c.group_count), AvoidGroups: goTexts(c.avoid_groups, c.avoid_count),
		SMCapPct: int32(c.sm_cap_pct), SharingMode: SharingMode(c.sharing_mode), StatedCPUMilli: int64(c.stated_cpu_milli), StatedMemMiB: int64(c.stated_mem_mib),
	}
	values := unsafe.Slice(c.selector_values, c.selector_count)
	for i, key := range unsafe.Slice(c.selector_keys, c.selector_count) {
		j.Selectors = append(j.Selectors, Label{Key: C.GoString(key), Value: C.GoString(values[i])})
	}
	for _, way := range unsafe.Slice(c.alternatives, c.alternative_count) {
		j.Alternatives = append(j.Alternatives, Alternative{
			Tasks: int32(way.tasks), GPUsPerTask: int32(way.gpus_per_task), GPUMilli: int32(way.gpu_milli),
			Demands: typeDemandsOf(way.demand_count, way.gpu_types, way.demands), Rate: float64(way.rate),
			CPUMilli: int64(way.cpu_milli), MemMiB: int64(way.mem_mib), StorageMBs: int64(way.storage_mb_s),
		})
	}
	if s := c.sensitivity; s != nil {
		j.Sensitivity = &Sensitivity{HostUs: float64(s.host_us)}
		for _, v := range unsafe.Slice(s.cpu_milli, s.cpu_count) {
			j.Sensitivity.CPUMilli = append(j.Sensitivity.CPUMilli, int64(v))
		}
		for _, v := range unsafe.Slice(s.mem_mib, s.mem_count) {
			j.Sensitivity.MemMiB = append(j.Sensitivity.MemMiB, int64(v))
		}
		for _, v := range unsafe.Slice(s.speeds, s.cpu_count*s.mem_count) {
			j.Sensitivity.Speeds = append(j.Sensitivity.Speeds, float32(v))
		}
	}
	return j
}

func typeDemandsOf(count C.size_t, types **C.char, demands **C.horus_demand) []TypeDemand {
	var out []TypeDemand
	names := unsafe.Slice(types, count)
	for i, demand := range unsafe.Slice(demands, count) {
		out = append(out, TypeDemand{GPUType: C.GoString(names[i]), Demand: demandOf(demand)})
	}
	return out
}

func goTexts(texts **C.char, count C.size_t) []string {
	var out []string
	for _, text := range unsafe.Slice(texts, count) {
		out = append(out, C.GoString(text))
	}
	return out
}

func putAlternatives(a *arena, given []Alternative) **C.horus_job_alternative {
	ways, pointers := rows[C.horus_job_alternative](a, len(given)), rows[*C.horus_job_alternative](a, len(given))
	for i := range given {
		way, out := &given[i], &ways[i]
		out.struct_size = C.uint32_t(unsafe.Sizeof(*out))
		out.tasks, out.gpus_per_task = C.int32_t(way.Tasks), C.int32_t(way.GPUsPerTask)
		out.gpu_milli, out.rate = C.int32_t(way.GPUMilli), C.double(way.Rate)
		out.demand_count = C.size_t(len(way.Demands))
		out.gpu_types, out.demands = typeDemands(a, way.Demands)
		out.cpu_milli, out.mem_mib = C.int64_t(way.CPUMilli), C.int64_t(way.MemMiB)
		out.storage_mb_s = C.int64_t(way.StorageMBs)
		pointers[i] = out
	}
	return unsafe.SliceData(pointers)
}

// putJobs puts jobs into C memory; a wrong text is named with its job.
func putJobs(a *arena, jobs []Job) **C.horus_job {
	out, pointers := rows[C.horus_job](a, len(jobs)), rows[*C.horus_job](a, len(jobs))
	for i := range jobs {
		had := a.err
		jobs[i].put(a, &out[i])
		if had == nil && a.err != nil {
			a.err = invalid("job %s: %s", strconv.FormatUint(jobs[i].ID, 10), a.err.(*Error).Message)
		}
		pointers[i] = &out[i]
	}
	return unsafe.SliceData(pointers)
}

// putJob puts one job into C memory.
func putJob(a *arena, job *Job) *C.horus_job {
	out := row[C.horus_job](a)
	job.put(a, out)
	return out
}
