// SPDX-License-Identifier: Apache-2.0
// Lays a validated forest out for the walk, walks many trees at once without branches (the hot loop), and attributes a
// prediction to its features.
#include "trees/forest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
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
uint32_t SlotOf(const TreeNode& node) { return node.split ^ 1u; }

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
    Group group{.first_tree = first, .first_node = node_at};
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
    if (group.padded) AppendPadded(group, own, own_sizes);
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
         groups_.capacity() * sizeof(Group) + splits_.capacity() * sizeof(Split) + leaves_.capacity() * sizeof(float);
}

// ---- The walk, which adds leaves in tree order.

namespace {

// Walks in flight: 8 chains of dependent loads hide each other's latency and still fit the registers.
constexpr size_t kInterleave = 8;
// Rows whose slots are laid out together, so that a group's trees are read once for all of them.
constexpr size_t kRowsPerBlock = 64;
// Slots kept on the stack (24 KiB, half of a usual L1 cache); wider rows take one allocation a call.
constexpr size_t kStackSlots = 6144;

// Every feature twice, with its missing value below every threshold and above every threshold: so the
// default direction of a split is part of the slot it reads. Slots are kApart apart.
template <size_t kApart>
void FillSlots(const float* row, size_t columns, size_t used_features, int32_t* slots) {
  const size_t present = std::min(columns, used_features);
  for (size_t f = 0; f < present; ++f) {
    const float value = row[f];
    const int32_t key = OrderKey(value);
    slots[2 * f * kApart] = std::isnan(value) ? kMissingLeftKey : key;
    slots[(2 * f + 1) * kApart] = std::isnan(value) ? kMissingRightKey : key;
  }
  for (size_t f = present; f < used_features; ++f) {
    slots[2 * f * kApart] = kMissingLeftKey;
    slots[(2 * f + 1) * kApart] = kMissingRightKey;
  }
}

// One group of trees padded to `depth`, over `rows` rows. kDepth is `depth` known to the compiler, which
// then keeps the walks in registers, or -1.
template <typename Split, int kDepth>
void WalkPadded(const Split* splits, const float* leaves, uint32_t depth, size_t tree_count, const int32_t* slots,
                size_t slot_count, size_t rows, float* margins) {
  const uint32_t levels = kDepth >= 0 ? static_cast<uint32_t>(kDepth) : depth;
  const size_t width = size_t{1} << levels;
  for (size_t r = 0; r < rows; ++r, slots += slot_count) {
    float margin = margins[r];
    for (size_t first = 0; first < tree_count; first += kInterleave) {
      const Split* tree = splits + first * width;
      std::array<size_t, kInterleave> at;
      at.fill(1);
#pragma GCC unroll 8
      for (uint32_t level = 0; level < levels; ++level) {
#pragma GCC unroll 8
        for (size_t k = 0; k < kInterleave; ++k) {
          const Split& split = tree[k * width + at[k]];
          at[k] = 2 * at[k] + 1 - static_cast<size_t>(slots[split.slot] < split.key);
        }
      }
      const float* leaf = leaves + first * width - width;
      if (tree_count - first >= kInterleave) {
#pragma GCC unroll 8
        for (size_t k = 0; k < kInterleave; ++k) margin += leaf[k * width + at[k]];
      } else {
        for (size_t k = 0; k < tree_count - first; ++k) margin += leaf[k * width + at[k]];
      }
    }
    margins[r] = margin;
  }
}

// ---- Many rows at once, one a lane: every split of a tree is asked for all of them, and the leaf that a row comes to
// is blended from below. That takes more comparisons than walking down, and a vector instruction makes eight of them.

constexpr size_t kVector = 8;           // rows
constexpr size_t kLanes = 2 * kVector;  // rows that are walked together
constexpr size_t kFewestWide = 4;       // rows for which that pays
// Of any int32_t in memory.
using Keys [[gnu::vector_size(kVector * sizeof(int32_t)), gnu::may_alias, gnu::aligned(sizeof(int32_t))]] = int32_t;
using Leaves [[gnu::vector_size(kVector * sizeof(float))]] = float;

#if defined(__x86_64__)
#define HORUS_WIDE [[gnu::target("avx2")]]
bool HasWide() { return __builtin_cpu_supports("avx2") != 0; }
#elif defined(__aarch64__)
#define HORUS_WIDE
bool HasWide() { return true; }
#else
#define HORUS_WIDE
bool HasWide() { return false; }
#endif

struct LanesOf {
  Leaves first, second;
};

// The leaf below `node` for each row. `slots`: two vectors of rows each.
template <int kLevels, typename Split>
[[gnu::always_inline]] inline void LeafBelow(const Split* tree, const float* leaves, const Keys* slots, size_t node,
                                             LanesOf& out) {
  if constexpr (kLevels == 0) {
    out.first = out.second = leaves[node] - Leaves{};
  } else {
    LanesOf left, right;
    LeafBelow<kLevels - 1>(tree, leaves, slots, 2 * node, left);
    LeafBelow<kLevels - 1>(tree, leaves, slots, 2 * node + 1, right);
    const Keys* const values = slots + 2 * size_t{tree[node].slot};
    out.first = values[0] < tree[node].key ? left.first : right.first;
    out.second = values[1] < tree[node].key ? left.second : right.second;
  }
}

// As WalkPadded. `slots`: of kLanes rows, then of the next.
template <typename Split, int kDepth>
HORUS_WIDE void WalkManyPadded(const Split* splits, const float* leaves, size_t tree_count, const int32_t* slots,
                               size_t slot_count, size_t rows, float* margins) {
  constexpr size_t kWidth = size_t{1} << kDepth;
  for (size_t r = 0; r < rows; r += kLanes, slots += kLanes * slot_count) {
    const auto* of_rows = reinterpret_cast<const Keys*>(slots);
    LanesOf margin;
    std::memcpy(&margin, margins + r, sizeof(margin));
    for (size_t k = 0; k < tree_count; ++k) {
      LanesOf leaf;
      LeafBelow<kDepth>(splits + k * kWidth, leaves + k * kWidth - kWidth, of_rows, 1, leaf);
      margin.first += leaf.first;
      margin.second += leaf.second;
    }
    std::memcpy(margins + r, &margin, sizeof(margin));
  }
}

}  // namespace

// Of a group that is not padded, node by node: rare, so keys are made on the way rather than kept.
void Forest::WalkLoose(const Group& group, const int32_t* slots, size_t rows, float* margins) const {
  for (size_t r = 0; r < rows; ++r, slots += 2 * size_t{used_features_}) {
    const TreeNode* root = data_.nodes.data() + group.first_node;
    for (size_t k = 0; k < group.tree_count; ++k) {
      const TreeNode* node = root;
      while (!node->is_leaf()) node = slots[SlotOf(*node)] < OrderKey(node->value) ? node + 1 : root + node->right;
      margins[r] += node->value;
      root += data_.tree_sizes[group.first_tree + k];
    }
  }
}

void Forest::WalkBlock(const int32_t* slots, size_t rows, float* margins) const {
  using Walk = void (*)(const Split*, const float*, uint32_t, size_t, const int32_t*, size_t, size_t, float*);
  static constexpr std::array<Walk, 9> kWalks = {WalkPadded<Split, 0>, WalkPadded<Split, 1>, WalkPadded<Split, 2>,
                                                 WalkPadded<Split, 3>, WalkPadded<Split, 4>, WalkPadded<Split, 5>,
                                                 WalkPadded<Split, 6>, WalkPadded<Split, 7>, WalkPadded<Split, 8>};
  for (const Group& group : groups_) {
    if (group.padded) {
      const Walk walk = group.depth < kWalks.size() ? kWalks[group.depth] : WalkPadded<Split, -1>;
      walk(splits_.data() + group.split_at, leaves_.data() + group.leaf_at, group.depth, group.tree_count, slots,
           2 * size_t{used_features_}, rows, margins);
    } else {
      WalkLoose(group, slots, rows, margins);
    }
  }
}

void Forest::WalkWide(const int32_t* slots, size_t rows, float* margins) const {
  using Walk = void (*)(const Split*, const float*, size_t, const int32_t*, size_t, size_t, float*);
  static constexpr std::array<Walk, kMostWideDepth + 1> kWalks = {WalkManyPadded<Split, 0>, WalkManyPadded<Split, 1>,
                                                                  WalkManyPadded<Split, 2>, WalkManyPadded<Split, 3>,
                                                                  WalkManyPadded<Split, 4>, WalkManyPadded<Split, 5>};
  for (const Group& group : groups_) {
    kWalks[group.depth](splits_.data() + group.split_at, leaves_.data() + group.leaf_at, group.tree_count, slots,
                        2 * size_t{used_features_}, rows, margins);
  }
}

float Forest::PredictMargin(std::span<const float> row, float base_margin) const {
  float margin = 0;
  PredictMargins(row, 1, row.size(), std::span<const float>(&base_margin, 1), std::span<float>(&margin, 1));
  return margin;
}

void Forest::PredictMargins(std::span<const float> rows, size_t n, size_t stride, std::span<const float> base_margins,
                            std::span<float> out) const {
  static const bool has_wide = HasWide();
  const bool wide = wide_ && has_wide && n >= kFewestWide;
  const size_t slot_count = 2 * size_t{used_features_};
  const size_t most = std::min({n, kRowsPerBlock, std::max(kStackSlots / slot_count, size_t{1})});
  const size_t block = wide ? (most + kLanes - 1) / kLanes * kLanes : most;
  std::array<int32_t, kStackSlots> stack_slots;  // not initialised: only what is filled is read
  std::vector<int32_t> heap_slots;
  int32_t* slots = stack_slots.data();
  if (slot_count * block > kStackSlots) {
    heap_slots.resize(slot_count * block);
    slots = heap_slots.data();
  }
  const auto row = [&](size_t r) { return rows.data() + r * stride; };
  for (size_t r = 0; r < n; ++r) out[r] = base_margins.empty() ? base_score() : base_margins[r];
  for (size_t first = 0; first < n; first += block) {
    const size_t count = std::min(block, n - first);
    if (!wide) {
      for (size_t r = 0; r < count; ++r) FillSlots<1>(row(first + r), stride, used_features_, slots + r * slot_count);
      WalkBlock(slots, count, out.data() + first);
      continue;
    }
    std::array<float, kRowsPerBlock> margins;
    const size_t filled = (count + kLanes - 1) / kLanes * kLanes;
    for (size_t r = 0; r < filled; ++r) {  // lanes that are left get the last row again
      const size_t from = first + std::min(r, count - 1), lane = r % kLanes;
      FillSlots<kLanes>(row(from), stride, used_features_, slots + (r - lane) * slot_count + lane);
      margins[r] = out[from];
    }
    WalkWide(slots, filled, margins.data());
    std::copy_n(margins.begin(), count, out.begin() + static_cast<ptrdiff_t>(first));
  }
}

}  // namespace horus
