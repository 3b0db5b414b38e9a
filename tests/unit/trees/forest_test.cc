// SPDX-License-Identifier: Apache-2.0
// Rules of the forest: what it refuses, and that every layout walks as the definition says.
#include "trees/forest.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "gmock/gmock.h"
#include "random_forest.h"
#include "trees/order_key.h"

namespace horus {
namespace {

using ::horus::testing::kNan;
using ::testing::HasSubstr;

// x0 < 1 ? (x1 < 2 ? 10 : 20) : 30; a missing x0 goes left, a missing x1 right.
ForestData OneTree() {
  return {.num_features = 2,
          .base_score = 0.5f,
          .nodes = {{.split = 1, .right = 4, .value = 1, .cover = 4},
                    {.split = 2, .right = 3, .value = 2, .cover = 3},
                    {.value = 10, .cover = 1},
                    {.value = 20, .cover = 2},
                    {.value = 30, .cover = 1}},
          .tree_sizes = {5}};
}

TEST(Forest, FollowsThresholdsAndDefaultDirections) {
  const auto forest = Forest::Create(OneTree());
  ASSERT_TRUE(forest.ok()) << forest.status();
  const auto margin = [&](float x0, float x1) { return forest->PredictMargin(std::vector<float>{x0, x1}); };
  EXPECT_EQ(margin(0, 0), 10.5f);
  EXPECT_EQ(margin(0, 2), 20.5f) << "equal to the threshold goes right";
  EXPECT_EQ(margin(1, 0), 30.5f);
  EXPECT_EQ(margin(kNan, 0), 10.5f);
  EXPECT_EQ(margin(0, kNan), 20.5f);
  EXPECT_EQ(forest->PredictMargin(std::vector<float>{0, 0}, 100), 110.0f) << "a base margin replaces the base score";
}

TEST(Forest, TreatsAShortRowAsMissingValues) {
  const auto forest = Forest::Create(OneTree());
  ASSERT_TRUE(forest.ok());
  EXPECT_EQ(forest->PredictMargin({}), 20.5f);
  EXPECT_EQ(forest->PredictMargin(std::vector<float>{5}), 30.5f);
  EXPECT_EQ(forest->PredictMargin(std::vector<float>{0, 0, 7, 7}), 10.5f);
}

TEST(Forest, WithoutTreesReturnsTheBaseMargin) {
  const auto forest = Forest::Create({.num_features = 3, .base_score = 0.25f});
  ASSERT_TRUE(forest.ok());
  EXPECT_EQ(forest->PredictMargin(std::vector<float>{1, 2, 3}), 0.25f);
  EXPECT_EQ(Forest().PredictMargin({}, -0.0f), 0.0f);
  EXPECT_TRUE(std::signbit(Forest().PredictMargin({}, -0.0f))) << "nothing may be added, not even zero";
}

struct Shape {
  size_t trees;
  uint32_t depth;
  uint32_t leaf_odds;
  uint32_t features;
};

class ForestShapes : public ::testing::TestWithParam<Shape> {};

TEST_P(ForestShapes, WalksEveryLayoutAsTheDefinitionSays) {
  const Shape shape = GetParam();
  const ForestData data = testing::RandomForest(7, shape.trees, shape.depth, shape.leaf_odds, shape.features);
  const auto forest = Forest::Create(data);
  ASSERT_TRUE(forest.ok()) << forest.status();
  constexpr size_t kRows = 150;
  const std::vector<float> rows = testing::RandomRows(11, kRows, shape.features);
  const std::vector<float> margins = testing::RandomRows(13, kRows, 1);
  std::vector<float> expected(kRows);
  for (size_t r = 0; r < kRows; ++r) {
    const std::span<const float> row = std::span(rows).subspan(r * shape.features, shape.features);
    expected[r] = testing::PlainMargin(data, row, margins[r]);
    EXPECT_EQ(std::bit_cast<uint32_t>(forest->PredictMargin(row, margins[r])), std::bit_cast<uint32_t>(expected[r]));
  }
  for (const size_t batch : std::vector<size_t>{1, 2, 3, 4, 15, 16, 17, 63, 64, 65, kRows}) {
    std::vector<float> out(kRows, kNan);
    for (size_t first = 0; first < kRows; first += batch) {
      const size_t count = std::min(batch, kRows - first);
      forest->PredictMargins(std::span(rows).subspan(first * shape.features), count, shape.features,
                             std::span(margins).subspan(first, count), std::span(out).subspan(first));
    }
    for (size_t r = 0; r < kRows; ++r) {
      ASSERT_EQ(std::bit_cast<uint32_t>(out[r]), std::bit_cast<uint32_t>(expected[r]))
          << "row " << r << " of batches of " << batch;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ForestShapes,
                         ::testing::Values(Shape{1, 0, 0, 1}, Shape{17, 1, 0, 3}, Shape{16, 2, 4, 5},
                                           Shape{33, 3, 0, 40}, Shape{20, 4, 3, 40}, Shape{9, 5, 0, 7},
                                           Shape{50, 6, 0, 40}, Shape{50, 6, 5, 40}, Shape{19, 7, 0, 9},
                                           Shape{8, 8, 0, 9}, Shape{21, 9, 0, 12}, Shape{5, 10, 0, 12},
                                           Shape{40, 10, 3, 12}, Shape{3, 12, 8, 12}, Shape{18, 6, 0, 4000},
                                           Shape{18, 4, 0, 4000}));

TEST(Forest, ReadsRowsAtTheirStride) {
  const auto forest = Forest::Create(OneTree());
  ASSERT_TRUE(forest.ok());
  const std::vector<float> rows = {0, 0, 99, 1, 0, 99, 0, 2, 99};
  std::vector<float> out(3);
  forest->PredictMargins(rows, 3, 3, {}, out);
  EXPECT_THAT(out, ::testing::ElementsAre(10.5f, 30.5f, 20.5f));
}

TEST(Forest, AttributesAPathToItsFeatures) {
  const auto forest = Forest::Create(OneTree());
  ASSERT_TRUE(forest.ok());
  std::vector<double> out(2, -1);
  const double mean = forest->Contributions(std::vector<float>{0, 5}, out);
  EXPECT_DOUBLE_EQ(mean, 0.5 + (10 + 2 * 20 + 30) / 4.0);
  EXPECT_DOUBLE_EQ(out[0], 50 / 3.0 - 20);
  EXPECT_DOUBLE_EQ(out[1], 20 - 50 / 3.0);
}

TEST(Forest, AttributionsAndMeanAddUpToTheMargin) {
  const ForestData data = testing::RandomForest(3, 60, 6, 6, 10);
  const auto forest = Forest::Create(data);
  ASSERT_TRUE(forest.ok());
  const std::vector<float> rows = testing::RandomRows(5, 20, 10);
  for (size_t r = 0; r < 20; ++r) {
    const std::span<const float> row = std::span(rows).subspan(r * 10, 10);
    std::vector<double> out(10);
    double sum = forest->Contributions(row, out);
    for (const double value : out) sum += value;
    EXPECT_NEAR(sum, forest->PredictMargin(row), 1e-4);
  }
}

TEST(OrderKey, OrdersAsFloatsDo) {
  const float inf = std::numeric_limits<float>::infinity();
  const float tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> values = {-inf, -3e38f, -1, -tiny, -0.0f, 0.0f, tiny, 1e-30f, 1, 1.0000001f, 3e38f, inf};
  for (const float a : values) {
    EXPECT_LT(kMissingLeftKey, OrderKey(a));
    EXPECT_GT(kMissingRightKey, OrderKey(a));
    for (const float b : values) EXPECT_EQ(OrderKey(a) < OrderKey(b), a < b) << a << " " << b;
  }
}

struct Damage {
  const char* name;
  std::function<void(ForestData&)> apply;
  absl::StatusCode code;
  const char* message;
};

TEST(ValidateForest, RefusesWhatIsNotAForest) {
  constexpr absl::StatusCode kDamaged = absl::StatusCode::kDataLoss;
  const std::vector<Damage> damages = {
      {"feature", [](ForestData& f) { f.nodes[1].split = 4; }, kDamaged, "splits on feature 2 of 2"},
      {"NaN threshold", [](ForestData& f) { f.nodes[0].value = kNan; }, kDamaged, "finite threshold"},
      {"infinite threshold", [](ForestData& f) { f.nodes[0].value = -INFINITY; }, kDamaged, "finite threshold"},
      {"NaN leaf", [](ForestData& f) { f.nodes[3].value = kNan; }, kDamaged, "finite leaf value"},
      {"cover", [](ForestData& f) { f.nodes[3].cover = -1; }, kDamaged, "cover"},
      {"base score", [](ForestData& f) { f.base_score = kNan; }, kDamaged, "base score"},
      {"cycle", [](ForestData& f) { f.nodes[1].right = 0; }, kDamaged, "right child between 3 and 4, found 0"},
      {"self", [](ForestData& f) { f.nodes[1].right = 1; }, kDamaged, "right child"},
      {"out of tree", [](ForestData& f) { f.nodes[0].right = 5; }, kDamaged, "right child between 2 and 4, found 5"},
      {"shared child", [](ForestData& f) { f.nodes[0].right = 3; }, kDamaged, "expected node 4 to be a right child"},
      {"leaf with a child", [](ForestData& f) { f.nodes[4].right = 2; }, kDamaged, "a leaf has a right child"},
      {"orphan",
       [](ForestData& f) {
         f.nodes.push_back({});
         f.tree_sizes[0] = 6;
       },
       kDamaged, "ends at node 4"},
      {"unfinished",
       [](ForestData& f) {
         f.nodes[4].split = 0;
         f.nodes[4].right = 0;
       },
       kDamaged, "node 4"},
      {"empty tree", [](ForestData& f) { f.tree_sizes.push_back(0); }, kDamaged, "tree 1"},
      {"too few nodes", [](ForestData& f) { f.tree_sizes[0] = 6; }, kDamaged, "only 5 are left"},
      {"nodes over", [](ForestData& f) { f.nodes.push_back({}); }, kDamaged, "1 nodes belong to no tree"},
      {"features", [](ForestData& f) { f.num_features = 5000; }, absl::StatusCode::kResourceExhausted, "features"},
  };
  ASSERT_TRUE(ValidateForest(OneTree()).ok());
  for (const Damage& damage : damages) {
    ForestData data = OneTree();
    damage.apply(data);
    const absl::Status status = ValidateForest(data);
    EXPECT_EQ(status.code(), damage.code) << damage.name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(damage.message)) << damage.name;
    EXPECT_EQ(Forest::Create(data).status(), status);
  }
}

TEST(ValidateForest, HoldsTheLimitsOfDepthTreesAndNodes) {
  const ForestData deep = testing::RandomForest(1, 2, 5, 0, 3);
  EXPECT_TRUE(ValidateForest(deep, {.max_trees = 2, .max_nodes = 126, .max_depth = 5}).ok());
  for (const ForestLimits& limits : {ForestLimits{.max_trees = 1}, ForestLimits{.max_nodes = 125},
                                     ForestLimits{.max_depth = 4}, ForestLimits{.max_features = 2}}) {
    EXPECT_EQ(ValidateForest(deep, limits).code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST(Forest, KeepsPaddingInProportion) {
  // One long arm of 10 splits among single leaves: padding would take 32,000 places for 36 nodes.
  ForestData data = testing::RandomForest(1, 15, 0, 0, 3);
  for (uint32_t i = 0; i < 10; ++i) data.nodes.push_back({.split = 0, .right = 20 - i, .value = 1});
  for (uint32_t i = 0; i < 11; ++i) data.nodes.push_back({.value = static_cast<float>(i)});
  data.tree_sizes.push_back(21);
  const auto forest = Forest::Create(data);
  ASSERT_TRUE(forest.ok()) << forest.status();
  EXPECT_LT(forest->bytes_held(), 8192u);
}

}  // namespace
}  // namespace horus
