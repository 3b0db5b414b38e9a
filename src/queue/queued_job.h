// SPDX-License-Identifier: Apache-2.0
// QueuedJob: all that a discipline knows of a job that wants service, and its validation.
//
// Enters:  the caller's columns: request, predicted demand, run time, service so far.
// Leaves:  a plain value; ValidateQueuedJob says field, expected and found.
// Units:   microseconds of the caller's clock, thousandths of a GPU and of a core, MiB, per cent 0-100.
// Cost:    about 150 bytes, trivially copyable.   Thread class: value, share freely.
#ifndef HORUS_QUEUE_QUEUED_JOB_H_
#define HORUS_QUEUE_QUEUED_JOB_H_

#include <cstdint>

#include "absl/status/status.h"
#include "predict/demand.h"

namespace horus {

// What jobs and owners hold of a cluster.
struct QueueResources {
  int64_t gpu_milli = 0;
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;  // host memory
  friend bool operator==(const QueueResources&, const QueueResources&) = default;
};

struct QueuedJob {
  uint64_t id = 0;              // the caller's; unique in the queue
  uint64_t owner = 0;           // the caller's number for whoever owns it; read by drf
  int64_t submit_us = 0;        // waits since then
  int32_t priority = 0;         // higher first, before every discipline
  int32_t tasks = 1;            // of the gang
  int32_t gpus = 1;             // of all tasks together; 0 = a job for the host alone
  int32_t gpu_milli = 1000;     // of each of them
  int64_t cpu_milli = 0;        // of all tasks together
  int64_t mem_mib = 0;          // host memory of all tasks together
  Bounded gpu_util_pct;         // predicted, alone on a GPU: mean and bound
  BoundedInt gpu_mem_mib;       // predicted, per GPU: mean and bound
  int64_t total_us = 0;         // predicted run time alone, from start to end; 0 = unknown
  int64_t remaining_us = -1;    // of it; -1 = total_us
  int64_t attained_gpu_us = 0;  // service so far: GPUs x time
  int64_t deadline_us = 0;      // 0 = none; read by edf
  int64_t ideal_us = 0;         // submission to end with its fair share of the cluster; 0 = total_us; read by ftf
  friend bool operator==(const QueuedJob&, const QueuedJob&) = default;
};

// What changes while a job is known; -1 = as it was.
struct JobProgress {
  int64_t attained_gpu_us = -1;
  int64_t remaining_us = -1;
};

// Limits keep every comparison exact in 128 bits; they are beyond any job.
inline constexpr int64_t kMostQueueTimeUs = int64_t{1} << 60;    // 36,000 years, either side of 0
inline constexpr int64_t kMostQueueResource = int64_t{1} << 40;  // cores/1000 or MiB
inline constexpr int32_t kMostQueuedGpus = 65'536;               // as of a job that is placed

// OK, or INVALID_ARGUMENT "queued job <id>: <field>: expected ..., found ...".
[[nodiscard]] absl::Status ValidateQueuedJob(const QueuedJob& job);
[[nodiscard]] absl::Status ValidateProgress(uint64_t id, const JobProgress& progress);
// Refuses negative and implausible amounts; `what` names them in the message.
[[nodiscard]] absl::Status ValidateResources(const char* what, const QueueResources& resources);
[[nodiscard]] absl::Status ValidateTime(const char* what, int64_t time_us);

// The run time left; -1 = unknown.
[[nodiscard]] inline int64_t RemainingUs(const QueuedJob& job) {
  if (job.remaining_us >= 0) return job.remaining_us;
  return job.total_us > 0 ? job.total_us : -1;
}
[[nodiscard]] inline QueueResources ResourcesOf(const QueuedJob& job) {
  return {int64_t{job.gpus} * job.gpu_milli, job.cpu_milli, job.mem_mib};
}

}  // namespace horus

#endif  // HORUS_QUEUE_QUEUED_JOB_H_
