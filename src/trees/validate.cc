// SPDX-License-Identifier: Apache-2.0
// Checks that the plain values of a forest are whole trees within limits, before anything walks them.
#include <cmath>

#include "trees/forest.h"

namespace horus {
namespace {

absl::Status CheckNode(const ForestData& data, size_t tree, size_t at, const TreeNode& node, size_t tree_size) {
  if (!std::isfinite(node.value)) {
    return DataLoss("tree %d node %d: expected a finite %s, found %g", tree, at,
                    node.is_leaf() ? "leaf value" : "threshold", node.value);
  }
  if (!std::isfinite(node.cover) || node.cover < 0) {
    return DataLoss("tree %d node %d: expected a cover of 0 or more, found %g", tree, at, node.cover);
  }
  if (node.is_leaf()) {
    if (node.right == 0) return absl::OkStatus();
    return DataLoss("tree %d node %d: a leaf has a right child, %d", tree, at, node.right);
  }
  if (node.feature() >= data.num_features) {
    return DataLoss("tree %d node %d: splits on feature %d of %d", tree, at, node.feature(), data.num_features);
  }
  // Bounded: at is a position in the tree.
  if (node.right <= at + 1 || node.right >= tree_size) {
    return DataLoss("tree %d node %d: expected a right child between %d and %d, found %d", tree, at, at + 2,
                    tree_size - 1, node.right);
  }
  return absl::OkStatus();
}

// In pre-order a leaf is followed by the right child of the nearest open split, which a stack of open
// splits tells; so every node is reached exactly once, and cycles and orphans cannot hide.
absl::Status CheckTree(const ForestData& data, size_t tree, std::span<const TreeNode> nodes, uint32_t max_depth) {
  std::vector<uint32_t> open;  // right children not yet reached
  open.reserve(max_depth);
  std::vector<uint32_t> depth_of_open;
  depth_of_open.reserve(max_depth);
  uint32_t depth = 0;
  for (size_t at = 0; at < nodes.size(); ++at) {
    const TreeNode& node = nodes[at];
    HORUS_RETURN_IF_ERROR(CheckNode(data, tree, at, node, nodes.size()));
    if (!node.is_leaf()) {
      if (++depth > max_depth) {
        return ResourceExhausted("tree %d node %d: deeper than the limit of %d splits", tree, at, max_depth);
      }
      open.push_back(node.right);
      depth_of_open.push_back(depth);
      continue;
    }
    if (open.empty()) {
      if (at + 1 == nodes.size()) return absl::OkStatus();
      return DataLoss("tree %d: ends at node %d, but has %d nodes", tree, at, nodes.size());
    }
    if (open.back() != at + 1) {
      return DataLoss("tree %d: expected node %d to be a right child, found %d named", tree, at + 1, open.back());
    }
    depth = depth_of_open.back();
    open.pop_back();
    depth_of_open.pop_back();
  }
  return DataLoss("tree %d: its %d nodes end inside the tree", tree, nodes.size());
}

absl::Status CheckLimits(const ForestData& data, const ForestLimits& limits) {
  if (data.num_features > limits.max_features) {
    return ResourceExhausted("forest: %d features, the limit is %d", data.num_features, limits.max_features);
  }
  if (data.tree_sizes.size() > limits.max_trees) {
    return ResourceExhausted("forest: %d trees, the limit is %d", data.tree_sizes.size(), limits.max_trees);
  }
  if (data.nodes.size() > limits.max_nodes) {
    return ResourceExhausted("forest: %d nodes, the limit is %d", data.nodes.size(), limits.max_nodes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateForest(const ForestData& data, const ForestLimits& limits) {
  HORUS_RETURN_IF_ERROR(CheckLimits(data, limits));
  if (!std::isfinite(data.base_score)) {
    return DataLoss("forest: expected a finite base score, found %g", data.base_score);
  }
  std::span<const TreeNode> rest(data.nodes);
  for (size_t tree = 0; tree < data.tree_sizes.size(); ++tree) {
    const size_t size = data.tree_sizes[tree];
    if (size > rest.size()) {
      return DataLoss("tree %d: has %d nodes, but only %d are left", tree, size, rest.size());
    }
    HORUS_RETURN_IF_ERROR(CheckTree(data, tree, rest.first(size), limits.max_depth));
    rest = rest.subspan(size);
  }
  if (!rest.empty()) {
    return DataLoss("forest: %d nodes belong to no tree", rest.size());
  }
  return absl::OkStatus();
}

}  // namespace horus
