// SPDX-License-Identifier: Apache-2.0
// Rules of a batch that does not fit: who of those who wait goes, who is passed over, and what work is worth.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "fixtures.h"
#include "place/modes/batch.h"
#include "place/search/prices.h"

namespace horus {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing_place::AtPriority;
using testing_place::Gang;
using testing_place::MakePlacer;
using testing_place::Needs;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::Type;
using testing_place::V100Node;

constexpr int64_t kHourUs = 3'600'000'000;

// One GPU with a resident that is 30 % busy; at most two tenants.
Cluster OneSharedGpu() {
  Cluster cluster = Nodes(1, 1);
  EXPECT_TRUE(cluster.Adopt(OneGpu(1, 30), std::vector<Slot>{{1, 0, 0}}).ok());
  return cluster;
}

Plan Batch(const Cluster& cluster, const std::vector<JobSpec>& jobs, const BatchOptions& options = {}) {
  const auto placer = MakePlacer("horus", {.max_tenants = 2});
  auto plan = PlanBatch(*placer, cluster, jobs, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

JobSpec SubmittedAt(JobSpec job, int64_t submit_us) {
  job.submit_us = submit_us;
  return job;
}

TEST(QueueBatch, TheJobGoesWhosePlaceIsWorthMost) {
  const Plan plan = Batch(OneSharedGpu(), {OneGpu(2, 95), OneGpu(3, 40)}, {.prices = false});
  EXPECT_EQ(plan.decisions[1].verdict, Verdict::kPlace);
  EXPECT_EQ(plan.decisions[0].verdict, Verdict::kDefer);
  EXPECT_EQ(plan.decisions[0].reason, Reason::kPassedOver);
  ASSERT_EQ(plan.actions.size(), 1u);
  EXPECT_EQ(plan.actions[0].job->id, 3u);
}

TEST(QueueBatch, WhoIsPassedOverIsToldByWhomAndWhatHindersItNow) {
  const Decision passed = Batch(OneSharedGpu(), {OneGpu(2, 95), OneGpu(3, 40)}, {.prices = false}).decisions[0];
  EXPECT_EQ(passed.passed_by, 3u);
  EXPECT_EQ(passed.miss.reason, Reason::kTenantLimit);
  EXPECT_THAT(DescribeDecision(passed), testing::HasSubstr("job 3 goes first"));
}

// The first is placed alone; the second comes beside it.
TEST(QueueBatch, WhoIsJoinedByLaterJobsOfThePlanIsToldHowSlowItWillBe) {
  const std::vector<JobSpec> jobs = {OneGpu(2, 60), OneGpu(3, 60)};
  const auto placer = MakePlacer("horus", {.max_tenants = 2});
  for (const Plan& plan : {Batch(Nodes(1, 1), jobs), *placer->MakePlan(Nodes(1, 1), jobs)}) {
    const Decision &first = plan.decisions[0], &second = plan.decisions[1];
    ASSERT_EQ(second.effects.size(), 2u);
    EXPECT_EQ(first.own.estimate, 1);
    EXPECT_EQ(first.in_plan, second.effects[1].after);
    EXPECT_EQ(second.in_plan, second.own);
    EXPECT_THAT(DescribeDecision(first), testing::HasSubstr("placed after it"));
  }
}

// A neighbour that is expected to cost nothing may still cost something.
TEST(QueueBatch, WhatAPlanMayDoToItsJobsIsTheWorstOfAllEffects) {
  std::vector<Decision> decisions(3);
  decisions[0] = {.job = 1, .slots = {{1, 0, 0}}, .own = {1, 1}, .in_plan = {1, 1}};
  decisions[1].effects = {{.job = 1, .node = 1, .after = {1, 1.4f}}, {.job = 9, .node = 1, .after = {2, 3}}};
  decisions[2].effects = {{.job = 1, .node = 1, .after = {1.2f, 1.3f}}};
  TellInPlan(decisions);
  EXPECT_EQ(decisions[0].in_plan, (Slowdown{1.2f, 1.4f}));
}

// It does not fit, whoever waits: nobody took its place.
TEST(QueueBatch, WhoIsHeldUpAndDoesNotFitIsNotToldThatItWould) {
  JobSpec large = OneGpu(2, 95, 15'000), other = OneGpu(3, 40, 15'000);
  const BatchOptions options{.now_us = kHourUs, .patience_us = kHourUs};
  other.submit_us = 1;
  const Decision held = Batch(OneSharedGpu(), {large, other}, options).decisions[1];
  EXPECT_EQ(held.verdict, Verdict::kDefer);
  EXPECT_EQ(DescribeDecision(held).find("it would fit"), std::string::npos);
}

TEST(QueueBatch, WhoFitsNowhereIsNotPassedOver) {
  const Plan plan = Batch(OneSharedGpu(), {OneGpu(2, 40, 15'000), OneGpu(3, 40)});
  EXPECT_EQ(plan.decisions[0].verdict, Verdict::kDefer);
  EXPECT_NE(plan.decisions[0].reason, Reason::kPassedOver);
  EXPECT_EQ(plan.decisions[1].verdict, Verdict::kPlace);
}

// It is looked at after a job of a higher priority took its place.
TEST(QueueBatch, WhoWouldFitNoEmptyClusterIsNotPassedOver) {
  JobSpec never = OneGpu(2, 40, 40'000);
  never.demands[0].demand.flags = kDemandPredicted;
  const Plan plan = Batch(OneSharedGpu(), {never, AtPriority(OneGpu(3, 40), 1)});
  EXPECT_EQ(plan.decisions[1].reason, Reason::kGpuMemory);
  EXPECT_TRUE(plan.decisions[1].predicted_never);
}

TEST(QueueBatch, NobodyPassesAHigherPriority) {
  const Plan plan = Batch(OneSharedGpu(), {OneGpu(2, 40), AtPriority(OneGpu(3, 95), 1)});
  EXPECT_EQ(plan.decisions[0].job, 3u);
  EXPECT_EQ(plan.decisions[0].verdict, Verdict::kPlace);
}

TEST(QueueBatch, OnlyTheWindowIsCompared) {
  const Plan plan = Batch(OneSharedGpu(), {OneGpu(2, 95), OneGpu(3, 40)}, {.window = 1, .prices = false});
  EXPECT_EQ(plan.decisions[0].verdict, Verdict::kPlace);
}

TEST(QueueBatch, NobodyPassesWhoWaitedTooLong) {
  const std::vector<JobSpec> jobs = {SubmittedAt(OneGpu(2, 95), 0), SubmittedAt(OneGpu(3, 40), kHourUs)};
  BatchOptions options{.now_us = 2 * kHourUs, .patience_us = 2 * kHourUs, .prices = false};
  EXPECT_EQ(Batch(OneSharedGpu(), jobs, options).decisions[0].verdict, Verdict::kPlace);
  options.now_us -= 1;
  EXPECT_EQ(Batch(OneSharedGpu(), jobs, options).decisions[0].reason, Reason::kPassedOver);
}

TEST(QueueBatch, WhoWaitedTooLongAndFitsNowhereHoldsUpThoseWhoWantSuchGpusAlone) {
  JobSpec large = OneGpu(2, 95, 15'000), small = OneGpu(3, 40, 100);
  const BatchOptions options{.now_us = kHourUs, .patience_us = kHourUs};
  small.submit_us = 1;
  const Plan held = Batch(OneSharedGpu(), {large, small}, options);
  EXPECT_EQ(held.decisions[1].reason, Reason::kPassedOver);
  EXPECT_EQ(held.decisions[1].passed_by, 0u);
  large.demands[0].type = testing_place::Type("a100-40gb");
  small.demands[0].type = testing_place::Type("v100-sxm2-16gb");
  const Plan apart = Batch(OneSharedGpu(), {large, small}, options);
  EXPECT_EQ(apart.decisions[1].verdict, Verdict::kPlace);
}

TEST(QueueBatch, TheSameJobsInAnyOrderGiveTheSamePlan) {
  std::vector<JobSpec> jobs;
  for (JobId id = 10; id < 40; ++id) jobs.push_back(OneGpu(id, static_cast<float>(5 + 13 * (id % 7))));
  const Plan first = Batch(Nodes(2, 2), jobs);
  std::shuffle(jobs.begin(), jobs.end(), std::mt19937(1));
  EXPECT_EQ(Batch(Nodes(2, 2), jobs).decisions, first.decisions);
}

// A job of one GPU that is faster on the only node that has two, where a gang waits for both.
TEST(QueueBatch, TheLargestGoFirstWhereTheyWouldBeLeft) {
  Cluster cluster = Nodes(1, 2);
  NodeSpec single = V100Node(2, 1);
  single.devices[0].type = Type("k80");
  ASSERT_TRUE(cluster.AddNode(single).ok());
  JobSpec one = OneGpu(1), gang = Gang(2, 1, 2);
  one.exclusive = gang.exclusive = true;
  const auto placed = [&](float weight, int64_t k80_us, int32_t priority = 0) {
    one.weight = weight, one.priority = priority;
    one.demands = {{Type("k80"), Needs(40, 1000, k80_us)}, {Type("v100-sxm2-16gb"), Needs(40, 1000, 1000)}};
    const Plan plan = Batch(cluster, {one, gang}, {.prices = false});
    EXPECT_EQ(Batch(cluster, {gang, one}, {.prices = false}).actions.size(), plan.actions.size());
    EXPECT_EQ(plan.decisions[0].slots.front().node, plan.actions.size() == 2 ? 2u : 1u);
    return plan.actions.size();
  };
  EXPECT_EQ(placed(1, 1250), 2u);
  EXPECT_EQ(placed(5, 1250), 2u) << "worth more than the gang, by itself";
  EXPECT_EQ(placed(5, 10'000), 1u) << "it would lose more than the gang does";
  EXPECT_EQ(placed(1, 1250, 1), 1u) << "nobody passes it";
}

// One part of A (30 % busy) to four of B (95 %): A goes beside B, both at 0.8, the rest is B beside B, both at 1 / 1.9.
// With r the worth of a GPU 2/1.9 b = r and 0.8 (a + b) = r, and a/5 + 4b/5 = 1: r = 1.2195, b = 1.1585, a = 0.3659.
TEST(WorkPrices, AreWhatTheDualOfTheBestPlanSays) {
  const std::vector<WorkWay> ways = {
      {0, 0, 0, 1, 0}, {0, 1, 1, 1, 0}, {0, 0, 1, 0.8, 0.8}, {0, 1, 1, 1 / 1.9, 1 / 1.9}};
  const std::vector<double> gpus = {8}, mix = {10, 40};
  EXPECT_THAT(PriceMix(gpus, mix, ways), ElementsAre(DoubleNear(0.366, 0.03), DoubleNear(1.159, 0.01)));
}

// At any prices no plan does the mix faster than the GPUs' best ways are worth, so the least such worth is the best
// rate.
double ProvedRate(const std::vector<double>& gpus, const std::vector<double>& mix, const std::vector<WorkWay>& ways,
                  const std::vector<double>& prices) {
  std::vector<double> best(gpus.size(), 0);
  double worth = 0, all = 0, rate = 0;
  for (size_t k = 0; k < mix.size(); ++k) worth += prices[k] * mix[k], all += mix[k];
  for (const WorkWay& way : ways)
    best[way.gpu] = std::max(best[way.gpu], way.rate_a * prices[way.a] + way.rate_b * prices[way.b]);
  for (size_t g = 0; g < gpus.size(); ++g) rate += gpus[g] * best[g];
  return rate / (worth / all);
}

TEST(WorkPrices, ProveALowerRateThanEqualPrices) {
  double least = 1;
  std::mt19937 random(7);
  std::uniform_real_distribution<double> draw(0, 1);
  for (int trial = 0; trial < 20; ++trial) {
    const uint32_t kinds = 3 + static_cast<uint32_t>(random() % 30);
    const std::vector<double> gpus = {40, 24};
    std::vector<double> mix(kinds), busy(kinds);
    for (uint32_t k = 0; k < kinds; ++k) mix[k] = 1 + 50 * draw(random), busy[k] = 0.1 + 0.9 * draw(random);
    std::vector<WorkWay> ways;
    for (uint32_t g = 0; g < 2; ++g) {
      for (uint32_t a = 0; a < kinds; ++a) {
        ways.push_back({g, a, a, g == 0 ? 1 : 0.5, 0});
        for (uint32_t b = a; b < kinds; ++b) {
          const double slow = std::max(1.0, (busy[a] + busy[b]) * (1 + 0.3 * draw(random)));
          ways.push_back({g, a, b, (g == 0 ? 1 : 0.5) / slow, (g == 0 ? 1 : 0.5) / slow});
        }
      }
    }
    const double equal = ProvedRate(gpus, mix, ways, std::vector<double>(kinds, 1));
    const double found = ProvedRate(gpus, mix, ways, PriceMix(gpus, mix, ways));
    EXPECT_LT(found, 1.02 * equal) << trial;
    least = std::min(least, found / equal);
  }
  EXPECT_LT(least, 0.95);
}

}  // namespace
}  // namespace horus
