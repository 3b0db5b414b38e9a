// SPDX-License-Identifier: Apache-2.0
// Trains one booster through XGBoost's C API.
#include "trees/train/train.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <utility>

#include "base/memory_left.h"
#include "trees/train/parse_model.h"

namespace horus::train {
namespace {

// What a step ended with; `text` is empty when `code` is HORUS_TRAIN_OK.
struct Outcome {
  int32_t code = HORUS_TRAIN_OK;
  std::string text;
  [[nodiscard]] bool ok() const { return code == HORUS_TRAIN_OK; }
};

Outcome Check(const XGBoostApi& xgboost, int result) {
  if (result == 0) return {};
  // Only the first line: what follows is a stack trace.
  const std::string all = xgboost.XGBGetLastError();
  // It hands on what the exception said.
  if (all.find("bad_alloc") != std::string::npos) return {HORUS_TRAIN_NO_MEMORY, "an allocation failed"};
  return {HORUS_TRAIN_FAILED, std::string("XGBoost: ").append(all, 0, all.find('\n'))};
}

#define HORUS_TRAIN_TRY(expr) \
  if (Outcome outcome = (expr); !outcome.ok()) return outcome

// Frees the handle of a matrix or a booster.
class Owned {
 public:
  explicit Owned(int (*free)(void*)) : free_(free) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    try {
      if (handle_ != nullptr) free_(handle_);
    } catch (const std::exception&) {  // XGBoost lets through what it meets while it notes an error
    }
  }
  [[nodiscard]] void* get() const { return handle_; }
  [[nodiscard]] void** out() { return &handle_; }

 private:
  int (*free_)(void*);
  void* handle_ = nullptr;
};

// XGBoost's settings of the calling thread, silent while this lives and then as they were.
class Silence {
 public:
  explicit Silence(const XGBoostApi& xgboost) : set_(xgboost.XGBSetGlobalConfig) {
    const char* config = nullptr;
    if (xgboost.XGBGetGlobalConfig(&config) == 0) before_ = config;
    set_(R"({"verbosity": 0})");
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  ~Silence() {
    try {
      if (!before_.empty()) set_(before_.c_str());
    } catch (const std::exception&) {  // as above; XGBoost stays silent on this thread
    }
  }

 private:
  int (*set_)(const char*);
  std::string before_;
};

std::string Number(double value) {
  // Not printf, which writes a comma where the host's locale has one. 9 digits bring every float32 back exactly.
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 9).ptr};
}

// What XGBoost calls an array interface: where `count` rows of `columns` float32 lie. Columns 0: one dimension.
std::string ArrayText(const float* values, uint64_t count, uint32_t columns) {
  char text[160];
  const std::string second = columns == 0 ? "" : ", " + std::to_string(columns);
  std::snprintf(text, sizeof(text), R"({"data": [%llu, true], "shape": [%llu%s], "typestr": "<f4", "version": 3})",
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(values)),
                static_cast<unsigned long long>(count), second.c_str());
  return text;
}

Outcome SetColumn(const XGBoostApi& xgboost, const Owned& matrix, const char* field, const float* values,
                  uint64_t count) {
  if (values == nullptr) return {};
  const std::string array = ArrayText(values, count, 0);
  return Check(xgboost, xgboost.XGDMatrixSetInfoFromInterface(matrix.get(), field, array.c_str()));
}

// XGBoost 1.7 does not survive an allocation that fails where it counts the processors of its control group (a function
// that may not throw, some 10 KiB for a stream) and where it fills a matrix. Without about twice what it was seen to
// need (8 bytes a cell and 16 a row) the answer is NO_MEMORY. Another thread may still take it meanwhile.
void CheckMemory(size_t rows, size_t features) {
  constexpr size_t kAtLeast = size_t{1} << 20;
  constexpr size_t kCell = 16;
  CheckThatMemoryIsLeft(kAtLeast + rows * (features + 2) * kCell);
}

Outcome MakeMatrix(const XGBoostApi& xgboost, const horus_train_rows& rows, uint32_t num_features, Owned& matrix) {
  const std::string data = ArrayText(rows.features, rows.count, num_features);
  constexpr char kHow[] = R"({"missing": NaN, "nthread": 1})";
  CheckMemory(rows.count, num_features);
  HORUS_TRAIN_TRY(Check(xgboost, xgboost.XGDMatrixCreateFromDense(data.c_str(), kHow, matrix.out())));
  HORUS_TRAIN_TRY(SetColumn(xgboost, matrix, "label", rows.targets, rows.count));
  HORUS_TRAIN_TRY(SetColumn(xgboost, matrix, "weight", rows.weights, rows.count));
  return SetColumn(xgboost, matrix, "base_margin", rows.margins, rows.count);
}

std::string MonotoneText(const horus_train_request& request) {
  std::string text = "(";
  for (uint32_t f = 0; f < request.num_features; ++f) {
    if (f != 0) text += ",";
    text += std::to_string(request.monotone[f]);
  }
  return text + ")";
}

Outcome Configure(const XGBoostApi& xgboost, const horus_train_request& request, const Owned& booster) {
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
    HORUS_TRAIN_TRY(Check(xgboost, xgboost.XGBoosterSetParam(booster.get(), name, value.c_str())));
  }
  return {};
}

// Margins of the rows of a matrix by the trees grown so far, XGBoost's memory.
Outcome Margins(const XGBoostApi& xgboost, const Owned& booster, const Owned& matrix, const float*& margins) {
  const uint64_t* shape = nullptr;
  uint64_t dims = 0;
  constexpr char kMargins[] =
      R"({"type": 1, "training": false, "iteration_begin": 0, "iteration_end": 0, "strict_shape": false})";
  return Check(xgboost,
               xgboost.XGBoosterPredictFromDMatrix(booster.get(), matrix.get(), kMargins, &shape, &dims, &margins));
}

// The sum of weighted squared errors over `rows`, of the trees grown so far.
Outcome SquaredError(const XGBoostApi& xgboost, const Owned& booster, const Owned& matrix, const horus_train_rows& rows,
                     double& error) {
  const float* predicted = nullptr;
  HORUS_TRAIN_TRY(Margins(xgboost, booster, matrix, predicted));
  error = 0;
  for (uint64_t i = 0; i < rows.count; ++i) {
    const double difference = double{predicted[i]} - double{rows.targets[i]};
    error += (rows.weights == nullptr ? 1.0 : double{rows.weights[i]}) * difference * difference;
  }
  return {};
}

Outcome Grow(const XGBoostApi& xgboost, const horus_train_request& request, const Owned& booster, const Owned& train,
             const Owned& valid) {
  for (int32_t round = 0; round < request.rounds; ++round) {
    HORUS_TRAIN_TRY(Check(xgboost, xgboost.XGBoosterUpdateOneIter(booster.get(), round, train.get())));
    double error = 0;
    if (request.valid.count != 0) HORUS_TRAIN_TRY(SquaredError(xgboost, booster, valid, request.valid, error));
    if (request.progress != nullptr && request.progress(request.user, round + 1, error) != 0)
      return {HORUS_TRAIN_CANCELLED, "cancelled"};
  }
  return {};
}

// The margin of a row by the trees as they were read.
float MarginOf(const ParsedForest& forest, const float* row, float margin) {
  constexpr uint32_t kLeaf = std::numeric_limits<uint32_t>::max();
  const horus_train_node* root = forest.nodes.data();
  for (const uint32_t size : forest.tree_sizes) {
    const horus_train_node* node = root;
    while (node->split != kLeaf) {
      const float value = row[node->split / 2];
      const bool left = std::isnan(value) ? node->split % 2 != 0 : value < node->value;
      node = left ? node + 1 : root + node->right;
    }
    margin += node->value;
    root += size;
  }
  return margin;
}

// Another release may save its models otherwise: the trees as read must say what XGBoost says.
Outcome Compare(const XGBoostApi& xgboost, const horus_train_request& request, const Owned& booster, const Owned& train,
                const ParsedForest& forest) {
  constexpr uint64_t kRows = 64;       // some of them reach most trees' leaves
  constexpr double kTolerance = 1e-3;  // of the largest margin; float32 sums of some thousand trees differ by less
  const float* margins = nullptr;
  HORUS_TRAIN_TRY(Margins(xgboost, booster, train, margins));
  double largest = 0;
  double difference = 0;
  for (uint64_t i = 0; i < std::min(request.train.count, kRows); ++i) {
    const float base = request.train.margins == nullptr ? forest.base_score : request.train.margins[i];
    const float read = MarginOf(forest, request.train.features + i * request.num_features, base);
    if (!std::isfinite(read) || !std::isfinite(margins[i])) continue;  // overflow is the caller's to refuse
    largest = std::max({largest, std::abs(double{margins[i]}), std::abs(double{base})});
    difference = std::max(difference, std::abs(double{read} - double{margins[i]}));
  }
  if (difference <= kTolerance * largest) return {};
  return {HORUS_TRAIN_FAILED,
          "XGBoost's model, as read, predicts otherwise than XGBoost: it is of a release that this "
          "library does not know"};
}

Outcome HandOut(const XGBoostApi& xgboost, const horus_train_request& request, const Owned& booster,
                const Owned& train) {
  uint64_t size = 0;
  const char* bytes = nullptr;
  HORUS_TRAIN_TRY(
      Check(xgboost, xgboost.XGBoosterSaveModelToBuffer(booster.get(), R"({"format": "ubj"})", &size, &bytes)));
  ParsedForest parsed;
  if (const std::string wrong = ParseModel({bytes, size}, parsed); !wrong.empty()) return {HORUS_TRAIN_FAILED, wrong};
  HORUS_TRAIN_TRY(Compare(xgboost, request, booster, train, parsed));
  const horus_train_forest forest = {.nodes = parsed.nodes.data(),
                                     .tree_sizes = parsed.tree_sizes.data(),
                                     .node_count = parsed.nodes.size(),
                                     .tree_count = parsed.tree_sizes.size(),
                                     .base_score = parsed.base_score,
                                     .reserved = 0};
  if (request.sink(request.user, &forest) != 0) return {HORUS_TRAIN_CANCELLED, "cancelled"};
  return {};
}

Outcome TrainOne(const XGBoostApi& xgboost, const horus_train_request& request) {
  if (request.struct_size != sizeof(request)) {
    return {HORUS_TRAIN_REFUSED, std::string("a request of ") + std::to_string(request.struct_size) +
                                     " bytes, expected " + std::to_string(sizeof(request)) +
                                     ": libhorus_train.so is of another release"};
  }
  if (request.train.features == nullptr || request.train.targets == nullptr || request.train.count == 0 ||
      request.num_features == 0 || (request.valid.count != 0 && request.valid.targets == nullptr)) {
    return {HORUS_TRAIN_REFUSED, "a request without rows, features or targets"};
  }
  const Silence silence(xgboost);
  Owned train(xgboost.XGDMatrixFree);
  Owned valid(xgboost.XGDMatrixFree);
  Owned booster(xgboost.XGBoosterFree);
  HORUS_TRAIN_TRY(MakeMatrix(xgboost, request.train, request.num_features, train));
  if (request.valid.count != 0) HORUS_TRAIN_TRY(MakeMatrix(xgboost, request.valid, request.num_features, valid));
  // Naming both matrices lets XGBoost keep their margins instead of adding up all trees every round.
  void* const matrices[] = {train.get(), valid.get()};
  CheckMemory(0, 0);
  HORUS_TRAIN_TRY(Check(xgboost, xgboost.XGBoosterCreate(matrices, request.valid.count != 0 ? 2 : 1, booster.out())));
  HORUS_TRAIN_TRY(Configure(xgboost, request, booster));
  HORUS_TRAIN_TRY(Grow(xgboost, request, booster, train, valid));
  return request.sink == nullptr ? Outcome{} : HandOut(xgboost, request, booster, train);
}

}  // namespace

int32_t Train(const XGBoostApi& xgboost, const horus_train_request& request, char* text) {
  Outcome outcome;
  try {
    outcome = TrainOne(xgboost, request);
  } catch (const std::bad_alloc&) {
    text[0] = '\0';
    return HORUS_TRAIN_NO_MEMORY;
  } catch (const std::exception& error) {  // a library below threw
    text[0] = '\0';
    std::strncat(text, error.what(), HORUS_TRAIN_TEXT_BYTES - 1);
    return HORUS_TRAIN_FAILED;
  }
  const size_t size = std::min<size_t>(outcome.text.size(), HORUS_TRAIN_TEXT_BYTES - 1);
  std::memcpy(text, outcome.text.data(), size);
  text[size] = '\0';
  return outcome.code;
}

}  // namespace horus::train
