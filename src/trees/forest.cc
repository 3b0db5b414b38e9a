// SPDX-License-Identifier: Apache-2.0
// Lays a validated forest out for the walk, and attributes a prediction to its features.
#include "trees/forest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "trees/order_key.h"

namespace horus {
namespace {

// Trees of at most this depth are padded to complete trees whatever their shape (31 splits and leaves).
constexpr uint32_t kAlwaysPaddedDepth = 4;
// Deeper ones only up to this depth, and only while padding costs at most this many times the nodes.
constexpr uint32_t kMaxPaddedDepth = 10;
constexpr size_t kMaxPaddingFactor = 8;

// The slot that a split reads: in even ones a missing value goes left, in odd ones right.
uint32_t SlotOf(const TreeNode& node) { return 2 * node.feature() + (node.missing_goes_left() ? 0u : 1u); }

uint32_t Depth(std::span<const TreeNode> tree) {
  std::vector<uint32_t> depth(tree.size(), 0);
  uint32_t deepest = 0;
  for (size_t i = 0; i < tree.size(); ++i) {
    if (tree[i].is_leaf()) {
      deepest = std::max(deepest, depth[i]);
    } else {
      depth[i + 1] = depth[i] + 1;
      depth[tree[i].right] = depth[i] + 1;
    }
  }
  return deepest;
}

}  // namespace

absl::StatusOr<Forest> Forest::Create(ForestData data, const ForestLimits& limits) {
  HORUS_RETURN_IF_ERROR(ValidateForest(data, limits));
  Forest forest;
  forest.data_ = std::move(data);
  forest.BuildGroups();
  return forest;
}

void Forest::BuildGroups() {
  for (const TreeNode& node : data_.nodes) {
    if (!node.is_leaf()) used_features_ = std::max(used_features_, node.feature() + 1);
  }
  const std::span<const TreeNode> nodes(data_.nodes);
  const std::span<const uint32_t> sizes(data_.tree_sizes);
  size_t node_at = 0;
  for (size_t first = 0; first < sizes.size(); first += kTreesPerGroup) {
    Group group;
    group.tree_count = static_cast<uint32_t>(std::min(kTreesPerGroup, sizes.size() - first));
    size_t count = 0;
    for (size_t t = first; t < first + group.tree_count; ++t) {
      group.depth = std::max(group.depth, Depth(nodes.subspan(node_at + count, sizes[t])));
      count += sizes[t];
    }
    const std::span<const TreeNode> own = nodes.subspan(node_at, count);
    const std::span<const uint32_t> own_sizes = sizes.subspan(first, group.tree_count);
    group.padded =
        group.depth <= kAlwaysPaddedDepth ||
        (group.depth <= kMaxPaddedDepth && (kTreesPerGroup << (group.depth + 1)) <= kMaxPaddingFactor * count);
    if (group.padded) {
      AppendPadded(group, own, own_sizes);
    } else {
      AppendLoose(group, own, own_sizes);
    }
    groups_.push_back(group);
    node_at += count;
  }
  wide_ =
      std::ranges::all_of(groups_, [](const Group& group) { return group.padded && group.depth <= kMostWideDepth; });
}

// Tree k of the group takes 1 << depth splits, in heap order from position 1, and as many leaves. A leaf
// above the last level becomes splits of any outcome with its value in every leaf below. The last group
// may hold fewer trees; their places are walked and not added.
void Forest::AppendPadded(Group& group, std::span<const TreeNode> nodes, std::span<const uint32_t> sizes) {
  const size_t width = size_t{1} << group.depth;
  group.split_at = splits_.size();
  group.leaf_at = leaves_.size();
  splits_.resize(splits_.size() + width * kTreesPerGroup, Split{0, 0});
  leaves_.resize(leaves_.size() + width * kTreesPerGroup, 0.0f);
  std::vector<uint32_t> heap_at;  // position of each node of the present tree in the complete tree
  size_t first = 0;
  for (size_t k = 0; k < sizes.size(); ++k) {
    const std::span<const TreeNode> tree = nodes.subspan(first, sizes[k]);
    Split* splits = splits_.data() + group.split_at + k * width;
    float* leaves = leaves_.data() + group.leaf_at + k * width;
    heap_at.assign(tree.size(), 1);
    for (size_t i = 0; i < tree.size(); ++i) {
      size_t low = heap_at[i];
      if (!tree[i].is_leaf()) {
        splits[low] = Split{OrderKey(tree[i].value), SlotOf(tree[i])};
        heap_at[i + 1] = static_cast<uint32_t>(2 * low);
        heap_at[tree[i].right] = static_cast<uint32_t>(2 * low + 1);
        continue;
      }
      size_t count = 1;
      for (; low < width; low *= 2) count *= 2;
      std::fill_n(leaves + (low - width), count, tree[i].value);
    }
    first += sizes[k];
  }
}

void Forest::AppendLoose(Group& group, std::span<const TreeNode> nodes, std::span<const uint32_t> sizes) {
  group.split_at = loose_.size();
  group.leaf_at = loose_roots_.size();
  size_t first = 0;
  for (const uint32_t size : sizes) {
    const std::span<const TreeNode> tree = nodes.subspan(first, size);
    const auto base = static_cast<uint32_t>(loose_.size());
    loose_roots_.push_back(base);
    for (uint32_t i = 0; i < size; ++i) {
      const TreeNode& node = tree[i];
      loose_.push_back(node.is_leaf() ? LooseNode{std::bit_cast<int32_t>(node.value), 0, base + i, base + i}
                                      : LooseNode{OrderKey(node.value), SlotOf(node), base + i + 1, base + node.right});
    }
    first += size;
  }
}

double Forest::Contributions(std::span<const float> row, std::span<double> out) const {
  std::fill_n(out.begin(), num_features(), 0.0);
  double mean_of_all = base_score();
  std::vector<double> mean;   // of the leaves below each node, weighted by cover
  std::vector<double> cover;  // of a node; an unknown (0) cover counts its leaves alike
  const std::span<const TreeNode> nodes(data_.nodes);
  size_t first = 0;
  for (const uint32_t size : data_.tree_sizes) {
    const std::span<const TreeNode> tree = nodes.subspan(first, size);
    first += size;
    mean.assign(size, 0);
    cover.assign(size, 0);
    for (size_t i = size; i-- > 0;) {  // children come after their parent
      if (tree[i].is_leaf()) {
        mean[i] = tree[i].value;
        cover[i] = tree[i].cover;
        continue;
      }
      const size_t left = i + 1;
      const size_t right = tree[i].right;
      cover[i] = cover[left] + cover[right];
      mean[i] = cover[i] > 0 ? (cover[left] * mean[left] + cover[right] * mean[right]) / cover[i]
                             : (mean[left] + mean[right]) / 2;
    }
    mean_of_all += mean[0];
    for (size_t i = 0; !tree[i].is_leaf();) {
      const uint32_t feature = tree[i].feature();
      const float value = feature < row.size() ? row[feature] : std::numeric_limits<float>::quiet_NaN();
      const bool left = std::isnan(value) ? tree[i].missing_goes_left() : value < tree[i].value;
      const size_t next = left ? i + 1 : tree[i].right;
      out[feature] += mean[next] - mean[i];
      i = next;
    }
  }
  return mean_of_all;
}

size_t Forest::bytes_held() const {
  return sizeof(*this) + data_.nodes.capacity() * sizeof(TreeNode) + data_.tree_sizes.capacity() * sizeof(uint32_t) +
         groups_.capacity() * sizeof(Group) + splits_.capacity() * sizeof(Split) + leaves_.capacity() * sizeof(float) +
         loose_.capacity() * sizeof(LooseNode) + loose_roots_.capacity() * sizeof(uint32_t);
}

}  // namespace horus
