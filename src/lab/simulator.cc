// SPDX-License-Identifier: Apache-2.0
// Checks what a simulation is asked, and runs it.
#include "lab/simulator.h"

#include <string>
#include <utility>

#include "base/status.h"
#include "lab/run/run.h"

namespace horus {
namespace {

absl::Status CheckOptions(const SimOptions& options, const Placer& placer, size_t profiles) {
  const std::pair<const char*, int64_t> times[] = {
      {"horizon_us", options.horizon_us}, {"round_us", options.round_us},
      {"restart_us", options.restart_us}, {"checkpoint_us", options.checkpoint_us},
      {"latency_us", options.latency_us}, {"rebalance_us", options.rebalance_us},
      {"observe_us", options.observe_us}, {"profiling_us", options.profiling_us}};
  for (const auto& [name, value] : times) {
    if (value >= 0 && value <= kMaxTraceTimeUs) continue;
    return InvalidArgument("simulation: %s: expected 0 to %d, found %d", name, kMaxTraceTimeUs, value);
  }
  if (options.preempt && options.best_of_window) {
    return InvalidArgument("simulation: best_of_window: expected false beside preempt, found true");
  }
  if (options.weigh_waiting && (options.preempt || !options.know_run_times)) {
    return InvalidArgument("simulation: weigh_waiting: expected false %s, found true",
                           options.preempt ? "beside preempt" : "without know_run_times");
  }
  if (options.weights == SimWeights::kShortest && !options.know_run_times) {
    return InvalidArgument("simulation: weights: expected others without know_run_times, found the shortest first");
  }
  if ((options.best_of_window || options.rebalance_us > 0) && placer.policy().round() != nullptr) {
    return InvalidArgument("simulation: %s: expected a policy that decides job by job, found %s",
                           options.best_of_window ? "best_of_window" : "rebalance_us",
                           std::string(placer.policy().name()));
  }
  if (options.sensitivities != nullptr && options.sensitivities->size() < profiles) {
    return InvalidArgument("simulation: sensitivities: expected one entry for each of %d profiles, found %d", profiles,
                           options.sensitivities->size());
  }
  if (options.measured != nullptr && options.measured->size() < profiles) {
    return InvalidArgument("simulation: measured: expected one entry for each of %d profiles, found %d", profiles,
                           options.measured->size());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SimResult> Simulate(const Trace& trace, std::span<const ProfileDemands> beliefs, const Truth& truth,
                                   Cluster& cluster, Queue& queue, Placer& placer, const SimOptions& options,
                                   const SimObserver& observer) {
  HORUS_RETURN_IF_ERROR(ValidateTrace(trace));
  HORUS_RETURN_IF_ERROR(CheckOptions(options, placer, trace.profiles.size()));
  if (cluster.job_count() > 0 || queue.size() > 0) {
    return InvalidArgument("simulation: expected a cluster and a queue without jobs, found %d and %d",
                           cluster.job_count(), queue.size());
  }
  return SimRun(trace, beliefs, truth, cluster, queue, placer, options, observer).Go();
}

}  // namespace horus
