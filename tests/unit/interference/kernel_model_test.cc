// SPDX-License-Identifier: Apache-2.0
// The kernel model: what the Gaussian process learns, what it ignores, and what is refused.
#include "interference/kernel_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "interference/laws.h"
#include "lab/models/train_pairs.h"
#include "pair_law.h"

namespace horus {
namespace {

constexpr PairModelKind kKind = {.name = kKernelName, .fit = FitKernelTarget, .read = ReadKernelModel};

BundleTarget Fitted(const PairSet& set) {
  auto target = FitKernelTarget(set, RowsOf(set), {});
  EXPECT_TRUE(target.ok()) << target.status();
  return target.ok() ? *std::move(target) : BundleTarget();
}

std::unique_ptr<const PairModel> Read(const PairSet& set, const BundleTarget& target) {
  auto model = ReadKernelModel(HeaderOf(set), target);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

TEST(KernelModel, LearnsALawForJobsLeftOut) { EXPECT_LT(ErrorBesideConstant(kKind), 0.35); }

TEST(KernelModel, NearlyReproducesWhatItWasFittedTo) {
  const PairSet set = LawfulSet();
  const auto model = Read(set, Fitted(set));
  ASSERT_NE(model, nullptr);
  double error = 0;
  const std::vector<PairRow> rows = RowsOf(set);
  for (const PairRow& row : rows) {
    const float found =
        PairOf(*model, row.device, TenantOfJob(set, row.victim, row.device), TenantOfJob(set, row.other, row.device));
    error += std::abs(static_cast<double>(found) / row.slowdown - 1) / static_cast<double>(rows.size());
  }
  EXPECT_LT(error, 0.03);  // below its noise of 8 % of the excess
}

TEST(KernelModel, RemembersTwoJobsByName) {
  PairSet set = LawfulSet(8);
  for (PairRun& run : set.runs) {
    if (run.job_a == 1 && run.job_b == 2) run.slowdown_a *= 1.5;  // no column tells why
  }
  const auto model = Read(set, Fitted(set));
  ASSERT_NE(model, nullptr);
  const Tenant victim = TenantOfJob(set, 1, 0), other = TenantOfJob(set, 2, 0);
  Tenant stranger = victim;
  stranger.profile_id = 999;
  EXPECT_GT(PairOf(*model, 0, victim, other), 1.02f * PairOf(*model, 0, stranger, other));
}

TEST(KernelModel, EqualInputGivesEqualTargets) {
  const PairSet set = LawfulSet(8);
  EXPECT_EQ(Fitted(set), Fitted(set));
}

TEST(KernelModel, SurvivesABundle) {
  const PairSet set = LawfulSet();
  ExpectRoundTrip(kKind, set, Fitted(set));
}

TEST(KernelModel, ItsStateSurvivesATarget) {
  const PairSet set = LawfulSet(8);
  const BundleTarget target = Fitted(set);
  const auto state = KernelFromTarget(HeaderOf(set), target);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(ToTarget(*state), target);
}

TEST(KernelModel, OnlyGivenRowsCount) { ExpectOnlyGivenRowsCount(kKind); }

TEST(KernelModel, AnswersForUnknownJobsAndDevices) {
  const PairSet set = LawfulSet();
  ExpectAnswersForTheUnknown(kKind, set, Fitted(set));
}

TEST(KernelModel, FurtherTenantsAndTheirOrderDoNotMatter) {
  const PairSet set = LawfulSet();
  const auto model = Read(set, Fitted(set));
  ASSERT_NE(model, nullptr);
  std::vector<uint32_t> jobs = {3, 5, 7, 9};
  do {
    std::vector<Tenant> tenants;
    for (const uint32_t job : jobs) tenants.push_back(TenantOfJob(set, job, 0));
    std::vector<float> out(16, -1);
    model->Pairs(0, tenants, out);
    for (size_t i = 0; i < 4; ++i) {
      for (size_t j = 0; j < 4; ++j) {
        EXPECT_EQ(out[4 * i + j], i == j ? -1 : PairOf(*model, 0, tenants[i], tenants[j]));
      }
    }
  } while (std::next_permutation(jobs.begin(), jobs.end()));
}

TEST(KernelModel, WhereNothingWasMeasuredWorkIsConservedForJobsOfWhichOnlyTheirBusyShareIsKnown) {
  const PairSet set = LawfulSet();
  const auto model = Read(set, Fitted(set));
  ASSERT_NE(model, nullptr);
  const auto busy = [](double util) {
    return Tenant{.point = {10, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::quiet_NaN(),
                            static_cast<float>(std::log(util))}};
  };
  for (const double victim : {0.3, 0.6, 1.0}) {
    for (const double other : {0.3, 0.6, 1.0}) {
      const double found = PairOf(*model, kUnseen, busy(victim), busy(other));
      EXPECT_NEAR(found / std::max(1.0, victim + other), 1, 0.2) << victim << " beside " << other;
    }
  }
  EXPECT_NEAR(PairOf(*model, kUnseen, busy(1), busy(1)), 2, 1e-5);
}

TEST(KernelModel, CampaignsAreNotMistakenForJobs) {
  // One campaign measures everything 20 % of the excess worse; asked without a campaign, the truth lies between.
  PairSet set = LawfulSet(8);
  const size_t runs = set.runs.size();
  for (size_t i = 0; i < runs; ++i) {
    PairRun worse = set.runs[i];
    worse.campaign = "worse";
    worse.slowdown_a = 0.9 + 1.2 * (worse.slowdown_a - 0.9);
    worse.slowdown_b = 0.9 + 1.2 * (worse.slowdown_b - 0.9);
    set.runs.push_back(worse);
  }
  const auto model = Read(set, Fitted(set));
  ASSERT_NE(model, nullptr);
  for (uint32_t j = 1; j < set.jobs.size(); ++j) {
    const Tenant victim = TenantOfJob(set, j - 1, 0), other = TenantOfJob(set, j, 0);
    const auto z =
        ExcessOf(static_cast<double>(PairOf(*model, 0, victim, other))) - ExcessOf(LawOf(victim.point, other.point, 0));
    EXPECT_GT(z, -0.15);
    EXPECT_LT(z, std::log(1.2) + 0.15);
  }
}

TEST(KernelModel, TheoryGrowsWithHowBusyBothAre) {
  const auto busy = [](double util) { return JobPoint{10, 5, 6, static_cast<float>(std::log(util))}; };
  EXPECT_NEAR(TheoryOf(busy(1), busy(0.5)) - TheoryOf(busy(1), busy(1)), std::log(0.5), 1e-6);
  EXPECT_NEAR(TheoryOf(busy(0.25), busy(1)) - TheoryOf(busy(1), busy(1)), 0.5 * std::log(0.25), 1e-6);
  EXPECT_EQ(TheoryOf({10, 5, 6, NAN}, {10, 5, 6, NAN}), TheoryOf(busy(1), busy(1)));
}

}  // namespace
}  // namespace horus
