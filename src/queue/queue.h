// SPDX-License-Identifier: Apache-2.0
// Queue: who goes first, by a discipline that is chosen by name. Usable alone: it knows neither clusters nor placement.
//
// Enters:  jobs that want service, their progress, what owners hold, the time.
// Leaves:  the first k jobs in service order (a window for a batch placer), or the first one.
// Units:   microseconds of the caller's clock; see src/queue/README.md.
// Cost:    O(log n) an operation, k times that for a window; what differs is said in src/queue/README.md.
// Thread class: one thread at a time, queries included.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "predict/demand.h"
#include "queue/indexed_heap.h"

namespace horus {

// ---- QueuedJob: all that a discipline knows of a job that wants service.
// Cost: about 150 bytes, trivially copyable.

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

// The run time left; -1 = unknown.
[[nodiscard]] inline int64_t RemainingUs(const QueuedJob& job) {
  if (job.remaining_us >= 0) return job.remaining_us;
  return job.total_us > 0 ? job.total_us : -1;
}
[[nodiscard]] inline QueueResources ResourcesOf(const QueuedJob& job) {
  return {int64_t{job.gpus} * job.gpu_milli, job.cpu_milli, job.mem_mib};
}

class Discipline;

inline constexpr int64_t kTiresiasThresholdGpuUs = 3'250'000'000;  // first limit of the queues in Tiresias's simulator
inline constexpr size_t kMostLasThresholds = 64;

struct QueueOptions {
  QueueResources capacity;  // of the cluster; drf and tetris need one; a part that is 0 does not count
  // las: jobs with less attained service than the first threshold, then those with less than the second, ...
  std::vector<int64_t> las_thresholds_gpu_us = {kTiresiasThresholdGpuUs};  // > 0, ascending
  bool las_continuous = false;                                             // by attained service itself instead
  // horus, horus-plus: the waiting that outweighs one per cent of utilisation; 0 = the discipline's default, -1 = none.
  int64_t aging_us_per_pct = 0;
  int32_t clusters = 4;           // horus-plus: 3-5
  double recluster_share = 0.25;  // horus-plus: (0, 1]; of the queue changed since the last clustering
  // Any discipline: who has waited so long goes first within its priority, the longest wait first; 0 = never.
  int64_t patience_us = 0;
};

inline constexpr int64_t kDefaultAgingUsPerPct =
    6 * 60 * int64_t{1'000'000};  // horus-plus; chosen: 10 h outweigh 100 %

class Queue {
 public:
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // On failure nothing changed, a failed allocation included.
  // Errors: INVALID_ARGUMENT (field, expected, found), ALREADY_EXISTS (id), RESOURCE_EXHAUSTED (kMostJobs).
  [[nodiscard]] absl::Status Push(const QueuedJob& job);
  // The job leaves unserved: nobody is charged. NOT_FOUND.
  [[nodiscard]] absl::Status Remove(uint64_t id);
  // The job starts: it leaves, and whoever it belongs to is charged, as Pop does for the first. NOT_FOUND.
  [[nodiscard]] absl::Status Serve(uint64_t id, int64_t now_us);
  // NOT_FOUND, INVALID_ARGUMENT. Any other change of a job is Remove and Push.
  [[nodiscard]] absl::Status Update(uint64_t id, const JobProgress& progress);

  // The first `count` jobs in the order in which Pop would serve them now; fewer when there are fewer.
  [[nodiscard]] absl::StatusOr<std::vector<uint64_t>> Window(int64_t now_us, size_t count);
  // Serves the first; nullopt of an empty queue.
  [[nodiscard]] absl::StatusOr<std::optional<uint64_t>> Pop(int64_t now_us);

  // drf, tetris: the cluster grew or shrank; linear in owners or jobs. Other disciplines check and ignore it.
  [[nodiscard]] absl::Status SetCapacity(const QueueResources& capacity);
  // drf: what the owner's running jobs hold, instead of what serving charged. Other disciplines check and ignore it.
  [[nodiscard]] absl::Status SetOwnerUsage(uint64_t owner, const QueueResources& usage);

  [[nodiscard]] const QueuedJob* Find(uint64_t id) const;  // null when absent; valid until the next change
  [[nodiscard]] size_t size() const { return slot_of_.size(); }
  [[nodiscard]] int64_t patience_us() const { return patience_us_; }
  [[nodiscard]] std::string_view name() const { return name_; }
  // How many of the first jobs are to be tried until one fits, before waiting: 5 for horus and horus-plus, else 1.
  [[nodiscard]] size_t look_ahead() const { return look_ahead_; }
  [[nodiscard]] size_t bytes_held() const;

  static constexpr size_t kMostJobs = size_t{1} << 26;

 private:
  friend absl::StatusOr<std::unique_ptr<Queue>> MakeQueue(std::string_view name, const QueueOptions& options);
  struct WaitKey {
    int32_t not_priority;
    int64_t submit_us;
    uint64_t id;
    friend auto operator<=>(const WaitKey&, const WaitKey&) = default;
  };

  Queue(std::string_view name, const QueueOptions& options);
  [[nodiscard]] uint32_t First(int64_t now_us) noexcept;
  void Insert(uint32_t slot) noexcept;
  void Erase(uint32_t slot) noexcept;
  void Release(uint32_t slot) noexcept;
  [[nodiscard]] absl::StatusOr<uint32_t> SlotOf(uint64_t id) const;
  [[nodiscard]] std::vector<uint32_t> Preview(int64_t now_us, size_t count);

  std::string_view name_;
  size_t look_ahead_ = 1;
  int64_t patience_us_ = 0;
  std::vector<QueuedJob> jobs_;  // by slot
  std::vector<uint32_t> free_slots_;
  IdMap<uint32_t> slot_of_;
  IndexedHeap<WaitKey> waits_;  // only with patience
  HeapPositions wait_positions_;
  std::unique_ptr<Discipline> discipline_;
};

// NOT_FOUND, naming the id.
[[nodiscard]] absl::Status NoSuchQueuedJob(uint64_t id);

// In a fixed order.
[[nodiscard]] std::span<const std::string_view> QueueNames();

// NOT_FOUND lists the names; INVALID_ARGUMENT names option, expected and found.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Queue>> MakeQueue(std::string_view name, const QueueOptions& options = {});

}  // namespace horus
