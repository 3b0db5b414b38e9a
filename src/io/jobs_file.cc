// SPDX-License-Identifier: Apache-2.0
// Reads jobs.yaml.
#include "io/jobs_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "graph/architecture.h"
#include "interference/laws.h"
#include "io/sensitivity_file.h"

namespace horus {
namespace {

// ---- Reads `demand:` of a job.

constexpr auto kDemandKeys = KeyList<11>(
    "gpu_util_pct mem_bw_util_pct gpu_memory_gib step_time_ms gradient_mib operator_us host_us kernels "
    "device_share duty slowdown_bound");
constexpr std::string_view kAnyType = "any";
constexpr double kMaxPct = 100;
constexpr double kMaxOperatorUs = 1e9;
constexpr double kMaxKernels = 1e9;                                     // a step of as many takes an hour
constexpr double kLeastDeviceShare = 1e-5, kMostDeviceShare = 0.99999;  // those of predictions are between
constexpr int64_t kMaxGradientMib = int64_t{1} << 32;                   // as predict/demand.cc

// Calls `read` for the estimate and the upper bound of `number` or `[estimate, upper]`.
absl::Status ReadBounded(const YamlMap& map, std::string_view key, auto read, auto& out) {
  const YamlValue* value = map.Find(key);
  if (value == nullptr) return absl::OkStatus();
  if (!value->is_list()) {
    HORUS_RETURN_IF_ERROR(read(*value, out.estimate));
    out.upper = out.estimate;
    return absl::OkStatus();
  }
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> both, value->List(2));
  if (both.size() != 2) return value->Expected("a number, or [estimate, upper bound]");
  HORUS_RETURN_IF_ERROR(read(both[0], out.estimate));
  HORUS_RETURN_IF_ERROR(read(both[1], out.upper));
  if (out.upper < out.estimate) return both[1].Expected("an upper bound not below the estimate");
  return absl::OkStatus();
}

absl::Status ReadPercent(const YamlValue& value, float& out) {
  HORUS_ASSIGN_OR_RETURN(const double percent, value.Number(0, kMaxPct));
  out = static_cast<float>(percent);
  return absl::OkStatus();
}

absl::StatusOr<Demand> ReadDemand(const YamlValue& value) {
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kDemandKeys));
  HORUS_RETURN_IF_ERROR(map.Require("gpu_util_pct", "0 to 100").status());
  HORUS_RETURN_IF_ERROR(map.Require("gpu_memory_gib", "device memory, CUDA context included").status());
  const auto scaled = [](const Scale& scale) {
    return [&scale](const YamlValue& number, int64_t& out) -> absl::Status {
      HORUS_ASSIGN_OR_RETURN(out, number.Scaled(scale));
      return absl::OkStatus();
    };
  };
  Demand demand{.flags = kDemandGiven};
  HORUS_RETURN_IF_ERROR(ReadBounded(map, "gpu_util_pct", ReadPercent, demand.gpu_util_pct));
  HORUS_RETURN_IF_ERROR(ReadBounded(map, "mem_bw_util_pct", ReadPercent, demand.mem_bw_util_pct));
  HORUS_RETURN_IF_ERROR(ReadBounded(map, "gpu_memory_gib", scaled(kGibToMib), demand.mem_mib));
  HORUS_RETURN_IF_ERROR(ReadBounded(map, "step_time_ms", scaled(kMillisecondsToUs), demand.step_time_us));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("gradient_mib", 0, kMaxGradientMib, demand.gradient_mib));
  double kernels = 0, device_share = 1;
  HORUS_RETURN_IF_ERROR(map.ReadNumber("host_us", 0, kMaxOperatorUs, demand.host_us));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("operator_us", 0, kMaxOperatorUs, demand.operator_us));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("kernels", 1, kMaxKernels, kernels));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("device_share", kLeastDeviceShare, kMostDeviceShare, device_share));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("duty", 0, 1, demand.duty));
  HORUS_RETURN_IF_ERROR(
      map.ReadNumber("slowdown_bound", 0, static_cast<double>(kMaxDemandSlowdown), demand.slowdown_bound));
  if (kernels > 0) demand.traits[static_cast<size_t>(Trait::kLogKernels)] = static_cast<float>(std::log10(kernels));
  demand.traits[static_cast<size_t>(Trait::kLogDeviceShare)] = static_cast<float>(std::log10(device_share));
  HORUS_RETURN_IF_ERROR(value.Wrap(ValidateDemand(demand)));
  return demand;
}

absl::StatusOr<std::vector<TypeDemand>> ForAnyType(const YamlValue& value, std::span<const GpuTypeId> allowed) {
  HORUS_ASSIGN_OR_RETURN(const Demand demand, ReadDemand(value));
  std::vector<TypeDemand> demands;
  for (const GpuTypeId type : allowed) demands.push_back({type, demand});
  if (demands.empty()) demands.push_back({GpuTypeId::Invalid(), demand});
  return demands;
}

absl::StatusOr<GpuTypeId> FindType(const YamlValue& where, std::string_view name, const Catalogue& catalogue) {
  absl::StatusOr<GpuTypeId> type = catalogue.Find(name);
  if (type.ok()) return type;
  return where.Error(std::string(type.status().message()));  // says what was found and suggests near names
}

// ---- Reads one job of a file.

constexpr int64_t kMaxDim = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxDims = 64;
constexpr size_t kMaxFrozen = 4096;

constexpr auto kJobKeys = KeyList<48>(
    "name id kind tenant model batch dims mode precision optimizer framework layout checkpoint_segments frozen "
    "tensor_parallel expert_parallel lora_rank lora_targets weights cache service gpus tasks gpu_milli "
    "sm_cap_pct exclusive gpu_types cpu_cores memory_gib priority weight submit_s deadline_s slowdown_bound "
    "slowdown_confidence demand storage_mb_s node_selector request_rate_hz latency_bound_ms "
    "gpu_memory_request_gib gpu_memory_limit_gib share groups avoid_groups spread_tasks alternatives sensitivity");
constexpr std::string_view kJobsFileKeys[] = {"version", "jobs"};
constexpr auto kWayKeys = KeyList<9>("tasks gpus gpu_milli cpu_cores memory_gib storage_mb_s rate demand batch");
// What a job with alternatives states in each of them.
constexpr std::string_view kInWaysKeys[] = {"tasks", "gpus", "gpu_milli", "demand"};
constexpr auto kModelOnlyKeys =
    KeyList<10>("batch dims mode precision optimizer framework layout checkpoint_segments frozen service");
constexpr auto kServiceKeys = KeyList<11>(
    "requests_per_s users copies tokens_in tokens_out longest first_token_ms token_ms confidence measured answer_ms");
// What a model that answers in one step has not.
constexpr auto kTokenKeys = KeyList<6>("tokens_in tokens_out longest first_token_ms token_ms measured");
constexpr std::string_view kServiceRunKeys[] = {"gpu", "users", "first_token_ms", "token_ms"};
// What a service decides by its load; the first two of a language model.
constexpr auto kBesideNoService =
    KeyList<7>("batch dims alternatives request_rate_hz latency_bound_ms mode gpu_memory_limit_gib");

constexpr std::array kKinds = {JobKind::kTraining, JobKind::kInference, JobKind::kBestEffort};
constexpr std::array kModes = {RunMode::kTraining, RunMode::kInference};
constexpr std::array kPrecisions = {Precision::kFp32, Precision::kTf32, Precision::kAmpFp16, Precision::kAmpBf16,
                                    Precision::kFp16, Precision::kBf16, Precision::kFp32Ieee};
constexpr std::array kOptimizers = {Optimizer::kSgd,     Optimizer::kMomentum,  Optimizer::kAdam,
                                    Optimizer::kAdamW,   Optimizer::kAdafactor, Optimizer::kAdam8Bit,
                                    Optimizer::kRmsprop, Optimizer::kAdagrad,   Optimizer::kAdamWBf16};
constexpr std::array kFrameworks = {Framework::kPyTorch,         Framework::kPyTorch1, Framework::kTensorFlow,
                                    Framework::kPyTorchCompiled, Framework::kVllm,     Framework::kTensorRtLlm,
                                    Framework::kSglang};
constexpr std::array kLayouts = {Layout::kNchw, Layout::kNhwc};

// Tasks x GPUs of each.
absl::Status CheckGpuCount(const YamlMap& map, int64_t tasks, int64_t gpus) {
  // Bounded: both are at most kMaxGpusPerJob, checked where they were read.
  if (tasks * gpus <= kMaxGpusPerJob) return absl::OkStatus();
  return map.value().Error(
      Formatted("expected at most %d GPUs (tasks x gpus), found %d x %d", kMaxGpusPerJob, tasks, gpus));
}

absl::Status ReadShape(const YamlMap& map, JobSpec& spec) {
  HORUS_RETURN_IF_ERROR(map.ReadInteger("gpus", 0, kMaxGpusPerJob, spec.gpus_per_task));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("tasks", 1, kMaxGpusPerJob, spec.tasks));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("gpu_milli", 1, kMilliPerGpu, spec.gpu_milli));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("sm_cap_pct", 1, 99, spec.sm_cap_pct));
  HORUS_RETURN_IF_ERROR(map.ReadBool("exclusive", spec.exclusive));
  HORUS_RETURN_IF_ERROR(CheckGpuCount(map, spec.tasks, spec.gpus_per_task));
  if (spec.gpu_milli > 0 && spec.gpu_milli < kMilliPerGpu && spec.gpus_per_task > 1) {
    return map.Find("gpu_milli")
        ->Expected(Formatted("%d or no such key with %d GPUs per task", kMilliPerGpu, spec.gpus_per_task));
  }
  return absl::OkStatus();
}

absl::Status ReadHostAndTimes(const YamlMap& map, JobSpec& spec) {
  HORUS_RETURN_IF_ERROR(map.ReadScaled("cpu_cores", kCoresToMilli, spec.cpu_milli));
  HORUS_RETURN_IF_ERROR(map.ReadScaled("memory_gib", kGibToMib, spec.mem_mib));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("storage_mb_s", 0, kMaxHostQuantity, spec.storage_mb_s));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("priority", std::numeric_limits<int32_t>::min(),
                                        std::numeric_limits<int32_t>::max(), spec.priority));
  constexpr double kMostWeight = static_cast<double>(kMaxWorkWeight);
  HORUS_RETURN_IF_ERROR(map.ReadNumber("weight", 1 / kMostWeight, kMostWeight, spec.weight));
  HORUS_RETURN_IF_ERROR(map.ReadScaled("submit_s", kSecondsToUs, spec.submit_us));
  HORUS_RETURN_IF_ERROR(map.ReadScaled("deadline_s", kSecondsToUs, spec.deadline_us));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("request_rate_hz", 0, kMaxRequestRateHz, spec.request_rate_hz));
  HORUS_RETURN_IF_ERROR(map.ReadScaled("latency_bound_ms", kMillisecondsToUs, spec.latency_bound_us));
  if (spec.latency_bound_us > 0 && spec.kind != JobKind::kInference)
    return map.Find("latency_bound_ms")->Expected(Formatted("no such key beside kind '%s'", JobKindName(spec.kind)));
  HORUS_RETURN_IF_ERROR(
      map.ReadNumber("slowdown_bound", 1, static_cast<double>(kMaxSlowdownBound), spec.slowdown_bound));
  HORUS_RETURN_IF_ERROR(
      map.ReadNumber("slowdown_confidence", kLeastProbability, kMostProbability, spec.slowdown_confidence));
  if (spec.slowdown_confidence > 0 && spec.slowdown_bound == 0 && spec.latency_bound_us == 0 && !map.Has("service")) {
    return map.Find("slowdown_confidence")
        ->Error("expected slowdown_bound or latency_bound_ms beside it, found neither");
  }
  return absl::OkStatus();
}

absl::Status ReadGpuMemory(const YamlMap& map, JobSpec& spec) {
  HORUS_RETURN_IF_ERROR(map.ReadScaled("gpu_memory_request_gib", kGibToMib, spec.gpu_mem_request_mib));
  HORUS_RETURN_IF_ERROR(map.ReadScaled("gpu_memory_limit_gib", kGibToMib, spec.gpu_mem_limit_mib));
  if (spec.gpu_mem_limit_mib > 0 && spec.gpu_mem_limit_mib < spec.gpu_mem_request_mib) {
    return map.Find("gpu_memory_limit_gib")
        ->Error(Formatted("expected 0 or at least the request of %d MiB, found %d MiB", spec.gpu_mem_request_mib,
                          spec.gpu_mem_limit_mib));
  }
  return absl::OkStatus();
}

absl::Status ReadNames(const YamlMap& map, std::string_view key, std::vector<std::string>& names) {
  const YamlValue* list = map.Find(key);
  if (list == nullptr) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, list->List(kMaxGroupsPerJob));
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(std::string text, item.Text(kMaxNameBytes));
    if (std::ranges::find(names, text) != names.end()) return item.Expected("each name once");
    names.push_back(std::move(text));
  }
  return absl::OkStatus();
}

absl::Status ReadSharing(const YamlMap& map, JobSpec& spec) {
  constexpr std::array kShares = {ShareWith::kSameTenant, ShareWith::kAnyone};
  const auto name_of = [](ShareWith v) { return std::string_view(v == ShareWith::kAnyone ? "anyone" : "same-tenant"); };
  HORUS_RETURN_IF_ERROR(map.ReadEnum("share", kShares, name_of, spec.share));
  HORUS_RETURN_IF_ERROR(ReadNames(map, "groups", spec.groups));
  HORUS_RETURN_IF_ERROR(ReadNames(map, "avoid_groups", spec.avoid_groups));
  return map.ReadBool("spread_tasks", spec.spread_tasks);
}

absl::Status ReadServiceTimes(const YamlMap& map, double& first_token_us, double& token_us) {
  int64_t first = 0, token = 0;
  HORUS_RETURN_IF_ERROR(map.ReadScaled("first_token_ms", kMillisecondsToUs, first));
  HORUS_RETURN_IF_ERROR(map.ReadScaled("token_ms", kMillisecondsToUs, token));
  first_token_us = static_cast<double>(first);
  token_us = static_cast<double>(token);
  return absl::OkStatus();
}

absl::StatusOr<ServiceRun> ReadServiceRun(const YamlValue& value, const Catalogue& catalogue) {
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kServiceRunKeys));
  ServiceRun run;
  HORUS_ASSIGN_OR_RETURN(const YamlValue gpu, map.Require("gpu", "the type of the GPU"));
  HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, ReadGpuTypeName(gpu, catalogue));
  run.gpu = catalogue.at(type).name;
  HORUS_RETURN_IF_ERROR(map.Require("users", "who ask again as soon as they are answered").status());
  HORUS_RETURN_IF_ERROR(map.ReadNumber("users", 1, kMostServiceRate, run.concurrency));
  HORUS_RETURN_IF_ERROR(ReadServiceTimes(map, run.first_token_us, run.token_us));
  if (run.first_token_us == 0 && run.token_us == 0) return value.Error("expected 'first_token_ms' or 'token_ms'");
  return run;
}

// The load of one copy.
absl::StatusOr<ServiceLoad> ReadService(const YamlMap& job, JobKind kind, bool generates, const Catalogue& catalogue,
                                        int64_t& copies) {
  const YamlValue& value = *job.Find("service");
  if (kind != JobKind::kInference) return value.Expected(Formatted("no such key beside kind '%s'", JobKindName(kind)));
  for (const std::string_view key : std::span(kBesideNoService).subspan(generates ? 0 : 2)) {
    if (const YamlValue* other = job.Find(key)) return other->Error("expected none beside 'service', which decides it");
  }
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kServiceKeys));
  ServiceLoad load;
  HORUS_RETURN_IF_ERROR(map.ReadNumber("requests_per_s", 0, kMostServiceRate, load.requests_per_s));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("users", 0, kMostServiceRate, load.concurrency));
  if ((load.requests_per_s > 0) == (load.concurrency > 0))
    return value.Error("expected either 'requests_per_s' or 'users' above 0");
  HORUS_RETURN_IF_ERROR(map.ReadInteger("copies", 1, kMostCopies, copies));
  load.requests_per_s /= static_cast<double>(copies);
  load.concurrency /= static_cast<double>(copies);
  HORUS_RETURN_IF_ERROR(map.ReadNumber("confidence", kLeastServiceConfidence, kMostServiceConfidence, load.confidence));
  const YamlValue* answer = map.Find("answer_ms");
  if (!generates) {
    for (const std::string_view key : kTokenKeys) {
      if (const YamlValue* token = map.Find(key))
        return token->Error("expected 'answer_ms' alone of a model that answers in one step (a graph)");
    }
    int64_t answer_us = 0;
    HORUS_RETURN_IF_ERROR(map.ReadScaled("answer_ms", kMillisecondsToUs, answer_us));
    load.first_token_us = static_cast<double>(answer_us);
    return load;
  }
  if (answer != nullptr) return answer->Error("expected 'first_token_ms' and 'token_ms' of a language model");
  HORUS_RETURN_IF_ERROR(map.Require("tokens_in", "tokens of a prompt").status());
  HORUS_RETURN_IF_ERROR(map.Require("tokens_out", "tokens of an answer").status());
  HORUS_RETURN_IF_ERROR(map.ReadNumber("tokens_in", 1, kMostTokens, load.tokens_in));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("tokens_out", 1, kMostTokens, load.tokens_out));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("longest", load.tokens_in + load.tokens_out, 2 * kMostTokens, load.longest));
  HORUS_RETURN_IF_ERROR(ReadServiceTimes(map, load.first_token_us, load.token_us));
  if (const YamlValue* runs = map.Find("measured")) {
    HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, runs->List(kMostServiceRuns));
    for (const YamlValue& item : items)
      HORUS_SET_OR_RETURN(load.measured.emplace_back(), ReadServiceRun(item, catalogue));
  }
  return load;
}

absl::StatusOr<ModelRun> ReadModelRun(const YamlMap& map, JobKind kind, const Catalogue& catalogue) {
  ModelRun model;
  HORUS_ASSIGN_OR_RETURN(const std::string written, map.Find("model")->Text(kMaxPathBytes));
  model.path = FindKnownModel(written) != nullptr ? written : PathBeside(map.value().file(), written);
  RunSpec& run = model.run;
  run.mode = kind == JobKind::kInference ? RunMode::kInference : RunMode::kTraining;
  HORUS_RETURN_IF_ERROR(map.ReadInteger("batch", 1, kMaxDim, run.dims.batch));
  HORUS_RETURN_IF_ERROR(map.ReadEnum("mode", kModes, [](RunMode v) { return Name(v); }, run.mode));
  if (run.mode == RunMode::kTraining && map.Has("latency_bound_ms"))
    return map.Find("latency_bound_ms")->Expected("no such key beside a training run");
  HORUS_RETURN_IF_ERROR(map.ReadEnum("precision", kPrecisions, [](Precision v) { return Name(v); }, run.precision));
  model.states_precision = map.Has("precision");
  HORUS_RETURN_IF_ERROR(map.ReadInteger("tensor_parallel", 1, kMostParts, model.config.tensor_parallel));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("expert_parallel", 1, kMostParts, model.config.expert_parallel));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("lora_rank", 0, kMostLoraRank, model.config.lora_rank));
  HORUS_RETURN_IF_ERROR(map.ReadText("lora_targets", kMaxNameBytes, model.config.lora_targets));
  HORUS_RETURN_IF_ERROR(map.ReadText("weights", kMaxNameBytes, model.config.weights));
  HORUS_RETURN_IF_ERROR(map.ReadText("cache", kMaxNameBytes, model.config.cache));
  HORUS_RETURN_IF_ERROR(map.ReadEnum("optimizer", kOptimizers, [](Optimizer v) { return Name(v); }, run.optimizer));
  HORUS_RETURN_IF_ERROR(map.ReadEnum("framework", kFrameworks, [](Framework v) { return Name(v); }, run.framework));
  HORUS_RETURN_IF_ERROR(map.ReadEnum("layout", kLayouts, [](Layout v) { return Name(v); }, run.layout));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("checkpoint_segments", 0, kMaxDim, run.checkpoint_segments));
  if (!map.Has("framework") && run.mode == RunMode::kInference && IsConfigPath(model.path))
    run.framework = Framework::kVllm;
  if (map.Has("service"))
    HORUS_SET_OR_RETURN(model.service, ReadService(map, kind, IsConfigPath(model.path), catalogue, model.copies));
  if (const YamlValue* frozen = map.Find("frozen"))
    HORUS_SET_OR_RETURN(run.frozen, frozen->Texts(kMaxFrozen, kMaxNameBytes));
  if (const YamlValue* dims = map.Find("dims")) {
    HORUS_ASSIGN_OR_RETURN(const auto pairs, dims->Pairs(kMaxDims));
    for (const auto& [name, value] : pairs) {
      HORUS_ASSIGN_OR_RETURN(const int64_t size, value.Integer(1, kMaxDim));
      run.dims.dims.emplace_back(name, size);
    }
    // So that equal runs are recognised however they are written.
    std::sort(run.dims.dims.begin(), run.dims.dims.end());
  }
  return model;
}

absl::Status ReadGpuTypes(const YamlMap& map, const Catalogue& catalogue, JobRequest& job) {
  const YamlValue* list = map.Find("gpu_types");
  if (list == nullptr) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, list->List(Catalogue::kMaxTypes));
  if (items.empty()) return list->Expected("at least one GPU type");
  std::set<GpuTypeId> types;
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, ReadGpuTypeName(item, catalogue));
    types.insert(type);
  }
  job.gpu_types.assign(types.begin(), types.end());
  return absl::OkStatus();
}

absl::Status ReadWay(const YamlMap& map, const Catalogue& catalogue, JobRequest& job) {
  JobAlternative way;
  HORUS_RETURN_IF_ERROR(map.ReadInteger("tasks", 1, kMaxGpusPerJob, way.tasks));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("gpus", 1, kMaxGpusPerJob, way.gpus_per_task));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("gpu_milli", 1, kMilliPerGpu, way.gpu_milli));
  HORUS_RETURN_IF_ERROR(map.ReadScaled("cpu_cores", kCoresToMilli, way.cpu_milli));
  HORUS_RETURN_IF_ERROR(map.ReadScaled("memory_gib", kGibToMib, way.mem_mib));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("storage_mb_s", 0, kMaxHostQuantity, way.storage_mb_s));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("rate", 0, kMaxRate, way.rate));
  HORUS_RETURN_IF_ERROR(CheckGpuCount(map, way.tasks, way.gpus_per_task));
  if (job.model) {
    if (const YamlValue* demand = map.Find("demand")) return demand->Error("expected none beside 'model'");
    WayOfModel of_model{.batch = job.model->run.dims.batch};
    HORUS_RETURN_IF_ERROR(map.ReadInteger("batch", 1, kMaxDim, of_model.batch));
    if (way.rate == 0 && of_model.batch == 0)
      return map.value().Error("expected 'batch', here or in the job, or 'rate' (progress per second), found neither");
    // Bounded: at most kMaxGpusPerJob, checked where they were read.
    of_model.data_parallel = way.tasks * way.gpus_per_task;  // a gang averages its gradients
    job.ways.push_back(of_model);
  } else {
    if (const YamlValue* batch = map.Find("batch")) return batch->Error("expected with 'model' only");
    HORUS_ASSIGN_OR_RETURN(const YamlValue demand, map.Require("demand", "given figures"));
    HORUS_ASSIGN_OR_RETURN(way.demands, ReadDemands(demand, catalogue, job.gpu_types));
    HORUS_RETURN_IF_ERROR(map.Require("rate", "progress per second").status());
  }
  job.spec.alternatives.push_back(std::move(way));
  return absl::OkStatus();
}

absl::Status ReadAlternatives(const YamlMap& map, const Catalogue& catalogue, JobRequest& job) {
  for (const std::string_view key : kInWaysKeys) {
    if (const YamlValue* value = map.Find(key)) return value->Error("expected in each of 'alternatives', found beside");
  }
  if (map.Has("model")) HORUS_SET_OR_RETURN(job.model, ReadModelRun(map, job.spec.kind, catalogue));
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, map.Find("alternatives")->List(kMaxAlternatives));
  if (items.empty()) return map.Find("alternatives")->Expected("at least one way to run the job");
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(const YamlMap way, item.Map(kWayKeys));
    HORUS_RETURN_IF_ERROR(ReadWay(way, catalogue, job));
  }
  return absl::OkStatus();
}

absl::Status ReadDemandOrModel(const YamlMap& map, const Catalogue& catalogue, JobRequest& job) {
  if (map.Has("alternatives")) return ReadAlternatives(map, catalogue, job);
  if (IsCpuOnly(job.spec)) {
    for (const std::string_view key : {"model", "demand"}) {
      if (const YamlValue* value = map.Find(key)) return value->Error("expected none with 'gpus: 0'");
    }
    return absl::OkStatus();
  }
  if (map.Has("model") == map.Has("demand")) {
    return map.value().Error(Formatted("expected either 'model' (an ONNX file) or 'demand' (given figures), found %s",
                                       map.Has("model") ? "both" : "neither"));
  }
  if (map.Has("model")) {
    HORUS_ASSIGN_OR_RETURN(job.model, ReadModelRun(map, job.spec.kind, catalogue));
    if (job.model->service && !map.Has("gpus")) {
      job.spec.gpus_per_task = static_cast<decltype(job.spec.gpus_per_task)>(job.model->config.tensor_parallel);
      HORUS_RETURN_IF_ERROR(CheckGpuCount(map, job.spec.tasks, job.spec.gpus_per_task));
    }
    const int64_t gpus = GpuCount(job.spec);
    if (gpus % job.model->config.tensor_parallel != 0)
      return map.Find("tensor_parallel")->Expected(Formatted("a divisor of the job's GPUs (%d)", gpus));
    if (job.model->service && gpus != job.model->config.tensor_parallel) {
      return map.Find("service")->Error(Formatted("expected as many GPUs as tensor_parallel (%d), found %d",
                                                  job.model->config.tensor_parallel, gpus));
    }
    job.model->run.data_parallel = gpus / job.model->config.tensor_parallel;  // a gang averages its gradients
    return absl::OkStatus();
  }
  for (const std::string_view key : kModelOnlyKeys) {
    if (const YamlValue* value = map.Find(key))
      return value->Error("expected with 'model' only, found beside 'demand'");
  }
  HORUS_ASSIGN_OR_RETURN(job.spec.demands, ReadDemands(*map.Find("demand"), catalogue, job.gpu_types));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GpuTypeId> ReadGpuTypeName(const YamlValue& value, const Catalogue& catalogue) {
  HORUS_ASSIGN_OR_RETURN(const std::string name, value.Text(kMaxNameBytes));
  return FindType(value, name, catalogue);
}

absl::StatusOr<std::vector<TypeDemand>> ReadDemands(const YamlValue& value, const Catalogue& catalogue,
                                                    std::span<const GpuTypeId> allowed) {
  HORUS_ASSIGN_OR_RETURN(const auto pairs, value.Pairs(kMaxDemandsPerJob));
  if (pairs.empty()) return value.Expected("figures for at least one GPU type, or for 'any'");
  std::vector<TypeDemand> demands;
  for (const auto& [name, figures] : pairs) {
    if (name == kAnyType) {
      if (pairs.size() > 1) return figures.Error("expected 'any' alone, found other GPU types beside it");
      return ForAnyType(figures, allowed);
    }
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, FindType(figures, name, catalogue));
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), type) == allowed.end())
      return figures.Error("expected a GPU type that gpu_types allows, found " + Quoted(name));
    for (const TypeDemand& other : demands) {
      if (other.type == type) return figures.Error("expected each GPU type once, found another name of the same type");
    }
    HORUS_ASSIGN_OR_RETURN(const Demand demand, ReadDemand(figures));
    demands.push_back({type, demand});
  }
  return demands;
}

std::span<const std::string_view> JobKeys() { return kJobKeys; }

absl::StatusOr<JobRequest> ReadJobRequest(const YamlMap& map, const Catalogue& catalogue,
                                          std::optional<uint64_t> default_id) {
  JobRequest job{.where = map.value().Where()};
  JobSpec& spec = job.spec;
  if (!default_id) HORUS_RETURN_IF_ERROR(map.Require("id", "an unsigned number").status());
  spec.id = default_id.value_or(0);
  HORUS_RETURN_IF_ERROR(map.ReadId("id", spec.id));
  HORUS_RETURN_IF_ERROR(map.ReadText("name", kMaxNameBytes, spec.name));
  HORUS_RETURN_IF_ERROR(map.ReadText("tenant", kMaxNameBytes, spec.tenant));
  HORUS_RETURN_IF_ERROR(map.ReadEnum("kind", kKinds, JobKindName, spec.kind));
  HORUS_RETURN_IF_ERROR(ReadShape(map, spec));
  HORUS_RETURN_IF_ERROR(ReadHostAndTimes(map, spec));
  HORUS_RETURN_IF_ERROR(ReadGpuMemory(map, spec));
  HORUS_RETURN_IF_ERROR(ReadSharing(map, spec));
  if (const YamlValue* selector = map.Find("node_selector"))
    HORUS_SET_OR_RETURN(spec.node_selector, selector->TextPairs(kMaxSelectorsPerJob, kMaxNameBytes));
  HORUS_RETURN_IF_ERROR(ReadGpuTypes(map, catalogue, job));
  HORUS_RETURN_IF_ERROR(ReadDemandOrModel(map, catalogue, job));
  if (const YamlValue* sensitivity = map.Find("sensitivity")) HORUS_RETURN_IF_ERROR(ReadSensitivity(*sensitivity, job));
  NormalizeJob(spec);
  return job;
}

absl::Status RefuseCopies(const YamlMap& map, const JobRequest& job) {
  if (!job.model || job.model->copies <= 1) return absl::OkStatus();
  return map.Find("service")->Error("expected no 'copies': it describes one of them, with its part of the load");
}

absl::Status CountDemands(const JobSpec& job, std::string_view where, size_t& so_far) {
  so_far += job.demands.size();
  for (const JobAlternative& way : job.alternatives) so_far += way.demands.size();
  if (so_far <= kMaxFileDemands) return absl::OkStatus();
  return ResourceExhausted(
      "%s: expected at most %d demands of all jobs, one for each way to run and GPU type, found more", where,
      kMaxFileDemands);
}

absl::Status CheckJobsDiffer(std::span<const JobRequest> jobs) {
  std::vector<const JobRequest*> sorted;
  for (const JobRequest& job : jobs) sorted.push_back(&job);
  const auto check = [&](auto member, const char* expected, auto shown) -> absl::Status {
    const auto key = [&](const JobRequest* job) -> const auto& { return job->spec.*member; };
    std::ranges::stable_sort(sorted, {}, key);  // stable, so that the later one of two is reported
    for (size_t i = 1; i < sorted.size(); ++i) {
      if (key(sorted[i]) != key(sorted[i - 1])) continue;
      const std::string found = shown(key(sorted[i]));
      if (found.empty()) continue;
      return InvalidArgument("%s.%s of its own, found %s as in %s", sorted[i]->where, expected, found,
                             sorted[i - 1]->where);
    }
    return absl::OkStatus();
  };
  HORUS_RETURN_IF_ERROR(check(&JobSpec::id, "id: expected an id", [](JobId id) { return std::to_string(id); }));
  return check(&JobSpec::name, "name: expected a name",
               [](const std::string& name) { return name.empty() ? "" : Quoted(name); });
}

absl::StatusOr<std::vector<JobRequest>> ParseJobsFile(const std::string& file, std::string text,
                                                      const Catalogue& catalogue, const YamlLimits& limits) {
  HORUS_ASSIGN_OR_RETURN(const auto tree, YamlTree::Parse(file, std::move(text), limits));
  HORUS_ASSIGN_OR_RETURN(const YamlMap root, OpenVersion1(tree, kJobsFileKeys));
  HORUS_ASSIGN_OR_RETURN(const YamlValue list, root.Require("jobs", "a list of jobs"));
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, list.List(kMaxFileJobs));
  std::vector<JobRequest> jobs;
  size_t demands = 0;
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(const YamlMap map, item.Map(JobKeys()));
    HORUS_ASSIGN_OR_RETURN(JobRequest job, ReadJobRequest(map, catalogue, jobs.size() + 1));
    const int64_t copies = job.model ? job.model->copies : 1;
    if (copies > 1 && map.Has("id")) return map.Find("id")->Error("expected none beside 'copies': each has its own");
    const std::string name = job.spec.name;
    for (int64_t copy = 1; copy <= copies; ++copy) {
      if (copies > 1) {
        job.spec.id = jobs.size() + 1;
        if (!name.empty()) job.spec.name = Formatted("%s-%d", name, copy);
      }
      HORUS_RETURN_IF_ERROR(CountDemands(job.spec, job.where, demands));
      if (jobs.size() >= kMaxFileJobs)
        return list.Expected(Formatted("at most %d jobs, copies included", kMaxFileJobs));
      jobs.push_back(copy < copies ? job : std::move(job));
    }
  }
  HORUS_RETURN_IF_ERROR(CheckJobsDiffer(jobs));
  return jobs;
}

absl::StatusOr<std::vector<JobRequest>> ReadJobsFile(const std::string& path, const Catalogue& catalogue,
                                                     const YamlLimits& limits) {
  HORUS_ASSIGN_OR_RETURN(std::string text, ReadFile(path, limits.max_bytes));
  return LoadJobsFile(path, std::move(text), catalogue, limits);
}

absl::StatusOr<std::vector<JobRequest>> LoadJobsFile(const std::string& path, std::string text,
                                                     const Catalogue& catalogue, const YamlLimits& limits) {
  HORUS_ASSIGN_OR_RETURN(std::vector<JobRequest> jobs, ParseJobsFile(path, std::move(text), catalogue, limits));
  SensitivityLoader loader;
  for (JobRequest& job : jobs) HORUS_RETURN_IF_ERROR(loader.Load(job));
  return jobs;
}

}  // namespace horus
