// SPDX-License-Identifier: Apache-2.0
// TargetModel: what a bundle may say of a quantity, how it fades outside its range, and the built-in bundle.
#include "predict/target_model.h"

#include <gtest/gtest.h>

#include <limits>

#include "predict/demand.h"
#include "predict/predictor.h"
#include "rows.h"

namespace horus {
namespace {

// A step-time model trained on rows with the sizes of Features(1000 to 10000, 5000, ...), with one leaf of `shift`.
TargetModel Model(double shift = 0) {
  TargetModel model;
  model.quantity = Quantity::kStepTime;
  model.factors.assign(FactorsOf(Quantity::kStepTime).size(), 0.0);
  model.gpus = {{"k80", 0.3}, {"v100", 0.0}};
  model.upper_margin = 0.5;
  model.unseen_gpu_margin = 0.9;
  model.promised = 0.8;
  model.unseen_gpu_promised = 0.7;
  const std::vector<float> small = Features(1000, 5000, 8), large = Features(10'000, 5000, 8);
  for (const RangeColumn& column : RangeColumns()) {
    model.range.low.push_back(double{small[*FindFeature(column.name)]});
    model.range.high.push_back(double{large[*FindFeature(column.name)]});
  }
  ForestData forest;
  forest.num_features = static_cast<uint32_t>(FeatureCount());
  forest.nodes.push_back({.value = static_cast<float>(shift)});
  forest.tree_sizes.push_back(1);
  model.forest = *Forest::Create(forest);
  return model;
}

double StepOf(const TargetModel& model, const std::vector<float>& row, double gpu) {
  return PriorOf(Quantity::kStepTime, TermsOf(row), model.factors, gpu);
}

TEST(TargetModel, TheForestShiftsTheMarginOfTheFittedPrior) {
  const TargetModel model = Model(0.25);
  const std::vector<float> row = Features(5000, 5000, 8);
  const Refined refined = model.Refine(row, "v100", {6000, 15'000});
  EXPECT_EQ(refined.roofline, 6000);
  EXPECT_NEAR(refined.fitted, StepOf(model, row, 0), 1e-6 * refined.fitted);
  EXPECT_NEAR(refined.value, refined.fitted * std::exp(0.25), 1e-4 * refined.value);
  EXPECT_NEAR(refined.upper, refined.value * std::exp(0.5), 1e-4 * refined.upper);
  EXPECT_EQ(refined.distance, 0);
  EXPECT_TRUE(refined.calibrated);
}

TEST(TargetModel, AnUnseenGpuTypeHasTheMeanFactorAndTheWiderBound) {
  const TargetModel model = Model();
  const std::vector<float> row = Features(5000, 5000, 8);
  const Refined seen = model.Refine(row, "k80", {6000, 15'000}), unseen = model.Refine(row, "t4", {6000, 15'000});
  EXPECT_NEAR(seen.value, StepOf(model, row, 0.3), 1e-4 * seen.value);
  EXPECT_NEAR(unseen.value, StepOf(model, row, 0.1), 1e-4 * unseen.value);
  EXPECT_NEAR(unseen.upper / unseen.value, std::exp(0.9), 1e-4);
  EXPECT_EQ(seen.promised, 0.8);
  EXPECT_EQ(unseen.promised, 0.7);
}

TEST(TargetModel, WithoutAMarginForUnseenGpusTheDefaultFactorStays) {
  TargetModel model = Model();
  model.unseen_gpu_margin = -1;
  const Refined refined = model.Refine(Features(5000, 5000, 8), "t4", {6000, 15'000});
  EXPECT_FALSE(refined.calibrated);
  EXPECT_EQ(refined.promised, 0);
  EXPECT_NEAR(refined.upper / refined.value, 2.5, 1e-6);
}

TEST(TargetModel, OutsideTheRangeTheForestFadesAndTheBoundWidens) {
  const TargetModel model = Model(0.4);
  double last_width = 0, last_shift = HUGE_VAL;
  for (const double device : {10'000.0, 14'000.0, 20'000.0, 40'000.0}) {
    const std::vector<float> row = Features(device, 5000, 8);
    const Refined refined = model.Refine(row, "v100", {device, 2.5 * device});
    EXPECT_NEAR(refined.distance, std::log(device / 10'000), 1e-5);
    EXPECT_GE(refined.upper / refined.value, last_width);
    EXPECT_LT(refined.value / refined.fitted, last_shift);
    EXPECT_NEAR(std::log(refined.value / refined.fitted), 0.4 * refined.forest_share, 1e-5);
    last_width = refined.upper / refined.value;
    last_shift = refined.value / refined.fitted;
  }
  EXPECT_NEAR(last_shift, 1, 1e-5);  // more than e times beyond: the prior alone
  const Refined far = model.Refine(Features(40'000, 5000, 8), "v100", {40'000, 100'000});
  EXPECT_FALSE(far.calibrated);
  EXPECT_EQ(far.farthest, "step_flops");
}

TEST(TargetModel, AGpuOfWhichNothingIsKnownIsJudgedByTheJobAlone) {
  std::vector<float> row = Features(5000, 5000, 8);
  for (const char* column : {"gpu_fp32_gflops", "gpu_mem_bandwidth_mb_s", "gpu_sm_count"}) {
    Set(row, column, std::numeric_limits<double>::quiet_NaN());
  }
  EXPECT_EQ(Model().Refine(row, "opaque:x", {6000, 15'000}).distance, 0);
}

TEST(TargetModel, OutsideTheRangeMemoryKeepsAtLeastItsAnalyticBound) {
  TargetModel model = Model(-0.5);
  model.quantity = Quantity::kMemory;
  model.factors.assign(FactorsOf(Quantity::kMemory).size(), -0.3);
  const std::vector<float> row = Features(30'000, 5000, 8, 5000);
  const Refined refined = model.Refine(row, "v100", {5000, 9000});
  EXPECT_GT(refined.distance, kOutsideDistance);
  EXPECT_GE(refined.upper, 9000);
}

TEST(TargetModel, AModeThatWasNotTrainedOnIsOutside) {
  std::vector<float> row = Features(5000, 5000, 8);
  Set(row, "training", 0);
  const Refined refined = Model().Refine(row, "v100", {6000, 15'000});
  EXPECT_GT(refined.distance, kOutsideDistance);
  EXPECT_EQ(refined.farthest, "training");
}

TEST(TargetModel, AForestThatLeavesTheNumbersLeavesThePrior) {
  const Refined refined = Model(3e38).Refine(Features(5000, 5000, 8), "v100", {6000, 15'000});
  EXPECT_TRUE(std::isfinite(refined.value));
  EXPECT_LE(refined.value, kMostStepUs);
}

TEST(TargetModel, NoDistanceIsLargerThanADemandMayHave) {
  TargetModel model = Model();
  model.range.high[0] = model.range.low[0] = std::numeric_limits<double>::denorm_min();
  const Refined refined = model.Refine(Features(5000, 5000, 8), "v100", {6000, 15'000});
  EXPECT_EQ(refined.distance, kMostDistance);
  EXPECT_EQ(refined.farthest, RangeColumns()[0].name);
  Demand demand;
  demand.distance = static_cast<float>(kMostDistance);
  EXPECT_TRUE(ValidateDemand(demand).ok());
  demand.distance = std::nextafter(demand.distance, HUGE_VALF);
  EXPECT_FALSE(ValidateDemand(demand).ok());
}

TEST(TargetModel, ABundleKeepsThatNothingWasSeenOfAColumn) {
  TargetModel model = Model();
  model.range.low[0] = HUGE_VAL;
  model.range.high[0] = -HUGE_VAL;
  const auto read = FromBundle(ToBundle(model), FeatureCount());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->range, model.range);
}

TEST(TargetModel, ABundleKeepsAllOfIt) {
  const TargetModel model = Model(0.25);
  const auto read = FromBundle(ToBundle(model), FeatureCount());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->factors, model.factors);
  EXPECT_EQ(read->gpus, model.gpus);
  EXPECT_EQ(read->range, model.range);
  EXPECT_EQ(read->upper_margin, model.upper_margin);
  EXPECT_EQ(read->unseen_gpu_margin, model.unseen_gpu_margin);
  EXPECT_EQ(read->promised, model.promised);
  EXPECT_EQ(read->unseen_gpu_promised, model.unseen_gpu_promised);
  EXPECT_EQ(read->forest.data(), model.forest.data());
  EXPECT_EQ(ToBundle(*read), ToBundle(model));
}

TEST(TargetModel, RefusesWhatItCannotHaveWritten) {
  const BundleTarget good = ToBundle(Model());
  const auto series = [](BundleTarget& target, std::string_view name) -> NamedSeries& {
    for (NamedSeries& s : target.calibration) {
      if (s.name == name) return s;
    }
    return target.calibration.emplace_back(NamedSeries{std::string(name), {}});
  };
  const auto refused = [&](auto change) {
    BundleTarget target = good;
    change(target);
    const auto status = FromBundle(target, FeatureCount()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_NE(status.message().find("target"), std::string::npos);
  };
  refused([](BundleTarget& t) { t.name = "colour"; });
  refused([](BundleTarget& t) { t.link = Link::kIdentity; });
  refused([](BundleTarget& t) { t.forest.num_features += 1; });
  refused([&](BundleTarget& t) { series(t, "prior_factors").values.pop_back(); });
  refused([&](BundleTarget& t) { series(t, "prior_factors").values[0] = 1000; });
  refused([&](BundleTarget& t) { series(t, "prior_factors").values[0] = HUGE_VAL; });
  refused([&](BundleTarget& t) { series(t, "upper_margin").values = {-1}; });
  refused([&](BundleTarget& t) { series(t, "unseen_gpu_margin").values = {1, 2}; });
  refused([&](BundleTarget& t) { series(t, "upper_margin").values = {HUGE_VAL}; });
  refused([&](BundleTarget& t) { series(t, "coverage").values = {1}; });
  refused([&](BundleTarget& t) { series(t, "coverage").values = {7, 0, 1, 1, 0}; });
  refused([&](BundleTarget& t) { series(t, "coverage").values = {0.5, 0.5, 1e300, 1, 0}; });
  refused([&](BundleTarget& t) { series(t, "gpu:k80").values = {}; });
  refused([&](BundleTarget& t) { series(t, "range_low").values.pop_back(); });
  refused([&](BundleTarget& t) {
    series(t, "range_low").values.assign(1000, 0);
    series(t, "range_high").values.assign(1000, 1);
  });
  const std::pair<double, double> no_ranges[] = {{HUGE_VAL, HUGE_VAL}, {-HUGE_VAL, 1}, {1, HUGE_VAL},        {2, 1},
                                                 {1e-320, 1e-320},     {1, 1e300},     {-HUGE_VAL, HUGE_VAL}};
  for (const auto& [low, high] : no_ranges) {
    SCOPED_TRACE(testing::Message() << low << " to " << high);
    refused([&](BundleTarget& t) {
      series(t, "range_low").values[3] = low;
      series(t, "range_high").values[3] = high;
    });
  }
}

TEST(DefaultBundle, FitsThisSchemaAndStaysSmall) {
  const auto predictor = Predictor::Default();
  for (const Quantity quantity : {Quantity::kGpuUtil, Quantity::kMemBwUtil, Quantity::kMemory, Quantity::kStepTime}) {
    const TargetModel* model = predictor->FindModel(quantity);
    ASSERT_NE(model, nullptr) << "run scripts/train-default: the feature schema has changed";
    EXPECT_LE(model->forest.num_trees(), 100u);
    EXPECT_GE(model->upper_margin, 0);
    EXPECT_GT(model->promised, 0.5);
  }
  EXPECT_TRUE(predictor->calibrated());
  EXPECT_LT(predictor->bytes_held(), 1 << 20);
}

}  // namespace
}  // namespace horus
