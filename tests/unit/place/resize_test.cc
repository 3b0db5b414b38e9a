// SPDX-License-Identifier: Apache-2.0
// Rules of plans that give residents other CPU and host memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "fixtures.h"
#include "place/state/ledger.h"
#include "place/state/snapshot.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::Gang;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::PlanOf;

constexpr int64_t kNodeCpu = 32'000;  // of a node of Nodes()

JobSpec Holding(JobSpec job, int64_t cpu_milli, int64_t mem_mib) {
  job.cpu_milli = cpu_milli;
  job.mem_mib = mem_mib;
  return job;
}

// What the resident would be with that much.
std::shared_ptr<const JobSpec> Granted(const Cluster& cluster, JobId id, int64_t cpu_milli, int64_t mem_mib) {
  auto job = std::make_shared<JobSpec>(*cluster.Job(id)->spec);
  GrantHost(cpu_milli, mem_mib, *job);
  return job;
}

// Job 1 was granted 24 of the 4 cores that it asked for, on node 1; job 2 is a gang over both nodes.
Cluster TwoGranted() {
  Cluster cluster = Nodes(2, 4);
  JobSpec one = Holding(OneGpu(1), 4000, 1000);
  GrantHost(24'000, 5000, one);
  EXPECT_TRUE(cluster.Adopt(one, std::vector<Slot>{{1, 0, 0}}).ok());
  const JobSpec gang = Holding(Gang(2, 3, 1), 2000, 100);
  EXPECT_TRUE(cluster.Adopt(gang, std::vector<Slot>{{1, 1, 0}, {1, 2, 1}, {2, 0, 2}}).ok());
  return cluster;
}

TEST(Resize, AGrantRemembersWhatWasStated) {
  JobSpec job = Holding(OneGpu(1), 4000, 1000);
  GrantHost(24'000, 1000, job);
  EXPECT_EQ(job.cpu_milli, 24'000);
  EXPECT_EQ(job.stated_cpu_milli, 4000);
  EXPECT_EQ(job.stated_mem_mib, JobSpec::kAsHeld);
  GrantHost(8000, 2000, job);
  EXPECT_EQ(StatedCpuMilli(job), 4000);
  EXPECT_EQ(StatedMemMib(job), 1000);
  GrantHost(4000, 1000, job);
  EXPECT_EQ(job, Holding(OneGpu(1), 4000, 1000));
}

TEST(Resize, NobodyHoldsLessThanWasStated) {
  JobSpec job = Holding(OneGpu(1), 4000, 1000);
  job.stated_cpu_milli = 4001;
  EXPECT_THAT(ValidateJob(job).message(), HasSubstr("stated_cpu_milli: expected -1 (as held) or 0 to the 4000"));
  job.stated_cpu_milli = 4000;
  job.stated_mem_mib = -2;
  EXPECT_THAT(ValidateJob(job).message(), HasSubstr("stated_mem_mib"));
}

TEST(Resize, WhatIsGivenBackIsThereForNewcomersOfTheSamePlan) {
  Cluster cluster = TwoGranted();
  const auto newcomer = std::make_shared<const JobSpec>(Holding(OneGpu(9), 20'000, 0));
  const Plan plan = PlanOf(cluster, {{ActionKind::kPlace, newcomer, {{1, 3, 0}}},
                                     {ActionKind::kResize, Granted(cluster, 1, 8000, 5000), {}}});
  const uint64_t other = cluster.Node(2)->version;
  ASSERT_TRUE(cluster.Apply(plan).ok()) << cluster.Apply(plan);
  EXPECT_EQ(cluster.Node(1)->cpu_free_milli, kNodeCpu - 8000 - 4000 - 20'000);
  EXPECT_EQ(cluster.Job(1)->spec->cpu_milli, 8000);
  EXPECT_EQ(cluster.Job(1)->spec->stated_cpu_milli, 4000);
  EXPECT_EQ(cluster.Job(1)->slots, (Slots{{1, 0, 0}}));
  EXPECT_TRUE(cluster.Job(1)->adopted);  // it did not move
  EXPECT_EQ(cluster.Node(2)->version, other);
  EXPECT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
  EXPECT_EQ(cluster.Apply(plan).code(), absl::StatusCode::kAlreadyExists);
}

TEST(Resize, OneMayTakeWhatAnotherGives) {
  Cluster cluster = TwoGranted();
  const Plan plan = PlanOf(cluster, {{ActionKind::kResize, Granted(cluster, 2, 10'000, 100), {}},
                                     {ActionKind::kResize, Granted(cluster, 1, 12'000, 5000), {}}});
  ASSERT_TRUE(cluster.Apply(plan).ok()) << cluster.Apply(plan);
  EXPECT_EQ(cluster.Node(1)->cpu_free_milli, kNodeCpu - 12'000 - 2 * 10'000);
  EXPECT_EQ(cluster.Node(2)->cpu_free_milli, kNodeCpu - 10'000);
  EXPECT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
}

TEST(Resize, ADrainedNodeKeepsResizing) {
  Cluster cluster = TwoGranted();
  ASSERT_TRUE(cluster.SetNodeState(1, AdminState::kDrained).ok());
  EXPECT_TRUE(cluster.Apply(PlanOf(cluster, {{ActionKind::kResize, Granted(cluster, 1, 4000, 1000), {}}})).ok());
}

TEST(Resize, AllOrNothing) {
  Cluster cluster = TwoGranted();
  const std::string before = *SaveSnapshot(cluster);
  const auto expect_refused = [&](const Plan& plan, absl::StatusCode code, std::string_view why) {
    const absl::Status status = cluster.Apply(plan);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(status.message(), HasSubstr(why));
    EXPECT_EQ(*SaveSnapshot(cluster), before);  // versions included
    EXPECT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
  };
  const auto smaller = Granted(cluster, 1, 8000, 5000);
  // What the others give is not enough for the gang, or for the newcomer.
  expect_refused(PlanOf(cluster, {{ActionKind::kResize, smaller, {}},
                                  {ActionKind::kResize, Granted(cluster, 2, 12'001, 100), {}}}),
                 absl::StatusCode::kFailedPrecondition, "node 1 has not what the plan adds");
  expect_refused(PlanOf(cluster, {{ActionKind::kResize, Granted(cluster, 2, 2000, 200'000), {}}}),
                 absl::StatusCode::kFailedPrecondition, "host memory");
  expect_refused(
      PlanOf(cluster,
             {{ActionKind::kResize, smaller, {}},
              {ActionKind::kPlace, std::make_shared<const JobSpec>(Holding(OneGpu(9), 20'001, 0)), {{1, 3, 0}}}}),
      absl::StatusCode::kFailedPrecondition, "does not fit where the plan puts it");
  expect_refused(PlanOf(cluster, {{ActionKind::kResize, smaller, {}}, {ActionKind::kResize, smaller, {}}}),
                 absl::StatusCode::kInvalidArgument, "is resized twice");
  expect_refused(PlanOf(cluster, {{ActionKind::kResize, cluster.Job(1)->spec, {}}}), absl::StatusCode::kInvalidArgument,
                 "to change something");
  expect_refused(PlanOf(cluster, {{ActionKind::kResize, smaller, {}}, {ActionKind::kPreempt, smaller, {}}}),
                 absl::StatusCode::kInvalidArgument, "is resized and leaves");
  expect_refused(PlanOf(cluster, {{ActionKind::kResize, smaller, {{1, 0, 0}}}}), absl::StatusCode::kInvalidArgument,
                 "expected no slots");
  expect_refused(PlanOf(cluster, {{ActionKind::kResize, Granted(cluster, 1, 3999, 5000), {}}}),
                 absl::StatusCode::kInvalidArgument, "stated_cpu_milli");
  auto renamed = std::make_shared<JobSpec>(*smaller);
  renamed->priority = 7;
  expect_refused(PlanOf(cluster, {{ActionKind::kResize, renamed, {}}}), absl::StatusCode::kInvalidArgument,
                 "host resources alone");
  expect_refused(PlanOf(cluster, {{ActionKind::kResize, std::make_shared<const JobSpec>(OneGpu(7)), {}}}),
                 absl::StatusCode::kNotFound, "job 7");
  Plan blind = PlanOf(cluster, {{ActionKind::kResize, Granted(cluster, 2, 3000, 100), {}}});
  blind.seen.pop_back();
  expect_refused(blind, absl::StatusCode::kInvalidArgument, "is on node 2");
}

TEST(Resize, AChangeOfTheNodeIsAConflict) {
  Cluster cluster = TwoGranted();
  const Plan plan = PlanOf(cluster, {{ActionKind::kResize, Granted(cluster, 1, 8000, 5000), {}}});
  const Plan same = PlanOf(cluster, {{ActionKind::kResize, Granted(cluster, 1, 9000, 5000), {}}});
  ASSERT_TRUE(cluster.Apply(plan).ok());
  EXPECT_EQ(cluster.Apply(same).code(), absl::StatusCode::kAborted);
}

TEST(Resize, LedgersFollowAndTakeBack) {
  Cluster cluster = TwoGranted();
  Ledger ledger(cluster);
  const uint64_t before = ledger.Hash();
  const JobInfo gang = *cluster.Job(2);
  const auto grown = Granted(cluster, 2, 3000, 300);
  const PlacedSlots slots = cluster.rows().jobs[cluster.rows().RowOfJob(2)].slots;
  const size_t mark = ledger.Mark();
  ledger.Resize(*gang.spec, *grown, slots);
  const uint64_t booked = ledger.Hash();
  EXPECT_NE(booked, before);
  ledger.UndoTo(mark);
  EXPECT_EQ(ledger.Hash(), before);
  ASSERT_TRUE(cluster.Apply(PlanOf(cluster, {{ActionKind::kResize, grown, {}}})).ok());
  ledger.Follow(cluster);
  EXPECT_EQ(ledger.Hash(), booked);
  EXPECT_EQ(Ledger(cluster).Hash(), booked);
}

TEST(Resize, SnapshotsKeepWhatWasStated) {
  const Cluster cluster = TwoGranted();
  const std::string bytes = *SaveSnapshot(cluster);
  const auto restored =
      RestoreSnapshot({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, cluster.shared_catalogue());
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(*restored->Job(1)->spec, *cluster.Job(1)->spec);
  EXPECT_EQ(restored->state_hash(), cluster.state_hash());
  JobSpec forgetful = *cluster.Job(1)->spec;
  forgetful.stated_cpu_milli = JobSpec::kAsHeld;
  Cluster other = Nodes(2, 4);
  ASSERT_TRUE(other.Adopt(forgetful, std::vector<Slot>{{1, 0, 0}}).ok());
  Cluster same = Nodes(2, 4);
  ASSERT_TRUE(same.Adopt(*cluster.Job(1)->spec, std::vector<Slot>{{1, 0, 0}}).ok());
  EXPECT_NE(other.state_hash(), same.state_hash());  // later rounds differ
}

}  // namespace
}  // namespace horus
