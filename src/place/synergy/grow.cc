// SPDX-License-Identifier: Apache-2.0
// Hands out what a round leaves over.
#include <algorithm>
#include <vector>

#include "place/synergy/rules.h"

namespace horus {
namespace {

struct Growth {
  size_t holder = 0;
  HostShare share;
  double rate = 0;  // speed gained per fair share of resources; 0 = nothing to gain
};

// The most rewarding step up of one holder that its servers can carry.
Growth BestGrowth(const SynergyState& state, size_t index, std::span<const HostChoice> choices, const HostShare& fair) {
  const SynergyHolder& holder = state.holder(index);
  const double speed = holder.SpeedAt(holder.held);
  Growth best{.holder = index};
  for (const HostChoice& choice : choices) {
    const HostShare share = AtLeast(choice.share, holder.held);
    if (choice.speed <= speed || !state.CanResize(index, share)) continue;
    const HostShare more = {share.cpu_milli - holder.held.cpu_milli, share.mem_mib - holder.held.mem_mib};
    const double rate = (choice.speed - speed) / (SizeOf(more, fair) * holder.gpus);
    if (rate > best.rate) best = {index, share, rate};
  }
  return best;
}

}  // namespace

void GrowHolders(SynergyState& state, const ServerClasses& classes) {
  std::vector<std::vector<HostChoice>> choices(state.holders());
  for (uint32_t server = 0; server < classes.of.size(); ++server) {
    const ServerClass& servers = classes.classes[classes.of[server]];
    if (servers.gpus == 0) continue;
    const HostShare fair = FairShare(servers.cpu_milli, servers.mem_mib, servers.gpus);
    for (const uint32_t index : state.HoldersOn(server)) {
      const SynergyHolder& holder = state.holder(index);
      if (holder.sensitivity == nullptr || !choices[index].empty()) continue;
      choices[index] = holder.sensitivity->Choices(holder.floor, MostPerGpu(servers, holder.gpus));
    }
    while (true) {
      Growth best;
      for (const uint32_t index : state.HoldersOn(server)) {
        const Growth growth = BestGrowth(state, index, choices[index], fair);
        if (growth.rate > best.rate) best = growth;
      }
      if (best.rate == 0) break;
      state.Resize(best.holder, best.share);
    }
  }
}

}  // namespace horus
