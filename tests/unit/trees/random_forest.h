// SPDX-License-Identifier: Apache-2.0
// Random forests and rows for the tests, and a walk of a tree that is too plain to be wrong.
//
// Enters:  seeds and shapes.             Leaves: forests, rows, margins.
// Units:   rows row-major; about one value in eight is missing.
// Cost:    linear.                       Thread class: pure functions.
#ifndef HORUS_TESTS_UNIT_TREES_RANDOM_FOREST_H_
#define HORUS_TESTS_UNIT_TREES_RANDOM_FOREST_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "trees/forest.h"

namespace horus::testing {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Values on a coarse grid, so that rows often equal a threshold exactly.
inline float GridValue(std::mt19937& random) { return static_cast<float>(static_cast<int>(random() % 17) - 8) * 0.25f; }

inline std::vector<float> RandomRows(uint32_t seed, size_t count, size_t columns) {
  std::mt19937 random(seed);
  std::vector<float> rows(count * columns);
  for (float& value : rows) {
    value = GridValue(random);
    const uint32_t special = random() % 64;
    if (special < 8) value = kNan;
    if (special == 8) value = std::numeric_limits<float>::infinity();
    if (special == 9) value = -std::numeric_limits<float>::infinity();
    if (special == 10) value = -0.0f;
    if (special == 11) value = std::numeric_limits<float>::denorm_min();
  }
  return rows;
}

// Appends one tree in pre-order; at every node above `depth` one in `leaf_odds` is a leaf (0 = never).
inline void AppendRandomTree(std::mt19937& random, uint32_t depth, uint32_t leaf_odds, ForestData& data) {
  struct Open {
    uint32_t depth;
    int64_t parent;  // whose right child comes next; -1 for a left child or the root
  };
  const size_t first = data.nodes.size();
  std::vector<Open> open = {{0, -1}};
  while (!open.empty()) {
    const Open now = open.back();
    open.pop_back();
    const size_t at = data.nodes.size() - first;
    if (now.parent >= 0) data.nodes[first + static_cast<size_t>(now.parent)].right = static_cast<uint32_t>(at);
    TreeNode& node = data.nodes.emplace_back();
    node.cover = static_cast<float>(random() % 9);
    if (now.depth == depth || (leaf_odds != 0 && random() % leaf_odds == 0)) {
      node.value = static_cast<float>(static_cast<double>(random()) / 4294967296.0 - 0.5);
      continue;
    }
    node.split = 2 * (static_cast<uint32_t>(random()) % data.num_features) + (random() & 1u);
    node.value = GridValue(random);
    open.push_back({now.depth + 1, static_cast<int64_t>(at)});
    open.push_back({now.depth + 1, -1});
  }
  data.tree_sizes.push_back(static_cast<uint32_t>(data.nodes.size() - first));
}

inline ForestData RandomForest(uint32_t seed, size_t trees, uint32_t depth, uint32_t leaf_odds, uint32_t features) {
  std::mt19937 random(seed);
  ForestData data;
  data.num_features = features;
  data.base_score = 0.5f;
  for (size_t t = 0; t < trees; ++t) AppendRandomTree(random, depth, leaf_odds, data);
  return data;
}

// By the definition: missing goes the default way, below the threshold goes left, leaves add in order.
inline float PlainMargin(const ForestData& data, std::span<const float> row, float margin) {
  size_t first = 0;
  for (const uint32_t size : data.tree_sizes) {
    size_t at = first;
    while (!data.nodes[at].is_leaf()) {
      const TreeNode& node = data.nodes[at];
      const float value = row[node.feature()];
      const bool left = std::isnan(value) ? node.missing_goes_left() : value < node.value;
      at = left ? at + 1 : first + node.right;
    }
    margin += data.nodes[at].value;
    first += size;
  }
  return margin;
}

}  // namespace horus::testing

#endif  // HORUS_TESTS_UNIT_TREES_RANDOM_FOREST_H_
