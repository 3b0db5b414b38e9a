// SPDX-License-Identifier: Apache-2.0
// Rules of training: reproducible, monotone where asked, silent, on one thread, and stopped by its callback.
#include "trees/trainer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <random>

#include "gmock/gmock.h"
#include "xgboost_model.h"

namespace horus {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Rises in feature 0 with noise; feature 1 matters, feature 2 does not; some values are missing.
struct Rows {
  static constexpr size_t kColumns = 3;
  std::vector<float> rows, targets, margins;

  explicit Rows(size_t count, uint32_t seed = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (size_t r = 0; r < count; ++r) {
      const float a = normal(random);
      const float b = normal(random);
      rows.insert(rows.end(), {a, random() % 10 == 0 ? std::numeric_limits<float>::quiet_NaN() : b, normal(random)});
      targets.push_back(a + std::sin(3 * a) + 0.5f * b * b + 0.3f * normal(random));
      margins.push_back(a);
    }
  }
  [[nodiscard]] TrainingData Data() const {
    return {.row_count = targets.size(), .feature_count = kColumns, .rows = rows, .targets = targets};
  }
};

TrainingParams Quick(int rounds) {
  TrainingParams params;
  params.rounds = rounds;
  params.max_depth = 4;
  params.learning_rate = 0.2f;
  return params;
}

double Rmse(const Forest& forest, const Rows& rows) {
  std::vector<float> out(rows.targets.size());
  forest.PredictMargins(rows.rows, out.size(), Rows::kColumns, {}, out);
  double sum = 0;
  for (size_t i = 0; i < out.size(); ++i) sum += std::pow(double{out[i]} - double{rows.targets[i]}, 2);
  return std::sqrt(sum / static_cast<double>(out.size()));
}

TEST(Fit, LearnsTheTarget) {
  const Rows rows(800);
  const auto forest = Fit(rows.Data(), Quick(60));
  ASSERT_TRUE(forest.ok()) << forest.status();
  EXPECT_THAT(forest->data().tree_sizes, SizeIs(60));
  EXPECT_NEAR(forest->base_score(), std::accumulate(rows.targets.begin(), rows.targets.end(), 0.0) / 800, 1e-6);
  EXPECT_LT(Rmse(*forest, Rows(800, 2)), 0.6) << "noise alone is 0.3, the target's own deviation 1.5";
}

TEST(Fit, GivesTheSameForestTwice) {
  const Rows rows(500);
  TrainingParams params = Quick(30);
  params.subsample = 0.7f;
  params.feature_share = 0.7f;
  params.seed = 9;
  const auto first = Fit(rows.Data(), params);
  ASSERT_TRUE(first.ok()) << first.status();
  // XGBoost's random state on this thread is disturbed between rounds: it must not matter.
  const auto disturb = [&](int32_t) {
    const testing::XgbMatrix matrix(rows.rows, Rows::kColumns, rows.targets, {});
    const testing::XgbModel other(matrix, 2, {{"subsample", "0.5"}, {"nthread", "1"}, {"verbosity", "0"}});
    return true;
  };
  const auto second = Fit(rows.Data(), params, disturb);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->data(), second->data());
  params.seed = 10;
  const auto other = Fit(rows.Data(), params);
  ASSERT_TRUE(other.ok());
  EXPECT_NE(first->data(), other->data());
}

class FitMethods : public ::testing::TestWithParam<TreeMethod> {};

TEST_P(FitMethods, GivesWhatXgboostTrainsFromTheSameParameters) {
  const Rows rows(600);
  TrainingParams params = Quick(40);
  params.method = GetParam();
  params.lambda = 2.5f;
  params.min_child_weight = 3;
  params.monotone = {1, 0, -1};
  TrainingData data = rows.Data();
  data.base_margins = rows.margins;
  const auto forest = Fit(data, params);
  ASSERT_TRUE(forest.ok()) << forest.status();
  const testing::XgbMatrix matrix(rows.rows, Rows::kColumns, rows.targets, rows.margins);
  const testing::XgbModel model(matrix, 40,
                                {{"tree_method", GetParam() == TreeMethod::kHist ? "hist" : "exact"},
                                 {"max_depth", "4"},
                                 {"learning_rate", "0.2"},
                                 {"reg_lambda", "2.5"},
                                 {"min_child_weight", "3"},
                                 {"monotone_constraints", "(1,0,-1)"},
                                 {"base_score", "0"},
                                 {"nthread", "1"},
                                 {"verbosity", "0"}});
  const std::vector<float> theirs = model.Margins(matrix);
  std::vector<float> ours(theirs.size());
  forest->PredictMargins(rows.rows, ours.size(), Rows::kColumns, rows.margins, ours);
  for (size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(ours[i]), std::bit_cast<uint32_t>(theirs[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, FitMethods, ::testing::Values(TreeMethod::kExact, TreeMethod::kHist));

TEST(Fit, KeepsMonotoneConstraints) {
  const Rows rows(700);
  const auto violations = [&](const Forest& forest) {
    int count = 0;
    const Rows probe(50, 3);
    for (size_t r = 0; r < 50; ++r) {
      std::vector<float> row(probe.rows.begin() + static_cast<std::ptrdiff_t>(3 * r),
                             probe.rows.begin() + static_cast<std::ptrdiff_t>(3 * r + 3));
      float before = -std::numeric_limits<float>::infinity();
      for (float a = -3; a <= 3; a += 0.05f) {
        row[0] = a;
        const float margin = forest.PredictMargin(row);
        count += margin < before - 1e-5f ? 1 : 0;
        before = margin;
      }
    }
    return count;
  };
  for (const TreeMethod method : {TreeMethod::kExact, TreeMethod::kHist}) {
    TrainingParams params = Quick(60);
    params.method = method;
    const auto free = Fit(rows.Data(), params);
    ASSERT_TRUE(free.ok()) << free.status();
    EXPECT_GT(violations(*free), 0) << "the constraint would hold by itself: the test shows nothing";
    params.monotone = {1, 0, 0};
    const auto held = Fit(rows.Data(), params);
    ASSERT_TRUE(held.ok()) << held.status();
    EXPECT_EQ(violations(*held), 0);
  }
}

TEST(Fit, StopsWhenTheCallbackSaysSo) {
  const Rows rows(300);
  int calls = 0;
  const auto cancelled = Fit(rows.Data(), Quick(50), [&](int32_t round) {
    EXPECT_EQ(round, ++calls);
    return round < 5;
  });
  EXPECT_EQ(cancelled.status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(cancelled.status().message()), HasSubstr("after round 5 of 50"));
  EXPECT_EQ(calls, 5);
}

TEST(HeldOutErrors, AreThoseOfTheForestOfSoManyRounds) {
  const Rows rows(350), unseen(100, 2);
  TrainingParams params = Quick(80);
  params.max_depth = 6;
  params.learning_rate = 0.5f;
  const auto errors = HeldOutErrors(rows.Data(), unseen.Data(), params);
  ASSERT_TRUE(errors.ok()) << errors.status();
  ASSERT_THAT(*errors, SizeIs(80));
  EXPECT_LT(std::min_element(errors->begin(), errors->end()), errors->end() - 1) << "such greedy trees overfit";
  // The error that XGBoost's margins gave is the error that our walk gives.
  params.rounds = 10;
  const auto forest = Fit(rows.Data(), params);
  ASSERT_TRUE(forest.ok()) << forest.status();
  EXPECT_DOUBLE_EQ(Rmse(*forest, unseen), (*errors)[9]);
}

TEST(Fit, WeighsRowsAsRepetitions) {
  const Rows rows(200);
  std::vector<float> weights(200, 1.0f);
  Rows repeated = rows;
  for (size_t r = 0; r < 50; ++r) {
    weights[r] = 2;
    repeated.targets.push_back(rows.targets[r]);
    repeated.rows.insert(repeated.rows.end(), rows.rows.begin() + static_cast<std::ptrdiff_t>(3 * r),
                         rows.rows.begin() + static_cast<std::ptrdiff_t>(3 * r + 3));
  }
  TrainingData weighted = rows.Data();
  weighted.weights = weights;
  const auto a = Fit(weighted, Quick(20));
  const auto b = Fit(repeated.Data(), Quick(20));
  ASSERT_TRUE(a.ok() && b.ok());
  for (size_t r = 0; r < 200; ++r) {
    const auto row = std::span(rows.rows).subspan(3 * r, 3);
    EXPECT_NEAR(a->PredictMargin(row), b->PredictMargin(row), 1e-3);
  }
}

TEST(Fit, WorksOnOneRowAndOnConstantTargets) {
  const std::vector<float> row = {1};
  const std::vector<float> target = {3};
  const auto one = Fit({.row_count = 1, .feature_count = 1, .rows = row, .targets = target}, Quick(3));
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->PredictMargin(row), 3.0f);
}

TEST(Fit, StartsNoThreadAndPrintsNothing) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  const Rows rows(400);
  for (const TreeMethod method : {TreeMethod::kExact, TreeMethod::kHist}) {
    TrainingParams params = Quick(10);
    params.method = method;
    const auto before = threads();
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const auto forest = Fit(rows.Data(), params);
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    EXPECT_TRUE(forest.ok()) << forest.status();
    EXPECT_EQ(threads(), before);
  }
}

}  // namespace
}  // namespace horus
