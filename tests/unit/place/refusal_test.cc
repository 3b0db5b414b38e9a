// SPDX-License-Identifier: Apache-2.0
// Refusals: the constraint that is named, the nearest miss, the sentence for people.
#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "fixtures.h"
#include "place/placer.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::Decide;
using testing_place::MakePlacer;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::PlaceOne;
using testing_place::Type;
using testing_place::V100Node;

struct RefusalCase {
  Reason reason;
  Verdict verdict;
  std::function<void(Cluster&, JobSpec&)> set_up;
};

TEST(Refusal, NamesTheConstraintThatRefused) {
  const std::vector<Slot> both = {{1, 0, 0}};
  const std::vector<RefusalCase> cases = {
      {Reason::kNodeDown, Verdict::kDefer,
       [](Cluster& c, JobSpec&) { ASSERT_TRUE(c.SetNodeState(1, AdminState::kDown).ok()); }},
      {Reason::kNodeDrained, Verdict::kDefer,
       [](Cluster& c, JobSpec&) { ASSERT_TRUE(c.SetNodeState(1, AdminState::kDrained).ok()); }},
      {Reason::kDeviceDown, Verdict::kDefer,
       [](Cluster& c, JobSpec&) { ASSERT_TRUE(c.SetDeviceState(1, 0, AdminState::kDown).ok()); }},
      {Reason::kDeviceDrained, Verdict::kDefer,
       [](Cluster& c, JobSpec&) { ASSERT_TRUE(c.SetDeviceState(1, 0, AdminState::kDrained).ok()); }},
      {Reason::kGpuType, Verdict::kReject, [](Cluster&, JobSpec& j) { j.demands[0].type = Type("k80"); }},
      {Reason::kLabel, Verdict::kReject, [](Cluster&, JobSpec& j) { j.node_selector = {{"zone", "b"}}; }},
      {Reason::kCpu, Verdict::kReject, [](Cluster&, JobSpec& j) { j.cpu_milli = 33'000; }},
      {Reason::kHostMemory, Verdict::kReject, [](Cluster&, JobSpec& j) { j.mem_mib = 262'145; }},
      {Reason::kStorageBandwidth, Verdict::kReject, [](Cluster&, JobSpec& j) { j.storage_mb_s = 1001; }},
      {Reason::kGpuMemory, Verdict::kReject,
       [](Cluster&, JobSpec& j) { j.demands[0].demand.mem_mib = {15'885, 15'885}; }},
      {Reason::kGpuMemory, Verdict::kDefer,
       [&](Cluster& c, JobSpec&) { ASSERT_TRUE(c.Adopt(OneGpu(1, 10, 14'000), both).ok()); }},
      {Reason::kGpuMilli, Verdict::kDefer,
       [&](Cluster& c, JobSpec& j) {
         JobSpec half = OneGpu(1, 10);
         half.gpu_milli = 600;
         ASSERT_TRUE(c.Adopt(half, both).ok());
         j.gpu_milli = 500;
       }},
      {Reason::kTenantLimit, Verdict::kDefer,
       [&](Cluster& c, JobSpec&) {
         for (JobId id = 1; id <= 3; ++id) ASSERT_TRUE(c.Adopt(OneGpu(id, 10, 10), both).ok());
       }},
      {Reason::kExclusive, Verdict::kDefer,
       [&](Cluster& c, JobSpec&) {
         JobSpec alone = OneGpu(1, 1, 10);
         alone.exclusive = true;
         ASSERT_TRUE(c.Adopt(alone, both).ok());
       }},
      {Reason::kExclusive, Verdict::kDefer,
       [&](Cluster& c, JobSpec& j) {
         j.exclusive = true;
         ASSERT_TRUE(c.Adopt(OneGpu(1, 1, 10), both).ok());
       }},
      {Reason::kSlowdownOwn, Verdict::kDefer,
       [&](Cluster& c, JobSpec& j) {
         j.slowdown_bound = 1.1f;
         ASSERT_TRUE(c.Adopt(OneGpu(1, 90), both).ok());
       }},
      {Reason::kSlowdownNeighbour, Verdict::kDefer,
       [&](Cluster& c, JobSpec& j) {
         j.slowdown_bound = 3;
         JobSpec strict = OneGpu(1, 90);
         strict.slowdown_bound = 1.1f;
         ASSERT_TRUE(c.Adopt(strict, both).ok());
       }},
      {Reason::kGang, Verdict::kReject, [](Cluster&, JobSpec& j) { j.tasks = 2; }},
  };
  for (const RefusalCase& one : cases) {
    Cluster cluster = Nodes(1, 1);
    JobSpec job = OneGpu(50);
    one.set_up(cluster, job);
    const Decision decision = Decide(cluster, job);
    EXPECT_EQ(decision.reason, one.reason) << ReasonName(one.reason) << " / " << ReasonName(decision.reason);
    EXPECT_EQ(decision.verdict, one.verdict) << ReasonName(one.reason);
    EXPECT_EQ(decision.miss.reason, one.reason) << ReasonName(one.reason);
    EXPECT_TRUE(decision.slots.empty());
  }
}

TEST(Refusal, SaysHowFarOffARefusedJobWas) {
  Cluster cluster = Nodes(2, 1);
  ASSERT_TRUE(cluster.Adopt(OneGpu(1, 10, 10'000), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(2, 10, 8'000), std::vector<Slot>{{2, 0, 0}}).ok());
  const Decision decision = Decide(cluster, OneGpu(50, 10, 9'000));
  EXPECT_EQ(decision.refused_devices[static_cast<size_t>(Reason::kGpuMemory)], 2u);
  EXPECT_EQ(decision.miss.node, 2u);
  EXPECT_EQ(decision.miss.needed, 9'000);
  EXPECT_EQ(decision.miss.available, 16'384 - 500 - 8'000);
  EXPECT_THAT(DescribeDecision(decision), HasSubstr("needed 9000, available 7884 MiB"));
}

TEST(Refusal, OfAWholeGpuSaysThatOthersAreThere) {
  Cluster cluster = Nodes(1, 1);
  ASSERT_TRUE(cluster.Adopt(OneGpu(1, 10), std::vector<Slot>{{1, 0, 0}}).ok());
  JobSpec whole = OneGpu(50, 10);
  whole.gpu_milli = 1000;
  EXPECT_EQ(DescribeDecision(Decide(cluster, whole)),
            "Deferred: does not fit now. Too little of the device is free. It needs a whole GPU, and others are on the "
            "nearest that it may have, node 1 device 0.");
}

JobSpec Predicted(int64_t mem_mib, int64_t upper_mib, uint32_t flags = kDemandPredicted) {
  JobSpec job = OneGpu(50, 10);
  job.demands[0].demand.mem_mib = {mem_mib, upper_mib};
  job.demands[0].demand.flags = flags;
  return job;
}

// Asks for a whole plan, and for the verdict of the only node.
Decision DecideAlike(const JobSpec& job) {
  const Cluster cluster = Nodes(1, 1);
  Decision decision = Decide(cluster, job);
  const auto verdicts = MakePlacer()->Verdicts(cluster, job, std::vector<NodeId>{1});
  EXPECT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_EQ(verdicts->verdict[0], decision.verdict);
  EXPECT_EQ(verdicts->reason[0], decision.reason);
  return decision;
}

TEST(Refusal, WhatIsOnlyPredictedRefusesForNowAndSaysSo) {
  const Decision decision = DecideAlike(Predicted(16'000, 17'000));
  EXPECT_EQ(decision.verdict, Verdict::kDefer);
  EXPECT_TRUE(decision.predicted_never);
  EXPECT_EQ(decision.miss.estimate, 16'000);
  EXPECT_EQ(
      DescribeDecision(decision),
      "Deferred: by prediction it would not fit even the empty cluster. The job's memory bound, its neighbours' and "
      "the "
      "headroom would exceed the device. Nearest: node 1 device 0 (gpu_memory: needed 17000, available 15884 MiB; "
      "needed is an upper bound, 16000 is expected).");
}

// The devices have 16,384 MiB.
TEST(Refusal, AnIdleDeviceTakesAloneWhatIsExpectedToFit) {
  Cluster cluster = Nodes(1, 1);
  const Decision decision = DecideAlike(Predicted(12'000, 17'000));
  EXPECT_EQ(decision.verdict, Verdict::kPlace);
  EXPECT_TRUE(decision.probe);
  const auto placer = MakePlacer();
  const auto plan = placer->MakePlan(cluster, std::vector<JobSpec>{Predicted(12'000, 17'000)});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(cluster.Apply(*plan).ok());
  EXPECT_NE(Decide(cluster, OneGpu(51, 1, 100)).verdict, Verdict::kPlace) << "nobody joins it";
}

TEST(Refusal, WhatIsExpectedToFitJoinsNobodyAndWaitsForAnIdleDevice) {
  Cluster cluster = Nodes(1, 1);
  ASSERT_TRUE(cluster.Adopt(OneGpu(1, 10, 1'000), std::vector<Slot>{{1, 0, 0}}).ok());
  const Decision decision = Decide(cluster, Predicted(12'000, 17'000));
  EXPECT_EQ(decision.verdict, Verdict::kDefer);
  EXPECT_FALSE(decision.predicted_never);
}

TEST(Refusal, ADeviceWhoseMemoryTheBoundFitsComesFirst) {
  const Decision decision = Decide(Nodes(1, 1), Predicted(12'000, 15'000));
  EXPECT_EQ(decision.verdict, Verdict::kPlace);
  EXPECT_FALSE(decision.probe);
}

TEST(Refusal, WhoStatesMemoryIsHeldToIt) {
  JobSpec job = Predicted(12'000, 17'000);
  job.gpu_mem_request_mib = 16'100;
  EXPECT_EQ(Decide(Nodes(1, 1), job).verdict, Verdict::kReject);
}

TEST(Refusal, WhatIsStatedMeasuredOrBeyondDoubtRefusesForGood) {
  for (const uint32_t flags :
       {0u, uint32_t{kDemandGiven}, uint32_t{kDemandMeasured}, kDemandPredicted | kDemandTooLarge}) {
    const Decision decision = DecideAlike(Predicted(12'000, 17'000, flags));
    EXPECT_EQ(decision.verdict, Verdict::kReject) << flags;
    EXPECT_FALSE(decision.predicted_never);
  }
  JobSpec stated = Predicted(12'000, 14'000);
  stated.gpu_mem_request_mib = 17'000;
  EXPECT_EQ(DecideAlike(stated).verdict, Verdict::kReject) << "a stated request stands in for the prediction";
  JobSpec picky = Predicted(12'000, 17'000);
  picky.node_selector = {{"zone", "b"}};
  EXPECT_EQ(DecideAlike(picky).verdict, Verdict::kReject) << "another constraint refuses it for good";
}

TEST(Refusal, AMemoryWithoutABoundRunsAloneUntilItIsStated) {
  JobSpec job = Predicted(1'400, kUnboundedMemMib, kDemandPredicted | kDemandOutside);
  EXPECT_EQ(DecideAlike(job).verdict, Verdict::kPlace);
  EXPECT_EQ(DecideAlike(job).gpu_memory.limit_mib, kUnboundedMemMib) << "no runtime is told a limit";
  EXPECT_EQ(DecideAlike(Predicted(1'400, 2'000)).gpu_memory.limit_mib, 2'000);
  const auto placer = MakePlacer();
  Cluster cluster = Nodes(1, 1);
  EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(77, 10, 1'000)).verdict, Verdict::kPlace);
  const Decision decision = PlaceOne(cluster, *placer, job);
  EXPECT_EQ(decision.verdict, Verdict::kDefer);
  EXPECT_EQ(decision.reason, Reason::kMemoryUnknown);
  EXPECT_THAT(DescribeDecision(decision), HasSubstr("State or measure it, and it shares."));
  ASSERT_TRUE(cluster.Release(77).ok());
  EXPECT_EQ(PlaceOne(cluster, *placer, job).verdict, Verdict::kPlace);
  EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(77, 10, 1'000)).reason, Reason::kExclusive) << "nobody joins it";
  ASSERT_TRUE(cluster.Release(job.id).ok());
  job.gpu_mem_request_mib = 4'000;
  EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(77, 10, 1'000)).verdict, Verdict::kPlace);
  EXPECT_EQ(PlaceOne(cluster, *placer, job).verdict, Verdict::kPlace) << "a stated memory shares";
  EXPECT_TRUE(CheckInvariants(cluster).ok());
}

// 9.5 ms a step, at most 268; half a request a second.
TEST(Refusal, AServiceThatOnlyABoundMakesLateIsNotTurnedAwayForGood) {
  JobSpec job = Predicted(1'000, 1'000);
  job.kind = JobKind::kInference;
  job.demands[0].demand.step_time_us = {9'500, 268'000};
  job.request_rate_hz = 0.5;
  job.latency_bound_us = 500'000;
  const Decision decision = DecideAlike(job);
  EXPECT_EQ(decision.verdict, Verdict::kDefer);
  EXPECT_EQ(decision.reason, Reason::kSlowdownOwn);
  EXPECT_LT(decision.miss.estimate, 20'000);
  job.demands[0].demand.flags = kDemandMeasured;
  EXPECT_EQ(DecideAlike(job).verdict, Verdict::kReject);
}

TEST(Refusal, TheSentenceTellsAmountsApartThatRoundingWouldMakeEqual) {
  Decision decision{.verdict = Verdict::kDefer, .reason = Reason::kSlowdownOwn};
  decision.miss = {Reason::kSlowdownOwn, 1, 0, 1.5, 1.50000012, "x"};
  EXPECT_THAT(DescribeDecision(decision), HasSubstr("bound 1.5, predicted 1.5000001 x"));
  decision.miss = {Reason::kSlowdownOwn, 1, 0, 1.5, 1.625, "x"};
  EXPECT_THAT(DescribeDecision(decision), HasSubstr("bound 1.5, predicted 1.62 x"));
}

TEST(Refusal, TheSentenceOfARefusalTellsTheMainReasonAndTheNearestApart) {
  Cluster cluster(Catalogue::Default());
  for (NodeId id = 1; id <= 2; ++id) ASSERT_TRUE(cluster.AddNode(V100Node(id, 2)).ok());
  NodeSpec zoned = V100Node(3, 1);
  zoned.labels = {{"zone", "a"}};
  ASSERT_TRUE(cluster.AddNode(zoned).ok());
  JobSpec job = OneGpu(50, 10, 20'000);
  job.node_selector = {{"zone", "a"}};
  EXPECT_EQ(
      DescribeDecision(Decide(cluster, job)),
      "Rejected: never fits this cluster. 4 of 5 devices: The node lacks a label that the job's selector asks for. "
      "Nearest: node 3 device 0, which failed another constraint (gpu_memory: needed 20000, available 15884 MiB).");
  job.node_selector.clear();
  EXPECT_EQ(
      DescribeDecision(Decide(cluster, job)),
      "Rejected: never fits this cluster. The job's memory bound, its neighbours' and the headroom would exceed the "
      "device. Nearest: node 1 device 0 (gpu_memory: needed 20000, available 15884 MiB).");
}

TEST(Refusal, ARejectionTellsWhatRefusesForGoodAndNotWhatIsBusyNow) {
  Cluster cluster = Nodes(1, 2);
  std::vector<JobSpec> residents = {OneGpu(1), OneGpu(2)};
  for (JobSpec& resident : residents) resident.exclusive = true;
  const auto placer = MakePlacer();
  ASSERT_TRUE(cluster.Apply(*placer->MakePlan(cluster, residents)).ok());
  JobSpec wide = OneGpu(3);
  wide.gpus_per_task = 3;
  const Decision decision = Decide(cluster, wide);
  EXPECT_EQ(decision.verdict, Verdict::kReject);
  EXPECT_EQ(decision.reason, Reason::kGang);
  EXPECT_EQ(decision.miss.reason, Reason::kGang);
}

}  // namespace
}  // namespace horus
