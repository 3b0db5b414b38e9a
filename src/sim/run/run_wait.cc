// SPDX-License-Identifier: Apache-2.0
// Jobs that wait although they could share.
#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "sim/run/run.h"
#include "sim/run/waiting.h"

namespace horus {

double SimRun::LeftUs(uint32_t job) const {
  const Work left = lives_[job].phase == Phase::kRunning ? execution_.LeftOf(job) : lives_[job].left;
  return static_cast<double>(left) / static_cast<double>(kFullRate);
}

// When the GPUs in use that the job could run on fall idle, ascending: as if sharing neither gained nor lost, for how
// fast tenants really are nobody is told.
std::vector<double> SimRun::IdleTimes(const JobSpec& spec) const {
  std::vector<double> times;
  for (uint32_t device = 0; device < map_.devices(); ++device) {
    const std::span<const uint32_t> tenants = execution_.TenantsOf(device);
    const bool runs = std::any_of(spec.demands.begin(), spec.demands.end(), [&](const TypeDemand& one) {
      return !one.type.valid() || one.type == map_.device(device).type;
    });
    if (tenants.empty() || !runs) continue;
    double left_us = 0;
    for (const uint32_t tenant : tenants) left_us += LeftUs(tenant);
    times.push_back(left_us);
  }
  std::sort(times.begin(), times.end());
  return times;
}

int64_t SimRun::GpusOfThose(std::span<const uint64_t> jobs) const {
  int64_t gpus = 0;
  for (const uint64_t job : jobs) gpus += GpusOf(trace_.jobs[job]);
  return gpus;
}

// Of the job at `rank` of the window.
bool SimRun::HadBetterWait(const JobSpec& spec, const Decision& decision, std::span<const uint64_t> window,
                           size_t rank) const {
  if (!options_.weigh_waiting || decision.effects.size() <= decision.slots.size()) return false;
  const int64_t before = GpusOfThose(window.first(rank));
  const std::vector<double> idle = IdleTimes(spec);
  const auto of = [&](int64_t gpus) {
    return gpus < std::ssize(idle) ? idle[static_cast<size_t>(gpus)] : std::numeric_limits<double>::infinity();
  };
  std::vector<SharingNeighbour> neighbours;
  std::map<JobId, size_t> places;
  for (const TenantEffect& effect : decision.effects) {
    if (effect.is_new) continue;
    // A gang runs as its slowest GPU.
    const auto [at, first] = places.emplace(effect.job, neighbours.size());
    if (first) neighbours.push_back({.left_us = LeftUs(static_cast<uint32_t>(effect.job))});
    SharingNeighbour& one = neighbours[at->second];
    one.before = std::max(one.before, static_cast<double>(effect.before.estimate));
    one.after = std::max(one.after, static_cast<double>(effect.after.estimate));
  }
  WaitOutlook outlook{.idle_us = of(before + std::ssize(decision.slots) - 1)};
  if (options_.rebalance_us > 0) {  // beyond the window one GPU each
    outlook.apart_us = of(GpusOfThose(window) + static_cast<int64_t>(queue_.size() - window.size()));
  }
  return WaitingIsBetter({.left_us = LeftUs(static_cast<uint32_t>(spec.id)),
                          .slowdown = static_cast<double>(decision.own.estimate),
                          .neighbours = neighbours},
                         outlook);
}

}  // namespace horus
