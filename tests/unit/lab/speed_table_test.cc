// SPDX-License-Identifier: Apache-2.0
// The mix of work that jobs bring: seconds alone, clipped, on the type that counts.
#include "lab/truth/speed_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace horus {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

// Two types; profile "c" runs on the second alone, "d" nowhere.
SpeedTable Table() {
  return {.profiles = {"a", "b", "c", "d"},
          .gpus = {"slow", "fast"},
          .alone = {1, 2, 0, 0, 4, 4, 5, 0},
          .pairs = {{1, 0, 1, 0.5, 0.5}}};
}

TEST(WorkByProfile, CountsSecondsAloneOnTheReferenceType) {
  const std::vector<MixJob> jobs = {{0, 10}, {1, 10}, {0, 2}};
  EXPECT_THAT(WorkByProfile(Table(), jobs, 0, 100), ElementsAre(12, 5, 0, 0));
  EXPECT_THAT(WorkByProfile(Table(), jobs, 1, 100), ElementsAre(3, 2.5, 0, 0));
}

TEST(WorkByProfile, TakesTheFirstTypeThatRunsWhatTheReferenceDoesNot) {
  EXPECT_EQ(UnitType(Table(), 2, 0), 1);
  EXPECT_EQ(UnitType(Table(), 3, 0), 0);
  const std::vector<MixJob> jobs = {{2, 10}, {3, 10}};
  EXPECT_THAT(WorkByProfile(Table(), jobs, 0, 100), ElementsAre(0, 0, 2, 0));
}

TEST(WorkByProfile, ClipsLongJobsAtThePercentileOfAll) {
  std::vector<MixJob> jobs = {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 200}};
  // Seconds 1, 2, 3, 4, 100: percentile 75 is 4, percentile 87.5 half way from 4 to 100.
  EXPECT_THAT(WorkByProfile(Table(), jobs, 0, 75), ElementsAre(10, 4, 0, 0));
  EXPECT_THAT(WorkByProfile(Table(), jobs, 0, 87.5), ElementsAre(10, 52, 0, 0));
  EXPECT_THAT(WorkByProfile(Table(), jobs, 0, 100), ElementsAre(10, 100, 0, 0));
  EXPECT_THAT(WorkByProfile(Table(), {}, 0, 75), ElementsAre(0, 0, 0, 0));
}

TEST(MakeWorkProblem, CountsRatesInTheUnitOfEachProfile) {
  const std::vector<double> work = {1, 2, 3, 4}, gpus = {8, 2};
  const WorkProblem problem = MakeWorkProblem(Table(), work, gpus, 0);
  EXPECT_THAT(problem.gpus, ElementsAre(8, 2));
  EXPECT_THAT(problem.alone, ElementsAre(1, 1, 0, 0, DoubleEq(4), DoubleEq(2), DoubleEq(1), 0));
  EXPECT_THAT(problem.mix, ElementsAre(1, 2, 3, 0));  // nothing runs "d"
}

TEST(MakeWorkProblem, LeavesOutWorkThatNoTypeWithGpusRuns) {
  const std::vector<double> work = {1, 2, 3, 4}, gpus = {8, 0};
  EXPECT_THAT(MakeWorkProblem(Table(), work, gpus, 0).mix, ElementsAre(1, 2, 0, 0));
}

TEST(ProfilesOfOtherUnits, AreThoseFarFromTheMedianOnSomeTwoTypes) {
  SpeedTable table{.profiles = {"a", "b", "c", "d"},
                   .gpus = {"slow", "fast"},
                   .alone = {1, 10, 100, 1000, 5, 30, 800, 8},
                   .pairs = {},
                   .gangs = {}};
  EXPECT_EQ(ProfilesOfOtherUnits(table), std::vector<uint32_t>{3});  // 5, 3 and 8 times as fast; 125 times slower
  table.alone[7] = 0;
  EXPECT_TRUE(ProfilesOfOtherUnits(table).empty()) << "what does not run there says nothing";
  table.alone = {1, 10, 0, 1000, 5, 30, 0, 8};
  table.gpus.push_back("other");
  table.alone.insert(table.alone.end(), {2, 20, 200, 2000});
  EXPECT_EQ(ProfilesOfOtherUnits(table), std::vector<uint32_t>{3}) << "of any two types";
  table = {.profiles = {"a", "b"}, .gpus = {"slow", "fast"}, .alone = {1, 1, 5, 500}, .pairs = {}, .gangs = {}};
  EXPECT_TRUE(ProfilesOfOtherUnits(table).empty()) << "of two nobody is the odd one";
}

}  // namespace
}  // namespace horus
