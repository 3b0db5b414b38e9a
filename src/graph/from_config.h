// SPDX-License-Identifier: Apache-2.0
// GraphFromConfig: the graph of a language model that a config.json describes, as if it had come from ONNX.
//
// Enters:  the text of a config.json or the name of a known model, and which part of it a GPU has.
// Leaves:  an immutable Graph; named dimensions batch, seq (new tokens of a sequence) and past (cached ones, else 0).
// Cost:    linear in layers: 8 operators each, more with experts.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace horus {

inline constexpr int64_t kMostParts = 4096;
inline constexpr int64_t kMostLoraRank = 65536;
inline constexpr std::string_view kLoraTargets[] = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                                    "gate_proj", "up_proj", "down_proj"};

struct ConfigOptions {
  bool training = false;  // logits of every token and no caches
  int64_t tensor_parallel = 1;
  int64_t pipeline_parallel = 1, pipeline_stage = 0;
  int64_t expert_parallel = 1;  // of the tensor-parallel GPUs: so many groups that share out whole experts
  int64_t lora_rank = 0;        // 0: no adapters
  std::string lora_targets;     // "all-linear", or some of kLoraTargets with commas between; "": those of attention
  std::string weights, cache;   // types in place of the file's; "": the file's
  friend bool operator==(const ConfigOptions&, const ConfigOptions&) = default;
};

// Errors: INVALID_ARGUMENT (a field or an option), UNIMPLEMENTED (a family or a field that is not understood),
// DATA_LOSS (no JSON), RESOURCE_EXHAUSTED, NOT_FOUND (a name).
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Graph>> GraphFromConfig(std::string_view text,
                                                                           const ConfigOptions& options = {});

// True of a config and of a known name: ConfigOptions and CachedPrecision hold.
[[nodiscard]] bool IsConfigPath(const std::string& path);

// A file that ends in .json is a config; a known name, unless a file has it, is that model; all else is ONNX, for which
// options are refused.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Graph>> ReadModel(const std::string& path,
                                                                     const ConfigOptions& options = {});

// What a graph from a config says of itself: "context", "tensor_parallel", "weights" and "cache" (types in place of the
// file's), "frozen" (what its adapters leave as it is); empty where it says nothing, and of other graphs.
[[nodiscard]] std::string_view SaidOf(const Graph& graph, std::string_view key);

// Of graphs from a config: ConfigOptions::training was false, so that logits of the last token alone are computed.
[[nodiscard]] bool ServesAlone(const Graph& graph);

// Of graphs from a config: "bfloat16", "float16" or "float32", as it computes; empty of others.
[[nodiscard]] std::string_view ComputeTypeOf(const Graph& graph);

}  // namespace horus
