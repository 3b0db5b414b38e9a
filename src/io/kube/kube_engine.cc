// SPDX-License-Identifier: Apache-2.0
// Command lines as the engines document them: vLLM 0.11, SGLang 0.5, Text Generation Inference 3, trtllm-serve 1.0.
#include "io/kube/kube_engine.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "graph/architecture.h"

namespace horus {
namespace {

using Words = std::vector<std::string>;
using Texts = std::map<std::string, std::string>;

struct EngineKind {
  std::string_view name;
  std::string_view word;   // of the command line, that starts it
  std::string_view image;  // part of images that start it where the pod states no command
  std::string_view share;  // option that states the share of memory
  double usual_share = 0.9;
  EngineMemory memory = EngineMemory::kShare;
  Framework framework = Framework::kVllm;  // whose times it has; of TGI and NIM nobody measured any
};

constexpr std::string_view kVllmShare = "gpu-memory-utilization";
constexpr EngineKind kEngines[] = {
    {"Triton", "tritonserver", "tritonserver", "", 0, EngineMemory::kUnknown},
    {"vLLM", "vllm.entrypoints", "vllm", kVllmShare},
    {"vLLM", "vllm", "", kVllmShare},
    {"SGLang", "sglang", "sglang", "mem-fraction-static", 0.9, EngineMemory::kStaticShare, Framework::kSglang},
    {"TGI", "text-generation-launcher", "text-generation-inference", "cuda-memory-fraction", 1},
    {"TensorRT-LLM", "trtllm-serve", "", "kv-cache-free-gpu-memory-fraction", 0.9, EngineMemory::kShareOfFree,
     Framework::kTensorRtLlm},
    {"KServe (vLLM)", "huggingfaceserver", "huggingfaceserver", kVllmShare},
    {"NIM", "", "nvcr.io/nim/", kVllmShare},
    {"Ollama", "ollama", "ollama", "", 0, EngineMemory::kUnknown},
    {"llama.cpp", "llama-server", "llama.cpp", "", 0, EngineMemory::kUnknown}};

// "NAME=MEANING" with blanks between. Types of weights, in the words of --quantization and of models' names: others are
// the checkpoint's own.
constexpr std::string_view kWeights =
    "fp8=fp8 awq=int4 awq-marlin=int4 gptq=int4 gptq-marlin=int4 int4=int4 w4a16=int4 quantized.w4a16=int4 4bit=int4 "
    "bitsandbytes=int4 int8=int8 w8a8=int8 quantized.w8a8=int8 8bit=int8 eetq=int8 nvfp4=nvfp4 mxfp4=mxfp4";
constexpr std::string_view kComputed = "bfloat16=bf16 float16=fp16 half=fp16 float32=fp32 float=fp32";
// Words of names that change no size: what a model was trained for, when, and by whom it was packed.
constexpr std::string_view kSameSizes =
    "meta= instruct= chat= it= hf= base= coder= math= thinking= dynamic= bf16= unsloth= bnb= preview= v1.0=";
// Other names of known models' sizes, by their authors' config.json.
constexpr std::string_view kOtherNames =
    "llama-3-8b=llama-3.1-8b llama-3-70b=llama-3.1-70b llama-3.3-70b=llama-3.1-70b llama-4-scout-17b-16e=llama-4-scout "
    "llama-4-maverick-17b-128e=llama-4-maverick deepseek-v3.1=deepseek-v3 deepseek-r1=deepseek-v3 "
    "deepseek-r1-distill-llama-8b=llama-3.1-8b deepseek-r1-distill-llama-70b=llama-3.1-70b "
    "deepseek-r1-distill-qwen-7b=qwen2.5-7b deepseek-r1-distill-qwen-14b=qwen2.5-14b "
    "deepseek-r1-distill-qwen-32b=qwen2.5-32b";

std::optional<std::string_view> Find(std::string_view list, std::string_view name) {
  while (!name.empty() && !list.empty()) {
    const std::string_view entry = list.substr(0, list.find(' '));
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
  }
  return std::nullopt;
}

// A release's number: "2507", "v0.3".
bool IsRelease(std::string_view word) {
  constexpr size_t kDigits = 4;
  const bool date = word.size() == kDigits && ParseNumber<int>(word).has_value();
  return date || (word.starts_with("v0.") && word.size() == kDigits);
}

// The name without what changes no size; a type of weights that it tells is taken out.
std::string SizesOf(std::string name, std::string_view& weights) {
  absl::AsciiStrToLower(&name);
  Words kept;
  for (std::string& word : Words(absl::StrSplit(absl::StrReplaceAll(name, {{"_", "-"}}), '-'))) {
    if (const auto type = Find(kWeights, word)) {
      weights = *type;
    } else if (!IsRelease(word) && !Find(kSameSizes, word)) {
      kept.push_back(std::move(word));
    }
  }
  return absl::StrJoin(kept, "-");
}

// ---- Words of a command line.

// "$NAME", "${NAME}" and Kubernetes' "$(NAME)" as the container's environment has them.
std::string Expanded(std::string text, const Texts& environment) {
  if (text.find('$') == std::string::npos) return text;
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [name, value] : environment) {
    for (const std::string& spelled : {absl::StrCat("$(", name, ")"), absl::StrCat("${", name, "}"), "$" + name})
      values.emplace_back(spelled, value);
  }
  return absl::StrReplaceAll(text, values);
}

// Of a container; what is beyond is not read. Chosen: command lines have some dozens of words.
constexpr size_t kMostWords = 1000, kMostVariables = 200;
constexpr size_t kMostValueBytes = 1024, kMostExpandedBytes = size_t{64} << 10;

// As a shell parts them; what ends a command is a word of its own.
void AddShellWords(std::string_view text, Words& words) {
  std::string word;
  bool any = false;
  char quote = 0;
  const auto end = [&] {
    if (any) words.push_back(std::exchange(word, ""));
    any = false;
  };
  for (size_t i = 0; i < text.size() && words.size() < kMostWords; ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      if (text[++i] == '\n') continue;  // a long line goes on
      word += text[i];
      any = true;
    } else if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote != 0 ? 0 : c;
      any = true;
    } else if (quote == 0 && (c == '\n' || c == ';' || c == '&' || c == '|')) {
      end();
      words.emplace_back(";");
    } else if (quote == 0 && absl::ascii_isspace(static_cast<unsigned char>(c))) {
      end();
    } else {
      word += c;
      any = true;
    }
  }
  end();
}

struct CommandLine {
  std::string image;
  Words words;
  bool states_command = false;
  Texts values;  // variables of the environment by name, and then options, which are in small letters

  // Of the first of those that is there; a flag has none.
  [[nodiscard]] std::string Get(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (const auto at = values.find(std::string(name)); at != values.end()) return at->second;
    }
    return "";
  }
};

absl::StatusOr<CommandLine> ReadCommandLine(const KubeView& container) {
  CommandLine line;
  HORUS_ASSIGN_OR_RETURN(line.image, container["image"].Text());
  HORUS_ASSIGN_OR_RETURN(const auto environment, container["env"].List());
  for (const KubeView& one : environment) {
    HORUS_ASSIGN_OR_RETURN(std::string name, one["name"].Text());
    HORUS_ASSIGN_OR_RETURN(std::string value, one["value"].Text());
    if (line.values.size() < kMostVariables && value.size() <= kMostValueBytes) line.values[name] = std::move(value);
  }
  bool shell = false, script = false;  // the next word is one
  size_t expanded = 0;
  for (const char* const part : {"command", "args"}) {
    HORUS_ASSIGN_OR_RETURN(const auto words, container[part].List());
    line.states_command |= part == std::string_view("command") && !words.empty();
    for (const KubeView& one : words) {
      if (line.words.size() >= kMostWords) break;
      HORUS_ASSIGN_OR_RETURN(std::string word, one.Text());
      expanded += word.find('$') == std::string::npos ? 0 : word.size();
      if (expanded <= kMostExpandedBytes) word = Expanded(std::move(word), line.values);
      if (std::exchange(script, false)) {
        AddShellWords(word, line.words);
        continue;
      }
      script = shell && word.starts_with('-') && word.ends_with('c');
      shell |= word.ends_with("sh");
      line.words.push_back(std::move(word));
    }
  }
  return line;
}

// Options by name, "-" in place of "_" and without those before it; the first word that is none under "".
void AddOptions(std::span<const std::string> words, Texts& values) {
  for (size_t i = 0; i < words.size() && words[i] != ";"; ++i) {
    std::string_view word = words[i];
    if (!word.starts_with('-')) {
      if (word != "serve" && word != "run") values.try_emplace("", word);
      continue;
    }
    word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
    const size_t equals = word.find('=');
    std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
    if (equals == std::string_view::npos && i + 1 < words.size() && !words[i + 1].starts_with('-')) value = words[++i];
    values[absl::StrReplaceAll(std::string(word.substr(0, equals)), {{"_", "-"}})] = value;
  }
}

// "8192", "32k", "32K".
int64_t TokensOf(std::string text) {
  constexpr int64_t kThousand = 1000, kBinaryThousand = 1024, kMost = int64_t{1} << 40;
  const int64_t unit = text.ends_with('k') ? kThousand : text.ends_with('K') ? kBinaryThousand : 1;
  if (unit > 1) text.pop_back();
  const int64_t number = ParseNumber<int64_t>(text).value_or(0);
  return number > 0 && number < kMost ? number * unit : 0;  // Bounded: below 2^51
}

void Doubt(std::string why, KubeEngine& engine) {
  if (engine.why_not.empty()) engine.why_not = std::move(why);
}

int64_t PartsOf(const CommandLine& line, std::initializer_list<std::string_view> names, KubeEngine& engine) {
  const std::string text = line.Get(names);
  const int64_t parts = text.empty() ? 1 : ParseNumber<int64_t>(text).value_or(0);
  if (parts >= 1 && parts <= kMostParts) return parts;
  Doubt(Formatted("--%s: expected 1 to %d, found %s", *names.begin(), kMostParts, Quoted(text)), engine);
  return 1;
}

void ReadRun(const EngineKind& kind, const CommandLine& line, KubeEngine& engine) {
  ModelRun& run = engine.run;
  std::string_view weights;
  run.path = std::string(ModelCalled(engine.model, weights));
  run.run.mode = RunMode::kInference;
  run.run.framework = kind.framework;
  run.run.dims.batch = 1;
  constexpr int64_t kPastTokens = 1024;  // chosen: it hardly matters for one request
  run.run.dims.dims = {
      {"past", engine.context > 0 ? std::clamp<int64_t>(engine.context - 1, 1, kPastTokens) : kPastTokens}, {"seq", 1}};
  run.config.tensor_parallel =
      PartsOf(line, {"tensor-parallel-size", "tp-size", "tp", "num-shard", "NUM_SHARD"}, engine);
  run.config.pipeline_parallel = PartsOf(line, {"pipeline-parallel-size", "pp-size", "pp"}, engine);
  const std::string quantized = absl::StrReplaceAll(line.Get({"quantization", "quantize", "QUANTIZE"}), {{"_", "-"}});
  if (const auto type = Find(kWeights, quantized)) {
    weights = *type;
  } else if (!quantized.empty() && weights.empty()) {
    Doubt("quantization " + Quoted(quantized) + " does not tell the type of its weights", engine);
  }
  run.config.weights = std::string(weights);
  if (const std::string cache = line.Get({"kv-cache-dtype"}); cache.starts_with("fp8")) {
    run.config.cache = "fp8";
  } else if (!cache.empty() && cache != "auto") {
    Doubt("--kv-cache-dtype " + Quoted(cache) + " is not read", engine);
  }
  const auto type = ParsePrecision(Find(kComputed, line.Get({"dtype"})).value_or(""));
  run.states_precision = type.ok();
  if (type.ok()) run.run.precision = *type;
}

// `words`: what follows that which starts the engine.
KubeEngine Read(const EngineKind& kind, CommandLine line, std::span<const std::string> words,
                const std::string& fetched) {
  KubeEngine engine{.name = kind.name, .memory = kind.memory, .model = {}, .run = {}, .why_not = {}};
  AddOptions(words, line.values);
  engine.model = line.Get({"model", "model-path", "model-id", "model-dir", "MODEL_ID", "NIM_MODEL_NAME"});
  if (engine.model.empty() && Find("vllm= trtllm-serve= ollama=", kind.word)) engine.model = line.Get({""});
  if (engine.model.empty() && kind.name == "NIM")
    engine.model = line.image.substr(0, line.image.find_first_of(":@", line.image.rfind('/')));
  if (!fetched.empty() && (engine.model.empty() || engine.model.starts_with('/'))) engine.model = fetched;
  engine.model.resize(std::min(engine.model.size(), kMostValueBytes));
  if (kind.memory == EngineMemory::kUnknown) Doubt("it loads whatever it is asked for", engine);
  if (engine.model.empty()) Doubt("its command line names no model", engine);
  const std::string share = line.Get({kind.share, "CUDA_MEMORY_FRACTION"});
  engine.memory_share = share.empty() ? kind.usual_share : ParseNumber<double>(share).value_or(0);
  if (kind.memory != EngineMemory::kUnknown && !(engine.memory_share > 0 && engine.memory_share <= 1)) {
    Doubt(Formatted("--%s: expected a share above 0 and up to 1, found %s", kind.share, Quoted(share)), engine);
    engine.memory_share = kind.usual_share;
  }
  engine.context = TokensOf(kind.name == "TGI"  // of others it is the size of the cache
                                ? line.Get({"max-total-tokens", "MAX_TOTAL_TOKENS"})
                                : line.Get({"max-model-len", "context-length", "max-seq-len", "NIM_MAX_MODEL_LEN"}));
  ReadRun(kind, line, engine);
  if (engine.run.path.empty()) Doubt(std::string(kUnknownModel), engine);
  return engine;
}

std::optional<KubeEngine> EngineOf(const CommandLine& line, const std::string& fetched) {
  const std::span words(line.words);
  for (size_t i = 0; i < words.size(); ++i) {
    const bool serves = i + 1 < words.size() && (words[i + 1] == "serve" || words[i + 1] == "run");
    for (const EngineKind& kind : kEngines) {
      const bool is_package = Find("vllm= sglang= ollama=", kind.word).has_value();  // which others install, too
      const bool starts = words[i].starts_with(std::string(kind.word) + ".") ||
                          (words[i].substr(words[i].rfind('/') + 1) == kind.word && (serves || !is_package));
      if (!kind.word.empty() && starts) return Read(kind, line, words.subspan(i + 1), fetched);
    }
  }
  for (const EngineKind& kind : kEngines) {
    if (!line.states_command && !kind.image.empty() && line.image.find(kind.image) != std::string::npos)
      return Read(kind, line, words, fetched);
  }
  return std::nullopt;
}

}  // namespace

std::string_view ModelCalled(std::string_view path, std::string_view& weights) {
  // "org/model", "/models/model", "hub/models--org--model/snapshots/123".
  const std::string parted = absl::StrReplaceAll(std::string(path), {{"models--", "/"}, {"--", "/"}});
  const Words parts = absl::StrSplit(parted, '/', absl::SkipEmpty());
  constexpr size_t kSearchedParts = 4;  // a snapshot lies below its model; chosen
  for (size_t i = parts.size(); i > 0 && i + kSearchedParts > parts.size(); --i) {  // Bounded: in memory
    std::string_view type, of_known;
    const std::string sizes = SizesOf(parts[i - 1], type);
    for (size_t k = 0; !KnownModelName(k).empty(); ++k) {
      if (const std::string_view name = KnownModelName(k);
          SizesOf(std::string(name), of_known) == sizes || Find(kOtherNames, sizes) == name) {
        weights = type;
        return name;
      }
    }
  }
  return "";
}

std::string KubeEngine::RunText() const {
  return Formatted("%s %s %d x %d past %d %.4g %s %s %s", name, model, run.config.tensor_parallel,
                   run.config.pipeline_parallel, context, memory_share, run.config.weights, run.config.cache,
                   run.states_precision ? Name(run.run.precision) : "");
}

int64_t TakenMib(const KubeEngine& engine, int64_t seen_mib, int64_t model_mib) {
  const auto seen = static_cast<double>(seen_mib);
  const auto model = static_cast<double>(std::min(model_mib, seen_mib));
  // CUDA graphs and what a chunk of prompts needs, as of services (docs/services.md).
  constexpr double kBesideStaticMib = 2048;
  const double share = engine.memory_share;
  const double taken = engine.memory == EngineMemory::kShareOfFree   ? model + share * (seen - model)
                       : engine.memory == EngineMemory::kStaticShare ? share * seen + kBesideStaticMib
                                                                     : share * seen;
  return std::clamp<int64_t>(static_cast<int64_t>(taken), 1, seen_mib);
}

absl::StatusOr<std::optional<KubeEngine>> ReadKubeEngine(const KubeView& spec) {
  // KServe fetches the model before: "hf://org/model /mnt/models".
  std::string fetched;
  HORUS_ASSIGN_OR_RETURN(const auto inits, spec["initContainers"].List());
  for (const KubeView& init : inits) {
    HORUS_ASSIGN_OR_RETURN(const std::string name, init["name"].Text());
    if (name != "storage-initializer") continue;
    HORUS_ASSIGN_OR_RETURN(const CommandLine line, ReadCommandLine(init));
    if (!line.words.empty()) fetched = std::vector<std::string>(absl::StrSplit(line.words.front(), "://")).back();
  }
  HORUS_ASSIGN_OR_RETURN(const auto containers, spec["containers"].List());
  for (const KubeView& container : containers) {
    HORUS_ASSIGN_OR_RETURN(const CommandLine line, ReadCommandLine(container));
    if (std::optional<KubeEngine> engine = EngineOf(line, fetched)) return engine;
  }
  return std::optional<KubeEngine>();
}

}  // namespace horus
