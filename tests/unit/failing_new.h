// SPDX-License-Identifier: Apache-2.0
// An operator new that fails when told to. To be included by one file of a test program of its own.
//
// Enters:  allocations_left.              Leaves: std::bad_alloc when none are left.
// Units:   allocations.
// Cost:    none.                          Thread class: one thread at a time.
#ifndef HORUS_TESTS_UNIT_FAILING_NEW_H_
#define HORUS_TESTS_UNIT_FAILING_NEW_H_

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

inline constexpr size_t kNever = std::numeric_limits<size_t>::max();
inline size_t allocations_left = kNever;  // until one fails

inline void* Allocate(size_t size) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left != kNever) --allocations_left;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
// std::stable_sort asks this one, and does without.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  if (allocations_left == 0) return nullptr;
  if (allocations_left != kNever) --allocations_left;
  return std::malloc(size > 0 ? size : 1);
}
// GCC, seeing one of a pair inlined alone, takes it for a mismatch.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

#endif  // HORUS_TESTS_UNIT_FAILING_NEW_H_
