// SPDX-License-Identifier: Apache-2.0
// Queue: what it refuses, what it answers when empty, patience, and that failures change nothing.
#include "queue/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "naive_queue.h"

namespace horus {
namespace {

using testing::ElementsAre;
using testing_queue::RandomJob;

constexpr QueueResources kCapacity = {.gpu_milli = 8000, .cpu_milli = 64'000, .mem_mib = 65'536};

std::unique_ptr<Queue> Make(std::string_view name, QueueOptions options = {}) {
  options.capacity = kCapacity;
  auto queue = MakeQueue(name, options);
  EXPECT_TRUE(queue.ok()) << queue.status();
  return *std::move(queue);
}

QueuedJob Job(uint64_t id, int64_t submit_us = 0) { return {.id = id, .submit_us = submit_us}; }

TEST(Queue, NamesAreListedWhenOneIsUnknown) {
  const auto queue = MakeQueue("lifo");
  EXPECT_EQ(queue.status().code(), absl::StatusCode::kNotFound);
  for (const std::string_view name : QueueNames()) {
    EXPECT_NE(queue.status().message().find(std::string(name)), std::string::npos) << name;
  }
  EXPECT_EQ(QueueNames().size(), 10u);
}

TEST(Queue, RefusesEveryBadFieldAndChangesNothing) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<const char*, std::function<void(QueuedJob&)>>> bad = {
      {"submit_us", [](auto& j) { j.submit_us = std::numeric_limits<int64_t>::min(); }},
      {"submit_us", [](auto& j) { j.submit_us = kMostQueueTimeUs + 1; }},
      {"tasks", [](auto& j) { j.tasks = 0; }},
      {"gpus", [](auto& j) { j.gpus = -1; }},
      {"gpus", [](auto& j) { j.gpus = kMostQueuedGpus + 1; }},
      {"gpu_milli", [](auto& j) { j.gpu_milli = 0; }},
      {"gpu_milli", [](auto& j) { j.gpu_milli = 1001; }},
      {"cpu_milli", [](auto& j) { j.cpu_milli = -1; }},
      {"mem_mib", [](auto& j) { j.mem_mib = kMostQueueResource + 1; }},
      {"gpu_util_pct", [](auto& j) { j.gpu_util_pct = {kNan, 50}; }},
      {"gpu_util_pct", [](auto& j) { j.gpu_util_pct = {50, kNan}; }},
      {"gpu_util_pct", [](auto& j) { j.gpu_util_pct = {-1, 50}; }},
      {"gpu_util_pct", [](auto& j) { j.gpu_util_pct = {50, 40}; }},
      {"gpu_util_pct", [](auto& j) { j.gpu_util_pct = {50, 101}; }},
      {"gpu_mem_mib.estimate", [](auto& j) { j.gpu_mem_mib = {-1, 0}; }},
      {"gpu_mem_mib.upper", [](auto& j) { j.gpu_mem_mib = {2, 1}; }},
      {"total_us", [](auto& j) { j.total_us = -1; }},
      {"remaining_us", [](auto& j) { j.remaining_us = -2; }},
      {"attained_gpu_us", [](auto& j) { j.attained_gpu_us = -1; }},
      {"deadline_us", [](auto& j) { j.deadline_us = kMostQueueTimeUs + 1; }},
      {"ideal_us", [](auto& j) { j.ideal_us = -1; }},
  };
  for (const std::string_view name : QueueNames()) {
    const auto queue = Make(name);
    for (uint64_t id = 1; id <= 9; ++id) ASSERT_TRUE(queue->Push(RandomJob(id, id)).ok());
    const auto before = *queue->Window(100, 9);
    for (const auto& [field, spoil] : bad) {
      QueuedJob job = Job(77);
      spoil(job);
      const absl::Status status = queue->Push(job);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
      EXPECT_NE(status.message().find(std::string("77: ") + field), std::string::npos) << status;
    }
    EXPECT_EQ(queue->Push(Job(3)).code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(queue->Remove(77).code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(queue->Serve(77, 0).code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(queue->Update(77, {}).code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(queue->Update(3, {.attained_gpu_us = -2}).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(queue->Update(3, {.remaining_us = kMostQueueTimeUs + 1}).code(), absl::StatusCode::kInvalidArgument);
    constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
    EXPECT_EQ(queue->Pop(kNever).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(queue->Window(kNever, 1).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(queue->Serve(3, kNever).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(queue->SetCapacity({.gpu_milli = -1}).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(queue->SetOwnerUsage(1, {.mem_mib = -1}).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(*queue->Window(100, 9), before) << name;
  }
}

TEST(Queue, RefusesOptionsThatMakeNoSense) {
  const auto refused = [](const char* named, std::string_view name, const std::function<void(QueueOptions&)>& spoil) {
    QueueOptions options;
    options.capacity = kCapacity;
    spoil(options);
    const absl::Status status = MakeQueue(name, options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << named;
    EXPECT_NE(status.message().find(named), std::string::npos) << status;
  };
  refused("capacity", "drf", [](auto& o) { o.capacity = {}; });
  refused("capacity", "tetris", [](auto& o) { o.capacity = {}; });
  refused("gpu_milli", "fifo", [](auto& o) { o.capacity.gpu_milli = -1; });
  refused("las_thresholds_gpu_us[0]", "las", [](auto& o) { o.las_thresholds_gpu_us = {0}; });
  refused("las_thresholds_gpu_us[1]", "las", [](auto& o) { o.las_thresholds_gpu_us = {5, 5}; });
  refused("las_thresholds_gpu_us", "las", [](auto& o) { o.las_thresholds_gpu_us.assign(65, 1); });
  refused("aging_us_per_pct", "horus", [](auto& o) { o.aging_us_per_pct = -2; });
  refused("clusters", "horus-plus", [](auto& o) { o.clusters = 2; });
  refused("clusters", "horus-plus", [](auto& o) { o.clusters = 6; });
  for (const double share : {0.0, -1.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    refused("recluster_share", "horus-plus", [share](auto& o) { o.recluster_share = share; });
  }
  refused("patience_us", "fifo", [](auto& o) { o.patience_us = -1; });
}

TEST(Queue, AnEmptyOneHasNobodyToServe) {
  for (const std::string_view name : QueueNames()) {
    const auto queue = Make(name);
    EXPECT_EQ(*queue->Pop(0), std::nullopt) << name;
    EXPECT_TRUE(queue->Window(0, 5)->empty());
    ASSERT_TRUE(queue->Push(Job(1)).ok());
    EXPECT_EQ(*queue->Pop(0), 1u);
    EXPECT_EQ(*queue->Pop(0), std::nullopt) << name;
    EXPECT_EQ(queue->size(), 0u);
  }
}

TEST(Queue, PriorityComesBeforeEveryDiscipline) {
  for (const std::string_view name : QueueNames()) {
    const auto queue = Make(name);
    for (uint64_t id = 1; id <= 60; ++id) ASSERT_TRUE(queue->Push(RandomJob(id, id)).ok());
    for (const int32_t extreme : {std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}) {
      QueuedJob job = RandomJob(static_cast<uint64_t>(extreme), 5);
      job.priority = extreme;
      ASSERT_TRUE(queue->Push(job).ok());
    }
    int32_t before = std::numeric_limits<int32_t>::max();
    while (queue->size() > 0) {
      const int32_t priority = queue->Find(queue->Window(70, 1)->front())->priority;
      EXPECT_LE(priority, before) << name;
      before = priority;
      ASSERT_TRUE(queue->Pop(70).ok());
    }
    EXPECT_EQ(before, std::numeric_limits<int32_t>::min());
  }
}

TEST(Queue, TiesGoToTheEarliestThenTheLowestId) {
  for (const std::string_view name : QueueNames()) {
    const auto queue = Make(name);
    for (const uint64_t id : {9u, 4u, 7u}) ASSERT_TRUE(queue->Push(Job(id, 10)).ok());
    ASSERT_TRUE(queue->Push(Job(8, 5)).ok());
    EXPECT_THAT(*queue->Window(20, 9), ElementsAre(8, 4, 7, 9)) << name;
  }
}

TEST(Queue, WhoWaitedTooLongGoesFirstWithinItsPriority) {
  for (const std::string_view name : QueueNames()) {
    QueueOptions options;
    options.patience_us = 100;
    const auto queue = Make(name, options);
    QueuedJob large{.id = 1, .submit_us = 0};  // last by every discipline
    large.owner = 2;
    large.gpu_util_pct = {100, 100};
    large.attained_gpu_us = int64_t{1} << 40;
    ASSERT_TRUE(queue->Push(large).ok());
    ASSERT_TRUE(queue->SetOwnerUsage(2, {.gpu_milli = 8000}).ok());
    const auto push_small = [&](uint64_t id, int64_t submit_us, int32_t priority) {
      QueuedJob small{.id = id, .submit_us = submit_us, .priority = priority, .total_us = 1, .deadline_us = 1};
      ASSERT_TRUE(queue->Push(small).ok());
    };
    for (uint64_t id = 2; id < 8; ++id) push_small(id, 50, 0);
    push_small(9, 90, 1);
    if (name != "fifo" && name != "horus-plus") {
      EXPECT_EQ(queue->Window(99, 9)->back(), 1u) << name;
    }
    EXPECT_THAT(*queue->Window(100, 2), ElementsAre(9, 1)) << name;
  }
}

TEST(Queue, AJobThatLeftMayComeBack) {
  for (const std::string_view name : QueueNames()) {
    const auto queue = Make(name);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(queue->Push(Job(5)).ok()) << name;
      ASSERT_TRUE(queue->Remove(5).ok());
      EXPECT_EQ(queue->Remove(5).code(), absl::StatusCode::kNotFound);
    }
    EXPECT_EQ(queue->Find(5), nullptr);
  }
}

TEST(Queue, LookAheadIsThatOfHorus) {
  EXPECT_EQ(Make("horus")->look_ahead(), 5u);
  EXPECT_EQ(Make("horus-plus")->look_ahead(), 5u);
  EXPECT_EQ(Make("fifo")->look_ahead(), 1u);
}

TEST(Queue, ReportsTheMemoryOfItsJobs) {
  for (const std::string_view name : QueueNames()) {
    const auto queue = Make(name);
    const size_t empty = queue->bytes_held();
    for (uint64_t id = 1; id <= 1000; ++id) ASSERT_TRUE(queue->Push(RandomJob(id, id)).ok());
    EXPECT_GE(queue->bytes_held() - empty, 1000 * sizeof(QueuedJob)) << name;
    EXPECT_LE(queue->bytes_held(), 1'000'000u) << name;
  }
}

}  // namespace
}  // namespace horus
