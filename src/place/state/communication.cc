// SPDX-License-Identifier: Apache-2.0
// Time of an all-reduce from link speeds and sizes, and what of it a step does not hide.
#include "place/state/communication.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace horus {
namespace {

constexpr double kMbPerMib = 1.048576;

// Of what the PCIe links carry. NCCL plans with these (src/graph/topo.h): 6/5 of the traffic where an Intel CPU passes
// it from switch to switch; 6 GB/s over a Broadwell socket link beside 12 GB/s over PCIe 3.0 x16.
constexpr double kThroughCpu = 5.0 / 6;
constexpr double kAcrossSockets = 0.5;

// From 7,046 steps of six nets on T4 nodes (petuum/adaptdl; `scripts/bench topology --data DIR`).
constexpr double kSliceMb = 0.15;           // that a hop waits for: fitted
constexpr double kBackwardShare = 2.0 / 3;  // of a step; buckets of gradients are sent meanwhile (Li et al., VLDB 2020)

// `hops`: of one round, each over its link's MB/s.
double RingUs(double gradient_mib, size_t members, double slowest_mb_s, double hops) {
  if (members < 2) return 0;
  const auto count = static_cast<double>(members);
  return 2 * (count - 1) / count * (gradient_mib * kMbPerMib / slowest_mb_s + kSliceMb * hops) * 1e6;
}

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
  return RingUs(gradient_mib, members, mb_per_s, static_cast<double>(members) / mb_per_s);
}

double GangAllReduceUs(double gradient_mib, std::span<const GangSlot> slots, double rack_oversubscription) {
  double slowest_mb_s = std::numeric_limits<double>::infinity();
  double network_mb_s = slowest_mb_s;
  double hops = 0;  // inside nodes, each over its link's MB/s
  size_t nodes = 0;
  bool one_rack = true;
  std::vector<int32_t> devices;
  for (size_t begin = 0, end = 0; begin < slots.size(); begin = end, ++nodes) {
    const NodeSpec& node = *slots[begin].node;
    devices.clear();
    while (end < slots.size() && slots[end].node == slots[begin].node) devices.push_back(slots[end++].device);
    if (devices.size() > 1) {
      const double link_mb_s = LinkAmong(node, devices);
      slowest_mb_s = std::min(slowest_mb_s, link_mb_s);
      hops += static_cast<double>(devices.size() - 1) / link_mb_s;
    }
    network_mb_s = std::min(network_mb_s, static_cast<double>(node.network_mb_s));
    one_rack = one_rack && node.rack == slots.front().node->rack;
  }
  if (nodes < 2) return RingUs(gradient_mib, slots.size(), slowest_mb_s);
  if (!one_rack) network_mb_s /= rack_oversubscription;
  hops += static_cast<double>(nodes) / network_mb_s;
  return RingUs(gradient_mib, slots.size(), std::min(slowest_mb_s, network_mb_s), hops);
}

bool Communicates(const Demand& demand) { return demand.gradient_mib > 0 && demand.step_time_us.estimate > 0; }

double CommunicationShare(const Demand& demand, double all_reduce_us) {
  if (!Communicates(demand)) return 0;
  const double sending = all_reduce_us / StepUs(demand);
  return sending * sending / (std::hypot(kBackwardShare, sending) + kBackwardShare);  // hypot(b, s) - b
}

}  // namespace horus
