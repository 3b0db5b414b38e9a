// SPDX-License-Identifier: Apache-2.0
// Small clusters and jobs for the tests of this room.
//
// Enters:  sizes.                         Leaves: values that pass validation.
// Units:   as node.h and job.h.
// Cost:    none.                          Thread class: pure functions.
#ifndef HORUS_TESTS_UNIT_PLACE_FIXTURES_H_
#define HORUS_TESTS_UNIT_PLACE_FIXTURES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "device/catalogue.h"
#include "interference/laws.h"
#include "interference/registry.h"
#include "place/placer.h"
#include "place/policies/policies.h"
#include "place/state/cluster.h"

namespace horus::testing_place {

inline GpuTypeId Type(std::string_view name) { return *Catalogue::Default()->Find(name); }

inline Demand Needs(float util, int64_t mem_mib, int64_t step_us = 0) {
  Demand demand;
  demand.gpu_util_pct = {util, util};
  demand.mem_mib = {mem_mib, mem_mib};
  demand.step_time_us = {step_us, step_us};
  return demand;
}

// One GPU of any type.
inline JobSpec OneGpu(JobId id, float util = 40, int64_t mem_mib = 4000) {
  JobSpec job;
  job.id = id;
  job.demands = {{GpuTypeId::Invalid(), Needs(util, mem_mib)}};
  return job;
}

inline JobSpec AtPriority(JobSpec job, int32_t priority) {
  job.priority = priority;
  return job;
}

// 4 cores and 8 GiB a task, no GPU.
inline JobSpec CpuOnly(JobId id, int32_t tasks = 1) {
  JobSpec job;
  job.id = id;
  job.tasks = tasks;
  job.gpus_per_task = 0;
  job.cpu_milli = 4000;
  job.mem_mib = 8192;
  return job;
}

inline JobSpec Gang(JobId id, int32_t tasks, int32_t gpus_per_task, float util = 90) {
  JobSpec job = OneGpu(id, util);
  job.tasks = tasks;
  job.gpus_per_task = gpus_per_task;
  return job;
}

// `gpus` time-sliced V100 of 16 GiB, 32 cores, 256 GiB.
inline NodeSpec V100Node(NodeId id, size_t gpus = 2, uint64_t rack = 0) {
  NodeSpec node;
  node.id = id;
  node.cpu_milli = 32'000;
  node.mem_mib = 262'144;
  node.storage_mb_s = 1000;
  node.rack = rack;
  node.devices.assign(gpus, DeviceSpec{.type = Type("v100-sxm2-16gb")});
  return node;
}

inline Cluster Nodes(size_t count, size_t gpus = 2) {
  Cluster cluster(Catalogue::Default());
  for (size_t i = 0; i < count; ++i) EXPECT_TRUE(cluster.AddNode(V100Node(i + 1, gpus)).ok());
  return cluster;
}

// Whose slowdowns add up over pairs: 0.002 for each per cent that the two are busy, in the units of PairExcess.
class AddingModel final : public InterferenceModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "adding"; }
  [[nodiscard]] uint64_t epoch() const override { return 1; }
  [[nodiscard]] bool adds_pairs() const override { return true; }
  [[nodiscard]] absl::Status PredictPairs(const DeviceContext& /*device*/, std::span<const Demand* const> tenants,
                                          std::span<PairExcess> out) const override {
    for (size_t i = 0; i < tenants.size(); ++i) {
      for (size_t j = 0; j < tenants.size(); ++j)
        out[i * tenants.size() + j] = i == j ? PairExcess() : Of(*tenants[i], *tenants[j]);
    }
    return absl::OkStatus();
  }
  [[nodiscard]] absl::Status Predict(const DeviceContext& /*device*/, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override {
    for (size_t i = 0; i < tenants.size(); ++i) {
      PairExcess sum;
      for (size_t j = 0; j < tenants.size(); ++j) {
        if (i != j) AddExcess(sum, Of(*tenants[i], *tenants[j]));
      }
      out[i] = SlowdownOf(sum);
    }
    return absl::OkStatus();
  }

 private:
  static PairExcess Of(const Demand& one, const Demand& other) {
    const auto excess = static_cast<int64_t>(2000 * (one.gpu_util_pct.estimate + other.gpu_util_pct.estimate));
    return {excess, excess};
  }
};

inline std::unique_ptr<Placer> MakeAddingPlacer(PlacerOptions options = {}) {
  return *Placer::Create(std::make_shared<AddingModel>(), *MakePolicy("horus"), options);
}

// Seen: every node of the cluster.
inline Plan PlanOf(const Cluster& cluster, Actions actions) {
  Plan plan;
  plan.actions = std::move(actions);
  for (const NodeId id : cluster.NodeIds()) plan.seen.push_back({id, cluster.Node(id)->version});
  return plan;
}

inline std::unique_ptr<Placer> MakePlacer(std::string_view policy = "horus", PlacerOptions options = {},
                                          uint64_t seed = 0) {
  auto made = MakePolicy(policy, {.seed = seed});
  EXPECT_TRUE(made.ok()) << made.status();
  auto placer = Placer::Create(std::make_shared<UtilisationModel>(), *std::move(made), options);
  EXPECT_TRUE(placer.ok()) << placer.status();
  return *std::move(placer);
}

// Plans one job and applies the plan; returns the decision.
inline Decision PlaceOne(Cluster& cluster, Placer& placer, const JobSpec& job) {
  auto plan = placer.MakePlan(cluster, {&job, 1});
  EXPECT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(cluster.Apply(*plan).ok());
  return plan->decisions.at(0);
}

// The decision on one job; nothing is applied.
inline Decision Decide(const Cluster& cluster, const JobSpec& job, std::string_view policy = "horus",
                       PlacerOptions options = {}) {
  auto plan = MakePlacer(policy, options)->MakePlan(cluster, {&job, 1});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan->decisions.at(0);
}

}  // namespace horus::testing_place

#endif  // HORUS_TESTS_UNIT_PLACE_FIXTURES_H_
