// SPDX-License-Identifier: Apache-2.0
// queue.hpp: queues made, filled and served from C++.
#include <type_traits>

#include "face_check.h"

namespace {

horus::QueuedJob JobOf(uint64_t id, int64_t total_us, uint64_t owner = 0) {
  horus::QueuedJob job;
  job.id = id;
  job.owner = owner;
  job.total_us = total_us;
  return job;
}

void JobsAreServedInOrder() {
  static_assert(!std::is_copy_constructible_v<horus::Queue>);
  static_assert(std::is_nothrow_move_constructible_v<horus::Queue>);
  horus::Queue queue("srtf");
  queue.Push(JobOf(1, 30));
  queue.Push(JobOf(2, 20));
  queue.Push(JobOf(3, 10));
  CHECK((queue.Window(0, 2) == std::vector<uint64_t>{3, 2}) && queue.Window(0, 9).size() == 3);
  queue.Update(3, -1, 90);
  CHECK(queue.at(3).remaining_us == 90 && queue.at(3).attained_gpu_us == 0);
  CHECK(queue.Pop(0) == 2u);
  queue.Serve(1, 0);
  queue.Remove(3);
  CHECK(queue.Pop(0) == std::nullopt && queue.size() == 0 && queue.look_ahead() == 1 && horus::BytesHeld(queue) > 0);
  CHECK(queue.Window(0, 3).empty());
}

void OptionsAndSharesReachTheDiscipline() {
  horus::Queue queue("drf", {.capacity = {.gpu_milli = 8000}});
  queue.Push(JobOf(1, 10, 1));
  queue.Push(JobOf(2, 10, 2));
  queue.SetOwnerUsage(1, {.gpu_milli = 100});
  queue.SetCapacity({.gpu_milli = 4000, .cpu_milli = 1});
  CHECK((queue.Window(0, 2) == std::vector<uint64_t>{2, 1}));
  horus::Queue las("las", {.las_thresholds_gpu_us = {5}});
  horus::QueuedJob served = JobOf(1, 10);
  served.attained_gpu_us = 5;
  las.Push(served);
  las.Push(JobOf(2, 10));
  CHECK((las.Window(0, 2) == std::vector<uint64_t>{2, 1}));
}

void FailuresThrowTheirStatus() {
  CHECK(horus::Queue::Disciplines().size() == 10);
  CHECK(StatusOf([] { horus::Queue("lifo"); }) == HORUS_ERR_NOT_FOUND);
  CHECK(StatusOf([] { horus::Queue("drf"); }) == HORUS_ERR_INVALID_ARGUMENT);
  horus::Queue queue("fifo");
  queue.Push(JobOf(1, 0));
  CHECK(StatusOf([&] { queue.Push(JobOf(1, 0)); }) == HORUS_ERR_EXISTS);
  CHECK(StatusOf([&] { queue.Remove(2); }) == HORUS_ERR_NOT_FOUND);
  CHECK(StatusOf([&] { (void)queue.at(2); }) == HORUS_ERR_NOT_FOUND);
}

}  // namespace

int main() {
  JobsAreServedInOrder();
  OptionsAndSharesReachTheDiscipline();
  FailuresThrowTheirStatus();
  return report();
}
