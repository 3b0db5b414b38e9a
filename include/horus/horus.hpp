// SPDX-License-Identifier: Apache-2.0
// The C++20 face of libhorus: header-only RAII over horus.h. Standard types only; link with libhorus.so alone.
//
// Handles are move-only classes. Functions that fail throw horus::Error with the status. Values (Node, Job, Decision,
// ...) own their text and arrays. The C headers give the meaning, unit, range, errors and thread class of each call
// and field.
#ifndef HORUS_HORUS_HPP_
#define HORUS_HORUS_HPP_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "horus/catalogue.hpp"
#include "horus/horus.h"
#include "horus/interference.hpp"
#include "horus/metrics.hpp"
#include "horus/observations.hpp"
#include "horus/queue.hpp"
#include "horus/values.hpp"

namespace horus {
inline namespace face_v0 {  // see values.hpp

class Graph {
 public:
  [[nodiscard]] static Graph FromFile(const std::string& path) {
    horus_graph* out = nullptr;
    detail::Call(horus_graph_from_file, path.c_str(), nullptr, &out);
    return Graph(out);
  }
  [[nodiscard]] static Graph FromBytes(std::span<const std::byte> bytes) {
    horus_graph* out = nullptr;
    detail::Call(horus_graph_from_bytes, bytes.data(), bytes.size(), nullptr, &out);
    return Graph(out);
  }
  // Of a config.json's text, or of a known model's name. Since 0.2.
  [[nodiscard]] static Graph FromConfig(std::string_view text, const horus_config_options* options = nullptr) {
    horus_graph* out = nullptr;
    detail::Call(horus_graph_from_config, text.data(), text.size(), options, &out);
    return Graph(out);
  }
  [[nodiscard]] horus_graph_info info() const {
    horus_graph_info info = HORUS_GRAPH_INFO_INIT;
    detail::Call(horus_graph_get_info, get(), &info);
    return info;
  }
  // Names of the dimensions that RunSpec::dims may bind.
  [[nodiscard]] std::vector<std::string> Dims() const {
    std::vector<std::string> names;
    for (size_t i = 0; const char* name = horus_graph_dim_name(get(), i); ++i) names.emplace_back(name);
    return names;
  }
  [[nodiscard]] const horus_graph* get() const noexcept { return handle_.get(); }

 private:
  explicit Graph(horus_graph* handle) : handle_(handle) {}
  detail::Owned<horus_graph, horus_graph_free> handle_;
};

struct SolveOptions {
  std::string dim = "batch";
  int64_t max_value = 0;                   // 0 = the default
  std::vector<int64_t> resident_mib = {};  // per device; empty = none
};

struct Solution {
  int64_t largest = 0;
  int32_t reason = HORUS_SOLVED_MEMORY;
  uint32_t flags = 0;
  int64_t next = 0;
  int64_t mem_mib_upper = 0;
  int64_t short_mib = 0;
  std::string message;
};

struct ServiceLoad : horus_service_load {
  ServiceLoad() : horus_service_load(HORUS_SERVICE_LOAD_INIT) {}
};

struct Service : horus_service {
  Service() : horus_service(HORUS_SERVICE_INIT) {}
  Demand demand;  // what to place
};

namespace detail {

inline Solution SolutionFrom(const horus_solution& c) {
  return {c.largest, c.reason, c.flags, c.next, c.mem_mib_upper, c.short_mib, c.message};
}

}  // namespace detail

class Predictor {
 public:
  Predictor() {
    horus_predictor* out = nullptr;
    detail::Call(horus_predictor_default, &out);
    handle_.reset(out);
  }
  explicit Predictor(std::span<const std::byte> bundle) {
    horus_predictor* out = nullptr;
    detail::Call(horus_predictor_from_bytes, bundle.data(), bundle.size(), &out);
    handle_.reset(out);
  }
  // A new predictor, of a new epoch, that answers with the measured demands.
  [[nodiscard]] Predictor Commit(const Observations& observations) const {
    horus_predictor* out = nullptr;
    detail::Call(horus_predictor_commit, handle_.get(), observations.get(), &out);
    return Predictor(out);
  }
  [[nodiscard]] uint64_t epoch() const noexcept { return horus_predictor_epoch(handle_.get()); }
  [[nodiscard]] std::vector<std::byte> Bundle() const {
    return detail::Collect<std::byte>([&](size_t capacity, std::byte* bytes, size_t* count, horus_error* error) {
      return horus_predictor_to_bytes(handle_.get(), capacity, bytes, count, error);
    });
  }
  // One demand per GPU type, in the order of gpu_types.
  [[nodiscard]] std::vector<Demand> Demands(const Graph& graph, const RunSpec& run,
                                            const std::vector<std::string>& gpu_types,
                                            const Catalogue* catalogue = nullptr) const {
    const std::vector<const char*> names = detail::Texts(gpu_types);
    std::vector<Demand> demands(gpu_types.size());
    std::vector<horus_demand*> out;
    for (Demand& demand : demands) out.push_back(&demand);
    detail::Call(horus_predictor_demand, handle_.get(), detail::HandleOf(catalogue), graph.get(),
                 detail::CRunSpec(run).get(), names.size(), names.data(), out.data());
    return demands;
  }
  // The largest value of options.dim that fits each device, in the order of gpu_types.
  [[nodiscard]] std::vector<Solution> Solve(const Graph& graph, const RunSpec& run, const SolveOptions& options,
                                            const std::vector<std::string>& gpu_types,
                                            const Catalogue* catalogue = nullptr) const {
    const size_t count = gpu_types.size();
    if (!options.resident_mib.empty() && options.resident_mib.size() != count) {
      throw Error(HORUS_ERR_INVALID_ARGUMENT, "resident_mib: expected one per device or none");
    }
    const horus_solve_options c = {sizeof(horus_solve_options), 0, options.dim.c_str(), options.max_value,
                                   detail::Column(options.resident_mib)};
    const std::vector<const char*> names = detail::Texts(gpu_types);
    std::vector<horus_solution> found(count, horus_solution(HORUS_SOLUTION_INIT));
    std::vector<horus_solution*> out;
    for (horus_solution& solution : found) out.push_back(&solution);
    detail::Call(horus_predictor_solve, handle_.get(), detail::HandleOf(catalogue), graph.get(),
                 detail::CRunSpec(run).get(), &c, count, names.data(), nullptr, nullptr, out.data());
    std::vector<Solution> solutions;
    for (const horus_solution& solution : found) solutions.push_back(detail::SolutionFrom(solution));
    return solutions;
  }
  // How an engine serves the load, in the order of gpu_types.
  [[nodiscard]] std::vector<Service> Services(const Graph& graph, const RunSpec& run, const ServiceLoad& load,
                                              const std::vector<std::string>& gpu_types,
                                              const Catalogue* catalogue = nullptr) const {
    const std::vector<const char*> names = detail::Texts(gpu_types);
    std::vector<Service> services(gpu_types.size());
    std::vector<horus_service*> out;
    std::vector<horus_demand*> demands;
    for (Service& service : services) {
      out.push_back(&service);
      demands.push_back(&service.demand);
    }
    detail::Call(horus_predictor_service, handle_.get(), detail::HandleOf(catalogue), graph.get(),
                 detail::CRunSpec(run).get(), &load, names.size(), names.data(), out.data(), demands.data());
    return services;
  }
  // Call it before other threads use the handle; null = no metrics.
  void SetMetrics(const Metrics* metrics) { metered_.Set(horus_predictor_set_metrics, handle_.get(), metrics); }

  // Takes ownership of the handle.
  explicit Predictor(horus_predictor* owned) noexcept : handle_(owned) {}

 private:
  detail::Metered metered_;  // declared before handle_, which must be destroyed first
  detail::Owned<horus_predictor, horus_predictor_free> handle_;
};

struct Effect {
  uint64_t job = 0;
  uint64_t node = 0;
  uint32_t device = 0;
  float slowdown_before = 1, slowdown_after = 1, slowdown_after_upper = 1;
  float calibrated_up_to = 0;  // highest probability for which left-out data support the upper bound
};

// The nearest miss of a refusal.
struct Miss {
  int32_t reason = HORUS_REASON_NONE;
  uint64_t node = 0;
  uint32_t device = 0;  // UINT32_MAX = the node as a whole
  double needed = 0, available = 0;
  std::string unit = {};
  double estimate = 0;  // the expected amount, where the miss states an upper bound; else 0
};

// One decision with all its rows.
struct Decision {
  uint64_t job = 0;
  int32_t verdict = HORUS_VERDICT_REJECT;
  int32_t reason = HORUS_REASON_NONE;
  float slowdown = 0;
  double cost = 0;
  std::string text;
  std::vector<Slot> slots;
  std::vector<Effect> effects;
  bool probe = false;
  bool trial = false;  // shares where that pays by expectation but not by the upper bounds; observe it
  int32_t alternative = -1;
  int64_t cpu_milli = 0, mem_mib = 0;                      // when placed: what each task holds
  int64_t gpu_mem_request_mib = 0, gpu_mem_limit_mib = 0;  // when placed: per GPU, granted and at most
  int32_t sharing_mode = 0;                                // when placed: HORUS_SHARING_* of its devices; 0 = none
  int32_t sm_cap_pct = 0;        // when placed: most of a GPU's SMs that it may use there; 0 = no cap
  float sm_cap_slowdown = 1;     // by that cap alone
  bool predicted_never = false;  // deferred, although a prediction makes even the empty cluster refuse the job
  float slowdown_upper = 0;
  float slowdown_in_plan = 0, slowdown_in_plan_upper = 0;  // once the whole plan is applied: later jobs may come beside
  uint64_t passed_by = 0;  // of HORUS_REASON_PASSED_OVER: who took its place; 0 = nobody who can be named
  double runner_up_cost = std::numeric_limits<double>::quiet_NaN();  // NaN = no other place
  std::optional<Miss> miss = std::nullopt;
  std::vector<std::pair<std::string, double>> terms = {};   // parts of the cost, which is their sum
  std::vector<std::pair<int32_t, uint64_t>> refusals = {};  // reason, number of devices refused
  [[nodiscard]] bool placed() const { return verdict == HORUS_VERDICT_PLACE; }
};

namespace detail {

// `read` fills columns of `count` slots.
template <typename AnyCaller, typename Read>
std::vector<Slot> ReadSlots(const AnyCaller& call, size_t count, const Read& read) {
  CSlots columns(count);
  const horus_slots c = columns.get();
  call([&](horus_error* error) { return read(&c, &count, error); });
  return columns.Rows(count);
}

template <typename AnyCaller>
std::vector<Effect> ReadEffects(const AnyCaller& call, const horus_plan* plan, size_t index, size_t count) {
  std::vector<uint64_t> jobs(count), nodes(count);
  std::vector<uint32_t> devices(count);
  std::vector<float> before(count), after(count), upper(count), calibrated(count);
  const horus_effects columns = {sizeof(horus_effects),
                                 0,
                                 count,
                                 jobs.data(),
                                 nodes.data(),
                                 devices.data(),
                                 before.data(),
                                 after.data(),
                                 upper.data(),
                                 calibrated.data()};
  call([&](horus_error* error) { return horus_plan_effects(plan, index, &columns, &count, error); });
  std::vector<Effect> effects;
  for (size_t i = 0; i < count; ++i) {
    effects.push_back({jobs[i], nodes[i], devices[i], before[i], after[i], upper[i], calibrated[i]});
  }
  return effects;
}

template <typename AnyCaller>
void ReadTerms(const AnyCaller& call, const horus_plan* plan, size_t index, size_t count, Decision& decision) {
  std::vector<const char*> names(count);
  std::vector<double> costs(count);
  call([&](horus_error* error) {
    return horus_plan_terms(plan, index, count, names.data(), costs.data(), &count, error);
  });
  for (size_t i = 0; i < count; ++i) decision.terms.emplace_back(names[i], costs[i]);
}

template <typename AnyCaller>
void ReadRefusals(const AnyCaller& call, const horus_plan* plan, size_t index, Decision& decision) {
  size_t count = CountOf([&](size_t* needed, horus_error* error) {
    return horus_plan_refusals(plan, index, 0, nullptr, nullptr, needed, error);
  });
  std::vector<int32_t> reasons(count);
  std::vector<uint64_t> counts(count);
  call([&](horus_error* error) {
    return horus_plan_refusals(plan, index, count, reasons.data(), counts.data(), &count, error);
  });
  for (size_t i = 0; i < count; ++i) decision.refusals.emplace_back(reasons[i], counts[i]);
}

template <typename AnyCaller>
Decision ReadDecision(const AnyCaller& call, const horus_plan* plan, size_t index) {
  horus_decision c = HORUS_DECISION_INIT;
  call([&](horus_error* error) { return horus_plan_get(plan, index, &c, error); });
  Decision decision;
  decision.job = c.job_id;
  decision.verdict = c.verdict;
  decision.reason = c.reason;
  decision.text = c.text;
  decision.slowdown = c.slowdown;
  decision.slowdown_upper = c.slowdown_upper;
  decision.slowdown_in_plan = c.slowdown_in_plan;
  decision.slowdown_in_plan_upper = c.slowdown_in_plan_upper;
  decision.passed_by = c.passed_by;
  decision.cost = c.cost;
  decision.runner_up_cost = c.runner_up_cost;
  decision.probe = c.probe == 1;
  decision.trial = c.trial == 1;
  decision.alternative = c.alternative;
  decision.predicted_never = c.predicted_never == 1;
  decision.cpu_milli = c.cpu_milli;
  decision.gpu_mem_request_mib = c.gpu_mem_request_mib;
  decision.gpu_mem_limit_mib = c.gpu_mem_limit_mib;
  decision.sharing_mode = c.sharing_mode;
  decision.sm_cap_pct = c.sm_cap_pct;
  decision.sm_cap_slowdown = c.sm_cap_slowdown;
  decision.mem_mib = c.mem_mib;
  if (c.miss_reason != HORUS_REASON_NONE) {
    decision.miss = Miss{c.miss_reason,    c.miss_node,         c.miss_device,  c.miss_needed,
                         c.miss_available, TextOf(c.miss_unit), c.miss_estimate};
  }
  decision.slots = ReadSlots(call, c.slots, [&](const horus_slots* columns, size_t* count, horus_error* error) {
    return horus_plan_slots(plan, HORUS_SLOTS_DECISION, index, columns, count, error);
  });
  decision.effects = ReadEffects(call, plan, index, c.effects);
  ReadTerms(call, plan, index, c.terms, decision);
  ReadRefusals(call, plan, index, decision);
  return decision;
}

}  // namespace detail

class Plan {
 public:
  [[nodiscard]] size_t size() const { return info().decisions; }
  [[nodiscard]] horus_plan_info info() const {
    horus_plan_info info = HORUS_PLAN_INFO_INIT;
    detail::Call(horus_plan_get_info, get(), &info);
    return info;
  }
  [[nodiscard]] Decision at(size_t index) const { return detail::ReadDecision(detail::Caller(), get(), index); }
  [[nodiscard]] const horus_plan* get() const noexcept { return handle_.get(); }

  explicit Plan(horus_plan* owned) noexcept : handle_(owned) {}

 private:
  detail::Owned<horus_plan, horus_plan_free> handle_;
};

struct Resident {
  Job job = {};  // as it can be planned again
  bool adopted = false;
  bool over_committed = false;  // adopted where a constraint would have refused it
  int32_t sm_cap_pct = 0;       // under which it runs, stated or chosen; 0 = none
  bool probe = false;           // alone as a probe, which `job` does not state
};

class Cluster {
 public:
  explicit Cluster(const Catalogue* catalogue = nullptr) {
    horus_cluster* out = nullptr;
    detail::Call(horus_cluster_create, detail::HandleOf(catalogue), &out);
    handle_.reset(out);
  }
  [[nodiscard]] static Cluster Restore(std::span<const std::byte> snapshot, const Catalogue* catalogue = nullptr) {
    horus_cluster* out = nullptr;
    detail::Call(horus_cluster_restore, detail::HandleOf(catalogue), snapshot.data(), snapshot.size(), &out);
    return Cluster(out);
  }
  [[nodiscard]] std::vector<std::byte> Snapshot() const {
    return detail::Collect<std::byte>([&](size_t capacity, std::byte* bytes, size_t* count, horus_error* error) {
      return horus_cluster_snapshot(get(), capacity, bytes, count, error);
    });
  }
  // Replaces the file atomically and durably.
  void SnapshotFile(const std::string& path) const { detail::Call(horus_cluster_snapshot_file, get(), path.c_str()); }
  [[nodiscard]] static Cluster RestoreFile(const std::string& path, const Catalogue* catalogue = nullptr) {
    horus_cluster* out = nullptr;
    detail::Call(horus_cluster_restore_file, detail::HandleOf(catalogue), path.c_str(), &out);
    return Cluster(out);
  }
  void AddNode(const Node& node) { detail::Call(horus_cluster_add_node, get(), detail::CNode(node).get()); }
  void ChangeNode(const Node& node) { detail::Call(horus_cluster_change_node, get(), detail::CNode(node).get()); }
  void RemoveNode(uint64_t node) { detail::Call(horus_cluster_remove_node, get(), node); }
  // Returns the jobs with tasks on the node; they stay until released.
  std::vector<uint64_t> SetNodeState(uint64_t node, int32_t state) {
    return detail::Collect<uint64_t>([&](size_t capacity, uint64_t* jobs, size_t* count, horus_error* error) {
      return horus_cluster_set_state(get(), node, HORUS_WHOLE_NODE, state, capacity, jobs, count, error);
    });
  }
  // Returns the first constraint that the job breaks on the slots, or HORUS_REASON_NONE.
  int32_t Adopt(const Job& job, const std::vector<Slot>& slots) {
    const detail::CSlots c(slots);
    int32_t reason = HORUS_REASON_NONE;
    detail::Call(horus_cluster_adopt, get(), detail::CJob(job).get(), slots.size(), c.nodes.data(), c.devices.data(),
                 c.tasks.data(), &reason);
    return reason;
  }
  void Apply(const Plan& plan) { detail::Call(horus_cluster_apply, get(), plan.get()); }
  void Release(uint64_t job) { detail::Call(horus_cluster_release, get(), job); }
  [[nodiscard]] horus_cluster_info info() const {
    horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
    detail::Call(horus_cluster_get_info, get(), &info);
    return info;
  }
  [[nodiscard]] std::vector<uint64_t> Jobs() const {
    return detail::Collect<uint64_t>([&](size_t capacity, uint64_t* ids, size_t* count, horus_error* error) {
      return horus_cluster_jobs(get(), capacity, ids, count, error);
    });
  }
  // A resident and all that was stated of it.
  [[nodiscard]] Resident GetJob(uint64_t job) const {
    horus_job_info info = HORUS_JOB_INFO_INIT;
    const auto bytes = detail::Collect<char>([&](size_t capacity, char* to, size_t* count, horus_error* error) {
      return horus_cluster_get_job(get(), job, &info, capacity, to, count, error);
    });
    return {JobFrom(*info.job), info.adopted == 1, info.over_committed == 1, info.sm_cap_pct, info.probe == 1};
  }
  // Call it before other threads use the handle; null = no metrics.
  void SetMetrics(const Metrics* metrics) { metered_.Set(horus_cluster_set_metrics, handle_.get(), metrics); }
  [[nodiscard]] horus_cluster* get() const noexcept { return handle_.get(); }

 private:
  explicit Cluster(horus_cluster* handle) : handle_(handle) {}
  detail::Metered metered_;  // declared before handle_, which must be destroyed first
  detail::Owned<horus_cluster, horus_cluster_free> handle_;
};

struct PlacerOptions {
  std::string policy = "horus";
  float slowdown_bound = 0;
  int32_t max_tenants = 0;
  uint64_t seed = 0;
  const Interference* interference = nullptr;  // null = the built-in "horus"; may be destroyed before the placer
  double mem_overcommit = 0;                   // 0 = 1: no over-commitment
  bool probe_outside = false;
  double gpu_price = 0;                      // 0 = the default; -1 = none
  const horus_workload* workload = nullptr;  // may be destroyed before the placer
  uint32_t max_candidates = 0;               // 0 = all
  bool terse = false;                        // deferrals give no reason
  float sharing_quota = 0;                   // share of the GPUs that may have several tenants; 0 = all; -1 = none
  int64_t mem_headroom_mib = 0;              // device memory to keep free; 0 = the default; -1 = none
  uint64_t max_jobs = 0, cache_bytes = 0;    // of one plan; for cached scores; 0 = the default
  double rack_oversubscription = 0;          // what nodes can send over what links between racks carry; 0 = 1
  int32_t host_grants = HORUS_HOST_GRANTS_RESIZE;
  bool sm_caps = false;  // whoever starts a job sets Decision::sm_cap_pct
};

namespace detail {

// Borrows the options.
inline horus_placer_options ToC(const PlacerOptions& options) {
  horus_placer_options c = HORUS_PLACER_OPTIONS_INIT;
  c.policy = options.policy.c_str();
  c.slowdown_bound = options.slowdown_bound;
  c.max_tenants = options.max_tenants;
  c.seed = options.seed;
  c.interference = options.interference == nullptr ? nullptr : options.interference->get();
  c.mem_overcommit = options.mem_overcommit;
  c.probe_outside = options.probe_outside ? 1 : 0;
  c.gpu_price = options.gpu_price;
  c.workload = options.workload;
  c.max_candidates = options.max_candidates;
  c.terse = options.terse ? 1 : 0;
  c.sharing_quota = options.sharing_quota;
  c.mem_headroom_mib = options.mem_headroom_mib;
  c.max_jobs = options.max_jobs;
  c.cache_bytes = options.cache_bytes;
  c.rack_oversubscription = options.rack_oversubscription;
  c.host_grants = options.host_grants;
  c.sm_caps = options.sm_caps ? 1 : 0;
  return c;
}

}  // namespace detail

class Placer {
 public:
  explicit Placer(const PlacerOptions& options = {}) {
    const horus_placer_options c = detail::ToC(options);
    horus_placer* out = nullptr;
    detail::Call(horus_placer_create, &c, &out);
    handle_.reset(out);
  }
  // Takes ownership of the handle.
  explicit Placer(horus_placer* owned) noexcept : handle_(owned) {}
  // Considers only `nodes`; nullopt = all.
  [[nodiscard]] Plan MakePlan(const Cluster& cluster, std::span<const Job> jobs,
                              std::optional<std::span<const uint64_t>> nodes = std::nullopt) {
    std::vector<std::unique_ptr<detail::CJob>> owned;
    std::vector<const horus_job*> pointers;
    for (const Job& job : jobs) {
      owned.push_back(std::make_unique<detail::CJob>(job));
      pointers.push_back(owned.back()->get());
    }
    static constexpr uint64_t kNone = 0;  // an empty subset is not "all": its pointer must not be null
    const uint64_t* ids = !nodes ? nullptr : nodes->empty() ? &kNone : nodes->data();
    horus_plan* out = nullptr;
    detail::Call(horus_placer_plan, handle_.get(), cluster.get(), pointers.size(), pointers.data(),
                 nodes ? nodes->size() : size_t{0}, ids, nullptr, nullptr, &out);
    return Plan(out);
  }
  [[nodiscard]] Plan MakePlan(const Cluster& cluster, const Job& job) { return MakePlan(cluster, std::span(&job, 1)); }
  // Call it before other threads use the handle; null = no metrics.
  void SetMetrics(const Metrics* metrics) { metered_.Set(horus_placer_set_metrics, handle_.get(), metrics); }
  [[nodiscard]] horus_placer* get() const noexcept { return handle_.get(); }

 private:
  detail::Metered metered_;  // declared before handle_, which must be destroyed first
  detail::Owned<horus_placer, horus_placer_free> handle_;
};

}  // namespace face_v0
}  // namespace horus

#include "horus/modes.hpp"  // needs all of the above

#endif  // HORUS_HORUS_HPP_
