// SPDX-License-Identifier: Apache-2.0
// Cores as the speed of a job: by hand, to the microsecond.
#include <gtest/gtest.h>

#include "lab/metrics.h"
#include "sim_setup.h"

namespace horus {
namespace {

using testing_sim::FixedTruth;
using testing_sim::SimSetup;
using testing_sim::Type;

SharedSensitivity HalfOneOrOneAndAHalf() {
  return SharedSensitivity(*Sensitivity::Create({2'000, 4'000, 8'000}, {1'000}, std::vector<float>{0.5, 1, 1.5}));
}

// Two GPUs and eight cores: the fair share is four.
struct EightCores {
  SimSetup setup;
  std::vector<SharedSensitivity> sensitivities = {HalfOneOrOneAndAHalf()};
  explicit EightCores(std::string_view policy) : setup(policy) {
    NodeSpec node{.id = 2, .cpu_milli = 8'000, .mem_mib = 64'000};
    node.devices = std::vector<DeviceSpec>(2, DeviceSpec{.type = Type("v100-sxm2-16gb")});
    EXPECT_TRUE(setup.cluster.AddNode(node).ok());
    EXPECT_TRUE(setup.cluster.RemoveNode(1).ok());
    setup.AddProfile(40, 1000);
    setup.options.sensitivities = &sensitivities;
  }
  absl::StatusOr<SimResult> Go() {
    const SensitiveTruth truth(std::make_shared<FixedTruth>(setup.truth), sensitivities);
    return Simulate(setup.trace, setup.beliefs, truth, setup.cluster, *setup.queue, *setup.placer, setup.options);
  }
};

TEST(SimHost, WhoStatesNothingHasItsFairShare) {
  EightCores eight("exclusive");
  eight.setup.AddJob(0, 100);
  const auto result = eight.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end_us, 100);
}

TEST(SimHost, WhoAsksForLessThanItNeedsIsSlow) {
  EightCores eight("exclusive");
  eight.setup.AddJob(0, 100);
  eight.setup.AddJob(0, 100);
  eight.setup.AddJob(0, 100);
  eight.setup.trace.jobs[0].cpu_milli = 2'000;
  eight.setup.trace.jobs[1].cpu_milli = 1'000;  // below all that was measured
  eight.setup.trace.jobs[2].cpu_milli = 8'000;
  const auto result = eight.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end_us, 200);
  EXPECT_EQ(result->jobs[1].end_us, 200);
  EXPECT_EQ(result->jobs[2].end_us, 267) << "100 at 1.5 from 200 on";
  EXPECT_EQ(MetricsOf(eight.setup.trace, *result).slowdown.mean, 1) << "by neighbours alone";
}

// The first is granted all cores and did 15 at 10, when it is cut back to its fair share for the second.
TEST(SimHost, ARunningJobIsCutBackToItsFairShare) {
  EightCores eight("synergy-tune");
  eight.setup.AddJob(0, 100);
  eight.setup.AddJob(10, 40);
  const auto result = eight.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].start_us, 10);
  EXPECT_EQ(result->jobs[1].end_us, 50);
  EXPECT_EQ(result->jobs[0].end_us, 95);
  EXPECT_EQ(result->jobs[0].sums.done, Work(100) * kFullRate);
}

// When two that keep each half of the GPU's speed run with so many cores each; 8 would give the GPU's own speed, 1.5.
int64_t EndBesideAnother(int64_t cpu_milli) {
  EightCores eight("first-fit");
  eight.setup.truth.share = {{{0, 0}, 0.5}};
  eight.setup.AddJob(0, 100);
  eight.setup.AddJob(0, 100);
  for (TraceJob& job : eight.setup.trace.jobs) job.cpu_milli = cpu_milli;
  const auto result = eight.Go();
  EXPECT_TRUE(result.ok()) << result.status();
  return result->jobs[0].end_us;
}

TEST(SimHost, AStepIsTheSlowerOfItsInputAndItsShareOfTheGpu) {
  EXPECT_EQ(EndBesideAnother(2'000), 200) << "at 0.5 by its cores: of the GPU there is 1.5 / (1 + 1/3)";
  EXPECT_EQ(EndBesideAnother(4'000), 112) << "at 1.5 / (1 + 2/3) by the GPU, of which each uses two thirds";
}

// The first has all cores and did 15 at 10, half of them until the second ends at 50, and all again.
TEST(SimHost, WhatOneGaveBackGoesToTheOther) {
  EightCores eight("horus");
  eight.setup.AddJob(0, 100);
  eight.setup.AddJob(10, 40);
  const auto result = eight.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].start_us, 10);
  EXPECT_EQ(result->jobs[1].end_us, 50);
  EXPECT_EQ(result->jobs[0].end_us, 80);
}

}  // namespace
}  // namespace horus
