// SPDX-License-Identifier: Apache-2.0
// K-means over features: seeds, convergence, scale, and that the order of the points does not matter.
#include "queue/kmeans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "naive_queue.h"

namespace horus {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using testing_queue::RandomJob;

GridPoint At(int32_t x, int32_t y) { return {x, y, 0, 0, 0, 0}; }

TEST(KMeans, FindsGroupsThatLieApart) {
  std::vector<GridPoint> points;
  for (const auto& [x, y] : {std::pair{100, 100}, std::pair{3000, 200}, std::pair{500, 3900}}) {
    for (const int32_t d : {-10, 0, 10}) points.push_back(At(x + d, y - d));
  }
  EXPECT_THAT(FitCentres(points, 3), UnorderedElementsAre(At(100, 100), At(3000, 200), At(500, 3900)));
}

TEST(KMeans, TheFirstSeedIsFarthestFromTheMean) {
  // Mean (250, 0): farthest is 1000, then 0; one pass moves them to the means of their halves.
  EXPECT_THAT(FitCentres(std::vector{At(0, 0), At(0, 0), At(0, 0), At(1000, 0)}, 2),
              ElementsAre(At(1000, 0), At(0, 0)));
}

TEST(KMeans, MakesNoMoreClustersThanPointsDiffer) {
  EXPECT_THAT(FitCentres(std::vector{At(7, 7), At(7, 7)}, 4), ElementsAre(At(7, 7)));
  EXPECT_THAT(FitCentres(std::vector{At(7, 7), At(9, 7), At(7, 7)}, 4), UnorderedElementsAre(At(7, 7), At(9, 7)));
  EXPECT_TRUE(FitCentres({}, 4).empty());
}

TEST(KMeans, TheOrderOfThePointsDoesNotMatter) {
  std::vector<QueuedJob> jobs;
  for (uint64_t id = 0; id < 500; ++id) jobs.push_back(RandomJob(id, id));
  const auto fit = [&] {
    std::vector<const QueuedJob*> pointers;
    for (const QueuedJob& job : jobs) pointers.push_back(&job);
    return ClusterJobs(pointers, 5);
  };
  const JobClustering before = fit();
  std::reverse(jobs.begin(), jobs.end());
  std::rotate(jobs.begin(), jobs.begin() + 123, jobs.end());
  const JobClustering after = fit();
  EXPECT_EQ(before.centres, after.centres);
  EXPECT_EQ(before.centres.size(), 5u);
  for (size_t i = 0; i < jobs.size(); ++i) EXPECT_EQ(after.cluster_of[i], before.cluster_of[jobs[i].id]);
}

TEST(KMeans, LargeQueuesAreFittedByASampleThatTheOrderDoesNotChange) {
  std::vector<QueuedJob> jobs;
  for (uint64_t id = 0; id < 20'000; ++id) {
    const auto util = static_cast<float>(id % 3 * 40 + id % 7);  // groups at 0, 40 and 80 per cent
    jobs.push_back({.id = id, .gpu_util_pct = {util, util}});
  }
  const auto fit = [&] {
    std::vector<const QueuedJob*> pointers;
    for (const QueuedJob& job : jobs) pointers.push_back(&job);
    return ClusterJobs(pointers, 3);
  };
  const JobClustering before = fit();
  for (uint64_t id = 0; id < jobs.size(); ++id) ASSERT_EQ(before.cluster_of[id], before.cluster_of[id % 3]) << id;
  EXPECT_EQ(before.centres.size(), 3u);
  std::reverse(jobs.begin(), jobs.end());
  EXPECT_EQ(fit().centres, before.centres);
}

TEST(KMeans, NoPassIsLeftThatWouldHelp) {
  std::vector<GridPoint> points;
  for (uint64_t i = 0; i < 400; ++i)
    points.push_back(At(static_cast<int32_t>(Draw(i) * 4000), static_cast<int32_t>(Draw(i + 1000) * 4000)));
  const std::vector<GridPoint> centres = FitCentres(points, 4);
  for (size_t c = 0; c < centres.size(); ++c) {
    double x = 0, count = 0;
    for (const GridPoint& point : points) {
      if (NearestCentre(centres, point) != c) continue;
      x += point[0];
      ++count;
    }
    EXPECT_NEAR(x / count, centres[c][0], 5) << c;  // settled, or nearly so after kMostPasses
  }
}

TEST(KMeans, EqualCentresGoToTheFirst) { EXPECT_EQ(NearestCentre(std::vector{At(10, 0), At(0, 0)}, At(5, 0)), 0u); }

TEST(FeatureScale, SpansFromTheLeastToTheGreatestAndClampsBeyond) {
  FeatureScale scale;
  scale.Include({1, 10, 0, 0, 0, 0});
  scale.Include({3, 10, 0, 0, 0, 0});
  EXPECT_EQ(scale.Place({1, 10, 0, 0, 0, 0}), At(0, 0));
  EXPECT_EQ(scale.Place({3, 99, 0, 0, 0, 0}), At(kFeatureGrid, 0));  // a feature that never differed says nothing
  EXPECT_EQ(scale.Place({-5, 0, 0, 0, 0, 0}), At(0, 0));
  EXPECT_EQ(scale.Place({9, 0, 0, 0, 0, 0}), At(kFeatureGrid, 0));
}

}  // namespace
}  // namespace horus
