// SPDX-License-Identifier: Apache-2.0
// The boosted model: what its trees learn, what they may not say, and what is refused.
#include "interference/boosted_model.h"

#include <gtest/gtest.h>

#include "interference/pair_model.h"
#include "pair_law.h"

namespace horus {
namespace {

constexpr PairModelKind kKind = {.name = kBoostedName, .fit = FitBoosted, .read = ReadBoosted};

BundleTarget Fitted(const PairSet& set) {
  auto target = FitBoosted(set, RowsOf(set), {});
  EXPECT_TRUE(target.ok()) << target.status();
  return target.ok() ? *std::move(target) : BundleTarget();
}

TEST(BoostedModel, LearnsALawForJobsLeftOut) { EXPECT_LT(ErrorBesideConstant(kKind), 0.5); }

TEST(BoostedModel, SurvivesABundle) {
  const PairSet set = LawfulSet();
  ExpectRoundTrip(kKind, set, Fitted(set));
}

TEST(BoostedModel, EqualInputGivesEqualTargets) {
  const PairSet set = LawfulSet(8);
  EXPECT_EQ(Fitted(set), Fitted(set));
}

TEST(BoostedModel, OnlyGivenRowsCount) { ExpectOnlyGivenRowsCount(kKind); }

TEST(BoostedModel, AnswersForUnknownJobsAndDevices) {
  const PairSet set = LawfulSet();
  ExpectAnswersForTheUnknown(kKind, set, Fitted(set));
}

TEST(BoostedModel, NeverSaysThatABusierOtherDisturbsLess) {
  const PairSet set = LawfulSet();
  const auto model = ReadBoosted(HeaderOf(set), Fitted(set));
  ASSERT_TRUE(model.ok()) << model.status();
  for (uint32_t j = 0; j < set.jobs.size(); ++j) {
    Tenant other = TenantOfJob(set, j, 0);
    for (const PointColumn column : {PointColumn::kLogUtil, PointColumn::kLogKernelUs, PointColumn::kLogOperatorUs}) {
      float last = 0;
      float& value = other.point[static_cast<size_t>(column)];
      const float kept = value;
      for (value = -4; value < 10; value += 0.25f) {
        const float found = PairOf(**model, 0, TenantOfJob(set, 0, 0), other);
        EXPECT_GE(found, last);
        last = found;
      }
      value = kept;
    }
  }
}

TEST(BoostedModel, RefusesWhatNoFitWrites) {
  const PairSet set = LawfulSet(8);
  const BundleTarget target = Fitted(set);
  ExpectDamageRefused(kKind, set, target);
  ExpectFiniteWhateverIsRead(kKind, set, target);
  BundleTarget damaged = target;
  damaged.forest.nodes.back().value = 1e30f;
  EXPECT_EQ(ReadBoosted(HeaderOf(set), damaged).status().code(), absl::StatusCode::kDataLoss);
  damaged = target;
  damaged.forest.nodes.resize(1 << 20, target.forest.nodes.back());
  damaged.forest.tree_sizes.resize(target.forest.tree_sizes.size() + (1 << 20) - target.forest.nodes.size(), 1);
  EXPECT_EQ(ReadBoosted(HeaderOf(set), damaged).status().code(), absl::StatusCode::kDataLoss);
  PairHeader more = HeaderOf(set);
  more.devices.push_back({.gpu = "another"});
  EXPECT_EQ(ReadBoosted(more, target).status().code(), absl::StatusCode::kDataLoss);
}

TEST(BoostedModel, SaysWhereTheTrainingLibraryIsMissing) {
  const PairSet set = LawfulSet(4);
  EXPECT_EQ(FitBoosted(set, RowsOf(set), {.library_path = "/nowhere.so"}).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace horus
