// SPDX-License-Identifier: Apache-2.0
// ftf: the job that would finish most late of its fair share goes first.
#include <memory>

#include "queue/discipline.h"
#include "queue/kinetic_order.h"

namespace horus {
namespace {

class FinishTimeFairness final : public Discipline {
 public:
  explicit FinishTimeFairness(const JobTable& jobs) : jobs_(jobs) {}

  void Reserve(uint32_t slot, const QueuedJob& /*job*/) override { order_.Reserve(slot); }
  void Insert(uint32_t slot) noexcept override { order_.Insert(slot, Line(jobs_[slot])); }
  void Erase(uint32_t slot) noexcept override { order_.Erase(slot); }
  void Update(uint32_t slot) noexcept override { order_.Change(slot, Line(jobs_[slot])); }
  uint32_t First(int64_t now_us) noexcept override { return order_.First(now_us); }
  [[nodiscard]] size_t bytes_held() const override { return sizeof *this + order_.bytes_held(); }

 private:
  // rho(now) = (now - submission + remaining) / ideal.
  static KineticLine Line(const QueuedJob& job) {
    const int64_t remaining = RemainingUs(job);
    const int64_t ideal = job.ideal_us > 0 ? job.ideal_us : job.total_us;
    return {~job.priority, remaining - job.submit_us, remaining >= 0 ? ideal : 0, job.submit_us, job.id};
  }

  const JobTable& jobs_;
  KineticOrder order_;
};

}  // namespace

std::unique_ptr<Discipline> MakeFinishTimeFairness(const JobTable& jobs) {
  return std::make_unique<FinishTimeFairness>(jobs);
}

}  // namespace horus
