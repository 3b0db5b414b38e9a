// SPDX-License-Identifier: Apache-2.0
// Indices that the search keeps over a ledger and updates from the ledger's log of changes: open devices, nodes for
// gangs, answers of nodes, refusals, the paces of devices.
#pragma once

#include <cstring>
#include <set>

#include "place/search/scorer.h"
#include "place/state/ledger.h"

namespace horus {

// ---- DeviceIndex: the devices that may take more, by state; in a state by the cost of their place.
// Cost: O(log devices) per device that changed; about 60 bytes a device.

// A device's place, as a policy sees it.
[[nodiscard]] PlaceCandidate PlaceOf(const Ledger& ledger, uint32_t node_row, JobId job, int32_t device);

class DeviceIndex {
 public:
  struct Member {
    int32_t device = 0;
    uint32_t node_row = 0;
    double place = 0;  // ScorePlace
    NodeId node = 0;
    friend bool operator<(const Member& a, const Member& b) {
      if (a.place != b.place) return a.place < b.place;
      return a.node != b.node ? a.node < b.node : a.device < b.device;
    }
  };

  // For policies whose ScorePlace depends on the node alone. Both arguments must outlive the index.
  DeviceIndex(const Policy& policy, const FitLimits& limits) : policy_(policy), limits_(limits) {}

  // Error: INTERNAL (a place without finite cost).
  [[nodiscard]] absl::Status CatchUp(const Ledger& ledger);

  // Calls visit(member) in order until it returns false.
  template <typename Visit>
  void ForEach(uint32_t state, const Visit& visit) const {
    for (const Member& member : members_[state]) {
      if (!visit(member)) return;
    }
  }
  // A lower bound on the cost of every place.
  [[nodiscard]] double place_floor() const { return floor_; }

  struct Opening {
    uint32_t state = 0;
    uint64_t digest = 0;  // of the state at that time, since ids are reused
  };
  // Openings: states that got their first device, oldest first. Those from opened_begin() on are kept. A reader that
  // has seen less, or another generation, must start again from all states with devices.
  [[nodiscard]] uint64_t generation() const { return generation_; }
  [[nodiscard]] uint64_t opened_begin() const { return opened_begin_; }
  [[nodiscard]] uint64_t opened_end() const { return opened_begin_ + opened_.size(); }
  [[nodiscard]] std::span<const Opening> opened_since(uint64_t index) const {
    return std::span(opened_).subspan(index - opened_begin_);
  }
  [[nodiscard]] uint32_t state_limit() const { return static_cast<uint32_t>(members_.size()); }
  // Digest of the state, since ids are reused; 0 = it has no devices.
  [[nodiscard]] uint64_t digest(uint32_t state) const { return state < digest_.size() ? digest_[state] : 0; }
  [[nodiscard]] bool has_devices(uint32_t state) const { return digest(state) != 0; }

  [[nodiscard]] uint64_t bytes_held() const;

 private:
  using Members = std::set<Member>;  // not absl's: its trees leak after a bad_alloc
  // Of what a change may have touched.
  [[nodiscard]] absl::Status TakeNode(const Ledger& ledger, const Ledger::Touched& touched);
  void Put(const Member& member, uint32_t flat, uint32_t state, uint64_t digest, Members::node_type into);
  [[nodiscard]] Members::node_type Take(const Member& member, uint32_t flat);

  const Policy& policy_;
  FitLimits limits_;
  uint64_t ledger_generation_ = 0;  // of the ledger when last followed; 0 = never
  uint64_t ledger_seen_ = 0;        // its changes that were followed
  std::vector<double> place_;       // by node row
  std::vector<uint32_t> state_of_;  // by device; kNoState = not in members_
  std::vector<Members> members_;    // by state
  std::vector<uint64_t> digest_;    // of the state when a device last came to it; 0 = no devices
  uint64_t open_ = 0;               // devices in members_
  double floor_ = 0;
  std::vector<Opening> opened_;
  uint64_t opened_begin_ = 0;
  uint64_t generation_ = 0;
};

// ---- GangIndex: number of devices of each node that may take more, by GPU type and sharing mode, rack by rack.
// Cost: O(devices of a node) per change; about 40 bytes a node.

class GangIndex {
 public:
  struct Entry {  // the devices of one group (GroupOf) on one node
    uint32_t group = 0;
    uint32_t node_row = 0;
    uint64_t rack = 0;
    NodeId node = 0;
    int32_t open = 0;           // devices that may take more
    uint32_t first_device = 0;  // of the node, as is the next
    uint32_t devices = 0;
    bool whole = false;  // all of them are in the group
  };

  struct Rack {  // its entries in one group, by node
    uint32_t group = 0;
    uint64_t rack = 0;
    uint32_t begin = 0;  // in entries()
    uint32_t end = 0;
  };

  explicit GangIndex(const FitLimits& limits) : limits_(limits) {}

  void CatchUp(const Ledger& ledger);
  [[nodiscard]] std::span<const Entry> entries() const { return entries_; }
  [[nodiscard]] std::span<const Rack> racks() const { return racks_; }  // by group, then rack
  [[nodiscard]] uint64_t bytes_held() const;

 private:
  void StartAnew(const Ledger& ledger);
  void Count(const Ledger& ledger, uint32_t node_row);

  FitLimits limits_;
  uint64_t ledger_generation_ = 0;  // as in DeviceIndex
  uint64_t ledger_seen_ = 0;
  std::vector<Entry> entries_;
  std::vector<Rack> racks_;
  std::vector<uint32_t> first_;      // by node row: begin of its part of positions_; one more at the end
  std::vector<uint32_t> positions_;  // in entries_
};

// ---- NodeAnswers: answers of single nodes to requests of one GPU, kept until the node changes.
// Cost: the changes of the ledger since the request came last; 16 bytes a node for each request that is kept.

struct NodeAnswer {
  double cost = 0;                // of the cheapest place; undefined if the node refuses
  Reason reason = Reason::kNone;  // the constraint that refused most devices; kNone = there is a place
  bool known = false;
};

class NodeAnswers {
 public:
  explicit NodeAnswers(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // The answers to `request`, by node row, valid until the next call; those of changed nodes are not `known`. Answers
  // depend on nothing but the ledger, `request` and the model's `epoch`.
  [[nodiscard]] std::span<NodeAnswer> Of(const Ledger& ledger, uint64_t request, uint64_t epoch);

  [[nodiscard]] uint64_t bytes_held() const { return of_request_.bytes_held() + bytes_; }

 private:
  struct Table {
    uint64_t generation = 0;  // of the ledger
    uint64_t seen = 0;        // of its changes
    std::vector<NodeAnswer> answers;
  };
  uint64_t most_bytes_;  // above it everything is dropped
  uint64_t bytes_ = 0;
  uint64_t epoch_ = 0;
  IdMap<std::unique_ptr<Table>> of_request_;
};

// The refused node or device that came nearest: the one whose failing constraint is checked last; among equals the
// smaller distance (fit.h), then the one offered first.
struct NearestPlace {
  double distance = 0;
  uint32_t node_row = 0;
  int32_t device = -1;            // -1 = the node as a whole
  Reason reason = Reason::kNone;  // kNone = nothing was refused

  [[nodiscard]] bool IsNearerThan(const NearestPlace& other) const {
    return reason == other.reason ? distance < other.distance : AskedAt(reason) > AskedAt(other.reason);
  }
  void Offer(const NearestPlace& other) {
    if (other.IsNearerThan(*this)) *this = other;
  }
};

// ---- Refusals: for requests of one GPU that fit nowhere, the reason of each device and the nearest miss.
// Cost: at first every device; later each changed device once, and a look at each node. 1 byte a device and 16 a node
// for each request that is kept.

// Why the node refuses the job whatever its devices are, and how far it was from fitting; kNone = it does not.
[[nodiscard]] NearestPlace NodeRefusal(const Policy& policy, const Ledger& ledger, uint32_t node_row,
                                       const JobSpec& job);

class Refusals {
 public:
  Refusals(Scorer& scorer, uint64_t most_bytes) : scorer_(scorer), most_bytes_(most_bytes) {}

  using Counts = std::array<uint32_t, kReasonCount>;
  // Over all nodes of `ledger`, which must be the same in every call. `view` must be the scorer's current job and fit
  // nowhere.
  [[nodiscard]] absl::Status Count(const Ledger& ledger, const JobView& view, Counts& refused, NearestPlace& nearest);

  [[nodiscard]] uint64_t bytes_held() const { return bytes_ + BytesIn(of_request_, last_change_); }

 private:
  struct Miss {  // NearestPlace of one node
    double distance = 0;
    int32_t device = -1;
    Reason reason = Reason::kNone;
  };
  struct Table {
    uint64_t generation = 0;  // of the ledger; 0 = not whole
    uint64_t seen = 0;        // of its changes
    Counts counts = {};
    std::vector<uint8_t> reasons;  // by device
    std::vector<Miss> misses;      // by node row
    std::vector<bool> stale;       // by node row: the node's nearest device is now farther than its miss says
  };
  [[nodiscard]] Table& TableOf(const Ledger& ledger, const JobView& view);
  // Updates last_change_.
  void FollowLog(const Ledger& ledger);
  // Whether a later change of the same device follows.
  [[nodiscard]] bool IsOld(const Ledger& ledger, uint64_t change) const;
  static void Set(uint32_t device, Reason reason, Table& table);
  [[nodiscard]] absl::Status LookAtDevice(const Ledger& ledger, const JobView& view, const Ledger::Touched& touched,
                                          Table& table);
  [[nodiscard]] absl::Status LookAt(const Ledger& ledger, const JobView& view, uint32_t node_row, bool memo,
                                    Table& table);

  Scorer& scorer_;
  uint64_t most_bytes_;  // above it everything is dropped
  uint64_t bytes_ = 0;
  uint64_t epoch_ = 0;                        // of the model
  uint64_t generation_ = 0;                   // of the ledger
  uint64_t followed_ = 0;                     // of its changes
  std::vector<uint64_t> last_change_;         // by device
  IdMap<std::unique_ptr<Table>> of_request_;  // by JobView::request
};

// ---- DevicePaces: how much each device slows a GPU of a class of gangs, coarsely, kept until the device changes.
// Gangs over nodes look only at nodes that hold enough of them. A device's byte never says more than its slowdown.
// Cost: a new class judges every device, a known one those that changed and that it asks for; 1 byte a device for each
// class, 24 for all.

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
  [[nodiscard]] uint64_t bytes_held() const { return BytesIn(devices_); }

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

  [[nodiscard]] uint64_t bytes_held() const { return bytes_ + BytesIn(of_class_, pays_, changes_); }

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
