// SPDX-License-Identifier: Apache-2.0
// The bound on the work rate: programs solved by hand, refusals; built where the solver's library is.
#include "lab/bound/work_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "draw.h"

namespace horus {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kExact = 1e-9;
constexpr uint32_t kAlone = WorkUse::kAlone;

WorkRate Solve(const WorkProblem& problem, double bound = 1e9) {
  const auto rate = WorkRateBound(problem, {.slowdown_bound = bound});
  EXPECT_TRUE(rate.ok()) << rate.status();
  return rate.ok() ? *rate : WorkRate{};
}

// One type of `gpus` GPUs on which each profile does 1 alone.
WorkProblem OneType(double gpus, std::vector<double> mix, std::vector<PairSpeed> pairs) {
  std::vector<double> alone(mix.size(), 1);
  return {.gpus = {gpus}, .mix = std::move(mix), .alone = std::move(alone), .pairs = std::move(pairs)};
}

TEST(WorkRate, APairThatFitsTheMixRunsEverywhere) {
  const WorkRate rate = Solve(OneType(10, {1, 1}, {{0, 0, 1, 0.8, 0.8}}));
  EXPECT_THAT(rate.exclusive, DoubleNear(10, kExact));
  EXPECT_THAT(rate.bound, DoubleNear(16, kExact));
  ASSERT_EQ(rate.uses.size(), 1);
  EXPECT_THAT(rate.uses[0].gpus, DoubleNear(10, kExact));
  EXPECT_THAT(rate.uses[0].rate, DoubleNear(16, kExact));
}

TEST(WorkRate, WhatThePairLeavesOfTheMixRunsAlone) {
  // Of the mix 3 : 1 the pair does equal parts: p of 4 GPUs share, 0.8 p = r / 4 and (4 - p) + 0.8 p = 3 r / 4.
  // p = 5 r / 16 and 4 = r / 2 + 5 r / 16, so r = 64 / 13 and p = 20 / 13.
  const WorkRate rate = Solve(OneType(4, {3, 1}, {{0, 0, 1, 0.8, 0.8}}));
  EXPECT_THAT(rate.bound, DoubleNear(64.0 / 13, kExact));
  ASSERT_EQ(rate.uses.size(), 2);
  EXPECT_EQ(rate.uses[1], (WorkUse{0, 0, kAlone, rate.uses[1].gpus, rate.uses[1].rate}));
  EXPECT_THAT(rate.uses[1].gpus, DoubleNear(4 - 20.0 / 13, kExact));
  EXPECT_THAT(rate.uses[0].gpus, DoubleNear(20.0 / 13, kExact));
}

TEST(WorkRate, TheSidesOfAPairMayLoseUnlikeParts) {
  // 0.9 p = r / 2 and 0.3 p + s = r / 2 with p + s = 1: p = 5 r / 9, s = r / 3, r = 9 / 8.
  const std::vector<PairSpeed> pairs = {{0, 0, 1, 0.9, 0.3}};
  EXPECT_THAT(Solve(OneType(1, {1, 1}, pairs)).bound, DoubleNear(9.0 / 8, kExact));
  // Told from the other side it is the same pair.
  EXPECT_THAT(Solve(OneType(1, {1, 1}, {{0, 1, 0, 0.3, 0.9}})).bound, DoubleNear(9.0 / 8, kExact));
}

TEST(WorkRate, TwoCopiesOfAProfileShare) {
  const WorkRate rate = Solve(OneType(2, {1, 1}, {{0, 0, 0, 0.75, 0.75}}));
  // r / 2 = 1.5 p and r / 2 = s with p + s = 2.
  EXPECT_THAT(rate.bound, DoubleNear(2.4, kExact));
}

TEST(WorkRate, APairThatDoesNoMoreThanItsJobsInTurnIsNeverUsed) {
  for (const double speed : {0.5, 0.3}) {
    const WorkRate rate = Solve(OneType(5, {1, 1}, {{0, 0, 1, speed, speed}}));
    EXPECT_EQ(rate.bound, rate.exclusive);
    for (const WorkUse& use : rate.uses) EXPECT_EQ(use.b, kAlone);
  }
}

TEST(WorkRate, TheBoundLeavesOutPairsWithASideBeyondIt) {
  const WorkProblem problem = OneType(1, {1, 1}, {{0, 0, 1, 0.9, 0.5}});
  EXPECT_EQ(Solve(problem, 1.99).bound, Solve(problem, 1.99).exclusive);
  EXPECT_GT(Solve(problem, 2).bound, 1.1);
}

TEST(WorkRate, ABoundCountsTheStatedSlowdownNotTheSpeed) {
  const WorkProblem problem = OneType(1, {1, 1}, {{0, 0, 1, 0.9, 0.9, 1.6}});
  EXPECT_EQ(Solve(problem, 1.5).bound, Solve(problem, 1.5).exclusive);
  EXPECT_THAT(Solve(problem, 1.6).bound, DoubleNear(1.8, kExact));
}

TEST(WorkRate, PairsThatDidNotRunTogetherAreNone) {
  const WorkRate rate = Solve(OneType(3, {1, 1}, {{0, 0, 1, 0, 0}, {0, 0, 0, 0, 0}}));
  EXPECT_EQ(rate.bound, rate.exclusive);
  EXPECT_THAT(rate.exclusive, DoubleNear(3, kExact));
}

TEST(WorkRate, ProfilesGoToTheTypeThatSuitsThem) {
  // Type 0 does both at 1; type 1 does profile 0 at 4 and profile 1 at 1. Half the work each: profile 1 fills type 0
  // and the rest of it a part t of type 1: 1 + t = 4 (1 - t), t = 3 / 5, r = 2 * 8 / 5.
  WorkProblem problem{.gpus = {1, 1}, .mix = {1, 1}, .alone = {1, 1, 4, 1}, .pairs = {}};
  EXPECT_THAT(Solve(problem).exclusive, DoubleNear(3.2, kExact));
  // A pair on type 1, its speeds in full: (4 p, p) beside s alone: 4 (1 - p - s) + 4 p = 1 + p + s.
  problem.pairs = {{1, 0, 1, 1, 1}};
  // All of profile 0's work fits beside: p = 1 gives 4 and 2, so 4 p = 1 + p + s with p + s = 1: p = 1 / 2, r = 4.
  EXPECT_THAT(Solve(problem).bound, DoubleNear(4, kExact));
}

TEST(WorkRate, AProfileStaysOnTheTypesThatRunIt) {
  // Profile 1 runs on type 0 alone: r / 2 <= 1 there, and type 1 idles in part.
  const WorkProblem problem{.gpus = {1, 1}, .mix = {1, 1}, .alone = {1, 1, 3, 0}, .pairs = {}};
  EXPECT_THAT(Solve(problem).exclusive, DoubleNear(2, kExact));
}

TEST(WorkRate, PricesProveTheBound) {
  const WorkProblem problem = OneType(4, {3, 1}, {{0, 0, 1, 0.8, 0.8}});
  const WorkRate rate = Solve(problem);
  EXPECT_THAT(0.75 * rate.prices[0] + 0.25 * rate.prices[1], DoubleNear(1, kExact));
  // Profile 0 alone and the pair are both worth a GPU's rental: p0 = q, 0.8 (p0 + p1) = q.
  EXPECT_THAT(rate.prices, ElementsAre(DoubleNear(16.0 / 13, kExact), DoubleNear(4.0 / 13, kExact)));
  EXPECT_THAT(rate.rentals, ElementsAre(DoubleNear(16.0 / 13, kExact)));
}

TEST(WorkRate, ProfilesWithoutWorkAndTypesWithoutGpusDoNotCount) {
  const WorkProblem problem{
      .gpus = {2, 0}, .mix = {1, 0, 1}, .alone = {1, 1, 1, 9, 9, 9}, .pairs = {{0, 0, 1, 1, 1}, {1, 0, 2, 1, 1}}};
  const WorkRate rate = Solve(problem);
  EXPECT_THAT(rate.exclusive, DoubleNear(2, kExact));
  EXPECT_EQ(rate.bound, rate.exclusive);
}

// A cluster of 2 GPUs of types 0 and 1 runs, in each of 2 slots, any of the ways: no such schedule does its own work
// faster than the bound of that work's mix.
TEST(WorkRate, NoScheduleOfATinyClusterPassesTheBound) {
  uint64_t drawn = 0;
  const auto draw = [&drawn] { return Draw(drawn++); };
  int tight = 0;
  for (int instance = 0; instance < 12; ++instance) {
    constexpr uint32_t kProfiles = 3;
    WorkProblem problem{.gpus = {1, 1}, .mix = {}, .alone = {}, .pairs = {}};
    for (int i = 0; i < 6; ++i) problem.alone.push_back(0.5 + draw());
    std::vector<std::vector<std::vector<double>>> ways(2);  // [type][way][profile] work a slot
    for (uint32_t gpu = 0; gpu < 2; ++gpu) {
      for (uint32_t a = 0; a < kProfiles; ++a) {
        ways[gpu].emplace_back(kProfiles, 0.0)[a] = problem.alone[gpu * kProfiles + a];
        for (uint32_t b = a; b < kProfiles; ++b) {
          const PairSpeed pair = {gpu, a, b, 0.3 + 0.7 * draw(), 0.3 + 0.7 * draw()};
          problem.pairs.push_back(pair);
          auto& way = ways[gpu].emplace_back(kProfiles, 0.0);
          way[a] += problem.alone[gpu * kProfiles + a] * pair.speed_a;
          way[b] += problem.alone[gpu * kProfiles + b] * pair.speed_b;
        }
      }
    }
    for (size_t x = 0; x < ways[0].size(); ++x) {
      for (size_t y = 0; y < ways[1].size(); ++y) {
        problem.mix.assign(kProfiles, 0);
        double work = 0;
        for (uint32_t k = 0; k < kProfiles; ++k) {
          // Slot 1 runs x and y, slot 2 the next ways of both types.
          problem.mix[k] = ways[0][x][k] + ways[1][y][k] + ways[0][(x + 1) % ways[0].size()][k] +
                           ways[1][(y + 1) % ways[1].size()][k];
          work += problem.mix[k];
        }
        const double bound = Solve(problem).bound;
        EXPECT_GE(bound, work / 2 * (1 - kExact));
        tight += bound < work / 2 * (1 + 1e-6) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(tight, 0);  // some schedules reach their bound: it is not merely large
}

TEST(WorkRate, RefusesWhatIsNoProblem) {
  const auto refusal = [](WorkProblem problem, double bound = 2) {
    return std::string(WorkRateBound(problem, {.slowdown_bound = bound}).status().message());
  };
  EXPECT_THAT(refusal({}), HasSubstr("found 0 and 0"));
  EXPECT_THAT(refusal(OneType(1, {0, 0}, {})), HasSubstr("expected some work"));
  EXPECT_THAT(refusal(OneType(1, {1, -1}, {})), HasSubstr("mix[1]"));
  EXPECT_THAT(refusal(OneType(0, {1}, {})), HasSubstr("mix[0]: expected a GPU that runs this profile"));
  EXPECT_THAT(refusal(OneType(1, {1}, {{0, 0, 1, 1, 1}})), HasSubstr("pairs[0]: expected one of 1 GPU types"));
  EXPECT_THAT(refusal(OneType(1, {1}, {{0, 0, 0, 1, 0}})), HasSubstr("or two zeros"));
  EXPECT_THAT(refusal(OneType(1, {1}, {{0, 0, 0, 1, std::nan("")}})), HasSubstr("or two zeros"));
  EXPECT_THAT(refusal(OneType(1, {1}, {{0, 0, 0, 1, 1, 0.5}})), HasSubstr("slowdown"));
  EXPECT_THAT(refusal(OneType(1, {1, 1}, {{0, 0, 1, 1, 1}, {0, 1, 0, 1, 1}})), HasSubstr("pairs[1]: expected each"));
  EXPECT_THAT(refusal(OneType(1, {1}, {}), 0.9), HasSubstr("slowdown bound: expected at least 1"));
  WorkProblem elsewhere{.gpus = {1, 1}, .mix = {1, 1}, .alone = {1, 0, 1, 1}, .pairs = {{0, 0, 1, 1, 1}}};
  EXPECT_THAT(refusal(elsewhere), HasSubstr("expected profiles that run alone on GPU type 0"));
  elsewhere.alone.pop_back();
  EXPECT_THAT(refusal(elsewhere), HasSubstr("alone: expected 4 rates"));
}

TEST(WorkRate, SaysThatTheSolverIsMissing) {
  const auto rate = WorkRateBound(OneType(1, {1}, {}), {.lp_library = "/nowhere/libhorus_lp.so"});
  EXPECT_EQ(rate.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(rate.status().message()), HasSubstr("HORUS_WITH_LP=ON"));
}

}  // namespace
}  // namespace horus
