// SPDX-License-Identifier: Apache-2.0
// horus/place.h, plans: the decisions and what explains them.
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "capi/args.h"
#include "capi/columns.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/structs.h"
#include "horus/place.h"

namespace horus::capi {
namespace {

static_assert(HORUS_VERDICT_PLACE == static_cast<int>(Verdict::kPlace) &&
              HORUS_VERDICT_DEFER == static_cast<int>(Verdict::kDefer) &&
              HORUS_VERDICT_REJECT == static_cast<int>(Verdict::kReject));
static_assert(HORUS_REASON_POLICY == static_cast<int>(Reason::kPolicy) &&
              HORUS_REASON_OWNER == static_cast<int>(Reason::kOwner) &&
              HORUS_REASON_MEMORY_UNKNOWN == static_cast<int>(Reason::kMemoryUnknown) &&
              HORUS_REASON_SHARING_QUOTA == static_cast<int>(Reason::kSharingQuota) &&
              HORUS_REASON_SHARING_QUOTA + 1 == kReasonCount);

absl::StatusOr<const Decision*> DecisionAt(const horus_plan* plan, size_t index) {
  HORUS_RETURN_IF_ERROR(Require({{plan, "plan"}}));
  if (index < plan->value.decisions.size()) return &plan->value.decisions[index];
  return MakeError(absl::StatusCode::kNotFound, "index: expected less than %d decisions, found %d",
                   plan->value.decisions.size(), index);
}

const char* TextOf(const horus_plan& plan, size_t index) {
  std::call_once(plan.texts_once, [&plan] {
    std::vector<std::string> texts;
    for (const Decision& decision : plan.value.decisions) texts.push_back(DescribeDecision(decision));
    plan.texts = std::move(texts);
  });
  return plan.texts[index].c_str();
}

void MissToC(const NearestMiss& miss, horus_decision& c) {
  c.miss_reason = static_cast<int32_t>(miss.reason);
  c.miss_node = miss.node;
  c.miss_device = static_cast<uint32_t>(miss.device);  // -1 becomes UINT32_MAX
  c.miss_needed = miss.needed;
  c.miss_available = miss.available;
  c.miss_estimate = miss.estimate;
  c.miss_unit = miss.unit.data() == nullptr ? "" : miss.unit.data();  // literals: ended by NUL
}

horus_decision DecisionToC(const Decision& decision) {
  horus_decision c = HORUS_DECISION_INIT;
  c.verdict = static_cast<int32_t>(decision.verdict);
  c.job_id = decision.job;
  c.reason = static_cast<int32_t>(decision.reason);
  c.slots = static_cast<uint32_t>(decision.slots.size());
  c.effects = static_cast<uint32_t>(decision.effects.size());
  c.slowdown = decision.own.estimate;
  c.slowdown_upper = decision.own.upper;
  c.terms = static_cast<uint32_t>(decision.winner.terms.size());
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  c.cost = decision.verdict == Verdict::kPlace ? decision.winner.cost : kNone;
  c.runner_up_cost = decision.has_runner_up ? decision.runner_up.cost : kNone;
  c.probe = decision.probe ? 1 : 0;
  c.trial = decision.trial ? 1 : 0;
  c.alternative = decision.alternative;
  c.predicted_never = decision.predicted_never ? 1 : 0;
  c.cpu_milli = decision.cpu_milli;
  c.mem_mib = decision.mem_mib;
  c.miss_unit = "";
  if (decision.verdict != Verdict::kPlace) MissToC(decision.miss, c);
  return c;
}

template <typename T>
uint64_t BytesOf(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

// Without the texts, which another thread may be writing.
uint64_t BytesOf(const Plan& plan) {
  uint64_t bytes = BytesOf(plan.actions) + BytesOf(plan.decisions) + BytesOf(plan.seen);
  for (const Action& action : plan.actions) {
    bytes += BytesOf(action.slots) + sizeof(JobSpec) + BytesOf(action.job->demands);
  }
  for (const Decision& decision : plan.decisions) {
    bytes += BytesOf(decision.slots) + BytesOf(decision.effects) + BytesOf(decision.winner.terms) +
             BytesOf(decision.runner_up.terms);
  }
  for (const Move& move : plan.moves) bytes += sizeof(Move) + BytesOf(move.from) + BytesOf(move.to);
  for (const PreemptionCandidate& one : plan.candidates) {
    bytes += sizeof(PreemptionCandidate) + BytesOf(one.victims) + BytesOf(one.losses) + BytesOf(one.slots);
  }
  return bytes;
}

absl::Status WriteEffects(const std::vector<TenantEffect>& effects, const horus_effects* out, size_t* count) {
  HORUS_RETURN_IF_ERROR(Require({{count, "count"}}));
  HORUS_ASSIGN_OR_RETURN(const horus_effects columns, ReadStruct(out));
  HORUS_RETURN_IF_ERROR(CheckCapacity(effects.size(), columns.capacity, count));
  for (size_t i = 0; i < effects.size(); ++i) {
    Put(columns.job_ids, i, effects[i].job);
    Put(columns.node_ids, i, effects[i].node);
    Put(columns.devices, i, effects[i].device);
    Put(columns.slowdown_before, i, effects[i].before.estimate);
    Put(columns.slowdown_after, i, effects[i].after.estimate);
    Put(columns.slowdown_after_upper, i, effects[i].after.upper);
    Put(columns.calibrated_up_to, i, effects[i].calibrated);
  }
  *count = effects.size();
  return absl::OkStatus();
}

absl::Status WriteRefusals(const std::array<uint32_t, kReasonCount>& refused, size_t capacity, int32_t* reasons,
                           uint64_t* counts, size_t* count) {
  std::vector<int32_t> rows;
  for (size_t reason = 0; reason < refused.size(); ++reason) {
    if (refused[reason] != 0) rows.push_back(static_cast<int32_t>(reason));
  }
  HORUS_RETURN_IF_ERROR(CheckCapacity(rows.size(), capacity, count));
  for (size_t i = 0; i < rows.size(); ++i) {
    Put(reasons, i, rows[i]);
    Put(counts, i, refused[static_cast<size_t>(rows[i])]);
  }
  *count = rows.size();
  return absl::OkStatus();
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

void horus_plan_free(horus_plan* plan) { delete plan; }

size_t horus_plan_count(const horus_plan* plan) { return plan == nullptr ? 0 : plan->value.decisions.size(); }

uint64_t horus_plan_bytes_held(const horus_plan* plan) {
  return plan == nullptr ? 0 : sizeof(horus_plan) + BytesOf(plan->value);
}

horus_status horus_plan_get(const horus_plan* plan, size_t index, horus_decision* decision, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::Decision* found, DecisionAt(plan, index));
    HORUS_RETURN_IF_ERROR(CheckOutput(decision));
    horus_decision value = DecisionToC(*found);
    value.text = TextOf(*plan, index);
    WriteStruct(value, decision);
    return absl::OkStatus();
  });
}

horus_status horus_plan_slots(const horus_plan* plan, size_t index, const horus_slots* slots, size_t* count,
                              horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::Decision* decision, DecisionAt(plan, index));
    return WriteSlots(decision->slots, slots, count);
  });
}

horus_status horus_plan_effects(const horus_plan* plan, size_t index, const horus_effects* effects, size_t* count,
                                horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::Decision* decision, DecisionAt(plan, index));
    return WriteEffects(decision->effects, effects, count);
  });
}

horus_status horus_plan_terms(const horus_plan* plan, size_t index, size_t capacity, const char** names, double* costs,
                              size_t* count, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::Decision* decision, DecisionAt(plan, index));
    HORUS_RETURN_IF_ERROR(Require({{count, "count"}}));
    const std::vector<horus::CostTerm>& terms = decision->winner.terms;
    HORUS_RETURN_IF_ERROR(CheckCapacity(terms.size(), capacity, count));
    for (size_t i = 0; i < terms.size(); ++i) {
      Put(names, i, terms[i].name.data());  // literals: ended by NUL
      Put(costs, i, terms[i].value);
    }
    *count = terms.size();
    return absl::OkStatus();
  });
}

horus_status horus_plan_refusals(const horus_plan* plan, size_t index, size_t capacity, int32_t* reasons,
                                 uint64_t* counts, size_t* count, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::Decision* decision, DecisionAt(plan, index));
    HORUS_RETURN_IF_ERROR(Require({{count, "count"}}));
    return WriteRefusals(decision->refused_devices, capacity, reasons, counts, count);
  });
}

// The texts are literals, so data() is ended by NUL.
const char* horus_reason_name(int32_t reason) { return horus::ReasonName(static_cast<horus::Reason>(reason)).data(); }

const char* horus_reason_text(int32_t reason) { return horus::ReasonText(static_cast<horus::Reason>(reason)).data(); }
