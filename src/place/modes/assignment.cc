// SPDX-License-Identifier: Apache-2.0
// The auction, one bid after another.
#include "place/modes/assignment.h"

#include <algorithm>
#include <deque>

namespace horus {

std::vector<uint32_t> Assign(size_t persons, size_t objects, std::span<const AssignmentEdge> edges, double epsilon,
                             uint64_t max_bids) {
  std::vector<size_t> first(persons + 1, 0);
  for (const AssignmentEdge& edge : edges) ++first[edge.person + 1];
  for (size_t i = 0; i < persons; ++i) first[i + 1] += first[i];
  std::vector<double> price(objects, 0);
  std::vector<uint32_t> owner(objects, kNoObject);
  std::vector<uint32_t> object_of(persons, kNoObject);
  std::deque<uint32_t> without;
  for (uint32_t i = 0; i < persons; ++i) without.push_back(i);
  for (uint64_t bids = 0; !without.empty() && bids < max_bids; ++bids) {
    const uint32_t person = without.front();
    without.pop_front();
    const AssignmentEdge* best = nullptr;
    double profit = 0;  // of staying out
    double next = 0;
    for (const AssignmentEdge& edge : edges.subspan(first[person], first[person + 1] - first[person])) {
      const double here = edge.value - price[edge.object];
      if (here > profit) {
        next = std::max(next, profit);
        profit = here;
        best = &edge;
      } else {
        next = std::max(next, here);
      }
    }
    if (best == nullptr) continue;  // prices only rise: nothing will pay any more
    price[best->object] += profit - next + epsilon;
    const uint32_t loser = owner[best->object];
    if (loser != kNoObject) {
      object_of[loser] = kNoObject;
      without.push_back(loser);
    }
    owner[best->object] = person;
    object_of[person] = best->object;
  }
  return object_of;
}

}  // namespace horus
