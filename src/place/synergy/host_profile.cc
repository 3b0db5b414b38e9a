// SPDX-License-Identifier: Apache-2.0
// Measures over cores, computes over memory.
#include "place/synergy/host_profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "base/units.h"
#include "place/job.h"

namespace horus {
namespace {

constexpr int64_t kStepMilli = kMilliPerCore;

absl::Status CheckRange(std::string_view field, int64_t least, int64_t most, int64_t found) {
  if (found >= least && found <= most) return absl::OkStatus();
  return InvalidArgument("host profile: %s: expected %d to %d, found %d", field, least, most, found);
}

absl::Status CheckRequest(const HostProfileRequest& request) {
  constexpr int64_t kMostCores = static_cast<int64_t>(kMaxSensitivityPoints - 1) * kStepMilli;  // - 1: the fair share
  HORUS_RETURN_IF_ERROR(CheckRange("gpus", 1, kMaxGpusPerJob, request.gpus));
  HORUS_RETURN_IF_ERROR(CheckRange("fair.cpu_milli", kStepMilli, kMostCores, request.fair.cpu_milli));
  HORUS_RETURN_IF_ERROR(CheckRange("fair.mem_mib", 1, kMaxHostQuantity, request.fair.mem_mib));
  HORUS_RETURN_IF_ERROR(CheckRange("max_cpu_milli", request.fair.cpu_milli, kMostCores, request.max_cpu_milli));
  HORUS_RETURN_IF_ERROR(CheckRange("mem_mib: points", 1, kMaxSensitivityPoints, std::ssize(request.mem_mib)));
  int64_t before = 0;
  for (const int64_t mem_mib : request.mem_mib) {
    HORUS_RETURN_IF_ERROR(CheckRange("mem_mib", before + 1, kMaxHostQuantity, mem_mib));
    before = mem_mib;
  }
  HORUS_RETURN_IF_ERROR(CheckRange("process_mib", 0, kMaxHostQuantity, request.process_mib));
  HORUS_RETURN_IF_ERROR(CheckRange("dataset_mib", 0, kMaxHostQuantity, request.dataset_mib));
  HORUS_RETURN_IF_ERROR(CheckRange("memory_mib_s", 1, kMaxHostQuantity, request.memory_mib_s));
  HORUS_RETURN_IF_ERROR(CheckRange("disk_mib_s", 1, kMaxHostQuantity, request.disk_mib_s));
  if (!(request.tolerance >= 0 && request.tolerance < 1)) {
    return InvalidArgument("host profile: tolerance: expected 0 to below 1, found %g", request.tolerance);
  }
  return absl::OkStatus();
}

// Measures each number of cores once.
class Runs {
 public:
  explicit Runs(const MeasureEpochFn& measure) : measure_(measure) {}

  absl::StatusOr<double> At(int64_t cpu_milli) {
    const auto found = seconds_.find(cpu_milli);
    if (found != seconds_.end()) return found->second;
    HORUS_ASSIGN_OR_RETURN(const double seconds, measure_(cpu_milli));
    if (!(std::isfinite(seconds) && seconds > 0)) {
      return InvalidArgument("host profile: measured epoch at %d milli cores: expected seconds above 0, found %g",
                             cpu_milli, seconds);
    }
    seconds_[cpu_milli] = seconds;
    return seconds;
  }
  [[nodiscard]] const std::map<int64_t, double>& seconds() const { return seconds_; }

 private:
  const MeasureEpochFn& measure_;
  std::map<int64_t, double> seconds_;
};

absl::Status MeasureCores(const HostProfileRequest& request, Runs& runs) {
  HORUS_RETURN_IF_ERROR(runs.At(request.fair.cpu_milli).status());
  int64_t cores = request.max_cpu_milli;
  HORUS_ASSIGN_OR_RETURN(double seconds, runs.At(cores));
  while (cores > kStepMilli) {
    const int64_t half = std::max(kStepMilli, cores / 2 / kStepMilli * kStepMilli);
    HORUS_ASSIGN_OR_RETURN(const double half_seconds, runs.At(half));
    const bool as_fast = seconds >= half_seconds * (1 - request.tolerance);
    cores = as_fast ? half : std::max(kStepMilli, cores - kStepMilli);
    HORUS_ASSIGN_OR_RETURN(seconds, runs.At(cores));
  }
  return absl::OkStatus();
}

}  // namespace

double EpochSeconds(const HostProfileRequest& request, double compute_s, int64_t mem_mib) {
  const int64_t room = std::max<int64_t>(0, mem_mib - request.process_mib);
  const int64_t cached = std::min(request.dataset_mib, room * request.gpus);
  const double fetch_s = static_cast<double>(cached) / static_cast<double>(request.memory_mib_s) +
                         static_cast<double>(request.dataset_mib - cached) / static_cast<double>(request.disk_mib_s);
  return std::max(compute_s, fetch_s);
}

absl::StatusOr<HostProfile> ProfileOptimistically(const HostProfileRequest& request, const MeasureEpochFn& measure) {
  HORUS_RETURN_IF_ERROR(CheckRequest(request));
  Runs runs(measure);
  HORUS_RETURN_IF_ERROR(MeasureCores(request, runs));
  HORUS_ASSIGN_OR_RETURN(const double fair_compute_s, runs.At(request.fair.cpu_milli));
  const double fair_s = EpochSeconds(request, fair_compute_s, request.fair.mem_mib);
  std::vector<int64_t> cores;
  std::vector<float> speeds;
  for (const auto& [cpu_milli, seconds] : runs.seconds()) {
    cores.push_back(cpu_milli);
    for (const int64_t mem_mib : request.mem_mib) {
      speeds.push_back(static_cast<float>(fair_s / EpochSeconds(request, seconds, mem_mib)));
    }
  }
  const auto count = static_cast<int32_t>(cores.size());
  HORUS_ASSIGN_OR_RETURN(Sensitivity matrix, Sensitivity::Create(std::move(cores), request.mem_mib, speeds));
  return HostProfile{std::move(matrix), count};
}

}  // namespace horus
