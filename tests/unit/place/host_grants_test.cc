// SPDX-License-Identifier: Apache-2.0
// Rules of cores and host memory in plans of policies that share GPUs: who gets what, and who gives it back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fixtures.h"
#include "place/host/plan_grants.h"
#include "place/state/snapshot.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing_place::MakeAddingPlacer;
using testing_place::Nodes;
using testing_place::OneGpu;

constexpr int64_t kCore = 1000;
constexpr int64_t kGib = 1024;

// Nodes of the fixtures have 32 cores and 256 GiB; with 4 GPUs a fair share is 8 cores.
JobSpec Hungry(JobId id, float util = 40) {
  JobSpec job = OneGpu(id, util);
  job.demands[0].demand.step_time_us = {100'000, 100'000};
  job.sensitivity = SharedSensitivity(*Sensitivity::Create({2 * kCore, 4 * kCore, 8 * kCore, 16 * kCore}, {kGib},
                                                           std::vector<float>{0.4f, 0.7f, 1, 1.25f}));
  return job;
}
// As fast with 2 cores as with any number.
JobSpec Modest(JobId id, float util = 40) {
  JobSpec job = Hungry(id, util);
  job.sensitivity = SharedSensitivity(*Sensitivity::Create({2 * kCore}, {kGib}, std::vector<float>{1}));
  return job;
}
JobSpec Asking(JobSpec job, int64_t cpu_milli) {
  job.cpu_milli = cpu_milli;
  return job;
}

Plan PlanAndApply(Cluster& cluster, std::vector<JobSpec> jobs, PlacerOptions options = {}) {
  auto plan = MakeAddingPlacer(options)->MakePlan(cluster, jobs);
  EXPECT_TRUE(plan.ok()) << plan.status();
  const absl::Status applied = cluster.Apply(*plan);
  EXPECT_TRUE(applied.ok()) << applied;
  EXPECT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
  return *std::move(plan);
}

int64_t CoresOf(const Cluster& cluster, JobId job) { return cluster.Job(job)->spec->cpu_milli / kCore; }
double HostMsOf(const Cluster& cluster, JobId job) { return cluster.Job(job)->spec->demands[0].demand.host_us / 1000; }

TEST(HostGrants, AJobAloneGetsWhatItsGpuCanUse) {
  Cluster cluster = Nodes(1, 4);
  const Plan plan = PlanAndApply(cluster, {Hungry(1), Modest(2)});
  EXPECT_THAT(plan.decisions, Each(testing::Field(&Decision::verdict, Verdict::kPlace)));
  EXPECT_EQ(plan.decisions[0].cpu_milli, 16 * kCore);
  EXPECT_EQ(plan.decisions[1].cpu_milli, 2 * kCore);
  EXPECT_EQ(CoresOf(cluster, 1), 16);
  EXPECT_EQ(HostMsOf(cluster, 1), 100) << "at its best speed the GPU is the slower";
}

TEST(HostGrants, ANewcomerTakesFromThoseWhoLoseLess) {
  Cluster cluster = Nodes(1, 4);
  PlanAndApply(cluster, {Hungry(1)});
  PlanAndApply(cluster, {Hungry(2)});
  EXPECT_EQ(CoresOf(cluster, 1) + CoresOf(cluster, 2), 32);
  const Plan plan = PlanAndApply(cluster, {Hungry(3)});
  ASSERT_THAT(plan.moves, SizeIs(1)) << "one of the two gave back the half of its cores";
  EXPECT_EQ(plan.moves[0].kind, ActionKind::kResize);
  EXPECT_EQ(plan.moves[0].host_from.cpu_milli, 16 * kCore);
  EXPECT_EQ(plan.moves[0].host_to.cpu_milli, 8 * kCore);
  EXPECT_EQ(CoresOf(cluster, 1) + CoresOf(cluster, 2) + CoresOf(cluster, 3), 32);
  EXPECT_EQ(HostMsOf(cluster, plan.moves[0].job), 125) << "at four fifths of its best speed";
}

TEST(HostGrants, WhatIsGivenBackGoesToThoseWhoStay) {
  Cluster cluster = Nodes(1, 4);
  PlanAndApply(cluster, {Hungry(1), Hungry(2), Hungry(3)});
  ASSERT_TRUE(cluster.Release(3).ok());
  const Plan plan = PlanAndApply(cluster, {});
  EXPECT_THAT(plan.decisions, IsEmpty());
  EXPECT_EQ(CoresOf(cluster, 1), 16);
  EXPECT_EQ(CoresOf(cluster, 2), 16);
  EXPECT_THAT(PlanAndApply(cluster, {}).moves, IsEmpty()) << "nothing changed";
}

TEST(HostGrants, NobodyHoldsLessThanItStates) {
  Cluster cluster = Nodes(1, 4);
  PlanAndApply(cluster, {Asking(Hungry(1), 10 * kCore), Asking(Hungry(2), 10 * kCore), Hungry(3)});
  EXPECT_GE(CoresOf(cluster, 1), 10);
  EXPECT_GE(CoresOf(cluster, 2), 10);
  EXPECT_EQ(CoresOf(cluster, 3), 8);
}

TEST(HostGrants, OnesWithoutASensitivityGetWhatTheyStateFromThoseWhoHoldMore) {
  Cluster cluster = Nodes(1, 4);
  PlanAndApply(cluster, {Hungry(1), Hungry(2)});
  JobSpec plain = Asking(OneGpu(3), 8 * kCore);
  const Plan plan = PlanAndApply(cluster, {plain});
  EXPECT_EQ(plan.decisions[0].verdict, Verdict::kPlace);
  EXPECT_EQ(plan.decisions[0].cpu_milli, 8 * kCore);
  EXPECT_EQ(CoresOf(cluster, 1) + CoresOf(cluster, 2), 24);
}

TEST(HostGrants, OnPlacementNobodyElseIsResized) {
  Cluster cluster = Nodes(1, 4);
  const PlacerOptions options{.host_grants = HostGrants::kPlacement};
  PlanAndApply(cluster, {Hungry(1)}, options);
  const Plan second = PlanAndApply(cluster, {Hungry(2)}, options);
  EXPECT_THAT(second.moves, IsEmpty());
  EXPECT_EQ(CoresOf(cluster, 1), 16);
  EXPECT_EQ(CoresOf(cluster, 2), 16);
  const Plan third = PlanAndApply(cluster, {Hungry(3)}, options);
  EXPECT_EQ(third.decisions[0].verdict, Verdict::kDefer);
  EXPECT_EQ(third.decisions[0].reason, Reason::kCpu);
}

TEST(HostGrants, AsStatedTheyHoldWhatTheyAskForAndTheHostsTimeIsKnown) {
  Cluster cluster = Nodes(1, 4);
  PlanAndApply(cluster, {Asking(Hungry(1), 4 * kCore)}, {.host_grants = HostGrants::kStated});
  EXPECT_EQ(CoresOf(cluster, 1), 4);
  EXPECT_NEAR(HostMsOf(cluster, 1), 100 * 1.25 / 0.7, 1e-3);
}

TEST(HostGrants, WhoWaitsForItsInputIsTheBetterNeighbour) {
  // One GPU: 32 cores are its fair share, and what the first holds says how long it keeps the GPU busy.
  const auto beside = [](int64_t cores) {
    Cluster cluster = Nodes(1, 1);
    const PlacerOptions options{.host_grants = HostGrants::kStated};
    PlanAndApply(cluster, {Asking(Hungry(1, 100), cores * kCore)}, options);
    const Plan plan = PlanAndApply(cluster, {Asking(Modest(2, 60), 2 * kCore)}, options);
    EXPECT_EQ(plan.decisions[0].verdict, Verdict::kPlace);
    return plan.decisions[0];
  };
  const Decision busy = beside(16);
  const Decision waiting = beside(2);
  const double part = 0.4 / 1.25;  // of the time busy
  const double excess = 0.002 * (100 + 60);
  EXPECT_NEAR(busy.own.estimate, 1 + excess, 1e-5);
  EXPECT_NEAR(waiting.own.estimate, 1 + part * excess, 1e-5);
  EXPECT_NEAR(waiting.effects[1].after.estimate, 1, 1e-5) << "its own step hides what it waits for the GPU";
}

TEST(HostGrants, SnapshotsKeepWhatIsHeldAndTheHostsTime) {
  Cluster cluster = Nodes(1, 4);
  JobSpec pipeline = Hungry(1);
  pipeline.sensitivity = SharedSensitivity(
      *Sensitivity::Create({2 * kCore, 8 * kCore}, {kGib}, std::vector<float>{0.5f, 2}, /*host_us=*/150'000));
  PlanAndApply(cluster, {pipeline});
  EXPECT_EQ(HostMsOf(cluster, 1), 75);
  const std::string bytes = *SaveSnapshot(cluster);
  const Cluster restored =
      *RestoreSnapshot({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, Catalogue::Default());
  EXPECT_EQ(*restored.Job(1)->spec, *cluster.Job(1)->spec);
}

HostUser UserOf(const JobSpec& job) {
  return {.matrix = job.sensitivity.get(), .gpu_us = 100'000, .least = {2 * kCore, kGib}};
}

TEST(DivideHost, GivesToWhoDoesMostWithIt) {
  const JobSpec hungry = Hungry(1), modest = Modest(2);
  const std::vector<HostUser> users = {UserOf(hungry), UserOf(modest), UserOf(hungry)};
  const HostShare fair{8 * kCore, 64 * kGib};
  const auto cores = [&](int64_t free) {
    std::vector<int64_t> held;
    for (const HostShare& share : DivideHost(users, {free * kCore, 0}, fair)) held.push_back(share.cpu_milli / kCore);
    return held;
  };
  EXPECT_THAT(cores(1), ElementsAre(2, 2, 2));
  EXPECT_THAT(cores(2), ElementsAre(4, 2, 2));
  EXPECT_THAT(cores(8), ElementsAre(8, 2, 4));
  EXPECT_THAT(cores(100), ElementsAre(16, 2, 16));
}

TEST(DivideHost, AGpuThatIsSharedNeedsFewerCores) {
  const JobSpec hungry = Hungry(1);
  HostUser user = UserOf(hungry);
  user.slowdown = 1.25;  // its GPU takes so much longer: four fifths of the best speed of its input are enough
  const std::vector<HostShare> shares =
      DivideHost(std::vector<HostUser>{user}, {100 * kCore, 0}, {8 * kCore, 64 * kGib});
  EXPECT_EQ(shares[0].cpu_milli, 8 * kCore);
}

}  // namespace
}  // namespace horus
