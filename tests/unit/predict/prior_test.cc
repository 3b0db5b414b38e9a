// SPDX-License-Identifier: Apache-2.0
// The fitted prior: its formulas, and that fitting finds the constants that made the rows.
#include "predict/prior.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rows.h"

namespace horus {
namespace {

std::vector<PriorRow> PriorRows(const TrainingSet& set, Quantity quantity) {
  std::vector<PriorRow> rows;
  for (const TrainingRow& row : set.rows) {
    rows.push_back(
        {TermsOf(row.features), MarginOf(InfoOf(quantity).link, row.measured[static_cast<size_t>(quantity)]), 1, 0});
  }
  return rows;
}

TEST(Prior, LinksAndTheirInversesAgree) {
  for (const Link link : {Link::kIdentity, Link::kExp, Link::kExpm1}) {
    for (const double value : {0.5, 7.0, 1e6}) {
      EXPECT_NEAR(ApplyLink(link, MarginOf(link, value)), value, 1e-9 * value);
    }
  }
}

TEST(Prior, AStepTakesAtLeastItsKernelsAndItsHostAndAtMostTheirSum) {
  const std::vector<double> typical(FactorsOf(Quantity::kStepTime).size(), 0.0);
  const PriorTerms terms = TermsOf(Features(50'000, 20'000, 32));
  const double step = PriorOf(Quantity::kStepTime, terms, typical, 0);
  EXPECT_GT(step, 50'000);
  EXPECT_LT(step, 50'000 + 20'000 + 2 * 10 + 3000 + 1);
}

TEST(Prior, UtilisationRisesWithTheKernelsShareOfTheStepAndItsMeanIsFlatter) {
  const std::vector<double> most(FactorsOf(Quantity::kGpuUtilMax).size(), 0.0);
  const std::vector<double> mean(FactorsOf(Quantity::kGpuUtil).size(), 0.0);
  double last = 0;
  for (const double device : {100.0, 1000.0, 10'000.0, 100'000.0, 1e6}) {
    const PriorTerms terms = TermsOf(Features(device, 5000, 32));
    const double share = PriorOf(Quantity::kGpuUtilMax, terms, most, 0);
    EXPECT_NEAR(share, 100 * device / PriorOf(Quantity::kStepTime, terms, most, 0), 1e-9);
    const double util = PriorOf(Quantity::kGpuUtil, terms, mean, 0);
    EXPECT_GT(util, last);
    EXPECT_LT(util, 100);
    EXPECT_NEAR(std::log(101 / (1 + util)), std::log(101 / (1 + share)) / 2, 1e-9);
    last = util;
  }
}

TEST(Prior, AnUndescribedGpuStillHasAContext) {
  std::vector<float> row = Features(1000, 1000, 8, 1000);
  Set(row, "gpu_context_mib", std::numeric_limits<double>::quiet_NaN());
  const std::vector<double> typical(FactorsOf(Quantity::kMemory).size(), 0.0);
  EXPECT_GT(PriorOf(Quantity::kMemory, TermsOf(row), typical, 0), 1000);
}

TEST(FitPrior, FindsTheConstantsThatMadeTheRows) {
  // Moved less than their spreads, by rows without noise: the pull towards the typical values is weak then.
  const std::vector<double> truth = Factors(
      Quantity::kStepTime, {{kMatmulFactor, 0.2}, {kElementwiseFactor, 0.2}, {kHostFactor, 0.6}, {kFixedFactor, 0.5}});
  const TrainingSet set = Lawful(Quantity::kStepTime, truth, 12);
  const std::vector<PriorRow> rows = PriorRows(set, Quantity::kStepTime);
  const FittedPrior fitted = FitPrior(Quantity::kStepTime, rows, 1);
  ASSERT_EQ(fitted.factors.size(), truth.size());
  for (const PriorRow& row : rows) {
    const double margin = std::log(PriorOf(Quantity::kStepTime, row.terms, fitted.factors, fitted.gpus[0]));
    EXPECT_NEAR(margin, row.margin, 0.05);
  }
}

TEST(FitPrior, OneWildRowInTwentyMovesTheRestLittle) {
  const std::vector<double> truth = Factors(Quantity::kStepTime, {{kHostFactor, 0.5}});
  TrainingSet set = Lawful(Quantity::kStepTime, truth, 10);
  for (size_t i = 0; i < set.rows.size(); i += 20) set.rows[i].measured[static_cast<size_t>(Quantity::kStepTime)] *= 30;
  const std::vector<PriorRow> rows = PriorRows(set, Quantity::kStepTime);
  const FittedPrior fitted = FitPrior(Quantity::kStepTime, rows, 1);
  for (size_t i = 1; i < rows.size(); i += 20) {
    EXPECT_NEAR(std::log(PriorOf(Quantity::kStepTime, rows[i].terms, fitted.factors, fitted.gpus[0])), rows[i].margin,
                0.15);
  }
}

TEST(FitPrior, WithoutRowsEverythingStaysTypical) {
  const FittedPrior fitted = FitPrior(Quantity::kGpuUtil, {}, 2);
  for (const double factor : fitted.factors) EXPECT_EQ(factor, 0);
  EXPECT_EQ(fitted.gpus, (std::vector<double>{0, 0}));
}

TEST(FitPrior, AGpuTypeHasItsOwnFactor) {
  TrainingSet slow = Lawful(Quantity::kStepTime, Factors(Quantity::kStepTime), 6, 0, 0.5);
  TrainingSet fast = Lawful(Quantity::kStepTime, Factors(Quantity::kStepTime), 6, 0, -0.5);
  std::vector<PriorRow> rows = PriorRows(slow, Quantity::kStepTime);
  for (PriorRow row : PriorRows(fast, Quantity::kStepTime)) {
    row.gpu = 1;
    rows.push_back(row);
  }
  const FittedPrior fitted = FitPrior(Quantity::kStepTime, rows, 2);
  EXPECT_NEAR(fitted.gpus[0] - fitted.gpus[1], 1.0, 0.2);
}

}  // namespace
}  // namespace horus
