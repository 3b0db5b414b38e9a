// SPDX-License-Identifier: Apache-2.0
// What sharing could give: gains, admitted pairs and verdicts of problems solved by hand.
#include "lab/bound/potential.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <vector>

namespace horus {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr double kExact = 1e-9;
constexpr double kNone = std::numeric_limits<double>::infinity();

// Four GPUs and two profiles of equal work: a pair of 0.8 + 0.8 (slowdown 1.25), two copies of the first at 0.55 each
// (1.82), two of the second did not run.
WorkProblem Problem() {
  return {
      .gpus = {4}, .mix = {1, 1}, .alone = {1, 1}, .pairs = {{0, 0, 1, 0.8, 0.8}, {0, 0, 0, 0.55, 0.55}, {0, 1, 1}}};
}

TEST(SharingPotential, TellsGainAndAdmittedPairsOfEachBound) {
  const auto potential = SharingPotential(Problem(), {.slowdown_bounds = {1.2, 1.25, kNone}});
  ASSERT_TRUE(potential.ok()) << potential.status();
  EXPECT_EQ(potential->pairs, 3);
  EXPECT_EQ(potential->run, 2);
  EXPECT_EQ(potential->apart, 1);
  EXPECT_THAT(potential->exclusive, DoubleNear(4, kExact));
  ASSERT_EQ(potential->at.size(), 3);
  EXPECT_EQ(potential->at[0].admitted, 0);
  EXPECT_EQ(potential->at[0].gain, 0);
  EXPECT_FALSE(potential->at[0].pays);
  EXPECT_EQ(potential->at[1].admitted, 1);
  EXPECT_THAT(potential->at[1].admitted_of_mix, DoubleNear(0.5, kExact));  // two jobs of unlike profiles
  EXPECT_THAT(potential->at[1].gain, DoubleNear(0.6, kExact));
  EXPECT_THAT(potential->at[1].makespan_cut, DoubleNear(0.375, kExact));
  EXPECT_TRUE(potential->at[1].pays);
  EXPECT_EQ(potential->at[2].admitted, 2);
  EXPECT_THAT(potential->at[2].admitted_of_mix, DoubleNear(0.75, kExact));
}

TEST(SharingPotential, QuantilesAreSlowdownsOfPairsThatRun) {
  const auto potential = SharingPotential(Problem(), {.slowdown_bounds = {kNone}, .quantiles_pct = {0, 50, 51, 100}});
  ASSERT_TRUE(potential.ok()) << potential.status();
  ASSERT_EQ(potential->at.size(), 1);
  std::vector<double> bounds, admitted;
  for (const PotentialAtBound& at : potential->at_quantiles) {
    bounds.push_back(at.slowdown_bound);
    admitted.push_back(static_cast<double>(at.admitted));
  }
  EXPECT_THAT(bounds, ElementsAre(1 / 0.8, 1 / 0.8, 1 / 0.55, 1 / 0.55));  // the pair that did not run is none of them
  EXPECT_THAT(admitted, ElementsAre(1, 1, 2, 2));
  EXPECT_EQ(potential->at_quantiles[0].gain, potential->at_quantiles[1].gain);
  EXPECT_EQ(potential->at_quantiles[3].gain, potential->at[0].gain);
}

TEST(SharingPotential, WithoutAPairThatRunsThereAreNoQuantiles) {
  WorkProblem problem = Problem();
  problem.pairs = {{0, 1, 1}};
  const auto potential = SharingPotential(problem, {.quantiles_pct = {50}});
  ASSERT_TRUE(potential.ok()) << potential.status();
  EXPECT_TRUE(potential->at_quantiles.empty());
}

TEST(SharingPotential, PaysFromTheLeastGainOn) {
  // Without the pair the copies of the first profile: r / 2 = 1.1 p = s, p + s = 4: a gain of 1 / 21.
  WorkProblem problem = Problem();
  problem.pairs.erase(problem.pairs.begin());
  for (const double least : {0.047, 0.048}) {
    const auto potential = SharingPotential(problem, {.slowdown_bounds = {kNone}, .least_gain = least});
    ASSERT_TRUE(potential.ok());
    EXPECT_THAT(potential->at[0].gain, DoubleNear(1.0 / 21, kExact));
    EXPECT_EQ(potential->at[0].pays, least < 1.0 / 21);
  }
}

TEST(SharingPotential, APairOfOneTypeCountsByTheShareOfItsGpus) {
  WorkProblem problem = Problem();
  problem.gpus = {3, 1, 0};
  problem.alone = {1, 1, 1, 1, 1, 1};
  problem.pairs.push_back({2, 0, 1, 1, 1});
  const auto potential = SharingPotential(problem, {.slowdown_bounds = {1.25}});
  ASSERT_TRUE(potential.ok());
  EXPECT_EQ(potential->pairs, 6);
  EXPECT_EQ(potential->run, 2);
  EXPECT_THAT(potential->at[0].admitted_of_mix, DoubleNear(0.5 * 3 / 4, kExact));
}

TEST(SharingPotential, RefusesNoBoundsAndNegativeGains) {
  EXPECT_EQ(SharingPotential(Problem(), {.slowdown_bounds = {}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SharingPotential(Problem(), {.least_gain = -1}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SharingPotential(Problem(), {.quantiles_pct = {101}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SharingPotential(Problem(), {.slowdown_bounds = {0.5}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PairsThatCarry, NamesThePairsOfMostGpusFirst) {
  const WorkRate rate{.uses = {{0, 0, 1, 1}, {0, 0, WorkUse::kAlone, 9}, {0, 2, 3, 5}, {1, 0, 0, 3}}};
  const std::vector<WorkUse> pairs = PairsThatCarry(rate.uses, 2);
  ASSERT_EQ(pairs.size(), 2);
  EXPECT_EQ(pairs[0].gpus, 5);
  EXPECT_EQ(pairs[1].gpus, 3);
}

TEST(ShareOfGapClosed, IsNoneWhereThereIsHardlyAGap) {
  EXPECT_THAT(*ShareOfGapClosed(11, {.exclusive = 10, .bound = 14}), DoubleNear(0.25, kExact));
  EXPECT_THAT(*ShareOfGapClosed(9, {.exclusive = 10, .bound = 14}), DoubleNear(-0.25, kExact));
  EXPECT_EQ(ShareOfGapClosed(10.1, {.exclusive = 10, .bound = 10.1}), std::nullopt);
}

// On "odd" the second profile does not run and nothing shares; on "even" the two share without loss.
SpeedTable Table() {
  return {.profiles = {"a", "b"}, .gpus = {"odd", "even"}, .alone = {1, 0, 2, 2}, .pairs = {{1, 0, 1, 1, 1}}};
}

TEST(PotentialOfCluster, AsksForEachTypeAloneAndForAllTogether) {
  const std::vector<MixJob> jobs = {{0, 6}, {1, 6}};
  const std::vector<double> gpus = {2, 3};
  const auto cases = PotentialOfCluster(Table(), jobs, gpus, 0, 100, {.slowdown_bounds = {kNone}});
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_EQ(cases->size(), 3);
  EXPECT_EQ((*cases)[0].gpu, 0);
  EXPECT_THAT((*cases)[0].left_out, ElementsAre(1));
  EXPECT_THAT((*cases)[0].potential->exclusive, DoubleNear(2, kExact));
  EXPECT_EQ((*cases)[1].gpu, 1);
  EXPECT_THAT((*cases)[1].potential->exclusive, DoubleNear(3, kExact));
  EXPECT_THAT((*cases)[1].potential->at[0].gain, DoubleNear(1, kExact));
  EXPECT_EQ((*cases)[2].gpu, std::nullopt);
  EXPECT_EQ((*cases)[2].gpus, 5);
  // In seconds of "odd" (6) and, for "b", of "even" (3): a : b = 2 : 1. Even does 2 of a or 1 of b a GPU, odd 1 of a.
  // Alone: 2 + 2 (3 - s) = 2 s, s = 2: a 4 and b 2. Shared: b is at most 3, and a 6 beside it.
  EXPECT_THAT((*cases)[2].potential->exclusive, DoubleNear(6, kExact));
  EXPECT_THAT((*cases)[2].potential->at[0].rate.bound, DoubleNear(9, kExact));
}

TEST(PotentialOfCluster, LeavesOutTypesWithoutGpusAndSaysWhereNothingRuns) {
  const std::vector<MixJob> jobs = {{1, 6}};
  const std::vector<double> none = {2, 0}, gpus = {2, 1};
  const auto alone = PotentialOfCluster(Table(), jobs, none, 0, 100);
  ASSERT_TRUE(alone.ok()) << alone.status();
  ASSERT_EQ(alone->size(), 1);
  EXPECT_EQ((*alone)[0].potential, std::nullopt);
  const auto both = PotentialOfCluster(Table(), jobs, gpus, 0, 100);
  ASSERT_TRUE(both.ok()) << both.status();
  ASSERT_EQ(both->size(), 3);
  EXPECT_TRUE((*both)[2].potential.has_value());
}

TEST(PotentialOfCluster, LeavesOtherUnitsOutWhereTypesComeTogether) {
  const std::vector<MixJob> jobs = {{0, 6}, {1, 6}};
  const std::vector<double> gpus = {2, 3};
  const auto cases = PotentialOfCluster(Table(), jobs, gpus, 0, 100, {.slowdown_bounds = {kNone}, .other_units = {1}});
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_THAT((*cases)[1].left_out, ElementsAre());
  EXPECT_THAT((*cases)[1].potential->at[0].gain, DoubleNear(1, kExact));
  EXPECT_THAT((*cases)[2].left_out, ElementsAre(1));
  EXPECT_THAT((*cases)[2].potential->exclusive, DoubleNear(8, kExact));  // "a" alone: 2 and 3 GPUs, twice as fast
}

}  // namespace
}  // namespace horus
