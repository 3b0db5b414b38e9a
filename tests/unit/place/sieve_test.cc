// SPDX-License-Identifier: Apache-2.0
// The sieve's own limits; that it passes over nothing is tested by PlaceIndex (tests/property).
#include "place/search/sieve.h"

#include <gtest/gtest.h>

#include <vector>

namespace horus {
namespace {

Scorer::Brief BesideGuest(uint32_t guest) {
  Scorer::Brief state{
      .digest = 1, .state = 0, .context = 0, .residents = 1, .mem_free_mib = 1000, .per_mem_mib = 1e-3F};
  state.pairs.guests[0] = guest;
  state.pairs.before.fill(1);
  return state;
}

TEST(Sieve, SaysWhenThereAreMoreGuestsThanItKeeps) {
  Sieve sieve;
  std::vector<Sieve::Hit> hits;
  uint32_t guest = 1;
  while (guest <= Sieve::kMostColumns && sieve.Sift({}, BesideGuest(guest), hits)) ++guest;
  EXPECT_EQ(guest, Sieve::kMostColumns);  // nobody, the guest of free places, takes one of them
  EXPECT_TRUE(hits.empty());
  EXPECT_TRUE(sieve.Sift({}, BesideGuest(1), hits)) << "what it knew is forgotten";
  sieve.Clear();
  EXPECT_TRUE(sieve.Sift({}, BesideGuest(guest), hits));
}

}  // namespace
}  // namespace horus
