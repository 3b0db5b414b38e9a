// SPDX-License-Identifier: Apache-2.0
// Queue: its table of jobs, what it refuses, and the patience that goes before every discipline.
#include "queue/queue.h"

#include <string>

#include "base/status.h"
#include "base/text.h"
#include "queue/discipline.h"

namespace horus {
namespace {

// ---- What a queue refuses to take.

struct Range {
  const char* field;
  int64_t value, least, most;
  const char* unit;
};

std::string JobText(uint64_t id) { return Formatted("queued job %d", id); }

// `where` makes text, on failure only: it costs, and fails badly when memory is short.
template <typename Where>
absl::Status CheckRanges(const Where& where, std::initializer_list<Range> ranges) {
  for (const Range& range : ranges) {
    if (range.value >= range.least && range.value <= range.most) continue;
    return InvalidArgument("%s: %s: expected %d to %d %s, found %d", where(), range.field, range.least, range.most,
                           range.unit, range.value);
  }
  return absl::OkStatus();
}
std::string_view InQueue() { return "queue"; }

absl::Status ValidateQueuedJob(const QueuedJob& job) {
  HORUS_RETURN_IF_ERROR(
      CheckRanges([&] { return JobText(job.id); },
                  {{"submit_us", job.submit_us, -kMostQueueTimeUs, kMostQueueTimeUs, "us"},
                   {"tasks", job.tasks, 1, kMostQueuedGpus, "tasks"},
                   {"gpus", job.gpus, 0, kMostQueuedGpus, "GPUs"},
                   {"gpu_milli", job.gpu_milli, 1, 1000, "thousandths of a GPU"},
                   {"cpu_milli", job.cpu_milli, 0, kMostQueueResource, "thousandths of a core"},
                   {"mem_mib", job.mem_mib, 0, kMostQueueResource, "MiB"},
                   {"gpu_mem_mib.estimate", job.gpu_mem_mib.estimate, 0, kMostQueueResource, "MiB"},
                   {"gpu_mem_mib.upper", job.gpu_mem_mib.upper, job.gpu_mem_mib.estimate, kMostQueueResource, "MiB"},
                   {"total_us", job.total_us, 0, kMostQueueTimeUs, "us"},
                   {"remaining_us", job.remaining_us, -1, kMostQueueTimeUs, "us"},
                   {"attained_gpu_us", job.attained_gpu_us, 0, kMostQueueTimeUs, "GPU x us"},
                   {"deadline_us", job.deadline_us, -kMostQueueTimeUs, kMostQueueTimeUs, "us"},
                   {"ideal_us", job.ideal_us, 0, kMostQueueTimeUs, "us"}}));
  constexpr float kMost = 100;
  const Bounded& util = job.gpu_util_pct;
  if (util.estimate >= 0 && util.upper >= util.estimate && util.upper <= kMost) return absl::OkStatus();
  return InvalidArgument(
      "%s: gpu_util_pct: expected 0 <= estimate <= upper <= 100 per cent, found estimate %g, upper %g", JobText(job.id),
      util.estimate, util.upper);
}

absl::Status ValidateProgress(uint64_t id, const JobProgress& progress) {
  return CheckRanges([&] { return JobText(id); },
                     {{"attained_gpu_us", progress.attained_gpu_us, -1, kMostQueueTimeUs, "GPU x us"},
                      {"remaining_us", progress.remaining_us, -1, kMostQueueTimeUs, "us"}});
}

absl::Status ValidateResources(std::string_view what, const QueueResources& resources) {
  return CheckRanges([&] { return what; },
                     {{"gpu_milli", resources.gpu_milli, 0, kMostQueueResource, "thousandths of a GPU"},
                      {"cpu_milli", resources.cpu_milli, 0, kMostQueueResource, "thousandths of a core"},
                      {"mem_mib", resources.mem_mib, 0, kMostQueueResource, "MiB"}});
}

absl::Status ValidateTime(const char* what, int64_t time_us) {
  return CheckRanges(InQueue, {{what, time_us, -kMostQueueTimeUs, kMostQueueTimeUs, "us"}});
}

absl::Status ValidateCapacity(std::string_view name, const QueueResources& capacity) {
  HORUS_RETURN_IF_ERROR(ValidateResources("queue: capacity", capacity));
  const bool needed = name == "drf" || name == "tetris";
  if (!needed || capacity != QueueResources()) return absl::OkStatus();
  return InvalidArgument("queue: capacity: expected one above 0 for %s, found none", name);
}

std::unique_ptr<Discipline> MakeDiscipline(std::string_view name, const QueueOptions& options, const JobTable& jobs) {
  if (name == "ftf") return MakeFinishTimeFairness(jobs);
  if (name == "drf") return MakeDominantResourceFairness(options, jobs);
  if (name == "horus-plus") return MakeHorusPlus(options, jobs);
  return MakeKeyedDiscipline(name, options, jobs);
}

constexpr size_t kHorusLookAhead = 5;  // Horus, as published

}  // namespace

absl::Status NoSuchQueuedJob(uint64_t id) {
  return NotFound("queued job %d: expected a job of this queue, found none", id);
}

Queue::Queue(std::string_view name, const QueueOptions& options)
    : name_(name),
      look_ahead_(name.starts_with("horus") ? kHorusLookAhead : 1),
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
  if (slot_of_.contains(job.id))
    return AlreadyExists("queued job %d: expected a new id, found one of this queue", job.id);
  if (size() >= kMostJobs) return ResourceExhausted("queue: expected at most %d jobs, found one more", kMostJobs);
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
  if (patience_us_ == 0 && discipline_->Window(now_us, count, slots)) return slots;
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
  HORUS_RETURN_IF_ERROR(ValidateCapacity(name_, capacity));
  discipline_->SetCapacity(capacity);
  return absl::OkStatus();
}

absl::Status Queue::SetOwnerUsage(uint64_t owner, const QueueResources& usage) {
  HORUS_RETURN_IF_ERROR(ValidateResources("queue: usage of an owner", usage));
  discipline_->SetOwnerUsage(owner, usage);
  return absl::OkStatus();
}

size_t Queue::bytes_held() const {
  return sizeof *this + BytesIn(jobs_, free_slots_, slot_of_, waits_, wait_positions_, *discipline_);
}

namespace {

// ---- The list of disciplines, and which options make sense.

constexpr std::string_view kNames[] = {"fifo", "sjf",    "srtf", "las",   "ftf",
                                       "drf",  "tetris", "edf",  "horus", "horus-plus"};
constexpr int32_t kMinClusters = 3, kMaxClusters = 5;  // Horus+, as published

absl::Status CheckThresholds(const std::vector<int64_t>& thresholds) {
  if (thresholds.size() > kMostLasThresholds) {
    return InvalidArgument("queue: las_thresholds_gpu_us: expected at most %d, found %d", kMostLasThresholds,
                           thresholds.size());
  }
  int64_t before = 0;
  for (size_t i = 0; i < thresholds.size(); ++i) {
    if (thresholds[i] > before && thresholds[i] <= kMostQueueTimeUs) {
      before = thresholds[i];
      continue;
    }
    return InvalidArgument("queue: las_thresholds_gpu_us[%d]: expected more than %d and at most %d GPU x us, found %d",
                           i, before, kMostQueueTimeUs, thresholds[i]);
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(std::string_view name, const QueueOptions& options) {
  HORUS_RETURN_IF_ERROR(ValidateCapacity(name, options.capacity));
  HORUS_RETURN_IF_ERROR(CheckThresholds(options.las_thresholds_gpu_us));
  HORUS_RETURN_IF_ERROR(
      CheckRanges(InQueue, {{"aging_us_per_pct", options.aging_us_per_pct, -1, kMostQueueTimeUs, "us"}}));
  if (options.clusters < kMinClusters || options.clusters > kMaxClusters) {
    return InvalidArgument("queue: clusters: expected %d to %d, found %d", kMinClusters, kMaxClusters,
                           options.clusters);
  }
  if (!(options.recluster_share > 0 && options.recluster_share <= 1)) {
    return InvalidArgument("queue: recluster_share: expected more than 0 and at most 1, found %g",
                           options.recluster_share);
  }
  return CheckRanges(InQueue, {{"patience_us", options.patience_us, 0, kMostQueueTimeUs, "us"}});
}

}  // namespace

std::span<const std::string_view> QueueNames() { return kNames; }

absl::StatusOr<std::unique_ptr<Queue>> MakeQueue(std::string_view name, const QueueOptions& options) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return NotFound("queue: %s", ExpectedOneOf(kNames, name));
  HORUS_RETURN_IF_ERROR(CheckOptions(name, options));
  return std::unique_ptr<Queue>(new Queue(*found, options));  // by the static name, which lives as long as the program
}

}  // namespace horus
