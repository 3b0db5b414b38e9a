// SPDX-License-Identifier: Apache-2.0
// Parameters of vision towers and of what brings their results to the text model, by the modules that transformers 4.57
// and 5 make of a vision_config. Doubles: sums below 2^53 are exact, larger ones are refused.
#include <cmath>
#include <iterator>

#include "base/vectors.h"
#include "graph/architecture.h"
#include "graph/config_fields.h"

namespace horus {
namespace {

double Linear(double in, double out, bool bias = true) { return in * out + (bias ? out : 0); }

// Layers of attention without a mask, and an MLP.
struct Blocks {
  double layers, hidden, inner;
  bool centred = true;  // norms subtract a mean, and add a bias
  bool bias = true, gated = false;
  double attention = 0;  // width of all heads; 0: hidden
};
double Count(const Blocks& b) {
  const double width = b.attention > 0 ? b.attention : b.hidden;
  return b.layers *
         (2 * b.hidden * (b.centred ? 2 : 1) + 3 * Linear(b.hidden, width, b.bias) + Linear(width, b.hidden, b.bias) +
          (b.gated ? 2 : 1) * Linear(b.hidden, b.inner, b.bias) + Linear(b.inner, b.hidden, b.bias));
}

class Sizes {
 public:
  explicit Sizes(ConfigFields& fields) : fields_(fields) {}
  double operator()(std::string_view key, std::optional<int64_t> fallback = std::nullopt) {
    return static_cast<double>(fields_.Size(key, fallback));
  }

 private:
  ConfigFields& fields_;
};

// Neighbours merge, then two layers; deepstack does so at some layers more.
double QwenTower(std::string_view type, ConfigFields& vision, ConfigFields& file, const Architecture& text) {
  static_cast<void>(file), static_cast<void>(text);
  Sizes of(vision);
  const bool second = type == "qwen2_5_vl";
  const double hidden = of("hidden_size"), out = of("out_hidden_size"), merge = of("spatial_merge_size", 2),
               patch = of("patch_size", second ? 14 : 16);
  const double pixels =
      of(vision.Has("in_chans") ? "in_chans" : "in_channels", 3) * of("temporal_patch_size", 2) * patch * patch;
  const double merged = hidden * merge * merge, merger = Linear(merged, merged) + Linear(merged, out);
  double sum = Count({of("depth"), hidden, of("intermediate_size"), !second, true, second}) +
               Linear(pixels, hidden, !second) + hidden * (second ? 1 : 2) + merger;
  vision.Known({"num_heads", "window_size", "fullatt_block_indexes", "spatial_patch_size", "tokens_per_second"});
  if (second) return sum;
  sum += of("num_position_embeddings", 2304) * hidden;
  double deep = type.starts_with("qwen3_vl") ? 3 : 0;
  if (vision.Has("deepstack_visual_indexes"))
    deep = static_cast<double>(vision.Sizes("deepstack_visual_indexes").size());
  return sum + deep * (2 * merged + merger);
}

// Gemma 3: SigLIP, pooled.
double SiglipTower(std::string_view, ConfigFields& vision, ConfigFields&, const Architecture& text) {
  Sizes of(vision);
  const double hidden = of("hidden_size"), patch = of("patch_size");
  const double side = std::floor(of("image_size") / patch);
  vision.Expect("vision_use_head", !vision.Flag("vision_use_head", false), "false");
  vision.Known({"num_attention_heads"});
  return Count({of("num_hidden_layers"), hidden, of("intermediate_size")}) +
         Linear(of("num_channels", 3) * patch * patch, hidden) + side * side * hidden + 2 * hidden +
         hidden * static_cast<double>(text.hidden) + hidden;
}

// Gemma 4: norms before and after each half of a block, and of queries and keys.
double Gemma4Tower(std::string_view, ConfigFields& vision, ConfigFields&, const Architecture& text) {
  Sizes of(vision);
  const double hidden = of("hidden_size"), layers = of("num_hidden_layers"), patch = of("patch_size");
  const double head = of("head_dim"), places = of("position_embedding_size", 10'240);
  vision.Expect("use_clipped_linears", !vision.Flag("use_clipped_linears", false), "false");
  vision.Known({"num_attention_heads", "num_key_value_heads", "global_head_dim", "pooling_kernel_size"});
  return Count({layers, hidden, of("intermediate_size"), false, false, true}) + layers * (2 * hidden + 2 * head) +
         3 * patch * patch * hidden + 2 * places * hidden + (vision.Flag("standardize", false) ? 2 * hidden : 0) +
         hidden * static_cast<double>(text.hidden);
}

double PixtralTower(std::string_view, ConfigFields& vision, ConfigFields& file, const Architecture& text) {
  Sizes of(vision);
  const double hidden = of("hidden_size"), out = static_cast<double>(text.hidden);
  const double patch = of("patch_size");
  const double merge = static_cast<double>(file.Size("spatial_merge_size", 2));
  const bool bias = file.Flag("multimodal_projector_bias", false);
  vision.Known({"num_attention_heads", "head_dim", "image_size"});
  return Count({of("num_hidden_layers"), hidden, of("intermediate_size"), false, false, true}) +
         of("num_channels", 3) * patch * patch * hidden + 2 * hidden + hidden * merge * merge * hidden +
         Linear(hidden, out, bias) + Linear(out, out, bias);
}

double Llama4Tower(std::string_view, ConfigFields& vision, ConfigFields&, const Architecture& text) {
  Sizes of(vision);
  const double hidden = of("hidden_size"), inner = of("intermediate_size"), patch = of("patch_size"),
               side = std::floor(of("image_size") / patch), in = of("projector_input_dim"),
               out = of("projector_output_dim"), last = of("vision_output_dim");
  vision.Expect("multi_modal_projector_bias", !vision.Flag("multi_modal_projector_bias", false), "false");
  vision.Known({"num_attention_heads", "vision_feature_layer", "vision_feature_select_strategy"});
  return Count({of("num_hidden_layers"), hidden, inner}) + of("num_channels", 3) * patch * patch * hidden +
         (side * side + 2) * hidden + 4 * hidden + inner * in + in * out + last * static_cast<double>(text.hidden);
}

// Kimi K2.5 and K3: MoonViT.
double MoonTower(std::string_view, ConfigFields& vision, ConfigFields&, const Architecture& text) {
  Sizes of(vision);
  const double hidden = of("vt_hidden_size"), patch = of("patch_size"), merged = 4 * hidden;
  const double places = of("init_pos_emb_height") * of("init_pos_emb_width");
  const double attention = static_cast<double>(vision.Size("qkv_hidden_size", 0)),
               out = static_cast<double>(text.hidden);
  const bool bias = vision.Flag("linear_bias", true), centred = vision.Text("norm_type", "layernorm") != "rmsnorm";
  const bool second = vision.Text("mm_projector_type", "patchmerger") == "patchmergerv2";
  const std::vector<int64_t> merge = vision.Sizes("merge_kernel_size");
  vision.Expect("merge_kernel_size", merge.empty() || merge == std::vector<int64_t>{2, 2}, "[2, 2]");
  vision.Expect("attn_bias", vision.Flag("attn_bias", bias) == bias, "as linear_bias");
  vision.Known({"vt_num_attention_heads", "mm_hidden_size", "text_hidden_size"});
  const double norms = centred ? 4 * hidden : hidden;  // of the last block and, with a mean, of the projector
  return Count({of("vt_num_hidden_layers"), hidden, of("vt_intermediate_size"), centred, bias, false, attention}) +
         Linear(3 * patch * patch, hidden, vision.Flag("patch_embed_proj_bias", true)) + places * hidden + norms +
         Linear(merged, merged, !second) + Linear(merged, out, !second) + (second ? out : 0);
}

// MiniMax M3: two layers for each patch, and two for four neighbours.
double MinimaxTower(std::string_view, ConfigFields& vision, ConfigFields& file, const Architecture& text) {
  Sizes of(vision);
  const double hidden = of("hidden_size"), patch = of("patch_size"), out = static_cast<double>(text.hidden);
  const double projected = static_cast<double>(file.Size("projector_hidden_size", text.hidden));
  const bool bias = file.Flag("multimodal_projector_bias", true);
  constexpr double kFrames = 2, kNeighbours = 4;
  for (ConfigFields* one : {&vision, &file}) {
    std::optional<ConfigFields> merge = one->Object("img_token_compression_config");
    if (!merge) continue;
    merge->Expect("spatial_merge_size", merge->Size("spatial_merge_size", 2) == 2, "2");
    merge->Expect("temporal_patch_size", merge->Size("temporal_patch_size", 2) == 2, "2");
    one->Take(*merge);
  }
  vision.Known({"num_attention_heads", "image_size", "projection_dim", "vocab_size", "vision_segment_max_frames"});
  file.Known({"projector_hidden_act", "image_seq_length", "num_reward_heads"});
  return Count({of("num_hidden_layers"), hidden, of("intermediate_size")}) +
         of("num_channels", 3) * kFrames * patch * patch * hidden + 2 * hidden + Linear(hidden, projected, bias) +
         Linear(projected, out, bias) + Linear(kNeighbours * out, projected, bias) + Linear(projected, out, bias);
}

// Step: blocks whose results are scaled, then two convolutions of stride two that double the channels each.
double StepTower(std::string_view, ConfigFields& vision, ConfigFields& file, const Architecture& text) {
  Sizes of(vision);
  const double hidden = of(vision.Either({"width", "hidden_size"})), patch = of("patch_size");
  const double layers = of(vision.Either({"layers", "num_hidden_layers"})), side = std::floor(of("image_size") / patch);
  const double inner = std::floor(hidden * vision.Real("mlp_ratio", 8960.0 / 1536)), out = 4 * hidden;
  constexpr double kKernel = 9;
  for (const char* part : {"use_cls_token", "use_ln_post"}) vision.Expect(part, !vision.Flag(part, false), "false");
  vision.Known({"heads", "num_attention_heads", "pool_type", "output_dim"});
  file.Expect("understand_projector_stride", file.Size("understand_projector_stride", 2) == 2, "2");
  return Count({layers, hidden, inner}) + layers * 2 * hidden + 3 * patch * patch * hidden + side * side * hidden +
         2 * hidden + Linear(kKernel * hidden, 2 * hidden) + Linear(kKernel * 2 * hidden, out) +
         Linear(out, static_cast<double>(text.hidden), file.Flag("projector_bias", false));
}

// InternVL: two norms and two scales a block, a class token; four neighbours merge.
double InternTower(std::string_view, ConfigFields& vision, ConfigFields& file, const Architecture& text) {
  Sizes of(vision);
  const double hidden = of("hidden_size"), patch = of("patch_size"), side = std::floor(of("image_size") / patch);
  const double out = static_cast<double>(text.hidden), layers = of("num_hidden_layers"), merged = 4 * hidden;
  file.Expect("downsample_ratio", file.Real("downsample_ratio", 0.5) == 0.5, "0.5");
  for (const auto& [flag, is] : {std::pair("attention_bias", true),
                                 {"use_absolute_position_embeddings", true},
                                 {"use_qk_norm", false},
                                 {"use_mask_token", false},
                                 {"use_mean_pooling", true}}) {
    vision.Expect(flag, vision.Flag(flag, is) == is, is ? "true" : "false");
  }
  vision.Known({"num_attention_heads"});
  file.Known({"image_seq_length"});
  return Count({layers, hidden, of("intermediate_size")}) + layers * 2 * hidden +
         Linear(of("num_channels", 3) * patch * patch, hidden) + (side * side + 2) * hidden + 2 * merged +
         Linear(merged, out) + Linear(out, out);
}

constexpr Tower kTowers[] = {
    {"gemma3", "gemma3_text", SiglipTower},
    {"gemma4", "gemma4_text", Gemma4Tower},
    {"internvl", "qwen2", InternTower},
    {"kimi_k25", "kimi_k2", MoonTower},
    {"kimi_k3", "kimi_linear", MoonTower},
    {"llama4", "llama4_text", Llama4Tower},
    {"minimax_m3_vl", "minimax_m3", MinimaxTower},
    {"mistral3", "mistral", PixtralTower},
    {"qwen2_5_vl", "qwen2_5_vl_text", QwenTower},
    {"qwen3_5", "qwen3_5_text", QwenTower},
    {"qwen3_5_moe", "qwen3_5_moe_text", QwenTower},
    {"qwen3_vl", "qwen3_vl_text", QwenTower},
    {"qwen3_vl_moe", "qwen3_vl_moe_text", QwenTower},
    {"step3p7", "step3p5", StepTower},
};

}  // namespace

const Tower* FindTower(std::string_view type) {
  const Tower* found = std::ranges::find(kTowers, type, &Tower::type);
  return found == std::end(kTowers) ? nullptr : found;
}

std::vector<std::string_view> TowerTypes() { return VectorOf<std::string_view>(kTowers, &Tower::type); }

}  // namespace horus
