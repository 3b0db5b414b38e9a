// SPDX-License-Identifier: Apache-2.0
// Search: the cheapest feasible place for one job in a ledger.
//
// Enters:  a job, the nodes to consider, a scorer.
// Leaves:  the best and the next best place, or how many devices each constraint refused.
// Units:   costs in the policy's unit; ties go to the lowest node id, then the lowest device.
// Cost:    one GPU on all nodes: the states that changed since the class came last, then a few places (ranking.h); else
//          O(devices), one memo access each.
// Thread class: one thread at a time (holds scratch).
#ifndef HORUS_PLACE_SEARCH_H_
#define HORUS_PLACE_SEARCH_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "place/decision.h"
#include "place/device_index.h"
#include "place/ledger.h"
#include "place/ranking.h"
#include "place/refusals.h"
#include "place/scorer.h"
#include "place/search_nodes.h"

namespace horus {

struct Placement {
  double cost = 0;
  std::vector<PlacedSlot> slots;  // ascending (task, node id, device); empty = none found
};

struct SearchResult {
  Placement best;
  // The next best: another device; for several GPUs another node, or GPUs of another type or sharing mode on the
  // same one. Empty where the gang spans nodes.
  Placement second;
  bool spans_nodes = false;
  std::array<uint32_t, kReasonCount> refused = {};  // devices, by Reason, only where nothing was found; of a job
                                                    // without GPUs nodes, here and below
  uint32_t fitting = 0;                             // devices that fit by themselves
  uint32_t most_fitting = 0;   // of a gang: the most GPUs that one choice of type and mode could give it
  uint32_t most_node_row = 0;  // the node with most of them
  NearestPlace nearest;        // of what was refused; kNone = not looked for
};

class Search {
 public:
  Search(Scorer& scorer, uint64_t most_bytes)
      : scorer_(scorer),
        index_(scorer.policy(), scorer.limits()),
        rankings_(most_bytes / 2),
        refusals_(scorer, most_bytes / 2),
        pricer_(scorer),
        scores_(most_bytes / 2) {}

  // `nodes`: node rows, ascending id; null = all of the ledger. The scorer's current job is `view`. Its index serves
  // one ledger; other ledgers are scanned.
  //
  // One GPU, or a gang that fits one node: exact. Otherwise the heuristic "fewest nodes, one rack first":
  // per GPU type and sharing mode, the racks that can hold the whole gang are tried before all racks
  // together; inside, nodes that take most tasks come first, cheapest first among equals, and the last
  // tasks go to the tightest node that holds them. Fewest nodes wins, then fewest racks, then cost.
  [[nodiscard]] absl::Status Run(const Ledger& ledger, const JobView& view, const std::vector<uint32_t>* nodes,
                                 SearchResult& result);

  [[nodiscard]] uint64_t bytes_held() const {
    return index_.bytes_held() + rankings_.bytes_held() + refusals_.bytes_held() + scores_.bytes_held();
  }

 private:
  struct Fitting {
    double cost = 0;
    int32_t device = 0;
    uint32_t group = 0;  // GPU type and sharing mode: a gang never mixes them
  };
  struct NodeOffer {  // what one node can give a gang of several tasks
    uint32_t node_row = 0;
    uint32_t group = 0;
    int32_t tasks = 0;
    double cost = 0;     // of `tasks` tasks
    uint32_t first = 0;  // its devices in offered_, cheapest first
    uint32_t step = 1;   // 0 without GPUs: one entry stands for every task
  };
  struct Span {                                       // one way to spread a gang
    std::vector<std::pair<uint32_t, int32_t>> picks;  // offer, tasks
    size_t racks = 0;
    double cost = 0;
  };

  [[nodiscard]] bool CanRank(const JobView& view) const;
  // The best two places of a job of one GPU, by the index. Nothing found: nothing in `result`.
  [[nodiscard]] absl::Status TakeRanked(const Ledger& ledger, const JobView& view, SearchResult& result);
  [[nodiscard]] absl::Status Scan(const Ledger& ledger, const JobView& view, std::span<const uint32_t> nodes, bool all,
                                  SearchResult& result);
  [[nodiscard]] absl::Status GatherNode(const Ledger& ledger, uint32_t node_row, const JobView& view,
                                        SearchResult& result);
  // The same for policies that price nodes (search_nodes.cc): one task, and the offers of a gang.
  [[nodiscard]] absl::Status RunNodes(const Ledger& ledger, const JobView& view, std::span<const uint32_t> nodes,
                                      bool all, SearchResult& result);
  [[nodiscard]] absl::Status TakeNode(const Ledger& ledger, const JobView& view, uint32_t node_row, double cost,
                                      Placement& placement);
  [[nodiscard]] absl::Status GatherPriced(const Ledger& ledger, const JobView& view, uint32_t node_row,
                                          SearchResult& result);
  static void AddRefusals(const Ledger& ledger, const JobSpec& job, uint32_t node_row, const NodeOutcome& outcome,
                          SearchResult& result);
  void TakeSingle(uint32_t node_row, SearchResult& result);
  void TakeGang(uint32_t node_row, const JobView& view, int64_t host_tasks, SearchResult& result);
  void SpreadGang(const Ledger& ledger, const JobView& view, SearchResult& result);
  void TrySpan(const Ledger& ledger, const JobView& view, std::vector<uint32_t> offers, Span& best) const;
  [[nodiscard]] const Fitting& Offered(const NodeOffer& offer, size_t slot) const {
    return offered_[offer.first + offer.step * slot];
  }
  [[nodiscard]] double OfferCost(const NodeOffer& offer, const JobView& view, int32_t tasks) const;

  Scorer& scorer_;
  DeviceIndex index_;
  Rankings rankings_;
  Refusals refusals_;
  NodePricer pricer_;
  NodeScores scores_;
  std::vector<RankedState> popped_;
  std::vector<Fitting> fitting_;  // of the node at hand
  std::vector<NodeOffer> offers_;
  std::vector<Fitting> offered_;
};

}  // namespace horus

#endif  // HORUS_PLACE_SEARCH_H_
