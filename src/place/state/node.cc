// SPDX-License-Identifier: Apache-2.0
// Validation of node descriptions against the catalogue.
#include "place/state/node.h"

#include <algorithm>
#include <limits>

#include "base/hash.h"
#include "base/id_map.h"
#include "base/status.h"
#include "base/text.h"

namespace horus {
namespace {

constexpr int64_t kMaxDeviceMemMib = int64_t{1} << 32;  // 4 PiB; as demands

uint64_t Add(uint64_t seed, int64_t value) { return CombineHash(seed, static_cast<uint64_t>(value)); }

uint64_t Add(uint64_t seed, std::string_view text) { return CombineHash(seed, Hash64(text)); }

absl::Status SortLabels(NodeSpec& node) {
  if (node.labels.size() > kMaxLabelsPerNode)
    return InvalidArgument("labels: expected at most %d, found %d", kMaxLabelsPerNode, node.labels.size());
  std::ranges::sort(node.labels);
  for (size_t i = 0; i < node.labels.size(); ++i) {
    const auto& [key, value] = node.labels[i];
    if (key.empty()) return InvalidArgument("labels: expected a key, found an empty one");
    if (key.size() > kMaxNameBytes || value.size() > kMaxNameBytes)
      return InvalidArgument("label %s: expected at most %d bytes", Quoted(key), kMaxNameBytes);
    if (i > 0 && node.labels[i - 1].first == key)
      return InvalidArgument("labels: expected each key once, found %s twice", Quoted(key));
  }
  return absl::OkStatus();
}

absl::Status CheckDeviceIds(const NodeSpec& node) {
  if (node.device_ids.empty()) return absl::OkStatus();
  if (node.device_ids.size() != node.devices.size()) {
    return InvalidArgument("device_ids: expected one for each of %d devices, found %d", node.devices.size(),
                           node.device_ids.size());
  }
  std::map<std::string_view, size_t> seen;
  for (size_t i = 0; i < node.device_ids.size(); ++i) {
    const std::string& id = node.device_ids[i];
    if (id.size() > kMaxNameBytes)
      return InvalidArgument("device_ids[%d]: expected at most %d bytes, found %d", i, kMaxNameBytes, id.size());
    if (const auto [at, fresh] = seen.emplace(id, i); !fresh && !id.empty()) {
      return InvalidArgument("device_ids[%d]: expected each once, found %s, as at devices[%d]", i, Quoted(id),
                             at->second);
    }
  }
  return absl::OkStatus();
}

// Compute slices of the whole card: those of its largest profile.
int64_t WholeSlices(const GpuType& type) {
  int64_t whole = 0;
  for (const MigProfile& profile : type.mig) whole = std::max(whole, profile.compute_slices);
  return whole;
}

absl::Status ResolveMig(size_t index, const GpuType& type, DeviceSpec& device) {
  device.compute_share = 1;
  if (device.mode != SharingMode::kMig) {
    if (device.mig_profile == -1) return absl::OkStatus();
    return InvalidArgument("devices[%d].mig_profile: expected none with sharing mode %s, found %d", index,
                           std::string(SharingModeName(device.mode)), device.mig_profile);
  }
  const auto profiles = static_cast<int>(type.mig.size());
  if (device.mig_profile < 0 || device.mig_profile >= profiles) {
    return InvalidArgument("devices[%d].mig_profile: %s has %d MIG profiles, found index %d", index, type.name,
                           profiles, device.mig_profile);
  }
  const MigProfile& profile = type.mig[static_cast<size_t>(device.mig_profile)];
  if (device.mem_mib == 0) device.mem_mib = profile.mem_mib;
  device.compute_share = static_cast<float>(profile.compute_slices) / static_cast<float>(WholeSlices(type));
  return absl::OkStatus();
}

int32_t LinkSpeed(int64_t mb_s) {
  return static_cast<int32_t>(std::min(mb_s, int64_t{std::numeric_limits<int32_t>::max()}));
}

absl::Status ResolveDevice(const Catalogue& catalogue, size_t index, DeviceSpec& device) {
  if (!device.type.valid() || !catalogue.Contains(device.type)) {
    return InvalidArgument("devices[%d].type: expected a type of the catalogue (0 to %d), found %d", index,
                           static_cast<int64_t>(catalogue.size()) - 1, device.type.value());
  }
  if (SharingModeName(device.mode) == "unknown") {
    return InvalidArgument("devices[%d].mode: expected a sharing mode (0 to 4), found %d", index,
                           static_cast<int>(device.mode));
  }
  if (device.physical_gpu < -1 || device.island < -1 || device.pcie_switch < 0 || device.socket < 0) {
    return InvalidArgument(
        "devices[%d]: expected physical_gpu and island of at least -1, pcie_switch and socket of at least 0, found "
        "%d, %d, %d, %d",
        index, device.physical_gpu, device.island, device.pcie_switch, device.socket);
  }
  if (device.max_tenants < 0 || device.max_tenants > kMaxTenantsPerDevice) {
    return InvalidArgument("devices[%d].max_tenants: expected 0 (the placer's limit) to %d, found %d", index,
                           kMaxTenantsPerDevice, device.max_tenants);
  }
  if (device.mem_mib < 0 || device.mem_mib > kMaxDeviceMemMib) {
    return InvalidArgument("devices[%d].mem_mib: expected 0 (the catalogue's) to %d MiB, found %d", index,
                           kMaxDeviceMemMib, device.mem_mib);
  }
  const GpuType& type = catalogue.at(device.type);
  HORUS_RETURN_IF_ERROR(ResolveMig(index, type, device));
  const bool mps = device.mode == SharingMode::kMps || device.mode == SharingMode::kTimeSliceOrMps;
  device.mps_clients = mps ? static_cast<int32_t>(type.max_mps_clients) : 0;
  if (mps && device.mps_clients == 0) {
    return InvalidArgument("devices[%d].mode: expected a mode other than mps, because %s admits no MPS clients", index,
                           type.name);
  }
  if (device.mem_mib == 0) device.mem_mib = type.mem_mib;
  device.pcie_mb_s = type.pcie_mb_s > 0 ? LinkSpeed(type.pcie_mb_s) : kDefaultPcieMbPerS;
  device.nvlink_mb_s = LinkSpeed(type.nvlink_mb_s / 2);  // of both directions together
  return absl::OkStatus();
}

// A card is one device, or it is cut into MIG instances: modes do not mix on it.
absl::Status CheckCards(const Catalogue& catalogue, const NodeSpec& node) {
  struct Card {
    size_t first = 0;  // its first device
    int64_t slices = 0;
  };
  IdMap<Card> cards;
  for (size_t i = 0; i < node.devices.size(); ++i) {
    const DeviceSpec& device = node.devices[i];
    if (device.physical_gpu < 0) continue;
    Card& card = cards.FindOrInsert(static_cast<uint64_t>(device.physical_gpu), {.first = i});
    const DeviceSpec& first = node.devices[card.first];
    if (card.first != i && (device.mode != SharingMode::kMig || first.mode != SharingMode::kMig)) {
      return InvalidArgument(
          "devices[%d]: card %d is devices[%d] already; only MIG instances share a card, found modes %s and %s", i,
          device.physical_gpu, card.first, std::string(SharingModeName(first.mode)),
          std::string(SharingModeName(device.mode)));
    }
    if (device.type != first.type) {
      return InvalidArgument("devices[%d]: expected one GPU type on card %d, found %s and %s", i, device.physical_gpu,
                             catalogue.at(first.type).name, catalogue.at(device.type).name);
    }
    if (device.mode != SharingMode::kMig) continue;
    const GpuType& type = catalogue.at(device.type);
    const int64_t whole = WholeSlices(type);
    card.slices += type.mig[static_cast<size_t>(device.mig_profile)].compute_slices;
    if (card.slices > whole) {
      return InvalidArgument("devices[%d]: expected at most %d compute slices on card %d (%s), found %d", i, whole,
                             device.physical_gpu, type.name, card.slices);
    }
  }
  return absl::OkStatus();
}

// What is inside what must be told alike by all devices: a switch is in one socket, the instances of a card are in one
// place, and NVLink joins GPUs of one type. An island may reach over sockets. Numbers cannot form a cycle.
absl::Status CheckTopology(const Catalogue& catalogue, const NodeSpec& node) {
  const auto& devices = node.devices;
  const bool switches = std::ranges::any_of(devices, [](const auto& one) { return one.pcie_switch != 0; });
  IdMap<size_t> first_of_switch, first_of_island, first_of_card;
  for (size_t i = 0; i < devices.size(); ++i) {
    const DeviceSpec& device = devices[i];
    if (switches) {
      const size_t other = first_of_switch.FindOrInsert(static_cast<uint64_t>(device.pcie_switch), i);
      if (devices[other].socket != device.socket) {
        return InvalidArgument(
            "devices[%d]: expected PCIe switch %d in one socket, found socket %d, and %d at "
            "devices[%d]",
            i, device.pcie_switch, device.socket, devices[other].socket, other);
      }
    }
    if (device.island >= 0) {
      const size_t other = first_of_island.FindOrInsert(static_cast<uint64_t>(device.island), i);
      if (devices[other].type != device.type) {
        return InvalidArgument(
            "devices[%d]: expected one GPU type in NVLink island %d, found %s, and %s at "
            "devices[%d]",
            i, device.island, catalogue.at(device.type).name, catalogue.at(devices[other].type).name, other);
      }
    }
    if (device.physical_gpu < 0) continue;
    const size_t other = first_of_card.FindOrInsert(static_cast<uint64_t>(device.physical_gpu), i);
    const auto place = [](const DeviceSpec& one) { return std::tuple(one.island, one.pcie_switch, one.socket); };
    if (place(devices[other]) != place(device)) {
      return InvalidArgument(
          "devices[%d]: expected the instances of card %d in one NVLink island, PCIe switch and "
          "socket, found %d, %d, %d, and %d, %d, %d at devices[%d]",
          i, device.physical_gpu, device.island, device.pcie_switch, device.socket, devices[other].island,
          devices[other].pcie_switch, devices[other].socket, other);
    }
  }
  return absl::OkStatus();
}

absl::Status ResolveAll(const Catalogue& catalogue, NodeSpec& node) {
  for (const auto& [field, unit, value] :
       {std::tuple("cpu_milli", "thousandths of a core", node.cpu_milli), std::tuple("mem_mib", "MiB", node.mem_mib),
        std::tuple("storage_mb_s", "MB/s", node.storage_mb_s), std::tuple("network_mb_s", "MB/s", node.network_mb_s)}) {
    if (value < 0 || value > kMaxHostQuantity)
      return InvalidArgument("%s: expected 0 to %d %s, found %d", field, kMaxHostQuantity, unit, value);
  }
  if (node.network_mb_s == 0) node.network_mb_s = kDefaultNetworkMbPerS;
  HORUS_RETURN_IF_ERROR(SortLabels(node));
  if (node.devices.size() > kMaxDevicesPerNode)
    return InvalidArgument("devices: expected at most %d, found %d", kMaxDevicesPerNode, node.devices.size());
  for (size_t i = 0; i < node.devices.size(); ++i) HORUS_RETURN_IF_ERROR(ResolveDevice(catalogue, i, node.devices[i]));
  if (std::ranges::all_of(node.device_ids, [](const auto& id) { return id.empty(); })) {
    node.device_ids.clear();  // none at all, however that was said
  }
  HORUS_RETURN_IF_ERROR(CheckDeviceIds(node));
  HORUS_RETURN_IF_ERROR(CheckCards(catalogue, node));
  return CheckTopology(catalogue, node);
}

}  // namespace

std::string_view AdminStateName(AdminState state) {
  constexpr std::string_view kNames[] = {"up", "drained", "down"};
  const auto at = static_cast<size_t>(state);
  return at < std::size(kNames) ? kNames[at] : "unknown";
}

absl::Status ResolveNode(const Catalogue& catalogue, NodeSpec& node) {
  if (node.name.size() > kMaxNameBytes) {
    return InvalidArgument("node %d: name: expected at most %d bytes, found %d", node.id, kMaxNameBytes,
                           node.name.size());
  }
  const absl::Status status = ResolveAll(catalogue, node);
  return status.ok() ? status : At("node " + IdAndName(node.id, node.name), status);
}

uint64_t HashDevices(std::span<const DeviceSpec> devices, uint64_t seed) {
  uint64_t hash = seed;
  for (const DeviceSpec& device : devices) {
    for (const int64_t value :
         {int64_t{device.type.value()}, static_cast<int64_t>(device.mode), int64_t{device.mig_profile},
          int64_t{device.physical_gpu}, int64_t{device.island}, int64_t{device.pcie_switch}, int64_t{device.socket},
          int64_t{device.max_tenants}, device.mem_mib}) {
      hash = Add(hash, value);
    }
  }
  return hash;
}

uint64_t HashNode(const NodeSpec& node, AdminState state) {
  uint64_t hash = CombineHash(node.id, static_cast<uint64_t>(state));
  hash = Add(hash, node.name);
  hash = Add(Add(Add(hash, node.cpu_milli), node.mem_mib), node.storage_mb_s);
  hash = CombineHash(Add(hash, node.network_mb_s), node.rack);
  for (const auto& [key, value] : node.labels) hash = Add(Add(hash, key), value);
  for (const std::string& id : node.device_ids) hash = Add(hash, id);
  return HashDevices(node.devices.get(), hash);
}

}  // namespace horus
