// SPDX-License-Identifier: Apache-2.0
// A simulation through the C ABI is that of the sim room: the same jobs, the same metrics, to the last bit.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lab/metrics.h"
#include "lab/simulator.h"
#include "sim_given.h"

namespace horus {
namespace {

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
  ways[3].c.one_by_one = 1;
  ways[3].c.restart_us = 5'000'000;
  ways[3].options = {.preempt = true, .restart_us = 5'000'000, .one_by_one = true};
  ways[4].c.round_us = 60'000'000;
  ways[4].c.horizon_us = 2'500'000'000;
  ways[4].c.hide_run_times = 1;
  ways[4].options = {.horizon_us = 2'500'000'000, .round_us = 60'000'000, .know_run_times = false};
  ways[5].c.look_ahead = 16;
  ways[5].c.weights = HORUS_SIM_WEIGHTS_SHORTEST;
  ways[5].c.rebalance_us = 100'000'000;
  ways[5].options = {.look_ahead = 16, .weights = SimWeights::kShortest, .rebalance_us = 100'000'000};
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
  ways[7].c.rebalance_us = 100'000'000;
  ways[7].options = {.rebalance_us = 100'000'000};
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

absl::StatusOr<SimResult> InTheRoom(const GivenSim& given, const Way& way) {
  QueueOptions queue_options;
  queue_options.capacity = {6 * kMilliPerGpu, 2 * 64'000, 2 << 18};
  Cluster cluster = given.cluster->value;
  const std::vector<ProfileDemands> beliefs = given.Beliefs();
  HORUS_ASSIGN_OR_RETURN(const auto truth, ModelTruth::Create(given.truth->model, beliefs));
  HORUS_ASSIGN_OR_RETURN(const auto queue, MakeQueue(way.discipline, queue_options));
  return Simulate(*given.trace->value, beliefs, *truth, cluster, *queue, *PlacerOf(way)->value, way.options);
}

TEST(CapiSim, IsTheSimulationOfTheRoom) {
  const GivenSim given;
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
