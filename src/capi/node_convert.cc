// SPDX-License-Identifier: Apache-2.0
// Nodes from the C ABI.
#include "capi/node_convert.h"

#include <limits>
#include <string>
#include <utility>

#include "capi/args.h"
#include "capi/labels.h"
#include "capi/sharing.h"
#include "capi/structs.h"

namespace horus::capi {
namespace {

static_assert(HORUS_STATE_UP == static_cast<int>(AdminState::kUp) &&
              HORUS_STATE_DRAINED == static_cast<int>(AdminState::kDrained) &&
              HORUS_STATE_DOWN == static_cast<int>(AdminState::kDown));

// Element `i` of a small-number column; `absent` when the caller left the column out.
absl::StatusOr<int16_t> SmallAt(const int32_t* column, const char* name, size_t i, int16_t absent) {
  if (column == nullptr) return absent;
  if (column[i] >= absent && column[i] <= std::numeric_limits<int16_t>::max()) return static_cast<int16_t>(column[i]);
  return InvalidArgument("%s: expected %d to %d, found %d", Element(name, i), absent,
                         std::numeric_limits<int16_t>::max(), column[i]);
}

absl::StatusOr<int16_t> MigIndex(const GpuType& type, const char* given, size_t i) {
  HORUS_ASSIGN_OR_RETURN(const std::string name, ReadText(given, "mig_profiles[]"));
  std::string known;
  for (size_t profile = 0; profile < type.mig.size(); ++profile) {
    if (type.mig[profile].name == name) return static_cast<int16_t>(profile);
    known += (profile == 0 ? "" : ", ") + type.mig[profile].name;
  }
  return MakeError(absl::StatusCode::kNotFound, "%s: expected a MIG profile of %s (%s), found '%s'",
                   Element("mig_profiles", i), type.name, known.empty() ? "it has none" : known, name);
}

absl::StatusOr<SharingMode> ModeAt(const horus_node& node, size_t i, bool is_mig) {
  const int32_t mode = node.sharing_modes == nullptr ? 0 : node.sharing_modes[i];
  if (mode == 0) return is_mig ? SharingMode::kMig : SharingMode::kTimeSlice;
  const absl::StatusOr<SharingMode> known = SharingFromC(mode);
  if (!known.ok()) return At(Element("sharing_modes", i), known.status());
  return known;
}

absl::StatusOr<DeviceSpec> DeviceAt(const Catalogue& catalogue, const horus_node& node, size_t i) {
  DeviceSpec device;
  HORUS_ASSIGN_OR_RETURN(const std::string type_name, ReadText(node.gpu_types[i], Element("gpu_types", i).c_str()));
  const absl::StatusOr<GpuTypeId> type = catalogue.Find(type_name);
  if (!type.ok()) return At(Element("gpu_types", i), type.status());
  device.type = *type;
  const char* mig_profile = node.mig_profiles == nullptr ? nullptr : node.mig_profiles[i];
  if (mig_profile != nullptr) {
    HORUS_ASSIGN_OR_RETURN(device.mig_profile, MigIndex(catalogue.at(*type), mig_profile, i));
  }
  HORUS_ASSIGN_OR_RETURN(device.mode, ModeAt(node, i, mig_profile != nullptr));
  HORUS_ASSIGN_OR_RETURN(device.physical_gpu, SmallAt(node.physical_gpus, "physical_gpus", i, -1));
  HORUS_ASSIGN_OR_RETURN(device.island, SmallAt(node.nvlink_islands, "nvlink_islands", i, -1));
  HORUS_ASSIGN_OR_RETURN(device.pcie_switch, SmallAt(node.pcie_switches, "pcie_switches", i, 0));
  HORUS_ASSIGN_OR_RETURN(device.socket, SmallAt(node.sockets, "sockets", i, 0));
  device.max_tenants = node.max_tenants == nullptr ? 0 : node.max_tenants[i];
  device.mem_mib = node.gpu_mem_mib == nullptr ? 0 : node.gpu_mem_mib[i];
  return device;
}

absl::StatusOr<NodeSpec> Convert(const Catalogue& catalogue, const horus_node& node) {
  NodeSpec spec;
  spec.id = node.id;
  HORUS_ASSIGN_OR_RETURN(spec.name, ReadOptionalText(node.name, "name"));
  spec.cpu_milli = node.cpu_milli;
  spec.mem_mib = node.mem_mib;
  spec.storage_mb_s = node.storage_mb_s;
  spec.network_mb_s = node.network_mb_s;
  spec.rack = node.rack;
  HORUS_RETURN_IF_ERROR(RequireColumn(node.gpu_types, "gpu_types", node.device_count));
  if (node.device_count > kMaxDevicesPerNode) {
    return InvalidArgument("device_count: expected at most %d, found %d", kMaxDevicesPerNode, node.device_count);
  }
  for (size_t i = 0; i < node.device_count; ++i) {
    HORUS_ASSIGN_OR_RETURN(DeviceSpec device, DeviceAt(catalogue, node, i));
    spec.devices.push_back(device);
  }
  HORUS_ASSIGN_OR_RETURN(
      spec.labels, LabelsFromC({"label", node.label_count, node.label_keys, node.label_values}, kMaxLabelsPerNode));
  return spec;
}

}  // namespace

absl::StatusOr<NodeSpec> NodeFromC(const Catalogue& catalogue, const horus_node* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_node node, ReadStruct(given));
  absl::StatusOr<NodeSpec> spec = Convert(catalogue, node);
  if (!spec.ok()) return At(Formatted("node %d", node.id), spec.status());
  return spec;
}

absl::StatusOr<AdminState> StateFromC(int32_t state) {
  if (state >= HORUS_STATE_UP && state <= HORUS_STATE_DOWN) return static_cast<AdminState>(state);
  return InvalidArgument("state: expected HORUS_STATE_* (%d to %d), found %d", HORUS_STATE_UP, HORUS_STATE_DOWN, state);
}

}  // namespace horus::capi
