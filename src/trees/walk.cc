// SPDX-License-Identifier: Apache-2.0
// The hot loop: walks many trees at once without branches, and adds their leaves in tree order.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

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
// default direction of a split is part of the slot it reads.
void FillSlots(const float* row, size_t columns, size_t used_features, uint32_t* slots) {
  const size_t present = std::min(columns, used_features);
  for (size_t f = 0; f < present; ++f) {
    const float value = row[f];
    const uint32_t key = OrderKey(value);
    slots[2 * f] = std::isnan(value) ? kMissingLeftKey : key;
    slots[2 * f + 1] = std::isnan(value) ? kMissingRightKey : key;
  }
  for (size_t f = present; f < used_features; ++f) {
    slots[2 * f] = kMissingLeftKey;
    slots[2 * f + 1] = kMissingRightKey;
  }
}

// One group of trees padded to `depth`, over `rows` rows. kDepth is `depth` known to the compiler, which
// then keeps the walks in registers, or -1.
template <typename Split, int kDepth>
void WalkPadded(const Split* splits, const float* leaves, uint32_t depth, size_t tree_count, const uint32_t* slots,
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

}  // namespace

void Forest::WalkLoose(const Group& group, const uint32_t* slots, size_t rows, float* margins) const {
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

void Forest::WalkBlock(const uint32_t* slots, size_t rows, float* margins) const {
  using Walk = void (*)(const Split*, const float*, uint32_t, size_t, const uint32_t*, size_t, size_t, float*);
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

float Forest::PredictMargin(std::span<const float> row, float base_margin) const {
  float margin = 0;
  PredictMargins(row, 1, row.size(), std::span<const float>(&base_margin, 1), std::span<float>(&margin, 1));
  return margin;
}

void Forest::PredictMargins(std::span<const float> rows, size_t n, size_t stride, std::span<const float> base_margins,
                            std::span<float> out) const {
  const size_t slot_count = 2 * size_t{used_features_};
  const size_t block = std::min({n, kRowsPerBlock, std::max<size_t>(kStackSlots / slot_count, 1)});
  std::array<uint32_t, kStackSlots> stack_slots;  // not initialised: only what is filled is read
  std::vector<uint32_t> heap_slots;
  uint32_t* slots = stack_slots.data();
  if (slot_count > kStackSlots) {
    heap_slots.resize(slot_count * block);
    slots = heap_slots.data();
  }
  for (size_t first = 0; first < n; first += block) {
    const size_t count = std::min(block, n - first);
    for (size_t r = 0; r < count; ++r) {
      FillSlots(rows.data() + (first + r) * stride, stride, used_features_, slots + r * slot_count);
      out[first + r] = base_margins.empty() ? base_score() : base_margins[first + r];
    }
    WalkBlock(slots, count, out.data() + first);
  }
}

}  // namespace horus
