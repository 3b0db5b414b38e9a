// SPDX-License-Identifier: Apache-2.0
// The greedy placer against the best of all assignments, on instances small enough to try them all.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "interference/registry.h"
#include "place/placer.h"
#include "place/state/cluster.h"
#include "random_cluster.h"

namespace horus {
namespace {

using testing_property::Random;

constexpr size_t kDevices = 3;
constexpr size_t kJobs = 5;
constexpr size_t kMaxTenants = 3;
constexpr double kBound = 1.5;  // of the placers below

// Summed normalised throughput of one device under the utilisation model; -1 = not allowed.
double Work(const std::vector<double>& utils) {
  double sum = 0;
  for (const double util : utils) sum += util;
  const double slowdown = std::max(1.0, sum / 100);
  if (utils.size() > kMaxTenants || slowdown > kBound) return -1;
  return static_cast<double>(utils.size()) / slowdown;
}

// The most work over all ways to put each job on a device or to leave it out.
double Optimum(const std::vector<double>& utils) {
  double best = 0;
  size_t ways = 1;
  for (size_t i = 0; i < utils.size(); ++i) ways *= kDevices + 1;
  for (size_t way = 0; way < ways; ++way) {
    std::vector<std::vector<double>> on(kDevices + 1);
    size_t rest = way;
    for (const double util : utils) {
      on[rest % (kDevices + 1)].push_back(util);
      rest /= kDevices + 1;
    }
    double total = 0;
    for (size_t device = 0; device < kDevices && total >= 0; ++device) {
      const double work = Work(on[device]);
      total = work < 0 ? -1 : total + work;
    }
    best = std::max(best, total);
  }
  return best;
}

TEST(PlaceOptimum, GreedyNeverBeatsTheOptimumAndItsGapIsReported) {
  constexpr int kInstances = 200;
  Random random(3);
  double gap = 0;
  for (int instance = 0; instance < kInstances; ++instance) {
    Cluster cluster(Catalogue::Default());
    NodeSpec node;
    node.id = 1;
    node.devices.assign(kDevices, DeviceSpec{.type = testing_property::TypeAt(1)});
    ASSERT_TRUE(cluster.AddNode(node).ok());
    std::vector<JobSpec> jobs(kJobs);
    std::vector<double> utils;
    for (size_t i = 0; i < kJobs; ++i) {
      const auto util = static_cast<float>(10 + random.Below(91));
      utils.push_back(static_cast<double>(util));
      jobs[i].id = i;
      Demand demand;
      demand.gpu_util_pct = {util, util};
      demand.mem_mib = {100, 100};
      jobs[i].demands = {{GpuTypeId::Invalid(), demand}};
    }
    auto placer =
        Placer::Create(std::make_shared<UtilisationModel>(), *MakePolicy("horus"), {.slowdown_bound = kBound});
    ASSERT_TRUE(cluster.Apply(*(*placer)->MakePlan(cluster, jobs)).ok());
    double greedy = 0;
    for (int32_t device = 0; device < static_cast<int32_t>(kDevices); ++device) {
      std::vector<double> on;
      const DeviceInfo info = *cluster.Device(1, device);
      for (const Resident& resident : info.residents) on.push_back(utils[resident.job]);
      ASSERT_GE(Work(on), 0) << "a bound is broken";
      greedy += Work(on);
    }
    const double best = Optimum(utils);
    ASSERT_LE(greedy, best + 1e-9);
    gap += (best - greedy) / best;
  }
  RecordProperty("mean_gap_pct", std::to_string(100 * gap / kInstances));
}

// A cluster of nodes of equal size with up to two residents a GPU, and a gang that sends nothing.
struct GangInstance {
  Cluster cluster{Catalogue::Default()};
  size_t per_node = 0;
  std::vector<std::vector<double>> utils;  // of the residents of each GPU, node by node
  JobSpec gang;
  double util = 0;  // of the gang on each GPU
};

JobSpec JobOf(JobId id, double util) {
  JobSpec job;
  job.id = id;
  Demand demand;
  demand.gpu_util_pct = {static_cast<float>(util), static_cast<float>(util)};
  demand.mem_mib = {100, 100};
  job.demands = {{GpuTypeId::Invalid(), demand}};
  return job;
}

GangInstance MakeGangInstance(Random& random, size_t nodes, size_t per_node, size_t most_gpus) {
  GangInstance instance;
  instance.per_node = per_node;
  instance.utils.resize(nodes * per_node);
  JobId id = 1;
  for (size_t n = 0; n < nodes; ++n) {
    NodeSpec node;
    node.id = n;
    node.devices.assign(per_node, DeviceSpec{.type = testing_property::TypeAt(1)});
    EXPECT_TRUE(instance.cluster.AddNode(node).ok());
    for (size_t d = 0; d < per_node; ++d) {
      std::vector<double>& here = instance.utils[n * per_node + d];
      for (uint64_t residents = random.Below(3); residents > 0; --residents) {
        here.push_back(static_cast<double>(10 + random.Below(50)));
        const std::vector<Slot> slot = {{n, static_cast<int32_t>(d), 0}};
        EXPECT_TRUE(instance.cluster.Adopt(JobOf(id++, here.back()), slot).ok());
      }
    }
  }
  instance.util = static_cast<double>(20 + random.Below(60));
  instance.gang = JobOf(1000, instance.util);
  instance.gang.tasks = static_cast<int32_t>(2 + random.Below(most_gpus - 1));
  return instance;
}

// What the gang does on those GPUs less what it takes from others, by the rule alone; false where it must not be.
bool GangWork(const GangInstance& instance, uint32_t gpus, double& work) {
  work = 0;
  double slowest = 1;
  for (size_t i = 0; i < instance.utils.size(); ++i) {
    if ((gpus >> i & 1u) == 0) continue;
    std::vector<double> with = instance.utils[i];
    const double before = Work(with);
    with.push_back(instance.util);
    const double after = Work(with);
    if (after < 0 || after <= before) return false;
    double sum = 0;
    for (const double util : with) sum += util;
    const double own = 1 / std::max(1.0, sum / 100);
    slowest = std::min(slowest, own);
    work += after - before - own;
  }
  work += __builtin_popcount(gpus) * slowest;
  return true;
}

// The most of all places on so few nodes; kNoPlace = none.
constexpr double kNoPlace = -std::numeric_limits<double>::infinity();
double MostGangWork(const GangInstance& instance, size_t most_nodes) {
  double best = kNoPlace;
  for (uint32_t gpus = 0; gpus < 1u << instance.utils.size(); ++gpus) {
    if (__builtin_popcount(gpus) != instance.gang.tasks) continue;
    size_t nodes = 0;
    for (size_t first = 0; first < instance.utils.size(); first += instance.per_node)
      nodes += (gpus >> first & ((1u << instance.per_node) - 1)) != 0 ? 1 : 0;
    double work = 0;
    if (nodes <= most_nodes && GangWork(instance, gpus, work)) best = std::max(best, work);
  }
  return best;
}

uint32_t GpusOf(const GangInstance& instance, const Decision& decision) {
  uint32_t gpus = 0;
  for (const Slot& slot : decision.slots)
    gpus |= 1u << (slot.node * instance.per_node + static_cast<size_t>(slot.device));
  return gpus;
}

constexpr double kTieBreaks = 0.0045;  // per GPU: the most that terms beside the work may weigh

Decision DecideGang(const GangInstance& instance) {
  const auto placer =
      *Placer::Create(std::make_shared<UtilisationModel>(), *MakePolicy("horus"), {.slowdown_bound = kBound});
  return placer->MakePlan(instance.cluster, {&instance.gang, 1})->decisions[0];
}

TEST(PlaceOptimum, AGangInsideANodeDoesTheMostWorkOfAllItsPlaces) {
  int placed = 0;
  int held_up = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const GangInstance instance = MakeGangInstance(random, 1, 7, 5);
    const Decision decision = DecideGang(instance);
    const double best = MostGangWork(instance, 1);
    ASSERT_EQ(decision.verdict == Verdict::kPlace, best > kNoPlace);
    if (decision.verdict != Verdict::kPlace) continue;
    double work = 0;
    ASSERT_TRUE(GangWork(instance, GpusOf(instance, decision), work));
    EXPECT_LE(work, best + 1e-6);
    EXPECT_GE(work, best - kTieBreaks * instance.gang.tasks);
    EXPECT_NEAR(-decision.winner.cost, work, kTieBreaks * instance.gang.tasks);
    ++placed;
    held_up += decision.own.estimate > 1 ? 1 : 0;
  }
  EXPECT_GT(placed, 100);
  EXPECT_GT(held_up, 20);
}

// Against all places on as few nodes, of up to 6 nodes.
TEST(PlaceOptimum, AGangOverNodesNeverBeatsTheOptimumAndIsNearIt) {
  double gap = 0;
  int spanning = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 1000);
    const GangInstance instance = MakeGangInstance(random, 2 + random.Below(5), 2, 6);
    const Decision decision = DecideGang(instance);
    ASSERT_EQ(decision.verdict == Verdict::kPlace, MostGangWork(instance, SIZE_MAX) > kNoPlace);
    if (decision.verdict != Verdict::kPlace || !decision.spans_nodes) continue;
    const uint32_t gpus = GpusOf(instance, decision);
    size_t nodes = 0;
    for (size_t first = 0; first < instance.utils.size(); first += 2) nodes += (gpus >> first & 3u) != 0 ? 1 : 0;
    double work = 0;
    ASSERT_TRUE(GangWork(instance, gpus, work));
    const double best = MostGangWork(instance, nodes);
    EXPECT_EQ(MostGangWork(instance, nodes - 1), kNoPlace) << "fewer nodes hold it";
    ASSERT_LE(work, best + 1e-6);
    gap += (best - work) / best;
    ++spanning;
  }
  EXPECT_GT(spanning, 100);
  EXPECT_LT(gap / spanning, 0.02);
  RecordProperty("mean_gap_pct", std::to_string(100 * gap / spanning));
}

}  // namespace
}  // namespace horus
