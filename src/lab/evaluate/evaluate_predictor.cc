// SPDX-License-Identifier: Apache-2.0
// Leaves out a group at a time, predicts it, and sums up the errors.
#include "lab/evaluate/evaluate_predictor.h"

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
#include "lab/evaluate/baselines.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, 4> kLeaveNames = {"family", "model", "gpu", "rows"};
constexpr uint64_t kRandomParts = 10;
constexpr double kPercent = 100;

std::string GroupOf(const TrainingRow& row, size_t position, LeaveOut leave, uint32_t seed) {
  switch (leave) {
    case LeaveOut::kFamily:
      return row.family;
    case LeaveOut::kModel:
      return row.model;
    case LeaveOut::kGpu:
      return row.gpu;
    case LeaveOut::kRows:
      return std::to_string(Mix64(CombineHash(seed, position)) % kRandomParts);
  }
  return "";
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
  summary.mape_pct = kPercent * std::accumulate(ratios.begin(), ratios.end(), 0.0) / static_cast<double>(ratios.size());
  summary.median_pct = kPercent * Median(std::move(ratios));
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
    evaluation.slack_pct += kPercent * (row.upper / row.measured - 1);
  }
  if (evaluation.rows.empty()) return;
  evaluation.promised_pct = kPercent;
  for (const EvaluatedRow& row : evaluation.rows) {
    evaluation.promised_pct = std::min(evaluation.promised_pct, kPercent * row.promised);
  }
  evaluation.covered_pct = kPercent * static_cast<double>(covered) / static_cast<double>(evaluation.rows.size());
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
          .promised = refined.promised,
          .baselines = {}};
}

}  // namespace

std::string_view Name(LeaveOut leave) { return kLeaveNames[static_cast<size_t>(leave)]; }

absl::StatusOr<LeaveOut> ParseLeaveOut(std::string_view name) {
  for (size_t i = 0; i < kLeaveNames.size(); ++i) {
    if (kLeaveNames[i] == name) return static_cast<LeaveOut>(i);
  }
  return InvalidArgument("leave out: expected family, model, gpu or rows, found %s", Quoted(name));
}

absl::StatusOr<ErrorReport> Evaluate(Quantity quantity, std::span<const TrainingRow* const> rows, LeaveOut leave,
                                     const TrainOptions& options, const TrainProgress& progress) {
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
    HORUS_ASSIGN_OR_RETURN(const TargetModel model, TrainTarget(quantity, train, options, part));
    HORUS_ASSIGN_OR_RETURN(const auto predicted, PredictBaselines(quantity, train, test, options));
    for (size_t i = 0; i < test.size(); ++i) {
      evaluation.rows.push_back(Predict(model, *test[i]));
      for (const std::vector<double>& of_baseline : predicted) {
        evaluation.rows.back().baselines.push_back(of_baseline[i]);
      }
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
