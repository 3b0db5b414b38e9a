// SPDX-License-Identifier: Apache-2.0
// Work rates beside the bound of the linear program for the work that was done.
#include <gtest/gtest.h>

#include "interference/registry.h"
#include "lab/grid.h"

namespace horus {
namespace {

// One GPU, forty jobs of "a", of which two at once do 0.75 each: the bound is 1.5 times one alone.
Grid Pairs(const std::string& policy) {
  Grid grid;
  grid.catalogue = Catalogue::Default();
  const GpuTypeId type = *grid.catalogue->Find("v100-sxm2-16gb");
  NodeSpec node{.id = 1, .cpu_milli = 64'000, .mem_mib = 1 << 20};
  node.devices.assign(1, DeviceSpec{.type = type, .max_tenants = 2});
  grid.nodes.push_back(node);
  grid.truth.speeds = SpeedTable{
      .profiles = {"a"}, .gpus = {"v100"}, .alone = {2}, .pairs = {{.a = 0, .b = 0, .speed_a = 0.75, .speed_b = 0.75}}};
  grid.truth.types = {type};
  grid.beliefs = CompleteBeliefs(
      grid, {{"a", {{GpuTypeId(), {.gpu_util_pct = {30, 40}, .mem_mib = {1000, 1'000'000}, .flags = kDemandGiven}}}}});
  GridWorkload workload{.name = "w"};
  workload.synthetic = *SyntheticPreset("philly");
  workload.synthetic.jobs = 40;
  workload.synthetic.profiles = {{.name = "a"}};
  workload.edits = {.single_gpu = true, .backlog = true};
  grid.workloads.push_back(workload);
  grid.policies.push_back({.name = "p", .policy = policy, .model = *MakeInterferenceModel("utilisation")});
  grid.policies[0].placer_options.slowdown_bound = std::numeric_limits<double>::infinity();
  grid.seeds = {1};
  grid.lp_bound = true;
  return grid;
}

TEST(GridBound, ExclusiveUseClosesNothingOfTheGapAndPairsAllOfIt) {
  const auto alone = RunOne(Pairs("exclusive"), {0, 0, 1});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_NEAR(alone->metrics.bound_rate, 1.5, 1e-9);
  EXPECT_NEAR(*alone->metrics.gap_closed, 0, 1e-9);
  Grid grid = Pairs("first-fit");
  grid.beliefs.at("a")[0].demand.mem_mib = {1000, 1000};
  const auto paired = RunOne(grid, {0, 0, 1});
  ASSERT_TRUE(paired.ok()) << paired.status();
  EXPECT_NEAR(paired->metrics.backlog_rate, 1.5, 1e-3);
  EXPECT_NEAR(*paired->metrics.gap_closed, 1, 1e-2);
}

TEST(GridBound, IsNotAskedForUnlessWanted) {
  Grid grid = Pairs("exclusive");
  grid.lp_bound = false;
  const auto outcome = RunOne(grid, {0, 0, 1});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->metrics.bound_rate, 0);
  EXPECT_FALSE(outcome->metrics.gap_closed.has_value());
}

// 1,000,000 MiB are predicted at most; it runs all the same, for it was measured there.
TEST(GridBound, WhatWasMeasuredAloneHasRoom) {
  const auto outcome = RunOne(Pairs("exclusive"), {0, 0, 1});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->metrics.rejected, 0);
  EXPECT_EQ(outcome->metrics.finished, outcome->metrics.jobs);
}

}  // namespace
}  // namespace horus
