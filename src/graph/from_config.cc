// SPDX-License-Identifier: Apache-2.0
// Writes the layers of a language model as engines run them: one product makes queries, keys and values, one the gate
// and what it gates.
#include "graph/from_config.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/architecture.h"
#include "graph/config_fields.h"
#include "graph/fingerprint.h"
#include "graph/reader.h"

namespace horus {
namespace {

// Builds a Graph operator by operator, as the reader would have it from a file: one body, nodes in the order of the
// calls.
class GraphWriter {
 public:
  GraphWriter() { graph_.bodies.emplace_back(); }

  using Attributes = std::vector<Attribute>;

  // A named dimension; what nobody binds has the size `unless_bound`.
  DeclaredDim Symbol(std::string name, int64_t unless_bound = kUnknownDim) {
    graph_.symbols.push_back(std::move(name));
    graph_.unless_bound.push_back(unless_bound);
    return {.symbol = SymbolId(static_cast<uint32_t>(graph_.symbols.size() - 1))};
  }

  ValueId Input(std::string name, DType dtype, std::vector<DeclaredDim> dims) {
    const ValueId id = Add({.name = std::move(name), .dtype = dtype, .dims = std::move(dims)});
    body().inputs.push_back(id);
    return id;
  }

  ValueId Weight(std::string name, DType dtype, std::vector<int64_t> dims, std::vector<int64_t> ints = {}) {
    Value value{.name = std::move(name), .dtype = dtype, .dims = std::vector<DeclaredDim>()};
    for (const int64_t size : dims) value.dims->push_back({.size = size});
    value.literal = static_cast<int32_t>(body().literals.size());
    const bool has_data = !ints.empty();
    body().literals.push_back({.dtype = dtype, .dims = std::move(dims), .ints = std::move(ints), .has_data = has_data});
    return Add(std::move(value));
  }

  // The first of `outputs` values that the operator makes; the others follow it.
  ValueId Op(std::string_view domain, std::string_view type, std::string name, std::vector<ValueId> inputs,
             Attributes attributes = {}, uint32_t outputs = 1) {
    Node node{.name = std::move(name), .domain = std::string(domain), .op_type = std::string(type)};
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    for (uint32_t i = 0; i < outputs; ++i) {
      node.outputs.push_back(Add({.name = node.name + "/" + node.op_type + "_" + std::to_string(i)}));
    }
    body().nodes.push_back(std::move(node));
    return body().nodes.back().outputs.front();
  }

  void Output(ValueId id) { body().outputs.push_back(id); }
  void Say(std::string key, std::string value) { graph_.metadata.emplace_back(std::move(key), std::move(value)); }

  std::shared_ptr<const Graph> Finish(std::string name) && {
    constexpr int64_t kIr = 11, kOpset = 22;
    graph_.ir_version = kIr;
    graph_.opset = kOpset;
    graph_.producer = "horus";
    graph_.name = std::move(name);
    graph_.bytes_held = static_cast<int64_t>(sizeof(Graph));
    for (const Value& value : body().values) {
      graph_.bytes_held += static_cast<int64_t>(sizeof(Value) + sizeof(Literal) + value.name.capacity());
    }
    for (const Node& node : body().nodes) {
      graph_.bytes_held += static_cast<int64_t>(sizeof(Node) + node.attributes.size() * sizeof(Attribute) +
                                                node.inputs.size() * sizeof(ValueId) + node.name.capacity());
    }
    graph_.fingerprint = FingerprintOf(graph_);
    return std::make_shared<const Graph>(std::move(graph_));
  }

 private:
  GraphBody& body() { return graph_.bodies.front(); }
  ValueId Add(Value value) {
    body().values.push_back(std::move(value));
    return ValueId(static_cast<uint32_t>(body().values.size() - 1));
  }

  Graph graph_;
};

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

  absl::StatusOr<std::shared_ptr<const Graph>> Write() &&;

 private:
  int64_t Part(std::string_view field, int64_t size, int64_t parts) {
    if (size % parts != 0 && status_.ok()) {
      status_ = InvalidArgument("config field %s: expected a multiple of %d parts, found %d", field, parts, size);
    }
    return size / parts;
  }
  // Of fewer heads than parts, several parts have the same one.
  int64_t SharedHeads(std::string_view field, int64_t heads) {
    return heads >= t_ || t_ % heads != 0 ? Part(field, heads, t_) : 1;
  }
  [[nodiscard]] Architecture::Mixer MixerOf(int64_t layer) const {
    return a_.mixers.empty() ? Architecture::Mixer::kAttention : a_.mixers[static_cast<size_t>(layer)];
  }

  ValueId Op(std::string_view type, std::string name, std::vector<ValueId> inputs,
             GraphWriter::Attributes attributes = {}, uint32_t outputs = 1) {
    return w_.Op("", type, std::move(name), std::move(inputs), std::move(attributes), outputs);
  }
  ValueId Split(const std::string& name, ValueId x, std::vector<int64_t> parts) {
    const auto outputs = static_cast<uint32_t>(parts.size());
    return Op("Split", name + "/split", {x}, {{"axis", int64_t{-1}, ""}, {"split", std::move(parts), ""}}, outputs);
  }
  ValueId Plus(const std::string& name, ValueId x, ValueId y) { return Op("Add", name, {x, y}); }
  ValueId Reduced(const std::string& name, ValueId x, int64_t ranks) {
    if (ranks == 1) return x;
    return w_.Op(kHorusDomain, "AllReduce", name + "/all_reduce", {x}, {{"ranks", ranks, ""}});
  }

  ValueId Norm(const std::string& name, ValueId x, int64_t width);
  Stored StoredFor(std::string name, bool expert) const;
  ValueId Linear(const std::string& name, ValueId x, int64_t in, int64_t out, bool bias, bool plain = false);
  ValueId Adapted(const std::string& name, ValueId y, ValueId x, int64_t in, int64_t out);
  ValueId HeadNorm(const std::string& name, ValueId x, int64_t heads, int64_t size);
  ValueId NormOfHeads(const std::string& name, ValueId x, int64_t heads, int64_t size);
  ValueId Rotated(const std::string& name, ValueId x, int64_t heads);
  ValueId Attention(const std::string& p, int64_t layer, ValueId x);
  ValueId LatentAttention(const std::string& p, int64_t layer, ValueId x);
  void Indexer(const std::string& p, int64_t layer, ValueId x, ValueId q);
  ValueId LinearAttention(const std::string& p, int64_t layer, ValueId x);
  ValueId Mlp(const std::string& p, ValueId x, int64_t width);
  ValueId Experts(const std::string& p, ValueId x);
  ValueId Vision(ValueId x);
  ValueId ExpertWeights(const std::string& name, std::vector<int64_t> dims, ValueId* scales);
  ValueId Layer(int64_t layer, ValueId x);
  ValueId Embedded();
  void Logits(ValueId x);

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
  Stored stored_;
};

ValueId ModelWriter::Norm(const std::string& name, ValueId x, int64_t width) {
  std::vector<ValueId> inputs = {x, w_.Weight(name + ".weight", dtype_, {width})};
  if (!a_.rms) inputs.push_back(w_.Weight(name + ".bias", dtype_, {width}));
  return Op(a_.rms ? "SimplifiedLayerNormalization" : "LayerNormalization", name, std::move(inputs));
}

Stored ModelWriter::StoredFor(std::string name, bool expert) const {
  // Checkpoints of models whose layers have one part call it a mixer.
  for (const std::string_view part : {".self_attn.", ".mlp."}) {
    const size_t at = a_.one_part ? name.find(part) : std::string::npos;
    if (at != std::string::npos) name.replace(at, part.size(), ".mixer.");
  }
  const bool plain = stored_.type == DType::kUndefined || (stored_.experts_only && !expert) ||
                     std::any_of(a_.plain.begin(), a_.plain.end(),
                                 [&name](const std::string& words) { return HasWords(name, words); });
  return plain ? Stored{} : stored_;
}

ValueId ModelWriter::Linear(const std::string& name, ValueId x, int64_t in, int64_t out, bool bias, bool plain) {
  const Stored s = plain ? Stored{} : StoredFor(name, false);
  const std::string weight = name + ".weight";
  ValueId y;
  if (s.type == DType::kUndefined) {
    y = Op("MatMul", name, {x, w_.Weight(weight, dtype_, {in, out})});
  } else if (s.type == DType::kUint4) {
    const int64_t group = s.group_in == 0 ? in : std::min(s.group_in, in);
    if ((in % group != 0 || group % 2 != 0) && status_.ok()) {
      status_ = InvalidArgument("layer %s: expected inputs in whole groups of %d weights, found %d", name, group, in);
    }
    const ValueId packed = w_.Weight(weight, DType::kUint8, {out, in / group, group / 2});
    // Bounded: sizes of 2^37 at most, and groups of 2^24.
    const ValueId scales = w_.Weight(name + ".weight_scale", s.scale, {out * Groups(in, group)});
    y = w_.Op(kMicrosoftDomain, "MatMulNBits", name, {x, packed, scales},
              {{"K", in, ""}, {"N", out, ""}, {"bits", int64_t{4}, ""}, {"block_size", group, ""}});
  } else {
    const ValueId scales =
        w_.Weight(name + ".weight_scale", s.scale, {Groups(in, s.group_in), Groups(out, s.group_out)});
    y = w_.Op(kMicrosoftDomain, "DynamicQuantizeMatMul", name, {x, w_.Weight(weight, s.type, {in, out}), scales});
  }
  return bias ? Plus(name + "/bias", y, w_.Weight(name + ".bias", dtype_, {out})) : y;
}

// y + B A x, as LoRA adds to a layer that stays as it is.
ValueId ModelWriter::Adapted(const std::string& name, ValueId y, ValueId x, int64_t in, int64_t out) {
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

ValueId ModelWriter::HeadNorm(const std::string& name, ValueId x, int64_t heads, int64_t size) {
  if (a_.qk_norm == Architecture::QkNorm::kNone) return x;
  // Bounded: of fields below 2^24, heads and ranks below 2^13.
  if (a_.qk_norm == Architecture::QkNorm::kWhole) return Norm(name, x, heads * size);
  return NormOfHeads(name, x, heads, size);
}

ValueId ModelWriter::NormOfHeads(const std::string& name, ValueId x, int64_t heads, int64_t size) {
  const auto to = [&](const char* what, std::vector<int64_t> dims) {
    const auto rank = static_cast<int64_t>(dims.size());
    return w_.Weight(name + what, DType::kInt64, {rank}, std::move(dims));
  };
  const ValueId split = Op("Reshape", name + "/heads", {x, to(".heads", {0, 0, heads, size})});
  return Op("Reshape", name + "/whole", {Norm(name, split, size), to(".whole", {0, 0, -1})});
}

ValueId ModelWriter::Rotated(const std::string& name, ValueId x, int64_t heads) {
  if (a_.positions > 0 || !a_.rotary) return x;
  return w_.Op(kMicrosoftDomain, "RotaryEmbedding", name + "/rotary", {x, positions_, cos_, sin_},
               {{"num_heads", heads, ""}});
}

ValueId ModelWriter::Attention(const std::string& p, int64_t layer, ValueId x) {
  const int64_t heads = Part("num_attention_heads", a_.heads, t_);
  const int64_t window = a_.windows.empty() ? 0 : a_.windows[static_cast<size_t>(layer)];
  const bool whole = a_.whole_head_dim > 0 && window == 0, one = whole && a_.keys_are_values;
  const int64_t key_heads = SharedHeads("num_key_value_heads", whole ? a_.whole_kv_heads : a_.kv_heads);
  const int64_t size = whole ? a_.whole_head_dim : a_.head_dim;
  // Bounded: of fields below 2^24, heads and ranks below 2^13.
  const int64_t q_width = heads * size, kv_width = key_heads * size;
  // Bounded: of fields below 2^24, heads and ranks below 2^13.
  const int64_t asked = a_.attention_gate ? 2 * q_width : q_width;
  // Bounded: of fields below 2^24, heads and ranks below 2^13.
  ValueId q = Linear(p + "self_attn.qkv_proj", x, a_.hidden, asked + (one ? 1 : 2) * kv_width, a_.qkv_bias), k, v, gate;
  if (a_.qk_norm != Architecture::QkNorm::kNone || o_.lora_rank > 0) {
    std::vector<int64_t> parts = {asked, kv_width, kv_width};
    if (one) parts.pop_back();
    q = Split(p + "self_attn.qkv_proj", q, std::move(parts));
    k = Next(q), v = Next(q, one ? 1 : 2);
    q = Adapted(p + "self_attn.q_proj", q, x, a_.hidden, asked);
    if (a_.attention_gate) {
      q = Split(p + "self_attn.q_proj", q, {q_width, q_width});
      gate = Next(q);
    }
    k = Adapted(p + "self_attn.k_proj", k, x, a_.hidden, kv_width);
    if (!one) v = Adapted(p + "self_attn.v_proj", v, x, a_.hidden, kv_width);
    q = HeadNorm(p + "self_attn.q_norm", q, heads, size);
    k = Rotated(p + "self_attn.k_proj", HeadNorm(p + "self_attn.k_norm", k, key_heads, size), key_heads);
  }
  q = Rotated(p + "self_attn.q_proj", q, heads);  // without k: all three, of which an engine leaves the values out
  std::vector<ValueId> inputs = {q, k, v};
  if (!o_.training) {
    for (const char* what : {".key", ".value"}) {
      inputs.push_back(w_.Input(absl::StrCat("past_key_values.", layer, what), cache_,
                                {batch_, {.size = key_heads}, past_, {.size = size}}));
    }
  }
  constexpr size_t kSinks = 11;  // the operator's input of that meaning
  if (a_.sinks) {
    inputs.resize(kSinks);
    inputs.push_back(w_.Weight(p + "self_attn.sinks", dtype_, {heads}));
  }
  ValueId y = w_.Op(kMicrosoftDomain, "GroupQueryAttention", p + "self_attn.attn", std::move(inputs),
                    {{"num_heads", heads, ""},
                     {"kv_num_heads", key_heads, ""},
                     {"local_window_size", window > 0 ? window : int64_t{-1}, ""}},
                    o_.training ? 1 : 3);
  if (!o_.training) w_.Output(Next(y)), w_.Output(Next(y, 2));
  if (gate.valid()) y = Op("Mul", p + "self_attn.gate/mul", {y, Op("Sigmoid", p + "self_attn.gate/sigmoid", {gate})});
  const ValueId o = Linear(p + "self_attn.o_proj", y, q_width, a_.hidden, a_.o_bias);
  return Adapted(p + "self_attn.o_proj", o, y, q_width, a_.hidden);
}

// DeepSeek's latent attention: one cache of kv_rank + rope elements a token, shared by all heads.
// Approximated: the rotary kernel is counted over whole queries, though it turns their last `rope` elements alone.
ValueId ModelWriter::LatentAttention(const std::string& p, int64_t layer, ValueId x) {
  const int64_t heads = Part("num_attention_heads", a_.heads, t_);
  // Bounded: of fields below 2^24, heads and ranks below 2^13.
  const int64_t q_width = heads * (a_.nope + a_.rope), latent = a_.kv_rank + a_.rope;
  ValueId q, kv;
  if (a_.q_rank > 0) {
    const ValueId both = Linear(p + "self_attn.fused_qkv_a_proj", x, a_.hidden, a_.q_rank + latent, false);
    q = Split(p + "self_attn.fused_qkv_a_proj", both, {a_.q_rank, a_.kv_rank, a_.rope});
    kv = Next(q);
    q = Norm(p + "self_attn.q_a_layernorm", q, a_.q_rank);
    if (!a_.indexed.empty() && a_.indexed[static_cast<size_t>(layer)]) Indexer(p + "self_attn.indexer.", layer, x, q);
    q = Linear(p + "self_attn.q_b_proj", q, a_.q_rank, q_width, false);
  } else {
    q = Linear(p + "self_attn.q_proj", x, a_.hidden, q_width, false);
    kv = Split(p + "self_attn.kv_a_proj", Linear(p + "self_attn.kv_a_proj", x, a_.hidden, latent, false),
               {a_.kv_rank, a_.rope});
  }
  const ValueId turned = Rotated(p + "self_attn.k_pe", Next(kv), 1);
  const ValueId normed = Norm(p + "self_attn.kv_a_layernorm", kv, a_.kv_rank);
  const Stored s = StoredFor(p + "self_attn.kv_b_proj", false);
  // Bounded: of fields below 2^24, heads and ranks below 2^13.
  const int64_t width = heads * (a_.nope + a_.v_dim);
  const ValueId weight =
      w_.Weight(p + "self_attn.kv_b_proj.weight", s.type == DType::kUndefined ? dtype_ : s.type, {a_.kv_rank, width});
  std::vector<ValueId> inputs = {Rotated(p + "self_attn.q_proj", q, heads), normed, weight, ValueId(), turned};
  if (!o_.training) {
    inputs[3] = w_.Input(absl::StrCat("past_key_values.", layer, ".latent"), cache_,
                         {batch_, {.size = 1}, past_, {.size = latent}});
  }
  if (s.type != DType::kUndefined) {
    inputs.push_back(w_.Weight(p + "self_attn.kv_b_proj.weight_scale", s.scale,
                               {Groups(a_.kv_rank, s.group_in), Groups(width, s.group_out)}));
  }
  constexpr size_t kSelected = 6;  // the operator's input of that meaning
  if (selected_.valid()) {
    inputs.resize(kSelected);
    inputs.push_back(selected_);
  }
  const ValueId y = w_.Op(kHorusDomain, "LatentAttention", p + "self_attn.attn", std::move(inputs),
                          {{"num_heads", heads, ""},
                           {"qk_rope_head_dim", a_.rope, ""},
                           {"v_head_dim", a_.v_dim, ""},
                           {"local_window_size", a_.index_top > 0 ? a_.index_top : int64_t{-1}, ""}},
                          o_.training ? 1 : 2);
  if (!o_.training) w_.Output(Next(y));
  // Bounded: of fields below 2^24, heads and ranks below 2^13.
  return Linear(p + "self_attn.o_proj", y, heads * a_.v_dim, a_.hidden, false);
}

// Scores of all tokens for the sparse attention of this layer and of those that share them. Every part has it whole,
// and its keys are stored in fp8 with a scale of four bytes a token, as engines do.
void ModelWriter::Indexer(const std::string& p, int64_t layer, ValueId x, ValueId q) {
  const int64_t heads = a_.index_heads, size = a_.index_dim;
  // Bounded: of fields below 2^24, heads and ranks below 2^13.
  const ValueId queries = Linear(p + "wq_b", q, a_.q_rank, heads * size, false);
  ValueId k = Linear(p + "wk", x, a_.hidden, size, false);
  k = Op("LayerNormalization", p + "k_norm",
         {k, w_.Weight(p + "k_norm.weight", dtype_, {size}), w_.Weight(p + "k_norm.bias", dtype_, {size})});
  std::vector<ValueId> inputs = {queries, k, Linear(p + "weights_proj", x, a_.hidden, heads, false, /*plain=*/true)};
  constexpr int64_t kScaleBytes = 4;
  if (!o_.training) {
    inputs.push_back(w_.Input(absl::StrCat("past_key_values.", layer, ".index"), DType::kFloat8E4M3Fn,
                              {batch_, {.size = 1}, past_, {.size = size + kScaleBytes}}));
  }
  selected_ = w_.Op(kHorusDomain, "IndexAttention", p + "scores", std::move(inputs),
                    {{"num_heads", heads, ""}, {"index_topk", a_.index_top, ""}}, o_.training ? 1 : 2);
  if (!o_.training) w_.Output(Next(selected_));
}

// A gated delta net or Mamba-2: a short convolution, then a state a head in place of a cache.
ValueId ModelWriter::LinearAttention(const std::string& p, int64_t layer, ValueId x) {
  const bool mamba = MixerOf(layer) == Architecture::Mixer::kMamba2;
  const std::string m = p + (mamba ? "mixer." : "linear_attn.");
  const int64_t heads = Part(a_.linear_heads_field, a_.linear_heads, t_);
  const int64_t key_heads = SharedHeads(a_.linear_key_heads_field, a_.linear_key_heads);
  // Bounded: of fields below 2^24, heads and ranks below 2^13.
  const int64_t width = heads * a_.linear_value_dim, channels = width + 2 * key_heads * a_.linear_key_dim;
  ValueId mixed, rates;
  if (mamba) {
    mixed = Split(m + "in_proj", Linear(m + "in_proj", x, a_.hidden, channels + width + heads, false),
                  {channels, width, heads});
    rates = Next(mixed, 2);
  } else {
    mixed =
        Split(m + "in_proj_qkvz", Linear(m + "in_proj_qkvz", x, a_.hidden, channels + width, false), {channels, width});
    // Bounded: of fields below 2^24, heads and ranks below 2^13.
    rates = Linear(m + "in_proj_ba", x, a_.hidden, 2 * heads, false);
  }
  const ValueId gate = Next(mixed);
  const auto state = [&](const char* what, DType dtype, std::vector<DeclaredDim> dims) {
    return o_.training ? ValueId() : w_.Input(absl::StrCat("past_key_values.", layer, what), dtype, std::move(dims));
  };
  const auto of_heads = [&](const char* what) { return w_.Weight(m + what, dtype_, {heads}); };
  const uint32_t outputs = o_.training ? 1 : 2;
  mixed = w_.Op(kHorusDomain, "CausalConv", m + "conv1d",
                {mixed, w_.Weight(m + "conv1d.weight", dtype_, {channels, a_.convolved}),
                 mamba ? w_.Weight(m + "conv1d.bias", dtype_, {channels}) : ValueId(),
                 state(".conv", dtype_, {batch_, {.size = channels}, {.size = a_.convolved - 1}})},
                {}, outputs);
  const DType held = a_.state == DType::kUndefined ? dtype_ : a_.state;
  ValueId y = w_.Op(
      kHorusDomain, "LinearAttention", m + "attn",
      {mixed, rates, of_heads("A_log"),
       state(".state", held, {batch_, {.size = heads}, {.size = a_.linear_key_dim}, {.size = a_.linear_value_dim}}),
       of_heads("dt_bias"), mamba ? of_heads("D") : ValueId()},
      {{"num_heads", heads, ""},
       {"key_size", a_.linear_key_dim, ""},
       {"value_size", a_.linear_value_dim, ""},
       {"delta", int64_t{mamba ? 0 : 1}, ""}},
      outputs);
  if (!o_.training) w_.Output(Next(mixed)), w_.Output(Next(y));
  y = mamba ? Norm(m + "norm", y, width) : NormOfHeads(m + "norm", y, heads, a_.linear_value_dim);
  y = Op("Mul", m + "gate/mul", {y, Op("Swish", m + "gate", {gate})});
  return Linear(m + "out_proj", y, width, a_.hidden, false);
}

ValueId ModelWriter::Mlp(const std::string& p, ValueId x, int64_t whole) {
  const int64_t width = Part("intermediate_size", whole, t_);
  const auto down = [&](ValueId y) {
    const ValueId out = Linear(p + "down_proj", y, width, a_.hidden, a_.mlp_bias);
    return Adapted(p + "down_proj", out, y, width, a_.hidden);
  };
  if (!a_.gated) {
    const ValueId up = Linear(p + "up_proj", x, a_.hidden, width, a_.mlp_bias);
    return down(Op(a_.activation, p + "act_fn", {Adapted(p + "up_proj", up, x, a_.hidden, width)}));
  }
  // Bounded: of fields below 2^24, heads and ranks below 2^13.
  const ValueId both =
      Split(p + "gate_up_proj", Linear(p + "gate_up_proj", x, a_.hidden, 2 * width, a_.mlp_bias), {width, width});
  const ValueId gate = Adapted(p + "gate_proj", both, x, a_.hidden, width);
  const ValueId up = Adapted(p + "up_proj", Next(both), x, a_.hidden, width);
  return down(Op("Mul", p + "act_fn/mul", {Op(a_.activation, p + "act_fn", {gate}), up}));
}

ValueId ModelWriter::ExpertWeights(const std::string& name, std::vector<int64_t> dims, ValueId* scales) {
  const Stored s = StoredFor(name, true);
  if (s.type != DType::kUndefined) {
    *scales = w_.Weight(name + "_scale", s.scale, {dims[0], Groups(dims[1], s.group_out), Groups(dims[2], s.group_in)});
  }
  return w_.Weight(name, s.type == DType::kUndefined ? dtype_ : s.type, std::move(dims));
}

ValueId ModelWriter::Experts(const std::string& p, ValueId x) {
  const int64_t experts = Part(a_.experts_field, a_.experts, o_.expert_parallel);
  const int64_t width = Part("moe_intermediate_size", a_.expert_width, experts_t_);
  // Bounded: of fields below 2^24, heads and ranks below 2^13.
  const int64_t up = a_.gated ? 2 * width : width;
  const int64_t inner = a_.expert_latent > 0 ? a_.expert_latent : a_.hidden;
  ValueId router = x;
  if (a_.both) router = Op("Mul", p + "gate/scale", {router, w_.Weight(p + "gate.scale", dtype_, {a_.hidden})});
  router = Linear(p + "gate", router, a_.hidden, a_.experts, false, /*plain=*/true);
  if (a_.both) {
    router = Op("Mul", p + "gate/expert_scale", {router, w_.Weight(p + "gate.per_expert_scale", dtype_, {a_.experts})});
  }
  if (a_.router_bias) router = Plus(p + "gate/bias", router, w_.Weight(p + "gate.bias", dtype_, {a_.experts}));
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
  if (inner != a_.hidden) y = Linear(p + "fc2_latent_proj", y, inner, a_.hidden, false);
  if (a_.shared_width == 0) return y;
  ValueId shared = Mlp(p + "shared_experts.", x, a_.shared_width);
  if (a_.shared_gate) {
    const ValueId gate = Linear(p + "shared_expert_gate", x, a_.hidden, 1, false, /*plain=*/true);
    shared = Op("Mul", p + "shared_expert_gate/mul", {shared, Op("Sigmoid", p + "shared_expert_gate/sigmoid", {gate})});
  }
  return Plus(p + "shared_experts/add", y, shared);
}

ValueId ModelWriter::Layer(int64_t layer, ValueId x) {
  const std::string p = absl::StrCat("model.layers.", layer, ".");
  const ValueId normed = Norm(p + "input_layernorm", x, a_.hidden);
  const auto mlp = [&](ValueId in) {
    const bool sparse = !a_.sparse.empty() && a_.sparse[static_cast<size_t>(layer)];
    return sparse ? Experts(p + "mlp.", in) : Mlp(p + "mlp.", in, a_.intermediate);
  };
  const Architecture::Mixer mixer = MixerOf(layer);
  if (mixer == Architecture::Mixer::kNone) return Plus(p + "mlp/add", x, Reduced(p + "mlp", mlp(normed), t_));
  const bool linear = mixer != Architecture::Mixer::kAttention;
  ValueId attended = linear           ? LinearAttention(p, layer, normed)
                     : a_.kv_rank > 0 ? LatentAttention(p, layer, normed)
                                      : Attention(p, layer, normed);
  if (a_.parallel) {
    const ValueId in = a_.one_norm ? normed : Norm(p + "post_attention_layernorm", x, a_.hidden);
    return Plus(p + "add", x, Reduced(p + "mlp", Plus(p + "mlp/add", attended, mlp(in)), t_));
  }
  attended = Reduced(p + "self_attn.o_proj", attended, t_);
  if (a_.post_norms) attended = Norm(p + "post_attention_layernorm", attended, a_.hidden);
  x = Plus(p + "self_attn/add", x, attended);
  if (a_.one_part) return x;
  const char* const before = a_.post_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm";
  const ValueId in = Norm(p + before, x, a_.hidden);
  ValueId y = Reduced(p + "mlp", a_.both ? Mlp(p + "mlp.", in, a_.intermediate) : mlp(in), t_);
  if (a_.both) {
    const auto norm = [&](const char* name, ValueId of) { return Norm(p + name, of, a_.hidden); };
    y = norm("post_feedforward_layernorm_1", y);
    const ValueId routed = Experts(p + "mlp.", norm("pre_feedforward_layernorm_2", x));
    y = Plus(p + "experts/add", y, norm("post_feedforward_layernorm_2", Reduced(p + "experts", routed, t_)));
  }
  if (a_.post_norms) y = Norm(p + "post_feedforward_layernorm", y, a_.hidden);
  return Plus(p + "mlp/add", x, y);
}

// A tower's weights lie beside the first layer and are not computed. Approximated: parts share all of them alike.
ValueId ModelWriter::Vision(ValueId x) {
  if (a_.vision == 0) return x;
  return w_.Op(kHorusDomain, "Beside", "model.visual",
               {x, w_.Weight("model.visual.weight", dtype_, {Groups(a_.vision, t_)})});
}

ValueId ModelWriter::Embedded() {
  const int64_t rows = Part("vocab_size", a_.vocab, t_);
  const ValueId tokens = w_.Input("input_ids", DType::kInt64, {batch_, seq_});
  embedding_ = w_.Weight("model.embed_tokens.weight", dtype_, {rows, a_.hidden});
  ValueId x = Reduced("model.embed_tokens", Op("Gather", "model.embed_tokens", {embedding_, tokens}), t_);
  if (a_.scaled) x = Op("Mul", "model.embed_tokens/scale", {x, w_.Weight("model.normalizer", dtype_, {})});
  x = Vision(x);
  if (a_.positions == 0) return x;
  const ValueId table = w_.Weight("model.embed_positions.weight", dtype_, {a_.positions, a_.hidden});
  return Plus("model.embed_positions/add", x, Op("Gather", "model.embed_positions", {table, positions_}));
}

// Of the last token of each sequence, but for training. Approximated: parts of the logits stay where they are.
void ModelWriter::Logits(ValueId x) {
  const int64_t rows = Part("vocab_size", a_.vocab, t_);
  if (!o_.training) {
    constexpr int64_t kEnd = int64_t{1} << 40;
    using List = std::vector<int64_t>;
    x = Op("Slice", "model/last", {x}, {{"starts", List{-1}, ""}, {"ends", List{kEnd}, ""}, {"axes", List{1}, ""}});
  }
  x = Norm("model.norm", x, a_.hidden);
  if (!a_.tied) {
    w_.Output(Linear("lm_head", x, a_.hidden, rows, false, /*plain=*/true));
    return;
  }
  if (!embedding_.valid()) embedding_ = w_.Weight("model.embed_tokens.weight", dtype_, {rows, a_.hidden});
  const ValueId turned = Op("Transpose", "lm_head/transpose", {embedding_}, {{"perm", std::vector<int64_t>{1, 0}, ""}});
  w_.Output(Op("MatMul", "lm_head", {x, turned}));
}

absl::StatusOr<std::shared_ptr<const Graph>> ModelWriter::Write() && {
  dtype_ = a_.dtype, stored_ = a_.stored, cache_ = a_.cache;
  if (!o_.weights.empty()) {
    HORUS_ASSIGN_OR_RETURN(stored_, StoredByName("weights", o_.weights));
    if (IsFloating(stored_.type) && BitsOf(stored_.type) > 8) dtype_ = stored_.type, stored_ = {};
  }
  if (!o_.cache.empty()) {
    HORUS_ASSIGN_OR_RETURN(const Stored cache, StoredByName("cache", o_.cache));
    if (BitsOf(cache.type) < 8) return InvalidArgument("cache: expected a type of at least 8 bits, found %s", o_.cache);
    cache_ = cache.type;
    if (BitsOf(cache_) > BitsOf(dtype_)) {
      return InvalidArgument("cache: expected a type of at most %d bits, as the model computes, found %s",
                             BitsOf(dtype_), o_.cache);
    }
  }
  if (cache_ == DType::kUndefined) cache_ = dtype_;

  batch_ = w_.Symbol("batch"), seq_ = w_.Symbol("seq");
  if (!o_.training) past_ = w_.Symbol("past", 0);
  // Bounded: at most kMaxConfigLayers of each.
  const int64_t first = a_.layers * o_.pipeline_stage / o_.pipeline_parallel;
  // Bounded: at most kMaxConfigLayers of each.
  const int64_t end = a_.layers * (o_.pipeline_stage + 1) / o_.pipeline_parallel;
  positions_ = w_.Input("position_ids", DType::kInt64, {batch_, seq_});
  if (a_.positions == 0 && a_.rotary) {
    const int64_t half = (a_.rope > 0 ? a_.rope : a_.head_dim) / 2;
    cos_ = w_.Weight("cos_cache", dtype_, {a_.context, half});
    sin_ = w_.Weight("sin_cache", dtype_, {a_.context, half});
  }
  ValueId x =
      o_.pipeline_stage == 0 ? Embedded() : w_.Input("hidden_states", dtype_, {batch_, seq_, {.size = a_.hidden}});
  for (int64_t layer = first; layer < end && status_.ok(); ++layer) x = Layer(layer, x);
  if (o_.lora_rank > 0 && !adapted_ && status_.ok()) {
    status_ = InvalidArgument("lora_targets: expected a layer that this model has, found %s", Quoted(o_.lora_targets));
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
  if (o.expert_parallel > 1 && a.experts == 0) {
    return InvalidArgument("expert_parallel: expected 1 for a model without experts, found %d", o.expert_parallel);
  }
  if (o.lora_rank == 0 && !o.lora_targets.empty()) {
    return InvalidArgument("lora_targets: expected a lora_rank beside it, found 0");
  }
  for (const std::string& target : TargetsOf(o)) {
    if (std::ranges::find(kLoraTargets, target) != std::end(kLoraTargets)) continue;
    return InvalidArgument("lora_targets: expected all-linear, or %s with commas between, found %s",
                           Listed(kLoraTargets), Quoted(target));
  }
  if (o.lora_rank > 0 && (a.kv_rank > 0 || a.convolved > 0)) {
    return MakeError(absl::StatusCode::kUnimplemented,
                     "lora_rank: expected 0 with latent or linear attention, found %d", o.lora_rank);
  }
  return absl::OkStatus();
}

bool HasFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::vector<std::string_view> KnownNames() {
  std::vector<std::string_view> names;
  for (size_t i = 0; !KnownModelName(i).empty(); ++i) names.push_back(KnownModelName(i));
  return names;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Graph>> GraphFromConfig(std::string_view text, const ConfigOptions& options) {
  constexpr size_t kMostName = 64;
  const bool name = text.size() <= kMostName && text.find('{') == std::string_view::npos;
  if (name && FindKnownModel(text) == nullptr) {
    return MakeError(absl::StatusCode::kNotFound, "expected a config.json or the name of a known model, found %s%s",
                     Quoted(text), DidYouMean(text, KnownNames()));
  }
  HORUS_ASSIGN_OR_RETURN(const Architecture architecture, ReadArchitecture(text));
  HORUS_RETURN_IF_ERROR(CheckOptions(options, architecture));
  return ModelWriter(architecture, options).Write();
}

bool IsConfigPath(const std::string& path) {
  return path.ends_with(".json") || (FindKnownModel(path) != nullptr && !HasFile(path));
}

absl::StatusOr<std::shared_ptr<const Graph>> ReadModel(const std::string& path, const ConfigOptions& options) {
  if (IsConfigPath(path)) {
    std::string text = path;
    if (path.ends_with(".json")) {
      HORUS_ASSIGN_OR_RETURN(text, ReadFile(path, kMaxConfigBytes));
    }
    auto graph = GraphFromConfig(text, options);
    if (!graph.ok()) return MakeError(graph.status().code(), "%s: %s", path, graph.status().message());
    return graph;
  }
  ConfigOptions untouched;
  untouched.training = options.training;
  if (options != untouched) {
    return InvalidArgument("%s: expected a config.json or a known model with options of parts and types, found neither",
                           path);
  }
  auto graph = ReadOnnxFile(path);
  const std::string near = DidYouMean(path, KnownNames());
  if (graph.ok() || HasFile(path) || near.empty()) return graph;
  return MakeError(graph.status().code(), "%s%s", graph.status().message(), near);
}

std::string_view SaidOf(const Graph& graph, std::string_view key) {
  for (const auto& [said, value] : graph.metadata) {
    if (graph.producer == "horus" && said == key) return value;
  }
  return {};
}

std::string_view ComputeTypeOf(const Graph& graph) { return SaidOf(graph, "compute_type"); }

}  // namespace horus
