// SPDX-License-Identifier: Apache-2.0
// A constant, a line, the six features of Horus, the roofline and the Horus memory formula.
#include "lab/evaluate/baselines.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>

#include "base/units.h"
#include "features/feature_row.h"
#include "trees/trainer.h"

namespace horus {
namespace {

using Rows = std::span<const TrainingRow* const>;

constexpr std::array<std::string_view, 7> kLineColumns = {
    "step_flops", "step_bytes",      "step_kernels",          "horus_parameters",
    "batch",      "gpu_fp32_gflops", "gpu_mem_bandwidth_mb_s"};
constexpr std::array<std::string_view, 8> kSixColumns = {"horus_flops",   "horus_parameters",  "horus_convs",
                                                         "horus_linears", "horus_activations", "horus_others",
                                                         "batch",         "gpu_fp32_gflops"};

double MarginIn(Quantity quantity, const TrainingRow& row) {
  return MarginOf(InfoOf(quantity).link, row.measured[static_cast<size_t>(quantity)]);
}

std::vector<double> Unlinked(Quantity quantity, std::vector<double> margins) {
  for (double& value : margins) {
    value = std::clamp(ApplyLink(InfoOf(quantity).link, value), 0.0, InfoOf(quantity).most);
  }
  return margins;
}

std::vector<double> Constant(Quantity quantity, Rows train, Rows test) {
  double sum = 0;
  for (const TrainingRow* row : train) sum += MarginIn(quantity, *row);
  return Unlinked(quantity, std::vector<double>(test.size(), sum / static_cast<double>(train.size())));
}

Eigen::VectorXd LineTerms(const TrainingRow& row) {
  Eigen::VectorXd terms(static_cast<Eigen::Index>(kLineColumns.size() + 1));
  terms[0] = 1;
  for (size_t i = 0; i < kLineColumns.size(); ++i) {
    const double value = double{row.features[*FindFeature(kLineColumns[i])]};
    terms[static_cast<Eigen::Index>(i + 1)] = std::isnan(value) ? 0 : std::log1p(std::max(value, 0.0));
  }
  return terms;
}

std::vector<double> Line(Quantity quantity, Rows train, Rows test) {
  constexpr double kRidge = 1e-2;  // only keeps columns that do not vary from breaking the solve
  const auto size = static_cast<Eigen::Index>(kLineColumns.size() + 1);
  Eigen::MatrixXd normal = kRidge * Eigen::MatrixXd::Identity(size, size);
  Eigen::VectorXd right = Eigen::VectorXd::Zero(size);
  for (const TrainingRow* row : train) {
    const Eigen::VectorXd terms = LineTerms(*row);
    normal += terms * terms.transpose();
    right += terms * MarginIn(quantity, *row);
  }
  const Eigen::VectorXd slopes = normal.ldlt().solve(right);
  std::vector<double> margins;
  for (const TrainingRow* row : test) margins.push_back(slopes.dot(LineTerms(*row)));
  return Unlinked(quantity, std::move(margins));
}

absl::StatusOr<std::vector<double>> SixFeatures(Quantity quantity, Rows train, Rows test, const TrainOptions& options) {
  const auto append = [](std::vector<float>& to, const TrainingRow& row) {
    for (const std::string_view name : kSixColumns) to.push_back(row.features[*FindFeature(name)]);
  };
  std::vector<float> rows, targets;
  for (const TrainingRow* row : train) {
    append(rows, *row);
    targets.push_back(static_cast<float>(MarginIn(quantity, *row)));
  }
  TrainingData data;
  data.row_count = targets.size();
  data.feature_count = kSixColumns.size();
  data.rows = rows;
  data.targets = targets;
  TrainingParams params = DefaultTrainingParams(targets.size());
  params.seed = options.seed;
  params.library_path = options.library_path;
  HORUS_ASSIGN_OR_RETURN(const Forest forest, Fit(data, params));
  std::vector<double> margins;
  for (const TrainingRow* row : test) {
    std::vector<float> values;
    append(values, *row);
    margins.push_back(double{forest.PredictMargin(values)});
  }
  return Unlinked(quantity, std::move(margins));
}

}  // namespace

std::vector<std::string_view> BaselineNames(Quantity quantity) {
  std::vector<std::string_view> names = {"constant", "linear", "horus_six"};
  if (quantity != Quantity::kPower) names.push_back("roofline");
  if (quantity == Quantity::kMemory) names.push_back("horus_formula");
  return names;
}

absl::StatusOr<std::vector<std::vector<double>>> PredictBaselines(Quantity quantity, Rows train, Rows test,
                                                                  const TrainOptions& options) {
  std::vector<std::vector<double>> all = {Constant(quantity, train, test), Line(quantity, train, test)};
  HORUS_ASSIGN_OR_RETURN(all.emplace_back(), SixFeatures(quantity, train, test, options));
  if (quantity == Quantity::kPower) return all;
  std::vector<double> roofline, formula;
  static const size_t formula_at = *FindFeature("mem_horus");
  for (const TrainingRow* row : test) {
    roofline.push_back(RooflineOf(quantity, row->features));
    formula.push_back(double{row->features[formula_at]} / kBytesPerMib);
  }
  all.push_back(std::move(roofline));
  if (quantity == Quantity::kMemory) all.push_back(std::move(formula));
  return all;
}

}  // namespace horus
