// SPDX-License-Identifier: Apache-2.0
// A few runs of a site move the constants that belong to it, and nothing else.

#include <gtest/gtest.h>

#include <cmath>
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
  EXPECT_LT(report.effects[0].error_after, 0.04);
  EXPECT_GT(report.effects[0].error_before, 0.05);
  EXPECT_NEAR(report.base_mib, 300 + 700, 100);  // the rows' context, and more
  EXPECT_EQ((*Predictor::FromBundle(*bundle))->FindModel(Quantity::kMemory)->base_mib, report.base_mib);
}

TEST(Site, ScratchOfLargeJobsIsNoBase) {
  const auto base = Trained(Quantity::kMemory);
  ASSERT_NE(base, nullptr);
  // Three large jobs take a tenth more than predicted, a small one tells the base.
  TrainingSet set = Site(Quantity::kMemory, 4, 1, 700);
  for (size_t i = 1; i < set.rows.size(); ++i) {
    Set(set.rows[i].features, "mem_peak", 30000.0 * 1048576);
    set.rows[i].measured[At(Quantity::kMemory)] = 1.1 * 30000 + 700;
  }
  SiteReport report;
  const auto bundle = CalibrateToSite(*base, set, {}, &report);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_NEAR(report.base_mib, 300 + 700, 150);
  EXPECT_LT(report.effects[0].error_after, report.effects[0].error_before);
}

TEST(Site, JobsThatTakeMoreThanPredictedAtEverySizeAreAScaleAndABase) {
  const auto base = Trained(Quantity::kMemory);
  ASSERT_NE(base, nullptr);
  TrainingSet set = Site(Quantity::kMemory, 4, 1, 0);
  const double sizes_mib[] = {1000, 4000, 12000, 30000};
  for (size_t i = 0; i < set.rows.size(); ++i) {
    Set(set.rows[i].features, "mem_peak", (sizes_mib[i] + 300) * 1048576);
    set.rows[i].measured[At(Quantity::kMemory)] = 1.1 * sizes_mib[i] + 900;
  }
  SiteReport report;
  ASSERT_TRUE(CalibrateToSite(*base, set, {}, &report).ok());
  EXPECT_NEAR(report.base_mib, 900, 100);
  EXPECT_LT(report.effects[0].error_after, 0.05);
}

TEST(Site, RunsThatScatterMakeAWiderBound) {
  const auto base = Trained(Quantity::kMemory);
  ASSERT_NE(base, nullptr);
  const auto margin = [&base](double scatter) {
    TrainingSet set = Site(Quantity::kMemory, 4, 1, 700);
    for (size_t i = 0; i < set.rows.size(); ++i) {
      set.rows[i].measured[At(Quantity::kMemory)] *= i % 2 == 0 ? 1 + scatter : 1 / (1 + scatter);
    }
    return (*Predictor::FromBundle(CalibrateToSite(*base, set, {}).value()))
        ->FindModel(Quantity::kMemory)
        ->upper_margin;
  };
  EXPECT_LT(margin(0.02), margin(0.3) / 3);
  EXPECT_LE(margin(9999), 1000) << "what a bundle holds";
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

// Constants alone of three campaigns, each with a base of its own on GPUs of one name.
std::shared_ptr<const Predictor> TrainedOnCampaigns() {
  TrainingSet set;
  for (const double more : {200.0, 700.0, 1200.0}) {
    TrainingSet campaign = Site(Quantity::kMemory, 32, 1, more);
    for (TrainingRow& row : campaign.rows) row.campaign = std::to_string(more);
    set.rows.insert(set.rows.end(), campaign.rows.begin(), campaign.rows.end());
  }
  TrainOptions options;
  options.rounds = 0;
  options.base = Predictor::Prior();
  const auto bundle = TrainPredictor(set, options);
  return bundle.ok() ? *Predictor::FromBundle(*bundle) : nullptr;
}

TEST(Site, AStrangersMemoryIsBoundedByCampaignsAndNotByTheNameOfItsGpu) {
  const auto base = TrainedOnCampaigns();
  ASSERT_NE(base, nullptr);
  const TargetModel* model = base->FindModel(Quantity::kMemory);
  ASSERT_NE(model, nullptr);
  const TrainingSet site = Site(Quantity::kMemory, 32, 1, 1700);  // on a GPU of the same name
  for (const TrainingRow& row : site.rows) {
    const double measured = row.measured[At(Quantity::kMemory)];
    for (const char* gpu : {"v100", "another"}) {
      const Refined refined = model->Refine(row.features, gpu, {1000, 1500, true});
      EXPECT_GE(refined.upper, measured);
      EXPECT_GT(refined.site_mib, 0.5 * (refined.upper - refined.value));
      EXPECT_LT(refined.promised, 0.9);  // of three campaigns
    }
  }
}

TEST(Site, FourRunsTakeTheUnknownSiteOutOfTheBound) {
  const auto base = TrainedOnCampaigns();
  ASSERT_NE(base, nullptr);
  const TrainingRow judged = Site(Quantity::kMemory, 32, 1, 1700).rows.back();
  double last = HUGE_VAL;
  for (const size_t runs : {1u, 2u, 4u}) {
    const auto bundle = CalibrateToSite(*base, Site(Quantity::kMemory, runs, 1, 1700), {});
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    const auto moved = *Predictor::FromBundle(*bundle);
    const Refined refined = moved->FindModel(Quantity::kMemory)->Refine(judged.features, "v100", {1000, 1500, true});
    EXPECT_LT(refined.site_mib, last);
    EXPECT_EQ(refined.site_mib == 0, runs == 4);
    EXPECT_GE(refined.upper, judged.measured[At(Quantity::kMemory)]);
    last = refined.site_mib;
  }
}

TEST(Site, FourRunsTellTheLevelAndTheSlopeOfUtilisation) {
  const auto base = Trained(Quantity::kGpuUtilMax);
  ASSERT_NE(base, nullptr);
  // Busy jobs wait for loaders, idle ones were sampled as busier than they are: half of the slope, in log space.
  TrainingSet set = Site(Quantity::kGpuUtilMax, 16, 1, 0), few;
  for (size_t i = 0; i < set.rows.size(); ++i) {
    double& measured = set.rows[i].measured[At(Quantity::kGpuUtilMax)];
    measured = std::expm1(1.5 + 0.5 * std::log1p(measured));
    if (i % 4 == 0) few.rows.push_back(set.rows[i]);
  }
  SiteReport report;
  const auto bundle = CalibrateToSite(*base, few, {}, &report);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const auto moved = *Predictor::FromBundle(*bundle);
  double before = 0, after = 0;
  for (const TrainingRow& row : set.rows) {
    const double measured = row.measured[At(Quantity::kGpuUtilMax)];
    const auto error = [&](const Predictor& predictor) {
      const TargetModel* model = predictor.FindModel(Quantity::kGpuUtilMax);
      return std::abs(std::log1p(model->Refine(row.features, row.gpu, {50, 100, true}).value) - std::log1p(measured));
    };
    before += error(*base);
    after += error(*moved);
  }
  EXPECT_LT(after, before / 4);
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
