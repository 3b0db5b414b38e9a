// SPDX-License-Identifier: Apache-2.0
// Rules of what a cluster books and gives back: versions, slots, plans that must not pass, grants to the last unit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

#include "fixtures.h"
#include "place/state/fit.h"
#include "place/state/snapshot.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::CpuOnly;
using testing_place::Gang;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::PlanOf;
using testing_place::Type;

std::shared_ptr<const JobSpec> Shared(JobSpec job) { return std::make_shared<const JobSpec>(std::move(job)); }

TEST(Booking, AVersionTellsApartWhatCame) {
  const std::vector<std::function<void(JobSpec&)>> edits = {
      [](JobSpec&) {},
      [](JobSpec& job) { job.id = 2; },
      [](JobSpec& job) { job.demands[0].demand.gpu_util_pct = {41, 41}; },
      [](JobSpec& job) { job.cpu_milli = 1; },
      [](JobSpec& job) { job.mem_mib = 1; },
      [](JobSpec& job) { job.storage_mb_s = 1; },
      [](JobSpec& job) { job.tenant = "red"; },
      [](JobSpec& job) { job.tenant = "blue"; },
      [](JobSpec& job) { job.tenant = "blue", job.share = ShareWith::kAnyone; },
      [](JobSpec& job) { job.groups = {"a"}; },
      [](JobSpec& job) { job.groups = {"b"}; },
      [](JobSpec& job) { job.avoid_groups = {"a"}; },
  };
  std::set<uint64_t> versions = {Nodes(1).Node(1)->version};
  for (const auto& edit : edits) {
    for (const int32_t device : {0, 1}) {
      Cluster cluster = Nodes(1);
      JobSpec job = OneGpu(1);
      edit(job);
      ASSERT_TRUE(cluster.Adopt(job, std::vector<Slot>{{1, device, 0}}).ok());
      EXPECT_TRUE(versions.insert(cluster.Node(1)->version).second);
      ASSERT_TRUE(cluster.Release(job.id).ok());
      EXPECT_TRUE(versions.insert(cluster.Node(1)->version).second) << "a history, not a state";
    }
  }
}

TEST(Booking, AVersionTellsThatATaskWithoutGpusCameAndLeft) {
  Cluster cluster = Nodes(1);
  std::set<uint64_t> versions = {cluster.Node(1)->version};
  ASSERT_TRUE(cluster.Adopt(CpuOnly(1), std::vector<Slot>{{1, kNoDevice, 0}}).ok());
  EXPECT_TRUE(versions.insert(cluster.Node(1)->version).second);
  ASSERT_TRUE(cluster.Release(1).ok());
  EXPECT_TRUE(versions.insert(cluster.Node(1)->version).second);
}

TEST(Booking, AVersionTellsApartWhatAResidentWasGranted) {
  std::set<uint64_t> versions;
  for (const auto& [cpu_milli, mem_mib] : {std::pair{5000, 1000}, {4000, 2000}, {5000, 2000}, {6000, 2000}}) {
    Cluster cluster = Nodes(1);
    JobSpec job = OneGpu(1);
    job.cpu_milli = 4000;
    job.mem_mib = 1000;
    ASSERT_TRUE(cluster.Adopt(job, std::vector<Slot>{{1, 0, 0}}).ok());
    GrantHost(cpu_milli, mem_mib, job);
    ASSERT_TRUE(cluster.Apply(PlanOf(cluster, {{ActionKind::kResize, Shared(job), {}}})).ok());
    EXPECT_TRUE(versions.insert(cluster.Node(1)->version).second);
  }
}

TEST(Booking, SlotsComeInAnyOrderAndAreKeptInOne) {
  Cluster cluster = Nodes(2);
  ASSERT_TRUE(cluster.Adopt(Gang(1, 2, 2), std::vector<Slot>{{2, 1, 1}, {1, 1, 0}, {2, 0, 1}, {1, 0, 0}}).ok());
  EXPECT_EQ(cluster.Job(1)->slots, (Slots{{1, 0, 0}, {1, 1, 0}, {2, 0, 1}, {2, 1, 1}}));
  EXPECT_TRUE(CheckInvariants(cluster).ok());
}

TEST(Booking, SaysWhichSlotsAreWrong) {
  Cluster cluster = Nodes(2, 4);
  const auto why = [&](const JobSpec& job, std::vector<Slot> slots) {
    return std::string(cluster.Adopt(job, slots).status().message());
  };
  EXPECT_THAT(why(Gang(1, 2, 1), {{1, 0, 0}, {1, 1, 2}}),
              HasSubstr("expected 1 for each task from 0 to 1, found another number for task 1"));
  EXPECT_THAT(why(Gang(1, 2, 1), {{1, 0, 1}, {1, 1, 1}}), HasSubstr("another number for task 0"));
  EXPECT_THAT(why(Gang(1, 1, 2), {{1, 0, 0}, {2, 1, 0}}),
              HasSubstr("expected task 0 on one node, found nodes 1 and 2"));
  EXPECT_THAT(why(Gang(1, 3, 1), {{1, 0, 0}, {1, 1, 1}, {1, 0, 2}}), HasSubstr("expected each device once"));
}

TEST(Booking, ABrokenRuleIsThatOfANewcomer) {
  Cluster cluster = Nodes(1);
  const FitLimits limits{.slowdown_bound = 9};
  const std::vector<Slot> slots = {{1, 0, 0}};
  EXPECT_EQ(*cluster.BrokenRule(OneGpu(1), slots, limits), Reason::kNone);
  ASSERT_TRUE(cluster.SetDeviceState(1, 0, AdminState::kDrained).ok());
  EXPECT_EQ(*cluster.BrokenRule(OneGpu(1), slots, limits), Reason::kDeviceDrained);
  ASSERT_TRUE(cluster.SetNodeState(1, AdminState::kDown).ok());
  EXPECT_EQ(*cluster.BrokenRule(OneGpu(1), slots, limits), Reason::kNodeDown);
  JobSpec unknown = OneGpu(1);
  unknown.demands[0].type = GpuTypeId(10'000);
  EXPECT_EQ(cluster.BrokenRule(unknown, slots, limits).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Booking, GroupsKeepAwayFromThoseWhoAreThereAndNobodyElse) {
  Cluster cluster = Nodes(1);
  JobSpec member = OneGpu(1);
  member.groups = {"a"};
  JobSpec avoider = OneGpu(2);
  avoider.avoid_groups = {"b"};
  ASSERT_TRUE(cluster.Adopt(member, std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(avoider, std::vector<Slot>{{1, 0, 0}}).ok());
  const auto reason = [&](std::vector<std::string> groups, std::vector<std::string> avoids) {
    JobSpec job = OneGpu(9);
    job.groups = std::move(groups);
    job.avoid_groups = std::move(avoids);
    return *cluster.BrokenRule(job, std::vector<Slot>{{1, 1, 0}}, FitLimits{.slowdown_bound = 9});
  };
  EXPECT_EQ(reason({"a"}, {}), Reason::kNone) << "a member is no avoider";
  EXPECT_EQ(reason({}, {"b"}), Reason::kNone) << "an avoider is no member";
  EXPECT_EQ(reason({"b"}, {}), Reason::kAntiAffinity);
  EXPECT_EQ(reason({}, {"a"}), Reason::kAntiAffinity);
}

TEST(Booking, APlanThatNamesABadJobIsRefusedAndChangesNothing) {
  Cluster cluster = Nodes(2);
  const std::string before = *SaveSnapshot(cluster);
  const auto code = [&](Actions actions) {
    const absl::Status status = cluster.Apply(PlanOf(cluster, std::move(actions)));
    EXPECT_EQ(*SaveSnapshot(cluster), before);
    return status.code();
  };
  JobSpec bad = OneGpu(1);
  bad.weight = -1;
  EXPECT_EQ(code({{ActionKind::kPlace, Shared(bad), {{1, 0, 0}}}}), absl::StatusCode::kInvalidArgument);
  bad = OneGpu(1);
  bad.demands = {{Type("v100-sxm2-16gb"), bad.demands[0].demand}, {GpuTypeId(10'000), bad.demands[0].demand}};
  EXPECT_EQ(code({{ActionKind::kPlace, Shared(bad), {{1, 0, 0}}}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{ActionKind::kPlace, nullptr, {{1, 0, 0}}}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{ActionKind::kPlace, Shared(OneGpu(1)), {{1, 0, 0}}},
                  {ActionKind::kPlace, Shared(OneGpu(1)), {{2, 0, 0}}}}),
            absl::StatusCode::kAlreadyExists);
}

TEST(Booking, APlanMayListWhatItSawInAnyOrderAndItsJobsAreNotAdopted) {
  Cluster cluster = Nodes(3);
  Plan plan = PlanOf(cluster, {{ActionKind::kPlace, Shared(Gang(1, 3, 1)), {{1, 0, 0}, {2, 0, 1}, {3, 0, 2}}}});
  std::swap(plan.seen[0], plan.seen[2]);
  ASSERT_TRUE(cluster.Apply(plan).ok());
  EXPECT_FALSE(cluster.Job(1)->adopted);
  EXPECT_FALSE(cluster.Job(1)->over_committed);
}

TEST(Booking, APlanThatSawANodeThatIsGoneIsAborted) {
  Cluster cluster = Nodes(2);
  const Plan plan = PlanOf(cluster, {{ActionKind::kPlace, Shared(OneGpu(1)), {{1, 0, 0}}}});
  ASSERT_TRUE(cluster.RemoveNode(2).ok());
  EXPECT_EQ(cluster.Apply(plan).code(), absl::StatusCode::kAborted);
}

// Job 1 holds half of the node; job 2, adopted, the rest and `over` of each beyond it.
Cluster Filled(int64_t over_cpu, int64_t over_mem) {
  Cluster cluster = Nodes(1);
  JobSpec one = OneGpu(1);
  one.cpu_milli = 1000;
  one.mem_mib = 1000;
  GrantHost(16'000, 100'000, one);
  JobSpec two = OneGpu(2);
  two.cpu_milli = 16'000 + over_cpu;
  two.mem_mib = 162'144 + over_mem;
  EXPECT_TRUE(cluster.Adopt(one, std::vector<Slot>{{1, 0, 0}}).ok());
  EXPECT_TRUE(cluster.Adopt(two, std::vector<Slot>{{1, 1, 0}}).ok());
  return cluster;
}

absl::Status Resize(Cluster& cluster, int64_t cpu_milli, int64_t mem_mib) {
  JobSpec job = *cluster.Job(1)->spec;
  GrantHost(cpu_milli, mem_mib, job);
  return cluster.Apply(PlanOf(cluster, {{ActionKind::kResize, Shared(job), {}}}));
}

TEST(Booking, AResidentMayGrowToTheLastUnit) {
  Cluster cluster = Filled(-10, -10);
  EXPECT_EQ(Resize(cluster, 16'011, 100'000).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Resize(cluster, 16'000, 100'011).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Resize(cluster, 16'010, 100'000).ok());
  EXPECT_TRUE(Resize(cluster, 16'010, 100'010).ok());
}

TEST(Booking, AResidentMayShrinkWhereTheNodeIsOverCommitted) {
  for (const auto& [cpu_milli, mem_mib] : {std::pair{15'000, 100'000}, {16'000, 90'000}, {15'000, 90'000}}) {
    Cluster cluster = Filled(30'000, 300'000);
    EXPECT_TRUE(Resize(cluster, cpu_milli, mem_mib).ok()) << cpu_milli << ' ' << mem_mib;
  }
}

TEST(Booking, AResidentMayGrowInWhatIsNotOverCommitted) {
  for (const int64_t cpu_milli : {16'000, 15'000}) {  // the same, and less
    Cluster cpu_over = Filled(30'000, -10);
    EXPECT_TRUE(Resize(cpu_over, cpu_milli, 100'010).ok());
    EXPECT_EQ(Resize(cpu_over, cpu_milli + 1, 100'010).code(), absl::StatusCode::kFailedPrecondition);
  }
  for (const int64_t mem_mib : {100'000, 90'000}) {
    Cluster mem_over = Filled(-10, 300'000);
    EXPECT_TRUE(Resize(mem_over, 16'010, mem_mib).ok());
    EXPECT_EQ(Resize(mem_over, 16'010, mem_mib + 1).code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST(Booking, AJobIsResizedOnceHoweverTheActionsAreOrdered) {
  Cluster cluster = Nodes(1);
  Actions actions;
  for (const JobId id : {1, 2}) {
    JobSpec job = OneGpu(id);
    job.cpu_milli = 1000;
    ASSERT_TRUE(cluster.Adopt(job, std::vector<Slot>{{1, static_cast<int32_t>(id) - 1, 0}}).ok());
  }
  for (const JobId id : {1, 2, 1}) {
    JobSpec job = *cluster.Job(id)->spec;
    GrantHost(2000 + 1000 * static_cast<int64_t>(actions.size()), 0, job);
    actions.push_back({ActionKind::kResize, Shared(job), {}});
  }
  EXPECT_THAT(cluster.Apply(PlanOf(cluster, actions)).message(), HasSubstr("job 1: is resized twice"));
}

TEST(Booking, WhatRunsMayFillTheMemoryOfADeviceWithoutAHeadroom) {
  Cluster cluster = Nodes(1);
  EXPECT_FALSE(cluster.Adopt(OneGpu(1, 10, 16'384), std::vector<Slot>{{1, 0, 0}})->over_committed);
  EXPECT_EQ(cluster.Adopt(OneGpu(2, 10, 16'385), std::vector<Slot>{{1, 1, 0}})->reason, Reason::kGpuMemory);
}

}  // namespace
}  // namespace horus
