// SPDX-License-Identifier: Apache-2.0
// Gangs: what one costs, and the heuristic "fewest nodes, one rack first" for those that fit no single node.
//
// Enters:  the cost of each GPU and, of policies that maximise work, how much of it is the job's own work there; the
//          time of the gang's all-reduce.
// Leaves:  the cost of the whole, where every GPU works as the slowest does; the cheapest choice.
// Units:   costs in the policy's unit, work as in docs/place.md; communication = all-reduce / step time alone.
// Cost:    a price O(GPUs), a choice O(GPUs log GPUs).
// Thread class: pure functions.
#ifndef HORUS_PLACE_SEARCH_GANG_H_
#define HORUS_PLACE_SEARCH_GANG_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace horus {

// A GPU that may take one of the job's.
struct PricedGpu {
  double cost = 0;  // by itself, its place included
  int32_t device = 0;
  uint32_t group = 0;   // GPU type and sharing mode: a gang never mixes them
  double own_work = 0;  // DeviceScore::own_work; 0 for one GPU
};

// How a gang runs on one GPU type.
struct GangPace {
  double speed = 1;          // of a GPU that nobody slows, as DeviceCandidate::relative_speed
  double communication = 0;  // of each step, nothing overlapping
};

// The work of a GPU that does `own_work` by itself and waits for the all-reduce: v / s becomes v / (s + c).
[[nodiscard]] inline double WorkWhileSending(double own_work, const GangPace& pace) {
  return own_work / (1 + pace.communication * own_work / pace.speed);
}

struct GangPrice {
  double cost = 0;       // the sum over the GPUs and the two below
  double sent = 0;       // work lost to the all-reduce
  double straggler = 0;  // work that the faster GPUs lose to waiting for the slowest
};

[[nodiscard]] GangPrice PriceGang(std::span<const PricedGpu> gpus, const GangPace& pace);

// GPUs of which so many are wanted, at least that many.
struct GangOffer {
  std::span<const PricedGpu> gpus;  // ascending (cost, device)
  size_t wanted = 0;
};

// The GPUs on which the gang costs least, exactly, offer by offer; among equals the fastest gang, then the lowest
// devices. The GPU whose speed all have is one of them: for each that it may be, the others are those that cost least
// beside their own work among all that are no slower.
[[nodiscard]] GangPrice CheapestGang(std::span<const GangOffer> offers, const GangPace& pace,
                                     std::vector<PricedGpu>& chosen);

}  // namespace horus

#endif  // HORUS_PLACE_SEARCH_GANG_H_
