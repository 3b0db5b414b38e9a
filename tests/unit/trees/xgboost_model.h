// SPDX-License-Identifier: Apache-2.0
// A booster trained and asked through XGBoost's own C API: the truth that the forest is held against.
//
// Enters:  rows, targets, margins and XGBoost parameters.
// Leaves:  XGBoost's own margins; the same model as a forest.
// Units:   rows row-major, NaN = missing.
// Cost:    XGBoost's.                    Thread class: one thread at a time.
#ifndef HORUS_TESTS_UNIT_TREES_XGBOOST_MODEL_H_
#define HORUS_TESTS_UNIT_TREES_XGBOOST_MODEL_H_

#include <xgboost/c_api.h>

#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "trees/forest.h"
#include "trees/train/parse_model.h"

namespace horus::testing {

using XgbParams = std::vector<std::pair<std::string, std::string>>;

class XgbMatrix {
 public:
  XgbMatrix(std::span<const float> rows, size_t columns, std::span<const float> targets,
            std::span<const float> margins) {
    const size_t count = rows.size() / columns;
    EXPECT_EQ(XGDMatrixCreateFromMat(rows.data(), count, columns, std::numeric_limits<float>::quiet_NaN(), &handle_), 0)
        << XGBGetLastError();
    if (!targets.empty()) Set("label", targets);
    if (!margins.empty()) Set("base_margin", margins);
  }
  XgbMatrix(const XgbMatrix&) = delete;
  XgbMatrix& operator=(const XgbMatrix&) = delete;
  ~XgbMatrix() { XGDMatrixFree(handle_); }
  [[nodiscard]] DMatrixHandle get() const { return handle_; }

 private:
  void Set(const char* field, std::span<const float> values) {
    EXPECT_EQ(XGDMatrixSetFloatInfo(handle_, field, values.data(), values.size()), 0) << XGBGetLastError();
  }
  DMatrixHandle handle_ = nullptr;
};

class XgbModel {
 public:
  XgbModel(const XgbMatrix& train, int rounds, const XgbParams& params) {
    DMatrixHandle matrix = train.get();
    EXPECT_EQ(XGBoosterCreate(&matrix, 1, &handle_), 0);
    for (const auto& [name, value] : params) EXPECT_EQ(XGBoosterSetParam(handle_, name.c_str(), value.c_str()), 0);
    for (int round = 0; round < rounds; ++round) {
      EXPECT_EQ(XGBoosterUpdateOneIter(handle_, round, matrix), 0) << XGBGetLastError();
    }
  }
  XgbModel(const XgbModel&) = delete;
  XgbModel& operator=(const XgbModel&) = delete;
  ~XgbModel() { XGBoosterFree(handle_); }

  [[nodiscard]] std::vector<float> Margins(const XgbMatrix& matrix) const {
    const bst_ulong* shape = nullptr;
    bst_ulong dims = 0;
    const float* result = nullptr;
    EXPECT_EQ(XGBoosterPredictFromDMatrix(handle_, matrix.get(),
                                          R"({"type": 1, "training": false, "iteration_begin": 0, "iteration_end": 0,
                                              "strict_shape": false})",
                                          &shape, &dims, &result),
              0)
        << XGBGetLastError();
    bst_ulong count = 0;
    XGDMatrixNumRow(matrix.get(), &count);
    return {result, result + count};
  }

  [[nodiscard]] std::string Bytes() const {
    bst_ulong size = 0;
    const char* bytes = nullptr;
    EXPECT_EQ(XGBoosterSaveModelToBuffer(handle_, R"({"format": "ubj"})", &size, &bytes), 0) << XGBGetLastError();
    return {bytes, size};
  }

  [[nodiscard]] ForestData Forest(uint32_t num_features) const {
    train::ParsedForest parsed;
    EXPECT_EQ(train::ParseModel(Bytes(), parsed), "");
    ForestData data;
    data.num_features = num_features;
    data.base_score = parsed.base_score;
    data.tree_sizes = parsed.tree_sizes;
    for (const horus_train_node& n : parsed.nodes) {
      data.nodes.push_back({.split = n.split, .right = n.right, .value = n.value, .cover = n.cover});
    }
    return data;
  }

 private:
  BoosterHandle handle_ = nullptr;
};

}  // namespace horus::testing

#endif  // HORUS_TESTS_UNIT_TREES_XGBOOST_MODEL_H_
