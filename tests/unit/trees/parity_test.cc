// SPDX-License-Identifier: Apache-2.0
// The walk equals XGBoost's own prediction bit for bit, missing values included, whatever the batch.
#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "trees/forest.h"
#include "trees/train/parse_model.h"
#include "xgboost_model.h"

namespace horus {
namespace {

struct Problem {
  size_t columns = 0;
  std::vector<float> rows, targets, margins;
};

// Continuous, coarse and often missing columns; a target that depends on which are missing.
Problem RandomProblem(uint32_t seed, size_t count, size_t columns) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Problem problem{.columns = columns};
  for (size_t r = 0; r < count; ++r) {
    float target = 0.1f * normal(random);
    for (size_t c = 0; c < columns; ++c) {
      float value = normal(random) * std::pow(10.0f, static_cast<float>(c % 7) - 3.0f);
      if (c % 3 == 1) value = std::floor(value * 4);
      if (random() % 8 < c % 4) value = std::numeric_limits<float>::quiet_NaN();
      target += std::isnan(value) ? 0.3f : std::sin(value * static_cast<float>(c + 1));
      problem.rows.push_back(value);
    }
    problem.targets.push_back(target);
    problem.margins.push_back(normal(random));
  }
  return problem;
}

void ExpectSameBits(std::span<const float> ours, std::span<const float> theirs, size_t batch) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(ours[i]), std::bit_cast<uint32_t>(theirs[i]))
        << "row " << i << ", batch " << batch << ": " << ours[i] << " and " << theirs[i];
  }
}

struct Setting {
  const char* method;
  int depth;
  int rounds;
};

class Parity : public ::testing::TestWithParam<Setting> {};

TEST_P(Parity, EqualsXgboostBitForBitInEveryBatch) {
  const Setting setting = GetParam();
  constexpr size_t kColumns = 12;
  const Problem problem = RandomProblem(3, 900, kColumns);
  const testing::XgbMatrix train(problem.rows, kColumns, problem.targets, {});
  const testing::XgbModel model(train, setting.rounds,
                                {{"tree_method", setting.method},
                                 {"max_depth", std::to_string(setting.depth)},
                                 {"learning_rate", "0.1"},
                                 {"nthread", "1"},
                                 {"base_score", "0.3"},
                                 {"verbosity", "0"}});
  const auto forest = Forest::Create(model.Forest(kColumns));
  ASSERT_TRUE(forest.ok()) << forest.status();
  ASSERT_EQ(forest->num_trees(), static_cast<size_t>(setting.rounds));

  const Problem fresh = RandomProblem(4, 1000, kColumns);
  for (const size_t batch : {1u, 2u, 7u, 63u, 64u, 65u, 100u, 999u, 1000u}) {
    std::vector<float> plain, shifted, theirs, theirs_shifted;
    for (size_t first = 0; first < 1000; first += batch) {
      const size_t count = std::min<size_t>(batch, 1000 - first);
      const auto rows = std::span(fresh.rows).subspan(first * kColumns, count * kColumns);
      const auto margins = std::span(fresh.margins).subspan(first, count);
      std::vector<float> out(count);
      forest->PredictMargins(rows, count, kColumns, {}, out);
      plain.insert(plain.end(), out.begin(), out.end());
      forest->PredictMargins(rows, count, kColumns, margins, out);
      shifted.insert(shifted.end(), out.begin(), out.end());
      if (batch > 2) continue;  // XGBoost is asked row by row, in pairs, and below for all at once
      for (const float value : model.Margins(testing::XgbMatrix(rows, kColumns, {}, {}))) theirs.push_back(value);
      for (const float value : model.Margins(testing::XgbMatrix(rows, kColumns, {}, margins))) {
        theirs_shifted.push_back(value);
      }
    }
    if (batch > 2) {
      theirs = model.Margins(testing::XgbMatrix(fresh.rows, kColumns, {}, {}));
      theirs_shifted = model.Margins(testing::XgbMatrix(fresh.rows, kColumns, {}, fresh.margins));
    }
    ExpectSameBits(plain, theirs, batch);
    ExpectSameBits(shifted, theirs_shifted, batch);
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, Parity,
                         ::testing::Values(Setting{"exact", 1, 40}, Setting{"exact", 3, 37}, Setting{"exact", 6, 100},
                                           Setting{"exact", 11, 20}, Setting{"hist", 2, 33}, Setting{"hist", 6, 64},
                                           Setting{"hist", 9, 25}, Setting{"hist", 14, 18}));

TEST(Parity, HoldsOnThresholdsThemselves) {
  constexpr size_t kColumns = 5;
  const Problem problem = RandomProblem(8, 300, kColumns);
  const testing::XgbMatrix train(problem.rows, kColumns, problem.targets, {});
  const testing::XgbModel model(train, 30, {{"tree_method", "exact"}, {"nthread", "1"}, {"verbosity", "0"}});
  const ForestData data = model.Forest(kColumns);
  const auto forest = Forest::Create(data);
  ASSERT_TRUE(forest.ok()) << forest.status();
  std::vector<float> rows;
  for (const TreeNode& node : data.nodes) {
    if (node.is_leaf()) continue;
    for (const float value : {node.value, std::nextafter(node.value, -1e30f), std::nextafter(node.value, 1e30f)}) {
      std::vector<float> row(kColumns, 0.0f);
      row[node.feature()] = value;
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  std::vector<float> out(rows.size() / kColumns);
  forest->PredictMargins(rows, out.size(), kColumns, {}, out);
  ExpectSameBits(out, model.Margins(testing::XgbMatrix(rows, kColumns, {}, {})), out.size());
}

TEST(ParseModel, RefusesBytesThatAreNoModel) {
  train::ParsedForest parsed;
  EXPECT_NE(train::ParseModel({}, parsed), "");
  EXPECT_NE(train::ParseModel(std::string("{U\x04name"), parsed), "");
  EXPECT_NE(train::ParseModel(std::string("{}"), parsed), "");
}

}  // namespace
}  // namespace horus
