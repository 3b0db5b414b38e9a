// SPDX-License-Identifier: Apache-2.0
// Random nodes, demands and jobs as the C ABI takes them, good ones mostly, with all that they point to.
//
// Enters:  choices.                       Leaves: structs that are good as long as what holds them.
// Units:   as horus/*.h.
// Cost:    none.                          Thread class: one thread at a time.
#ifndef HORUS_TESTS_CALLS_ARGUMENTS_H_
#define HORUS_TESTS_CALLS_ARGUMENTS_H_

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "calls/choices.h"
#include "calls/corrupt.h"
#include "horus/lab/lab.h"

namespace horus::calls {

inline constexpr uint32_t kMostDevices = 8;
inline constexpr std::array<const char*, 4> kGpuTypes = {"v100-sxm2-16gb", "a100-40gb", "k80", "A100 40GB"};
inline constexpr std::array<const char*, 3> kNames = {"a", "b", "horus-profiling"};  // of owners, groups, labels

struct NodeArgument {
  Roomy<horus_node> node;
  std::array<const char*, kMostDevices> gpu_types = {};
  std::array<int32_t, kMostDevices> sharing_modes = {};
  std::array<const char*, kMostDevices> mig_profiles = {};
  std::array<int32_t, kMostDevices> physical_gpus = {}, islands = {}, switches = {}, max_tenants = {};
  std::array<int64_t, kMostDevices> gpu_mem_mib = {};
  std::array<const char*, 2> label_keys = {}, label_values = {};

  NodeArgument() = default;
  NodeArgument(const NodeArgument&) = delete;  // it points into itself
  NodeArgument& operator=(const NodeArgument&) = delete;
};

// `hostile`: one in so many is corrupted.
void MakeNode(Choices& choices, uint64_t id, uint32_t most_devices, uint64_t hostile, NodeArgument& out);

struct DemandsArgument {
  std::array<Roomy<horus_demand>, 3> demands;
  std::array<const horus_demand*, 3> pointers = {};
  std::array<const char*, 3> gpu_types = {};
  size_t count = 0;
};
void MakeDemand(Choices& choices, uint64_t hostile, Roomy<horus_demand>& out);
void MakeDemands(Choices& choices, uint64_t hostile, DemandsArgument& out);

struct JobArgument {
  Roomy<horus_job> job;
  DemandsArgument demands;
  std::array<Roomy<horus_job_alternative>, 2> alternatives;
  std::array<DemandsArgument, 2> alternative_demands;
  std::array<const horus_job_alternative*, 2> alternative_pointers = {};
  Roomy<horus_sensitivity> sensitivity;
  std::array<int64_t, 3> cpu_milli = {};
  std::array<int64_t, 2> mem_mib = {};
  std::array<float, 6> speeds = {};
  std::array<const char*, 2> selector_keys = {}, selector_values = {}, groups = {}, avoid = {};

  JobArgument() = default;
  JobArgument(const JobArgument&) = delete;
  JobArgument& operator=(const JobArgument&) = delete;
};
// `variety`: one in so many says more than what it needs.
void MakeJob(Choices& choices, uint64_t id, uint64_t hostile, uint64_t variety, JobArgument& out);

// Several jobs, which may share ids.
struct JobsArgument {
  std::deque<JobArgument> jobs;
  std::vector<const horus_job*> pointers;

  JobArgument& Add() {
    jobs.emplace_back();
    pointers.push_back(&jobs.back().job.value);
    return jobs.back();
  }
};

}  // namespace horus::calls

#endif  // HORUS_TESTS_CALLS_ARGUMENTS_H_
