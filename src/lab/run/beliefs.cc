// SPDX-License-Identifier: Apache-2.0
// What the placer believes of jobs while a simulation runs: before and after they were profiled, from what devices were
// seen to do, and what their work counts.
#include "lab/run/beliefs.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"

namespace horus {

// ---- Keeps who was profiled, and what is known of jobs since.

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
    profiles_.push_back(std::ranges::any_of(info.spec.labels,
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

// ---- Reads off the execution what tenants of a device really cost each other.

void DeviceObserver::Restart(uint32_t device) {
  if (options_.observe_us == 0) return;
  due_.Cancel(device);
  if (execution_.TenantsOf(device).size() < 2) return;
  due_.Set(execution_.now_us() + options_.observe_us, device);
}

absl::StatusOr<Revision> DeviceObserver::Observe(uint32_t device, const Policy& policy) const {
  const DeviceContext context = map_.context(device);
  std::vector<const Demand*> demands;
  std::vector<double> speeds, slowdowns;
  for (const uint32_t job : execution_.TenantsOf(device)) {
    demands.push_back(profiling_.BeliefOn(job, context.type));
    speeds.push_back(execution_.ShareOn(job, device));
    slowdowns.push_back(1 / speeds.back());
  }
  HORUS_ASSIGN_OR_RETURN(Revision revision, policy.Revise({context, demands, speeds}));
  if (options_.learner != nullptr) {
    HORUS_RETURN_IF_ERROR(options_.learner->Observe({execution_.now_us(), context, demands, slowdowns}));
  }
  return revision;
}

absl::StatusOr<std::optional<bool>> DeviceObserver::Failed(uint32_t job, std::span<const uint32_t> devices) const {
  if (options_.learner == nullptr) return std::optional<bool>();
  std::optional<uint32_t> shared;
  for (const uint32_t device : devices) {
    if (execution_.TenantsOf(device).empty()) continue;
    if (shared) return std::optional<bool>();
    shared = device;
  }
  if (!shared) return std::optional<bool>();
  const DeviceContext context = map_.context(*shared);
  std::vector<const Demand*> demands;
  for (const uint32_t tenant : execution_.TenantsOf(*shared)) {
    demands.push_back(profiling_.BeliefOn(tenant, context.type));
  }
  demands.push_back(profiling_.BeliefOn(job, context.type));
  HORUS_ASSIGN_OR_RETURN(const bool learned, options_.learner->Failed({execution_.now_us(), context, demands, {}}));
  return std::optional<bool>(learned);
}

namespace {

// ---- Weights of jobs by their length.

constexpr double kWeightUnitUs = 3.6e9;  // a job of an hour counts 1. Weights count as ratios alone

}  // namespace

float WeightOf(const TraceJob& job, SimWeights weights) {
  if (weights != SimWeights::kShortest || job.endless) return 1;
  // Powers of two, so that jobs of about one length are one kind.
  const double weight = std::exp2(std::round(std::log2(kWeightUnitUs / static_cast<double>(job.duration_us))));
  return std::clamp(static_cast<float>(weight), 1 / kMaxWorkWeight, kMaxWorkWeight);
}

}  // namespace horus
