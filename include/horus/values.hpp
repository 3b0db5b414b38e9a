// SPDX-License-Identifier: Apache-2.0
// Errors and owning values of the C++ face, and their conversion to structs of the C ABI. Included by horus.hpp.
#ifndef HORUS_VALUES_HPP_
#define HORUS_VALUES_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "horus/horus.h"

// The inline namespace keeps these classes apart from the library's internal classes of the same names: a program that
// links the library statically would otherwise have two definitions of one symbol.
namespace horus {
inline namespace face_v0 {

class Error : public std::runtime_error {
 public:
  Error(horus_status status, const std::string& message)
      : std::runtime_error(std::string(horus_status_name(status)) + ": " + message), status_(status) {}
  [[nodiscard]] horus_status status() const noexcept { return status_; }

 private:
  horus_status status_;
};

namespace detail {

// Calls `function(horus_error*)` and throws the error that it reports. Functions that read values take any such caller:
// a binding passes one that releases its interpreter's lock during the call.
struct Caller {
  template <typename Function>
  void operator()(const Function& function) const {
    horus_error error = HORUS_ERROR_INIT;
    const horus_status status = function(&error);
    if (status != HORUS_OK) throw Error(status, error.message);
  }
};

// Calls `function` with the arguments and an error struct; throws the error that it reports.
template <typename Function, typename... Args>
void Call(Function function, Args... args) {
  Caller()([&](horus_error* error) { return function(args..., error); });
}

template <typename T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* handle) const noexcept { Free(handle); }
};
template <typename T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, Deleter<T, Free>>;

// A column of a C struct; null, which means "the default for every row", if the vector is empty.
template <typename T>
const T* Column(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

inline const char* TextOrNull(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

// The names of a list of horus_library_info.
inline std::vector<std::string> List(const char* const* names) {
  std::vector<std::string> list;
  for (; *names != nullptr; ++names) list.emplace_back(*names);
  return list;
}

// Borrows the texts; null where a text is empty.
inline std::vector<const char*> Texts(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.empty() ? nullptr : text.c_str());
  return pointers;
}

// Fills a vector by `fill`, which sets the count needed and is called again while the capacity was below it.
template <typename T, typename Fill>
std::vector<T> Collect(const Fill& fill) {
  std::vector<T> values;
  for (;;) {
    size_t count = 0;
    horus_error error = HORUS_ERROR_INIT;
    const horus_status status = fill(values.size(), values.data(), &count, &error);
    if (status != HORUS_OK && status != HORUS_ERR_BUFFER_TOO_SMALL) throw Error(status, error.message);
    const bool filled = status == HORUS_OK && count <= values.size();
    values.resize(count);
    if (filled) return values;
  }
}

// Number of rows of a table: `fill` passes capacity 0 and receives the count.
template <typename Fill>
size_t CountOf(const Fill& fill) {
  size_t count = 0;
  horus_error error = HORUS_ERROR_INIT;
  if (const horus_status status = fill(&count, &error); status != HORUS_OK) throw Error(status, error.message);
  return count;
}

}  // namespace detail

// Throws if the program was compiled with headers that the loaded library does not support.
inline void CheckAbi() { detail::Call(horus_abi_check, HORUS_ABI_NUMBER); }

// The library at run time: its release, and the names that it knows.
[[nodiscard]] inline horus_library_info GetLibraryInfo() {
  horus_library_info info = HORUS_LIBRARY_INFO_INIT;
  detail::Call(horus_library_get_info, &info);
  return info;
}

// A horus_demand that starts with the defaults.
struct Demand : horus_demand {
  Demand() : horus_demand(HORUS_DEMAND_INIT) {}
  explicit Demand(const horus_demand& demand) : horus_demand(demand) {}
};
struct RunSpec {
  int32_t mode = HORUS_MODE_TRAINING;
  int32_t precision = HORUS_PRECISION_FP32;
  int32_t optimizer = HORUS_OPTIMIZER_SGD;
  int64_t batch = 0;
  std::vector<std::pair<std::string, int64_t>> dims = {};  // named dimensions to bind
  int64_t checkpoint_segments = 0;                         // 0 or 1 = no checkpointing
  int64_t data_parallel = 1;                               // replicas that average their gradients
  std::vector<std::string> frozen = {};                    // name prefixes of parameters that are not trained
  int32_t framework = HORUS_FRAMEWORK_PYTORCH;
  int32_t layout = HORUS_LAYOUT_NCHW;
};

namespace detail {

// Borrows the RunSpec.
class CRunSpec {
 public:
  explicit CRunSpec(const RunSpec& run) {
    for (const auto& [name, size] : run.dims) {
      names_.push_back(name.c_str());
      sizes_.push_back(size);
    }
    c_.mode = run.mode;
    c_.precision = run.precision;
    c_.optimizer = run.optimizer;
    c_.batch = run.batch;
    c_.dim_count = names_.size();
    c_.dim_names = Column(names_);
    c_.dim_sizes = Column(sizes_);
    c_.checkpoint_segments = run.checkpoint_segments;
    c_.data_parallel = run.data_parallel;
    for (const std::string& prefix : run.frozen) frozen_.push_back(prefix.c_str());
    c_.frozen_count = frozen_.size();
    c_.frozen_prefixes = Column(frozen_);
    c_.framework = run.framework;
    c_.layout = run.layout;
  }
  CRunSpec(const CRunSpec&) = delete;
  CRunSpec& operator=(const CRunSpec&) = delete;
  [[nodiscard]] const horus_run_spec* get() const { return &c_; }

 private:
  std::vector<const char*> names_;
  std::vector<int64_t> sizes_;
  std::vector<const char*> frozen_;
  horus_run_spec c_ = HORUS_RUN_SPEC_INIT;
};

}  // namespace detail

struct Device {
  std::string gpu_type = {};
  int32_t sharing_mode = 0;      // HORUS_SHARING_*; 0 = the default
  std::string mig_profile = {};  // for MIG instances only
  int32_t physical_gpu = -1;
  int32_t nvlink_island = -1;
  int32_t max_tenants = 0;
  int32_t pcie_switch = 0;
  int32_t socket = 0;
  int64_t mem_mib = 0;  // as the driver reports it; 0 = as in the catalogue
  std::string id = {};  // e.g. the driver's UUID; empty = none
};

struct Node {
  uint64_t id = 0;
  std::string name = {};
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
  int64_t storage_mb_s = 0;
  uint64_t rack = 0;
  std::vector<Device> devices = {};
  std::vector<std::pair<std::string, std::string>> labels = {};
  int64_t network_mb_s = 0;  // to other nodes; 0 = the default
};

// One device of one task: a row of horus_slots.
struct Slot {
  uint64_t node = 0;
  uint32_t device = 0;
  uint32_t task = 0;
  friend bool operator==(const Slot&, const Slot&) = default;
};

// Speed of a job by cores and host memory per GPU, for synergy policies.
struct Sensitivity {
  std::vector<int64_t> cpu_milli = {}, mem_mib = {};  // ascending
  std::vector<float> speeds = {};                     // row-major [cpu_milli x mem_mib]; 0 or NaN = not measured
  double host_us = 0;                                 // as in horus_sensitivity
};

// GPU types ("" = any) and the demand on each.
using Demands = std::vector<std::pair<std::string, Demand>>;

// One way of running a job.
struct Alternative {
  int32_t tasks = 1, gpus_per_task = 1, gpu_milli = 0;
  double rate = 0;  // progress per second, in any unit that all ways share
  Demands demands = {};
  int64_t cpu_milli = 0, mem_mib = 0, storage_mb_s = 0;  // per task; 0 = what the job states, -1 = none
};

struct Job {
  uint64_t id = 0;
  std::string name = {};
  std::string tenant = {};
  int32_t kind = HORUS_JOB_TRAINING;
  int32_t tasks = 1, gpus_per_task = 1, gpu_milli = 0;
  bool exclusive = false;
  int32_t priority = 0;
  float slowdown_bound = 0, slowdown_confidence = 0;
  float weight = 1;
  int64_t cpu_milli = 0, mem_mib = 0, storage_mb_s = 0;
  int64_t submit_us = 0;
  int64_t gpu_mem_request_mib = 0, gpu_mem_limit_mib = 0;
  int64_t deadline_us = 0;
  double request_rate_hz = 0;
  int64_t latency_bound_us = 0;
  int32_t share = HORUS_SHARE_SAME_TENANT;
  bool spread_tasks = false;
  std::vector<std::string> groups = {}, avoid_groups = {};
  Demands demands = {};
  std::vector<std::pair<std::string, std::string>> selectors = {};
  std::vector<Alternative> alternatives = {};  // replace tasks, GPUs and demands of the job
  std::optional<Sensitivity> sensitivity = std::nullopt;
  int64_t stated_cpu_milli = 0, stated_mem_mib = 0;  // requested, if the job holds more; 0 = the same, -1 = nothing
  int32_t sm_cap_pct = 0;                            // most of a GPU's SMs under MPS; 0 = no cap
  int32_t sharing_mode = 0;                          // when adopted where either can be: HORUS_SHARING_*
};

namespace detail {

// Pairs as two columns; borrows the pairs.
struct CPairs {
  explicit CPairs(const std::vector<std::pair<std::string, std::string>>& pairs) {
    for (const auto& [key, value] : pairs) {
      keys.push_back(key.c_str());
      values.push_back(value.c_str());
    }
  }
  std::vector<const char*> keys, values;
};

// Demands as two columns; borrows the demands.
struct CDemands {
  explicit CDemands(const Demands& demands) {
    for (const auto& [type, demand] : demands) {
      types.push_back(TextOrNull(type));
      values.push_back(&demand);
    }
  }
  std::vector<const char*> types;
  std::vector<const horus_demand*> values;
};

// Slots as columns.
struct CSlots {
  explicit CSlots(size_t rows) : nodes(rows), devices(rows), tasks(rows) {}
  explicit CSlots(const std::vector<Slot>& slots) {
    for (const Slot& slot : slots) {
      nodes.push_back(slot.node);
      devices.push_back(slot.device);
      tasks.push_back(slot.task);
    }
  }
  [[nodiscard]] horus_slots get() {
    return {sizeof(horus_slots), 0, nodes.size(), nodes.data(), devices.data(), tasks.data()};
  }
  [[nodiscard]] std::vector<Slot> Rows(size_t count) const {
    std::vector<Slot> slots;
    for (size_t i = 0; i < count; ++i) slots.push_back({nodes[i], devices[i], tasks[i]});
    return slots;
  }
  std::vector<uint64_t> nodes;
  std::vector<uint32_t> devices, tasks;
};

// Borrows the matrix. INVALID_ARGUMENT, naming `what`, if its size does not fit its axes.
inline horus_sensitivity ToC(const Sensitivity& matrix, const std::string& what) {
  const size_t cells = matrix.cpu_milli.size() * matrix.mem_mib.size();
  if (matrix.speeds.size() != cells) {
    throw Error(HORUS_ERR_INVALID_ARGUMENT, what + ".speeds: expected " + std::to_string(cells) +
                                                " values (cores x memory), found " +
                                                std::to_string(matrix.speeds.size()));
  }
  return {sizeof(horus_sensitivity), 0,
          matrix.cpu_milli.size(),   Column(matrix.cpu_milli),
          matrix.mem_mib.size(),     Column(matrix.mem_mib),
          Column(matrix.speeds),     matrix.host_us};
}

// Borrows the Node.
class CNode {
 public:
  explicit CNode(const Node& node) : labels_(node.labels) {
    for (const Device& device : node.devices) {
      types_.push_back(device.gpu_type.c_str());
      modes_.push_back(device.sharing_mode);
      profiles_.push_back(TextOrNull(device.mig_profile));
      cards_.push_back(device.physical_gpu);
      islands_.push_back(device.nvlink_island);
      switches_.push_back(device.pcie_switch);
      sockets_.push_back(device.socket);
      tenants_.push_back(device.max_tenants);
      mem_mib_.push_back(device.mem_mib);
      ids_.push_back(TextOrNull(device.id));
    }
    c_.device_count = static_cast<uint32_t>(node.devices.size());
    c_.id = node.id;
    c_.name = node.name.c_str();
    c_.cpu_milli = node.cpu_milli;
    c_.mem_mib = node.mem_mib;
    c_.storage_mb_s = node.storage_mb_s;
    c_.network_mb_s = node.network_mb_s;
    c_.rack = node.rack;
    c_.gpu_types = Column(types_);
    c_.sharing_modes = Column(modes_);
    c_.mig_profiles = Column(profiles_);
    c_.physical_gpus = Column(cards_);
    c_.nvlink_islands = Column(islands_);
    c_.pcie_switches = Column(switches_);
    c_.sockets = Column(sockets_);
    c_.max_tenants = Column(tenants_);
    c_.gpu_mem_mib = Column(mem_mib_);
    c_.device_ids = Column(ids_);
    c_.label_count = node.labels.size();
    c_.label_keys = Column(labels_.keys);
    c_.label_values = Column(labels_.values);
  }
  CNode(const CNode&) = delete;
  CNode& operator=(const CNode&) = delete;
  [[nodiscard]] const horus_node* get() const { return &c_; }

 private:
  std::vector<const char*> types_, profiles_, ids_;
  std::vector<int32_t> modes_, cards_, islands_, switches_, sockets_, tenants_;
  std::vector<int64_t> mem_mib_;
  CPairs labels_;
  horus_node c_ = HORUS_NODE_INIT;
};

// Borrows the Alternative.
struct CAlternative {
  explicit CAlternative(const Alternative& way) : demands(way.demands) {
    c.tasks = way.tasks;
    c.gpus_per_task = way.gpus_per_task;
    c.gpu_milli = way.gpu_milli;
    c.rate = way.rate;
    c.demand_count = way.demands.size();
    c.gpu_types = Column(demands.types);
    c.demands = Column(demands.values);
    c.cpu_milli = way.cpu_milli;
    c.mem_mib = way.mem_mib;
    c.storage_mb_s = way.storage_mb_s;
  }
  CAlternative(const CAlternative&) = delete;
  CAlternative& operator=(const CAlternative&) = delete;
  CDemands demands;
  horus_job_alternative c = HORUS_JOB_ALTERNATIVE_INIT;
};

// Borrows the Job.
class CJob {
 public:
  explicit CJob(const Job& job)
      : demands_(job.demands),
        selectors_(job.selectors),
        groups_(Texts(job.groups)),
        avoid_groups_(Texts(job.avoid_groups)) {
    for (const Alternative& way : job.alternatives) ways_.push_back(std::make_unique<CAlternative>(way));
    for (const auto& way : ways_) way_pointers_.push_back(&way->c);
    c_.alternative_count = way_pointers_.size();
    c_.alternatives = Column(way_pointers_);
    c_.kind = job.kind;
    c_.id = job.id;
    c_.name = job.name.c_str();
    c_.tenant = job.tenant.c_str();
    c_.tasks = job.tasks;
    c_.gpus_per_task = job.gpus_per_task;
    c_.gpu_milli = job.gpu_milli;
    c_.exclusive = job.exclusive ? 1 : 0;
    c_.priority = job.priority;
    c_.weight = job.weight;
    c_.slowdown_bound = job.slowdown_bound;
    c_.slowdown_confidence = job.slowdown_confidence;
    c_.cpu_milli = job.cpu_milli;
    c_.mem_mib = job.mem_mib;
    c_.storage_mb_s = job.storage_mb_s;
    c_.submit_us = job.submit_us;
    c_.gpu_mem_request_mib = job.gpu_mem_request_mib;
    c_.gpu_mem_limit_mib = job.gpu_mem_limit_mib;
    c_.deadline_us = job.deadline_us;
    c_.request_rate_hz = job.request_rate_hz;
    c_.latency_bound_us = job.latency_bound_us;
    c_.sm_cap_pct = job.sm_cap_pct;
    c_.sharing_mode = job.sharing_mode;
    if (job.sensitivity) {
      sensitivity_ = ToC(*job.sensitivity, "Job.sensitivity");
      c_.sensitivity = &sensitivity_;
    }
    c_.stated_cpu_milli = job.stated_cpu_milli;
    c_.stated_mem_mib = job.stated_mem_mib;
    c_.share = job.share;
    c_.spread_tasks = job.spread_tasks ? 1 : 0;
    c_.group_count = groups_.size();
    c_.groups = Column(groups_);
    c_.avoid_count = avoid_groups_.size();
    c_.avoid_groups = Column(avoid_groups_);
    c_.demand_count = job.demands.size();
    c_.gpu_types = Column(demands_.types);
    c_.demands = Column(demands_.values);
    c_.selector_count = job.selectors.size();
    c_.selector_keys = Column(selectors_.keys);
    c_.selector_values = Column(selectors_.values);
  }
  CJob(const CJob&) = delete;
  CJob& operator=(const CJob&) = delete;
  [[nodiscard]] const horus_job* get() const { return &c_; }

 private:
  CDemands demands_;
  CPairs selectors_;
  std::vector<const char*> groups_, avoid_groups_;
  std::vector<std::unique_ptr<CAlternative>> ways_;
  std::vector<const horus_job_alternative*> way_pointers_;
  horus_sensitivity sensitivity_ = HORUS_SENSITIVITY_INIT;
  horus_job c_ = HORUS_JOB_INIT;
};

inline std::string TextOf(const char* text) { return text == nullptr ? "" : text; }

inline Demands DemandsFrom(size_t count, const char* const* types, const horus_demand* const* demands) {
  Demands made;
  for (size_t i = 0; i < count; ++i) {
    made.emplace_back(TextOf(types == nullptr ? nullptr : types[i]), Demand(*demands[i]));
  }
  return made;
}

}  // namespace detail

// Copies a job of the C ABI, e.g. of horus_cluster_get_job.
inline Job JobFrom(const horus_job& c) {
  Job job;
  job.id = c.id;
  job.name = detail::TextOf(c.name);
  job.tenant = detail::TextOf(c.tenant);
  job.kind = c.kind;
  job.tasks = c.tasks;
  job.gpus_per_task = c.gpus_per_task;
  job.gpu_milli = c.gpu_milli;
  job.exclusive = c.exclusive == 1;
  job.priority = c.priority;
  job.slowdown_bound = c.slowdown_bound;
  job.slowdown_confidence = c.slowdown_confidence;
  job.weight = c.weight;
  job.cpu_milli = c.cpu_milli;
  job.mem_mib = c.mem_mib;
  job.storage_mb_s = c.storage_mb_s;
  job.submit_us = c.submit_us;
  job.gpu_mem_request_mib = c.gpu_mem_request_mib;
  job.gpu_mem_limit_mib = c.gpu_mem_limit_mib;
  job.deadline_us = c.deadline_us;
  job.request_rate_hz = c.request_rate_hz;
  job.latency_bound_us = c.latency_bound_us;
  job.sm_cap_pct = c.sm_cap_pct;
  job.sharing_mode = c.sharing_mode;
  job.share = c.share;
  job.spread_tasks = c.spread_tasks == 1;
  job.groups.assign(c.groups, c.groups + c.group_count);
  job.avoid_groups.assign(c.avoid_groups, c.avoid_groups + c.avoid_count);
  job.demands = detail::DemandsFrom(c.demand_count, c.gpu_types, c.demands);
  for (size_t i = 0; i < c.selector_count; ++i) job.selectors.emplace_back(c.selector_keys[i], c.selector_values[i]);
  for (size_t i = 0; i < c.alternative_count; ++i) {
    const horus_job_alternative& way = *c.alternatives[i];
    job.alternatives.push_back({way.tasks, way.gpus_per_task, way.gpu_milli, way.rate,
                                detail::DemandsFrom(way.demand_count, way.gpu_types, way.demands), way.cpu_milli,
                                way.mem_mib, way.storage_mb_s});
  }
  if (const horus_sensitivity* s = c.sensitivity) {
    job.sensitivity = Sensitivity{{s->cpu_milli, s->cpu_milli + s->cpu_count},
                                  {s->mem_mib, s->mem_mib + s->mem_count},
                                  {s->speeds, s->speeds + s->cpu_count * s->mem_count},
                                  s->host_us};
  }
  job.stated_cpu_milli = c.stated_cpu_milli;
  job.stated_mem_mib = c.stated_mem_mib;
  return job;
}

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_VALUES_HPP_
