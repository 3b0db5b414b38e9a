// SPDX-License-Identifier: Apache-2.0
// Asks a rule's own terms why a job waits.
#include "place/synergy/refusal.h"

#include <algorithm>
#include <limits>
#include <map>

#include "place/synergy/rules.h"

namespace horus {
namespace {

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
