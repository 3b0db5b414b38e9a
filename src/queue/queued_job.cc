// SPDX-License-Identifier: Apache-2.0
// What a queue refuses to take.
#include "queue/queued_job.h"

#include <string>
#include <string_view>

#include "base/status.h"

namespace horus {
namespace {

struct Range {
  const char* field;
  int64_t value, least, most;
  const char* unit;
};

bool Within(const Range& range) { return range.value >= range.least && range.value <= range.most; }

// Text is made on failure only: it costs, and fails badly when memory is short.
absl::Status OutOfRange(std::string_view where, const Range& range) {
  return InvalidArgument("%s: %s: expected %d to %d %s, found %d", where, range.field, range.least, range.most,
                         range.unit, range.value);
}
std::string JobText(uint64_t id) { return Formatted("queued job %d", id); }

}  // namespace

absl::Status ValidateQueuedJob(const QueuedJob& job) {
  for (const Range& range : {
           Range{"submit_us", job.submit_us, -kMostQueueTimeUs, kMostQueueTimeUs, "us"},
           Range{"tasks", job.tasks, 1, kMostQueuedGpus, "tasks"},
           Range{"gpus", job.gpus, 0, kMostQueuedGpus, "GPUs"},
           Range{"gpu_milli", job.gpu_milli, 1, 1000, "thousandths of a GPU"},
           Range{"cpu_milli", job.cpu_milli, 0, kMostQueueResource, "thousandths of a core"},
           Range{"mem_mib", job.mem_mib, 0, kMostQueueResource, "MiB"},
           Range{"gpu_mem_mib.estimate", job.gpu_mem_mib.estimate, 0, kMostQueueResource, "MiB"},
           Range{"gpu_mem_mib.upper", job.gpu_mem_mib.upper, job.gpu_mem_mib.estimate, kMostQueueResource, "MiB"},
           Range{"total_us", job.total_us, 0, kMostQueueTimeUs, "us"},
           Range{"remaining_us", job.remaining_us, -1, kMostQueueTimeUs, "us"},
           Range{"attained_gpu_us", job.attained_gpu_us, 0, kMostQueueTimeUs, "GPU x us"},
           Range{"deadline_us", job.deadline_us, -kMostQueueTimeUs, kMostQueueTimeUs, "us"},
           Range{"ideal_us", job.ideal_us, 0, kMostQueueTimeUs, "us"},
       }) {
    if (!Within(range)) return OutOfRange(JobText(job.id), range);
  }
  constexpr float kMost = 100;
  const Bounded& util = job.gpu_util_pct;
  if (util.estimate >= 0 && util.upper >= util.estimate && util.upper <= kMost) return absl::OkStatus();
  return InvalidArgument(
      "%s: gpu_util_pct: expected 0 <= estimate <= upper <= 100 per cent, found estimate %g, upper %g", JobText(job.id),
      util.estimate, util.upper);
}

absl::Status ValidateProgress(uint64_t id, const JobProgress& progress) {
  for (const Range& range : {
           Range{"attained_gpu_us", progress.attained_gpu_us, -1, kMostQueueTimeUs, "GPU x us"},
           Range{"remaining_us", progress.remaining_us, -1, kMostQueueTimeUs, "us"},
       }) {
    if (!Within(range)) return OutOfRange(JobText(id), range);
  }
  return absl::OkStatus();
}

absl::Status ValidateResources(const char* what, const QueueResources& resources) {
  for (const Range& range : {
           Range{"gpu_milli", resources.gpu_milli, 0, kMostQueueResource, "thousandths of a GPU"},
           Range{"cpu_milli", resources.cpu_milli, 0, kMostQueueResource, "thousandths of a core"},
           Range{"mem_mib", resources.mem_mib, 0, kMostQueueResource, "MiB"},
       }) {
    if (!Within(range)) return OutOfRange(what, range);
  }
  return absl::OkStatus();
}

absl::Status ValidateTime(const char* what, int64_t time_us) {
  const Range range{what, time_us, -kMostQueueTimeUs, kMostQueueTimeUs, "us"};
  return Within(range) ? absl::OkStatus() : OutOfRange("queue", range);
}

}  // namespace horus
