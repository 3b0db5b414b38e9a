// SPDX-License-Identifier: Apache-2.0
// Reads grid.yaml.
#include "lab/io/grid_file.h"

#include <cmath>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "io/cluster_file.h"
#include "io/gpu_file.h"
#include "io/jobs_file.h"

namespace horus {
namespace {

// ---- One workload of grid.yaml: files or a made trace, and what becomes of it.

constexpr auto kKeys = KeyList<15>(
    "name files format skip_bad synthetic single_gpu known_only sample backlog load horizon_h horizon_pct "
    "warm_up_h warm_up_pct clip_percentile");
constexpr auto kSyntheticKeys = KeyList<6>("preset jobs arrivals load profiles seed");
constexpr std::array<std::string_view, 3> kArrivals = {"backlog", "poisson", "bursty"};  // as the enum

constexpr Scale kAnyHoursToUs = {.per_unit = int64_t{3600} * 1'000'000, .min = 0, .max = 1e6};  // 114 years
constexpr Scale kPctToMilli = {.per_unit = 10, .min = 0, .max = 1e5, .exact = true};            // 1000 times
constexpr Scale kLoadToMilli = {.per_unit = 1000, .min = 1e-3, .max = 1e6, .exact = true};
constexpr size_t kMaxLoads = 100;
constexpr size_t kMaxProfiles = 100'000;
constexpr int64_t kMaxWeight = 1'000'000;

absl::Status ReadTime(const YamlMap& map, std::string_view hours, std::string_view pct, GridTime& time) {
  if (map.Has(hours) && map.Has(pct))
    return map.Find(pct)->Error(Formatted("expected one of %s and %s, found both", hours, pct));
  HORUS_RETURN_IF_ERROR(map.ReadScaled(hours, kAnyHoursToUs, time.us));
  return map.ReadScaled(pct, kPctToMilli, time.span_milli);
}

absl::Status ReadFiles(const YamlMap& map, GridFileWorkload& entry) {
  const YamlValue& files = *map.Find("files");
  std::vector<YamlValue> items = {files};
  if (files.is_list()) HORUS_SET_OR_RETURN(items, files.List(kMaxGridPaths));
  if (items.empty()) return files.Expected("at least one path");
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(const std::string path, item.Text(kMaxPathBytes));
    entry.files.push_back(PathBeside(item.file(), path));
  }
  if (const YamlValue* format = map.Find("format")) {
    HORUS_ASSIGN_OR_RETURN(const std::string name, format->Text(kMaxNameBytes));
    HORUS_ASSIGN_OR_RETURN(entry.read.format, format->Wrap(ParseTraceFormat(name)));
  }
  return map.ReadBool("skip_bad", entry.read.skip_bad);
}

absl::Status ReadProfiles(const YamlMap& map, GridFileWorkload& entry) {
  const YamlValue* value = map.Find("profiles");
  entry.all_profiles = value == nullptr;
  if (value == nullptr) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const auto pairs, value->Pairs(kMaxProfiles));
  if (pairs.empty()) return value->Expected("at least one profile and its weight");
  entry.workload.synthetic.profiles.clear();
  for (const auto& [name, weight] : pairs) {
    HORUS_ASSIGN_OR_RETURN(const int64_t read, weight.Integer(1, kMaxWeight));
    if (const absl::Status status = ValidateTraceName("profile", name); !status.ok()) return weight.Wrap(status);
    entry.workload.synthetic.profiles.push_back({.name = name, .weight = static_cast<uint32_t>(read)});
  }
  return absl::OkStatus();
}

absl::Status ReadSynthetic(const YamlValue& value, int64_t capacity_gpu_milli, GridFileWorkload& entry) {
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kSyntheticKeys));
  HORUS_ASSIGN_OR_RETURN(const YamlValue preset, map.Require("preset", "philly or horus2020"));
  HORUS_ASSIGN_OR_RETURN(const std::string name, preset.Text(kMaxNameBytes));
  SyntheticOptions& options = entry.workload.synthetic;
  HORUS_ASSIGN_OR_RETURN(options, preset.Wrap(SyntheticPreset(name)));
  options.capacity_gpu_milli = capacity_gpu_milli;
  if (options.gap_scv_milli == 0) options.gap_scv_milli = kPhillyGapScvMilli;
  HORUS_RETURN_IF_ERROR(map.ReadId("seed", options.seed));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("jobs", 1, static_cast<int64_t>(kMaxTraceJobs), options.jobs));
  HORUS_RETURN_IF_ERROR(map.ReadChoice("arrivals", kArrivals, options.arrivals));
  HORUS_RETURN_IF_ERROR(map.ReadScaled("load", kLoadToMilli, options.load_milli));
  return ReadProfiles(map, entry);
}

absl::Status ReadEdits(const YamlMap& map, GridEdits& edits) {
  HORUS_RETURN_IF_ERROR(map.ReadBool("single_gpu", edits.single_gpu));
  HORUS_RETURN_IF_ERROR(map.ReadBool("known_only", edits.known_only));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("sample", 1, static_cast<int64_t>(kMaxTraceJobs), edits.sample));
  HORUS_RETURN_IF_ERROR(map.ReadBool("backlog", edits.backlog));
  return map.ReadScaled("clip_percentile", kPercentToMilli, edits.clip_milli);
}

absl::Status AddLoads(const YamlMap& map, const GridFileWorkload& entry, std::vector<GridFileWorkload>& workloads) {
  const YamlValue* value = map.Find("load");
  if (value == nullptr) {
    workloads.push_back(entry);
    return absl::OkStatus();
  }
  if (entry.workload.edits.backlog) return value->Error("expected one of backlog and load, found both");
  std::vector<YamlValue> loads = {*value};
  if (value->is_list()) HORUS_SET_OR_RETURN(loads, value->List(kMaxLoads));
  if (loads.empty()) return value->Expected("at least one load");
  for (const YamlValue& load : loads) {
    HORUS_ASSIGN_OR_RETURN(const int64_t milli, load.Scaled(kLoadToMilli));
    GridFileWorkload one = entry;
    one.workload.edits.load_milli = static_cast<int32_t>(milli);
    AppendFormatted(&one.workload.content, "load: %d/1000\n", milli);
    if (loads.size() > 1) AppendFormatted(&one.workload.name, " at load %.6g", static_cast<double>(milli) / kGridWhole);
    workloads.push_back(std::move(one));
  }
  return absl::OkStatus();
}

// `capacity_gpu_milli`: of the cluster.
absl::Status ReadGridWorkload(const YamlValue& value, int64_t capacity_gpu_milli,
                              std::vector<GridFileWorkload>& workloads) {
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kKeys));
  GridFileWorkload entry;
  HORUS_ASSIGN_OR_RETURN(const YamlValue name, map.Require("name", "how the results call it"));
  HORUS_ASSIGN_OR_RETURN(entry.workload.name, name.Text(kMaxNameBytes));
  if (map.Has("files") == map.Has("synthetic"))
    return value.Error(Formatted("expected one of files and synthetic, found %s", map.Has("files") ? "both" : "none"));
  if (map.Has("files")) {
    HORUS_RETURN_IF_ERROR(ReadFiles(map, entry));
  } else {
    HORUS_RETURN_IF_ERROR(ReadSynthetic(*map.Find("synthetic"), capacity_gpu_milli, entry));
  }
  HORUS_RETURN_IF_ERROR(ReadEdits(map, entry.workload.edits));
  HORUS_RETURN_IF_ERROR(ReadTime(map, "horizon_h", "horizon_pct", entry.workload.horizon));
  HORUS_RETURN_IF_ERROR(ReadTime(map, "warm_up_h", "warm_up_pct", entry.workload.warm_up));
  for (const char* key : {"horizon_pct", "warm_up_pct"}) {
    if (!entry.workload.edits.backlog || !map.Has(key)) continue;
    return map.Find(key)->Error("expected hours beside backlog, whose jobs all come at once, found per cent");
  }
  static constexpr std::array<std::string_view, 3> kApart = {"name", "files", "load"};
  entry.workload.content = value.Flat(kApart);
  return AddLoads(map, entry, workloads);
}

// ---- One policy of grid.yaml: its placer, its queue and how it decides.

constexpr double kHugeNumber = 1e9;       // of what has no other end; chosen
constexpr double kMostTolerance = 0.999;  // below 1
constexpr int64_t kMaxLookAhead = 1'000'000;
constexpr int64_t kMaxProfilingNodes = 1'000'000;
// Bounded: a constant.
constexpr int64_t kReactiveProfilingUs = 60 * int64_t{1'000'000};  // a minute, as Horus (TPDS 2022) has it

template <typename T>
struct Field {
  std::string_view key;
  T SimOptions::* member;
};
constexpr auto kTimes = std::to_array<Field<int64_t>>({{"round_s", &SimOptions::round_us},
                                                       {"restart_s", &SimOptions::restart_us},
                                                       {"checkpoint_s", &SimOptions::checkpoint_us},
                                                       {"latency_s", &SimOptions::latency_us},
                                                       {"rebalance_s", &SimOptions::rebalance_us},
                                                       {"observe_s", &SimOptions::observe_us},
                                                       {"profiling_s", &SimOptions::profiling_us}});

constexpr auto kFlags = std::to_array<Field<bool>>({{"know_run_times", &SimOptions::know_run_times},
                                                    {"preempt", &SimOptions::preempt},
                                                    {"one_by_one", &SimOptions::one_by_one},
                                                    {"profile_each_job", &SimOptions::profile_each_job}});
constexpr std::array<std::string_view, 4> kWeights = {"queue", "shortest", "prices", "alike"};     // as the enum
constexpr std::array<std::string_view, 4> kLearns = {"nothing", "failures", "pairs", "corrects"};  // likewise

constexpr auto kOthers = KeyList<16>(
    "weights learn policy queue interference slowdown_bound look_ahead profiling_nodes pack_threshold "
    "foreground_bound links patience_s las_continuous synergy_grow synergy_tolerance bounded_pct");

// Keys of a policy but for its name.
std::vector<std::string_view> GridPolicyKeys() {
  std::vector<std::string_view> keys(kOthers.begin(), kOthers.end());
  for (const auto& field : kTimes) keys.push_back(field.key);
  for (const auto& field : kFlags) keys.push_back(field.key);
  const auto add = [&](const auto& option) {
    if ((option.facts.told & kToldGrid) != 0) keys.push_back(option.name);
    return absl::OkStatus();
  };
  static_cast<void>(VisitPlacerOptions(add));
  return keys;
}

absl::Status ReadBound(const YamlMap& map, double& bound) {
  const YamlValue* value = map.Find("slowdown_bound");
  if (value == nullptr) return absl::OkStatus();
  if (const auto text = value->Text(kMaxPathBytes); text.ok() && *text == "none") {
    bound = std::numeric_limits<double>::infinity();
    return absl::OkStatus();
  }
  return map.ReadNumber("slowdown_bound", 1, kMaxSlowdownBound, bound);
}

absl::Status ReadPlacerOptions(const YamlMap& map, PlacerOptions& placer) {
  return VisitPlacerOptions([&]<typename T>(const PlacerOption<T>& option) {
    const OptionFacts& facts = option.facts;
    T& value = placer.*option.field;
    if ((facts.told & kToldGrid) == 0) return absl::OkStatus();
    if constexpr (std::is_same_v<T, bool>) {
      return map.ReadBool(option.name, value);
    } else if constexpr (std::is_enum_v<T>) {
      return map.ReadChoice(option.name, facts.words, value);
    } else if constexpr (std::is_floating_point_v<T>) {
      return map.ReadNumber(option.name, facts.least, facts.most, value);
    } else if (std::isfinite(facts.most)) {
      return map.ReadInteger(option.name, static_cast<int64_t>(facts.least), static_cast<int64_t>(facts.most), value);
    } else {
      return map.ReadInteger(option.name, 0, std::numeric_limits<int32_t>::max(), value);
    }
  });
}

absl::Status ReadPlacing(const YamlMap& map, GridPolicy& policy) {
  PlacerOptions& placer = policy.placer_options;
  HORUS_RETURN_IF_ERROR(ReadBound(map, placer.slowdown_bound));
  HORUS_RETURN_IF_ERROR(ReadPlacerOptions(map, placer));
  HORUS_RETURN_IF_ERROR(map.ReadScaled("bounded_pct", kPercentToMilli, policy.bounded_milli));
  if (const YamlValue* value = map.Find("bounded_pct"); value != nullptr) {
    const bool bounded_at_all = placer.slowdown_bound > 0 && std::isfinite(placer.slowdown_bound);
    if (!bounded_at_all) return value->Expected("a slowdown_bound beside it");
  }
  PolicyOptions& options = policy.policy_options;
  HORUS_RETURN_IF_ERROR(map.ReadBool("links", options.links));
  LabPolicyOptions lab = LabOf(options);
  HORUS_RETURN_IF_ERROR(map.ReadNumber("pack_threshold", 0, kHugeNumber, lab.pack_threshold));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("foreground_bound", 1, kMaxSlowdownBound, lab.foreground_bound));
  HORUS_RETURN_IF_ERROR(map.ReadBool("synergy_grow", lab.synergy_grow));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("synergy_tolerance", 0, kMostTolerance, lab.synergy_tolerance));
  options.lab = Lab(std::move(lab));
  return map.ReadInteger("profiling_nodes", 0, kMaxProfilingNodes, policy.profiling_nodes);
}

absl::Status ReadDeciding(const YamlMap& map, GridPolicy& policy) {
  HORUS_RETURN_IF_ERROR(map.ReadInteger("look_ahead", 0, kMaxLookAhead, policy.sim_options.look_ahead));
  for (const auto& field : kTimes)
    HORUS_RETURN_IF_ERROR(map.ReadScaled(field.key, kSecondsToUs, policy.sim_options.*field.member));
  for (const auto& field : kFlags) HORUS_RETURN_IF_ERROR(map.ReadBool(field.key, policy.sim_options.*field.member));
  HORUS_RETURN_IF_ERROR(map.ReadChoice("weights", kWeights, policy.sim_options.weights));
  HORUS_RETURN_IF_ERROR(map.ReadChoice("learn", kLearns, policy.learns));
  HORUS_RETURN_IF_ERROR(map.ReadScaled("patience_s", kSecondsToUs, policy.queue_options.patience_us));
  return map.ReadBool("las_continuous", policy.queue_options.las_continuous);
}

// At the key that names it, where there is one.
absl::Status At(const YamlMap& map, std::string_view key, const absl::Status& status) {
  const YamlValue* value = map.Find(key);
  return value == nullptr ? map.value().Wrap(status) : value->Wrap(status);
}

// What the mapping states; the rest stays as it is. Policy and queue are made once, as a check.
absl::Status ReadGridPolicy(const YamlMap& map, GridFilePolicy& entry) {
  GridPolicy& policy = entry.policy;
  HORUS_RETURN_IF_ERROR(map.ReadText("policy", kMaxNameBytes, policy.policy));
  HORUS_RETURN_IF_ERROR(map.ReadText("queue", kMaxNameBytes, policy.queue));
  HORUS_RETURN_IF_ERROR(map.ReadText("interference", kMaxNameBytes, entry.interference));
  if (policy.policy == "reactive" && policy.sim_options.profiling_us == 0)
    policy.sim_options.profiling_us = kReactiveProfilingUs;
  if (policy.policy == "oracle" && entry.interference.empty()) entry.interference = kOracle;
  HORUS_RETURN_IF_ERROR(ReadPlacing(map, policy));
  HORUS_RETURN_IF_ERROR(ReadDeciding(map, policy));
  HORUS_RETURN_IF_ERROR(At(map, "policy", MakePolicy(policy.policy, policy.policy_options).status()));
  QueueOptions queue = policy.queue_options;
  queue.capacity = {.gpu_milli = kMilliPerGpu, .cpu_milli = kMilliPerCore, .mem_mib = 1};  // the cluster's later
  return At(map, "queue", MakeQueue(policy.queue, queue).status());
}

constexpr auto kRootKeys = KeyList<13>(
    "version gpu_types_files cluster failures truth beliefs workloads defaults policies seeds baseline "
    "slowdown_bound lp_bound");
constexpr std::array<std::string_view, 2> kFailureKeys = {"mean_up_h", "mean_down_h"};
constexpr Scale kHoursToUs = {.per_unit = int64_t{3600} * 1'000'000, .min = 1e-6, .max = 1e6};  // 114 years
constexpr auto kClusterKeys =
    KeyList<7>("file gpus gpus_per_node max_tenants sharing cpu_cores_per_gpu memory_gib_per_gpu");
constexpr auto kTruthKeys = KeyList<6>("speeds reference many_tenants unmeasured_alone interference sensitivity");
constexpr std::array<std::string_view, 2> kSpeedsKeys = {"file", "gpus"};
constexpr std::array<std::string_view, 2> kMany = {"adds", "multiplies"};  // as the enum
constexpr auto kBeliefKeys =
    KeyList<7>("jobs bundle interference interference_bundle predictions foretold sensitivity");
constexpr std::array<std::string_view, 2> kSeedKeys = {"first", "count"};
constexpr size_t kMaxTypesOfGrid = 64;

// Of a cluster that is stated by numbers of GPUs alone; chosen.
constexpr int64_t kGpusPerNode = 8;
constexpr int32_t kTenants = 2;
constexpr int64_t kCpuMilliPerGpu = 8 * kMilliPerCore;
constexpr int64_t kMemMibPerGpu = 64 * 1024;

absl::Status ReadPath(const YamlMap& map, std::string_view key, std::string& path) {
  std::string written;
  HORUS_RETURN_IF_ERROR(map.ReadText(key, kMaxPathBytes, written));
  if (!written.empty()) path = PathBeside(map.value().file(), written);
  return absl::OkStatus();
}

absl::Status ReadClusterPath(const YamlMap& map, GridFile& grid) {
  for (const std::string_view key : kClusterKeys) {
    if (key == "file" || !map.Has(key)) continue;
    return map.Find(key)->Error("expected no such key beside file, found one");
  }
  std::string path;
  HORUS_RETURN_IF_ERROR(ReadPath(map, "file", path));
  const YamlValue& value = *map.Find("file");
  HORUS_ASSIGN_OR_RETURN(ClusterFile file, value.Wrap(ReadClusterFile(path, grid.catalogue)));
  if (!file.residents.empty())
    return value.Error("expected a cluster without residents, found " + std::to_string(file.residents.size()));
  grid.catalogue = std::move(file.catalogue);
  for (FileNode& node : file.nodes) {
    if (node.state == AdminState::kUp) grid.nodes.push_back(std::move(node.spec));
  }
  return absl::OkStatus();
}

// Nodes of one type each; the last of a type holds what is left.
absl::Status AddNodes(const YamlMap& map, const YamlValue& gpus, GridFile& grid) {
  DeviceSpec device{.max_tenants = kTenants};
  int64_t per_node = kGpusPerNode, cpu_milli = kCpuMilliPerGpu, mem_mib = kMemMibPerGpu;
  HORUS_RETURN_IF_ERROR(map.ReadInteger("gpus_per_node", 1, kMaxDevicesPerNode, per_node));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("max_tenants", 1, kMaxTenantsPerDevice, device.max_tenants));
  HORUS_RETURN_IF_ERROR(map.ReadScaled("cpu_cores_per_gpu", kCoresToMilli, cpu_milli));
  HORUS_RETURN_IF_ERROR(map.ReadScaled("memory_gib_per_gpu", kGibToMib, mem_mib));
  static constexpr std::array<std::string_view, 3> kModes = {"exclusive", "time-slice", "mps"};  // as the enum
  HORUS_RETURN_IF_ERROR(map.ReadChoice("sharing", kModes, device.mode));
  HORUS_ASSIGN_OR_RETURN(const auto pairs, gpus.Pairs(kMaxTypesOfGrid));
  std::set<GpuTypeId> seen;
  for (const auto& [name, value] : pairs) {
    HORUS_ASSIGN_OR_RETURN(device.type, value.Wrap(grid.catalogue->Find(name)));
    if (!seen.insert(device.type).second)
      return value.Error("expected each GPU type once, found it again by another name");
    HORUS_ASSIGN_OR_RETURN(int64_t left, value.Integer(1, kMaxGridGpus));
    for (; left > 0; left -= per_node) {
      const int64_t here = std::min(left, per_node);
      // Bounded: at most kMaxDevicesPerNode times kMaxHostQuantity.
      NodeSpec node{.id = grid.nodes.size() + 1, .cpu_milli = here * cpu_milli, .mem_mib = here * mem_mib};
      node.name = Formatted("node-%04d", node.id);
      node.devices = std::vector<DeviceSpec>(static_cast<size_t>(here), device);
      if (absl::Status status = ResolveNode(*grid.catalogue, node); !status.ok()) return value.Wrap(status);
      grid.nodes.push_back(std::move(node));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadCluster(const YamlMap& root, GridFile& grid) {
  HORUS_ASSIGN_OR_RETURN(const YamlValue value, root.Require("cluster", "a file, or numbers of GPUs"));
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kClusterKeys));
  if (map.Has("file")) {
    HORUS_RETURN_IF_ERROR(ReadClusterPath(map, grid));
  } else {
    HORUS_ASSIGN_OR_RETURN(const YamlValue gpus, map.Require("gpus", "a mapping of GPU types and numbers, or file"));
    HORUS_RETURN_IF_ERROR(AddNodes(map, gpus, grid));
  }
  for (const NodeSpec& node : grid.nodes) {
    if (!node.devices.empty()) return absl::OkStatus();
  }
  return value.Error("expected at least one GPU that is up, found none");
}

absl::Status ReadFailures(const YamlMap& root, GridFile& grid) {
  const YamlValue* value = root.Find("failures");
  if (value == nullptr) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value->Map(kFailureKeys));
  HORUS_ASSIGN_OR_RETURN(const YamlValue up, map.Require("mean_up_h", "hours"));
  HORUS_ASSIGN_OR_RETURN(const YamlValue down, map.Require("mean_down_h", "hours"));
  HORUS_ASSIGN_OR_RETURN(grid.mean_up_us, up.Scaled(kHoursToUs));
  HORUS_ASSIGN_OR_RETURN(grid.mean_down_us, down.Scaled(kHoursToUs));
  return absl::OkStatus();
}

absl::Status ReadSpeeds(const YamlValue& value, const Catalogue& catalogue, GridTruthSource& truth) {
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, value.List(kMaxGridPaths));
  if (items.empty()) return value.Expected("at least one file");
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(const YamlMap map, item.Map(kSpeedsKeys));
    HORUS_RETURN_IF_ERROR(map.Require("file", "speeds in Gavel's layout").status());
    GridSpeeds speeds;
    HORUS_RETURN_IF_ERROR(ReadPath(map, "file", speeds.file));
    if (const YamlValue* gpus = map.Find("gpus")) {
      HORUS_ASSIGN_OR_RETURN(const auto pairs, gpus->Pairs(kMaxTypesOfGrid));
      for (const auto& [name, type] : pairs) {
        HORUS_ASSIGN_OR_RETURN(const GpuTypeId id, ReadGpuTypeName(type, catalogue));
        speeds.gpus.emplace_back(name, id);
      }
    }
    truth.speeds.push_back(std::move(speeds));
  }
  return absl::OkStatus();
}

absl::Status ReadTruth(const YamlMap& root, GridFile& grid) {
  HORUS_ASSIGN_OR_RETURN(const YamlValue value, root.Require("truth", "speeds, or interference"));
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kTruthKeys));
  if (map.Has("speeds") == map.Has("interference")) {
    return value.Error(
        Formatted("expected one of speeds and interference, found %s", map.Has("speeds") ? "both" : "none"));
  }
  HORUS_RETURN_IF_ERROR(map.ReadText("interference", kMaxNameBytes, grid.truth.interference));
  HORUS_RETURN_IF_ERROR(ReadPath(map, "sensitivity", grid.truth.sensitivity));
  if (map.Has("interference")) {
    for (const char* key : {"reference", "many_tenants", "unmeasured_alone"}) {
      if (map.Has(key)) return map.Find(key)->Error("expected such a key beside speeds only, found one");
    }
    return absl::OkStatus();
  }
  HORUS_RETURN_IF_ERROR(ReadSpeeds(*map.Find("speeds"), *grid.catalogue, grid.truth));
  HORUS_RETURN_IF_ERROR(map.ReadText("reference", kMaxNameBytes, grid.truth.reference));
  HORUS_RETURN_IF_ERROR(map.ReadBool("unmeasured_alone", grid.truth.unmeasured_alone));
  return map.ReadChoice("many_tenants", kMany, grid.truth.many);
}

absl::Status ReadBeliefs(const YamlMap& root, GridBeliefSource& beliefs) {
  HORUS_ASSIGN_OR_RETURN(const YamlValue value, root.Require("beliefs", "what the policies are told"));
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kBeliefKeys));
  HORUS_RETURN_IF_ERROR(map.Require("jobs", "a job table, or a jobs.yaml whose jobs are named as profiles").status());
  HORUS_RETURN_IF_ERROR(ReadPath(map, "jobs", beliefs.jobs));
  HORUS_RETURN_IF_ERROR(map.ReadText("bundle", kMaxPathBytes, beliefs.bundle));
  if (beliefs.bundle != "builtin" && beliefs.bundle != "none")
    HORUS_RETURN_IF_ERROR(ReadPath(map, "bundle", beliefs.bundle));
  HORUS_RETURN_IF_ERROR(map.ReadText("interference", kMaxNameBytes, beliefs.interference));
  HORUS_RETURN_IF_ERROR(ReadPath(map, "interference_bundle", beliefs.interference_bundle));
  HORUS_RETURN_IF_ERROR(ReadPath(map, "sensitivity", beliefs.sensitivity));
  HORUS_RETURN_IF_ERROR(ReadPath(map, "foretold", beliefs.predictions));  // as 0.1 had it
  return ReadPath(map, "predictions", beliefs.predictions);
}

template <typename Entries, typename NameOf>
absl::Status CheckNames(const YamlValue& value, const Entries& entries, NameOf name_of) {
  std::set<std::string> names;
  for (const auto& entry : entries) {
    if (!names.insert(name_of(entry)).second)
      return value.Error("expected names that differ, found " + Quoted(name_of(entry)) + " twice");
  }
  return entries.empty() ? value.Expected("at least one entry") : absl::OkStatus();
}

absl::Status ReadWorkloads(const YamlMap& root, GridFile& grid) {
  HORUS_ASSIGN_OR_RETURN(const YamlValue value, root.Require("workloads", "a list"));
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, value.List(kMaxGridEntries));
  int64_t capacity = 0;
  for (const NodeSpec& node : grid.nodes) capacity += static_cast<int64_t>(node.devices.size()) * kMilliPerGpu;
  for (const YamlValue& item : items) HORUS_RETURN_IF_ERROR(ReadGridWorkload(item, capacity, grid.workloads));
  return CheckNames(value, grid.workloads, [](const GridFileWorkload& one) { return one.workload.name; });
}

absl::Status ReadPolicies(const YamlMap& root, GridFile& grid) {
  std::vector<std::string_view> keys = GridPolicyKeys();
  GridFilePolicy defaults;
  std::string stated;
  if (const YamlValue* value = root.Find("defaults")) {
    HORUS_ASSIGN_OR_RETURN(const YamlMap map, value->Map(keys));
    HORUS_RETURN_IF_ERROR(ReadGridPolicy(map, defaults));
    stated = value->Flat();
  }
  keys.push_back("name");
  HORUS_ASSIGN_OR_RETURN(const YamlValue value, root.Require("policies", "a list"));
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, value.List(kMaxGridEntries));
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(const YamlMap map, item.Map(keys));
    GridFilePolicy entry = defaults;
    HORUS_RETURN_IF_ERROR(ReadGridPolicy(map, entry));
    entry.policy.name = entry.policy.policy;
    HORUS_RETURN_IF_ERROR(map.ReadText("name", kMaxNameBytes, entry.policy.name));
    static constexpr std::array<std::string_view, 1> kApart = {"name"};
    entry.policy.content = "defaults\n" + stated + "entry\n" + item.Flat(kApart);
    grid.policies.push_back(std::move(entry));
  }
  HORUS_RETURN_IF_ERROR(CheckNames(value, grid.policies, [](const GridFilePolicy& one) { return one.policy.name; }));
  HORUS_RETURN_IF_ERROR(root.ReadText("baseline", kMaxNameBytes, grid.baseline));
  std::vector<std::string_view> names;
  for (const GridFilePolicy& one : grid.policies) names.push_back(one.policy.name);
  if (grid.baseline.empty() || std::ranges::count(names, grid.baseline) > 0) return absl::OkStatus();
  return root.Find("baseline")->Error(ExpectedOneOf(names, grid.baseline));
}

absl::Status ReadSeeds(const YamlMap& root, GridFile& grid) {
  const YamlValue* value = root.Find("seeds");
  if (value == nullptr) {
    grid.seeds = {1};
    return absl::OkStatus();
  }
  if (value->is_map()) {
    HORUS_ASSIGN_OR_RETURN(const YamlMap map, value->Map(kSeedKeys));
    uint64_t first = 1;
    HORUS_RETURN_IF_ERROR(map.ReadId("first", first));
    HORUS_ASSIGN_OR_RETURN(const YamlValue count, map.Require("count", "how many"));
    HORUS_ASSIGN_OR_RETURN(const int64_t seeds, count.Integer(1, static_cast<int64_t>(kMaxGridEntries)));
    if (first > std::numeric_limits<uint64_t>::max() - static_cast<uint64_t>(seeds - 1))
      return value->Error(Formatted("expected seeds up to 2^64 - 1, found %d from %d on", seeds, first));
    for (int64_t i = 0; i < seeds; ++i) grid.seeds.push_back(first + static_cast<uint64_t>(i));
  } else {
    if (!value->is_list()) return value->Expected("a list, or {first: 1, count: 10}");
    HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, value->List(kMaxGridEntries));
    for (const YamlValue& item : items) {
      HORUS_ASSIGN_OR_RETURN(const uint64_t seed, item.Id());
      grid.seeds.push_back(seed);
    }
  }
  return CheckNames(*value, grid.seeds, [](uint64_t seed) { return std::to_string(seed); });
}

}  // namespace

absl::StatusOr<GridFile> ParseGridFile(const std::string& file, std::string text,
                                       std::shared_ptr<const Catalogue> catalogue, const YamlLimits& limits) {
  HORUS_ASSIGN_OR_RETURN(const auto tree, YamlTree::Parse(file, std::move(text), limits));
  HORUS_ASSIGN_OR_RETURN(const YamlMap root, OpenVersion1(tree, kRootKeys));
  GridFile grid;
  grid.path = file;
  grid.catalogue = std::move(catalogue);
  HORUS_RETURN_IF_ERROR(ReadGpuFiles(root, limits, grid.catalogue));
  HORUS_RETURN_IF_ERROR(ReadCluster(root, grid));
  HORUS_RETURN_IF_ERROR(ReadFailures(root, grid));
  HORUS_RETURN_IF_ERROR(ReadTruth(root, grid));
  HORUS_RETURN_IF_ERROR(ReadBeliefs(root, grid.beliefs));
  HORUS_RETURN_IF_ERROR(ReadWorkloads(root, grid));
  HORUS_RETURN_IF_ERROR(ReadPolicies(root, grid));
  HORUS_RETURN_IF_ERROR(ReadSeeds(root, grid));
  HORUS_RETURN_IF_ERROR(root.ReadBool("lp_bound", grid.lp_bound));
  if (grid.lp_bound && grid.truth.speeds.empty())
    return root.Find("lp_bound")->Error("expected measured speeds (truth: speeds) to bound, found none");
  HORUS_RETURN_IF_ERROR(root.ReadNumber("slowdown_bound", 1, kMaxSlowdownBound, grid.slowdown_bound));
  for (const GridFileWorkload& one : grid.workloads) {
    if (grid.mean_up_us == 0 || one.workload.horizon.us > 0 || one.workload.horizon.span_milli > 0) continue;
    return root.Find("failures")
        ->Error("expected workloads with horizons beside failures, found " + Quoted(one.workload.name) + " without");
  }
  // Bounded: at most kMaxGridEntries of each.
  const size_t runs = grid.workloads.size() * grid.policies.size() * grid.seeds.size();
  if (runs <= kMaxGridRuns) return grid;
  return ResourceExhausted("%s: expected at most %d runs (workloads x policies x seeds), found %d", file, kMaxGridRuns,
                           runs);
}

absl::StatusOr<GridFile> ReadGridFile(const std::string& path, std::shared_ptr<const Catalogue> catalogue,
                                      const YamlLimits& limits) {
  HORUS_ASSIGN_OR_RETURN(std::string text, ReadFile(path, limits.max_bytes));
  return ParseGridFile(path, std::move(text), std::move(catalogue), limits);
}

}  // namespace horus
