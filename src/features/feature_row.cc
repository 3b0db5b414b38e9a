// SPDX-License-Identifier: Apache-2.0
// The columns of the feature row, name, unit, definition and how the value is found, in one table each; rows, the
// schema's hash and its page are made from them.
#include "features/feature_row.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/hash.h"
#include "base/units.h"
#include "base/vectors.h"
#include "device/gpu_type.h"

namespace horus {
namespace {

// Quantiles of an amount over the operators.
struct Spread {
  double p10 = 0, p50 = 0, p90 = 0, max = 0;
};

struct JobSource {
  const ShapedGraph& shaped;
  const StepCost& cost;
  const StepMemory& memory;
  const RunSpec& run;
  Spread flops, bytes, intensity;
};
struct DeviceSource {
  const RooflineTerms& roofline;
  const StepMemory& memory;  // context included
  const GpuType& gpu;
};

template <typename Source>
struct Entry {
  FeatureColumn column;
  double (*value)(const Source&);
};

// How most values are found: a field of one of the sources.
template <auto kField>
constexpr auto kStep = [](const JobSource& s) { return static_cast<double>(s.cost.*kField); };
template <auto kField>
constexpr auto kTotal = [](const JobSource& s) { return static_cast<double>(s.cost.totals.*kField); };
template <auto kAmount>
constexpr auto kForward = [](const JobSource& s) { return s.cost.totals.forward.*kAmount; };
template <auto kAmount>
constexpr auto kBackward = [](const JobSource& s) { return s.cost.totals.backward.*kAmount; };
template <OpClass kClass>
constexpr auto kOpsOf =
    [](const JobSource& s) { return static_cast<double>(s.cost.by_class[static_cast<size_t>(kClass)].ops); };
template <OpClass kClass>
constexpr auto kFlopsOf =
    [](const JobSource& s) { return s.cost.by_class[static_cast<size_t>(kClass)].forward.AllFlops(); };
template <OpClass kClass>
constexpr auto kBytesOf = [](const JobSource& s) { return s.cost.by_class[static_cast<size_t>(kClass)].forward.bytes; };
template <auto kAmount, auto kQuantile>
constexpr auto kOver = [](const JobSource& s) { return s.*kAmount.*kQuantile; };
template <auto kField>
constexpr auto kMemory = [](const JobSource& s) { return static_cast<double>(s.memory.*kField); };
template <auto kField>
constexpr auto kRoofline = [](const DeviceSource& s) { return s.roofline.*kField; };
template <size_t kPart>
constexpr auto kPartUs = [](const DeviceSource& s) { return s.roofline.part_us[kPart]; };
template <auto kField>
constexpr auto kGpu = [](const DeviceSource& s) { return static_cast<double>(s.gpu.*kField); };

using enum OpClass;

// One column a class, and one a quantile.
#define HORUS_OF_CLASS(name, unit, what, Of, label, kClass) {{name label, unit, what label}, Of<kClass>}
#define HORUS_OF_CLASSES(name, unit, what, Of)                               \
  HORUS_OF_CLASS(name, unit, what, Of, "convolution", kConvolution),         \
      HORUS_OF_CLASS(name, unit, what, Of, "matmul", kMatmul),               \
      HORUS_OF_CLASS(name, unit, what, Of, "recurrent", kRecurrent),         \
      HORUS_OF_CLASS(name, unit, what, Of, "attention", kAttention),         \
      HORUS_OF_CLASS(name, unit, what, Of, "normalisation", kNormalisation), \
      HORUS_OF_CLASS(name, unit, what, Of, "activation", kActivation),       \
      HORUS_OF_CLASS(name, unit, what, Of, "elementwise", kElementwise),     \
      HORUS_OF_CLASS(name, unit, what, Of, "reduction", kReduction),         \
      HORUS_OF_CLASS(name, unit, what, Of, "embedding", kEmbedding),         \
      HORUS_OF_CLASS(name, unit, what, Of, "pooling", kPooling),             \
      HORUS_OF_CLASS(name, unit, what, Of, "data_movement", kDataMovement),  \
      HORUS_OF_CLASS(name, unit, what, Of, "other", kOther)
#define HORUS_QUANTILE(name, unit, what, amount, words, quantile) \
  {{name #quantile, unit, words what}, kOver<&JobSource::amount, &Spread::quantile>}
#define HORUS_QUANTILES(name, unit, what, amount)                      \
  HORUS_QUANTILE(name, unit, what, amount, "10 % quantile ", p10),     \
      HORUS_QUANTILE(name, unit, what, amount, "median ", p50),        \
      HORUS_QUANTILE(name, unit, what, amount, "90 % quantile ", p90), \
      HORUS_QUANTILE(name, unit, what, amount, "largest ", max)

constexpr Entry<JobSource> kJobFeatureTable[] = {
    {{"horus_flops", "FLOP", "forward FLOPs as the author of Horus counts them (a convolution's multiply-add is 1)"},
     kTotal<&CostTotals::horus_flops>},
    {{"horus_parameters", "count", "trained parameters"}, kStep<&StepCost::parameters>},
    {{"horus_convs", "count", "convolutions"}, kStep<&StepCost::horus_convs>},
    {{"horus_linears", "count", "linear layers, embeddings and attention products; 2 a step of a recurrent layer"},
     kStep<&StepCost::horus_linears>},
    {{"horus_activations", "count", "activations; 5 a step of an LSTM, 3 of a GRU, 1 of an RNN"},
     kStep<&StepCost::horus_activations>},
    {{"horus_others", "count", "all other operators that run a kernel"}, kStep<&StepCost::horus_others>},
    {{"batch", "samples", "samples per GPU and step"},
     [](const JobSource& s) { return static_cast<double>(s.shaped.batch); }},
    {{"training", "0/1", "1 = training, 0 = inference"},
     [](const JobSource& s) { return s.run.mode == RunMode::kTraining ? 1.0 : 0.0; }},
    {{"precision", "code", "0 fp32, 1 tf32, 2 amp, 3 amp-bf16, 4 fp16, 5 bf16, 6 fp32-ieee"},
     [](const JobSource& s) { return static_cast<double>(s.run.precision); }},
    {{"half_products", "0/1", "1 = matrix products take 16-bit inputs"},
     [](const JobSource& s) { return IsAmp(s.run.precision) || IsHalf(s.run.precision) ? 1.0 : 0.0; }},
    {{"optimizer", "code",
      "0 sgd, 1 momentum, 2 adam, 3 adamw, 4 adafactor, 5 adam-8bit, 6 rmsprop, 7 adagrad; -1 for inference"},
     [](const JobSource& s) {
       if (s.run.mode != RunMode::kTraining) return -1.0;
       const Optimizer optimizer = s.run.optimizer;  // no rows of bf16 states: to trees they are AdamW's
       return static_cast<double>(optimizer == Optimizer::kAdamWBf16 ? Optimizer::kAdamW : optimizer);
     }},
    {{"framework", "code", "0 PyTorch from 2.0, 1 PyTorch before, 2 TensorFlow, 3 PyTorch compiled"},
     [](const JobSource& s) {
       // Of engines there are no rows of whole steps: what trees know of memory is that of compiled code.
       return static_cast<double>(std::min(s.run.framework, Framework::kPyTorchCompiled));
     }},
    {{"nhwc", "0/1", "1 = images lie channels last in memory"},
     [](const JobSource& s) { return s.run.layout == Layout::kNhwc ? 1.0 : 0.0; }},
    {{"forward_flops", "FLOP",
      "convolution, matrix, recurrent and attention products of the forward pass (a multiply-add is 2)"},
     kForward<&PassCost::flops>},
    {{"forward_flops_other", "FLOP", "all other FLOPs of the forward pass"}, kForward<&PassCost::flops_other>},
    {{"backward_flops", "FLOP", "products of the backward pass"}, kBackward<&PassCost::flops>},
    {{"backward_flops_other", "FLOP", "all other FLOPs of the backward pass"}, kBackward<&PassCost::flops_other>},
    {{"forward_bytes", "bytes", "read and written by the forward pass"}, kForward<&PassCost::bytes>},
    {{"backward_bytes", "bytes", "read and written by the backward pass"}, kBackward<&PassCost::bytes>},
    {{"step_flops", "FLOP", "all FLOPs of a step: forward, backward, loss, optimiser"},
     [](const JobSource& s) { return s.cost.StepFlops(); }},
    {{"step_bytes", "bytes", "all bytes of a step"}, [](const JobSource& s) { return s.cost.StepBytes(); }},
    {{"step_intensity", "FLOP/byte", "step_flops / step_bytes"},
     [](const JobSource& s) { return s.cost.StepBytes() > 0 ? s.cost.StepFlops() / s.cost.StepBytes() : 0.0; }},
    {{"forward_kernels", "count", "kernels of the forward pass"}, kForward<&PassCost::kernels>},
    {{"step_kernels", "count", "kernels of a step"}, [](const JobSource& s) { return s.cost.StepKernels(); }},
    {{"library_kernels", "count",
      "of step_kernels, those that one library call launches beyond its first (recurrent layers)"},
     kTotal<&CostTotals::library_kernels>},
    {{"optimizer_bytes", "bytes", "read and written by the optimiser"},
     [](const JobSource& s) { return s.cost.optimizer.bytes; }},
    {{"parameter_tensors", "count", "trained tensors"}, kStep<&StepCost::parameter_tensors>},
    {{"activation_elements", "count", "elements of all operator outputs"}, kStep<&StepCost::activations>},
    {{"ops", "count", "operators that run a kernel"},
     [](const JobSource& s) { return static_cast<double>(s.cost.coverage.ops); }},
    {{"known_flops_share", "0-1", "estimated share of the forward FLOPs in operators of known cost"},
     [](const JobSource& s) { return s.cost.coverage.flops_share; }},
    {{"depth_ops", "count", "longest chain of operators that run a kernel"}, kStep<&StepCost::critical_path_ops>},
    {{"depth_flops", "FLOP", "most forward FLOPs along one chain"}, kStep<&StepCost::critical_path_flops>},
    {{"width_ops", "count", "most operators at one depth"}, kStep<&StepCost::max_width>},
    HORUS_OF_CLASSES("ops_", "count", "operators of class ", kOpsOf),
    HORUS_OF_CLASSES("flops_", "FLOP", "forward FLOPs, products and others, of class ", kFlopsOf),
    HORUS_OF_CLASSES("bytes_", "bytes", "forward bytes of class ", kBytesOf),
    HORUS_QUANTILES("op_flops_", "FLOP", "over operators of forward FLOPs", flops),
    HORUS_QUANTILES("op_bytes_", "bytes", "over operators of forward bytes", bytes),
    HORUS_QUANTILES("op_intensity_", "FLOP/byte", "over operators of forward FLOPs per byte", intensity),
    {{"mem_weights", "bytes", "parameters and buffers"}, kMemory<&StepMemory::weights>},
    {{"mem_gradients", "bytes", "gradients of parameters"}, kMemory<&StepMemory::gradients>},
    {{"mem_optimizer", "bytes", "optimiser state"}, kMemory<&StepMemory::optimizer>},
    {{"mem_master_weights", "bytes", "master or half copies of weights"}, kMemory<&StepMemory::master_weights>},
    {{"mem_inputs", "bytes", "the batch"}, kMemory<&StepMemory::inputs>},
    {{"mem_activations", "bytes", "saved for backward, at the peak"}, kMemory<&StepMemory::activations>},
    {{"mem_transient", "bytes", "temporaries and activation gradients, at the peak"}, kMemory<&StepMemory::transient>},
    {{"mem_workspace", "bytes", "library scratch, at the peak"}, kMemory<&StepMemory::workspace>},
    {{"mem_loaded_kernels", "bytes", "code that the libraries load"}, kMemory<&StepMemory::loaded_kernels>},
    {{"mem_allocator_slack", "bytes", "rounding and fragments of the caching allocator"},
     kMemory<&StepMemory::allocator_slack>},
    {{"mem_saved_total", "bytes", "saved for backward at the end of the forward pass"},
     kMemory<&StepMemory::saved_total>},
    {{"mem_largest_scratch", "bytes", "input and output of the largest convolution"},
     kMemory<&StepMemory::largest_scratch>},
    {{"mem_decomposed", "bytes", "saved by operators that may be parts of one in the framework"},
     kMemory<&StepMemory::decomposed>},
    {{"mem_horus", "bytes", "the Horus memory formula"}, kMemory<&StepMemory::horus>},
};

constexpr Entry<DeviceSource> kDeviceFeatureTable[] = {
    {{"roofline_step_time_us", "us", "roofline time of a step"}, kRoofline<&RooflineTerms::step_time_us>},
    {{"roofline_device_time_us", "us", "sum of the kernels' durations"}, kRoofline<&RooflineTerms::device_time_us>},
    {{"roofline_host_time_us", "us", "time that the host needs to dispatch the step"},
     kRoofline<&RooflineTerms::host_time_us>},
    {{"roofline_copy_us", "us", "time to copy the batch to the GPU"}, kRoofline<&RooflineTerms::copy_us>},
    {{"roofline_gpu_util_pct", "per cent", "roofline GPU-busy percentage"}, kRoofline<&RooflineTerms::gpu_util_pct>},
    {{"roofline_mem_bw_util_pct", "per cent", "share of the memory bandwidth over the step"},
     kRoofline<&RooflineTerms::mem_bw_util_pct>},
    {{"roofline_compute_share", "0-1", "share of device time in compute-bound operators"},
     kRoofline<&RooflineTerms::compute_share>},
    {{"roofline_bandwidth_share", "0-1", "share of device time in bandwidth-bound operators"},
     kRoofline<&RooflineTerms::bandwidth_share>},
    {{"roofline_launch_share", "0-1", "share of device time in launch-bound operators"},
     kRoofline<&RooflineTerms::launch_share>},
    {{"roofline_mean_parallelism", "0-1", "how far thread blocks fill the GPU, weighted by time"},
     kRoofline<&RooflineTerms::mean_parallelism>},
    {{"time_matmul_us", "us", "roofline device time: matrix products on matrix units"}, kPartUs<0>},
    {{"time_attention_us", "us", "roofline device time: products of two activations"}, kPartUs<1>},
    {{"time_fused_attention_us", "us", "roofline device time: attention as one kernel"}, kPartUs<2>},
    {{"time_conv_us", "us", "roofline device time: convolutions on matrix units"}, kPartUs<3>},
    {{"time_conv_pointwise_us", "us", "roofline device time: those with filters of one element"}, kPartUs<4>},
    {{"time_conv_grouped_us", "us", "roofline device time: those of groups"}, kPartUs<5>},
    {{"time_conv_depthwise_us", "us", "roofline device time: those of at most 4 channels a group, forward"},
     kPartUs<6>},
    {{"time_conv_depthwise_backward_us", "us", "roofline device time: the same, backward"}, kPartUs<7>},
    {{"time_recurrent_us", "us", "roofline device time: recurrent layers"}, kPartUs<8>},
    {{"time_batch_norm_us", "us", "roofline device time: batch normalisation"}, kPartUs<9>},
    {{"time_norm_us", "us", "roofline device time: other normalisation"}, kPartUs<10>},
    {{"time_softmax_us", "us", "roofline device time: softmax"}, kPartUs<11>},
    {{"time_activation_us", "us", "roofline device time: activations"}, kPartUs<12>},
    {{"time_elementwise_us", "us", "roofline device time: arithmetic, element by element"}, kPartUs<13>},
    {{"time_reduction_us", "us", "roofline device time: reductions"}, kPartUs<14>},
    {{"time_pooling_us", "us", "roofline device time: pooling"}, kPartUs<15>},
    {{"time_embedding_us", "us", "roofline device time: embeddings"}, kPartUs<16>},
    {{"time_data_movement_us", "us", "roofline device time: data movement"}, kPartUs<17>},
    {{"time_other_us", "us", "roofline device time: loss, optimiser and the rest"}, kPartUs<18>},
    {{"time_plain_matmul_us", "us", "roofline device time: matrix products without matrix units"}, kPartUs<19>},
    {{"time_plain_conv_us", "us", "roofline device time: convolutions without matrix units"}, kPartUs<20>},
    {{"time_layout_us", "us", "roofline device time: turning images into the layout of matrix units"}, kPartUs<21>},
    {{"time_launch_us", "us", "roofline device time: kernels bound by their launch"}, kPartUs<22>},
    {{"mem_peak", "bytes", "peak memory of the step, context included"},
     [](const DeviceSource& s) { return static_cast<double>(s.memory.Peak()); }},
    {{"mem_peak_share", "0-1", "mem_peak over the memory of the GPU"},
     [](const DeviceSource& s) {
       return s.gpu.mem_mib > 0
                  ? static_cast<double>(s.memory.Peak()) / (static_cast<double>(s.gpu.mem_mib) * kBytesPerMib)
                  : 0.0;
     }},
    {{"gpu_compute_capability", "code", "major x 10 + minor"}, kGpu<&GpuType::compute_capability>},
    {{"gpu_sm_count", "count", "streaming multiprocessors"}, kGpu<&GpuType::sm_count>},
    {{"gpu_boost_clock_mhz", "MHz", "boost clock"}, kGpu<&GpuType::boost_clock_mhz>},
    {{"gpu_fp32_gflops", "GFLOP/s", "peak, plain float32"}, kGpu<&GpuType::fp32_gflops>},
    {{"gpu_tf32_gflops", "GFLOP/s", "peak, TF32 matrix units; 0 = none"}, kGpu<&GpuType::tf32_gflops>},
    {{"gpu_fp16_gflops", "GFLOP/s", "peak, float16 products"}, kGpu<&GpuType::fp16_gflops>},
    {{"gpu_bf16_gflops", "GFLOP/s", "peak, bfloat16 products; 0 = none"}, kGpu<&GpuType::bf16_gflops>},
    {{"gpu_mem_mib", "MiB", "memory"}, kGpu<&GpuType::mem_mib>},
    {{"gpu_mem_bandwidth_mb_s", "MB/s", "memory bandwidth"}, kGpu<&GpuType::mem_bandwidth_mb_s>},
    {{"gpu_l2_kib", "KiB", "second-level cache"}, kGpu<&GpuType::l2_kib>},
    {{"gpu_tdp_w", "W", "board power; 0 = unknown"}, kGpu<&GpuType::tdp_w>},
    {{"gpu_context_mib", "MiB", "CUDA context"}, kGpu<&GpuType::context_mib>},
};

template <size_t N, typename Source>
constexpr std::array<FeatureColumn, N> ColumnsOf(const Entry<Source> (&table)[N]) {
  std::array<FeatureColumn, N> columns;
  for (size_t i = 0; i < N; ++i) columns[i] = table[i].column;
  return columns;
}

constexpr auto kJobColumns = ColumnsOf(kJobFeatureTable);
constexpr auto kDeviceColumns = ColumnsOf(kDeviceFeatureTable);

// Nearest-rank quantiles of the values.
Spread SpreadOf(std::vector<double>& values) {
  Spread q;
  if (values.empty()) return q;
  std::ranges::sort(values);
  const auto at = [&values](double share) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
    return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
  };
  q.p10 = at(0.10);
  q.p50 = at(0.50);
  q.p90 = at(0.90);
  q.max = values.back();
  return q;
}

void AppendTable(std::string& page, std::span<const FeatureColumn> columns, size_t& index) {
  page += "\n| # | column | unit | definition |\n|---|---|---|---|\n";
  for (const FeatureColumn& column : columns)
    AppendFormatted(&page, "| %d | `%s` | %s | %s |\n", index++, column.name, column.unit, column.definition);
}

}  // namespace

std::span<const FeatureColumn> JobFeatureColumns() { return kJobColumns; }
std::span<const FeatureColumn> DeviceFeatureColumns() { return kDeviceColumns; }
size_t FeatureCount() { return kJobColumns.size() + kDeviceColumns.size(); }

std::optional<size_t> FindFeature(std::string_view name) {
  size_t index = 0;
  for (const std::span<const FeatureColumn> columns : {JobFeatureColumns(), DeviceFeatureColumns()}) {
    for (const FeatureColumn& column : columns) {
      if (column.name == name) return index;
      ++index;
    }
  }
  return std::nullopt;
}

std::string_view TimePartName(size_t part) {
  constexpr std::string_view kBefore = "time_", kAfter = "_us";
  const auto first = std::ranges::find_if(
      kDeviceColumns, [&](const FeatureColumn& column) { return column.name.starts_with(kBefore); });
  std::string_view name = first[static_cast<ptrdiff_t>(part)].name.substr(kBefore.size());
  name.remove_suffix(kAfter.size());
  return name;
}

uint64_t FeatureSchemaHash() {
  uint64_t hash = CombineHash(kFeatureSchemaVersion, kJobColumns.size());
  for (const std::span<const FeatureColumn> columns : {JobFeatureColumns(), DeviceFeatureColumns()}) {
    for (const FeatureColumn& column : columns) {
      for (const std::string_view text : {column.name, column.unit, column.definition})
        hash = CombineHash(hash, Hash64(text));
    }
  }
  return hash;
}

std::vector<float> JobFeatures(const ShapedGraph& shaped, const StepCost& cost, const StepMemory& memory,
                               const RunSpec& run) {
  std::vector<double> flops, bytes, intensity;
  for (size_t i = 0; i < cost.ops.size(); ++i) {
    const OpCost& op = cost.ops[i];
    if (shaped.ops[i].plumbing || op.forward.kernels <= 0) continue;
    flops.push_back(op.forward.AllFlops());
    bytes.push_back(op.forward.bytes);
    if (op.forward.bytes > 0) intensity.push_back(flops.back() / op.forward.bytes);
  }
  const JobSource source{shaped, cost, memory, run, SpreadOf(flops), SpreadOf(bytes), SpreadOf(intensity)};
  return VectorOf<float>(kJobFeatureTable,
                         [&](const Entry<JobSource>& entry) { return static_cast<float>(entry.value(source)); });
}

void DeviceFeatures(const RooflineTerms& roofline, const StepMemory& memory, const GpuType& gpu, std::span<float> out) {
  const DeviceSource source{roofline, memory, gpu};
  const size_t count = std::min(out.size(), kDeviceColumns.size());
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(kDeviceFeatureTable[i].value(source));
}

std::string FeatureSchemaMarkdown() {
  std::string page;
  AppendFormatted(&page, "\nSchema version %d, hash `%016x`, %d columns, float32 in this order.\n",
                  kFeatureSchemaVersion, FeatureSchemaHash(), FeatureCount());
  size_t index = 0;
  page += "\n### Columns of the job\n";
  AppendTable(page, JobFeatureColumns(), index);
  page += "\n### Columns of the job on a GPU type\n";
  AppendTable(page, DeviceFeatureColumns(), index);
  return page;
}

}  // namespace horus
