// SPDX-License-Identifier: Apache-2.0
// NodeAnswers: what single nodes answered to a request of one GPU, kept until they change.
//
// Enters:  a ledger, always the same one; a request.
// Leaves:  an answer a node row, to be filled in where it is not known.
// Units:   costs in the policy's unit.
// Cost:    the changes of the ledger since the request came last; 16 bytes a node for each request that is kept.
// Thread class: one thread at a time.
#ifndef HORUS_PLACE_SEARCH_NODE_ANSWERS_H_
#define HORUS_PLACE_SEARCH_NODE_ANSWERS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/id_map.h"
#include "place/decision.h"
#include "place/state/ledger.h"

namespace horus {

struct NodeAnswer {
  double cost = 0;                // of the cheapest place; where the node refuses, nothing
  Reason reason = Reason::kNone;  // the constraint that refused most devices; kNone = there is a place
  bool known = false;
};

class NodeAnswers {
 public:
  explicit NodeAnswers(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // By node row; those of nodes that changed since are unknown. Valid until the next call. `request` and `epoch` (of
  // the model) stand for everything else that answers depend on.
  [[nodiscard]] std::span<NodeAnswer> Of(const Ledger& ledger, uint64_t request, uint64_t epoch);

  [[nodiscard]] uint64_t bytes_held() const { return of_request_.bytes_held() + bytes_; }

 private:
  struct Table {
    uint64_t generation = 0;  // of the ledger
    uint64_t seen = 0;        // of its changes
    std::vector<NodeAnswer> answers;
  };
  uint64_t most_bytes_;  // beyond, all are forgotten
  uint64_t bytes_ = 0;
  uint64_t epoch_ = 0;
  IdMap<std::unique_ptr<Table>> of_request_;
};

}  // namespace horus

#endif  // HORUS_PLACE_SEARCH_NODE_ANSWERS_H_
