// SPDX-License-Identifier: Apache-2.0
// Refusals: for requests of one GPU that no device takes, what refuses each device and which one comes nearest.
//
// Enters:  a ledger, of which only the nodes that changed since the request came last are looked at again.
// Leaves:  devices by Reason, and the nearest miss.
// Units:   distances as in fit.h.
// Cost:    the first time every device; then the devices that changed, each once, and a look at each node. A byte a
// device and 16
//          a node for each request that is kept.
// Thread class: one thread at a time.
#ifndef HORUS_PLACE_SEARCH_REFUSALS_H_
#define HORUS_PLACE_SEARCH_REFUSALS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/id_map.h"
#include "place/decision.h"
#include "place/search/scorer.h"
#include "place/state/ledger.h"

namespace horus {

// The refused node or device that came nearest: the later a constraint is asked that fails, the nearer it was; among
// equals the smaller distance (fit.h), then the one offered first.
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

// Why a node keeps the job out whatever its devices are like, kNone if it does not, and how far it was from fitting.
[[nodiscard]] NearestPlace NodeRefusal(const Policy& policy, const Ledger& ledger, uint32_t node_row,
                                       const JobSpec& job);

class Refusals {
 public:
  Refusals(Scorer& scorer, uint64_t most_bytes) : scorer_(scorer), most_bytes_(most_bytes) {}

  using Counts = std::array<uint32_t, kReasonCount>;
  // On all nodes of the ledger, always the same one. The scorer's current job is `view`; it fits nowhere.
  [[nodiscard]] absl::Status Count(const Ledger& ledger, const JobView& view, Counts& refused, NearestPlace& nearest);

  [[nodiscard]] uint64_t bytes_held() const {
    return of_request_.bytes_held() + bytes_ + last_change_.capacity() * sizeof(uint64_t);
  }

 private:
  struct Miss {  // NearestPlace of one node, in its order
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
    std::vector<bool> stale;       // by node row: its miss is not so near any more, nor is another of its devices
  };
  [[nodiscard]] Table& TableOf(const Ledger& ledger, const JobView& view);
  // Learns which changes of devices are the last ones.
  void FollowLog(const Ledger& ledger);
  // Whether the change tells nothing that a later one does not tell too.
  [[nodiscard]] bool IsOld(const Ledger& ledger, uint64_t change) const;
  static void Set(uint32_t device, Reason reason, Table& table);
  [[nodiscard]] absl::Status LookAtDevice(const Ledger& ledger, const JobView& view, const Ledger::Touched& touched,
                                          Table& table);
  [[nodiscard]] absl::Status LookAt(const Ledger& ledger, const JobView& view, uint32_t node_row, bool memo,
                                    Table& table);

  Scorer& scorer_;
  uint64_t most_bytes_;  // beyond, all are forgotten
  uint64_t bytes_ = 0;
  uint64_t epoch_ = 0;                        // of the model
  uint64_t generation_ = 0;                   // of the ledger
  uint64_t followed_ = 0;                     // of its changes
  std::vector<uint64_t> last_change_;         // by device
  IdMap<std::unique_ptr<Table>> of_request_;  // by JobView::request
};

}  // namespace horus

#endif  // HORUS_PLACE_SEARCH_REFUSALS_H_
