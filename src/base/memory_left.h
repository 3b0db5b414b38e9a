// SPDX-License-Identifier: Apache-2.0
// Whether so much memory is to be had now: for foreign code that does not survive an allocation that fails.
//
// Enters:  bytes.   Leaves: nothing held; or std::bad_alloc.
// Cost:    one allocation, given back.   Thread class: pure function; another thread may take the memory meanwhile.
#pragma once

#include <cstddef>
#include <new>

namespace horus {

inline void CheckThatMemoryIsLeft(size_t bytes) {
  void* const memory = ::operator new(bytes);
  *static_cast<volatile char*>(memory) = 0;  // else a compiler may leave both calls out
  ::operator delete(memory);
}

}  // namespace horus
