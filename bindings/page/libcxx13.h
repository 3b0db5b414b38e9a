// SPDX-License-Identifier: Apache-2.0
// What C++20 of ours the libc++ 13 of Debian's emscripten lacks; included before every file of the preset wasm.
#pragma once
#ifdef __cplusplus
#include <version>

#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 14000
#include <algorithm>
#include <charconv>
#include <compare>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/charconv.h"

namespace std {

template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From) && is_trivially_copyable_v<To> && is_trivially_copyable_v<From>);
  return __builtin_bit_cast(To, from);
}

inline strong_ordering operator<=>(const string& a, const string& b) noexcept { return a.compare(b) <=> 0; }
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const absl::from_chars_result read = absl::from_chars(first, last, value);
  return {read.ptr, read.ec};
}
// The fewest digits that mean this number; at most 9 do.
inline to_chars_result to_chars(char* first, char* last, float value) {
  int size = 0;
  for (int digits = 1; digits <= 9; ++digits) {
    size = snprintf(first, last - first, "%.*g", digits, static_cast<double>(value));
    if (strtof(first, nullptr) == value) break;
  }
  return {first + size, errc()};
}
template <class T>
auto operator<=>(const vector<T>& a, const vector<T>& b) -> decltype(a[0] <=> b[0]) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (const auto order = a[i] <=> b[i]; order != 0) return order;
  }
  return a.size() <=> b.size();
}

namespace ranges {

template <class R, class Compare = ranges::less, class By = identity>
constexpr void sort(R&& range, Compare before = {}, By by = {}) {
  std::sort(std::begin(range), std::end(range),
            [&](const auto& a, const auto& b) { return std::invoke(before, std::invoke(by, a), std::invoke(by, b)); });
}
template <class R, class Compare = ranges::less, class By = identity>
void stable_sort(R&& range, Compare before = {}, By by = {}) {
  std::stable_sort(std::begin(range), std::end(range), [&](const auto& a, const auto& b) {
    return std::invoke(before, std::invoke(by, a), std::invoke(by, b));
  });
}
template <class R, class Compare = ranges::less>
constexpr bool is_sorted(R&& range, Compare before = {}) {
  return std::is_sorted(std::begin(range), std::end(range), before);
}
template <class R, class Compare = ranges::less>
constexpr auto min_element(R&& range, Compare before = {}) {
  return std::min_element(std::begin(range), std::end(range), before);
}
template <class R, class Compare = ranges::less, class By = identity>
constexpr auto max_element(R&& range, Compare before = {}, By by = {}) {
  return std::max_element(std::begin(range), std::end(range), [&](const auto& a, const auto& b) {
    return std::invoke(before, std::invoke(by, a), std::invoke(by, b));
  });
}
template <class R, class Value, class By = identity>
constexpr auto find(R&& range, const Value& value, By by = {}) {
  return std::find_if(std::begin(range), std::end(range),
                      [&](const auto& one) { return std::invoke(by, one) == value; });
}
template <class R, class Value>
constexpr auto count(R&& range, const Value& value) {
  return std::count(std::begin(range), std::end(range), value);
}
template <class R, class Value>
constexpr void fill(R&& range, const Value& value) {
  std::fill(std::begin(range), std::end(range), value);
}
template <class R, class Value>
constexpr void replace(R&& range, const Value& old, const Value& value) {
  std::replace(std::begin(range), std::end(range), old, value);
}
template <class R, class Is, class Value>
constexpr void replace_if(R&& range, Is is, const Value& value) {
  std::replace_if(std::begin(range), std::end(range), is, value);
}
template <class R, class Out, class Is>
constexpr void copy_if(R&& range, Out out, Is is) {
  std::copy_if(std::begin(range), std::end(range), out, is);
}
template <class R, class Value, class Compare = ranges::less, class By = identity>
constexpr auto lower_bound(R&& range, const Value& value, Compare before = {}, By by = {}) {
  return std::lower_bound(std::begin(range), std::end(range), value, [&](const auto& one, const Value& v) {
    return std::invoke(before, std::invoke(by, one), v);
  });
}
template <class R, class Value>
constexpr bool binary_search(R&& range, const Value& value) {
  return std::binary_search(std::begin(range), std::end(range), value);
}
template <class R, class Same = ranges::equal_to, class By = identity>
constexpr auto adjacent_find(R&& range, Same same = {}, By by = {}) {
  return std::adjacent_find(std::begin(range), std::end(range), [&](const auto& a, const auto& b) {
    return std::invoke(same, std::invoke(by, a), std::invoke(by, b));
  });
}
template <class A, class B>
constexpr bool equal(A&& a, B&& b) {
  return std::equal(std::begin(a), std::end(a), std::begin(b), std::end(b));
}
template <class R, class Is, class By = identity>
constexpr auto find_if(R&& range, Is is, By by = {}) {
  return std::find_if(std::begin(range), std::end(range),
                      [&](auto&& one) { return std::invoke(is, std::invoke(by, one)); });
}
template <class R, class Is>
constexpr auto find_if_not(R&& range, Is is) {
  return std::find_if_not(std::begin(range), std::end(range), is);
}
template <class R, class Is, class By = identity>
constexpr auto count_if(R&& range, Is is, By by = {}) {
  return std::count_if(std::begin(range), std::end(range),
                       [&](auto&& one) { return std::invoke(is, std::invoke(by, one)); });
}
template <class R, class Is, class By = identity>
constexpr bool any_of(R&& range, Is is, By by = {}) {
  return ranges::find_if(range, is, by) != std::end(range);
}
template <class R, class Is, class By = identity>
constexpr bool none_of(R&& range, Is is, By by = {}) {
  return !ranges::any_of(range, is, by);
}
template <class R, class Is, class By = identity>
constexpr bool all_of(R&& range, Is is, By by = {}) {
  return !ranges::any_of(range, std::not_fn(is), by);
}

}  // namespace ranges
}  // namespace std
#endif
#endif
