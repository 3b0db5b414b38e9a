// SPDX-License-Identifier: Apache-2.0
// What jobs count: services by their requests, idle sessions by how busy they are, neighbours by priority and kind.
#include <gmock/gmock.h>

#include <vector>

#include "fixtures.h"
#include "place/job/job.h"
#include "place/search/policy.h"

namespace horus {
namespace {

using testing_place::AtPriority;
using testing_place::Decide;
using testing_place::Gang;
using testing_place::MakeAddingPlacer;
using testing_place::MakePlacer;
using testing_place::Needs;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::PlaceOne;
using testing_place::Type;
using testing_place::V100Node;

JobSpec Service(JobId id, float util, double rate_hz, int64_t step_us = 6000) {
  JobSpec job = OneGpu(id);
  job.kind = JobKind::kInference;
  job.request_rate_hz = rate_hz;
  job.demands[0].demand = Needs(util, 1000, step_us);
  return job;
}

JobSpec OfKind(JobSpec job, JobKind kind) {
  job.kind = kind;
  return job;
}

JobSpec Bounded(JobSpec job, float bound) {
  job.slowdown_bound = bound;
  return job;
}

Cluster With(const JobSpec& resident) {
  Cluster cluster = Nodes(1, 1);
  EXPECT_TRUE(cluster.Adopt(resident, std::vector<Slot>{{1, 0, 0}}).ok());
  return cluster;
}

float DutyOf(const JobSpec& job) { return WithDuty(job, job.demands[0].demand).duty; }

TEST(Service, IsBusyForItsRequestsTimesTheirTime) {
  EXPECT_FLOAT_EQ(DutyOf(Service(1, 46, 0.1)), 0.0006f);
  EXPECT_FLOAT_EQ(DutyOf(Service(1, 46, 100)), 0.6f);
  EXPECT_EQ(DutyOf(Service(1, 46, 1000)), 1) << "more requests than it serves";
  EXPECT_EQ(DutyOf(Service(1, 46, 0)), 1) << "nobody said how many";
  EXPECT_EQ(DutyOf(Service(1, 46, 10, 0)), 1) << "nobody said how long they take";
  EXPECT_EQ(DutyOf(OfKind(Service(1, 46, 0.1), JobKind::kTraining)), 1);
}

// Busy, each costs the other 0.002 x (20 + 40).
TEST(Service, SlowsOthersByItsLoadAndIsSlowedWhileItServes) {
  for (const double rate_hz : {0.1, 50.0, 1000.0}) {
    Cluster cluster = With(Service(1, 20, rate_hz));
    const auto placer = MakeAddingPlacer();
    const Decision trainer = PlaceOne(cluster, *placer, OneGpu(2, 40));
    ASSERT_EQ(trainer.verdict, Verdict::kPlace);
    EXPECT_NEAR(trainer.own.estimate, 1 + 0.12 * DutyOf(Service(1, 20, rate_hz)), 1e-5);
    for (const TenantEffect& effect : trainer.effects)
      EXPECT_NEAR(effect.after.estimate, effect.is_new ? trainer.own.estimate : 1.12f, 1e-5);
    EXPECT_NEAR(cluster.Totals().gpu_util_pct, 40 + 20 * DutyOf(Service(1, 20, rate_hz)), 1e-4);
  }
}

TEST(Service, LeavesFasterGpusToWhoGainsByThem) {
  Cluster cluster = Nodes(1, 1);
  NodeSpec slow = V100Node(2, 1);
  slow.devices[0].type = Type("k80");
  ASSERT_TRUE(cluster.AddNode(slow).ok());
  JobSpec job = OneGpu(1);
  job.demands = {{Type("k80"), Needs(40, 1000, 8000)}, {Type("v100-sxm2-16gb"), Needs(40, 1000, 1000)}};
  EXPECT_EQ(Decide(cluster, job).slots.front().node, 1u);
  for (TypeDemand& one : job.demands) one.demand.duty = 0.5f, one.demand.slowdown_bound = 2;
  EXPECT_EQ(Decide(cluster, job).slots.front().node, 2u);
  job.demands[0].demand.slowdown_bound = 0.5f;  // too slow there
  EXPECT_EQ(Decide(cluster, job).slots.front().node, 1u);
}

TEST(Service, TakesAnIdleGpuWhereAShareWouldBeFelt) {
  for (const float util : {5.0f, 45.0f}) {
    Cluster cluster = Nodes(1, 2);
    const auto placer = MakeAddingPlacer();
    JobSpec service = OneGpu(1, util);
    service.demands[0].demand = Needs(util, 1000, 1000);
    service.demands[0].demand.duty = 0.999f, service.demands[0].demand.slowdown_bound = 2;
    ASSERT_EQ(PlaceOne(cluster, *placer, service).slots.front().device, 0);
    service.id = 2;
    EXPECT_EQ(PlaceOne(cluster, *placer, service).slots.front().device, util < 10 ? 0 : 1);
  }
}

// As a service with promises of its own does: by a rate and a latency, on the slower GPU that keeps it.
TEST(Service, ThatKeepsItsLatencyLosesNoWork) {
  JobSpec job = Service(1, 40, 10, 1000);
  job.demands = {{Type("k80"), Needs(40, 1000, 8000)}, {Type("v100-sxm2-16gb"), Needs(40, 1000, 1000)}};
  job.latency_bound_us = 500'000;
  EXPECT_TRUE(ServesAll(job, job.demands[0].demand));
  Cluster cluster = Nodes(1, 1);
  NodeSpec slow = V100Node(2, 1);
  slow.devices[0].type = Type("k80");
  ASSERT_TRUE(cluster.AddNode(slow).ok());
  EXPECT_EQ(Decide(cluster, job).slots.front().node, 2u);
  job.request_rate_hz = 1000;
  EXPECT_FALSE(ServesAll(job, job.demands[0].demand)) << "more requests than it serves";
  job.request_rate_hz = 10, job.latency_bound_us = 0;
  EXPECT_FALSE(ServesAll(job, job.demands[0].demand)) << "nobody said how late is late";
  EXPECT_EQ(Decide(cluster, job).slots.front().node, 1u);
}

TEST(Service, ThatStatesNothingIsKeptWithinItsGuard) {
  EXPECT_EQ(Decide(With(OneGpu(1, 70)), Service(2, 60, 0)).reason, Reason::kPolicy);  // both 1.3 times slower
  EXPECT_EQ(Decide(With(Service(1, 60, 0)), OneGpu(2, 70)).reason, Reason::kPolicy);
  EXPECT_EQ(Decide(With(OneGpu(1, 70)), OneGpu(2, 60)).verdict, Verdict::kPlace);
  EXPECT_EQ(Decide(With(OneGpu(1, 70)), Bounded(Service(2, 60, 0), 1.5)).verdict, Verdict::kPlace);
  EXPECT_EQ(Decide(With(OneGpu(1, 70)), Service(2, 45, 0)).verdict, Verdict::kPlace);  // 1.15
}

TEST(LightJob, CountsByHowBusyItIs) {
  EXPECT_EQ(Counted(50), 1);
  EXPECT_EQ(Counted(10), 1);
  EXPECT_DOUBLE_EQ(Counted(2), 0.2);
  EXPECT_EQ(Counted(1e-9), kLeastCounted) << "it wants to be somewhere";
  EXPECT_EQ(Counted(0), 1) << "0 says nothing";
  EXPECT_NEAR(Decide(Nodes(1, 1), OneGpu(1, 2)).winner.cost, -0.2, 0.01);
  EXPECT_NEAR(Decide(Nodes(1, 1), OneGpu(1, 50)).winner.cost, -1, 0.01);
}

TEST(LightJob, TakesLittleOfTheLimitOfTenants) {
  Cluster cluster = Nodes(1, 1);
  const auto placer = MakePlacer();
  for (JobId id = 1; id <= 10; ++id)
    EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(id, 2, 500)).verdict, Verdict::kPlace) << id;
  EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(11, 70)).verdict, Verdict::kPlace) << "10 x 0.2 + 1 of 3";
  const Decision refused = Decide(cluster, OneGpu(12, 10));
  EXPECT_EQ(refused.reason, Reason::kTenantLimit);
  EXPECT_DOUBLE_EQ(refused.miss.needed, 4);
  EXPECT_EQ(Decide(With(OneGpu(1, 2)), OneGpu(2, 2), "horus", {.max_tenants = 1}).reason, Reason::kTenantLimit);
}

TEST(LightJob, CountsWholeWhereTheDeviceStatesALimit) {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = V100Node(1, 1);
  node.devices[0].max_tenants = 2;
  ASSERT_TRUE(cluster.AddNode(node).ok());
  const auto placer = MakePlacer();
  EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(1, 2)).verdict, Verdict::kPlace);
  EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(2, 2)).verdict, Verdict::kPlace);
  EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(3, 2)).reason, Reason::kTenantLimit);
}

TEST(LightJob, TenNotebooksLeaveTheTrainersAGpuEach) {
  Cluster cluster = Nodes(1, 4);
  const auto placer = MakePlacer();
  for (JobId id = 1; id <= 10; ++id) EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(id, 2, 500)).verdict, Verdict::kPlace);
  const Decision one = PlaceOne(cluster, *placer, OneGpu(11, 95));
  const Decision other = PlaceOne(cluster, *placer, OneGpu(12, 95));
  ASSERT_EQ(other.verdict, Verdict::kPlace);
  EXPECT_NE(one.slots[0].device, other.slots[0].device);
  EXPECT_LT(one.own.estimate, 1.05f);
  EXPECT_LT(other.own.estimate, 1.05f);
}

// Together 1.6 times as slow: alike, both would do more work than one of them alone.
TEST(Neighbour, OfHigherPriorityIsNotSlowedForLessWork) {
  const JobSpec newcomer = OneGpu(2, 80);
  EXPECT_EQ(Decide(With(OneGpu(1, 80)), newcomer).verdict, Verdict::kPlace);
  for (const int32_t priority : {10, 1'000'000}) {
    EXPECT_EQ(Decide(With(AtPriority(OneGpu(1, 80), priority)), AtPriority(newcomer, -5)).reason, Reason::kPolicy);
    EXPECT_EQ(Decide(With(AtPriority(OneGpu(1, 80), priority)), newcomer).reason, Reason::kPolicy);
    EXPECT_EQ(Decide(With(AtPriority(OneGpu(1, 80), priority)), AtPriority(newcomer, priority)).verdict,
              Verdict::kPlace);
    EXPECT_EQ(Decide(With(OneGpu(1, 80)), AtPriority(newcomer, priority)).verdict, Verdict::kPlace);
    EXPECT_EQ(Decide(With(AtPriority(OneGpu(1, 40), priority)), AtPriority(OneGpu(2, 40), -5)).verdict, Verdict::kPlace)
        << "costs nobody anything";
  }
}

TEST(Neighbour, IsNotSlowedForBestEffortWork) {
  const JobSpec best_effort = OfKind(OneGpu(2, 80), JobKind::kBestEffort);
  EXPECT_EQ(Decide(With(OneGpu(1, 80)), best_effort).reason, Reason::kPolicy);
  EXPECT_EQ(Decide(With(OfKind(OneGpu(1, 80), JobKind::kBestEffort)), best_effort).verdict, Verdict::kPlace);
  EXPECT_EQ(Decide(With(OfKind(OneGpu(1, 80), JobKind::kBestEffort)), OneGpu(2, 80)).verdict, Verdict::kPlace);
}

// Two of such tenants slow each other to 1.4. The gang has 15 GPUs of two drained nodes and the first of a third.
TEST(GangOnGpusOfAGang, GainsForAllWhomItSlows) {
  Cluster cluster = Nodes(3, 8);
  std::vector<Slot> slots;
  for (int32_t task = 0; task < 15; ++task)
    slots.push_back({NodeId{1} + static_cast<NodeId>(task / 8), task % 8, task});
  slots.push_back({3, 0, 15});
  ASSERT_TRUE(cluster.Adopt(Gang(1, 16, 1, 100), slots).ok());
  for (const NodeId node : {1, 2}) ASSERT_TRUE(cluster.SetNodeState(node, AdminState::kDrained).ok());
  const auto decide = [&](const JobSpec& job) {
    return MakeAddingPlacer()->MakePlan(cluster, {&job, 1})->decisions[0];
  };
  const Decision refused = decide(Gang(2, 1, 8, 100));  // 8 / 1.4 of work, for 16 x 0.4 / 1.4
  EXPECT_EQ(refused.verdict, Verdict::kDefer);
  EXPECT_EQ(refused.reason, Reason::kPolicy);
  EXPECT_EQ(decide(Gang(2, 1, 7)).verdict, Verdict::kPlace) << "alone";
  for (const NodeId node : {1, 2}) ASSERT_TRUE(cluster.SetNodeState(node, AdminState::kUp).ok());
  EXPECT_EQ(decide(Gang(2, 24, 1)).verdict, Verdict::kPlace) << "all of the gang share";
}

}  // namespace
}  // namespace horus
