// SPDX-License-Identifier: Apache-2.0
// The disciplines whose order time alone does not change: fifo, sjf, srtf, las, edf, tetris, horus.
#include <algorithm>
#include <iterator>
#include <utility>

#include "queue/discipline.h"
#include "queue/indexed_heap.h"
#include "queue/scores.h"
#include "queue/service_key.h"

namespace horus {
namespace {

struct RankContext {
  QueueResources capacity;
  std::vector<int64_t> thresholds;
  int64_t aging_us_per_pct;
};
using Rank = uint64_t (*)(const QueuedJob&, const RankContext&);

uint64_t RankFifo(const QueuedJob& /*job*/, const RankContext& /*context*/) { return 0; }
uint64_t RankSjf(const QueuedJob& job, const RankContext& /*context*/) {
  return job.total_us > 0 ? RankOf(job.total_us) : kLastRank;
}
uint64_t RankSrtf(const QueuedJob& job, const RankContext& /*context*/) {
  const int64_t remaining = RemainingUs(job);
  return remaining >= 0 ? RankOf(remaining) : kLastRank;
}
uint64_t RankLasQueues(const QueuedJob& job, const RankContext& context) {
  const auto& limits = context.thresholds;
  return static_cast<uint64_t>(std::upper_bound(limits.begin(), limits.end(), job.attained_gpu_us) - limits.begin());
}
uint64_t RankLas(const QueuedJob& job, const RankContext& /*context*/) { return RankOf(job.attained_gpu_us); }
uint64_t RankEdf(const QueuedJob& job, const RankContext& /*context*/) {
  return job.deadline_us != 0 ? RankOf(job.deadline_us) : kLastRank;
}
uint64_t RankTetris(const QueuedJob& job, const RankContext& context) {
  return RemainingUs(job) >= 0 ? RankOf(RemainingVolume(job, context.capacity)) : kLastRank;
}
uint64_t RankHorus(const QueuedJob& job, const RankContext& context) {
  return RankOf(AgedUtilisation(job, context.aging_us_per_pct));
}

class Keyed final : public Discipline {
 public:
  Keyed(const JobTable& jobs, Rank rank, RankContext context)
      : jobs_(jobs), rank_(rank), context_(std::move(context)) {}

  void Reserve(uint32_t slot, const QueuedJob& /*job*/) override {
    heap_.Reserve(heap_.size() + 1);
    ReservePosition(positions_, slot);
  }
  void Insert(uint32_t slot) noexcept override { heap_.Push(Key(slot), slot, positions_); }
  void Erase(uint32_t slot) noexcept override { heap_.Erase(slot, positions_); }
  void Update(uint32_t slot) noexcept override { heap_.Change(slot, Key(slot), positions_); }
  uint32_t First(int64_t /*now_us*/) noexcept override { return heap_.top().slot; }
  bool Window(size_t count, std::vector<uint32_t>& slots) const override {
    heap_.VisitFirst(count, [&slots](uint32_t slot) { slots.push_back(slot); });
    return true;
  }
  void SetCapacity(const QueueResources& capacity) noexcept override {
    if (rank_ != RankTetris) return;
    context_.capacity = capacity;
    heap_.ChangeAll([this](uint32_t slot) { return Key(slot); }, positions_);
  }
  [[nodiscard]] size_t bytes_held() const override {
    return sizeof *this + heap_.bytes_held() + positions_.capacity() * sizeof(uint32_t) +
           context_.thresholds.capacity() * sizeof(int64_t);
  }

 private:
  [[nodiscard]] ServiceKey Key(uint32_t slot) const { return KeyOf(jobs_[slot], rank_(jobs_[slot], context_)); }

  const JobTable& jobs_;
  const Rank rank_;
  RankContext context_;
  IndexedHeap<ServiceKey> heap_;
  HeapPositions positions_;
};

struct NamedRank {
  std::string_view name;
  Rank rank;
};
constexpr NamedRank kRanks[] = {{"fifo", RankFifo}, {"sjf", RankSjf},       {"srtf", RankSrtf},  {"las", RankLasQueues},
                                {"edf", RankEdf},   {"tetris", RankTetris}, {"horus", RankHorus}};

}  // namespace

std::unique_ptr<Discipline> MakeKeyedDiscipline(std::string_view name, const QueueOptions& options,
                                                const JobTable& jobs) {
  const auto* row = std::find_if(std::begin(kRanks), std::end(kRanks), [&](const auto& r) { return r.name == name; });
  const Rank rank = row->rank == RankLasQueues && options.las_continuous ? RankLas : row->rank;
  return std::make_unique<Keyed>(
      jobs, rank, RankContext{options.capacity, options.las_thresholds_gpu_us, options.aging_us_per_pct});
}

}  // namespace horus
