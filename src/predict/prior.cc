// SPDX-License-Identifier: Apache-2.0
// The formulas that put the roofline's terms together, the constants in them, and how rows move those.
#include "predict/prior.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>

#include "base/units.h"

namespace horus {
namespace {

// Places of the columns that the formulas read; the schema is constant, so every name is found.
struct Columns {
  size_t device = *FindFeature("roofline_device_time_us"), step = *FindFeature("roofline_step_time_us");
  size_t host = *FindFeature("roofline_host_time_us"), copy = *FindFeature("roofline_copy_us");
  size_t parts = *FindFeature("time_matmul_us");  // the first of kTimeParts
  size_t training = *FindFeature("training"), framework = *FindFeature("framework");
  size_t util = *FindFeature("roofline_gpu_util_pct"), bw_util = *FindFeature("roofline_mem_bw_util_pct");
  size_t peak = *FindFeature("mem_peak"), loaded = *FindFeature("mem_loaded_kernels");
  size_t context = *FindFeature("gpu_context_mib"), scratch = *FindFeature("mem_largest_scratch");
  size_t tdp = *FindFeature("gpu_tdp_w");
};

constexpr double kPercent = 100;
constexpr double kUnknownContextMib = 300;  // where the GPU is not described: a context of recent types
constexpr double kUnknownTdpW = 250;        // likewise: a data-centre board

// Assumptions from which fitting starts, and how far measured rows may move them (standard deviation of the logarithm).
// Of a part of the device time: kernels reach other shares of the peaks than the roofline assumes. Depthwise gradients
// have the widest choice of kernels.
constexpr double kPartSpread = 0.5, kDepthwiseBackwardSpread = 1.0, kLaunchSpread = 0.35;
constexpr std::array<PriorFactor, 5> kLoopFactors = {{
    {1, 1.0},     // host: interpreters and frameworks differ by more than the kernels do
    {1, 0.5},     // copy: pinned or not, and how far ahead of the step
    {3000, 0.5},  // us of a training step's own overhead: loader, loop, reading the loss back
    {300, 0.5},   // and of a batch's, of inference
    {1, 0.25},    // kernels that a compiler wrote, beside the framework's
}};
constexpr PriorFactor kTrafficFactor = {1, 0.5};  // caches spare traffic, padding adds some

constexpr size_t kHost = kTimeParts, kCopy = kHost + 1, kFixed = kHost + 2, kFixedInference = kHost + 3,
                 kCompiled = kHost + 4;
constexpr size_t kTimeFactorCount = kTimeParts + kLoopFactors.size();
constexpr auto kBandwidthFactors = [] {
  std::array<PriorFactor, kTimeFactorCount + 1> factors;
  for (size_t i = 0; i < kTimeParts; ++i) factors[i] = {1, kPartSpread};
  factors[static_cast<size_t>(KernelKind::kDepthwiseBackward)].spread = kDepthwiseBackwardSpread;
  factors[kLaunchPart].spread = kLaunchSpread;
  for (size_t i = 0; i < kLoopFactors.size(); ++i) factors[kHost + i] = kLoopFactors[i];
  factors.back() = kTrafficFactor;
  return factors;
}();
static_assert(kBandwidthFactors.size() == kMostFactors);
// Hosts and loaders even mean utilisation out, in log space below a full device. A maximum is of busy moments alone.
constexpr PriorFactor kSlopeFactor = {0.5, 0.3};
constexpr auto kUtilFactors = [] {
  auto factors = kBandwidthFactors;
  factors.back() = kSlopeFactor;
  return factors;
}();
constexpr std::span<const PriorFactor> kTimeFactors = std::span(kBandwidthFactors).first<kTimeFactorCount>();
constexpr std::array<PriorFactor, 3> kMemoryFactors = {{
    {1, 0.1},    // held: the replay of the allocator is close
    {0.3, 1.0},  // scratch: algorithms that transform operands are sometimes chosen
    {1, 0.5},    // base: libraries load all kernels or those they use
}};
constexpr std::array<PriorFactor, 3> kPowerFactors = {{
    {0.15, 0.5}, {0.5, 0.5}, {0.35, 0.5},  // shares of the board's power: idle, busy, and moving bytes
}};

struct StepParts {
  double device_us;
  double step_us;
};

// A compiler writes kernels of its own for these; products and convolutions stay those of the libraries.
bool IsWrittenByCompiler(KernelKind kind) {
  return kind == KernelKind::kNorm || kind == KernelKind::kBatchNorm || kind == KernelKind::kSoftmax ||
         kind == KernelKind::kActivation || kind == KernelKind::kElementwise || kind == KernelKind::kReduction ||
         kind == KernelKind::kDataMovement;
}

// Device, host and copy run ahead of each other in part: between the largest of them and their sum.
StepParts StepOf(const PriorTerms& t, const PriorConstants& c, double gpu) {
  double kernels = 0;
  for (size_t i = 0; i < kLaunchPart; ++i)
    kernels += c[i] * t.part_us[i] * (t.compiled && IsWrittenByCompiler(static_cast<KernelKind>(i)) ? c[kCompiled] : 1);
  const double device = gpu * kernels + c[kLaunchPart] * t.part_us[kLaunchPart];
  const double host = c[kHost] * t.host_us, copy = c[kCopy] * t.copy_us;
  return {.device_us = device,
          .step_us = std::sqrt(device * device + host * host + copy * copy) + c[t.training ? kFixed : kFixedInference]};
}

// ---- Fitting: Levenberg-Marquardt on a robust loss with a normal prior on every factor.

// Two campaigns of the same runs differ by a quarter (stanford-futuredata/gavel, K80, P100 and V100): smaller errors
// count by their square, larger ones by their size.
constexpr double kFitNoise = 0.2;
constexpr int kMostSteps = 60;
constexpr double kDifference = 1e-4;  // of the numerical derivative
constexpr double kConverged = 1e-10;  // relative gain of a step
constexpr double kMostDamping = 1e8;

// Of the factor that belongs to a GPU type.
double GpuSpreadOf(Quantity quantity) {
  constexpr double kKernelSpread = 0.35;   // as the kernels' own
  constexpr double kContextSpread = 0.75;  // contexts of one library differ between types and drivers
  return quantity == Quantity::kMemory ? kContextSpread : kKernelSpread;
}

class Problem {
 public:
  Problem(Quantity quantity, std::span<const PriorRow> rows, size_t gpu_count, const FittedPrior& centre)
      : quantity_(quantity), rows_(rows), factors_(FactorsOf(quantity).size()), gpus_(gpu_count) {
    centre_.setZero(size());
    for (size_t i = 0; i < std::min(factors_, centre.factors.size()); ++i)
      centre_[static_cast<Eigen::Index>(i)] = centre.factors[i];
    for (size_t g = 0; g < std::min(gpus_, centre.gpus.size()); ++g)
      centre_[static_cast<Eigen::Index>(factors_ + g)] = centre.gpus[g];
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
    for (const PriorRow& row : rows_)
      loss += row.weight * (std::hypot(1.0, Error(row, point.constants, point.gpus[row.gpu])) - 1);
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

double MarginOf(Link link, double value) {
  constexpr double kLeast = 1e-6;  // zero has no logarithm
  if (link == Link::kExp) return std::log(std::max(value, kLeast));
  return link == Link::kExpm1 ? std::log1p(std::max(value, 0.0)) : value;
}

PriorTerms TermsOf(std::span<const float> row, double base_mib) {
  static const Columns columns;
  const auto at = [row](size_t i) { return i < row.size() && std::isfinite(row[i]) ? double{row[i]} : 0.0; };
  PriorTerms t;
  double known = 0;
  for (size_t i = 0; i < kTimeParts; ++i) known += t.part_us[i] = at(columns.parts + i);
  // Of rows that bring no graph, nobody may know the parts.
  if (known == 0) t.part_us[static_cast<size_t>(KernelKind::kOther)] = at(columns.device);
  t.training = at(columns.training) > 0;
  t.compiled = at(columns.framework) == static_cast<double>(Framework::kPyTorchCompiled);
  t.host_us = at(columns.host);
  t.copy_us = at(columns.copy);
  t.util = at(columns.util) / kPercent;
  t.bandwidth = at(columns.bw_util) / kPercent;
  t.traffic_us = t.bandwidth * at(columns.step);
  const double loaded_mib = at(columns.loaded) / kBytesPerMib, context_mib = at(columns.context);
  t.held_mib = std::max(0.0, at(columns.peak) / kBytesPerMib - loaded_mib - context_mib);
  t.scratch_mib = at(columns.scratch) / kBytesPerMib;
  t.base_mib = base_mib >= 0 ? base_mib : loaded_mib + (context_mib > 0 ? context_mib : kUnknownContextMib);
  t.base_is_stated = base_mib >= 0;
  t.tdp_w = at(columns.tdp);
  return t;
}

std::span<const PriorFactor> FactorsOf(Quantity quantity) {
  constexpr std::array<std::span<const PriorFactor>, kQuantityCount> kFactors = {
      kUtilFactors, kBandwidthFactors, kMemoryFactors, kTimeFactors, kTimeFactors, kPowerFactors};
  return kFactors[static_cast<size_t>(quantity)];
}

PriorConstants ConstantsOf(Quantity quantity, std::span<const double> factors) {
  const std::span<const PriorFactor> of = FactorsOf(quantity);
  PriorConstants constants = {};
  for (size_t i = 0; i < std::min(of.size(), factors.size()); ++i) constants[i] = of[i].typical * std::exp(factors[i]);
  return constants;
}

double PriorOf(Quantity quantity, const PriorTerms& t, const PriorConstants& c, double gpu_scale) {
  switch (quantity) {
    case Quantity::kStepTime:
      return StepOf(t, c, gpu_scale).step_us;
    case Quantity::kGpuUtil:
    case Quantity::kGpuUtilMax: {
      const StepParts parts = StepOf(t, c, gpu_scale);
      const double busy = kPercent * parts.device_us / parts.step_us;
      if (quantity == Quantity::kGpuUtilMax) return busy;
      const double full = std::log1p(kPercent);
      return std::max(0.0, std::expm1(full + c[kTimeFactorCount] * (std::log1p(busy) - full)));
    }
    case Quantity::kMemBwUtil:
      return std::min(kPercent, kPercent * c[kTimeFactorCount] * t.traffic_us / StepOf(t, c, gpu_scale).step_us);
    case Quantity::kMemory: {
      const double base = t.base_is_stated ? 1 : c[2] * gpu_scale;
      return c[0] * t.held_mib + c[1] * t.scratch_mib + base * t.base_mib;
    }
    case Quantity::kPower:
      return (t.tdp_w > 0 ? t.tdp_w : kUnknownTdpW) * gpu_scale * (c[0] + c[1] * t.util + c[2] * t.bandwidth);
  }
  return 0;
}

double PriorOf(Quantity quantity, const PriorTerms& terms, std::span<const double> factors, double gpu) {
  return PriorOf(quantity, terms, ConstantsOf(quantity, factors), std::exp(gpu));
}

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
