// SPDX-License-Identifier: Apache-2.0
// Nodes that fail, and what of their jobs' work is left: by hand, to the microsecond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/grid.h"
#include "lab/metrics.h"
#include "sim_setup.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_sim::SimSetup;
using testing_sim::Type;
using Kind = SimEventKind;

// One job of 100 on the only GPU.
SimSetup OneJob(std::vector<NodeOutage> outages) {
  SimSetup setup("exclusive");
  setup.AddProfile(40, 1000);
  setup.AddJob(0, 100);
  setup.options.outages = std::move(outages);
  return setup;
}

TEST(SimNodes, WithoutAnIntervalNothingIsLost) {
  SimSetup setup = OneJob({{1, 30, 50}});
  setup.options.restart_us = 5;
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end_us, 125);
  EXPECT_EQ(result->jobs[0].lost, 0);
  EXPECT_EQ(result->jobs[0].interruptions, 1);
  EXPECT_EQ(result->jobs[0].restarts, 1);
  EXPECT_EQ(result->use.device_us, 105) << "those that were up";
  EXPECT_EQ(result->backlog_us, 20);
  const std::vector<std::tuple<Kind, int64_t, uint32_t>> expected = {{Kind::kArrive, 0, 0},
                                                                     {Kind::kStart, 0, 0},
                                                                     {Kind::kNodeDown, 30, kNotStated},
                                                                     {Kind::kInterrupt, 30, 0},
                                                                     {Kind::kNodeUp, 50, kNotStated},
                                                                     {Kind::kStart, 55, 0},
                                                                     {Kind::kFinish, 125, 0}};
  EXPECT_EQ(setup.events, expected);
}

// Checkpoints at 20, and at 70 and 90 of the run that begins at 50: 10 and then 5 are lost.
TEST(SimNodes, AFailureGoesBackToTheLastCheckpoint) {
  SimSetup setup = OneJob({{1, 30, 50}, {1, 95, 100}});
  setup.options.checkpoint_us = 20;
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end_us, 140);
  EXPECT_EQ(result->jobs[0].lost, Work(15) * kFullRate);
  EXPECT_EQ(result->jobs[0].sums.done, Work(115) * kFullRate);
  EXPECT_EQ(result->jobs[0].ran_us, 115);
  EXPECT_EQ(result->most_done_us, 139);
  EXPECT_EQ(MetricsOf(setup.trace, *result).interruptions, 2u);
}

TEST(SimNodes, ACheckpointAtTheFailureCounts) {
  SimSetup setup = OneJob({{1, 40, 50}});
  setup.options.checkpoint_us = 20;
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].lost, 0);
  EXPECT_EQ(result->jobs[0].end_us, 110);
}

// 0 did 10 alone and 5 beside 1 when it writes at 20, and 5 more until 30, which are lost; 1 had 10 left of 20 and
// wrote nothing since 10, so that it begins anew.
TEST(SimNodes, WhatIsOnDiskFollowsTheRate) {
  SimSetup setup("first-fit");
  setup.AddProfile(40, 1000);
  setup.AddProfile(30, 1000);
  setup.truth.share = {{{0, 1}, 0.5}, {{1, 0}, 0.5}};
  setup.options.checkpoint_us = 20;
  setup.options.outages = {{1, 29, 50}};
  setup.AddJob(0, 100, 0);
  setup.AddJob(10, 20, 1);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].lost, Work(9) * kFullRate / 2);
  EXPECT_EQ(result->jobs[1].lost, Work(19) * kFullRate / 2);
  EXPECT_EQ(result->jobs[1].end_us, 90);   // 20 at half its speed
  EXPECT_EQ(result->jobs[0].end_us, 155);  // of 85 it did 20 until 90
}

TEST(SimNodes, WhoIsElsewhereNoticesNothing) {
  SimSetup setup("exclusive");
  NodeSpec node{.id = 2, .cpu_milli = 64'000, .mem_mib = 1 << 20};
  node.devices = std::vector<DeviceSpec>(2, DeviceSpec{.type = Type("v100-sxm2-16gb")});
  ASSERT_TRUE(setup.cluster.AddNode(node).ok());
  setup.AddProfile(40, 1000);
  setup.options.outages = {{1, 30, 500}};
  setup.AddJob(0, 100);
  setup.AddJob(0, 100);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end_us, 100) << "at once on the other node";
  EXPECT_EQ(result->jobs[0].interruptions, 1);
  EXPECT_EQ(result->jobs[1].interruptions, 0);
  EXPECT_EQ(result->jobs[1].end_us, 100);
  EXPECT_EQ(result->end_us, 100) << "what happens to nodes later does not count";
}

TEST(SimNodes, AJobThatIsToStartWaitsAgain) {
  SimSetup setup = OneJob({{1, 5, 20}});
  setup.options.latency_us = 10;
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].start_us, 30);
  EXPECT_EQ(result->jobs[0].restarts, 0);
  EXPECT_EQ(result->jobs[0].end_us, 130);
}

TEST(SimNodes, RefusesOutagesThatCannotBe) {
  EXPECT_THAT(std::string(OneJob({{7, 30, 50}}).Go().status().message()),
              HasSubstr("outages[0]: node: expected one of the cluster, found 7"));
  EXPECT_THAT(std::string(OneJob({{1, 30, 30}}).Go().status().message()), HasSubstr("outages[0]: until_us"));
  EXPECT_THAT(std::string(OneJob({{1, 30, kMaxTraceTimeUs + 1}}).Go().status().message()), HasSubstr("at most"));
  EXPECT_THAT(std::string(OneJob({{1, 30, 50}, {1, 40, 60}}).Go().status().message()),
              HasSubstr("expected one at a time of node 1, found another at 40 us"));
  EXPECT_TRUE(OneJob({{1, 30, 50}, {1, 50, 60}}).Go().ok()) << "one ends as the next begins";
}

TEST(Outages, AreThoseOfTheSeedNodeByNode) {
  const std::vector<NodeId> two = {3, 9};
  const OutageOptions options{.mean_up_us = 1'000, .mean_down_us = 100, .until_us = 1'000'000, .seed = 4};
  const auto all = *DrawOutages(two, options);
  EXPECT_EQ(all, *DrawOutages(two, options));
  const auto one = *DrawOutages({&two[1], 1}, options);
  std::vector<NodeOutage> of_second;
  int64_t free_at[2] = {0, 0};
  double down = 0;
  for (const NodeOutage& outage : all) {
    int64_t& before = free_at[outage.node == 9 ? 1 : 0];
    EXPECT_GE(outage.from_us, before);
    EXPECT_GT(outage.until_us, outage.from_us);
    EXPECT_LT(outage.from_us, options.until_us);
    before = outage.until_us;
    down += static_cast<double>(outage.until_us - outage.from_us);
    if (outage.node == 9) of_second.push_back(outage);
  }
  EXPECT_EQ(of_second, one);
  EXPECT_NEAR(down / static_cast<double>(all.size()), 100, 10);
  EXPECT_NEAR(2e6 / static_cast<double>(all.size()), 1'100, 110);
}

TEST(Outages, AreNotMoreThanTheirLimit) {
  const std::vector<NodeId> node = {1};
  EXPECT_EQ(DrawOutages(node, {.mean_up_us = 1, .mean_down_us = 1, .until_us = 100'000'000}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace horus
