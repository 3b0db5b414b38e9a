// SPDX-License-Identifier: Apache-2.0
// Sieve: which of the classes of jobs that come often a device state may suit, for all of them at once.
//
// Enters:  classes with the cost that they look below; what the scorer found out about them; states as it describes
//          them.
// Leaves:  for a state the classes that it may suit, each with a cost that it has at least.
// Units:   costs of Policy::ScoreDevice.
// Cost:    a state a few ns a class: the classes lie side by side, thirty-two in a step, for every guest that they
// met.
//          2 KiB a guest and kind of device, at most kMostColumns of them.
// Thread class: one thread at a time.
#ifndef HORUS_PLACE_SEARCH_SIEVE_H_
#define HORUS_PLACE_SEARCH_SIEVE_H_

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "place/policy.h"
#include "place/search/pair_table.h"
#include "place/search/scorer.h"

namespace horus {

class Sieve {
 public:
  static constexpr uint32_t kSlots = 256;         // classes; chosen: twice as many cost twice the time a state
  static constexpr uint32_t kMostColumns = 4096;  // guests on kinds of devices; chosen: 8 MiB

  struct Hit {
    uint32_t slot = 0;
    float floor = 0;  // -infinity where only weighing can tell
  };

  // All that may fail of admitting the scorer's current class: to be called right before, with the slot that it has or
  // kSlots.
  void Reserve(Scorer& scorer, uint32_t slot);
  // Takes the scorer's current class into a slot; or what is new about it since.
  void Admit(Scorer& scorer, uint32_t slot, double cutoff) noexcept;
  void SetCutoff(uint32_t slot, double cutoff) { cutoff_[slot] = static_cast<float>(cutoff); }
  void Dismiss(uint32_t slot) noexcept;
  // The scorer's current class, which has that slot, has met the guests of the state.
  void Add(const Scorer::StateSummary& state, uint32_t slot);
  void Clear();

  // Appends to `hits`. False: too many guests to keep; nothing was appended.
  [[nodiscard]] bool Sift(const LeastCost& least, const Scorer::StateSummary& state, std::vector<Hit>& hits);

  [[nodiscard]] uint64_t bytes_held() const;

 private:
  static constexpr uint32_t kLanes = 32;                                      // in a step
  static constexpr int32_t kNeverFits = std::numeric_limits<int32_t>::max();  // more than a state that is sifted has

  // What a guest and each class cost each other: PairTable::StateSummary by column.
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
  // Each class on one kind of device.
  struct Kind {
    alignas(64) std::array<float, kSlots> speed = {};
    std::array<float, kSlots> per_weight = {};   // 1 / the class's
    std::array<int32_t, kSlots> mem_mib;         // that must be free, headroom included
    std::array<int32_t, kSlots> mem_beside_mib;  // the same where somebody else is there
    std::array<float, kSlots> request_mib = {};
    std::array<int32_t, kSlots> most_upper = {};
    std::array<const PairTable::Row*, kSlots> rows = {};
    std::vector<std::unique_ptr<Column>> columns;  // by guest
  };

  [[nodiscard]] Kind& KindOf(uint32_t context);
  [[nodiscard]] Column* ColumnOf(Kind& kind, uint32_t guest);  // null: too many
  void Step(const LeastCost& least, const Kind& kind, const Scorer::StateSummary& state,
            const std::array<const Column*, 3>& guests, uint32_t from, std::vector<Hit>& hits) const;

  std::array<float, kSlots> cutoff_ = {};
  std::array<uint32_t, kSlots> known_kinds_ = {};  // of each slot's class
  std::array<bool, kSlots> taken_ = {};
  uint32_t end_ = 0;  // of the slots that were ever taken
  std::vector<std::unique_ptr<Kind>> kinds_;
  uint32_t columns_ = 0;
};

}  // namespace horus

#endif  // HORUS_PLACE_SEARCH_SIEVE_H_
