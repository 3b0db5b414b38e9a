// SPDX-License-Identifier: Apache-2.0
// Levenberg-Marquardt for the constants of a law, XGBoost for what it leaves.
#include "bench/quality/operator_fit.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "base/hash.h"
#include "base/status.h"
#include "trees/trainer.h"

namespace horus {
namespace {

constexpr double kFitNoise = 0.1;  // relative: smaller errors count by their square, larger ones by their size
constexpr size_t kMostFitRows = 2'500;
constexpr int kMostSteps = 15;
constexpr double kDifference = 1e-3;  // of the numerical derivative
constexpr double kConverged = 1e-5;   // relative gain of a step
constexpr double kMostDamping = 1e6;

// Chosen by what trees still gain on shapes left out against the bundle's size.
struct ForestSize {
  int32_t rounds, depth;
  float least_rows;
};
constexpr ForestSize kSizes[kOperatorKinds] = {{180, 7, 10}, {120, 7, 10}, {110, 6, 10}, {220, 8, 5},
                                               {80, 6, 10},  {80, 6, 10},  {100, 6, 5},  {60, 4, 2},
                                               {60, 6, 5},   {40, 5, 5},   {60, 6, 5}};
constexpr float kRate = 0.12F;

class LawFit {
 public:
  LawFit(OperatorKind kind, std::span<const MeasuredOperator* const> rows) : law_(LawOf(kind)) {
    // Every GPU type counts alike, however often it was measured.
    std::map<const GpuType*, size_t> of_gpu;
    for (const MeasuredOperator* row : rows) ++of_gpu[row->gpu];
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t share = std::max<size_t>(1, of_gpu[rows[i]->gpu] * of_gpu.size() / kMostFitRows);
      if (Mix64(i) % share == 0) rows_.push_back(rows[i]);
    }
  }

  [[nodiscard]] Eigen::Index size() const { return static_cast<Eigen::Index>(law_.size()); }

  [[nodiscard]] LawConstants At(const Eigen::VectorXd& x) const {
    LawConstants c = {};
    for (size_t i = 0; i < law_.size(); ++i) c[i] = law_[i].typical * std::exp(x[static_cast<Eigen::Index>(i)]);
    return c;
  }
  [[nodiscard]] Eigen::VectorXd Errors(const Eigen::VectorXd& x) const {
    const LawConstants c = At(x);
    Eigen::VectorXd errors(static_cast<Eigen::Index>(rows_.size()));
    for (size_t i = 0; i < rows_.size(); ++i) {
      errors[static_cast<Eigen::Index>(i)] =
          std::log(LawUs(rows_[i]->op, *rows_[i]->gpu, c) / rows_[i]->us) / kFitNoise;
    }
    return errors;
  }
  [[nodiscard]] double Loss(const Eigen::VectorXd& x, const Eigen::VectorXd& errors) const {
    double loss = (1 + errors.array().square()).sqrt().sum() - static_cast<double>(errors.size());
    for (Eigen::Index i = 0; i < size(); ++i) loss += 0.5 * std::pow(x[i] / Spread(i), 2);
    return loss;
  }
  [[nodiscard]] double Spread(Eigen::Index i) const { return law_[static_cast<size_t>(i)].spread; }

 private:
  std::span<const LawConstant> law_;
  std::vector<const MeasuredOperator*> rows_;
};

std::map<std::string, std::vector<const MeasuredOperator*>> BySeries(std::span<const MeasuredOperator* const> rows) {
  std::map<std::string, std::vector<const MeasuredOperator*>> series;
  for (const MeasuredOperator* row : rows) series[SeriesName(row->op)].push_back(row);
  return series;
}

}  // namespace

LawConstants FitLaw(OperatorKind kind, std::span<const MeasuredOperator* const> rows) {
  const LawFit fit(kind, rows);
  Eigen::VectorXd x = Eigen::VectorXd::Zero(fit.size());
  Eigen::VectorXd errors = fit.Errors(x);
  double loss = fit.Loss(x, errors), damping = 1e-2;
  for (int step = 0; step < kMostSteps && damping < kMostDamping; ++step) {
    Eigen::MatrixXd slopes(errors.size(), fit.size());
    for (Eigen::Index i = 0; i < fit.size(); ++i) {
      Eigen::VectorXd moved = x;
      moved[i] += kDifference;
      slopes.col(i) = (fit.Errors(moved) - errors) / kDifference;
    }
    const Eigen::VectorXd weights = (1 + errors.array().square()).rsqrt();
    Eigen::MatrixXd matrix = slopes.transpose() * weights.asDiagonal() * slopes;
    Eigen::VectorXd gradient = slopes.transpose() * weights.cwiseProduct(errors);
    for (Eigen::Index i = 0; i < fit.size(); ++i) {
      matrix(i, i) += 1 / std::pow(fit.Spread(i), 2);
      gradient[i] += x[i] / std::pow(fit.Spread(i), 2);
    }
    for (; damping < kMostDamping; damping *= 4) {
      Eigen::MatrixXd damped = matrix;
      damped.diagonal() *= 1 + damping;
      const Eigen::VectorXd next = x - damped.ldlt().solve(gradient);
      const Eigen::VectorXd next_errors = fit.Errors(next);
      const double next_loss = fit.Loss(next, next_errors);
      if (!(next_loss < loss)) continue;
      damping = loss - next_loss < kConverged * (1 + loss) ? kMostDamping : std::max(1e-4, damping / 8);
      x = next, errors = next_errors, loss = next_loss;
      break;
    }
  }
  return fit.At(x);
}

absl::StatusOr<TrainedOperators> TrainOperators(OperatorKind kind, std::span<const MeasuredOperator* const> rows) {
  TrainedOperators trained{.kind = kind};
  for (const auto& [name, of_series] : BySeries(rows)) trained.constants[name] = FitLaw(kind, of_series);
  std::vector<float> features, targets;
  features.reserve(rows.size() * kOperatorColumns);
  for (const MeasuredOperator* row : rows) {
    const double law = LawUs(row->op, *row->gpu, trained.constants[SeriesName(row->op)]);
    const OperatorRow columns = RowOf(row->op, *row->gpu, law);
    features.insert(features.end(), columns.begin(), columns.end());
    targets.push_back(static_cast<float>(std::log(row->us / law)));
  }
  const ForestSize& size = kSizes[static_cast<size_t>(kind)];
  TrainingParams params{.rounds = size.rounds,
                        .max_depth = size.depth,
                        .learning_rate = kRate,
                        .min_child_weight = size.least_rows,
                        .subsample = 0.7F,
                        .feature_share = 0.7F,
                        .method = TreeMethod::kHist,
                        .base_score = 0.0F};
  HORUS_ASSIGN_OR_RETURN(
      const Forest forest,
      horus::Fit({.row_count = rows.size(), .feature_count = kOperatorColumns, .rows = features, .targets = targets},
                 params));
  trained.forest = forest.data();
  return trained;
}

absl::StatusOr<std::vector<double>> AnswersOf(const TrainedOperators& trained,
                                              std::span<const MeasuredOperator* const> rows, bool gpu_seen) {
  Bundle bundle;
  bundle.targets.push_back(ToBundle(trained));
  for (size_t kind = 0; kind < kOperatorKinds; ++kind) {
    if (static_cast<OperatorKind>(kind) != trained.kind) {
      bundle.targets.push_back(ToBundle({.kind = static_cast<OperatorKind>(kind)}));
    }
  }
  std::vector<std::string> gpus;
  for (const MeasuredOperator* row : rows) gpus.push_back(row->gpu->name);
  std::sort(gpus.begin(), gpus.end());
  gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
  if (gpu_seen) {
    for (const std::string& gpu : gpus) bundle.series.push_back({"gpus." + gpu, {}});
  }
  HORUS_ASSIGN_OR_RETURN(const auto model, OperatorModel::FromBundle(bundle));
  std::vector<double> answers;
  for (const MeasuredOperator* row : rows) answers.push_back(model->TimeOf(row->op, *row->gpu).us);
  return answers;
}

}  // namespace horus
