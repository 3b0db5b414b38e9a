// SPDX-License-Identifier: Apache-2.0
// DeviceIndex: the devices that may take more, by state; equal ones ordered by what their place costs.
//
// Enters:  a ledger; it is caught up with through the ledger's list of changed nodes.
// Leaves:  per state its devices, cheapest place first; which states came to have devices, in order.
// Units:   costs of Policy::ScorePlace.
// Cost:    O(log devices) per device that changed; about 60 bytes a device.   Thread class: one thread at a time.
#ifndef HORUS_PLACE_SEARCH_DEVICE_INDEX_H_
#define HORUS_PLACE_SEARCH_DEVICE_INDEX_H_

#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "place/fit.h"
#include "place/policy.h"
#include "place/state/ledger.h"

namespace horus {

// Where a device is, as a policy sees it.
[[nodiscard]] PlaceCandidate PlaceOf(const Ledger& ledger, uint32_t node_row, JobId job, int32_t device);

class DeviceIndex {
 public:
  struct Member {
    uint32_t state = 0;
    int32_t device = 0;
    double place = 0;  // ScorePlace
    NodeId node = 0;
    uint32_t node_row = 0;
    friend bool operator<(const Member& a, const Member& b) {
      if (a.state != b.state) return a.state < b.state;
      if (a.place != b.place) return a.place < b.place;
      return a.node != b.node ? a.node < b.node : a.device < b.device;
    }
  };

  // For policies whose ScorePlace depends on the node alone; both must outlive the index.
  DeviceIndex(const Policy& policy, const FitLimits& limits) : policy_(policy), limits_(limits) {}

  // INTERNAL: a place has no finite cost.
  [[nodiscard]] absl::Status CatchUp(const Ledger& ledger);

  // Calls visit(member) in order until it returns false.
  template <typename Visit>
  void ForEach(uint32_t state, const Visit& visit) const {
    for (auto at = members_.lower_bound({.state = state, .device = 0, .place = -kInfinity}); at != members_.end();
         ++at) {
      if (at->state != state || !visit(*at)) return;
    }
  }
  // Below or equal to the cost of every place.
  [[nodiscard]] double place_floor() const { return floor_; }

  struct Opening {
    uint32_t state = 0;
    uint64_t digest = 0;  // of what the state was then: ids are freed and used again
  };
  // States that came to have devices, oldest first; entries from opened_begin() on are held. Whoever has seen less, or
  // another generation, starts anew from the states with devices.
  [[nodiscard]] uint64_t generation() const { return generation_; }
  [[nodiscard]] uint64_t opened_begin() const { return opened_begin_; }
  [[nodiscard]] uint64_t opened_end() const { return opened_begin_ + opened_.size(); }
  [[nodiscard]] std::span<const Opening> opened_since(uint64_t index) const {
    return std::span(opened_).subspan(index - opened_begin_);
  }
  [[nodiscard]] uint32_t state_limit() const { return static_cast<uint32_t>(count_.size()); }
  // Of what the state is, for ids are used again; 0 where it has no devices.
  [[nodiscard]] uint64_t digest(uint32_t state) const { return state < digest_.size() ? digest_[state] : 0; }
  [[nodiscard]] bool has_devices(uint32_t state) const { return digest(state) != 0; }

  [[nodiscard]] uint64_t bytes_held() const;

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  [[nodiscard]] absl::Status TakeNode(const Ledger& ledger, uint32_t node_row);
  void Put(const Member& member, uint32_t flat, uint64_t digest);
  void Take(const Member& member, uint32_t flat);

  const Policy& policy_;
  FitLimits limits_;
  uint64_t ledger_generation_ = 0;  // what of the ledger is known; a ledger's own begins at 1
  uint64_t ledger_seen_ = 0;
  std::vector<double> place_;       // by node row
  std::vector<uint32_t> state_of_;  // by device; kNoState = not in members_
  std::vector<uint32_t> count_;     // devices in members_, by state
  std::vector<uint64_t> digest_;    // of what the state was when a device last came to it; 0 = no devices
  std::set<Member> members_;        // absl's trees leak after a bad_alloc
  double floor_ = 0;
  std::vector<Opening> opened_;
  uint64_t opened_begin_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace horus

#endif  // HORUS_PLACE_SEARCH_DEVICE_INDEX_H_
