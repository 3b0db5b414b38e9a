// SPDX-License-Identifier: Apache-2.0
// drf: the owner with the smallest dominant share goes first, with its oldest job.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/id_map.h"
#include "queue/discipline.h"
#include "queue/indexed_heap.h"
#include "queue/scores.h"
#include "queue/service_key.h"

namespace horus {
namespace {

__extension__ typedef __int128 Wide;  // sums that jobs of any size cannot overflow

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
    for (const uint32_t slot : charged_) {
      first_jobs_.Change(owner_of_[slot], OwnerKey(owner_of_[slot]), owner_positions_);
    }
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
    size_t bytes = sizeof *this + owners_.capacity() * sizeof(Owner) + owner_slot_.bytes_held() +
                   first_jobs_.bytes_held() +
                   (free_owners_.capacity() + owner_positions_.capacity() + owner_of_.capacity() +
                    positions_.capacity() + charged_.capacity()) *
                       sizeof(uint32_t);
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
