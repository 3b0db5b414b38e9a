// SPDX-License-Identifier: Apache-2.0
// Fragments of a small cluster, by hand, and what a simulation makes of them and of its beliefs.
#include "sim/fragments.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/metrics.h"
#include "world.h"

namespace horus {
namespace {

using testing_sim::Type;
using testing_sim::World;

// Half of the tasks want one GPU, half want two.
Trace OnesAndTwos() {
  Trace trace;
  trace.jobs = {{.id = 0, .submit_us = 0, .duration_us = 100, .profile = 0},
                {.id = 1, .submit_us = 40, .duration_us = 60, .profile = 0, .gpus_per_task = 2}};
  return trace;
}

TEST(Fragments, AreTheFreeGpusThatATypicalTaskCannotUse) {
  World world("exclusive", 2);
  FragmentMeter meter(world.cluster, WorkloadOf(OnesAndTwos(), world.cluster.catalogue()));
  EXPECT_EQ(meter.free(), 2'000'000);
  EXPECT_EQ(meter.fragment(), 0);
  const std::vector<uint32_t> first = {0};
  meter.Take(0, first, 1000, 0, 1);
  EXPECT_EQ(meter.free(), 1'000'000);
  EXPECT_EQ(meter.fragment(), 500'000) << "the half that wants two has no use for one";
  meter.Take(0, first, 1000, 0, 1);
  EXPECT_EQ(meter.free(), 1'000'000) << "a second holder takes nothing that is free";
  meter.Take(0, first, 1000, 0, -1);
  meter.SetUp(0, false);
  EXPECT_EQ(meter.free(), 0);
  EXPECT_EQ(meter.fragment(), 0);
  meter.SetUp(0, true);
  meter.Take(0, first, 1000, 0, -1);
  EXPECT_EQ(meter.free(), 2'000'000);
  EXPECT_EQ(meter.fragment(), 0);
}

TEST(Fragments, NoCpuLeavesNothingOfUse) {
  World world("exclusive", 2);
  Trace trace = OnesAndTwos();
  trace.jobs[0].cpu_milli = 60'000;
  FragmentMeter meter(world.cluster, WorkloadOf(trace, world.cluster.catalogue()));
  meter.Take(0, {}, 0, 10'000, 1);
  EXPECT_EQ(meter.fragment(), 1'000'000);
}

TEST(Fragments, TypesThatTheCatalogueLacksCountNothing) {
  World world("exclusive", 2);
  Trace trace = OnesAndTwos();
  trace.type_lists = {{"no such GPU"}};
  trace.jobs[1].gpu_types = 0;
  EXPECT_EQ(WorkloadOf(trace, world.cluster.catalogue())->classes().size(), 1u);
  trace.jobs[0].gpu_types = 0;
  EXPECT_EQ(WorkloadOf(trace, world.cluster.catalogue()), nullptr);
}

// One GPU is free, half of it of use, until 100; then both are taken.
TEST(Fragments, ASimulationWeighsThemByTime) {
  World world("exclusive", 2);
  world.AddProfile(40, 1000);
  world.trace.jobs = OnesAndTwos().jobs;
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->use.free_us, absl::int128(100) * 1'000'000);
  EXPECT_EQ(result->use.fragment_us, absl::int128(100) * 500'000);
  EXPECT_DOUBLE_EQ(MetricsOf(world.trace, *result).fragmentation, 0.5);
}

// Utilisations of 60 and 80 per cent: the model believes a slowdown of 1.4 for both, which is really 1.25 and 2.
TEST(Beliefs, AreComparedWithTheTruthWhenSharingBegins) {
  World world;
  world.AddProfile(60, 1000);
  world.AddProfile(80, 1000);
  world.truth.share = {{{0, 1}, 0.8}, {{1, 0}, 0.5}};
  world.AddJob(0, 100, 0);
  world.AddJob(10, 40, 1);
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->beliefs, 2u);
  const double expected = (std::log(1.4 / 1.25) + std::log(2 / 1.4)) / 2;
  EXPECT_NEAR(MetricsOf(world.trace, *result).belief_error, expected, 1e-6);
}

TEST(Beliefs, SayNothingOfJobsAlone) {
  World world("exclusive");
  world.AddProfile(60, 1000);
  world.AddJob(0, 100, 0);
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->beliefs, 0u);
  EXPECT_EQ(MetricsOf(world.trace, *result).belief_error, 0);
}

TEST(DecisionTimes, AreOfEveryDecision) {
  SimResult result;
  result.took_us = {1, 2, 3, 10};
  EXPECT_EQ(DecisionTimes(result), (Spread{4, 2, 10, 10}));
}

}  // namespace
}  // namespace horus
