// SPDX-License-Identifier: Apache-2.0
// What the placer and the queue are told of a job.
#include <algorithm>
#include <string>

#include "base/status.h"
#include "sim/run/run.h"

namespace horus {
namespace {

bool Has(const std::vector<GpuTypeId>& types, GpuTypeId type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

}  // namespace

void SimRun::ResolveTypes() {
  for (const GpuTypeNames& names : trace_.type_lists) {
    std::vector<GpuTypeId>& types = types_.emplace_back();
    for (const std::string& name : names) {
      if (const auto type = cluster_.catalogue().FindKnown(name)) types.push_back(*type);
    }
  }
}

JobSpec SimRun::SpecOf(uint32_t job) const {
  const TraceJob& one = trace_.jobs[job];
  JobSpec spec{.id = job,
               .kind = one.kind,
               .tasks = one.tasks,
               .gpus_per_task = one.gpus_per_task,
               .gpu_milli = one.gpu_milli,
               .exclusive = lives_[job].alone,
               .cpu_milli = one.cpu_milli,
               .mem_mib = one.mem_mib,
               .priority = one.priority,
               .weight = pricing_.WeightOf(job),
               .submit_us = one.submit_us,
               .deadline_us = one.deadline_us};
  if (StatesBound(one.id, options_.bounded_milli)) spec.slowdown_bound = static_cast<float>(options_.job_bound);
  if (one.gpus_per_task == 0) return spec;
  if (options_.sensitivities != nullptr) spec.sensitivity = (*options_.sensitivities)[one.profile];
  const auto too_small = too_small_.find(job);
  for (const TypeDemand& demand : profiling_.BeliefsOf(job)) {
    if (one.gpu_types != kNotStated) {
      if (!Has(types_[one.gpu_types], demand.type)) continue;
    }
    if (too_small != too_small_.end() && (!demand.type.valid() || Has(too_small->second, demand.type))) continue;
    spec.demands.push_back(demand);
  }
  return spec;
}

// Of a job that waits or runs.
QueuedJob SimRun::QueuedOf(uint32_t job) const {
  const TraceJob& one = trace_.jobs[job];
  const bool runs = lives_[job].phase == Phase::kRunning;
  const int64_t ran_us = result_.jobs[job].ran_us + (runs ? execution_.RanUs(job) : 0);
  QueuedJob queued{
      .id = job,
      .owner = one.owner,
      .submit_us = one.submit_us,
      .priority = one.priority,
      .tasks = one.tasks,
      .gpus = static_cast<int32_t>(GpusOf(one)),
      .gpu_milli = one.gpu_milli == 0 ? kMilliPerGpu : one.gpu_milli,
      .cpu_milli = one.cpu_milli * one.tasks,
      .mem_mib = one.mem_mib * one.tasks,
      .total_us = options_.know_run_times && !one.endless ? one.duration_us : 0,
      .attained_gpu_us = std::min(ran_us, kMostQueueTimeUs / std::max<int64_t>(1, GpusOf(one))) * GpusOf(one),
      .deadline_us = one.deadline_us};
  if (queued.total_us > 0) {
    const Work left = runs ? execution_.LeftOf(job) : lives_[job].left;
    queued.remaining_us = static_cast<int64_t>((std::max(Work(0), left) + kFullRate - 1) / kFullRate);
  }
  if (one.gpus_per_task == 0) return queued;
  const Demand& demand = profiling_.BeliefsOf(job).front().demand;
  queued.gpu_util_pct = demand.gpu_util_pct;
  queued.gpu_mem_mib = demand.mem_mib;
  return queued;
}

absl::Status SimRun::Enqueue(uint32_t job) {
  lives_[job].phase = Phase::kWaiting;
  result_.jobs[job].end = SimEnd::kWaiting;
  return queue_.Push(QueuedOf(job));
}

}  // namespace horus
