// SPDX-License-Identifier: Apache-2.0
// The values that people hand to the library: runs, demands, devices, nodes, jobs. Those of the C++ face, with what
// it lacks; each can become the struct of the C ABI.
#ifndef HORUS_PYTHON_VALUES_H_
#define HORUS_PYTHON_VALUES_H_

#include <pybind11/pybind11.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "args.h"
#include "horus/horus.hpp"

namespace horus_python {

extern const Word kModes[], kPrecisions[], kOptimizers[], kFrameworks[], kSharingModes[], kStates[], kKinds[],
    kShares[], kVerdicts[];

struct RunSpec : horus::RunSpec {
  static constexpr const char* kName = "RunSpec";
};

struct Demand : horus_demand {
  static constexpr const char* kName = "Demand";
  Demand() : horus_demand(HORUS_DEMAND_INIT) {}
  explicit Demand(const horus_demand& demand) : horus_demand(demand) {}
};

struct Device : horus::Device {
  static constexpr const char* kName = "Device";
  int64_t mem_mib = 0;  // as the driver reports it; 0 = the catalogue's
};

struct Node {
  static constexpr const char* kName = "Node";
  uint64_t id = 0;
  std::string name = {};
  int64_t cpu_milli = 0, mem_mib = 0, storage_mb_s = 0, network_mb_s = 0;
  uint64_t rack = 0;
  std::vector<Device> devices = {};
  std::vector<std::pair<std::string, std::string>> labels = {};
};

// A Node as the C ABI takes it.
class CNode {
 public:
  explicit CNode(const Node& node);
  CNode(const CNode&) = delete;
  CNode& operator=(const CNode&) = delete;
  [[nodiscard]] const horus_node* get() const { return &c_; }

 private:
  horus::Node face_;
  horus::detail::CNode columns_;
  std::vector<int64_t> gpu_mem_mib_;
  horus_node c_;
};

// A job's speed by its share of cores and host memory.
struct Sensitivity {
  static constexpr const char* kName = "Sensitivity";
  std::vector<int64_t> cpu_milli = {}, mem_mib = {};
  std::vector<float> speeds = {};  // row-major
};

struct Alternative {
  static constexpr const char* kName = "Alternative";
  int32_t tasks = 1, gpus_per_task = 1, gpu_milli = 0;
  double rate = 0;
  std::vector<std::pair<std::string, Demand>> demands = {};
  int64_t cpu_milli = 0, mem_mib = 0, storage_mb_s = 0;
};

class CJob;

struct Job {
  static constexpr const char* kName = "Job";
  uint64_t id = 0;
  std::string name = {}, tenant = {};
  int32_t kind = HORUS_JOB_TRAINING, tasks = 1, gpus_per_task = 1, gpu_milli = 0;
  bool exclusive = false;
  int32_t priority = 0;
  float slowdown_bound = 0, slowdown_confidence = 0, weight = 1;
  int64_t cpu_milli = 0, mem_mib = 0, storage_mb_s = 0, submit_us = 0, deadline_us = 0;
  double request_rate_hz = 0;
  int64_t latency_bound_us = 0, gpu_mem_request_mib = 0, gpu_mem_limit_mib = 0;
  int32_t share = HORUS_SHARE_SAME_TENANT;
  bool spread_tasks = false;
  std::vector<std::string> groups = {}, avoid_groups = {};
  std::vector<std::pair<std::string, Demand>> demands = {};
  std::vector<std::pair<std::string, std::string>> selectors = {};
  std::vector<Alternative> alternatives = {};
  std::optional<Sensitivity> sensitivity = std::nullopt;
  int64_t stated_cpu_milli = 0, stated_mem_mib = 0;

  // As the C ABI takes it; lives as long as this job or a copy of it. Made at the first call, under the lock.
  [[nodiscard]] const horus_job* get() const;
  void Changed() { c_.reset(); }

 private:
  mutable std::shared_ptr<const CJob> c_;
};

// The demands of one GPU type for each of them: name ("any" = every type), demand.
using Demands = std::vector<std::pair<std::string, Demand>>;

template <>
struct Arg<Demand> : ValueArg<Demand> {};
template <>
struct Arg<Device> : ValueArg<Device> {};
template <>
struct Arg<Alternative> : ValueArg<Alternative> {};
template <>
struct Arg<Sensitivity> : ValueArg<Sensitivity> {};

// As the C ABI takes it; borrows it. Refuses a matrix whose size does not fit its axes, as `what`.speeds.
horus_sensitivity ToC(const Sensitivity& sensitivity, const std::string& what);
// A job of the C ABI, "any" for a NULL type.
Job JobFromC(const horus_job& c);
using JobList = Handle<horus_job_list, horus_job_list_free>;
py::tuple JobsOf(const JobList& list);
// Jobs as the C ABI takes them; the tuple must live on.
std::vector<const horus_job*> JobPointers(const py::tuple& jobs, const char* what);
// The run of an argument, or none.
const horus_run_spec* PointerOf(const std::optional<horus::detail::CRunSpec>& run);

}  // namespace horus_python

#endif  // HORUS_PYTHON_VALUES_H_
