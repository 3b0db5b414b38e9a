// SPDX-License-Identifier: Apache-2.0
// SimLearner: what a simulation lets a scheduler learn while jobs run. What is learned reaches the placer through its
// model, whose epoch tells that it changed (pair_learner.h).
//
// Enters:  what the tenants of a device were seen to lose beside each other, or that they could not run together.
// Leaves:  nothing.
// Units:   slowdown = step time shared / step time alone.
// Cost:    the learner's.                 Thread class: one thread at a time.
#ifndef HORUS_LAB_TRUTH_LEARNER_H_
#define HORUS_LAB_TRUTH_LEARNER_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "interference/model.h"

namespace horus {

struct SeenSharing {
  int64_t now_us = 0;
  DeviceContext device;
  std::span<const Demand* const> demands;  // of the tenants, as the placer believes them
  std::span<const double> slowdowns;       // of each, as it is
};

class SimLearner {
 public:
  virtual ~SimLearner() = default;
  [[nodiscard]] virtual absl::Status Observe(const SeenSharing& seen) = 0;
  // They could not run together; `slowdowns` is empty, the newcomer last. Whether that was learned: the newcomer then
  // waits as before, else it runs alone from now on.
  [[nodiscard]] virtual absl::StatusOr<bool> Failed(const SeenSharing& seen) = 0;
};

}  // namespace horus

#endif  // HORUS_LAB_TRUTH_LEARNER_H_
