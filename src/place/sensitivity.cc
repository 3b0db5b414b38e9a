// SPDX-License-Identifier: Apache-2.0
// Checks, cleans and reads the matrix of a job's sensitivity to cores and host memory.
#include "place/sensitivity.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "base/units.h"
#include "place/job.h"

namespace horus {
namespace {

absl::Status CheckAxis(std::string_view name, std::span<const int64_t> axis) {
  if (axis.empty() || axis.size() > kMaxSensitivityPoints) {
    return InvalidArgument("sensitivity: %s: expected 1 to %d points, found %d", name, kMaxSensitivityPoints,
                           axis.size());
  }
  int64_t before = 0;
  for (size_t i = 0; i < axis.size(); ++i) {
    if (axis[i] <= before || axis[i] > kMaxHostQuantity) {
      return InvalidArgument("sensitivity: %s[%d]: expected more than %d, at most %d, found %d", name, i, before,
                             kMaxHostQuantity, axis[i]);
    }
    before = axis[i];
  }
  return absl::OkStatus();
}

// How many points of the axis are at or below `given`.
size_t PointsWithin(std::span<const int64_t> axis, int64_t given) {
  return static_cast<size_t>(std::upper_bound(axis.begin(), axis.end(), given) - axis.begin());
}

// `from`, then the points of the axis above it up to `to`.
std::vector<int64_t> Steps(std::span<const int64_t> axis, int64_t from, int64_t to) {
  std::vector<int64_t> steps = {from};
  for (const int64_t point : axis) {
    if (point > from && point <= to) steps.push_back(point);
  }
  return steps;
}

}  // namespace

absl::StatusOr<Sensitivity> Sensitivity::Create(std::vector<int64_t> cpu_milli, std::vector<int64_t> mem_mib,
                                                std::span<const float> speeds, double host_us) {
  HORUS_RETURN_IF_ERROR(CheckAxis("cpu_milli", cpu_milli));
  HORUS_RETURN_IF_ERROR(CheckAxis("mem_mib", mem_mib));
  const size_t columns = mem_mib.size();
  if (speeds.size() != cpu_milli.size() * columns) {
    return InvalidArgument("sensitivity: speeds: expected %d x %d values, found %d", cpu_milli.size(), columns,
                           speeds.size());
  }
  Sensitivity result;
  result.speeds_.assign(speeds.begin(), speeds.end());
  bool measured = false;
  for (size_t i = 0; i < speeds.size(); ++i) {
    float& speed = result.speeds_[i];
    if (std::isnan(speed)) speed = 0;
    if (!(speed >= 0 && speed <= kMaxSensitivitySpeed)) {
      return InvalidArgument("sensitivity: speeds[%d][%d]: expected 0 to %g, or NaN, found %g", i / columns,
                             i % columns, kMaxSensitivitySpeed, speed);
    }
    measured = measured || speed > 0;
    if (i >= columns) speed = std::max(speed, result.speeds_[i - columns]);
    if (i % columns > 0) speed = std::max(speed, result.speeds_[i - 1]);
  }
  if (!measured) return InvalidArgument("sensitivity: speeds: expected a measured one, found none above 0");
  if (!(host_us >= 0 && host_us <= kMaxHostUs)) {
    return InvalidArgument("sensitivity: host_us: expected 0 to %g us, found %g", kMaxHostUs, host_us);
  }
  result.host_us_ = host_us;
  result.cpu_milli_ = std::move(cpu_milli);
  result.mem_mib_ = std::move(mem_mib);
  return result;
}

double Sensitivity::Speed(const HostShare& given) const {
  const size_t row = PointsWithin(cpu_milli_, given.cpu_milli);
  const size_t column = PointsWithin(mem_mib_, given.mem_mib);
  if (row == 0 || column == 0) return 0;
  return speeds_[(row - 1) * mem_mib_.size() + column - 1];
}

double Sensitivity::HostUs(const HostShare& given, double gpu_us) const {
  const double speed = Speed(given);
  if (speed == 0) return 0;
  const auto best = static_cast<double>(speeds_.back());  // monotone
  return (host_us_ > 0 ? host_us_ : gpu_us * best) / speed;
}

HostShare Sensitivity::Floor(const HostShare& fair) const {
  const double wanted = Speed(fair);
  if (wanted == 0) return fair;
  const size_t rows = PointsWithin(cpu_milli_, fair.cpu_milli);
  const size_t columns = PointsWithin(mem_mib_, fair.mem_mib);
  HostShare smallest = fair;
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      const HostShare cell = {cpu_milli_[i], mem_mib_[j]};
      if (speeds_[i * mem_mib_.size() + j] < wanted) continue;
      if (SizeOf(cell, fair) < SizeOf(smallest, fair)) smallest = cell;
      break;  // further ones of the row are larger
    }
  }
  return smallest;
}

std::vector<HostChoice> Sensitivity::Choices(const HostShare& at_least, const HostShare& at_most) const {
  const std::vector<int64_t> cpu = Steps(cpu_milli_, at_least.cpu_milli, at_most.cpu_milli);
  const std::vector<int64_t> mem = Steps(mem_mib_, at_least.mem_mib, at_most.mem_mib);
  std::vector<HostChoice> choices;
  std::vector<double> before(mem.size(), -1);  // speeds of the row below
  for (const int64_t cores : cpu) {
    double left = -1;
    for (size_t j = 0; j < mem.size(); ++j) {
      const HostShare share = {cores, mem[j]};
      const double speed = Speed(share);
      // The matrix is monotone: a cell faster than its two neighbours is faster than all below it.
      if (speed > left && speed > before[j]) choices.push_back({share, speed});
      left = before[j] = speed;
    }
  }
  return choices;
}

uint64_t Sensitivity::Hash(uint64_t seed) const {
  uint64_t hash = cpu_milli_.size() ^ seed;
  for (const int64_t cores : cpu_milli_) hash = CombineHash(hash, static_cast<uint64_t>(cores));
  for (const int64_t mib : mem_mib_) hash = CombineHash(hash, static_cast<uint64_t>(mib));
  if (host_us_ > 0) hash = CombineHash(hash, std::bit_cast<uint64_t>(host_us_));
  return CombineHash(hash, Hash64(speeds_.data(), speeds_.size() * sizeof(float), seed));
}

double SizeOf(const HostShare& share, const HostShare& fair) {
  const auto ratio = [](int64_t part, int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(std::max<int64_t>(whole, 1));
  };
  return ratio(share.cpu_milli, fair.cpu_milli) + ratio(share.mem_mib, fair.mem_mib);
}

HostChoice BestChoice(std::span<const HostChoice> choices, const HostShare& fair, double tolerance) {
  double best = 0;
  for (const HostChoice& choice : choices) best = std::max(best, choice.speed);
  const HostChoice* smallest = nullptr;
  double least = 0;
  for (const HostChoice& choice : choices) {
    if (choice.speed < best * (1 - tolerance)) continue;
    const double size = SizeOf(choice.share, fair);
    if (smallest == nullptr || size < least) {  // in order of cores: the fewest win ties
      smallest = &choice;
      least = size;
    }
  }
  return *smallest;
}

namespace {

// ---- Measures over cores, computes over memory.

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
