// SPDX-License-Identifier: Apache-2.0
// Useful work: what a placement is worth whatever the policy; the modes compare and report it.
//
// Enters:  jobs, a ledger, a scorer for the slowdowns.
// Leaves:  the work of a job, of the jobs on some devices, of all; what it gains by one job more.
// Units:   1 = one job of priority 0 and weight 1 alone on the fastest GPU type that it lists, per GPU of the job; the
//          GPUs of a gang all work as its slowest does. A job of priority p counts 1 + p, below zero 1 / (1 - p), times
//          its weight. Estimates, never bounds.
// Cost:    a device's slowdowns once per distinct state and epoch; then O(tenants), and for each gang among them O(its
//          GPUs).
// Thread class: one thread at a time (holds a memo).
#ifndef HORUS_PLACE_WORK_H_
#define HORUS_PLACE_WORK_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/id_map.h"
#include "place/search/scorer.h"
#include "place/state/ledger.h"

namespace horus {

[[nodiscard]] inline double WorkWeight(const JobSpec& job) {
  const int32_t priority = job.priority;
  return static_cast<double>(job.weight) * (priority >= 0 ? 1.0 + priority : 1.0 / (1.0 - priority));
}

// Speed alone there / on the fastest type that the job lists; 1 where step times are unknown.
[[nodiscard]] double SpeedAlone(const JobSpec& job, const DeviceRow& device);

class WorkMeter {
 public:
  static constexpr size_t kMostKept = size_t{4} << 20;  // slowdowns: 16 MiB; chosen

  // Residents are jobs of `cluster`, or were named by Know. All must outlive it. `most_kept`: slowdowns in its memo.
  WorkMeter(const Cluster& cluster, Scorer& scorer, size_t most_kept = kMostKept)
      : cluster_(cluster), scorer_(scorer), most_kept_(most_kept) {}

  // A job that the ledger may hold though the cluster does not.
  void Know(const JobSpec& job);
  // Where the ledger may hold a job, one of the cluster or told by Know, beside its place in the cluster: to be called
  // before a gang is booked, whose GPUs must be found from one of them. Replaces the place told before.
  void KnowAt(const JobSpec& job, std::span<const PlacedSlot> slots);
  // Of a resident without what is its own: id, name, submit_us and deadline_us. Null = unknown.
  [[nodiscard]] const JobSpec* SpecOf(JobId job) const;
  // Of those places the devices, ascending, that hold the job now.
  [[nodiscard]] std::vector<uint32_t> DevicesOf(const Ledger& ledger, JobId job) const;

  // Of one job; 0 when it is nowhere.
  [[nodiscard]] absl::Status OfJob(const Ledger& ledger, JobId job, double& work);
  // What all jobs gain together by `job` of one GPU, which is not on the device yet, as the scorer evaluated it: the
  // model is asked only for other devices of gangs that have one here.
  [[nodiscard]] absl::Status GainOf(const Ledger& ledger, uint32_t device, const JobSpec& job,
                                    const DeviceCandidate& candidate, double& gain);
  // Of the jobs on the devices of those slots, each once and wherever else it is.
  [[nodiscard]] absl::Status OfSlots(const Ledger& ledger, std::span<const PlacedSlot> slots, double& work);
  [[nodiscard]] absl::Status OfAll(const Ledger& ledger, double& work);

 private:
  // The slowdown of each tenant of the state, in the order of DeviceRow::tenants; estimates. Valid until the next call.
  [[nodiscard]] absl::Status Slowdowns(const Ledger& ledger, uint32_t device, std::span<const float>& slowdowns);
  [[nodiscard]] double Share(const Ledger& ledger, uint32_t device, const LedgerResident& resident,
                             std::span<const float> slowdowns) const;

  // The speed of a job at its slowest device but `except`, infinity where there is no other, and how many it has in
  // all.
  struct GangWork {
    double slowest = std::numeric_limits<double>::infinity();
    size_t devices = 0;
  };
  [[nodiscard]] absl::Status WorkOf(const Ledger& ledger, JobId job, std::optional<uint32_t> except, GangWork& work);

  const Cluster& cluster_;
  Scorer& scorer_;
  size_t most_kept_;
  IdMap<const JobSpec*> known_;
  IdMap<std::vector<PlacedSlot>> known_at_;  // of gangs
  IdMap<uint32_t> memo_;                     // by state digest: position in slowdowns_
  std::vector<float> slowdowns_;
  std::vector<const Demand*> demands_;  // scratch
  std::vector<Slowdown> predicted_;
  std::vector<float> undisturbed_;
  std::vector<uint32_t> devices_;
  std::vector<JobId> gangs_;
};

}  // namespace horus

#endif  // HORUS_PLACE_WORK_H_
