// SPDX-License-Identifier: Apache-2.0
// Rules of an XGBoost found at run time: it trains as the linked one, and what is not XGBoost is refused by name.
#include "trees/train/found.h"

#include <dlfcn.h>

#include <cstring>
#include <random>

#include "gmock/gmock.h"
#include "trees/trainer.h"
#include "xgboost_model.h"

namespace horus {
namespace {

using ::testing::HasSubstr;

std::string LinkedFile() {
  Dl_info info = {};
  EXPECT_NE(dladdr(reinterpret_cast<const void*>(&XGBoostVersion), &info), 0);
  return info.dli_fname;
}

// A forest as bytes, and what came of the request.
struct Made {
  int32_t code = -1;
  std::string text, nodes;
  float base_score = 0;
};

Made Grow(const TrainEntry& entry) {
  constexpr uint32_t kRows = 300, kColumns = 4;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> rows, targets;
  for (uint32_t r = 0; r < kRows; ++r) {
    for (uint32_t c = 0; c < kColumns; ++c) rows.push_back(normal(random));
    targets.push_back(2 + rows[r * kColumns] * rows[r * kColumns + 1] + normal(random));
  }
  const std::vector<int32_t> monotone = {0, 0, 1, -1};
  Made made;
  horus_train_request request = {};
  request.struct_size = sizeof(request);
  request.num_features = kColumns;
  request.train = {
      .features = rows.data(), .targets = targets.data(), .weights = nullptr, .margins = nullptr, .count = kRows};
  request.monotone = monotone.data();
  request.rounds = 20;
  request.max_depth = 4;
  request.learning_rate = 0.3f;
  request.lambda = 1;
  request.min_child_weight = 1;
  request.subsample = 0.8f;
  request.colsample_bytree = 0.5f;
  request.base_score = 1.75f;
  request.seed = 3;
  request.user = &made;
  request.sink = [](void* user, const horus_train_forest* forest) -> int32_t {
    auto& out = *static_cast<Made*>(user);
    out.nodes.assign(reinterpret_cast<const char*>(forest->nodes), forest->node_count * sizeof(horus_train_node));
    out.base_score = forest->base_score;
    return 0;
  };
  char text[HORUS_TRAIN_TEXT_BYTES] = "";
  made.code = entry(&request, text);
  made.text = text;
  return made;
}

TEST(FoundXgboost, TrainsAsTheLinkedOne) {
  const auto linked = LoadTrainLibrary("");
  ASSERT_TRUE(linked.ok()) << linked.status();
  const auto found = train::FindXGBoost(LinkedFile());
  ASSERT_TRUE(found.ok()) << found.status();
  const Made expected = Grow(*linked);
  const Made made = Grow([&](auto* request, char* text) { return train::Train(*found, *request, text); });
  ASSERT_EQ(made.code, HORUS_TRAIN_OK) << made.text;
  EXPECT_EQ(made.nodes, expected.nodes);
  EXPECT_EQ(made.base_score, 1.75f);
  EXPECT_EQ(expected.base_score, 1.75f);
}

TEST(FoundXgboost, RefusesWhatIsNoXgboostByName) {
  EXPECT_THAT(std::string(train::FindXGBoost("/nowhere/libxgboost.so").status().message()),
              HasSubstr("/nowhere/libxgboost.so, which cannot be loaded"));
  EXPECT_THAT(std::string(train::FindXGBoost("libm.so.6").status().message()),
              HasSubstr("libm.so.6 has no XGBoostVersion"));
}

TEST(Train, RefusesAModelThatReadsOtherwiseThanItPredicts) {
  auto found = train::FindXGBoost(LinkedFile());
  ASSERT_TRUE(found.ok()) << found.status();
  found->XGBoosterPredictFromDMatrix = [](void* booster, void* matrix, const char* config, const uint64_t** shape,
                                          uint64_t* dims, const float** out) {
    static std::vector<float> wrong;
    const int result = ::XGBoosterPredictFromDMatrix(booster, matrix, config, shape, dims, out);
    wrong.assign(*out, *out + **shape);
    wrong[5] += 0.5f;
    *out = wrong.data();
    return result;
  };
  const Made made = Grow([&](auto* request, char* text) { return train::Train(*found, *request, text); });
  EXPECT_EQ(made.code, HORUS_TRAIN_FAILED);
  EXPECT_THAT(made.text, HasSubstr("predicts otherwise"));
  EXPECT_EQ(made.nodes, "") << "nothing is handed out";
}

// The bytes of a model with another text as its base score: a key, then S, L, eight bytes of length, the text.
std::string WithBaseScore(const std::string& model, const std::string& text) {
  const std::string key = "base_score";
  const size_t at = model.find(key) + key.size();
  EXPECT_EQ(model.substr(at, 2), "SL");
  constexpr size_t kLengthBytes = 8;
  const auto old_size = static_cast<unsigned char>(model[at + 2 + kLengthBytes - 1]);
  std::string size(kLengthBytes, '\0');
  size.back() = static_cast<char>(text.size());
  return model.substr(0, at + 2) + size + text + model.substr(at + 2 + kLengthBytes + old_size);
}

TEST(ParseModel, ReadsTheBaseScoreOfEveryRelease) {
  const std::vector<float> rows = {1, 2, 3, 4};
  const testing::XgbMatrix matrix(rows, 1, rows, {});
  const testing::XgbModel model(matrix, 1, {{"base_score", "0.25"}});
  const std::string saved = model.Bytes();
  for (const char* text : {"2.5E-1", "[2.5E-1]", "0.25"}) {
    train::ParsedForest parsed;
    EXPECT_EQ(train::ParseModel(WithBaseScore(saved, text), parsed), "") << text;
    EXPECT_EQ(parsed.base_score, 0.25f) << text;
  }
  for (const char* text : {"", "[]", "[1,2]", "1]", "[1", "half"}) {
    train::ParsedForest parsed;
    EXPECT_THAT(train::ParseModel(WithBaseScore(saved, text), parsed), HasSubstr("base score")) << text;
  }
}

}  // namespace
}  // namespace horus
