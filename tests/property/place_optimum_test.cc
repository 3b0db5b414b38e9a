// SPDX-License-Identifier: Apache-2.0
// The greedy placer against the best of all assignments, on instances small enough to try them all.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "interference/utilisation_model.h"
#include "place/cluster.h"
#include "place/placer.h"
#include "random_cluster.h"

namespace horus {
namespace {

using testing_property::Random;

constexpr size_t kDevices = 3;
constexpr size_t kJobs = 5;
constexpr size_t kMaxTenants = 3;
constexpr double kBound = 1.5;  // of policy horus

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
    auto placer = Placer::Create(std::make_shared<UtilisationModel>(), *MakePolicy("horus"));
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

}  // namespace
}  // namespace horus
