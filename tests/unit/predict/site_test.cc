// SPDX-License-Identifier: Apache-2.0
// A few runs of a site move the constants that belong to it, and nothing else.
#include "predict/site.h"

#include <gtest/gtest.h>

#include <memory>

#include "features/feature_row.h"
#include "predict/train.h"
#include "rows.h"

namespace horus {
namespace {

constexpr size_t At(Quantity quantity) { return static_cast<size_t>(quantity); }

// Constants alone, of rows that follow the prior's law.
std::shared_ptr<const Predictor> Trained(Quantity quantity) {
  TrainOptions options;
  options.rounds = 0;
  options.base = Predictor::Prior();
  const auto bundle = TrainPredictor(Lawful(quantity, Factors(quantity), 10), options);
  return bundle.ok() ? *Predictor::FromBundle(*bundle) : nullptr;
}

// The first rows of other nets at a site where each takes `factor` times as much, and `more` besides.
TrainingSet Site(Quantity quantity, size_t rows, double factor, double more) {
  TrainingSet set = Lawful(quantity, Factors(quantity), 4);
  set.rows.resize(rows);
  for (TrainingRow& row : set.rows) row.measured[At(quantity)] = factor * row.measured[At(quantity)] + more;
  return set;
}

TEST(Site, OneRunTellsWhatContextAndLibrariesTakeMore) {
  const auto base = Trained(Quantity::kMemory);
  ASSERT_NE(base, nullptr);
  SiteReport report;
  const auto bundle = CalibrateToSite(*base, Site(Quantity::kMemory, 1, 1, 700), {}, &report);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  ASSERT_EQ(report.effects.size(), 1u);
  EXPECT_LT(report.effects[0].error_after, 0.01);
  EXPECT_GT(report.effects[0].error_before, 0.05);
  EXPECT_NEAR(report.base_mib, 300 + 700, 1);  // the rows' context, and more
  EXPECT_EQ((*Predictor::FromBundle(*bundle))->FindModel(Quantity::kMemory)->base_mib, report.base_mib);
}

TEST(Site, AStatedBaseIsTakenAsItIs) {
  const auto base = Trained(Quantity::kMemory);
  ASSERT_NE(base, nullptr);
  const auto bundle = CalibrateToSite(*base, {}, {.base_mib = 1234});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ((*Predictor::FromBundle(*bundle))->FindModel(Quantity::kMemory)->base_mib, 1234);
}

TEST(Site, SlowerGpusAreLearnedFromAFewRunsAndBoundsFromTen) {
  const auto base = Trained(Quantity::kStepTime);
  ASSERT_NE(base, nullptr);
  for (const size_t rows : {4u, 12u}) {
    SiteReport report;
    const auto bundle = CalibrateToSite(*base, Site(Quantity::kStepTime, rows, 1.5, 0), {}, &report);
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    ASSERT_EQ(report.effects.size(), 1u);
    EXPECT_LT(report.effects[0].error_after, report.effects[0].error_before / 2);
    const double before = base->FindModel(Quantity::kStepTime)->upper_margin;
    const double after = (*Predictor::FromBundle(*bundle))->FindModel(Quantity::kStepTime)->upper_margin;
    EXPECT_EQ(after == before, rows < 10) << rows;
  }
}

TEST(Site, JobsThatTheSiteRanTenOfAreNotOutside) {
  const auto base = Trained(Quantity::kStepTime);
  ASSERT_NE(base, nullptr);
  const size_t precision = *FindFeature("precision");
  for (const size_t rows : {9u, 10u}) {
    TrainingSet set = Site(Quantity::kStepTime, rows, 1, 0);
    for (TrainingRow& row : set.rows) row.features[precision] += 1;  // one that no row of the bundle had
    SiteReport report;
    const auto bundle = CalibrateToSite(*base, set, {}, &report);
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    const auto moved = *Predictor::FromBundle(*bundle);
    const TrainingRow& row = set.rows.front();
    const Refined refined = moved->FindModel(Quantity::kStepTime)->Refine(row.features, row.gpu, {1e3, 2e3, true});
    EXPECT_EQ(refined.outside, rows < 10) << rows;
    ASSERT_EQ(report.effects.size(), 1u);
    EXPECT_EQ(report.effects[0].slack_after < report.effects[0].slack_before / 2, rows >= 10) << rows;
  }
}

TEST(Site, NothingToGoByIsAnError) {
  const auto base = Trained(Quantity::kStepTime);
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(CalibrateToSite(*base, {}, {}).status().code(), absl::StatusCode::kInvalidArgument);
  const auto untrained = CalibrateToSite(*Predictor::Prior(), Site(Quantity::kStepTime, 1, 1, 0), {});
  EXPECT_EQ(untrained.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(untrained.status().message().find("bundle"), absl::string_view::npos);
}

}  // namespace
}  // namespace horus
