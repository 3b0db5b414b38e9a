// SPDX-License-Identifier: Apache-2.0
// Trains the networks of `iapp`: forward, backward and Adam.
#include <Eigen/Core>
#include <algorithm>
#include <utility>

#include "base/status.h"
#include "interference/adam.h"
#include "interference/iapp_model.h"
#include "interference/iapp_net.h"
#include "interference/pair_columns.h"

namespace horus {
namespace {

constexpr int kSteps = 400;
constexpr double kRate = 0.02;
// How far a weight is expected from 0, and a margin from what a network can say: so strongly are weights held back.
constexpr double kWeightSpread = 0.5, kNoise = 0.2;

constexpr auto kHidden = static_cast<Eigen::Index>(kIappHidden);
constexpr auto kInputs = static_cast<Eigen::Index>(kIappInputs);
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Weights = Eigen::Map<const Matrix>;

// x / (1 + |x|); its slope, from its value y, is (1 - |y|)^2.
void Activate(Matrix& values) { values = values.array() / (1 + values.array().abs()); }

struct Rows {
  Matrix columns;  // a row a PairRow: victim, other, one-hot device
  Eigen::ArrayXd residuals;
};

Rows RowsFor(const PairSet& set, std::span<const PairRow> rows, const PointScale& scale) {
  Rows result;
  const auto n = static_cast<Eigen::Index>(rows.size());
  result.columns.setZero(n, kInputs + static_cast<Eigen::Index>(set.devices.size()));
  const std::vector<double> residuals = ResidualsOf(set, rows, scale);
  result.residuals = Eigen::Map<const Eigen::ArrayXd>(residuals.data(), n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const PairRow& row = rows[static_cast<size_t>(i)];
    const Columns victim = scale.Standardise(set.jobs[row.victim].points[row.device]);
    const Columns other = scale.Standardise(set.jobs[row.other].points[row.device]);
    for (size_t c = 0; c < kPointColumns; ++c) {
      result.columns(i, static_cast<Eigen::Index>(c)) = victim[c];
      result.columns(i, static_cast<Eigen::Index>(kPointColumns + c)) = other[c];
    }
    result.columns(i, kInputs + row.device) = 1;
  }
  return result;
}

class Network {
 public:
  Network(const Rows& rows, size_t devices) : rows_(rows), shape_{.devices = devices} {}

  [[nodiscard]] Eigen::ArrayXd Train(uint64_t seed, double mean) {
    const auto size = static_cast<Eigen::Index>(shape_.size());
    Eigen::ArrayXd weights = Eigen::ArrayXd::Zero(size), gradient(size), precision(size);
    precision.setConstant(1 / (kWeightSpread * kWeightSpread));
    precision[size - 1] = 0;
    const auto draw = [&](size_t first, size_t count, double inputs) {
      for (size_t i = first; i < first + count; ++i) {
        weights[static_cast<Eigen::Index>(i)] = StartingDraw(seed, i) / std::sqrt(inputs);
      }
    };
    draw(0, shape_.biases(), kIappInputs);
    draw(shape_.second(), kIappHidden * kIappHidden, kIappHidden);
    draw(shape_.last(), kIappHidden, kIappHidden);
    weights[size - 1] = mean;
    Adam adam(size);
    const double rows = static_cast<double>(rows_.residuals.size());
    for (int step = 0; step < kSteps; ++step) {
      Gradient(weights, gradient);
      gradient = (gradient + kNoise * kNoise * precision * weights) / rows;
      adam.Step(gradient, RateAt(step, kSteps, kRate), weights);
    }
    return weights;
  }

 private:
  void Gradient(const Eigen::ArrayXd& weights, Eigen::ArrayXd& gradient) {
    const double* w = weights.data();
    double* g = gradient.data();
    const Eigen::Index inputs = rows_.columns.cols();
    const Weights first(w, inputs, kHidden), second(w + shape_.second(), kHidden, kHidden);
    const Eigen::Map<const Eigen::RowVectorXd> second_bias(w + shape_.second_bias(), kHidden);
    const Eigen::Map<const Eigen::VectorXd> last(w + shape_.last(), kHidden);
    hidden_.noalias() = rows_.columns * first;
    Activate(hidden_);
    second_.noalias() = hidden_ * second;
    second_.rowwise() += second_bias;
    Activate(second_);
    errors_.noalias() = second_ * last;
    errors_.array() += w[shape_.last_bias()] - rows_.residuals;
    g[shape_.last_bias()] = errors_.sum();
    Eigen::Map<Eigen::VectorXd>(g + shape_.last(), kHidden).noalias() = second_.transpose() * errors_;
    second_ = (1 - second_.array().abs()).square().colwise() * errors_.array();
    second_.array().rowwise() *= last.transpose().array();
    Eigen::Map<Eigen::RowVectorXd>(g + shape_.second_bias(), kHidden) = second_.colwise().sum();
    Eigen::Map<Matrix>(g + shape_.second(), kHidden, kHidden).noalias() = hidden_.transpose() * second_;
    back_.noalias() = second_ * second.transpose();
    back_.array() *= (1 - hidden_.array().abs()).square();
    Eigen::Map<Matrix>(g, inputs, kHidden).noalias() = rows_.columns.transpose() * back_;
  }

  const Rows& rows_;
  IappShape shape_;
  Matrix hidden_, second_, back_;
  Eigen::VectorXd errors_;
};

// A network as bundles store it: a device without rows, and any other, has the mean bias of those with.
void Append(std::span<const double> weights, IappShape shape, const std::vector<bool>& present,
            std::vector<double>& out) {
  std::vector<double> biases(weights.begin() + static_cast<std::ptrdiff_t>(shape.biases()),
                             weights.begin() + static_cast<std::ptrdiff_t>(shape.second()));
  biases.resize(biases.size() + kIappHidden, 0.0);
  const auto mean = std::span(biases).last(kIappHidden);
  const auto count = static_cast<double>(std::count(present.begin(), present.end(), true));
  for (size_t i = 0; i < shape.devices * kIappHidden; ++i) {
    if (present[i / kIappHidden]) mean[i % kIappHidden] += biases[i] / count;
  }
  for (size_t i = 0; i < shape.devices * kIappHidden; ++i) {
    if (!present[i / kIappHidden]) biases[i] = mean[i % kIappHidden];
  }
  const auto inputs = weights.first(shape.biases()), rest = weights.subspan(shape.second());
  out.insert(out.end(), inputs.begin(), inputs.end());
  out.insert(out.end(), biases.begin(), biases.end());
  out.insert(out.end(), rest.begin(), rest.end());
}

}  // namespace

absl::StatusOr<BundleTarget> FitIapp(const PairSet& set, std::span<const PairRow> rows, const PairFitOptions& options) {
  if (rows.empty()) return InvalidArgument("iapp: expected at least 1 row, found 0");
  const PointScale scale = ScaleOf(set, rows);
  const Rows data = RowsFor(set, rows, scale);
  Network network(data, set.devices.size());
  const std::vector<bool> present = PresenceOf(set, rows).devices;
  const IappShape shape{.devices = set.devices.size()};
  std::vector<double> all;
  for (size_t k = 0; k < kIappNetworks; ++k) {
    const Eigen::ArrayXd weights = network.Train(CombineHash(options.seed, k), data.residuals.mean());
    Append(std::span(weights.data(), shape.size()), shape, present, all);
  }
  BundleTarget target;
  target.name = std::string(kIappName);
  target.link = Link::kExp;
  AddScale(scale, target);
  target.calibration.push_back({std::string(kIappWeights), std::move(all)});
  return target;
}

}  // namespace horus
