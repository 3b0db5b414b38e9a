// SPDX-License-Identifier: Apache-2.0
// Checkpoint plan: which operators run twice, and which storages live across segments in between.
//
// Enters:  a ShapedGraph, its StepCost with segments, and its Lifetimes.   Leaves: per segment its operators and
// storages.
// Units:   positions of operators and storages.   Cost: linear in operators; nothing without checkpointing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "features/cost.h"
#include "features/lifetimes.h"
#include "graph/shaped.h"

namespace horus {

class CheckpointPlan {
 public:
  CheckpointPlan(const ShapedGraph& shaped, const StepCost& cost, const Lifetimes& lifetimes);

  // Made in one segment and read in a later one: held until the segment that made it has run backward.
  [[nodiscard]] bool Crosses(size_t storage) const { return !crosses_.empty() && crosses_[storage] != 0; }
  [[nodiscard]] bool RunsTwice(size_t op) const { return cost_.RunsTwice(op); }
  // First operator of the segment whose last one `op` is; `op` + 1 when it is not the last.
  [[nodiscard]] size_t FirstOfSegmentEndingAt(size_t op) const;
  [[nodiscard]] bool IsFirstOfSegment(size_t op) const {
    return !cost_.segments.empty() && (op == 0 || cost_.segments[op - 1] != cost_.segments[op]);
  }
  // Storages that cross from the segment of `op`.
  [[nodiscard]] const std::vector<size_t>& CrossingFrom(size_t op) const { return crossing_[cost_.segments[op]]; }

 private:
  const StepCost& cost_;
  std::vector<uint8_t> crosses_;
  std::vector<std::vector<size_t>> crossing_;  // per segment
};

}  // namespace horus
