// SPDX-License-Identifier: Apache-2.0
// Actions of the other ways to plan, and placers of all policies, those of the caller among them.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "calls/arguments.h"
#include "calls/harness.h"
#include "calls/plans.h"

namespace horus::calls {
namespace {

constexpr size_t kMostPlacers = 4;
constexpr size_t kPolicies = 64;  // more than there are

void CheckWork(Harness& harness, const horus_plan* plan, bool grows) {
  const horus_plan_info info = InfoOf(harness, plan);
  const double before = info.work_before, after = info.work_after;
  constexpr double kRounding = 1e-6;
  if (grows && !std::isnan(before) && !std::isnan(after)) {
    harness.Require(after >= before - kRounding * (1 + std::abs(before)), "a plan that is worse than none");
  }
}

void Batch(Harness& harness) {
  JobsArgument jobs;
  SomeJobs(harness, jobs);
  Roomy<horus_batch_options> options{HORUS_BATCH_OPTIONS_INIT};
  options.value.max_rounds = 2;
  options.value.restarts = 1;
  options.value.max_evaluations = 500;
  MaybeCorrupt(harness.choices, harness.options.hostile, options);
  const std::vector<uint64_t> subset = SomeNodes(harness);
  horus_plan* plan = nullptr;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_placer_plan_batch, SomePlacer(harness), harness.cluster.get(),
                jobs.pointers.size(), jobs.pointers.data(), subset.size(), subset.empty() ? nullptr : subset.data(),
                &options.value, harness.choices.OneIn(32) ? StopNow : nullptr, &harness, &plan);
  harness.Require((status == HORUS_OK) == (plan != nullptr), "a plan comes with success alone");
  if (plan == nullptr) return;
  CheckWork(harness, plan, true);
  Keep(harness, plan, false);
  if (harness.choices.OneIn(2)) ApplyLast(harness);
}

void Rebalance(Harness& harness) {
  Roomy<horus_rebalance_options> options{HORUS_REBALANCE_OPTIONS_INIT};
  std::array<uint64_t, 3> only = {};
  for (uint64_t& id : only) id = harness.SomeJob();
  options.value.max_migrations = static_cast<uint32_t>(harness.choices.Below(4));
  options.value.max_searches = 30;
  if (harness.choices.OneIn(2)) {
    options.value.job_count = 1 + harness.choices.Below(only.size());
    options.value.job_ids = only.data();
  }
  if (harness.choices.OneIn(32)) options.value.progress = StopNow;
  options.value.user = &harness;
  MaybeCorrupt(harness.choices, harness.options.hostile, options);
  horus_plan* plan = nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_placer_rebalance, SomePlacer(harness),
                                        harness.cluster.get(), &options.value, &plan);
  harness.Require((status == HORUS_OK) == (plan != nullptr), "a plan comes with success alone");
  if (plan == nullptr) return;
  CheckWork(harness, plan, true);
  Keep(harness, plan, false);
  if (harness.choices.OneIn(2)) ApplyLast(harness);
}

// Something that is only supposed.
struct ChangeArgument {
  Roomy<horus_change> change{HORUS_CHANGE_INIT};
  JobArgument job;
  std::array<uint64_t, 2> node_ids = {};
  std::array<uint32_t, 2> devices = {}, tasks = {0, 1};
};

void MakeChange(Harness& harness, ChangeArgument& out) {
  horus_change& change = out.change.value;
  change.kind = static_cast<int32_t>(harness.choices.Below(6));
  change.job_id = harness.SomeJob();
  change.node_id = harness.SomeNode();
  change.state = static_cast<int32_t>(harness.choices.Below(4));
  change.device = static_cast<uint32_t>(harness.choices.Below(harness.options.devices + 1));
  for (size_t i = 0; i < out.node_ids.size(); ++i) {
    out.node_ids[i] = harness.SomeNode();
    out.devices[i] = static_cast<uint32_t>(harness.choices.Below(harness.DevicesOf(out.node_ids[i]) + 1));
  }
  change.slot_count = 1 + harness.choices.Below(2);
  change.node_ids = out.node_ids.data();
  change.devices = out.devices.data();
  change.tasks = out.tasks.data();
  if (change.kind == HORUS_CHANGE_PLACE) {
    MakeJob(harness.choices, harness.AnyJobId(), harness.options.hostile, harness.options.variety, out.job);
    change.job = &out.job.job.value;
  }
  MaybeCorrupt(harness.choices, harness.options.hostile, out.change);
}

void WhatIf(Harness& harness) {
  JobsArgument jobs;
  SomeJobs(harness, jobs);
  std::array<ChangeArgument, 3> changes;
  std::array<const horus_change*, 3> pointers = {};
  const size_t count = harness.choices.Below(4);
  for (size_t i = 0; i < count; ++i) {
    MakeChange(harness, changes[i]);
    pointers[i] = &changes[i].change.value;
  }
  horus_plan* plan = nullptr;
  const horus_status status = HORUS_TRY(
      harness, kNone, horus_placer_what_if, SomePlacer(harness), harness.cluster.get(), count, pointers.data(),
      jobs.pointers.size(), jobs.pointers.data(), harness.choices.OneIn(32) ? StopNow : nullptr, &harness, &plan);
  harness.Require((status == HORUS_OK) == (plan != nullptr), "a plan comes with success alone");
  if (plan == nullptr) return;
  CheckWork(harness, plan, false);
  Keep(harness, plan, true);
}

void Preempt(Harness& harness) {
  JobArgument job;
  MakeJob(harness.choices, harness.AnyJobId(), harness.options.hostile, harness.options.variety, job);
  job.job.value.priority += 3;
  Roomy<horus_preempt_options> options{HORUS_PREEMPT_OPTIONS_INIT};
  options.value.max_candidates = static_cast<uint32_t>(harness.choices.Below(4));
  options.value.max_checks = 200;
  MaybeCorrupt(harness.choices, harness.options.hostile, options);
  const std::vector<uint64_t> subset = SomeNodes(harness);
  horus_plan* plan = nullptr;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_placer_preempt, SomePlacer(harness), harness.cluster.get(), &job.job.value,
                subset.size(), subset.empty() ? nullptr : subset.data(), &options.value, &plan);
  harness.Require((status == HORUS_OK) == (plan != nullptr), "a plan comes with success alone");
  if (plan == nullptr) return;
  double least = 0;
  for (size_t i = 0, n = InfoOf(harness, plan).preemptions; i < n; ++i) {
    horus_preemption preemption = HORUS_PREEMPTION_INIT;
    HORUS_TRY(harness, kNone, horus_plan_get_preemption, plan, i, &preemption);
    harness.Require(i == 0 || preemption.loss >= least, "preemptions by ascending loss", i);
    least = preemption.loss;
    for (size_t v = 0; v < preemption.victim_count; ++v) {
      harness.Require(harness.jobs.contains(preemption.victims[v]), "a victim that is not there");
    }
    size_t count = 0;
    horus_slots slots = HORUS_SLOTS_INIT;
    slots.capacity = preemption.slots;
    HORUS_TRY(harness, kNone, horus_plan_slots, plan, HORUS_SLOTS_PREEMPTION, i, &slots, &count);
    harness.Require(count == preemption.slots, "slots of a preemption", preemption.slots, count);
  }
  Keep(harness, plan, false);
  if (harness.choices.OneIn(2)) ApplyLast(harness);
}

// The caller's policy: mostly by what the device has left; now and then it fails, and it may call nothing back.
int32_t PriceByCallback(void* user, const horus_policy_candidate* candidate, double* cost, int32_t* declined) {
  Harness& harness = *static_cast<Harness*>(user);
  harness.Require(candidate->count >= 1 && std::isnan(*cost) && *declined == 0, "what a policy callback gets");
  if (!harness.simulating) {
    horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
    harness.Require(horus_cluster_get_info(harness.cluster.get(), &info, nullptr) == HORUS_ERR_BUSY,
                    "a call from a callback");
    harness.Require(horus_cluster_release(harness.cluster.get(), 1, nullptr) == HORUS_ERR_BUSY,
                    "a release from a callback");
  }
  *cost = static_cast<double>(candidate->mem_used_mib + candidate->gpu_milli_used);
  *declined = candidate->count > 3 ? 1 : 0;
  return 0;
}
int32_t FailByCallback(void*, const horus_policy_candidate* candidate, double* cost, int32_t*) {
  *cost = candidate->count > 1 ? std::nan("") : 1.0;
  return candidate->count > 2 ? 1 : 0;
}

struct PlacerArgument {
  Roomy<horus_placer_options> options{HORUS_PLACER_OPTIONS_INIT};
  Roomy<horus_workload> workload{HORUS_WORKLOAD_INIT};
  std::array<int64_t, 2> cpu_milli = {1'000, 4'000};
  std::array<int32_t, 2> gpus = {1, 1}, gpu_milli = {500, 1'000};
  std::array<const char*, 2> gpu_types = {nullptr, "k80"};
  std::array<double, 2> shares = {0.25, 0.75};
};

void MakeWorkload(Harness& harness, PlacerArgument& out) {
  horus_workload& workload = out.workload.value;
  workload.task_count = 2;
  workload.cpu_milli = out.cpu_milli.data();
  workload.gpus = out.gpus.data();
  workload.gpu_milli = out.gpu_milli.data();
  workload.gpu_types = out.gpu_types.data();
  workload.shares = out.shares.data();
  MaybeCorrupt(harness.choices, harness.options.hostile, out.workload);
  out.options.value.workload = &out.workload.value;
}

const char* SomePolicy(uint64_t index) {
  const char* const* names = Library().policies;
  for (; index > 0 && *names != nullptr; --index) ++names;
  return *names;
}

void NewPlacer(Harness& harness) {
  PlacerArgument argument;
  horus_placer_options& options = argument.options.value;
  const uint64_t which = harness.choices.Below(kPolicies);
  options.policy = SomePolicy(which);  // NULL past the end: the default
  options.max_tenants = static_cast<int32_t>(harness.choices.Below(5));
  options.seed = harness.choices.Below(256);
  options.interference = harness.models.empty() || harness.choices.OneIn(2)
                             ? nullptr
                             : harness.models[harness.choices.Below(harness.models.size())].get();
  options.slowdown_bound = harness.choices.OneIn(2) ? 0.0f : 1.5f;
  options.mem_headroom_mib = static_cast<int64_t>(harness.choices.Below(3)) - 1;
  options.mem_overcommit = harness.choices.OneIn(4) ? 1.5 : 0;
  options.rack_oversubscription = harness.choices.OneIn(4) ? 2 : 0;
  options.probe_outside = harness.choices.OneIn(4) ? 1 : 0;
  options.max_candidates = harness.choices.OneIn(8) ? 8 : 0;
  options.terse = harness.choices.OneIn(4) ? 1 : 0;
  options.sm_caps = harness.choices.OneIn(2) ? 1 : 0;
  options.cache_bytes = harness.choices.OneIn(2) ? 0 : 65'536;
  if (options.policy == nullptr && harness.choices.OneIn(2)) {
    options.policy_callback = harness.choices.OneIn(4) ? FailByCallback : PriceByCallback;
    options.policy_user = &harness;
  }
  if (harness.choices.OneIn(4)) MakeWorkload(harness, argument);
  MaybeCorrupt(harness.choices, harness.options.hostile, argument.options);
  horus_placer* out = nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_placer_create, &options, &out);
  harness.Require((status == HORUS_OK) == (out != nullptr), "a placer comes with success alone");
  if (out == nullptr) return;
  if (harness.placers.size() >= kMostPlacers) {
    harness.placers.erase(harness.placers.begin() +
                          static_cast<std::ptrdiff_t>(1 + harness.choices.Below(kMostPlacers - 1)));
  }
  harness.placers.emplace_back(out);
}

}  // namespace

void Evacuate(Harness& harness) {
  const std::vector<uint64_t> nodes = SomeNodes(harness);
  horus_plan* plan = nullptr;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_placer_evacuate, SomePlacer(harness), harness.cluster.get(), nodes.size(),
                nodes.empty() ? nullptr : nodes.data(), harness.choices.OneIn(32) ? StopNow : nullptr, &harness, &plan);
  harness.Require((status == HORUS_OK) == (plan != nullptr), "a plan comes with success alone");
  if (plan == nullptr) return;
  CheckWork(harness, plan, false);  // what must go may lose
  Keep(harness, plan, false);
  if (harness.choices.OneIn(2)) ApplyLast(harness);
}

// What a place does, fitting or not, is told without changing anything.
void Appraise(Harness& harness) {
  JobArgument argument;
  MakeJob(harness.choices, harness.AnyJobId(), harness.options.hostile, harness.options.variety, argument);
  const std::vector<uint64_t> nodes = SomeNodes(harness);
  const std::vector<uint32_t> devices(nodes.size(), static_cast<uint32_t>(harness.choices.Below(3)));
  horus_appraisal found = HORUS_APPRAISAL_INIT;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_placer_appraise, SomePlacer(harness), harness.cluster.get(), &argument.job.value,
                nodes.size(), nodes.empty() ? nullptr : nodes.data(), devices.empty() ? nullptr : devices.data(),
                nullptr, &found);
  if (status != HORUS_OK) return;
  harness.Require(found.slowdown <= found.slowdown_upper, "an upper bound is above the estimate");
  harness.Require(found.beyond_bound <= found.tenants && found.shared <= found.tenants, "tenants are counted once");
}

std::vector<Action> ModeActions() {
  return {{Batch, 2}, {Rebalance, 2}, {Evacuate, 1}, {Appraise, 1}, {WhatIf, 2}, {Preempt, 4}, {NewPlacer, 2}};
}

}  // namespace horus::calls
