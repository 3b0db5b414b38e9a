// SPDX-License-Identifier: Apache-2.0
// Gangs that come again are placed as if each were the first.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "interference/registry.h"
#include "place/placer.h"
#include "random_cluster.h"

namespace horus {
namespace {

using testing_property::Random;

constexpr uint64_t kNodes = 40, kGpus = 4, kRack = 8, kKinds = 6;

JobSpec JobOf(JobId id, uint64_t kind, int32_t tasks) {
  JobSpec job;
  job.id = id;
  job.tasks = tasks;
  for (const uint64_t type : {0u, 1u}) {
    Demand demand;
    demand.profile_id = 1 + kind;
    const auto util = static_cast<float>(10 + (kind * 37 + type * 11) % 60);
    demand.gpu_util_pct = {util, util};
    demand.mem_mib = {100, 100};
    demand.step_time_us = {100'000, 100'000};
    job.demands.push_back({testing_property::TypeAt(type), demand});
  }
  if (job.demands[1].type < job.demands[0].type) std::swap(job.demands[0], job.demands[1]);
  return job;
}

Cluster BusyCluster(Random& random) {
  Cluster cluster(Catalogue::Default());
  JobId id = 1;
  for (NodeId n = 0; n < kNodes; ++n) {
    NodeSpec node;
    node.id = n;
    node.rack = n / kRack;
    node.devices.assign(kGpus, DeviceSpec{.type = testing_property::TypeAt(random.Below(2))});
    EXPECT_TRUE(cluster.AddNode(node).ok());
    for (int32_t device = 0; device < static_cast<int32_t>(kGpus); ++device) {
      for (uint64_t residents = random.Below(3); residents > 0; --residents) {
        const std::vector<Slot> slot = {{n, device, 0}};
        EXPECT_TRUE(cluster.Adopt(JobOf(id++, random.Below(kKinds), 1), slot).ok());
      }
    }
  }
  return cluster;
}

// Jobs of one GPU and gangs come and go. The placer that remembers decides as one that judges every device anew.
TEST(GangPaces, WhatIsRememberedChangesNoDecision) {
  constexpr std::array<int32_t, 4> kSizes = {6, 9, 14, 20};
  int spanning = 0;
  for (const std::string_view model : {"utilisation", "boosted"}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      Random random(seed);
      Cluster cluster = BusyCluster(random);
      const auto make = [&](bool exhaustive) {
        return *Placer::Create(*MakeInterferenceModel(model), *MakePolicy("horus"),
                               {.slowdown_bound = 2.5, .exhaustive = exhaustive});
      };
      const auto remembers = make(false), forgets = make(true);
      std::vector<JobId> running;
      for (JobId id = 10'000; id < 10'060; ++id) {
        const bool gang = random.Below(3) > 0;
        const JobSpec job = JobOf(id, random.Below(kKinds), gang ? kSizes[random.Below(kSizes.size())] : 1);
        const auto plan = remembers->MakePlan(cluster, {&job, 1});
        const auto expected = forgets->MakePlan(cluster, {&job, 1});
        ASSERT_TRUE(plan.ok() && expected.ok());
        ASSERT_EQ(plan->decisions, expected->decisions) << model << ", seed " << seed << ", job " << id;
        spanning += plan->decisions[0].spans_nodes ? 1 : 0;
        ASSERT_TRUE(cluster.Apply(*plan).ok());
        if (!plan->actions.empty()) running.push_back(id);
        if (running.size() > 6) {
          const auto gone = running.begin() + static_cast<std::ptrdiff_t>(random.Below(running.size()));
          ASSERT_TRUE(cluster.Release(*gone).ok());
          running.erase(gone);
        }
      }
    }
  }
  EXPECT_GT(spanning, 200);
}

}  // namespace
}  // namespace horus
