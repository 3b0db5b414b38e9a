// SPDX-License-Identifier: Apache-2.0
// Sensitivity: how fast a job runs with so many CPU cores and so much host memory per GPU (Synergy, OSDI 2022).
//
// Enters:  measured speeds on a grid of cores x memory, relative to the speed at the fair share; holes allowed.
// Leaves:  a monotone matrix; speeds that were measured at or below what is given; the cells worth asking for.
// Units:   per GPU of the job: thousandths of a core, MiB; speeds without unit, 0 = not measured.
// Cost:    a look-up O(log cells); choices O(cells).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace horus {

// Host resources per GPU.
struct HostShare {
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
  friend bool operator==(const HostShare&, const HostShare&) = default;
  friend HostShare operator+(const HostShare& a, const HostShare& b) {
    return {a.cpu_milli + b.cpu_milli, a.mem_mib + b.mem_mib};
  }
  friend HostShare operator*(const HostShare& a, int64_t times) { return {a.cpu_milli * times, a.mem_mib * times}; }
  friend HostShare operator-(const HostShare& a, const HostShare& b) { return a + b * -1; }
};

// Whether `a` is no more than `b` in both resources.
[[nodiscard]] inline bool IsWithin(const HostShare& a, const HostShare& b) {
  return a.cpu_milli <= b.cpu_milli && a.mem_mib <= b.mem_mib;
}

// The share of a node that one of its `gpus` GPUs (at least 1) stands for, rounded down so that all of them fit.
[[nodiscard]] inline HostShare FairShare(int64_t cpu_milli, int64_t mem_mib, int32_t gpus) {
  return {cpu_milli / gpus, mem_mib / gpus};
}

// Resources and the speed that they give.
struct HostChoice {
  HostShare share;
  double speed = 0;
  friend bool operator==(const HostChoice&, const HostChoice&) = default;
};

inline constexpr size_t kMaxSensitivityPoints = 256;    // of one axis: a core each for nodes of 256; chosen
inline constexpr float kMaxSensitivitySpeed = 1e6f;     // above any that says something; chosen
inline constexpr double kMaxHostUs = int64_t{1} << 45;  // as of a step: about a year

// A speed this much below the best counts as the best: what optimistic profiling errs by (Synergy: within 3 %).
inline constexpr double kBestCellTolerance = 0.03;

class Sensitivity {
 public:
  // `speeds` is row-major [cpu x mem]; 0 and NaN mean "not measured". Both axes ascend strictly from above 0. More
  // resources never slow a job down, so each cell becomes the best one measured at or below it. `host_us` above 0: the
  // speeds are those of the input pipeline alone, which makes a step's input in that time at speed 1; 0: of the whole
  // job, at whose best speed the GPU is the slower of the two.
  // INVALID_ARGUMENT "sensitivity: <field>: expected ..., found ...".
  [[nodiscard]] static absl::StatusOr<Sensitivity> Create(std::vector<int64_t> cpu_milli, std::vector<int64_t> mem_mib,
                                                          std::span<const float> speeds, double host_us = 0);

  [[nodiscard]] std::span<const int64_t> cpu_milli() const { return cpu_milli_; }
  [[nodiscard]] std::span<const int64_t> mem_mib() const { return mem_mib_; }
  // As cleaned, row-major; 0 where nothing was measured at or below.
  [[nodiscard]] std::span<const float> speeds() const { return speeds_; }

  [[nodiscard]] double host_us() const { return host_us_; }

  // Time in which the host makes a step's input, given that much, of a job whose GPU needs `gpu_us` for a step; 0 where
  // nothing was measured at or below it.
  [[nodiscard]] double HostUs(const HostShare& given, double gpu_us) const;

  // The best speed measured at or below `given`; 0 where there is none.
  [[nodiscard]] double Speed(const HostShare& given) const;

  // The smallest cell as fast as `fair`, and within it; `fair` itself where nothing was measured at or below it.
  [[nodiscard]] HostShare Floor(const HostShare& fair) const;

  // `at_least`, then every share up to `at_most` that is faster than all shares below it; ascending (CPU, memory).
  [[nodiscard]] std::vector<HostChoice> Choices(const HostShare& at_least, const HostShare& at_most) const;

  [[nodiscard]] uint64_t Hash(uint64_t seed = 0) const;  // of one seed equal on every run and machine
  friend bool operator==(const Sensitivity&, const Sensitivity&) = default;

 private:
  Sensitivity() = default;
  std::vector<int64_t> cpu_milli_;
  std::vector<int64_t> mem_mib_;
  std::vector<float> speeds_;
  double host_us_ = 0;
};

// A matrix that many jobs may share, or none; equal when the matrices are.
class SharedSensitivity {
 public:
  SharedSensitivity() = default;
  explicit SharedSensitivity(Sensitivity matrix) : matrix_(std::make_shared<const Sensitivity>(std::move(matrix))) {}

  [[nodiscard]] const Sensitivity* get() const { return matrix_.get(); }  // null = none
  friend bool operator==(const SharedSensitivity& a, const SharedSensitivity& b) {
    return a.matrix_ == b.matrix_ || (a.matrix_ != nullptr && b.matrix_ != nullptr && *a.matrix_ == *b.matrix_);
  }

 private:
  std::shared_ptr<const Sensitivity> matrix_;
};

using SensitivitiesByName = std::map<std::string, SharedSensitivity, std::less<>>;  // by profile

// The size of a share in units of `fair`: cores and memory weigh alike.
[[nodiscard]] double SizeOf(const HostShare& share, const HostShare& fair);

// The smallest of `choices` (not empty) whose speed is within `tolerance` (0-1) of the best.
[[nodiscard]] HostChoice BestChoice(std::span<const HostChoice> choices, const HostShare& fair,
                                    double tolerance = kBestCellTolerance);

}  // namespace horus
