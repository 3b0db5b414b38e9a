// SPDX-License-Identifier: Apache-2.0
// Roles: which tensors training updates, which are constant, which operators cost nothing.
//
// Enters:  a flattened graph with shapes; what is known of each tensor.
// Leaves:  Tensor::role, Tensor::alias_of of weights in another form, Op::plumbing.
#pragma once

#include <cstddef>

#include "graph/shape_rule.h"

namespace horus {

// What an operator does with a floating constant at one of its inputs.
enum class InputSlot : uint8_t {
  kWeight,   // a trained weight, whatever its size and origin
  kOperand,  // a weight if it is an initialiser of more than one element (bias, scale, table)
  kSetting,  // never trained: running statistics, bounds, scales of a resize, masks
};
[[nodiscard]] InputSlot SlotOf(const Node& node, size_t input);

// Whether inputs of an operator come out again, grown or changed in place, and stay on the GPU from step to step.
enum class CacheUse : uint8_t {
  kNone,
  kJoined,    // any input, as any output
  kReturned,  // those from the fourth on, after the first output
  kInPlace,   // and engines write them where they lie: input i + 2 is output i
};
[[nodiscard]] CacheUse CacheUseOf(std::string_view op_type);

// Per graph input: it is a weight in disguise, as exports without parameters have them: floats of fixed size, read
// through whatever form where an operator expects weights, or declared behind such a one and read beside what it makes.
[[nodiscard]] std::vector<bool> FindWeightInputs(const GraphBody& main);

void AssignRoles(const ShapeState& state, ShapedGraph* graph);

}  // namespace horus
