// SPDX-License-Identifier: Apache-2.0
// Parameters of vision towers and of what brings their results to the text model, by the modules that transformers 4.57
// and 5 make of a vision_config. Doubles: sums below 2^53 are exact, larger ones are refused.
#include <cmath>

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
};
double Count(const Blocks& b) {
  return b.layers * (2 * b.hidden * (b.centred ? 2 : 1) + 4 * Linear(b.hidden, b.hidden, b.bias) +
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

// Kimi K2.5: MoonViT.
double MoonTower(std::string_view, ConfigFields& vision, ConfigFields&, const Architecture& text) {
  Sizes of(vision);
  const double hidden = of("vt_hidden_size"), patch = of("patch_size"), merged = 4 * hidden;
  const double places = of("init_pos_emb_height") * of("init_pos_emb_width");
  const std::vector<int64_t> merge = vision.Sizes("merge_kernel_size");
  vision.Expect("merge_kernel_size", merge.empty() || merge == std::vector<int64_t>{2, 2}, "[2, 2]");
  vision.Known({"vt_num_attention_heads", "mm_hidden_size", "text_hidden_size"});
  return Count({of("vt_num_hidden_layers"), hidden, of("vt_intermediate_size")}) + Linear(3 * patch * patch, hidden) +
         places * hidden + 4 * hidden + Linear(merged, merged) + Linear(merged, static_cast<double>(text.hidden));
}

}  // namespace

int64_t VisionParameters(std::string_view type, ConfigFields& vision, ConfigFields& file, const Architecture& text) {
  const auto tower = type == "gemma3"     ? SiglipTower
                     : type == "gemma4"   ? Gemma4Tower
                     : type == "mistral3" ? PixtralTower
                     : type == "llama4"   ? Llama4Tower
                     : type == "kimi_k25" ? MoonTower
                                          : QwenTower;
  const double count = tower(type, vision, file, text);
  constexpr double kMost = 1e12;
  file.Expect("vision_config", count <= kMost, "a tower of at most 10^12 parameters");
  return count <= kMost ? static_cast<int64_t>(count) : 0;
}

}  // namespace horus
