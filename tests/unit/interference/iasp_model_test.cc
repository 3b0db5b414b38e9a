// SPDX-License-Identifier: Apache-2.0
// The iasp model: what its factors learn, whom it remembers, how alike jobs are, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "lab/models/learned_models.h"
#include "pair_law.h"

namespace horus {
namespace {

constexpr PairModelKind kKind = {.name = kIaspName, .fit = FitIasp, .read = ReadIasp};

BundleTarget Fitted(const PairSet& set, const PairFitOptions& options = {}) {
  auto target = FitIasp(set, RowsOf(set), options);
  EXPECT_TRUE(target.ok()) << target.status();
  return target.ok() ? *std::move(target) : BundleTarget();
}

std::unique_ptr<const IaspModel> Read(const PairSet& set, const BundleTarget& target) {
  auto model = ReadIaspModel(HeaderOf(set), target);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

Tenant Stranger(Tenant tenant) {
  tenant.profile_id = 0;
  return tenant;
}

TEST(IaspModel, LearnsALawForJobsLeftOut) { EXPECT_LT(ErrorBesideConstant(kKind), 0.35); }

TEST(IaspModel, SurvivesABundle) {
  const PairSet set = LawfulSet(10);
  ExpectRoundTrip(kKind, set, Fitted(set));
}

TEST(IaspModel, EqualInputGivesEqualTargetsAndAnotherSeedDoesNot) {
  const PairSet set = LawfulSet(6);
  EXPECT_EQ(Fitted(set), Fitted(set));
  EXPECT_NE(Fitted(set), Fitted(set, {.seed = 1}));
}

TEST(IaspModel, OnlyGivenRowsCount) { ExpectOnlyGivenRowsCount(kKind); }

TEST(IaspModel, AnswersForUnknownJobsAndDevices) {
  const PairSet set = LawfulSet();
  ExpectAnswersForTheUnknown(kKind, set, Fitted(set));
}

TEST(IaspModel, RemembersWhatTheColumnsOfAJobDoNotSay) {
  PairSet set = LawfulSet();
  for (PairRun& run : set.runs) {  // job 3 is a worse neighbour than its columns tell
    if (run.job_b == 3) run.slowdown_a *= 1.5;
    if (run.job_a == 3) run.slowdown_b *= 1.5;
  }
  const auto model = Read(set, Fitted(set));
  const Tenant victim = TenantOfJob(set, 1, 0), other = TenantOfJob(set, 3, 0);
  EXPECT_GT(PairOf(*model, 0, victim, other), 1.1f * PairOf(*model, 0, victim, Stranger(other)));
}

TEST(IaspModel, RemembersOnlyJobsWithRowsAndAProfile) {
  PairSet set = LawfulSet();
  set.jobs[1].profile_id = 0;
  const auto [kept, left_out] = WithoutJobs(set, 5);
  const auto target = FitIasp(set, kept, {});
  ASSERT_TRUE(target.ok()) << target.status();
  const NamedSeries* embeddings = FindSeries(target->calibration, "embeddings");
  ASSERT_NE(embeddings, nullptr);
  const size_t width = embeddings->values.size() / set.jobs.size();
  for (size_t j = 0; j < set.jobs.size(); ++j) {
    const auto own = std::span(embeddings->values).subspan(j * width, width);
    const bool empty = std::all_of(own.begin(), own.end(), [](double value) { return value == 0; });
    EXPECT_EQ(empty, j == 1 || j % 5 == 0) << j;
  }
  const auto model = Read(set, *target);
  const Tenant known = TenantOfJob(set, 2, 0), left = TenantOfJob(set, 5, 0);
  EXPECT_EQ(PairOf(*model, 0, known, left), PairOf(*model, 0, known, Stranger(left)));
}

TEST(IaspModel, JobsOfOneProfileAreOneJob) {
  PairSet set = LawfulSet(8);
  set.jobs[4].profile_id = set.jobs[2].profile_id;
  set.jobs[4].points = set.jobs[2].points;
  const auto model = Read(set, Fitted(set));
  EXPECT_EQ(PairOf(*model, 0, TenantOfJob(set, 1, 0), TenantOfJob(set, 2, 0)),
            PairOf(*model, 0, TenantOfJob(set, 1, 0), TenantOfJob(set, 4, 0)));
}

TEST(IaspModel, ManyTenantsAreAnsweredAsTwo) {
  const PairSet set = LawfulSet();
  const auto model = Read(set, Fitted(set));
  std::vector<Tenant> tenants;
  for (uint32_t j = 0; j < set.jobs.size(); ++j) tenants.push_back(TenantOfJob(set, j, 1));
  std::vector<float> out(tenants.size() * tenants.size());
  model->Pairs(1, tenants, out);
  EXPECT_EQ(out[3 * tenants.size() + 19], PairOf(*model, 1, tenants[3], tenants[19]));
}

TEST(IaspModel, LearnsFromASingleRow) {
  const PairSet set = LawfulSet(2);
  const std::vector<PairRow> rows = RowsOf(set);
  const auto target = FitIasp(set, std::span(rows).first(1), {});
  ASSERT_TRUE(target.ok()) << target.status();
  const auto model = Read(set, *target);
  const float found = PairOf(*model, 0, TenantOfJob(set, rows[0].victim, 0), TenantOfJob(set, rows[0].other, 0));
  EXPECT_NEAR(double{found}, rows[0].slowdown, 0.1 * rows[0].slowdown);
  EXPECT_FALSE(FitIasp(set, {}, {}).ok());
}

TEST(IaspModel, RefusesWhatNoFitWrites) {
  const PairSet set = LawfulSet(6);
  const BundleTarget target = Fitted(set);
  ExpectDamageRefused(kKind, set, target);
  ExpectFiniteWhateverIsRead(kKind, set, target);
  PairHeader more = HeaderOf(set);
  more.profiles.push_back(5);
  EXPECT_EQ(ReadIasp(more, target).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace horus
