// SPDX-License-Identifier: Apache-2.0
// WorkMeter: what a placement is worth whatever the policy, for what compares and reports it.
//
// Enters:  a cluster, a scorer, a ledger that follows the cluster; jobs that only the ledger holds.
// Leaves:  useful work of a job, of some devices, of all.
// Units:   work of one GPU of a job's fastest type = 1.
// Cost:    a device's slowdowns once per distinct state and epoch; then O(tenants), and for each gang among them O(its
//          GPUs).
// Thread class: one thread at a time.
#pragma once

#include <optional>

#include "place/search/scorer.h"
#include "place/state/ledger.h"

namespace horus {

// Of a job that nothing slows, on its fastest type.
[[nodiscard]] inline double MostWork(const JobSpec& job) { return WorkWeight(job) * WorkAlone(job) * GpuCount(job); }

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
  [[nodiscard]] absl::StatusOr<double> OfJob(const Ledger& ledger, JobId job);
  // What all jobs gain together by `job` of one GPU, which is not on the device yet, as the scorer evaluated it: the
  // model is asked only for other devices of gangs that have one here.
  [[nodiscard]] absl::StatusOr<double> GainOf(const Ledger& ledger, uint32_t device, const JobSpec& job,
                                              const DeviceCandidate& candidate);
  // Of the jobs on the devices of those slots, each once and wherever else it is.
  [[nodiscard]] absl::StatusOr<double> OfSlots(const Ledger& ledger, std::span<const PlacedSlot> slots);
  // What all on those slots gain when the job is booked there, which it is then.
  [[nodiscard]] absl::StatusOr<double> Book(Ledger& ledger, const JobSpec& job, std::span<const PlacedSlot> slots);
  [[nodiscard]] absl::StatusOr<double> OfAll(const Ledger& ledger);

 private:
  // The slowdown of each tenant of the state, in the order of DeviceRow::tenants; estimates. Valid until the next call.
  [[nodiscard]] absl::StatusOr<std::span<const float>> Slowdowns(const Ledger& ledger, uint32_t device);
  [[nodiscard]] double Share(const Ledger& ledger, uint32_t device, const LedgerResident& resident,
                             std::span<const float> slowdowns) const;

  // The speed of a job at its slowest device but `except`, infinity where there is no other, and how many it has in
  // all.
  struct GangWork {
    double slowest = std::numeric_limits<double>::infinity();
    size_t devices = 0;
  };
  [[nodiscard]] absl::StatusOr<GangWork> WorkOf(const Ledger& ledger, JobId job, std::optional<uint32_t> except);

  const Cluster& cluster_;
  Scorer& scorer_;
  size_t most_kept_;
  IdMap<const JobSpec*> known_;
  IdMap<PlacedSlots> known_at_;  // of gangs
  IdMap<uint32_t> memo_;         // by state digest: position in slowdowns_
  std::vector<float> slowdowns_;
  std::vector<const Demand*> demands_;  // scratch
  std::vector<Slowdown> predicted_;
  std::vector<float> estimates_;
  std::vector<uint32_t> devices_;
  std::vector<JobId> gangs_;
};

}  // namespace horus
