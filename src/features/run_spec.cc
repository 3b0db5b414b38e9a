// SPDX-License-Identifier: Apache-2.0
// Names of run modes, precisions, optimisers, frameworks and layouts, both ways.
#include "features/run_spec.h"

#include <array>
#include <cstddef>
#include <span>

#include "base/status.h"
#include "base/text.h"
#include "graph/from_config.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, 2> kRunModes = {"training", "inference"};
constexpr std::array<std::string_view, 7> kPrecisions = {"fp32", "tf32", "amp",      "amp-bf16",
                                                         "fp16", "bf16", "fp32-ieee"};
constexpr std::array<std::string_view, 9> kOptimizers = {"sgd",       "momentum", "adam",    "adamw",     "adafactor",
                                                         "adam-8bit", "rmsprop",  "adagrad", "adamw-bf16"};
constexpr std::array<std::string_view, 7> kFrameworks = {"pytorch", "pytorch-1",    "tensorflow", "pytorch-compiled",
                                                         "vllm",    "tensorrt-llm", "sglang"};
constexpr std::array<std::string_view, 2> kLayouts = {"nchw", "nhwc"};

std::string_view NameIn(std::span<const std::string_view> names, auto value) {
  const auto index = static_cast<size_t>(value);
  return index < names.size() ? names[index] : "invalid";
}

template <typename Enum>
absl::StatusOr<Enum> ParseIn(std::span<const std::string_view> names, const char* what, std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return InvalidArgument("%s: %s", what, ExpectedOneOf(names, name));
}

}  // namespace

std::string_view Name(RunMode mode) { return NameIn(kRunModes, mode); }
std::string_view Name(Precision precision) { return NameIn(kPrecisions, precision); }
std::string_view Name(Optimizer optimizer) { return NameIn(kOptimizers, optimizer); }
std::string_view Name(Framework framework) { return NameIn(kFrameworks, framework); }
std::string_view Name(Layout layout) { return NameIn(kLayouts, layout); }

absl::StatusOr<RunMode> ParseRunMode(std::string_view name) { return ParseIn<RunMode>(kRunModes, "mode", name); }
absl::StatusOr<Precision> ParsePrecision(std::string_view name) {
  return ParseIn<Precision>(kPrecisions, "precision", name);
}
absl::StatusOr<Optimizer> ParseOptimizer(std::string_view name) {
  return ParseIn<Optimizer>(kOptimizers, "optimizer", name);
}
absl::StatusOr<Framework> ParseFramework(std::string_view name) {
  return ParseIn<Framework>(kFrameworks, "framework", name);
}
absl::StatusOr<Layout> ParseLayout(std::string_view name) { return ParseIn<Layout>(kLayouts, "layout", name); }

Precision PrecisionOf(const Graph& graph) {
  const std::string_view type = ComputeTypeOf(graph);
  if (type == DTypeName(DType::kBfloat16)) return Precision::kBf16;
  return type == DTypeName(DType::kFloat16) ? Precision::kFp16 : Precision::kFp32;
}

}  // namespace horus
