// SPDX-License-Identifier: Apache-2.0
// Replays requests against the rules of PyTorch's caching allocator.
#include "features/allocator.h"

#include <algorithm>
#include <cmath>

namespace horus {
namespace {

constexpr int64_t kKib = 1024;
constexpr int64_t kMib = kKib * kKib;
constexpr int64_t kMinBlock = 512;
constexpr int64_t kSmallLimit = 1 * kMib;  // requests up to here use small segments
constexpr int64_t kSmallSegment = 2 * kMib;
constexpr int64_t kLargeSegment = 20 * kMib;
constexpr int64_t kOwnSegment = 10 * kMib;  // requests from here on get their own segment
constexpr int64_t kSegmentRound = 2 * kMib;
constexpr double kLargestRequest = 288230376151711744.0;  // 2^58: far above any device, sums stay below 2^63

int64_t RoundUp(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

}  // namespace

CachingAllocator::Block CachingAllocator::Take(double bytes) {
  if (!(bytes > 0)) return kNone;
  const int64_t size = RoundUp(static_cast<int64_t>(std::min(std::ceil(bytes), kLargestRequest)), kMinBlock);
  if (in_use_ > static_cast<int64_t>(kLargestRequest) || reserved_ > static_cast<int64_t>(kLargestRequest))
    return kNone;
  const bool small = size <= kSmallLimit;
  Pool& pool = small ? small_ : large_;
  const auto best = pool.lower_bound({size, 0});
  Block block = kNone;
  if (best != pool.end()) {
    block = best->second;
    pool.erase(best);
  } else {
    block = NewSegment(size, small);
  }
  const int64_t rest = chunks_[block].size - size;
  if (small ? rest >= kMinBlock : rest > kSmallLimit) {
    const auto tail = static_cast<Block>(chunks_.size());
    Chunk chunk{.size = rest, .prev = block, .next = chunks_[block].next, .small = small, .free = true};
    if (chunk.next != kNone) chunks_[chunk.next].prev = tail;
    chunks_.push_back(chunk);
    chunks_[block].size = size;
    chunks_[block].next = tail;
    pool.insert({rest, tail});
  }
  chunks_[block].free = false;
  in_use_ += chunks_[block].size;
  return block;
}

CachingAllocator::Block CachingAllocator::NewSegment(int64_t size, bool small) {
  const int64_t segment = small ? kSmallSegment : size < kOwnSegment ? kLargeSegment : RoundUp(size, kSegmentRound);
  reserved_ += segment;
  chunks_.push_back({.size = segment, .small = small});
  return static_cast<Block>(chunks_.size() - 1);
}

void CachingAllocator::Give(Block block) {
  if (block == kNone || block >= chunks_.size() || chunks_[block].free) return;
  in_use_ -= chunks_[block].size;
  const Block next = chunks_[block].next;
  if (next != kNone && chunks_[next].free) block = Merge(block, next);
  const Block prev = chunks_[block].prev;
  if (prev != kNone && chunks_[prev].free) block = Merge(prev, block);
  chunks_[block].free = true;
  PoolOf(chunks_[block]).insert({chunks_[block].size, block});
}

// One of the two is free and in its pool; the merged chunk is in none.
CachingAllocator::Block CachingAllocator::Merge(Block left, Block right) {
  for (const Block side : {left, right}) {
    if (chunks_[side].free) PoolOf(chunks_[side]).erase({chunks_[side].size, side});
    chunks_[side].free = false;
  }
  chunks_[left].size += chunks_[right].size;
  chunks_[left].next = chunks_[right].next;
  if (chunks_[left].next != kNone) chunks_[chunks_[left].next].prev = left;
  chunks_[right].size = 0;
  chunks_[right].free = true;  // dead: never given back again
  return left;
}

}  // namespace horus
