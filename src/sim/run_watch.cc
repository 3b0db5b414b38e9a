// SPDX-License-Identifier: Apache-2.0
// What is seen of jobs while they run: tenants that shared a device for a while, and jobs that were profiled.
#include <algorithm>
#include <utility>

#include "base/status.h"
#include "sim/run.h"

namespace horus {

// Somebody came to the device or left it.
void SimRun::Rewatch(uint32_t device) {
  if (options_.observe_us == 0) return;
  const auto at = watched_until_.find(device);
  if (at != watched_until_.end()) {
    watches_.erase({at->second, device});
    watched_until_.erase(at);
  }
  if (execution_.TenantsOf(device).size() < 2) return;
  const int64_t until = now_us_ + options_.observe_us;
  watched_until_[device] = until;
  watches_.emplace(until, device);
}

absl::Status SimRun::WatchDue() {
  while (!watches_.empty() && watches_.begin()->first == now_us_) {
    const uint32_t device = watches_.begin()->second;
    watches_.erase(watches_.begin());
    watched_until_.erase(device);
    HORUS_RETURN_IF_ERROR(Observe(device));
  }
  return absl::OkStatus();
}

absl::Status SimRun::Observe(uint32_t device) {
  const std::span<const uint32_t> tenants = execution_.TenantsOf(device);
  const DeviceSpec& spec = devices_[device];
  std::vector<const Demand*> demands;
  std::vector<double> speeds, slowdowns;
  for (const uint32_t job : tenants) {
    demands.push_back(BeliefOn(job, spec.type));
    speeds.push_back(execution_.ShareOn(job, device));
    slowdowns.push_back(1 / speeds.back());
  }
  const DeviceContext context = {spec.type, spec.mode, spec.compute_share};
  HORUS_ASSIGN_OR_RETURN(Revision revision, placer_->policy().Revise({context, demands, speeds}));
  if (revision.policy != nullptr) {
    // The model is the caller's, and outlives the placer that comes.
    std::shared_ptr<const InterferenceModel> model(std::shared_ptr<const void>(), &placer_->model());
    HORUS_ASSIGN_OR_RETURN(revised_, Placer::Create(std::move(model), std::move(revision.policy), placer_->options()));
    placer_ = revised_.get();
    refused_.clear();
  }
  if (options_.learner != nullptr) {
    HORUS_RETURN_IF_ERROR(options_.learner->Observe({now_us_, context, demands, slowdowns}));
    refused_.clear();
  }
  if (!revision.undo) return absl::OkStatus();
  return Preempt(tenants.back());  // who came last
}

// Where the job met others on one of its devices alone: on several nobody could tell who did not bear whom.
absl::StatusOr<bool> SimRun::LearnFailure(uint32_t job) {
  if (options_.learner == nullptr) return false;
  std::optional<uint32_t> shared;
  for (const uint32_t device : lives_[job].devices) {
    if (execution_.TenantsOf(device).empty()) continue;
    if (shared) return false;
    shared = device;
  }
  if (!shared) return false;
  const DeviceSpec& spec = devices_[*shared];
  std::vector<const Demand*> demands;
  for (const uint32_t tenant : execution_.TenantsOf(*shared)) demands.push_back(BeliefOn(tenant, spec.type));
  demands.push_back(BeliefOn(job, spec.type));
  refused_.clear();
  return options_.learner->Failed({now_us_, {spec.type, spec.mode, spec.compute_share}, demands, {}});
}

bool SimRun::IsProfiled(uint32_t job) const {
  const TraceJob& one = trace_.jobs[job];
  return !profiled_.empty() && one.gpus_per_task > 0 && profiled_[options_.profile_each_job ? job : one.profile];
}

const ProfileDemands& SimRun::BeliefsOf(uint32_t job) const {
  const uint32_t profile = trace_.jobs[job].profile;
  return IsProfiled(job) ? measured_[profile] : beliefs_[profile];
}

const Demand* SimRun::BeliefOn(uint32_t job, GpuTypeId type) const {
  for (const TypeDemand& one : BeliefsOf(job)) {
    if (one.type == type || !one.type.valid()) return &one.demand;
  }
  return nullptr;
}

void SimRun::PrepareProfiling() {
  if (options_.profiling_us == 0) return;
  profiled_.resize(options_.profile_each_job ? trace_.jobs.size() : trace_.profiles.size());
  measured_ =
      options_.measured == nullptr ? std::vector<ProfileDemands>(beliefs_.begin(), beliefs_.end()) : *options_.measured;
  for (ProfileDemands& demands : measured_) {
    for (TypeDemand& one : demands) one.demand.flags |= kDemandMeasured;
  }
  for (const NodeId node : nodes_) {
    const NodeInfo info = *cluster_.Node(node);
    profiles_.push_back(std::any_of(info.spec.labels.begin(), info.spec.labels.end(),
                                    [&](const auto& label) { return label.first == options_.profiling_label; }));
  }
}

// A job begins to work: where its node profiles, for a while only, or to its end if that comes first.
void SimRun::WatchProfiling(uint32_t job) {
  const Life& life = lives_[job];
  if (profiled_.empty() || IsProfiled(job) || life.devices.empty() || !profiles_[node_of_[life.devices[0]]]) return;
  profiling_.emplace(now_us_ + options_.profiling_us, job);
}

bool SimRun::IsProfiling(uint32_t job) const {
  return std::any_of(profiling_.begin(), profiling_.end(), [&](const auto& one) { return one.second == job; });
}

void SimRun::EndProfiling(uint32_t job) {
  const auto at =
      std::find_if(profiling_.begin(), profiling_.end(), [&](const auto& one) { return one.second == job; });
  if (at != profiling_.end()) profiling_.erase(at);
}

absl::Status SimRun::ProfilingDue() {
  while (!profiling_.empty() && profiling_.begin()->first == now_us_) {
    const uint32_t job = profiling_.begin()->second;
    SetProfiled(job);
    HORUS_RETURN_IF_ERROR(PutBack(job, SimEventKind::kProfiled));
  }
  return absl::OkStatus();
}

void SimRun::SetProfiled(uint32_t job) {
  profiled_[options_.profile_each_job ? job : trace_.jobs[job].profile] = true;
  refused_.clear();
}

}  // namespace horus
