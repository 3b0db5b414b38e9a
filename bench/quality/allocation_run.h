// SPDX-License-Identifier: Apache-2.0
// One run of the FGD allocation experiment (ATC 2023): pods arrive until 130 % of the GPUs are asked for, none leaves.
//
// Enters:  a node list and a pod list, a policy, a seed.
// Leaves:  how much of the GPUs was allocated at which load, and a hash of all placements.
// Units:   thousandths of a GPU; allocation in per cent of all GPUs.
// Cost:    0.1 to 0.3 s a run of the published lists.   Thread class: one thread a run.
#ifndef HORUS_BENCH_QUALITY_ALLOCATION_RUN_H_
#define HORUS_BENCH_QUALITY_ALLOCATION_RUN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/quality/openb.h"
#include "place/policies/workload.h"

namespace horus::bench {

struct Experiment {
  std::vector<OpenbNode> nodes;
  std::vector<OpenbPod> pods;
  std::shared_ptr<const Catalogue> catalogue;
  std::shared_ptr<const Workload> workload;  // the typical pods
  int64_t capacity = 0;                      // GPU milli
};

// From the bytes of both files; their names are for errors.
[[nodiscard]] absl::StatusOr<Experiment> MakeExperiment(std::vector<OpenbNode> nodes, std::vector<OpenbPod> pods);
[[nodiscard]] absl::StatusOr<Experiment> LoadExperiment(const std::string& node_file, const std::string& pod_file);

struct Outcome {
  size_t offers = 0;
  size_t dropped = 0;
  int64_t arrived = 0;        // GPU milli of all pods offered
  int64_t used = 0;           // of those placed
  uint64_t hash = 0;          // sum of (number of the placement x row of its node in the file), modulo 1,000,000,007
  double allocation_100 = 0;  // per cent, mean over the offers at which the load rounds to 100 per cent
  double allocation_130 = 0;
  double cpu_s = 0;  // of the decisions, the set-up left out
};

// Through Placer::MakePlan (all arrivals in order) and Cluster::Apply. Without a seed: the golden run, that is pods in
// name order and ties by row of the node file.
[[nodiscard]] absl::StatusOr<Outcome> RunPolicy(const Experiment& experiment, std::string_view policy,
                                                std::optional<uint64_t> seed);

// What stands beside it: FGD in a plain loop over arrays, with the score of each node kept for each class of pods
// until the node changes; nothing else. Decides the same.
[[nodiscard]] Outcome RunPlainFgd(const Experiment& experiment, std::optional<uint64_t> seed);

// Golden runs worked out by two other programs.
struct GoldenRun {
  std::string_view workload;  // of openb_pod_list_<workload>.csv
  std::string_view policy;
  size_t offers;
  int64_t arrived;
  int64_t used;
  size_t dropped;
  uint64_t hash;
};
[[nodiscard]] std::span<const GoldenRun> GoldenRuns();
[[nodiscard]] bool IsGolden(const GoldenRun& wanted, const Outcome& found);

}  // namespace horus::bench

#endif  // HORUS_BENCH_QUALITY_ALLOCATION_RUN_H_
