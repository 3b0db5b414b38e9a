// SPDX-License-Identifier: Apache-2.0
// Reads cluster.yaml and makes a Cluster of it.
#include "io/cluster_file.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/format.h"
#include "base/seeded_hash.h"
#include "base/text.h"
#include "base/vectors.h"
#include "device/sharing_mode.h"
#include "io/gpu_file.h"
#include "io/sensitivity_file.h"

namespace horus {
namespace {

// ---- One entry of `nodes:` in cluster.yaml.
// Cost: linear in the entry and its devices.

// Racks by name, numbered from 1 in order of appearance; 0 is "not stated".
using RackNumbers = SeededMap<std::string, uint64_t>;

struct NodeEntry {
  NodeSpec spec;  // of the first replica; the id is the next free one unless `has_id`
  AdminState state = AdminState::kUp;
  bool has_id = false;
  size_t count = 1;
};

constexpr auto kNodeKeys =
    KeyList<11>("name id count cpu_cores memory_gib rack labels state gpus storage_mb_s network_mb_s");
constexpr auto kGpuKeys = KeyList<8>("type count sharing mig max_tenants nvlink_island pcie_switch socket");
constexpr std::array kStates = {AdminState::kUp, AdminState::kDrained, AdminState::kDown};
constexpr int64_t kMaxTopologyNumber = std::numeric_limits<int16_t>::max();
constexpr int kReplicaDigits = 3;  // at least; more when there are more than a thousand

absl::Status ReadSharing(const YamlMap& map, SharingMode& mode) {
  // A list of MIG instances says it all.
  if (map.Has("mig")) mode = SharingMode::kMig;
  auto modes = std::to_array({SharingMode::kExclusive, SharingMode::kTimeSlice, SharingMode::kMps, SharingMode::kMig,
                              SharingMode::kTimeSliceOrMps});
  HORUS_RETURN_IF_ERROR(map.ReadEnum("sharing", modes, SharingModeName, mode));
  if (map.Has("mig") && mode != SharingMode::kMig)
    return map.Find("sharing")->Expected("mig, because the key 'mig' lists instances");
  if (mode == SharingMode::kMig && !map.Has("mig"))
    return map.value().Error("expected key 'mig' (a list of instances such as 3g.20gb), found none");
  return absl::OkStatus();
}

absl::StatusOr<int16_t> FindProfile(const YamlValue& value, const GpuType& type) {
  HORUS_ASSIGN_OR_RETURN(const std::string name, value.Text(kMaxNameBytes));
  std::vector<std::string_view> names;
  for (size_t i = 0; i < type.mig.size(); ++i) {
    if (type.mig[i].name == name) return static_cast<int16_t>(i);
    names.push_back(type.mig[i].name);
  }
  return value.Expected("a MIG profile of " + type.name + " (" +
                        absl::StrJoin(names, ", ", [](std::string* out, std::string_view text) { out->append(text); }) +
                        ")");
}

// The instances of one card. Whether they fit on it together is checked with the node.
absl::StatusOr<std::vector<int16_t>> ReadMig(const YamlMap& map, const GpuType& type) {
  const YamlValue& mig = *map.Find("mig");
  if (type.mig.empty()) return mig.Error("expected a GPU type that has MIG, found " + Quoted(type.name));
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, mig.List(kMaxDevicesPerNode));
  if (items.empty()) return mig.Expected("at least one MIG instance");
  std::vector<int16_t> profiles;
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(const int16_t profile, FindProfile(item, type));
    profiles.push_back(profile);
    const MigProfile& of = type.mig[static_cast<size_t>(profile)];
    if (std::ranges::count(profiles, profile) > of.max_instances) {
      return item.Error(
          Formatted("expected at most %d instances of %s on one %s, found more", of.max_instances, of.name, type.name));
    }
  }
  return profiles;
}

// Appends the devices of one entry of `gpus`; `card` counts the node's cards.
absl::Status ReadGpus(const YamlValue& value, const Catalogue& catalogue, int16_t& card, NodeSpec& node) {
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kGpuKeys));
  HORUS_ASSIGN_OR_RETURN(const YamlValue type, map.Require("type", "a GPU type such as a100-40gb"));
  DeviceSpec device;
  HORUS_ASSIGN_OR_RETURN(device.type, ReadGpuTypeName(type, catalogue));
  int64_t count = 1;
  HORUS_RETURN_IF_ERROR(map.ReadInteger("count", 1, static_cast<int64_t>(kMaxDevicesPerNode), count));
  HORUS_RETURN_IF_ERROR(ReadSharing(map, device.mode));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("max_tenants", 1, kMaxTenantsPerDevice, device.max_tenants));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("nvlink_island", 0, kMaxTopologyNumber, device.island));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("pcie_switch", 0, kMaxTopologyNumber, device.pcie_switch));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("socket", 0, kMaxTopologyNumber, device.socket));
  std::vector<int16_t> profiles = {-1};
  if (device.mode == SharingMode::kMig) HORUS_SET_OR_RETURN(profiles, ReadMig(map, catalogue.at(device.type)));
  // Bounded: at most kMaxDevicesPerNode times as many slices of each.
  if (node.devices.size() + static_cast<size_t>(count) * profiles.size() > kMaxDevicesPerNode)
    return value.Error(Formatted("expected at most %d devices on a node, found more", kMaxDevicesPerNode));
  for (int64_t i = 0; i < count; ++i, ++card) {
    device.physical_gpu = card;
    for (const int16_t profile : profiles) {
      device.mig_profile = profile;
      node.devices.push_back(device);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadHost(const YamlMap& map, RackNumbers& racks, NodeSpec& node) {
  HORUS_RETURN_IF_ERROR(map.Require("cpu_cores", "cores that jobs may use").status());
  HORUS_RETURN_IF_ERROR(map.ReadScaled("cpu_cores", kCoresToMilli, node.cpu_milli));
  HORUS_RETURN_IF_ERROR(map.Require("memory_gib", "host memory that jobs may use").status());
  HORUS_RETURN_IF_ERROR(map.ReadScaled("memory_gib", kGibToMib, node.mem_mib));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("storage_mb_s", 0, kMaxHostQuantity, node.storage_mb_s));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("network_mb_s", 1, kMaxHostQuantity, node.network_mb_s));
  std::string rack;
  HORUS_RETURN_IF_ERROR(map.ReadText("rack", kMaxNameBytes, rack));
  if (!rack.empty()) node.rack = racks.emplace(rack, racks.size() + 1).first->second;
  if (const YamlValue* labels = map.Find("labels"))
    HORUS_SET_OR_RETURN(node.labels, labels->TextPairs(kMaxLabelsPerNode, kMaxNameBytes));
  return absl::OkStatus();
}

// Name of replica `index` of `count`: the name itself, or with "-000", "-001", ... when there are several.
std::string ReplicaName(const std::string& name, size_t index, size_t count) {
  if (count == 1) return name;
  const int digits = std::max(kReplicaDigits, static_cast<int>(std::to_string(count - 1).size()));
  return Formatted("%s-%0*d", name, digits, index);
}

// `max_count`: how many nodes may still come.
absl::StatusOr<NodeEntry> ReadNodeEntry(const YamlValue& value, const Catalogue& catalogue, size_t max_count,
                                        RackNumbers& racks) {
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kNodeKeys));
  NodeEntry entry;
  HORUS_RETURN_IF_ERROR(map.Require("name", "text").status());
  HORUS_RETURN_IF_ERROR(map.ReadText("name", kMaxNameBytes, entry.spec.name));
  entry.has_id = map.Has("id");
  HORUS_RETURN_IF_ERROR(map.ReadId("id", entry.spec.id));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("count", 1, static_cast<int64_t>(max_count), entry.count));
  HORUS_RETURN_IF_ERROR(map.ReadEnum("state", kStates, AdminStateName, entry.state));
  HORUS_RETURN_IF_ERROR(ReadHost(map, racks, entry.spec));
  if (const YamlValue* gpus = map.Find("gpus")) {
    HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, gpus->List(kMaxDevicesPerNode));
    int16_t card = 0;
    for (const YamlValue& item : items) HORUS_RETURN_IF_ERROR(ReadGpus(item, catalogue, card, entry.spec));
  }
  HORUS_RETURN_IF_ERROR(value.Wrap(ResolveNode(catalogue, entry.spec)));
  return entry;
}

constexpr std::string_view kClusterFileKeys[] = {"version", "gpu_types_files", "nodes", "residents"};
constexpr std::string_view kSlotKeys[] = {"node", "gpu"};

// Names and ids so far, with the entry that took them.
struct Taken {
  SeededMap<std::string, size_t> names;  // -> position in ClusterFile::nodes; never iterated
  SeededMap<uint64_t, size_t> ids;       // -> line
  std::vector<uint32_t> lines;           // by position
};

absl::Status AddReplicas(const YamlValue& item, NodeEntry entry, Taken& taken, ClusterFile& file) {
  if (!entry.has_id) entry.spec.id = file.nodes.size() + 1;
  if (entry.spec.id > std::numeric_limits<uint64_t>::max() - (entry.count - 1))
    return item.Error("expected ids of all replicas to fit in 64 bits, found them beyond");
  for (size_t i = 0; i < entry.count; ++i) {
    FileNode node = {entry.spec, entry.state};
    node.spec.id += i;
    node.spec.name = ReplicaName(entry.spec.name, i, entry.count);
    const auto [name, new_name] = taken.names.emplace(node.spec.name, file.nodes.size());
    if (!new_name) {
      return item.Error(Formatted("name: expected a name of its own, found %s as on line %d", Quoted(node.spec.name),
                                  taken.lines[name->second]));
    }
    const auto [id, new_id] = taken.ids.emplace(node.spec.id, item.line());
    if (!new_id)
      return item.Error(Formatted("id: expected an id of its own, found %d as on line %d", node.spec.id, id->second));
    taken.lines.push_back(item.line());
    file.nodes.push_back(std::move(node));
  }
  return absl::OkStatus();
}

absl::Status ReadNodes(const YamlMap& root, const ClusterFileLimits& limits, Taken& taken, ClusterFile& file) {
  HORUS_ASSIGN_OR_RETURN(const YamlValue list, root.Require("nodes", "a list of nodes"));
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, list.List(limits.max_nodes));
  RackNumbers racks;
  if (items.empty()) return list.Expected("at least one node");
  size_t devices = 0;
  size_t label_bytes = 0;
  for (const YamlValue& item : items) {
    const size_t left = limits.max_nodes - file.nodes.size();
    HORUS_ASSIGN_OR_RETURN(NodeEntry entry, ReadNodeEntry(item, *file.catalogue, left, racks));
    // Bounded: at most max_nodes replicas of kMaxDevicesPerNode, and the sum is checked each time.
    devices += entry.count * entry.spec.devices.size();
    if (devices > limits.max_devices)
      return item.Error(Formatted("expected at most %d devices in all, found %d", limits.max_devices, devices));
    // Bounded: at most max_nodes replicas of 2 MiB of labels, and the sum is checked each time.
    for (const auto& [key, label] : entry.spec.labels) label_bytes += entry.count * (key.size() + label.size());
    if (label_bytes > limits.max_label_bytes) {
      return item.Error(
          Formatted("expected at most %d bytes of labels in all, found %d", limits.max_label_bytes, label_bytes));
    }
    HORUS_RETURN_IF_ERROR(AddReplicas(item, std::move(entry), taken, file));
  }
  return absl::OkStatus();
}

absl::StatusOr<Slot> ReadSlot(const YamlValue& value, const Taken& taken, const ClusterFile& file) {
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kSlotKeys));
  HORUS_ASSIGN_OR_RETURN(const YamlValue node, map.Require("node", "the name of a node"));
  HORUS_ASSIGN_OR_RETURN(const YamlValue gpu, map.Require("gpu", "an index on that node, from 0"));
  HORUS_ASSIGN_OR_RETURN(const std::string name, node.Text(kMaxNameBytes));
  const auto found = taken.names.find(name);
  if (found == taken.names.end()) {
    const auto names =
        VectorOf<std::string_view>(file.nodes, [](const FileNode& known) -> auto& { return known.spec.name; });
    return node.Error("expected the name of a node of this file, found " + Quoted(name) + DidYouMean(name, names));
  }
  const NodeSpec& spec = file.nodes[found->second].spec;
  if (spec.devices.empty()) return node.Expected("a node that has GPUs");
  HORUS_ASSIGN_OR_RETURN(const int64_t device, gpu.Integer(0, static_cast<int64_t>(spec.devices.size()) - 1));
  return Slot{.node = spec.id, .device = static_cast<int32_t>(device)};
}

absl::StatusOr<FileResident> ReadResident(const YamlValue& item, std::span<const std::string_view> keys,
                                          const Taken& taken, const ClusterFile& file) {
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, item.Map(keys));
  FileResident resident;
  // No default id: positions are what the jobs of jobs.yaml get.
  HORUS_ASSIGN_OR_RETURN(resident.job, ReadJobRequest(map, *file.catalogue, std::nullopt));
  HORUS_RETURN_IF_ERROR(RefuseCopies(map, resident.job));
  HORUS_ASSIGN_OR_RETURN(const YamlValue on, map.Require("on", "a list of {node, gpu}"));
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, on.List(kMaxGpusPerJob));
  const JobSpec& spec = resident.job.spec;
  if (items.size() != static_cast<size_t>(GpuCount(spec)))
    return on.Expected(Formatted("one {node, gpu} for each of its %d GPUs (tasks x gpus)", GpuCount(spec)));
  for (const YamlValue& place : items) {
    HORUS_ASSIGN_OR_RETURN(Slot slot, ReadSlot(place, taken, file));
    slot.task = static_cast<int32_t>(resident.slots.size()) / spec.gpus_per_task;
    resident.slots.push_back(slot);
  }
  std::ranges::sort(resident.slots, {}, ByTask);
  return resident;
}

absl::Status ReadResidents(const YamlMap& root, const Taken& taken, ClusterFile& file) {
  const YamlValue* list = root.Find("residents");
  if (list == nullptr) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, list->List(kMaxFileJobs));
  std::vector<std::string_view> keys(JobKeys().begin(), JobKeys().end());
  keys.push_back("on");
  std::vector<JobRequest> jobs;
  size_t demands = 0;
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(FileResident resident, ReadResident(item, keys, taken, file));
    HORUS_RETURN_IF_ERROR(CountDemands(resident.job.spec, resident.job.where, demands));
    jobs.push_back(resident.job);
    file.residents.push_back(std::move(resident));
  }
  return CheckJobsDiffer(jobs);
}

}  // namespace

absl::StatusOr<ClusterFile> ParseClusterFile(const std::string& path, std::string text,
                                             std::shared_ptr<const Catalogue> catalogue,
                                             const ClusterFileLimits& limits) {
  HORUS_ASSIGN_OR_RETURN(const auto tree, YamlTree::Parse(path, std::move(text), limits.yaml));
  HORUS_ASSIGN_OR_RETURN(const YamlMap root, OpenVersion1(tree, kClusterFileKeys));
  ClusterFile file{.catalogue = std::move(catalogue)};
  HORUS_RETURN_IF_ERROR(ReadGpuFiles(root, limits.yaml, file.catalogue));
  Taken taken;
  HORUS_RETURN_IF_ERROR(ReadNodes(root, limits, taken, file));
  HORUS_RETURN_IF_ERROR(ReadResidents(root, taken, file));
  return file;
}

absl::StatusOr<ClusterFile> ReadClusterFile(const std::string& path, std::shared_ptr<const Catalogue> catalogue) {
  HORUS_ASSIGN_OR_RETURN(std::string text, ReadFile(path, YamlLimits().max_bytes));
  return LoadClusterFile(path, std::move(text), std::move(catalogue));
}

absl::StatusOr<ClusterFile> LoadClusterFile(const std::string& path, std::string text,
                                            std::shared_ptr<const Catalogue> catalogue) {
  HORUS_ASSIGN_OR_RETURN(ClusterFile file, ParseClusterFile(path, std::move(text), std::move(catalogue)));
  SensitivityLoader loader;
  for (FileResident& resident : file.residents) HORUS_RETURN_IF_ERROR(loader.Load(resident.job));
  return file;
}

absl::StatusOr<Cluster> MakeCluster(const ClusterFile& file) {
  Cluster cluster(file.catalogue);
  std::vector<const FileNode*> ascending;  // each then comes to the end of the cluster's order
  for (const FileNode& node : file.nodes) ascending.push_back(&node);
  std::ranges::stable_sort(ascending, [](const FileNode* a, const FileNode* b) { return a->spec.id < b->spec.id; });
  for (const FileNode* node : ascending) {
    HORUS_RETURN_IF_ERROR(cluster.AddNode(node->spec));
    if (node->state == AdminState::kUp) continue;
    HORUS_RETURN_IF_ERROR(cluster.SetNodeState(node->spec.id, node->state).status());
  }
  return cluster;
}

std::vector<GpuTypeId> TypesPresent(const ClusterFile& file) {
  std::set<GpuTypeId> types;
  for (const FileNode& node : file.nodes) {
    for (const DeviceSpec& device : node.spec.devices) types.insert(device.type);
  }
  return {types.begin(), types.end()};
}

}  // namespace horus
