// SPDX-License-Identifier: Apache-2.0
// CachingAllocator: how much PyTorch's caching allocator reserves for a sequence of requests.
//
// Enters:  sizes to take and blocks to give back.   Leaves: bytes in use and bytes reserved from the device.
// Cost:    log(free blocks) a call, 40 bytes a block.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace horus {

// The rules of c10/cuda/CUDACachingAllocator.cpp, restated: requests are rounded to 512 bytes; those up to 1 MiB
// are cut from segments of 2 MiB, those below 10 MiB from segments of 20 MiB, larger ones get a segment of their own
// size rounded to 2 MiB; the smallest free block that fits is taken and split where the rest is worth keeping;
// neighbours merge when freed; segments are never returned.
class CachingAllocator {
 public:
  using Block = uint32_t;

  // Sizes <= 0 take nothing; sizes beyond 2^58 are cut there.
  [[nodiscard]] Block Take(double bytes);
  void Give(Block block);

  [[nodiscard]] int64_t in_use() const { return in_use_; }
  [[nodiscard]] int64_t reserved() const { return reserved_; }

 private:
  static constexpr Block kNone = UINT32_MAX;
  struct Chunk {
    int64_t size = 0;
    Block prev = kNone;  // neighbours in the segment
    Block next = kNone;
    bool small = false;
    bool free = false;
  };
  using Pool = std::set<std::pair<int64_t, Block>>;

  [[nodiscard]] Pool& PoolOf(const Chunk& chunk) { return chunk.small ? small_ : large_; }
  Block NewSegment(int64_t size, bool small);
  Block Merge(Block left, Block right);

  std::vector<Chunk> chunks_;
  Pool small_;
  Pool large_;
  int64_t in_use_ = 0;
  int64_t reserved_ = 0;
};

}  // namespace horus
