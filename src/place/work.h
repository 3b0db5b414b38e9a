// SPDX-License-Identifier: Apache-2.0
// Useful work: what a placement is worth whatever the policy; the modes compare and report it.
//
// Enters:  jobs, a ledger, a scorer for the slowdowns.
// Leaves:  the work of a job, of a device, of all devices; what it gains by one job more.
// Units:   1 = one job of priority 0 alone on the fastest GPU type that it lists, per GPU of the job. A job of priority
//          p counts 1 + p, below zero 1 / (1 - p). Estimates, never bounds.
// Cost:    a device's slowdowns once per distinct state and epoch; then O(tenants).
// Thread class: one thread at a time (holds a memo).
#ifndef HORUS_PLACE_WORK_H_
#define HORUS_PLACE_WORK_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/id_map.h"
#include "place/ledger.h"
#include "place/scorer.h"

namespace horus {

[[nodiscard]] inline double PriorityWeight(int32_t priority) {
  return priority >= 0 ? 1.0 + priority : 1.0 / (1.0 - priority);
}

// Speed alone there / on the fastest type that the job lists; 1 where step times are unknown.
[[nodiscard]] double SpeedAlone(const JobSpec& job, const DeviceRow& device);

class WorkMeter {
 public:
  // Residents are jobs of `cluster`, or were named by Know. Both must outlive it.
  WorkMeter(const Cluster& cluster, Scorer& scorer) : cluster_(cluster), scorer_(scorer) {}

  // A job that the ledger may hold though the cluster does not.
  void Know(const JobSpec& job);
  // Of a resident without what is its own: id, name, submit_us and deadline_us. Null = unknown.
  [[nodiscard]] const JobSpec* SpecOf(JobId job) const;

  // Of all that is on the device now.
  [[nodiscard]] absl::Status OfDevice(const Ledger& ledger, uint32_t device, double& work);
  // Of one resident of it; 0 when it is not there.
  [[nodiscard]] absl::Status OfResident(const Ledger& ledger, uint32_t device, JobId job, double& work);
  // What the device gains by `job`, which is not there yet, as the scorer evaluated it: no call of the model.
  [[nodiscard]] double GainOf(const Ledger& ledger, uint32_t device, const JobSpec& job,
                              const DeviceCandidate& candidate) const;
  // Of the devices of those slots, each once.
  [[nodiscard]] absl::Status OfSlots(const Ledger& ledger, std::span<const PlacedSlot> slots, double& work);
  [[nodiscard]] absl::Status OfAll(const Ledger& ledger, double& work);

 private:
  // The slowdown of each tenant of the state, in the order of DeviceRow::tenants; estimates. Valid until the next call.
  [[nodiscard]] absl::Status Slowdowns(const Ledger& ledger, uint32_t device, std::span<const float>& slowdowns);
  [[nodiscard]] double Share(const Ledger& ledger, uint32_t device, const LedgerResident& resident,
                             std::span<const float> slowdowns) const;

  const Cluster& cluster_;
  Scorer& scorer_;
  IdMap<const JobSpec*> known_;
  IdMap<uint32_t> memo_;  // by state digest: position in slowdowns_
  std::vector<float> slowdowns_;
  std::vector<const Demand*> demands_;  // scratch
  std::vector<Slowdown> predicted_;
  std::vector<float> undisturbed_;
  std::vector<uint32_t> devices_;
};

}  // namespace horus

#endif  // HORUS_PLACE_WORK_H_
