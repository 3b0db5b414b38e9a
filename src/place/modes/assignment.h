// SPDX-License-Identifier: Apache-2.0
// Assignment: at most one object a person and one person an object, at the largest sum of values; by auction.
//
// Enters:  edges with values, sorted by person; how exact the answer has to be.
// Leaves:  the object of each person, or none.
// Units:   values in the caller's unit; a person without an object is worth 0.
// Cost:    O(edges of a person) a bid; at most max_bids of them.
// Thread class: pure function.
#ifndef HORUS_PLACE_MODES_ASSIGNMENT_H_
#define HORUS_PLACE_MODES_ASSIGNMENT_H_

#include <cstdint>
#include <span>
#include <vector>

namespace horus {

struct AssignmentEdge {
  uint32_t person = 0;
  uint32_t object = 0;
  double value = 0;
};

inline constexpr uint32_t kNoObject = UINT32_MAX;

// The auction of Bertsekas: whoever is without an object bids for the one that pays best after its price, by as much
// as the next best allows and `epsilon` more. The sum is within persons x epsilon of the largest, unless max_bids cut
// it short, which leaves persons out and no object twice. Prices start at 0, so that objects nobody wants cost nothing.
[[nodiscard]] std::vector<uint32_t> Assign(size_t persons, size_t objects, std::span<const AssignmentEdge> edges,
                                           double epsilon, uint64_t max_bids);

}  // namespace horus

#endif  // HORUS_PLACE_MODES_ASSIGNMENT_H_
