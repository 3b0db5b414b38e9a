// SPDX-License-Identifier: Apache-2.0
// Finds the storages of a step and their lives.
#include "features/lifetimes.h"

#include <string_view>

namespace horus {
namespace {

bool Is(const Node* node, std::string_view type) {
  return node != nullptr && node->domain.empty() && node->op_type == type;
}

// Model code of convolutional nets calls ReLU in place, after a convolution, a normalisation or a sum; and the sum too,
// that ends a residual block. Elsewhere (perceptrons, transformers, LeakyReLU) the default stands, which is a result of
// its own.
bool RunsInPlace(const Node& node, const Node* before, const Node* after) {
  if (Is(&node, "Relu")) return Is(before, "Conv") || Is(before, "BatchNormalization") || Is(before, "Add");
  return Is(&node, "Add") && Is(after, "Relu");
}

}  // namespace

Lifetimes::Lifetimes(const ShapedGraph& shaped, const StepCost& cost) : shaped_(shaped), cost_(cost) {
  root_.resize(shaped.tensors.size());
  for (size_t t = 0; t < root_.size(); ++t) root_[t] = t;
  FindUses();
  FindNeighbours();
  for (size_t i = 0; i < shaped.ops.size(); ++i) ShareInPlace(i);
  FindUses();
}

void Lifetimes::FindNeighbours() {
  maker_.assign(shaped_.tensors.size(), nullptr);
  reader_ = maker_;
  for (const Op& op : shaped_.ops) {
    for (const TensorId id : op.inputs) {
      if (id.valid()) reader_[id.value()] = op.node;
    }
    for (const TensorId id : op.outputs) {
      if (id.valid()) maker_[id.value()] = op.node;
    }
  }
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
  if (op.plumbing || op.node == nullptr || cost_.ops[i].absorbed) return;
  if (op.outputs.size() != 1 || !op.outputs[0].valid()) return;
  const size_t out = op.outputs[0].value();
  if (cost_.storage[out].value() != out) return;
  for (size_t k = 0; k < op.inputs.size() && k < 32; ++k) {
    if (!op.inputs[k].valid()) continue;
    if (!RunsInPlace(*op.node, maker_[op.inputs[k].value()], reader_[out])) continue;
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
