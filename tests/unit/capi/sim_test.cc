// SPDX-License-Identifier: Apache-2.0
// A simulation through the C ABI is that of the sim room: the same jobs, the same metrics, to the last bit.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "capi/handles.h"
#include "capi/sim_handles.h"
#include "draw.h"
#include "sim/metrics.h"
#include "sim/simulator.h"

namespace horus {
namespace {

constexpr size_t kJobs = 80;
constexpr const char* kTypes[] = {"v100-pcie-16gb", "a100-40gb"};
constexpr const char* kNames[] = {"a", "b", "c"};

template <typename T, void (*Free)(T*)>
struct FreeBy {
  void operator()(T* handle) const { Free(handle); }
};
template <typename T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, FreeBy<T, Free>>;

// Jobs, demands and a cluster as columns and structs.
struct Given {
  std::vector<uint64_t> ids;
  std::vector<int64_t> submit_us, duration_us;
  std::vector<int32_t> gpus, priorities;
  std::vector<uint32_t> profiles, owners;
  std::vector<horus_demand> demands;
  std::vector<const horus_demand*> demand_pointers;
  std::vector<const char*> demand_profiles, demand_types;
  Owned<horus_trace, horus_trace_free> trace;
  Owned<horus_truth, horus_truth_free> truth;
  Owned<horus_cluster, horus_cluster_free> cluster;
  horus_profile_demands beliefs = HORUS_PROFILE_DEMANDS_INIT;

  Given() {
    AddTrace();
    AddDemands();
    horus_truth* made = nullptr;
    EXPECT_EQ(horus_truth_from_model(nullptr, nullptr, &beliefs, &made, nullptr), HORUS_OK);
    truth.reset(made);
    AddCluster();
  }
  void AddTrace() {
    for (size_t i = 0; i < kJobs; ++i) {
      ids.push_back(1000 - i);
      submit_us.push_back(static_cast<int64_t>(Draw(i) * 2e9));
      duration_us.push_back(1 + static_cast<int64_t>(Draw(1000 + i) * 6e8));
      gpus.push_back(Draw(2000 + i) < 0.2 ? 2 : 1);
      priorities.push_back(Draw(3000 + i) < 0.1 ? 1 : 0);
      profiles.push_back(static_cast<uint32_t>(i % std::size(kNames)));
      owners.push_back(static_cast<uint32_t>(i % 2));
    }
    horus_trace_columns columns = HORUS_TRACE_COLUMNS_INIT;
    columns.count = kJobs;
    columns.ids = ids.data();
    columns.submit_us = submit_us.data();
    columns.duration_us = duration_us.data();
    columns.gpus_per_task = gpus.data();
    columns.priorities = priorities.data();
    columns.profile_count = std::size(kNames);
    columns.profile_names = kNames;
    columns.profiles = profiles.data();
    columns.owner_count = 2;
    columns.owner_names = kNames;
    columns.owners = owners.data();
    horus_trace* made = nullptr;
    EXPECT_EQ(horus_trace_create(&columns, &made, nullptr), HORUS_OK);
    trace.reset(made);
  }
  void AddDemands() {
    for (size_t i = 0; i < std::size(kNames) * std::size(kTypes); ++i) {
      horus_demand demand = HORUS_DEMAND_INIT;
      demand.flags = HORUS_DEMAND_GIVEN;
      demand.profile_id = 1 + i / 2;
      demand.gpu_util_pct = 25 + 15 * static_cast<float>(i / 2);
      demand.mem_mib = 3000;
      demand.step_time_us = i % 2 == 0 ? 100'000 : 60'000;
      demands.push_back(demand);
      demand_profiles.push_back(kNames[i / 2]);
      demand_types.push_back(kTypes[i % 2]);
    }
    for (const horus_demand& demand : demands) demand_pointers.push_back(&demand);
    beliefs.count = demands.size();
    beliefs.profiles = demand_profiles.data();
    beliefs.gpu_types = demand_types.data();
    beliefs.demands = demand_pointers.data();
  }
  void AddCluster() {
    horus_cluster* made = nullptr;
    EXPECT_EQ(horus_cluster_create(nullptr, &made, nullptr), HORUS_OK);
    cluster.reset(made);
    for (size_t i = 0; i < std::size(kTypes); ++i) {
      const char* const types[] = {kTypes[i], kTypes[i], kTypes[i]};
      horus_node node = HORUS_NODE_INIT;
      node.id = 1 + i;
      node.device_count = std::size(types);
      node.gpu_types = types;
      node.cpu_milli = 64'000;
      node.mem_mib = 1 << 18;
      EXPECT_EQ(horus_cluster_add_node(made, &node, nullptr), HORUS_OK);
    }
  }
  // The same for the room.
  [[nodiscard]] std::vector<ProfileDemands> Beliefs() const {
    std::vector<ProfileDemands> all;
    for (const std::string& profile : trace->value->profiles) {
      all.push_back(truth->demands.find(profile)->second);
    }
    return all;
  }
};

struct Way {
  const char* policy;
  const char* discipline;
  horus_sim_options c = HORUS_SIM_OPTIONS_INIT;
  SimOptions options = {};
};

std::vector<Way> Ways() {
  std::vector<Way> ways = {{"exclusive", "fifo"}, {"horus", "horus"}, {"first-fit", "drf"}, {"horus", "srtf"},
                           {"random", "las"},     {"horus", "fifo"},  {"gandiva", "fifo"},  {"horus", "srtf"}};
  ways[3].c.preempt = 1;
  ways[3].c.restart_us = 5'000'000;
  ways[3].options = {.preempt = true, .restart_us = 5'000'000};
  ways[4].c.round_us = 60'000'000;
  ways[4].c.horizon_us = 2'500'000'000;
  ways[4].c.hide_run_times = 1;
  ways[4].options = {.horizon_us = 2'500'000'000, .round_us = 60'000'000, .know_run_times = false};
  ways[5].c.best_of_window = 1;
  ways[5].c.look_ahead = 16;
  ways[5].c.weights = HORUS_SIM_WEIGHTS_SHORTEST;
  ways[5].c.rebalance_us = 100'000'000;
  ways[5].options = {
      .look_ahead = 16, .best_of_window = true, .weights = SimWeights::kShortest, .rebalance_us = 100'000'000};
  static constexpr uint64_t kNodes[] = {2, 1};
  static constexpr int64_t kFrom[] = {300'000'000, 900'000'000}, kUntil[] = {500'000'000, 950'000'000};
  ways[6].c.observe_us = 30'000'000;
  ways[6].c.latency_us = 1'000'000;
  ways[6].c.checkpoint_us = 50'000'000;
  ways[6].c.outage_count = 2;
  ways[6].c.outage_nodes = kNodes;
  ways[6].c.outage_from_us = kFrom;
  ways[6].c.outage_until_us = kUntil;
  ways[6].options = {.checkpoint_us = 50'000'000,
                     .latency_us = 1'000'000,
                     .outages = {{2, kFrom[0], kUntil[0]}, {1, kFrom[1], kUntil[1]}},
                     .observe_us = 30'000'000};
  ways[7].c.weigh_waiting = 1;
  ways[7].c.rebalance_us = 100'000'000;
  ways[7].options = {.weigh_waiting = true, .rebalance_us = 100'000'000};
  return ways;
}

Owned<horus_placer, horus_placer_free> PlacerOf(const Way& way) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  options.policy = way.policy;
  options.seed = 7;
  horus_placer* placer = nullptr;
  EXPECT_EQ(horus_placer_create(&options, &placer, nullptr), HORUS_OK);
  return Owned<horus_placer, horus_placer_free>(placer);
}

absl::StatusOr<SimResult> InTheRoom(const Given& given, const Way& way) {
  QueueOptions queue_options;
  queue_options.capacity = {6 * kMilliPerGpu, 2 * 64'000, 2 << 18};
  Cluster cluster = given.cluster->value;
  const std::vector<ProfileDemands> beliefs = given.Beliefs();
  HORUS_ASSIGN_OR_RETURN(const auto truth, ModelTruth::Create(given.truth->model, beliefs));
  HORUS_ASSIGN_OR_RETURN(const auto queue, MakeQueue(way.discipline, queue_options));
  return Simulate(*given.trace->value, beliefs, *truth, cluster, *queue, *PlacerOf(way)->value, way.options);
}

void ExpectSameJobs(const SimResult& a, const SimResult& b) {
  ASSERT_EQ(a.jobs.size(), b.jobs.size());
  for (size_t i = 0; i < a.jobs.size(); ++i) {
    EXPECT_EQ(a.jobs[i].start_us, b.jobs[i].start_us) << i;
    EXPECT_EQ(a.jobs[i].end_us, b.jobs[i].end_us) << i;
    EXPECT_EQ(a.jobs[i].sums.done, b.jobs[i].sums.done) << i;
    EXPECT_EQ(a.jobs[i].lost, b.jobs[i].lost) << i;
  }
  EXPECT_EQ(a.decisions, b.decisions);
  EXPECT_EQ(a.belief_error, b.belief_error);
}

TEST(CapiSim, IsTheSimulationOfTheRoom) {
  const Given given;
  for (Way& way : Ways()) {
    SCOPED_TRACE(std::string(way.policy) + " " + way.discipline);
    way.c.discipline = way.discipline;
    const auto placer = PlacerOf(way);
    horus_sim_result* out = nullptr;
    horus_error error = HORUS_ERROR_INIT;
    ASSERT_EQ(horus_sim_run(given.trace.get(), &given.beliefs, given.truth.get(), given.cluster.get(), placer.get(),
                            &way.c, nullptr, nullptr, nullptr, &out, &error),
              HORUS_OK)
        << error.message;
    const Owned<horus_sim_result, horus_sim_result_free> result(out);
    const auto expected = InTheRoom(given, way);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ExpectSameJobs(*expected, result->value);
    const SimMetrics metrics = MetricsOf(*given.trace->value, *expected);
    horus_sim_metrics c = HORUS_SIM_METRICS_INIT;
    ASSERT_EQ(horus_sim_result_get_metrics(result.get(), nullptr, &c, nullptr), HORUS_OK);
    EXPECT_EQ(c.finished, metrics.finished);
    EXPECT_EQ(c.preemptions, metrics.preemptions);
    EXPECT_EQ(c.migrations, metrics.migrations);
    EXPECT_EQ(c.interruptions, metrics.interruptions);
    EXPECT_EQ(c.jct_us[HORUS_SPREAD_MEAN], metrics.jct_us.mean);
    EXPECT_EQ(c.slowdown[HORUS_SPREAD_P95], metrics.slowdown.p95);
    EXPECT_EQ(c.finish_time_fairness[HORUS_SPREAD_P99], metrics.finish_time_fairness.p99);
    EXPECT_EQ(c.fragmentation, metrics.fragmentation);
    EXPECT_EQ(c.work_rate, metrics.work_rate);
    EXPECT_GT(metrics.finished, kJobs / 2) << "something happens";
  }
}

}  // namespace
}  // namespace horus
