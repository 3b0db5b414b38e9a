// SPDX-License-Identifier: Apache-2.0
// Reads a config.json whole: the text model wherever it stands in it, how it is stored, and the tower beside it.

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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

// ---- A quantization_config: how linear layers are stored, and which ones are not, by the exporters' patterns of
// names.

// Words of checkpoints that graphs write otherwise; engines merge some of them.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"mlp", "block_sparse_moe feed_forward ffn"},
    {"self_attn", "attn self_attention"},
    {"gate", "router"},
    {"shared_experts", "shared_expert share_expert"},
    {"lm_head", "head"},
    {"in_proj_qkvz", "in_proj_qkv in_proj_z"},
    {"in_proj_ba", "in_proj_b in_proj_a"},
    {"qkv_proj", "q_proj k_proj v_proj"},
    {"gate_up_proj", "gate_proj up_proj w1 w3"},
    {"down_proj", "w2"},
};

// A pattern of layers as exporters write it, to whole words of names: "re:.*lm_head$" is "lm_head",
// "model.layers.*.mlp.gate" is "mlp.gate", "mlp\\.(up|down)_proj" is two. False for one that says more than that.
bool PlainPattern(std::string pattern, std::vector<std::string>* names) {
  if (pattern.starts_with("re:")) pattern.erase(0, 3);
  const size_t open = pattern.find('('), close = pattern.find(')');
  if (open != std::string::npos && close != std::string::npos && open < close) {
    const std::vector<std::string> parts = absl::StrSplit(pattern.substr(open + 1, close - open - 1), '|');
    for (const std::string& one : parts) {
      if (!PlainPattern(pattern.substr(0, open) + one + pattern.substr(close + 1), names)) return false;
    }
    return true;
  }
  const auto is_one_of = [](char c, std::string_view these) { return these.find(c) != std::string_view::npos; };
  while (!pattern.empty() && is_one_of(pattern.back(), ".*$")) pattern.pop_back();
  if (const size_t star = pattern.rfind('*'); star != std::string::npos) {
    const auto begin = pattern.begin(), end = pattern.begin() + static_cast<int64_t>(star);
    if (std::any_of(begin, end, [&](char c) { return is_one_of(c, "0123456789([+?|"); })) return false;
    pattern.erase(0, star + 1);
  }
  if (std::ranges::any_of(pattern, [&](char c) { return is_one_of(c, "()[]{}+?|*"); })) return false;
  std::erase_if(pattern, [&](char c) { return is_one_of(c, "^\\"); });
  while (pattern.starts_with('.')) pattern.erase(0, 1);
  for (const std::string_view prefix : {"model.language_model.", "language_model.model.", "backbone.", "layers."}) {
    const size_t kept = prefix == "layers." ? prefix.size() : 0;
    if (pattern.starts_with(prefix)) pattern.replace(0, prefix.size() - kept, "model.");
  }
  std::vector<std::string> words = absl::StrSplit(pattern, '.');
  for (std::string& word : words) {
    const std::string written = word;
    for (const auto& [name, others] : kWords)
      ForEachName(others, [&](std::string_view other) {
        if (other == written) word = name;
      });
  }
  names->push_back(absl::StrJoin(words, "."));
  return !names->back().empty();
}

void AddRules(ConfigFields& f, std::string_view key, const std::vector<std::string>& patterns, const Stored& stored,
              Architecture& a) {
  for (const std::string& pattern : patterns) {
    std::vector<std::string> names;
    const bool fits = PlainPattern(pattern, &names);
    f.Expect(key, fits, "names of layers, or patterns that end or begin with .*");
    if (!fits) continue;
    for (std::string& name : names) a.rules.emplace_back(std::move(name), stored);
  }
}

// Layers that the file leaves as they are.
void ReadIgnored(ConfigFields& f, std::initializer_list<std::string_view> keys, Architecture& a) {
  const std::string_view key = f.Either(keys);
  AddRules(f, key, f.Texts(key), {}, a);
}

Stored OfBits(int64_t bits, int64_t group, DType scale = DType::kFloat16, bool zeros = false) {
  return {.type = bits == 4 ? DType::kUint4 : DType::kInt8, .scale = scale, .group_in = group, .zeros = zeros};
}

constexpr Stored kMxfp8{.type = DType::kFloat8E4M3Fn, .scale = DType::kUint8, .group_in = 32};

void ReadBlock(ConfigFields& f, std::string_view key, Stored& stored) {
  const std::vector<int64_t> block = f.Sizes(key);
  f.Expect(key, block.empty() || block.size() == 2, "two sizes");
  if (block.size() == 2) stored.group_out = block[0], stored.group_in = block[1];
}

Stored ReadGroup(ConfigFields& weights) {
  const int64_t bits = weights.Size("num_bits");
  weights.Expect("num_bits", bits == 4 || bits == 8, "4 or 8");
  const int64_t size = weights.Group("group_size");
  Stored stored = OfBits(bits, size, DType::kFloat16, !weights.Flag("symmetric", true));
  if (weights.Text("type", "int") == "float") {
    const bool exponents = weights.Text("scale_dtype", "").ends_with("uint8");
    if (bits == 8) stored = {.type = DType::kFloat8E4M3Fn, .group_in = size};
    if (exponents) stored.scale = DType::kUint8;
    if (bits == 4 && !exponents) stored.scale = DType::kFloat8E4M3Fn;
  }
  if (weights.Text("strategy", "") == "tensor") stored.group_out = 0;
  if (weights.Has("block_structure")) ReadBlock(weights, "block_structure", stored);
  return stored;
}

void ReadCacheScheme(ConfigFields& f, Architecture& a) {
  std::optional<ConfigFields> cache = f.Object("kv_cache_scheme");
  if (!cache) return;
  const bool eight = cache->Size("num_bits") == 8 && cache->Text("type", "") == "float";
  cache->Expect("num_bits", eight, "8, of type float");
  a.cache = DType::kFloat8E4M3Fn;
  f.Take(*cache);
}

// Groups of layers with a type each; one group alone may be for all.
void ReadGroups(ConfigFields& f, Architecture& a) {
  ReadIgnored(f, {"ignore"}, a);
  std::vector<ConfigFields> groups = f.Objects("config_groups");
  f.Expect("config_groups", !groups.empty(), "an object with group_0");
  for (ConfigFields& group : groups) {
    std::optional<ConfigFields> weights = group.Object("weights");
    group.Expect("weights", weights.has_value(), "an object");
    if (weights) {
      const Stored stored = ReadGroup(*weights);
      group.Take(*weights);
      std::vector<std::string> targets = group.Texts("targets");
      const bool all = targets.empty() || std::ranges::find(targets, "Linear") != targets.end();
      if (all) a.stored = a.stored_experts = stored;
      if (!all) AddRules(group, "targets", targets, stored, a);
    }
    f.Take(group);
  }
  ReadCacheScheme(f, a);
}

Stored ByAlgorithm(ConfigFields& f, std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kAlgorithms[] = {
      {"NVFP4", "nvfp4"}, {"W4A8_NVFP4_FP8", "nvfp4"}, {"NVFP4_AWQ", "nvfp4"},         {"W4A16_AWQ", "int4"},
      {"MXFP4", "mxfp4"}, {"W4A8_MXFP4_FP8", "mxfp4"}, {"W8A8_SQ_PER_CHANNEL", "int8"}};
  const std::string name = f.Text(key, "");
  if (name == "MXFP8") return kMxfp8;
  if (name == "FP8") return {.type = DType::kFloat8E4M3Fn, .group_out = 0};
  if (name == "FP8_PB_WO") return {.type = DType::kFloat8E4M3Fn, .group_out = 128, .group_in = 128};
  const auto* known = std::ranges::find(kAlgorithms, name, [](const auto& one) { return one.first; });
  const bool fits = known != std::end(kAlgorithms);
  f.Expect(key, fits, "FP8, FP8_PB_WO, NVFP4, W4A16_AWQ, MXFP4, MXFP8 or MIXED_PRECISION");
  return fits ? *StoredByName(key, known->second) : Stored{};
}

// In the file itself, or as hf_quant_config.json has it.
void ReadModelOpt(ConfigFields& f, Architecture& a) {
  ReadIgnored(f, {"ignore", "exclude_modules"}, a);
  if (f.Text("kv_cache_quant_algo", "") == "FP8") a.cache = DType::kFloat8E4M3Fn;
  ReadCacheScheme(f, a);
  if (f.Text("quant_algo", "") != "MIXED_PRECISION") {
    a.stored = a.stored_experts = ByAlgorithm(f, "quant_algo");
    return;
  }
  std::optional<ConfigFields> layers = f.Object("quantized_layers");
  f.Expect("quantized_layers", layers.has_value(), "an object with each layer's quant_algo");
  std::vector<ConfigFields> each = f.Objects("quantized_layers");
  for (size_t i = 0; layers && i < each.size(); ++i) {
    AddRules(f, "quantized_layers", {layers->Keys()[i]}, ByAlgorithm(each[i], "quant_algo"), a);
    f.Take(each[i]);
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
    return Unimplemented("config field %s%smodel_type: %s", inner ? key : "", inner ? "." : "",
                         ExpectedOneOf(types, a.type));
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

DType DTypeByName(std::string_view name) {
  if (name == "bfloat16" || name == "bf16") return DType::kBfloat16;
  if (name == "float16" || name == "fp16") return DType::kFloat16;
  if (name == "float32" || name == "fp32") return DType::kFloat32;
  return DType::kUndefined;
}

absl::StatusOr<Stored> StoredByName(std::string_view option, std::string_view name) {
  constexpr int64_t kInt4Group = 128, kNvfp4Group = 16, kMxGroup = 32;
  if (name == "fp8") return Stored{.type = DType::kFloat8E4M3Fn};
  if (name == "int8") return Stored{.type = DType::kInt8};
  if (name == "int4") return Stored{.type = DType::kUint4, .scale = DType::kFloat16, .group_in = kInt4Group};
  // No type of four-bit floats is known to graphs: integers of as many bits stand for them.
  if (name == "nvfp4") return Stored{.type = DType::kUint4, .scale = DType::kFloat8E4M3Fn, .group_in = kNvfp4Group};
  if (name == "mxfp4") return Stored{.type = DType::kUint4, .scale = DType::kUint8, .group_in = kMxGroup};
  if (const DType dtype = DTypeByName(name); dtype != DType::kUndefined) return Stored{.type = dtype};
  constexpr std::string_view kNames[] = {"bf16", "fp16", "fp32", "fp8", "int8", "int4", "nvfp4", "mxfp4"};
  return InvalidArgument("%s: %s", option, ExpectedOneOf(kNames, name));
}

void ReadQuantisation(ConfigFields& f, Architecture& a) {
  std::string method = f.Text("quant_method", "");
  std::optional<ConfigFields> nested = f.Object("quantization");
  if (method.empty() && (f.Has("quant_algo") || nested)) method = "modelopt";
  Stored stored;
  if (method == "fp8" || method == "fbgemm_fp8") {
    const bool blocks = f.Has("weight_block_size") || method == "fbgemm_fp8";
    stored = {.type = DType::kFloat8E4M3Fn, .group_out = blocks ? 1 : 0};
    ReadBlock(f, "weight_block_size", stored);
    ReadIgnored(f, {"ignored_layers", "modules_to_not_convert"}, a);
  } else if (method == "mxfp8") {
    stored = kMxfp8;
    ReadBlock(f, "weight_block_size", stored);
    ReadIgnored(f, {"ignored_layers", "modules_to_not_convert"}, a);
  } else if (method == "compressed-tensors") {
    return ReadGroups(f, a);
  } else if (method == "gptq" || method == "awq" || method == "auto-round") {
    const std::string_view key = f.Either({"bits", "w_bit"});
    const int64_t bits = f.Size(key);
    f.Expect(key, bits == 4 || bits == 8, "4 or 8");
    const bool zeros = method == "awq" ? f.Flag("zero_point", true) : !f.Flag("sym", true);
    stored = OfBits(bits, f.Group(f.Either({"group_size", "q_group_size"})), DType::kFloat16, zeros);
    f.Expect("lm_head", !f.Flag("lm_head", false), "false");
    for (const char* some : {"dynamic", "extra_config"}) f.Expect(some, !f.Has(some), "none: all layers have the same");
    ReadIgnored(f, {"modules_to_not_convert"}, a);
  } else if (method == "bitsandbytes") {
    constexpr int64_t kBitsandbytesBlock = 64;
    const bool four = f.Flag("load_in_4bit", false), eight = f.Flag("load_in_8bit", false);
    f.Expect("load_in_4bit", four != eight, "either load_in_4bit or load_in_8bit");
    stored = OfBits(four ? 4 : 8, four ? kBitsandbytesBlock : 0, DType::kFloat32);
    if (four && f.Flag("bnb_4bit_use_double_quant", false)) stored.scale = DType::kUint8;
    ReadIgnored(f, {"llm_int8_skip_modules"}, a);
  } else if (method == "mxfp4") {
    a.stored_experts = *StoredByName("quant_method", "mxfp4");  // of gpt-oss: all else is as the file's dtype says
    return ReadIgnored(f, {"modules_to_not_convert"}, a);
  } else if (method == "modelopt" || method == "modelopt_fp4") {
    ReadModelOpt(nested ? *nested : f, a);
    if (nested) f.Take(*nested);
    return;
  } else {
    f.Expect("quant_method", false,
             "fp8, fbgemm_fp8, mxfp8, compressed-tensors, gptq, awq, auto-round, bitsandbytes, mxfp4 or modelopt");
  }
  a.stored = stored;
  if (a.stored_experts.type == DType::kUndefined) a.stored_experts = stored;  // unless the file has a type of theirs
}

}  // namespace horus
