// SPDX-License-Identifier: Apache-2.0
// Measured demands: what running jobs were seen to take, by profile and GPU type; it overrides what was predicted.
//
// Enters:  observations of jobs alone on a GPU, any subset of the quantities.
// Leaves:  a demand corrected by them; bytes for a snapshot.
// Units:   as in demand.h; NaN or absent = not measured.
// Cost:    an observation O(log n); at most `capacity` entries of about 200 bytes, the longest unseen goes first.
// Thread class: one thread at a time; a MeasuredDemands that is only read: share freely.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "predict/demand.h"

namespace horus {

struct DemandObservation {
  std::optional<double> gpu_util_pct;     // 0-100, mean over the steps
  std::optional<double> mem_bw_util_pct;  // 0-100
  std::optional<double> mem_mib;          // peak
  std::optional<double> step_time_us;
};

// Mean, spread and largest value; old observations fade once there are kMostWeight of them.
struct RunningMean {
  double weight = 0;
  double mean = 0;
  double variance = 0;
  double largest = 0;  // fades as slowly as the rest, or never: as Add was told
  void Add(double value, bool largest_fades);
  friend bool operator==(const RunningMean&, const RunningMean&) = default;
};

class MeasuredDemands {
 public:
  static constexpr size_t kDefaultCapacity = 65'536;
  static constexpr size_t kMostCapacity = size_t{1} << 20;  // some 300 MiB
  explicit MeasuredDemands(size_t capacity = kDefaultCapacity) : capacity_(capacity) {}

  // `gpu_type` is a canonical catalogue name. Errors: profile 0, no quantity, values that are negative, too large or
  // NaN.
  [[nodiscard]] absl::Status Add(uint64_t profile_id, std::string_view gpu_type, const DemandObservation& observation);

  // Replaces what was measured of this profile on this GPU type and tightens its bounds; sets kDemandMeasured.
  [[nodiscard]] Demand Apply(std::string_view gpu_type, Demand predicted) const;

  [[nodiscard]] size_t size() const { return entries_.size(); }
  [[nodiscard]] size_t capacity() const { return capacity_; }
  [[nodiscard]] uint64_t epoch() const { return epoch_; }  // observations taken so far
  [[nodiscard]] int64_t bytes_held() const;

  // Little-endian, with a checksum; Restore refuses (kDataLoss, kOutOfRange) what Save cannot have written.
  [[nodiscard]] std::string Save() const;
  [[nodiscard]] static absl::StatusOr<MeasuredDemands> Restore(std::span<const uint8_t> bytes);

  friend bool operator==(const MeasuredDemands&, const MeasuredDemands&) = default;

 private:
  static constexpr size_t kQuantities = 4;  // in the order of DemandObservation
  struct Entry {
    std::array<RunningMean, kQuantities> quantities;
    uint64_t seen = 0;  // epoch of the last observation
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  using Key = std::pair<uint64_t, std::string>;
  void Forget();  // the longest unseen, when there are too many

  size_t capacity_;
  uint64_t epoch_ = 0;
  std::map<Key, Entry, std::less<>> entries_;
  std::map<uint64_t, Key> by_age_;  // epoch of the last observation -> key
};

}  // namespace horus
