// SPDX-License-Identifier: Apache-2.0
// horus-plus: the cluster chosen first, credit in the long run, nobody starves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "draw.h"
#include "queue/queue.h"

namespace horus {
namespace {

using testing::ElementsAre;

constexpr int64_t kSecond = 1'000'000;

QueuedJob Small(uint64_t id, int64_t submit_us) {
  return {.id = id, .submit_us = submit_us, .gpu_util_pct = {10, 20}, .gpu_mem_mib = {1000, 1000}};
}
QueuedJob Large(uint64_t id, int64_t submit_us) {
  return {.id = id,
          .submit_us = submit_us,
          .tasks = 8,
          .gpus = 64,
          .gpu_util_pct = {90, 99},
          .gpu_mem_mib = {30'000, 30'000}};
}
std::unique_ptr<Queue> Make(const std::vector<QueuedJob>& jobs, QueueOptions options = {}) {
  auto queue = *MakeQueue("horus-plus", options);
  for (const QueuedJob& job : jobs) EXPECT_TRUE(queue->Push(job).ok());
  return queue;
}

TEST(HorusPlus, ServesTheClusterOfTheLargestMedianWaitTimesLength) {
  // Small: median wait 10 x 3 = 30; large: 50 x 1 = 50.
  const auto queue = Make({Small(1, 90), Small(2, 90), Small(3, 90), Large(4, 50)});
  EXPECT_EQ(queue->Window(100, 1)->front(), 4u);
  // 30 x 3 = 90 against 70.
  EXPECT_EQ(queue->Window(120, 1)->front(), 1u);
}

TEST(HorusPlus, InsideAClusterTheSmallestUtilisationGoesFirst) {
  std::vector<QueuedJob> jobs = {Small(1, 0), Small(2, 0), Small(3, 0), Large(4, 1000)};
  jobs[0].gpu_util_pct = {14, 20};
  jobs[1].gpu_util_pct = {12, 20};
  EXPECT_THAT(*Make(jobs)->Window(1000, 3), ElementsAre(3, 2, 1));
}

TEST(HorusPlus, ClustersAreServedInProportionToTheirScores) {
  // 300 small and 100 large that came together: three services to one.
  std::vector<QueuedJob> jobs;
  for (uint64_t id = 0; id < 400; ++id) jobs.push_back(id % 4 == 0 ? Large(id, 0) : Small(id, 0));
  const auto queue = Make(jobs);
  int large = 0;
  const auto window = *queue->Window(kSecond, 200);
  for (const uint64_t id : window) large += id % 4 == 0 ? 1 : 0;
  EXPECT_NEAR(large, 50, 3);
}

// A large job against a stream of small ones that keeps the queue full.
TEST(HorusPlus, AJobAmongMasteringOthersIsServedWithinAKnownNumberOfServices) {
  for (const bool alike : {false, true}) {
    QueueOptions options;
    options.aging_us_per_pct = kSecond;  // 90 % are outweighed in 90 s
    auto queue = Make({}, options);
    int64_t now = 0;
    uint64_t next = 1;
    const auto push_small = [&] {
      QueuedJob job = Small(next, now);
      job.gpu_util_pct = {static_cast<float>(std::floor(Draw(next) * 20)), 30};
      ++next;
      ASSERT_TRUE(queue->Push(job).ok());
    };
    for (int i = 0; i < 400; ++i) push_small();
    QueuedJob victim = alike ? Small(0, now) : Large(0, now);
    if (alike) victim.gpu_util_pct = {30, 30};
    ASSERT_TRUE(queue->Push(victim).ok());
    int services = 0;
    for (; queue->Find(0) != nullptr && services < 5000; ++services) {
      now += kSecond;
      ASSERT_TRUE(queue->Pop(now).ok());
      push_small();
    }
    // Beside others of its kind: the 400 before it and those of the next 30 s. Alone in its cluster: clusters x
    // (1 + clusters x least share) / least share = 96 services at the most.
    EXPECT_LE(services, alike ? 400 + 30 + 96 : 96) << alike;
    EXPECT_GT(services, 1);
  }
}

TEST(HorusPlus, CreditSurvivesANewClustering) {
  // The large job's cluster earns one service in twenty; every fourth push clusters anew.
  QueueOptions options;
  options.recluster_share = 0.01;
  auto queue = Make({}, options);
  int64_t now = 0;
  uint64_t next = 1;
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(queue->Push(Small(next++, now)).ok());
  ASSERT_TRUE(queue->Push(Large(0, now)).ok());
  int services = 0;
  for (; queue->Find(0) != nullptr && services < 1000; ++services) {
    now += kSecond;
    ASSERT_TRUE(queue->Pop(now).ok());
    QueuedJob job = Small(next, now);
    job.gpu_util_pct.estimate = static_cast<float>(Draw(next) * 20);
    ++next;
    ASSERT_TRUE(queue->Push(job).ok());
  }
  EXPECT_LE(services, 96);
}

TEST(HorusPlus, TheSameHistoryGivesTheSameOrder) {
  const auto run = [] {
    std::vector<uint64_t> served;
    auto queue = Make({});
    for (uint64_t i = 0; i < 500; ++i) {
      QueuedJob job = Draw(i) < 0.5 ? Small(i, static_cast<int64_t>(i)) : Large(i, static_cast<int64_t>(i));
      job.gpu_util_pct.estimate = static_cast<float>(Draw(i + 1000) * 20);
      EXPECT_TRUE(queue->Push(job).ok());
      if (i % 3 == 0) served.push_back(**queue->Pop(static_cast<int64_t>(i) + 5));
    }
    return served;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace horus
