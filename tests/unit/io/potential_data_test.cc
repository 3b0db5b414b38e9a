// SPDX-License-Identifier: Apache-2.0
// What sharing could give the jobs of Gavel's trace on its measured speeds: figures that another solver found too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "lab/bound/potential.h"
#include "lab/io/speeds_file.h"

namespace horus {
namespace {

using ::testing::HasSubstr;

constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr double kHundredth = 0.005;  // per cent; the reference is rounded so

// Gains in per cent at 1.25, 1.5, 2, 2.5 and none: scipy's HiGHS on a program written independently.
const std::map<std::string, std::vector<double>> kGains = {{"k80", {0, 0, 4.03, 7.92, 8.54}},
                                                           {"p100", {0.02, 2.33, 7.42, 10.23, 11.38}},
                                                           {"v100", {13.04, 30.21, 40.21, 40.41, 41.73}},
                                                           {"all", {3.54, 7.69, 16.57, 18.32, 18.51}}};

TEST(PotentialData, IsWhatAnotherSolverFindsOnTheTrace) {
  const std::string data = HORUS_SHARED_DATA;
  const std::string traces = data + "/traces/gavel_msr_seed0";
  const std::string speeds = data + "/interference/gavel_throughputs.json";
  const std::string v100 = data + "/interference/gavel_throughputs_v100.json";
  for (const std::string& path : {traces, speeds, v100}) {
    if (std::filesystem::exists(path)) continue;
    GTEST_SKIP() << "SKIPPED: no " << path << " (CMake: -DHORUS_SHARED_DATA=DIR), nothing was compared";
  }
  SpeedsReader reader;
  ASSERT_TRUE(reader.Read(speeds).ok());
  ASSERT_TRUE(reader.Read(v100).ok());
  const SpeedTable table = reader.Table();
  ASSERT_EQ(table.gpus.front(), "k80");  // the reference below
  std::vector<MixFile> files;
  for (const auto& file : std::filesystem::directory_iterator(traces)) {
    const auto mix = ReadMixFile(file.path().string());
    ASSERT_TRUE(mix.ok()) << mix.status();
    files.push_back(*mix);
  }
  const auto mix = JoinMix(files, table, 0);
  ASSERT_TRUE(mix.ok()) << mix.status();
  EXPECT_EQ(mix->jobs.size(), 8835);
  // V100's campaign and the trace count these in epochs, the other campaign in steps.
  const std::vector<uint32_t> apart = ProfilesOfOtherUnits(table);
  EXPECT_EQ(apart.size(), 4);
  for (const uint32_t profile : apart) EXPECT_THAT(table.profiles[profile], HasSubstr("Recommendation"));
  const auto cases = PotentialOfCluster(table, mix->jobs, std::vector<double>(3, 64), 0, 100,
                                        {.slowdown_bounds = {1.25, 1.5, 2, 2.5, kNone}, .other_units = apart});
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_EQ(cases->size(), 4);
  for (const PotentialCase& one : *cases) {
    const std::string name = one.gpu ? table.gpus[*one.gpu] : "all";
    for (size_t i = 0; i < one.potential->at.size(); ++i) {
      EXPECT_NEAR(100 * one.potential->at[i].gain, kGains.at(name)[i], kHundredth + 1e-6) << name << " " << i;
    }
  }
}

}  // namespace
}  // namespace horus
