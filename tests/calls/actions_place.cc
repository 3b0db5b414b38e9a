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
#include "calls/plans.h"
#include "calls/world.h"

namespace horus::calls {
namespace {

constexpr size_t kMostPlans = 6;
constexpr size_t kMostJobs = 6;
constexpr double kSumTolerance = 1e-6;

std::vector<Slot> SlotsOf(World& world, const horus_plan* plan, size_t index, size_t expected) {
  SlotRows rows(expected);
  size_t count = 0;
  const horus_status status = HORUS_TRY(world, kNone, horus_plan_slots, plan, index, &rows.columns, &count);
  world.Require(status == HORUS_OK && count == expected, "slots of a decision", expected, count);
  return rows.Sorted(count);
}

void CheckTerms(World& world, const horus_plan* plan, size_t index, const horus_decision& decision) {
  std::vector<double> costs(decision.terms);
  std::vector<const char*> names(decision.terms);
  size_t count = 0;
  const horus_status status =
      HORUS_TRY(world, kNone, horus_plan_terms, plan, index, costs.size(), names.data(), costs.data(), &count);
  world.Require(status == HORUS_OK && count == decision.terms, "terms of a decision", decision.terms, count);
  double sum = 0, size = 1;
  for (const double cost : costs) {
    sum += cost;
    size += std::abs(cost);
  }
  if (count > 0) world.Require(std::abs(sum - decision.cost) <= kSumTolerance * size, "terms sum to the cost", index);
}

void CheckRefusals(World& world, const horus_plan* plan, size_t index) {
  constexpr size_t kRoomForReasons = 32;
  std::array<int32_t, kRoomForReasons> reasons = {};
  std::array<uint64_t, kRoomForReasons> counts = {};
  size_t count = 0;
  world.Require(HORUS_TRY(world, kNone, horus_plan_refusals, plan, index, kRoomForReasons, reasons.data(),
                          counts.data(), &count) == HORUS_OK,
                "refusals");
  for (size_t i = 0; i < count; ++i) {
    world.Require(counts[i] > 0 && std::strcmp(horus_reason_name(reasons[i]), "unknown") != 0, "a refusal counts", i);
  }
}

void CheckEffects(World& world, const horus_plan* plan, size_t index, const horus_decision& decision) {
  std::vector<float> before(decision.effects), after(decision.effects), upper(decision.effects),
      calibrated(decision.effects);
  horus_effects effects = HORUS_EFFECTS_INIT;
  effects.capacity = decision.effects;
  effects.slowdown_before = before.data();
  effects.slowdown_after = after.data();
  effects.slowdown_after_upper = upper.data();
  effects.calibrated_up_to = calibrated.data();
  size_t count = 0;
  const horus_status status = HORUS_TRY(world, kNone, horus_plan_effects, plan, index, &effects, &count);
  world.Require(status == HORUS_OK && count == decision.effects, "effects", decision.effects, count);
  for (size_t i = 0; i < count; ++i) {
    world.Require(before[i] >= 1 && after[i] >= 1 && upper[i] >= after[i], "slowdowns are at least 1", i);
    world.Require(calibrated[i] >= 0 && calibrated[i] <= 1, "what is calibrated is a probability", i);
  }
}

void CheckPlace(World& world, const horus_decision& decision, const std::vector<Slot>& slots) {
  world.Require(!slots.empty(), "a place has slots");
  world.Require(decision.slowdown >= 1 || slots[0].device == UINT32_MAX, "the slowdown of a place");
  world.Require(decision.slowdown_upper >= decision.slowdown, "the bound of a slowdown");
  world.Require(std::isfinite(decision.cost), "the cost of a place");
  std::set<std::pair<uint64_t, uint32_t>> devices;
  for (const Slot& slot : slots) {
    world.Require(world.nodes.contains(slot.node), "a place on a node that is not there", 0, slot.node);
    if (slot.device == UINT32_MAX) continue;
    world.Require(slot.device < world.DevicesOf(slot.node), "a place on a device that is not there");
    world.Require(devices.insert({slot.node, slot.device}).second, "a device twice in one place", slot.node);
  }
}

void ReadDecision(World& world, Planned& planned, size_t index) {
  const horus_plan* plan = planned.plan.get();
  horus_decision decision = HORUS_DECISION_INIT;
  world.Require(HORUS_TRY(world, kNone, horus_plan_get, plan, index, &decision) == HORUS_OK, "a decision", index);
  world.Require(decision.text != nullptr && decision.text[0] != '\0', "a decision says nothing", index);
  world.Require(decision.verdict >= HORUS_VERDICT_PLACE && decision.verdict <= HORUS_VERDICT_REJECT, "a verdict");
  world.Note(CombineHash(decision.job_id, static_cast<uint64_t>(decision.verdict)));
  const std::vector<Slot> slots = SlotsOf(world, plan, index, decision.slots);
  for (const Slot& slot : slots) world.Note(CombineHash(slot.node, slot.device));
  if (world.choices.OneIn(4)) {
    CheckRefusals(world, plan, index);
    CheckEffects(world, plan, index, decision);
    CheckTerms(world, plan, index, decision);
  }
  if (decision.verdict != HORUS_VERDICT_PLACE) {
    world.Require(slots.empty(), "a job that is not placed has slots", 0, slots.size());
    return;
  }
  world.Require(decision.reason == HORUS_REASON_NONE, "a place with a reason");
  CheckPlace(world, decision, slots);
  const auto moved = [&](const PlannedMove& move) { return move.job == decision.job_id; };
  if (std::any_of(planned.moves.begin(), planned.moves.end(), moved)) return;
  planned.places.push_back(
      {decision.job_id, {.slots = slots, .cpu_milli = decision.cpu_milli, .mem_mib = decision.mem_mib}});
}

void ReadMove(World& world, Planned& planned, size_t index) {
  horus_move move = HORUS_MOVE_INIT;
  const horus_plan* plan = planned.plan.get();
  world.Require(HORUS_TRY(world, kNone, horus_plan_get_move, plan, index, &move) == HORUS_OK, "a move", index);
  SlotRows rows(move.to_slots);
  size_t count = 0;
  const horus_status status = HORUS_TRY(world, kNone, horus_plan_move_slots, plan, index, 1, &rows.columns, &count);
  world.Require(status == HORUS_OK && count == move.to_slots, "slots of a move", move.to_slots, count);
  PlannedMove what{.kind = move.kind,
                   .job = move.job_id,
                   .to = rows.Sorted(count),
                   .cpu_milli = move.cpu_milli,
                   .mem_mib = move.mem_mib};
  if (!planned.what_if) world.Require(world.jobs.contains(move.job_id), "a move of a job that is not there");
  planned.moves.push_back(std::move(what));
}

void CarryOut(World& world, const PlannedMove& move) {
  const auto job = world.jobs.find(move.job);
  world.Require(job != world.jobs.end(), "a plan moved a job that is not there", 0, move.job);
  switch (move.kind) {
    case HORUS_MOVE_PREEMPT:
      world.jobs.erase(job);
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

void Keep(World& world, horus_plan* plan, bool what_if) {
  Planned planned{
      .plan = PlanHandle(plan), .places = {}, .moves = {}, .generation = world.generation, .what_if = what_if};
  const size_t moves = horus_plan_move_count(plan), decisions = horus_plan_count(plan);
  for (size_t i = 0; i < moves; ++i) ReadMove(world, planned, i);
  for (size_t i = 0; i < decisions; ++i) ReadDecision(world, planned, i);
  world.Require(horus_plan_bytes_held(plan) > 0, "a plan holds memory");
  if (world.plans.size() >= kMostPlans) world.plans.erase(world.plans.begin());
  world.plans.push_back(std::move(planned));
}

void ApplyLast(World& world) {
  if (world.plans.empty()) return;
  const Planned& planned = world.plans.back();
  const bool fresh = planned.generation == world.generation;
  const horus_status status = HORUS_TRY(world, kChanges, horus_cluster_apply, world.cluster.get(), planned.plan.get());
  if (planned.what_if) world.Require(status == HORUS_ERR_STATE, "a what-if was applied");
  if (status != HORUS_OK) {
    world.Require(planned.what_if || !fresh, "a plan is refused though nothing changed since", 0,
                  static_cast<uint64_t>(status));
    return;
  }
  std::set<std::pair<uint64_t, uint32_t>> touched;
  for (const PlannedMove& move : planned.moves) {
    CarryOut(world, move);
    for (const Slot& slot : move.to) touched.insert({slot.node, slot.device});
  }
  for (const PlannedJob& place : planned.places) {
    world.Require(world.jobs.emplace(place.job, place.what).second, "a plan placed a job that is there", 0, place.job);
    for (const Slot& slot : place.what.slots) touched.insert({slot.node, slot.device});
  }
  for (const auto& [node, device] : touched) {
    if (device == UINT32_MAX) {
      CheckNode(world, node);
    } else {
      CheckDevice(world, node, device);
    }
  }
  for (const PlannedJob& place : planned.places) CheckJob(world, place.job);
}

std::vector<uint64_t> SomeNodes(World& world) {
  std::vector<uint64_t> subset;
  if (!world.choices.OneIn(8)) return subset;
  for (uint64_t left = 1 + world.choices.Below(4); left > 0; --left) subset.push_back(world.SomeNode());
  return subset;
}

void SomeJobs(World& world, JobsArgument& out) {
  const size_t count = world.choices.OneIn(4) ? world.choices.Below(kMostJobs + 1) : 1;
  for (size_t i = 0; i < count; ++i) {
    MakeJob(world.choices, world.AnyJobId(), world.options.hostile, world.options.variety, out.Add());
    if (world.choices.OneIn(64 * world.options.hostile)) out.pointers.back() = nullptr;
  }
}

horus_placer* SomePlacer(World& world) {
  const size_t which = world.choices.OneIn(world.options.other_placers) ? world.choices.Below(world.placers.size()) : 0;
  return world.placers[which].get();
}

int32_t StopNow(void* user, double done) {
  if (!(done >= 0 && done <= 1)) static_cast<World*>(user)->Fail("progress is a share");
  return 1;
}

namespace {

void Plan(World& world) {
  JobsArgument jobs;
  SomeJobs(world, jobs);
  const std::vector<uint64_t> subset = SomeNodes(world);
  horus_plan* plan = nullptr;
  const horus_progress progress = world.choices.OneIn(64) ? StopNow : nullptr;
  const horus_status status =
      HORUS_TRY(world, kNone, horus_placer_plan, SomePlacer(world), world.cluster.get(), jobs.pointers.size(),
                jobs.pointers.data(), subset.size(), subset.empty() ? nullptr : subset.data(), progress, &world, &plan);
  world.Require((status == HORUS_OK) == (plan != nullptr), "a plan comes with success alone");
  if (plan == nullptr) return;
  world.Require(horus_plan_count(plan) == jobs.pointers.size(), "a decision a job", jobs.pointers.size(),
                horus_plan_count(plan));
  Keep(world, plan, false);
}

void PlanAndApply(World& world) {
  const size_t before = world.plans.size();
  Plan(world);
  if (world.plans.size() > before || (before == kMostPlans && world.plans.back().generation == world.generation)) {
    ApplyLast(world);
    if (!world.choices.OneIn(8)) world.plans.pop_back();
  }
}

void ApplyAnOldOne(World& world) {
  if (world.plans.empty()) return;
  std::swap(world.plans[world.choices.Below(world.plans.size())], world.plans.back());
  ApplyLast(world);
  if (world.choices.OneIn(2)) world.plans.pop_back();
}

void Verdicts(World& world) {
  JobArgument job;
  MakeJob(world.choices, world.AnyJobId(), world.options.hostile, world.options.variety, job);
  std::array<uint64_t, 4> subset = {};
  for (uint64_t& node : subset) node = world.SomeNode();
  std::array<int32_t, 4> verdicts = {}, reasons = {};
  std::array<double, 4> costs = {};
  const size_t count = world.choices.Below(5);
  const horus_status status =
      HORUS_TRY(world, kNone, horus_placer_verdicts, SomePlacer(world), world.cluster.get(), &job.job.value, count,
                subset.data(), verdicts.data(), costs.data(), world.choices.OneIn(2) ? reasons.data() : nullptr);
  if (status != HORUS_OK) return;
  for (size_t i = 0; i < count; ++i) {
    world.Require((verdicts[i] == HORUS_VERDICT_PLACE) == !std::isnan(costs[i]), "a cost goes with a place", i);
    world.Note(static_cast<uint64_t>(verdicts[i]));
  }
}

// Indices and NULLs that no plan has.
void LookWronglyAtPlan(World& world) {
  const horus_plan* plan = world.plans.empty() ? nullptr : world.plans.back().plan.get();
  const size_t beyond = horus_plan_count(plan) + world.choices.Below(3);
  horus_decision decision = HORUS_DECISION_INIT;
  world.Require(HORUS_TRY(world, kNone, horus_plan_get, plan, beyond, &decision) != HORUS_OK, "a decision too many");
  horus_slots slots = HORUS_SLOTS_INIT;
  size_t count = 0;
  world.Require(HORUS_TRY(world, kNone, horus_plan_slots, plan, beyond, &slots, &count) != HORUS_OK, "slots too many");
  horus_move move = HORUS_MOVE_INIT;
  world.Require(HORUS_TRY(world, kNone, horus_plan_get_move, plan, horus_plan_move_count(plan), &move) != HORUS_OK,
                "a move too many");
  horus_preemption preemption = HORUS_PREEMPTION_INIT;
  world.Require(HORUS_TRY(world, kNone, horus_plan_get_preemption, plan, horus_plan_preemption_count(plan),
                          &preemption) != HORUS_OK,
                "a preemption too many");
  horus_cluster* const none = nullptr;
  world.Require(HORUS_TRY(world, kNone, horus_cluster_apply, none, plan) != HORUS_OK, "a plan was applied to nothing");
}

}  // namespace

std::vector<Action> PlaceActions() {
  return {{PlanAndApply, 420}, {Plan, 60}, {ApplyAnOldOne, 32}, {Verdicts, 24}, {LookWronglyAtPlan, 4}};
}

}  // namespace horus::calls
