// SPDX-License-Identifier: Apache-2.0
// Alarms: what is due when, at most once for each key.
//
// Enters:  times and keys.               Leaves:  the next time, and the keys that are due.
// Units:   microseconds of the trace's clock.
// Cost:    O(log n).                     Thread class: one thread at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace horus {

inline constexpr int64_t kNoEvent = std::numeric_limits<int64_t>::max();

class Alarms {
 public:
  // Replaces the key's alarm.
  void Set(int64_t time_us, uint32_t key) {
    Cancel(key);
    time_of_[key] = time_us;
    due_.emplace(time_us, key);
  }
  // Of a key without alarm: nothing.
  void Cancel(uint32_t key) {
    const auto at = time_of_.find(key);
    if (at == time_of_.end()) return;
    due_.erase({at->second, key});
    time_of_.erase(at);
  }
  [[nodiscard]] bool Has(uint32_t key) const { return time_of_.count(key) > 0; }
  [[nodiscard]] int64_t next_us() const { return due_.empty() ? kNoEvent : due_.begin()->first; }
  // The lowest key that is due at that time, whose alarm is over then.
  [[nodiscard]] std::optional<uint32_t> TakeDue(int64_t now_us) {
    if (next_us() != now_us) return std::nullopt;
    const uint32_t key = due_.begin()->second;
    Cancel(key);
    return key;
  }

 private:
  std::set<std::pair<int64_t, uint32_t>> due_;
  std::map<uint32_t, int64_t> time_of_;
};

}  // namespace horus
