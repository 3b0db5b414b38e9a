// SPDX-License-Identifier: Apache-2.0
// Checks, cleans and reads the matrix of a job's sensitivity to cores and host memory.
#include "place/job/sensitivity.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/hash.h"
#include "base/status.h"
#include "base/units.h"
#include "place/job/job.h"

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
  if (!(host_us >= 0 && host_us <= kMaxHostUs))
    return InvalidArgument("sensitivity: host_us: expected 0 to %g us, found %g", kMaxHostUs, host_us);
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

}  // namespace horus
