// SPDX-License-Identifier: Apache-2.0
// Takes the bytes and launches of intermediate tensors out of the operators on both sides of them.
#include "features/chains.h"

#include <algorithm>
#include <vector>

namespace horus {
namespace {

// Of the kernel that the first operator of a chain has; not zero, for its bytes still move.
constexpr double kPartOfKernel = 1e-3;

bool Fuses(const OpCost& cost) {
  if (!cost.known || cost.absorbed || cost.forward_kernels <= 0) return false;
  switch (cost.op_class) {
    case OpClass::kNormalisation:
    case OpClass::kActivation:
    case OpClass::kElementwise:
    case OpClass::kReduction:
    case OpClass::kDataMovement:
      return true;
    default:
      return false;
  }
}

void Less(double bytes, double& of) { of = std::max(0.0, of - bytes); }

}  // namespace

void FuseChains(const ShapedGraph& shaped, StepCost& step) {
  constexpr uint8_t kRead = 1, kStored = 2;
  std::vector<uint8_t> tensor(shaped.tensors.size(), 0);
  for (size_t i = 0; i < shaped.ops.size(); ++i) {
    const Op& op = shaped.ops[i];
    if (op.plumbing) continue;
    const OpCost& cost = step.ops[i];
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      if (!op.inputs[k].valid()) continue;
      const bool kept = k < 32 && (cost.saved_inputs >> k & 1u) != 0;
      tensor[op.inputs[k].value()] |= Fuses(cost) && !kept ? kRead : kStored;
    }
  }
  for (const TensorId id : shaped.outputs) {
    if (id.valid()) tensor[id.value()] |= kStored;
  }
  std::vector<uint8_t> made(shaped.tensors.size(), 0);  // by an operator that fuses
  for (size_t i = 0; i < shaped.ops.size(); ++i) {
    const Op& op = shaped.ops[i];
    OpCost& cost = step.ops[i];
    if (op.plumbing || !Fuses(cost)) continue;
    const auto repeat = static_cast<double>(std::max<int64_t>(1, op.repeat));
    bool follows = false, is_followed = false;
    for (const TensorId id : op.inputs) {
      if (!id.valid() || made[id.value()] == 0) continue;
      follows = true;
      Less(repeat * step.stored_bytes[id.value()], cost.forward_bytes);
      Less(repeat * step.stored_bytes[id.value()], cost.backward_bytes);  // its gradient goes on in registers
    }
    for (const TensorId id : op.outputs) {
      if (!id.valid()) continue;
      made[id.value()] = 1;
      if (tensor[id.value()] == kRead) Less(repeat * step.stored_bytes[id.value()], cost.forward_bytes);
      if ((tensor[id.value()] & kRead) == 0) continue;
      is_followed = true;
      Less(repeat * step.stored_bytes[id.value()], cost.backward_bytes);
    }
    if (follows) cost.forward_kernels *= kPartOfKernel;
    if (is_followed) cost.backward_kernels *= kPartOfKernel;
  }
}

}  // namespace horus
