// SPDX-License-Identifier: Apache-2.0
// Every text of the cluster goes out in double quotes, so that no name reads as something else.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "io/cluster_file.h"
#include "io/decision_log.h"
#include "io/kube/kube_import.h"
#include "yaml-cpp/yaml.h"

namespace horus {
namespace {

constexpr int64_t kUsPerMs = 1000;
constexpr double kMibPerGibReal = 1024;

// Exact: MiB are binary fractions of GiB.
std::string Gib(int64_t mib) { return Formatted("%.17g", static_cast<double>(mib) / kMibPerGibReal); }

std::string CoresText(int64_t milli) {
  std::string text = Formatted("%d.%03d", milli / kMilliPerCore, milli % kMilliPerCore);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// Keys and numbers as they are, texts in quotes.
class Writer {
 public:
  void Comment(const char* text) { Put(YAML::Comment(text), YAML::Newline); }
  void BeginMap() { Put(YAML::BeginMap); }
  void BeginFlowMap() { Put(YAML::Flow, YAML::BeginMap); }
  void EndMap() { Put(YAML::EndMap); }
  void BeginSeq() { Put(YAML::BeginSeq); }
  void BeginFlowSeq() { Put(YAML::Flow, YAML::BeginSeq); }
  void EndSeq() { Put(YAML::EndSeq); }
  void Key(const char* key) { Put(YAML::Key, key, YAML::Value); }
  void KeyText(const std::string& key) { Put(YAML::Key, YAML::DoubleQuoted, key, YAML::Value); }
  void Plain(const std::string& value) { Put(value); }
  void Text(const std::string& value) { Put(YAML::DoubleQuoted, value); }
  void Plain(const char* key, const std::string& value) { Put(YAML::Key, key, YAML::Value, value); }
  void Text(const char* key, const std::string& value) { Put(YAML::Key, key, YAML::Value, YAML::DoubleQuoted, value); }
  void Number(const char* key, int64_t value) { Plain(key, std::to_string(value)); }
  void Pair(const char* key, const std::string& first, const std::string& second) {
    Put(YAML::Key, key, YAML::Value, YAML::Flow, YAML::BeginSeq, first, second, YAML::EndSeq);
  }
  void List(const char* key, const auto& items, auto write) {
    Key(key);
    BeginFlowSeq();
    for (const auto& item : items) write(item);
    EndSeq();
  }
  void List(const char* key, const std::vector<std::string>& texts) {
    List(key, texts, [this](const std::string& text) { Text(text); });
  }
  void Texts(const char* key, const KubeTexts& texts) {
    if (texts.empty()) return;
    Key(key);
    BeginFlowMap();
    for (const auto& [name, value] : texts) {
      KeyText(name);
      Text(value);
    }
    EndMap();
  }
  [[nodiscard]] absl::StatusOr<std::string> Take() {
    if (!out_.good()) return MakeError(absl::StatusCode::kInternal, "YAML: %s", out_.GetLastError());
    return std::string(out_.c_str(), out_.size()) + "\n";
  }

 private:
  template <typename... Parts>
  void Put(const Parts&... parts) {
    (out_ << ... << parts);  // Bounded: a stream, no shift
  }
  YAML::Emitter out_;
};

// ---- Nodes.

struct Card {
  GpuTypeId type;
  SharingMode mode = SharingMode::kTimeSlice;
  int64_t replicas = 1;
  std::vector<int16_t> mig;
  friend bool operator==(const Card&, const Card&) = default;
};

std::vector<std::pair<Card, int64_t>> CardsOf(const std::vector<KubeGpu>& gpus) {
  std::vector<Card> cards;
  int32_t last = -1;
  for (const KubeGpu& gpu : gpus) {
    if (cards.empty() || gpu.card != last) cards.push_back({.type = gpu.type, .mode = gpu.mode});
    last = gpu.card;
    cards.back().replicas = std::max(cards.back().replicas, gpu.replicas);
    if (gpu.mode == SharingMode::kMig) cards.back().mig.push_back(gpu.mig_profile);
  }
  std::vector<std::pair<Card, int64_t>> counted;
  for (Card& card : cards) {
    if (!counted.empty() && counted.back().first == card) {
      ++counted.back().second;
    } else {
      counted.emplace_back(std::move(card), 1);
    }
  }
  return counted;
}

void WriteGpus(const Catalogue& catalogue, const std::vector<KubeGpu>& gpus, Writer& out) {
  out.List("gpus", CardsOf(gpus), [&](const auto& counted) {
    const auto& [card, count] = counted;
    const GpuType& type = catalogue.at(card.type);
    out.BeginFlowMap();
    out.Plain("type", type.name);
    if (count > 1) out.Number("count", count);
    if (card.mode == SharingMode::kMps) out.Plain("sharing", std::string(SharingModeName(card.mode)));
    const auto instance = [&](int16_t profile) { out.Text(type.mig[static_cast<size_t>(profile)].name); };
    if (!card.mig.empty()) out.List("mig", card.mig, instance);
    if (card.replicas > 1) out.Number("max_tenants", card.replicas);
    out.EndMap();
  });
}

void WriteNode(const Catalogue& catalogue, const ImportedNode& node, AdminState state, Writer& out) {
  out.BeginFlowMap();
  out.Text("name", node.name);
  out.Plain("cpu_cores", CoresText(node.cpu_milli));
  out.Plain("memory_gib", Gib(node.mem_mib));
  if (!node.rack.empty()) out.Text("rack", node.rack);
  if (state != AdminState::kUp) out.Plain("state", std::string(AdminStateName(state)));
  out.Texts("labels", node.labels);
  WriteGpus(catalogue, node.gpus, out);
  out.EndMap();
}

// ---- Jobs.

std::vector<GpuTypeId> TypesOf(const ImportedCluster& imported) {
  std::set<GpuTypeId> types;
  for (const ImportedNode& node : imported.nodes) {
    for (const KubeGpu& gpu : node.gpus) types.insert(gpu.type);
  }
  return {types.begin(), types.end()};
}

struct Context {
  const ImportedCluster& imported;
  const Catalogue& catalogue;
  std::vector<GpuTypeId> types;
};

void WriteFigures(const KubeShape& shape, int64_t mem_mib, Writer& out) {
  const auto text = [](double pct) { return Formatted("%.4g", pct); };
  out.BeginFlowMap();
  // Bounded: per cent.
  shape.load_unknown ? out.Pair("gpu_util_pct", text(shape.util_pct * kUnknownBusyShare), text(shape.util_pct))
                     : out.Plain("gpu_util_pct", text(shape.util_pct));
  out.Plain("gpu_memory_gib", Gib(mem_mib));
  out.EndMap();
}

void WritePair(const char* key, const auto& value, auto text_of, Writer& out) {
  if (value.upper == 0) return;
  out.Pair(key, text_of(value.estimate), text_of(value.upper));
}

// What placement counts of a demand's memory.
int64_t MemoryOf(const Demand& demand) {
  return HasMemoryBound(demand) ? demand.mem_mib.upper : demand.mem_mib.estimate;
}

// Where a profile says more than a pod asks for, the larger figure counts, as for the scheduler.
bool NeedsMoreThanAsked(const ImportedProfile& profile, const KubeShape& shape) {
  return shape.mem_mib > 0 && std::ranges::any_of(profile.demands, [&](const TypeDemand& one) {
           return MemoryOf(one.demand) > shape.mem_mib;
         });
}

void WriteProfile(const Demand& demand, int64_t least_mib, Writer& out) {
  const auto real = [](float value) { return Formatted("%.9g", value); };  // exact
  const auto ms = [](int64_t us) { return Formatted("%d.%03d", us / kUsPerMs, us % kUsPerMs); };
  out.BeginFlowMap();
  out.Pair("gpu_util_pct", real(demand.gpu_util_pct.estimate), real(demand.gpu_util_pct.upper));
  WritePair("mem_bw_util_pct", demand.mem_bw_util_pct, real, out);
  out.Pair("gpu_memory_gib", Gib(demand.mem_mib.estimate),
           Gib(least_mib > 0 ? std::max(MemoryOf(demand), least_mib) : demand.mem_mib.upper));
  WritePair("step_time_ms", demand.step_time_us, ms, out);
  if (demand.gradient_mib > 0) out.Number("gradient_mib", demand.gradient_mib);
  if (demand.operator_us > 0) out.Plain("operator_us", real(demand.operator_us));
  if (demand.host_us > 0) out.Plain("host_us", Formatted("%.17g", demand.host_us));
  if (demand.slowdown_bound > 0) {
    out.Plain("duty", real(demand.duty));
    out.Plain("slowdown_bound", real(demand.slowdown_bound));
  }
  const auto power = [&](const char* key, Trait trait) {
    if (const auto log = static_cast<double>(demand.traits[static_cast<size_t>(trait)]); log != 0)
      out.Plain(key, Formatted("%.17g", std::pow(10.0, log)));
  };
  power("kernels", Trait::kLogKernels);
  power("device_share", Trait::kLogDeviceShare);
  out.EndMap();
}

void Copy(const YamlTree& tree, uint32_t value, Writer& out) {
  const std::vector<uint32_t> children = tree.children(value);
  if (tree.kind(value) == YamlTree::Kind::kList) {
    out.BeginFlowSeq();
    for (const uint32_t child : children) Copy(tree, child, out);
    return out.EndSeq();
  }
  if (tree.kind(value) == YamlTree::Kind::kMap) {
    out.BeginFlowMap();
    for (size_t i = 0; i + 1 < children.size(); i += 2) {
      out.KeyText(std::string(tree.text(children[i])));
      Copy(tree, children[i + 1], out);
    }
    return out.EndMap();
  }
  const std::string text(tree.text(value));
  tree.plain(value) ? out.Plain(text) : out.Text(text);
}

// What the command line of an engine says, beside a pattern that says its load.
void WriteRun(const ModelRun& model, Writer& out) {
  out.Text("model", model.path);
  out.Plain("framework", std::string(Name(model.run.framework)));
  if (model.states_precision) out.Plain("precision", std::string(Name(model.run.precision)));
  if (model.config.tensor_parallel > 1) out.Number("tensor_parallel", model.config.tensor_parallel);
  if (!model.config.weights.empty()) out.Text("weights", model.config.weights);
  if (!model.config.cache.empty()) out.Text("cache", model.config.cache);
}

const KubePattern* PatternOf(const Context& context, const KubeShape& shape) {
  return shape.profile.empty() ? nullptr : context.imported.profiles.at(shape.profile).pattern;
}

// What a pattern says: with figures that were measured its terms alone.
void WritePattern(const ImportedProfile& profile, GpuTypeId only, const Catalogue& catalogue, Writer& out) {
  const YamlTree& tree = *profile.pattern->tree;
  const std::vector<uint32_t> children = tree.children(profile.pattern->position);
  const bool others = !profile.demands.empty() && profile.by != KnownBy::kPattern;
  for (size_t i = 0; i + 1 < children.size(); i += 2) {
    const std::string_view key = tree.text(children[i]);
    if (key == "pods" || (key == "demand" && !profile.demands.empty()) || (others && !IsTerm(key))) continue;
    if (key == "slowdown_confidence" && others && profile.pattern->job.spec.slowdown_bound == 0) continue;
    out.Key(std::string(key).c_str());
    key == "model" ? out.Text(profile.pattern->job.model->path) : Copy(tree, children[i + 1], out);
  }
  if (profile.run) WriteRun(*profile.run, out);
  if (!only.valid() || !profile.demands.empty() || !profile.pattern->for_any_type()) return;
  out.List("gpu_types", std::array{only}, [&](GpuTypeId type) { out.Plain(catalogue.at(type).name); });
}

// What is known of the job beside its demand.
void WriteTerms(const Context& context, const KubeShape& shape, Writer& out) {
  if (shape.profile.empty()) return;
  const ImportedProfile& profile = context.imported.profiles.at(shape.profile);
  if (profile.pattern != nullptr) WritePattern(profile, shape.only, context.catalogue, out);
  if (!profile.kind.empty()) out.Plain("kind", profile.kind);
  if (shape.exclusive) out.Plain("exclusive", "true");
  const bool serves = profile.pattern != nullptr && profile.pattern->job.model && profile.pattern->job.model->service;
  const int64_t asked_mib = serves || NeedsMoreThanAsked(profile, shape) ? 0 : shape.mem_mib;
  if (const int64_t request_mib = shape.holds_mib > 0 ? shape.holds_mib : asked_mib; request_mib > 0)
    out.Plain("gpu_memory_request_gib", Gib(request_mib));
  if (shape.slowdown_bound == 0) return;
  out.Plain("slowdown_bound", Formatted("%.9g", shape.slowdown_bound));
  if (shape.slowdown_confidence == 0) return;
  out.Plain("slowdown_confidence", Formatted("%.9g", shape.slowdown_confidence));
}

void WriteDemand(const Context& context, const KubeShape& shape, Writer& out) {
  if (!shape.profile.empty() && context.imported.profiles.at(shape.profile).demands.empty()) return;  // WritePattern
  out.Key("demand");
  out.BeginFlowMap();
  if (!shape.profile.empty()) {
    const ImportedProfile& profile = context.imported.profiles.at(shape.profile);
    const int64_t least_mib = NeedsMoreThanAsked(profile, shape) ? shape.mem_mib : 0;
    for (const TypeDemand& one : profile.demands) {
      if (shape.only.valid() && one.type != shape.only) continue;
      out.Key(context.catalogue.at(one.type).name.c_str());
      WriteProfile(one.demand, least_mib, out);
    }
  } else if (shape.mem_mib > 0) {
    out.Key(shape.only.valid() ? context.catalogue.at(shape.only).name.c_str() : "any");
    WriteFigures(shape, shape.mem_mib, out);
  } else {
    for (const GpuTypeId id : context.types) {
      if (shape.only.valid() && id != shape.only) continue;
      const GpuType& type = context.catalogue.at(id);
      out.Key(type.name.c_str());
      // Bounded: MiB of a card, in thousandths.
      WriteFigures(shape, std::max<int64_t>(1, (type.mem_mib - kHeadroomMib) * shape.mem_milli / 1000), out);
    }
  }
  out.EndMap();
}

void WriteJob(const Context& context, const ImportedJob& job, bool resident, Writer& out) {
  out.BeginFlowMap();
  out.Text("name", job.name);
  out.Number("id", static_cast<int64_t>(job.id));
  out.Text("tenant", job.tenant);
  if (job.tasks > 1) out.Number("tasks", job.tasks);
  if (job.shape.gpus > 1) out.Number("gpus", job.shape.gpus);
  if (job.shape.gpu_milli > 0) out.Number("gpu_milli", job.shape.gpu_milli);
  const KubePattern* const pattern = PatternOf(context, job.shape);
  if (job.shape.anyone && (pattern == nullptr || !pattern->says_share)) out.Plain("share", "anyone");
  out.Plain("cpu_cores", CoresText(job.cpu_milli));
  out.Plain("memory_gib", Gib(job.mem_mib));
  if (job.priority != 0) out.Number("priority", job.priority);
  out.Number("submit_s", job.submit_s);
  out.Texts("node_selector", job.node_selector);
  WriteTerms(context, job.shape, out);
  WriteDemand(context, job.shape, out);
  if (resident) {
    out.List("on", job.on, [&](const ImportedPlace& place) {
      out.BeginFlowMap();
      out.Text("node", context.imported.nodes[place.node].name);
      out.Number("gpu", place.gpu);
      out.EndMap();
    });
  }
  out.EndMap();
}

constexpr char kClusterComment[] = "Made by horus import: docs/shadow.md says what is read and what is not.";
constexpr char kJobsComment[] =
    "Made by horus import. Without a profile demands are what was requested, not what is used: state what you know.";

absl::StatusOr<std::string> ClusterText(const Context& context, const std::vector<std::string>& gpus_files,
                                        bool residents) {
  Writer out;
  out.Comment(kClusterComment);
  out.BeginMap();
  out.Number("version", 1);
  if (!gpus_files.empty()) out.List("gpu_types_files", gpus_files);
  out.Key("nodes");
  out.BeginSeq();
  for (const ImportedNode& node : context.imported.nodes) {
    // The log is of before: a node that is cordoned now took pods then.
    WriteNode(context.catalogue, node, node.cordoned && !residents ? AdminState::kUp : node.state, out);
  }
  out.EndSeq();
  bool any = false;
  for (const ImportedJob& job : context.imported.jobs) {
    if (!residents || job.on.empty()) continue;
    if (!std::exchange(any, true)) {
      out.Key("residents");
      out.BeginSeq();
    }
    WriteJob(context, job, true, out);
  }
  if (any) out.EndSeq();
  out.EndMap();
  return out.Take();
}

absl::StatusOr<std::string> JobsText(const Context& context, bool running) {
  Writer out;
  out.Comment(kJobsComment);
  out.BeginMap();
  out.Number("version", 1);
  out.Key("jobs");
  out.BeginSeq();
  for (const ImportedJob& job : context.imported.jobs) {
    if (running || job.on.empty()) WriteJob(context, job, false, out);
  }
  out.EndSeq();
  out.EndMap();
  return out.Take();
}

// ---- The log: tasks in order, those on one node that follow each other together.
std::string LogLine(const ImportedCluster& imported, const ImportedJob& job) {
  std::string nodes, devices;
  for (size_t i = 0; i < job.on.size(); ++i) {
    const bool same = i > 0 && job.on[i].node == job.on[i - 1].node;
    if (i > 0) devices += same ? ";" : "|";
    devices += std::to_string(job.on[i].gpu);
    if (!same) nodes += (i > 0 ? "|" : "") + imported.nodes[job.on[i].node].name;
  }
  return Formatted("%d,place,%s,%s,%s\n", job.placed_s, CsvField(job.name), nodes, devices);
}

std::string LogText(const ImportedCluster& imported, size_t& too_long) {
  std::vector<const ImportedJob*> placed;
  for (const ImportedJob& job : imported.jobs) {
    if (!job.on.empty()) placed.push_back(&job);
  }
  std::ranges::sort(placed, {}, [](const ImportedJob* job) { return std::tie(job->placed_s, job->id); });
  std::string text = "time_s,event,job,node,devices\n";
  for (const ImportedJob* const job : placed) {
    const std::string line = LogLine(imported, *job);
    const bool fits = line.size() <= kMaxLogLineBytes;
    if (fits) text += line;
    too_long += fits ? 0 : 1;
  }
  return text;
}

}  // namespace

absl::StatusOr<ImportFiles> WriteImport(const ImportedCluster& imported,
                                        const std::shared_ptr<const Catalogue>& catalogue,
                                        const std::vector<std::string>& gpus_files) {
  const Context context{imported, *catalogue, TypesOf(imported)};
  HORUS_ASSIGN_OR_RETURN(std::string cluster, ClusterText(context, gpus_files, false));
  HORUS_ASSIGN_OR_RETURN(std::string now, ClusterText(context, gpus_files, true));
  HORUS_ASSIGN_OR_RETURN(std::string jobs, JobsText(context, true));
  HORUS_ASSIGN_OR_RETURN(std::string waiting, JobsText(context, false));
  // What the readers would refuse (their limits, above all) is better known now. `now` holds all that `cluster` does;
  // the catalogue has the types of the files already.
  HORUS_ASSIGN_OR_RETURN(std::string without_types, ClusterText(context, {}, true));
  HORUS_RETURN_IF_ERROR(ParseClusterFile("now.yaml", std::move(without_types), catalogue).status());
  HORUS_RETURN_IF_ERROR(ParseJobsFile("jobs.yaml", jobs, *catalogue).status());
  ImportFiles files;
  std::string log = LogText(imported, files.too_long);
  files.texts = {{"cluster.yaml", std::move(cluster)},
                 {"jobs.yaml", std::move(jobs)},
                 {"decisions.csv", std::move(log)},
                 {"now.yaml", std::move(now)},
                 {"waiting.yaml", std::move(waiting)}};
  return files;
}

}  // namespace horus
