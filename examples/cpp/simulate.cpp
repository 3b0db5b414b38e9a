// SPDX-License-Identifier: Apache-2.0
// Two policies on one trace: what would sharing GPUs have done to these jobs? Measured speeds are the truth, stated
// demands are what the placer believes. Usage: simulate
#include <cstdio>
#include <horus/lab/lab.hpp>
#include <limits>
#include <vector>

namespace {

constexpr char kGpu[] = "v100-pcie-16gb";
constexpr double kUsPerS = 1e6;

// Steps a second alone, and what two of them keep of it beside each other.
horus::Speeds Measured() {
  return {.gpu_types = {kGpu},
          .profiles = {"resnet-50", "recommender"},
          .alone = {8, 20},
          .pairs = {{.a = 0, .b = 1, .speed_a = 0.85, .speed_b = 0.8},
                    {.a = 0, .b = 0, .speed_a = 0.55, .speed_b = 0.55},
                    {.a = 1, .b = 1, .speed_a = 0.75, .speed_b = 0.75}}};
}

std::vector<horus::ProfileDemand> Believed() {
  std::vector<horus::ProfileDemand> all = {{.profile = "resnet-50"}, {.profile = "recommender"}};
  for (horus::ProfileDemand& one : all) {
    one.demand.flags = HORUS_DEMAND_GIVEN;
    one.demand.mem_mib = 6000;
    one.demand.gpu_util_pct = one.profile == "resnet-50" ? 70 : 25;
    one.demand.step_time_us = one.profile == "resnet-50" ? 125'000 : 50'000;
  }
  return all;
}

// A job every minute, one kind after the other, of ten minutes each.
horus::Trace Jobs() {
  std::vector<horus::TraceJob> jobs;
  for (uint64_t id = 0; id < 24; ++id) {
    const bool even = id % 2 == 0;
    jobs.push_back({.id = id,
                    .submit_us = static_cast<int64_t>(id) * 60'000'000,
                    .steps = even ? 4'800 : 12'000,
                    .profile = even ? "resnet-50" : "recommender"});
  }
  return horus::Trace(jobs);
}

void Run() {
  horus::CheckAbi();
  horus::Cluster cluster;
  for (uint64_t node = 1; node <= 2; ++node) {
    cluster.AddNode(
        {.id = node, .cpu_milli = 32'000, .mem_mib = 131'072, .devices = {{.gpu_type = kGpu}, {.gpu_type = kGpu}}});
  }
  const horus::Trace jobs = Jobs();
  const horus::Truth truth = horus::Truth::FromSpeeds(Measured());
  for (const char* policy : {"exclusive", "first-fit"}) {
    horus::Placer placer(
        {.policy = policy, .slowdown_bound = std::numeric_limits<float>::infinity(), .max_tenants = 2});
    const horus_sim_metrics metrics = horus::Simulate(jobs, Believed(), truth, cluster, placer).Metrics();
    std::printf("%s: %.0f s from submission to end, %.0f s of waiting, slowed %.2f times, in the mean of %llu jobs\n",
                policy, metrics.jct_us[HORUS_SPREAD_MEAN] / kUsPerS, metrics.wait_us[HORUS_SPREAD_MEAN] / kUsPerS,
                metrics.slowdown[HORUS_SPREAD_MEAN], static_cast<unsigned long long>(metrics.finished));
  }
}

}  // namespace

int main() {
  try {
    Run();
    return 0;
  } catch (const horus::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
