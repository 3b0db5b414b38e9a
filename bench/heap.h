// SPDX-License-Identifier: Apache-2.0
// Heap counters for benchmark programs: allocations and the peak of live bytes.
//
// Enters:  every operator new and delete of the program that links this.
// Leaves:  counts since the last Reset.
// Units:   bytes as malloc_usable_size reports them, allocations.
// Cost:    a few ns per allocation.      Thread class: one thread.
#ifndef HORUS_BENCH_HEAP_H_
#define HORUS_BENCH_HEAP_H_

#include <cstdint>

namespace horus::bench {

struct HeapUse {
  int64_t allocations = 0;
  int64_t live_bytes = 0;  // growth since Reset; may be negative
  int64_t peak_bytes = 0;  // largest growth since Reset
};

void ResetHeapUse();
[[nodiscard]] HeapUse CurrentHeapUse();

}  // namespace horus::bench

#endif  // HORUS_BENCH_HEAP_H_
