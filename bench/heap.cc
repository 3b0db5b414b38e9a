// SPDX-License-Identifier: Apache-2.0
// Counting replacements of the global operator new and delete.
#include "bench/heap.h"

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

horus::bench::HeapUse use;

void* Allocate(std::size_t size, std::size_t alignment) {
  const std::size_t rounded = (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
  void* pointer = alignment <= alignof(std::max_align_t) ? std::malloc(std::max<std::size_t>(size, 1))
                                                         : std::aligned_alloc(alignment, rounded);
  if (pointer == nullptr) throw std::bad_alloc();
  ++use.allocations;
  use.live_bytes += static_cast<int64_t>(malloc_usable_size(pointer));
  use.peak_bytes = std::max(use.peak_bytes, use.live_bytes);
  return pointer;
}

void Release(void* pointer) noexcept {
  if (pointer == nullptr) return;
  use.live_bytes -= static_cast<int64_t>(malloc_usable_size(pointer));
  std::free(pointer);
}

}  // namespace

namespace horus::bench {
void ResetHeapUse() { use = HeapUse(); }
HeapUse CurrentHeapUse() { return use; }
}  // namespace horus::bench

void* operator new(std::size_t size) { return Allocate(size, 1); }
void* operator new[](std::size_t size) { return Allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t align) { return Allocate(size, static_cast<std::size_t>(align)); }
void* operator new[](std::size_t size, std::align_val_t align) {
  return Allocate(size, static_cast<std::size_t>(align));
}
void operator delete(void* pointer) noexcept { Release(pointer); }
void operator delete[](void* pointer) noexcept { Release(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { Release(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { Release(pointer); }
void operator delete(void* pointer, std::align_val_t) noexcept { Release(pointer); }
void operator delete[](void* pointer, std::align_val_t) noexcept { Release(pointer); }
void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept { Release(pointer); }
void operator delete[](void* pointer, std::size_t, std::align_val_t) noexcept { Release(pointer); }
