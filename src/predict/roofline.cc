// SPDX-License-Identifier: Apache-2.0
// Times every operator by the slowest of compute, bandwidth and launch, and adds up the step.
#include "predict/roofline.h"

#include <algorithm>
#include <cmath>

#include "predict/operators.h"

namespace horus {
namespace {

// Assumptions from the literature, none fitted here (README.md gives the sources in full).
constexpr double kPlainFraction = 0.7;       // of peak, for what is no matrix product
constexpr double kProductFraction = 0.9;     // of peak: the largest tiles, once the device is full
constexpr double kBandwidthFraction = 0.85;  // of peak: 83 % on V100 (Jia et al., "Dissecting the Volta", 2018)
constexpr double kHostFraction = 0.5;        // of PCIe: copies from pageable memory pass a staging buffer
constexpr double kBlocksPerSm = 2;           // thread blocks an SM needs to hide its latencies
constexpr double kBlocksForBandwidth = 0.5;  // an SM: half of them saturate the memory
constexpr double kShortestKernelUs = 2;      // start and drain of a kernel with nothing to do
// From one read of memory to the next of the same thread, where threads are few. Bilinear upsampling of
// EfficientFormerV2 takes 0.282 +- 0.002 us a plane on an RTX 3090 and 0.250 on an RTX 4090 (four nets of timm's
// results); the fitted constant of launches makes 0.27 of this.
constexpr double kReadUs = 0.2;
constexpr double kDispatchUs = 6;  // host time an eager operator takes: dispatcher, autograd, 2-3 us launch
constexpr double kLaunchUs = 2.5;  // of it, the launch: what each further kernel of a library call takes
// Kepler's SMX has 192 cores and four schedulers of 32 lanes: a third of the cores works only when instructions pair up
// (Lai and Seznec, CGO 2013, on why SGEMM stays far below Kepler's peak).
constexpr double kKeplerFraction = 128.0 / 192.0;
constexpr int64_t kKeplerMajor = 3;

// Watts that a TFLOP/s takes, sustained: boards with less run below their peak. Plain float32 of Pascal, Turing and
// Ada: P4, T4 and L4 run BERT, GPT-2 and OPT (sitar-lab/NeuSight) 1.31, 1.37 and 1.72 times slower than this roofline
// says without the rule, boards of ample power 0.84 times. The others are assumptions: the process, and that no board
// of more power was seen to be limited.
struct Energy {
  int64_t from_capability;
  double plain_w, half_w;  // a TFLOP/s of float32, and of half-precision products on matrix units
};
constexpr Energy kEnergies[] = {{0, 25, 25}, {60, 21, 21}, {70, 14, 2}, {80, 11, 1.1}, {86, 8, 1.1}, {89, 4.9, 0.6}};

// The share of a peak that the board's power sustains.
double SustainedShare(const GpuType& gpu, double peak_gflops, bool matrix_units, double precision_cost) {
  const Energy* energy = &kEnergies[0];
  for (const Energy& one : kEnergies) {
    if (gpu.compute_capability >= one.from_capability) energy = &one;
  }
  const double needed_w = peak_gflops / 1e3 * (matrix_units ? energy->half_w * precision_cost : energy->plain_w);
  return gpu.tdp_w > 0 && needed_w > 0 ? std::min(1.0, static_cast<double>(gpu.tdp_w) / needed_w) : 1;
}

// Output tiles of a thread block, as CUTLASS offers them, and the share of the rate they reach: small ones load more
// for what they compute.
struct Tile {
  double rows, columns, share;
};
constexpr Tile kTiles[] = {{256, 128, 1.0}, {128, 128, 0.9}, {128, 64, 0.75},
                           {64, 64, 0.6},   {64, 32, 0.4},   {32, 32, 0.25}};
constexpr double kPrologue = 32;      // steps of the inner dimension that filling and draining the pipeline take
constexpr double kSplitDepth = 1024;  // where the inner dimension is longer, idle SMs share it,
constexpr double kLeastDepth = 512;   // at least so much each
constexpr double kLayoutShare = 0.5;  // of an operator's bytes that are turned, read and written

struct Rates {
  double convolution_flops_per_us;
  double matrix_flops_per_us;
  double plain_flops_per_us;
  double bytes_per_us;
  double sms;
  bool convolutions_on_matrix_units;
  bool products_on_matrix_units;
  bool turns_images;  // before and after convolutions
};

// Without a device's figure the rate is tiny rather than zero, so that times stay finite.
double Positive(double value) { return std::max(value, 1.0); }

Rates RatesOf(const GpuType& gpu, const RunSpec& run) {
  constexpr double kGflopsToFlopsPerUs = 1e3;  // 10^9 / 10^6
  const auto plain = static_cast<double>(gpu.fp32_gflops);
  const double convolution = MatrixPeakGflops(gpu, OfConvolutions(run.precision));
  const double matrix = MatrixPeakGflops(gpu, run.precision);
  const double kepler = gpu.compute_capability / 10 == kKeplerMajor ? kKeplerFraction : 1;
  constexpr double kTf32Cost = 2;  // of a half-precision product
  const auto product_rate = [&gpu, plain, kepler](double peak, Precision precision) {
    const bool on_units = peak > plain;
    const double cost = IsAmp(precision) || IsHalf(precision) ? 1 : kTf32Cost;
    return Positive(peak) * SustainedShare(gpu, peak, on_units, cost) * kGflopsToFlopsPerUs * kProductFraction *
           (on_units ? 1 : kepler);
  };
  const bool units = convolution > plain;
  return {.convolution_flops_per_us = product_rate(convolution, OfConvolutions(run.precision)),
          .matrix_flops_per_us = product_rate(matrix, run.precision),
          .plain_flops_per_us = Positive(plain) * kGflopsToFlopsPerUs * kPlainFraction * kepler,
          .bytes_per_us = Positive(static_cast<double>(gpu.mem_bandwidth_mb_s)) * kBandwidthFraction,
          .sms = Positive(static_cast<double>(gpu.sm_count)),
          .convolutions_on_matrix_units = units,
          .products_on_matrix_units = matrix > plain,
          .turns_images = units && run.layout == Layout::kNchw};
}

// Time of [batch, m, k] x [batch, k, n]: whole tiles in whole waves over the SMs, by the tile that suits best.
double ProductUs(double batch, double m, double n, double k, double flops_per_us, double sms) {
  double best = HUGE_VAL;
  for (const Tile& tile : kTiles) {
    double tiles = batch * std::ceil(m / tile.rows) * std::ceil(n / tile.columns);
    double depth = k;
    if (tiles < sms && k > kSplitDepth) {
      const double parts = std::min(std::ceil(2 * sms / tiles), std::ceil(k / kLeastDepth));
      tiles *= parts;
      depth /= parts;
    }
    // The last wave is seldom waited for in full: other blocks of the kernel, or the next kernel, share the SMs.
    const double exact = tiles / sms;
    const double waves = (std::ceil(exact) + std::max(exact, 1.0)) / 2;
    best = std::min(best, waves * sms * tile.rows * tile.columns * 2 * (depth / tile.share + kPrologue) / flops_per_us);
  }
  return best;
}

bool IsConvolution(KernelKind kind) {
  return kind == KernelKind::kConvolution || kind == KernelKind::kPointwiseConvolution ||
         kind == KernelKind::kGroupedConvolution;
}

struct Part {
  double us = 0;
  Limit limit = Limit::kLaunch;
  double parallelism = 1;
  size_t of = kLaunchPart;  // position in RooflineTerms::part_us
  double layout_us = 0;     // besides
};

// What a kernel of few blocks reaches of a device that so many blocks fill; one block at least.
double Filled(double blocks, double full) { return std::clamp(blocks / full, 1 / full, 1.0); }

Part TimeOf(const PassCost& work, double product_us, const Rates& rates) {
  if (work.kernels <= 0) return {};
  const double compute_share = Filled(work.blocks, rates.sms * kBlocksPerSm);
  const double bandwidth_share = Filled(work.blocks, rates.sms * kBlocksForBandwidth);
  const double compute = product_us + work.flops_other / rates.plain_flops_per_us / compute_share;
  const double bandwidth = work.bytes / rates.bytes_per_us / bandwidth_share;
  const double launch = std::max(work.kernels * kShortestKernelUs, work.serial_reads * kReadUs);
  Part part{.us = std::max({compute, bandwidth, launch}), .parallelism = compute_share};
  if (compute >= bandwidth && compute > launch) part.limit = Limit::kCompute;
  if (bandwidth > compute && bandwidth > launch) part.limit = Limit::kBandwidth;
  return part;
}

// Products of an operator whose shape is not known, or which is no single product, run at the rate of small tiles.
double LooseUs(double flops, double blocks, double flops_per_us, const Rates& rates) {
  constexpr double kLooseShare = 0.6;
  return flops / (flops_per_us * kLooseShare) / Filled(blocks, rates.sms * kBlocksPerSm);
}

enum class Direction : uint8_t { kForward, kBackward };

double ProductsUs(const OpCost& op, Direction direction, const PassCost& work, const Rates& rates) {
  if (work.flops <= 0) return 0;
  if (op.kind == KernelKind::kDepthwiseConvolution) return work.flops / rates.plain_flops_per_us;
  const double rate = IsConvolution(op.kind) ? rates.convolution_flops_per_us : rates.matrix_flops_per_us;
  const ProductShape& p = op.product;
  const double each = 2 * p.batch * p.m * p.n * p.k;
  double us = 0, flops = 0;
  const auto add = [&](bool runs, double m, double n, double k) {
    if (!runs || !(each > 0)) return;
    us += ProductUs(p.batch, m, n, k, rate, rates.sms);
    flops += each;
  };
  const bool forward = direction == Direction::kForward;
  add(forward, p.m, p.n, p.k);
  add(!forward && p.first_grad, p.m, p.k / p.taps, p.n * p.taps);
  add(!forward && p.second_grad, p.k, p.n, p.m);
  // Repeats, and further products of the operator, cost as much a FLOP.
  return flops > 0 ? us * work.flops / flops : LooseUs(work.flops, work.blocks, rate, rates);
}

size_t PositionOf(const OpCost& op, Direction direction, const Rates& rates) {
  if (op.kind == KernelKind::kDepthwiseConvolution && direction == Direction::kBackward)
    return static_cast<size_t>(KernelKind::kDepthwiseBackward);
  if (IsConvolution(op.kind) && !rates.convolutions_on_matrix_units) return kPlainConvolutionPart;
  const bool product =
      op.kind == KernelKind::kMatmul || op.kind == KernelKind::kAttention || op.kind == KernelKind::kFusedAttention;
  if (product && !rates.products_on_matrix_units) return kPlainMatmulPart;
  return static_cast<size_t>(op.kind);
}

Part PartOf(const OpCost& op, Direction direction, const Rates& rates) {
  PassCost work = direction == Direction::kForward ? op.forward : op.backward;
  // An operator of unknown shape is not taken to be a small one: its few known bytes move at the full rate.
  if (!op.known) work.blocks = rates.sms * kBlocksPerSm;
  Part part = TimeOf(work, ProductsUs(op, direction, work, rates), rates);
  if (part.limit != Limit::kLaunch) part.of = PositionOf(op, direction, rates);
  if (IsConvolution(op.kind) && rates.turns_images) part.layout_us = kLayoutShare * work.bytes / rates.bytes_per_us;
  return part;
}

Part ForwardOf(const OpCost& op, const Rates& rates) { return PartOf(op, Direction::kForward, rates); }
Part BackwardOf(const OpCost& op, const Rates& rates) { return PartOf(op, Direction::kBackward, rates); }

struct Sum {
  double us = 0;
  double by_limit[3] = {};
  double parallelism_us = 0;
  std::array<double, kTimeParts> parts = {};

  void Add(const Part& part) {
    us += part.us + part.layout_us;
    by_limit[static_cast<size_t>(part.limit)] += part.us;
    by_limit[static_cast<size_t>(Limit::kBandwidth)] += part.layout_us;
    parallelism_us += part.us * part.parallelism + part.layout_us;
    parts[part.of] += part.us;
    parts[kLayoutPart] += part.layout_us;
  }
};

// Of the peak of half precision, the most that was measured: 87 % (A100, H100), 74 % of L40S and 78 % of Blackwell,
// which their power slows (aiconfigurator, stas00/ml-engineering). With less power the clock falls by less than the
// power: 81 % of A100 PCIe. GeForce boards clock above their data sheets: an RTX 4090 reaches 100 %
// (casys-kaist/LLMServingSim).
double BestShare(const GpuType& gpu, Precision precision) {
  constexpr double kFastest = 0.87, kOfAda = 0.74, kOfBlackwell = 0.78, kClockByPower = 0.47;
  const bool half = IsHalf(precision) || precision == Precision::kAmpFp16 || precision == Precision::kAmpBf16;
  if (!half || gpu.display_name.find("GeForce") != std::string::npos) return 1;
  const double sustained = SustainedShare(gpu);
  const int64_t chip = sustained < 1 ? gpu.compute_capability : 0;
  return std::min(chip == 89                   ? kOfAda
                  : chip == 100 || chip == 103 ? kOfBlackwell
                                               : kFastest,
                  std::pow(sustained, kClockByPower));
}

}  // namespace

double MatrixPeakGflops(const GpuType& gpu, Precision precision) {
  int64_t peak = 0;
  if (precision == Precision::kTf32) peak = gpu.tf32_gflops;
  if (precision == Precision::kAmpFp16 || precision == Precision::kFp16) peak = gpu.fp16_gflops;
  if (precision == Precision::kAmpBf16 || precision == Precision::kBf16) peak = gpu.bf16_gflops;
  return static_cast<double>(peak > 0 ? peak : gpu.fp32_gflops);
}

RooflineTerms RooflineOf(const StepCost& cost, const RunSpec& run, const GpuType& gpu) {
  const Rates rates = RatesOf(gpu, run);
  Sum sum;
  double operators_us = 0, squares = 0;
  for (size_t i = 0; i < cost.ops.size(); ++i) {
    const Part forward = ForwardOf(cost.ops[i], rates);
    const Part backward = BackwardOf(cost.ops[i], rates);
    sum.Add(forward);
    if (cost.RunsTwice(i)) sum.Add(forward);
    sum.Add(backward);
    const double operator_us = forward.us + forward.layout_us + backward.us + backward.layout_us;
    operators_us += operator_us;
    squares += operator_us * operator_us;
  }
  sum.Add(ForwardOf(cost.loss, rates));
  sum.Add(BackwardOf(cost.loss, rates));
  Part optimizer = TimeOf({.flops_other = cost.optimizer.flops,
                           .bytes = cost.optimizer.bytes,
                           .kernels = cost.optimizer.kernels,
                           .blocks = rates.sms * kBlocksPerSm},
                          0, rates);
  if (optimizer.limit != Limit::kLaunch) optimizer.of = static_cast<size_t>(KernelKind::kOther);
  sum.Add(optimizer);

  RooflineTerms terms{.device_time_us = sum.us, .part_us = sum.parts};
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

double FloorUs(const StepCost& cost, const RunSpec& run, const GpuType& gpu) {
  constexpr double kGflopsToFlopsPerUs = 1e3;
  // cuDNN computes convolutions in plain float32 by Winograd's F(2x2, 3x3), with so many times fewer multiplications.
  constexpr double kWinograd = 2.25;
  const double bytes_per_us = Positive(static_cast<double>(gpu.mem_bandwidth_mb_s));
  constexpr double kBytesPerKib = 1024;
  const double cache_bytes = static_cast<double>(gpu.l2_kib) * kBytesPerKib;
  const double convolution = Positive(MatrixPeakGflops(gpu, OfConvolutions(run.precision))) * kGflopsToFlopsPerUs;
  const double plain_rate = Positive(static_cast<double>(gpu.fp32_gflops)) * kGflopsToFlopsPerUs;
  const double matrix =
      Positive(MatrixPeakGflops(gpu, run.precision)) * kGflopsToFlopsPerUs * BestShare(gpu, run.precision);
  const bool plain = convolution <= plain_rate, anew = cost.given_bytes > cache_bytes;
  double us = 0;
  for (size_t i = 0; i < cost.ops.size(); ++i) {
    const OpCost& op = cost.ops[i];
    us += (op.forward.flops_other * (cost.RunsTwice(i) ? 2 : 1) + op.backward.flops_other) / plain_rate;
    if (op.forward.flops <= 0) continue;  // how others move their bytes is less certain
    const bool winograd = plain && op.op_class == OpClass::kConvolution && op.product.taps > 1;
    const double peak = op.op_class == OpClass::kConvolution ? convolution * (winograd ? kWinograd : 1) : matrix;
    const auto least = [&](const PassCost& pass) {
      return std::max(pass.flops / peak, (pass.bytes - cache_bytes * pass.kernels) / bytes_per_us);
    };
    const double given_us = anew ? std::min(op.given_bytes, op.forward.bytes) / bytes_per_us : 0;
    us += std::max(least(op.forward), given_us) * (cost.RunsTwice(i) ? 2 : 1) + least(op.backward);
  }
  return us + (cost.loss.forward.flops_other + cost.loss.backward.flops_other + cost.optimizer.flops) / plain_rate;
}

std::vector<OpTime> RooflineOps(const StepCost& cost, const RunSpec& run, const GpuType& gpu) {
  const Rates rates = RatesOf(gpu, run);
  std::vector<OpTime> times;
  times.reserve(cost.ops.size());
  for (const OpCost& op : cost.ops) {
    const Part forward = ForwardOf(op, rates), backward = BackwardOf(op, rates);
    const Part& larger = forward.us >= backward.us ? forward : backward;
    times.push_back({.forward_us = forward.us + forward.layout_us,
                     .backward_us = backward.us + backward.layout_us,
                     .limit = larger.limit,
                     .parallelism = larger.us > 0 ? larger.parallelism : 0});
  }
  return times;
}

}  // namespace horus
