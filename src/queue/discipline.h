// SPDX-License-Identifier: Apache-2.0
// Discipline: the service order behind a Queue. Queue checks and keeps the jobs; a discipline only orders their slots.
//
// Enters:  slots of the queue's table as they come, change and go.
// Leaves:  the slot to serve first at a time.
// Units:   microseconds.
// Cost:    each call O(log n) unless its class says otherwise; only Reserve, BeginPreview, Window and SetOwnerUsage
//          allocate.
// Thread class: one thread at a time.
#pragma once

#include <bit>
#include <compare>
#include <limits>

#include "queue/queue.h"

namespace horus {

// The queue's jobs by slot; slots of jobs that left are used again.
using JobTable = std::vector<QueuedJob>;

class Discipline {
 public:
  virtual ~Discipline() = default;

  // Room for `job`, which will be inserted in `slot` next. May fail, and then the order is as it was.
  virtual void Reserve(uint32_t slot, const QueuedJob& job) = 0;
  virtual void Insert(uint32_t slot) noexcept = 0;
  virtual void Erase(uint32_t slot) noexcept = 0;
  // The job's progress changed.
  virtual void Update(uint32_t /*slot*/) noexcept {}

  // Requires a job.
  [[nodiscard]] virtual uint32_t First(int64_t now_us) noexcept = 0;
  // The job is about to be served, and erased then.
  virtual void Charge(uint32_t /*slot*/, int64_t /*now_us*/) noexcept {}

  // Between these two jobs are charged and erased, then inserted in reverse order; EndPreview undoes the charges.
  virtual void BeginPreview(size_t /*jobs*/) {}
  virtual void EndPreview() noexcept {}
  // The first `count` slots at once where that is cheaper than a preview; false where it is not.
  [[nodiscard]] virtual bool Window(int64_t /*now_us*/, size_t /*count*/, std::vector<uint32_t>& /*slots*/) const {
    return false;
  }

  virtual void SetCapacity(const QueueResources& /*capacity*/) noexcept {}
  virtual void SetOwnerUsage(uint64_t /*owner*/, const QueueResources& /*usage*/) {}

  [[nodiscard]] virtual size_t bytes_held() const = 0;
};

// A discipline reads `jobs` as long as it lives. The keyed ones: fifo, sjf, srtf, las, edf, tetris, horus.
[[nodiscard]] std::unique_ptr<Discipline> MakeKeyedDiscipline(std::string_view name, const QueueOptions& options,
                                                              const JobTable& jobs);
[[nodiscard]] std::unique_ptr<Discipline> MakeFinishTimeFairness(const JobTable& jobs);
[[nodiscard]] std::unique_ptr<Discipline> MakeDominantResourceFairness(const QueueOptions& options,
                                                                       const JobTable& jobs);
[[nodiscard]] std::unique_ptr<Discipline> MakeHorusPlus(const QueueOptions& options, const JobTable& jobs);

// ---- The numbers by which disciplines rank jobs and owners; the formulas of src/queue/README.md.
// Cost: a few operations each.

// Share of one resource; what has no capacity does not count.
[[nodiscard]] inline double ShareOf(double amount, int64_t capacity) {
  return capacity > 0 ? amount / static_cast<double>(capacity) : 0.0;
}

// tetris: the cluster's time that the job still takes, summed over its resources.
[[nodiscard]] inline double RemainingVolume(const QueuedJob& job, const QueueResources& capacity) {
  const QueueResources needs = ResourcesOf(job);
  const double alignment = ShareOf(static_cast<double>(needs.gpu_milli), capacity.gpu_milli) +
                           ShareOf(static_cast<double>(needs.cpu_milli), capacity.cpu_milli) +
                           ShareOf(static_cast<double>(needs.mem_mib), capacity.mem_mib);
  return alignment * static_cast<double>(RemainingUs(job));
}

// horus, horus-plus: predicted utilisation less what waiting is worth. All jobs age alike, so their order stands still;
// the part that grows with time is left out.
[[nodiscard]] inline double AgedUtilisation(const QueuedJob& job, int64_t aging_us_per_pct) {
  const double util = static_cast<double>(job.gpu_util_pct.estimate);
  if (aging_us_per_pct <= 0) return util;
  return util + static_cast<double>(job.submit_us) / static_cast<double>(aging_us_per_pct);
}

// ---- ServiceKey: a place in a service order that no event but a change of the job moves.
// Cost: 32 bytes.

struct ServiceKey {
  int32_t not_priority = 0;  // ~priority: falls as priority rises, without overflow
  uint64_t rank = 0;
  int64_t submit_us = 0;
  uint64_t id = 0;
  friend auto operator<=>(const ServiceKey&, const ServiceKey&) = default;
};

[[nodiscard]] inline ServiceKey KeyOf(const QueuedJob& job, uint64_t rank) {
  return {~job.priority, rank, job.submit_us, job.id};
}

inline constexpr uint64_t kLastRank = std::numeric_limits<uint64_t>::max();

// Images that keep the order.
[[nodiscard]] constexpr uint64_t RankOf(int64_t value) { return static_cast<uint64_t>(value) ^ (uint64_t{1} << 63); }
// `value` not NaN; -0 counts as 0.
[[nodiscard]] inline uint64_t RankOf(double value) {
  const auto bits = std::bit_cast<uint64_t>(value + 0.0);
  const uint64_t sign = uint64_t{1} << 63;
  return (bits & sign) != 0 ? ~bits : bits | sign;
}

}  // namespace horus
