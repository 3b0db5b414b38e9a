// SPDX-License-Identifier: Apache-2.0
// Trains one booster through XGBoost's C API: the only file that includes it.
#include <xgboost/c_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "trees/train/entry.h"
#include "trees/train/parse_model.h"

namespace horus::train {
namespace {

// What a step ended with; `text` is empty when `code` is HORUS_TRAIN_OK.
struct Outcome {
  int32_t code = HORUS_TRAIN_OK;
  std::string text;
  [[nodiscard]] bool ok() const { return code == HORUS_TRAIN_OK; }
};

Outcome Check(int xgboost_result) {
  if (xgboost_result == 0) return {};
  // Only the first line: what follows is a stack trace.
  const std::string all = XGBGetLastError();
  return {HORUS_TRAIN_FAILED, std::string("XGBoost: ").append(all, 0, all.find('\n'))};
}

#define HORUS_TRAIN_TRY(expr) \
  if (Outcome outcome = (expr); !outcome.ok()) return outcome

// Frees the handle of a matrix or a booster.
template <int (*kFree)(void*)>
class Owned {
 public:
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle_ != nullptr) kFree(handle_);
  }
  [[nodiscard]] void* get() const { return handle_; }
  [[nodiscard]] void** out() { return &handle_; }

 private:
  void* handle_ = nullptr;
};
using Matrix = Owned<XGDMatrixFree>;
using Booster = Owned<XGBoosterFree>;

// XGBoost's settings of the calling thread, silent while this lives and then as they were.
class Silence {
 public:
  Silence() {
    const char* config = nullptr;
    if (XGBGetGlobalConfig(&config) == 0) before_ = config;
    XGBSetGlobalConfig(R"({"verbosity": 0})");
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  ~Silence() {
    if (!before_.empty()) XGBSetGlobalConfig(before_.c_str());
  }

 private:
  std::string before_;
};

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);  // 9 digits bring every float32 back exactly
  return text;
}

Outcome SetColumn(const Matrix& matrix, const char* field, const float* values, uint64_t count) {
  constexpr int kFloat32 = 1;  // xgboost::DataType
  if (values == nullptr) return {};
  return Check(XGDMatrixSetDenseInfo(matrix.get(), field, values, count, kFloat32));
}

Outcome MakeMatrix(const horus_train_rows& rows, uint32_t num_features, Matrix& matrix) {
  char data[160];
  std::snprintf(data, sizeof(data), R"({"data": [%llu, true], "shape": [%llu, %u], "typestr": "<f4", "version": 3})",
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(rows.features)),
                static_cast<unsigned long long>(rows.count), num_features);
  HORUS_TRAIN_TRY(Check(XGDMatrixCreateFromDense(data, R"({"missing": NaN, "nthread": 1})", matrix.out())));
  HORUS_TRAIN_TRY(SetColumn(matrix, "label", rows.targets, rows.count));
  HORUS_TRAIN_TRY(SetColumn(matrix, "weight", rows.weights, rows.count));
  return SetColumn(matrix, "base_margin", rows.margins, rows.count);
}

std::string MonotoneText(const horus_train_request& request) {
  std::string text = "(";
  for (uint32_t f = 0; f < request.num_features; ++f) {
    if (f != 0) text += ",";
    text += std::to_string(request.monotone[f]);
  }
  return text + ")";
}

Outcome Configure(const horus_train_request& request, const Booster& booster) {
  std::vector<std::pair<const char*, std::string>> params = {
      {"booster", "gbtree"},
      {"objective", "reg:squarederror"},
      {"disable_default_eval_metric", "1"},
      {"verbosity", "0"},
      {"nthread", "1"},
      {"seed", std::to_string(request.seed)},
      // Drawn anew from (seed, round): what else uses XGBoost on this thread cannot change the result.
      {"seed_per_iteration", "1"},
      {"base_score", Number(request.base_score)},
      {"tree_method", request.method == HORUS_TRAIN_METHOD_HIST ? "hist" : "exact"},
      {"max_depth", std::to_string(request.max_depth)},
      {"learning_rate", Number(request.learning_rate)},
      {"reg_lambda", Number(request.lambda)},
      {"min_child_weight", Number(request.min_child_weight)},
      {"subsample", Number(request.subsample)},
      {"colsample_bytree", Number(request.colsample_bytree)},
  };
  if (request.method == HORUS_TRAIN_METHOD_HIST) params.emplace_back("max_bin", std::to_string(request.max_bin));
  if (request.monotone != nullptr) params.emplace_back("monotone_constraints", MonotoneText(request));
  for (const auto& [name, value] : params) {
    HORUS_TRAIN_TRY(Check(XGBoosterSetParam(booster.get(), name, value.c_str())));
  }
  return {};
}

// The sum of weighted squared errors over `rows`, of the trees grown so far.
Outcome SquaredError(const Booster& booster, const Matrix& matrix, const horus_train_rows& rows, double& error) {
  const bst_ulong* shape = nullptr;
  bst_ulong dims = 0;
  const float* predicted = nullptr;
  constexpr char kMargins[] =
      R"({"type": 1, "training": false, "iteration_begin": 0, "iteration_end": 0, "strict_shape": false})";
  HORUS_TRAIN_TRY(Check(XGBoosterPredictFromDMatrix(booster.get(), matrix.get(), kMargins, &shape, &dims, &predicted)));
  error = 0;
  for (uint64_t i = 0; i < rows.count; ++i) {
    const double difference = double{predicted[i]} - double{rows.targets[i]};
    error += (rows.weights == nullptr ? 1.0 : double{rows.weights[i]}) * difference * difference;
  }
  return {};
}

Outcome Grow(const horus_train_request& request, const Booster& booster, const Matrix& train, const Matrix& valid) {
  for (int32_t round = 0; round < request.rounds; ++round) {
    HORUS_TRAIN_TRY(Check(XGBoosterUpdateOneIter(booster.get(), round, train.get())));
    double error = 0;
    if (request.valid.count != 0) HORUS_TRAIN_TRY(SquaredError(booster, valid, request.valid, error));
    if (request.progress != nullptr && request.progress(request.user, round + 1, error) != 0) {
      return {HORUS_TRAIN_CANCELLED, "cancelled"};
    }
  }
  return {};
}

Outcome HandOut(const horus_train_request& request, const Booster& booster) {
  bst_ulong size = 0;
  const char* bytes = nullptr;
  HORUS_TRAIN_TRY(Check(XGBoosterSaveModelToBuffer(booster.get(), R"({"format": "ubj"})", &size, &bytes)));
  ParsedForest parsed;
  if (const std::string wrong = ParseModel({bytes, size}, parsed); !wrong.empty()) return {HORUS_TRAIN_FAILED, wrong};
  const horus_train_forest forest = {.nodes = parsed.nodes.data(),
                                     .tree_sizes = parsed.tree_sizes.data(),
                                     .node_count = parsed.nodes.size(),
                                     .tree_count = parsed.tree_sizes.size(),
                                     .base_score = parsed.base_score,
                                     .reserved = 0};
  if (request.sink(request.user, &forest) != 0) return {HORUS_TRAIN_CANCELLED, "cancelled"};
  return {};
}

Outcome Train(const horus_train_request& request) {
  if (request.struct_size != sizeof(request)) {
    return {HORUS_TRAIN_REFUSED, std::string("a request of ") + std::to_string(request.struct_size) +
                                     " bytes, expected " + std::to_string(sizeof(request)) +
                                     ": libhorus_train.so is of another release"};
  }
  if (request.train.features == nullptr || request.train.targets == nullptr || request.train.count == 0 ||
      request.num_features == 0 || (request.valid.count != 0 && request.valid.targets == nullptr)) {
    return {HORUS_TRAIN_REFUSED, "a request without rows, features or targets"};
  }
  const Silence silence;
  Matrix train;
  Matrix valid;
  Booster booster;
  HORUS_TRAIN_TRY(MakeMatrix(request.train, request.num_features, train));
  if (request.valid.count != 0) HORUS_TRAIN_TRY(MakeMatrix(request.valid, request.num_features, valid));
  // Naming both matrices lets XGBoost keep their margins instead of adding up all trees every round.
  const DMatrixHandle matrices[] = {train.get(), valid.get()};
  HORUS_TRAIN_TRY(Check(XGBoosterCreate(matrices, request.valid.count != 0 ? 2 : 1, booster.out())));
  HORUS_TRAIN_TRY(Configure(request, booster));
  HORUS_TRAIN_TRY(Grow(request, booster, train, valid));
  return request.sink == nullptr ? Outcome{} : HandOut(request, booster);
}

}  // namespace
}  // namespace horus::train

extern "C" int32_t horus_train_entry_v1(const horus_train_request* request, char* text) {
  horus::train::Outcome outcome;
  try {
    outcome = horus::train::Train(*request);
  } catch (const std::exception& error) {  // memory ran out, or a library below threw
    text[0] = '\0';
    std::strncat(text, error.what(), HORUS_TRAIN_TEXT_BYTES - 1);
    return HORUS_TRAIN_FAILED;
  }
  const size_t size = std::min<size_t>(outcome.text.size(), HORUS_TRAIN_TEXT_BYTES - 1);
  std::memcpy(text, outcome.text.data(), size);
  text[size] = '\0';
  return outcome.code;
}
