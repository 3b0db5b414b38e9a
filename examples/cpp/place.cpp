// SPDX-License-Identifier: Apache-2.0
// The whole way of a job in C++20: graph file -> demand on two GPU types -> cluster -> plan -> apply -> snapshot ->
// restore -> release. Usage: place MODEL.onnx
#include <cstdio>
#include <horus/horus.hpp>
#include <string>
#include <vector>

namespace {

void Run(const std::string& path) {
  horus::CheckAbi();
  const std::vector<std::string> types = {"v100-pcie-16gb", "a100-40gb"};
  const horus::RunSpec run = {.optimizer = HORUS_OPTIMIZER_ADAM, .batch = 64};
  const horus::Graph graph = horus::Graph::FromFile(path);
  const std::vector<horus::Demand> demands = horus::Predictor().Demands(graph, run, types);

  horus::Cluster cluster;
  uint64_t node = 0;
  for (const std::string& type : types) {
    cluster.AddNode(
        {.id = ++node, .cpu_milli = 32'000, .mem_mib = 131'072, .devices = {{.gpu_type = type}, {.gpu_type = type}}});
  }

  horus::Placer placer;
  for (uint64_t id = 1; id <= 5; ++id) {
    horus::Job job = {.id = id, .cpu_milli = 4'000};
    for (size_t i = 0; i < types.size(); ++i) job.demands.emplace_back(types[i], demands[i]);
    const horus::Plan plan = placer.MakePlan(cluster, job);
    const horus::Decision decision = plan.at(0);
    std::printf("job %llu: %s\n", static_cast<unsigned long long>(id), decision.text.c_str());
    for (const horus::Effect& effect : decision.effects) {
      std::printf("  node %llu GPU %u: job %llu will run at %.2f times its own step time\n",
                  static_cast<unsigned long long>(effect.node), effect.device,
                  static_cast<unsigned long long>(effect.job), static_cast<double>(effect.slowdown_after));
    }
    cluster.Apply(plan);  // a refused job applies as nothing
  }

  const std::vector<std::byte> snapshot = cluster.Snapshot();
  horus::Cluster restored = horus::Cluster::Restore(snapshot);
  restored.Release(1);
  std::printf("restored from %zu bytes; after job 1 left: %zu jobs\n", snapshot.size(), restored.Jobs().size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MODEL.onnx\n", argv[0]);
    return 2;
  }
  try {
    Run(argv[1]);
    return 0;
  } catch (const horus::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
