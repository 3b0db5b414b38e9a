// SPDX-License-Identifier: Apache-2.0
// Finds the storages that live across checkpoint segments.
#include "features/checkpoint.h"

namespace horus {

CheckpointPlan::CheckpointPlan(const ShapedGraph& shaped, const StepCost& cost, const Lifetimes& lifetimes)
    : cost_(cost) {
  if (cost.segments.empty()) return;
  constexpr uint32_t kUnmade = UINT32_MAX;
  std::vector<uint32_t> made_in(shaped.tensors.size(), kUnmade);
  crosses_.resize(shaped.tensors.size(), 0);
  crossing_.resize(size_t{cost.last_segment} + 1);
  for (size_t i = 0; i < shaped.ops.size(); ++i) {
    if (shaped.ops[i].plumbing) continue;
    for (const TensorId id : shaped.ops[i].inputs) {
      if (!id.valid()) continue;
      const size_t storage = lifetimes.StorageOf(id);
      if (made_in[storage] >= cost.segments[i] || crosses_[storage] != 0) continue;
      crosses_[storage] = 1;
      crossing_[made_in[storage]].push_back(storage);
    }
    for (const TensorId id : shaped.ops[i].outputs) {
      if (!id.valid()) continue;
      uint32_t& made = made_in[lifetimes.StorageOf(id)];
      if (made == kUnmade) made = cost.segments[i];
    }
  }
}

size_t CheckpointPlan::FirstOfSegmentEndingAt(size_t op) const {
  if (!RunsTwice(op)) return op + 1;
  if (op + 1 < cost_.segments.size() && cost_.segments[op + 1] == cost_.segments[op]) return op + 1;
  size_t first = op;
  while (first > 0 && cost_.segments[first - 1] == cost_.segments[op]) --first;
  return first;
}

}  // namespace horus
