// SPDX-License-Identifier: Apache-2.0
// Finds the storages of a step and their lives.
#include "features/lifetimes.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace horus {
namespace {

// Model code calls these in place where it can. Not those whose gradient needs the operand: autograd then copies it,
// and as much is kept as without (ReLU6, hard-swish).
bool RunsInPlace(const Node& node) {
  static constexpr std::string_view kInPlace[] = {"Add", "LeakyRelu", "Relu"};
  return node.domain.empty() && std::find(std::begin(kInPlace), std::end(kInPlace), node.op_type) != std::end(kInPlace);
}

}  // namespace

Lifetimes::Lifetimes(const ShapedGraph& shaped, const StepCost& cost) : shaped_(shaped), cost_(cost) {
  root_.resize(shaped.tensors.size());
  for (size_t t = 0; t < root_.size(); ++t) root_[t] = t;
  FindUses();
  for (size_t i = 0; i < shaped.ops.size(); ++i) ShareInPlace(i);
  FindUses();
}

void Lifetimes::FindUses() {
  lives_.assign(shaped_.tensors.size(), {});
  for (size_t i = 0; i < shaped_.ops.size(); ++i) {
    const Op& op = shaped_.ops[i];
    if (op.plumbing) continue;
    for (const TensorId id : op.inputs) {
      if (id.valid()) lives_[StorageOf(id)].last_use = i;
    }
    MarkKept(op.inputs, cost_.ops[i].saved_inputs, i);
    MarkKept(op.outputs, cost_.ops[i].saved_outputs, i);
  }
  for (const TensorId id : shaped_.outputs) {
    if (id.valid()) lives_[StorageOf(id)].output = true;
  }
}

void Lifetimes::MarkKept(const std::vector<TensorId>& ids, uint32_t mask, size_t op) {
  for (size_t k = 0; k < ids.size() && k < 32; ++k) {
    if ((mask >> k & 1u) == 0 || !ids[k].valid() || !IsActivation(StorageOf(ids[k]))) continue;
    StorageLife& life = lives_[StorageOf(ids[k])];
    if (life.kept_by == StorageLife::kNever) life.kept_by = op;
    ++life.keepers;
  }
}

// The result takes an operand's storage when this operator is the last to read it and nobody else keeps it.
void Lifetimes::ShareInPlace(size_t i) {
  const Op& op = shaped_.ops[i];
  if (op.plumbing || op.node == nullptr || cost_.ops[i].absorbed || !RunsInPlace(*op.node)) return;
  if (op.outputs.size() != 1 || !op.outputs[0].valid()) return;
  const size_t out = op.outputs[0].value();
  if (cost_.storage[out].value() != out) return;
  for (size_t k = 0; k < op.inputs.size() && k < 32; ++k) {
    if (!op.inputs[k].valid()) continue;
    const size_t operand = StorageOf(op.inputs[k]);
    if (!IsActivation(operand) || operand == out) continue;
    StorageLife& life = lives_[operand];
    const uint32_t own = cost_.ops[i].saved_inputs >> k & 1u;
    if (life.last_use != i || life.output || life.keepers > own) continue;
    if (cost_.stored_bytes[operand] != cost_.stored_bytes[out]) continue;
    life = lives_[out];
    root_[out] = operand;
    return;
  }
}

}  // namespace horus
