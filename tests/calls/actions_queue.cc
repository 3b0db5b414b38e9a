// SPDX-License-Identifier: Apache-2.0
// Actions of a queue: nothing is lost, nothing comes out twice, and a window predicts what is served.
#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "calls/corrupt.h"
#include "calls/harness.h"

namespace horus::calls {
namespace {

constexpr size_t kMostQueued = 512;
constexpr int64_t kSecondUs = 1'000'000;

int64_t SomeTime(Harness& harness) {
  if (harness.choices.OneIn(64)) return static_cast<int64_t>(harness.choices.HostileBits());
  return static_cast<int64_t>(harness.choices.Below(65'536)) * kSecondUs;
}

horus_queue_info InfoOf(Harness& harness, const horus_queue* queue) {
  horus_queue_info info = HORUS_QUEUE_INFO_INIT;
  harness.Require(HORUS_TRY(harness, kNone, horus_queue_get_info, queue, &info) == HORUS_OK, "what a queue has");
  return info;
}

void NewQueue(Harness& harness) {
  constexpr size_t kDisciplines = 10;
  const std::array<int64_t, 2> thresholds = {kSecondUs, 100 * kSecondUs};
  Roomy<horus_queue_options> options{HORUS_QUEUE_OPTIONS_INIT};
  options.value.gpu_milli = 8'000;
  options.value.cpu_milli = harness.choices.OneIn(2) ? 0 : 64'000;
  options.value.patience_us = harness.choices.OneIn(4) ? 1'000 * kSecondUs : 0;
  options.value.las_continuous = harness.choices.OneIn(4) ? 1 : 0;
  if (options.value.las_continuous == 0 && harness.choices.OneIn(2)) {
    options.value.las_threshold_count = thresholds.size();
    options.value.las_thresholds_gpu_us = thresholds.data();
  }
  MaybeCorrupt(harness.choices, harness.options.hostile, options);
  const char* name = harness.choices.OneIn(16) ? HostileText(harness.choices)
                                               : Library().disciplines[harness.choices.Below(kDisciplines)];
  horus_queue* out = nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_queue_create, name, &options.value, &out);
  harness.Require((status == HORUS_OK) == (out != nullptr), "a queue comes with success alone");
  if (out == nullptr) return;
  harness.queue.reset(out);
  harness.queued.clear();
  harness.Require(InfoOf(harness, out).look_ahead >= 1 && horus_queue_bytes_held(out) > 0,
                  "a queue that looks at nothing");
}

void Push(Harness& harness) {
  Roomy<horus_queued_job> job{HORUS_QUEUED_JOB_INIT};
  job.value.id = harness.AnyJobId();
  job.value.priority = static_cast<int32_t>(harness.choices.Below(3));
  job.value.owner = harness.choices.Below(4);
  job.value.submit_us = static_cast<int64_t>(harness.choices.Below(256)) * kSecondUs;
  job.value.gpus = static_cast<int32_t>(harness.choices.Below(5));
  job.value.cpu_milli = 1'000;
  job.value.gpu_util_pct = static_cast<float>(harness.choices.Below(101));
  job.value.gpu_mem_mib = static_cast<int64_t>(harness.choices.Below(16'384));
  job.value.total_us = static_cast<int64_t>(harness.choices.Below(256)) * kSecondUs;
  job.value.deadline_us = static_cast<int64_t>(harness.choices.Below(256)) * kSecondUs;
  MaybeCorrupt(harness.choices, harness.options.hostile, job);
  const bool known = harness.queued.contains(job.value.id);
  if (HORUS_TRY(harness, kNone, horus_queue_push, harness.queue.get(), &job.value) != HORUS_OK) return;
  harness.Require(!known, "a job is queued twice", 0, job.value.id);
  harness.queued.insert(job.value.id);
}

void Leave(Harness& harness, uint64_t id, horus_status status) {
  const bool known = harness.queued.contains(id);
  harness.Require(status == HORUS_OK ? known : !known || status == HORUS_ERR_INVALID_ARGUMENT, "a job leaves the queue",
                  id);
  if (status == HORUS_OK) harness.queued.erase(id);
}

uint64_t SomeQueued(Harness& harness) {
  const uint64_t id = harness.AnyJobId();
  const auto at = harness.queued.lower_bound(id);
  return at == harness.queued.end() ? id : *at;
}

void Remove(Harness& harness) {
  const uint64_t id = SomeQueued(harness);
  Leave(harness, id, HORUS_TRY(harness, kNone, horus_queue_remove, harness.queue.get(), id));
}

void Serve(Harness& harness) {
  const uint64_t id = SomeQueued(harness);
  Leave(harness, id, HORUS_TRY(harness, kNone, horus_queue_serve, harness.queue.get(), id, SomeTime(harness)));
}

void Pop(Harness& harness) {
  const int64_t now = SomeTime(harness);
  uint64_t first = 0, id = 0;
  size_t ahead = 0, count = 0;
  const horus_status seen =
      HORUS_TRY(harness, kNone, horus_queue_window, harness.queue.get(), now, size_t{1}, &first, &ahead);
  const horus_status status = HORUS_TRY(harness, kNone, horus_queue_pop, harness.queue.get(), now, &id, &count);
  harness.Require(seen == status, "a window that a pop does not allow");
  if (status != HORUS_OK) return;
  harness.Require(count == ahead && count == std::min<size_t>(1, harness.queued.size()), "what a pop serves", ahead,
                  count);
  if (count == 0) return;
  harness.Require(first == id, "a window predicts the pop", first, id);
  harness.Note(id);
  Leave(harness, id, status);
}

void Window(Harness& harness) {
  std::array<uint64_t, 16> ids = {};
  const size_t capacity = harness.choices.Below(ids.size() + 1);
  size_t count = 0;
  const horus_status status = HORUS_TRY(harness, kNone, horus_queue_window, harness.queue.get(), SomeTime(harness),
                                        capacity, ids.data(), &count);
  if (status != HORUS_OK) return;
  const size_t told = capacity == 0 ? harness.queued.size() : std::min(capacity, harness.queued.size());
  harness.Require(count == told, "jobs of a window", told, count);
  if (capacity == 0) return;
  const std::set<uint64_t> distinct(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
  harness.Require(distinct.size() == count, "a job twice in a window");
  for (const uint64_t id : distinct)
    harness.Require(harness.queued.contains(id), "a job in a window that is not queued", id);
}

void Update(Harness& harness) {
  const uint64_t id = SomeQueued(harness);
  HORUS_TRY(harness, kNone, horus_queue_update, harness.queue.get(), id, SomeTime(harness), SomeTime(harness));
  horus_queued_job job = HORUS_QUEUED_JOB_INIT;
  const horus_status status = HORUS_TRY(harness, kNone, horus_queue_get_job, harness.queue.get(), id, &job);
  harness.Require((status == HORUS_OK) == harness.queued.contains(id), "a queued job", id);
  if (status == HORUS_OK) harness.Require(job.id == id, "the id of a queued job", id, job.id);
}

void SetCapacity(Harness& harness) {
  HORUS_TRY(harness, kNone, horus_queue_set_capacity, harness.queue.get(), SomeTime(harness) / kSecondUs,
            int64_t{64'000}, SomeTime(harness) / kSecondUs);
  HORUS_TRY(harness, kNone, horus_queue_set_owner_usage, harness.queue.get(), harness.choices.Below(5),
            SomeTime(harness) / kSecondUs, int64_t{1'000}, int64_t{0});
}

// As many leave as come.
void Shuffle(Harness& harness) {
  harness.queued.size() < kMostQueued ? Push(harness) : Pop(harness);
  const size_t jobs = harness.queue == nullptr ? 0 : InfoOf(harness, harness.queue.get()).jobs;
  harness.Require(jobs == harness.queued.size(), "jobs in the queue", harness.queued.size(), jobs);
}

}  // namespace

std::vector<Action> QueueActions() {
  return {{Shuffle, 100}, {Pop, 32},    {Remove, 24},     {Serve, 24},
          {Window, 16},   {Update, 24}, {SetCapacity, 4}, {NewQueue, 1}};
}

}  // namespace horus::calls
