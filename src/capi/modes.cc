// SPDX-License-Identifier: Apache-2.0
// horus/modes.h, the calls that plan: batches, rebalancing, what-ifs, preemption.
#include "horus/modes.h"

#include <utility>
#include <vector>

#include "capi/args.h"
#include "capi/columns.h"
#include "capi/guard.h"
#include "capi/job_convert.h"
#include "capi/node_convert.h"
#include "capi/planning.h"
#include "capi/structs.h"
#include "place/modes/batch.h"
#include "place/modes/evacuate.h"
#include "place/modes/preempt.h"
#include "place/modes/rebalance.h"
#include "place/modes/review.h"
#include "place/modes/what_if.h"

namespace horus::capi {
namespace {

constexpr uint64_t kMostChanges = uint64_t{1} << 20;

static_assert(HORUS_CHANGE_RELEASE == static_cast<int>(ChangeKind::kRelease) &&
              HORUS_CHANGE_NODE_STATE == static_cast<int>(ChangeKind::kNodeState) &&
              HORUS_CHANGE_DEVICE_STATE == static_cast<int>(ChangeKind::kDeviceState) &&
              HORUS_CHANGE_PLACE == static_cast<int>(ChangeKind::kPlace) &&
              HORUS_CHANGE_MIGRATE == static_cast<int>(ChangeKind::kMigrate));

absl::StatusOr<BatchOptions> BatchFromC(const horus_batch_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_batch_options c, ReadOptionalStruct(given));
  BatchOptions options;
  SetUnlessZero(options.max_rounds, c.max_rounds);
  SetUnlessZero(options.restarts, c.restarts);
  SetUnlessZero(options.max_evaluations, c.max_evaluations);
  return options;
}

absl::StatusOr<SupposedChange> ChangeFromC(const Catalogue& catalogue, const horus_change* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_change c, ReadStruct(given));
  SupposedChange change{.kind = static_cast<ChangeKind>(c.kind), .job = c.job_id, .node = c.node_id};
  if (change.kind == ChangeKind::kNodeState || change.kind == ChangeKind::kDeviceState) {
    HORUS_ASSIGN_OR_RETURN(change.state, StateFromC(c.state));
  }
  if (change.kind == ChangeKind::kDeviceState) {
    HORUS_ASSIGN_OR_RETURN(change.device, DeviceIndex(c.device));
  }
  if (change.kind == ChangeKind::kPlace) {
    HORUS_ASSIGN_OR_RETURN(change.spec, JobFromC(catalogue, c.job));
  }
  if (change.kind == ChangeKind::kPlace || change.kind == ChangeKind::kMigrate) {
    HORUS_ASSIGN_OR_RETURN(change.slots, SlotsFromC({c.slot_count, c.node_ids, c.devices, c.tasks}));
  }
  return change;
}

absl::StatusOr<std::vector<SupposedChange>> ChangesFromC(const Catalogue& catalogue, size_t count,
                                                         const horus_change* const* given) {
  HORUS_RETURN_IF_ERROR(RequireColumn(given, "changes", count));
  if (count > kMostChanges) {
    return MakeError(absl::StatusCode::kResourceExhausted, "changes: expected at most %d, found %d", kMostChanges,
                     count);
  }
  std::vector<SupposedChange> changes;
  for (size_t i = 0; i < count; ++i) {
    absl::StatusOr<SupposedChange> change = ChangeFromC(catalogue, given[i]);
    if (!change.ok()) return At(Element("changes", i), change.status());
    changes.push_back(*std::move(change));
  }
  return changes;
}

}  // namespace

absl::StatusOr<RebalanceOptions> RebalanceFromC(const horus_rebalance_options& c) {
  HORUS_RETURN_IF_ERROR(RequireColumn(c.job_ids, "job_ids", c.job_count));
  RebalanceOptions options;
  SetUnlessZero(options.max_migrations, c.max_migrations);
  SetUnlessZero(options.downtime_s, c.downtime_s);
  if (c.downtime_s == -1) options.downtime_s = 0;
  SetUnlessZero(options.horizon_s, c.horizon_s);
  options.min_gain = c.min_gain;
  SetUnlessZero(options.max_searches, c.max_searches);
  return options;
}

}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_placer_plan_batch(horus_placer* placer, const horus_cluster* cluster, size_t job_count,
                                     const horus_job* const* jobs, size_t node_count, const uint64_t* node_ids,
                                     const horus_batch_options* options, horus_progress progress, void* user,
                                     horus_plan** out, horus_error* error) {
  return GuardWatched(placer, horus::Call::kPlanBatch, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{placer, "placer"}, {cluster, "cluster"}, {out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(const auto subset, SubsetFromC(node_count, node_ids));
    HORUS_ASSIGN_OR_RETURN(const horus::BatchOptions batch, BatchFromC(options));
    CallerProgress told(progress, user);
    const Planning planning = [&](horus::Placer& with, const horus::Cluster& on,
                                  const horus::ReadFn& /*read*/) -> absl::StatusOr<horus::Plan> {
      HORUS_ASSIGN_OR_RETURN(const auto specs, JobsFromC(on.catalogue(), job_count, jobs, with.options().max_jobs));
      return horus::PlanBatch(with, on, specs, batch, subset, told.Shares());
    };
    HORUS_ASSIGN_OR_RETURN(auto plan, PlanWith(*placer, *cluster, told, planning));
    *out = plan.release();
    return absl::OkStatus();
  });
}

horus_status horus_placer_rebalance(horus_placer* placer, const horus_cluster* cluster,
                                    const horus_rebalance_options* options, horus_plan** out, horus_error* error) {
  return GuardWatched(placer, horus::Call::kRebalance, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{placer, "placer"}, {cluster, "cluster"}, {out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(const horus_rebalance_options c, ReadOptionalStruct(options));
    HORUS_ASSIGN_OR_RETURN(const horus::RebalanceOptions rebalance, RebalanceFromC(c));
    CallerProgress told(c.progress, c.user);
    const Planning planning = [&](horus::Placer& with, const horus::Cluster& on, const horus::ReadFn& /*read*/) {
      if (c.job_ids == nullptr) return horus::Rebalance(with, on, rebalance, std::nullopt, told.Shares());
      return horus::Rebalance(with, on, rebalance, std::span<const horus::JobId>(c.job_ids, c.job_count),
                              told.Shares());
    };
    HORUS_ASSIGN_OR_RETURN(auto plan, PlanWith(*placer, *cluster, told, planning));
    *out = plan.release();
    return absl::OkStatus();
  });
}

horus_status horus_placer_evacuate(horus_placer* placer, const horus_cluster* cluster, size_t node_count,
                                   const uint64_t* node_ids, horus_progress progress, void* user, horus_plan** out,
                                   horus_error* error) {
  return GuardWatched(placer, horus::Call::kEvacuate, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{placer, "placer"}, {cluster, "cluster"}, {out, "out"}}));
    HORUS_RETURN_IF_ERROR(RequireColumn(node_ids, "node_ids", node_count));
    CallerProgress told(progress, user);
    const Planning planning = [&](horus::Placer& with, const horus::Cluster& on, const horus::ReadFn& /*read*/) {
      return horus::Evacuate(with, on, std::span<const horus::NodeId>(node_ids, node_count), told.Shares());
    };
    HORUS_ASSIGN_OR_RETURN(auto plan, PlanWith(*placer, *cluster, told, planning));
    *out = plan.release();
    return absl::OkStatus();
  });
}

horus_status horus_placer_review(horus_placer* placer, const horus_cluster* cluster,
                                 const horus_rebalance_options* options, horus_plan** out, horus_error* error) {
  return GuardWatched(placer, horus::Call::kReview, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{placer, "placer"}, {cluster, "cluster"}, {out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(const horus_rebalance_options c, ReadOptionalStruct(options));
    if (c.job_count != 0) return horus::InvalidArgument("job_ids: expected none, found %d", c.job_count);
    HORUS_ASSIGN_OR_RETURN(const horus::RebalanceOptions rebalance, RebalanceFromC(c));
    CallerProgress told(c.progress, c.user);
    std::vector<horus::TenantReview> reviews;
    const Planning planning = [&](horus::Placer& with, const horus::Cluster& on,
                                  const horus::ReadFn& /*read*/) -> absl::StatusOr<horus::Plan> {
      HORUS_ASSIGN_OR_RETURN(horus::ReviewResult result, horus::Review(with, on, rebalance));
      reviews = std::move(result.tenants);
      return std::move(result.plan);
    };
    HORUS_ASSIGN_OR_RETURN(auto plan, PlanWith(*placer, *cluster, told, planning));
    plan->reviews = std::move(reviews);
    *out = plan.release();
    return absl::OkStatus();
  });
}

horus_status horus_placer_what_if(horus_placer* placer, const horus_cluster* cluster, size_t change_count,
                                  const horus_change* const* changes, size_t job_count, const horus_job* const* jobs,
                                  horus_progress progress, void* user, horus_plan** out, horus_error* error) {
  return GuardWatched(placer, horus::Call::kWhatIf, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{placer, "placer"}, {cluster, "cluster"}, {out, "out"}}));
    CallerProgress told(progress, user);
    const Planning planning = [&](horus::Placer& with, const horus::Cluster& on,
                                  const horus::ReadFn& /*read*/) -> absl::StatusOr<horus::Plan> {
      HORUS_ASSIGN_OR_RETURN(const auto supposed, ChangesFromC(on.catalogue(), change_count, changes));
      HORUS_ASSIGN_OR_RETURN(const auto specs, JobsFromC(on.catalogue(), job_count, jobs, with.options().max_jobs));
      return horus::WhatIf(with, on, supposed, specs, /*work=*/true, told.Shares());
    };
    HORUS_ASSIGN_OR_RETURN(auto plan, PlanWith(*placer, *cluster, told, planning));
    *out = plan.release();
    return absl::OkStatus();
  });
}

horus_status horus_placer_preempt(horus_placer* placer, const horus_cluster* cluster, const horus_job* job,
                                  size_t node_count, const uint64_t* node_ids, const horus_preempt_options* options,
                                  horus_plan** out, horus_error* error) {
  return GuardWatched(placer, horus::Call::kPreempt, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{placer, "placer"}, {cluster, "cluster"}, {out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(const auto subset, SubsetFromC(node_count, node_ids));
    HORUS_ASSIGN_OR_RETURN(const horus_preempt_options c, ReadOptionalStruct(options));
    horus::PreemptOptions preempt;
    SetUnlessZero(preempt.max_candidates, c.max_candidates);
    SetUnlessZero(preempt.max_checks, c.max_checks);
    CallerProgress told(c.progress, c.user);
    const Planning planning = [&](horus::Placer& with, const horus::Cluster& on,
                                  const horus::ReadFn& /*read*/) -> absl::StatusOr<horus::Plan> {
      HORUS_ASSIGN_OR_RETURN(const horus::JobSpec spec, JobFromC(on.catalogue(), job));
      return horus::PlanPreemption(with, on, spec, preempt, subset);
    };
    HORUS_ASSIGN_OR_RETURN(auto plan, PlanWith(*placer, *cluster, told, planning));
    *out = plan.release();
    return absl::OkStatus();
  });
}
