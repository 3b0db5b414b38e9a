// SPDX-License-Identifier: Apache-2.0
// Reads grid.yaml.
#include "lab/io/grid_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "io/cluster_file.h"
#include "io/gpu_file.h"
#include "io/jobs_file.h"
#include "io/yaml.h"
#include "lab/io/grid_policy.h"
#include "lab/io/grid_workload.h"

namespace horus {
namespace {

constexpr auto kRootKeys = std::to_array<std::string_view>({"version", "gpu_types_files", "cluster", "failures",
                                                            "truth", "beliefs", "workloads", "defaults", "policies",
                                                            "seeds", "baseline", "slowdown_bound", "lp_bound"});
constexpr std::array<std::string_view, 2> kFailureKeys = {"mean_up_h", "mean_down_h"};
constexpr Scale kHoursToUs = {.per_unit = int64_t{3600} * 1'000'000, .min = 1e-6, .max = 1e6};  // 114 years
constexpr std::array<std::string_view, 7> kClusterKeys = {
    "file", "gpus", "gpus_per_node", "max_tenants", "sharing", "cpu_cores_per_gpu", "memory_gib_per_gpu"};
constexpr std::array<std::string_view, 6> kTruthKeys = {"speeds",           "reference",    "many_tenants",
                                                        "unmeasured_alone", "interference", "sensitivity"};
constexpr std::array<std::string_view, 2> kSpeedsKeys = {"file", "gpus"};
constexpr std::array<std::string_view, 2> kMany = {"adds", "multiplies"};  // as the enum
constexpr std::array<std::string_view, 7> kBeliefKeys = {
    "jobs", "bundle", "interference", "interference_bundle", "predictions", "foretold", "sensitivity"};
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
  absl::StatusOr<ClusterFile> file = ReadClusterFile(path, grid.catalogue);
  if (!file.ok()) return map.Find("file")->Wrap(file.status());
  if (!file->residents.empty()) {
    return map.Find("file")->Error("expected a cluster without residents, found " +
                                   std::to_string(file->residents.size()));
  }
  grid.catalogue = std::move(file->catalogue);
  for (FileNode& node : file->nodes) {
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
  if (const YamlValue* sharing = map.Find("sharing")) {
    static constexpr std::array<std::string_view, 3> kModes = {"exclusive", "time-slice", "mps"};  // as the enum
    HORUS_ASSIGN_OR_RETURN(const size_t mode, sharing->Choice(kModes));
    device.mode = static_cast<SharingMode>(mode);
  }
  HORUS_ASSIGN_OR_RETURN(const auto pairs, gpus.Pairs(kMaxTypesOfGrid));
  std::set<GpuTypeId> seen;
  for (const auto& [name, value] : pairs) {
    const absl::StatusOr<GpuTypeId> type = grid.catalogue->Find(name);
    if (!type.ok()) return value.Wrap(type.status());
    if (!seen.insert(*type).second) return value.Error("expected each GPU type once, found it again by another name");
    HORUS_ASSIGN_OR_RETURN(int64_t left, value.Integer(1, kMaxGridGpus));
    device.type = *type;
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
  if (const YamlValue* many = map.Find("many_tenants")) {
    HORUS_ASSIGN_OR_RETURN(const size_t rule, many->Choice(kMany));
    grid.truth.many = static_cast<ManyTenants>(rule);
  }
  return absl::OkStatus();
}

absl::Status ReadBeliefs(const YamlMap& root, GridBeliefSource& beliefs) {
  HORUS_ASSIGN_OR_RETURN(const YamlValue value, root.Require("beliefs", "what the policies are told"));
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kBeliefKeys));
  HORUS_RETURN_IF_ERROR(map.Require("jobs", "a job table, or a jobs.yaml whose jobs are named as profiles").status());
  HORUS_RETURN_IF_ERROR(ReadPath(map, "jobs", beliefs.jobs));
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
    if (!names.insert(name_of(entry)).second) {
      return value.Error("expected names that differ, found " + Quoted(name_of(entry)) + " twice");
    }
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
  GridFilePolicy defaults;
  std::string stated;
  if (const YamlValue* value = root.Find("defaults")) {
    HORUS_ASSIGN_OR_RETURN(const YamlMap map, value->Map(GridPolicyKeys()));
    HORUS_RETURN_IF_ERROR(ReadGridPolicy(map, defaults));
    stated = value->Flat();
  }
  std::vector<std::string_view> keys(GridPolicyKeys().begin(), GridPolicyKeys().end());
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
  const auto is_baseline = [&](const GridFilePolicy& one) { return one.policy.name == grid.baseline; };
  if (grid.baseline.empty() || std::any_of(grid.policies.begin(), grid.policies.end(), is_baseline)) {
    return absl::OkStatus();
  }
  return root.Find("baseline")->Expected("the name of one of the policies");
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
    if (first > std::numeric_limits<uint64_t>::max() - static_cast<uint64_t>(seeds - 1)) {
      return value->Error(Formatted("expected seeds up to 2^64 - 1, found %d from %d on", seeds, first));
    }
    for (int64_t i = 0; i < seeds; ++i) grid.seeds.push_back(first + static_cast<uint64_t>(i));
  } else {
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
  if (grid.lp_bound && grid.truth.speeds.empty()) {
    return root.Find("lp_bound")->Error("expected measured speeds (truth: speeds) to bound, found none");
  }
  HORUS_RETURN_IF_ERROR(root.ReadNumber("slowdown_bound", 1, kMaxSlowdownBound, grid.slowdown_bound));
  for (const GridFileWorkload& one : grid.workloads) {
    if (grid.mean_up_us == 0 || one.workload.horizon.us > 0 || one.workload.horizon.span_milli > 0) continue;
    return root.Find("failures")
        ->Error("expected workloads with horizons beside failures, found " + Quoted(one.workload.name) + " without");
  }
  // Bounded: at most kMaxGridEntries of each.
  const size_t runs = grid.workloads.size() * grid.policies.size() * grid.seeds.size();
  if (runs <= kMaxGridRuns) return grid;
  return MakeError(absl::StatusCode::kResourceExhausted,
                   "%s: expected at most %d runs (workloads x policies x seeds), found %d", file, kMaxGridRuns, runs);
}

absl::StatusOr<GridFile> ReadGridFile(const std::string& path, std::shared_ptr<const Catalogue> catalogue,
                                      const YamlLimits& limits) {
  HORUS_ASSIGN_OR_RETURN(std::string text, ReadFile(path, limits.max_bytes));
  return ParseGridFile(path, std::move(text), std::move(catalogue), limits);
}

}  // namespace horus
