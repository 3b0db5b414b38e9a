// SPDX-License-Identifier: Apache-2.0
// Search: the cheapest feasible place for one job in a ledger.
//
// Enters:  a job, the nodes to consider, a scorer.
// Leaves:  the best and the next best place, or how many devices each constraint refused.
// Units:   costs in the policy's unit; ties go to the lowest node id, then the lowest device.
// Cost:    one GPU on all nodes: the states that changed since the job's class last came, then a few places
//          (ranking.h); else O(devices), one memo access each.
// Thread class: one thread at a time (holds scratch).
#pragma once

#include <algorithm>

#include "place/search/gang.h"
#include "place/search/ranking.h"
#include "place/search/search_nodes.h"
#include "place/state/communication.h"

namespace horus {

struct Placement {
  double cost = 0;
  double sent = 0;       // of a gang: GangPrice::sent
  double straggler = 0;  // of a gang: GangPrice::straggler
  PlacedSlots slots;     // ascending (task, node id, device); empty = none found
};

[[nodiscard]] absl::Status NotFinite(const Policy& policy, NodeId node, double cost);

// The constraint that refused most devices; kNotInSubset only if no other refused any.
[[nodiscard]] Reason MostRefused(const std::array<uint32_t, kReasonCount>& refused);

struct SearchResult {
  Placement best;
  // The next best place: another device; for several GPUs another node, or another type or sharing mode on the same
  // node. Empty if the gang spans nodes.
  Placement second;
  bool spans_nodes = false;
  // Only if nothing was found; for a job without GPUs all counts are of nodes.
  std::array<uint32_t, kReasonCount> refused = {};  // devices, by Reason
  uint32_t fitting = 0;                             // devices that fit by themselves
  uint32_t most_fitting = 0;                        // of a gang: most GPUs that one type and sharing mode offers
  uint32_t most_node_row = 0;                       // the node with most of them
  NearestPlace nearest;                             // kNone = not computed
};

class Search {
 public:
  Search(Scorer& scorer, uint64_t cache_bytes)
      : scorer_(scorer),
        index_(scorer.policy(), scorer.limits()),
        gangs_(scorer.limits()),
        paces_(cache_bytes / 4),
        rankings_(scorer, index_, cache_bytes / 4),
        refusals_(scorer, cache_bytes / 4),
        pricer_(scorer),
        scores_(cache_bytes / 4),
        answers_(cache_bytes / 4) {}

  // `nodes`: node rows, ascending id; null = all. `view` must be the scorer's current job. The indices serve the first
  // ledger; other ledgers are scanned. `why` = false leaves `refused` and `nearest` undefined.
  //
  // Exact for one GPU and for gangs that fit one node. Other gangs use the heuristic "fewest nodes, one rack first":
  // for each GPU type and sharing mode it tries the racks that can hold the whole gang, else all racks together. It
  // takes the nodes that hold most tasks first, among equals the cheapest, and puts the last tasks on the tightest node
  // that holds them. Fewest nodes win, then fewest racks, then cost. A gang that waits for its slowest GPU is then
  // spread again without GPUs that would slow it (SpreadAtPaces).
  [[nodiscard]] absl::Status Run(const Ledger& ledger, const JobView& view, const std::vector<uint32_t>* nodes,
                                 SearchResult& result, bool why = true);

  // For a job with CanRunEach: writes to `answers`, for each of `nodes` by itself, the cost of the cheapest place, or
  // the constraint that refused most devices. Serves one ledger, as the indices.
  [[nodiscard]] absl::Status RunEach(const Ledger& ledger, const JobView& view, std::span<const uint32_t> nodes,
                                     std::vector<NodeAnswer>& answers);
  [[nodiscard]] bool CanRunEach(const JobView& view) const {
    return SlotCount(*view.job) == 1 && !scorer_.policy().PricesNode(*view.job);
  }

  // Sets the cost of the job on placement.slots, as far as the policy prices devices. Does not check that it fits.
  [[nodiscard]] absl::Status PriceSlots(const Ledger& ledger, const JobView& view, Placement& placement);

  // What nodes can send over what links between racks carry, at least 1.
  void set_rack_oversubscription(double ratio) { rack_oversubscription_ = ratio; }

  // For jobs of one GPU: price at most so many devices, drawn by seed and job; 0 = all.
  void set_max_candidates(uint32_t most, uint64_t seed) {
    max_candidates_ = most;
    sample_seed_ = seed;
  }

  [[nodiscard]] uint64_t bytes_held() const {
    return BytesIn(index_, gangs_, paces_, rankings_, refusals_, scores_, answers_, floors_);
  }

 private:
  struct NodeOffer {  // the devices of one group on one node for a gang of several tasks
    uint32_t node_row = 0;
    uint32_t group = 0;
    int32_t tasks = 0;
    double cost = 0;     // of `tasks` tasks, each GPU by itself
    uint32_t first = 0;  // its devices in offered_, cheapest first
    uint32_t count = 0;  // number of these devices; 0 = no GPUs: one entry stands for every task
    double speed = 1;    // GangPace::speed there
  };
  // A pace is the largest slowdown allowed on a GPU of a gang that waits for its slowest GPU.
  static constexpr double kAnyPace = std::numeric_limits<double>::infinity();
  struct Share {  // the part of an offer within some pace
    uint32_t offer = 0;
    int32_t tasks = 0;
    double cost = 0;  // of `tasks` tasks, each GPU by itself
  };
  struct Span {                                       // one way to spread a gang
    std::vector<std::pair<uint32_t, int32_t>> picks;  // offer, tasks
    size_t racks = 0;
    double pace = kAnyPace;
    GangPrice price;
    std::vector<PricedGpu> gpus;  // pick by pick; empty for a job without GPUs
  };

  [[nodiscard]] absl::StatusOr<NodeAnswer> RunOne(uint32_t node_row);
  // The least cost on the node's devices by floors_; infinity = none takes the job.
  [[nodiscard]] absl::StatusOr<double> CheapestOn(uint32_t node_row);
  [[nodiscard]] bool CanRank() const;
  // The best two places of a job of one GPU, by the rankings. If nothing is found, `result` stays as it is.
  [[nodiscard]] absl::Status TakeRanked(SearchResult& result);
  // The bounded search (max_candidates_) prices those of the drawn devices that may be best. Once a place was found, it
  // stops after max_candidates_. If nothing is found, `result` stays as it is.
  struct Drawn {
    double least = 0;     // lower bound on its cost
    double util_pct = 0;  // of its tenants
    NodeId node = 0;
    int32_t device = 0;
    uint32_t node_row = 0;
    friend auto operator<=>(const Drawn&, const Drawn&) = default;
  };
  static constexpr uint32_t kDrawsACandidate = 4;  // devices drawn for each that is priced; chosen
  [[nodiscard]] double LeastCostOf(const DeviceRow& device) const;
  void DrawDevices();
  [[nodiscard]] absl::Status TakeSampled(SearchResult& result);
  [[nodiscard]] absl::Status Scan(std::span<const uint32_t> nodes, bool all, SearchResult& result);
  [[nodiscard]] absl::Status GatherNode(uint32_t node_row, bool memo, SearchResult& result);
  // The same for policies that price nodes (search_nodes.cc): one task, and the offers of a gang.
  [[nodiscard]] absl::Status RunNodes(std::span<const uint32_t> nodes, bool all, SearchResult& result);
  [[nodiscard]] absl::Status TakeNode(uint32_t node_row, double cost, Placement& placement);
  [[nodiscard]] absl::Status GatherPriced(uint32_t node_row, SearchResult& result);
  void AddRefusals(uint32_t node_row, const NodeOutcome& outcome, SearchResult& result);
  void TakeSingle(uint32_t node_row, SearchResult& result);
  void TakeGang(uint32_t node_row, int64_t host_tasks, SearchResult& result);
  // Places the whole gang on `offer`, which has room for it; no slots unless it costs less than `cutoff`.
  void TakeTogether(const NodeOffer& offer, double cutoff, Placement& placement) const;

  // Gangs over nodes (gang.cc). `at` finds the best span at a pace: SpreadGang or SpreadIndexed.
  using AtPace = std::function<absl::Status(double pace, Span& best)>;
  [[nodiscard]] absl::Status SpreadAtPaces(const AtPace& at, SearchResult& result);
  void SpreadGang(double pace, Span& best) const;
  // Counts what each group offers the gang, to explain a refusal.
  void CountOffers(SearchResult& result) const;
  void TakeSpan(const Span& best, SearchResult& result) const;
  void TrySpan(double pace, std::vector<Share> shares, Span& best) const;
  // Chooses the devices on the span's nodes and prices them.
  void Settle(Span& span) const;
  [[nodiscard]] std::span<const PricedGpu> Offered(const NodeOffer& offer) const {
    return std::span(offered_).subspan(offer.first, offer.count);
  }
  [[nodiscard]] static bool Keeps(const NodeOffer& offer, const PricedGpu& gpu, double pace);
  [[nodiscard]] double OfferCost(const NodeOffer& offer, int32_t tasks) const;
  [[nodiscard]] Share ShareOf(uint32_t offer, double pace) const;
  // Appends the `count` cheapest devices of the offer within the pace.
  void AddCheapest(const NodeOffer& offer, size_t count, double pace, std::vector<PricedGpu>& gpus) const;

  // Gangs by the gang index: the same choice as Scan's. If nothing is found, there are no slots.
  struct OfferRange {  // offers of one node in offers_
    uint32_t first = 0;
    uint32_t last = 0;
  };
  struct IndexedRack {
    const GangIndex::Rack* rack = nullptr;
    int64_t most = 0;  // upper bound on the tasks that it holds
  };
  // Whether the paces of devices count: not where the price of their node stands for them.
  [[nodiscard]] bool Timed() const { return waits_ && !scorer_.policy().PricesNode(*view_->job); }
  // Sets tasks_on_ and racks_on_ for a pace.
  [[nodiscard]] absl::Status CountTasks(double pace);
  [[nodiscard]] std::span<const int32_t> TasksOn(uint32_t begin, uint32_t end) const {
    return std::span(tasks_on_).subspan(begin, end - begin);
  }
  // `exact`: the node's offers would say the same; else they may say less.
  [[nodiscard]] absl::Status CountEntry(const GangIndex::Entry& entry, double pace, bool& exact, int32_t& tasks);
  // Makes tasks_on_ exact for one rack, and adds it up. Nodes make offers only where their devices' paces are in doubt.
  [[nodiscard]] absl::StatusOr<int64_t> CountRack(const GangIndex::Rack& rack, double pace, SearchResult& result);
  // No fewer nodes of these hold so many tasks; all that hold some, if all together hold less.
  [[nodiscard]] size_t LeastNodes(std::span<const int32_t> tasks_on, int64_t tasks);
  [[nodiscard]] bool CanIndexGang() const;
  [[nodiscard]] absl::Status TakeIndexedGang(SearchResult& result);
  [[nodiscard]] absl::Status OfferNode(uint32_t node_row, SearchResult& result);
  // The offers of one node, which it makes if the node has none yet.
  [[nodiscard]] absl::StatusOr<OfferRange> OffersOf(uint32_t node_row, SearchResult& result);
  [[nodiscard]] absl::Status OfferRack(const GangIndex::Rack& rack, double pace, std::vector<Share>& shares,
                                       SearchResult& result);
  [[nodiscard]] absl::Status SpreadIndexed(double pace, Span& best, SearchResult& result);
  struct RackSpan {  // racks of one group that hold the gang together
    // That TrySpan picks there: all of a rack, but of the one that holds least only as many as needed.
    size_t nodes = 0;
    std::vector<const GangIndex::Rack*> racks;
    [[nodiscard]] bool IsFewerThan(const RackSpan& other) const {
      return std::pair(nodes, racks.size()) < std::pair(other.nodes, other.racks.size());
    }
  };
  // Keeps those of fewest nodes, then racks: the others cannot be best, whatever they cost.
  static void KeepFewest(RackSpan span, std::vector<RackSpan>& fewest);
  [[nodiscard]] absl::Status SpreadGroup(std::span<IndexedRack> racks, double pace, std::vector<RackSpan>& fewest,
                                         SearchResult& result);
  [[nodiscard]] absl::Status SpreadOverRacks(std::span<const IndexedRack> racks, double pace,
                                             std::vector<RackSpan>& fewest, SearchResult& result);

  void SetCall(const Ledger& ledger, const JobView& view);
  // The GangPace::communication on those GPUs.
  [[nodiscard]] double Communication(std::span<const GangSlot> slots) const;
  // The GangPace on the GPUs of the span.
  [[nodiscard]] GangPace PaceOf(const Span& span) const;
  [[nodiscard]] std::vector<PricedGpu> PartsOf(const NodeSpec& node, const NodeOffer& offer, Reach reach) const;
  // All GPUs of the offer in one part of the node (`reach`): the part whose cheapest `gpus` cost least. False = no part
  // has enough.
  [[nodiscard]] bool ChooseInPart(const NodeOffer& offer, size_t gpus, double pace, Reach reach,
                                  std::vector<PricedGpu>& part) const;

  Scorer& scorer_;
  DeviceIndex index_;
  GangIndex gangs_;
  DevicePaces paces_;
  Rankings rankings_;
  Refusals refusals_;
  NodePricer pricer_;
  NodeScores scores_;
  NodeAnswers answers_;
  std::vector<Drawn> drawn_;
  SearchResult one_;                                   // scratch of RunOne
  std::vector<double> floors_;                         // by state, of RunEach's job (Rankings::Bound); empty = unknown
  std::vector<std::pair<double, uint32_t>> by_floor_;  // scratch of CheapestOn: floor, device
  std::vector<RankedState> popped_;
  std::vector<PricedGpu> fitting_;     // of the node at hand
  std::vector<int32_t> tasks_on_;      // by entry of gangs_: upper bound on the gang's tasks there, at a pace
  double counted_pace_ = 0;            // of tasks_on_; 0 = none
  std::vector<IndexedRack> racks_on_;  // by rack of gangs_: the sums of tasks_on_
  std::span<uint8_t> paces_on_;        // of paces_, by device; empty = none
  std::vector<uint32_t> holding_;      // scratch of LeastNodes
  std::vector<NodeOffer> offers_;
  std::vector<PricedGpu> offered_;
  IdMap<OfferRange> node_offers_;   // by node row
  const Ledger* ledger_ = nullptr;  // of the current call, as the next three
  const JobView* view_ = nullptr;
  bool waits_ = false;   // the job is a gang, and the policy counts the speed of its slowest GPU
  bool linked_ = false;  // and prices its communication
  double rack_oversubscription_ = 1;
  uint32_t max_candidates_ = 0;
  uint64_t sample_seed_ = 0;
};

}  // namespace horus
