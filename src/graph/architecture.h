// SPDX-License-Identifier: Apache-2.0
// Architecture: what a Hugging Face config.json says of a language model, family by family.
//
// Enters:  the text of a config.json, or the name of a known model.
// Leaves:  a plain value, or an error that names the field.
// Cost:    linear in the text.
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace horus {

// How the weights of linear layers are stored.
struct Stored {
  DType type = DType::kUndefined;  // undefined: as the rest
  DType scale = DType::kFloat32;
  int64_t group_out = 1, group_in = 0;  // outputs and inputs that share a scale; 0 = all
  bool zeros = false;                   // each scale has a zero point
};

// "bfloat16", "bf16", "float16", ...; undefined of others.
[[nodiscard]] DType DTypeByName(std::string_view name);
// "fp8", "int8", "int4", "nvfp4", "mxfp4"; "bf16", "fp16", "fp32".
[[nodiscard]] absl::StatusOr<Stored> StoredByName(std::string_view option, std::string_view name);

struct Architecture {
  enum class QkNorm : uint8_t { kNone, kHead, kWhole };  // of queries and keys: each head, or all heads at once
  // By which a layer's tokens see each other. Kimi's delta rule has a rate for each key channel; LFM2's convolution
  // has no state besides the last tokens.
  enum class Mixer : uint8_t { kAttention, kDeltaNet, kKimiDelta, kMamba2, kShortConv, kNone };

  static constexpr int64_t kAsModel = -1;
  struct Layer {
    Mixer mixer = Mixer::kAttention;
    bool mamba = false;  // Mamba-2 beside attention, of the same hidden state
    int64_t heads = kAsModel, kv_heads = kAsModel, head_dim = kAsModel, v_dim = kAsModel;
    int64_t window = 0;      // tokens that a query looks back, itself included; 0 = all
    int64_t compressed = 0;  // so many tokens share a key beyond the window; 0: none do
    bool keys_are_values = false;
    bool sinks = false;        // a learned score a head beside the softmax
    bool indexed = false;      // an indexer chooses what attention reads; with latent attention others take its choice
    int64_t inner = kAsModel;  // of the MLP; 0: none
    bool sparse = false;       // experts in place of the MLP
  };

  std::string name;  // model_type, or the known name
  std::string type;
  uint32_t traits = 0;  // of the family, as architecture.cc has them
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0, vocab = 0;
  std::vector<Layer> each;           // `layers` of them
  int64_t context = 0;               // tokens that it was made for
  bool stretched = false;            // or for more: its rope is scaled
  int64_t positions = 0;             // rows of learned positions; 0: rotary
  std::string activation = "Swish";  // ONNX operator
  bool gated = true;                 // activation(gate) x up
  bool tied = false;                 // the last product reads the embedding
  bool rms = true;                   // normalisation without mean
  bool norm_bias = false;            // and with bias
  bool qkv_bias = false, o_bias = false, mlp_bias = false, logits_bias = false;
  QkNorm qk_norm = QkNorm::kNone;
  bool attention_gate = false;   // a product as wide as the queries gates what attention makes
  bool head_gate = false;        // or one value a head
  bool rotary = true;            // unless positions are learned, or there are none
  bool pre_norms = true;         // what attention and MLP read is normalised
  bool post_norms = false;       // what they make is, before it is added
  bool parallel = false;         // attention and MLP read the same hidden state
  bool one_norm = false;         // and the same normalisation of it
  bool scaled = false;           // the embedding is multiplied by a constant
  int64_t streams = 1;           // of the residual, which each half of a layer mixes (hyper-connections)
  bool residual_scores = false;  // what each half of a layer adds to is weighed by a learned score

  std::string_view experts_field = "num_experts";  // by which the file says how many
  int64_t experts = 0, top_k = 0, expert_width = 0, shared_width = 0;
  bool shared_gate = false;  // the shared expert has a gate of its own
  bool router_bias = false, expert_bias = false;
  int64_t hashed = 0;         // first layers whose experts a table chooses: no bias
  bool both = false;          // experts besides the MLP, with norms of their own
  int64_t expert_latent = 0;  // experts read and write so many elements in place of the hidden ones
  bool latent_norm = false;   // normalised between

  int64_t q_rank = 0, kv_rank = 0, nope = 0, rope = 0, v_dim = 0;  // latent attention where kv_rank > 0
  int64_t o_groups = 0, o_rank = 0;  // compressed attention: so many groups of heads have an output of o_rank each
  // Sparse attention: an indexer's heads score all tokens by keys of their own, the best so many are read.
  int64_t index_heads = 0, index_dim = 0, index_top = 0;

  // Linear attention: a convolution over so many tokens, then a state [key size, value size] a head in place of a
  // cache.
  bool one_part = false;  // a layer has a mixer, an MLP or experts alone
  std::string linear_heads_field = "linear_num_value_heads", linear_key_heads_field = "linear_num_key_heads";
  int64_t linear_heads = 0, linear_key_heads = 0, linear_key_dim = 0, linear_value_dim = 0, convolved = 0;
  bool mixer_norm = true;   // of what it makes
  bool whole_gate = false;  // Kimi's gate is one product, and its decay one a channel
  bool conv_bias = false;
  DType state = DType::kUndefined;  // undefined: dtype

  int64_t vision = 0;  // parameters of a vision tower and its projector

  DType dtype = DType::kBfloat16;
  DType cache = DType::kUndefined;  // undefined: dtype
  Stored stored, stored_experts;
  std::vector<std::pair<std::string, Stored>> rules;  // whole words of names of layers that are stored otherwise
};

[[nodiscard]] absl::StatusOr<Architecture> ReadArchitecture(std::string_view text);

class ConfigFields;
// Reads the fields of a text model; `traits` are the readers' own.
struct Family {
  std::string_view type;
  void (*read)(ConfigFields&, Architecture&);
  uint32_t traits = 0;
};
[[nodiscard]] std::span<const Family> Families();
// Sets how the weights are stored, as a quantization_config says.
void ReadQuantisation(ConfigFields& f, Architecture& a);

// A file that has its text model in an object of its own, beside a tower: the text model's type where the file does not
// say it, and the parameters of the tower that `vision` (vision_config) describes, with its projector.
struct Tower {
  std::string_view type, text;
  double (*parameters)(std::string_view type, ConfigFields& vision, ConfigFields& file, const Architecture& text);
};
[[nodiscard]] const Tower* FindTower(std::string_view type);  // nullptr when there is none
[[nodiscard]] std::vector<std::string_view> TowerTypes();

// One known model: of its public config.json the fields that its family reads; sizes of 0 are not stated there.
struct KnownModel {
  std::string_view name, type;
  int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0, vocab = 0, context = 0;
  std::string_view more;  // of them, as JSON; @name for what several have
};
[[nodiscard]] std::string ConfigOf(const KnownModel& model);
[[nodiscard]] std::string_view KnownModelName(size_t index);            // empty past the end
[[nodiscard]] const KnownModel* FindKnownModel(std::string_view name);  // nullptr when there is none
// "; did you mean 'llama-3.1-8b'?" of one that is close to "meta-llama/Llama-3.1-8B-Instruct"; empty where none is.
[[nodiscard]] std::string NearKnownModel(std::string_view name);

}  // namespace horus
