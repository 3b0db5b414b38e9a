// SPDX-License-Identifier: Apache-2.0
// Reads cluster.yaml and makes a Cluster of it.
#include "io/cluster_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "base/seeded_hash.h"
#include "base/text.h"
#include "io/gpu_file.h"
#include "io/node_yaml.h"
#include "io/sensitivity_yaml.h"
#include "io/yaml_reader.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, 4> kRootKeys = {"version", "gpu_types_files", "nodes", "residents"};
constexpr std::array<std::string_view, 2> kSlotKeys = {"node", "gpu"};

// Names and ids so far, with the entry that took them.
struct Taken {
  SeededMap<std::string, size_t> names;  // -> position in ClusterFile::nodes; never iterated
  SeededMap<uint64_t, size_t> ids;       // -> line
  std::vector<uint32_t> lines;           // by position
};

absl::Status AddReplicas(const YamlValue& item, NodeEntry entry, Taken& taken, ClusterFile& file) {
  if (!entry.has_id) entry.spec.id = file.nodes.size() + 1;
  if (entry.spec.id > std::numeric_limits<uint64_t>::max() - (entry.count - 1)) {
    return item.Error("expected ids of all replicas to fit in 64 bits, found them beyond");
  }
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
    if (!new_id) {
      return item.Error(Formatted("id: expected an id of its own, found %d as on line %d", node.spec.id, id->second));
    }
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
    if (devices > limits.max_devices) {
      return item.Error(Formatted("expected at most %d devices in all, found %d", limits.max_devices, devices));
    }
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
    std::vector<std::string_view> names;
    for (const FileNode& known : file.nodes) names.push_back(known.spec.name);
    const std::string near = Nearest(name, names);
    return node.Expected("the name of a node of this file" + (near.empty() ? "" : " (nearest: " + near + ")"));
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
  HORUS_ASSIGN_OR_RETURN(const YamlValue on, map.Require("on", "a list of {node, gpu}"));
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, on.List(kMaxGpusPerJob));
  const JobSpec& spec = resident.job.spec;
  if (items.size() != static_cast<size_t>(GpuCount(spec))) {
    return on.Expected(Formatted("one {node, gpu} for each of its %d GPUs (tasks x gpus)", GpuCount(spec)));
  }
  for (const YamlValue& place : items) {
    HORUS_ASSIGN_OR_RETURN(Slot slot, ReadSlot(place, taken, file));
    slot.task = static_cast<int32_t>(resident.slots.size()) / spec.gpus_per_task;
    resident.slots.push_back(slot);
  }
  std::sort(resident.slots.begin(), resident.slots.end(), [](const Slot& a, const Slot& b) {
    return std::tie(a.task, a.node, a.device) < std::tie(b.task, b.node, b.device);
  });
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
  HORUS_ASSIGN_OR_RETURN(const YamlMap root, OpenVersion1(tree, kRootKeys));
  ClusterFile file;
  file.catalogue = std::move(catalogue);
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
  std::stable_sort(ascending.begin(), ascending.end(),
                   [](const FileNode* a, const FileNode* b) { return a->spec.id < b->spec.id; });
  for (const FileNode* node : ascending) {
    HORUS_RETURN_IF_ERROR(cluster.AddNode(node->spec));
    if (node->state == AdminState::kUp) continue;
    HORUS_RETURN_IF_ERROR(cluster.SetNodeState(node->spec.id, node->state).status());
  }
  return cluster;
}

std::vector<GpuTypeId> TypesPresent(const ClusterFile& file) {
  std::vector<bool> present(file.catalogue->size(), false);
  for (const FileNode& node : file.nodes) {
    for (const DeviceSpec& device : node.spec.devices) present[device.type.value()] = true;
  }
  std::vector<GpuTypeId> types;
  for (size_t i = 0; i < present.size(); ++i) {
    if (present[i]) types.push_back(GpuTypeId(static_cast<uint16_t>(i)));
  }
  return types;
}

}  // namespace horus
