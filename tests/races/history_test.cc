// SPDX-License-Identifier: Apache-2.0
// Plans, their application and releases by four threads at once: as if one thread had made the calls in some order.
#include "history.h"

#include <atomic>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace horus_races {
namespace {

constexpr int kThreads = 4;
constexpr int kOperations = 7;   // of each thread: histories stay short enough to be searched
constexpr uint64_t kJobs = 6;    // ids that the threads share, so that they meet
constexpr int kHistories = 150;  // HORUS_RACE_HISTORIES runs more

horus::Cluster SmallCluster() {
  horus::Cluster cluster;
  for (uint64_t id = 1; id <= 2; ++id) {
    cluster.AddNode({.id = id, .cpu_milli = 3'000, .mem_mib = 65'536, .devices = {{.gpu_type = "t4"}}});
  }
  return cluster;
}

// One thread's calls; the random numbers choose them and the pauses between them.
std::vector<Operation> Work(horus::Cluster& cluster, uint32_t seed, std::atomic<uint64_t>& moment) {
  std::mt19937 random(seed);
  const auto draw = [&](uint64_t range) { return std::uniform_int_distribution<uint64_t>(0, range - 1)(random); };
  horus::Placer placer({.policy = kPolicy});
  std::shared_ptr<const horus::Plan> plan;
  std::vector<Operation> done;
  while (done.size() < kOperations) {
    Operation one;
    const uint64_t choice = draw(10);
    one.kind = choice < 4 ? Kind::kPlan : choice < 7 && plan ? Kind::kApply : choice < 9 ? Kind::kRelease : Kind::kLook;
    one.job = 1 + draw(kJobs);
    if (one.kind == Kind::kApply) one.plan = plan;
    for (uint64_t pause = draw(4); pause > 0; --pause) std::this_thread::yield();
    one.began = moment.fetch_add(1);
    one.answer = Do(one, cluster, placer, &plan);
    one.ended = moment.fetch_add(1);
    done.push_back(std::move(one));
  }
  return done;
}

std::vector<Operation> Record(horus::Cluster& cluster, uint32_t seed) {
  std::atomic<uint64_t> moment = 0;
  std::atomic<int> ready = 0;
  std::vector<std::vector<Operation>> each(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ready.fetch_add(1);
      while (ready.load() < kThreads) std::this_thread::yield();
      each[static_cast<size_t>(i)] = Work(cluster, seed * kThreads + static_cast<uint32_t>(i), moment);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Operation> history;
  for (const auto& one : each) history.insert(history.end(), one.begin(), one.end());
  return history;
}

int Histories() {
  const char* wanted = std::getenv("HORUS_RACE_HISTORIES");
  return wanted == nullptr ? kHistories : std::stoi(wanted);
}

TEST(History, OfPlansAppliesAndReleasesIsThatOfSomeSingleThread) {
  int overlapping = 0, conflicts = 0;
  for (int i = 0; i < Histories(); ++i) {
    horus::Cluster cluster = SmallCluster();
    const std::vector<std::byte> before = cluster.Snapshot();
    std::vector<Operation> history = Record(cluster, static_cast<uint32_t>(i));
    Operation last;  // the state that all of it led to
    last.began = 1'000'000;
    horus::Placer placer({.policy = kPolicy});
    last.answer = Do(last, cluster, placer, nullptr);
    last.ended = last.began + 1;
    history.push_back(last);
    for (const Operation& one : history) {
      overlapping += one.ended > one.began + 1 && one.began < last.began ? 1 : 0;
      conflicts += one.answer.status == HORUS_ERR_CONFLICT ? 1 : 0;
    }
    ASSERT_TRUE(IsLinearisable(horus::Cluster::Restore(before), history)) << "history " << i << "\n"
                                                                          << Describe(history);
  }
  // Else the threads never met, and nothing was tried.
  EXPECT_GT(overlapping, 0);
  EXPECT_GT(conflicts, 0);
}

Operation Told(Kind kind, uint64_t job, horus_status status, uint64_t began, uint64_t ended) {
  Operation one{.kind = kind, .job = job, .began = began, .ended = ended};
  one.answer.status = status;
  return one;
}

// What the check is worth: histories that no single thread can have had are refused.
TEST(History, WithAnAnswerThatNoOrderGivesIsRefused) {
  horus::Cluster cluster = SmallCluster();
  horus::Placer placer({.policy = kPolicy});
  const std::vector<std::byte> before = cluster.Snapshot();
  const horus::Cluster start = horus::Cluster::Restore(before);
  std::vector<Operation> history(3);
  history[0] = {.kind = Kind::kPlan, .job = 1, .began = 0, .ended = 1};
  std::shared_ptr<const horus::Plan> plan;
  history[0].answer = Do(history[0], cluster, placer, &plan);
  history[1] = {.kind = Kind::kApply, .job = 1, .plan = plan, .began = 2, .ended = 5};
  history[1].answer = Do(history[1], cluster, placer, nullptr);
  history[2] = Told(Kind::kRelease, 1, HORUS_OK, 3, 4);  // within the application: it may have come after
  EXPECT_TRUE(IsLinearisable(start, history));
  history[2] = Told(Kind::kRelease, 1, HORUS_ERR_NOT_FOUND, 3, 4);  // or before
  EXPECT_TRUE(IsLinearisable(start, history));
  history[2] = Told(Kind::kRelease, 1, HORUS_ERR_NOT_FOUND, 6, 7);  // but not before once it had ended
  EXPECT_FALSE(IsLinearisable(start, history));
  history[2] = Told(Kind::kRelease, 2, HORUS_OK, 3, 4);  // a job that never was
  EXPECT_FALSE(IsLinearisable(start, history));
  history[2] = history[1];  // the same plan taken twice
  EXPECT_FALSE(IsLinearisable(start, history));
}

}  // namespace
}  // namespace horus_races
