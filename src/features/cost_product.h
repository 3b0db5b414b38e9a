// SPDX-License-Identifier: Apache-2.0
// Product: one batched matrix product as a library runs it, forward and backward; what convolutions, MatMul and Einsum
// come down to.
// Enters:  the sizes and the operands' positions.   Leaves: the amounts in the context's OpCost.
// Units:   as in cost.h.   Cost: O(1).   Thread class: pure functions over values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "features/cost_rules.h"

namespace horus {

// [batch, m, k] x [batch, k, n]; the tensors' bytes are those of the whole operator.
struct Product {
  double batch = 1, m = 1, n = 1, k = 1;
  double taps = 1;  // as ProductShape
  size_t a = 0;     // positions of the operands
  size_t b = 1;
  size_t bias = SIZE_MAX;  // SIZE_MAX: none
  bool bias_kernel = false;
};

// FLOPs, bytes, kernels and what is kept; one product more per gradient wanted.
void ApplyProduct(CostContext& c, const Product& p);

// Enters the Horus counts as a linear layer.
void CountLinear(CostContext& c, const Product& p);

// The Einsum operator (cost_einsum.cc).
void Einsum(CostContext& c, const CostRule& rule);

}  // namespace horus
