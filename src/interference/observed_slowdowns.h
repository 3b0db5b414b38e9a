// SPDX-License-Identifier: Apache-2.0
// ObservedSlowdowns: what running tenants were seen to lose beside whom, collected until a commit learns from it.
//
// Enters:  observations of one tenant of a shared device, its co-tenants and its slowdown.
// Leaves:  one running mean for each set of jobs on a kind of device; predicted beside observed for each device; bytes.
// Units:   slowdown = step time shared / step time alone.
// Cost:    an observation about 1 us; at most `capacity` situations of about 0.6 KB and as many device rows; the
//          longest unseen goes first.
// Thread class: one thread at a time; one that is only read: share freely.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/id_map.h"
#include "interference/model.h"

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

  [[nodiscard]] const std::map<uint64_t, Situation>& situations() const { return situations_.by_age; }  // by `seen`
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
  // Entries by key, of which the longest unseen goes first.
  template <typename Entry>
  struct Table {
    std::map<uint64_t, Entry> by_age;  // by the observation that came last
    IdMap<uint64_t> age_of;            // by key

    using Node = typename std::map<uint64_t, Entry>::node_type;
    // Room for an entry more. May fail, and then changes nothing; Touch does not fail after it.
    [[nodiscard]] Node Reserve() {
      age_of.ReserveOne();
      std::map<uint64_t, Entry> one;
      one.emplace();
      return one.extract(one.begin());
    }
    // The entry of the key as the newest; an empty one if there was none.
    Entry& Touch(uint64_t key, uint64_t age, size_t capacity, Node node) {
      if (uint64_t* known = age_of.Find(key)) {
        node = by_age.extract(std::exchange(*known, age));
      } else {
        if (by_age.size() >= capacity) {
          age_of.Erase(KeyOf(by_age.begin()->second));
          by_age.erase(by_age.begin());
        }
        age_of.Insert(key, age);
      }
      node.key() = age;
      return by_age.insert(std::move(node)).position->second;
    }
    // False where the key is there.
    [[nodiscard]] bool Append(uint64_t key, uint64_t age, Entry entry) {
      if (age_of.contains(key)) return false;
      age_of.Insert(key, age);
      by_age.emplace_hint(by_age.end(), age, std::move(entry));
      return true;
    }
    [[nodiscard]] size_t bytes_held() const {
      return by_age.size() * (sizeof(Node) + sizeof(Entry)) + age_of.bytes_held();
    }
  };

  [[nodiscard]] static uint64_t KeyOf(const Situation& situation);
  [[nodiscard]] static uint64_t KeyOf(const DeviceRecord& record);
  void Follow(const SlowdownObservation& observation, Table<DeviceRecord>::Node node);  // does not fail

  size_t capacity_;
  uint64_t epoch_ = 0;
  Table<Situation> situations_;
  Table<DeviceRecord> devices_;
  RunningCalibration calibration_;
};

}  // namespace horus
