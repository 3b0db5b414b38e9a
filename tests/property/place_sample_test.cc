// SPDX-License-Identifier: Apache-2.0
// The bounded search: what it finds is a place that an exact search would know, and nothing that fits is refused.
#include <gtest/gtest.h>

#include <memory>

#include "interference/registry.h"
#include "place/placer.h"
#include "place/policies/policies.h"
#include "place/state/cluster.h"
#include "random_cluster.h"

namespace horus {
namespace {

using testing_property::Random;
using testing_property::RandomJob;
using testing_property::RandomNode;

std::unique_ptr<Placer> MakePlacer(uint32_t max_candidates, uint64_t seed = 1, std::string_view policy = "horus") {
  PlacerOptions options;
  options.max_candidates = max_candidates;
  options.seed = seed;
  return *Placer::Create(std::make_shared<UtilisationModel>(), *MakePolicy(policy), options);
}

Cluster BusyCluster(Random& random) {
  Cluster cluster(Catalogue::Default());
  for (NodeId id = 0; id < 12; ++id) EXPECT_TRUE(cluster.AddNode(RandomNode(random, id)).ok());
  std::vector<JobSpec> residents;
  for (JobId id = 1; id <= 30; ++id) residents.push_back(RandomJob(random, id));
  EXPECT_TRUE(cluster.Apply(*MakePlacer(0)->MakePlan(cluster, residents)).ok());
  return cluster;
}

TEST(PlaceSample, FindsAPlaceWhereverThereIsOneAndNeverACheaperThanTheBest) {
  Random random(21);
  int dearer = 0, equal = 0;
  for (int round = 0; round < 100; ++round) {
    const Cluster cluster = BusyCluster(random);
    const auto exact = MakePlacer(0);
    const auto bounded = MakePlacer(3);
    for (JobId id = 100; id < 110; ++id) {
      const JobSpec job = RandomJob(random, id);
      const Decision best = exact->MakePlan(cluster, {&job, 1})->decisions[0];
      const auto plan = bounded->MakePlan(cluster, {&job, 1});
      const Decision& found = plan->decisions[0];
      ASSERT_EQ(found.verdict, best.verdict) << round << " job " << id;
      if (best.verdict != Verdict::kPlace) {
        EXPECT_EQ(found.reason, best.reason);
        continue;
      }
      ASSERT_GE(found.winner.cost, best.winner.cost) << round << " job " << id;
      (found.winner.cost > best.winner.cost ? dearer : equal) += 1;
      Cluster copy = cluster;
      ASSERT_TRUE(copy.Apply(*plan).ok());
    }
  }
  EXPECT_GT(dearer, 20);  // or nothing was bounded
  EXPECT_GT(equal, 20);
}

TEST(PlaceSample, IsExactWhereTheDevicesAreNotMoreThanTheCandidates) {
  Random random(22);
  for (const std::string_view policy : {"horus", "best-fit", "least-utilised"}) {
    const Cluster cluster = BusyCluster(random);
    const auto most = static_cast<uint32_t>(cluster.device_count());
    for (JobId id = 100; id < 130; ++id) {
      const JobSpec job = RandomJob(random, id);
      EXPECT_EQ(MakePlacer(most, 1, policy)->MakePlan(cluster, {&job, 1})->decisions,
                MakePlacer(0, 1, policy)->MakePlan(cluster, {&job, 1})->decisions);
    }
  }
}

TEST(PlaceSample, FollowsFromTheSeedAndTheJobAlone) {
  Random random(23);
  const Cluster cluster = BusyCluster(random);
  const auto used = MakePlacer(2);
  bool seeds_differ = false;
  for (JobId id = 100; id < 160; ++id) {
    const JobSpec job = RandomJob(random, id);
    const Decision decision = used->MakePlan(cluster, {&job, 1})->decisions[0];
    EXPECT_EQ(MakePlacer(2)->MakePlan(cluster, {&job, 1})->decisions[0], decision);
    seeds_differ |= MakePlacer(2, 9)->MakePlan(cluster, {&job, 1})->decisions[0].slots != decision.slots;
  }
  EXPECT_TRUE(seeds_differ);
}

}  // namespace
}  // namespace horus
