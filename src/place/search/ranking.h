// SPDX-License-Identifier: Apache-2.0
// Rankings, with their tree of states and sieve: for each class of jobs, the cheapest device states. A ranking is
// updated when its class comes again.
//
// Enters:  a device index, a scorer with the current job.
// Leaves:  states in ascending cost, complete below a cutoff.
// Units:   costs of Policy::ScoreDevice.
// Cost:    a new class looks at the leaves of the tree that may hold cheap states; a known class at states that got
//          devices since, unless the sieve did so for it. Only states that come first are weighed. A list holds 16 to
//          64 states unless a search needs more.
// Thread class: one thread at a time.
#pragma once

#include <compare>

#include "place/search/index.h"

namespace horus {

// ---- StateTree: device states by what they have left, so that a class of jobs that comes first looks at few of them.
// Its leaves hold the states; each node bounds what the states below it have (Scorer::Region).
// Cost: Put and Remove O(log states); about 130 bytes a state.

// A k-d tree for each context (PairTable), over the crowding and the free memory of states. States that are not sifted
// are in a leaf of their own.
class StateTree {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kMostInLeaf = 64;  // chosen: of 32 and 64 the faster

  struct Node {
    Scorer::Region region;                     // covers the states below, and may cover more
    std::vector<Scorer::StateSummary> states;  // of a leaf
    bool loose = false;                        // of a leaf: the region may cover more
    size_t most = kMostInLeaf;                 // a leaf with more states becomes two
    uint32_t left = kNone;                     // kNone = a leaf; else the right child is the next node
    uint32_t dimension = 0;                    // along which the node was or will be divided
    float below = 0;                           // coordinates that belong to the left child
    [[nodiscard]] bool is_leaf() const { return left == kNone; }
  };

  void Clear();
  // Adds the state, or takes the new description in place of the old one.
  void Put(const Scorer::StateSummary& state);
  void Remove(uint32_t state);
  [[nodiscard]] const Scorer::StateSummary& Of(uint32_t state) const {  // which was Put
    return nodes_[at_[state].node].states[at_[state].position];
  }
  [[nodiscard]] std::span<const uint32_t> roots() const { return roots_; }  // kNone = none
  [[nodiscard]] const Node& node(uint32_t node) const { return nodes_[node]; }
  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  // Makes the region cover no more than the regions of the children, or the states of a leaf.
  void Tighten(uint32_t node);
  [[nodiscard]] uint64_t bytes_held() const;

 private:
  struct Where {
    uint32_t node = kNone;
    uint32_t position = 0;
  };
  [[nodiscard]] uint32_t& RootOf(const Scorer::StateSummary& state);
  void Append(uint32_t leaf, const Scorer::StateSummary& state);
  void Split(uint32_t leaf);
  void Rebuild();

  std::vector<Node> nodes_;
  std::vector<uint32_t> roots_;  // that of states that are not sifted, then by context
  std::vector<Where> at_;        // by state
  uint64_t count_ = 0;           // of states
  uint64_t capacity_ = 0;        // of all leaves' states
};

// ---- Sieve: finds the classes that a device state may suit, for all frequent classes at once.
// Cost: a few ns per state and class; vector instructions compare 32 classes in a step. 2 KiB per guest and context, at
// most kMostColumns of them. Contexts and guests are those of PairTable.

class Sieve {
 public:
  static constexpr uint32_t kSlots = 256;         // classes; chosen: the time per state is proportional to it
  static constexpr uint32_t kMostColumns = 4096;  // guests, over all contexts; chosen: 8 MiB

  struct Hit {
    uint32_t slot = 0;
    float floor = 0;  // lower bound on the cost; -infinity = unknown until weighed
  };

  // Allocates what Admit needs. Call it right before Admit, with the slot of the scorer's current class, or kSlots if
  // it has none.
  void Reserve(Scorer& scorer, uint32_t slot);
  // Puts the scorer's current class into the slot, or updates it there.
  void Admit(Scorer& scorer, uint32_t slot, double cutoff) noexcept;
  void SetCutoff(uint32_t slot, double cutoff) { cutoff_[slot] = static_cast<float>(cutoff); }
  void Dismiss(uint32_t slot) noexcept;
  // Updates the pairs of the scorer's current class, which has that slot, with the guests of the state.
  void Add(const Scorer::StateSummary& state, uint32_t slot);
  void Clear();

  // Appends the classes that the state may suit to `hits`. False = too many guests; nothing was appended.
  [[nodiscard]] bool Sift(const LeastCost& least, const Scorer::StateSummary& state, std::vector<Hit>& hits);

  [[nodiscard]] uint64_t bytes_held() const;

 private:
  static constexpr uint32_t kLanes = 32;                                      // classes in a step
  static constexpr int32_t kNeverFits = std::numeric_limits<int32_t>::max();  // MiB; more than any sifted state has

  // The pairs of one guest and each class: PairTable::StateSummary by column.
  struct Column {
    alignas(64) std::array<uint16_t, kSlots> mine;
    std::array<uint16_t, kSlots> theirs;
    std::array<uint16_t, kSlots> mine_upper;
    std::array<uint16_t, kSlots> theirs_upper;
    void Set(uint32_t slot, const PairTable::StateSummary& pair) {
      mine[slot] = pair.mine;
      theirs[slot] = pair.theirs;
      mine_upper[slot] = pair.mine_upper;
      theirs_upper[slot] = pair.theirs_upper;
    }
  };
  // Each class in one context.
  struct Kind {
    alignas(64) std::array<float, kSlots> speed = {};
    std::array<float, kSlots> per_weight = {};   // 1 / weight of the class
    std::array<int32_t, kSlots> mem_mib;         // must be free, headroom included
    std::array<int32_t, kSlots> mem_beside_mib;  // the same if the device has tenants
    std::array<float, kSlots> request_mib = {};
    std::array<int32_t, kSlots> most_upper = {};
    std::array<const PairTable::Row*, kSlots> rows = {};
    std::vector<std::unique_ptr<Column>> columns;  // by guest
  };

  [[nodiscard]] Kind& KindOf(uint32_t context);
  [[nodiscard]] Column* ColumnOf(Kind& kind, uint32_t guest);  // null = too many columns
  void Step(const LeastCost& least, const Kind& kind, const Scorer::StateSummary& state,
            const std::array<const Column*, 3>& guests, uint32_t from, std::vector<Hit>& hits) const;

  std::array<float, kSlots> cutoff_ = {};
  std::array<uint32_t, kSlots> known_kinds_ = {};  // number of contexts in which the slot's class is entered
  std::array<bool, kSlots> taken_ = {};
  uint32_t end_ = 0;  // above every slot that was ever taken
  std::vector<std::unique_ptr<Kind>> kinds_;
  uint32_t columns_ = 0;
};

struct RankedState {
  double cost = 0;  // a lower bound until `weighed`
  uint32_t state = 0;
  bool weighed = false;
  uint64_t digest = 0;  // of the state at that time, since ids are reused
};

// The states of one class. Entries may be out of date (IsCurrent); states that are missing cost at least `cutoff`.
struct Ranking {
  std::vector<RankedState> states;  // a heap, the cheapest first
  double cutoff = std::numeric_limits<double>::infinity();
  size_t wanted = 0;        // states that a rebuild keeps
  uint64_t generation = 0;  // of the index
  uint64_t seen = 0;        // openings of the index that were looked at
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  uint32_t slot = kNoSlot;          // in the sieve, which looks at openings for this class
  std::vector<RankedState> sieved;  // found by the sieve; cost -infinity = unknown until weighed
};

class Rankings {
 public:
  // Both must outlive it.
  Rankings(Scorer& scorer, const DeviceIndex& index, uint64_t most_bytes)
      : scorer_(scorer), index_(index), most_bytes_(most_bytes) {}

  // The ranking of the scorer's current class, up to date with the index; valid until the next call.
  [[nodiscard]] absl::Status Find(const Ledger& ledger, Ranking*& ranking);
  // Lower bounds on what states cost the scorer's current job, by state; infinity = the job is refused there. The index
  // must be up to date.
  [[nodiscard]] absl::Status Bound(const Ledger& ledger, std::vector<double>& floors);
  // Raises the ranking's cutoff, at most to infinity.
  [[nodiscard]] absl::Status Extend(const Ledger& ledger, Ranking& ranking);

  // Removes and returns the cheapest state, weighed. `found` becomes false if no state is left whose cost + `floor` may
  // be at most `limit`.
  [[nodiscard]] absl::Status Pop(const Ledger& ledger, double limit, double floor, Ranking& ranking, RankedState& state,
                                 bool& found);
  // Puts back states that Pop removed.
  void Push(Ranking& ranking, std::span<const RankedState> states);

  [[nodiscard]] bool IsCurrent(const RankedState& entry) const { return index_.digest(entry.state) == entry.digest; }
  [[nodiscard]] uint64_t bytes_held() const {
    return of_class_.size() * sizeof(Ranking) + entries_ * kEntryBytes +
           BytesIn(of_class_, opened_, tree_, order_, left_, sieve_, scratch_, pending_);
  }

 private:
  static constexpr uint64_t kEntryBytes = sizeof(RankedState);
  [[nodiscard]] absl::Status Rebuild(const Ledger& ledger, Ranking& ranking);
  [[nodiscard]] absl::Status CatchUp(const Ledger& ledger, Ranking& ranking);
  // Whether the job fits there.
  [[nodiscard]] absl::StatusOr<bool> Weigh(const Ledger& ledger, RankedState& entry);
  void Keep(double cutoff, Ranking& ranking);

  // Describes the states that the index opened since the last call, once for all classes.
  [[nodiscard]] absl::Status Describe(const Ledger& ledger);
  // Sifts the state for all classes in the sieve.
  void SiftForAll(const Scorer::StateSummary& summary);
  // Gives a class that came again a slot in the sieve, if one is free or stale.
  void Admit(Ranking& ranking);
  // Takes the class out of the sieve; it then looks at openings itself, from `seen` on.
  void Dismiss(uint32_t slot, uint64_t seen) noexcept;
  void DismissAll(uint64_t seen);
  // Its classes look at openings themselves, from the next one on.
  void EmptySieve();
  void ForgetSieved(Ranking& ranking) noexcept;
  [[nodiscard]] absl::Status Relist(const Ledger& ledger);
  void CutBack(size_t wanted, double& cutoff);
  // Appends those of `summaries` that may cost less than `cutoff` to scratch_, or to pending_ what is not met yet.
  [[nodiscard]] absl::Status Sift(const Ledger& ledger, std::span<const Scorer::StateSummary> summaries, double cutoff);

  // Leaves a state that costs at least `floor` to MeetPending.
  void Await(double floor, uint32_t state);
  // Moves what is pending and may cost less than `limit` to scratch_, or drops it; the rest stays pending. The cutoff
  // falls with the `wanted` cheapest in scratch_.
  [[nodiscard]] absl::Status MeetPending(const Ledger& ledger, double limit, size_t wanted, double& cutoff);

  Scorer& scorer_;
  const DeviceIndex& index_;
  uint64_t most_bytes_;  // above it all rankings are dropped
  uint64_t entries_ = 0;
  uint64_t epoch_ = 0;                        // of the model
  IdMap<std::unique_ptr<Ranking>> of_class_;  // by JobView::digest
  uint64_t generation_ = 0;                   // of the index
  uint64_t numbering_ = 0;                    // Scorer::numbering of the descriptions
  uint64_t rows_numbering_ = 0;               // Scorer::rows_numbering of the sieve
  std::vector<Scorer::StateSummary> opened_;  // of the index's openings from opened_begin_ on
  uint64_t opened_begin_ = 0;
  StateTree tree_;  // of every state with devices, and of some that lost theirs
  Sieve sieve_;
  struct Seat {
    Ranking* ranking = nullptr;  // null = free
    uint64_t last_came = 0;      // number of openings when the class last came
  };
  std::vector<Seat> seats_;  // by slot of the sieve
  struct Floor {
    double cost = 0;  // of the cheapest state below, at least
    uint32_t node = 0;
  };
  std::vector<Floor> order_;  // scratch
  std::vector<Scorer::Sifted> left_;
  std::vector<uint32_t> gone_;
  std::vector<Sieve::Hit> hits_;
  std::vector<RankedState> scratch_;
  // A state that the class is still to meet. Thousands wait, so they are small.
  struct Pending {
    float floor = 0;  // of its cost, rounded down
    uint32_t state = 0;
    friend auto operator<=>(const Pending&, const Pending&) = default;
  };
  std::vector<Pending> pending_;  // a heap, the cheapest first
  std::vector<const Scorer::StateSummary*> meeting_;
};

}  // namespace horus
