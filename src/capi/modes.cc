// SPDX-License-Identifier: Apache-2.0
// horus/modes.h: batches, rebalancing, what-ifs, preemption, evacuation, review, and what their plans tell.
#include "horus/modes.h"

#include <limits>

#include "capi/convert.h"
#include "capi/planning.h"
#include "place/appraise.h"
#include "place/modes/batch.h"
#include "place/modes/preempt.h"
#include "place/modes/what_if.h"

namespace horus::capi {
namespace {

constexpr uint64_t kMostChanges = uint64_t{1} << 20;

static_assert(Same(HORUS_CHANGE_RELEASE, ChangeKind::kRelease) &&
              Same(HORUS_CHANGE_NODE_STATE, ChangeKind::kNodeState) &&
              Same(HORUS_CHANGE_DEVICE_STATE, ChangeKind::kDeviceState) &&
              Same(HORUS_CHANGE_PLACE, ChangeKind::kPlace) && Same(HORUS_CHANGE_MIGRATE, ChangeKind::kMigrate));

absl::StatusOr<BatchOptions> BatchFromC(const horus_batch_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_batch_options c, ReadOptionalStruct(given));
  BatchOptions options;
  HORUS_SET_FIELDS_UNLESS_ZERO(c, options, max_rounds, restarts, window, max_evaluations)
  constexpr int64_t kMostUs = int64_t{1} << 62;  // as submit_us
  if (c.now_us < 0 || c.now_us > kMostUs)
    return InvalidArgument("now_us: expected 0 to %d us, as submit_us, found %d", kMostUs, c.now_us);
  options.now_us = c.now_us;
  if (c.patience_us < 0) return InvalidArgument("patience_us: expected 0 or more, found %d", c.patience_us);
  options.patience_us = c.patience_us;
  if (c.prices != 0 && c.prices != -1) return InvalidArgument("prices: expected 0 or -1, found %d", c.prices);
  options.prices = c.prices == 0;
  return options;
}

horus_appraisal AppraisalToC(const Appraisal& found) {
  horus_appraisal out = HORUS_APPRAISAL_INIT;
  HORUS_COPY_FIELDS(found, out, reason, work, tenants, beyond_bound)
  out.slowdown = found.own.estimate;
  out.slowdown_upper = found.own.upper;
  out.shared = found.used_devices;
  return out;
}

absl::StatusOr<SupposedChange> ChangeFromC(const Catalogue& catalogue, const horus_change* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_change c, ReadStruct(given));
  SupposedChange change{.kind = static_cast<ChangeKind>(c.kind), .job = c.job_id, .node = c.node_id};
  if (change.kind == ChangeKind::kNodeState || change.kind == ChangeKind::kDeviceState)
    HORUS_SET_OR_RETURN(change.state, StateFromC(c.state));
  if (change.kind == ChangeKind::kDeviceState) HORUS_SET_OR_RETURN(change.device, DeviceIndex(c.device));
  if (change.kind == ChangeKind::kPlace) HORUS_SET_OR_RETURN(change.spec, JobFromC(catalogue, c.job));
  if (change.kind == ChangeKind::kPlace || change.kind == ChangeKind::kMigrate)
    HORUS_SET_OR_RETURN(change.slots, SlotsFromC({c.slot_count, c.node_ids, c.devices, c.tasks}));
  return change;
}

absl::StatusOr<std::vector<SupposedChange>> ChangesFromC(const Catalogue& catalogue, size_t count,
                                                         const horus_change* const* given) {
  HORUS_RETURN_IF_ERROR(RequireColumn(given, "changes", count));
  if (count > kMostChanges) return ResourceExhausted("changes: expected at most %d, found %d", kMostChanges, count);
  return ReadEach("changes", count, given, [&](const horus_change* one) { return ChangeFromC(catalogue, one); });
}

// ---- horus/modes.h, what a plan tells beside its decisions: work, moves, victims.

static_assert(Same(HORUS_MOVE_RESIZE, ActionKind::kResize) && Same(HORUS_MOVE_MIGRATE, ActionKind::kMigrate) &&
              Same(HORUS_MOVE_PREEMPT, ActionKind::kPreempt));

horus_move MoveToC(const Move& move) {
  horus_move c = HORUS_MOVE_INIT;
  HORUS_COPY_FIELDS(move, c, kind, gain, cost)
  c.job_id = move.job;
  c.from_slots = static_cast<uint32_t>(move.from.size());
  c.to_slots = static_cast<uint32_t>(move.to.size());
  c.cpu_milli_before = move.host_from.cpu_milli;
  c.cpu_milli = move.host_to.cpu_milli;
  c.mem_mib_before = move.host_from.mem_mib;
  c.mem_mib = move.host_to.mem_mib;
  return c;
}

static_assert(Same(HORUS_ADVICE_STAY, Advice::kStay) && Same(HORUS_ADVICE_MOVE, Advice::kMove) &&
              Same(HORUS_ADVICE_RUN_ALONE, Advice::kRunAlone));

horus_tenant_review ReviewToC(const TenantReview& review) {
  return {.struct_size = sizeof(horus_tenant_review),
          .advice = static_cast<int32_t>(review.advice),
          .job_id = review.job,
          .node_id = review.node,
          .device = static_cast<uint32_t>(review.device),
          .broken = review.broken() ? 1 : 0,
          .slowdown = review.slowdown.estimate,
          .slowdown_upper = review.slowdown.upper,
          .held = review.held,
          .bound = review.bound,
          .pack_work = review.pack_work,
          .trial = review.trial ? 1 : 0};
}

// Borrows the victims.
horus_preemption CandidateToC(const PreemptionCandidate& candidate) {
  horus_preemption c = HORUS_PREEMPTION_INIT;
  HORUS_COPY_FIELDS(candidate, c, exact, loss)
  c.node_id = candidate.node;
  c.victims = candidate.victims.data();
  c.losses = candidate.losses.data();
  c.victim_count = static_cast<uint32_t>(candidate.victims.size());
  c.slots = static_cast<uint32_t>(candidate.slots.size());
  return c;
}

}  // namespace

absl::StatusOr<RebalanceOptions> RebalanceFromC(const horus_rebalance_options& c) {
  HORUS_RETURN_IF_ERROR(RequireColumn(c.job_ids, "job_ids", c.job_count));
  RebalanceOptions options;
  HORUS_SET_FIELDS_UNLESS_ZERO(c, options, max_migrations, horizon_s, max_searches)
  SetAmount(options.downtime_s, c.downtime_s);
  options.min_gain = c.min_gain;
  return options;
}

}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_placer_plan_batch(horus_placer* placer, const horus_cluster* cluster, size_t job_count,
                                     const horus_job* const* jobs, size_t node_count, const uint64_t* node_ids,
                                     const horus_batch_options* options, horus_progress progress, void* user,
                                     horus_plan** out, horus_error* error) {
  return GuardMetered(placer, Call::kPlanBatch, error, {{placer, "placer"}, {cluster, "cluster"}, {out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const auto subset, SubsetFromC(node_count, node_ids));
    HORUS_ASSIGN_OR_RETURN(const BatchOptions batch, BatchFromC(options));
    CallerProgress told(progress, user);
    const Planning planning = [&](auto& with, auto& on, auto& /*read*/) -> absl::StatusOr<Plan> {
      HORUS_ASSIGN_OR_RETURN(const auto specs, JobsFromC(on.catalogue(), job_count, jobs, with.options().max_jobs));
      return PlanBatch(with, on, specs, batch, subset, told.Shares());
    };
    return Give(PlanWith(*placer, *cluster, told, planning), out);
  });
}

horus_status horus_placer_rebalance(horus_placer* placer, const horus_cluster* cluster,
                                    const horus_rebalance_options* options, horus_plan** out, horus_error* error) {
  return GuardMetered(placer, Call::kRebalance, error, {{placer, "placer"}, {cluster, "cluster"}, {out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const horus_rebalance_options c, ReadOptionalStruct(options));
    HORUS_ASSIGN_OR_RETURN(const RebalanceOptions rebalance, RebalanceFromC(c));
    CallerProgress told(c.progress, c.user);
    const Planning planning = [&](auto& with, auto& on, auto& /*read*/) {
      if (c.job_ids == nullptr) return Rebalance(with, on, rebalance, std::nullopt, told.Shares());
      return Rebalance(with, on, rebalance, std::span<const JobId>(c.job_ids, c.job_count), told.Shares());
    };
    return Give(PlanWith(*placer, *cluster, told, planning), out);
  });
}

horus_status horus_placer_evacuate(horus_placer* placer, const horus_cluster* cluster, size_t node_count,
                                   const uint64_t* node_ids, horus_progress progress, void* user, horus_plan** out,
                                   horus_error* error) {
  return GuardMetered(placer, Call::kEvacuate, error, {{placer, "placer"}, {cluster, "cluster"}, {out, "out"}}, [&] {
    HORUS_RETURN_IF_ERROR(RequireColumn(node_ids, "node_ids", node_count));
    CallerProgress told(progress, user);
    const Planning planning = [&](auto& with, auto& on, auto& /*read*/) {
      return Evacuate(with, on, std::span<const NodeId>(node_ids, node_count), told.Shares());
    };
    return Give(PlanWith(*placer, *cluster, told, planning), out);
  });
}

horus_status horus_placer_appraise(horus_placer* placer, const horus_cluster* cluster, const horus_job* job,
                                   size_t slot_count, const uint64_t* node_ids, const uint32_t* devices,
                                   const uint32_t* tasks, horus_appraisal* appraisal, horus_error* error) {
  return GuardMetered(placer, Call::kAppraise, error, {{placer, "placer"}, {cluster, "cluster"}}, [&] {
    HORUS_RETURN_IF_ERROR(CheckOutput(appraisal));
    CallerProgress untold(nullptr, nullptr);
    return UsePlacer(*placer, *cluster, untold, [&](auto& with, auto& on, auto& /*read*/) -> absl::Status {
      HORUS_ASSIGN_OR_RETURN(const JobSpec spec, JobFromC(on.catalogue(), job));
      HORUS_ASSIGN_OR_RETURN(const auto slots, SlotsFromC({slot_count, node_ids, devices, tasks}));
      HORUS_ASSIGN_OR_RETURN(const Appraisal found, with.Appraise(on, spec, slots));
      WriteStruct(AppraisalToC(found), appraisal);
      return absl::OkStatus();
    });
  });
}

horus_status horus_placer_review(horus_placer* placer, const horus_cluster* cluster,
                                 const horus_rebalance_options* options, horus_plan** out, horus_error* error) {
  return GuardMetered(placer, Call::kReview, error, {{placer, "placer"}, {cluster, "cluster"}, {out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const horus_rebalance_options c, ReadOptionalStruct(options));
    if (c.job_count != 0) return InvalidArgument("job_ids: expected none, found %d", c.job_count);
    HORUS_ASSIGN_OR_RETURN(const RebalanceOptions rebalance, RebalanceFromC(c));
    CallerProgress told(c.progress, c.user);
    std::vector<TenantReview> reviews;
    const Planning planning = [&](auto& with, auto& on, auto& /*read*/) -> absl::StatusOr<Plan> {
      HORUS_ASSIGN_OR_RETURN(ReviewResult result, Review(with, on, rebalance));
      reviews = std::move(result.tenants);
      return std::move(result.plan);
    };
    HORUS_ASSIGN_OR_RETURN(auto plan, PlanWith(*placer, *cluster, told, planning));
    plan->reviews = std::move(reviews);
    return Give(plan.release(), out);
  });
}

horus_status horus_placer_what_if(horus_placer* placer, const horus_cluster* cluster, size_t change_count,
                                  const horus_change* const* changes, size_t job_count, const horus_job* const* jobs,
                                  horus_progress progress, void* user, horus_plan** out, horus_error* error) {
  return GuardMetered(placer, Call::kWhatIf, error, {{placer, "placer"}, {cluster, "cluster"}, {out, "out"}}, [&] {
    CallerProgress told(progress, user);
    const Planning planning = [&](auto& with, auto& on, auto& /*read*/) -> absl::StatusOr<Plan> {
      HORUS_ASSIGN_OR_RETURN(const auto supposed, ChangesFromC(on.catalogue(), change_count, changes));
      HORUS_ASSIGN_OR_RETURN(const auto specs, JobsFromC(on.catalogue(), job_count, jobs, with.options().max_jobs));
      return WhatIf(with, on, supposed, specs, /*work=*/true, told.Shares());
    };
    return Give(PlanWith(*placer, *cluster, told, planning), out);
  });
}

horus_status horus_placer_preempt(horus_placer* placer, const horus_cluster* cluster, const horus_job* job,
                                  size_t node_count, const uint64_t* node_ids, const horus_preempt_options* options,
                                  horus_plan** out, horus_error* error) {
  return GuardMetered(placer, Call::kPreempt, error, {{placer, "placer"}, {cluster, "cluster"}, {out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const auto subset, SubsetFromC(node_count, node_ids));
    HORUS_ASSIGN_OR_RETURN(const horus_preempt_options c, ReadOptionalStruct(options));
    PreemptOptions preempt;
    HORUS_SET_FIELDS_UNLESS_ZERO(c, preempt, max_candidates, max_checks)
    CallerProgress told(c.progress, c.user);
    const Planning planning = [&](auto& with, auto& on, auto& /*read*/) -> absl::StatusOr<Plan> {
      HORUS_ASSIGN_OR_RETURN(const JobSpec spec, JobFromC(on.catalogue(), job));
      return PlanPreemption(with, on, spec, preempt, subset);
    };
    return Give(PlanWith(*placer, *cluster, told, planning), out);
  });
}

horus_status horus_plan_get_info(const horus_plan* plan, horus_plan_info* info, horus_error* error) {
  return Guard(error, {{plan, "plan"}}, [&] {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    const bool told = plan->value.has_work;
    return Answer<horus_plan_info>({.struct_size = sizeof(horus_plan_info),
                                    .decisions = plan->value.decisions.size(),
                                    .moves = plan->value.moves.size(),
                                    .reviews = plan->reviews.size(),
                                    .preemptions = plan->value.candidates.size(),
                                    .work_before = told ? plan->value.work_before : kNone,
                                    .work_after = told ? plan->value.work_after : kNone},
                                   info);
  });
}

horus_status horus_plan_get_move(const horus_plan* plan, size_t index, horus_move* move, horus_error* error) {
  return Guard(error, {{plan, "plan"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const Move* found, RowAt(plan->value.moves, "moves", index));
    return Answer(MoveToC(*found), move);
  });
}

horus_status horus_plan_get_review(const horus_plan* plan, size_t index, horus_tenant_review* review,
                                   horus_error* error) {
  return Guard(error, {{plan, "plan"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const TenantReview* found, RowAt(plan->reviews, "reviews", index));
    return Answer(ReviewToC(*found), review);
  });
}

horus_status horus_plan_get_preemption(const horus_plan* plan, size_t index, horus_preemption* preemption,
                                       horus_error* error) {
  return Guard(error, {{plan, "plan"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const auto* found, RowAt(plan->value.candidates, "candidates", index));
    return Answer(CandidateToC(*found), preemption);
  });
}
