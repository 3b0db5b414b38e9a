// SPDX-License-Identifier: Apache-2.0
// Every discipline against a sort of all its jobs, after every one of thousands of random changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "draw.h"
#include "naive_queue.h"
#include "queue/queue.h"

namespace horus {
namespace {

using testing_queue::NaiveQueue;
using testing_queue::RandomJob;

struct Case {
  std::string label, name;
  QueueOptions options;
};

QueueOptions Small() {
  QueueOptions options;
  options.capacity = {.gpu_milli = 64'000, .cpu_milli = 100'000, .mem_mib = 65'536};
  options.las_thresholds_gpu_us = {10, 20};
  return options;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const std::string_view name : QueueNames()) {
    std::string label(name);
    std::replace(label.begin(), label.end(), '-', '_');
    cases.push_back({label, std::string(name), Small()});
    cases.push_back({label + "_with_patience", std::string(name), Small()});
    cases.back().options.patience_us = 45;
  }
  cases.push_back({"las_continuous", "las", Small()});
  cases.back().options.las_continuous = true;
  cases.push_back({"horus_aging", "horus", Small()});
  cases.back().options.aging_us_per_pct = 1;
  cases.push_back({"horus_plus_aging", "horus-plus", Small()});
  cases.back().options.aging_us_per_pct = 1;
  cases.push_back({"horus_plus_rarely_clustered", "horus-plus", Small()});
  cases.back().options.recluster_share = 1;
  cases.back().options.clusters = 5;
  cases.push_back({"drf_one_resource", "drf", Small()});
  cases.back().options.capacity = {.gpu_milli = 0, .cpu_milli = 50'000, .mem_mib = 0};
  return cases;
}

class Oracle : public testing::TestWithParam<Case> {};

// One random change, made to both.
class Pair {
 public:
  explicit Pair(const Case& c) : queue_(*MakeQueue(c.name, c.options)), naive_(c.name, c.options) {}

  void Step(uint64_t step) {
    draws_ = 16 * step;
    now_ += Int(-3, 8);
    const int64_t kind = naive_.jobs().empty() ? 0 : Int(0, 99);
    if (kind < (naive_.jobs().size() < 40 ? 45 : 25)) {
      QueuedJob job = RandomJob(next_id_ * 7 % 1009, step + 1);
      job.submit_us += now_;
      ++next_id_;
      ASSERT_TRUE(queue_->Push(job).ok());
      naive_.Push(job);
    } else if (kind < 55) {
      const uint64_t id = AnyId();
      ASSERT_TRUE(queue_->Remove(id).ok());
      naive_.Remove(id);
    } else if (kind < 62) {
      const uint64_t id = AnyId();
      ASSERT_TRUE(queue_->Serve(id, now_).ok());
      naive_.Serve(id, now_);
    } else if (kind < 80) {
      const JobProgress progress{.attained_gpu_us = Int(-1, 40), .remaining_us = Int(-1, 30)};
      const uint64_t id = AnyId();
      ASSERT_TRUE(queue_->Update(id, progress).ok());
      naive_.Update(id, progress);
    } else if (kind < 84) {
      const QueueResources capacity{.gpu_milli = Int(1, 9) * 10'000, .cpu_milli = Int(0, 9) * 10'000, .mem_mib = 0};
      ASSERT_TRUE(queue_->SetCapacity(capacity).ok());
      naive_.SetCapacity(capacity);
    } else if (kind < 88) {
      const QueueResources usage{.gpu_milli = Int(0, 2) * 4000, .cpu_milli = Int(0, 1) * 5000, .mem_mib = 0};
      const auto owner = static_cast<uint64_t>(Int(1, 6));
      ASSERT_TRUE(queue_->SetOwnerUsage(owner, usage).ok());
      naive_.SetOwnerUsage(owner, usage);
    } else {
      const uint64_t id = naive_.First(now_);
      ASSERT_EQ(*queue_->Pop(now_), id);
      naive_.Serve(id, now_);
    }
  }
  // Twice: looking changes nothing.
  void Compare() {
    const auto count = static_cast<size_t>(Int(0, 50));
    const std::vector<uint64_t> expected = naive_.Window(now_, count);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(*queue_->Window(now_, count), expected) << "now " << now_;
    ASSERT_EQ(queue_->size(), naive_.jobs().size());
  }

 private:
  int64_t Int(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(Draw(draws_++) * static_cast<double>(most - least + 1));
  }
  uint64_t AnyId() {
    return naive_.jobs()[static_cast<size_t>(Int(0, static_cast<int64_t>(naive_.jobs().size()) - 1))].id;
  }

  std::unique_ptr<Queue> queue_;
  NaiveQueue naive_;
  int64_t now_ = 0;
  uint64_t draws_ = 0, next_id_ = 0;
};

TEST_P(Oracle, ServesInTheOrderOfASort) {
  constexpr uint64_t kSteps = 500;  // fewer than there are ids
  Pair pair(GetParam());
  for (uint64_t step = 1; step <= kSteps; ++step) {
    pair.Step(step);
    if (HasFatalFailure()) FAIL() << "step " << step;
    pair.Compare();
    if (HasFatalFailure()) FAIL() << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Disciplines, Oracle, testing::ValuesIn(Cases()),
                         [](const auto& tested) { return tested.param.label; });

}  // namespace
}  // namespace horus
