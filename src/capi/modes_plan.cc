// SPDX-License-Identifier: Apache-2.0
// horus/modes.h, what a plan tells beside its decisions: work, moves, victims.
#include <limits>

#include "capi/args.h"
#include "capi/columns.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/structs.h"
#include "horus/modes.h"

namespace horus::capi {
namespace {

static_assert(HORUS_MOVE_RESIZE == static_cast<int>(ActionKind::kResize) &&
              HORUS_MOVE_MIGRATE == static_cast<int>(ActionKind::kMigrate) &&
              HORUS_MOVE_PREEMPT == static_cast<int>(ActionKind::kPreempt));

absl::Status NoSuch(const char* what, size_t count, size_t index) {
  return MakeError(absl::StatusCode::kNotFound, "index: expected less than %d %s, found %d", count, what, index);
}

absl::StatusOr<const Move*> MoveAt(const horus_plan* plan, size_t index) {
  HORUS_RETURN_IF_ERROR(Require({{plan, "plan"}}));
  const std::vector<Move>& moves = plan->value.moves;
  if (index >= moves.size()) return NoSuch("moves", moves.size(), index);
  return &moves[index];
}

absl::StatusOr<const PreemptionCandidate*> CandidateAt(const horus_plan* plan, size_t index) {
  HORUS_RETURN_IF_ERROR(Require({{plan, "plan"}}));
  const std::vector<PreemptionCandidate>& candidates = plan->value.candidates;
  if (index >= candidates.size()) return NoSuch("candidates", candidates.size(), index);
  return &candidates[index];
}

horus_move MoveToC(const Move& move) {
  horus_move c = HORUS_MOVE_INIT;
  c.kind = static_cast<int32_t>(move.kind);
  c.job_id = move.job;
  c.gain = move.gain;
  c.cost = move.cost;
  c.from_slots = static_cast<uint32_t>(move.from.size());
  c.to_slots = static_cast<uint32_t>(move.to.size());
  c.cpu_milli_before = move.host_from.cpu_milli;
  c.cpu_milli = move.host_to.cpu_milli;
  c.mem_mib_before = move.host_from.mem_mib;
  c.mem_mib = move.host_to.mem_mib;
  return c;
}

static_assert(HORUS_ADVICE_STAY == static_cast<int>(Advice::kStay) &&
              HORUS_ADVICE_MOVE == static_cast<int>(Advice::kMove) &&
              HORUS_ADVICE_RUN_ALONE == static_cast<int>(Advice::kRunAlone));

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

horus_preemption CandidateToC(const PreemptionCandidate& candidate) {
  horus_preemption c = HORUS_PREEMPTION_INIT;
  c.exact = candidate.exact ? 1 : 0;
  c.node_id = candidate.node;
  c.loss = candidate.loss;
  c.victims = static_cast<uint32_t>(candidate.victims.size());
  c.slots = static_cast<uint32_t>(candidate.slots.size());
  return c;
}

absl::Status WriteVictims(const PreemptionCandidate& candidate, size_t capacity, uint64_t* job_ids, double* losses,
                          size_t* count) {
  HORUS_RETURN_IF_ERROR(Require({{count, "count"}}));
  HORUS_RETURN_IF_ERROR(CheckCapacity(candidate.victims.size(), capacity, count));
  for (size_t i = 0; i < candidate.victims.size(); ++i) {
    Put(job_ids, i, candidate.victims[i]);
    Put(losses, i, candidate.losses[i]);
  }
  *count = candidate.victims.size();
  return absl::OkStatus();
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_plan_work(const horus_plan* plan, double* before, double* after, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{plan, "plan"}}));
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    Put(before, 0, plan->value.has_work ? plan->value.work_before : kNone);
    Put(after, 0, plan->value.has_work ? plan->value.work_after : kNone);
    return absl::OkStatus();
  });
}

size_t horus_plan_move_count(const horus_plan* plan) { return plan == nullptr ? 0 : plan->value.moves.size(); }

horus_status horus_plan_get_move(const horus_plan* plan, size_t index, horus_move* move, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::Move* found, MoveAt(plan, index));
    HORUS_RETURN_IF_ERROR(CheckOutput(move));
    WriteStruct(MoveToC(*found), move);
    return absl::OkStatus();
  });
}

horus_status horus_plan_move_slots(const horus_plan* plan, size_t index, int32_t to, const horus_slots* slots,
                                   size_t* count, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::Move* found, MoveAt(plan, index));
    if (to != 0 && to != 1) return horus::InvalidArgument("to: expected 0 (where it was) or 1, found %d", to);
    return WriteSlots(to == 0 ? found->from : found->to, slots, count);
  });
}

size_t horus_plan_review_count(const horus_plan* plan) { return plan == nullptr ? 0 : plan->reviews.size(); }

horus_status horus_plan_get_review(const horus_plan* plan, size_t index, horus_tenant_review* review,
                                   horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{plan, "plan"}}));
    HORUS_RETURN_IF_ERROR(CheckOutput(review));
    if (index >= plan->reviews.size()) return NoSuch("reviews", plan->reviews.size(), index);
    WriteStruct(ReviewToC(plan->reviews[index]), review);
    return absl::OkStatus();
  });
}

size_t horus_plan_preemption_count(const horus_plan* plan) {
  return plan == nullptr ? 0 : plan->value.candidates.size();
}

horus_status horus_plan_get_preemption(const horus_plan* plan, size_t index, horus_preemption* preemption,
                                       horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::PreemptionCandidate* found, CandidateAt(plan, index));
    HORUS_RETURN_IF_ERROR(CheckOutput(preemption));
    WriteStruct(CandidateToC(*found), preemption);
    return absl::OkStatus();
  });
}

horus_status horus_plan_preemption_victims(const horus_plan* plan, size_t index, size_t capacity, uint64_t* job_ids,
                                           double* losses, size_t* count, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::PreemptionCandidate* found, CandidateAt(plan, index));
    return WriteVictims(*found, capacity, job_ids, losses, count);
  });
}

horus_status horus_plan_preemption_slots(const horus_plan* plan, size_t index, const horus_slots* slots, size_t* count,
                                         horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::PreemptionCandidate* found, CandidateAt(plan, index));
    return WriteSlots(found->slots, slots, count);
  });
}
