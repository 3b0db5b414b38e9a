// SPDX-License-Identifier: Apache-2.0
// Dense strong ids: positions in a table, typed so that a node cannot be used as a device.
//
// Enters:  an index.   Leaves: a comparable value of one machine word or less.
// Units:   position in the table that owns the id, from 0; Invalid() is the largest value.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <vector>

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

// To loop over the valid ids of a list that outlives it: what an operator reads, without what is left out.
template <typename Id>
class Given {
 public:
  struct Iterator {
    const Id *at, *end;
    Id operator*() const { return *at; }
    bool operator!=(const Iterator& other) const { return at != other.at; }
    Iterator& operator++() {
      ++at;
      return Settle();
    }
    Iterator& Settle() {
      while (at != end && !at->valid()) ++at;
      return *this;
    }
  };
  explicit Given(const std::vector<Id>& ids) : first_(ids.data()), end_(first_ + ids.size()) {}
  Iterator begin() const { return Iterator{first_, end_}.Settle(); }
  Iterator end() const { return {end_, end_}; }

 private:
  const Id *first_, *end_;
};

}  // namespace horus
