// SPDX-License-Identifier: Apache-2.0
// What holds for every simulation: nothing is lost or gained, and names and clocks do not matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "interference/registry.h"
#include "lab/grid.h"
#include "lab/simulator.h"
#include "lab/trace/trace.h"
#include "place/state/cluster.h"
#include "random_cluster.h"

namespace horus {
namespace {

using testing_property::kTypes;
using testing_property::Random;
using testing_property::TypeAt;

constexpr size_t kProfiles = 6;

// A model's truth, but for memory: half as much again as believed.
class HungryTruth final : public Truth {
 public:
  explicit HungryTruth(std::unique_ptr<Truth> beneath) : beneath_(std::move(beneath)) {}
  [[nodiscard]] double SpeedAlone(uint32_t profile, const DeviceContext& device) const override {
    return beneath_->SpeedAlone(profile, device);
  }
  [[nodiscard]] absl::Status Shares(const DeviceContext& device, std::span<const uint32_t> profiles,
                                    std::span<double> shares) const override {
    return beneath_->Shares(device, profiles, shares);
  }
  [[nodiscard]] int64_t MemMib(uint32_t profile, GpuTypeId type) const override {
    return beneath_->MemMib(profile, type) * 3 / 2;
  }

 private:
  std::unique_ptr<Truth> beneath_;
};

struct Scene {
  Trace trace;
  std::vector<ProfileDemands> beliefs;
  std::unique_ptr<Truth> truth;
  std::vector<NodeSpec> nodes;
  std::string_view policy, queue;
  SimOptions options;
};

Scene RandomScene(Random& random) {
  constexpr std::string_view kPolicies[] = {"horus",          "first-fit",   "exclusive",
                                            "least-utilised", "horus-paper", "gandiva"};
  constexpr std::string_view kQueues[] = {"fifo", "sjf", "las", "horus"};
  Scene scene;
  for (size_t p = 0; p < kProfiles; ++p) {
    ProfileDemands& demands = scene.beliefs.emplace_back();
    scene.trace.profiles.push_back("p" + std::to_string(p));
    const auto util = static_cast<float>(5 + random.Below(90));
    const auto mem = static_cast<int64_t>(500 + random.Below(6000));
    for (size_t t = 0; t < kTypes.size(); ++t) {
      const auto step = static_cast<int64_t>(1000 + random.Below(9000));
      demands.push_back({TypeAt(t),
                         {.profile_id = p + 1,
                          .gpu_util_pct = {util, util},
                          .mem_mib = {mem, mem},
                          .step_time_us = {step, step},
                          .flags = kDemandGiven}});
    }
    std::sort(demands.begin(), demands.end(), [](const auto& a, const auto& b) { return a.type < b.type; });
  }
  int64_t submit = 0;
  for (uint64_t id = 0; id < 60; ++id) {
    submit += static_cast<int64_t>(random.Below(3'000));
    scene.trace.jobs.push_back({.id = id,
                                .submit_us = submit,
                                .duration_us = static_cast<int64_t>(1 + random.Below(40'000)),
                                .profile = static_cast<uint32_t>(random.Below(kProfiles)),
                                .gpus_per_task = static_cast<int32_t>(1 + random.Below(3) / 2)});
  }
  CanonicaliseTrace(scene.trace);  // profiles in the order of first use
  std::vector<ProfileDemands> ordered;
  for (const std::string& name : scene.trace.profiles) ordered.push_back(scene.beliefs[std::stoul(name.substr(1))]);
  scene.beliefs = std::move(ordered);
  scene.truth = *ModelTruth::Create(*MakeInterferenceModel("utilisation"), scene.beliefs);
  if (random.OneIn(3)) scene.truth = std::make_unique<HungryTruth>(std::move(scene.truth));
  for (NodeId id = 0; id < 3; ++id) {
    NodeSpec node{.id = id, .cpu_milli = 64'000, .mem_mib = 1 << 20};
    node.devices = std::vector<DeviceSpec>(2, DeviceSpec{.type = TypeAt(random.Below(kTypes.size()))});
    scene.nodes.push_back(std::move(node));
  }
  scene.policy = kPolicies[random.Below(std::size(kPolicies))];
  scene.queue = kQueues[random.Below(std::size(kQueues))];
  scene.options = {.look_ahead = 1 + random.Below(4), .round_us = random.OneIn(4) ? 5'000 : 0};
  scene.options.preempt = random.OneIn(2);
  if (random.OneIn(2)) scene.options.restart_us = static_cast<int64_t>(random.Below(500));
  if (random.OneIn(3)) scene.options.latency_us = static_cast<int64_t>(random.Below(200));
  if (random.OneIn(3)) scene.options.rebalance_us = static_cast<int64_t>(1'000 + random.Below(9'000));
  if (random.OneIn(2)) scene.options.observe_us = static_cast<int64_t>(1 + random.Below(3'000));
  if (random.OneIn(2)) {
    scene.options.checkpoint_us = static_cast<int64_t>(random.Below(5'000));
    const std::vector<NodeId> nodes = {0, 1, 2};
    scene.options.outages = *DrawOutages(
        nodes, {.mean_up_us = 60'000, .mean_down_us = 5'000, .until_us = 300'000, .seed = random.Below(1'000)});
  }
  return scene;
}

SimResult Go(const Scene& scene) {
  Cluster cluster(Catalogue::Default());
  for (const NodeSpec& node : scene.nodes) EXPECT_TRUE(cluster.AddNode(node).ok());
  const auto queue = *MakeQueue(scene.queue);
  const auto placer =
      *Placer::Create(*MakeInterferenceModel("utilisation"), *MakePolicy(scene.policy), {.slowdown_bound = 2.5});
  auto result = Simulate(scene.trace, scene.beliefs, *scene.truth, cluster, *queue, *placer, scene.options);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(cluster.job_count(), 0u);
  return std::move(*result);
}

TEST(SimProperty, WorkAndTimeAreConserved) {
  Random random(31);
  int32_t preempted = 0;
  int32_t migrated = 0;
  int32_t interrupted = 0;
  int32_t out_of_memory = 0;
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(round);
    const Scene scene = RandomScene(random);
    const SimResult result = Go(scene);
    absl::int128 ran_us = 0;  // by all jobs together
    for (size_t i = 0; i < result.jobs.size(); ++i) {
      const SimJob& job = result.jobs[i];
      const TraceJob& asked = scene.trace.jobs[i];
      ASSERT_EQ(job.end, SimEnd::kFinished);
      const Work over = job.sums.done - job.lost - Work(asked.duration_us) * kFullRate;
      EXPECT_GE(over, 0);
      EXPECT_LT(over, kFullRate) << "less than a microsecond's";
      EXPECT_GE(job.start_us, asked.submit_us);
      EXPECT_GE(job.end_us - job.start_us, job.ran_us + job.restarts * scene.options.restart_us);
      if (job.restarts == 0) {
        EXPECT_EQ(job.end_us - job.start_us, job.ran_us);
      }
      EXPECT_LE(job.restarts, job.preemptions + job.migrations + job.interruptions);
      EXPECT_GE(job.lost, 0);
      EXPECT_LE(job.lost, Work(job.interruptions) * scene.options.checkpoint_us * kFullRate);
      EXPECT_GE(job.ran_us, asked.duration_us) << "nothing runs faster than alone on its fastest type";
      EXPECT_GE(job.sums.undisturbed, job.sums.done);
      EXPECT_GE(job.sums.backlogged, 0);
      EXPECT_LE(job.sums.backlogged, job.sums.done);
      EXPECT_LE(job.sums.backlogged, Work(result.backlog_us) * kFullRate);
      ran_us += absl::int128(job.ran_us) * GpusOf(asked);
      preempted += job.preemptions;
      migrated += job.migrations;
      interrupted += job.interruptions;
      out_of_memory += job.out_of_memory;
    }
    EXPECT_LE(result.use.backlog_device_us, result.use.device_us);
    EXPECT_LE(result.use.device_us,
              absl::int128(result.end_us - scene.trace.jobs.front().submit_us) * absl::int128(result.devices));
    EXPECT_GE(result.use.fragment_us, 0);
    EXPECT_LE(result.use.fragment_us, result.use.free_us);
    EXPECT_EQ(result.use.free_us, (result.use.device_us - result.use.used_us) * absl::int128(1'000'000))
        << "all jobs ask for whole GPUs";
    EXPECT_GT(result.most_done_us, scene.trace.jobs.front().submit_us);
    EXPECT_LE(result.most_done_us, result.end_us);
    EXPECT_LE(result.use.used_us, result.use.device_us);
    EXPECT_GE(result.use.used_us * 3, ran_us) << "at most three tenants a device";
    if (scene.options.restart_us > 0 || scene.options.latency_us > 0) continue;
    EXPECT_LE(result.use.used_us, ran_us);
    if (scene.policy == "exclusive") {
      EXPECT_EQ(result.use.used_us, ran_us);
    }
  }
  EXPECT_GT(preempted, 100) << "what is tested happens";
  EXPECT_GT(out_of_memory, 100);
  EXPECT_GT(migrated, 100);
  EXPECT_GT(interrupted, 100);
}

TEST(SimProperty, ClocksAndNamesDoNotMatter) {
  Random random(32);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    Scene scene = RandomScene(random);
    scene.options.round_us = 0;  // rounds begin at multiples of the clock
    scene.options.rebalance_us = 0;
    const SimResult before = Go(scene);
    constexpr int64_t kLater = 7'777'777;
    for (NodeOutage& outage : scene.options.outages) {
      outage.from_us += kLater;
      outage.until_us += kLater;
    }
    for (TraceJob& job : scene.trace.jobs) {
      job.submit_us += kLater;
      job.id += 1'000'000;
    }
    for (std::string& profile : scene.trace.profiles) profile += "'";
    const SimResult after = Go(scene);
    for (size_t i = 0; i < before.jobs.size(); ++i) {
      ASSERT_EQ(before.jobs[i].start_us + kLater, after.jobs[i].start_us);
      ASSERT_EQ(before.jobs[i].end_us + kLater, after.jobs[i].end_us);
    }
    EXPECT_EQ(before.use.used_us, after.use.used_us);
    EXPECT_EQ(before.decisions, after.decisions);
  }
}

}  // namespace
}  // namespace horus
