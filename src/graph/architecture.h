// SPDX-License-Identifier: Apache-2.0
// Architecture: what a Hugging Face config.json says of a language model, family by family.
//
// Enters:  the text of a config.json, or the name of a known model.
// Leaves:  a plain value, or an error that names the field.
// Units:   elements, counts.
// Cost:    linear in the text.            Thread class: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace horus {

// How the weights of linear layers are stored.
struct Stored {
  DType type = DType::kUndefined;  // undefined: as the rest
  DType scale = DType::kFloat32;
  int64_t group_out = 1, group_in = 0;  // outputs and inputs that share a scale; 0 = all
  bool experts_only = false;            // gpt_oss: all else is as the rest
};

// "fp8", "int8", "int4", "nvfp4", "mxfp4"; "bf16", "fp16", "fp32".
[[nodiscard]] absl::StatusOr<Stored> StoredByName(std::string_view option, std::string_view name);

struct Architecture {
  enum class QkNorm : uint8_t { kNone, kHead, kWhole };  // of queries and keys: each head, or all heads at once
  enum class Mixer : uint8_t { kAttention, kDeltaNet, kMamba2, kNone };  // by which a layer's tokens see each other

  std::string name;  // model_type, or the known name
  std::string type;
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0, vocab = 0;
  int64_t context = 0;               // tokens that it was made for
  bool stretched = false;            // or for more: its rope is scaled
  int64_t positions = 0;             // rows of learned positions; 0: rotary
  std::string activation = "Swish";  // ONNX operator
  bool gated = true;                 // activation(gate) x up
  bool tied = false;                 // the last product reads the embedding
  bool rms = true;                   // normalisation without mean and bias
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  QkNorm qk_norm = QkNorm::kNone;
  bool sinks = false;            // a learned score a head beside the softmax
  bool attention_gate = false;   // a product as wide as the queries gates what attention makes
  bool rotary = true;            // unless positions are learned
  bool post_norms = false;       // attention and MLP are normalised before they are added, too
  bool parallel = false;         // attention and MLP read the same hidden state
  bool one_norm = false;         // and the same normalisation of it
  bool scaled = false;           // the embedding is multiplied by a constant
  std::vector<int64_t> windows;  // by layer: tokens that a query looks back, itself included; 0 = all
  // Of layers without a window, where they differ (0: they do not). Their keys may be their values, too.
  int64_t whole_kv_heads = 0, whole_head_dim = 0;
  bool keys_are_values = false;

  std::string_view experts_field = "num_experts";  // by which the file says how many
  int64_t experts = 0, top_k = 0, expert_width = 0, shared_width = 0;
  bool shared_gate = false;  // the shared expert has a gate of its own
  bool router_bias = false, expert_bias = false;
  std::vector<bool> sparse;   // by layer: experts in place of the MLP
  bool both = false;          // or besides it, with norms of their own
  int64_t expert_latent = 0;  // experts read and write so many elements in place of the hidden ones

  int64_t q_rank = 0, kv_rank = 0, nope = 0, rope = 0, v_dim = 0;  // latent attention where kv_rank > 0
  // Sparse latent attention: an indexer's heads score all tokens by keys of their own, the best so many are read.
  int64_t index_heads = 0, index_dim = 0, index_top = 0;
  std::vector<bool> indexed;  // by layer: it has an indexer; the others read what the one before chose

  // Linear attention: a convolution over so many tokens, then a state [key size, value size] a head in place of a
  // cache.
  std::vector<Mixer> mixers;  // by layer; empty: attention
  bool one_part = false;      // a layer has a mixer, an MLP or experts alone
  std::string linear_heads_field = "linear_num_value_heads", linear_key_heads_field = "linear_num_key_heads";
  int64_t linear_heads = 0, linear_key_heads = 0, linear_key_dim = 0, linear_value_dim = 0, convolved = 0;
  DType state = DType::kUndefined;  // undefined: dtype

  int64_t vision = 0;  // parameters of a vision tower and its projector

  DType dtype = DType::kBfloat16;
  DType cache = DType::kUndefined;  // undefined: dtype
  Stored stored;
  std::vector<std::string> plain;  // whole words of names of layers that are not quantised
};

[[nodiscard]] absl::StatusOr<Architecture> ReadArchitecture(std::string_view text);

class ConfigFields;
// Parameters of the vision tower that `vision` (vision_config) describes, by the model_type of the file that has it.
[[nodiscard]] int64_t VisionParameters(std::string_view type, ConfigFields& vision, ConfigFields& file,
                                       const Architecture& text);

// One known model: of its public config.json the fields that its family reads; sizes of 0 are not stated there.
struct KnownModel {
  std::string_view name, type;
  int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0, vocab = 0, context = 0;
  std::string_view more;  // of them, as JSON
};
[[nodiscard]] std::string ConfigOf(const KnownModel& model);
[[nodiscard]] std::string_view KnownModelName(size_t index);            // empty past the end
[[nodiscard]] const KnownModel* FindKnownModel(std::string_view name);  // nullptr when there is none

}  // namespace horus
