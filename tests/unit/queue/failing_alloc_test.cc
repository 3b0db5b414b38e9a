// SPDX-License-Identifier: Apache-2.0
// On failure nothing happened: every call of every discipline, with each of its allocations failing in turn.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "failing_new.h"
#include "naive_queue.h"
#include "queue/queue.h"

namespace horus {
namespace {

using testing_queue::RandomJob;

// Whether `work` ran out of memory at its allocation number `at`.
bool FailsAt(size_t at, const std::function<void()>& work) {
  bool failed = false;
  allocations_left = at;
  try {
    work();
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  allocations_left = kNever;
  return failed;
}

std::unique_ptr<Queue> Make(std::string_view name) {
  QueueOptions options;
  options.capacity = {.gpu_milli = 64'000, .cpu_milli = 100'000, .mem_mib = 65'536};
  options.patience_us = name == "fifo" ? 5 : 0;
  return *MakeQueue(name, options);
}

TEST(FailedAllocation, LeavesEveryQueueAsItWas) {
  for (const std::string_view name : QueueNames()) {
    const auto queue = Make(name);
    size_t failures = 0;
    for (uint64_t id = 1; id <= 70; ++id) {
      const QueuedJob job = RandomJob(id, id + 9);
      const auto before = *queue->Window(40, id);
      for (size_t at = 0;; ++at) {
        absl::Status status;
        if (!FailsAt(at, [&] { status = queue->Push(job); })) {
          ASSERT_TRUE(status.ok()) << status;
          break;
        }
        ++failures;
        ASSERT_EQ(queue->size(), id - 1) << name;
        ASSERT_EQ(*queue->Window(40, id), before) << name << ", job " << id << ", allocation " << at;
      }
      const auto with = *queue->Window(40, id);
      for (size_t at = 0; FailsAt(at, [&] { (void)*queue->Window(40, id); }); ++at) {
        ASSERT_EQ(*queue->Window(40, id), with) << name << ", allocation " << at;
      }
      const QueueResources usage{.gpu_milli = static_cast<int64_t>(id), .cpu_milli = 0, .mem_mib = 0};
      for (size_t at = 0; FailsAt(at, [&] { (void)queue->SetOwnerUsage(1000 + id, usage); }); ++at) {
        ASSERT_EQ(*queue->Window(40, id), with) << name << ", allocation " << at;
      }
    }
    EXPECT_GT(failures, 10u) << name;
  }
}

TEST(FailedAllocation, CannotHappenToWhatTakesJobsOut) {
  for (const std::string_view name : QueueNames()) {
    const auto queue = Make(name);
    for (uint64_t id = 1; id <= 90; ++id) ASSERT_TRUE(queue->Push(RandomJob(id, id)).ok());
    for (uint64_t id = 1; id <= 30; ++id) {
      EXPECT_FALSE(FailsAt(0, [&] {
        if (queue->Find(id) != nullptr) (void)queue->Update(id, {.attained_gpu_us = 1, .remaining_us = 1});
        (void)queue->SetCapacity({.gpu_milli = 1000, .cpu_milli = 1, .mem_mib = 1});
        if (queue->Find(id) != nullptr) (void)queue->Remove(id);
        if (queue->Find(id + 30) != nullptr) (void)queue->Serve(id + 30, 50);
        if (queue->size() > 0) (void)*queue->Pop(50);
      })) << name;
    }
    EXPECT_LT(queue->size(), 31u) << name;
  }
}

}  // namespace
}  // namespace horus
