// SPDX-License-Identifier: Apache-2.0
// Operators of language models as inference engines run them: the time of one on a GPU type, with its bound.
//
// Enters:  an operator's sizes, its number types, the engine; a GPU type; constants and forests of a bundle.
// Leaves:  microseconds on the device, launches excluded; the bound that the bundle promises.
// Units:   sizes in elements, bytes where the name says so; times in us.
// Cost:    about 2 us an operator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "device/gpu_type.h"
#include "trees/bundle.h"
#include "trees/forest.h"

namespace horus {

enum class OperatorKind : uint8_t {
  kProduct,        // [m, k] x [k, n], weights on the right
  kExperts,        // both products of a mixture of experts, routing included
  kPrefill,        // causal attention of new tokens
  kDecode,         // attention of one new token a sequence to a cache
  kEncoder,        // attention without a mask
  kLatentPrefill,  // multi-head latent attention (DeepSeek), keys and values unfolded
  kLatentDecode,   // and on the latent cache
  kAllReduce,      // a sum over GPUs of one node
  kLinearPrefill,  // gated delta rules and Mamba-2, by chunks of new tokens
  kLinearDecode,   // and of one new token a sequence: the states are read and written
  kConvolution,    // of each channel with its last tokens, before those
};
inline constexpr size_t kOperatorKinds = 11;

// What weights and activations are multiplied in.
enum class NumberType : uint8_t { kBf16, kFp8, kFp8Block, kNvfp4, kInt4Weights, kInt8Weights, kInt8 };
inline constexpr size_t kNumberTypes = 7;

enum class ServingEngine : uint8_t { kVllm, kTensorRtLlm, kSglang };
inline constexpr size_t kEngines = 3;

[[nodiscard]] std::string_view Name(OperatorKind kind);
[[nodiscard]] std::string_view Name(NumberType type);
[[nodiscard]] std::string_view Name(ServingEngine engine);

struct Operator {
  OperatorKind kind = OperatorKind::kProduct;
  NumberType type = NumberType::kBf16;
  bool cache_fp8 = false;  // of attention: the cache has one byte an element, not two
  ServingEngine engine = ServingEngine::kVllm;
  // Operands may still lie in L2 from the run before, as where one operator is measured again and again. In a net the
  // other layers have displaced them.
  bool repeated = false;
  double m = 0, n = 0, k = 0;  // of a product; of experts: tokens of all ranks, an expert's inner size, hidden size
  double experts = 0, top_k = 0;
  double tensor_parallel = 1, expert_parallel = 1;  // that divide the inner size, and the experts
  bool balanced = false;                            // every expert has as many tokens
  bool gated = true;                                // two products of the inner size before the activation, not one
  // Of attention, on one GPU. `keys`: all tokens that the last query sees, new ones included; `window` 0: all.
  double batch = 0, queries = 1, keys = 0, heads = 0, key_heads = 0, head_size = 0, window = 0;
  double key_size = 0, state_bytes = 4;     // of linear attention, whose values have head_size; bytes of an element
  bool delta = true;                        // it takes out of the state what that says of a key already
  double convolved = 4;                     // tokens that a convolution reads for one
  double bytes = 0, ranks = 1;              // of a collective: of the tensor on each rank
  double least_flops = 0, least_bytes = 0;  // computed and moved, as the costs of the graph count them: FloorUs
  friend auto operator<=>(const Operator&, const Operator&) = default;
};

// One constant of a law: its typical value, and the standard deviation of its logarithm.
struct LawConstant {
  std::string_view name;
  double typical, spread;
};
inline constexpr size_t kMostLawConstants = 13;
using LawConstants = std::array<double, kMostLawConstants>;
[[nodiscard]] std::span<const LawConstant> LawOf(OperatorKind kind);
[[nodiscard]] LawConstants TypicalConstants(OperatorKind kind);

// From specifications and constants alone.
[[nodiscard]] double LawUs(const Operator& op, const GpuType& gpu, const LawConstants& constants);

// What no kernel undercuts: `least_flops` over the peak of their type, `least_bytes` over the bandwidth.
[[nodiscard]] double FloorUs(const Operator& op, const GpuType& gpu);

// Of the peak of matrix products that the power of the board sustains, 0-1.
[[nodiscard]] double SustainedShare(const GpuType& gpu);

inline constexpr size_t kOperatorColumns = 24;
using OperatorRow = std::array<float, kOperatorColumns>;
// What the forest reads; nothing in it names a GPU type. `law_us` as LawUs says with `repeated`.
[[nodiscard]] OperatorRow RowOf(const Operator& op, const GpuType& gpu, double law_us);
[[nodiscard]] uint64_t OperatorSchemaHash();

struct OperatorTime {
  double us = 0, upper_us = 0;
};

class OperatorModel {
 public:
  // What the library brings. Never null.
  [[nodiscard]] static const OperatorModel& Default();
  // Errors: damage, another schema, a series that cannot be.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<const OperatorModel>> FromBundle(const Bundle& bundle);

  // By law and trees, without FloorUs. The bound holds for one operator with the bundle's promise; wider on a GPU type
  // that taught nothing.
  [[nodiscard]] OperatorTime TimeOf(const Operator& op, const GpuType& gpu) const;
  [[nodiscard]] LawConstants ConstantsOf(const Operator& op) const;

 private:
  struct Kind {
    std::map<uint32_t, LawConstants> constants;  // by SeriesOf
    Forest forest;
    double margin = 0, unseen_gpu_margin = 0;  // of the logarithm
  };
  std::array<Kind, kOperatorKinds> kinds_;
  std::vector<GpuType> gpus_;  // that taught
};

// Operators with the same law and constants: kind, types and engine. A name in bundles: "fp8.vllm", "bf16.fp8.sglang".
[[nodiscard]] uint32_t SeriesOf(const Operator& op);
[[nodiscard]] std::string SeriesName(const Operator& op);

// A trained kind as a bundle's target. `margins`: of the promise on shapes and on GPU types not seen.
struct TrainedOperators {
  OperatorKind kind = OperatorKind::kProduct;
  std::map<std::string, LawConstants> constants;  // by SeriesName
  ForestData forest;
  double margin = 0, unseen_gpu_margin = 0;
};
[[nodiscard]] BundleTarget ToBundle(const TrainedOperators& trained);

}  // namespace horus
