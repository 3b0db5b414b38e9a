// SPDX-License-Identifier: Apache-2.0
// metrics: what being metered costs a plan, its application and a release through the C ABI; metered and not, by turns.
#include <time.h>

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/rows.h"
#include "horus/horus.hpp"

namespace horus::bench {
namespace {

constexpr int kGpusPerNode = 8;
constexpr int kRoundsOfEach = 9;

double CpuUs() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

struct World {
  explicit World(int nodes) {
    for (int node = 1; node <= nodes; ++node) {
      cluster.AddNode({.id = static_cast<uint64_t>(node),
                       .cpu_milli = 128'000,
                       .mem_mib = 1 << 20,
                       .devices = std::vector<horus::Device>(kGpusPerNode, {.gpu_type = "a100-40gb"})});
    }
  }
  void Meter(const horus::Metrics* metrics) {
    cluster.SetMetrics(metrics);
    placer.SetMetrics(metrics);
  }
  // CPU time of one job's coming and going.
  double Round(int decisions) {
    const double begin = CpuUs();
    for (int i = 0; i < decisions; ++i) {
      Demand demand;
      demand.gpu_util_pct = static_cast<float>(20 + 10 * (i % 4));
      demand.mem_mib = 4'000;
      const Job job = {.id = ++id, .cpu_milli = 1'000, .demands = {{"", demand}}};
      cluster.Apply(placer.MakePlan(cluster, job));
      if (id > kResidents) cluster.Release(id - kResidents);
    }
    return (CpuUs() - begin) / decisions;
  }
  static constexpr uint64_t kResidents = 60;
  Cluster cluster;
  Placer placer;
  uint64_t id = 0;
};

void Measure(const Options& options, std::vector<Row>* rows) {
  for (const int nodes : options.smoke ? std::vector<int>{8} : std::vector<int>{8, 1000}) {
    World world(nodes);
    const Metrics metrics;
    const int decisions = options.smoke ? 100 : 2'000;
    world.Round(decisions);
    std::vector<double> plain, metered;
    for (int round = 0; round < kRoundsOfEach; ++round) {
      world.Meter(nullptr);
      plain.push_back(world.Round(decisions));
      world.Meter(&metrics);
      metered.push_back(world.Round(decisions));
    }
    const double before = Quantile(plain, 0.5), after = Quantile(metered, 0.5);
    rows->push_back(
        {absl::StrFormat("metrics_cost_us_%d_nodes", nodes), after - before, "us", 0, true,
         absl::StrFormat("not metered %.4g us", before),
         absl::StrFormat("plan + apply + release of a one-GPU job on %d nodes of %d GPUs, counted and timed "
                         "against not metered, medians of %d rounds of %d by turns, CPU time",
                         nodes, kGpusPerNode, kRoundsOfEach, decisions)});
    rows->push_back({absl::StrFormat("metrics_ratio_%d_nodes", nodes), after / before, "ratio", 1.1, true, "",
                     "the same, as a ratio"});
  }
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
