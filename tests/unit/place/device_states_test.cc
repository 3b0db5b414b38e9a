// SPDX-License-Identifier: Apache-2.0
// Rules of tenant classes and device states: what tells them apart, what they sum up, when they are freed.
#include "place/state/device_states.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

#include "fixtures.h"

namespace horus {
namespace {

using testing_place::Needs;
using testing_place::OneGpu;
using testing_place::Type;

TEST(DeviceStates, KindsAreSharersAndNumbersOfGpus) {
  EXPECT_EQ(KindBit(0, 1), 1u);
  EXPECT_EQ(KindBit(999, 1), 1u);
  EXPECT_EQ(KindBit(1000, 1), 2u);
  EXPECT_EQ(KindBit(1000, 2), 4u);
  EXPECT_EQ(KindBit(1000, 62), uint64_t{1} << 62);
  EXPECT_EQ(KindBit(1000, 63), uint64_t{1} << 63);
  EXPECT_EQ(KindBit(1000, 400), uint64_t{1} << 63);
}

TEST(DeviceStates, SpeedIsRelativeToTheFastestTypeThatStatesItsStep) {
  JobSpec job = OneGpu(1);
  job.demands = {{Type("k80"), Needs(10, 100, 8)}, {Type("v100-sxm2-16gb"), Needs(10, 100, 1)}};
  EXPECT_EQ(RelativeSpeed(job, job.demands[0].demand), 0.125);
  EXPECT_EQ(RelativeSpeed(job, job.demands[1].demand), 1);
  Demand service = job.demands[0].demand;
  service.duty = 0.5f, service.slowdown_bound = 2;
  EXPECT_EQ(RelativeSpeed(job, service), 1) << "it serves as many as come";
  JobSpec capped = job;
  capped.kind = JobKind::kInference, capped.request_rate_hz = 1e6 / 16, capped.sm_cap_pct = 10;
  service = Needs(100, 100, 8),
  service.slowdown_bound = 2;  // busy; of the rate one half, and more than there is under the cap
  EXPECT_LT(RelativeSpeed(capped, service), 1) << "it no longer serves as many as come";
  job.demands[1].demand.step_time_us = {0, 0};
  EXPECT_EQ(RelativeSpeed(job, job.demands[0].demand), 1);
  EXPECT_EQ(RelativeSpeed(job, job.demands[1].demand), 1) << "states none itself";
}

// A job whose fields all differ from their defaults.
JobSpec Base() {
  JobSpec job = OneGpu(1, 40, 4000);
  Demand& demand = job.demands[0].demand;
  demand.profile_id = 5;
  demand.flags = 1;
  demand.step_time_us = {900, 1000};
  for (size_t i = 0; i < kTraitCount; ++i) demand.traits[i] = static_cast<float>(i + 1);
  return job;
}

TEST(DeviceStates, EveryFieldTellsClassesApartByItsDigestToo) {
  using Edit = std::function<void(JobSpec&, Demand&)>;
  std::vector<Edit> edits = {
      [](JobSpec&, Demand&) {},
      [](JobSpec&, Demand& d) { d.profile_id = 6; },
      [](JobSpec&, Demand& d) { d.flags = 3; },
      [](JobSpec&, Demand& d) { d.gpu_util_pct.estimate = 39; },
      [](JobSpec&, Demand& d) { d.gpu_util_pct.upper = 41; },
      [](JobSpec&, Demand& d) { d.gpu_util_pct.estimate = 1; },
      [](JobSpec&, Demand& d) { d.mem_bw_util_pct = {1, 1}; },
      [](JobSpec&, Demand& d) { d.mem_bw_util_pct = {0, 1}; },
      [](JobSpec&, Demand& d) { d.mem_mib = {3999, 4000}; },
      [](JobSpec&, Demand& d) { d.step_time_us.estimate = 901; },
      [](JobSpec&, Demand& d) { d.step_time_us.upper = 1001; },
      [](JobSpec&, Demand& d) { d.power_w = {1, 2}; },
      [](JobSpec&, Demand& d) { d.power_w = {1, 3}; },
      [](JobSpec&, Demand& d) { d.gradient_mib = 1; },
      [](JobSpec&, Demand& d) { d.distance = 1; },
      [](JobSpec&, Demand& d) { d.operator_us = 1; },
      [](JobSpec& j, Demand&) { j.slowdown_bound = 1; },
      [](JobSpec& j, Demand&) { j.slowdown_bound = 2; },
      [](JobSpec& j, Demand&) { j.slowdown_bound = 2, j.slowdown_confidence = 0.99f; },
      [](JobSpec& j, Demand&) { j.gpu_milli = 1; },
      [](JobSpec& j, Demand&) { j.gpu_milli = 500; },
      [](JobSpec& j, Demand&) { j.exclusive = true; },
      [](JobSpec& j, Demand&) { j.gpus_per_task = 2; },
      [](JobSpec& j, Demand&) { j.tasks = 2; },
      [](JobSpec& j, Demand&) { j.kind = JobKind::kInference; },
      [](JobSpec& j, Demand&) { j.kind = JobKind::kInference, j.gpus_per_task = 2; },
      [](JobSpec& j, Demand&) { j.priority = 1; },
      [](JobSpec& j, Demand&) { j.priority = -1; },
      [](JobSpec& j, Demand&) { j.weight = 2; },
      [](JobSpec& j, Demand&) { j.weight = 3; },
      [](JobSpec& j, Demand&) { j.demands.push_back({Type("k80"), Needs(10, 100, 90)}); },
      [](JobSpec& j, Demand&) { j.demands.push_back({Type("k80"), Needs(10, 100, 80)}); },
      [](JobSpec& j, Demand&) { j.gpu_mem_request_mib = 3000; },
      [](JobSpec& j, Demand&) { j.gpu_mem_request_mib = 3000, j.gpu_mem_limit_mib = 5000; },
      [](JobSpec& j, Demand&) { j.gpu_mem_request_mib = 3500, j.gpu_mem_limit_mib = 5000; },
  };
  for (size_t i = 0; i < kTraitCount; ++i) edits.emplace_back([i](JobSpec&, Demand& d) { d.traits[i] += 100; });
  for (const int64_t bound_us : {700, 800}) {  // late even alone
    edits.emplace_back([bound_us](JobSpec& j, Demand&) {
      j.kind = JobKind::kInference;
      j.request_rate_hz = 1;
      j.latency_bound_us = bound_us;
    });
  }
  edits.emplace_back([](JobSpec& j, Demand&) {
    j.kind = JobKind::kInference;
    j.request_rate_hz = 100;
    j.latency_bound_us = 700;
  });
  std::vector<TenantClass> classes;
  std::set<uint64_t> digests, orders;
  for (const Edit& edit : edits) {
    JobSpec job = Base();
    Demand demand = job.demands[0].demand;
    edit(job, demand);
    classes.push_back(MakeTenantClass(job, demand));
    EXPECT_TRUE(digests.insert(classes.back().digest).second) << "edit " << classes.size() - 1;
    EXPECT_EQ(MakeTenantClass(job, demand).digest, classes.back().digest);
    EXPECT_TRUE(orders.insert(classes.back().order).second) << "edit " << classes.size() - 1;
  }
  for (size_t i = 0; i < classes.size(); ++i) {
    for (size_t j = 0; j < classes.size(); ++j) EXPECT_EQ(SameTenant(classes[i], classes[j]), i == j) << i << ' ' << j;
  }
}

TEST(DeviceStates, ClassesThatDifferInOneFieldAreNotTheSame) {
  const TenantClass base = MakeTenantClass(Base(), Base().demands[0].demand);
  const std::vector<std::function<void(TenantClass&)>> edits = {
      [](TenantClass& c) { c.demand.profile_id = 9; },
      [](TenantClass& c) { c.promise.bound = 7; },
      [](TenantClass& c) { c.promise.confidence = 0.7f; },
      [](TenantClass& c) { c.gpu_milli = 7; },
      [](TenantClass& c) { c.exclusive = true; },
      [](TenantClass& c) { c.gpus = 7; },
      [](TenantClass& c) { c.distributed = true; },
      [](TenantClass& c) { c.priority = 7; },
      [](TenantClass& c) { c.kind = JobKind::kInference; },
      [](TenantClass& c) { c.weight = 7; },
      [](TenantClass& c) { c.worth = 7; },
      [](TenantClass& c) { c.memory.limit_mib = 7; },
      [](TenantClass& c) { c.late.p99_us = 7; },
  };
  EXPECT_TRUE(SameTenant(base, base));
  for (const auto& edit : edits) {
    TenantClass other = base;
    edit(other);
    EXPECT_FALSE(SameTenant(base, other));
    EXPECT_FALSE(SameTenant(other, base));
  }
}

TEST(DeviceStates, AZeroHasOneDigestWhateverItsSign) {
  const JobSpec job = OneGpu(1);
  Demand demand = job.demands[0].demand;
  const uint64_t digest = MakeTenantClass(job, demand).digest;
  demand.distance = -0.0f;
  EXPECT_EQ(MakeTenantClass(job, demand).digest, digest);
}

// `order` is no secret: two trait values can be solved for that of another class.
TEST(DeviceStates, ClassesMadeToHaveOneOrderStillHaveOne) {
  TenantClass known = MakeTenantClass(Base(), Base().demands[0].demand);
  TenantClass forged = known;
  forged.digest = 1;
  EXPECT_TRUE(SameTenant(known, forged));
  EXPECT_FALSE(TenantBefore(known, forged) || TenantBefore(forged, known));
  forged.demand.traits[0] = 7;
  EXPECT_NE(TenantBefore(known, forged), TenantBefore(forged, known));
}

TenantClass ClassOf(float util, int64_t mem_mib, const std::function<void(JobSpec&)>& edit = {}) {
  JobSpec job = OneGpu(1, util, mem_mib);
  job.demands[0].demand.gpu_util_pct.upper = util + 5;
  job.demands[0].demand.mem_mib.estimate = mem_mib - 10;
  if (edit) edit(job);
  return MakeTenantClass(job, job.demands[0].demand);
}

TEST(DeviceStates, AStateSumsUpItsTenants) {
  StateTable table;
  DeviceRow row{.type = Type("v100-sxm2-16gb"), .mem_mib = 16'384, .compute_share = 0.5f};
  const uint32_t plain = table.HoldTenant(ClassOf(10, 1000));
  const uint32_t limited = table.HoldTenant(ClassOf(20, 2000, [](JobSpec& job) {
    job.gpu_mem_request_mib = 1500;
    job.gpu_mem_limit_mib = 3000;
    job.gpu_milli = 300;
    job.slowdown_bound = 1;
  }));
  row.tenants = {plain, limited};
  for (int times = 0; times < 2; ++times) {  // whatever was in the row
    table.Finish(row);
    EXPECT_EQ(row.mem_used_upper_mib, 1000 + 1500);
    EXPECT_EQ(row.mem_limit_mib, 1000 + 3000);
    EXPECT_EQ(row.mem_used_mib, 990 + 1990);
    EXPECT_EQ(row.milli_used, 1 + 300);
    EXPECT_FALSE(row.exclusive_held);
    EXPECT_TRUE(row.bounded);
    EXPECT_EQ(row.kinds, KindBit(0, 1) | KindBit(300, 1));
    EXPECT_EQ(row.util_pct, (10 + 20) / 0.5);
    EXPECT_EQ(row.util_upper_pct, (15 + 25) / 0.5);
    EXPECT_NE(row.digest, 0u);
  }
  const uint64_t digest = row.digest;
  row.tenants = {limited, plain};
  table.Finish(row);
  EXPECT_EQ(row.digest, digest) << "in whatever order";
  EXPECT_LT(table.tenant(row.tenants[0]).order, table.tenant(row.tenants[1]).order);
  row.tenants = {plain, table.HoldTenant(ClassOf(30, 100, [](JobSpec& job) {
                   job.exclusive = true;
                   job.gpus_per_task = 2;
                   job.gpu_milli = 1000;
                 }))};
  table.Finish(row);
  EXPECT_TRUE(row.exclusive_held);
  EXPECT_FALSE(row.bounded);
  EXPECT_EQ(row.kinds, 1u | 4u);
  row.tenants.clear();
  table.Finish(row);
  EXPECT_FALSE(row.exclusive_held);
  EXPECT_EQ(row.mem_used_upper_mib + row.mem_limit_mib + row.mem_used_mib + row.milli_used, 0);
  EXPECT_EQ(row.kinds, 0u);
  EXPECT_EQ(row.util_pct + row.util_upper_pct, 0);
}

TEST(DeviceStates, EveryFieldTellsStatesApart) {
  StateTable table;
  const DeviceRow base{.type = Type("v100-sxm2-16gb"), .max_tenants = 2, .mem_mib = 100};
  const uint32_t tenant = table.HoldTenant(ClassOf(10, 10));
  const std::vector<std::function<void(DeviceRow&)>> edits = {
      [](DeviceRow&) {},
      [](DeviceRow& row) { row.type = Type("k80"); },
      [](DeviceRow& row) { row.mode = SharingMode::kMps; },
      [](DeviceRow& row) { row.mode = SharingMode::kExclusive; },
      [](DeviceRow& row) { row.state = AdminState::kDown; },
      [](DeviceRow& row) { row.max_tenants = 3; },
      [](DeviceRow& row) { row.mem_mib = 101; },
      [](DeviceRow& row) { row.compute_share = 0.5f; },
      [&](DeviceRow& row) { row.tenants = {tenant}; },
      [&](DeviceRow& row) { row.tenants = {tenant, tenant}; },
  };
  std::set<uint32_t> ids;
  std::set<uint64_t> stable;
  for (const auto& edit : edits) {
    DeviceRow row = base;
    edit(row);
    const uint32_t id = table.InternState(row);
    table.Ref(id);
    EXPECT_TRUE(ids.insert(id).second);
    EXPECT_EQ(table.InternState(row), id) << "the same is found again";
    DeviceRow alone = row;
    table.Finish(alone);
    EXPECT_EQ(table.digest(id), alone.digest) << "no two have one digest";
    EXPECT_EQ(table.state(id).digest, alone.digest);
    EXPECT_TRUE(stable.insert(table.StableHash(row)).second);
  }
  EXPECT_EQ(table.live_states(), edits.size());
  EXPECT_EQ(table.tenant_refs(tenant), 1u + 1 + 2);
}

TEST(DeviceStates, WhatNobodyHoldsIsFreedAndItsIdUsedAgain) {
  StateTable table;
  const DeviceRow empty{.type = Type("v100-sxm2-16gb"), .mem_mib = 100};
  const uint32_t first = table.InternState(empty);
  EXPECT_EQ(table.refs(first), 0u);
  table.Ref(first);
  table.Ref(first);
  uint32_t tenant = 99;
  const uint32_t taken = table.WithTenant(first, ClassOf(10, 10), tenant);
  table.Ref(taken);
  EXPECT_EQ(table.state(taken).tenants, TenantIds{tenant});
  EXPECT_EQ(table.tenant_refs(tenant), 1u);
  uint32_t again = 99;
  const uint32_t twice = table.WithTenant(taken, ClassOf(10, 10), again);
  table.Ref(twice);
  EXPECT_EQ(again, tenant);
  EXPECT_EQ(table.tenant_refs(tenant), 3u);
  EXPECT_EQ(table.WithoutTenant(twice, tenant), taken) << "one of the two";
  EXPECT_EQ(table.WithoutTenant(taken, tenant), first);
  EXPECT_EQ(table.WithoutTenant(first, tenant), first) << "which is not there";
  table.Unref(twice);
  table.Unref(taken);
  EXPECT_EQ(table.live_states(), 1u);
  EXPECT_EQ(table.live_tenants(), 0u);
  EXPECT_EQ(table.digest(taken), 0u);
  EXPECT_TRUE(table.state(taken).tenants.empty());
  EXPECT_EQ(table.tenant(tenant).digest, 0u);
  const size_t states = table.state_limit();
  const size_t tenants = table.tenant_limit();
  const uint32_t drained = table.WithState(first, AdminState::kDrained);
  EXPECT_TRUE(drained == taken || drained == twice);
  table.Ref(drained);
  EXPECT_EQ(table.refs(drained), 1u);
  EXPECT_EQ(table.HoldTenant(ClassOf(20, 20)), tenant);
  EXPECT_EQ(table.HoldTenant(ClassOf(20, 20)), tenant);
  EXPECT_EQ(table.tenant_refs(tenant), 2u);
  EXPECT_EQ(table.state_limit(), states);
  EXPECT_EQ(table.tenant_limit(), tenants);
  table.DropTenant(tenant);
  EXPECT_EQ(table.live_tenants(), 1u);
  table.DropTenant(tenant);
  EXPECT_EQ(table.live_tenants(), 0u);
  table.Unref(first);
  EXPECT_EQ(table.live_states(), 2u);
  table.Unref(first);
  EXPECT_EQ(table.live_states(), 1u);
}

TEST(DeviceStates, WhatIsHeldWhileAChangeIsPreparedIsGivenBack) {
  StateTable table;
  const uint32_t id = table.InternState({.type = Type("v100-sxm2-16gb"), .mem_mib = 100});
  {
    HeldStates held(table, 2);
    held.Hold(id);
    held.Hold(id);
    EXPECT_EQ(table.refs(id), 2u);
    EXPECT_EQ(held.ids().size(), 2u);
  }
  EXPECT_EQ(table.live_states(), 0u);
}

TEST(DeviceStates, TheBytesHeldGrowWithWhatIsHeld) {
  StateTable table;
  const uint64_t before = table.bytes_held();
  for (int i = 0; i < 100; ++i) {
    uint32_t tenant = 0;
    const uint32_t empty = table.InternState({.type = Type("v100-sxm2-16gb"), .mem_mib = 100 + i});
    table.Ref(empty);
    table.Ref(table.WithTenant(empty, ClassOf(static_cast<float>(i), 100), tenant));
  }
  const uint64_t least = 200 * sizeof(DeviceRow) + 100 * sizeof(TenantClass) + 200 * sizeof(uint64_t);
  EXPECT_GE(table.bytes_held(), before + least);
  EXPECT_LE(table.bytes_held(), 4 * least) << "columns double";
}

}  // namespace
}  // namespace horus
