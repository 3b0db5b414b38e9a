// SPDX-License-Identifier: Apache-2.0
// NodeSpec: one machine and its devices as the caller describes them, and its validation.
//
// Enters:  the caller's description; GPU types by their id in the cluster's catalogue.
// Leaves:  a plain value; ValidateNode says node, field, expected and found.
// Units:   thousandths of a core, MiB, MB/s.
// Cost:    about 150 bytes plus 48 per device.
#pragma once

#include "base/shared.h"
#include "device/catalogue.h"
#include "device/sharing_mode.h"
#include "place/job/job.h"

namespace horus {

// State of a node or of a device. Drained: residents stay, nothing new comes. Down: residents are reported,
// never forgotten. The values cross the C boundary and lie in snapshots: never renumber.
enum class AdminState : uint8_t { kUp = 0, kDrained = 1, kDown = 2 };
[[nodiscard]] std::string_view AdminStateName(AdminState state);  // "up", "drained", "down"

// What a job can be put on: a GPU, or one MIG instance of a GPU (a device of its own).
struct DeviceSpec {
  GpuTypeId type;
  SharingMode mode = SharingMode::kTimeSlice;
  int16_t mig_profile = -1;   // index in GpuType::mig for SharingMode::kMig, else -1
  int16_t physical_gpu = -1;  // card that the device is on; -1 = a card of its own. MIG instances of one card
                              // share it, and only they do
  int16_t island = -1;        // devices with the same number share NVLink; -1 = none
  int16_t pcie_switch = 0;    // all 0 = not stated; else each is in one socket
  int16_t socket = 0;
  int32_t max_tenants = 0;  // 0 = the placer's limit
  int64_t mem_mib = 0;      // 0 = the catalogue's (of the type or the MIG profile); kept as resolved
  float compute_share = 1;  // of the card's compute: below 1 for a MIG instance; set by ResolveNode
  int32_t mps_clients = 0;  // processes that its MPS server admits, one a tenant; 0 without MPS; set by ResolveNode
  int32_t pcie_mb_s = 0;    // links to other GPUs, one direction, of the type; set by ResolveNode
  int32_t nvlink_mb_s = 0;  // 0 without NVLink
  friend bool operator==(const DeviceSpec&, const DeviceSpec&) = default;
};

using DeviceList = SharedList<DeviceSpec>;  // nodes of one cluster share equal ones

struct NodeSpec {
  NodeId id = 0;
  std::string name;  // optional
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;  // host memory
  int64_t storage_mb_s = 0;
  int64_t network_mb_s = 0;  // to other nodes, one direction; 0 = kDefaultNetworkMbPerS; kept as resolved
  uint64_t rack = 0;         // nodes with the same number are near each other
  std::vector<std::pair<std::string, std::string>> labels;  // unique keys; kept ascending
  DeviceList devices;                                       // may be empty
  std::vector<std::string> device_ids;  // of each device, such as the driver's UUID; "" = none; empty = none at all
  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

// What NCCL takes 100 Gbit/s for when it plans (src/graph/topo.h).
inline constexpr int64_t kDefaultNetworkMbPerS = 12'000;
// PCIe 3.0 x16, one direction (PCI Express Base 3.0), for types whose links nobody knows.
inline constexpr int32_t kDefaultPcieMbPerS = 15'754;
inline constexpr size_t kMaxDevicesPerNode = 1024;
inline constexpr size_t kMaxLabelsPerNode = 1024;
inline constexpr int32_t kMaxTenantsPerDevice = 256;  // no sharing mode is useful beyond

// Checks `node`, sorts its labels and fills its network_mb_s, and mem_mib, compute_share, mps_clients and links of its
// devices from the catalogue.
// INVALID_ARGUMENT "node <id>: <field>: expected ..., found ...".
[[nodiscard]] absl::Status ResolveNode(const Catalogue& catalogue, NodeSpec& node);

// Of the devices as resolved; equal on every run and machine.
[[nodiscard]] uint64_t HashDevices(std::span<const DeviceSpec> devices, uint64_t seed = 0);
// Of the whole description, as resolved, and the state; equal on every run and machine.
[[nodiscard]] uint64_t HashNode(const NodeSpec& node, AdminState state);

}  // namespace horus
