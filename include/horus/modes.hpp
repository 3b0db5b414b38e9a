// SPDX-License-Identifier: Apache-2.0
// Batches, rebalancing, evacuation, reviews, what-ifs and preemption in C++, over modes.h. Included by horus.hpp.
#ifndef HORUS_MODES_HPP_
#define HORUS_MODES_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "horus/horus.hpp"

namespace horus {
inline namespace face_v0 {  // see values.hpp

// In all options 0 = the default.
struct BatchOptions {
  uint32_t max_rounds = 0, restarts = 0, window = 0;
  uint64_t max_evaluations = 0;
  int64_t now_us = 0, patience_us = 0;
  bool prices = true;
};

struct RebalanceOptions {
  uint32_t max_migrations = 0;
  double downtime_s = 0;  // -1 = none
  double horizon_s = 0;
  double min_gain = 0;
  uint64_t max_searches = 0;
  std::optional<std::vector<uint64_t>> jobs = std::nullopt;  // the only jobs that may move; nullopt = all
};

struct PreemptOptions {
  uint32_t max_candidates = 0;
  uint64_t max_checks = 0;
};

// A supposed change: HORUS_CHANGE_* and the fields that this kind names.
struct Change {
  int32_t kind = HORUS_CHANGE_RELEASE;
  uint64_t job = 0;
  uint64_t node = 0;
  uint32_t device = 0;
  int32_t state = HORUS_STATE_UP;
  std::optional<Job> spec = std::nullopt;
  std::vector<Slot> slots = {};
};

struct Work {
  double before = 0, after = 0;  // useful work; NaN where the mode does not compute it
};

struct Move {
  int32_t kind = HORUS_MOVE_MIGRATE;
  uint64_t job = 0;
  double gain = 0, cost = 0;
  std::vector<Slot> from, to;
  int64_t cpu_milli_before = 0, cpu_milli = 0, mem_mib_before = 0, mem_mib = 0;  // of a resize, per task
};

struct Preemption {
  uint64_t node = 0;
  double loss = 0;
  bool exact = false;
  std::vector<uint64_t> victims;
  std::vector<double> losses;
  std::vector<Slot> slots;
};

// A job that shares, on the device where it is slowest.
struct TenantReview {
  int32_t advice = HORUS_ADVICE_STAY;
  uint64_t job = 0, node = 0;
  uint32_t device = 0;
  bool broken = false;
  float slowdown = 1, slowdown_upper = 1;
  double held = 1, bound = 0, pack_work = 0;
  bool trial = false;
};

// The effect of placing a job somewhere.
struct Appraisal {
  int32_t reason = HORUS_REASON_NONE;
  double work = 0;
  float slowdown = 1, slowdown_upper = 1;
  uint32_t tenants = 0, shared = 0, beyond_bound = 0;
};

namespace detail {

// Borrows the jobs.
class CJobs {
 public:
  explicit CJobs(std::span<const Job> jobs) {
    for (const Job& job : jobs) {
      owned_.push_back(std::make_unique<CJob>(job));
      pointers_.push_back(owned_.back()->get());
    }
  }
  [[nodiscard]] size_t size() const { return pointers_.size(); }
  [[nodiscard]] const horus_job* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::unique_ptr<CJob>> owned_;
  std::vector<const horus_job*> pointers_;
};

// A column of ids: nullopt becomes null, "all"; an empty span does not.
struct CSubset {
  explicit CSubset(const std::optional<std::span<const uint64_t>>& ids) {
    static constexpr uint64_t kNone = 0;
    if (ids) data = ids->empty() ? &kNone : ids->data();
    if (ids) size = ids->size();
  }
  const uint64_t* data = nullptr;
  size_t size = 0;
};

inline horus_rebalance_options ToC(const RebalanceOptions& options, const CSubset& only) {
  return {sizeof(horus_rebalance_options),
          options.max_migrations,
          options.downtime_s,
          options.horizon_s,
          options.min_gain,
          options.max_searches,
          only.size,
          only.data,
          nullptr,
          nullptr};
}

class CChange {
 public:
  explicit CChange(const Change& change) : slots_(change.slots) {
    if (change.spec) job_.emplace(*change.spec);
    c_.kind = change.kind;
    c_.job_id = change.job;
    c_.node_id = change.node;
    c_.device = change.device;
    c_.state = change.state;
    c_.job = job_ ? job_->get() : nullptr;
    c_.slot_count = slots_.nodes.size();
    c_.node_ids = slots_.nodes.data();
    c_.devices = slots_.devices.data();
    c_.tasks = slots_.tasks.data();
  }
  CChange(const CChange&) = delete;
  CChange& operator=(const CChange&) = delete;
  [[nodiscard]] const horus_change* get() const { return &c_; }

 private:
  std::optional<CJob> job_;
  CSlots slots_;
  horus_change c_ = HORUS_CHANGE_INIT;
};

template <typename AnyCaller>
TenantReview ReadReview(const AnyCaller& call, const horus_plan* plan, size_t index) {
  horus_tenant_review c = HORUS_TENANT_REVIEW_INIT;
  call([&](horus_error* error) { return horus_plan_get_review(plan, index, &c, error); });
  return {c.advice,         c.job_id, c.node_id, c.device,    c.broken == 1, c.slowdown,
          c.slowdown_upper, c.held,   c.bound,   c.pack_work, c.trial == 1};
}

template <typename AnyCaller>
Move ReadMove(const AnyCaller& call, const horus_plan* plan, size_t index) {
  horus_move c = HORUS_MOVE_INIT;
  call([&](horus_error* error) { return horus_plan_get_move(plan, index, &c, error); });
  const auto slots = [&](int32_t of, size_t rows) {
    return ReadSlots(call, rows, [&](const horus_slots* columns, size_t* count, horus_error* error) {
      return horus_plan_slots(plan, of, index, columns, count, error);
    });
  };
  return {c.kind,
          c.job_id,
          c.gain,
          c.cost,
          slots(HORUS_SLOTS_MOVE_FROM, c.from_slots),
          slots(HORUS_SLOTS_MOVE_TO, c.to_slots),
          c.cpu_milli_before,
          c.cpu_milli,
          c.mem_mib_before,
          c.mem_mib};
}

template <typename AnyCaller>
Preemption ReadPreemption(const AnyCaller& call, const horus_plan* plan, size_t index) {
  horus_preemption c = HORUS_PREEMPTION_INIT;
  call([&](horus_error* error) { return horus_plan_get_preemption(plan, index, &c, error); });
  return {c.node_id,
          c.loss,
          c.exact == 1,
          std::vector<uint64_t>(c.victims, c.victims + c.victim_count),
          std::vector<double>(c.losses, c.losses + c.victim_count),
          ReadSlots(call, c.slots, [&](const horus_slots* columns, size_t* rows, horus_error* error) {
            return horus_plan_slots(plan, HORUS_SLOTS_PREEMPTION, index, columns, rows, error);
          })};
}

}  // namespace detail

// As Placer::MakePlan, but weighs the jobs together.
[[nodiscard]] inline Plan PlanBatch(Placer& placer, const Cluster& cluster, std::span<const Job> jobs,
                                    const BatchOptions& options = {},
                                    std::optional<std::span<const uint64_t>> nodes = std::nullopt) {
  const detail::CJobs c(jobs);
  const detail::CSubset subset(nodes);
  const horus_batch_options with = {sizeof(horus_batch_options),
                                    options.max_rounds,
                                    options.restarts,
                                    options.window,
                                    options.max_evaluations,
                                    options.now_us,
                                    options.patience_us,
                                    options.prices ? 0 : -1,
                                    0};
  horus_plan* out = nullptr;
  detail::Call(horus_placer_plan_batch, placer.get(), cluster.get(), c.size(), c.data(), subset.size, subset.data,
               &with, nullptr, nullptr, &out);
  return Plan(out);
}

[[nodiscard]] inline Plan Rebalance(Placer& placer, const Cluster& cluster, const RebalanceOptions& options = {}) {
  std::optional<std::span<const uint64_t>> jobs;
  if (options.jobs) jobs = *options.jobs;
  const detail::CSubset only(jobs);
  const horus_rebalance_options with = detail::ToC(options, only);
  horus_plan* out = nullptr;
  detail::Call(horus_placer_rebalance, placer.get(), cluster.get(), &with, &out);
  return Plan(out);
}

// Moves every job off the nodes. A job without another place stays, and its decision says why.
[[nodiscard]] inline Plan Evacuate(Placer& placer, const Cluster& cluster, std::span<const uint64_t> nodes) {
  horus_plan* out = nullptr;
  detail::Call(horus_placer_evacuate, placer.get(), cluster.get(), nodes.size(), nodes.data(), nullptr, nullptr, &out);
  return Plan(out);
}

// The effect of placing the job on the slots, whoever chose them; the job must not be resident.
[[nodiscard]] inline Appraisal Appraise(Placer& placer, const Cluster& cluster, const Job& job,
                                        std::span<const Slot> slots) {
  std::vector<uint64_t> nodes;
  std::vector<uint32_t> devices, tasks;
  for (const Slot& slot : slots) {
    nodes.push_back(slot.node);
    devices.push_back(slot.device);
    tasks.push_back(slot.task);
  }
  const detail::CJob c(job);
  horus_appraisal out = HORUS_APPRAISAL_INIT;
  detail::Call(horus_placer_appraise, placer.get(), cluster.get(), c.get(), slots.size(), detail::Column(nodes),
               detail::Column(devices), detail::Column(tasks), &out);
  return {out.reason, out.work, out.slowdown, out.slowdown_upper, out.tenants, out.shared, out.beyond_bound};
}

// Reviews the jobs that share, by the placer's model (ReviewsOf), and plans moves where a bound is broken or a device
// does less work than one job alone.
[[nodiscard]] inline Plan Review(Placer& placer, const Cluster& cluster, const RebalanceOptions& options = {}) {
  const horus_rebalance_options with = detail::ToC(options, detail::CSubset(std::nullopt));
  horus_plan* out = nullptr;
  detail::Call(horus_placer_review, placer.get(), cluster.get(), &with, &out);
  return Plan(out);
}

// Decides the jobs as if the changes had happened. The plan cannot be applied.
[[nodiscard]] inline Plan WhatIf(Placer& placer, const Cluster& cluster, std::span<const Change> changes,
                                 std::span<const Job> jobs) {
  std::vector<std::unique_ptr<detail::CChange>> owned;
  std::vector<const horus_change*> pointers;
  for (const Change& change : changes) {
    owned.push_back(std::make_unique<detail::CChange>(change));
    pointers.push_back(owned.back()->get());
  }
  const detail::CJobs c(jobs);
  horus_plan* out = nullptr;
  detail::Call(horus_placer_what_if, placer.get(), cluster.get(), pointers.size(),
               static_cast<const horus_change* const*>(pointers.data()), c.size(), c.data(), nullptr, nullptr, &out);
  return Plan(out);
}

[[nodiscard]] inline Plan Preempt(Placer& placer, const Cluster& cluster, const Job& job,
                                  const PreemptOptions& options = {},
                                  std::optional<std::span<const uint64_t>> nodes = std::nullopt) {
  const detail::CJob c(job);
  const detail::CSubset subset(nodes);
  const horus_preempt_options with = {sizeof(horus_preempt_options), options.max_candidates, options.max_checks,
                                      nullptr, nullptr};
  horus_plan* out = nullptr;
  detail::Call(horus_placer_preempt, placer.get(), cluster.get(), c.get(), subset.size, subset.data, &with, &out);
  return Plan(out);
}

[[nodiscard]] inline Work WorkOf(const Plan& plan) {
  const horus_plan_info info = plan.info();
  return {info.work_before, info.work_after};
}

// Of a plan by Review; broken bounds first.
[[nodiscard]] inline std::vector<TenantReview> ReviewsOf(const Plan& plan) {
  std::vector<TenantReview> reviews;
  for (size_t i = 0, n = plan.info().reviews; i < n; ++i) {
    reviews.push_back(detail::ReadReview(detail::Caller(), plan.get(), i));
  }
  return reviews;
}

[[nodiscard]] inline std::vector<Move> MovesOf(const Plan& plan) {
  std::vector<Move> moves;
  for (size_t i = 0, n = plan.info().moves; i < n; ++i) {
    moves.push_back(detail::ReadMove(detail::Caller(), plan.get(), i));
  }
  return moves;
}

[[nodiscard]] inline std::vector<Preemption> PreemptionsOf(const Plan& plan) {
  std::vector<Preemption> preemptions;
  for (size_t i = 0, n = plan.info().preemptions; i < n; ++i) {
    preemptions.push_back(detail::ReadPreemption(detail::Caller(), plan.get(), i));
  }
  return preemptions;
}

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_MODES_HPP_
