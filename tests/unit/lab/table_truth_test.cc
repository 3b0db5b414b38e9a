// SPDX-License-Identifier: Apache-2.0
// Measured speeds as the truth: units, pairs, what was never measured, three tenants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "device/catalogue.h"
#include "lab/truth/truth.h"

namespace horus {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

GpuTypeId Type(std::string_view name) { return *Catalogue::Default()->Find(name); }

// "c" runs on the second type alone; "a" and "b" together on the first, "a" with itself there too, "b" never.
SpeedTable Table() {
  return {.profiles = {"a", "b", "c"},
          .gpus = {"slow", "fast"},
          .alone = {1, 2, 0, 4, 4, 5},
          .pairs = {{0, 0, 1, 0.5, 0.8}, {0, 0, 0, 0.6, 0.6}, {0, 1, 1, 0, 0}, {1, 0, 1, 1.1, 0.9}}};
}

struct Measured {
  std::array<GpuTypeId, 2> types = {Type("k80"), Type("v100-sxm2-16gb")};
  DeviceContext slow{.type = types[0]}, fast{.type = types[1]};
  std::unique_ptr<Truth> truth;
  explicit Measured(ManyTenants many = ManyTenants::kAdds) {
    truth = *TableTruth::Create(Table(), types, {0, 1, 2, kNotStated}, 0, many);
  }
  std::vector<double> Shares(const DeviceContext& device, std::vector<uint32_t> profiles) const {
    std::vector<double> shares(profiles.size());
    const absl::Status status = truth->Shares(device, profiles, shares);
    EXPECT_TRUE(status.ok()) << status;
    return shares;
  }
};

TEST(TableTruth, CountsSpeedsInTheReferencesTime) {
  const Measured measured;
  EXPECT_EQ(measured.truth->SpeedAlone(0, measured.slow), 1);
  EXPECT_EQ(measured.truth->SpeedAlone(0, measured.fast), 4);
  EXPECT_EQ(measured.truth->SpeedAlone(1, measured.fast), 2);
  EXPECT_EQ(measured.truth->SpeedAlone(2, measured.slow), 0);
  EXPECT_EQ(measured.truth->SpeedAlone(2, measured.fast), 1);
}

TEST(TableTruth, JobsOnSeveralGpusAreProfilesBySize) {
  Trace trace;
  trace.profiles = {"a", "b"};
  trace.jobs = {{.id = 1, .duration_us = 5, .profile = 0, .tasks = 2},
                {.id = 2, .duration_us = 5, .profile = 0},
                {.id = 3, .duration_us = 5, .profile = 0, .gpus_per_task = 2},
                {.id = 4, .duration_us = 5, .profile = 1, .tasks = 2, .gpus_per_task = 4},
                {.id = 5, .duration_us = 5, .tasks = 8}};
  const Trace named = NameGangs(trace);
  EXPECT_THAT(named.profiles, ElementsAre("a on 2 GPUs", "a", "b on 8 GPUs"));  // b alone is nobody's
  EXPECT_EQ(named.jobs[0].profile, named.jobs[2].profile);
  EXPECT_EQ(named.jobs[1].profile, 1);
  EXPECT_EQ(named.jobs[3].profile, 2);
  EXPECT_EQ(named.jobs[4].profile, kNotStated);
  EXPECT_TRUE(ValidateTrace(named).ok());
}

TEST(TableTruth, RunsNothingThatWasNotMeasured) {
  const Measured measured;
  EXPECT_EQ(measured.truth->SpeedAlone(3, measured.fast), 0);
  DeviceContext other = measured.fast;
  other.type = Type("a100-40gb");
  EXPECT_EQ(measured.truth->SpeedAlone(0, other), 0);
  DeviceContext slice = measured.fast;
  slice.compute_share = 0.5;
  EXPECT_EQ(measured.truth->SpeedAlone(0, slice), 0);
  std::array<double, 2> shares;
  EXPECT_THAT(measured.truth->Shares(measured.fast, std::vector<uint32_t>{0, 3}, shares).message(),
              HasSubstr("profile 3"));
}

TEST(TableTruth, GivesEachSideOfAPairItsShare) {
  const Measured measured;
  EXPECT_THAT(measured.Shares(measured.slow, {0, 1}), ElementsAre(DoubleEq(0.5), DoubleEq(0.8)));
  EXPECT_THAT(measured.Shares(measured.slow, {1, 0}), ElementsAre(DoubleEq(0.8), DoubleEq(0.5)));
  EXPECT_THAT(measured.Shares(measured.slow, {0, 0}), ElementsAre(DoubleEq(0.6), DoubleEq(0.6)));
  EXPECT_THAT(measured.Shares(measured.fast, {0, 1}), ElementsAre(1, DoubleEq(0.9))) << "no faster than alone";
}

TEST(TableTruth, KeepsApartWhatDidNotRunOrWasNotMeasured) {
  const Measured measured;
  EXPECT_THAT(measured.Shares(measured.slow, {1, 1}), ElementsAre(0, 0));
  EXPECT_THAT(measured.Shares(measured.fast, {0, 2}), ElementsAre(0, 0));
  EXPECT_THAT(measured.Shares(measured.slow, {0, 1, 1}), ElementsAre(0, 0, 0));
}

TEST(TableTruth, OfAPairThatIsGivenTwiceTheLastCounts) {
  SpeedTable table = Table();
  table.pairs.push_back({0, 1, 0, 0.7, 0.4});
  const Measured measured;
  const auto truth = TableTruth::Create(table, measured.types, {0, 1}, 0);
  ASSERT_TRUE(truth.ok()) << truth.status();
  std::array<double, 2> shares = {};
  ASSERT_TRUE((*truth)->Shares(measured.slow, std::array<uint32_t, 2>{0, 1}, shares).ok());
  EXPECT_THAT(shares, ElementsAre(DoubleEq(0.4), DoubleEq(0.7)));
}

// Of rows that no profile of the trace is nothing is kept; the others answer as with all of them.
TEST(TableTruth, AnswersForProfilesInAnyOrderOfRows) {
  const Measured measured;
  const auto truth = TableTruth::Create(Table(), measured.types, {1, kNotStated, 0}, 0);
  ASSERT_TRUE(truth.ok()) << truth.status();
  std::array<double, 2> shares = {};
  ASSERT_TRUE((*truth)->Shares(measured.slow, std::array<uint32_t, 2>{0, 2}, shares).ok());
  EXPECT_THAT(shares, ElementsAre(DoubleEq(0.8), DoubleEq(0.5)));
}

// "a" beside "a" and "b": slowdowns 1 / 0.6 and 2. "b" beside two "a": twice 1.25.
TEST(TableTruth, ExtendsPairsToThreeByTheRuleAskedFor) {
  const Measured adds(ManyTenants::kAdds);
  EXPECT_THAT(adds.Shares(adds.slow, {0, 0, 1}),
              ElementsAre(DoubleEq(1 / (1 / 0.6 + 1)), DoubleEq(1 / (1 / 0.6 + 1)), DoubleEq(1 / 1.5)));
  const Measured multiplies(ManyTenants::kMultiplies);
  EXPECT_THAT(multiplies.Shares(multiplies.slow, {0, 0, 1}), ElementsAre(DoubleEq(0.3), DoubleEq(0.3), DoubleEq(0.64)));
}

TEST(TableTruth, RefusesTypesAndRowsThatAreNone) {
  const GpuTypeId one = Type("k80");
  const auto message = [](std::vector<GpuTypeId> types, std::vector<uint32_t> rows, uint32_t reference) {
    return std::string(TableTruth::Create(Table(), types, std::move(rows), reference).status().message());
  };
  EXPECT_THAT(message({one}, {0}, 0), HasSubstr("a type for each of 2 GPUs"));
  EXPECT_THAT(message({one, one}, {0}, 0), HasSubstr("GPU 'fast': expected a type of its own"));
  EXPECT_THAT(message({one, GpuTypeId()}, {0}, 0), HasSubstr("GPU 'fast'"));
  EXPECT_THAT(message({one, Type("a100-40gb")}, {0, 3}, 0), HasSubstr("profile 1: expected one of 3 rows"));
  EXPECT_THAT(message({one, Type("a100-40gb")}, {0}, 2), HasSubstr("reference"));
  SpeedTable odd = Table();
  odd.alone[0] = 1e-9;
  EXPECT_THAT(std::string(TableTruth::Create(odd, std::vector{one, Type("a100-40gb")}, {0}, 0).status().message()),
              HasSubstr("a on fast: expected at most 1e+06 times"));
}

Trace StepsTrace(int64_t steps, uint32_t profile) {
  Trace trace{.jobs = {}, .profiles = {"b", "c", "unknown"}, .owners = {}, .type_lists = {}, .step_times = {}};
  trace.jobs.push_back({.id = 0, .steps = steps, .profile = profile});
  return trace;
}

TEST(StepsToDurations, TakesTheTimeAloneOnTheUnitType) {
  EXPECT_THAT(RowsOfProfiles(StepsTrace(1, 0), Table()), ElementsAre(1, 2, kNotStated));
  EXPECT_EQ(StepsToDurations(StepsTrace(10, 0), Table(), 0)->jobs[0].duration_us, 5'000'000);
  EXPECT_EQ(StepsToDurations(StepsTrace(10, 0), Table(), 1)->jobs[0].duration_us, 2'500'000);
  EXPECT_EQ(StepsToDurations(StepsTrace(1, 1), Table(), 0)->jobs[0].duration_us, 200'000) << "not on the first";
  EXPECT_EQ(StepsToDurations(StepsTrace(1, 0), Table(), 0)->jobs[0].steps, 0);
}

TEST(StepsToDurations, NamesTheJobThatHasNone) {
  EXPECT_THAT(StepsToDurations(StepsTrace(1, 2), Table(), 0).status().message(), HasSubstr("job[0]: profile"));
  EXPECT_THAT(StepsToDurations(StepsTrace(kMaxTraceSteps, 0), Table(), 0).status().message(),
              HasSubstr("job[0]: steps"));
}

}  // namespace
}  // namespace horus
