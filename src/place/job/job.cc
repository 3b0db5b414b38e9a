// SPDX-License-Identifier: Apache-2.0
// Validation and look-ups of job requests.
#include "place/job/job.h"

#include <algorithm>

#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "base/vectors.h"
#include "interference/laws.h"
#include "place/job/own_bound.h"

namespace horus {
namespace {

constexpr int64_t kMaxTimeUs = int64_t{1} << 62;

std::string Job(const JobSpec& job) { return "job " + IdAndName(job.id, job.name); }

// What the checks below say, with the job before it.
absl::Status Of(const JobSpec& job, const absl::Status& status) { return status.ok() ? status : At(Job(job), status); }

absl::Status CheckAmount(const char* field, const char* unit, int64_t value) {
  if (value >= 0 && value <= kMaxHostQuantity) return absl::OkStatus();
  return InvalidArgument("%s: expected 0 to %d %s, found %d", field, kMaxHostQuantity, unit, value);
}

absl::Status CheckStated(const char* field, const char* unit, int64_t value, int64_t held) {
  if (value == JobSpec::kAsHeld || (value >= 0 && value <= held)) return absl::OkStatus();
  return InvalidArgument("%s: expected %d (as held) or 0 to the %d %s that it holds, found %d", field, JobSpec::kAsHeld,
                         held, unit, value);
}

absl::Status CheckTime(const char* field, int64_t value) {
  if (value >= 0 && value <= kMaxTimeUs) return absl::OkStatus();
  return InvalidArgument("%s: expected 0 to %d us, found %d", field, kMaxTimeUs, value);
}

absl::Status CheckOwnTimes(const JobSpec& job) {
  HORUS_RETURN_IF_ERROR(CheckTime("submit_us", job.submit_us));
  return CheckTime("deadline_us", job.deadline_us);
}

absl::Status CheckName(const JobSpec& job) {
  if (job.name.size() <= kMaxNameBytes) return absl::OkStatus();
  return InvalidArgument("job %d: name: expected at most %d bytes, found %d", job.id, kMaxNameBytes, job.name.size());
}

absl::Status CheckText(const char* field, const std::string& text) {
  if (text.size() <= kMaxNameBytes) return absl::OkStatus();
  return InvalidArgument("%s: expected at most %d bytes, found %d", field, kMaxNameBytes, text.size());
}

absl::Status CheckShape(const JobSpec& job) {
  if (job.tasks < 1 || job.tasks > kMaxGpusPerJob)
    return InvalidArgument("tasks: expected 1 to %d, found %d", kMaxGpusPerJob, job.tasks);
  if (job.gpus_per_task < 0 || job.gpus_per_task > kMaxGpusPerJob)
    return InvalidArgument("gpus_per_task: expected 0 (no GPU) to %d, found %d", kMaxGpusPerJob, job.gpus_per_task);
  if (int64_t{job.tasks} * job.gpus_per_task > kMaxGpusPerJob) {
    return InvalidArgument("tasks x gpus_per_task: expected at most %d GPUs, found %d x %d", kMaxGpusPerJob, job.tasks,
                           job.gpus_per_task);
  }
  if (job.gpu_milli < 0 || job.gpu_milli > kMilliPerGpu) {
    return InvalidArgument("gpu_milli: expected 0 (shares) to %d thousandths of a GPU, found %d", kMilliPerGpu,
                           job.gpu_milli);
  }
  if (IsCpuOnly(job) && job.gpu_milli > 0)
    return InvalidArgument("gpu_milli: expected 0 without GPUs, found %d", job.gpu_milli);
  if (IsCpuOnly(job) && job.exclusive) return InvalidArgument("exclusive: expected false without GPUs, found true");
  if (job.gpu_milli > 0 && job.gpu_milli < kMilliPerGpu && job.gpus_per_task > 1) {
    return InvalidArgument("gpu_milli: expected 0 or %d with %d GPUs per task, found %d", kMilliPerGpu,
                           job.gpus_per_task, job.gpu_milli);
  }
  return absl::OkStatus();
}

absl::Status CheckHostAndTimes(const JobSpec& job) {
  HORUS_RETURN_IF_ERROR(CheckAmount("cpu_milli", "thousandths of a core", job.cpu_milli));
  HORUS_RETURN_IF_ERROR(CheckAmount("mem_mib", "MiB", job.mem_mib));
  HORUS_RETURN_IF_ERROR(CheckAmount("storage_mb_s", "MB/s", job.storage_mb_s));
  if (job.sm_cap_pct < 0 || job.sm_cap_pct >= 100 || (job.sm_cap_pct > 0 && IsCpuOnly(job))) {
    return InvalidArgument("sm_cap_pct: expected 0 (no cap) or, with GPUs, 1 to 99 %% of a GPU's SMs, found %d",
                           job.sm_cap_pct);
  }
  HORUS_RETURN_IF_ERROR(CheckStated("stated_cpu_milli", "thousandths of a core", job.stated_cpu_milli, job.cpu_milli));
  HORUS_RETURN_IF_ERROR(CheckStated("stated_mem_mib", "MiB", job.stated_mem_mib, job.mem_mib));
  HORUS_RETURN_IF_ERROR(CheckOwnTimes(job));
  HORUS_RETURN_IF_ERROR(CheckTime("latency_bound_us", job.latency_bound_us));
  if (job.latency_bound_us > 0 && job.kind != JobKind::kInference) {
    return InvalidArgument("latency_bound_us: expected 0 for a job of kind %s, found %d (inference keeps a latency)",
                           std::string(JobKindName(job.kind)), job.latency_bound_us);
  }
  const bool bound_ok = job.slowdown_bound == 0 || (job.slowdown_bound >= 1 && job.slowdown_bound <= kMaxSlowdownBound);
  if (!bound_ok) {  // NaN fails too
    return InvalidArgument("slowdown_bound: expected 0 (default) or 1 to %g, found %g", kMaxSlowdownBound,
                           job.slowdown_bound);
  }
  const auto confidence = static_cast<double>(job.slowdown_confidence);
  if (!(confidence == 0 || (confidence >= kLeastProbability && confidence <= kMostProbability))) {
    return InvalidArgument("slowdown_confidence: expected 0 (default) or %g to %g, found %g", kLeastProbability,
                           kMostProbability, confidence);
  }
  if (!(job.weight >= 1 / kMaxWorkWeight && job.weight <= kMaxWorkWeight))
    return InvalidArgument("weight: expected %g to %g, found %g", 1 / kMaxWorkWeight, kMaxWorkWeight, job.weight);
  if (!(job.request_rate_hz >= 0 && job.request_rate_hz <= kMaxRequestRateHz))
    return InvalidArgument("request_rate_hz: expected 0 to %g Hz, found %g", kMaxRequestRateHz, job.request_rate_hz);
  return absl::OkStatus();
}

absl::Status CheckGpuMemory(const JobSpec& job) {
  for (const auto& [field, value] : {std::pair("gpu_mem_request_mib", job.gpu_mem_request_mib),
                                     std::pair("gpu_mem_limit_mib", job.gpu_mem_limit_mib)}) {
    HORUS_RETURN_IF_ERROR(CheckAmount(field, "MiB", value));
    if (IsCpuOnly(job) && value > 0) return InvalidArgument("%s: expected 0 without GPUs, found %d", field, value);
  }
  if (job.gpu_mem_limit_mib > 0 && job.gpu_mem_limit_mib < job.gpu_mem_request_mib) {
    return InvalidArgument("gpu_mem_limit_mib: expected 0 or at least the request of %d MiB, found %d",
                           job.gpu_mem_request_mib, job.gpu_mem_limit_mib);
  }
  return absl::OkStatus();
}

absl::Status CheckDemands(const JobSpec& job) {
  if (IsCpuOnly(job)) {
    if (job.demands.empty()) return absl::OkStatus();
    return InvalidArgument("demands: expected none without GPUs, found %d", job.demands.size());
  }
  if (job.demands.empty() || job.demands.size() > kMaxDemandsPerJob)
    return InvalidArgument("demands: expected 1 to %d, found %d", kMaxDemandsPerJob, job.demands.size());
  for (size_t i = 0; i < job.demands.size(); ++i) {
    const TypeDemand& entry = job.demands[i];
    if (!entry.type.valid() && job.demands.size() > 1)
      return InvalidArgument("demands[%d]: expected a GPU type ('any type' only as the single entry)", i);
    if (i > 0 && !(job.demands[i - 1].type < entry.type)) {
      return InvalidArgument("demands[%d]: expected ascending GPU types, each once, found type %d after %d", i,
                             entry.type.value(), job.demands[i - 1].type.value());
    }
    if (absl::Status status = ValidateDemand(entry.demand); !status.ok())
      return InvalidArgument("demands[%d]: %s", i, std::string(status.message()));
    if (entry.demand.slowdown_bound > 0 && entry.demand.step_time_us.upper <= 0)
      return InvalidArgument("demands[%d]: step_time_us: expected above 0 beside slowdown_bound, found 0", i);
    if (KeepsLatency(job) && entry.demand.step_time_us.upper <= 0)
      return InvalidArgument("demands[%d]: step_time_us: expected above 0 beside latency_bound_us, found 0", i);
  }
  return absl::OkStatus();
}

absl::Status CheckSelector(const JobSpec& job) {
  if (job.node_selector.size() > kMaxSelectorsPerJob) {
    return InvalidArgument("node_selector: expected at most %d labels, found %d", kMaxSelectorsPerJob,
                           job.node_selector.size());
  }
  for (size_t i = 0; i < job.node_selector.size(); ++i) {
    const auto& [key, value] = job.node_selector[i];
    if (key.empty()) return InvalidArgument("node_selector[%d]: expected a key, found none", i);
    HORUS_RETURN_IF_ERROR(CheckText("node_selector key", key));
    HORUS_RETURN_IF_ERROR(CheckText("node_selector value", value));
    if (i > 0 && !(job.node_selector[i - 1].first < key)) {
      return InvalidArgument("node_selector[%d]: expected ascending keys, each once, found %s after %s", i, Quoted(key),
                             Quoted(job.node_selector[i - 1].first));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGroups(const char* field, const std::vector<std::string>& names) {
  if (names.size() > kMaxGroupsPerJob)
    return InvalidArgument("%s: expected at most %d, found %d", field, kMaxGroupsPerJob, names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) return InvalidArgument("%s[%d]: expected a name, found none", field, i);
    HORUS_RETURN_IF_ERROR(CheckText(field, names[i]));
    if (i > 0 && !(names[i - 1] < names[i])) {
      return InvalidArgument("%s[%d]: expected ascending names, each once, found %s after %s", field, i,
                             Quoted(names[i]), Quoted(names[i - 1]));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSharing(const JobSpec& job) {
  if (job.share != ShareWith::kAnyone && job.share != ShareWith::kSameTenant)
    return InvalidArgument("share: expected 1 (same tenant) or 2 (anyone), found %d", static_cast<int>(job.share));
  HORUS_RETURN_IF_ERROR(CheckGroups("groups", job.groups));
  return CheckGroups("avoid_groups", job.avoid_groups);
}

// All but the ways to run it.
absl::Status CheckFields(const JobSpec& job) {
  HORUS_RETURN_IF_ERROR(CheckText("tenant", job.tenant));
  if (JobKindName(job.kind) == "unknown")
    return InvalidArgument("kind: expected 0 to 2, found %d", static_cast<int>(job.kind));
  if (!job.alternatives.empty()) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(CheckShape(job));
  HORUS_RETURN_IF_ERROR(CheckGpuMemory(job));
  HORUS_RETURN_IF_ERROR(CheckHostAndTimes(job));
  HORUS_RETURN_IF_ERROR(CheckDemands(job));
  HORUS_RETURN_IF_ERROR(CheckSelector(job));
  return CheckSharing(job);
}

}  // namespace

std::string IdAndName(uint64_t id, std::string_view name) {
  if (name.empty()) return Formatted("%d", id);
  return Formatted("%d (%s)", id, Quoted(name));
}

std::string_view JobKindName(JobKind kind) {
  constexpr std::string_view kNames[] = {"training", "inference", "best-effort"};
  const auto at = static_cast<size_t>(kind);
  return at < std::size(kNames) ? kNames[at] : "unknown";
}

namespace {

// The ways to run the job, each checked as a job of its own.
absl::Status CheckAlternatives(const JobSpec& job) {
  if (job.alternatives.size() > kMaxAlternatives) {
    return InvalidArgument("%s: alternatives: expected at most %d, found %d", Job(job), kMaxAlternatives,
                           job.alternatives.size());
  }
  if (job.tasks != 1 || job.gpus_per_task != 1 || job.gpu_milli != 0 || !job.demands.empty()) {
    return InvalidArgument(
        "%s: alternatives: expected no tasks, GPUs, gpu_milli and demands of the job's own beside them", Job(job));
  }
  for (size_t i = 0; i < job.alternatives.size(); ++i) {
    const JobAlternative& way = job.alternatives[i];
    if (!(way.rate > 0 && way.rate <= kMaxRate)) {
      return InvalidArgument("%s: alternatives[%d]: rate: expected above 0 to %g, found %g", Job(job), i, kMaxRate,
                             way.rate);
    }
    if (way.gpus_per_task < 1) {
      return InvalidArgument("%s: alternatives[%d]: gpus_per_task: expected 1 to %d, found %d", Job(job), i,
                             kMaxGpusPerJob, way.gpus_per_task);
    }
    const absl::Status status = ValidateJob(WayOf(job, i));
    if (!status.ok()) return InvalidArgument("alternatives[%d]: %s", i, std::string(status.message()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateJob(const JobSpec& job) {
  HORUS_RETURN_IF_ERROR(CheckName(job));
  HORUS_RETURN_IF_ERROR(Of(job, CheckFields(job)));
  return job.alternatives.empty() ? absl::OkStatus() : CheckAlternatives(job);
}

absl::Status ValidateOwn(const JobSpec& job) {
  HORUS_RETURN_IF_ERROR(CheckName(job));
  return Of(job, CheckOwnTimes(job));
}

absl::Status ValidateRunning(const JobSpec& job) {
  if (job.alternatives.empty()) return ValidateJob(job);
  return InvalidArgument("%s: alternatives: expected the one that runs, found %d", Job(job), job.alternatives.size());
}

absl::Status CheckTypes(const JobSpec& job, size_t types) {
  for (size_t i = 0; i < job.alternatives.size(); ++i) HORUS_RETURN_IF_ERROR(CheckTypes(WayOf(job, i), types));
  for (const TypeDemand& entry : job.demands) {
    if (!entry.type.valid() || entry.type.value() < types) continue;
    return InvalidArgument("%s: demands: expected a type of the catalogue (0 to %d), found %d", Job(job),
                           static_cast<int64_t>(types) - 1, entry.type.value());
  }
  return absl::OkStatus();
}

void NormalizeJob(JobSpec& job) {
  const auto by_type = [](const TypeDemand& a, const TypeDemand& b) { return a.type < b.type; };
  std::ranges::stable_sort(job.demands, by_type);
  for (JobAlternative& way : job.alternatives) std::ranges::stable_sort(way.demands, by_type);
  std::ranges::sort(job.node_selector);
  std::ranges::sort(job.groups);
  std::ranges::sort(job.avoid_groups);
}

void GrantHost(int64_t cpu_milli, int64_t mem_mib, JobSpec& job) {
  const auto grant = [](int64_t amount, int64_t& held, int64_t& stated) {
    const int64_t asked = stated == JobSpec::kAsHeld ? held : stated;
    stated = asked == amount ? JobSpec::kAsHeld : asked;
    held = amount;
  };
  grant(cpu_milli, job.cpu_milli, job.stated_cpu_milli);
  grant(mem_mib, job.mem_mib, job.stated_mem_mib);
  SetHostTime(job);
}

void SetHostTime(JobSpec& job) {
  const Sensitivity* matrix = job.sensitivity.get();
  if (matrix == nullptr || IsCpuOnly(job)) return;
  // A job that states no memory takes what it needs; one that states no cores may get any number.
  const int64_t mem_mib = job.mem_mib == 0 ? matrix->mem_mib().back() : job.mem_mib / job.gpus_per_task;
  const HostShare per_gpu = {job.cpu_milli / job.gpus_per_task, mem_mib};
  for (TypeDemand& entry : job.demands)
    entry.demand.host_us = matrix->HostUs(per_gpu, static_cast<double>(entry.demand.step_time_us.estimate));
}

GpuMemory GpuMemoryOf(const JobSpec& job, const Demand& demand) {
  GpuMemory memory{job.gpu_mem_request_mib, job.gpu_mem_limit_mib};
  if (memory.request_mib == 0)
    memory.request_mib = RunsAloneForMemory(job, demand) ? demand.mem_mib.estimate : demand.mem_mib.upper;
  if (memory.limit_mib == 0) memory.limit_mib = memory.request_mib;
  memory.request_mib = std::min(memory.request_mib, memory.limit_mib);
  return memory;
}

bool AloneByExpectation(JobSpec& job) {
  if (job.gpu_mem_request_mib != 0 || job.gpu_mem_limit_mib != 0) return false;
  bool changed = false;
  for (TypeDemand& entry : job.demands) {
    Demand& demand = entry.demand;
    if (!IsOnlyPredicted(demand) || !HasMemoryBound(demand) || demand.mem_mib.upper == demand.mem_mib.estimate)
      continue;
    if ((demand.flags & kDemandTooLarge) != 0) continue;
    demand.mem_mib.upper = kUnboundedMemMib;
    changed = true;
  }
  return changed;
}

bool RestsOnPredictions(const JobSpec& job) {
  return std::ranges::any_of(job.demands, [](const TypeDemand& entry) { return IsOnlyPredicted(entry.demand); });
}

JobSpec CertainOf(const JobSpec& job) {
  JobSpec certain = job;
  for (TypeDemand& entry : certain.demands) {
    Demand& demand = entry.demand;
    if (!IsOnlyPredicted(demand)) continue;
    demand.step_time_us = {1, 1};  // no latency is too long
    if (demand.slowdown_bound > kNeverServed && demand.slowdown_bound < 1) demand.slowdown_bound = 0;
    if ((demand.flags & kDemandTooLarge) == 0) demand.mem_mib = {};
  }
  return certain;
}

JobSpec StatedOf(JobSpec job) {
  if (std::exchange(job.sm_cap_chosen, false)) job.sm_cap_pct = 0;
  if (std::exchange(job.exclusive_chosen, false)) job.exclusive = false;
  job.mps_chosen = false;
  return job;
}

JobSpec WayOf(const JobSpec& job, size_t index) {
  JobSpec way = job;
  const JobAlternative& chosen = job.alternatives[index];
  way.alternatives.clear();
  way.tasks = chosen.tasks;
  way.gpus_per_task = chosen.gpus_per_task;
  way.gpu_milli = chosen.gpu_milli;
  if (chosen.cpu_milli != JobAlternative::kAsTheJob) way.cpu_milli = chosen.cpu_milli;
  if (chosen.mem_mib != JobAlternative::kAsTheJob) way.mem_mib = chosen.mem_mib;
  if (chosen.storage_mb_s != JobAlternative::kAsTheJob) way.storage_mb_s = chosen.storage_mb_s;
  way.demands = chosen.demands;
  return way;
}

Demand WithDuty(const JobSpec& job, Demand demand) {
  if (demand.duty < 1) return demand;  // stated
  const double service_us = StepUs(demand) * CapStretch(demand);
  if (job.kind == JobKind::kInference && job.request_rate_hz > 0 && service_us > 0)
    demand.duty = static_cast<float>(std::min(1.0, job.request_rate_hz * service_us / kUsPerS));
  return demand;
}

Demand AsRun(const JobSpec& job, Demand demand) {
  if (job.sm_cap_pct > 0) demand.sm_cap = static_cast<float>(job.sm_cap_pct) / 100;
  if (demand.slowdown_bound == 0 && KeepsLatency(job))
    demand.slowdown_bound = kMaxDemandSlowdown;  // OwnBoundOf's is less
  return WithDuty(job, std::move(demand));
}

bool IsOverrun(const JobSpec& job, const Demand& demand) {
  return job.kind == JobKind::kInference && job.request_rate_hz > 0 && StepUs(demand) > 0 &&
         WithDuty(job, demand).duty >= 1;
}

bool ServesAll(const JobSpec& job, const Demand& demand) {
  return (demand.slowdown_bound >= 1 || KeepsLatency(job)) && KeepsWork(AsRun(job, demand));
}

double Counted(double busy_pct) {
  return busy_pct == 0 ? 1 : std::clamp(busy_pct / kFullyCountedPct, kLeastCounted, 1.0);
}

double WorkWeight(const JobSpec& job) {
  const int32_t priority = job.priority;
  return static_cast<double>(job.weight) * (job.kind == JobKind::kBestEffort ? kBestEffortWorth : 1) *
         (priority >= 0 ? 1.0 + priority : 1.0 / (1.0 - priority));
}

double WorkAlone(const JobSpec& job) {
  double most = job.demands.empty() ? 1 : 0;
  for (const TypeDemand& entry : job.demands)
    most = std::max(most, Counted(static_cast<double>(BusyPct(WithDuty(job, entry.demand)).estimate)));
  return most;
}

const Demand* FindDemand(const JobSpec& job, GpuTypeId type) {
  if (job.demands.size() == 1 && !job.demands[0].type.valid()) return &job.demands[0].demand;
  const TypeDemand* entry = FindSorted(job.demands, type, &TypeDemand::type);
  return entry == nullptr ? nullptr : &entry->demand;
}

const Demand& DemandOn(const JobSpec& job, GpuTypeId type) {
  const Demand* demand = FindDemand(job, type);
  return demand != nullptr ? *demand : job.demands.front().demand;
}

}  // namespace horus
