// SPDX-License-Identifier: Apache-2.0
// What the command line of a pod says of the language model that it serves.
//
// Enters:  spec of a pod: image, command, arguments and environment of its containers, shell strings too.
// Leaves:  engine, model, parts, types, and how much of a GPU's memory the engine takes; what is not understood is
// told. Units:   tokens, shares of a GPU's memory.
#pragma once

#include "io/jobs_file.h"
#include "io/kube/kube_items.h"

namespace horus {

// How an engine counts the memory that it is told to take.
enum class EngineMemory : uint8_t {
  kShare,        // of the GPU, all in all
  kStaticShare,  // of the GPU for weights and cache, and some beside it
  kShareOfFree,  // of what the weights leave
  kUnknown,      // as much as what it is asked for takes
};

// Where all else is understood.
inline constexpr std::string_view kUnknownModel = "unknown model: give its config.json with --profiles";

struct KubeEngine {
  std::string_view name;  // "vLLM"
  EngineMemory memory = EngineMemory::kShare;
  double memory_share = 0;
  std::string model;                          // as it stands there; empty: not told
  int64_t context = 0;                        // tokens; 0: the model's
  ModelRun run;                               // a step that decodes one request
  std::string why_not;                        // why `run` is not known, such as kUnknownModel
  [[nodiscard]] std::string RunText() const;  // of all that decides its demand but the model's file
  [[nodiscard]] int64_t gpus() const {
    return run.config.tensor_parallel * run.config.pipeline_parallel;  // Bounded: both at most kMostParts
  }
};

// The first engine of the pod's containers; none where no command line or image is known to start one.
[[nodiscard]] absl::StatusOr<std::optional<KubeEngine>> ReadKubeEngine(const KubeView& spec);

// The known model (`horus models`) of the same sizes as one that is called so on a hub or in a path; empty: none.
// `weights`: the type that the name tells of them, empty where it tells none.
[[nodiscard]] std::string_view ModelCalled(std::string_view path, std::string_view& weights);

// MiB of a GPU, or of the part that is all that the engine sees, that it takes. `model_mib`: what a step needs.
[[nodiscard]] int64_t TakenMib(const KubeEngine& engine, int64_t seen_mib, int64_t model_mib);

}  // namespace horus
