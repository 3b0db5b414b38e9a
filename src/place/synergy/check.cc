// SPDX-License-Identifier: Apache-2.0
// Refuses rounds that make no sense, naming the place.
#include "place/synergy/check.h"

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "place/job.h"
#include "place/state/cluster_rows.h"

namespace horus {
namespace {

// Over-commitment by adopted jobs is bounded as everything else; with both bounds no sum leaves 64 bits.
constexpr int64_t kLeastFree = -kMaxHostQuantity;
constexpr int64_t kMaxSlotsOnServer = static_cast<int64_t>(kMaxDevicesPerNode) * kMaxTenantsPerDevice;

struct Where {
  const char* what;
  size_t index;

  [[nodiscard]] absl::Status Range(const char* field, int64_t least, int64_t most, int64_t found) const {
    if (found >= least && found <= most) return absl::OkStatus();
    return InvalidArgument("synergy: %s[%d].%s: expected %d to %d, found %d", what, index, field, least, most, found);
  }
};

absl::Status CheckServer(const SynergyServer& server, size_t index) {
  const Where where{"servers", index};
  HORUS_RETURN_IF_ERROR(where.Range("gpus", 0, kMaxDevicesPerNode, server.gpus));
  HORUS_RETURN_IF_ERROR(where.Range("gpus_free", 0, server.gpus, server.gpus_free));
  HORUS_RETURN_IF_ERROR(where.Range("cpu_milli", 0, kMaxHostQuantity, server.cpu_milli));
  HORUS_RETURN_IF_ERROR(where.Range("mem_mib", 0, kMaxHostQuantity, server.mem_mib));
  HORUS_RETURN_IF_ERROR(where.Range("host", 0, kMaxNodes - 1, server.host));
  HORUS_RETURN_IF_ERROR(where.Range("storage_free_mb_s", kLeastFree, kMaxHostQuantity, server.storage_free_mb_s));
  HORUS_RETURN_IF_ERROR(where.Range("cpu_free_milli", kLeastFree, server.cpu_milli, server.cpu_free_milli));
  return where.Range("mem_free_mib", kLeastFree, server.mem_mib, server.mem_free_mib);
}

absl::Status CheckShare(const Where& where, const HostShare& share, const HostShare& most) {
  HORUS_RETURN_IF_ERROR(where.Range("cpu_milli", 0, most.cpu_milli, share.cpu_milli));
  return where.Range("mem_mib", 0, most.mem_mib, share.mem_mib);
}

absl::Status CheckResident(const SynergyResident& resident, size_t index, std::vector<int64_t>& slots) {
  const Where where{"residents", index};
  const size_t servers = slots.size();
  HORUS_RETURN_IF_ERROR(where.Range("slices", 1, static_cast<int64_t>(servers), std::ssize(resident.slices)));
  int64_t least = 0;
  for (const SynergySlice& slice : resident.slices) {
    HORUS_RETURN_IF_ERROR(where.Range("slices.server", least, static_cast<int64_t>(servers) - 1, slice.server));
    HORUS_RETURN_IF_ERROR(where.Range("slices.gpus", 1, kMaxDevicesPerNode, slice.gpus));
    slots[slice.server] += slice.gpus;
    HORUS_RETURN_IF_ERROR(where.Range("slices.gpus: sum on a server", 1, kMaxSlotsOnServer, slots[slice.server]));
    least = int64_t{slice.server} + 1;
  }
  HORUS_RETURN_IF_ERROR(CheckShare({"residents.held", index}, resident.held, {kMaxHostQuantity, kMaxHostQuantity}));
  return CheckShare({"residents.floor", index}, resident.floor, resident.held);
}

absl::Status CheckJob(const SynergyJob& job, size_t index, size_t servers) {
  const Where where{"jobs", index};
  HORUS_RETURN_IF_ERROR(where.Range("gpus", 1, kMaxGpusPerJob, job.gpus));
  HORUS_RETURN_IF_ERROR(where.Range("unit", 1, job.gpus, job.unit));
  if (job.gpus % job.unit != 0) {
    return InvalidArgument("synergy: jobs[%d].unit: expected a divisor of its %d GPUs, found %d", index, job.gpus,
                           job.unit);
  }
  HORUS_RETURN_IF_ERROR(CheckShare({"jobs.need", index}, job.need, {kMaxHostQuantity, kMaxHostQuantity}));
  int64_t least = 0;
  for (const uint32_t server : job.allowed) {
    HORUS_RETURN_IF_ERROR(where.Range("allowed", least, static_cast<int64_t>(servers) - 1, server));
    least = int64_t{server} + 1;
  }
  least = 0;
  for (const SynergySlice& slice : job.held) {
    HORUS_RETURN_IF_ERROR(where.Range("held.server", least, static_cast<int64_t>(servers) - 1, slice.server));
    HORUS_RETURN_IF_ERROR(where.Range("held.gpus", 1, kMaxDevicesPerNode, slice.gpus));
    least = int64_t{slice.server} + 1;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRound(SynergyRule rule, const SynergyInput& input, const SynergyOptions& options) {
  if (rule > SynergyRule::kOpt) {
    return InvalidArgument("synergy: rule: expected 0 to 3, found %d", static_cast<int>(rule));
  }
  if (!(options.tolerance >= 0 && options.tolerance < 1)) {
    return InvalidArgument("synergy: tolerance: expected 0 to below 1, found %g", options.tolerance);
  }
  const size_t servers = input.servers.size();
  if (servers > kMaxNodes || input.residents.size() > kMaxJobs || input.jobs.size() > kMaxJobs) {
    return InvalidArgument("synergy: expected at most %d servers, %d residents and %d jobs, found %d, %d and %d",
                           kMaxNodes, kMaxJobs, kMaxJobs, servers, input.residents.size(), input.jobs.size());
  }
  for (size_t i = 0; i < servers; ++i) HORUS_RETURN_IF_ERROR(CheckServer(input.servers[i], i));
  std::vector<int64_t> slots(servers);
  for (size_t i = 0; i < input.residents.size(); ++i) {
    HORUS_RETURN_IF_ERROR(CheckResident(input.residents[i], i, slots));
  }
  for (size_t i = 0; i < input.jobs.size(); ++i) HORUS_RETURN_IF_ERROR(CheckJob(input.jobs[i], i, servers));
  return absl::OkStatus();
}

}  // namespace horus
