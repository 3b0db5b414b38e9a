// SPDX-License-Identifier: Apache-2.0
// Residents that hold more or less CPU and host memory from now on.
#include <algorithm>
#include <string>
#include <utility>

#include "base/hash.h"
#include "place/state/cluster.h"
#include "place/state/cluster_undo.h"
#include "place/state/requests.h"

namespace horus {
namespace {

constexpr uint64_t kJobResized = 8;  // beside the changes of cluster.cc and cluster_jobs.cc

std::string JobText(const JobSpec& job) { return "job " + IdAndName(job.id, job.name); }

}  // namespace

uint32_t Cluster::SwapRequest(uint32_t job_row, uint32_t request) noexcept {
  JobRow& row = rows_.jobs[job_row];
  const JobSpec& was = rows_.RequestOf(row);
  const JobSpec& is = rows_.requests.at(request).spec;
  uint64_t what = CombineHash(CombineHash(kJobResized, row.id), static_cast<uint64_t>(is.cpu_milli));
  what = CombineHash(what, static_cast<uint64_t>(is.mem_mib));
  ForEachTask(row.slots, [&](uint32_t node_row) {
    HostFree& free = rows_.nodes[node_row].free;
    free.cpu_milli += was.cpu_milli - is.cpu_milli;
    free.mem_mib += was.mem_mib - is.mem_mib;
    Touch(node_row, what);
  });
  return std::exchange(row.request, request);
}

absl::Status Cluster::ApplyResize(const Action& action, std::span<const NodeId> seen, Undo& undo,
                                  std::vector<Growth>& grown) {
  const JobSpec& job = *action.job;
  const uint32_t row = rows_.RowOfJob(job.id);
  if (row == kNoRow) return InvalidArgument("plan: %s: is resized and leaves", JobText(job));
  const JobSpec was = rows_.SpecOf(rows_.jobs[row]);
  HORUS_RETURN_IF_ERROR(ValidateRunning(job));
  if (job.cpu_milli == was.cpu_milli && job.mem_mib == was.mem_mib) {
    return InvalidArgument("plan: %s: expected a resize to change something", JobText(job));
  }
  JobSpec wanted = was;
  GrantHost(job.cpu_milli, job.mem_mib, wanted);
  if (wanted != job) {
    return InvalidArgument("plan: %s: expected a resize to change host resources alone, and to keep what was stated",
                           JobText(job));
  }
  for (const PlacedSlot& slot : rows_.jobs[row].slots) {
    const NodeId node = rows_.nodes[slot.node_row].spec->id;
    if (std::binary_search(seen.begin(), seen.end(), node)) continue;
    return InvalidArgument("plan: %s: is on node %d, which is not among the nodes that the plan saw", JobText(job),
                           node);
  }
  if (job.cpu_milli > was.cpu_milli || job.mem_mib > was.mem_mib) {
    grown.push_back({row, job.cpu_milli > was.cpu_milli, job.mem_mib > was.mem_mib});
  }
  undo.Resized(job.id, SwapRequest(row, HoldRequest(job, rows_.requests)));
  return absl::OkStatus();
}

absl::Status Cluster::CheckGrown(std::span<const Growth> grown) const {
  for (const Growth& one : grown) {
    const JobRow& row = rows_.jobs[one.job_row];
    for (const PlacedSlot& slot : row.slots) {
      const NodeRow& node = rows_.nodes[slot.node_row];
      const bool cpu = one.cpu && node.free.cpu_milli < 0;
      if (!cpu && !(one.mem && node.free.mem_mib < 0)) continue;
      return MakeError(absl::StatusCode::kFailedPrecondition, "%s: node %d has not what the plan adds: %s",
                       JobText(rows_.SpecOf(row)), node.spec->id,
                       std::string(ReasonText(cpu ? Reason::kCpu : Reason::kHostMemory)));
    }
  }
  return absl::OkStatus();
}

}  // namespace horus
