// SPDX-License-Identifier: Apache-2.0
// Sorts servers into classes and works out a job's three demands on each.
#include "place/synergy/demands.h"

#include <algorithm>

#include "place/synergy/state.h"

namespace horus {

ServerClasses ClassesOf(std::span<const SynergyServer> servers) {
  const auto key = [](const SynergyServer& s) { return ServerClass{s.kind, s.gpus, s.cpu_milli, s.mem_mib}; };
  ServerClasses result;
  for (const SynergyServer& server : servers) result.classes.push_back(key(server));
  std::sort(result.classes.begin(), result.classes.end());
  result.classes.erase(std::unique(result.classes.begin(), result.classes.end()), result.classes.end());
  result.members.resize(result.classes.size());
  for (uint32_t i = 0; i < servers.size(); ++i) {
    const auto found = std::lower_bound(result.classes.begin(), result.classes.end(), key(servers[i]));
    result.of.push_back(static_cast<uint32_t>(found - result.classes.begin()));
    if (servers[i].gpus > 0) result.members[result.of.back()].push_back(i);
  }
  return result;
}

HostShare MostPerGpu(const ServerClass& servers, int32_t gpus) {
  return FairShare(servers.cpu_milli, servers.mem_mib, std::max(1, std::min(gpus, servers.gpus)));
}

JobDemands::JobDemands(const SynergyJob& job, const ServerClasses& classes, double tolerance)
    : job_(&job), classes_(&classes), tolerance_(tolerance) {}

void JobDemands::Choose(const HostShare& share) {
  chosen_ = share;
  levels_.clear();
}

const HostLevels& JobDemands::On(uint32_t server) {
  const uint32_t index = classes_->of[server];
  const auto [found, is_new] = levels_.try_emplace(index);
  HostLevels& levels = found->second;
  if (!is_new) return levels;
  const ServerClass& servers = classes_->classes[index];
  const HostShare fair = FairShare(servers.cpu_milli, servers.mem_mib, std::max(1, servers.gpus));
  levels.fair = AtLeast(fair, job_->need);
  levels.floor = SynergyFloor(*job_, fair);
  levels.best = levels.floor;
  if (chosen_.has_value()) {
    levels.best = AtLeast(*chosen_, levels.floor);
  } else if (job_->sensitivity != nullptr) {
    const auto choices = job_->sensitivity->Choices(levels.floor, MostPerGpu(servers, job_->gpus));
    levels.best = BestChoice(choices, fair, tolerance_).share;
  }
  return levels;
}

bool JobDemands::Allows(uint32_t server) const {
  return job_->allowed.empty() || std::binary_search(job_->allowed.begin(), job_->allowed.end(), server);
}

}  // namespace horus
