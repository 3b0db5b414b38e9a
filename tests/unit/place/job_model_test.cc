// SPDX-License-Identifier: Apache-2.0
// Rules of what a job may state beyond its demand: device memory, with whom it shares, what it keeps away from.
#include <gmock/gmock.h>

#include "fixtures.h"
#include "place/state/snapshot.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::Decide;
using testing_place::MakePlacer;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::PlaceOne;

// Of 16,384 MiB, 500 of them headroom.
JobSpec Memory(JobId id, int64_t request_mib, int64_t limit_mib) {
  JobSpec job = OneGpu(id, 10, 2000);
  job.gpu_mem_request_mib = request_mib;
  job.gpu_mem_limit_mib = limit_mib;
  return job;
}

TEST(GpuMemoryOfAJob, IsTheDemandsBoundUnlessStated) {
  Demand demand = testing_place::Needs(10, 2000);
  demand.mem_mib.upper = 3000;
  const auto of = [&](int64_t request, int64_t limit) { return GpuMemoryOf(Memory(1, request, limit), demand); };
  EXPECT_EQ(of(0, 0), (GpuMemory{3000, 3000}));
  EXPECT_EQ(of(2500, 0), (GpuMemory{2500, 2500}));
  EXPECT_EQ(of(0, 8000), (GpuMemory{3000, 8000}));
  EXPECT_EQ(of(0, 2800), (GpuMemory{2800, 2800}));  // it is never given more than its limit
  EXPECT_EQ(of(1000, 8000), (GpuMemory{1000, 8000}));
}

TEST(GpuMemoryOfAJob, IsCheckedByField) {
  EXPECT_TRUE(ValidateJob(Memory(1, 4000, 4000)).ok());
  EXPECT_THAT(ValidateJob(Memory(1, 4000, 3999)).message(), HasSubstr("gpu_mem_limit_mib: expected 0 or at least"));
  EXPECT_THAT(ValidateJob(Memory(1, -1, 0)).message(), HasSubstr("gpu_mem_request_mib"));
  JobSpec host = testing_place::CpuOnly(1);
  host.gpu_mem_limit_mib = 1;
  EXPECT_THAT(ValidateJob(host).message(), HasSubstr("without GPUs"));
  EXPECT_THAT(Placer::Create(std::make_shared<UtilisationModel>(), *MakePolicy("horus"), {.mem_overcommit = 0.9})
                  .status()
                  .message(),
              HasSubstr("mem_overcommit"));
}

TEST(Fit, CountsMemoryRequestsNotDemands) {
  Cluster cluster = Nodes(1, 1);
  PlaceOne(cluster, *MakePlacer(), Memory(1, 10'000, 0));
  EXPECT_EQ(cluster.Device(1, 0)->mem_used_upper_mib, 10'000);
  const Decision refused = Decide(cluster, Memory(2, 5885, 0));  // 10,000 + 5,885 + 500 = 16,385
  EXPECT_EQ(refused.reason, Reason::kGpuMemory);
  EXPECT_EQ(refused.miss.needed, 5885);
  EXPECT_EQ(refused.miss.available, 5884);
  EXPECT_EQ(Decide(cluster, Memory(2, 5884, 0)).verdict, Verdict::kPlace);
  EXPECT_EQ(Decide(cluster, Memory(2, 0, 0)).verdict, Verdict::kPlace);  // its demand of 2,000
}

TEST(Fit, LendsLimitsTwiceOnlyWhereOverCommitIsStated) {
  Cluster cluster = Nodes(1, 1);
  PlaceOne(cluster, *MakePlacer(), Memory(1, 2000, 10'000));
  EXPECT_EQ(cluster.Device(1, 0)->mem_limit_mib, 10'000);
  EXPECT_EQ(Decide(cluster, Memory(2, 2000, 5884)).verdict, Verdict::kPlace);
  const Decision refused = Decide(cluster, Memory(2, 2000, 5885));
  EXPECT_EQ(refused.reason, Reason::kGpuMemory);
  EXPECT_EQ(refused.miss.unit, "MiB of limits");
  // 16,384 x 1.5 = 24,576: 10,000 + 14,076 + 500.
  EXPECT_EQ(Decide(cluster, Memory(2, 2000, 14'076), "horus", {.mem_overcommit = 1.5}).verdict, Verdict::kPlace);
  EXPECT_EQ(Decide(cluster, Memory(2, 2000, 14'077), "horus", {.mem_overcommit = 1.5}).reason, Reason::kGpuMemory);
  // Requests are never lent twice.
  EXPECT_EQ(Decide(cluster, Memory(2, 13'885, 0), "horus", {.mem_overcommit = 1000}).reason, Reason::kGpuMemory);
}

TEST(Fit, AppliesPlansThatOverCommitLimits) {
  Cluster cluster = Nodes(1, 1);
  const auto placer = MakePlacer("horus", {.mem_overcommit = 2});
  for (JobId id = 1; id <= 3; ++id) {
    EXPECT_EQ(PlaceOne(cluster, *placer, Memory(id, 1000, 10'000)).verdict, Verdict::kPlace) << id;
  }
  EXPECT_TRUE(CheckInvariants(cluster).ok());
}

JobSpec Owned(JobId id, std::string tenant, ShareWith share = ShareWith::kAnyone) {
  JobSpec job = OneGpu(id, 10, 2000);
  job.tenant = std::move(tenant);
  job.share = share;
  return job;
}

TEST(SharingWithWhom, IsTheOwnTenantUnlessBothSayOtherwise) {
  const auto beside = [](const JobSpec& resident, const JobSpec& newcomer) {
    Cluster cluster = Nodes(1, 1);
    PlaceOne(cluster, *MakePlacer(), resident);
    return Decide(cluster, newcomer, "horus").verdict == Verdict::kPlace;
  };
  const auto job = [](JobId id, std::string tenant) { return Owned(id, std::move(tenant), JobSpec().share); };
  EXPECT_TRUE(beside(job(1, "a"), job(2, "a")));
  EXPECT_TRUE(beside(job(1, ""), job(2, ""))) << "those that state none are one tenant";
  EXPECT_FALSE(beside(job(1, ""), job(2, "a")));
  EXPECT_FALSE(beside(Owned(1, "a"), job(2, "b"))) << "one who allows it is not enough";
  EXPECT_TRUE(beside(Owned(1, "a"), Owned(2, "b")));
}

TEST(SharingWithWhom, DoesNotConcernTheHost) {
  Cluster cluster = Nodes(1, 1);
  PlaceOne(cluster, *MakePlacer(), Owned(1, "a", ShareWith::kSameTenant));
  JobSpec host = testing_place::CpuOnly(2);
  host.tenant = "b";
  EXPECT_EQ(PlaceOne(cluster, *MakePlacer(), host).verdict, Verdict::kPlace);
}

// How many of `jobs` light ones are placed on four GPUs, and on how many of these several.
std::pair<int, int> Shared(double quota, int jobs, std::string_view policy) {
  Cluster cluster = Nodes(1, 4);
  const auto placer = MakePlacer(policy, {.sharing_quota = quota});
  int placed = 0, shared = 0;
  for (JobId id = 1; id <= static_cast<JobId>(jobs); ++id) {
    const Decision decision = PlaceOne(cluster, *placer, OneGpu(id, 10, 1000));
    placed += decision.verdict == Verdict::kPlace ? 1 : 0;
  }
  for (int32_t device = 0; device < 4; ++device) shared += cluster.Device(1, device)->residents.size() > 1 ? 1 : 0;
  return {placed, shared};
}

TEST(SharingQuota, IsTheMostOfTheClusterThatHasSeveralTenants) {
  for (const std::string_view policy : {"horus", "first-fit", "fgd"}) {  // device by device, and node by node
    SCOPED_TRACE(policy);
    EXPECT_EQ(Shared(1, 20, policy), std::pair(12, 4)) << "three a GPU";
    EXPECT_EQ(Shared(0.5, 20, policy), std::pair(8, 2));
    EXPECT_EQ(Shared(0.49, 20, policy), std::pair(6, 1)) << "no GPU more than its share";
    EXPECT_EQ(Shared(0, 20, policy), std::pair(4, 0)) << "off";
  }
}

TEST(SharingQuota, SaysWhyAJobWaitsAndHoldsForAllOfAGang) {
  Cluster cluster = Nodes(1, 4);
  const auto placer = MakePlacer("first-fit", {.sharing_quota = 0.25});
  for (JobId id = 1; id <= 4; ++id) {
    const Slot slot{1, static_cast<int32_t>(id) - 1, 0};
    ASSERT_TRUE(cluster.Adopt(OneGpu(id, 10, 1000), {&slot, 1}).ok());
  }
  EXPECT_EQ(PlaceOne(cluster, *placer, testing_place::Gang(5, 2, 1)).verdict, Verdict::kDefer);
  EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(6, 10, 1000)).verdict, Verdict::kPlace);
  EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(7, 10, 1000)).verdict, Verdict::kPlace) << "beside both others";
  const Decision refused = PlaceOne(cluster, *placer, OneGpu(8, 10, 1000));
  EXPECT_EQ(refused.verdict, Verdict::kDefer);
  EXPECT_EQ(refused.reason, Reason::kSharingQuota);
  ASSERT_TRUE(cluster.Release(6).ok());
  ASSERT_TRUE(cluster.Release(7).ok());
  EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(8, 10, 1000)).verdict, Verdict::kPlace);
}

TEST(SharingWithWhom, HoldsBothWays) {
  for (const std::string_view policy : {"horus", "first-fit", "fgd"}) {  // device by device, and node by node
    SCOPED_TRACE(policy);
    Cluster minding = Nodes(1, 1);
    PlaceOne(minding, *MakePlacer(), Owned(1, "a", ShareWith::kSameTenant));
    EXPECT_EQ(Decide(minding, Owned(2, "a"), policy).verdict, Verdict::kPlace);
    const Decision refused = Decide(minding, Owned(2, "b"), policy);
    EXPECT_EQ(refused.verdict, Verdict::kDefer);
    EXPECT_EQ(refused.reason, Reason::kOwner);
    EXPECT_EQ(refused.miss.reason, Reason::kOwner);
    EXPECT_EQ(Decide(minding, Owned(2, ""), policy).reason, Reason::kOwner);
    Cluster open = Nodes(1, 1);
    PlaceOne(open, *MakePlacer(), Owned(1, "a"));
    EXPECT_EQ(Decide(open, Owned(2, "b"), policy).verdict, Verdict::kPlace);
    EXPECT_EQ(Decide(open, Owned(2, "b", ShareWith::kSameTenant), policy).reason, Reason::kOwner);
    EXPECT_EQ(Decide(open, Owned(2, "a", ShareWith::kSameTenant), policy).verdict, Verdict::kPlace);
  }
}

TEST(SharingWithWhom, HoldsAmongTheJobsOfOnePlanAndAfterRelease) {
  Cluster cluster = Nodes(1, 1);
  const auto placer = MakePlacer("fgd");  // whose prices are kept by request
  const std::vector<JobSpec> jobs = {Owned(1, "a"), Owned(2, "a", ShareWith::kSameTenant), Owned(3, "b"),
                                     Owned(4, "a")};
  const Plan plan = *placer->MakePlan(cluster, jobs);
  EXPECT_EQ(plan.decisions[0].verdict, Verdict::kPlace);
  EXPECT_EQ(plan.decisions[1].verdict, Verdict::kPlace);
  EXPECT_EQ(plan.decisions[2].reason, Reason::kOwner);
  EXPECT_EQ(plan.decisions[3].verdict, Verdict::kPlace);
  ASSERT_TRUE(cluster.Apply(plan).ok());
  ASSERT_TRUE(cluster.Release(2).ok());
  EXPECT_EQ(placer->MakePlan(cluster, {&jobs[2], 1})->decisions[0].verdict, Verdict::kPlace);
}

TEST(SharingWithWhom, IsNoPartOfADevicesState) {
  Cluster cluster = Nodes(1, 3);
  for (JobId id = 1; id <= 3; ++id) {
    const Slot slot{1, static_cast<int32_t>(id) - 1, 0};
    ASSERT_TRUE(cluster.Adopt(Owned(id, std::to_string(id), ShareWith::kSameTenant), {&slot, 1}).ok());
  }
  EXPECT_EQ(cluster.rows().states.live_states(), 1u);
}

TEST(SharingWithWhom, IsBrokenByAdoptedJobsOnlyWithAFlag) {
  Cluster cluster = Nodes(1, 1);
  const Slot slot{1, 0, 0};
  EXPECT_FALSE(cluster.Adopt(Owned(1, "a"), {&slot, 1})->over_committed);
  EXPECT_EQ(cluster.Adopt(Owned(2, "b", ShareWith::kSameTenant), {&slot, 1})->reason, Reason::kOwner);
}

JobSpec Grouped(JobId id, std::vector<std::string> groups, std::vector<std::string> avoided) {
  JobSpec job = OneGpu(id, 10, 2000);
  job.groups = std::move(groups);
  job.avoid_groups = std::move(avoided);
  return job;
}

TEST(AntiAffinity, HoldsBothWaysByNode) {
  for (const std::string_view policy : {"horus", "first-fit", "fgd"}) {
    SCOPED_TRACE(policy);
    Cluster cluster = Nodes(2);
    PlaceOne(cluster, *MakePlacer("first-fit"), Grouped(1, {"web"}, {"batch"}));  // node 1
    for (const JobSpec& job : {Grouped(2, {"batch"}, {}), Grouped(2, {}, {"web"})}) {
      EXPECT_EQ(Decide(cluster, job, policy).slots, (Slots{{2, 0, 0}}));
    }
    EXPECT_EQ(Decide(cluster, Grouped(2, {"web", "x"}, {"x"}), policy).verdict, Verdict::kPlace);
    ASSERT_TRUE(cluster.SetNodeState(2, AdminState::kDrained).ok());
    const Decision refused = Decide(cluster, Grouped(2, {"batch"}, {}), policy);
    EXPECT_EQ(refused.verdict, Verdict::kDefer);
    EXPECT_EQ(refused.miss.reason, Reason::kAntiAffinity);
    ASSERT_TRUE(cluster.Release(1).ok());
    EXPECT_EQ(Decide(cluster, Grouped(2, {"batch"}, {}), policy).verdict, Verdict::kPlace);
  }
}

TEST(AntiAffinity, KeepsCopiesOfAJobApartAmongTheJobsOfOnePlan) {
  Cluster cluster = Nodes(3);
  std::vector<JobSpec> copies;
  for (JobId id = 1; id <= 4; ++id) copies.push_back(Grouped(id, {"web"}, {"web"}));
  const Plan plan = *MakePlacer("first-fit")->MakePlan(cluster, copies);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(plan.decisions[i].slots[0].node, i + 1);
  EXPECT_EQ(plan.decisions[3].reason, Reason::kAntiAffinity);
  ASSERT_TRUE(cluster.Apply(plan).ok());
  EXPECT_TRUE(CheckInvariants(cluster).ok());
}

TEST(AntiAffinity, DoesNotPartTheTasksOfOneJobUnlessAsked) {
  const Cluster cluster = Nodes(2);
  JobSpec gang = Grouped(1, {"web"}, {"web"});
  gang.tasks = 2;
  const auto nodes_of = [](const Decision& decision) {
    std::vector<NodeId> nodes;
    for (const Slot& slot : decision.slots) nodes.push_back(slot.node);
    return nodes;
  };
  EXPECT_EQ(nodes_of(Decide(cluster, gang)), (std::vector<NodeId>{1, 1}));
  gang.spread_tasks = true;
  EXPECT_EQ(nodes_of(Decide(cluster, gang)), (std::vector<NodeId>{1, 2}));
  gang.tasks = 3;
  EXPECT_EQ(Decide(cluster, gang).reason, Reason::kGang);
  EXPECT_EQ(Decide(cluster, gang).verdict, Verdict::kReject);
}

TEST(AntiAffinity, CountsJobsWithoutGpus) {
  Cluster cluster = Nodes(1);
  JobSpec host = testing_place::CpuOnly(1, 2);
  host.groups = {"db"};
  PlaceOne(cluster, *MakePlacer(), host);
  EXPECT_EQ(Decide(cluster, Grouped(2, {}, {"db"})).reason, Reason::kAntiAffinity);
  ASSERT_TRUE(cluster.Release(1).ok());
  EXPECT_TRUE(CheckInvariants(cluster).ok());
  EXPECT_EQ(Decide(cluster, Grouped(2, {}, {"db"})).verdict, Verdict::kPlace);
}

TEST(AntiAffinity, RefusesPlansThatNoPlannerMade) {
  Cluster cluster = Nodes(1);
  PlaceOne(cluster, *MakePlacer(), Grouped(1, {"web"}, {}));
  const JobSpec plain = OneGpu(2, 10, 2000);
  Plan plan = *MakePlacer()->MakePlan(cluster, {&plain, 1});
  plan.actions[0].job = std::make_shared<const JobSpec>(Grouped(2, {}, {"web"}));
  EXPECT_EQ(cluster.Apply(plan).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Groups, AreNamesEachOnce) {
  EXPECT_THAT(ValidateJob(Grouped(1, {""}, {})).message(), HasSubstr("groups[0]"));
  EXPECT_THAT(ValidateJob(Grouped(1, {}, {"b", "a"})).message(), HasSubstr("avoid_groups[1]"));
  EXPECT_THAT(ValidateJob(Grouped(1, {"a", "a"}, {})).message(), HasSubstr("each once"));
}

TEST(Snapshot, KeepsWhatJobsState) {
  Cluster cluster = Nodes(1, 1);
  JobSpec job = Memory(1, 1000, 9000);
  job.tenant = "a";
  job.share = ShareWith::kSameTenant;
  job.groups = {"db", "web"};
  job.avoid_groups = {"batch"};
  job.spread_tasks = true;
  PlaceOne(cluster, *MakePlacer(), job);
  const std::string bytes = *SaveSnapshot(cluster);
  const auto restored =
      RestoreSnapshot({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, Catalogue::Default());
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(*restored->Job(1)->spec, *cluster.Job(1)->spec);
  EXPECT_EQ(restored->state_hash(), cluster.state_hash());
}

}  // namespace
}  // namespace horus
