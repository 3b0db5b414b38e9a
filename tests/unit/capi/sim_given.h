// SPDX-License-Identifier: Apache-2.0
// What the tests of simulations through the C ABI start from: a drawn trace, demands and a cluster of two GPU types.
#ifndef HORUS_TESTS_UNIT_CAPI_SIM_GIVEN_H_
#define HORUS_TESTS_UNIT_CAPI_SIM_GIVEN_H_

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "capi/handles.h"
#include "draw.h"
#include "lab/capi/handles.h"
#include "lab/simulator.h"

namespace horus {

inline constexpr size_t kJobs = 80;
inline constexpr const char* kTypes[] = {"v100-pcie-16gb", "a100-40gb"};
inline constexpr const char* kNames[] = {"a", "b", "c"};

template <typename T, void (*Free)(T*)>
struct FreeBy {
  void operator()(T* handle) const { Free(handle); }
};
template <typename T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, FreeBy<T, Free>>;

// Jobs, demands and a cluster as columns and structs.
struct GivenSim {
  std::vector<uint64_t> ids;
  std::vector<int64_t> submit_us, duration_us;
  std::vector<int32_t> gpus, priorities;
  std::vector<uint32_t> profiles, owners;
  std::vector<horus_demand> demands;
  std::vector<const horus_demand*> demand_pointers;
  std::vector<const char*> demand_profiles, demand_types;
  Owned<horus_trace, horus_trace_free> trace;
  Owned<horus_truth, horus_truth_free> truth;
  Owned<horus_cluster, horus_cluster_free> cluster;
  horus_profile_demands beliefs = HORUS_PROFILE_DEMANDS_INIT;

  GivenSim() {
    AddTrace();
    AddDemands();
    horus_truth* made = nullptr;
    EXPECT_EQ(horus_truth_from_model(nullptr, nullptr, &beliefs, &made, nullptr), HORUS_OK);
    truth.reset(made);
    AddCluster();
  }
  void AddTrace() {
    for (size_t i = 0; i < kJobs; ++i) {
      ids.push_back(1000 - i);
      submit_us.push_back(static_cast<int64_t>(Draw(i) * 2e9));
      duration_us.push_back(1 + static_cast<int64_t>(Draw(1000 + i) * 6e8));
      gpus.push_back(Draw(2000 + i) < 0.2 ? 2 : 1);
      priorities.push_back(Draw(3000 + i) < 0.1 ? 1 : 0);
      profiles.push_back(static_cast<uint32_t>(i % std::size(kNames)));
      owners.push_back(static_cast<uint32_t>(i % 2));
    }
    horus_trace_columns columns = HORUS_TRACE_COLUMNS_INIT;
    columns.count = kJobs;
    columns.ids = ids.data();
    columns.submit_us = submit_us.data();
    columns.duration_us = duration_us.data();
    columns.gpus_per_task = gpus.data();
    columns.priorities = priorities.data();
    columns.profile_count = std::size(kNames);
    columns.profile_names = kNames;
    columns.profiles = profiles.data();
    columns.owner_count = 2;
    columns.owner_names = kNames;
    columns.owners = owners.data();
    horus_trace* made = nullptr;
    EXPECT_EQ(horus_trace_create(&columns, &made, nullptr), HORUS_OK);
    trace.reset(made);
  }
  void AddDemands() {
    for (size_t i = 0; i < std::size(kNames) * std::size(kTypes); ++i) {
      horus_demand demand = HORUS_DEMAND_INIT;
      demand.flags = HORUS_DEMAND_GIVEN;
      demand.profile_id = 1 + i / 2;
      demand.gpu_util_pct = 25 + 15 * static_cast<float>(i / 2);
      demand.mem_mib = 3000;
      demand.step_time_us = i % 2 == 0 ? 100'000 : 60'000;
      demands.push_back(demand);
      demand_profiles.push_back(kNames[i / 2]);
      demand_types.push_back(kTypes[i % 2]);
    }
    for (const horus_demand& demand : demands) demand_pointers.push_back(&demand);
    beliefs.count = demands.size();
    beliefs.profiles = demand_profiles.data();
    beliefs.gpu_types = demand_types.data();
    beliefs.demands = demand_pointers.data();
  }
  void AddCluster() {
    horus_cluster* made = nullptr;
    EXPECT_EQ(horus_cluster_create(nullptr, &made, nullptr), HORUS_OK);
    cluster.reset(made);
    for (size_t i = 0; i < std::size(kTypes); ++i) {
      const char* const types[] = {kTypes[i], kTypes[i], kTypes[i]};
      horus_node node = HORUS_NODE_INIT;
      node.id = 1 + i;
      node.device_count = std::size(types);
      node.gpu_types = types;
      node.cpu_milli = 64'000;
      node.mem_mib = 1 << 18;
      EXPECT_EQ(horus_cluster_add_node(made, &node, nullptr), HORUS_OK);
    }
  }
  // The same for the room.
  [[nodiscard]] std::vector<ProfileDemands> Beliefs() const {
    std::vector<ProfileDemands> all;
    for (const std::string& profile : trace->value->profiles) {
      all.push_back(truth->demands.find(profile)->second);
    }
    return all;
  }
};

inline void ExpectSameJobs(const SimResult& a, const SimResult& b) {
  ASSERT_EQ(a.jobs.size(), b.jobs.size());
  for (size_t i = 0; i < a.jobs.size(); ++i) {
    EXPECT_EQ(a.jobs[i].start_us, b.jobs[i].start_us) << i;
    EXPECT_EQ(a.jobs[i].end_us, b.jobs[i].end_us) << i;
    EXPECT_EQ(a.jobs[i].sums.done, b.jobs[i].sums.done) << i;
    EXPECT_EQ(a.jobs[i].lost, b.jobs[i].lost) << i;
  }
  EXPECT_EQ(a.decisions, b.decisions);
  EXPECT_EQ(a.belief_error, b.belief_error);
}

}  // namespace horus

#endif  // HORUS_TESTS_UNIT_CAPI_SIM_GIVEN_H_
