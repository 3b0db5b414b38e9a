// SPDX-License-Identifier: Apache-2.0
// Traces, truths and simulations in C++, over trace.h, sim.h and potential.h. Included by lab.hpp.
#ifndef HORUS_LAB_SIM_HPP_
#define HORUS_LAB_SIM_HPP_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "horus/horus.hpp"
#include "horus/lab/sim_values.hpp"

namespace horus {
inline namespace face_v0 {  // see values.hpp

// Submitted jobs. Immutable: share freely.
class Trace {
 public:
  explicit Trace(std::span<const TraceJob> jobs) {
    const detail::CTrace columns(jobs);
    horus_trace* out = nullptr;
    detail::Call(horus_trace_create, columns.get(), &out);
    handle_.reset(out);
  }
  // Draws a trace; equal options give equal traces.
  [[nodiscard]] static Trace Synthetic(const SyntheticOptions& options = {}) {
    horus_trace* out = nullptr;
    detail::Call(horus_trace_create_synthetic, detail::CSynthetic(options).get(), &out);
    return Trace(out);
  }
  [[nodiscard]] size_t size() const noexcept { return horus_trace_count(get()); }
  // By (submit_us, id).
  [[nodiscard]] std::vector<TraceJob> Jobs() const { return detail::ReadTraceJobs(get()); }
  [[nodiscard]] horus_trace_summary summary() const {
    horus_trace_summary summary = HORUS_TRACE_SUMMARY_INIT;
    detail::Call(horus_trace_get_summary, get(), &summary);
    return summary;
  }
  // Names, in the order of SimResult::BacklogWork.
  [[nodiscard]] std::vector<std::string> Profiles() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < horus_trace_profile_count(get()); ++i) {
      names.emplace_back(horus_trace_profile_name(get(), i));
    }
    return names;
  }
  [[nodiscard]] uint64_t bytes_held() const noexcept { return horus_trace_bytes_held(get()); }
  [[nodiscard]] const horus_trace* get() const noexcept { return handle_.get(); }

 private:
  explicit Trace(horus_trace* owned) : handle_(owned) {}
  detail::Owned<horus_trace, horus_trace_free> handle_;
};

// How fast jobs really run. Immutable: share freely.
class Truth {
 public:
  // `model`: null = the built-in "horus".
  [[nodiscard]] static Truth FromModel(std::span<const ProfileDemand> demands, const Interference* model = nullptr,
                                       const Catalogue* catalogue = nullptr) {
    horus_truth* out = nullptr;
    detail::Call(horus_truth_from_model, detail::HandleOf(catalogue), model == nullptr ? nullptr : model->get(),
                 detail::CProfileDemands(demands).get(), &out);
    return Truth(out);
  }
  // `many`: HORUS_TENANTS_*.
  [[nodiscard]] static Truth FromSpeeds(const Speeds& speeds, int32_t many = HORUS_TENANTS_ADD,
                                        const Catalogue* catalogue = nullptr) {
    horus_truth* out = nullptr;
    detail::Call(horus_truth_from_speeds, detail::HandleOf(catalogue), detail::CSpeeds(speeds).get(), many, &out);
    return Truth(out);
  }
  // The same truth, with speeds that also depend on cores and host memory.
  [[nodiscard]] Truth WithSensitivities(std::span<const ProfileSensitivity> sensitivities) const {
    horus_truth* out = nullptr;
    detail::Call(horus_truth_with_sensitivities, get(), detail::CProfileSensitivities(sensitivities).get(), &out);
    return Truth(out);
  }
  [[nodiscard]] uint64_t bytes_held() const noexcept { return horus_truth_bytes_held(get()); }
  [[nodiscard]] const horus_truth* get() const noexcept { return handle_.get(); }

 private:
  explicit Truth(horus_truth* owned) : handle_(owned) {}
  detail::Owned<horus_truth, horus_truth_free> handle_;
};

// The outcome of a simulation. Immutable: share freely.
class SimResult {
 public:
  explicit SimResult(horus_sim_result* owned) noexcept : handle_(owned) {}

  // Metrics of the jobs submitted in the window.
  [[nodiscard]] horus_sim_metrics Metrics(const SimWindow& window = {}) const {
    const horus_sim_window c = {sizeof(horus_sim_window), 0, window.from_us, window.to_us, window.slowdown_bound};
    horus_sim_metrics metrics = HORUS_SIM_METRICS_INIT;
    detail::Call(horus_sim_result_get_metrics, get(), &c, &metrics);
    return metrics;
  }
  // By (submit_us, id).
  [[nodiscard]] std::vector<SimJob> Jobs() const { return detail::ReadSimJobs(get()); }
  // Work done while jobs waited, in GPU x seconds at speed 1, by profile of the trace.
  [[nodiscard]] std::vector<double> BacklogWork() const {
    return detail::Collect<double>([&](size_t capacity, double* gpu_s, size_t* count, horus_error* error) {
      return horus_sim_result_backlog_work(get(), capacity, gpu_s, count, error);
    });
  }
  // The placer's model at the end. INVALID_ARGUMENT unless SimOptions::learns was set.
  [[nodiscard]] Interference Model() const {
    horus_interference* out = nullptr;
    detail::Call(horus_sim_result_get_model, get(), &out);
    return Interference(out);
  }
  // Time of each decision, in microseconds of this machine's clock.
  [[nodiscard]] std::vector<float> DecisionTimes() const {
    float none = 0;
    return detail::Collect<float>([&](size_t capacity, float* took_us, size_t* count, horus_error* error) {
      return horus_sim_result_decision_times(get(), capacity, took_us == nullptr ? &none : took_us, count, nullptr,
                                             error);
    });
  }
  [[nodiscard]] uint64_t bytes_held() const noexcept { return horus_sim_result_bytes_held(get()); }
  [[nodiscard]] const horus_sim_result* get() const noexcept { return handle_.get(); }

 private:
  detail::Owned<horus_sim_result, horus_sim_result_free> handle_;
};

struct SimEvent {
  int32_t kind = HORUS_SIM_ARRIVE;
  int64_t time_us = 0;
  uint64_t job = 0;
  std::vector<Slot> slots = {};
};

struct SimOptions {
  std::string discipline = "fifo";
  QueueOptions queue = {};  // if no capacity is set, the cluster's counts
  bool know_run_times = true;
  int64_t horizon_us = 0;   // 0 = until all is done
  uint64_t look_ahead = 0;  // 0 = as the discipline says, or 50
  int64_t round_us = 0;
  bool preempt = false, one_by_one = false;
  int32_t weights = HORUS_SIM_WEIGHTS_QUEUE;
  int64_t restart_us = 0, checkpoint_us = 0, latency_us = 0;
  const horus_workload* workload = nullptr;  // null = the trace's own tasks
  std::vector<SimOutage> outages = {};
  int64_t rebalance_us = 0;
  RebalanceOptions rebalance = {};  // all jobs
  int64_t observe_us = 0;
  int64_t profiling_us = 0;
  std::string profiling_label = {};  // empty = the default
  bool profile_each_job = false;
  std::vector<ProfileDemand> measured = {};            // empty = the beliefs
  std::vector<ProfileSensitivity> sensitivities = {};  // known to synergy policies
  int32_t learns = HORUS_SIM_LEARNS_NOTHING;
  std::function<bool(const SimEvent&)> observer = nullptr;  // false or an exception cancels
  std::function<bool(double)> progress = nullptr;           // share done, 0 to 1; false or an exception cancels
};

namespace detail {

// The C struct of the options, which it borrows, and their callbacks. It keeps an exception that a callback throws;
// Rethrow throws it after the library has returned.
class CSimOptions {
 public:
  explicit CSimOptions(const SimOptions& options)
      : options_(options),
        queue_(ToC(options.queue)),
        rebalance_(ToC(options.rebalance, CSubset(std::nullopt))),
        outages_(options.outages),
        measured_(options.measured),
        sensitivities_(options.sensitivities) {
    c_.hide_run_times = options.know_run_times ? 0 : 1;
    c_.discipline = options.discipline.c_str();
    c_.queue = &queue_;
    c_.horizon_us = options.horizon_us;
    c_.look_ahead = options.look_ahead;
    c_.round_us = options.round_us;
    c_.preempt = options.preempt ? 1 : 0;
    c_.one_by_one = options.one_by_one ? 1 : 0;
    c_.weights = options.weights;
    c_.restart_us = options.restart_us;
    c_.checkpoint_us = options.checkpoint_us;
    c_.latency_us = options.latency_us;
    c_.workload = options.workload;
    c_.outage_count = options.outages.size();
    c_.outage_nodes = Column(outages_.nodes);
    c_.outage_from_us = Column(outages_.from_us);
    c_.outage_until_us = Column(outages_.until_us);
    c_.rebalance_us = options.rebalance_us;
    c_.rebalance = &rebalance_;
    c_.observe_us = options.observe_us;
    c_.profiling_us = options.profiling_us;
    c_.profiling_label = TextOrNull(options.profiling_label);
    c_.profile_each_job = options.profile_each_job ? 1 : 0;
    if (!options.measured.empty()) c_.measured = measured_.get();
    c_.learns = options.learns;
    if (!options.sensitivities.empty()) c_.sensitivities = sensitivities_.get();
  }
  CSimOptions(const CSimOptions&) = delete;
  CSimOptions& operator=(const CSimOptions&) = delete;
  [[nodiscard]] const horus_sim_options* get() const { return &c_; }
  [[nodiscard]] horus_sim_observer observer() const { return options_.observer ? &Observe : nullptr; }
  [[nodiscard]] horus_progress progress() const { return options_.progress ? &Progress : nullptr; }
  void Rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  template <typename Ask>
  int32_t Keep(const Ask& ask) {
    try {
      return ask() ? 0 : 1;
    } catch (...) {
      thrown_ = std::current_exception();
      return 1;
    }
  }
  static int32_t Observe(void* user, const horus_sim_event* event) {
    auto* self = static_cast<CSimOptions*>(user);
    return self->Keep([&] {
      SimEvent told = {event->kind, event->time_us, event->job_id, {}};
      for (size_t i = 0; i < event->slot_count; ++i) {
        told.slots.push_back({event->node_ids[i], event->devices[i], event->tasks[i]});
      }
      return self->options_.observer(told);
    });
  }
  static int32_t Progress(void* user, double done) {
    auto* self = static_cast<CSimOptions*>(user);
    return self->Keep([&] { return self->options_.progress(done); });
  }

  const SimOptions& options_;
  horus_queue_options queue_;
  horus_rebalance_options rebalance_;
  COutages outages_;
  CProfileDemands measured_;
  CProfileSensitivities sensitivities_;
  horus_sim_options c_ = HORUS_SIM_OPTIONS_INIT;
  std::exception_ptr thrown_;
};

}  // namespace detail

// Plays the trace on a copy of the cluster, which must hold no jobs. The placer plans by `beliefs`; time passes by
// `truth`.
[[nodiscard]] inline SimResult Simulate(const Trace& trace, std::span<const ProfileDemand> beliefs, const Truth& truth,
                                        const Cluster& cluster, Placer& placer, const SimOptions& options = {}) {
  detail::CSimOptions c(options);
  horus_sim_result* out = nullptr;
  try {
    detail::Call(horus_sim_run, trace.get(), detail::CProfileDemands(beliefs).get(), truth.get(), cluster.get(),
                 placer.get(), c.get(), c.observer(), c.progress(), static_cast<void*>(&c), &out);
  } catch (const Error&) {
    c.Rethrow();
    throw;
  }
  return SimResult(out);
}

// The most that sharing could give this mix of work on these GPUs. `work`: by profile, seconds alone on the reference
// type. `gpus`: number of GPUs by type.
[[nodiscard]] inline SharingPotential PotentialOf(const Speeds& speeds, const std::vector<double>& work,
                                                  const std::vector<double>& gpus,
                                                  const PotentialOptions& options = {}) {
  return detail::ReadPotential(detail::CSpeeds(speeds), work, gpus, options);
}

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_LAB_SIM_HPP_
