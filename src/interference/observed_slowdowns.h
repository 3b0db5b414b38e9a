// SPDX-License-Identifier: Apache-2.0
// ObservedSlowdowns: what running tenants were seen to lose beside whom, collected until a commit learns from it.
//
// Enters:  observations of one tenant of a shared device, its co-tenants and its slowdown.
// Leaves:  one running mean for each set of jobs on a kind of device; predicted beside observed for each device; bytes.
// Units:   slowdown = step time shared / step time alone.
// Cost:    an observation about 1 us; at most `capacity` situations of about 0.6 KB and as many device rows; the
// longest
//          unseen goes first.
// Thread class: one thread at a time; one that is only read: share freely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/id_map.h"
#include "device/sharing_mode.h"
#include "interference/model.h"
#include "predict/demand.h"

namespace horus {

struct SlowdownObservation {
  std::string_view gpu;  // canonical type name
  SharingMode mode = SharingMode::kTimeSlice;
  float compute_share = 1;
  const Demand* victim = nullptr;         // profile not 0
  std::span<const Demand* const> others;  // 1 to kMostCoTenants, profiles not 0, any order
  double slowdown = 1;                    // kLeastMeasuredSlowdown to kMostMeasuredSlowdown
  uint64_t device_id = 0;                 // the caller's; 0 = not to be followed
  double predicted = 0;                   // what the decision said; 0 = unknown
  double predicted_upper = 0;
};
inline constexpr size_t kMostCoTenants = 15;

// Which tenants met where, and how slow the first of them was.
struct Situation {
  std::string gpu;
  SharingMode mode = SharingMode::kTimeSlice;
  float compute_share = 1;
  std::vector<Demand> tenants;  // the victim, then the others by ascending profile; as last seen

  // Of ln(slowdown). Values beyond what was seen before count only as far as they are credible; old ones fade.
  double weight = 0, mean = 0, variance = 0;
  uint64_t seen = 0;  // the observation that came last, counted from 1
  friend bool operator==(const Situation&, const Situation&) = default;
};

// Predicted and observed side by side, as last seen of a tenant on a device.
struct DeviceRecord {
  uint64_t device_id = 0, profile_id = 0;
  double slowdown = 1, predicted = 0, predicted_upper = 0;
  uint64_t observations = 0;
  uint64_t seen = 0;
  friend bool operator==(const DeviceRecord&, const DeviceRecord&) = default;
};

// Over all observations that came with a prediction; the last thousand count.
struct RunningCalibration {
  double weight = 0;
  double error = 0;    // mean |observed / predicted - 1|
  double bias = 0;     // mean of observed / predicted - 1
  double covered = 0;  // share at or below the predicted bound, of those that had one
  double bound_weight = 0;
  friend bool operator==(const RunningCalibration&, const RunningCalibration&) = default;
};

class ObservedSlowdowns {
 public:
  static constexpr size_t kMostCapacity = 16'384;
  explicit ObservedSlowdowns(size_t capacity = kMostCapacity);

  // INVALID_ARGUMENT names field, expected and found; nothing is changed then, nor when memory runs out.
  [[nodiscard]] absl::Status Add(const SlowdownObservation& observation);

  [[nodiscard]] const std::vector<Situation>& situations() const { return situations_; }  // in no order that matters
  [[nodiscard]] const std::vector<DeviceRecord>& devices() const { return devices_; }     // likewise
  [[nodiscard]] std::vector<DeviceRecord> DevicesOldestFirst() const;
  [[nodiscard]] const RunningCalibration& calibration() const { return calibration_; }
  [[nodiscard]] uint64_t epoch() const { return epoch_; }  // observations taken so far
  [[nodiscard]] size_t capacity() const { return capacity_; }
  [[nodiscard]] size_t bytes_held() const;

  // Little-endian with a checksum; Restore refuses (kDataLoss, kOutOfRange) what Save cannot have written.
  [[nodiscard]] std::string Save() const;
  [[nodiscard]] static absl::StatusOr<ObservedSlowdowns> Restore(std::span<const uint8_t> bytes);

  friend bool operator==(const ObservedSlowdowns& a, const ObservedSlowdowns& b) { return a.Save() == b.Save(); }

 private:
  // Slots of a table by key, the longest unseen first to be used again.
  class Slots {
   public:
    void ReserveOne();  // may fail, and then changes nothing; Touch and Append do not fail after it
    // The slot of the key; a new one, or the longest unseen when there are `capacity`. `fresh` says which.
    size_t Touch(uint64_t key, size_t capacity, bool& fresh);
    void Append(uint64_t key);  // as the latest
    [[nodiscard]] bool Contains(uint64_t key) const { return slot_of_.contains(key); }
    [[nodiscard]] size_t size() const { return links_.size(); }
    [[nodiscard]] std::vector<size_t> OldestFirst() const;
    [[nodiscard]] size_t bytes_held() const;

   private:
    static constexpr size_t kNone = ~size_t{0};
    struct Link {
      uint64_t key;
      size_t older, newer;
    };
    void Unlink(size_t slot);
    void MakeNewest(size_t slot);
    IdMap<size_t> slot_of_;
    std::vector<Link> links_;
    size_t oldest_ = kNone, newest_ = kNone;
  };

  [[nodiscard]] static uint64_t KeyOf(const Situation& situation);
  [[nodiscard]] static uint64_t KeyOf(const DeviceRecord& record);
  void Follow(const SlowdownObservation& observation);  // does not fail

  size_t capacity_;
  uint64_t epoch_ = 0;
  std::vector<Situation> situations_;
  Slots situation_slots_;
  std::vector<DeviceRecord> devices_;
  Slots device_slots_;
  RunningCalibration calibration_;
};

}  // namespace horus
