// SPDX-License-Identifier: Apache-2.0
// What is asked of many vectors: each value once, in order; the memory that several hold.
#pragma once

#include <algorithm>
#include <cstdint>

namespace horus {

template <typename Values>
void SortUnique(Values& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Of vectors and strings what they have room for, of other parts what they say.
template <typename... Parts>
[[nodiscard]] uint64_t BytesIn(const Parts&... parts) {
  const auto held = [](const auto& part) -> uint64_t {
    if constexpr (requires { part.bytes_held(); }) {
      return part.bytes_held();
    } else {
      return part.capacity() * sizeof(*part.data());
    }
  };
  return (uint64_t{0} + ... + held(parts));
}

}  // namespace horus
