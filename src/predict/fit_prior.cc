// SPDX-License-Identifier: Apache-2.0
// Levenberg-Marquardt on a robust loss with a normal prior on every factor.
#include "predict/fit_prior.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace horus {
namespace {

// Two campaigns of the same runs differ by a quarter (stanford-futuredata/gavel, K80, P100 and V100): smaller errors
// count by their square, larger ones by their size.
constexpr double kFitNoise = 0.2;
constexpr int kMostSteps = 60;
constexpr double kDifference = 1e-4;  // of the numerical derivative
constexpr double kConverged = 1e-10;  // relative gain of a step
constexpr double kMostDamping = 1e8;

class Problem {
 public:
  Problem(Quantity quantity, std::span<const PriorRow> rows, size_t gpu_count, const FittedPrior& centre)
      : quantity_(quantity), rows_(rows), factors_(FactorsOf(quantity).size()), gpus_(gpu_count) {
    centre_.setZero(size());
    for (size_t i = 0; i < std::min(factors_, centre.factors.size()); ++i) {
      centre_[static_cast<Eigen::Index>(i)] = centre.factors[i];
    }
    for (size_t g = 0; g < std::min(gpus_, centre.gpus.size()); ++g) {
      centre_[static_cast<Eigen::Index>(factors_ + g)] = centre.gpus[g];
    }
  }
  [[nodiscard]] const Eigen::VectorXd& centre() const { return centre_; }

  [[nodiscard]] Eigen::Index size() const { return static_cast<Eigen::Index>(factors_ + gpus_); }
  [[nodiscard]] size_t factors() const { return factors_; }

  [[nodiscard]] double Spread(Eigen::Index i) const {
    const auto at = static_cast<size_t>(i);
    return at < factors_ ? FactorsOf(quantity_)[at].spread : GpuSpreadOf(quantity_);
  }

  // Constants and GPU factors at x.
  struct Point {
    PriorConstants constants;
    std::vector<double> gpus;
  };
  [[nodiscard]] Point At(const Eigen::VectorXd& x) const {
    Point point{.constants = ConstantsOf(quantity_, {x.data(), factors_}), .gpus = std::vector<double>(gpus_)};
    for (size_t g = 0; g < gpus_; ++g) point.gpus[g] = std::exp(x[static_cast<Eigen::Index>(factors_ + g)]);
    return point;
  }
  [[nodiscard]] double Error(const PriorRow& row, const PriorConstants& constants, double gpu) const {
    return (MarginOf(InfoOf(quantity_).link, PriorOf(quantity_, row.terms, constants, gpu)) - row.margin) / kFitNoise;
  }

  [[nodiscard]] double Loss(const Eigen::VectorXd& x) const {
    double loss = 0;
    const Point point = At(x);
    for (const PriorRow& row : rows_) {
      loss += row.weight * (std::hypot(1.0, Error(row, point.constants, point.gpus[row.gpu])) - 1);
    }
    for (Eigen::Index i = 0; i < size(); ++i) loss += 0.5 * std::pow((x[i] - centre_[i]) / Spread(i), 2);
    return loss;
  }

  // Gauss-Newton matrix and gradient of the loss; a row touches the factors and its own GPU type alone.
  void Linearise(const Eigen::VectorXd& x, Eigen::MatrixXd& matrix, Eigen::VectorXd& gradient) const {
    matrix.setZero(size(), size());
    gradient.setZero(size());
    std::vector<Eigen::Index> touched(factors_ + 1);
    for (size_t i = 0; i < factors_; ++i) touched[i] = static_cast<Eigen::Index>(i);
    std::vector<double> slope(factors_ + 1);
    const Point point = At(x);
    const double more = std::exp(kDifference);
    PriorConstants moved = point.constants;
    for (const PriorRow& row : rows_) {
      touched[factors_] = GpuAt(row);
      const double gpu = point.gpus[row.gpu];
      const double error = Error(row, point.constants, gpu);
      for (size_t k = 0; k < factors_; ++k) {
        moved[k] *= more;
        slope[k] = (Error(row, moved, gpu) - error) / kDifference;
        moved[k] = point.constants[k];
      }
      slope[factors_] = (Error(row, point.constants, gpu * more) - error) / kDifference;
      const double weight = row.weight / std::hypot(1.0, error);  // of the robust loss at this error
      for (size_t k = 0; k <= factors_; ++k) {
        gradient[touched[k]] += weight * slope[k] * error;
        for (size_t l = 0; l <= factors_; ++l) matrix(touched[k], touched[l]) += weight * slope[k] * slope[l];
      }
    }
    for (Eigen::Index i = 0; i < size(); ++i) {
      const double precision = 1 / std::pow(Spread(i), 2);
      matrix(i, i) += precision;
      gradient[i] += precision * (x[i] - centre_[i]);
    }
  }

 private:
  [[nodiscard]] Eigen::Index GpuAt(const PriorRow& row) const { return static_cast<Eigen::Index>(factors_ + row.gpu); }

  Quantity quantity_;
  std::span<const PriorRow> rows_;
  size_t factors_;
  size_t gpus_;
  Eigen::VectorXd centre_;
};

}  // namespace

FittedPrior FitPrior(Quantity quantity, std::span<const PriorRow> rows, size_t gpu_count, const FittedPrior& centre) {
  const Problem problem(quantity, rows, gpu_count, centre);
  Eigen::VectorXd x = problem.centre(), gradient;
  Eigen::MatrixXd matrix;
  double loss = problem.Loss(x), damping = 1e-3;
  for (int step = 0; step < kMostSteps && damping < kMostDamping; ++step) {
    problem.Linearise(x, matrix, gradient);
    for (; damping < kMostDamping; damping *= 4) {
      Eigen::MatrixXd damped = matrix;
      damped.diagonal() *= 1 + damping;
      const Eigen::VectorXd next = x - damped.ldlt().solve(gradient);
      const double next_loss = problem.Loss(next);
      if (!(next_loss < loss)) continue;
      const bool converged = loss - next_loss < kConverged * (1 + loss);
      x = next;
      loss = next_loss;
      damping = converged ? kMostDamping : std::max(1e-6, damping / 8);
      break;
    }
  }
  const auto split = x.data() + problem.factors();
  return {.factors = {x.data(), split}, .gpus = {split, x.data() + x.size()}};
}

}  // namespace horus
