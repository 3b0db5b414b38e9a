// SPDX-License-Identifier: Apache-2.0
// The hot loop: walks many trees at once without branches, and adds their leaves in tree order.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "trees/forest.h"
#include "trees/order_key.h"

namespace horus {
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

void Forest::WalkLoose(const Group& group, const int32_t* slots, size_t rows, float* margins) const {
  const size_t slot_count = 2 * size_t{used_features_};
  for (size_t r = 0; r < rows; ++r, slots += slot_count) {
    for (size_t k = 0; k < group.tree_count; ++k) {
      uint32_t at = loose_roots_[group.leaf_at + k];
      for (;;) {
        const LooseNode& node = loose_[at];
        if (node.left == at) break;
        at = slots[node.slot] < node.key ? node.left : node.right;
      }
      margins[r] += std::bit_cast<float>(loose_[at].key);
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
