// SPDX-License-Identifier: Apache-2.0
// Lifetimes: in which storage each tensor of a step lies, who reads it last and who keeps it for backward.
//
// Enters:  a ShapedGraph and its StepCost.   Leaves: one storage a tensor, one life a storage.
// Units:   positions of operators and tensors in the graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "features/cost.h"
#include "graph/shaped.h"

namespace horus {

struct StorageLife {
  static constexpr size_t kNever = SIZE_MAX;
  size_t last_use = kNever;  // last operator that reads it forward; kNever: none
  size_t kept_by = kNever;   // first operator that keeps it for backward; kNever: not kept
  uint32_t keepers = 0;      // operands and results that keep it
  bool output = false;       // of the graph
};

// Views lie in their base's storage, results of in-place operators in an operand's.
class Lifetimes {
 public:
  Lifetimes(const ShapedGraph& shaped, const StepCost& cost);

  [[nodiscard]] size_t StorageOf(TensorId id) const { return root_[cost_.storage[id.value()].value()]; }
  [[nodiscard]] const StorageLife& Of(size_t storage) const { return lives_[storage]; }

 private:
  void FindUses();
  void MarkKept(const std::vector<TensorId>& ids, uint32_t mask, size_t op);
  void FindNeighbours();
  void ShareInPlace(size_t i);
  [[nodiscard]] bool IsActivation(size_t t) const { return shaped_.tensors[t].role == TensorRole::kActivation; }

  const ShapedGraph& shaped_;
  const StepCost& cost_;
  std::vector<size_t> root_;  // per tensor that owns its storage in `cost_`
  std::vector<StorageLife> lives_;
  std::vector<const Node*> maker_, reader_;  // per tensor; the last reader
};

}  // namespace horus
