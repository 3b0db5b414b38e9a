// SPDX-License-Identifier: Apache-2.0
// forest: rows per second through 500 trees of depth 6 and 200 of depth 4 over 40 features, beside XGBoost's own
// prediction.
#include <time.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/rows.h"
#include "trees/forest.h"
#include "trees/train/parse_model.h"

namespace horus::bench {
namespace {

constexpr size_t kFeatures = 40;
constexpr size_t kTrainingRows = 4000;  // enough that nearly every tree is complete
constexpr size_t kBatch = 1000;

void MustXgb(int result) {
  if (result == 0) return;
  std::fprintf(stderr, "forest: %s\n", XGBGetLastError());
  std::exit(1);
}

// Normal values, one in ten missing.
std::vector<float> RandomRows(std::mt19937& random, size_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> rows(count * kFeatures);
  for (float& value : rows) value = random() % 10 == 0 ? std::numeric_limits<float>::quiet_NaN() : normal(random);
  return rows;
}

BoosterHandle TrainBooster(int trees, int depth) {
  std::mt19937 random(1);
  const std::vector<float> rows = RandomRows(random, kTrainingRows);
  std::vector<float> targets(kTrainingRows);
  for (float& target : targets) target = std::normal_distribution<float>()(random);  // noise: trees grow to the limit
  DMatrixHandle matrix = nullptr;
  MustXgb(
      XGDMatrixCreateFromMat(rows.data(), kTrainingRows, kFeatures, std::numeric_limits<float>::quiet_NaN(), &matrix));
  MustXgb(XGDMatrixSetFloatInfo(matrix, "label", targets.data(), kTrainingRows));
  BoosterHandle booster = nullptr;
  MustXgb(XGBoosterCreate(&matrix, 1, &booster));
  const std::pair<const char*, std::string> params[] = {
      {"tree_method", "hist"}, {"max_depth", std::to_string(depth)}, {"nthread", "1"}, {"verbosity", "0"}};
  for (const auto& [name, value] : params) MustXgb(XGBoosterSetParam(booster, name, value.c_str()));
  for (int round = 0; round < trees; ++round) MustXgb(XGBoosterUpdateOneIter(booster, round, matrix));
  MustXgb(XGDMatrixFree(matrix));
  return booster;
}

Forest ForestOf(BoosterHandle booster) {
  bst_ulong size = 0;
  const char* bytes = nullptr;
  MustXgb(XGBoosterSaveModelToBuffer(booster, R"({"format": "ubj"})", &size, &bytes));
  train::ParsedForest parsed;
  const std::string wrong = train::ParseModel({bytes, size}, parsed);
  ForestData data;
  data.num_features = kFeatures;
  data.base_score = parsed.base_score;
  data.tree_sizes = parsed.tree_sizes;
  for (const horus_train_node& n : parsed.nodes) {
    data.nodes.push_back({.split = n.split, .right = n.right, .value = n.value, .cover = n.cover});
  }
  absl::StatusOr<Forest> forest = Forest::Create(std::move(data));
  if (!wrong.empty() || !forest.ok()) {
    std::fprintf(stderr, "forest: %s %s\n", wrong.c_str(), forest.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(forest);
}

// XGBoost's in-place prediction: no matrix is built for it.
void PredictXgb(BoosterHandle booster, std::span<const float> rows, size_t count, std::span<float> out) {
  const std::string values =
      absl::StrFormat(R"({"data": [%d, true], "shape": [%d, %d], "typestr": "<f4", "version": 3})",
                      reinterpret_cast<uintptr_t>(rows.data()), count, kFeatures);
  const bst_ulong* shape = nullptr;
  bst_ulong dims = 0;
  const float* result = nullptr;
  MustXgb(XGBoosterPredictFromDense(booster, values.c_str(),
                                    R"({"type": 1, "iteration_begin": 0, "iteration_end": 0, "missing": NaN,
                                        "strict_shape": false, "cache_id": 0})",
                                    nullptr, &shape, &dims, &result));
  std::copy_n(result, count, out.begin());
}

// Seconds a row of this thread's own time: one thread computes, and what else a shared machine does is
// not its matter.
template <typename Body>
double SecondsPerRow(size_t rows, Body&& body) {
  const auto now = [] {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  body();
  return (now() - start) / static_cast<double>(rows);
}

void MeasureShape(const Options& options, int wanted_trees, int depth, double aim, std::vector<Row>* rows) {
  const int trees = options.smoke ? 20 : wanted_trees;
  const int repeats = options.smoke ? 2 : 200;
  const BoosterHandle booster = TrainBooster(trees, depth);
  const Forest forest = ForestOf(booster);
  std::mt19937 random(2);
  const std::vector<float> x = RandomRows(random, kBatch);
  std::vector<float> ours(kBatch), theirs(kBatch);
  std::vector<double> ours_s, theirs_s, ours_single_s, theirs_single_s;
  const size_t singles = options.smoke ? 2 : 100;
  for (int i = 0; i < repeats; ++i) {  // in turns: what else the machine does meets all alike
    ours_s.push_back(SecondsPerRow(kBatch, [&] { forest.PredictMargins(x, kBatch, kFeatures, {}, ours); }));
    theirs_s.push_back(SecondsPerRow(kBatch, [&] { PredictXgb(booster, x, kBatch, theirs); }));
    for (size_t r = 0; r < kBatch; ++r) {
      if (std::bit_cast<uint32_t>(ours[r]) == std::bit_cast<uint32_t>(theirs[r])) continue;
      std::fprintf(stderr, "forest: row %zu: %.9g and XGBoost's %.9g differ\n", r, double{ours[r]}, double{theirs[r]});
      std::exit(1);
    }
    ours_single_s.push_back(SecondsPerRow(singles, [&] {
      for (size_t r = 0; r < singles; ++r)
        ours[r] = forest.PredictMargin(std::span(x).subspan(r * kFeatures, kFeatures));
    }));
    theirs_single_s.push_back(SecondsPerRow(singles, [&] {
      for (size_t r = 0; r < singles; ++r) {
        PredictXgb(booster, std::span(x).subspan(r * kFeatures), 1, std::span(theirs).subspan(r));
      }
    }));
  }
  MustXgb(XGBoosterFree(booster));
  const std::string shape = absl::StrFormat("%dx%d", wanted_trees, depth);
  const auto row = [&](const std::string& metric, double least, std::vector<double>& own, std::vector<double>& other,
                       const char* batch) {
    rows->push_back(
        {metric, 1 / Quantile(own, 0.5), "rows/s", least, false,
         absl::StrFormat("XGBoost %.0f rows/s", 1 / Quantile(other, 0.5)),
         absl::StrFormat(
             "%d trees, depth %d, %d features, %s, one thread's own time, median of %d in turns; equal bit for bit",
             trees, depth, kFeatures, batch, repeats)});
  };
  row("rows_per_s_" + shape, aim, ours_s, theirs_s, "batches of 1,000");
  row("rows_per_s_" + shape + "_single", 0, ours_single_s, theirs_single_s, "row by row");
  rows->push_back({"forest_bytes_" + shape, static_cast<double>(forest.bytes_held()), "bytes", 0, true, "",
                   absl::StrFormat("%d trees of depth %d", trees, depth)});
}

void Measure(const Options& options, std::vector<Row>* rows) {
  MeasureShape(options, 500, 6, 200'000, rows);
  MeasureShape(options, 200, 4, 0, rows);  // shallow enough to be walked by many rows at once
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
