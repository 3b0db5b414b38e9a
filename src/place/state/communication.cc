// SPDX-License-Identifier: Apache-2.0
// Time of an all-reduce from link speeds and sizes.
#include "place/state/communication.h"

#include <algorithm>
#include <vector>

namespace horus {
namespace {

constexpr double kMbPerMib = 1.048576;

// Of what the PCIe links carry. NCCL plans with these (src/graph/topo.h): 6/5 of the traffic where an Intel CPU passes
// it from switch to switch; 6 GB/s over a Broadwell socket link beside 12 GB/s over PCIe 3.0 x16.
constexpr double kThroughCpu = 5.0 / 6;
constexpr double kAcrossSockets = 0.5;

}  // namespace

int32_t PartOf(const DeviceSpec& device, Reach reach) {
  switch (reach) {
    case Reach::kIsland:
      return device.island;
    case Reach::kSwitch:  // switches that nobody numbered are one a socket
      return int32_t{device.socket} << 16 | int32_t{device.pcie_switch};
    case Reach::kSocket:
      return device.socket;
    case Reach::kNode:
      break;
  }
  return 0;
}

double LinkMbPerS(const DeviceSpec& device, Reach reach) {
  const auto pcie = static_cast<double>(device.pcie_mb_s);
  switch (reach) {
    case Reach::kIsland:
      return device.nvlink_mb_s > 0 ? static_cast<double>(device.nvlink_mb_s) : pcie;
    case Reach::kSwitch:
      return pcie;
    case Reach::kSocket:
      return pcie * kThroughCpu;
    case Reach::kNode:
      break;
  }
  return pcie * kAcrossSockets;
}

double LinkAmong(const NodeSpec& node, std::span<const int32_t> devices) {
  const auto at = [&](int32_t device) -> const DeviceSpec& { return node.devices[static_cast<size_t>(device)]; };
  double fastest = 0;
  for (const Reach reach : kReaches) {
    const int32_t part = PartOf(at(devices.front()), reach);
    if (part < 0) continue;
    double slowest = LinkMbPerS(at(devices.front()), reach);
    const bool together = std::ranges::all_of(devices, [&](int32_t device) {
      slowest = std::min(slowest, LinkMbPerS(at(device), reach));
      return PartOf(at(device), reach) == part;
    });
    if (together) fastest = std::max(fastest, slowest);
  }
  return fastest;
}

double RingUs(double gradient_mib, size_t members, double mb_per_s) {
  if (members < 2) return 0;
  const auto count = static_cast<double>(members);
  return 2 * (count - 1) / count * gradient_mib * kMbPerMib / mb_per_s * 1e6;
}

double AllReduceUs(double gradient_mib, std::span<const GangPart> parts, double rack_oversubscription) {
  size_t gpus = 0;
  double inside = 0;        // rings of the nodes, at once
  double slowest_mb_s = 0;  // of all links; 0 = none yet
  double network_mb_s = 0;
  bool one_rack = true;
  const auto note = [](double& slowest, double speed) { slowest = slowest == 0 ? speed : std::min(slowest, speed); };
  for (const GangPart& part : parts) {
    gpus += part.gpus;
    inside = std::max(inside, RingUs(gradient_mib, part.gpus, part.link_mb_s));
    if (part.gpus > 1) note(slowest_mb_s, part.link_mb_s);
    note(network_mb_s, part.network_mb_s);
    one_rack = one_rack && part.rack == parts.front().rack;
  }
  if (parts.size() < 2) return inside;
  if (!one_rack) network_mb_s /= rack_oversubscription;
  note(slowest_mb_s, network_mb_s);
  return std::min(RingUs(gradient_mib, gpus, slowest_mb_s), inside + RingUs(gradient_mib, parts.size(), network_mb_s));
}

double GangAllReduceUs(double gradient_mib, std::span<const GangSlot> slots, double rack_oversubscription) {
  std::vector<GangPart> parts;
  std::vector<int32_t> devices;
  for (size_t begin = 0, end = 0; begin < slots.size(); begin = end) {
    const NodeSpec& node = *slots[begin].node;
    devices.clear();
    while (end < slots.size() && slots[end].node == slots[begin].node) devices.push_back(slots[end++].device);
    parts.push_back({devices.size(), LinkAmong(node, devices), static_cast<double>(node.network_mb_s), node.rack});
  }
  return AllReduceUs(gradient_mib, parts, rack_oversubscription);
}

bool Communicates(const Demand& demand) { return demand.gradient_mib > 0 && demand.step_time_us.estimate > 0; }

double CommunicationShare(const Demand& demand, double all_reduce_us) {
  if (!Communicates(demand)) return 0;
  return all_reduce_us / StepUs(demand);
}

}  // namespace horus
