// SPDX-License-Identifier: Apache-2.0
// horus/graph.h: reading graphs; run specifications as the features room takes them.

#include <span>

#include "capi/graph_handles.h"
#include "graph/architecture.h"
#include "graph/from_config.h"
#include "graph/reader.h"

namespace horus::capi {
namespace {

// A limit that was left 0 keeps its default; one beyond 64 signed bits is as good as none.
void SetLimit(uint64_t given, int64_t& limit) {
  if (given != 0) limit = static_cast<int64_t>(std::min<uint64_t>(given, std::numeric_limits<int64_t>::max()));
}

absl::StatusOr<ReadLimits> LimitsFromC(const horus_graph_limits* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_graph_limits c, ReadOptionalStruct(given));
  ReadLimits limits;
  SetLimit(c.max_nodes, limits.max_nodes);
  SetLimit(c.max_nesting, limits.max_nesting);
  SetLimit(c.max_held_bytes, limits.max_bytes_held);
  SetLimit(c.max_literal_elements, limits.max_literal_elements);
  SetLimit(c.max_name_bytes, limits.max_name_bytes);
  SetLimit(c.max_rank, limits.max_rank);
  return limits;
}

absl::StatusOr<ConfigOptions> ConfigFromC(const horus_config_options* given) {
  ConfigOptions options;
  if (given == nullptr) return options;
  HORUS_ASSIGN_OR_RETURN(const horus_config_options c, ReadStruct(given));
  if (c.training != 0 && c.training != 1) return InvalidArgument("training: expected 0 or 1, found %d", c.training);
  const auto or_one = [](int64_t value) { return value == 0 ? 1 : value; };
  options.training = c.training != 0;
  options.tensor_parallel = or_one(c.tensor_parallel);
  options.pipeline_parallel = or_one(c.pipeline_parallel);
  options.expert_parallel = or_one(c.expert_parallel);
  HORUS_COPY_FIELDS(c, options, pipeline_stage, lora_rank)
  if (c.weights != nullptr) options.weights = c.weights;
  if (c.cache != nullptr) options.cache = c.cache;
  if (c.lora_targets != nullptr) options.lora_targets = c.lora_targets;
  return options;
}

horus_graph_info InfoOf(const Graph& graph) {
  horus_graph_info info = HORUS_GRAPH_INFO_INIT;
  HORUS_COPY_FIELDS(graph, info, ir_version, opset, fingerprint, bytes_held)
  for (const GraphBody& body : graph.bodies) info.nodes += body.nodes.size();
  info.dims = graph.symbols.size();
  return info;
}

// ---- Field by field from horus_run_spec.

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

// A constant of the C ABI as the enumerator of that number.
template <typename Enum>
absl::Status ReadConstant(const char* name, int32_t value, int32_t last, Enum& out) {
  if (value < 0 || value > last)
    return InvalidArgument("horus_run_spec: %s: expected 0 to %d, found %d", name, last, value);
  out = static_cast<Enum>(value);
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string_view> KnownModels() {
  std::vector<std::string_view> names;
  for (size_t i = 0; !KnownModelName(i).empty(); ++i) names.push_back(KnownModelName(i));
  return names;
}

absl::StatusOr<RunSpec> RunFromC(const horus_run_spec* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_run_spec c, ReadOptionalStruct(given));
  RunSpec run;
  HORUS_RETURN_IF_ERROR(ReadConstant("mode", c.mode, HORUS_MODE_INFERENCE, run.mode));
  HORUS_RETURN_IF_ERROR(ReadConstant("precision", c.precision, HORUS_PRECISION_FP32_IEEE, run.precision));
  HORUS_RETURN_IF_ERROR(ReadConstant("optimizer", c.optimizer, HORUS_OPTIMIZER_ADAMW_BF16, run.optimizer));
  HORUS_RETURN_IF_ERROR(ReadConstant("framework", c.framework, HORUS_FRAMEWORK_SGLANG, run.framework));
  HORUS_RETURN_IF_ERROR(ReadConstant("layout", c.layout, HORUS_LAYOUT_NHWC, run.layout));
  if (c.batch < 0) return InvalidArgument("horus_run_spec: batch: expected 0 or more samples, found %d", c.batch);
  if (c.dim_count > kMaxDims)
    return InvalidArgument("horus_run_spec: dim_count: expected at most %d, found %d", kMaxDims, c.dim_count);
  for (const auto& [name, value] :
       {std::pair("checkpoint_segments", c.checkpoint_segments), std::pair("data_parallel", c.data_parallel)}) {
    if (value < 0) return InvalidArgument("horus_run_spec: %s: expected 0 or more, found %d", name, value);
  }
  HORUS_RETURN_IF_ERROR(RequireColumns(c.dim_count, {{c.dim_names, "dim_names"}, {c.dim_sizes, "dim_sizes"}}));
  if (c.frozen_count > kMaxFrozen)
    return InvalidArgument("horus_run_spec: frozen_count: expected at most %d, found %d", kMaxFrozen, c.frozen_count);
  HORUS_RETURN_IF_ERROR(RequireColumn(c.frozen_prefixes, "frozen_prefixes", c.frozen_count));
  run.dims.batch = c.batch;
  run.checkpoint_segments = c.checkpoint_segments;
  run.data_parallel = std::max<int64_t>(1, c.data_parallel);
  for (size_t i = 0; i < c.frozen_count; ++i)
    HORUS_SET_OR_RETURN(run.frozen.emplace_back(),
                        ReadText(c.frozen_prefixes[i], Element("frozen_prefixes", i).c_str()));
  for (size_t i = 0; i < c.dim_count; ++i) {
    HORUS_ASSIGN_OR_RETURN(std::string name, ReadText(c.dim_names[i], Element("dim_names", i).c_str()));
    run.dims.dims.emplace_back(std::move(name), c.dim_sizes[i]);
  }
  return run;
}

}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_graph_from_file(const char* path, const horus_graph_limits* limits, horus_graph** out,
                                   horus_error* error) {
  return Guard(error, {{path, "path"}, {out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const ReadLimits checked, LimitsFromC(limits));
    HORUS_ASSIGN_OR_RETURN(auto graph, ReadOnnxFile(path, checked));
    return Give(new horus_graph{std::move(graph)}, out);
  });
}

horus_status horus_graph_from_bytes(const void* bytes, size_t size, const horus_graph_limits* limits, horus_graph** out,
                                    horus_error* error) {
  return Guard(error, {{bytes, "bytes"}, {out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const ReadLimits checked, LimitsFromC(limits));
    const std::span<const uint8_t> given(static_cast<const uint8_t*>(bytes), size);
    HORUS_ASSIGN_OR_RETURN(auto graph, ReadOnnx(given, checked));
    return Give(new horus_graph{std::move(graph)}, out);
  });
}

horus_status horus_graph_from_config(const void* text, size_t size, const horus_config_options* options,
                                     horus_graph** out, horus_error* error) {
  return Guard(error, {{text, "text"}, {out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const ConfigOptions checked, ConfigFromC(options));
    const std::string_view given(static_cast<const char*>(text), size);
    HORUS_ASSIGN_OR_RETURN(auto graph, GraphFromConfig(given, checked));
    return Give(new horus_graph{std::move(graph)}, out);
  });
}

void horus_graph_free(horus_graph* graph) { delete graph; }

horus_status horus_graph_get_info(const horus_graph* graph, horus_graph_info* info, horus_error* error) {
  return Guard(error, {{graph, "graph"}}, [&] { return Answer(InfoOf(*graph->value), info); });
}

const char* horus_graph_dim_name(const horus_graph* graph, size_t index) {
  if (graph == nullptr || index >= graph->value->symbols.size()) return nullptr;
  return graph->value->symbols[index].c_str();
}
