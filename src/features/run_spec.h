// SPDX-License-Identifier: Apache-2.0
// RunSpec: how the graph is run — batch, precision, memory layout, optimiser, checkpointing, training or inference.
//
// Enters:  the user's choice.   Leaves: a plain value; part of a job's profile id.
// Units:   batch in samples per GPU and step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/shaped.h"

namespace horus {

enum class RunMode : uint8_t { kTraining, kInference };
// kFp32 is what frameworks do by default: convolutions in TF32 where the GPU has it, all else in float32. kTf32: matrix
// products too. kFp32Ieee: neither.
enum class Precision : uint8_t { kFp32, kTf32, kAmpFp16, kAmpBf16, kFp16, kBf16, kFp32Ieee };
enum class Optimizer : uint8_t {
  kSgd,
  kMomentum,
  kAdam,
  kAdamW,
  kAdafactor,
  kAdam8Bit,
  kRmsprop,
  kAdagrad,
  kAdamWBf16
};
// Who dispatches the kernels: decides how many there are.
enum class Framework : uint8_t {
  kPyTorch,          // 2.0 and later: parameters are updated in lists
  kPyTorch1,         // before 2.0: one parameter after the other
  kTensorFlow,       // one fused kernel a parameter
  kPyTorchCompiled,  // torch.compile: chains of pointwise operators and reductions are one kernel
  kVllm,             // inference engines: kernels of their own in CUDA graphs; inference only
  kTensorRtLlm,
  kSglang,
};
[[nodiscard]] constexpr bool IsEngine(Framework f) { return f >= Framework::kVllm; }
// torch.compile and engines write one kernel for a chain of pointwise operators.
[[nodiscard]] constexpr bool FusesChains(Framework f) { return f >= Framework::kPyTorchCompiled; }
// How images lie in memory: channels first, or last (channels_last of PyTorch).
enum class Layout : uint8_t { kNchw, kNhwc };

// Autocast: weights in float32, arithmetic in 16 bits. Half: weights in 16 bits too.
[[nodiscard]] constexpr bool IsAmp(Precision p) { return p == Precision::kAmpFp16 || p == Precision::kAmpBf16; }
[[nodiscard]] constexpr bool IsHalf(Precision p) { return p == Precision::kFp16 || p == Precision::kBf16; }
// Frameworks let convolutions use TF32 by default, and nothing else.
[[nodiscard]] constexpr Precision OfConvolutions(Precision p) { return p == Precision::kFp32 ? Precision::kTf32 : p; }

struct RunSpec {
  RunMode mode = RunMode::kTraining;
  Precision precision = Precision::kFp32;
  Optimizer optimizer = Optimizer::kSgd;
  Framework framework = Framework::kPyTorch;
  Layout layout = Layout::kNchw;
  DimBindings dims;  // dims.batch = samples per GPU and step
  // Activation checkpointing: forward runs in this many segments, of which all but the last keep only what later ones
  // read, and run again for backward (Chen et al., 2016, arXiv:1604.06174). 0 and 1: none. Training only.
  int64_t checkpoint_segments = 0;
  // Parameters whose names begin with one of these are not trained. Training only.
  std::vector<std::string> frozen;
  // Replicas that average their gradients, each on a GPU of its own. 1: none.
  int64_t data_parallel = 1;
  friend bool operator==(const RunSpec&, const RunSpec&) = default;
};

// Names as in files and on the command line: "training"/"inference"; "fp32", "tf32", "amp" (= fp16 autocast),
// "amp-bf16", "fp16", "bf16", "fp32-ieee"; "sgd", "momentum", "adam", "adamw", "adafactor", "adam-8bit", "rmsprop",
// "adagrad", "adamw-bf16"; "pytorch", "pytorch-1", "tensorflow", "pytorch-compiled", "vllm", "tensorrt-llm", "sglang";
// "nchw", "nhwc".
[[nodiscard]] std::string_view Name(RunMode mode);
[[nodiscard]] std::string_view Name(Precision precision);
[[nodiscard]] std::string_view Name(Optimizer optimizer);
[[nodiscard]] std::string_view Name(Framework framework);
[[nodiscard]] std::string_view Name(Layout layout);
[[nodiscard]] absl::StatusOr<RunMode> ParseRunMode(std::string_view name);
[[nodiscard]] absl::StatusOr<Precision> ParsePrecision(std::string_view name);
[[nodiscard]] absl::StatusOr<Optimizer> ParseOptimizer(std::string_view name);
[[nodiscard]] absl::StatusOr<Framework> ParseFramework(std::string_view name);
[[nodiscard]] absl::StatusOr<Layout> ParseLayout(std::string_view name);

// What a run computes in where nobody says: the type of a config.json, fp32 of all other graphs.
[[nodiscard]] Precision PrecisionOf(const Graph& graph);

}  // namespace horus
