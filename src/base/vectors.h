// SPDX-License-Identifier: Apache-2.0
// What is asked of many vectors: each value once, in order; one made of each value; the memory that several hold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace horus {

template <typename Values>
void SortUnique(Values& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Of each value a field, or what a function makes of it.
template <typename Made, typename Values, typename Maker>
[[nodiscard]] std::vector<Made> VectorOf(const Values& values, Maker maker) {
  std::vector<Made> made;
  made.reserve(std::size(values));
  for (const auto& value : values) made.push_back(std::invoke(maker, value));
  return made;
}

// The value of a range that ascends by `by` whose key is `key`; null where there is none.
template <typename Values, typename Key, typename By>
[[nodiscard]] auto FindSorted(Values& values, const Key& key, By by) -> decltype(&*std::begin(values)) {
  const auto at = std::ranges::lower_bound(values, key, {}, by);
  return at != std::end(values) && std::invoke(by, *at) == key ? &*at : nullptr;
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
