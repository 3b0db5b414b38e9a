// SPDX-License-Identifier: Apache-2.0
// Queues in C++, over queue.h. Included by horus.hpp.
#ifndef HORUS_QUEUE_HPP_
#define HORUS_QUEUE_HPP_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "horus/horus.h"
#include "horus/values.hpp"

namespace horus {
inline namespace face_v0 {  // see values.hpp

struct QueuedJob : horus_queued_job {
  QueuedJob() : horus_queued_job(HORUS_QUEUED_JOB_INIT) {}
};

// Resources of a cluster, or those that an owner holds.
struct QueueResources {
  int64_t gpu_milli = 0;
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
};

struct QueueOptions {
  QueueResources capacity = {};                     // drf and tetris require at least one above 0
  std::vector<int64_t> las_thresholds_gpu_us = {};  // empty = the default
  bool las_continuous = false;
  int64_t aging_us_per_pct = 0;  // 0 = the discipline's default, -1 = none
  int32_t clusters = 0;          // 0 = the default
  double recluster_share = 0;    // 0 = the default
  int64_t patience_us = 0;       // 0 = never
};

namespace detail {

// Borrows the thresholds.
inline horus_queue_options ToC(const QueueOptions& options) {
  horus_queue_options c = HORUS_QUEUE_OPTIONS_INIT;
  c.gpu_milli = options.capacity.gpu_milli;
  c.cpu_milli = options.capacity.cpu_milli;
  c.mem_mib = options.capacity.mem_mib;
  c.las_threshold_count = options.las_thresholds_gpu_us.size();
  c.las_thresholds_gpu_us = Column(options.las_thresholds_gpu_us);
  c.las_continuous = options.las_continuous ? 1 : 0;
  c.aging_us_per_pct = options.aging_us_per_pct;
  c.clusters = options.clusters;
  c.recluster_share = options.recluster_share;
  c.patience_us = options.patience_us;
  return c;
}

}  // namespace detail

// Orders waiting jobs by a discipline (Disciplines). One thread at a time.
class Queue {
 public:
  explicit Queue(const std::string& discipline, const QueueOptions& options = {}) {
    const horus_queue_options c = detail::ToC(options);
    horus_queue* out = nullptr;
    detail::Call(horus_queue_create, discipline.c_str(), &c, &out);
    handle_.reset(out);
  }
  [[nodiscard]] static std::vector<std::string> Disciplines() { return detail::List(GetLibraryInfo().disciplines); }

  void Push(const QueuedJob& job) { detail::Call(horus_queue_push, get(), static_cast<const horus_queued_job*>(&job)); }
  // Remove: the job leaves unserved. Serve: it starts at now_us, and disciplines that charge do so.
  void Remove(uint64_t id) { detail::Call(horus_queue_remove, get(), id); }
  void Serve(uint64_t id, int64_t now_us) { detail::Call(horus_queue_serve, get(), id, now_us); }
  // -1 = unchanged.
  void Update(uint64_t id, int64_t attained_gpu_us, int64_t remaining_us) {
    detail::Call(horus_queue_update, get(), id, attained_gpu_us, remaining_us);
  }
  [[nodiscard]] QueuedJob at(uint64_t id) const {
    QueuedJob job;
    detail::Call(horus_queue_get_job, get(), id, static_cast<horus_queued_job*>(&job));
    return job;
  }
  // The first `count` jobs, or all if there are fewer, in the order of service.
  [[nodiscard]] std::vector<uint64_t> Window(int64_t now_us, size_t count) {
    std::vector<uint64_t> ids(count < size() ? count : size());
    size_t written = 0;
    detail::Call(horus_queue_window, get(), now_us, ids.size(), ids.data(), &written);
    ids.resize(written);
    return ids;
  }
  std::optional<uint64_t> Pop(int64_t now_us) {
    uint64_t id = 0;
    size_t count = 0;
    detail::Call(horus_queue_pop, get(), now_us, &id, &count);
    return count == 0 ? std::nullopt : std::optional<uint64_t>(id);
  }
  void SetCapacity(const QueueResources& capacity) {
    detail::Call(horus_queue_set_capacity, get(), capacity.gpu_milli, capacity.cpu_milli, capacity.mem_mib);
  }
  void SetOwnerUsage(uint64_t owner, const QueueResources& usage) {
    detail::Call(horus_queue_set_owner_usage, get(), owner, usage.gpu_milli, usage.cpu_milli, usage.mem_mib);
  }
  [[nodiscard]] size_t size() const { return info().jobs; }
  [[nodiscard]] size_t look_ahead() const { return info().look_ahead; }
  [[nodiscard]] horus_queue_info info() const {
    horus_queue_info info = HORUS_QUEUE_INFO_INIT;
    detail::Call(horus_queue_get_info, get(), &info);
    return info;
  }
  [[nodiscard]] horus_queue* get() const noexcept { return handle_.get(); }

 private:
  detail::Owned<horus_queue, horus_queue_free> handle_;
};

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_QUEUE_HPP_
