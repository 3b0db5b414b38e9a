// SPDX-License-Identifier: Apache-2.0
// Writes the layers of a language model as engines run them: one product makes queries, keys and values, one the gate
// and what it gates.
// Bounded throughout: of sizes at most 2^24, heads and ranks at most 2^13, layers 1,024 and streams 64.
#include "graph/from_config.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/architecture.h"
#include "graph/config_fields.h"
#include "graph/graph_writer.h"

namespace horus {
namespace {

// The value made `after` the first of an operator with several.
ValueId Next(ValueId first, uint32_t after = 1) { return ValueId(first.value() + after); }

int64_t Groups(int64_t size, int64_t group) { return group == 0 ? 1 : (size + group - 1) / group; }

bool HasWords(const std::string& name, const std::string& words) {
  return ("." + name + ".").find("." + words + ".") != std::string::npos;
}

// Layers with adapters.
std::vector<std::string> TargetsOf(const ConfigOptions& o) {
  if (o.lora_targets == "all-linear") return {std::begin(kLoraTargets), std::end(kLoraTargets)};
  return absl::StrSplit(o.lora_targets.empty() ? "q_proj,k_proj,v_proj,o_proj" : o.lora_targets, ',');
}

class ModelWriter {
 public:
  ModelWriter(const Architecture& a, const ConfigOptions& options)
      : a_(a),
        o_(options),
        t_(options.tensor_parallel),
        experts_t_(options.tensor_parallel / options.expert_parallel),
        targets_(TargetsOf(options)) {}

  absl::StatusOr<std::shared_ptr<const Graph>> Write() && {
    dtype_ = a_.dtype, stored_ = a_.stored, stored_experts_ = a_.stored_experts, cache_ = a_.cache;
    if (!o_.weights.empty()) {
      HORUS_ASSIGN_OR_RETURN(stored_, StoredByName("weights", o_.weights));
      if (IsFloating(stored_.type) && BitsOf(stored_.type) > 8) dtype_ = stored_.type, stored_ = {};
      stored_experts_ = stored_;
    }
    if (!o_.cache.empty()) {
      HORUS_ASSIGN_OR_RETURN(const Stored cache, StoredByName("cache", o_.cache));
      if (BitsOf(cache.type) < 8)
        return InvalidArgument("cache: expected a type of at least 8 bits, found %s", o_.cache);
      cache_ = cache.type;
      if (BitsOf(cache_) > BitsOf(dtype_)) {
        return InvalidArgument("cache: expected a type of at most %d bits, as the model computes, found %s",
                               BitsOf(dtype_), o_.cache);
      }
    }
    if (cache_ == DType::kUndefined) cache_ = dtype_;

    batch_ = w_.Symbol("batch"), seq_ = w_.Symbol("seq");
    if (!o_.training) past_ = w_.Symbol("past", 0);
    const int64_t first = a_.layers * o_.pipeline_stage / o_.pipeline_parallel;
    const int64_t end = a_.layers * (o_.pipeline_stage + 1) / o_.pipeline_parallel;
    positions_ = w_.Input("position_ids", DType::kInt64, {batch_, seq_});
    if (a_.positions == 0 && a_.rotary) {
      const int64_t half = (a_.rope > 0 ? a_.rope : a_.head_dim) / 2;
      cos_ = w_.Weight("cos_cache", dtype_, {a_.context, half});
      sin_ = w_.Weight("sin_cache", dtype_, {a_.context, half});
    }
    ValueId x = o_.pipeline_stage == 0
                    ? Embedded()
                    : w_.Input("hidden_states", dtype_, {batch_, seq_, {.size = a_.hidden * a_.streams}});
    for (int64_t layer = first; layer < end && status_.ok(); ++layer) x = Layer(layer, x);
    if (o_.lora_rank > 0 && !adapted_ && status_.ok()) {
      status_ =
          InvalidArgument("lora_targets: expected a layer that this model has, found %s", Quoted(o_.lora_targets));
    }
    if (o_.pipeline_stage + 1 == o_.pipeline_parallel) {
      Logits(x);
    } else {
      w_.Output(x);
    }
    HORUS_RETURN_IF_ERROR(status_);
    w_.Say("model_type", a_.type);
    w_.Say("compute_type", std::string(DTypeName(dtype_)));
    w_.Say("layers", absl::StrCat(a_.layers));
    if (!a_.stretched) w_.Say("context", absl::StrCat(a_.context));
    w_.Say("tensor_parallel", absl::StrCat(o_.tensor_parallel));
    if (a_.vision > 0) w_.Say("vision", absl::StrCat(a_.vision));
    w_.Say("weights", o_.weights);
    w_.Say("cache", o_.cache);
    if (o_.lora_rank > 0) w_.Say("frozen", "model.,lm_head.");  // prefixes; names of adapters begin otherwise
    return std::move(w_).Finish(a_.name);
  }

 private:
  int64_t Part(std::string_view field, int64_t size, int64_t parts) {
    if (size % parts != 0 && status_.ok())
      status_ = InvalidArgument("config field %s: expected a multiple of %d parts, found %d", field, parts, size);
    return size / parts;
  }
  // Of fewer heads than parts, several parts have the same one.
  int64_t SharedHeads(std::string_view field, int64_t heads) {
    return heads >= t_ || t_ % heads != 0 ? Part(field, heads, t_) : 1;
  }
  [[nodiscard]] const Architecture::Layer& At(int64_t layer) const { return a_.each[static_cast<size_t>(layer)]; }

  ValueId Op(std::string_view type, std::string name, std::vector<ValueId> inputs,
             GraphWriter::Attributes attributes = {}, uint32_t outputs = 1) {
    return w_.Op("", type, std::move(name), std::move(inputs), std::move(attributes), outputs);
  }
  ValueId Split(const std::string& name, ValueId x, std::vector<int64_t> parts) {
    const auto outputs = static_cast<uint32_t>(parts.size());
    return Op("Split", name + "/split", {x}, {{"axis", int64_t{-1}, ""}, {"split", std::move(parts), ""}}, outputs);
  }
  // An operator that returns its caches besides, unless the net trains.
  ValueId Cached(std::string_view domain, std::string_view type, std::string name, std::vector<ValueId> inputs,
                 GraphWriter::Attributes attributes, uint32_t caches = 1) {
    if (o_.training) caches = 0;
    const ValueId y = w_.Op(domain, type, std::move(name), std::move(inputs), std::move(attributes), 1 + caches);
    for (uint32_t i = 1; i <= caches; ++i) w_.Output(Next(y, i));
    return y;
  }
  ValueId Plus(const std::string& name, ValueId x, ValueId y) { return Op("Add", name, {x, y}); }
  ValueId Reduced(const std::string& name, ValueId x, int64_t ranks) {
    if (ranks == 1) return x;
    return w_.Op(kHorusDomain, "AllReduce", name + "/all_reduce", {x}, {{"ranks", ranks, ""}});
  }

  // A size of 0 stays as it is, and -1 is what is left.
  ValueId Reshaped(const std::string& name, const char* what, ValueId x, std::vector<int64_t> dims) {
    const auto rank = static_cast<int64_t>(dims.size());
    const ValueId sizes = w_.Weight(absl::StrCat(name, ".", what), DType::kInt64, {rank}, std::move(dims));
    return Op("Reshape", absl::StrCat(name, "/", what), {x, sizes});
  }

  // None in training.
  ValueId Cache(int64_t layer, const char* what, DType dtype, std::vector<DeclaredDim> dims) {
    if (o_.training) return {};
    return w_.Input(absl::StrCat("past_key_values.", layer, what), dtype, std::move(dims));
  }

  ValueId Norm(const std::string& name, ValueId x, int64_t width) {
    std::vector<ValueId> inputs = {x, w_.Weight(name + ".weight", dtype_, {width})};
    if (a_.norm_bias) inputs.push_back(w_.Weight(name + ".bias", dtype_, {width}));
    return Op(a_.rms ? "SimplifiedLayerNormalization" : "LayerNormalization", name, std::move(inputs));
  }

  Stored StoredFor(std::string name, const Stored& otherwise) const {
    // Checkpoints of models whose layers have one part call it a mixer.
    for (const std::string_view part : {".self_attn.", ".mlp."}) {
      const size_t at = a_.one_part ? name.find(part) : std::string::npos;
      if (at != std::string::npos) name.replace(at, part.size(), ".mixer.");
    }
    for (const auto& [words, stored] : a_.rules) {
      const bool asked = !o_.weights.empty() && stored.type != DType::kUndefined;
      if (!asked && HasWords(name, words)) return stored;
    }
    return otherwise;
  }

  ValueId Linear(const std::string& name, ValueId x, int64_t in, int64_t out, bool bias, bool plain = false) {
    const Stored s = plain ? Stored{} : StoredFor(name, stored_);
    const std::string weight = name + ".weight";
    ValueId y;
    if (s.type == DType::kUndefined) {
      y = Op("MatMul", name, {x, w_.Weight(weight, dtype_, {in, out})});
    } else if (s.type == DType::kUint4) {
      const int64_t group = s.group_in == 0 ? in : std::min(s.group_in, in);
      if ((in % group != 0 || group % 2 != 0) && status_.ok())
        status_ = InvalidArgument("layer %s: expected inputs in whole groups of %d weights, found %d", name, group, in);
      const ValueId packed = w_.Weight(weight, DType::kUint8, {out, in / group, group / 2});
      const ValueId scales = w_.Weight(name + ".weight_scale", s.scale, {out * Groups(in, group)});
      std::vector<ValueId> inputs = {x, packed, scales};
      if (s.zeros)
        inputs.push_back(w_.Weight(name + ".zero_point", DType::kUint8, {Groups(out * Groups(in, group), 2)}));
      y = w_.Op(kMicrosoftDomain, "MatMulNBits", name, std::move(inputs),
                {{"K", in, ""}, {"N", out, ""}, {"bits", int64_t{4}, ""}, {"block_size", group, ""}});
    } else {
      const ValueId scales =
          w_.Weight(name + ".weight_scale", s.scale, {Groups(in, s.group_in), Groups(out, s.group_out)});
      y = w_.Op(kMicrosoftDomain, "DynamicQuantizeMatMul", name, {x, w_.Weight(weight, s.type, {in, out}), scales});
    }
    return bias ? Plus(name + "/bias", y, w_.Weight(name + ".bias", dtype_, {out})) : y;
  }

  // y + B A x, as LoRA adds to a layer that stays as it is.
  ValueId Adapted(const std::string& name, ValueId y, ValueId x, int64_t in, int64_t out) {
    const std::string layer = name.substr(name.rfind('.') + 1);
    if (o_.lora_rank == 0 || std::ranges::find(targets_, layer) == targets_.end()) return y;
    adapted_ = true;
    const std::string lora = "lora." + name;
    const ValueId down =
        Op("MatMul", lora + ".lora_A", {x, w_.Weight(lora + ".lora_A.weight", dtype_, {in, o_.lora_rank})});
    const ValueId up =
        Op("MatMul", lora + ".lora_B", {down, w_.Weight(lora + ".lora_B.weight", dtype_, {o_.lora_rank, out})});
    const ValueId scaled = Op("Mul", lora + "/scale", {up, w_.Weight(lora + ".scaling", dtype_, {})});
    return Plus(lora + "/add", y, scaled);
  }

  ValueId HeadNorm(const std::string& name, ValueId x, int64_t heads, int64_t size) {
    if (a_.qk_norm == Architecture::QkNorm::kNone) return x;
    if (a_.qk_norm == Architecture::QkNorm::kWhole) return Norm(name, x, heads * size);
    return NormOfHeads(name, x, heads, size);
  }

  ValueId NormOfHeads(const std::string& name, ValueId x, int64_t heads, int64_t size) {
    const ValueId split = Reshaped(name, "heads", x, {0, 0, heads, size});
    return Reshaped(name, "whole", Norm(name, split, size), {0, 0, -1});
  }

  ValueId Rotated(const std::string& name, ValueId x, int64_t heads) {
    if (a_.positions > 0 || !a_.rotary) return x;
    return w_.Op(kMicrosoftDomain, "RotaryEmbedding", name + "/rotary", {x, positions_, cos_, sin_},
                 {{"num_heads", heads, ""}});
  }

  ValueId GatedBySigmoid(const std::string& p, ValueId y, ValueId gate) {
    return Op("Mul", p + "gate/mul", {y, Op("Sigmoid", p + "gate/sigmoid", {gate})});
  }

  // Attention to keys and values: queries, keys and values, then caches unless it trains.
  ValueId Grouped(const std::string& p, int64_t layer, std::vector<ValueId> inputs, int64_t key_heads) {
    const Architecture::Layer& l = At(layer);
    const int64_t heads = Part("num_attention_heads", l.heads, t_);
    constexpr size_t kValues = 4, kSinks = 11;  // the operator's inputs of that meaning
    const uint32_t caches = !o_.training && inputs[kValues].valid() ? 2 : 1;
    if (l.sinks) {
      inputs.resize(kSinks);
      inputs.push_back(w_.Weight(p + "self_attn.sinks", dtype_, {heads}));
    }
    // Of keys that an indexer chooses as many are read as in a window.
    const int64_t window = l.indexed && l.compressed == 0 ? a_.index_top : l.window;
    GraphWriter::Attributes attributes = {{"num_heads", heads, ""},
                                          {"kv_num_heads", key_heads, ""},
                                          {"local_window_size", window > 0 ? window : int64_t{-1}, ""}};
    if (a_.o_groups > 0) {
      attributes.push_back({"compressed", l.compressed, ""});
      attributes.push_back({"index_topk", l.indexed ? a_.index_top : int64_t{0}, ""});
    }
    return Cached(kMicrosoftDomain, "GroupQueryAttention", p + "self_attn.attn", std::move(inputs),
                  std::move(attributes), caches);
  }

  ValueId Attention(const std::string& p, int64_t layer, ValueId x) {
    const std::string m = p + "self_attn.";
    const Architecture::Layer& l = At(layer);
    const int64_t heads = Part("num_attention_heads", l.heads, t_);
    const int64_t key_heads = SharedHeads("num_key_value_heads", l.kv_heads), size = l.head_dim;
    const bool one = l.keys_are_values;
    const int64_t q_width = heads * size, k_width = key_heads * size, v_width = one ? 0 : key_heads * l.v_dim;
    const int64_t asked = a_.attention_gate ? 2 * q_width : q_width, out_width = heads * l.v_dim;
    ValueId q = Linear(m + "qkv_proj", x, a_.hidden, asked + k_width + v_width, a_.qkv_bias), k, v, gate;
    if (a_.qk_norm != Architecture::QkNorm::kNone || o_.lora_rank > 0 || size != l.v_dim) {
      std::vector<int64_t> parts = {asked, k_width, v_width};
      if (one) parts.pop_back();
      q = Split(m + "qkv_proj", q, std::move(parts));
      k = Next(q), v = Next(q, one ? 1 : 2);
      q = Adapted(m + "q_proj", q, x, a_.hidden, asked);
      if (a_.attention_gate) {
        q = Split(m + "q_proj", q, {q_width, q_width});
        gate = Next(q);
      }
      k = Adapted(m + "k_proj", k, x, a_.hidden, k_width);
      if (!one) v = Adapted(m + "v_proj", v, x, a_.hidden, v_width);
      q = HeadNorm(m + "q_norm", q, heads, size);
      k = Rotated(m + "k_proj", HeadNorm(m + "k_norm", k, key_heads, size), key_heads);
    }
    if (l.indexed) Indexer(m + "indexer.", layer, x, ValueId());
    q = Rotated(m + "q_proj", q, heads);  // without k: all three, of which an engine leaves the values out
    std::vector<ValueId> inputs = {q, k, v};
    if (!o_.training) {
      inputs.push_back(Cache(layer, ".key", cache_, {batch_, {.size = key_heads}, past_, {.size = size}}));
      inputs.push_back(Cache(layer, ".value", cache_, {batch_, {.size = key_heads}, past_, {.size = l.v_dim}}));
    }
    ValueId y = Grouped(p, layer, std::move(inputs), key_heads);
    if (gate.valid()) y = GatedBySigmoid(m, y, gate);
    if (a_.head_gate) {
      gate = Reshaped(m + "g_proj", "heads", Linear(m + "g_proj", x, a_.hidden, heads, false), {0, 0, heads, 1});
      y = Reshaped(m + "attn", "heads", y, {0, 0, heads, l.v_dim});
      y = Reshaped(m + "attn", "whole", GatedBySigmoid(m, y, gate), {0, 0, -1});
    }
    const ValueId o = Linear(m + "o_proj", y, out_width, a_.hidden, a_.o_bias);
    return Adapted(m + "o_proj", o, y, out_width, a_.hidden);
  }

  // What makes one key of several tokens: two products, softmax over the tokens with learned scores of their places.
  ValueId Compressed(const std::string& p, ValueId x, int64_t size, int64_t ratio) {
    constexpr int64_t kOverlapping = 4;  // keys of so many tokens read those of the key before, too
    const int64_t width = ratio == kOverlapping ? 2 * size : size;
    const ValueId both = Linear(p + "wkv_wgate", x, a_.hidden, 2 * width, false, /*plain=*/true);
    const ValueId y = Split(p + "wkv_wgate", both, {width, width});
    const ValueId keys =
        w_.Op(kHorusDomain, "Beside", p + "ape", {y, w_.Weight(p + "ape", DType::kFloat32, {ratio, width})});
    return Norm(p + "norm", width == size ? keys : Split(p + "ape", keys, {size, size}), size);
  }

  // DeepSeek-V4's: one key a token, which is its value, in a window; before it keys that several tokens share. The
  // cache of these has a row of size / compressed elements for each token, that of single tokens the window.
  ValueId CompressedAttention(const std::string& p, int64_t layer, ValueId x) {
    const Architecture::Layer& l = At(layer);
    const std::string m = p + "self_attn.";
    const int64_t heads = Part("num_attention_heads", l.heads, t_), size = l.head_dim;
    const ValueId both = Linear(m + "fused_wqa_wkv", x, a_.hidden, a_.q_rank + size, false);
    ValueId q = Split(m + "fused_wqa_wkv", both, {a_.q_rank, size});
    const ValueId kv = Rotated(m + "wkv", Norm(m + "kv_norm", Next(q), size), 1);
    q = Norm(m + "q_norm", q, a_.q_rank);
    if (l.indexed) Indexer(m + "indexer.", layer, x, q);
    if (l.compressed > 0) Compressed(m + "compressor.", x, size, l.compressed);
    q = Rotated(m + "wq_b", Linear(m + "wq_b", q, a_.q_rank, heads * size, false), heads);
    std::vector<ValueId> inputs = {q, kv, kv};
    if (!o_.training) {
      inputs.push_back(Cache(layer, ".window", cache_, {batch_, {.size = 1}, {.size = l.window}, {.size = size}}));
      inputs.push_back(l.compressed > 0 ? Cache(layer, ".compressed", cache_,
                                                {batch_, {.size = 1}, past_, {.size = size / l.compressed}})
                                        : ValueId());
    }
    ValueId y = Grouped(p, layer, std::move(inputs), 1);
    // Each group of heads has a product of its own: as many weights and FLOPs as one product of a group's width.
    const int64_t groups = Part("o_groups", a_.o_groups, t_), width = Part("o_groups", heads * size, groups);
    y = Split(m + "wo_a", y, std::vector<int64_t>(static_cast<size_t>(groups), width));
    y = Linear(m + "wo_a", y, width, groups * a_.o_rank, false);
    return Linear(m + "wo_b", y, groups * a_.o_rank, a_.hidden, false);
  }

  // DeepSeek's latent attention: one cache of kv_rank + rope elements a token, shared by all heads.
  // Approximated: the rotary kernel is counted over whole queries, though it turns their last `rope` elements alone.
  ValueId LatentAttention(const std::string& p, int64_t layer, ValueId x) {
    const std::string m = p + "self_attn.";
    const int64_t heads = Part("num_attention_heads", a_.heads, t_);
    const int64_t q_width = heads * (a_.nope + a_.rope), latent = a_.kv_rank + a_.rope;
    ValueId q, kv;
    if (a_.q_rank > 0) {
      const ValueId both = Linear(m + "fused_qkv_a_proj", x, a_.hidden, a_.q_rank + latent, false);
      q = Split(m + "fused_qkv_a_proj", both, {a_.q_rank, a_.kv_rank, a_.rope});
      kv = Next(q);
      q = Norm(m + "q_a_layernorm", q, a_.q_rank);
      if (At(layer).indexed) Indexer(m + "indexer.", layer, x, q);
      q = Linear(m + "q_b_proj", q, a_.q_rank, q_width, false);
    } else {
      q = Linear(m + "q_proj", x, a_.hidden, q_width, false);
      kv = Split(m + "kv_a_proj", Linear(m + "kv_a_proj", x, a_.hidden, latent, false), {a_.kv_rank, a_.rope});
    }
    const ValueId turned = Rotated(m + "k_pe", Next(kv), 1);
    const ValueId normed = Norm(m + "kv_a_layernorm", kv, a_.kv_rank);
    const Stored s = StoredFor(m + "kv_b_proj", stored_);
    const int64_t width = heads * (a_.nope + a_.v_dim);
    const ValueId weight =
        w_.Weight(m + "kv_b_proj.weight", s.type == DType::kUndefined ? dtype_ : s.type, {a_.kv_rank, width});
    std::vector<ValueId> inputs = {Rotated(m + "q_proj", q, heads), normed, weight, ValueId(), turned};
    inputs[3] = Cache(layer, ".latent", cache_, {batch_, {.size = 1}, past_, {.size = latent}});
    if (s.type != DType::kUndefined) {
      inputs.push_back(w_.Weight(m + "kv_b_proj.weight_scale", s.scale,
                                 {Groups(a_.kv_rank, s.group_in), Groups(width, s.group_out)}));
    }
    constexpr size_t kSelected = 6;  // the operator's input of that meaning
    if (selected_.valid()) {
      inputs.resize(kSelected);
      inputs.push_back(selected_);
    }
    ValueId y = Cached(kHorusDomain, "LatentAttention", m + "attn", std::move(inputs),
                       {{"num_heads", heads, ""},
                        {"qk_rope_head_dim", a_.rope, ""},
                        {"v_head_dim", a_.v_dim, ""},
                        {"local_window_size", a_.index_top > 0 ? a_.index_top : int64_t{-1}, ""}});
    const int64_t out = heads * a_.v_dim;
    if (a_.attention_gate) y = GatedBySigmoid(m, y, Linear(m + "g_proj", x, a_.hidden, out, false));
    return Linear(m + "o_proj", y, out, a_.hidden, false);
  }

  // Scores of all tokens for the sparse attention of this layer and of those that share them. Every part has it whole.
  // With latent queries its keys are stored in fp8 with a scale of four bytes a token, as engines do.
  void Indexer(const std::string& p, int64_t layer, ValueId x, ValueId q) {
    const int64_t heads = a_.index_heads, size = a_.index_dim, ratio = At(layer).compressed;
    const bool latent = q.valid();
    ValueId queries =
        Linear(p + (latent ? "wq_b" : "q_proj"), latent ? q : x, latent ? a_.q_rank : a_.hidden, heads * size, false);
    ValueId k = ratio > 0 ? Compressed(p + "compressor.", x, size, ratio)
                          : Linear(p + (latent ? "wk" : "k_proj"), x, a_.hidden, size, false);
    if (!latent) {
      queries = NormOfHeads(p + "q_norm", queries, heads, size), k = Norm(p + "k_norm", k, size);
    } else if (ratio == 0) {
      k = Op("LayerNormalization", p + "k_norm",
             {k, w_.Weight(p + "k_norm.weight", dtype_, {size}), w_.Weight(p + "k_norm.bias", dtype_, {size})});
    }
    std::vector<ValueId> inputs = {queries, k, ValueId()};
    if (latent) inputs[2] = Linear(p + "weights_proj", x, a_.hidden, heads, false, /*plain=*/true);
    constexpr int64_t kScaleBytes = 4;
    const int64_t row = latent ? size + kScaleBytes : size;
    if (!o_.training) {
      inputs.push_back(Cache(layer, ".index", latent ? DType::kFloat8E4M3Fn : cache_,
                             {batch_, {.size = 1}, past_, {.size = ratio > 0 ? row / ratio : row}}));
    }
    GraphWriter::Attributes attributes = {{"num_heads", heads, ""}, {"index_topk", a_.index_top, ""}};
    if (ratio > 0) attributes.push_back({"compressed", ratio, ""});
    const ValueId chosen =
        Cached(kHorusDomain, "IndexAttention", p + "scores", std::move(inputs), std::move(attributes));
    if (latent && ratio == 0) selected_ = chosen;
  }

  // Each channel with its last tokens.
  ValueId Convolved(const std::string& name, int64_t layer, ValueId x, int64_t channels, bool bias) {
    return Cached(kHorusDomain, "CausalConv", name,
                  {x, w_.Weight(name + ".weight", dtype_, {channels, a_.convolved}),
                   bias ? w_.Weight(name + ".bias", dtype_, {channels}) : ValueId(),
                   Cache(layer, ".conv", dtype_, {batch_, {.size = channels}, {.size = a_.convolved - 1}})},
                  {});
  }

  // A delta rule or Mamba-2: a short convolution, then a state a head in place of a cache.
  ValueId LinearAttention(const std::string& p, int64_t layer, ValueId x, Architecture::Mixer mixer) {
    const bool mamba = mixer == Architecture::Mixer::kMamba2, kimi = mixer == Architecture::Mixer::kKimiDelta;
    const std::string m = p + (mamba ? "mixer." : kimi ? "self_attn." : "linear_attn.");
    const int64_t heads = Part(a_.linear_heads_field, a_.linear_heads, t_);
    const int64_t key_heads = SharedHeads(a_.linear_key_heads_field, a_.linear_key_heads);
    const int64_t width = heads * a_.linear_value_dim, channels = width + 2 * key_heads * a_.linear_key_dim;
    ValueId mixed, rates, gate;
    if (mamba) {
      mixed = Split(m + "in_proj", Linear(m + "in_proj", x, a_.hidden, channels + width + heads, false),
                    {channels, width, heads});
      gate = Next(mixed), rates = Next(mixed, 2);
    } else if (kimi) {
      // The rates of channels and, unless it is whole, the gate go through as many elements as a head has.
      const auto narrow = [&](const std::string& name) {
        const ValueId down = Linear(m + name + "a_proj", x, a_.hidden, a_.linear_key_dim, false);
        return Linear(m + name + "b_proj", down, a_.linear_key_dim, width, false);
      };
      mixed = Linear(m + "qkv_proj", x, a_.hidden, channels, false);
      rates = Plus(m + "rates", narrow("f_"), w_.Weight(m + "dt_bias", dtype_, {width}));
      gate = a_.whole_gate ? Linear(m + "g_proj", x, a_.hidden, width, false) : narrow("g_");
    } else {
      mixed = Split(m + "in_proj_qkvz", Linear(m + "in_proj_qkvz", x, a_.hidden, channels + width, false),
                    {channels, width});
      gate = Next(mixed);
      rates = Linear(m + "in_proj_ba", x, a_.hidden, 2 * heads, false);
    }
    const auto of_heads = [&](const char* what) { return w_.Weight(m + what, dtype_, {heads}); };
    mixed = Convolved(m + "conv1d", layer, mixed, channels, mamba && a_.conv_bias);
    const DType held = a_.state == DType::kUndefined ? dtype_ : a_.state;
    const ValueId decay =
        kimi && a_.whole_gate ? w_.Weight(m + "A_log", dtype_, {a_.linear_key_dim}) : of_heads("A_log");
    const ValueId state = Cache(layer, ".state", held,
                                {batch_, {.size = heads}, {.size = a_.linear_key_dim}, {.size = a_.linear_value_dim}});
    ValueId beta = kimi ? Linear(m + "b_proj", x, a_.hidden, heads, false) : of_heads("dt_bias");
    ValueId y = Cached(kHorusDomain, "LinearAttention", m + "attn",
                       {mixed, rates, decay, state, beta, mamba ? of_heads("D") : ValueId()},
                       {{"num_heads", heads, ""},
                        {"key_size", a_.linear_key_dim, ""},
                        {"value_size", a_.linear_value_dim, ""},
                        {"delta", int64_t{mamba ? 0 : 1}, ""}});
    if (!mamba) y = NormOfHeads(m + "norm", y, heads, a_.linear_value_dim);
    if (mamba && a_.mixer_norm) y = Norm(m + "norm", y, width);
    y = kimi ? GatedBySigmoid(m, y, gate) : Op("Mul", m + "gate/mul", {y, Op("Swish", m + "gate", {gate})});
    return Linear(m + (kimi ? "o_proj" : "out_proj"), y, width, a_.hidden, false);
  }

  // LFM2's: what a gate lets in is convolved with its last tokens, and gated again.
  ValueId ShortConvolution(const std::string& p, int64_t layer, ValueId x) {
    const std::string m = p + "conv.";
    const int64_t width = Part("hidden_size", a_.hidden, t_);
    const ValueId in =
        Split(m + "in_proj", Linear(m + "in_proj", x, a_.hidden, 3 * width, false), {width, width, width});
    const ValueId let = Op("Mul", m + "in_gate", {in, Next(in, 2)});
    const ValueId y = Convolved(m + "conv", layer, let, width, /*bias=*/false);
    return Linear(m + "out_proj", Op("Mul", m + "out_gate", {y, Next(in)}), width, a_.hidden, false);
  }

  ValueId Mixed(const std::string& p, int64_t layer, ValueId x) {
    const Architecture::Layer& l = At(layer);
    if (l.mixer == Architecture::Mixer::kShortConv) return ShortConvolution(p, layer, x);
    if (l.mixer != Architecture::Mixer::kAttention) return LinearAttention(p, layer, x, l.mixer);
    if (a_.kv_rank > 0) return LatentAttention(p, layer, x);
    if (a_.o_groups > 0) return CompressedAttention(p, layer, x);
    const ValueId y = Attention(p, layer, x);
    return l.mamba ? Plus(p + "mixer/add", y, LinearAttention(p, layer, x, Architecture::Mixer::kMamba2)) : y;
  }

  ValueId Mlp(const std::string& p, ValueId x, int64_t whole) {
    const int64_t width = Part("intermediate_size", whole, t_);
    const auto down = [&](ValueId y) {
      const ValueId out = Linear(p + "down_proj", y, width, a_.hidden, a_.mlp_bias);
      return Adapted(p + "down_proj", out, y, width, a_.hidden);
    };
    if (!a_.gated) {
      const ValueId up = Linear(p + "up_proj", x, a_.hidden, width, a_.mlp_bias);
      return down(Op(a_.activation, p + "act_fn", {Adapted(p + "up_proj", up, x, a_.hidden, width)}));
    }
    const ValueId both =
        Split(p + "gate_up_proj", Linear(p + "gate_up_proj", x, a_.hidden, 2 * width, a_.mlp_bias), {width, width});
    const ValueId gate = Adapted(p + "gate_proj", both, x, a_.hidden, width);
    const ValueId up = Adapted(p + "up_proj", Next(both), x, a_.hidden, width);
    return down(Op("Mul", p + "act_fn/mul", {Op(a_.activation, p + "act_fn", {gate}), up}));
  }

  ValueId ExpertWeights(const std::string& name, std::vector<int64_t> dims, ValueId* scales) {
    const bool up = name.ends_with("w13_weight");
    const Stored s =
        StoredFor(name.substr(0, name.rfind('.')) + (up ? ".gate_up_proj" : ".down_proj"), stored_experts_);
    if (s.type != DType::kUndefined) {
      *scales =
          w_.Weight(name + "_scale", s.scale, {dims[0], Groups(dims[1], s.group_out), Groups(dims[2], s.group_in)});
    }
    return w_.Weight(name, s.type == DType::kUndefined ? dtype_ : s.type, std::move(dims));
  }

  ValueId Experts(const std::string& p, int64_t layer, ValueId x) {
    const int64_t experts = Part(a_.experts_field, a_.experts, o_.expert_parallel);
    const int64_t width = Part("moe_intermediate_size", a_.expert_width, experts_t_);
    const int64_t up = a_.gated ? 2 * width : width;
    const int64_t inner = a_.expert_latent > 0 ? a_.expert_latent : a_.hidden;
    ValueId router = x;
    if (a_.both) router = Op("Mul", p + "gate/scale", {router, w_.Weight(p + "gate.scale", dtype_, {a_.hidden})});
    router = Linear(p + "gate", router, a_.hidden, a_.experts, false, /*plain=*/true);
    if (a_.both) {
      router =
          Op("Mul", p + "gate/expert_scale", {router, w_.Weight(p + "gate.per_expert_scale", dtype_, {a_.experts})});
    }
    if (a_.router_bias && layer >= a_.hashed)
      router = Plus(p + "gate/bias", router, w_.Weight(p + "gate.bias", dtype_, {a_.experts}));
    ValueId up_scales, down_scales, up_bias, down_bias;
    const ValueId up_weight = ExpertWeights(p + "experts.w13_weight", {experts, up, inner}, &up_scales);
    const ValueId down_weight = ExpertWeights(p + "experts.w2_weight", {experts, inner, width}, &down_scales);
    if (a_.expert_bias) {
      up_bias = w_.Weight(p + "experts.w13_bias", dtype_, {experts, up});
      down_bias = w_.Weight(p + "experts.w2_bias", dtype_, {experts, inner});
    }
    const ValueId in = inner == a_.hidden ? x : Linear(p + "fc1_latent_proj", x, a_.hidden, inner, false);
    GraphWriter::Attributes attributes = {{"k", a_.top_k, ""}, {"experts", a_.experts, ""}};
    ValueId y = up_scales.valid()
                    ? w_.Op(kMicrosoftDomain, "QMoE", p + "experts",
                            {in, router, up_weight, up_scales, up_bias, down_weight, down_scales, down_bias},
                            std::move(attributes))
                    : w_.Op(kMicrosoftDomain, "MoE", p + "experts",
                            {in, router, up_weight, up_bias, down_weight, down_bias}, std::move(attributes));
    if (a_.latent_norm) y = Norm(p + "latent_norm", y, inner);
    if (inner != a_.hidden) y = Linear(p + "fc2_latent_proj", y, inner, a_.hidden, false);
    if (a_.shared_width == 0) return y;
    ValueId shared = Mlp(p + "shared_experts.", x, a_.shared_width);
    if (a_.shared_gate) {
      const ValueId gate = Linear(p + "shared_expert_gate", x, a_.hidden, 1, false, /*plain=*/true);
      shared =
          Op("Mul", p + "shared_expert_gate/mul", {shared, Op("Sigmoid", p + "shared_expert_gate/sigmoid", {gate})});
    }
    return Plus(p + "shared_experts/add", y, shared);
  }

  // What a layer adds to is weighed by a score, from what it was before.
  ValueId Scored(const std::string& p, ValueId x) {
    if (!a_.residual_scores) return x;
    return Op("Mul", p + "_res/mul",
              {x, Linear(p + "_res_proj", Norm(p + "_res_norm", x, a_.hidden), a_.hidden, 1, false,
                         /*plain=*/true)});
  }

  // x and what `make` makes of it. Of several streams [batch, seq, streams x hidden] a product of them all says how
  // they make one, how they mix, and where the result goes.
  ValueId Half(const std::string& p, ValueId x, auto make) {
    const int64_t n = a_.streams;
    if (n == 1) {
      const ValueId y = make(Scored(p, x));
      return Plus(p + "/add", x, y);
    }
    const int64_t scores = (2 + n) * n, all = n * a_.hidden;
    ValueId mix = Linear(p + "_hc.fn", x, all, scores, true, /*plain=*/true);
    mix = w_.Op(kHorusDomain, "Beside", p + "_hc", {mix, w_.Weight(p + "_hc.scale", dtype_, {3})});
    mix = Split(p + "_hc", mix, {n, n, n * n});
    const ValueId streams = Reshaped(p + "_hc", "streams", x, {0, 0, n, a_.hidden});
    const auto matrix = [&](const char* what, ValueId of, int64_t rows, int64_t columns) {
      return Reshaped(p + "_hc", what, of, {0, 0, rows, columns});
    };
    const ValueId in = Op("MatMul", p + "_hc/in", {matrix("pre", mix, 1, n), streams});
    const ValueId y = matrix("made", make(Reshaped(p + "_hc", "one", in, {0, 0, -1})), 1, a_.hidden);
    const ValueId out = Op("Mul", p + "_hc/out", {matrix("post", Next(mix), n, 1), y});
    const ValueId kept = Op("MatMul", p + "_hc/mix", {matrix("comb", Next(mix, 2), n, n), streams});
    return Reshaped(p + "_hc", "all", Plus(p + "/add", kept, out), {0, 0, -1});
  }

  ValueId Layer(int64_t layer, ValueId x) {
    const Architecture::Layer& l = At(layer);
    const std::string p = absl::StrCat("model.layers.", layer, ".");
    const bool mixes = l.mixer != Architecture::Mixer::kNone, thinks = l.sparse || l.inner > 0;
    const auto norm = [&](const char* name, ValueId of) { return Norm(p + name, of, a_.hidden); };
    const auto mlp = [&](ValueId in) {
      return l.sparse && !a_.both ? Experts(p + "mlp.", layer, in) : Mlp(p + "mlp.", in, l.inner);
    };
    if (a_.parallel) {
      return Half(p + "mlp", x, [&](ValueId of) {
        const ValueId normed = norm("input_layernorm", of), attended = Mixed(p, layer, normed);
        const ValueId in = a_.one_norm ? normed : norm("post_attention_layernorm", of);
        return Reduced(p + "mlp", Plus(p + "mlp/sum", attended, mlp(in)), t_);
      });
    }
    if (mixes) {
      x = Half(p + "self_attn", x, [&](ValueId of) {
        const ValueId in = a_.pre_norms ? norm("input_layernorm", of) : of;
        const ValueId attended = Reduced(p + "self_attn.o_proj", Mixed(p, layer, in), t_);
        return a_.post_norms ? norm("post_attention_layernorm", attended) : attended;
      });
    }
    if (!thinks) return x;
    return Half(p + "mlp", x, [&](ValueId of) {
      const char* const before = a_.one_part     ? "input_layernorm"
                                 : a_.post_norms ? "pre_feedforward_layernorm"
                                                 : "post_attention_layernorm";
      ValueId y = Reduced(p + "mlp", mlp(a_.pre_norms ? norm(before, of) : of), t_);
      if (a_.both && l.sparse) {
        y = norm("post_feedforward_layernorm_1", y);
        const ValueId routed = Experts(p + "mlp.", layer, norm("pre_feedforward_layernorm_2", of));
        y = Plus(p + "experts/add", y, norm("post_feedforward_layernorm_2", Reduced(p + "experts", routed, t_)));
      }
      return a_.post_norms ? norm("post_feedforward_layernorm", y) : y;
    });
  }

  // A tower's weights lie beside the first layer and are not computed. Approximated: parts share all of them alike.
  ValueId Vision(ValueId x) {
    if (a_.vision == 0) return x;
    return w_.Op(kHorusDomain, "Beside", "model.visual",
                 {x, w_.Weight("model.visual.weight", dtype_, {Groups(a_.vision, t_)})});
  }

  ValueId Embedded() {
    const int64_t rows = Part("vocab_size", a_.vocab, t_);
    const ValueId tokens = w_.Input("input_ids", DType::kInt64, {batch_, seq_});
    embedding_ = w_.Weight("model.embed_tokens.weight", dtype_, {rows, a_.hidden});
    ValueId x = Reduced("model.embed_tokens", Op("Gather", "model.embed_tokens", {embedding_, tokens}), t_);
    if (a_.scaled) x = Op("Mul", "model.embed_tokens/scale", {x, w_.Weight("model.normalizer", dtype_, {})});
    x = Vision(x);
    if (a_.streams > 1)
      x = Op("Concat", "model.streams", std::vector<ValueId>(static_cast<size_t>(a_.streams), x),
             {{"axis", int64_t{-1}, ""}});
    if (a_.positions == 0) return x;
    const ValueId table = w_.Weight("model.embed_positions.weight", dtype_, {a_.positions, a_.hidden});
    return Plus("model.embed_positions/add", x, Op("Gather", "model.embed_positions", {table, positions_}));
  }

  // Of the last token of each sequence, but for training. Approximated: parts of the logits stay where they are.
  void Logits(ValueId x) {
    const int64_t rows = Part("vocab_size", a_.vocab, t_);
    if (!o_.training) {
      constexpr int64_t kEnd = int64_t{1} << 40;
      using List = std::vector<int64_t>;
      x = Op("Slice", "model/last", {x}, {{"starts", List{-1}, ""}, {"ends", List{kEnd}, ""}, {"axes", List{1}, ""}});
    }
    if (a_.streams > 1) {
      const ValueId mix = Linear("model.hc_head.fn", x, a_.streams * a_.hidden, a_.streams, true, /*plain=*/true);
      const ValueId scale = w_.Weight("model.hc_head.scale", dtype_, {1});
      const ValueId one = w_.Op(kHorusDomain, "Beside", "model.hc_head", {mix, scale});
      x = Op("MatMul", "model.hc_head/in",
             {Reshaped("model.hc_head", "pre", one, {0, 0, 1, a_.streams}),
              Reshaped("model.hc_head", "streams", x, {0, 0, a_.streams, a_.hidden})});
      x = Reshaped("model.hc_head", "one", x, {0, 0, -1});
    }
    x = Norm("model.norm", Scored("model.output", x), a_.hidden);
    if (!a_.tied) {
      w_.Output(Linear("lm_head", x, a_.hidden, rows, a_.logits_bias, /*plain=*/true));
      return;
    }
    if (!embedding_.valid()) embedding_ = w_.Weight("model.embed_tokens.weight", dtype_, {rows, a_.hidden});
    const ValueId turned =
        Op("Transpose", "lm_head/transpose", {embedding_}, {{"perm", std::vector<int64_t>{1, 0}, ""}});
    w_.Output(Op("MatMul", "lm_head", {x, turned}));
  }

  const Architecture& a_;
  const ConfigOptions& o_;
  const int64_t t_, experts_t_;  // GPUs that share a layer; and an expert
  const std::vector<std::string> targets_;
  GraphWriter w_;
  absl::Status status_;
  bool adapted_ = false;
  DeclaredDim batch_, seq_, past_;
  ValueId embedding_, positions_, cos_, sin_, selected_;
  DType dtype_ = DType::kUndefined, cache_ = DType::kUndefined;
  Stored stored_, stored_experts_;
};

absl::Status CheckOptions(const ConfigOptions& o, const Architecture& a) {
  const auto within = [](const char* name, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most) return absl::OkStatus();
    return InvalidArgument("%s: expected %d to %d, found %d", name, least, most, value);
  };
  HORUS_RETURN_IF_ERROR(within("tensor_parallel", o.tensor_parallel, 1, kMostParts));
  HORUS_RETURN_IF_ERROR(within("pipeline_parallel", o.pipeline_parallel, 1, a.layers));
  HORUS_RETURN_IF_ERROR(within("pipeline_stage", o.pipeline_stage, 0, o.pipeline_parallel - 1));
  HORUS_RETURN_IF_ERROR(within("expert_parallel", o.expert_parallel, 1, o.tensor_parallel));
  HORUS_RETURN_IF_ERROR(within("lora_rank", o.lora_rank, 0, kMostLoraRank));
  if (o.tensor_parallel % o.expert_parallel != 0) {
    return InvalidArgument("expert_parallel: expected a divisor of tensor_parallel (%d), found %d", o.tensor_parallel,
                           o.expert_parallel);
  }
  if (o.expert_parallel > 1 && a.experts == 0)
    return InvalidArgument("expert_parallel: expected 1 for a model without experts, found %d", o.expert_parallel);
  if (o.lora_rank == 0 && !o.lora_targets.empty())
    return InvalidArgument("lora_targets: expected a lora_rank beside it, found 0");
  for (const std::string& target : TargetsOf(o)) {
    if (std::ranges::find(kLoraTargets, target) != std::end(kLoraTargets)) continue;
    return InvalidArgument("lora_targets: expected all-linear, or %s with commas between, found %s",
                           Listed(kLoraTargets), Quoted(target));
  }
  if (o.lora_rank > 0 && (a.kv_rank > 0 || a.convolved > 0 || a.o_groups > 0))
    return Unimplemented("lora_rank: expected 0 with latent, compressed or linear attention, found %d", o.lora_rank);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Graph>> GraphFromConfig(std::string_view text, const ConfigOptions& options) {
  constexpr size_t kMostName = 64;
  const bool name = text.size() <= kMostName && text.find('{') == std::string_view::npos;
  if (name && FindKnownModel(text) == nullptr) {
    return NotFound("expected a config.json or the name of a known model, found %s%s", Quoted(text),
                    NearKnownModel(text));
  }
  HORUS_ASSIGN_OR_RETURN(const Architecture architecture, ReadArchitecture(text));
  HORUS_RETURN_IF_ERROR(CheckOptions(options, architecture));
  return ModelWriter(architecture, options).Write();
}

std::string_view SaidOf(const Graph& graph, std::string_view key) {
  for (const auto& [said, value] : graph.metadata) {
    if (graph.producer == "horus" && said == key) return value;
  }
  return {};
}

std::string_view ComputeTypeOf(const Graph& graph) { return SaidOf(graph, "compute_type"); }

bool ServesAlone(const Graph& graph) {
  return !ComputeTypeOf(graph).empty() && std::ranges::find(graph.symbols, "past") != graph.symbols.end();
}

}  // namespace horus
