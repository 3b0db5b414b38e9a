// SPDX-License-Identifier: Apache-2.0
// Memory that is larger than believed: who dies of it, and what becomes of the job.
#include <gtest/gtest.h>

#include "lab/metrics.h"
#include "sim_setup.h"

namespace horus {
namespace {

using testing_sim::Needs;
using testing_sim::SimSetup;
using testing_sim::Type;
using Kind = SimEventKind;

// Both are believed to take 1,000 MiB of 16,384 and take 9,000.
TEST(SimMemory, TheNewcomerDiesAndIsRetriedAlone) {
  SimSetup setup;
  setup.AddProfile(40, 1000);
  setup.truth.mem_mib = {{0, 9000}};
  setup.AddJob(0, 100);
  setup.AddJob(10, 40);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end_us, 100) << "those who are there notice nothing";
  EXPECT_EQ(result->jobs[1].out_of_memory, 1);
  EXPECT_EQ(result->jobs[1].failures, 0);
  EXPECT_EQ(result->jobs[1].start_us, 100);
  EXPECT_EQ(result->jobs[1].end_us, 140);
  EXPECT_EQ(MetricsOf(setup.trace, *result).out_of_memory, 1u);
  EXPECT_EQ(setup.events[3], std::make_tuple(Kind::kOutOfMemory, int64_t{10}, 1u));
}

TEST(SimMemory, WhatFitsRunsTogether) {
  SimSetup setup;
  setup.AddProfile(40, 1000);
  setup.truth.mem_mib = {{0, 8000}};
  setup.AddJob(0, 100);
  setup.AddJob(10, 40);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].out_of_memory, 0);
  EXPECT_EQ(result->jobs[1].end_us, 50);
}

TEST(SimMemory, WhatFitsNowhereAloneIsRejected) {
  SimSetup setup("exclusive");
  setup.AddProfile(40, 1000);
  setup.truth.mem_mib = {{0, 20'000}};
  setup.AddJob(0, 100);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end, SimEnd::kRejected);
  EXPECT_EQ(result->jobs[0].out_of_memory, 1);
  EXPECT_EQ(setup.cluster.job_count(), 0u);
}

TEST(SimMemory, ATypeThatIsTooSmallIsNotTriedAgain) {
  SimSetup setup;
  setup.AddProfile(40, 1000);
  const GpuTypeId small = Type("v100-sxm2-16gb");
  const GpuTypeId large = Type("v100-sxm2-32gb");
  setup.beliefs[0] = {{std::min(small, large), Needs(40, 1000)}, {std::max(small, large), Needs(40, 1000)}};
  NodeSpec node{.id = 2, .cpu_milli = 64'000, .mem_mib = 1 << 20};
  node.devices = std::vector<DeviceSpec>{DeviceSpec{.type = large}};
  ASSERT_TRUE(setup.cluster.AddNode(node).ok());
  setup.truth.mem_mib = {{0, 20'000}};
  setup.AddJob(0, 100);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end_us, 100) << "first-fit tries the small one first, at the same time";
  EXPECT_EQ(result->jobs[0].out_of_memory, 1);
}

// 60 jobs of 12 kinds on 4 GPUs of 16,384 MiB, two and three beside each other. A kind is believed to take 2,000 to
// 7,500 MiB, at most half as much again, and takes `times` as much; a third of the starts that die may be the
// neighbour's.
uint64_t DeathsWhereTrueMemoryIs(double times, bool with_unknown = false) {
  SimSetup setup("horus", 4, 3);
  const auto add = [&setup](int64_t estimate, int64_t upper, int64_t truth) {
    setup.AddProfile(20, estimate);
    setup.beliefs.back()[0].demand.mem_mib.upper = upper;
    setup.beliefs.back()[0].demand.flags = kDemandPredicted;
    const auto profile = static_cast<uint32_t>(setup.beliefs.size() - 1);
    setup.truth.mem_mib[profile] = truth;
    return profile;
  };
  if (with_unknown) setup.AddJob(0, 100, add(1400, kUnboundedMemMib, 15'000));  // understood too little
  for (int64_t job = 0; job < 60; ++job) {
    constexpr int64_t kKinds = 12;
    const int64_t estimate = 2000 + 500 * job;
    const uint32_t profile =
        job < kKinds ? add(estimate, estimate * 3 / 2, static_cast<int64_t>(static_cast<double>(estimate) * times))
                     : setup.trace.jobs[setup.trace.jobs.size() - kKinds].profile;
    setup.AddJob(job, 100 + job % 7, profile);
  }
  const auto result = setup.Go();
  EXPECT_TRUE(result.ok()) << result.status();
  const SimMetrics metrics = MetricsOf(setup.trace, *result);
  EXPECT_EQ(result->jobs[0].start_us, 0);
  EXPECT_LT(result->jobs.back().end_us, 60 * 100 / 4) << "as many GPUs shared by nobody would take longer";
  return metrics.out_of_memory;
}

TEST(SimMemory, NobodyDiesOfAWrongBeliefWhoseBoundHolds) {
  EXPECT_EQ(DeathsWhereTrueMemoryIs(1.0), 0u);
  EXPECT_EQ(DeathsWhereTrueMemoryIs(1.5), 0u) << "half as much again as believed, as the bound says";
  EXPECT_EQ(DeathsWhereTrueMemoryIs(1.5, /*with_unknown=*/true), 0u) << "what has no bound is put beside nobody";
  EXPECT_GT(DeathsWhereTrueMemoryIs(2.2), 0u) << "a bound that breaks kills";
}

}  // namespace
}  // namespace horus
