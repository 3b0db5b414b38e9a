// SPDX-License-Identifier: Apache-2.0
// Reads a node and its GPUs.
#include "io/node_yaml.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/format.h"
#include "base/text.h"
#include "device/sharing_mode.h"
#include "io/demand_yaml.h"
#include "io/yaml_units.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, 11> kNodeKeys = {"name",       "id",           "count",       "cpu_cores",
                                                        "memory_gib", "rack",         "labels",      "state",
                                                        "gpus",       "storage_mb_s", "network_mb_s"};
constexpr std::array<std::string_view, 8> kGpuKeys = {"type",        "count",         "sharing",     "mig",
                                                      "max_tenants", "nvlink_island", "pcie_switch", "socket"};
constexpr std::array kStates = {AdminState::kUp, AdminState::kDrained, AdminState::kDown};
constexpr int64_t kMaxTopologyNumber = std::numeric_limits<int16_t>::max();
constexpr int kReplicaDigits = 3;  // at least; more when there are more than a thousand

absl::Status ReadSharing(const YamlMap& map, SharingMode& mode) {
  // A list of MIG instances says it all.
  if (map.Has("mig")) mode = SharingMode::kMig;
  if (const YamlValue* value = map.Find("sharing")) {
    std::array<std::string_view, kSharingModes.size()> names;
    for (size_t i = 0; i < names.size(); ++i) names[i] = SharingModeName(kSharingModes[i]);
    HORUS_ASSIGN_OR_RETURN(const size_t choice, value->Choice(names));
    mode = kSharingModes[choice];
    if (map.Has("mig") && mode != SharingMode::kMig) {
      return value->Expected("mig, because the key 'mig' lists instances");
    }
  }
  if (mode == SharingMode::kMig && !map.Has("mig")) {
    return map.value().Error("expected key 'mig' (a list of instances such as 3g.20gb), found none");
  }
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
    if (std::count(profiles.begin(), profiles.end(), profile) > of.max_instances) {
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
  if (device.mode == SharingMode::kMig) {
    HORUS_ASSIGN_OR_RETURN(profiles, ReadMig(map, catalogue.at(device.type)));
  }
  // Bounded: at most kMaxDevicesPerNode times as many slices of each.
  if (node.devices.size() + static_cast<size_t>(count) * profiles.size() > kMaxDevicesPerNode) {
    return value.Error(Formatted("expected at most %d devices on a node, found more", kMaxDevicesPerNode));
  }
  for (int64_t i = 0; i < count; ++i, ++card) {
    device.physical_gpu = card;
    for (const int16_t profile : profiles) {
      device.mig_profile = profile;
      node.devices.push_back(device);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadLabels(const YamlMap& map, NodeSpec& node) {
  const YamlValue* labels = map.Find("labels");
  if (labels == nullptr) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const auto pairs, labels->Pairs(kMaxLabelsPerNode));
  for (const auto& [key, label] : pairs) {
    HORUS_ASSIGN_OR_RETURN(std::string text, label.Text(kMaxNameBytes));
    node.labels.emplace_back(key, std::move(text));
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
  return ReadLabels(map, node);
}

}  // namespace

std::string ReplicaName(const std::string& name, size_t index, size_t count) {
  if (count == 1) return name;
  const int digits = std::max(kReplicaDigits, static_cast<int>(std::to_string(count - 1).size()));
  return Formatted("%s-%0*d", name, digits, index);
}

absl::StatusOr<NodeEntry> ReadNodeEntry(const YamlValue& value, const Catalogue& catalogue, size_t max_count,
                                        RackNumbers& racks) {
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kNodeKeys));
  NodeEntry entry;
  HORUS_RETURN_IF_ERROR(map.Require("name", "text").status());
  HORUS_RETURN_IF_ERROR(map.ReadText("name", kMaxNameBytes, entry.spec.name));
  entry.has_id = map.Has("id");
  HORUS_RETURN_IF_ERROR(map.ReadId("id", entry.spec.id));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("count", 1, static_cast<int64_t>(max_count), entry.count));
  if (const YamlValue* state = map.Find("state")) {
    std::array<std::string_view, kStates.size()> names;
    for (size_t i = 0; i < names.size(); ++i) names[i] = AdminStateName(kStates[i]);
    HORUS_ASSIGN_OR_RETURN(const size_t choice, state->Choice(names));
    entry.state = kStates[choice];
  }
  HORUS_RETURN_IF_ERROR(ReadHost(map, racks, entry.spec));
  if (const YamlValue* gpus = map.Find("gpus")) {
    HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, gpus->List(kMaxDevicesPerNode));
    int16_t card = 0;
    for (const YamlValue& item : items) HORUS_RETURN_IF_ERROR(ReadGpus(item, catalogue, card, entry.spec));
  }
  HORUS_RETURN_IF_ERROR(value.Wrap(ResolveNode(catalogue, entry.spec)));
  return entry;
}

}  // namespace horus
