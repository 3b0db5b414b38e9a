// SPDX-License-Identifier: Apache-2.0
// Field by field between horus_run_spec, horus_step_cost and the features room.
#include "capi/graph_handles.h"

#include "capi/args.h"
#include "capi/structs.h"

namespace horus::capi {
namespace {

static_assert(Same(HORUS_MODE_TRAINING, RunMode::kTraining) && Same(HORUS_MODE_INFERENCE, RunMode::kInference));
static_assert(Same(HORUS_PRECISION_FP32, Precision::kFp32) && Same(HORUS_PRECISION_TF32, Precision::kTf32) &&
              Same(HORUS_PRECISION_AMP_FP16, Precision::kAmpFp16) &&
              Same(HORUS_PRECISION_AMP_BF16, Precision::kAmpBf16) && Same(HORUS_PRECISION_FP16, Precision::kFp16) &&
              Same(HORUS_PRECISION_BF16, Precision::kBf16) && Same(HORUS_PRECISION_FP32_IEEE, Precision::kFp32Ieee));
static_assert(Same(HORUS_OPTIMIZER_SGD, Optimizer::kSgd) && Same(HORUS_OPTIMIZER_MOMENTUM, Optimizer::kMomentum) &&
              Same(HORUS_OPTIMIZER_ADAM, Optimizer::kAdam) && Same(HORUS_OPTIMIZER_ADAMW, Optimizer::kAdamW) &&
              Same(HORUS_OPTIMIZER_ADAFACTOR, Optimizer::kAdafactor) &&
              Same(HORUS_OPTIMIZER_ADAM_8BIT, Optimizer::kAdam8Bit) &&
              Same(HORUS_OPTIMIZER_RMSPROP, Optimizer::kRmsprop) &&
              Same(HORUS_OPTIMIZER_ADAGRAD, Optimizer::kAdagrad) &&
              Same(HORUS_OPTIMIZER_ADAMW_BF16, Optimizer::kAdamWBf16));
static_assert(Same(HORUS_FRAMEWORK_PYTORCH, Framework::kPyTorch) &&
              Same(HORUS_FRAMEWORK_PYTORCH_1, Framework::kPyTorch1) &&
              Same(HORUS_FRAMEWORK_TENSORFLOW, Framework::kTensorFlow) &&
              Same(HORUS_FRAMEWORK_PYTORCH_COMPILED, Framework::kPyTorchCompiled) &&
              Same(HORUS_FRAMEWORK_VLLM, Framework::kVllm) &&
              Same(HORUS_FRAMEWORK_TENSORRT_LLM, Framework::kTensorRtLlm) &&
              Same(HORUS_FRAMEWORK_SGLANG, Framework::kSglang));
static_assert(Same(HORUS_LAYOUT_NCHW, Layout::kNchw) && Same(HORUS_LAYOUT_NHWC, Layout::kNhwc));

constexpr size_t kMaxFrozen = 4096;
constexpr size_t kMaxDims = 4096;  // far more named dimensions than any graph has

absl::Status CheckRange(const char* name, int32_t value, int32_t last) {
  if (value >= 0 && value <= last) return absl::OkStatus();
  return InvalidArgument("horus_run_spec: %s: expected 0 to %d, found %d", name, last, value);
}

}  // namespace

absl::StatusOr<RunSpec> RunFromC(const horus_run_spec* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_run_spec c, ReadOptionalStruct(given));
  HORUS_RETURN_IF_ERROR(CheckRange("mode", c.mode, HORUS_MODE_INFERENCE));
  HORUS_RETURN_IF_ERROR(CheckRange("precision", c.precision, HORUS_PRECISION_FP32_IEEE));
  HORUS_RETURN_IF_ERROR(CheckRange("optimizer", c.optimizer, HORUS_OPTIMIZER_ADAGRAD));
  HORUS_RETURN_IF_ERROR(CheckRange("framework", c.framework, HORUS_FRAMEWORK_SGLANG));
  HORUS_RETURN_IF_ERROR(CheckRange("layout", c.layout, HORUS_LAYOUT_NHWC));
  if (c.batch < 0) return InvalidArgument("horus_run_spec: batch: expected 0 or more samples, found %d", c.batch);
  if (c.dim_count > kMaxDims) {
    return InvalidArgument("horus_run_spec: dim_count: expected at most %d, found %d", kMaxDims, c.dim_count);
  }
  for (const auto& [name, value] :
       {std::pair("checkpoint_segments", c.checkpoint_segments), std::pair("data_parallel", c.data_parallel)}) {
    if (value < 0) return InvalidArgument("horus_run_spec: %s: expected 0 or more, found %d", name, value);
  }
  HORUS_RETURN_IF_ERROR(RequireColumns(c.dim_count, {{c.dim_names, "dim_names"}, {c.dim_sizes, "dim_sizes"}}));
  if (c.frozen_count > kMaxFrozen) {
    return InvalidArgument("horus_run_spec: frozen_count: expected at most %d, found %d", kMaxFrozen, c.frozen_count);
  }
  HORUS_RETURN_IF_ERROR(RequireColumn(c.frozen_prefixes, "frozen_prefixes", c.frozen_count));
  RunSpec run;
  run.mode = static_cast<RunMode>(c.mode);
  run.precision = static_cast<Precision>(c.precision);
  run.optimizer = static_cast<Optimizer>(c.optimizer);
  run.framework = static_cast<Framework>(c.framework);
  run.layout = static_cast<Layout>(c.layout);
  run.dims.batch = c.batch;
  run.checkpoint_segments = c.checkpoint_segments;
  run.data_parallel = std::max<int64_t>(1, c.data_parallel);
  for (size_t i = 0; i < c.frozen_count; ++i) {
    HORUS_ASSIGN_OR_RETURN(std::string prefix, ReadText(c.frozen_prefixes[i], Element("frozen_prefixes", i).c_str()));
    run.frozen.push_back(std::move(prefix));
  }
  for (size_t i = 0; i < c.dim_count; ++i) {
    HORUS_ASSIGN_OR_RETURN(std::string name, ReadText(c.dim_names[i], Element("dim_names", i).c_str()));
    run.dims.dims.emplace_back(std::move(name), c.dim_sizes[i]);
  }
  return run;
}

}  // namespace horus::capi
