// SPDX-License-Identifier: Apache-2.0
// A trained forest of regression trees and a fast walk over it, equal to XGBoost's prediction bit for bit.
//
// Enters:  trees (from a bundle or a fit) and feature rows, float32; NaN = missing.
// Leaves:  margins (base margin + one leaf a tree, added in tree order in float32); attributions.
// Units:   rows row-major, `stride` floats apart; the margin's unit is the target's, before its link.
// Cost:    about 1.7 us a row for 500 trees of depth 6, 0.2 us for 200 of depth 4 where rows come by sixteen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/status.h"

namespace horus {

// One node of a tree stored in pre-order: the left child is the next node.
struct TreeNode {
  static constexpr uint32_t kLeaf = std::numeric_limits<uint32_t>::max();

  uint32_t split = kLeaf;  // 2 * feature + (1 when a missing value goes left), or kLeaf
  uint32_t right = 0;      // position of the right child in its tree; 0 for a leaf
  float value = 0;         // split: a feature value below it goes left; leaf: the leaf's value
  float cover = 0;         // training rows (sum of Hessians) that reached the node; 0 = unknown

  [[nodiscard]] bool is_leaf() const { return split == kLeaf; }
  [[nodiscard]] uint32_t feature() const { return split >> 1; }
  [[nodiscard]] bool missing_goes_left() const { return (split & 1) != 0; }
  friend bool operator==(const TreeNode&, const TreeNode&) = default;
};

// A forest as plain values: what bundles store and fits return.
struct ForestData {
  uint32_t num_features = 0;
  float base_score = 0;              // the margin of an empty forest where the caller gives none
  std::vector<TreeNode> nodes;       // the trees one after another
  std::vector<uint32_t> tree_sizes;  // nodes of each tree, in tree order

  friend bool operator==(const ForestData&, const ForestData&) = default;
};

// What a forest may be at most; above it is refused with kResourceExhausted.
struct ForestLimits {
  uint32_t max_features = 4096;
  uint32_t max_trees = 20'000;
  uint32_t max_nodes = 8'000'000;  // of all trees together
  uint32_t max_depth = 32;         // splits on the longest path
};

// OK when every tree is one whole pre-order tree with features in range, finite thresholds, leaves,
// covers and base score, within the limits; otherwise names tree and node.
[[nodiscard]] absl::Status ValidateForest(const ForestData& data, const ForestLimits& limits = {});

class Forest {
 public:
  Forest() = default;  // no trees: every margin is its base margin
  [[nodiscard]] static absl::StatusOr<Forest> Create(ForestData data, const ForestLimits& limits = {});

  // `row` may be shorter than num_features(): what is absent is missing; what is beyond is ignored.
  [[nodiscard]] float PredictMargin(std::span<const float> row, float base_margin) const;
  [[nodiscard]] float PredictMargin(std::span<const float> row) const { return PredictMargin(row, base_score()); }

  // Row i starts at rows[i * stride] and has `stride` values; out[i] is its margin, whatever else is in
  // the batch. `base_margins` holds n values, or none for base_score(). Needs rows.size() >= n * stride
  // and out.size() >= n.
  void PredictMargins(std::span<const float> rows, size_t n, size_t stride, std::span<const float> base_margins,
                      std::span<float> out) const;

  // Saabas path attribution: each split adds to its feature by how much it moved the cover-weighted mean
  // of the leaves below. out[feature] is set for num_features() values (out.size() >= that); returns the
  // mean over the training rows, base_score() included. Mean + sum of out = margin up to rounding.
  // Not Shapley values: splits near the root are credited less.
  [[nodiscard]] double Contributions(std::span<const float> row, std::span<double> out) const;

  [[nodiscard]] const ForestData& data() const { return data_; }
  [[nodiscard]] uint32_t num_features() const { return data_.num_features; }
  [[nodiscard]] size_t num_trees() const { return data_.tree_sizes.size(); }
  [[nodiscard]] float base_score() const { return data_.base_score; }
  [[nodiscard]] size_t bytes_held() const;

 private:
  // A split as the walk reads it: thresholds and feature values are compared as integer keys of the same
  // order, and every feature has two slots, one a missing value (see OrderKey and FillSlots).
  struct Split {
    int32_t key;
    uint32_t slot;
  };
  static constexpr size_t kTreesPerGroup = 16;
  static constexpr uint32_t kMostWideDepth = 5;  // at 6, asking all splits of eight rows is no faster
  // Up to kTreesPerGroup consecutive trees, walked together.
  struct Group {
    uint32_t tree_count = 0;
    uint32_t depth = 0;
    bool padded = false;
    size_t first_tree = 0, first_node = 0;
    size_t split_at = 0;  // padded: first of kTreesPerGroup << depth splits
    size_t leaf_at = 0;   // and leaves
  };

  void BuildGroups();
  void AppendPadded(Group& group, std::span<const TreeNode> nodes, std::span<const uint32_t> sizes);
  void WalkLoose(const Group& group, const int32_t* slots, size_t rows, float* margins) const;
  void WalkBlock(const int32_t* slots, size_t rows, float* margins) const;
  void WalkWide(const int32_t* slots, size_t rows, float* margins) const;

  ForestData data_;
  uint32_t used_features_ = 1;  // 1 + the highest feature that any split reads; padding reads slot 0
  bool wide_ = false;           // many rows are walked at once: all groups are padded and shallow
  std::vector<Group> groups_;
  std::vector<Split> splits_;
  std::vector<float> leaves_;
};

}  // namespace horus
