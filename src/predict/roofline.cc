// SPDX-License-Identifier: Apache-2.0
// Times every operator by the slowest of compute, bandwidth and launch, and adds up the step.
#include "predict/roofline.h"

#include <algorithm>

#include "device/gpu_type.h"

namespace horus {
namespace {

// Assumptions from the literature, none fitted here (docs/predict.md gives the sources in full).
constexpr double kTensorCoreFraction = 0.5;  // of peak: 52 % on A100 in Megatron-LM (Narayanan et al., SC 2021)
constexpr double kPlainFraction = 0.7;       // of peak without matrix units: large SGEMM and cuDNN convolutions
constexpr double kBandwidthFraction = 0.8;   // of peak: 83 % on V100 (Jia et al., "Dissecting the Volta", 2018)
constexpr double kHostFraction = 0.5;        // of PCIe: copies from pageable memory pass a staging buffer
constexpr double kBlocksPerSm = 2;           // thread blocks an SM needs to hide its latencies
constexpr double kShortestKernelUs = 2;      // start and drain of a kernel with nothing to do
constexpr double kDispatchUs = 6;            // host time an eager operator takes: dispatcher, autograd, 2-3 us launch
constexpr double kLaunchUs = 2.5;            // of it, the launch: what each further kernel of a library call takes
// Kepler's SMX has 192 cores and four schedulers of 32 lanes: a third of the cores works only when instructions pair up
// (Lai and Seznec, CGO 2013, on why SGEMM stays far below Kepler's peak).
constexpr double kKeplerFraction = 128.0 / 192.0;
constexpr int64_t kKeplerMajor = 3;

struct Rates {
  double matrix_flops_per_us;
  double plain_flops_per_us;
  double bytes_per_us;
  double full_blocks;
};

// Without a device's figure the rate is tiny rather than zero, so that times stay finite.
double Positive(double value) { return std::max(value, 1.0); }

Rates RatesOf(const GpuType& gpu, Precision precision) {
  constexpr double kGflopsToFlopsPerUs = 1e3;  // 10^9 / 10^6
  const double matrix = MatrixPeakGflops(gpu, precision);
  const auto plain = static_cast<double>(gpu.fp32_gflops);
  const double plain_fraction = kPlainFraction * (gpu.compute_capability / 10 == kKeplerMajor ? kKeplerFraction : 1);
  const double fraction = matrix > plain ? kTensorCoreFraction : plain_fraction;
  return {.matrix_flops_per_us = Positive(matrix) * kGflopsToFlopsPerUs * fraction,
          .plain_flops_per_us = Positive(plain) * kGflopsToFlopsPerUs * plain_fraction,
          .bytes_per_us = Positive(static_cast<double>(gpu.mem_bandwidth_mb_s)) * kBandwidthFraction,
          .full_blocks = Positive(static_cast<double>(gpu.sm_count)) * kBlocksPerSm};
}

struct Part {
  double us = 0;
  Limit limit = Limit::kLaunch;
  double parallelism = 1;
};

Part TimeOf(double products, double others, double bytes, double kernels, double blocks, const Rates& rates) {
  if (kernels <= 0) return {};
  // A kernel of few blocks leaves SMs idle: compute and bandwidth shrink alike.
  const double parallelism = std::clamp(blocks / rates.full_blocks, 1 / rates.full_blocks, 1.0);
  const double compute = (products / rates.matrix_flops_per_us + others / rates.plain_flops_per_us) / parallelism;
  const double bandwidth = bytes / rates.bytes_per_us / parallelism;
  const double launch = kernels * kShortestKernelUs;
  Part part{.us = std::max({compute, bandwidth, launch}), .parallelism = parallelism};
  if (compute >= bandwidth && compute > launch) part.limit = Limit::kCompute;
  if (bandwidth > compute && bandwidth > launch) part.limit = Limit::kBandwidth;
  return part;
}

// An operator of unknown shape is not taken to be a small one: its few known bytes move at the full rate.
Part ForwardOf(const OpCost& op, const Rates& rates) {
  return TimeOf(op.forward_flops, op.forward_flops_other, op.forward_bytes, op.forward_kernels,
                op.known ? op.forward_blocks : rates.full_blocks, rates);
}
Part BackwardOf(const OpCost& op, const Rates& rates) {
  return TimeOf(op.backward_flops, op.backward_flops_other, op.backward_bytes, op.backward_kernels,
                op.known ? op.backward_blocks : rates.full_blocks, rates);
}

struct Sum {
  double us = 0;
  double by_limit[3] = {};
  double parallelism_us = 0;

  void Add(const Part& part) {
    us += part.us;
    by_limit[static_cast<size_t>(part.limit)] += part.us;
    parallelism_us += part.us * part.parallelism;
  }
};

}  // namespace

double MatrixPeakGflops(const GpuType& gpu, Precision precision) {
  const auto fp32 = static_cast<double>(gpu.fp32_gflops);
  int64_t peak = 0;
  switch (precision) {
    case Precision::kFp32:
      break;
    case Precision::kTf32:
      peak = gpu.tf32_gflops;
      break;
    case Precision::kAmpFp16:
    case Precision::kFp16:
      peak = gpu.fp16_gflops;
      break;
    case Precision::kAmpBf16:
    case Precision::kBf16:
      peak = gpu.bf16_gflops;
      break;
  }
  return peak > 0 ? static_cast<double>(peak) : fp32;
}

RooflineTerms RooflineOf(const StepCost& cost, const RunSpec& run, const GpuType& gpu) {
  const Rates rates = RatesOf(gpu, run.precision);
  Sum sum;
  double operators_us = 0, squares = 0;
  for (size_t i = 0; i < cost.ops.size(); ++i) {
    const Part forward = ForwardOf(cost.ops[i], rates);
    const Part backward = BackwardOf(cost.ops[i], rates);
    sum.Add(forward);
    if (cost.RunsTwice(i)) sum.Add(forward);
    sum.Add(backward);
    const double operator_us = forward.us + backward.us;
    operators_us += operator_us;
    squares += operator_us * operator_us;
  }
  sum.Add(ForwardOf(cost.loss, rates));
  sum.Add(BackwardOf(cost.loss, rates));
  sum.Add(TimeOf(0, cost.optimizer.flops, cost.optimizer.bytes, cost.optimizer.kernels, rates.full_blocks, rates));

  RooflineTerms terms;
  terms.device_time_us = sum.us;
  if (operators_us > 0) terms.mean_operator_us = squares / operators_us;
  const double library = std::min(cost.totals.library_kernels, cost.StepKernels());
  terms.host_time_us = (cost.StepKernels() - library) * kDispatchUs + library * kLaunchUs;
  // The batch is copied before the first kernel can start; NVML does not count copies as busy.
  if (gpu.pcie_mb_s > 0) terms.copy_us = cost.input_bytes / (static_cast<double>(gpu.pcie_mb_s) * kHostFraction);
  terms.step_time_us = std::max(terms.device_time_us, terms.host_time_us) + terms.copy_us;
  if (terms.step_time_us > 0) {
    terms.gpu_util_pct = 100 * terms.device_time_us / terms.step_time_us;
    const double peak_bytes = Positive(static_cast<double>(gpu.mem_bandwidth_mb_s)) * terms.step_time_us;
    terms.mem_bw_util_pct = std::min(100.0, 100 * cost.StepBytes() / peak_bytes);
  }
  if (sum.us > 0) {
    terms.compute_share = sum.by_limit[static_cast<size_t>(Limit::kCompute)] / sum.us;
    terms.bandwidth_share = sum.by_limit[static_cast<size_t>(Limit::kBandwidth)] / sum.us;
    terms.launch_share = sum.by_limit[static_cast<size_t>(Limit::kLaunch)] / sum.us;
    terms.mean_parallelism = sum.parallelism_us / sum.us;
  }
  return terms;
}

std::vector<OpTime> RooflineOps(const StepCost& cost, const RunSpec& run, const GpuType& gpu) {
  const Rates rates = RatesOf(gpu, run.precision);
  std::vector<OpTime> times;
  times.reserve(cost.ops.size());
  for (const OpCost& op : cost.ops) {
    const Part forward = ForwardOf(op, rates), backward = BackwardOf(op, rates);
    const Part& larger = forward.us >= backward.us ? forward : backward;
    times.push_back({.forward_us = forward.us,
                     .backward_us = backward.us,
                     .limit = larger.limit,
                     .parallelism = larger.us > 0 ? larger.parallelism : 0});
  }
  return times;
}

}  // namespace horus
