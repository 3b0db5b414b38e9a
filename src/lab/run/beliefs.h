// SPDX-License-Identifier: Apache-2.0
// What the placer believes of jobs while a simulation runs, before and after they were profiled; alarms: what is due
// when; and waiting: whether a job that could share had better wait for idle GPUs, and who was refused a place.
//
// Units:   microseconds; slowdowns.
#pragma once

#include <set>

#include "lab/simulator.h"

namespace horus {

inline constexpr int64_t kNoEvent = std::numeric_limits<int64_t>::max();

// At most one for each key, in microseconds of the trace's clock. Cost: O(log n).
class Alarms {
 public:
  // Replaces the key's alarm.
  void Set(int64_t time_us, uint32_t key) {
    Cancel(key);
    time_of_[key] = time_us;
    due_.emplace(time_us, key);
  }
  // Of a key without alarm: nothing.
  void Cancel(uint32_t key) {
    const auto at = time_of_.find(key);
    if (at == time_of_.end()) return;
    due_.erase({at->second, key});
    time_of_.erase(at);
  }
  [[nodiscard]] bool Has(uint32_t key) const { return time_of_.contains(key); }
  [[nodiscard]] int64_t next_us() const { return due_.empty() ? kNoEvent : due_.begin()->first; }
  // The lowest key that is due at that time, whose alarm is over then.
  [[nodiscard]] std::optional<uint32_t> TakeDue(int64_t now_us) {
    if (next_us() != now_us) return std::nullopt;
    const uint32_t key = due_.begin()->second;
    Cancel(key);
    return key;
  }

 private:
  std::set<std::pair<int64_t, uint32_t>> due_;
  std::map<uint32_t, int64_t> time_of_;
};

// Cost: O(log jobs being profiled).
class Profiling {
 public:
  // All must outlive it, but for the cluster.
  Profiling(const Trace& trace, std::span<const ProfileDemands> beliefs, const SimOptions& options,
            const Cluster& cluster, const ClusterMap& map);

  [[nodiscard]] const ProfileDemands& BeliefsOf(uint32_t job) const {
    const uint32_t profile = trace_.jobs[job].profile;
    return IsProfiled(job) ? measured_[profile] : beliefs_[profile];
  }
  [[nodiscard]] bool IsProfiled(uint32_t job) const {
    return !profiled_.empty() && trace_.jobs[job].gpus_per_task > 0 && profiled_[KeyOf(job)];
  }

  // The job began to work on the node: where that profiles, for a while only, or to its end if that comes first.
  void Begin(uint32_t job, uint32_t node, int64_t now_us) {
    if (profiled_.empty() || IsProfiled(job) || !profiles_[node]) return;
    running_.Set(now_us + options_.profiling_us, job);
  }
  void Stop(uint32_t job) { running_.Cancel(job); }  // before it was done
  // The job finished: what it did on a node that profiles is known.
  void Finish(uint32_t job) {
    if (running_.Has(job)) profiled_[KeyOf(job)] = true;
  }
  [[nodiscard]] int64_t next_us() const { return running_.next_us(); }
  // A job whose profiling ends now; it is profiled from then on.
  [[nodiscard]] std::optional<uint32_t> TakeDue(int64_t now_us) {
    const std::optional<uint32_t> job = running_.TakeDue(now_us);
    if (job) profiled_[KeyOf(*job)] = true;
    return job;
  }

 private:
  [[nodiscard]] size_t KeyOf(uint32_t job) const { return options_.profile_each_job ? job : trace_.jobs[job].profile; }

  const Trace& trace_;
  std::span<const ProfileDemands> beliefs_;
  const SimOptions& options_;
  std::vector<bool> profiled_;            // by profile, or by job; empty = nothing is
  std::vector<ProfileDemands> measured_;  // by profile
  std::vector<bool> profiles_;            // by node
  Alarms running_;                        // by job
};

inline Profiling::Profiling(const Trace& trace, std::span<const ProfileDemands> beliefs, const SimOptions& options,
                            const Cluster& cluster, const ClusterMap& map)
    : trace_(trace), beliefs_(beliefs), options_(options) {
  if (options.profiling_us == 0) return;
  profiled_.resize(options.profile_each_job ? trace.jobs.size() : trace.profiles.size());
  measured_ = options.measured == nullptr ? std::vector(beliefs.begin(), beliefs.end()) : *options.measured;
  for (ProfileDemands& demands : measured_) {
    for (TypeDemand& one : demands) one.demand.flags |= kDemandMeasured;
  }
  for (uint32_t node = 0; node < map.nodes(); ++node) {
    const NodeInfo info = *cluster.Node(map.id(node));
    profiles_.push_back(std::ranges::any_of(info.spec.labels,
                                            [&](const auto& label) { return label.first == options.profiling_label; }));
  }
}

// ---- Whether a job that could share a GPU now had better wait for one that falls idle.

struct SharingNeighbour {
  double left_us = 0;  // of its work, alone
  double before = 1;   // slowdowns: without the newcomer, and with it
  double after = 1;
};

struct SharingOffer {
  double left_us = 0;  // of the newcomer's work, alone
  double slowdown = 1;
  std::span<const SharingNeighbour> neighbours;
};

struct WaitOutlook {
  double idle_us = 0;  // until enough GPUs fall idle for the job and those before it
  double apart_us = std::numeric_limits<double>::infinity();  // until one does for which nobody waits, so that tenants
                                                              // may move apart; infinite where nobody ever moves
};

// By how much everybody's completion is delayed, summed. Sharing with a neighbour lasts until one of the two is done or
// they move apart; each loses of that time the part that it does not work. Waiting costs the newcomer its wait.
[[nodiscard]] inline bool WaitingIsBetter(const SharingOffer& offer, const WaitOutlook& outlook) {
  double longest_us = 0, lost_us = 0;
  for (const SharingNeighbour& one : offer.neighbours) {
    const double shared_us = std::min({offer.left_us * offer.slowdown, one.left_us * one.after, outlook.apart_us});
    longest_us = std::max(longest_us, shared_us);
    lost_us += shared_us * (1 / one.before - 1 / one.after);
  }
  lost_us += longest_us * (1 - 1 / offer.slowdown);
  return lost_us > outlook.idle_us;
}

// ---- Who was refused a place since a job left: those that came since took room and made none, so nobody of them, and
// nobody like them, needs to be asked about again.

// `Kind`: what the placer sees of a job; equal where it cannot tell two apart.
template <typename Kind>
class RefusedJobs {
 public:
  [[nodiscard]] bool HasJob(uint64_t job) const { return std::binary_search(jobs_.begin(), jobs_.end(), job); }
  [[nodiscard]] bool HasKind(const Kind& kind) const { return std::ranges::find(kinds_, kind) != kinds_.end(); }
  void AddJob(uint64_t job) {
    const auto at = std::lower_bound(jobs_.begin(), jobs_.end(), job);
    if (at == jobs_.end() || *at != job) jobs_.insert(at, job);
  }
  void AddKind(const Kind& kind) {
    if (!HasKind(kind)) kinds_.push_back(kind);
  }
  void Clear() {
    jobs_.clear();
    kinds_.clear();
  }

 private:
  std::vector<uint64_t> jobs_;  // ascending
  std::vector<Kind> kinds_;
};

}  // namespace horus
