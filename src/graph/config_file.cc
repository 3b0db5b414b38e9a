// SPDX-License-Identifier: Apache-2.0
// Reads a config.json whole: the text model wherever it stands in it, how it is stored, and the tower beside it.
#include <algorithm>

#include "base/status.h"
#include "base/text.h"
#include "graph/architecture.h"
#include "graph/config_fields.h"

namespace horus {
namespace {

// Said by every config of some age, and without meaning here; the rope's numbers change no size, and layers that guess
// ahead are no part of a step.
constexpr std::string_view kWithoutMeaning =
    "torch_dtype dtype chunk_size_feed_forward num_labels num_beams num_beam_groups num_return_sequences top_k "
    "rope_scaling n_ctx max_window_layers sliding_window sliding_window_size router_aux_loss_coef ep_size "
    "shared_moe_mode output_router_logits partial_rotary_factor num_attention_heads moe_router_dtype rotary_dim "
    "num_mtp_modules mtp_transformer_layers num_nextn_predict_layers mtp_num_hidden_layers no_rope_layers "
    "no_rope_layer_interval original_max_position_embeddings num_expert_group topk_group moe_renormalize "
    "moe_router_activation_func order_of_interleaved_layers";

absl::Status Check(const Architecture& a) {
  for (const Architecture::Layer& layer : a.each) {
    if (layer.mixer != Architecture::Mixer::kAttention || a.kv_rank > 0 || layer.heads % layer.kv_heads == 0) continue;
    return InvalidArgument("config field num_key_value_heads%s: expected a divisor of %d heads, found %d",
                           layer.kv_heads == a.kv_heads ? "" : " of some layers", layer.heads, layer.kv_heads);
  }
  if (a.top_k > a.experts) {
    return InvalidArgument("config field num_experts_per_tok: expected at most %d experts, found %d", a.experts,
                           a.top_k);
  }
  if (a.linear_heads > 0 && a.linear_heads % a.linear_key_heads != 0) {
    return InvalidArgument("config field %s: expected a divisor of %d heads, found %d", a.linear_key_heads_field,
                           a.linear_heads, a.linear_key_heads);
  }
  return absl::OkStatus();
}

// Layers without sizes of their own have those of the model.
void Complete(Architecture& a) {
  a.each.resize(static_cast<size_t>(a.layers));
  const auto set = [](int64_t& size, int64_t otherwise) {
    if (size == Architecture::kAsModel) size = otherwise;
  };
  for (Architecture::Layer& layer : a.each) {
    set(layer.heads, a.heads);
    set(layer.kv_heads, a.kv_heads);
    set(layer.head_dim, a.head_dim);
    set(layer.v_dim, a.v_dim > 0 ? a.v_dim : layer.head_dim);
    set(layer.inner, a.intermediate);
  }
}

}  // namespace

absl::StatusOr<Architecture> ReadArchitecture(std::string_view text) {
  const KnownModel* known = FindKnownModel(text);
  HORUS_ASSIGN_OR_RETURN(const ConfigValue json, ParseConfig(known == nullptr ? std::string(text) : ConfigOf(*known)));
  ConfigFields whole(json, "");
  // A model that speaks has what it thinks with in an object of its own.
  std::optional<ConfigFields> thinker = whole.Object("thinker_config");
  ConfigFields& file = thinker ? *thinker : whole;
  const std::string type = file.Text("model_type", "");
  const Tower* tower = FindTower(type);
  const std::string_view key = file.Either({"text_config", "llm_config", "language_config"});
  std::optional<ConfigFields> inner = file.Object(key);
  ConfigFields& fields = inner ? *inner : file;
  Architecture a;
  a.type = inner ? inner->Text("model_type", tower != nullptr ? tower->text : type)
                 : std::string(tower != nullptr ? tower->text : type);
  HORUS_RETURN_IF_ERROR(file.status());
  const std::span<const Family> families = Families();
  const auto family = std::ranges::find(families, a.type, &Family::type);
  if (family == families.end()) {
    std::vector<std::string_view> types = TowerTypes();
    for (const Family& one : families) types.push_back(one.type);
    return MakeError(absl::StatusCode::kUnimplemented, "config field %s%smodel_type: %s", inner ? key : "",
                     inner ? "." : "", ExpectedOneOf(types, a.type));
  }
  a.traits = family->traits;
  family->read(fields, a);
  Complete(a);
  a.type = type;
  a.name = known == nullptr ? a.type : std::string(known->name);
  if (inner && !inner->Has("tie_word_embeddings")) a.tied = file.Flag("tie_word_embeddings", a.tied);
  ConfigFields& typed = fields.Has("dtype") || fields.Has("torch_dtype") ? fields : file;
  const std::string_view dtype = typed.Either({"torch_dtype", "dtype"});
  a.dtype = DTypeByName(typed.Text(dtype, "bfloat16"));
  typed.Expect(dtype, a.dtype != DType::kUndefined, "bfloat16, float16 or float32");
  ConfigFields& stored = fields.Has("quantization_config") ? fields : file;
  if (std::optional<ConfigFields> quantised = stored.Object("quantization_config")) {
    ReadQuantisation(*quantised, a);
    stored.Take(*quantised);
  }
  if (tower != nullptr) {
    std::optional<ConfigFields> vision = file.Object("vision_config");
    file.Expect("vision_config", vision.has_value(), "an object");
    if (vision) {
      constexpr double kMost = 1e12;
      const double count = tower->parameters(type, *vision, file, a);
      file.Expect("vision_config", count <= kMost, "a tower of at most 10^12 parameters");
      a.vision = count <= kMost ? static_cast<int64_t>(count) : 0;
      vision->RefuseUnknown();
      file.Take(*vision);
    }
    file.Known({"vision_start_token_id", "vision_end_token_id", "vision_token_id", "vision_feature_layer",
                "vision_feature_select_strategy", "use_unified_vision_chunk", "vision_soft_tokens_per_image"});
  }
  if (inner) file.KnownAs(*inner);  // what the text model says may be said again
  for (ConfigFields* one : {&fields, &file}) {
    ForEachName(kWithoutMeaning, [one](std::string_view name) { one->Known({name}); });
    one->RefuseUnknown();
    HORUS_RETURN_IF_ERROR(one->status());
  }
  HORUS_RETURN_IF_ERROR(Check(a));
  return a;
}

}  // namespace horus
