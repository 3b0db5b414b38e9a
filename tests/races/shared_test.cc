// SPDX-License-Identifier: Apache-2.0
// Handles that threads may share: all of them get the answers that one alone gets, while models are committed and
// counted.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "horus/horus.hpp"

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 40;

// Each round of each thread, all threads at once.
void InThreads(const std::function<void(int thread, int round)>& body) {
  std::atomic<int> ready = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      ready.fetch_add(1);
      while (ready.load() < kThreads) std::this_thread::yield();
      for (int round = 0; round < kRounds; ++round) body(thread, round);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

horus::Demand DemandOf(uint64_t profile) {
  horus::Demand demand;
  demand.profile_id = profile;
  demand.gpu_util_pct = static_cast<float>(30 + 5 * (profile % 5));
  demand.mem_bw_util_pct = 20;
  demand.mem_mib = 2'000;
  demand.step_time_us = 50'000;
  return demand;
}

horus::Job JobOf(uint64_t id) { return {.id = id, .cpu_milli = 1'000, .demands = {{"", DemandOf(1 + id % 7)}}}; }

horus::Cluster ClusterOf(uint64_t nodes) {
  horus::Cluster cluster;
  for (uint64_t id = 1; id <= nodes; ++id) {
    cluster.AddNode({.id = id,
                     .cpu_milli = 64'000,
                     .mem_mib = 262'144,
                     .devices = {{.gpu_type = "v100-pcie-16gb"}, {.gpu_type = "v100-pcie-16gb"}}});
  }
  return cluster;
}

const horus::SharedDevice kDevice = {.gpu_type = "v100-pcie-16gb"};

TEST(Shared, AModelAnswersEveryThreadAlike) {
  const horus::Interference model;
  const std::vector<horus::Demand> tenants = {DemandOf(1), DemandOf(2), DemandOf(3)};
  const std::vector<horus::Slowdown> expected = model.Slowdowns(kDevice, tenants);
  std::atomic<int> wrong = 0;
  InThreads([&](int, int) { wrong += model.Slowdowns(kDevice, tenants) == expected ? 0 : 1; });
  EXPECT_EQ(wrong, 0);
}

TEST(Shared, OneModelServesThePlacersOfAllThreads) {
  const horus::Interference model;
  const horus::Cluster cluster = ClusterOf(4);
  std::vector<std::vector<horus::Slot>> expected;
  horus::Placer alone({.interference = &model});
  for (int round = 0; round < kRounds; ++round) {
    expected.push_back(alone.MakePlan(cluster, JobOf(static_cast<uint64_t>(round + 1))).at(0).slots);
  }
  std::vector<std::unique_ptr<horus::Placer>> placers;
  for (int i = 0; i < kThreads; ++i) {
    placers.push_back(std::make_unique<horus::Placer>(horus::PlacerOptions{.interference = &model}));
  }
  std::atomic<int> wrong = 0;
  InThreads([&](int thread, int round) {
    const horus::Plan plan =
        placers[static_cast<size_t>(thread)]->MakePlan(cluster, JobOf(static_cast<uint64_t>(round + 1)));
    wrong += plan.at(0).slots == expected[static_cast<size_t>(round)] ? 0 : 1;
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Shared, APlanIsReadByAllAndItsTextsAreWrittenOnce) {
  const horus::Cluster cluster = ClusterOf(2);
  horus::Placer placer;
  const std::vector<horus::Job> jobs = {JobOf(1), JobOf(2)};
  for (int round = 0; round < kRounds; ++round) {
    const horus::Plan plan = placer.MakePlan(cluster, jobs);
    std::vector<std::string> texts(kThreads);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { texts[i] = plan.at(1).text; });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
  }
}

// One thread observes and commits, the others ask whichever model is the newest: never a mixture of two.
TEST(Shared, CommittedModelsAreUsedWhileNewOnesAreMade) {
  std::mutex mutex;  // of `newest`, not of the model
  auto newest = std::make_shared<const horus::Interference>();
  horus::Observations observations;
  std::atomic<int> wrong = 0;
  const std::vector<horus::Demand> tenants = {DemandOf(1), DemandOf(2)};
  InThreads([&](int thread, int round) {
    std::shared_ptr<const horus::Interference> model;
    {
      const std::lock_guard lock(mutex);
      model = newest;
    }
    if (thread == 0) {
      observations.AddSlowdown(
          {.device = kDevice, .job = tenants[0], .co_tenants = {tenants[1]}, .slowdown = 1.5 + 0.05 * (round % 5)});
      auto made = std::make_shared<const horus::Interference>(model->Commit(observations));
      wrong += made->epoch() != model->epoch() ? 0 : 1;
      const std::lock_guard lock(mutex);
      newest = std::move(made);
      return;
    }
    const std::vector<horus::Slowdown> first = model->Slowdowns(kDevice, tenants);
    wrong += model->Slowdowns(kDevice, tenants) == first ? 0 : 1;
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Shared, MetricsCountEveryCallAndIsReadMeanwhile) {
  horus::Cluster cluster = ClusterOf(1);
  std::atomic<int> lines = 0, unordered = 0;
  const horus::Metrics metrics({.log = [&](int32_t, const char*) { ++lines; }});
  cluster.SetMetrics(&metrics);
  InThreads([&](int thread, int round) {
    try {
      cluster.Release(static_cast<uint64_t>(1 + thread));
    } catch (const horus::Error&) {
      // Expected: nobody is there.
    }
    if (round % 8 == 0) unordered += metrics.Text().find("horus_conflicts_total 0\n") == std::string::npos ? 1 : 0;
  });
  double calls = 0;
  for (const horus::Metric& metric : metrics.Rows()) {
    if (metric.name == "horus_calls_total" && metric.labels == "call=\"release\",status=\"NOT_FOUND\"") {
      calls = metric.value;
    }
  }
  EXPECT_EQ(calls, kThreads * kRounds);
  EXPECT_EQ(lines, kThreads * kRounds);
  EXPECT_EQ(unordered, 0);
}

TEST(Shared, SnapshotsAndQueriesRunBesideWriters) {
  horus::Cluster cluster = ClusterOf(4);
  const uint64_t empty = cluster.info().state_hash;
  std::vector<std::unique_ptr<horus::Placer>> placers;
  for (int i = 0; i < kThreads; ++i) placers.push_back(std::make_unique<horus::Placer>());
  std::atomic<int> wrong = 0;
  InThreads([&](int thread, int round) {
    if (thread < 2) {
      const auto id = static_cast<uint64_t>(thread * 1000 + round + 1);
      for (;;) {
        const horus::Plan plan = placers[static_cast<size_t>(thread)]->MakePlan(cluster, JobOf(id));
        try {
          cluster.Apply(plan);
          break;
        } catch (const horus::Error& error) {
          if (error.status() != HORUS_ERR_CONFLICT) throw;
        }
      }
      cluster.Release(id);
      return;
    }
    // Whatever the moment: a whole state, which restores to itself.
    const std::vector<std::byte> bytes = cluster.Snapshot();
    const horus::Cluster copy = horus::Cluster::Restore(bytes);
    wrong += copy.Snapshot() == bytes && copy.info().jobs == copy.Jobs().size() ? 0 : 1;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cluster.info().state_hash, empty);
}

#ifdef HORUS_GRAPHS_DIR
TEST(Shared, APredictorAndAGraphAnswerEveryThreadAlikeWhileCommitsGoOn) {
  const horus::Graph graph = horus::Graph::FromFile(HORUS_GRAPHS_DIR "/resnet50.onnx");
  const horus::Predictor predictor;
  const std::vector<std::string> types = {"v100-pcie-16gb", "t4"};
  const std::vector<horus::Demand> expected = predictor.Demands(graph, {.batch = 8}, types);
  horus::Observations observations;
  std::atomic<int> wrong = 0;
  InThreads([&](int thread, int round) {
    if (thread == 0) {
      horus_demand_observation seen = HORUS_DEMAND_OBSERVATION_INIT;
      seen.profile_id = expected[0].profile_id;
      seen.gpu_type = "v100-pcie-16gb";
      seen.measured = HORUS_OBSERVED_STEP_TIME;
      seen.step_time_us = 1'000 + round;
      observations.Add(seen);
      const horus::Predictor committed = predictor.Commit(observations);  // shares the cache of the other
      const horus::Demand told = committed.Demands(graph, {.batch = 8}, types)[0];
      wrong += (told.flags & HORUS_DEMAND_MEASURED) != 0 ? 0 : 1;
      return;
    }
    // A batch of its own now and then: the cache is written too.
    (void)predictor.Demands(graph, {.batch = 1 + (thread * kRounds + round) % 16}, types);
    const std::vector<horus::Demand> demands = predictor.Demands(graph, {.batch = 8}, types);
    wrong += demands[0].step_time_us == expected[0].step_time_us && demands[1].mem_mib == expected[1].mem_mib ? 0 : 1;
  });
  EXPECT_EQ(wrong, 0);
}
#endif

}  // namespace
