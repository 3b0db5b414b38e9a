// SPDX-License-Identifier: Apache-2.0
// Queue: its table of jobs, what it refuses, and the patience that goes before every discipline.
#include "queue/queue.h"

#include <algorithm>

#include "base/status.h"
#include "queue/discipline.h"

namespace horus {
namespace {

constexpr size_t kHorusLookAhead = 5;  // Horus, as published

}  // namespace

absl::Status NoSuchQueuedJob(uint64_t id) {
  return MakeError(absl::StatusCode::kNotFound, "queued job %d: expected a job of this queue, found none", id);
}

Queue::Queue(std::string_view name, const QueueOptions& options)
    : name_(name),
      look_ahead_(name.starts_with("horus") ? kHorusLookAhead : 1),
      needs_capacity_(NeedsCapacity(name)),
      patience_us_(options.patience_us),
      discipline_(MakeDiscipline(name, options, jobs_)) {}

Queue::~Queue() = default;

absl::StatusOr<uint32_t> Queue::SlotOf(uint64_t id) const {
  const uint32_t* slot = slot_of_.Find(id);
  if (slot == nullptr) return NoSuchQueuedJob(id);
  return *slot;
}

const QueuedJob* Queue::Find(uint64_t id) const {
  const uint32_t* slot = slot_of_.Find(id);
  return slot == nullptr ? nullptr : &jobs_[*slot];
}

absl::Status Queue::Push(const QueuedJob& job) {
  HORUS_RETURN_IF_ERROR(ValidateQueuedJob(job));
  if (slot_of_.contains(job.id)) {
    return MakeError(absl::StatusCode::kAlreadyExists, "queued job %d: expected a new id, found one of this queue",
                     job.id);
  }
  if (size() >= kMostJobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "queue: expected at most %d jobs, found one more",
                     kMostJobs);
  }
  const uint32_t slot = free_slots_.empty() ? static_cast<uint32_t>(jobs_.size()) : free_slots_.back();
  // All that may fail comes first.
  slot_of_.ReserveOne();
  ReserveMore(jobs_, 1);
  if (free_slots_.capacity() < jobs_.capacity()) free_slots_.reserve(jobs_.capacity());
  if (patience_us_ > 0) {
    waits_.Reserve(waits_.size() + 1);
    ReservePosition(wait_positions_, slot);
  }
  discipline_->Reserve(slot, job);
  if (slot == jobs_.size()) {
    jobs_.push_back(job);
  } else {
    free_slots_.pop_back();
    jobs_[slot] = job;
  }
  slot_of_.Insert(job.id, slot);
  Insert(slot);
  return absl::OkStatus();
}

void Queue::Insert(uint32_t slot) noexcept {
  const QueuedJob& job = jobs_[slot];
  if (patience_us_ > 0) waits_.Push({~job.priority, job.submit_us, job.id}, slot, wait_positions_);
  discipline_->Insert(slot);
}

void Queue::Erase(uint32_t slot) noexcept {
  discipline_->Erase(slot);
  if (patience_us_ > 0) waits_.Erase(slot, wait_positions_);
}

void Queue::Release(uint32_t slot) noexcept {
  Erase(slot);
  slot_of_.Erase(jobs_[slot].id);
  free_slots_.push_back(slot);
}

absl::Status Queue::Remove(uint64_t id) {
  HORUS_ASSIGN_OR_RETURN(const uint32_t slot, SlotOf(id));
  Release(slot);
  return absl::OkStatus();
}

absl::Status Queue::Serve(uint64_t id, int64_t now_us) {
  HORUS_RETURN_IF_ERROR(ValidateTime("now_us", now_us));
  HORUS_ASSIGN_OR_RETURN(const uint32_t slot, SlotOf(id));
  discipline_->Charge(slot, now_us);
  Release(slot);
  return absl::OkStatus();
}

absl::Status Queue::Update(uint64_t id, const JobProgress& progress) {
  HORUS_RETURN_IF_ERROR(ValidateProgress(id, progress));
  HORUS_ASSIGN_OR_RETURN(const uint32_t slot, SlotOf(id));
  QueuedJob& job = jobs_[slot];
  if (progress.attained_gpu_us >= 0) job.attained_gpu_us = progress.attained_gpu_us;
  if (progress.remaining_us >= 0) job.remaining_us = progress.remaining_us;
  discipline_->Update(slot);
  return absl::OkStatus();
}

uint32_t Queue::First(int64_t now_us) noexcept {
  // The longest wait of the highest priority: when it is not too long, none of that priority is.
  if (patience_us_ > 0 && waits_.top().key.submit_us <= now_us - patience_us_) return waits_.top().slot;
  return discipline_->First(now_us);
}

std::vector<uint32_t> Queue::Preview(int64_t now_us, size_t count) {
  std::vector<uint32_t> slots;
  slots.reserve(count);
  if (patience_us_ == 0 && discipline_->Window(count, slots)) return slots;
  discipline_->BeginPreview(count);
  while (slots.size() < count) {
    const uint32_t slot = First(now_us);
    discipline_->Charge(slot, now_us);
    Erase(slot);
    slots.push_back(slot);
  }
  for (size_t i = count; i-- > 0;) Insert(slots[i]);
  discipline_->EndPreview();
  return slots;
}

absl::StatusOr<std::vector<uint64_t>> Queue::Window(int64_t now_us, size_t count) {
  HORUS_RETURN_IF_ERROR(ValidateTime("now_us", now_us));
  count = std::min(count, size());
  std::vector<uint64_t> ids;
  ids.reserve(count);
  for (const uint32_t slot : Preview(now_us, count)) ids.push_back(jobs_[slot].id);
  return ids;
}

absl::StatusOr<std::optional<uint64_t>> Queue::Pop(int64_t now_us) {
  HORUS_RETURN_IF_ERROR(ValidateTime("now_us", now_us));
  if (size() == 0) return std::optional<uint64_t>();
  const uint32_t slot = First(now_us);
  const uint64_t id = jobs_[slot].id;
  discipline_->Charge(slot, now_us);
  Release(slot);
  return std::optional<uint64_t>(id);
}

absl::Status Queue::SetCapacity(const QueueResources& capacity) {
  HORUS_RETURN_IF_ERROR(ValidateCapacity(name_, capacity, needs_capacity_));
  discipline_->SetCapacity(capacity);
  return absl::OkStatus();
}

absl::Status Queue::SetOwnerUsage(uint64_t owner, const QueueResources& usage) {
  HORUS_RETURN_IF_ERROR(ValidateResources("queue: usage of an owner", usage));
  discipline_->SetOwnerUsage(owner, usage);
  return absl::OkStatus();
}

size_t Queue::bytes_held() const {
  return sizeof *this + jobs_.capacity() * sizeof(QueuedJob) + free_slots_.capacity() * sizeof(uint32_t) +
         slot_of_.bytes_held() + waits_.bytes_held() + wait_positions_.capacity() * sizeof(uint32_t) +
         discipline_->bytes_held();
}

}  // namespace horus
