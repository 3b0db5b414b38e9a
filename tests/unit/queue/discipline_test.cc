// SPDX-License-Identifier: Apache-2.0
// The rule of each discipline on a few jobs, computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "queue/queue.h"

namespace horus {
namespace {

using testing::ElementsAre;

std::unique_ptr<Queue> Filled(std::string_view name, const std::vector<QueuedJob>& jobs, const QueueOptions& options) {
  auto queue = *MakeQueue(name, options);
  for (const QueuedJob& job : jobs) EXPECT_TRUE(queue->Push(job).ok());
  return queue;
}
std::vector<uint64_t> Order(std::string_view name, const std::vector<QueuedJob>& jobs, int64_t now_us = 0,
                            const QueueOptions& options = {}) {
  return *Filled(name, jobs, options)->Window(now_us, jobs.size());
}

TEST(Fifo, ServesInOrderOfSubmission) {
  EXPECT_THAT(Order("fifo", {{.id = 1, .submit_us = 30}, {.id = 2, .submit_us = 10}, {.id = 3, .submit_us = 20}}),
              ElementsAre(2, 3, 1));
}

TEST(Sjf, ServesTheShortestAndUnknownRunTimesLast) {
  EXPECT_THAT(Order("sjf", {{.id = 1, .total_us = 30}, {.id = 2}, {.id = 3, .total_us = 20}}), ElementsAre(3, 1, 2));
}

TEST(Srtf, ServesWhatHasLeastLeft) {
  EXPECT_THAT(Order("srtf", {{.id = 1, .total_us = 30},
                             {.id = 2, .total_us = 90, .remaining_us = 10},
                             {.id = 3, .total_us = 20},
                             {.id = 4, .total_us = 99, .remaining_us = 0},
                             {.id = 5}}),
              ElementsAre(4, 2, 3, 1, 5));
}

TEST(Srtf, AnUpdateMovesAJob) {
  const auto queue = Filled("srtf", {{.id = 1, .total_us = 30}, {.id = 2, .total_us = 40}}, {});
  ASSERT_TRUE(queue->Update(2, {.attained_gpu_us = 20, .remaining_us = 20}).ok());
  EXPECT_EQ(queue->Find(2)->attained_gpu_us, 20);
  EXPECT_THAT(*queue->Window(0, 2), ElementsAre(2, 1));
}

TEST(Las, ServesTheLowerQueueFirstAndEachInOrderOfSubmission) {
  QueueOptions options;
  options.las_thresholds_gpu_us = {100};
  const std::vector<QueuedJob> jobs = {{.id = 1, .submit_us = 1, .attained_gpu_us = 100},
                                       {.id = 2, .submit_us = 2, .attained_gpu_us = 99},
                                       {.id = 3, .submit_us = 3, .attained_gpu_us = 0},
                                       {.id = 4, .submit_us = 4, .attained_gpu_us = 101}};
  EXPECT_THAT(Order("las", jobs, 0, options), ElementsAre(2, 3, 1, 4));
  options.las_continuous = true;
  EXPECT_THAT(Order("las", jobs, 0, options), ElementsAre(3, 2, 1, 4));
}

TEST(Ftf, ServesTheJobThatIsLatestForItsFairShare) {
  // rho at 100: (100 + 50) / 100 = 1.5; (40 + 10) / 20 = 2.5; unknown.
  const std::vector<QueuedJob> jobs = {{.id = 1, .submit_us = 0, .total_us = 50, .ideal_us = 100},
                                       {.id = 2, .submit_us = 60, .total_us = 10, .ideal_us = 20},
                                       {.id = 3, .submit_us = 0}};
  EXPECT_THAT(Order("ftf", jobs, 100), ElementsAre(2, 1, 3));
}

TEST(Ftf, TheOrderTurnsWithTimeAlone) {
  // rho of 1: (t + 100) / 100; of 2: (t - 60 + 10) / 20. Equal at 87.5.
  const auto queue = Filled("ftf",
                            {{.id = 1, .submit_us = 0, .total_us = 100, .ideal_us = 100},
                             {.id = 2, .submit_us = 60, .total_us = 10, .ideal_us = 20}},
                            {});
  EXPECT_THAT(*queue->Window(87, 2), ElementsAre(1, 2));
  EXPECT_THAT(*queue->Window(88, 2), ElementsAre(2, 1));
  EXPECT_THAT(*queue->Window(87, 2), ElementsAre(1, 2));
}

TEST(Ftf, ComparesTimesThatDoublesCannotTellApart) {
  // rho: (T + 1) / T and 1, with T beyond 53 bits.
  constexpr int64_t kLong = kMostQueueTimeUs - 1;
  EXPECT_THAT(Order("ftf", {{.id = 1, .total_us = kLong}, {.id = 2, .submit_us = -1, .total_us = kLong}}, 0),
              ElementsAre(2, 1));
  EXPECT_THAT(Order("ftf", {{.id = 1, .total_us = kLong, .ideal_us = kLong},
                            {.id = 2, .total_us = kLong, .ideal_us = kLong - 1}}),
              ElementsAre(2, 1));
}

QueueOptions Cluster() {
  QueueOptions options;
  options.capacity = {.gpu_milli = 10'000, .cpu_milli = 100'000, .mem_mib = 1000};
  return options;
}

TEST(Drf, AWindowFillsTheSmallestDominantShareStepByStep) {
  // Each job of owner 1 takes 10 % of the GPUs, each of owner 2 20 % of the memory: two of 1 for one of 2.
  std::vector<QueuedJob> jobs;
  for (uint64_t id = 1; id <= 4; ++id) jobs.push_back({.id = id, .owner = 1, .submit_us = static_cast<int64_t>(id)});
  for (uint64_t id = 5; id <= 6; ++id) {
    jobs.push_back({.id = id, .owner = 2, .submit_us = static_cast<int64_t>(id), .mem_mib = 200});
  }
  // Shares 0, 0 -> 1; .1, 0 -> 5; .1, .2 -> 2; .2, .2 -> 3 (earlier); .3, .2 -> 6; -> 4.
  EXPECT_THAT(Order("drf", jobs, 0, Cluster()), ElementsAre(1, 5, 2, 3, 6, 4));
}

TEST(Drf, ServingChargesTheOwnerAndUsageReplacesIt) {
  const std::vector<QueuedJob> jobs = {{.id = 1, .owner = 1, .submit_us = 1},
                                       {.id = 2, .owner = 1, .submit_us = 2},
                                       {.id = 3, .owner = 2, .submit_us = 3}};
  const auto queue = Filled("drf", jobs, Cluster());
  ASSERT_TRUE(queue->Serve(1, 0).ok());
  EXPECT_THAT(*queue->Window(0, 2), ElementsAre(3, 2));
  ASSERT_TRUE(queue->SetOwnerUsage(1, {}).ok());  // it ended
  EXPECT_THAT(*queue->Window(0, 2), ElementsAre(2, 3));
}

TEST(Drf, RemovingChargesNobody) {
  const std::vector<QueuedJob> jobs = {{.id = 1, .owner = 1, .submit_us = 1},
                                       {.id = 2, .owner = 1, .submit_us = 2},
                                       {.id = 3, .owner = 2, .submit_us = 3}};
  const auto queue = Filled("drf", jobs, Cluster());
  ASSERT_TRUE(queue->Remove(1).ok());
  EXPECT_THAT(*queue->Window(0, 2), ElementsAre(2, 3));
}

TEST(Drf, AnotherCapacityMakesAnotherResourceDominant) {
  const auto queue = Filled("drf", {{.id = 1, .owner = 1}, {.id = 2, .owner = 2}}, Cluster());
  ASSERT_TRUE(queue->SetOwnerUsage(1, {.gpu_milli = 1000, .cpu_milli = 0, .mem_mib = 0}).ok());    // 10 %
  ASSERT_TRUE(queue->SetOwnerUsage(2, {.gpu_milli = 0, .cpu_milli = 20'000, .mem_mib = 0}).ok());  // 20 %
  EXPECT_THAT(*queue->Window(0, 2), ElementsAre(1, 2));
  ASSERT_TRUE(queue->SetCapacity({.gpu_milli = 4000, .cpu_milli = 100'000, .mem_mib = 1000}).ok());
  EXPECT_THAT(*queue->Window(0, 2), ElementsAre(2, 1));
}

TEST(Tetris, ServesTheLeastShareTimesTimeFirst) {
  // (0.1 + 0.5) x 10 = 6; 0.2 x 20 = 4; 0.1 x 90 = 9; unknown.
  EXPECT_THAT(Order("tetris",
                    {{.id = 1, .cpu_milli = 50'000, .total_us = 10},
                     {.id = 2, .gpus = 2, .total_us = 20},
                     {.id = 3, .total_us = 90},
                     {.id = 4}},
                    0, Cluster()),
              ElementsAre(2, 1, 3, 4));
}

TEST(Edf, ServesTheEarliestDeadlineAndNoneLast) {
  EXPECT_THAT(Order("edf", {{.id = 1}, {.id = 2, .deadline_us = 50}, {.id = 3, .deadline_us = -20}}),
              ElementsAre(3, 2, 1));
}

TEST(Horus, ServesTheSmallestPredictedUtilisation) {
  EXPECT_THAT(Order("horus", {{.id = 1, .gpu_util_pct = {60, 60}},
                              {.id = 2, .gpu_util_pct = {20, 90}},
                              {.id = 3, .gpu_util_pct = {30, 40}}}),
              ElementsAre(2, 3, 1));
}

TEST(Horus, WaitingOutweighsUtilisationOnlyWhereAgingIsAsked) {
  const std::vector<QueuedJob> jobs = {{.id = 1, .submit_us = 0, .gpu_util_pct = {80, 80}},
                                       {.id = 2, .submit_us = 590, .gpu_util_pct = {20, 20}},
                                       {.id = 3, .submit_us = 610, .gpu_util_pct = {20, 20}}};
  EXPECT_THAT(Order("horus", jobs, 9999), ElementsAre(2, 3, 1));
  QueueOptions options;
  options.aging_us_per_pct = 10;  // 60 per cent = 600 us
  EXPECT_THAT(Order("horus", jobs, 9999, options), ElementsAre(2, 1, 3));
}

}  // namespace
}  // namespace horus
