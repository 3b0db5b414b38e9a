// SPDX-License-Identifier: Apache-2.0
// Gangs: the cost of a gang and the exact choice of its GPUs. gang.cc also has the heuristic "fewest nodes, one rack
// first" for gangs that fit no single node.
//
// Enters:  the cost of each GPU and, for policies that maximise work, the job's own work there; the time of the gang's
//          all-reduce.
// Leaves:  the cost of the gang, which runs at the speed of its slowest GPU; the cheapest choice of GPUs.
// Units:   costs in the policy's unit, work as in ../README.md; communication = all-reduce / step time alone.
// Cost:    a price O(GPUs), a choice O(GPUs log GPUs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace horus {

// A GPU that the gang may use.
struct PricedGpu {
  double cost = 0;  // of this GPU by itself, its place included
  int32_t device = 0;
  uint32_t group = 0;   // GPU type and sharing mode: a gang never mixes them
  double own_work = 0;  // DeviceScore::own_work; 0 for one GPU
};

// How a gang runs on one GPU type.
struct GangPace {
  double speed = 1;          // own_work of a GPU without co-tenants
  double communication = 0;  // of each step; it overlaps nothing
};

// Work of a GPU with the all-reduce: own_work v / s becomes v / (s + c).
[[nodiscard]] inline double WorkWhileSending(double own_work, const GangPace& pace) {
  return own_work / (1 + pace.communication * own_work / pace.speed);
}

struct GangPrice {
  double cost = 0;       // sum of the GPUs' costs, `sent` and `straggler`
  double sent = 0;       // work lost to the all-reduce
  double straggler = 0;  // work that faster GPUs lose while they wait for the slowest
};

[[nodiscard]] GangPrice PriceGang(std::span<const PricedGpu> gpus, const GangPace& pace);

// GPUs of which the gang takes `wanted`.
struct GangOffer {
  std::span<const PricedGpu> gpus;  // ascending (cost, device); at least `wanted`
  size_t wanted = 0;
};

// Chooses the GPUs on which the gang costs least, offer by offer; among equals the fastest gang, then the lowest
// devices. It tries each GPU as the slowest of the gang: the others are then the cheapest by cost + own_work of those
// that are no slower.
[[nodiscard]] GangPrice CheapestGang(std::span<const GangOffer> offers, const GangPace& pace,
                                     std::vector<PricedGpu>& chosen);

}  // namespace horus
