// SPDX-License-Identifier: Apache-2.0
// Jobs that are all different are placed as by a look at every device.
#include <gtest/gtest.h>

#include <algorithm>
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

constexpr uint64_t kNodes = 150, kGpus = 4;  // hundreds of states of each type: the tree over them has many leaves

JobSpec JobOf(JobId id, Random& random) {
  JobSpec job;
  job.id = id;
  job.weight = static_cast<float>(1 + random.Below(3));
  job.exclusive = random.Below(20) == 0;
  if (random.Below(4) == 0) job.slowdown_bound = 1.0f + 0.1f * static_cast<float>(1 + random.Below(10));
  for (const uint64_t type : {0u, 1u}) {
    Demand demand;
    demand.profile_id = id;
    const auto util = static_cast<float>(1 + random.Below(99));
    demand.gpu_util_pct = {util, std::min(100.0f, util + static_cast<float>(random.Below(20)))};
    const auto mem = static_cast<int64_t>(50 + random.Below(4000));
    demand.mem_mib = {mem, mem};
    const auto step_us = static_cast<int64_t>(50'000 + random.Below(100'000));
    demand.step_time_us = {step_us, step_us};
    job.demands.push_back({testing_property::TypeAt(type), demand});
  }
  if (job.demands[1].type < job.demands[0].type) std::swap(job.demands[0], job.demands[1]);
  return job;
}

TEST(UniqueJobs, TheTreeOfStatesChangesNoDecision) {
  int placed = 0;
  for (const std::string_view model : {"utilisation", "boosted"}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      Random random(seed);
      Cluster cluster(Catalogue::Default());
      std::vector<JobId> running;
      JobId id = 0;
      for (NodeId n = 0; n < kNodes; ++n) {
        NodeSpec node;
        node.id = n;
        node.devices.assign(kGpus, DeviceSpec{.type = testing_property::TypeAt(n % 2)});
        ASSERT_TRUE(cluster.AddNode(node).ok());
        for (int32_t device = 0; device < static_cast<int32_t>(kGpus); ++device) {
          for (uint64_t residents = 2 + random.Below(2); residents > 0; --residents) {
            JobSpec job = JobOf(++id, random);
            job.exclusive = false;
            const std::vector<Slot> slot = {{n, device, 0}};
            ASSERT_TRUE(cluster.Adopt(job, slot).ok());
            running.push_back(id);
          }
        }
      }
      const auto make = [&](bool exhaustive) {
        return *Placer::Create(*MakeInterferenceModel(model), *MakePolicy("horus"),
                               {.slowdown_bound = 2.5, .exhaustive = exhaustive});
      };
      const auto fast = make(false), thorough = make(true);
      for (int i = 0; i < 300; ++i) {
        const JobSpec job = JobOf(++id, random);
        const auto plan = fast->MakePlan(cluster, {&job, 1});
        const auto expected = thorough->MakePlan(cluster, {&job, 1});
        ASSERT_TRUE(plan.ok() && expected.ok());
        ASSERT_EQ(plan->decisions, expected->decisions) << model << ", seed " << seed << ", job " << id;
        ASSERT_TRUE(cluster.Apply(*plan).ok());
        if (plan->actions.empty()) continue;
        ++placed;
        running.push_back(id);
        const uint64_t gone = random.Below(running.size());
        ASSERT_TRUE(cluster.Release(running[gone]).ok());
        running[gone] = running.back();
        running.pop_back();
      }
    }
  }
  EXPECT_GT(placed, 1000);
}

}  // namespace
}  // namespace horus
