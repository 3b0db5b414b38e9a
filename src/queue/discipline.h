// SPDX-License-Identifier: Apache-2.0
// Discipline: the service order behind a Queue. Queue checks and keeps the jobs; a discipline only orders their slots.
//
// Enters:  slots of the queue's table as they come, change and go.
// Leaves:  the slot to serve first at a time.
// Units:   microseconds.
// Cost:    each call O(log n) unless its class says otherwise; only Reserve, BeginPreview, Window and SetOwnerUsage
// allocate. Thread class: one thread at a time.
#ifndef HORUS_QUEUE_DISCIPLINE_H_
#define HORUS_QUEUE_DISCIPLINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "queue/queue.h"
#include "queue/queued_job.h"

namespace horus {

// The queue's jobs by slot; slots of jobs that left are used again.
using JobTable = std::vector<QueuedJob>;

class Discipline {
 public:
  virtual ~Discipline() = default;

  // Room for `job`, which will be inserted in `slot` next. May fail, and then the order is as it was.
  virtual void Reserve(uint32_t slot, const QueuedJob& job) = 0;
  virtual void Insert(uint32_t slot) noexcept = 0;
  virtual void Erase(uint32_t slot) noexcept = 0;
  // The job's progress changed.
  virtual void Update(uint32_t /*slot*/) noexcept {}

  // Requires a job.
  [[nodiscard]] virtual uint32_t First(int64_t now_us) noexcept = 0;
  // The job is about to be served, and erased then.
  virtual void Charge(uint32_t /*slot*/, int64_t /*now_us*/) noexcept {}

  // Between these two jobs are charged and erased, then inserted in reverse order; EndPreview undoes the charges.
  virtual void BeginPreview(size_t /*jobs*/) {}
  virtual void EndPreview() noexcept {}
  // The first `count` slots at once where that is cheaper than a preview; false where it is not.
  [[nodiscard]] virtual bool Window(size_t /*count*/, std::vector<uint32_t>& /*slots*/) const { return false; }

  virtual void SetCapacity(const QueueResources& /*capacity*/) noexcept {}
  virtual void SetOwnerUsage(uint64_t /*owner*/, const QueueResources& /*usage*/) {}

  [[nodiscard]] virtual size_t bytes_held() const = 0;
};

// `name` is one of QueueNames(). The discipline reads `jobs` as long as it lives.
[[nodiscard]] std::unique_ptr<Discipline> MakeDiscipline(std::string_view name, const QueueOptions& options,
                                                         const JobTable& jobs);
[[nodiscard]] bool NeedsCapacity(std::string_view name);
[[nodiscard]] absl::Status ValidateCapacity(std::string_view name, const QueueResources& capacity, bool needed);

// The keyed disciplines: fifo, sjf, srtf, las, edf, tetris, horus.
[[nodiscard]] std::unique_ptr<Discipline> MakeKeyedDiscipline(std::string_view name, const QueueOptions& options,
                                                              const JobTable& jobs);
[[nodiscard]] std::unique_ptr<Discipline> MakeFinishTimeFairness(const JobTable& jobs);
[[nodiscard]] std::unique_ptr<Discipline> MakeDominantResourceFairness(const QueueOptions& options,
                                                                       const JobTable& jobs);
[[nodiscard]] std::unique_ptr<Discipline> MakeHorusPlus(const QueueOptions& options, const JobTable& jobs);

}  // namespace horus

#endif  // HORUS_QUEUE_DISCIPLINE_H_
