// SPDX-License-Identifier: Apache-2.0
// What engines and servers are told on their command lines, and whether they run on a GPU type.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/units.h"
#include "graph/from_config.h"
#include "predict/service.h"

namespace horus {
namespace {

size_t EngineAt(Framework framework) { return static_cast<size_t>(EngineOf(framework).value_or(ServingEngine::kVllm)); }

constexpr int64_t kLargeGpuMib = 70 * 1024;

}  // namespace

double ChunkTokens(const GpuType& gpu) {
  const bool large = gpu.mem_mib >= kLargeGpuMib && gpu.name.find("a100") == std::string::npos;
  return large ? kChunkTokens : kSmallChunkTokens;
}

// What the engine would take otherwise: one GPU, and the numbers of the checkpoint. Only fp8 is made of a checkpoint in
// 16 bits as it is loaded; other types, and fp8 in TensorRT-LLM, are those of a checkpoint.
// SGLang with its tree of prefixes keeps several states a request (MAMBA_CACHE_SIZE_MAX_RUNNING_REQUESTS_RATIO).
std::string TypeArguments(const Graph& graph, const RunSpec& run, int64_t gpus, bool has_states) {
  struct {
    const char *gpus, *fp16, *weights, *cache;
  } constexpr kWords[kEngines] = {
      {" --tensor-parallel-size ", " --dtype float16", " --quantization fp8", " --kv-cache-dtype fp8"},
      {" --tp_size ", " dtype=float16", "", " kv_cache_config.dtype=fp8"},
      {" --tp-size ", " --dtype float16", " --quantization fp8", " --kv-cache-dtype fp8_e4m3"}};
  const auto& words = kWords[EngineAt(run.framework)];
  std::string text = gpus > 1 ? words.gpus + std::to_string(gpus) : "";
  if (ComputeTypeOf(graph) == "bfloat16" && run.precision == Precision::kFp16) text += words.fp16;
  if (SaidOf(graph, "weights") == "fp8") text += words.weights;
  if (has_states && run.framework == Framework::kSglang) text += " --disable-radix-cache";
  return SaidOf(graph, "cache") == "fp8" ? text + words.cache : text;
}

std::string EngineArguments(Framework engine, const Service& service, const GpuType& gpu, int64_t mem_mib) {
  const auto whole = [](double value) { return static_cast<int64_t>(std::llround(value)); };
  const int64_t requests = whole(service.most_running), longest = whole(service.longest),
                cached = whole(service.cache_tokens);
  if (service.longest == 0)
    return absl::StrFormat("max_batch_size: %d dynamic_batching { } (Triton), --max-batch-requests %d (TEI)", requests,
                           requests);
  switch (engine) {
    case Framework::kSglang:
      return absl::StrFormat("--max-total-tokens %d --max-running-requests %d --context-length %d%s", cached, requests,
                             longest, service.type_arguments);
    case Framework::kTensorRtLlm:  // words with = are of its file of options
      return absl::StrFormat("--max_batch_size %d --max_seq_len %d kv_cache_config.max_tokens=%d%s", requests, longest,
                             cached, service.type_arguments);
    default:
      return absl::StrFormat(
          "--gpu-memory-utilization %.4f --kv-cache-memory-bytes %d --max-num-seqs %d --max-model-len %d "
          "--max-num-batched-tokens %d%s",
          std::ceil(1e4 * service.memory_mib() / static_cast<double>(std::max<int64_t>(1, mem_mib))) / 1e4,
          whole(service.cache_mib * static_cast<double>(kBytesPerMib)), requests, longest, whole(ChunkTokens(gpu)),
          service.type_arguments);
  }
}

// As vLLM and SGLang check when they start (SGLang then computes in fp16 by itself), and TensorRT-LLM's list of
// hardware.
std::string WhyNot(const RunSpec& run, const GpuType& gpu) {
  constexpr double kLeast[kEngines] = {7.0, 8.0, 7.5}, kBf16 = 8.0;
  const size_t engine = EngineAt(run.framework);
  const double has = static_cast<double>(gpu.compute_capability) / 10;
  if (has < kLeast[engine])
    return absl::StrFormat("%s needs compute capability %.1f, found %.1f", Name(run.framework), kLeast[engine], has);
  const bool too_new = run.framework == Framework::kVllm && run.precision == Precision::kBf16 && has < kBf16;
  return too_new ? "bf16 needs compute capability 8.0; fp16 does not" : "";
}

}  // namespace horus
