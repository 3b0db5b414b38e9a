// SPDX-License-Identifier: Apache-2.0
// JobSpec: what a scheduler asks the placer to place, and its validation.
//
// Enters:  the caller's request and its demand per GPU type (predicted, measured or stated).
// Leaves:  a plain value; ValidateJob says field, expected and found.
// Units:   thousandths of a GPU and of a core, MiB, MB/s, microseconds, Hz; host resources are per task.
// Cost:    about 320 bytes plus 128 per demand.
#pragma once

#include <string_view>
#include <tuple>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "device/gpu_type.h"
#include "place/job/sensitivity.h"
#include "predict/demand.h"

namespace horus {

// The caller's own 64-bit ids; every value is legal, 0 included.
using JobId = uint64_t;
using NodeId = uint64_t;

// The values cross the C boundary and lie in snapshots: never renumber.
enum class JobKind : uint8_t { kTraining = 0, kInference = 1, kBestEffort = 2 };

// With whose jobs a job shares devices. The values cross the C boundary and lie in snapshots: never renumber.
enum class ShareWith : uint8_t { kSameTenant = 1, kAnyone = 2 };

// Per GPU of the job. An invalid type means "any type" and is then the only entry.
struct TypeDemand {
  GpuTypeId type;
  Demand demand;
  friend bool operator==(const TypeDemand&, const TypeDemand&) = default;
};

// One way of running the job, of which the placer picks one (WayOf).
struct JobAlternative {
  static constexpr int64_t kAsTheJob = -1;
  int32_t tasks = 1;
  int32_t gpus_per_task = 1;  // at least 1
  int32_t gpu_milli = 0;
  int64_t cpu_milli = kAsTheJob;  // per task, as the next two
  int64_t mem_mib = kAsTheJob;
  int64_t storage_mb_s = kAsTheJob;
  double rate = 0;                  // above 0: progress per second alone on the fastest type that it lists, in any unit
                                    // that all ways of the job share
  std::vector<TypeDemand> demands;  // ascending type, unique
  friend bool operator==(const JobAlternative&, const JobAlternative&) = default;
};

struct JobSpec {
  JobId id = 0;
  std::string name;    // optional
  std::string tenant;  // optional: who owns it; those that state none count as one
  JobKind kind = JobKind::kTraining;
  int32_t tasks = 1;          // a gang: all tasks are placed, or none
  int32_t gpus_per_task = 1;  // on one node; 0 = a job for the host alone: no device, no demands
  int32_t gpu_milli = 0;      // 0 = shares as its demand allows; 1-1000 = a hard request per device, below
                              // 1000 only with gpus_per_task == 1; requests never exceed a device
  bool exclusive = false;     // alone on its devices
  ShareWith share = ShareWith::kSameTenant;  // two share where both allow it
  int64_t gpu_mem_request_mib = 0;  // device memory per GPU that is guaranteed; 0 = the demand's upper bound, at most
                                    // the limit; its estimate where there is none (RunsAloneForMemory)
  int64_t gpu_mem_limit_mib = 0;    // most device memory per GPU that it may ever hold; 0 = what it requests
  int32_t sm_cap_pct = 0;           // most of a GPU's SMs that it may use, 1-99 %: such a job runs under MPS alone; 0 =
                                    // no cap, or one that the placer chooses (PlacerOptions::sm_caps)
  int64_t cpu_milli = 0;            // per task
  int64_t mem_mib = 0;              // host memory per task
  int64_t storage_mb_s = 0;         // per task
  // Per task: what was asked for where a synergy-* plan gave more, so that what the job holds, above, can be cut back
  // to it; at most that. kAsHeld = nothing else was asked for.
  static constexpr int64_t kAsHeld = -1;
  int64_t stated_cpu_milli = kAsHeld;
  int64_t stated_mem_mib = kAsHeld;
  SharedSensitivity sensitivity;    // optional: speed by cores and host memory per GPU
  float slowdown_bound = 0;         // >= 1; 0 = the placer's default
  float slowdown_confidence = 0;    // with which probability the bound, or that of the latency, holds: 0.5 to 0.999;
                                    // 0 = that of the model's upper bounds (0.9)
  int32_t priority = 0;             // higher first
  float weight = 1;                 // what a unit of its work counts beside those of other jobs (engine.h); above 0
  int64_t submit_us = 0;            // the caller's clock
  int64_t deadline_us = 0;          // 0 = none; of the queue `edf`, no placement reads it
  double request_rate_hz = 0;       // inference: requests that come, one a step; 0 = unknown: always at work, and
                                    // requests never meet
  int64_t latency_bound_us = 0;     // inference: most that 99 % of the requests may take (own_bound.h); 0 = none
  std::vector<TypeDemand> demands;  // ascending type, unique; a type that is not listed is not allowed; none
                                    // without GPUs
  std::vector<std::pair<std::string, std::string>> node_selector;  // labels that a node must carry; ascending
  // Groups that it belongs to, and groups that it shares no node with; each ascending and unique. Holds both ways. The
  // tasks of one job never avoid each other: spread_tasks parts them.
  std::vector<std::string> groups;
  std::vector<std::string> avoid_groups;
  bool spread_tasks = false;                 // at most one task a node
  bool sm_cap_chosen = false;                // by the placer, not stated; as the next, StatedOf takes it back
  bool exclusive_chosen = false;             // of a probe
  bool mps_chosen = false;                   // runs under MPS on devices that can have either mode; as the two before
  std::vector<JobAlternative> alternatives;  // ways to run it; tasks, GPUs and demands above are then not stated
  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// Limits of one job; they bound memory and time whatever a caller asks for.
inline constexpr int32_t kMaxGpusPerJob = 65'536;  // tasks x gpus_per_task
inline constexpr size_t kMaxNameBytes = 1024;      // any text of a job or node
inline constexpr size_t kMaxDemandsPerJob = 4096;  // = Catalogue::kMaxTypes
inline constexpr size_t kMaxSelectorsPerJob = 256;
inline constexpr size_t kMaxAlternatives = 64;                 // each costs a search; chosen
inline constexpr double kMaxRate = 1e18;                       // of progress; chosen
inline constexpr size_t kMaxGroupsPerJob = 64;                 // that it belongs to, and again that it avoids
inline constexpr float kMaxSlowdownBound = 1e6f;               // above any that says something; chosen
inline constexpr float kMaxWorkWeight = 1e6f;                  // and 1 / it at least; chosen
inline constexpr double kMaxRequestRateHz = 1e12;              // beyond any service; chosen
inline constexpr int64_t kMaxHostQuantity = int64_t{1} << 40;  // cores/1000, MiB or MB/s of one node or task

// OK, or INVALID_ARGUMENT "job <id>: <field>: expected ..., found ...".
[[nodiscard]] absl::Status ValidateJob(const JobSpec& job);
// The part of it about what is the job's own: its name and its times.
[[nodiscard]] absl::Status ValidateOwn(const JobSpec& job);
// All of it, and that the job runs in one way: no alternatives are left.
[[nodiscard]] absl::Status ValidateRunning(const JobSpec& job);

// OK, or INVALID_ARGUMENT for a demand on a type that a catalogue of `types` types does not have.
[[nodiscard]] absl::Status CheckTypes(const JobSpec& job, size_t types);

// Sorts demands, node_selector and groups, as ValidateJob demands; for callers that take them in any order.
void NormalizeJob(JobSpec& job);

// Whether nobody knows yet what the job does there: outside what the predictor was trained on, and not measured.
[[nodiscard]] inline bool IsUnknown(const Demand& demand) {
  return (demand.flags & kDemandOutside) != 0 && (demand.flags & kDemandMeasured) == 0;
}

// Whether nobody knows how much device memory it takes there: it states none, and the demand has no bound. Such a job
// runs alone.
[[nodiscard]] inline bool RunsAloneForMemory(const JobSpec& job, const Demand& demand) {
  return job.gpu_mem_request_mib == 0 && job.gpu_mem_limit_mib == 0 && !HasMemoryBound(demand);
}

// Bounds of memory that are only predicted are dropped: the job then runs alone, where what is expected fits. False if
// it has none.
[[nodiscard]] bool AloneByExpectation(JobSpec& job);

[[nodiscard]] bool RestsOnPredictions(const JobSpec& job);
// The job as far as it is certain: bounds that are only predicted refuse nothing any more.
[[nodiscard]] JobSpec CertainOf(const JobSpec& job);

// The job's demand on that type; nullptr when the type is not allowed.
[[nodiscard]] const Demand* FindDemand(const JobSpec& job, GpuTypeId type);
// The same of a job with demands that runs there; where it states none (only adopted jobs), its first one stands in.
[[nodiscard]] const Demand& DemandOn(const JobSpec& job, GpuTypeId type);

// The job without what the placer chose.
[[nodiscard]] JobSpec StatedOf(JobSpec job);

// The job run by its alternative `index`; the copy states no alternatives.
[[nodiscard]] JobSpec WayOf(const JobSpec& job, size_t index);

// The demand with the job's duty: rate x time of a step.
[[nodiscard]] Demand WithDuty(const JobSpec& job, Demand demand);
// Whether the job states a latency to keep.
[[nodiscard]] inline bool KeepsLatency(const JobSpec& job) {
  return job.kind == JobKind::kInference && job.latency_bound_us > 0;
}
// What devices see of it: its duty, under its cap; what keeps a latency keeps its work (KeepsWork).
[[nodiscard]] Demand AsRun(const JobSpec& job, Demand demand);
// Whether it serves as many requests as come, however slowed: a service, or one that states a rate and a latency.
[[nodiscard]] bool ServesAll(const JobSpec& job, const Demand& demand);
// Whether more requests come than steps serve, one each.
[[nodiscard]] bool IsOverrun(const JobSpec& job, const Demand& demand);

// ---- What a job counts.
// Cost: a pass over the demands.

// A job that keeps its GPU busy for less than this share of the time, such as a notebook, counts for so much less, in
// useful work and in the limit of tenants; but at least for kLeastCounted. Chosen: below lie idle sessions and services
// that few people ask; of MISO's 32 trainings on an A100 (SoCC 2022) the least busy has 36 %.
inline constexpr double kFullyCountedPct = 10;
inline constexpr double kLeastCounted = 0.05;
// 1 from kFullyCountedPct on, and for 0, which says nothing.
[[nodiscard]] double Counted(double busy_pct);

// What a best-effort job's work is worth beside that of other kinds; chosen.
inline constexpr double kBestEffortWorth = 0.1;
// What a unit of the job's work is worth, by weight, priority and kind.
[[nodiscard]] double WorkWeight(const JobSpec& job);
// The work of one of its GPUs on which nothing slows it, in units of a busy job's; by the type that it keeps busiest.
[[nodiscard]] double WorkAlone(const JobSpec& job);

// What the job asked for per task, whatever it holds.
[[nodiscard]] inline int64_t StatedCpuMilli(const JobSpec& job) {
  return job.stated_cpu_milli == JobSpec::kAsHeld ? job.cpu_milli : job.stated_cpu_milli;
}
[[nodiscard]] inline int64_t StatedMemMib(const JobSpec& job) {
  return job.stated_mem_mib == JobSpec::kAsHeld ? job.mem_mib : job.stated_mem_mib;
}
// What it asked for per GPU, rounded up.
[[nodiscard]] inline HostShare NeedPerGpu(const JobSpec& job) {
  const auto up = [&](int64_t per_task) { return (per_task + job.gpus_per_task - 1) / job.gpus_per_task; };
  return {up(StatedCpuMilli(job)), up(StatedMemMib(job))};
}
// Gives the job other host resources per task, at least what it stated; that stays known. Sets the host's
// time too.
void GrantHost(int64_t cpu_milli, int64_t mem_mib, JobSpec& job);
// In all demands of a job with a sensitivity the host's time with what the job holds; 0 where so little was not
// measured.
void SetHostTime(JobSpec& job);

[[nodiscard]] inline int32_t GpuCount(const JobSpec& job) { return job.tasks * job.gpus_per_task; }

// Device memory per GPU: what fit counts, and what the job may burst to; request <= limit.
struct GpuMemory {
  int64_t request_mib = 0;
  int64_t limit_mib = 0;
  friend bool operator==(const GpuMemory&, const GpuMemory&) = default;
};
[[nodiscard]] GpuMemory GpuMemoryOf(const JobSpec& job, const Demand& demand);

// The device of a task without GPUs; UINT32_MAX in C.
inline constexpr int32_t kNoDevice = -1;

// One device of one task, or the node of a task without GPUs.
struct Slot {
  NodeId node = 0;
  int32_t device = 0;  // index within the node, or kNoDevice
  int32_t task = 0;    // of the gang, from 0
  friend auto operator<=>(const Slot&, const Slot&) = default;
};
using Slots = absl::InlinedVector<Slot, 1>;  // most jobs take one device

// Keys to sort by.
inline auto ByTask(const Slot& slot) { return std::tie(slot.task, slot.node, slot.device); }
inline auto ByDevice(const Slot& slot) { return std::tie(slot.node, slot.device); }

// A job without GPUs takes one slot a task, whose device is kNoDevice.
[[nodiscard]] inline bool IsCpuOnly(const JobSpec& job) { return job.gpus_per_task == 0; }
// On a device that can have either mode.
[[nodiscard]] inline bool RunsUnderMps(const JobSpec& job) { return job.mps_chosen || job.sm_cap_pct > 0; }
[[nodiscard]] inline int32_t SlotsPerTask(const JobSpec& job) { return IsCpuOnly(job) ? 1 : job.gpus_per_task; }
[[nodiscard]] inline int32_t SlotCount(const JobSpec& job) { return job.tasks * SlotsPerTask(job); }

// "training", "inference", "best-effort"; "unknown" for a value that is no kind.
[[nodiscard]] std::string_view JobKindName(JobKind kind);

// "17" or "17 (resnet)": how messages call a job or a node.
[[nodiscard]] std::string IdAndName(uint64_t id, std::string_view name);

// ---- The fields of a job and of its demands by name, for what does the same with each of them.

// X(field) for each that horus_job and the job of a snapshot have too, by the same name, in the same unit and with the
// same values: convert.cc and snapshot.cc copy them by this list, and the others one by one.
#define HORUS_PLAIN_JOB_FIELDS(X) \
  X(gpu_milli)                    \
  X(gpu_mem_request_mib)          \
  X(gpu_mem_limit_mib)            \
  X(sm_cap_pct)                   \
  X(cpu_milli)                    \
  X(mem_mib)                      \
  X(storage_mb_s)                 \
  X(slowdown_bound)               \
  X(slowdown_confidence)          \
  X(priority)                     \
  X(request_rate_hz)              \
  X(latency_bound_us)

// The same of horus_demand and the demand of a snapshot: those with an upper bound beside them (mem_mib,
// mem_mib_upper), and those without.
#define HORUS_BOUNDED_DEMAND_FIELDS(X) X(gpu_util_pct) X(mem_bw_util_pct) X(mem_mib) X(step_time_us) X(power_w)
#define HORUS_PLAIN_DEMAND_FIELDS(X) \
  X(profile_id) X(flags) X(gradient_mib) X(distance) X(operator_us) X(host_us) X(slowdown_bound)

// All fields but the job's own, which are id, name, submit_us and deadline_us; jobs that agree in them are one request
// (state/requests.h). A new field of JobSpec does not compile here until it is named on one of the sides.
[[nodiscard]] inline auto SharedFields(const JobSpec& job) {
  const auto& [id, name, tenant, kind, tasks, gpus_per_task, gpu_milli, exclusive, share, gpu_mem_request_mib,
               gpu_mem_limit_mib, sm_cap_pct, cpu_milli, mem_mib, storage_mb_s, stated_cpu_milli, stated_mem_mib,
               sensitivity, slowdown_bound, slowdown_confidence, priority, weight, submit_us, deadline_us,
               request_rate_hz, latency_bound_us, demands, node_selector, groups, avoid_groups, spread_tasks,
               sm_cap_chosen, exclusive_chosen, mps_chosen, alternatives] = job;
  return std::tie(tenant, kind, tasks, gpus_per_task, gpu_milli, exclusive, share, gpu_mem_request_mib,
                  gpu_mem_limit_mib, sm_cap_pct, cpu_milli, mem_mib, storage_mb_s, stated_cpu_milli, stated_mem_mib,
                  sensitivity, slowdown_bound, slowdown_confidence, priority, weight, request_rate_hz, latency_bound_us,
                  demands, node_selector, groups, avoid_groups, spread_tasks, sm_cap_chosen, exclusive_chosen,
                  mps_chosen, alternatives);
}

}  // namespace horus
