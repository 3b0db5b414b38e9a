// SPDX-License-Identifier: Apache-2.0
#include "place/appraise.h"

#include <gmock/gmock.h>

#include "fixtures.h"

namespace horus {
namespace {

using testing_place::Decide;
using testing_place::Gang;
using testing_place::Needs;
using testing_place::Nodes;
using testing_place::OneGpu;

Appraiser MakeAppraiser(double bound = 1.5) {
  return Appraiser(std::make_shared<UtilisationModel>(), {.slowdown_bound = bound}, 1);
}

double Term(const Decision& decision, std::string_view name) {
  double value = 0;
  for (const CostTerm& term : decision.winner.terms) value += term.name == name ? term.value : 0;
  return value;
}

TEST(Appraisal, GivesAPlaceTheWorkThatThePolicyGivesIt) {
  Cluster cluster = Nodes(2, 2);
  for (JobId id = 100; id < 103; ++id) {
    ASSERT_TRUE(
        cluster.Adopt(OneGpu(id, 30), std::vector<Slot>{{id < 102 ? 1u : 2u, static_cast<int32_t>(id % 2), 0}}).ok());
  }
  JobSpec gang = Gang(1, 4, 1, 50);
  gang.demands[0].demand = Needs(50, 2000, 100'000);
  gang.demands[0].demand.gradient_mib = 300;
  for (const JobSpec& job : {OneGpu(1, 60), gang}) {
    const Decision decision = Decide(cluster, job);
    ASSERT_EQ(decision.verdict, Verdict::kPlace);
    const auto appraisal = MakeAppraiser().Of(cluster, job, decision.slots);
    ASSERT_TRUE(appraisal.ok()) << appraisal.status();
    EXPECT_NEAR(appraisal->work,
                -(Term(decision, "newcomer_work") + Term(decision, "neighbours_loss") +
                  Term(decision, "communication") + Term(decision, "straggler")),
                1e-9);
    EXPECT_EQ(appraisal->own, decision.own);
    EXPECT_EQ(appraisal->reason, Reason::kNone);
    EXPECT_EQ(appraisal->beyond_bound, 0u);
  }
}

TEST(Appraisal, OfAJobWithoutGpusDisturbsNobody) {
  Cluster cluster = Nodes(1, 1);
  ASSERT_TRUE(cluster.Adopt(OneGpu(100, 95), std::vector<Slot>{{1, 0, 0}}).ok());
  const auto appraisal = MakeAppraiser().Of(cluster, testing_place::CpuOnly(1), std::vector<Slot>{{1, kNoDevice, 0}});
  ASSERT_TRUE(appraisal.ok()) << appraisal.status();
  EXPECT_EQ(appraisal->reason, Reason::kNone);
  EXPECT_EQ(appraisal->own, (Slowdown{1, 1}));
  EXPECT_EQ(appraisal->tenants, 0u);
  const auto short_of_cpu = [&] {
    JobSpec job = testing_place::CpuOnly(1);
    job.cpu_milli = 64'000;
    return MakeAppraiser().Of(cluster, job, std::vector<Slot>{{1, kNoDevice, 0}});
  }();
  EXPECT_EQ(short_of_cpu->reason, Reason::kCpu);
}

TEST(Appraisal, NamesTheFirstRuleThatAPlaceBreaksAndWhoIsPushedBeyondABound) {
  Cluster cluster = Nodes(1, 2);
  ASSERT_TRUE(cluster.Adopt(OneGpu(100, 95), std::vector<Slot>{{1, 0, 0}}).ok());
  const auto crowded = MakeAppraiser().Of(cluster, OneGpu(1, 95), std::vector<Slot>{{1, 0, 0}});
  ASSERT_TRUE(crowded.ok());
  EXPECT_EQ(crowded->reason, Reason::kSlowdownOwn);
  EXPECT_EQ(crowded->beyond_bound, 2u);
  const auto large = MakeAppraiser().Of(cluster, OneGpu(1, 10, 16'000), std::vector<Slot>{{1, 0, 0}});
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(large->reason, Reason::kGpuMemory);
}

TEST(Appraisal, AsksWhoseJobsAndWhichGroupsAreThere) {
  Cluster cluster = Nodes(1, 2);
  JobSpec alone = OneGpu(100, 10);
  alone.tenant = "a";
  alone.share = ShareWith::kSameTenant;
  alone.groups = {"web"};
  ASSERT_TRUE(cluster.Adopt(alone, std::vector<Slot>{{1, 0, 0}}).ok());
  JobSpec stranger = OneGpu(1, 10);
  stranger.tenant = "b";
  const auto reason = [&](int32_t device) {
    const auto appraisal = MakeAppraiser().Of(cluster, stranger, std::vector<Slot>{{1, device, 0}});
    EXPECT_TRUE(appraisal.ok()) << appraisal.status();
    return appraisal->reason;
  };
  EXPECT_EQ(reason(0), Reason::kOwner);
  EXPECT_EQ(reason(1), Reason::kNone);
  stranger.avoid_groups = {"web"};
  EXPECT_EQ(reason(1), Reason::kAntiAffinity);
}

TEST(Appraisal, CountsAMissedLatencyBoundAsABrokenRule) {
  const Cluster cluster = Nodes(1, 1);
  JobSpec service = OneGpu(1, 10);
  service.kind = JobKind::kInference;
  service.demands[0].demand.step_time_us = {2000, 2000};
  service.latency_bound_us = 1000;
  const auto appraisal = MakeAppraiser().Of(cluster, service, std::vector<Slot>{{1, 0, 0}});
  ASSERT_TRUE(appraisal.ok()) << appraisal.status();
  EXPECT_EQ(appraisal->reason, Reason::kSlowdownOwn);
}

TEST(Appraisal, RefusesJobsThatHaveYetToChooseAWay) {
  const Cluster cluster = Nodes(1, 1);
  JobSpec job;
  job.id = 1;
  job.alternatives = {{.rate = 1, .demands = OneGpu(1).demands}, {.rate = 2, .demands = OneGpu(1).demands}};
  EXPECT_EQ(MakeAppraiser().Of(cluster, job, std::vector<Slot>{{1, 0, 0}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Appraisal, RefusesPlacesThatAreNotThere) {
  const Cluster cluster = Nodes(1, 2);
  EXPECT_EQ(MakeAppraiser().Of(cluster, OneGpu(1), std::vector<Slot>{{9, 0, 0}}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(MakeAppraiser().Of(cluster, OneGpu(1), std::vector<Slot>{{1, 2, 0}}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(MakeAppraiser().Of(cluster, OneGpu(1), std::vector<Slot>{}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Appraisal, TellsWhatResidentsOfADeviceSufferNow) {
  Cluster cluster = Nodes(1, 2);
  ASSERT_TRUE(cluster.Adopt(OneGpu(100, 95), std::vector<Slot>{{1, 0, 0}}).ok());
  EXPECT_EQ(MakeAppraiser().Now(cluster, 1, 0)->slowdowns[0].estimate, 1);
  ASSERT_TRUE(cluster.Adopt(OneGpu(101, 95), std::vector<Slot>{{1, 0, 0}}).ok());
  const auto now = MakeAppraiser().Now(cluster, 1, 0);
  EXPECT_THAT(now->jobs, testing::UnorderedElementsAre(100, 101));
  EXPECT_GT(now->slowdowns[0].estimate, 1.5);
  EXPECT_TRUE(MakeAppraiser().Now(cluster, 1, 1)->jobs.empty());
}

}  // namespace
}  // namespace horus
