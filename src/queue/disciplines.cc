// SPDX-License-Identifier: Apache-2.0
// The disciplines but horus-plus: fifo, sjf, srtf, las, edf, tetris and horus, whose order time alone does not change;
// ftf; drf.
#include <iterator>
#include <tuple>
#include <utility>

#include "queue/discipline.h"

namespace horus {
namespace {

// ---- The disciplines whose order time alone does not change: fifo, sjf, srtf, las, edf, tetris, horus.

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
  bool Window(int64_t /*now_us*/, size_t count, std::vector<uint32_t>& slots) const override {
    heap_.VisitFirst(count, [&slots](uint32_t slot) { slots.push_back(slot); });
    return true;
  }
  void SetCapacity(const QueueResources& capacity) noexcept override {
    if (rank_ != RankTetris) return;
    context_.capacity = capacity;
    heap_.ChangeAll([this](uint32_t slot) { return Key(slot); }, positions_);
  }
  [[nodiscard]] size_t bytes_held() const override {
    return sizeof *this + BytesIn(heap_, positions_, context_.thresholds);
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
  const auto* row = std::ranges::find(kRanks, name, [](const auto& rank) { return rank.name; });
  const Rank rank = row->rank == RankLasQueues && options.las_continuous ? RankLas : row->rank;
  return std::make_unique<Keyed>(
      jobs, rank, RankContext{options.capacity, options.las_thresholds_gpu_us, options.aging_us_per_pct});
}

namespace {

// ---- ftf: the job that would finish most late of its fair share goes first. Ranks change with time, each at its own
// rate: all who wait are looked at. A pick is O(n), of the first k O(n log k).

__extension__ typedef __int128 Wide;  // products of two times; sums that jobs of any size cannot overflow

// rho(now) = (now - submission + remaining) / ideal, higher first; without `ideal_us` after all that have one.
struct Lateness {
  Wide late_us = 0;
  int64_t ideal_us = 0;
};
Lateness LatenessOf(const QueuedJob& job, int64_t now_us) {
  const int64_t remaining = RemainingUs(job);
  const int64_t ideal = job.ideal_us > 0 ? job.ideal_us : job.total_us;
  return {Wide{now_us} - job.submit_us + remaining, remaining >= 0 ? ideal : 0};
}

bool IsLater(const QueuedJob& a, const QueuedJob& b, int64_t now_us) {
  if (a.priority != b.priority) return a.priority > b.priority;
  const Lateness of_a = LatenessOf(a, now_us), of_b = LatenessOf(b, now_us);
  if ((of_a.ideal_us > 0) != (of_b.ideal_us > 0)) return of_a.ideal_us > 0;
  const Wide more = of_a.late_us * of_b.ideal_us - of_b.late_us * of_a.ideal_us;  // 0 where both have none
  return more != 0 ? more > 0 : std::tie(a.submit_us, a.id) < std::tie(b.submit_us, b.id);
}

// Of slots.
auto ByLateness(const JobTable& jobs, int64_t now_us) {
  return [&jobs, now_us](uint32_t a, uint32_t b) { return IsLater(jobs[a], jobs[b], now_us); };
}

class FinishTimeFairness final : public Discipline {
 public:
  explicit FinishTimeFairness(const JobTable& jobs) : jobs_(jobs) {}

  void Reserve(uint32_t slot, const QueuedJob& /*job*/) override {
    ReserveMore(waiting_, 1);
    ReservePosition(positions_, slot);
  }
  void Insert(uint32_t slot) noexcept override {
    positions_[slot] = static_cast<uint32_t>(waiting_.size());
    waiting_.push_back(slot);
  }
  void Erase(uint32_t slot) noexcept override {
    const uint32_t last = waiting_.back();
    waiting_[positions_[slot]] = last;
    positions_[last] = positions_[slot];
    waiting_.pop_back();
  }
  uint32_t First(int64_t now_us) noexcept override {
    return *std::ranges::min_element(waiting_, ByLateness(jobs_, now_us));
  }
  bool Window(int64_t now_us, size_t count, std::vector<uint32_t>& slots) const override {
    slots.resize(std::min(count, waiting_.size()));
    std::partial_sort_copy(waiting_.begin(), waiting_.end(), slots.begin(), slots.end(), ByLateness(jobs_, now_us));
    return true;
  }
  [[nodiscard]] size_t bytes_held() const override { return sizeof *this + BytesIn(waiting_, positions_); }

 private:
  const JobTable& jobs_;
  std::vector<uint32_t> waiting_;  // slots, in no order
  HeapPositions positions_;        // in waiting_
};

}  // namespace

std::unique_ptr<Discipline> MakeFinishTimeFairness(const JobTable& jobs) {
  return std::make_unique<FinishTimeFairness>(jobs);
}

namespace {

// ---- drf: the owner with the smallest dominant share goes first, with its oldest job.

struct Usage {
  Wide gpu_milli = 0, cpu_milli = 0, mem_mib = 0;
  void Add(const QueueResources& resources, int sign) {
    gpu_milli += sign * resources.gpu_milli;
    cpu_milli += sign * resources.cpu_milli;
    mem_mib += sign * resources.mem_mib;
  }
  [[nodiscard]] bool none() const { return gpu_milli == 0 && cpu_milli == 0 && mem_mib == 0; }
};

double DominantShare(const Usage& usage, const QueueResources& capacity) {
  return std::max({ShareOf(static_cast<double>(usage.gpu_milli), capacity.gpu_milli),
                   ShareOf(static_cast<double>(usage.cpu_milli), capacity.cpu_milli),
                   ShareOf(static_cast<double>(usage.mem_mib), capacity.mem_mib)});
}

struct Owner {
  uint64_t id = 0;
  Usage usage;
  IndexedHeap<ServiceKey> jobs;  // by priority, submission, id
};

class DominantResourceFairness final : public Discipline {
 public:
  DominantResourceFairness(const QueueOptions& options, const JobTable& jobs)
      : jobs_(jobs), capacity_(options.capacity) {}

  void Reserve(uint32_t slot, const QueuedJob& job) override {
    ReservePosition(positions_, slot);
    ReservePosition(owner_of_, slot);
    first_jobs_.Reserve(first_jobs_.size() + 1);
    if (const uint32_t* known = owner_slot_.Find(job.owner)) {
      owners_[*known].jobs.Reserve(owners_[*known].jobs.size() + 1);
      return;
    }
    Owner fresh{.id = job.owner};
    fresh.jobs.Reserve(1);
    AddOwner(std::move(fresh));
  }

  void Insert(uint32_t slot) noexcept override {
    const QueuedJob& job = jobs_[slot];
    const uint32_t at = owner_slot_.at(job.owner);
    owner_of_[slot] = at;
    const bool first = owners_[at].jobs.empty();
    owners_[at].jobs.Push(KeyOf(job, 0), slot, positions_);
    if (first) {
      first_jobs_.Push(OwnerKey(at), at, owner_positions_);
    } else {
      first_jobs_.Change(at, OwnerKey(at), owner_positions_);
    }
  }

  void Erase(uint32_t slot) noexcept override {
    const uint32_t at = owner_of_[slot];
    owners_[at].jobs.Erase(slot, positions_);
    if (!owners_[at].jobs.empty()) {
      first_jobs_.Change(at, OwnerKey(at), owner_positions_);
      return;
    }
    first_jobs_.Erase(at, owner_positions_);
    ForgetIfIdle(at);
  }

  uint32_t First(int64_t /*now_us*/) noexcept override { return owners_[first_jobs_.top().slot].jobs.top().slot; }

  void Charge(uint32_t slot, int64_t /*now_us*/) noexcept override {
    const uint32_t at = owner_of_[slot];
    owners_[at].usage.Add(ResourcesOf(jobs_[slot]), 1);
    first_jobs_.Change(at, OwnerKey(at), owner_positions_);
    if (preview_) charged_.push_back(slot);
  }

  void BeginPreview(size_t jobs) override {
    charged_.reserve(jobs);
    preview_ = true;
  }
  void EndPreview() noexcept override {
    preview_ = false;
    for (const uint32_t slot : charged_) owners_[owner_of_[slot]].usage.Add(ResourcesOf(jobs_[slot]), -1);
    for (const uint32_t slot : charged_)
      first_jobs_.Change(owner_of_[slot], OwnerKey(owner_of_[slot]), owner_positions_);
    charged_.clear();
  }

  void SetCapacity(const QueueResources& capacity) noexcept override {
    capacity_ = capacity;
    first_jobs_.ChangeAll([this](uint32_t at) { return OwnerKey(at); }, owner_positions_);
  }

  void SetOwnerUsage(uint64_t owner, const QueueResources& usage) override {
    if (!owner_slot_.contains(owner)) {
      if (usage == QueueResources()) return;
      first_jobs_.Reserve(first_jobs_.size() + 1);
      AddOwner({.id = owner});
    }
    const uint32_t at = owner_slot_.at(owner);
    owners_[at].usage = Usage();
    owners_[at].usage.Add(usage, 1);
    if (owners_[at].jobs.empty()) {
      ForgetIfIdle(at);
    } else {
      first_jobs_.Change(at, OwnerKey(at), owner_positions_);
    }
  }

  [[nodiscard]] size_t bytes_held() const override {
    size_t bytes = sizeof *this + BytesIn(owners_, owner_slot_, first_jobs_, free_owners_, owner_positions_, owner_of_,
                                          positions_, charged_);
    for (const Owner& owner : owners_) bytes += owner.jobs.bytes_held();
    return bytes;
  }

 private:
  // The owner's first job stands for it: priority, then share, then that job's submission and id.
  [[nodiscard]] ServiceKey OwnerKey(uint32_t at) const {
    const Owner& owner = owners_[at];
    return KeyOf(jobs_[owner.jobs.top().slot], RankOf(DominantShare(owner.usage, capacity_)));
  }

  void AddOwner(Owner owner) {
    const bool reuse = !free_owners_.empty();
    const auto at = reuse ? free_owners_.back() : static_cast<uint32_t>(owners_.size());
    owner_slot_.ReserveOne();
    ReservePosition(owner_positions_, at);
    ReserveMore(owners_, reuse ? 0 : 1);
    if (free_owners_.capacity() < owners_.capacity()) free_owners_.reserve(owners_.capacity());
    owner_slot_.Insert(owner.id, at);
    if (reuse) {
      free_owners_.pop_back();
      owners_[at] = std::move(owner);
    } else {
      owners_.push_back(std::move(owner));
    }
  }

  // An owner without jobs is remembered as long as it holds something.
  void ForgetIfIdle(uint32_t at) noexcept {
    if (preview_ || !owners_[at].usage.none()) return;
    owner_slot_.Erase(owners_[at].id);
    owners_[at] = Owner();
    free_owners_.push_back(at);
  }

  const JobTable& jobs_;
  QueueResources capacity_;
  std::vector<Owner> owners_;
  std::vector<uint32_t> free_owners_;
  IdMap<uint32_t> owner_slot_;
  IndexedHeap<ServiceKey> first_jobs_;  // of owners with jobs
  HeapPositions owner_positions_;       // in first_jobs_
  HeapPositions positions_;             // of jobs, in their owner's heap
  std::vector<uint32_t> owner_of_;      // by job
  std::vector<uint32_t> charged_;
  bool preview_ = false;
};

}  // namespace

std::unique_ptr<Discipline> MakeDominantResourceFairness(const QueueOptions& options, const JobTable& jobs) {
  return std::make_unique<DominantResourceFairness>(options, jobs);
}

}  // namespace horus
