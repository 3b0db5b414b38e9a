// SPDX-License-Identifier: Apache-2.0
// Fragments of a small cluster, by hand, and what a simulation makes of them and of its beliefs.
#include <gtest/gtest.h>

#include <cmath>

#include "lab/metrics.h"
#include "lab/run/use_meter.h"
#include "sim_setup.h"

namespace horus {
namespace {

using testing_sim::SimSetup;
using testing_sim::Type;

// Half of the tasks want one GPU, half want two.
Trace OnesAndTwos() {
  Trace trace;
  trace.jobs = {{.id = 0, .submit_us = 0, .duration_us = 100, .profile = 0},
                {.id = 1, .submit_us = 40, .duration_us = 60, .profile = 0, .gpus_per_task = 2}};
  return trace;
}

TEST(Fragments, AreTheFreeGpusThatATypicalTaskCannotUse) {
  SimSetup setup("exclusive", 2);
  const ClusterMap map(setup.cluster);
  UseMeter meter(setup.cluster, map, WorkloadOf(OnesAndTwos(), setup.cluster.catalogue()));
  const TraceJob job;  // of one GPU
  EXPECT_EQ(meter.free(), 2'000'000);
  EXPECT_EQ(meter.fragment(), 0);
  const std::vector<uint32_t> first = {0};
  meter.Take(job, first, {}, 1);
  EXPECT_EQ(meter.free(), 1'000'000);
  EXPECT_EQ(meter.fragment(), 500'000) << "the half that wants two has no use for one";
  meter.Take(job, first, {}, 1);
  EXPECT_EQ(meter.free(), 1'000'000) << "a second holder takes nothing that is free";
  meter.Take(job, first, {}, -1);
  meter.SetUp(0, false);
  EXPECT_EQ(meter.free(), 0);
  EXPECT_EQ(meter.fragment(), 0);
  meter.SetUp(0, true);
  meter.Take(job, first, {}, -1);
  EXPECT_EQ(meter.free(), 2'000'000);
  EXPECT_EQ(meter.fragment(), 0);
}

TEST(Fragments, NoCpuLeavesNothingOfUse) {
  SimSetup setup("exclusive", 2);
  Trace trace = OnesAndTwos();
  trace.jobs[0].cpu_milli = 60'000;
  const ClusterMap map(setup.cluster);
  UseMeter meter(setup.cluster, map, WorkloadOf(trace, setup.cluster.catalogue()));
  const std::vector<uint32_t> node = {0};
  meter.Take({.cpu_milli = 10'000, .gpus_per_task = 0}, {}, node, 1);
  EXPECT_EQ(meter.fragment(), 1'000'000);
}

TEST(Fragments, TypesThatTheCatalogueLacksCountNothing) {
  SimSetup setup("exclusive", 2);
  Trace trace = OnesAndTwos();
  trace.type_lists = {{"no such GPU"}};
  trace.jobs[1].gpu_types = 0;
  EXPECT_EQ(WorkloadOf(trace, setup.cluster.catalogue())->classes().size(), 1u);
  trace.jobs[0].gpu_types = 0;
  EXPECT_EQ(WorkloadOf(trace, setup.cluster.catalogue()), nullptr);
}

// One GPU is free, half of it of use, until 100; then both are taken.
TEST(Fragments, ASimulationWeighsThemByTime) {
  SimSetup setup("exclusive", 2);
  setup.AddProfile(40, 1000);
  setup.trace.jobs = OnesAndTwos().jobs;
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->use.free_us, absl::int128(100) * 1'000'000);
  EXPECT_EQ(result->use.fragment_us, absl::int128(100) * 500'000);
  EXPECT_DOUBLE_EQ(MetricsOf(setup.trace, *result).fragmentation, 0.5);
}

// Utilisations of 60 and 80 per cent: the model believes a slowdown of 1.4 for both, which is really 1.25 and 2.
TEST(Beliefs, AreComparedWithTheTruthWhenSharingBegins) {
  SimSetup setup;
  setup.AddProfile(60, 1000);
  setup.AddProfile(80, 1000);
  setup.truth.share = {{{0, 1}, 0.8}, {{1, 0}, 0.5}};
  setup.AddJob(0, 100, 0);
  setup.AddJob(10, 40, 1);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->beliefs, 2u);
  const double expected = (std::log(1.4 / 1.25) + std::log(2 / 1.4)) / 2;
  EXPECT_NEAR(MetricsOf(setup.trace, *result).belief_error, expected, 1e-6);
}

TEST(Beliefs, SayNothingOfJobsAlone) {
  SimSetup setup("exclusive");
  setup.AddProfile(60, 1000);
  setup.AddJob(0, 100, 0);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->beliefs, 0u);
  EXPECT_EQ(MetricsOf(setup.trace, *result).belief_error, 0);
}

TEST(DecisionTimes, AreOfEveryDecision) {
  SimResult result;
  result.took_us = {1, 2, 3, 10};
  EXPECT_EQ(DecisionTimes(result), (Spread{4, 2, 10, 10}));
}

}  // namespace
}  // namespace horus
