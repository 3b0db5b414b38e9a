// SPDX-License-Identifier: Apache-2.0
// Paces: how much each device slows a GPU of a class of gangs, coarsely, kept until the device changes. Gangs
// over nodes look only at nodes that hold enough of them.
//
// Enters:  a ledger, a scorer with the current job.
// Leaves:  a byte a device, which never says more than its slowdown.
// Cost:    a new class judges every device, a known one those that changed and that it asks for; 1 byte a device for
//          each class, 24 for all.
// Thread class: one thread at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/id_map.h"
#include "place/search/scorer.h"
#include "place/state/ledger.h"

namespace horus {

// The devices of a ledger in the order in which their states last changed. Between two calls of CatchUp a device that
// came back to its state did not change.
class DeviceChanges {
 public:
  void CatchUp(const Ledger& ledger);
  [[nodiscard]] uint64_t count() const { return count_; }
  // Calls visit(device) for each device that changed after the first `seen` changes.
  template <typename Visit>
  void ForEachSince(uint64_t seen, const Visit& visit) const {
    for (uint32_t at = newest_; at != kNone && devices_[at].change > seen; at = devices_[at].older) visit(at);
  }
  [[nodiscard]] uint64_t bytes_held() const { return devices_.capacity() * sizeof(Device); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Device {
    uint64_t digest = 0;  // of its state
    uint64_t change = 0;  // the number of its last change, from 1 on; 0 = none, and not in the list
    uint32_t newer = kNone;
    uint32_t older = kNone;
  };
  void Take(const Ledger& ledger, const Ledger::Touched& touched);
  void MoveToFront(uint32_t device);

  uint64_t generation_ = 0;  // of the ledger; 0 = none
  uint64_t seen_ = 0;        // of its changes
  uint64_t count_ = 0;
  uint32_t newest_ = kNone;
  std::vector<Device> devices_;
};

class DevicePaces {
 public:
  static constexpr uint8_t kUnknown = 0;  // ask Judge
  static constexpr uint8_t kNever = 127;  // the device takes no GPU of the class

  explicit DevicePaces(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // By device of the ledger, valid until the next call; the caller may write what Judge says.
  [[nodiscard]] absl::StatusOr<std::span<uint8_t>> Of(const Ledger& ledger, Scorer& scorer, const JobView& view,
                                                      bool timed);
  // `timed` = false: a device that takes a GPU of the class is one that slows nothing, at whatever speed.
  [[nodiscard]] static absl::Status Judge(const Ledger& ledger, Scorer& scorer, const JobView& view, bool timed,
                                          uint32_t device, uint8_t& pace);
  // Whether the class came before and looked at many nodes without its paces: those of a class that never comes again,
  // or looks at few, cost more than they save.
  [[nodiscard]] bool Pays(const Scorer& scorer, const JobView& view);
  void LookedAt(const JobView& view, size_t nodes, size_t of);

  // The largest byte of a device that slows a GPU by at most `slowdown`; and the largest known one of which all do.
  [[nodiscard]] static uint8_t Within(double slowdown);
  [[nodiscard]] static uint8_t SurelyWithin(double slowdown);
  // Number of bytes that are at most `most`, which is below kNever.
  [[nodiscard]] static int32_t Count(std::span<const uint8_t> paces, uint8_t most) {
    // Eight bytes at once: all are below 128, so 128 + most - byte keeps its upper bit where the byte is at most
    // `most`. The product adds up those bits.
    constexpr uint64_t kEach = 0x0101010101010101, kUpper = 0x80 * kEach;
    int32_t count = 0;
    size_t i = 0;
    for (; i + sizeof(uint64_t) <= paces.size(); i += sizeof(uint64_t)) {
      uint64_t bytes = 0;
      std::memcpy(&bytes, &paces[i], sizeof(bytes));
      count += static_cast<int32_t>((((kUpper + kEach * most - bytes) & kUpper) >> 7) * kEach >> 56);
    }
    for (; i < paces.size(); ++i) count += paces[i] <= most ? 1 : 0;
    return count;
  }

  [[nodiscard]] uint64_t bytes_held() const {
    return of_class_.bytes_held() + pays_.bytes_held() + bytes_ + changes_.bytes_held();
  }

 private:
  struct Table {
    uint64_t generation = 0;  // of the ledger
    uint64_t seen = 0;        // of changes_
    std::vector<uint8_t> paces;
  };
  void Follow(const Scorer& scorer);
  [[nodiscard]] Table& TableOf(uint64_t key, uint64_t bytes);

  uint64_t most_bytes_;  // above it the class that came least recently is dropped
  uint64_t bytes_ = 0;
  uint64_t epoch_ = 0;          // of the model
  std::vector<uint64_t> keys_;  // of the classes, the one that came last at the end
  DeviceChanges changes_;
  IdMap<std::unique_ptr<Table>> of_class_;
  IdMap<bool> pays_;  // by JobView::digest
};

}  // namespace horus
