// SPDX-License-Identifier: Apache-2.0
// The numbers by which disciplines rank jobs and owners; the formulas of docs/queue.md.
//
// Enters:  jobs, capacity, options.       Leaves: scores; smaller is served first.
// Units:   shares of the cluster, share x us, per cent.
// Cost:    a few operations each.         Thread class: pure functions.
#ifndef HORUS_QUEUE_SCORES_H_
#define HORUS_QUEUE_SCORES_H_

#include <algorithm>
#include <cstdint>

#include "queue/queue.h"
#include "queue/queued_job.h"

namespace horus {

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

}  // namespace horus

#endif  // HORUS_QUEUE_SCORES_H_
