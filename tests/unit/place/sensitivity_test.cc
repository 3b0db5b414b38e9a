// SPDX-License-Identifier: Apache-2.0
// The matrix of cores and host memory: what it refuses, promises and asks for; profiles with few runs.
#include "place/job/sensitivity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace horus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kGib = 1024;

// Cores 1, 3, 6 by memory 20, 60, 120 GiB; the fair share is 3 cores and 60 GiB.
Sensitivity Matrix(const std::vector<float>& speeds) {
  return *Sensitivity::Create({1000, 3000, 6000}, {20 * kGib, 60 * kGib, 120 * kGib}, speeds);
}
constexpr HostShare kFair = {3000, 60 * kGib};
constexpr HostShare kNode = {24'000, 480 * kGib};

std::string Refused(std::vector<int64_t> cpu, std::vector<int64_t> mem, const std::vector<float>& speeds) {
  return std::string(Sensitivity::Create(std::move(cpu), std::move(mem), speeds).status().message());
}

TEST(Sensitivity, RefusesWhatIsNoMatrixAndSaysWhere) {
  EXPECT_THAT(Refused({}, {1}, {}), HasSubstr("cpu_milli: expected 1 to 256 points, found 0"));
  EXPECT_THAT(Refused({2, 2}, {1}, {1, 1}), HasSubstr("cpu_milli[1]: expected more than 2"));
  EXPECT_THAT(Refused({0}, {1}, {1}), HasSubstr("cpu_milli[0]: expected more than 0"));
  EXPECT_THAT(Refused({1}, {5, 3}, {1, 1}), HasSubstr("mem_mib[1]: expected more than 5"));
  EXPECT_THAT(Refused({1}, {1, 2}, {1}), HasSubstr("speeds: expected 1 x 2 values, found 1"));
  EXPECT_THAT(Refused({1, 2}, {1}, {1, -1}), HasSubstr("speeds[1][0]: expected 0 to 1e+06, or NaN, found -1"));
  EXPECT_THAT(Refused({1}, {1}, {std::numeric_limits<float>::infinity()}), HasSubstr("found inf"));
  EXPECT_THAT(Refused({1}, {1}, {kNan}), HasSubstr("none above 0"));
  EXPECT_THAT(Refused(std::vector<int64_t>(257, 1), {1}, {}), HasSubstr("found 257"));
}

TEST(Sensitivity, MoreNeverLooksSlowerWhereTheProfileIsNoisy) {
  const Sensitivity matrix = Matrix({0.5f, 0.6f, 0.55f, 1.0f, 0.9f, 1.1f, 0.8f, 1.5f, 1.4f});
  EXPECT_THAT(matrix.speeds(), ElementsAre(0.5f, 0.6f, 0.6f, 1.0f, 1.0f, 1.1f, 1.0f, 1.5f, 1.5f));
}

TEST(Sensitivity, PromisesOnlyWhatWasMeasuredAtOrBelow) {
  const Sensitivity matrix = Matrix({0, 0.3f, 0.3f, 0, 1.0f, kNan, 0, 1.5f, 2.0f});
  EXPECT_EQ(matrix.Speed({999, 60 * kGib}), 0);
  EXPECT_EQ(matrix.Speed({6000, 59 * kGib}), 0) << "no cell with less than 60 GiB was measured";
  EXPECT_EQ(matrix.Speed(kFair), 1.0f);
  EXPECT_EQ(matrix.Speed({5999, 119 * kGib}), 1.0f);
  EXPECT_EQ(matrix.Speed({3000, 120 * kGib}), 1.0f) << "not measured: the cell below counts";
  EXPECT_EQ(matrix.Speed(kNode), 2.0f);
}

TEST(Sensitivity, FairShareOfANodeRoundsDown) { EXPECT_EQ(FairShare(25'001, 500'001, 8), (HostShare{3125, 62'500})); }

TEST(Sensitivity, FloorIsTheSmallestCellAsFastAsTheFairShare) {
  EXPECT_EQ(Matrix({1, 1, 1, 1, 1, 1, 1, 1, 1}).Floor(kFair), (HostShare{1000, 20 * kGib}));
  EXPECT_EQ(Matrix({0.1f, 0.3f, 0.3f, 0.1f, 1, 1, 0.1f, 2, 2}).Floor(kFair), kFair);
  // One GiB less than a cell is the cell below, as fast with fewer cores.
  EXPECT_EQ(Matrix({0.5f, 1, 1, 0.5f, 1, 1, 0.5f, 2, 2}).Floor({3000, 59 * kGib}), (HostShare{1000, 20 * kGib}));
}

TEST(Sensitivity, FloorIsTheFairShareWhereNothingWasMeasuredBelowIt) {
  const Sensitivity matrix = Matrix({0, 0, 0, 0, 0, 0, 0, 0, 2});
  EXPECT_EQ(matrix.Floor(kFair), kFair);
}

TEST(Sensitivity, ChoicesAreThoseThatNoSmallerOneMatches) {
  const Sensitivity matrix = Matrix({0.1f, 0.3f, 0.3f, 0.1f, 1, 1, 0.1f, 1.5f, 2});
  EXPECT_THAT(matrix.Choices(kFair, kNode), ElementsAre(HostChoice{kFair, 1.0f}, HostChoice{{6000, 60 * kGib}, 1.5f},
                                                        HostChoice{{6000, 120 * kGib}, 2.0f}));
  EXPECT_THAT(matrix.Choices(kFair, {6000, 119 * kGib}),
              ElementsAre(HostChoice{kFair, 1.0f}, HostChoice{{6000, 60 * kGib}, 1.5f}));
  EXPECT_THAT(matrix.Choices({4000, 70 * kGib}, {4000, 70 * kGib}), ElementsAre(HostChoice{{4000, 70 * kGib}, 1.0f}));
}

TEST(Sensitivity, BestCellIsTheSmallestWithinTheTolerance) {
  const Sensitivity matrix = Matrix({0.1f, 0.3f, 0.3f, 0.1f, 1, 1, 0.1f, 1.96f, 2});
  const auto choices = matrix.Choices(kFair, kNode);
  EXPECT_EQ(BestChoice(choices, kFair).share, (HostShare{6000, 60 * kGib}));
  EXPECT_EQ(BestChoice(choices, kFair, 0).share, (HostShare{6000, 120 * kGib}));
  EXPECT_EQ(BestChoice(choices, kFair, 0.6).share, kFair);
}

// A job that computes an epoch in 800 s / min(cores, 8) and reads 100 GiB.

}  // namespace
}  // namespace horus
