// SPDX-License-Identifier: Apache-2.0
// The openb trace as the FGD allocation experiment (ATC 2023) uses it: cluster, jobs, typical tasks, arrivals.
//
// Enters:  node and pod lists; a seed.
// Leaves:  a cluster whose node ids are tie ranks, jobs with hard requests, classes for a Workload, pods in the order
//          in which they come. GPU memory and utilisation play no part: demands say nothing.
// Units:   thousandths of a GPU.
#ifndef HORUS_BENCH_QUALITY_OPENB_H_
#define HORUS_BENCH_QUALITY_OPENB_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "lab/io/traces/format.h"
#include "place/job/job.h"
#include "place/policies/workload.h"
#include "place/state/cluster.h"

namespace horus {

// ---- The openb trace (Alibaba, 2023; hkust-adsl/kubernetes-scheduler-simulator): node and pod lists as published.

struct OpenbNode {
  std::string name;
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
  int32_t gpus = 0;
  std::string model;  // of its GPUs; empty without
};

inline constexpr size_t kMaxOpenbBytes = 64u << 20;  // of one file; the published ones have 0.6 MB

[[nodiscard]] absl::StatusOr<std::vector<OpenbNode>> ParseOpenbNodes(std::string_view bytes, const std::string& file);
[[nodiscard]] absl::StatusOr<std::vector<OpenbPod>> ParseOpenbPods(std::string_view bytes, const std::string& file);

// One GPU type for each model that nodes or pods name. The trace tells no more of them than their names; their
// figures are those of one built-in type.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Catalogue>> OpenbCatalogue(std::span<const OpenbNode> nodes,
                                                                              std::span<const OpenbPod> pods);

// Node `order[i]` gets the id i: ties between nodes go to the lower id.
[[nodiscard]] absl::StatusOr<Cluster> OpenbCluster(std::span<const OpenbNode> nodes, std::span<const uint32_t> order,
                                                   std::shared_ptr<const Catalogue> catalogue);

[[nodiscard]] absl::StatusOr<JobSpec> OpenbJob(const OpenbPod& pod, const Catalogue& catalogue);

// The most frequent kinds of pods that make up 95 % of all, their shares summing to 1; the more frequent first, ties
// by CPU, GPU milli, GPUs and model constraint, all descending.
[[nodiscard]] absl::StatusOr<std::vector<TaskClass>> OpenbTypicalTasks(std::span<const OpenbPod> pods,
                                                                       const Catalogue& catalogue);

// Total GPU milli of the nodes.
[[nodiscard]] int64_t OpenbCapacity(std::span<const OpenbNode> nodes);

inline constexpr size_t kMaxOpenbArrivals = 1u << 20;  // the most jobs of one plan

// Pods, by position, that ask for 130 % of `capacity` in all: those of the list by name, shuffled by `seed`, then drawn
// again with replacement (or, where they are too many, drawn out). Without a seed: in name order, again from the first.
[[nodiscard]] std::vector<uint32_t> OpenbArrivals(std::span<const OpenbPod> pods, int64_t capacity,
                                                  std::optional<uint64_t> seed);

// 0 to count - 1 in an order that `seed` decides; ascending without one.
[[nodiscard]] std::vector<uint32_t> OpenbNodeOrder(size_t count, std::optional<uint64_t> seed);

}  // namespace horus

#endif  // HORUS_BENCH_QUALITY_OPENB_H_
