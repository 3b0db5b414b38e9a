// SPDX-License-Identifier: Apache-2.0
// The index decides as the scan of all devices does, where there are more kinds of devices than its lists hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "interference/registry.h"
#include "place/placer.h"
#include "place/state/cluster.h"
#include "random_cluster.h"

namespace horus {
namespace {

using testing_property::Random;
using testing_property::RandomJob;
using testing_property::RandomNode;

// Jobs of one GPU that share, as far as the policy lets them.
std::vector<JobSpec> Sharers(Random& random, size_t count) {
  std::vector<JobSpec> profiles;
  while (profiles.size() < count) {
    JobSpec job = RandomJob(random, 0, 40);
    if (IsCpuOnly(job)) continue;
    job.tasks = job.gpus_per_task = 1;
    job.gpu_milli = 0;
    job.exclusive = false;
    job.gpu_mem_request_mib = job.gpu_mem_limit_mib = 0;  // else few of so many fit
    profiles.push_back(std::move(job));
  }
  return profiles;
}

std::unique_ptr<Placer> MakePlacer(std::string_view model, bool exhaustive) {
  return *Placer::Create(*MakeInterferenceModel(model), *MakePolicy("horus"), {.exhaustive = exhaustive});
}

// Enough different devices that the lists of best ones are cut off, used up and made anew.
TEST(PlaceIndex, DecidesAsAScanOverManyStates) {
  constexpr NodeId kNodes = 250;
  constexpr JobId kResidents = 700;
  for (const std::string_view model : {"utilisation", "boosted"}) {
    SCOPED_TRACE(model);
    Random random(21);
    Cluster cluster(Catalogue::Default());
    for (NodeId id = 0; id < kNodes; ++id) ASSERT_TRUE(cluster.AddNode(RandomNode(random, id)).ok());
    const auto indexed = MakePlacer(model, false);
    const auto scan = MakePlacer(model, true);
    const std::vector<JobSpec> profiles = Sharers(random, 12);
    std::vector<JobId> residents;
    int placed = 0;
    for (JobId id = 0; id < kResidents + HORUS_PROPERTY_OPS / 20; ++id) {
      JobSpec job = profiles[random.Below(profiles.size())];
      job.id = id;
      const auto plan = indexed->MakePlan(cluster, {&job, 1});
      ASSERT_TRUE(plan.ok()) << plan.status();
      if (id >= kResidents) {
        ASSERT_EQ(plan->decisions, scan->MakePlan(cluster, {&job, 1})->decisions) << "job " << id;
        placed += plan->decisions[0].verdict == Verdict::kPlace ? 1 : 0;
      }
      ASSERT_TRUE(cluster.Apply(*plan).ok());
      if (!plan->actions.empty()) residents.push_back(id);
      if (id < kResidents || plan->actions.empty()) continue;  // as many stay as there are
      const size_t victim = random.Below(residents.size());
      ASSERT_TRUE(cluster.Release(residents[victim]).ok());
      residents.erase(residents.begin() + static_cast<ptrdiff_t>(victim));
    }
    EXPECT_GT(placed, HORUS_PROPERTY_OPS / 50);
  }
}

// More classes, and more kinds of neighbours, than are looked at together; some stay away for good, others come then.
TEST(PlaceIndex, DecidesAsAScanForManyClasses) {
  constexpr NodeId kNodes = 40;
  constexpr size_t kClasses = 400;  // at a time
  constexpr size_t kResidents = 100;
  Random random(23);
  Cluster cluster(Catalogue::Default());
  for (NodeId id = 0; id < kNodes; ++id) ASSERT_TRUE(cluster.AddNode(RandomNode(random, id)).ok());
  const auto indexed = MakePlacer("boosted", false);
  const auto scan = MakePlacer("boosted", true);
  const std::vector<JobSpec> profiles = Sharers(random, 2 * kClasses);
  std::vector<JobId> residents;
  int placed = 0;
  constexpr JobId kJobs = std::max(6'000, HORUS_PROPERTY_OPS / 10);
  for (JobId id = 0; id < kJobs; ++id) {
    const size_t first = id < kJobs / 2 ? 0 : kClasses;
    JobSpec job = profiles[first + random.Below(kClasses)];
    job.id = id;
    const auto plan = indexed->MakePlan(cluster, {&job, 1});
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (random.OneIn(4)) {
      ASSERT_EQ(plan->decisions, scan->MakePlan(cluster, {&job, 1})->decisions) << "job " << id;
      placed += plan->decisions[0].verdict == Verdict::kPlace ? 1 : 0;
    }
    ASSERT_TRUE(cluster.Apply(*plan).ok());
    if (!plan->actions.empty()) residents.push_back(id);
    if (residents.size() <= kResidents) continue;
    const size_t victim = random.Below(residents.size());
    ASSERT_TRUE(cluster.Release(residents[victim]).ok());
    residents.erase(residents.begin() + static_cast<ptrdiff_t>(victim));
  }
  EXPECT_GT(placed, 500);
}

// A full cluster: most jobs are refused, by what changes with every release, drain and return.
TEST(PlaceIndex, RefusalsAreThoseOfAScan) {
  constexpr NodeId kNodes = 12;
  for (const std::string_view model : {"utilisation", "boosted"}) {
    SCOPED_TRACE(model);
    Random random(22);
    Cluster cluster(Catalogue::Default());
    for (NodeId id = 0; id < kNodes; ++id) ASSERT_TRUE(cluster.AddNode(RandomNode(random, id)).ok());
    const auto indexed = MakePlacer(model, false);
    const auto scan = MakePlacer(model, true);
    std::vector<JobSpec> profiles;
    while (profiles.size() < 8) {
      JobSpec job = RandomJob(random, 0, 40);
      if (IsCpuOnly(job)) continue;
      job.tasks = job.gpus_per_task = 1;
      job.gpu_milli = 0;
      profiles.push_back(std::move(job));
    }
    std::vector<JobId> residents;
    int placed = 0;
    int refused = 0;
    for (JobId id = 0; id < HORUS_PROPERTY_OPS / 10; ++id) {
      JobSpec job = profiles[random.Below(profiles.size())];
      job.id = id;
      const auto plan = indexed->MakePlan(cluster, {&job, 1});
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_EQ(plan->decisions, scan->MakePlan(cluster, {&job, 1})->decisions) << "job " << id;
      (plan->actions.empty() ? refused : placed) += 1;
      ASSERT_TRUE(cluster.Apply(*plan).ok());
      if (!plan->actions.empty()) residents.push_back(id);
      if (random.Below(8) == 0) {
        const auto state = static_cast<AdminState>(random.Below(3));
        ASSERT_TRUE(cluster.SetNodeState(random.Below(kNodes), state).ok());
      }
      if (random.Below(3) > 0 || residents.empty()) continue;
      const size_t victim = random.Below(residents.size());
      ASSERT_TRUE(cluster.Release(residents[victim]).ok());
      residents.erase(residents.begin() + static_cast<ptrdiff_t>(victim));
    }
    EXPECT_GT(placed, HORUS_PROPERTY_OPS / 50);
    EXPECT_GT(refused, HORUS_PROPERTY_OPS / 50);
  }
}

}  // namespace
}  // namespace horus
