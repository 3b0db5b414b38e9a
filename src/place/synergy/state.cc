// SPDX-License-Identifier: Apache-2.0
// Keeps the books of a round: free resources, holders, reclaiming.
#include "place/synergy/state.h"

#include <algorithm>
#include <limits>

namespace horus {
namespace {

int32_t GpusOn(const SynergyHolder& holder, uint32_t server) {
  int32_t gpus = 0;
  for (const SynergySlice& slice : holder.slices) gpus += slice.server == server ? slice.gpus : 0;
  return gpus;
}

}  // namespace

HostShare AtLeast(const HostShare& share, const HostShare& least) {
  return {std::max(share.cpu_milli, least.cpu_milli), std::max(share.mem_mib, least.mem_mib)};
}

SynergyState::SynergyState(const SynergyInput& input)
    : input_(input),
      servers_(input.servers.begin(), input.servers.end()),
      holders_(input.residents.size() + input.jobs.size()),
      on_(input.servers.size()) {
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    gpus_free_ += servers_[i].gpus_free;
    Enter(i);
  }
  for (uint32_t i = 0; i < input.residents.size(); ++i) {
    const SynergyResident& resident = input.residents[i];
    holders_[i] = {
        .slices = resident.slices, .held = resident.held, .floor = resident.floor, .sensitivity = resident.sensitivity};
    for (const SynergySlice& slice : resident.slices) {
      holders_[i].gpus += slice.gpus;
      on_[slice.server].push_back(i);
    }
  }
  for (size_t j = 0; j < input.jobs.size(); ++j) {
    SynergyHolder& holder = holders_[HolderOfJob(j)];
    holder.gpus = input.jobs[j].gpus;
    holder.sensitivity = input.jobs[j].sensitivity;
  }
  const auto minds = [](const SynergyJob& job) { return job.spec != nullptr; };
  if (std::none_of(input.jobs.begin(), input.jobs.end(), minds)) return;
  for (const SynergyServer& server : servers_) {
    if (hosts_.size() <= server.host) hosts_.resize(server.host + 1);
    hosts_[server.host].storage_free_mb_s = server.storage_free_mb_s;
  }
}

int32_t SynergyState::MostOn(size_t job, uint32_t server) const {
  constexpr int32_t kAll = std::numeric_limits<int32_t>::max();
  const SynergyJob& wanted = input_.jobs[job];
  if (wanted.spec == nullptr) return kAll;
  const Host& host = hosts_[servers_[server].host];
  if (KeepsAway(*wanted.spec, host.groups)) return 0;
  int64_t units = wanted.spec->spread_tasks ? 1 : kAll;
  const int64_t storage = wanted.spec->storage_mb_s;
  if (storage > 0) units = std::min(units, std::max<int64_t>(0, host.storage_free_mb_s) / storage);
  return static_cast<int32_t>(std::min<int64_t>(kAll, units * wanted.unit));
}

// Idempotent: a server that is in already may have more free than before.
void SynergyState::Enter(uint32_t server) {
  if (servers_[server].gpus_free == 0) return;
  Block& block = by_free_[servers_[server].gpus_free][server / kBlockServers];
  block.most = block.members == 0 ? Free(server) : AtLeast(block.most, Free(server));
  block.members |= uint64_t{1} << (server % kBlockServers);
}

void SynergyState::Leave(uint32_t server) {
  const auto bucket = by_free_.find(servers_[server].gpus_free);
  if (bucket == by_free_.end()) return;
  const auto block = bucket->second.find(server / kBlockServers);
  if (block == bucket->second.end()) return;
  block->second.members &= ~(uint64_t{1} << (server % kBlockServers));
  if (block->second.members == 0) bucket->second.erase(block);
  if (bucket->second.empty()) by_free_.erase(bucket);
}

HostShare SynergyState::Free(uint32_t server) const {
  return {servers_[server].cpu_free_milli, servers_[server].mem_free_mib};
}

HostShare SynergyState::FreeAtFloors(uint32_t server) const {
  HostShare free = Free(server);
  for (const uint32_t index : on_[server]) {
    const SynergyHolder& holder = holders_[index];
    free.cpu_milli += GpusOn(holder, server) * (holder.held.cpu_milli - holder.floor.cpu_milli);
    free.mem_mib += GpusOn(holder, server) * (holder.held.mem_mib - holder.floor.mem_mib);
  }
  return free;
}

void SynergyState::SetAside(uint32_t server, int32_t gpus) {
  Leave(server);
  servers_[server].gpus_free -= gpus;
  Enter(server);
}

void SynergyState::Take(const SynergySlice& slice, const HostShare& share, int32_t sign) {
  servers_[slice.server].cpu_free_milli -= sign * slice.gpus * share.cpu_milli;
  servers_[slice.server].mem_free_mib -= sign * slice.gpus * share.mem_mib;
}

void SynergyState::Place(size_t holder, std::vector<SynergySlice> slices, const HostShare& share,
                         const HostShare& floor) {
  std::sort(slices.begin(), slices.end(),
            [](const SynergySlice& a, const SynergySlice& b) { return a.server < b.server; });
  for (const SynergySlice& slice : slices) {
    SynergyServer& server = servers_[slice.server];
    Leave(slice.server);
    server.gpus_free -= slice.gpus;
    gpus_free_ -= slice.gpus;
    Take(slice, share, 1);
    Enter(slice.server);
    on_[slice.server].push_back(static_cast<uint32_t>(holder));
    if (holder < input_.residents.size() || input_.jobs[holder - input_.residents.size()].spec == nullptr) continue;
    const SynergyJob& job = input_.jobs[holder - input_.residents.size()];
    Host& host = hosts_[server.host];
    const int32_t units = slice.gpus / job.unit;
    host.storage_free_mb_s -= units * job.spec->storage_mb_s;
    ForEachGroup(*job.spec, [&](const GroupCount& one) {
      ChangeGroup({one.group, units * one.members, units * one.avoiders}, host.groups);
    });
  }
  holders_[holder].slices = std::move(slices);
  holders_[holder].held = share;
  holders_[holder].floor = floor;
}

void SynergyState::Resize(size_t holder, const HostShare& share) {
  for (const SynergySlice& slice : holders_[holder].slices) {
    Take(slice, holders_[holder].held, -1);
    Take(slice, share, 1);
    Enter(slice.server);
  }
  holders_[holder].held = share;
}

bool SynergyState::CanResize(size_t holder, const HostShare& share) const {
  const HostShare& held = holders_[holder].held;
  for (const SynergySlice& slice : holders_[holder].slices) {
    const SynergyServer& server = servers_[slice.server];
    // Over-committed servers take nothing more, yet what is given back is always welcome.
    const int64_t more_cpu = slice.gpus * (share.cpu_milli - held.cpu_milli);
    const int64_t more_mem = slice.gpus * (share.mem_mib - held.mem_mib);
    if (more_cpu > 0 && more_cpu > server.cpu_free_milli) return false;
    if (more_mem > 0 && more_mem > server.mem_free_mib) return false;
  }
  return true;
}

std::optional<SynergyState::Cut> SynergyState::CheapestCut(uint32_t server, const HostShare& lack) const {
  std::optional<Cut> best;
  for (const uint32_t index : on_[server]) {
    const SynergyHolder& holder = holders_[index];
    if (holder.held == holder.floor) continue;
    const std::vector<HostChoice> choices = holder.sensitivity == nullptr
                                                ? std::vector<HostChoice>{{holder.floor, 1}}
                                                : holder.sensitivity->Choices(holder.floor, holder.held);
    const double speed = holder.SpeedAt(holder.held);
    for (const HostChoice& choice : choices) {
      const int64_t gpus = GpusOn(holder, server);
      const HostShare freed = {std::min(lack.cpu_milli, gpus * (holder.held.cpu_milli - choice.share.cpu_milli)),
                               std::min(lack.mem_mib, gpus * (holder.held.mem_mib - choice.share.mem_mib))};
      const double useful = SizeOf(freed, lack);
      if (useful <= 0) continue;
      const double price = (speed - choice.speed) / useful;
      // In order of holders and of shares: among equals the lowest holder's largest share.
      if (!best.has_value() || price < best->price || (price == best->price && index == best->holder)) {
        best = {index, choice.share, price};
      }
    }
  }
  return best;
}

void SynergyState::Reclaim(uint32_t server, const HostShare& wanted) {
  while (true) {
    const HostShare free = Free(server);
    if (IsWithin(wanted, free)) return;
    const std::optional<Cut> cut = CheapestCut(server, {std::max<int64_t>(0, wanted.cpu_milli - free.cpu_milli),
                                                        std::max<int64_t>(0, wanted.mem_mib - free.mem_mib)});
    if (!cut.has_value()) return;
    Resize(cut->holder, cut->share);
  }
}

SynergyRound SynergyState::ToRound() const {
  SynergyRound round;
  for (uint32_t i = 0; i < input_.residents.size(); ++i) {
    if (holders_[i].held != input_.residents[i].held) round.resizes.push_back({i, holders_[i].held});
  }
  for (size_t j = 0; j < input_.jobs.size(); ++j) {
    const SynergyHolder& holder = holders_[HolderOfJob(j)];
    if (holder.slices.empty()) {
      round.grants.emplace_back();
    } else {
      round.grants.push_back({holder.slices, holder.held, holder.SpeedAt(holder.held)});
    }
  }
  return round;
}

}  // namespace horus
