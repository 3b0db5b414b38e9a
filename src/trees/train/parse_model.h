// SPDX-License-Identifier: Apache-2.0
// From XGBoost's own model bytes to trees in pre-order.
//
// Enters:  the bytes of a booster saved as UBJSON (floats are stored as their bits, so nothing is rounded).
// Leaves:  nodes, tree sizes and base score as the entry hands them out; or what is wrong with the bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trees/train/entry.h"

namespace horus::train {

struct ParsedForest {
  std::vector<horus_train_node> nodes;
  std::vector<uint32_t> tree_sizes;
  float base_score = 0;
};

// Empty text when all is well. Understands a "gbtree" booster of one output, numerical splits, one tree
// a round: what train.cc asks XGBoost for.
[[nodiscard]] std::string ParseModel(std::span<const char> ubjson, ParsedForest& out);

}  // namespace horus::train
