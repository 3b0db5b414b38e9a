// SPDX-License-Identifier: Apache-2.0
// Reads servers and residents off a ledger and its cluster.
#include "lab/synergy/cluster_round.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "base/units.h"

namespace horus {
namespace {

using Kind = std::tuple<uint16_t, SharingMode, int64_t, float>;

Kind KindOf(const DeviceSpec& device) {
  return {device.type.value(), device.mode, device.mem_mib, device.compute_share};
}

// Over-commitment by adopted jobs may be larger than rounds count with.
int64_t Counted(int64_t free) { return std::max(free, -kMaxHostQuantity); }

HostShare PerGpu(const JobSpec& job) { return FairShare(job.cpu_milli, job.mem_mib, job.gpus_per_task); }

// What parts of a node may give, so that together it is never more than the node has: what no GPU job holds is
// everybody's burden, and what one part lacks is missing in the others.
void ShareFree(int64_t free, std::span<int64_t> parts, std::span<const int64_t> used, std::span<const int32_t> gpus,
               int64_t total) {
  int64_t all_gpus = 0, others = total - free;
  for (size_t p = 0; p < parts.size(); ++p) {
    all_gpus += gpus[p];
    others -= used[p];
  }
  int64_t lack = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    const int64_t burden = (std::max<int64_t>(0, others) * gpus[p] + all_gpus - 1) / all_gpus;
    parts[p] -= used[p] + burden;
    lack += std::max<int64_t>(0, -parts[p]);
  }
  for (int64_t& part : parts) {
    const int64_t taken = std::clamp<int64_t>(part, 0, lack);
    part -= taken;
    lack -= taken;
  }
}

}  // namespace

bool TakesRounds(const JobSpec& job) {
  return !IsCpuOnly(job) && job.alternatives.empty() && (job.gpu_milli == 0 || job.gpu_milli == kMilliPerGpu);
}

void ClusterRound::Read(const Cluster& cluster, const Ledger& ledger, std::span<const uint32_t> nodes,
                        const SynergySettings& settings, const IdMap<bool>* gone) {
  AddServers(ledger, nodes);
  const bool resizes = settings.rule == SynergyRule::kTune || settings.rule == SynergyRule::kOpt;
  if (!resizes && !mixed_) return;
  const std::vector<HostShare> used = ReadJobs(cluster, ledger, settings, gone);
  if (mixed_) ShareOut(ledger, used);
  if (!resizes) {
    jobs_.clear();
    residents_.clear();
  }
}

void ClusterRound::AddServers(const Ledger& ledger, std::span<const uint32_t> nodes) {
  server_of_.assign(ledger.device_limit(), kNone);
  std::map<Kind, uint32_t> kinds;
  for (const uint32_t row : nodes) {
    const LedgerNode& node = ledger.node(row);
    const bool up = node.state == AdminState::kUp;
    const size_t first = servers_.size();
    Kind last;
    uint32_t server = kNone;
    for (size_t i = 0; i < node.spec->devices.size(); ++i) {
      const uint32_t device = node.first_device + static_cast<uint32_t>(i);
      if (const Kind kind = KindOf(node.spec->devices[i]); server == kNone || kind != last) {
        last = kind;
        const uint32_t number = kinds.try_emplace(kind, static_cast<uint32_t>(kinds.size())).first->second;
        server = static_cast<uint32_t>(first);
        while (server < servers_.size() && servers_[server].kind != number) ++server;
        if (server == servers_.size()) {
          servers_.push_back({.cpu_milli = node.spec->cpu_milli,
                              .mem_mib = node.spec->mem_mib,
                              .cpu_free_milli = up ? Counted(node.free.cpu_milli) : 0,
                              .mem_free_mib = up ? Counted(node.free.mem_mib) : 0,
                              .kind = number,
                              .host = row,
                              .storage_free_mb_s = up ? Counted(node.free.storage_mb_s) : 0});
          places_.push_back({row, device});
        }
      }
      server_of_[device] = server;
      ++servers_[server].gpus;
      const DeviceRow& state = ledger.state(device);
      if (up && state.tenants.empty() && state.state == AdminState::kUp) ++servers_[server].gpus_free;
    }
    mixed_ |= servers_.size() > first + 1;
  }
  kinds_ = static_cast<uint32_t>(kinds.size());
}

std::vector<SynergySlice> ClusterRound::SlicesOf(const Ledger& ledger, std::span<const PlacedSlot> slots) const {
  std::map<uint32_t, int32_t> gpus;
  for (const PlacedSlot& slot : slots) {
    const uint32_t server = server_of_[ledger.device_of(slot)];
    if (server == kNone || ledger.node(slot.node_row).state != AdminState::kUp) return {};
    ++gpus[server];
  }
  std::vector<SynergySlice> slices;
  for (const auto& [server, count] : gpus) slices.push_back({server, count});
  return slices;
}

// Returns what GPU jobs hold on each server.
std::vector<HostShare> ClusterRound::ReadJobs(const Cluster& cluster, const Ledger& ledger,
                                              const SynergySettings& settings, const IdMap<bool>* gone) {
  std::vector<HostShare> used(servers_.size());
  std::vector<std::pair<ResidentJob, SynergyResident>> found;
  for (const JobRow& row : cluster.rows().jobs) {
    if (!row.live() || (gone != nullptr && gone->contains(row.id))) continue;
    const JobSpec& request = cluster.rows().RequestOf(row);
    if (IsCpuOnly(request)) continue;
    const HostShare held = PerGpu(request);
    for (const PlacedSlot& slot : row.slots) {
      const uint32_t server = server_of_[ledger.device_of(slot)];
      if (server != kNone) used[server] = used[server] + held;
    }
    if (!TakesRounds(request)) continue;
    SynergyResident resident{
        .slices = SlicesOf(ledger, row.slots), .held = held, .floor = {}, .sensitivity = request.sensitivity.get()};
    if (resident.slices.empty()) continue;
    const SynergyJob job{.need = NeedPerGpu(request), .sensitivity = resident.sensitivity};
    for (const SynergySlice& slice : resident.slices) {
      // A part of a mixed node has the fair share of the whole.
      const SynergyServer& server = servers_[slice.server];
      const auto gpus = static_cast<int32_t>(ledger.node(server.host).devices);
      const HostShare floor = SynergyFloor(job, FairShare(server.cpu_milli, server.mem_mib, gpus));
      resident.floor.cpu_milli = std::max(resident.floor.cpu_milli, floor.cpu_milli);
      resident.floor.mem_mib = std::max(resident.floor.mem_mib, floor.mem_mib);
    }
    resident.floor.cpu_milli = std::min(resident.floor.cpu_milli, held.cpu_milli);
    resident.floor.mem_mib = std::min(resident.floor.mem_mib, held.mem_mib);
    const bool may_grow = settings.rule == SynergyRule::kOpt || settings.options.grow;
    if (!may_grow && resident.floor == held) continue;
    found.emplace_back(ResidentJob{std::make_shared<const JobSpec>(cluster.rows().SpecOf(row)), row.slots},
                       std::move(resident));
  }
  // Rows are history, and must decide nothing.
  std::ranges::sort(found, [](const auto& a, const auto& b) { return a.first.spec->id < b.first.spec->id; });
  for (auto& [job, resident] : found) {
    jobs_.push_back(std::move(job));
    residents_.push_back(std::move(resident));
  }
  return used;
}

void ClusterRound::ShareOut(const Ledger& ledger, std::span<const HostShare> used) {
  for (size_t first = 0, end = 0; first < servers_.size(); first = end) {
    while (end < servers_.size() && servers_[end].host == servers_[first].host) ++end;
    const LedgerNode& node = ledger.node(servers_[first].host);
    if (end - first < 2) continue;
    std::vector<int64_t> cpu, mem, cpu_used, mem_used;
    std::vector<int32_t> gpus;
    for (size_t s = first; s < end; ++s) {
      SynergyServer& server = servers_[s];
      server.cpu_milli = node.spec->cpu_milli * server.gpus / node.devices;
      server.mem_mib = node.spec->mem_mib * server.gpus / node.devices;
      gpus.push_back(server.gpus);
      cpu.push_back(server.cpu_milli);
      mem.push_back(server.mem_mib);
      cpu_used.push_back(used[s].cpu_milli);
      mem_used.push_back(used[s].mem_mib);
    }
    if (node.state != AdminState::kUp) continue;  // nothing is free there
    ShareFree(node.free.cpu_milli, cpu, cpu_used, gpus, node.spec->cpu_milli);
    ShareFree(node.free.mem_mib, mem, mem_used, gpus, node.spec->mem_mib);
    for (size_t s = first; s < end; ++s) {
      servers_[s].cpu_free_milli = Counted(cpu[s - first]);
      servers_[s].mem_free_mib = Counted(mem[s - first]);
    }
  }
}

std::vector<int32_t> ClusterRound::IdleOn(const Ledger& ledger, size_t server) const {
  const LedgerNode& node = ledger.node(places_[server].node_row);
  std::vector<int32_t> idle;
  for (int32_t i = 0; i < node.devices; ++i) {
    const uint32_t device = node.first_device + static_cast<uint32_t>(i);
    const DeviceRow& state = ledger.state(device);
    if (server_of_[device] == server && state.tenants.empty() && state.state == AdminState::kUp) idle.push_back(i);
  }
  return idle;
}

namespace {

// ---- Asks a rule's own terms why a job waits.

// GPUs with `share` each that the idle server holds, as many as the job's shape lets be there.
int32_t RoomWhenIdle(const RoundJob& job, const SynergyServer& server, const NodeSpec& node, const HostShare& share) {
  int64_t gpus = std::min(job.job.gpus, server.gpus);
  if (share.cpu_milli > 0) gpus = std::min(gpus, server.cpu_milli / share.cpu_milli);
  if (share.mem_mib > 0) gpus = std::min(gpus, server.mem_mib / share.mem_mib);
  if (job.spec->spread_tasks) gpus = std::min<int64_t>(gpus, job.job.unit);
  if (job.spec->storage_mb_s > 0) {
    gpus = std::min(gpus, node.storage_mb_s / job.spec->storage_mb_s * int64_t{job.job.unit});
  }
  return static_cast<int32_t>(gpus);
}

}  // namespace

HostShare RoundRefusals::LevelOn(JobDemands& demands, uint32_t server) const {
  const HostLevels& levels = demands.On(server);
  if (settings_.rule == SynergyRule::kGreedy) return levels.best;
  return settings_.rule == SynergyRule::kFair ? levels.fair : levels.floor;
}

HostShare RoundRefusals::Least(const RoundJob& job) const {
  if (job.allowed.empty()) return job.job.need;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  HostShare least{kMost, kMost};
  JobDemands demands(job.job, classes_, settings_.options.tolerance);
  for (const uint32_t server : job.allowed) {
    const HostShare level = LevelOn(demands, server);
    least = {std::min(least.cpu_milli, level.cpu_milli), std::min(least.mem_mib, level.mem_mib)};
  }
  return least;
}

bool RoundRefusals::FitsAlone(const RoundJob& job, const Ledger& ledger) const {
  JobDemands demands(job.job, classes_, settings_.options.tolerance);
  std::map<uint32_t, int64_t> together;  // GPUs, by class
  for (const uint32_t server : job.allowed) {
    const NodeSpec& node = ledger.spec(round_.place(server).node_row);
    const int32_t room = RoomWhenIdle(job, round_.servers()[server], node, LevelOn(demands, server));
    if (room >= job.job.gpus) return true;
    int64_t& gpus = together[classes_.of[server]];
    gpus += room / job.job.unit * job.job.unit;
    if (job.job.unit < job.job.gpus && gpus >= job.job.gpus) return true;
  }
  return false;
}

void RoundRefusals::Explain(const RoundJob& job, const Ledger& ledger, bool idle, Decision& decision) const {
  JobDemands demands(job.job, classes_, settings_.options.tolerance);
  int32_t most = -1;
  uint32_t nearest = 0;
  for (const uint32_t server : job.allowed) {
    const int32_t gpus =
        idle ? round_.servers()[server].gpus : static_cast<int32_t>(round_.IdleOn(ledger, server).size());
    if (gpus <= most) continue;
    most = gpus;
    nearest = server;
  }
  decision.reason = Reason::kGang;
  decision.miss = {};
  if (most < 0) return;
  const SynergyServer& server = round_.servers()[nearest];
  const LedgerNode& node = ledger.node(round_.place(nearest).node_row);
  decision.miss = {Reason::kGang, node.id, -1, static_cast<double>(job.job.gpus), static_cast<double>(most), "GPUs"};
  if (most < job.job.gpus) return;
  const HostShare level = LevelOn(demands, nearest);
  const int64_t cpu = level.cpu_milli * job.job.gpus, mem = level.mem_mib * job.job.gpus;
  const int64_t cpu_free = idle ? server.cpu_milli : std::min(server.cpu_milli, node.free.cpu_milli);
  const int64_t mem_free = idle ? server.mem_mib : std::min(server.mem_mib, node.free.mem_mib);
  if (cpu > cpu_free) {
    decision.reason = Reason::kCpu;
    decision.miss = {Reason::kCpu, node.id, -1, static_cast<double>(cpu), static_cast<double>(cpu_free), "milli-cores"};
  } else if (mem > mem_free) {
    decision.reason = Reason::kHostMemory;
    decision.miss = {Reason::kHostMemory, node.id, -1, static_cast<double>(mem), static_cast<double>(mem_free), "MiB"};
  }
}

}  // namespace horus
