// SPDX-License-Identifier: Apache-2.0
// Actions of a queue: nothing is lost, nothing comes out twice, and a window predicts what is served.
#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "calls/corrupt.h"
#include "calls/world.h"

namespace horus::calls {
namespace {

constexpr size_t kMostQueued = 512;
constexpr int64_t kSecondUs = 1'000'000;

int64_t SomeTime(World& world) {
  if (world.choices.OneIn(64)) return static_cast<int64_t>(world.choices.HostileBits());
  return static_cast<int64_t>(world.choices.Below(65'536)) * kSecondUs;
}

void NewQueue(World& world) {
  constexpr size_t kDisciplines = 10;
  const std::array<int64_t, 2> thresholds = {kSecondUs, 100 * kSecondUs};
  Roomy<horus_queue_options> options{HORUS_QUEUE_OPTIONS_INIT};
  options.value.gpu_milli = 8'000;
  options.value.cpu_milli = world.choices.OneIn(2) ? 0 : 64'000;
  options.value.patience_us = world.choices.OneIn(4) ? 1'000 * kSecondUs : 0;
  options.value.las_continuous = world.choices.OneIn(4) ? 1 : 0;
  if (options.value.las_continuous == 0 && world.choices.OneIn(2)) {
    options.value.las_threshold_count = thresholds.size();
    options.value.las_thresholds_gpu_us = thresholds.data();
  }
  MaybeCorrupt(world.choices, world.options.hostile, options);
  const char* name = world.choices.OneIn(16) ? HostileText(world.choices)
                                             : horus_queue_discipline_name(world.choices.Below(kDisciplines));
  horus_queue* out = nullptr;
  const horus_status status = HORUS_TRY(world, kNone, horus_queue_create, name, &options.value, &out);
  world.Require((status == HORUS_OK) == (out != nullptr), "a queue comes with success alone");
  if (out == nullptr) return;
  world.queue.reset(out);
  world.queued.clear();
  world.Require(horus_queue_look_ahead(out) >= 1 && horus_queue_bytes_held(out) > 0, "a queue that looks at nothing");
}

void Push(World& world) {
  Roomy<horus_queued_job> job{HORUS_QUEUED_JOB_INIT};
  job.value.id = world.AnyJobId();
  job.value.priority = static_cast<int32_t>(world.choices.Below(3));
  job.value.owner = world.choices.Below(4);
  job.value.submit_us = static_cast<int64_t>(world.choices.Below(256)) * kSecondUs;
  job.value.gpus = static_cast<int32_t>(world.choices.Below(5));
  job.value.cpu_milli = 1'000;
  job.value.gpu_util_pct = static_cast<float>(world.choices.Below(101));
  job.value.gpu_mem_mib = static_cast<int64_t>(world.choices.Below(16'384));
  job.value.total_us = static_cast<int64_t>(world.choices.Below(256)) * kSecondUs;
  job.value.deadline_us = static_cast<int64_t>(world.choices.Below(256)) * kSecondUs;
  MaybeCorrupt(world.choices, world.options.hostile, job);
  const bool known = world.queued.contains(job.value.id);
  if (HORUS_TRY(world, kNone, horus_queue_push, world.queue.get(), &job.value) != HORUS_OK) return;
  world.Require(!known, "a job is queued twice", 0, job.value.id);
  world.queued.insert(job.value.id);
}

void Leave(World& world, uint64_t id, horus_status status) {
  const bool known = world.queued.contains(id);
  world.Require(status == HORUS_OK ? known : !known || status == HORUS_ERR_INVALID_ARGUMENT, "a job leaves the queue",
                id);
  if (status == HORUS_OK) world.queued.erase(id);
}

uint64_t SomeQueued(World& world) {
  const uint64_t id = world.AnyJobId();
  const auto at = world.queued.lower_bound(id);
  return at == world.queued.end() ? id : *at;
}

void Remove(World& world) {
  const uint64_t id = SomeQueued(world);
  Leave(world, id, HORUS_TRY(world, kNone, horus_queue_remove, world.queue.get(), id));
}

void Serve(World& world) {
  const uint64_t id = SomeQueued(world);
  Leave(world, id, HORUS_TRY(world, kNone, horus_queue_serve, world.queue.get(), id, SomeTime(world)));
}

void Pop(World& world) {
  const int64_t now = SomeTime(world);
  uint64_t first = 0, id = 0;
  size_t ahead = 0, count = 0;
  const horus_status seen =
      HORUS_TRY(world, kNone, horus_queue_window, world.queue.get(), now, size_t{1}, &first, &ahead);
  const horus_status status = HORUS_TRY(world, kNone, horus_queue_pop, world.queue.get(), now, &id, &count);
  world.Require(seen == status, "a window that a pop does not allow");
  if (status != HORUS_OK) return;
  world.Require(count == ahead && count == std::min<size_t>(1, world.queued.size()), "what a pop serves", ahead, count);
  if (count == 0) return;
  world.Require(first == id, "a window predicts the pop", first, id);
  world.Note(id);
  Leave(world, id, status);
}

void Window(World& world) {
  std::array<uint64_t, 16> ids = {};
  const size_t capacity = world.choices.Below(ids.size() + 1);
  size_t count = 0;
  const horus_status status =
      HORUS_TRY(world, kNone, horus_queue_window, world.queue.get(), SomeTime(world), capacity, ids.data(), &count);
  if (status != HORUS_OK) return;
  world.Require(count == std::min(capacity, world.queued.size()), "jobs of a window", world.queued.size(), count);
  const std::set<uint64_t> distinct(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
  world.Require(distinct.size() == count, "a job twice in a window");
  for (const uint64_t id : distinct)
    world.Require(world.queued.contains(id), "a job in a window that is not queued", id);
}

void Update(World& world) {
  const uint64_t id = SomeQueued(world);
  HORUS_TRY(world, kNone, horus_queue_update, world.queue.get(), id, SomeTime(world), SomeTime(world));
  horus_queued_job job = HORUS_QUEUED_JOB_INIT;
  const horus_status status = HORUS_TRY(world, kNone, horus_queue_get_job, world.queue.get(), id, &job);
  world.Require((status == HORUS_OK) == world.queued.contains(id), "a queued job", id);
  if (status == HORUS_OK) world.Require(job.id == id, "the id of a queued job", id, job.id);
}

void SetCapacity(World& world) {
  HORUS_TRY(world, kNone, horus_queue_set_capacity, world.queue.get(), SomeTime(world) / kSecondUs, int64_t{64'000},
            SomeTime(world) / kSecondUs);
  HORUS_TRY(world, kNone, horus_queue_set_owner_usage, world.queue.get(), world.choices.Below(5),
            SomeTime(world) / kSecondUs, int64_t{1'000}, int64_t{0});
}

// As many leave as come.
void Shuffle(World& world) {
  world.queued.size() < kMostQueued ? Push(world) : Pop(world);
  world.Require(horus_queue_count(world.queue.get()) == world.queued.size(), "jobs in the queue", world.queued.size(),
                horus_queue_count(world.queue.get()));
}

}  // namespace

std::vector<Action> QueueActions() {
  return {{Shuffle, 100}, {Pop, 32},    {Remove, 24},     {Serve, 24},
          {Window, 16},   {Update, 24}, {SetCapacity, 4}, {NewQueue, 1}};
}

}  // namespace horus::calls
