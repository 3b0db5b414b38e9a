// SPDX-License-Identifier: Apache-2.0
// Keeps who was profiled, and what is known of jobs since.
#include "lab/run/profiling.h"

#include <algorithm>

namespace horus {

Profiling::Profiling(const Trace& trace, std::span<const ProfileDemands> beliefs, const SimOptions& options,
                     const Cluster& cluster, const ClusterMap& map)
    : trace_(trace), beliefs_(beliefs), options_(options) {
  if (options.profiling_us == 0) return;
  profiled_.resize(options.profile_each_job ? trace.jobs.size() : trace.profiles.size());
  measured_ =
      options.measured == nullptr ? std::vector<ProfileDemands>(beliefs.begin(), beliefs.end()) : *options.measured;
  for (ProfileDemands& demands : measured_) {
    for (TypeDemand& one : demands) one.demand.flags |= kDemandMeasured;
  }
  for (uint32_t node = 0; node < map.nodes(); ++node) {
    const NodeInfo info = *cluster.Node(map.id(node));
    profiles_.push_back(std::any_of(info.spec.labels.begin(), info.spec.labels.end(),
                                    [&](const auto& label) { return label.first == options.profiling_label; }));
  }
}

bool Profiling::IsProfiled(uint32_t job) const {
  return !profiled_.empty() && trace_.jobs[job].gpus_per_task > 0 && profiled_[KeyOf(job)];
}

const ProfileDemands& Profiling::BeliefsOf(uint32_t job) const {
  const uint32_t profile = trace_.jobs[job].profile;
  return IsProfiled(job) ? measured_[profile] : beliefs_[profile];
}

const Demand* Profiling::BeliefOn(uint32_t job, GpuTypeId type) const {
  for (const TypeDemand& one : BeliefsOf(job)) {
    if (one.type == type || !one.type.valid()) return &one.demand;
  }
  return nullptr;
}

void Profiling::Begin(uint32_t job, uint32_t node, int64_t now_us) {
  if (profiled_.empty() || IsProfiled(job) || !profiles_[node]) return;
  running_.Set(now_us + options_.profiling_us, job);
}

std::optional<uint32_t> Profiling::TakeDue(int64_t now_us) {
  const std::optional<uint32_t> job = running_.TakeDue(now_us);
  if (job) SetProfiled(*job);
  return job;
}

}  // namespace horus
