// SPDX-License-Identifier: Apache-2.0
// GangIndex: how many devices of each node may take more, by GPU type and sharing mode, rack by rack.
//
// Enters:  a ledger; it is caught up with through the ledger's list of changed nodes.
// Leaves:  entries in ascending (group, rack, node id). Their counts hold for any job: no job fits more.
// Units:   devices.
// Cost:    O(devices of a node) per change; about 40 bytes a node.   Thread class: one thread at a time.
#ifndef HORUS_PLACE_SEARCH_GANG_INDEX_H_
#define HORUS_PLACE_SEARCH_GANG_INDEX_H_

#include <cstdint>
#include <span>
#include <vector>

#include "place/fit.h"
#include "place/state/ledger.h"

namespace horus {

class GangIndex {
 public:
  struct Entry {  // the devices of one group, see GroupOf, on one node
    uint32_t group = 0;
    uint32_t node_row = 0;
    uint64_t rack = 0;
    NodeId node = 0;
    int32_t open = 0;  // that may take more
  };

  explicit GangIndex(const FitLimits& limits) : limits_(limits) {}

  void CatchUp(const Ledger& ledger);
  [[nodiscard]] std::span<const Entry> entries() const { return entries_; }
  [[nodiscard]] uint64_t bytes_held() const;

 private:
  void StartAnew(const Ledger& ledger);
  void Count(const Ledger& ledger, uint32_t node_row);

  FitLimits limits_;
  uint64_t ledger_generation_ = 0;  // what of the ledger is known; a ledger's own begins at 1
  uint64_t ledger_seen_ = 0;
  std::vector<Entry> entries_;
  std::vector<uint32_t> first_;      // by node row: where its list in positions_ begins; one more at the end
  std::vector<uint32_t> positions_;  // of its entries
};

}  // namespace horus

#endif  // HORUS_PLACE_SEARCH_GANG_INDEX_H_
