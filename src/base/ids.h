// SPDX-License-Identifier: Apache-2.0
// Dense strong ids: positions in a table, typed so that a node cannot be used as a device.
//
// Enters:  an index.   Leaves: a comparable value of one machine word or less.
// Units:   position in the table that owns the id, from 0; Invalid() is the largest value.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace horus {

template <typename Tag, typename Rep = uint32_t>
class DenseId {
 public:
  constexpr DenseId() = default;
  explicit constexpr DenseId(Rep value) : value_(value) {}
  [[nodiscard]] constexpr Rep value() const { return value_; }
  [[nodiscard]] constexpr bool valid() const { return value_ != std::numeric_limits<Rep>::max(); }
  [[nodiscard]] static constexpr DenseId Invalid() { return DenseId(); }
  friend constexpr auto operator<=>(DenseId, DenseId) = default;

 private:
  Rep value_ = std::numeric_limits<Rep>::max();
};

}  // namespace horus
