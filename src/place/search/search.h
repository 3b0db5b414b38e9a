// SPDX-License-Identifier: Apache-2.0
// Search: the cheapest feasible place for one job in a ledger.
//
// Enters:  a job, the nodes to consider, a scorer.
// Leaves:  the best and the next best place, or how many devices each constraint refused.
// Units:   costs in the policy's unit; ties go to the lowest node id, then the lowest device.
// Cost:    one GPU on all nodes: the states that changed since the class came last, then a few places (ranking.h); else
//          O(devices), one memo access each.
// Thread class: one thread at a time (holds scratch).
#ifndef HORUS_PLACE_SEARCH_SEARCH_H_
#define HORUS_PLACE_SEARCH_SEARCH_H_

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/id_map.h"
#include "place/communication.h"
#include "place/decision.h"
#include "place/search/gang.h"
#include "place/search/index.h"
#include "place/search/ranking.h"
#include "place/search/scorer.h"
#include "place/search/search_nodes.h"
#include "place/state/ledger.h"

namespace horus {

struct Placement {
  double cost = 0;
  double sent = 0;                // of the cost of a gang: see GangPrice
  double straggler = 0;           // the same
  std::vector<PlacedSlot> slots;  // ascending (task, node id, device); empty = none found
};

// The job's speed alone on that type against the fastest that it lists.
[[nodiscard]] double RelativeSpeedOn(const JobView& view, GpuTypeId type);

[[nodiscard]] absl::Status NotFinite(const Policy& policy, NodeId node, double cost);

// The constraint that refused most devices; the subset's edge only where nothing else refused any.
[[nodiscard]] Reason MostRefused(const std::array<uint32_t, kReasonCount>& refused);

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
  Search(Scorer& scorer, uint64_t cache_bytes)
      : scorer_(scorer),
        index_(scorer.policy(), scorer.limits()),
        gangs_(scorer.limits()),
        rankings_(cache_bytes / 4),
        refusals_(scorer, cache_bytes / 4),
        pricer_(scorer),
        scores_(cache_bytes / 4),
        answers_(cache_bytes / 4) {}

  // `nodes`: node rows, ascending id; null = all of the ledger. The scorer's current job is `view`. Its index serves
  // one ledger; other ledgers are scanned.
  //
  // One GPU, or a gang that fits one node: exact. Otherwise the heuristic "fewest nodes, one rack first":
  // per GPU type and sharing mode, the racks that can hold the whole gang are tried before all racks
  // together; inside, nodes that take most tasks come first, cheapest first among equals, and the last
  // tasks go to the tightest node that holds them. Fewest nodes wins, then fewest racks, then cost. Where a gang
  // waits for its slowest GPU that is done again without those that would slow it (SpreadAtPaces).
  // `why`: of a job that fits nowhere, what refused it; without, `refused` and `nearest` say nothing.
  [[nodiscard]] absl::Status Run(const Ledger& ledger, const JobView& view, const std::vector<uint32_t>* nodes,
                                 SearchResult& result, bool why = true);

  // Single nodes and a job of one GPU that is priced by device: the cost of its cheapest place on each of `nodes`, or
  // the constraint that refused most of its devices, into `answers`. Serves one ledger, as the index.
  [[nodiscard]] absl::Status RunEach(const Ledger& ledger, const JobView& view, std::span<const uint32_t> nodes,
                                     std::vector<NodeAnswer>& answers);
  [[nodiscard]] bool CanRunEach(const JobView& view) const {
    return SlotCount(*view.job) == 1 && !scorer_.policy().PricesNode(*view.job);
  }

  // What the job costs on exactly those slots, as far as policies price devices; whether it fits is not asked.
  [[nodiscard]] absl::Status PriceSlots(const Ledger& ledger, const JobView& view, Placement& placement);

  // How much less links between racks carry than nodes can send; at least 1.
  void set_rack_oversubscription(double ratio) { rack_oversubscription_ = ratio; }

  // Jobs of one GPU: at most so many devices are priced, drawn by seed and job; 0 = all.
  void set_max_candidates(uint32_t most, uint64_t seed) {
    max_candidates_ = most;
    sample_seed_ = seed;
  }

  [[nodiscard]] uint64_t bytes_held() const {
    return index_.bytes_held() + gangs_.bytes_held() + rankings_.bytes_held() + refusals_.bytes_held() +
           scores_.bytes_held() + answers_.bytes_held();
  }

 private:
  struct NodeOffer {  // what one node can give a gang of several tasks
    uint32_t node_row = 0;
    uint32_t group = 0;
    int32_t tasks = 0;
    double cost = 0;     // of `tasks` tasks, each GPU by itself
    uint32_t first = 0;  // its devices in offered_, cheapest first
    uint32_t count = 0;  // of them; 0 without GPUs: one entry stands for every task
    double speed = 1;    // GangPace::speed there
  };
  // A slowdown: where a gang waits for its slowest GPU, those that it would slow more are left out.
  static constexpr double kAnyPace = std::numeric_limits<double>::infinity();
  struct Share {  // of an offer: what it holds at some pace
    uint32_t offer = 0;
    int32_t tasks = 0;
    double cost = 0;  // of them, each GPU by itself
  };
  struct Span {                                       // one way to spread a gang
    std::vector<std::pair<uint32_t, int32_t>> picks;  // offer, tasks
    size_t racks = 0;
    double pace = kAnyPace;
    GangPrice price;
    std::vector<PricedGpu> gpus;  // pick by pick; none without GPUs
  };

  [[nodiscard]] absl::Status RunOne(const Ledger& ledger, const JobView& view, uint32_t node_row, NodeAnswer& answer);
  [[nodiscard]] bool CanRank(const JobView& view) const;
  // The best two places of a job of one GPU, by the index. Nothing found: nothing in `result`.
  [[nodiscard]] absl::Status TakeRanked(const Ledger& ledger, const JobView& view, SearchResult& result);
  // The bounded search: of the devices drawn those that may be best are priced, max_candidates_ at
  // most once one was found. Nothing found: nothing in `result`.
  struct Drawn {
    double least = 0;     // that it can cost
    double util_pct = 0;  // of those who are there
    NodeId node = 0;
    int32_t device = 0;
    uint32_t node_row = 0;
    friend auto operator<=>(const Drawn&, const Drawn&) = default;
  };
  static constexpr uint32_t kDrawsACandidate = 4;  // looked at for each that is priced; chosen
  [[nodiscard]] double LeastCostOf(const DeviceRow& device, const JobView& view) const;
  void DrawDevices(const Ledger& ledger, const JobView& view);
  [[nodiscard]] absl::Status TakeSampled(const Ledger& ledger, const JobView& view, SearchResult& result);
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
  void TakeGang(const Ledger& ledger, uint32_t node_row, const JobView& view, int64_t host_tasks, SearchResult& result);
  // The whole gang where `offer` has room for it; no slots unless it costs less than `cutoff`.
  void TakeTogether(const Ledger& ledger, const JobView& view, const NodeOffer& offer, double cutoff,
                    Placement& placement) const;

  // Gangs over nodes (gang.cc). `at`: the best span of a pace, as SpreadGang and SpreadIndexed find it.
  using AtPace = std::function<absl::Status(double pace, Span& best)>;
  [[nodiscard]] absl::Status SpreadAtPaces(const Ledger& ledger, const JobView& view, const AtPace& at,
                                           SearchResult& result);
  void SpreadGang(const Ledger& ledger, const JobView& view, double pace, Span& best) const;
  // What each group could give the gang, for refusals.
  void CountOffers(const Ledger& ledger, const JobView& view, SearchResult& result) const;
  void TakeSpan(const Ledger& ledger, const JobView& view, const Span& best, SearchResult& result) const;
  void TrySpan(const Ledger& ledger, const JobView& view, double pace, std::vector<Share> shares, Span& best) const;
  // Chooses the devices of the span's nodes, and prices them.
  void Settle(const Ledger& ledger, const JobView& view, Span& span) const;
  [[nodiscard]] std::span<const PricedGpu> Offered(const NodeOffer& offer) const {
    return std::span(offered_).subspan(offer.first, offer.count);
  }
  [[nodiscard]] static bool Keeps(const NodeOffer& offer, const PricedGpu& gpu, double pace);
  [[nodiscard]] double OfferCost(const NodeOffer& offer, const JobView& view, int32_t tasks) const;
  [[nodiscard]] Share ShareOf(const JobView& view, uint32_t offer, double pace) const;
  // Appends the cheapest devices of the offer at that pace.
  void AddCheapest(const NodeOffer& offer, size_t count, double pace, std::vector<PricedGpu>& gpus) const;

  // Gangs by the index: the same choice as Scan's. Nothing found: no slots.
  struct OfferRange {  // of a node that was looked at, in offers_
    uint32_t first = 0;
    uint32_t last = 0;
  };
  struct IndexedRack {  // the nodes of one rack and group, and how many tasks they hold at most
    std::span<const GangIndex::Entry> entries;
    int64_t most = 0;
  };
  [[nodiscard]] bool CanIndexGang(const JobView& view) const;
  [[nodiscard]] absl::Status TakeIndexedGang(const Ledger& ledger, const JobView& view, SearchResult& result);
  [[nodiscard]] absl::Status OfferNode(const Ledger& ledger, const JobView& view, uint32_t node_row,
                                       SearchResult& result);
  [[nodiscard]] absl::Status OfferRack(const Ledger& ledger, const JobView& view,
                                       std::span<const GangIndex::Entry> rack, double pace, std::vector<Share>& shares,
                                       int64_t& tasks, SearchResult& result);
  [[nodiscard]] absl::Status SpreadIndexed(const Ledger& ledger, const JobView& view, double pace, Span& best,
                                           SearchResult& result);
  [[nodiscard]] absl::Status SpreadGroup(const Ledger& ledger, const JobView& view,
                                         std::span<const GangIndex::Entry> group, double pace, Span& best,
                                         SearchResult& result);
  [[nodiscard]] absl::Status SpreadOverRacks(const Ledger& ledger, const JobView& view,
                                             std::span<const IndexedRack> racks, double pace, Span& best,
                                             SearchResult& result);

  // Gangs that send gradients.
  [[nodiscard]] bool Linked(const JobView& view) const;
  // How the job runs on the GPUs of the span.
  [[nodiscard]] GangPace PaceOf(const Ledger& ledger, const JobView& view, const Span& span) const;
  // All that the offer has in the part of that kind whose GPUs cost least; false where no part has enough.
  [[nodiscard]] bool ChooseInPart(const Ledger& ledger, const NodeOffer& offer, size_t gpus, double pace, Reach reach,
                                  std::vector<PricedGpu>& part) const;

  Scorer& scorer_;
  DeviceIndex index_;
  GangIndex gangs_;
  Rankings rankings_;
  Refusals refusals_;
  NodePricer pricer_;
  NodeScores scores_;
  NodeAnswers answers_;
  std::vector<Drawn> drawn_;
  SearchResult one_;  // scratch of RunOne
  std::vector<RankedState> popped_;
  std::vector<PricedGpu> fitting_;  // of the node at hand
  std::vector<NodeOffer> offers_;
  std::vector<PricedGpu> offered_;
  IdMap<OfferRange> node_offers_;  // by node row
  double rack_oversubscription_ = 1;
  uint32_t max_candidates_ = 0;
  uint64_t sample_seed_ = 0;
  bool waits_ = false;   // the job at hand is a gang, and the policy counts the speed of its slowest GPU
  bool linked_ = false;  // and what it sends
};

}  // namespace horus

#endif  // HORUS_PLACE_SEARCH_SEARCH_H_
