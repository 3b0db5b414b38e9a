// SPDX-License-Identifier: Apache-2.0
// Traces and tables of shares, and measured speeds: what is read, left out and refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_format.h"
#include "lab/io/speeds_file.h"

namespace horus {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

std::string MixRefusal(const char* text) { return std::string(ParseMixFile("mix", text).status().message()); }

TEST(MixFile, TakesTheStepsOfGavelsJobsOfOneGpu) {
  const auto mix = ParseMixFile("t",
                                "A (batch 1)\tpython3 a\t-n\t1\t100\t0.000000\t1\n"
                                "B\tpython3 b\t-n\t1\t7\t3.5\t4\n"
                                "B\tpython3 b\t-n\t1\t20\t5\t1\n");
  ASSERT_TRUE(mix.ok()) << mix.status();
  EXPECT_TRUE(mix->is_trace);
  EXPECT_EQ(mix->several, 1);
  ASSERT_EQ(mix->rows.size(), 2);
  EXPECT_EQ(mix->rows[0].profile, "A (batch 1)");
  EXPECT_EQ(mix->rows[0].amount, 100);
  EXPECT_EQ(mix->rows[1].amount, 20);
}

TEST(MixFile, ReadsATableOfShares) {
  const auto mix = ParseMixFile("m.csv", "profile,share\na,3\nb,0.5\n");
  ASSERT_TRUE(mix.ok()) << mix.status();
  EXPECT_FALSE(mix->is_trace);
  EXPECT_EQ(mix->rows[1].profile, "b");
  EXPECT_EQ(mix->rows[1].amount, 0.5);
}

TEST(MixFile, RefusalsSayWhere) {
  EXPECT_THAT(MixRefusal("a\tb\tc\n"), HasSubstr("mix: line 1"));
  EXPECT_THAT(MixRefusal("profile,share\na,-1\n"), HasSubstr("mix: row 1: share: expected a number from 0"));
  EXPECT_THAT(MixRefusal("profile,share\n,1\n"), HasSubstr("mix: row 1: profile"));
  EXPECT_THAT(MixRefusal("profile,weight\na,1\n"), HasSubstr("share"));
}

TEST(MixFile, JoinsStepsAsTheyAreAndSharesInTimeOfTheReference) {
  const SpeedTable table{.profiles = {"a", "b"}, .gpus = {"x", "y"}, .alone = {2, 4, 8, 8}, .pairs = {}};
  const MixFile trace{
      .file = "t", .is_trace = true, .rows = {{"a", 100, 1}, {"new", 5, 2}, {"new", 5, 3}}, .several = 3};
  const MixFile shares{.file = "m", .rows = {{"b", 0.5, 1}}};
  const MixFile both[] = {trace, shares};
  const auto mix = JoinMix(both, table, 0);
  ASSERT_TRUE(mix.ok()) << mix.status();
  ASSERT_EQ(mix->jobs.size(), 2);
  EXPECT_EQ(mix->jobs[0].progress, 100);
  EXPECT_EQ(mix->jobs[1].progress, 2);  // half a second of x at 4 steps a second
  EXPECT_EQ(JoinMix(both, table, 1)->jobs[1].progress, 4);
  EXPECT_THAT(mix->unknown, UnorderedElementsAre(Pair("new", 2)));
  EXPECT_EQ(mix->several, 3);
}

TEST(MixFile, RefusesSharesOfUnknownProfilesAndNoWorkAtAll) {
  const SpeedTable table{.profiles = {"resnet"}, .gpus = {"x"}, .alone = {1}, .pairs = {}};
  const MixFile shares[] = {{.file = "m.csv", .rows = {{"resnets", 1, 7}}}};
  EXPECT_THAT(std::string(JoinMix(shares, table, 0).status().message()),
              HasSubstr("m.csv: row 7: profile: expected one whose speeds are known (near: resnet)"));
  const MixFile trace[] = {{.file = "t", .is_trace = true, .rows = {{"new", 5, 1}}}};
  EXPECT_THAT(std::string(JoinMix(trace, table, 0).status().message()), HasSubstr("found none in 1 file(s)"));
}

constexpr char kSpeeds[] = R"json({"k80": {
  "('B', 1)": {"null": 4, "('A', 1)": [2, 5], "('B', 1)": [0, 0], "('C', 1)": [1, 1]},
  "('A', 1)": {"null": 10, "('B', 1)": [5, 2], "('A', 1)": [20, 20], "('A', 2)": [1, 1]}}})json";

TEST(SpeedsFile, TellsPairsOnceAsSharesOfTheSpeedAlone) {
  SpeedsReader reader;
  ASSERT_TRUE(reader.Parse("s.json", kSpeeds).ok());
  const SpeedTable table = reader.Table();
  EXPECT_THAT(table.gpus, ElementsAre("k80"));
  EXPECT_THAT(table.profiles, ElementsAre("A", "B"));
  EXPECT_THAT(table.alone, ElementsAre(10, 4));
  ASSERT_EQ(table.pairs.size(), 3);      // A beside A, A beside B, B beside B
  EXPECT_EQ(table.pairs[0].speed_a, 1);  // faster together is noise
  EXPECT_EQ(table.pairs[1].a, 0);
  EXPECT_EQ(table.pairs[1].b, 1);
  EXPECT_THAT(table.pairs[1].speed_a, DoubleNear(0.5, 1e-12));
  EXPECT_THAT(table.pairs[1].speed_b, DoubleNear(0.5, 1e-12));
  EXPECT_FALSE(table.pairs[2].Runs());
  EXPECT_EQ(reader.skipped(), (SpeedsSkipped{.no_alone = 1, .several = 1}));
}

TEST(SpeedsFile, GangsAreProfilesOfTheirOwnWhereTheyAreAskedFor) {
  SpeedsReader reader;
  ASSERT_TRUE(reader
                  .Parse("s.json", R"json({
    "k80": {"('A', 1)": {"null": 10, "('A', 1)": [5, 5]}, "('A', 2)": {"null": 18, "('A', 2)": [0, 0]},
            "('B', 4)": {"null": 7}, "('A', 4)": {"null": 0}},
    "p100": {"('A', 2)": {"null": 30}}})json")
                  .ok());
  EXPECT_THAT(reader.Table().profiles, ElementsAre("A"));
  EXPECT_TRUE(reader.Table().gangs.empty());
  const SpeedTable table = reader.Table(SpeedsReader::Gangs::kAlone);
  EXPECT_THAT(table.profiles, ElementsAre("A", "A on 2 GPUs", "B", "B on 4 GPUs"));
  EXPECT_THAT(table.alone, ElementsAre(10, 18, 0, 7, 0, 30, 0, 0));  // a speed of 0 was not measured
  ASSERT_EQ(table.gangs.size(), 2);                                  // A's on two types once
  EXPECT_EQ(table.gangs[0].profile, 1);
  EXPECT_EQ(table.gangs[0].of, 0);
  EXPECT_EQ(table.gangs[0].gpus, 2);
  EXPECT_EQ(table.gangs[1].of, 2);
  EXPECT_EQ(table.pairs.size(), 1);
}

TEST(SpeedsFile, RefusesATypeOfTwoFilesAndMirrorsThatDiffer) {
  SpeedsReader reader;
  ASSERT_TRUE(reader.Parse("one.json", kSpeeds).ok());
  EXPECT_THAT(std::string(reader.Parse("two.json", kSpeeds).message()), HasSubstr("(before: one.json)"));
  SpeedsReader other;
  EXPECT_THAT(std::string(other
                              .Parse("s.json", R"json({"k80": {"('A', 1)": {"null": 1, "('B', 1)": [0.5, 0.5]},
                                                           "('B', 1)": {"null": 1, "('A', 1)": [0.5, 0.6]}}})json")
                              .message()),
              HasSubstr("'B' beside 'A'"));
}

// A table has a cell for each type and profile: a short file must not ask for a long product.
TEST(SpeedsFile, RefusesMoreTypesOrProfilesThanATableHolds) {
  std::string types = "{", profiles = "{\"k80\": {";
  for (int i = 0; i < 65; ++i)
    types += absl::StrFormat("%s\"g%d\": {\"('A', 1)\": {\"null\": 1}}", i == 0 ? "" : ", ", i);
  for (int i = 0; i < 2049; ++i) profiles += absl::StrFormat("%s\"('A%d', 1)\": {\"null\": 1}", i == 0 ? "" : ", ", i);
  SpeedsReader reader, other;
  EXPECT_THAT(std::string(reader.Parse("types.json", types + "}").message()),
              HasSubstr("types.json: expected at most 64 GPU types and 2048 profiles in all files, found 65 and 1"));
  EXPECT_THAT(std::string(other.Parse("profiles.json", profiles + "}}").message()), HasSubstr("found 1 and 2049"));
}

}  // namespace
}  // namespace horus
