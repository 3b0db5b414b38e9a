// SPDX-License-Identifier: Apache-2.0
// The list of disciplines, and which options make sense.
#include <algorithm>
#include <string>

#include "base/status.h"
#include "base/text.h"
#include "queue/discipline.h"
#include "queue/queue.h"

namespace horus {
namespace {

constexpr std::string_view kNames[] = {"fifo", "sjf",    "srtf", "las",   "ftf",
                                       "drf",  "tetris", "edf",  "horus", "horus-plus"};
constexpr int32_t kLeastClusters = 3, kMostClusters = 5;  // Horus+, as published

absl::Status CheckThresholds(const std::vector<int64_t>& thresholds) {
  if (thresholds.size() > kMostLasThresholds) {
    return InvalidArgument("queue: las_thresholds_gpu_us: expected at most %d, found %d", kMostLasThresholds,
                           thresholds.size());
  }
  int64_t before = 0;
  for (size_t i = 0; i < thresholds.size(); ++i) {
    if (thresholds[i] > before && thresholds[i] <= kMostQueueTimeUs) {
      before = thresholds[i];
      continue;
    }
    return InvalidArgument("queue: las_thresholds_gpu_us[%d]: expected more than %d and at most %d GPU x us, found %d",
                           i, before, kMostQueueTimeUs, thresholds[i]);
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(std::string_view name, const QueueOptions& options) {
  HORUS_RETURN_IF_ERROR(ValidateCapacity(name, options.capacity, NeedsCapacity(name)));
  HORUS_RETURN_IF_ERROR(CheckThresholds(options.las_thresholds_gpu_us));
  if (options.aging_us_per_pct < -1 || options.aging_us_per_pct > kMostQueueTimeUs) {
    return InvalidArgument("queue: aging_us_per_pct: expected -1 to %d us, found %d", kMostQueueTimeUs,
                           options.aging_us_per_pct);
  }
  if (options.clusters < kLeastClusters || options.clusters > kMostClusters) {
    return InvalidArgument("queue: clusters: expected %d to %d, found %d", kLeastClusters, kMostClusters,
                           options.clusters);
  }
  if (!(options.recluster_share > 0 && options.recluster_share <= 1)) {
    return InvalidArgument("queue: recluster_share: expected more than 0 and at most 1, found %g",
                           options.recluster_share);
  }
  if (options.patience_us < 0 || options.patience_us > kMostQueueTimeUs) {
    return InvalidArgument("queue: patience_us: expected 0 to %d us, found %d", kMostQueueTimeUs, options.patience_us);
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const std::string_view> QueueNames() { return kNames; }

bool NeedsCapacity(std::string_view name) { return name == "drf" || name == "tetris"; }

absl::Status ValidateCapacity(std::string_view name, const QueueResources& capacity, bool needed) {
  HORUS_RETURN_IF_ERROR(ValidateResources("queue: capacity", capacity));
  if (!needed || capacity != QueueResources()) return absl::OkStatus();
  return InvalidArgument("queue: capacity: expected one above 0 for %s, found none", name);
}

std::unique_ptr<Discipline> MakeDiscipline(std::string_view name, const QueueOptions& options, const JobTable& jobs) {
  if (name == "ftf") return MakeFinishTimeFairness(jobs);
  if (name == "drf") return MakeDominantResourceFairness(options, jobs);
  if (name == "horus-plus") return MakeHorusPlus(options, jobs);
  return MakeKeyedDiscipline(name, options, jobs);
}

absl::StatusOr<std::unique_ptr<Queue>> MakeQueue(std::string_view name, const QueueOptions& options) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) {
    return MakeError(absl::StatusCode::kNotFound, "queue: %s", ExpectedOneOf(kNames, name));
  }
  HORUS_RETURN_IF_ERROR(CheckOptions(name, options));
  return std::unique_ptr<Queue>(new Queue(*found, options));  // by the static name, which lives as long as the program
}

}  // namespace horus
