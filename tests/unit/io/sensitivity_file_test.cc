// SPDX-License-Identifier: Apache-2.0
// Tables of sensitivities: what is read, and what is refused with which words.
#include "io/sensitivity_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace horus {
namespace {

using testing::HasSubstr;

constexpr char kHeader[] = "profile,cpu_cores,memory_gib,speed\n";

std::string Refusal(const std::string& rows) {
  return std::string(ParseSensitivities("in/s.csv", kHeader + rows).status().message());
}

TEST(SensitivityFile, ARowIsACellOfAProfile) {
  const auto read = ParseSensitivities("s.csv", std::string(kHeader) + "a,3,62.5,1\nb,1,1,0.5\na,6,62.5,1.5\n");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2);
  const Sensitivity& a = *read->at("a").get();
  EXPECT_EQ(a.Speed({3'000, 64'000}), 1);
  EXPECT_EQ(a.Speed({6'000, 64'000}), 1.5);
  EXPECT_EQ(a.Speed({5'999, 64'000}), 1);
  EXPECT_EQ(read->at("b").get()->Speed({1'000, 1'024}), 0.5);
}

TEST(SensitivityFile, APipelinesTimeIsOneForAProfile) {
  const std::string header = "profile,cpu_cores,memory_gib,speed,host_us\n";
  const auto read = ParseSensitivities("s.csv", header + "a,1,1,1,2500\nb,1,1,1,\na,2,1,2,2500\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->at("a").get()->host_us(), 2500);
  EXPECT_EQ(read->at("a").get()->HostUs({2'000, 1'024}, 100), 1250);
  EXPECT_EQ(read->at("b").get()->host_us(), 0);
  const auto refusal = [&](const std::string& rows) {
    return std::string(ParseSensitivities("s.csv", header + rows).status().message());
  };
  EXPECT_THAT(refusal("a,1,1,1,2500\na,2,1,2,2501\n"),
              HasSubstr("row 2: host_us: expected 2500, as in the rows of 'a'"));
  EXPECT_THAT(refusal("a,1,1,1,-1\n"), HasSubstr("row 1: host_us: expected blank, or 0 to"));
}

TEST(SensitivityFile, ABlankOrMissingCellWasNotMeasured) {
  const auto read = ParseSensitivities("s.csv", std::string(kHeader) + "a,1,1,\na,2,1,1\na,4,2,2\n");
  ASSERT_TRUE(read.ok()) << read.status();
  const Sensitivity& a = *read->at("a").get();
  EXPECT_EQ(a.Speed({1'000, 1'024}), 0);
  EXPECT_EQ(a.Speed({4'000, 1'024}), 1) << "as fast as with two cores, at least";
  EXPECT_EQ(a.Speed({4'000, 2'048}), 2);
}

TEST(SensitivityFile, RefusesWhatIsWrongAndSaysWhere) {
  EXPECT_THAT(std::string(ParseSensitivities("s.csv", "profile,cpu_cores,speed\n").status().message()),
              HasSubstr("s.csv: header: expected a column memory_gib, found none"));
  EXPECT_THAT(std::string(ParseSensitivities("s.csv", "profile,cpu_cores,memory_gib,speed,gpu\n").status().message()),
              HasSubstr("s.csv: header: expected one of profile, cpu_cores, memory_gib, speed, host_us, found 'gpu'"));
  EXPECT_THAT(Refusal(",1,1,1\n"), HasSubstr("in/s.csv: row 1: profile: expected a name"));
  EXPECT_THAT(Refusal("a,1,1,1\na,0,1,1\n"), HasSubstr("row 2: cpu_cores: expected more than 0"));
  EXPECT_THAT(Refusal("a,1,1e9,1\n"), HasSubstr("row 1: memory_gib: expected more than 0, at most 1e+06"));
  EXPECT_THAT(Refusal("a,1,1,-1\n"), HasSubstr("row 1: speed: expected blank, or 0 to 1e+06"));
  EXPECT_THAT(Refusal("a,1,1,nan\n"), HasSubstr("row 1: speed"));
  EXPECT_THAT(Refusal("a,1,1,1\na,1.0001,1,2\n"), HasSubstr("row 2: cpu_cores: expected a cell that no row before"));
}

TEST(SensitivityFile, RefusesMorePointsThanAMatrixHas) {
  std::string rows;
  for (size_t cores = 1; cores <= kMaxSensitivityPoints + 1; ++cores) rows += "a," + std::to_string(cores) + ",1,1\n";
  EXPECT_THAT(Refusal(rows), HasSubstr("profile 'a': expected at most 256 numbers of cores"));
}

TEST(SensitivityFile, BoundsTheCellsOfAllMatrices) {
  constexpr size_t kProfiles = 306;  // of 65,536 cells each, of which 511 are in the file
  std::string rows;
  for (size_t profile = 0; profile < kProfiles; ++profile) {
    for (size_t i = 1; i <= kMaxSensitivityPoints; ++i) {
      const std::string name = "p" + std::to_string(profile) + ",";
      rows += name + std::to_string(i) + ",1,1\n";
      if (i > 1) rows += name + "1," + std::to_string(i) + ",1\n";
    }
  }
  EXPECT_THAT(Refusal(rows), HasSubstr("expected at most 20000000 cells in the matrices of all profiles"));
}

}  // namespace
}  // namespace horus
