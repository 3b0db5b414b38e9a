// SPDX-License-Identifier: Apache-2.0
// The formulas that put the roofline's terms together, and the constants in them.
#include "predict/prior.h"

#include <algorithm>
#include <cmath>

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
    {"host", 1, 1.0},                  // interpreters and frameworks differ by more than the kernels do
    {"copy", 1, 0.5},                  // pinned or not, and how far ahead of the step
    {"fixed_us", 3000, 0.5},           // a training step's own overhead: loader, loop, reading the loss back
    {"fixed_inference_us", 300, 0.5},  // of a batch's
    {"compiled", 1, 0.25},             // kernels that a compiler wrote, beside the framework's
}};
constexpr PriorFactor kTrafficFactor = {"traffic", 1, 0.5};  // caches spare traffic, padding adds some

constexpr size_t kHost = kTimeParts, kCopy = kHost + 1, kFixed = kHost + 2, kFixedInference = kHost + 3,
                 kCompiled = kHost + 4;
constexpr size_t kTimeFactorCount = kTimeParts + kLoopFactors.size();
constexpr auto kBandwidthFactors = [] {
  std::array<PriorFactor, kTimeFactorCount + 1> factors;
  for (size_t i = 0; i < kTimeParts; ++i) factors[i] = {kTimePartNames[i], 1, kPartSpread};
  factors[static_cast<size_t>(KernelKind::kDepthwiseBackward)].spread = kDepthwiseBackwardSpread;
  factors[kLaunchPart].spread = kLaunchSpread;
  for (size_t i = 0; i < kLoopFactors.size(); ++i) factors[kHost + i] = kLoopFactors[i];
  factors.back() = kTrafficFactor;
  return factors;
}();
static_assert(kBandwidthFactors.size() == kMostFactors);
// Hosts and loaders even mean utilisation out, in log space below a full device. A maximum is of busy moments alone.
constexpr PriorFactor kSlopeFactor = {"slope", 0.5, 0.3};
constexpr auto kUtilFactors = [] {
  auto factors = kBandwidthFactors;
  factors.back() = kSlopeFactor;
  return factors;
}();
constexpr std::span<const PriorFactor> kTimeFactors = std::span(kBandwidthFactors).first<kTimeFactorCount>();
constexpr std::array<PriorFactor, 3> kMemoryFactors = {{
    {"held", 1, 0.1},       // the replay of the allocator is close
    {"scratch", 0.3, 1.0},  // algorithms that transform operands are sometimes chosen
    {"base", 1, 0.5},       // libraries load all kernels or those they use
}};
constexpr std::array<PriorFactor, 3> kPowerFactors = {{
    {"idle", 0.15, 0.5},  // shares of the board's power: idle, busy, and moving bytes
    {"busy", 0.5, 0.5},
    {"traffic", 0.35, 0.5},
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
  for (size_t i = 0; i < kLaunchPart; ++i) {
    kernels += c[i] * t.part_us[i] * (t.compiled && IsWrittenByCompiler(static_cast<KernelKind>(i)) ? c[kCompiled] : 1);
  }
  const double device = gpu * kernels + c[kLaunchPart] * t.part_us[kLaunchPart];
  const double host = c[kHost] * t.host_us, copy = c[kCopy] * t.copy_us;
  return {.device_us = device,
          .step_us = std::sqrt(device * device + host * host + copy * copy) + c[t.training ? kFixed : kFixedInference]};
}

}  // namespace

double MarginOf(Link link, double value) {
  constexpr double kLeast = 1e-6;  // zero has no logarithm
  switch (link) {
    case Link::kExp:
      return std::log(std::max(value, kLeast));
    case Link::kExpm1:
      return std::log1p(std::max(value, 0.0));
    case Link::kIdentity:
      break;
  }
  return value;
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
  switch (quantity) {
    case Quantity::kGpuUtil:
      return kUtilFactors;
    case Quantity::kGpuUtilMax:
    case Quantity::kStepTime:
      return kTimeFactors;
    case Quantity::kMemBwUtil:
      return kBandwidthFactors;
    case Quantity::kMemory:
      return kMemoryFactors;
    case Quantity::kPower:
      return kPowerFactors;
  }
  return {};
}

double GpuSpreadOf(Quantity quantity) {
  constexpr double kKernelSpread = 0.35;   // as the kernels' own
  constexpr double kContextSpread = 0.75;  // contexts of one library differ between types and drivers
  return quantity == Quantity::kMemory ? kContextSpread : kKernelSpread;
}

PriorConstants ConstantsOf(Quantity quantity, std::span<const double> factors) {
  const std::span<const PriorFactor> of = FactorsOf(quantity);
  PriorConstants constants = {};
  for (size_t i = 0; i < std::min(of.size(), factors.size()); ++i) constants[i] = of[i].typical * std::exp(factors[i]);
  return constants;
}

double PriorOf(Quantity quantity, const PriorTerms& terms, std::span<const double> factors, double gpu) {
  return PriorOf(quantity, terms, ConstantsOf(quantity, factors), std::exp(gpu));
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

}  // namespace horus
