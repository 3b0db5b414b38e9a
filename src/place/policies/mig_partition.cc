// SPDX-License-Identifier: Apache-2.0
// The best partition by dynamic programming over the slices that the jobs so far have taken.
#include "place/policies/mig_partition.h"

#include <algorithm>

#include "base/status.h"
#include "interference/laws.h"

namespace horus {
namespace {

struct Cell {
  double speed = -1;  // < 0: no partition takes exactly these slices
  int16_t profile = -1;
};

// Rows of cells by job; cells by compute slices and memory slices taken.
class Table {
 public:
  Table(size_t jobs, int64_t compute, int64_t memory)
      : memory_(memory + 1), row_(static_cast<size_t>((compute + 1) * (memory + 1))), cells_((jobs + 1) * row_) {
    At(0, 0, 0).speed = 0;
  }
  Cell& At(size_t job, int64_t compute, int64_t memory) {
    return cells_[job * row_ + static_cast<size_t>(compute * memory_ + memory)];
  }

 private:
  int64_t memory_;
  size_t row_;
  std::vector<Cell> cells_;
};

}  // namespace

absl::StatusOr<MigPartition> ChooseMigPartition(const GpuType& type, std::span<const Demand* const> jobs,
                                                int64_t headroom_mib) {
  int64_t compute = 0, memory = 0;
  for (const MigProfile& profile : type.mig) {
    compute = std::max(compute, profile.compute_slices);
    memory = std::max(memory, profile.memory_slices);
  }
  if (compute == 0) return InvalidArgument("partition: expected a GPU type with MIG profiles, found %s", type.name);
  const absl::Status too_many =
      MakeError(absl::StatusCode::kFailedPrecondition, "partition: %s has no instances that hold these %d jobs",
                type.name, jobs.size());
  if (jobs.size() > static_cast<size_t>(compute)) return too_many;
  Table table(jobs.size(), compute, memory);
  for (size_t job = 0; job < jobs.size(); ++job) {
    if (jobs[job] == nullptr) return InvalidArgument("partition: job %d: expected a demand, found none", job);
    const Demand& demand = *jobs[job];
    for (size_t i = 0; i < type.mig.size(); ++i) {
      const MigProfile& profile = type.mig[i];
      if (demand.mem_mib.upper > profile.mem_mib - headroom_mib) continue;
      const double speed = SliceSpeed(static_cast<double>(demand.gpu_util_pct.estimate),
                                      static_cast<double>(demand.mem_bw_util_pct.estimate),
                                      static_cast<double>(profile.compute_slices) / static_cast<double>(compute));
      for (int64_t c = 0; c + profile.compute_slices <= compute; ++c) {
        for (int64_t m = 0; m + profile.memory_slices <= memory; ++m) {
          const Cell& before = table.At(job, c, m);
          Cell& after = table.At(job + 1, c + profile.compute_slices, m + profile.memory_slices);
          if (before.speed < 0 || before.speed + speed <= after.speed) continue;
          after = {before.speed + speed, static_cast<int16_t>(i)};
        }
      }
    }
  }
  MigPartition best{.speed = -1};
  int64_t taken_compute = 0, taken_memory = 0;
  for (int64_t c = 0; c <= compute; ++c) {
    for (int64_t m = 0; m <= memory; ++m) {
      const double speed = table.At(jobs.size(), c, m).speed;
      if (speed <= best.speed) continue;
      best.speed = speed;
      taken_compute = c;
      taken_memory = m;
    }
  }
  if (best.speed < 0) return too_many;
  best.profiles.resize(jobs.size());
  for (size_t job = jobs.size(); job > 0; --job) {
    const int16_t chosen = table.At(job, taken_compute, taken_memory).profile;
    best.profiles[job - 1] = chosen;
    taken_compute -= type.mig[static_cast<size_t>(chosen)].compute_slices;
    taken_memory -= type.mig[static_cast<size_t>(chosen)].memory_slices;
  }
  return best;
}

}  // namespace horus
