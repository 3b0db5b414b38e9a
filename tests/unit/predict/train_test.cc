// SPDX-License-Identifier: Apache-2.0
// Training and evaluation: what is learned, what is promised of it, and what is refused.
#include "predict/train.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lab/evaluate/evaluate_predictor.h"
#include "predict/predictor.h"
#include "rows.h"

namespace horus {
namespace {

TrainOptions Options(int32_t rounds = 40) {
  TrainOptions options;
  options.rounds = rounds;
  return options;
}

TEST(Train, LearnsTheConstantsAndNeedsNoTreesWhereThePriorIsTheLaw) {
  const TrainingSet set =
      Lawful(Quantity::kStepTime,
             Factors(Quantity::kStepTime,
                     {{kMatmulFactor, 0.1}, {kElementwiseFactor, 0.1}, {kHostFactor, 0.8}, {kFixedFactor, 0.3}}),
             8);
  const auto model = TrainTarget(Quantity::kStepTime, RowsWith(set, Quantity::kStepTime), Options(), nullptr);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const TrainingRow& row : set.rows) {
    const double measured = row.measured[static_cast<size_t>(Quantity::kStepTime)];
    const Refined refined = model->Refine(row.features, row.gpu, {1, 1});
    EXPECT_NEAR(refined.value, measured, 0.1 * measured);
  }
}

TEST(Train, TreesLearnWhatThePriorCannotSay) {
  TrainingSet set = Lawful(Quantity::kStepTime, Factors(Quantity::kStepTime), 10);
  // Twice as slow where some feature says so: no constant of the prior can express it.
  for (TrainingRow& row : set.rows) {
    const bool slow = row.model.back() == '1';
    Set(row.features, "ops_recurrent", slow ? 5 : 0);
    if (slow) row.measured[static_cast<size_t>(Quantity::kStepTime)] *= 2;
  }
  const auto evaluated =
      Evaluate(Quantity::kStepTime, RowsWith(set, Quantity::kStepTime), RowLeave::kFamily, Options(100));
  const auto without = Evaluate(Quantity::kStepTime, RowsWith(set, Quantity::kStepTime), RowLeave::kFamily, Options(0));
  ASSERT_TRUE(evaluated.ok() && without.ok()) << evaluated.status();
  EXPECT_LT(evaluated->methods[0].mape_pct, 0.6 * without->methods[0].mape_pct);
}

TEST(Train, BoundsCoverUnseenFamiliesAsPromised) {
  const TrainingSet set = Lawful(Quantity::kStepTime, Factors(Quantity::kStepTime), 19, 0.3);
  const auto evaluated =
      Evaluate(Quantity::kStepTime, RowsWith(set, Quantity::kStepTime), RowLeave::kFamily, Options(0));
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_NEAR(evaluated->promised_pct, 90, 1e-6);  // 18 families remain: 18 / 19 is more than the 0.9 asked for
  EXPECT_GE(evaluated->covered_pct, 85);
  EXPECT_LT(evaluated->covered_pct, 100);  // and is no more than is needed
}

TEST(Train, FewFamiliesPromiseLess) {
  const TrainingSet set = Lawful(Quantity::kGpuUtil, Factors(Quantity::kGpuUtil), 3, 0.1);
  const auto model = TrainTarget(Quantity::kGpuUtil, RowsWith(set, Quantity::kGpuUtil), Options(0), nullptr);
  ASSERT_TRUE(model.ok());
  EXPECT_DOUBLE_EQ(model->promised, 0.75);
  const TrainingSet one = Lawful(Quantity::kGpuUtil, Factors(Quantity::kGpuUtil), 1, 0.1);
  const auto alone = TrainTarget(Quantity::kGpuUtil, RowsWith(one, Quantity::kGpuUtil), Options(0), nullptr);
  ASSERT_TRUE(alone.ok());
  EXPECT_LT(alone->upper_margin, 0);  // nothing can be said of a second family
}

TEST(Train, MemoryNeverFallsAsTheBatchGrows) {
  TrainingSet set = Lawful(Quantity::kMemory, Factors(Quantity::kMemory), 10, 0.3);
  for (TrainingRow& row : set.rows)
    Set(row.features, "mem_saved_total", 1e7 * double{row.features[*FindFeature("batch")]});
  auto rows = RowsWith(set, Quantity::kMemory);
  const auto trained = TrainTarget(Quantity::kMemory, rows, Options(), nullptr);
  ASSERT_TRUE(trained.ok());
  double last = 0;
  for (double batch = 1; batch < 300; batch *= 1.3) {
    std::vector<float> row = Features(batch * 2000, 9000, batch, 1000 + batch * 60);
    Set(row, "mem_saved_total", 1e7 * batch);
    const double value = ApplyLink(
        Link::kExp, double{trained->forest.PredictMargin(row, static_cast<float>(trained->FittedMargin(row, "v100")))});
    EXPECT_GE(value, last) << "batch " << batch;
    last = value;
  }
}

TEST(Train, ZeroMeasuredIsNotTheSameAsNotMeasured) {
  TrainingSet set = Lawful(Quantity::kGpuUtil, Factors(Quantity::kGpuUtil), 4);
  const uint64_t before = FingerprintOf(set);
  set.rows[0].measured[static_cast<size_t>(Quantity::kMemBwUtil)] = 0;
  EXPECT_NE(FingerprintOf(set), before);
}

TEST(Train, EqualRowsGiveEqualBytes) {
  TrainingSet set = Lawful(Quantity::kStepTime, Factors(Quantity::kStepTime), 6, 0.4);
  const auto first = TrainPredictor(set, Options()), second = TrainPredictor(set, Options());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*WriteBundle(*first), *WriteBundle(*second));
  set.rows[3].measured[static_cast<size_t>(Quantity::kStepTime)] *= 1.01;
  EXPECT_NE(TrainPredictor(set, Options())->data_fingerprint, first->data_fingerprint);
}

TEST(Train, ABundleHoldsWhatEnoughRowsMeasured) {
  TrainingSet set = Lawful(Quantity::kStepTime, Factors(Quantity::kStepTime), 4, 0.1);
  for (size_t i = 0; i < kLeastTrainingRows - 1; ++i) set.rows[i].measured[static_cast<size_t>(Quantity::kPower)] = 200;
  TrainReport report;
  TrainOptions options = Options();
  options.base = Predictor::Prior();  // nothing to keep
  const auto bundle = TrainPredictor(set, options, nullptr, &report);
  ASSERT_TRUE(bundle.ok());
  ASSERT_EQ(bundle->targets.size(), 1u);
  EXPECT_EQ(bundle->targets[0].name, "step_time_us");
  EXPECT_EQ(report.left_out, std::vector<Quantity>{Quantity::kPower});
  EXPECT_TRUE(Predictor::FromBundle(*bundle).ok());
}

TEST(Train, WhatTheRowsDoNotMeasureIsKeptOfTheBase) {
  const TrainingSet memory = Lawful(Quantity::kMemory, Factors(Quantity::kMemory), 4),
                    step = Lawful(Quantity::kStepTime, Factors(Quantity::kStepTime), 4);
  const auto built_in = Predictor::Default();
  const auto train = [](const TrainingSet& set, std::shared_ptr<const Predictor> base, TrainReport& report) {
    TrainOptions options = Options(0);
    options.base = std::move(base);
    return *Predictor::FromBundle(*TrainPredictor(set, options, nullptr, &report));
  };
  const auto bytes = [](const TargetModel* model) { return ToBundle(*model); };
  TrainReport report;
  const auto first = train(memory, nullptr, report);
  EXPECT_EQ(bytes(first->FindModel(Quantity::kStepTime)), bytes(built_in->FindModel(Quantity::kStepTime)));
  EXPECT_NE(bytes(first->FindModel(Quantity::kMemory)), bytes(built_in->FindModel(Quantity::kMemory)));
  size_t known = 0;  // to the built-in models
  for (size_t q = 0; q < kQuantityCount; ++q) known += built_in->FindModel(static_cast<Quantity>(q)) != nullptr ? 1 : 0;
  EXPECT_EQ(report.kept.size(), known - 1);
  const auto second = train(step, first, report);
  EXPECT_EQ(bytes(second->FindModel(Quantity::kMemory)), bytes(first->FindModel(Quantity::kMemory)));
  const auto alone = train(step, Predictor::Prior(), report);
  EXPECT_EQ(alone->FindModel(Quantity::kMemory), nullptr);
  EXPECT_TRUE(report.kept.empty());
}

TEST(Train, CanBeCancelledAtAnyTime) {
  const TrainingSet set = Lawful(Quantity::kStepTime, Factors(Quantity::kStepTime), 4, 0.1);
  for (const int allowed : {0, 1, 50}) {
    int calls = 0;
    double last = 0;
    const auto bundle = TrainPredictor(set, Options(), [&](double done) {
      EXPECT_GE(done, last);
      EXPECT_LE(done, 1);
      last = done;
      return ++calls <= allowed;
    });
    EXPECT_EQ(bundle.status().code(), absl::StatusCode::kCancelled) << allowed;
  }
}

TEST(Train, RefusesRowsThatCannotBe) {
  const TrainingSet good = Lawful(Quantity::kStepTime, Factors(Quantity::kStepTime), 4);
  const auto refused = [&](auto change) {
    TrainingSet set = good;
    change(set.rows[5]);
    const absl::Status status = TrainPredictor(set, Options()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("row 6"), std::string::npos) << status;
  };
  refused([](TrainingRow& r) { r.features.pop_back(); });
  refused([](TrainingRow& r) { r.features[3] = HUGE_VALF; });
  refused([](TrainingRow& r) { r.family.clear(); });
  refused([](TrainingRow& r) { r.gpu = "two words"; });
  refused([](TrainingRow& r) { r.model = std::string(100, 'x'); });
  refused([](TrainingRow& r) { r.measured[static_cast<size_t>(Quantity::kStepTime)] = 0; });
  refused([](TrainingRow& r) { r.measured[static_cast<size_t>(Quantity::kStepTime)] = -1; });
  refused([](TrainingRow& r) { r.measured[static_cast<size_t>(Quantity::kGpuUtil)] = 101; });
  EXPECT_EQ(TrainPredictor({}, Options()).status().code(), absl::StatusCode::kInvalidArgument);
  TrainingSet crowd = good;
  for (size_t i = 0; i <= kMostTrainingGpus; ++i) {
    crowd.rows.push_back(good.rows[i % good.rows.size()]);
    crowd.rows.back().gpu = "gpu" + std::to_string(i);
  }
  EXPECT_EQ(TrainPredictor(crowd, Options()).status().code(), absl::StatusCode::kInvalidArgument);
  TrainOptions wild = Options();
  wild.promise = 1.5;
  EXPECT_FALSE(TrainPredictor(good, wild).ok());
}

TEST(Evaluate, LeavesWholeGroupsOut) {
  // Each family is slow by its own factor: with siblings in training it could be learned, without them it cannot.
  TrainingSet set = Lawful(Quantity::kStepTime, Factors(Quantity::kStepTime), 8);
  for (TrainingRow& row : set.rows) {
    const double factor = row.family < "family4" ? 0.5 : 2.0;
    row.measured[static_cast<size_t>(Quantity::kStepTime)] *= factor;
    Set(row.features, "ops_other", static_cast<double>(Hash64(row.family) % 1000));
  }
  const auto rows = RowsWith(set, Quantity::kStepTime);
  const auto families = Evaluate(Quantity::kStepTime, rows, RowLeave::kFamily, Options(30));
  const auto random = Evaluate(Quantity::kStepTime, rows, RowLeave::kRows, Options(30));
  ASSERT_TRUE(families.ok() && random.ok()) << families.status();
  EXPECT_EQ(families->groups, 8u);
  EXPECT_EQ(families->rows.size(), rows.size());
  EXPECT_LT(random->methods[0].rmsle, families->methods[0].rmsle);
}

TEST(Evaluate, SumsUpErrorsAsNamed) {
  TargetModel model;
  model.quantity = Quantity::kStepTime;
  model.factors.assign(FactorsOf(Quantity::kStepTime).size(), 0.0);
  model.gpus = {{"v100", 0.0}};
  model.upper_margin = 0.01;
  TrainingSet set = Lawful(Quantity::kStepTime, Factors(Quantity::kStepTime), 2);
  for (TrainingRow& row : set.rows) row.measured[static_cast<size_t>(Quantity::kStepTime)] *= 2;  // predicted half
  const ErrorReport evaluation = EvaluateModel(model, RowsWith(set, Quantity::kStepTime));
  ASSERT_EQ(evaluation.methods.size(), 1u);
  EXPECT_NEAR(evaluation.methods[0].mape_pct, 50, 1e-3);
  EXPECT_NEAR(evaluation.methods[0].median_pct, 50, 1e-3);
  EXPECT_NEAR(evaluation.methods[0].rmsle, std::log(2), 1e-3);
  EXPECT_NEAR(evaluation.methods[0].spearman, 1, 1e-9);
  EXPECT_EQ(evaluation.covered_pct, 0);
}

TEST(Evaluate, MethodsWithoutAnAnswerAreNotJudged) {
  // Undescribed GPUs: the roofline says nothing of them.
  TrainingSet set = Lawful(Quantity::kStepTime, Factors(Quantity::kStepTime), 4);
  for (TrainingRow& row : set.rows) {
    row.gpu = "opaque:x";
    for (const char* column : {"roofline_step_time_us", "gpu_fp32_gflops"}) {
      Set(row.features, column, std::numeric_limits<double>::quiet_NaN());
    }
  }
  const auto report = Evaluate(Quantity::kStepTime, RowsWith(set, Quantity::kStepTime), RowLeave::kFamily, Options(5));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(std::isfinite(report->methods[0].mape_pct));
  EXPECT_EQ(report->methods[4].method, "roofline");
  EXPECT_TRUE(std::isnan(report->methods[4].mape_pct));
}

TEST(Evaluate, ABoundOfUnseenGpusPromisesNothingWhereTooFewWereSeen) {
  TrainingSet set = Lawful(Quantity::kStepTime, Factors(Quantity::kStepTime), 4);
  for (size_t i = 0; i < set.rows.size(); ++i) set.rows[i].gpu = i % 2 == 0 ? "a" : "b";
  const auto report = Evaluate(Quantity::kStepTime, RowsWith(set, Quantity::kStepTime), RowLeave::kGpu, Options(0));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->promised_pct, 0);
}

TEST(Evaluate, NeedsTwoGroups) {
  const TrainingSet set = Lawful(Quantity::kStepTime, Factors(Quantity::kStepTime), 3);
  EXPECT_FALSE(Evaluate(Quantity::kStepTime, RowsWith(set, Quantity::kStepTime), RowLeave::kGpu, Options()).ok());
}

}  // namespace
}  // namespace horus
