// SPDX-License-Identifier: Apache-2.0
// The iapp model: what its networks learn, and what is refused.
#include <gtest/gtest.h>

#include "lab/models/learned_models.h"
#include "pair_law.h"

namespace horus {
namespace {

constexpr PairModelKind kKind = {.name = kIappName, .fit = FitIapp, .read = ReadIapp};

BundleTarget Fitted(const PairSet& set, const PairFitOptions& options = {}) {
  auto target = FitIapp(set, RowsOf(set), options);
  EXPECT_TRUE(target.ok()) << target.status();
  return target.ok() ? *std::move(target) : BundleTarget();
}

TEST(IappModel, LearnsALawForJobsLeftOut) { EXPECT_LT(ErrorBesideConstant(kKind), 0.35); }

TEST(IappModel, SurvivesABundle) {
  const PairSet set = LawfulSet(10);
  ExpectRoundTrip(kKind, set, Fitted(set));
}

TEST(IappModel, EqualInputGivesEqualTargetsAndAnotherSeedDoesNot) {
  const PairSet set = LawfulSet(6);
  EXPECT_EQ(Fitted(set), Fitted(set));
  EXPECT_NE(Fitted(set), Fitted(set, {.seed = 1}));
}

TEST(IappModel, OnlyGivenRowsCount) { ExpectOnlyGivenRowsCount(kKind); }

TEST(IappModel, AnswersForUnknownJobsAndDevices) {
  const PairSet set = LawfulSet();
  ExpectAnswersForTheUnknown(kKind, set, Fitted(set));
}

TEST(IappModel, LearnsFromASingleRow) {
  const PairSet set = LawfulSet(2);
  const std::vector<PairRow> rows = RowsOf(set);
  const auto target = FitIapp(set, std::span(rows).first(1), {});
  ASSERT_TRUE(target.ok()) << target.status();
  const auto model = ReadIapp(HeaderOf(set), *target);
  ASSERT_TRUE(model.ok()) << model.status();
  const float found = PairOf(**model, 0, TenantOfJob(set, rows[0].victim, 0), TenantOfJob(set, rows[0].other, 0));
  EXPECT_NEAR(double{found}, rows[0].slowdown, 0.1 * rows[0].slowdown);
  EXPECT_FALSE(FitIapp(set, {}, {}).ok());
}

TEST(IappModel, RefusesWhatNoFitWrites) {
  const PairSet set = LawfulSet(6);
  const BundleTarget target = Fitted(set);
  ExpectDamageRefused(kKind, set, target);
  ExpectFiniteWhateverIsRead(kKind, set, target);
  PairHeader more = HeaderOf(set);
  more.devices.push_back({.gpu = "another"});
  EXPECT_EQ(ReadIapp(more, target).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace horus
