// SPDX-License-Identifier: Apache-2.0
// The formulas that put the roofline's terms together, and the constants in them.
#include "predict/prior.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/units.h"
#include "features/feature_row.h"

namespace horus {
namespace {

// Places of the columns that the formulas read; the schema is constant, so every name is found.
struct Columns {
  size_t device = *FindFeature("roofline_device_time_us"), step = *FindFeature("roofline_step_time_us");
  size_t host = *FindFeature("roofline_host_time_us"), copy = *FindFeature("roofline_copy_us");
  size_t compute = *FindFeature("roofline_compute_share"), bandwidth = *FindFeature("roofline_bandwidth_share");
  size_t launch = *FindFeature("roofline_launch_share");
  size_t util = *FindFeature("roofline_gpu_util_pct"), bw_util = *FindFeature("roofline_mem_bw_util_pct");
  size_t peak = *FindFeature("mem_peak"), loaded = *FindFeature("mem_loaded_kernels");
  size_t context = *FindFeature("gpu_context_mib"), tdp = *FindFeature("gpu_tdp_w");
};

constexpr double kPercent = 100;
constexpr double kUnknownContextMib = 300;  // where the GPU is not described: a context of recent types
constexpr double kUnknownTdpW = 250;        // likewise: a data-centre board

// Assumptions from which fitting starts, and how far measured rows may move them (standard deviation of the logarithm).
constexpr std::array<PriorFactor, 5> kTimeFactors = {{
    {"compute", 1, 0.35},  // kernels reach other shares of the peaks than the roofline assumes
    {"bandwidth", 1, 0.35},
    {"host", 1, 1.0},         // interpreters and frameworks differ by more than the kernels do
    {"copy", 2, 0.5},         // the batch is written once on the host before it is copied
    {"fixed_us", 3000, 1.0},  // a step's own overhead: loader, loop, reading the loss back
}};
constexpr std::array<PriorFactor, 6> kBandwidthFactors = {{
    kTimeFactors[0],
    kTimeFactors[1],
    kTimeFactors[2],
    kTimeFactors[3],
    kTimeFactors[4],
    {"traffic", 1, 0.5},  // caches spare traffic, padding adds some
}};
constexpr std::array<PriorFactor, 2> kMemoryFactors = {{
    {"held", 1, 0.1},    // the replay of the allocator is close
    {"loaded", 1, 1.0},  // libraries load all kernels or those they use
}};
constexpr std::array<PriorFactor, 3> kPowerFactors = {{
    {"idle", 0.15, 0.5},  // shares of the board's power: idle, busy, and moving bytes
    {"busy", 0.5, 0.5},
    {"traffic", 0.35, 0.5},
}};

double Scaled(const PriorFactor& factor, double log) { return factor.typical * std::exp(log); }

struct StepParts {
  double device_us;
  double step_us;
};

// The host runs ahead of the device only in part: between the larger of the two and their sum.
StepParts StepOf(const PriorTerms& t, std::span<const double> f, double gpu) {
  const double kernels = Scaled(kTimeFactors[0], f[0]) * t.compute_us + Scaled(kTimeFactors[1], f[1]) * t.bandwidth_us;
  const double device = std::exp(gpu) * kernels + t.launch_us;
  const double host = Scaled(kTimeFactors[2], f[2]) * t.host_us;
  const double rest = Scaled(kTimeFactors[3], f[3]) * t.copy_us + Scaled(kTimeFactors[4], f[4]);
  return {.device_us = device, .step_us = std::hypot(device, host) + rest};
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

PriorTerms TermsOf(std::span<const float> row) {
  static const Columns columns;
  const auto at = [row](size_t i) { return i < row.size() && std::isfinite(row[i]) ? double{row[i]} : 0.0; };
  PriorTerms t;
  const double device = at(columns.device);
  t.compute_us = device * at(columns.compute);
  t.bandwidth_us = device * at(columns.bandwidth);
  t.launch_us = device * at(columns.launch);
  t.host_us = at(columns.host);
  t.copy_us = at(columns.copy);
  t.util = at(columns.util) / kPercent;
  t.bandwidth = at(columns.bw_util) / kPercent;
  t.traffic_us = t.bandwidth * at(columns.step);
  t.loaded_mib = at(columns.loaded) / kBytesPerMib;
  t.context_mib = at(columns.context);
  t.held_mib = std::max(0.0, at(columns.peak) / kBytesPerMib - t.loaded_mib - t.context_mib);
  t.tdp_w = at(columns.tdp);
  return t;
}

std::span<const PriorFactor> FactorsOf(Quantity quantity) {
  switch (quantity) {
    case Quantity::kGpuUtil:
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

double PriorOf(Quantity quantity, const PriorTerms& t, std::span<const double> f, double gpu) {
  switch (quantity) {
    case Quantity::kStepTime:
      return StepOf(t, f, gpu).step_us;
    case Quantity::kGpuUtil:
    case Quantity::kGpuUtilMax: {
      const StepParts parts = StepOf(t, f, gpu);
      return kPercent * parts.device_us / parts.step_us;
    }
    case Quantity::kMemBwUtil:
      return std::min(kPercent,
                      kPercent * Scaled(kBandwidthFactors[5], f[5]) * t.traffic_us / StepOf(t, f, gpu).step_us);
    case Quantity::kMemory: {
      const double context = t.context_mib > 0 ? t.context_mib : kUnknownContextMib;
      return Scaled(kMemoryFactors[0], f[0]) * t.held_mib + Scaled(kMemoryFactors[1], f[1]) * t.loaded_mib +
             std::exp(gpu) * context;
    }
    case Quantity::kPower:
      return (t.tdp_w > 0 ? t.tdp_w : kUnknownTdpW) * std::exp(gpu) *
             (Scaled(kPowerFactors[0], f[0]) + Scaled(kPowerFactors[1], f[1]) * t.util +
              Scaled(kPowerFactors[2], f[2]) * t.bandwidth);
  }
  return 0;
}

}  // namespace horus
