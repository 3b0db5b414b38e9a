// SPDX-License-Identifier: Apache-2.0
// Leaves out a group at a time, predicts it, and sums up the errors.
#include "lab/evaluate/evaluate_predictor.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "base/statistics.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "features/feature_row.h"
#include "trees/trainer.h"

namespace horus {
namespace {

// ---- A constant, a line, the six features of Horus, the roofline and the Horus memory formula.

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
  for (double& value : margins) value = std::clamp(ApplyLink(InfoOf(quantity).link, value), 0.0, InfoOf(quantity).most);
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

std::vector<std::string_view> BaselineNames(Quantity quantity) {
  std::vector<std::string_view> names = {"constant", "linear", "horus_six"};
  if (quantity != Quantity::kPower) names.push_back("roofline");
  if (quantity == Quantity::kMemory) names.push_back("horus_formula");
  return names;
}

// As BaselineNames, one list of predictions each, parallel to `test`.
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

constexpr std::array<std::string_view, 5> kLeaveNames = {"family", "model", "gpu", "campaign", "rows"};
constexpr uint64_t kRandomParts = 10;

std::string GroupOf(const TrainingRow& row, size_t position, RowLeave leave, uint32_t seed) {
  if (leave == RowLeave::kRows) return std::to_string(Mix64(CombineHash(seed, position)) % kRandomParts);
  static constexpr std::string TrainingRow::* kGroups[] = {&TrainingRow::family, &TrainingRow::model, &TrainingRow::gpu,
                                                           &TrainingRow::campaign};  // as the enum
  return row.*kGroups[static_cast<size_t>(leave)];
}

// A method that has no answer for some rows (a roofline without a GPU) is judged by the others, and by none if it has
// none.
ErrorSummary Summarise(std::string_view method, const std::vector<double>& all_measured,
                       const std::vector<double>& all_predicted) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  ErrorSummary summary{
      .method = std::string(method), .mape_pct = kNone, .median_pct = kNone, .rmsle = kNone, .spearman = kNone};
  std::vector<double> measured, predicted;
  for (size_t i = 0; i < all_measured.size(); ++i) {
    if (!std::isfinite(all_predicted[i])) continue;
    measured.push_back(all_measured[i]);
    predicted.push_back(all_predicted[i]);
  }
  std::vector<double> ratios;
  double squares = 0;
  for (size_t i = 0; i < measured.size(); ++i) {
    squares += std::pow(std::log1p(predicted[i]) - std::log1p(measured[i]), 2);
    if (measured[i] > 0) ratios.push_back(std::abs(predicted[i] - measured[i]) / measured[i]);
  }
  if (measured.empty()) return summary;
  summary.rmsle = std::sqrt(squares / static_cast<double>(measured.size()));
  summary.spearman = RankCorrelation(measured, predicted);
  if (ratios.empty()) return summary;
  summary.mape_pct = kPct * std::accumulate(ratios.begin(), ratios.end(), 0.0) / static_cast<double>(ratios.size());
  summary.median_pct = kPct * Median(std::move(ratios));
  return summary;
}

void SumUp(ErrorReport& evaluation, std::span<const std::string_view> baselines) {
  std::vector<double> measured, predicted;
  size_t covered = 0, positive = 0;
  for (const EvaluatedRow& row : evaluation.rows) {
    measured.push_back(row.measured);
    predicted.push_back(row.predicted);
    covered += row.measured <= row.upper ? 1 : 0;
    if (row.measured <= 0 || row.upper >= InfoOf(evaluation.quantity).most) continue;  // no bound has no slack
    ++positive;
    evaluation.slack_pct += kPct * (row.upper / row.measured - 1);
  }
  if (evaluation.rows.empty()) return;
  evaluation.promised_pct = kPct;
  for (const EvaluatedRow& row : evaluation.rows)
    evaluation.promised_pct = std::min(evaluation.promised_pct, kPct * row.promised);
  evaluation.covered_pct = kPct * static_cast<double>(covered) / static_cast<double>(evaluation.rows.size());
  if (positive > 0) evaluation.slack_pct /= static_cast<double>(positive);
  evaluation.methods.push_back(Summarise("horus", measured, predicted));
  for (size_t b = 0; b < baselines.size(); ++b) {
    std::vector<double> of_baseline;
    for (const EvaluatedRow& row : evaluation.rows) of_baseline.push_back(row.baselines[b]);
    evaluation.methods.push_back(Summarise(baselines[b], measured, of_baseline));
  }
}

EvaluatedRow Predict(const TargetModel& model, const TrainingRow& row) {
  const auto q = static_cast<size_t>(model.quantity);
  const double roofline = RooflineOf(model.quantity, row.features);
  const double upper = row.analytic_upper[q] > 0 ? row.analytic_upper[q] : roofline * kQuantities[q].default_factor;
  const Refined refined = model.Refine(row.features, row.gpu, {roofline, std::max(upper, roofline), row.understood});
  return {.row = &row,
          .measured = row.measured[q],
          .predicted = refined.value,
          .upper = refined.upper,
          .distance = refined.distance,
          .outside = refined.outside,
          .promised = refined.promised,
          .baselines = {}};
}

}  // namespace

std::string_view Name(RowLeave leave) { return kLeaveNames[static_cast<size_t>(leave)]; }

absl::StatusOr<RowLeave> ParseRowLeave(std::string_view name) {
  for (size_t i = 0; i < kLeaveNames.size(); ++i) {
    if (kLeaveNames[i] == name) return static_cast<RowLeave>(i);
  }
  return InvalidArgument("leave out: expected family, model, gpu, campaign or rows, found %s", Quoted(name));
}

absl::StatusOr<ErrorReport> Evaluate(Quantity quantity, std::span<const TrainingRow* const> rows, RowLeave leave,
                                     const TrainOptions& options, const TrainProgress& progress,
                                     std::span<const TrainingRow* const> speeds) {
  std::map<std::string, std::vector<const TrainingRow*>> groups;
  for (size_t i = 0; i < rows.size(); ++i) groups[GroupOf(*rows[i], i, leave, options.seed)].push_back(rows[i]);
  if (groups.size() < 2) {
    return InvalidArgument("%s: expected rows of at least two groups (%s), found %d",
                           std::string(InfoOf(quantity).name), std::string(Name(leave)), groups.size());
  }
  ErrorReport evaluation{.quantity = quantity, .leave = leave, .groups = groups.size()};
  const std::vector<std::string_view> baselines = BaselineNames(quantity);
  double done = 0;
  for (const auto& [group, test] : groups) {
    std::vector<const TrainingRow*> train;
    for (const auto& [other, members] : groups) {
      if (other != group) train.insert(train.end(), members.begin(), members.end());
    }
    const TrainProgress part = [&](double share) {
      return !progress || progress((done + share) / static_cast<double>(groups.size()));
    };
    std::vector<const TrainingRow*> other_speeds;
    for (size_t i = 0; i < speeds.size() && SharesStepConstants(quantity); ++i) {
      if (GroupOf(*speeds[i], i, leave, options.seed) != group) other_speeds.push_back(speeds[i]);
    }
    const TargetModel constants = FitConstants(Quantity::kStepTime, other_speeds);
    HORUS_ASSIGN_OR_RETURN(const TargetModel model, TrainTarget(quantity, train, options, part, &constants));
    HORUS_ASSIGN_OR_RETURN(const auto predicted, PredictBaselines(quantity, train, test, options));
    for (size_t i = 0; i < test.size(); ++i) {
      evaluation.rows.push_back(Predict(model, *test[i]));
      for (const std::vector<double>& of_baseline : predicted)
        evaluation.rows.back().baselines.push_back(of_baseline[i]);
    }
    ++done;
  }
  SumUp(evaluation, baselines);
  return evaluation;
}

ErrorReport EvaluateModel(const TargetModel& model, std::span<const TrainingRow* const> rows) {
  ErrorReport evaluation{.quantity = model.quantity, .groups = 0};
  for (const TrainingRow* row : rows) evaluation.rows.push_back(Predict(model, *row));
  SumUp(evaluation, {});
  return evaluation;
}

}  // namespace horus
