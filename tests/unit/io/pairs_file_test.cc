// SPDX-License-Identifier: Apache-2.0
// Measured pairs from tables and from Gavel's layout: what is read, what is one pair, what is refused.
#include "lab/io/pairs_file.h"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace horus {
namespace {

const std::vector<std::string> kJobs = {"a", "b", "c", "LM (batch size 5)"};
constexpr char kHeader[] = "gpu,sharing_mode,job_a,job_b,slowdown_a,slowdown_b,campaign,note\n";

struct Parsed {
  absl::Status status;
  std::vector<NamedPair> pairs;
  PairsSkipped skipped;
};

Parsed Parse(const std::vector<std::string>& texts, const std::string& file = "folder/p.csv") {
  PairsReader reader(*Catalogue::Default(), kJobs);
  for (const std::string& text : texts) {
    if (const absl::Status status = reader.Parse(file, text); !status.ok()) return {status, {}, {}};
  }
  return {absl::OkStatus(), reader.pairs(), reader.skipped()};
}

void ExpectRefused(const Parsed& parsed, std::initializer_list<std::string_view> words) {
  EXPECT_EQ(parsed.status.code(), absl::StatusCode::kInvalidArgument) << parsed.status;
  for (const std::string_view word : words) {
    EXPECT_NE(std::string(parsed.status.message()).find(word), std::string::npos) << parsed.status << "\n" << word;
  }
}

TEST(PairsTable, ReadsEveryColumn) {
  const Parsed parsed = Parse({std::string(kHeader) + "Tesla K80,mps,a,b,1.5,2.25,first,x\nt4,,a,a,,3,,\n"});
  ASSERT_TRUE(parsed.status.ok()) << parsed.status;
  ASSERT_EQ(parsed.pairs.size(), 2u);
  const NamedPair& pair = parsed.pairs[0];
  EXPECT_EQ(pair.gpu, *Catalogue::Default()->Find("k80"));
  EXPECT_EQ(pair.mode, SharingMode::kMps);
  EXPECT_EQ(pair.job_a, "a");
  EXPECT_EQ(pair.job_b, "b");
  EXPECT_EQ(pair.slowdown_a, 1.5);
  EXPECT_EQ(pair.slowdown_b, 2.25);
  EXPECT_EQ(pair.campaign, "first");
  EXPECT_EQ(pair.where, "folder/p.csv: row 1");
  EXPECT_EQ(parsed.pairs[1].mode, SharingMode::kTimeSlice);
  EXPECT_TRUE(std::isnan(parsed.pairs[1].slowdown_a));
  EXPECT_EQ(parsed.pairs[1].slowdown_b, 3);
}

TEST(PairsTable, MirrorEntriesThatAgreeAreOnePair) {
  const Parsed parsed = Parse({std::string(kHeader) + "k80,,a,b,1.5,,,\nk80,,b,a,2,1.503,,\n"});
  ASSERT_TRUE(parsed.status.ok()) << parsed.status;
  ASSERT_EQ(parsed.pairs.size(), 1u);
  EXPECT_EQ(parsed.pairs[0].slowdown_a, 1.5);
  EXPECT_EQ(parsed.pairs[0].slowdown_b, 2);
}

TEST(PairsTable, APairMayReturnInAnotherCampaignModeOrType) {
  const std::string rows = "k80,,a,b,1.5,2,x,\nk80,,a,b,1.6,2,y,\nk80,mps,a,b,1.5,2,x,\nt4,,a,b,1.5,2,x,\n";
  const Parsed parsed = Parse({kHeader + rows});
  ASSERT_TRUE(parsed.status.ok()) << parsed.status;
  EXPECT_EQ(parsed.pairs.size(), 4u);
}

TEST(PairsTable, RefusesWhatIsToldTwiceOrContradicted) {
  const std::string first = std::string(kHeader) + "k80,,a,b,1.5,2,x,\n";
  ExpectRefused(Parse({first + "k80,,a,b,1.5,2,x,\n"}), {"p.csv: row 2", "'a' beside 'b' again", "p.csv: row 1"});
  ExpectRefused(Parse({first, first}), {"again"});  // in another file too
  ExpectRefused(Parse({first + "K80,time-slice,b,a,2,1.6,x,\n"}), {"p.csv: row 2", "1.5 and 2, found 1.6 and 2"});
  ExpectRefused(Parse({first + "k80,,b,a,2,1.5,x,\nk80,,b,a,2,1.5,x,\n"}), {"p.csv: row 3", "again"});
}

TEST(PairsTable, ErrorsNameRowColumnUnitExpectedAndFound) {
  const auto refused = [](const std::string& row, std::initializer_list<std::string_view> words) {
    const Parsed parsed = Parse({std::string(kHeader) + "k80,,a,b,1.5,2,,\n" + row});
    ExpectRefused(parsed, {"folder/p.csv: row 2"});
    ExpectRefused(parsed, words);
  };
  for (const std::string bad : {"0", "-1", "nan", "inf", "1e9", "0.49", "1000.1", "1.5x"}) {
    refused("k80,,a,c," + bad + ",2,,\n", {"slowdown_a", "ratio of step times", "from 0.5 to 1000", "'" + bad + "'"});
    refused("k80,,a,c,2," + bad + ",,\n", {"slowdown_b", "'" + bad + "'"});
  }
  refused("k80,,a,c,,,,\n", {"at least one of slowdown_a, slowdown_b"});
  refused("k80,,a,nobody,1,2,,\n", {"job_b", "jobs file", "'nobody'"});
  refused("k80,,,c,1,2,,\n", {"job_a", "''"});
  refused("abacus,,a,c,1,2,,\n", {"gpu", "abacus"});
  refused("k80,mig,a,c,1,2,,\n", {"sharing_mode", "time-slice", "'mig'"});
  refused("k80,exclusive,a,c,1,2,,\n", {"sharing_mode", "'exclusive'"});
  refused("k80,turns,a,c,1,2,,\n", {"turns"});
}

TEST(PairsTable, ErrorsOfTheHeaderNameTheColumn) {
  ExpectRefused(Parse({"gpu,job_a,job_b,slowdown_a\n"}), {"header", "column slowdown_b"});
  ExpectRefused(Parse({"gpu,job_a,job_b,slowdown_a,slowdown_b,slowdwn\n"}), {"header", "campaign", "'slowdwn'"});
}

// Speeds alone 12, 6 and 10; (a, b) runs at 8 and 2.
constexpr char kGavel[] = R"json({"k80": {
  "('a', 1)": {"null": 12, "('b', 1)": [8, 2], "('a', 1)": [6.0, 4.0], "('c', 1)": [0, 0], "('b', 2)": [0, 0]},
  "('b', 1)": {"('a', 1)": [2, 8.0001], "null": 6},
  "('LM (batch size 5)', 1)": {"null": 0, "('a', 1)": [1, 2]},
  "('unlisted', 1)": {"null": 3},
  "('c', 1)": {"null": 10, "('a', 1)": [0.0, 0.0]},
  "('a', 2)": {"null": 20, "('b', 2)": [3, 3]}}})json";

TEST(PairsGavel, MirrorEntriesAreOnePairAndZerosNone) {
  const Parsed parsed = Parse({kGavel}, "x/campaign one.json");
  ASSERT_TRUE(parsed.status.ok()) << parsed.status;
  ASSERT_EQ(parsed.pairs.size(), 2u);
  const NamedPair& pair = parsed.pairs[0];
  EXPECT_EQ(pair.job_a, "a");
  EXPECT_EQ(pair.job_b, "b");
  EXPECT_EQ(pair.slowdown_a, 1.5);
  EXPECT_EQ(pair.slowdown_b, 3);
  EXPECT_EQ(pair.campaign, "campaign one");
  EXPECT_EQ(pair.where, "x/campaign one.json: 'k80': 'a' beside 'b'");
  EXPECT_EQ(pair.mode, SharingMode::kTimeSlice);
  EXPECT_EQ(parsed.pairs[1].slowdown_a, 2);
  EXPECT_EQ(parsed.pairs[1].slowdown_b, 3);
  EXPECT_EQ(parsed.skipped, (PairsSkipped{.apart = 2, .no_alone = 1, .several = 3}));
}

TEST(PairsGavel, IsToldByItsFirstByteToo) { EXPECT_EQ(Parse({std::string(" \n") + kGavel}, "p.txt").pairs.size(), 2u); }

void ExpectNoGavel(const std::string& text, std::initializer_list<std::string_view> words) {
  const Parsed parsed = Parse({text}, "g.json");
  ExpectRefused(parsed, {"g.json"});
  ExpectRefused(parsed, words);
}

TEST(PairsGavel, RefusesWhatIsNotTheLayout) {
  ExpectNoGavel("{\"k80\": ", {"byte"});
  ExpectNoGavel("[]", {"expected an object", "a list"});
  ExpectNoGavel("{\"k80\": 3}", {"'k80'", "a number"});
  ExpectNoGavel(R"json({"k80": {"a": {} } })json", {"('JOB', 1)", "'a'"});
  ExpectNoGavel(R"json({"k80": {"('a', 0)": {} } })json", {"('JOB', 1)"});
  ExpectNoGavel(R"json({"k80": {"('', 1)": {} } })json", {"('JOB', 1)"});
  ExpectNoGavel(R"json({"k80": {"('a', 01)": {} } })json", {"('JOB', 1)"});   // else a job had two names, and the
  ExpectNoGavel(R"json({"k80": {"(\"a\", 1)": {} } })json", {"('JOB', 1)"});  // later entry took the earlier's place
  ExpectNoGavel(R"json({"k80": {"('a', 1)": {}, "('a', 1)": {} } })json", {"once", "'k80'"});
  ExpectNoGavel(R"json({"k80": {"('a', 1)": {"null": [1, 2]} } })json", {"steps/s", "a list"});
  ExpectNoGavel(R"json({"k80": {"('a', 1)": {"null": -1} } })json", {"at least 0 in steps/s", "-1"});
  ExpectNoGavel(R"json({"k80": {"('a', 1)": {"null": "fast"} } })json", {"steps/s", "'fast'"});
}

TEST(PairsGavel, RefusesSpeedsThatCannotBe) {
  const auto entry = [](const std::string& value) {
    return R"json({"k80": {"('a', 1)": {"null": 12, "('b', 1)": )json" + value +
           R"json(}, "('b', 1)": {"null": 6} } })json";
  };
  ASSERT_TRUE(Parse({entry("[8, 3]")}, "g.json").status.ok());
  ExpectNoGavel(entry("3"), {"two speeds", "a number"});
  ExpectNoGavel(entry("[3]"), {"1 numbers"});
  ExpectNoGavel(entry("[3, 4, 5]"), {"more"});
  ExpectNoGavel(entry("[3, 0]"), {"two zeros", "3 and 0"});
  ExpectNoGavel(entry("[3, [4]]"), {"a list"});
  ExpectNoGavel(entry("{}"), {"an object"});
  ExpectNoGavel(entry("[3, NaN]"), {"byte"});
  ExpectNoGavel(entry("[3, 1e999]"), {"byte"});
  ExpectNoGavel(entry("[0.001, 3]"), {"'a' beside 'b'", "from 0.5 to 1000", "12000"});
  ExpectNoGavel(entry("[100, 3]"), {"0.12", "steps/s"});
}

TEST(PairsGavel, RefusesUnknownNamesAndContradictions) {
  ExpectNoGavel(R"json({"k80": {"('a', 1)": {"null": 1, "('z', 1)": [1, 1]}, "('z', 1)": {"null": 1} } })json",
                {"jobs file", "'z'"});
  ExpectNoGavel(R"json({"abacus": {"('a', 1)": {"null": 1, "('a', 1)": [1, 1]} } })json", {"abacus"});
  ExpectNoGavel(
      R"json({"k80": {"('a', 1)": {"null": 12, "('b', 1)": [8, 2]}, "('b', 1)": {"null": 6, "('a', 1)": [3, 8]} } })json",
      {"'b' beside 'a'", "1.5 and 3, found 1.5 and 2"});
}

}  // namespace
}  // namespace horus
