// SPDX-License-Identifier: Apache-2.0
// JobProfiles are read as bindings/kubernetes/internal/objects does, so that both see the same jobs.
#include "io/kube/kube_known.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/text.h"
#include "graph/architecture.h"
#include "interference/laws.h"

namespace horus {
namespace {

// ---- JobProfiles.

constexpr char kProfile[] = "libhorus.org/profile";
constexpr char kShare[] = "libhorus.org/share";
constexpr char kBound[] = "libhorus.org/slowdown-bound";
constexpr char kConfidence[] = "libhorus.org/slowdown-confidence";
constexpr double kMostBound = 1000;
constexpr size_t kMostDemands = 64;  // the CRD's
constexpr std::array<std::string_view, 3> kKindNames = {"training", "inference", "best-effort"};

// 0 = no bound is given: the estimate is it.
absl::Status ReadReal(const KubeView& figures, const char* key, const char* upper, Bounded& out) {
  HORUS_ASSIGN_OR_RETURN(const double estimate, figures[key].Number());
  HORUS_ASSIGN_OR_RETURN(const double most, figures[upper].Number());
  out = {static_cast<float>(estimate), static_cast<float>(most == 0 ? estimate : most)};
  return absl::OkStatus();
}

absl::Status ReadInteger(const KubeView& figures, const char* key, const char* upper, BoundedInt& out) {
  HORUS_ASSIGN_OR_RETURN(out.estimate, figures[key].Integer(0));
  HORUS_ASSIGN_OR_RETURN(out.upper, figures[upper].Integer(0));
  if (out.upper == 0) out.upper = out.estimate;
  return absl::OkStatus();
}

absl::StatusOr<Demand> ReadFigures(const KubeView& figures) {
  Demand demand{.flags = kDemandGiven};
  HORUS_RETURN_IF_ERROR(ReadReal(figures, "gpuUtilPct", "gpuUtilPctUpper", demand.gpu_util_pct));
  HORUS_RETURN_IF_ERROR(ReadReal(figures, "memBwUtilPct", "memBwUtilPctUpper", demand.mem_bw_util_pct));
  HORUS_RETURN_IF_ERROR(ReadInteger(figures, "memMiB", "memMiBUpper", demand.mem_mib));
  HORUS_RETURN_IF_ERROR(ReadInteger(figures, "stepTimeUs", "stepTimeUsUpper", demand.step_time_us));
  HORUS_ASSIGN_OR_RETURN(demand.gradient_mib, figures["gradientMiB"].Integer(0));
  HORUS_ASSIGN_OR_RETURN(const double operator_us, figures["operatorUs"].Number());
  demand.operator_us = static_cast<float>(operator_us);
  HORUS_ASSIGN_OR_RETURN(demand.host_us, figures["hostUs"].Number());
  HORUS_ASSIGN_OR_RETURN(const double duty, figures["duty"].Number());
  HORUS_ASSIGN_OR_RETURN(const double bound, figures["slowdownBound"].Number());
  if (duty != 0) demand.duty = static_cast<float>(duty);
  demand.slowdown_bound = static_cast<float>(bound);
  // Of what a prediction rests on, jobs.yaml can say these, which interference models read.
  HORUS_ASSIGN_OR_RETURN(const auto traits, figures["prediction"]["traits"].List());
  for (const auto trait : {static_cast<size_t>(Trait::kLogKernels), static_cast<size_t>(Trait::kLogDeviceShare)}) {
    if (traits.size() <= trait) continue;
    HORUS_ASSIGN_OR_RETURN(const double value, traits[trait].Number());
    demand.traits[trait] = static_cast<float>(value);
  }
  return demand;
}

// What jobs.yaml takes beside what every demand has to be.
absl::Status CheckFigures(const Demand& demand) {
  constexpr int64_t kMostMib = int64_t{1'000'000} << 10;
  constexpr int64_t kMostUs = int64_t{10'000'000'000} * 1000;
  constexpr float kMostOperatorUs = 1e9F;
  static_assert(kMostMib <= static_cast<int64_t>(kGibToMib.max) * 1024 && kGibToMib.per_unit == 1024);
  static_assert(kMostUs <= static_cast<int64_t>(kMillisecondsToUs.max) * 1000 && kMillisecondsToUs.per_unit == 1000);
  constexpr float kMostLogKernels = 9, kLeastLogShare = -5, kMostLogShare = -5e-6F;
  HORUS_RETURN_IF_ERROR(ValidateDemand(demand));
  if (const float kernels = demand.traits[static_cast<size_t>(Trait::kLogKernels)];
      !(kernels >= 0 && kernels <= kMostLogKernels)) {
    return InvalidArgument("prediction.traits[2]: expected 0 to %g (log10 of a step's kernels), found %g",
                           kMostLogKernels, kernels);
  }
  if (const float share = demand.traits[static_cast<size_t>(Trait::kLogDeviceShare)];
      share != 0 && !(share >= kLeastLogShare && share <= kMostLogShare)) {
    return InvalidArgument("prediction.traits[6]: expected 0, or %g to %g (log10 of the device's share), found %g",
                           kLeastLogShare, kMostLogShare, share);
  }
  if (demand.mem_mib.upper > kMostMib || demand.step_time_us.upper > kMostUs || demand.operator_us > kMostOperatorUs) {
    return InvalidArgument("expected at most %d MiB, steps of %d us and operators of %g us, found %d, %d and %g",
                           kMostMib, kMostUs, kMostOperatorUs, demand.mem_mib.upper, demand.step_time_us.upper,
                           demand.operator_us);
  }
  return absl::OkStatus();
}

absl::Status ReadNumber(const char* annotation, const std::string& text, double least, double most, double& out) {
  const absl::string_view given = absl::StripAsciiWhitespace(text);
  if (given.empty()) return absl::OkStatus();
  float value = 0;
  if (!absl::SimpleAtof(given, &value) ||
      !(static_cast<double>(value) >= least && static_cast<double>(value) <= most)) {
    return InvalidArgument("annotation %s: expected a number from %g to %g, found %s", annotation, least, most,
                           Quoted(text));
  }
  out = static_cast<double>(value);
  return absl::OkStatus();
}

// ---- Patterns, and measured figures.

constexpr size_t kMostPatterns = 10'000;
constexpr size_t kMostLabels = 64;
constexpr std::array<std::string_view, 2> kPatternFileKeys = {"version", "profiles"};
constexpr std::array<std::string_view, 4> kPodKeys = {"namespace", "name", "image", "labels"};
constexpr std::array<std::string_view, 6> kTermKeys = {"kind",   "share",          "exclusive",
                                                       "weight", "slowdown_bound", "slowdown_confidence"};
// Of jobs.yaml: what Kubernetes says of each pod, and what is of one job.
constexpr std::string_view kOfPods =
    " name id tenant gpus tasks gpu_milli gpu_types cpu_cores memory_gib storage_mb_s priority submit_s deadline_s "
    "node_selector gpu_memory_request_gib gpu_memory_limit_gib alternatives sensitivity ";

std::vector<std::string_view> PatternKeys() {
  std::vector<std::string_view> keys = {"pods"};
  std::ranges::copy_if(JobKeys(), std::back_inserter(keys), [](std::string_view key) {
    return kOfPods.find(" " + std::string(key) + " ") == std::string_view::npos;
  });
  return keys;
}

bool Matches(const std::string& pattern, const std::string& text) {
  return pattern.empty() || fnmatch(pattern.c_str(), text.c_str(), FNM_NOESCAPE) == 0;
}

bool Matches(const KubePattern& pattern, const KubePod& pod) {
  const bool image = std::ranges::any_of(pod.images, [&](const auto& one) { return Matches(pattern.image, one); });
  return Matches(pattern.name_space, pod.name_space) && Matches(pattern.name, pod.name) &&
         (image || pattern.image.empty()) && std::ranges::all_of(pattern.labels, [&](const auto& wanted) {
           const auto label = pod.labels.find(wanted.first);
           return label != pod.labels.end() && Matches(wanted.second, label->second);
         });
}

absl::Status ReadPatterns(const YamlMap& map, KubePattern& pattern) {
  HORUS_ASSIGN_OR_RETURN(const YamlValue pods, map.Require("pods", "patterns of the pods that this is said of"));
  HORUS_ASSIGN_OR_RETURN(const YamlMap patterns, pods.Map(kPodKeys));
  HORUS_RETURN_IF_ERROR(patterns.ReadText("namespace", kMaxNameBytes, pattern.name_space));
  HORUS_RETURN_IF_ERROR(patterns.ReadText("name", kMaxNameBytes, pattern.name));
  HORUS_RETURN_IF_ERROR(patterns.ReadText("image", kMaxPathBytes, pattern.image));
  if (const YamlValue* labels = patterns.Find("labels")) {
    HORUS_ASSIGN_OR_RETURN(const auto pairs, labels->Pairs(kMostLabels));
    for (const auto& [key, value] : pairs) HORUS_SET_OR_RETURN(pattern.labels[key], value.Text(kMaxNameBytes));
  }
  if (!pattern.name_space.empty() || !pattern.name.empty() || !pattern.image.empty() || !pattern.labels.empty())
    return absl::OkStatus();
  return pods.Expected("at least one of namespace, name, image, labels");
}

// As a job of jobs.yaml. What the job of a pod has beside stands in for the check: as many GPUs as the model has parts,
// figures where there are terms alone, and some model where a load is beside them.
absl::Status ReadJob(const YamlMap& map, const Catalogue& catalogue, KubePattern& pattern) {
  std::vector<std::pair<std::string_view, YamlValue>> pairs;
  for (const std::string_view key : JobKeys()) {
    if (const YamlValue* value = map.Find(key)) pairs.emplace_back(key, *value);
  }
  const bool terms_alone = std::ranges::all_of(pairs, [](const auto& pair) { return IsTerm(pair.first); });
  pattern.is_load = map.Has("service") && std::ranges::all_of(pairs, [](const auto& pair) {
                      return IsTerm(pair.first) || pair.first == "service";
                    });
  if (const YamlValue* parts = map.Find("tensor_parallel")) pairs.emplace_back("gpus", *parts);
  if (pattern.is_load) {
    HORUS_ASSIGN_OR_RETURN(const auto tree, YamlTree::Parse("", std::string(KnownModelName(0)) + "\n"));
    pairs.emplace_back("model", YamlValue::Root(tree));
  }
  if (terms_alone) {
    HORUS_ASSIGN_OR_RETURN(const auto tree, YamlTree::Parse("", "any: {gpu_util_pct: 1, gpu_memory_gib: 1}\n"));
    pairs.emplace_back("demand", YamlValue::Root(tree));
  }
  HORUS_ASSIGN_OR_RETURN(pattern.job, ReadJobRequest(YamlMap(map.value(), std::move(pairs)), catalogue, 1));
  HORUS_RETURN_IF_ERROR(RefuseCopies(map, pattern.job));
  if (terms_alone) pattern.job.spec.demands.clear();
  if (!pattern.job.model || FindKnownModel(pattern.job.model->path) != nullptr) return absl::OkStatus();
  std::error_code error;
  std::string& path = pattern.job.model->path;
  path = std::filesystem::absolute(path, error).lexically_normal().string();  // jobs.yaml lies elsewhere
  return absl::OkStatus();
}

absl::Status ReadFigure(const KubeView& sample, KubeMeasured& measured) {
  constexpr double kMostPct = 101, kMostMib = 1e9;  // the exporter rounds
  const KubeView labels = sample["metric"];
  // A scrape that does not keep the exporter's labels (honorLabels) puts its own in their place.
  const bool renamed = labels["exported_pod"].present();
  const KubeView pod = labels[renamed ? "exported_pod" : "pod"];
  HORUS_ASSIGN_OR_RETURN(const std::string figure, labels["figure"].Text());
  HORUS_ASSIGN_OR_RETURN(std::string name_space, labels[renamed ? "exported_namespace" : "namespace"].Text());
  HORUS_ASSIGN_OR_RETURN(std::string name, pod.Text());
  if (name.empty()) return pod.Expected("the name of a pod");
  HORUS_ASSIGN_OR_RETURN(const auto value, sample["value"].List());
  if (value.size() != 2) return sample["value"].Expected("a time and a number");
  HORUS_ASSIGN_OR_RETURN(const double number, value[1].Number());
  if (std::isnan(number)) return absl::OkStatus();
  const bool memory = figure == "gpu_memory_mib";
  if (!(number >= 0 && number <= (memory ? kMostMib : kMostPct)))
    return value[1].Expected(memory ? "MiB of a GPU, from 0 to 10^9" : "per cent, from 0 to 100");
  const auto pct = static_cast<float>(std::min(100.0, number));
  Demand& demand = measured[{std::move(name_space), std::move(name)}];
  if (memory) {
    const auto mib = std::max<int64_t>(1, std::llround(std::ceil(number)));
    demand.mem_mib = {mib, mib};
  } else if (figure == "gpu_util_pct") {
    demand.gpu_util_pct.estimate = pct;
    demand.flags = kDemandGiven;
  } else if (figure == "gpu_util_pct_upper") {
    demand.gpu_util_pct.upper = pct;
  } else if (figure == "mem_bw_util_pct") {
    demand.mem_bw_util_pct = {pct, pct};
  } else {
    return labels["figure"].Expected("gpu_util_pct, gpu_util_pct_upper, mem_bw_util_pct or gpu_memory_mib");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KubeProfile> ReadKubeProfile(const KubeView& object) {
  KubeProfile profile;
  const KubeView meta = object["metadata"], spec = object["spec"];
  HORUS_ASSIGN_OR_RETURN(profile.name, ReadKubeName(meta["name"]));
  HORUS_ASSIGN_OR_RETURN(profile.name_space, ReadKubeName(meta["namespace"]));
  HORUS_ASSIGN_OR_RETURN(profile.kind, spec["kind"].Text());
  HORUS_ASSIGN_OR_RETURN(const auto demands, spec["demands"].List());
  if (demands.size() > kMostDemands) return spec["demands"].Expected("at most 64 GPU types");
  for (const KubeView& figures : demands) {
    HORUS_ASSIGN_OR_RETURN(std::string type, figures["gpuType"].Text());
    HORUS_ASSIGN_OR_RETURN(Demand demand, ReadFigures(figures));
    profile.demands.emplace_back(std::move(type), demand);
  }
  return profile;
}

absl::StatusOr<KubeTermsOfPod> ReadKubeTermsOfPod(const KubeView& annotations) {
  KubeTermsOfPod terms;
  HORUS_RETURN_IF_ERROR(annotations.ReadTexts({{kProfile, terms.profile},
                                               {kShare, terms.share},
                                               {kBound, terms.slowdown_bound},
                                               {kConfidence, terms.slowdown_confidence}}));
  return terms;
}

absl::StatusOr<std::vector<TypeDemand>> DemandsOf(const KubeProfile& profile, const Catalogue& catalogue) {
  if (!profile.kind.empty() && std::ranges::find(kKindNames, profile.kind) == kKindNames.end())
    return InvalidArgument("spec.kind: expected training, inference or best-effort, found %s", Quoted(profile.kind));
  if (profile.demands.empty()) return InvalidArgument("spec.demands: expected one for each GPU type, found none");
  std::vector<TypeDemand> demands;
  for (const auto& [name, demand] : profile.demands) {
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue.Find(name));
    if (std::ranges::any_of(demands, [&](const TypeDemand& other) { return other.type == type; }))
      return InvalidArgument("spec.demands: expected each GPU type once, found %s again", Quoted(name));
    HORUS_RETURN_IF_ERROR(CheckFigures(demand));
    demands.push_back({type, demand});
  }
  return demands;
}

absl::Status AddTerms(const KubeTermsOfPod& terms, const KubeAsk& ask, KubeShape& shape) {
  shape.exclusive = true;
  shape.anyone = false;
  shape.gpu_milli = 0;  // a hard request is placed by other rules
  HORUS_RETURN_IF_ERROR(ReadNumber(kBound, terms.slowdown_bound, 1, kMostBound, shape.slowdown_bound));
  HORUS_RETURN_IF_ERROR(ReadNumber(kConfidence, terms.slowdown_confidence, kLeastProbability, kMostProbability,
                                   shape.slowdown_confidence));
  if (terms.share.empty()) return absl::OkStatus();
  if (terms.share != "same-tenant" && terms.share != "anyone")
    return InvalidArgument("annotation %s: expected same-tenant or anyone, found %s", kShare, Quoted(terms.share));
  if (!ask.resource.empty())
    return InvalidArgument("annotation %s: the scheduler refuses it beside whole GPUs (%s): docs/shadow.md", kShare,
                           ask.resource);
  shape.exclusive = false;
  shape.anyone = terms.share == "anyone";
  return absl::OkStatus();
}

bool IsTerm(std::string_view key) { return std::ranges::find(kTermKeys, key) != kTermKeys.end(); }

bool KubePattern::is_architecture() const {
  return job.model && job.spec.kind == JobKind::kInference && !job.model->service && IsConfigPath(job.model->path) &&
         job.model->run.dims.dims.empty();
}

bool KubePattern::Fits(int64_t gpus, GpuTypeId type) const {
  if (is_architecture()) return false;
  if (job.model) {
    return gpus % job.model->config.tensor_parallel == 0 &&
           (!job.model->service || gpus == job.model->config.tensor_parallel);
  }
  return !type.valid() || for_any_type() ||
         std::ranges::any_of(job.spec.demands, [&](const TypeDemand& one) { return one.type == type; });
}

const KubePattern* FindPattern(const std::vector<KubePattern>& patterns, const KubePod& pod) {
  const auto pattern = std::ranges::find_if(patterns, [&](const KubePattern& one) { return Matches(one, pod); });
  return pattern == patterns.end() ? nullptr : &*pattern;
}

absl::StatusOr<std::vector<KubePattern>> ReadKubePatterns(const std::string& path, const Catalogue& catalogue) {
  const YamlLimits limits;
  HORUS_ASSIGN_OR_RETURN(std::string text, ReadFile(path, limits.max_bytes));
  HORUS_ASSIGN_OR_RETURN(const auto tree, YamlTree::Parse(path, std::move(text), limits));
  HORUS_ASSIGN_OR_RETURN(const YamlMap root, OpenVersion1(tree, kPatternFileKeys));
  HORUS_ASSIGN_OR_RETURN(const YamlValue list, root.Require("profiles", "a list: which pods, and what they run"));
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, list.List(kMostPatterns));
  const std::vector<std::string_view> keys = PatternKeys();
  std::vector<KubePattern> patterns;
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(const YamlMap map, item.Map(keys));
    KubePattern& pattern = patterns.emplace_back();
    HORUS_RETURN_IF_ERROR(ReadPatterns(map, pattern));
    HORUS_RETURN_IF_ERROR(ReadJob(map, catalogue, pattern));
    pattern.says_share = map.Has("share");
    pattern.says_kind = map.Has("kind");
    pattern.tree = tree;
  }
  const std::vector<uint32_t> top = tree->children(YamlTree::root());
  const auto key = std::ranges::find_if(top, [&](uint32_t one) { return tree->text(one) == "profiles"; });
  const std::vector<uint32_t> positions = tree->children(*std::next(key));
  for (size_t i = 0; i < patterns.size(); ++i) patterns[i].position = positions[i];
  return patterns;
}

absl::StatusOr<KubeMeasured> ReadKubeMeasured(const std::string& path) {
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, size_t{128} << 20));
  const KubeJson json = KubeJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (const KubeView error = KubeView(&json, path)["error"]; error.present()) {
    HORUS_ASSIGN_OR_RETURN(const std::string message, error.Text());
    return InvalidArgument("%s: Prometheus did not answer the query: %s", path, Quoted(message));
  }
  const KubeView data = KubeView(&json, path)["data"], type = data["resultType"];
  if (!type.present() || *type.json() != "vector")
    return type.Expected("vector: what Prometheus answers to an instant query (docs/shadow.md)");
  HORUS_ASSIGN_OR_RETURN(const auto samples, data["result"].List());
  KubeMeasured measured;
  for (const KubeView& sample : samples) HORUS_RETURN_IF_ERROR(ReadFigure(sample, measured));
  std::erase_if(measured, [](const auto& pod) { return pod.second.flags == 0 || pod.second.mem_mib.upper == 0; });
  for (auto& [pod, demand] : measured)
    demand.gpu_util_pct.upper = std::max(demand.gpu_util_pct.upper, demand.gpu_util_pct.estimate);
  return measured;
}

}  // namespace horus
