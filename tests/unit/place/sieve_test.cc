// SPDX-License-Identifier: Apache-2.0
// The sieve's limits; that it passes over nothing is tested by PlaceIndex (tests/property).
#include <gtest/gtest.h>

#include <vector>

#include "fixtures.h"
#include "place/search/ranking.h"

namespace horus {
namespace {

Scorer::StateSummary BesideGuest(uint32_t guest) {
  Scorer::StateSummary state{
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

// As much as states are described with, and one more.
TEST(Sieve, LeavesDevicesOfTwoPebibytesToWeighing) {
  for (const int64_t mem_mib : {int64_t{INT32_MAX} - 1, int64_t{INT32_MAX}, int64_t{INT32_MAX} + 1}) {
    SCOPED_TRACE(mem_mib);
    Cluster cluster = testing_place::Nodes(1);
    NodeSpec large = testing_place::V100Node(2, 1);
    large.devices[0].mem_mib = mem_mib;
    ASSERT_TRUE(cluster.AddNode(large).ok());
    JobSpec alone = testing_place::OneGpu(100, 50, 1000);
    alone.exclusive = true;
    ASSERT_TRUE(cluster.Adopt(alone, std::vector<Slot>{{2, 0, 0}}).ok());
    const auto placer = testing_place::MakeAddingPlacer();
    const JobSpec job = testing_place::OneGpu(1, 30, 500);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(placer->MakePlan(cluster, {&job, 1}).ok());
    ASSERT_TRUE(cluster.Release(100).ok());
    const auto scan = testing_place::MakeAddingPlacer({.exhaustive = true})->MakePlan(cluster, {&job, 1});
    EXPECT_EQ(placer->MakePlan(cluster, {&job, 1})->decisions, scan->decisions);
  }
}

}  // namespace
}  // namespace horus
