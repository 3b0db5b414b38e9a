// SPDX-License-Identifier: Apache-2.0
// Memory that is larger than believed: who dies of it, and what becomes of the job.
#include <gtest/gtest.h>

#include "sim/metrics.h"
#include "world.h"

namespace horus {
namespace {

using testing_sim::Needs;
using testing_sim::Type;
using testing_sim::World;
using Kind = SimEventKind;

// Both are believed to take 1,000 MiB of 16,384 and take 9,000.
TEST(SimMemory, TheNewcomerDiesAndIsRetriedAlone) {
  World world;
  world.AddProfile(40, 1000);
  world.truth.mem_mib = {{0, 9000}};
  world.AddJob(0, 100);
  world.AddJob(10, 40);
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end_us, 100) << "those who are there notice nothing";
  EXPECT_EQ(result->jobs[1].out_of_memory, 1);
  EXPECT_EQ(result->jobs[1].failures, 0);
  EXPECT_EQ(result->jobs[1].start_us, 100);
  EXPECT_EQ(result->jobs[1].end_us, 140);
  EXPECT_EQ(MetricsOf(world.trace, *result).out_of_memory, 1u);
  EXPECT_EQ(world.events[3], std::make_tuple(Kind::kOutOfMemory, int64_t{10}, 1u));
}

TEST(SimMemory, WhatFitsRunsTogether) {
  World world;
  world.AddProfile(40, 1000);
  world.truth.mem_mib = {{0, 8000}};
  world.AddJob(0, 100);
  world.AddJob(10, 40);
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].out_of_memory, 0);
  EXPECT_EQ(result->jobs[1].end_us, 50);
}

TEST(SimMemory, WhatFitsNowhereAloneIsRejected) {
  World world("exclusive");
  world.AddProfile(40, 1000);
  world.truth.mem_mib = {{0, 20'000}};
  world.AddJob(0, 100);
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end, SimEnd::kRejected);
  EXPECT_EQ(result->jobs[0].out_of_memory, 1);
  EXPECT_EQ(world.cluster.job_count(), 0u);
}

TEST(SimMemory, ATypeThatIsTooSmallIsNotTriedAgain) {
  World world;
  world.AddProfile(40, 1000);
  const GpuTypeId small = Type("v100-sxm2-16gb");
  const GpuTypeId large = Type("v100-sxm2-32gb");
  world.beliefs[0] = {{std::min(small, large), Needs(40, 1000)}, {std::max(small, large), Needs(40, 1000)}};
  NodeSpec node{.id = 2, .cpu_milli = 64'000, .mem_mib = 1 << 20};
  node.devices = std::vector<DeviceSpec>{DeviceSpec{.type = large}};
  ASSERT_TRUE(world.cluster.AddNode(node).ok());
  world.truth.mem_mib = {{0, 20'000}};
  world.AddJob(0, 100);
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end_us, 100) << "first-fit tries the small one first, at the same time";
  EXPECT_EQ(result->jobs[0].out_of_memory, 1);
}

}  // namespace
}  // namespace horus
