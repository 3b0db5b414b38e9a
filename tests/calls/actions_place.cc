// SPDX-License-Identifier: Apache-2.0
// Actions that plan one by one and apply: what a plan promises is what the cluster then has.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "calls/arguments.h"
#include "calls/harness.h"
#include "calls/plans.h"

namespace horus::calls {
namespace {

constexpr size_t kMostPlans = 6;
constexpr size_t kMostJobs = 6;
constexpr double kSumTolerance = 1e-6;

std::vector<Slot> SlotsOf(Harness& harness, const horus_plan* plan, size_t index, size_t expected) {
  SlotRows rows(expected);
  size_t count = 0;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_plan_slots, plan, HORUS_SLOTS_DECISION, index, &rows.columns, &count);
  harness.Require(status == HORUS_OK && count == expected, "slots of a decision", expected, count);
  return rows.Sorted(count);
}

void CheckTerms(Harness& harness, const horus_plan* plan, size_t index, const horus_decision& decision) {
  std::vector<double> costs(decision.terms);
  std::vector<const char*> names(decision.terms);
  size_t count = 0;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_plan_terms, plan, index, costs.size(), names.data(), costs.data(), &count);
  harness.Require(status == HORUS_OK && count == decision.terms, "terms of a decision", decision.terms, count);
  double sum = 0, size = 1;
  for (const double cost : costs) {
    sum += cost;
    size += std::abs(cost);
  }
  if (count > 0) harness.Require(std::abs(sum - decision.cost) <= kSumTolerance * size, "terms sum to the cost", index);
}

void CheckRefusals(Harness& harness, const horus_plan* plan, size_t index) {
  constexpr size_t kRoomForReasons = 32;
  std::array<int32_t, kRoomForReasons> reasons = {};
  std::array<uint64_t, kRoomForReasons> counts = {};
  size_t count = 0;
  harness.Require(HORUS_TRY(harness, kNone, horus_plan_refusals, plan, index, kRoomForReasons, reasons.data(),
                            counts.data(), &count) == HORUS_OK,
                  "refusals");
  for (size_t i = 0; i < count; ++i) {
    harness.Require(counts[i] > 0 && std::strcmp(horus_reason_name(reasons[i]), "unknown") != 0, "a refusal counts", i);
  }
}

void CheckEffects(Harness& harness, const horus_plan* plan, size_t index, const horus_decision& decision) {
  std::vector<float> before(decision.effects), after(decision.effects), upper(decision.effects),
      calibrated(decision.effects);
  horus_effects effects = HORUS_EFFECTS_INIT;
  effects.capacity = decision.effects;
  effects.slowdown_before = before.data();
  effects.slowdown_after = after.data();
  effects.slowdown_after_upper = upper.data();
  effects.calibrated_up_to = calibrated.data();
  size_t count = 0;
  const horus_status status = HORUS_TRY(harness, kNone, horus_plan_effects, plan, index, &effects, &count);
  harness.Require(status == HORUS_OK && count == decision.effects, "effects", decision.effects, count);
  for (size_t i = 0; i < count; ++i) {
    harness.Require(before[i] >= 1 && after[i] >= 1 && upper[i] >= after[i], "slowdowns are at least 1", i);
    harness.Require(calibrated[i] >= 0 && calibrated[i] <= 1, "what is calibrated is a probability", i);
  }
}

void CheckPlace(Harness& harness, const horus_decision& decision, const std::vector<Slot>& slots) {
  harness.Require(!slots.empty(), "a place has slots");
  harness.Require(decision.slowdown >= 1 || slots[0].device == UINT32_MAX, "the slowdown of a place");
  harness.Require(decision.slowdown_upper >= decision.slowdown, "the bound of a slowdown");
  harness.Require(std::isfinite(decision.cost), "the cost of a place");
  std::set<std::pair<uint64_t, uint32_t>> devices;
  for (const Slot& slot : slots) {
    harness.Require(harness.nodes.contains(slot.node), "a place on a node that is not there", 0, slot.node);
    if (slot.device == UINT32_MAX) continue;
    harness.Require(slot.device < harness.DevicesOf(slot.node), "a place on a device that is not there");
    harness.Require(devices.insert({slot.node, slot.device}).second, "a device twice in one place", slot.node);
  }
}

void ReadDecision(Harness& harness, Planned& planned, size_t index) {
  const horus_plan* plan = planned.plan.get();
  horus_decision decision = HORUS_DECISION_INIT;
  harness.Require(HORUS_TRY(harness, kNone, horus_plan_get, plan, index, &decision) == HORUS_OK, "a decision", index);
  harness.Require(decision.text != nullptr && decision.text[0] != '\0', "a decision says nothing", index);
  harness.Require(decision.verdict >= HORUS_VERDICT_PLACE && decision.verdict <= HORUS_VERDICT_REJECT, "a verdict");
  harness.Note(CombineHash(decision.job_id, static_cast<uint64_t>(decision.verdict)));
  const std::vector<Slot> slots = SlotsOf(harness, plan, index, decision.slots);
  for (const Slot& slot : slots) harness.Note(CombineHash(slot.node, slot.device));
  if (harness.choices.OneIn(4)) {
    CheckRefusals(harness, plan, index);
    CheckEffects(harness, plan, index, decision);
    CheckTerms(harness, plan, index, decision);
  }
  if (decision.verdict != HORUS_VERDICT_PLACE) {
    harness.Require(slots.empty(), "a job that is not placed has slots", 0, slots.size());
    return;
  }
  harness.Require(decision.reason == HORUS_REASON_NONE, "a place with a reason");
  CheckPlace(harness, decision, slots);
  const auto moved = [&](const PlannedMove& move) { return move.job == decision.job_id; };
  if (std::any_of(planned.moves.begin(), planned.moves.end(), moved)) return;
  planned.places.push_back(
      {decision.job_id, {.slots = slots, .cpu_milli = decision.cpu_milli, .mem_mib = decision.mem_mib}});
}

void ReadMove(Harness& harness, Planned& planned, size_t index) {
  horus_move move = HORUS_MOVE_INIT;
  const horus_plan* plan = planned.plan.get();
  harness.Require(HORUS_TRY(harness, kNone, horus_plan_get_move, plan, index, &move) == HORUS_OK, "a move", index);
  SlotRows rows(move.to_slots);
  size_t count = 0;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_plan_slots, plan, HORUS_SLOTS_MOVE_TO, index, &rows.columns, &count);
  harness.Require(status == HORUS_OK && count == move.to_slots, "slots of a move", move.to_slots, count);
  PlannedMove what{.kind = move.kind,
                   .job = move.job_id,
                   .to = rows.Sorted(count),
                   .cpu_milli = move.cpu_milli,
                   .mem_mib = move.mem_mib};
  if (!planned.what_if) harness.Require(harness.jobs.contains(move.job_id), "a move of a job that is not there");
  planned.moves.push_back(std::move(what));
}

void CarryOut(Harness& harness, const PlannedMove& move) {
  const auto job = harness.jobs.find(move.job);
  harness.Require(job != harness.jobs.end(), "a plan moved a job that is not there", 0, move.job);
  switch (move.kind) {
    case HORUS_MOVE_PREEMPT:
      harness.jobs.erase(job);
      return;
    case HORUS_MOVE_MIGRATE:
      job->second.slots = move.to;
      job->second.adopted = false;
      return;
    default:
      job->second.cpu_milli = move.cpu_milli;
      job->second.mem_mib = move.mem_mib;
  }
}

}  // namespace

horus_plan_info InfoOf(Harness& harness, const horus_plan* plan) {
  horus_plan_info info = HORUS_PLAN_INFO_INIT;
  harness.Require(HORUS_TRY(harness, kNone, horus_plan_get_info, plan, &info) == HORUS_OK, "what a plan has");
  return info;
}

void Keep(Harness& harness, horus_plan* plan, bool what_if) {
  Planned planned{
      .plan = PlanHandle(plan), .places = {}, .moves = {}, .generation = harness.generation, .what_if = what_if};
  const horus_plan_info info = InfoOf(harness, plan);
  for (size_t i = 0; i < info.moves; ++i) ReadMove(harness, planned, i);
  for (size_t i = 0; i < info.decisions; ++i) ReadDecision(harness, planned, i);
  harness.Require(horus_plan_bytes_held(plan) > 0, "a plan holds memory");
  if (harness.plans.size() >= kMostPlans) harness.plans.erase(harness.plans.begin());
  harness.plans.push_back(std::move(planned));
}

void ApplyLast(Harness& harness) {
  if (harness.plans.empty()) return;
  const Planned& planned = harness.plans.back();
  const bool fresh = planned.generation == harness.generation;
  const horus_status status =
      HORUS_TRY(harness, kChanges, horus_cluster_apply, harness.cluster.get(), planned.plan.get());
  if (planned.what_if) harness.Require(status == HORUS_ERR_STATE, "a what-if was applied");
  if (status != HORUS_OK) {
    harness.Require(planned.what_if || !fresh, "a plan is refused though nothing changed since", 0,
                    static_cast<uint64_t>(status));
    return;
  }
  std::set<std::pair<uint64_t, uint32_t>> touched;
  for (const PlannedMove& move : planned.moves) {
    CarryOut(harness, move);
    for (const Slot& slot : move.to) touched.insert({slot.node, slot.device});
  }
  for (const PlannedJob& place : planned.places) {
    harness.Require(harness.jobs.emplace(place.job, place.what).second, "a plan placed a job that is there", 0,
                    place.job);
    for (const Slot& slot : place.what.slots) touched.insert({slot.node, slot.device});
  }
  for (const auto& [node, device] : touched) {
    if (device == UINT32_MAX) {
      CheckNode(harness, node);
    } else {
      CheckDevice(harness, node, device);
    }
  }
  for (const PlannedJob& place : planned.places) CheckJob(harness, place.job);
}

std::vector<uint64_t> SomeNodes(Harness& harness) {
  std::vector<uint64_t> subset;
  if (!harness.choices.OneIn(8)) return subset;
  for (uint64_t left = 1 + harness.choices.Below(4); left > 0; --left) subset.push_back(harness.SomeNode());
  return subset;
}

void SomeJobs(Harness& harness, JobsArgument& out) {
  const size_t count = harness.choices.OneIn(4) ? harness.choices.Below(kMostJobs + 1) : 1;
  for (size_t i = 0; i < count; ++i) {
    MakeJob(harness.choices, harness.AnyJobId(), harness.options.hostile, harness.options.variety, out.Add());
    if (harness.choices.OneIn(64 * harness.options.hostile)) out.pointers.back() = nullptr;
  }
}

horus_placer* SomePlacer(Harness& harness) {
  const size_t which =
      harness.choices.OneIn(harness.options.other_placers) ? harness.choices.Below(harness.placers.size()) : 0;
  return harness.placers[which].get();
}

int32_t StopNow(void* user, double done) {
  if (!(done >= 0 && done <= 1)) static_cast<Harness*>(user)->Fail("progress is a share");
  return 1;
}

namespace {

void Plan(Harness& harness) {
  JobsArgument jobs;
  SomeJobs(harness, jobs);
  const std::vector<uint64_t> subset = SomeNodes(harness);
  horus_plan* plan = nullptr;
  const horus_progress progress = harness.choices.OneIn(64) ? StopNow : nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_placer_plan, SomePlacer(harness), harness.cluster.get(),
                                        jobs.pointers.size(), jobs.pointers.data(), subset.size(),
                                        subset.empty() ? nullptr : subset.data(), progress, &harness, &plan);
  harness.Require((status == HORUS_OK) == (plan != nullptr), "a plan comes with success alone");
  if (plan == nullptr) return;
  const size_t decisions = InfoOf(harness, plan).decisions;
  harness.Require(decisions == jobs.pointers.size(), "a decision a job", jobs.pointers.size(), decisions);
  Keep(harness, plan, false);
}

void PlanAndApply(Harness& harness) {
  const size_t before = harness.plans.size();
  Plan(harness);
  if (harness.plans.size() > before ||
      (before == kMostPlans && harness.plans.back().generation == harness.generation)) {
    ApplyLast(harness);
    if (!harness.choices.OneIn(8)) harness.plans.pop_back();
  }
}

void ApplyAnOldOne(Harness& harness) {
  if (harness.plans.empty()) return;
  std::swap(harness.plans[harness.choices.Below(harness.plans.size())], harness.plans.back());
  ApplyLast(harness);
  if (harness.choices.OneIn(2)) harness.plans.pop_back();
}

void Verdicts(Harness& harness) {
  JobArgument job;
  MakeJob(harness.choices, harness.AnyJobId(), harness.options.hostile, harness.options.variety, job);
  std::array<uint64_t, 4> subset = {};
  for (uint64_t& node : subset) node = harness.SomeNode();
  std::array<int32_t, 4> verdicts = {}, reasons = {};
  std::array<double, 4> costs = {};
  const size_t count = harness.choices.Below(5);
  const horus_status status = HORUS_TRY(harness, kNone, horus_placer_verdicts, SomePlacer(harness),
                                        harness.cluster.get(), &job.job.value, count, subset.data(), verdicts.data(),
                                        costs.data(), harness.choices.OneIn(2) ? reasons.data() : nullptr);
  if (status != HORUS_OK) return;
  for (size_t i = 0; i < count; ++i) {
    harness.Require((verdicts[i] == HORUS_VERDICT_PLACE) == !std::isnan(costs[i]), "a cost goes with a place", i);
    harness.Note(static_cast<uint64_t>(verdicts[i]));
  }
}

// Indices and NULLs that no plan has.
void LookWronglyAtPlan(Harness& harness) {
  const horus_plan* plan = harness.plans.empty() ? nullptr : harness.plans.back().plan.get();
  const size_t beyond = (plan == nullptr ? 0 : InfoOf(harness, plan).decisions) + harness.choices.Below(3);
  horus_decision decision = HORUS_DECISION_INIT;
  harness.Require(HORUS_TRY(harness, kNone, horus_plan_get, plan, beyond, &decision) != HORUS_OK,
                  "a decision too many");
  horus_slots slots = HORUS_SLOTS_INIT;
  size_t count = 0;
  harness.Require(
      HORUS_TRY(harness, kNone, horus_plan_slots, plan, HORUS_SLOTS_DECISION, beyond, &slots, &count) != HORUS_OK,
      "slots too many");
  horus_move move = HORUS_MOVE_INIT;
  harness.Require(HORUS_TRY(harness, kNone, horus_plan_get_move, plan, size_t{1} << 32, &move) != HORUS_OK,
                  "a move too many");
  horus_preemption preemption = HORUS_PREEMPTION_INIT;
  harness.Require(HORUS_TRY(harness, kNone, horus_plan_get_preemption, plan, size_t{1} << 32, &preemption) != HORUS_OK,
                  "a preemption too many");
  horus_cluster* const none = nullptr;
  harness.Require(HORUS_TRY(harness, kNone, horus_cluster_apply, none, plan) != HORUS_OK,
                  "a plan was applied to nothing");
}

}  // namespace

std::vector<Action> PlaceActions() {
  return {{PlanAndApply, 420}, {Plan, 60}, {ApplyAnOldOne, 32}, {Verdicts, 24}, {LookWronglyAtPlan, 4}};
}

}  // namespace horus::calls
