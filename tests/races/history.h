// SPDX-License-Identifier: Apache-2.0
// Histories: what several threads did to one cluster at once, and whether one thread could have done the same.
//
// Enters:  calls with what they answered and when they began and ended.
// Leaves:  whether some order of them, in which none that ended before another began comes after it, gives the same
//          answers on a cluster of one thread (linearisability: Herlihy and Wing, TOPLAS 1990).
// Units:   moments are positions in one order of all beginnings and ends.
// Cost:    exponential in the calls at one time at worst; a restored cluster for each step that is tried.
// Thread class: pure functions.
#ifndef HORUS_TESTS_RACES_HISTORY_H_
#define HORUS_TESTS_RACES_HISTORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "horus/horus.hpp"

namespace horus_races {

enum class Kind { kPlan, kApply, kRelease, kLook };

// What a call answered; fields that its kind does not tell stay as they are.
struct Answer {
  horus_status status = HORUS_OK;
  bool placed = false;             // kPlan
  std::vector<horus::Slot> slots;  // kPlan
  uint64_t state_hash = 0;         // kLook
  uint64_t jobs = 0;               // kLook
  friend bool operator==(const Answer&, const Answer&) = default;
};

struct Operation {
  Kind kind = Kind::kLook;
  uint64_t job = 0;                         // kPlan, kRelease
  std::shared_ptr<const horus::Plan> plan;  // kApply
  Answer answer;
  uint64_t began = 0;
  uint64_t ended = 0;
};

inline constexpr const char* kPolicy = "first-fit";
[[nodiscard]] horus::Job JobOf(uint64_t id);

// Does what `operation` says and answers; a plan that was made goes to `plan`, unless that is null.
[[nodiscard]] Answer Do(const Operation& operation, horus::Cluster& cluster, horus::Placer& placer,
                        std::shared_ptr<const horus::Plan>* plan);

// At most 64 operations.
[[nodiscard]] bool IsLinearisable(const horus::Cluster& before, const std::vector<Operation>& history);

[[nodiscard]] std::string Describe(const std::vector<Operation>& history);

}  // namespace horus_races

#endif  // HORUS_TESTS_RACES_HISTORY_H_
