// SPDX-License-Identifier: Apache-2.0
// Rules of latency bounds, probes of unknown demands, and jobs that can run in several ways.
#include <gmock/gmock.h>

#include <set>

#include "fixtures.h"
#include "interference/laws.h"
#include "place/job/own_bound.h"
#include "place/modes/batch.h"
#include "place/policies/workload.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::Decide;
using testing_place::MakePlacer;
using testing_place::Needs;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::PlaceOne;

// A step of 10 ms, 20 requests a second: 20 % busy alone.
JobSpec Server(JobId id, int64_t bound_us, float util = 60) {
  JobSpec job = OneGpu(id, util, 2000);
  job.kind = JobKind::kInference;
  job.demands[0].demand.step_time_us = {10'000, 10'000};
  job.request_rate_hz = 20;
  job.latency_bound_us = bound_us;
  return job;
}

double Largest(int64_t bound_us) {
  return *LargestSlowdown({.requests_per_s = 20, .service_us = 10'000}, static_cast<double>(bound_us));
}

TEST(LatencyBound, BecomesTheLowerSlowdownBound) {
  JobSpec job = Server(1, 25'000);
  const auto bound = [&] { return static_cast<double>(OwnBoundOf(job, job.demands[0].demand).slowdown); };
  EXPECT_GT(Largest(25'000), 1);
  EXPECT_NEAR(bound(), Largest(25'000), 1e-6);
  job.slowdown_bound = 1.01f;
  EXPECT_EQ(bound(), static_cast<double>(1.01f));
  job.slowdown_bound = 100;
  EXPECT_NEAR(bound(), Largest(25'000), 1e-6);
  job.kind = JobKind::kTraining;  // has no requests
  EXPECT_EQ(bound(), 100);
  job.kind = JobKind::kInference;
  job.slowdown_bound = 0;
  job.request_rate_hz = 0;  // requests never meet: the service time alone counts
  EXPECT_NEAR(bound(), 2.5, 1e-6);
  job.demands[0].demand.step_time_us.upper = 20'000;  // limits count bounds
  EXPECT_NEAR(bound(), 1.25, 1e-6);
}

TEST(LatencyBound, NeedsStepTimes) {
  JobSpec job = Server(1, 25'000);
  job.demands[0].demand.step_time_us = {0, 0};
  EXPECT_THAT(ValidateJob(job).message(), HasSubstr("step_time_us: expected above 0 beside latency_bound_us"));
  job.latency_bound_us = 0;
  EXPECT_TRUE(ValidateJob(job).ok());
}

TEST(LatencyBound, IsPartOfTheStateHash) {
  JobSpec bounded = Server(1, 25'000), rarely = Server(1, 25'000), longer = Server(1, 25'000);
  bounded.slowdown_bound = 3;
  rarely.request_rate_hz = 10;
  longer.demands[0].demand.step_time_us = {10'000, 11'000};
  std::set<uint64_t> hashes;
  for (const JobSpec& job : {Server(1, 25'000), Server(1, 25'001), bounded, rarely, longer}) {
    Cluster cluster = Nodes(1, 1);
    PlaceOne(cluster, *MakePlacer("first-fit"), job);
    hashes.insert(cluster.state_hash());
  }
  EXPECT_EQ(hashes.size(), 5u);
}

TEST(LatencyBound, KeepsTheJobFromNeighboursAndNeighboursFromTheJob) {
  // By the utilisation proxy 60 % beside 60 % slows both by a fifth and more; alone the bound holds.
  ASSERT_GT(Largest(25'000), 1);
  ASSERT_LT(Largest(25'000), 1.2);
  Cluster busy = Nodes(1, 1);
  PlaceOne(busy, *MakePlacer("first-fit"), OneGpu(1, 60, 2000));
  EXPECT_EQ(Decide(busy, Server(2, 200'000), "first-fit").verdict, Verdict::kPlace);
  EXPECT_EQ(Decide(busy, Server(2, 25'000), "first-fit").reason, Reason::kSlowdownOwn);
  Cluster serving = Nodes(1, 1);
  PlaceOne(serving, *MakePlacer("first-fit"), Server(1, 25'000));
  EXPECT_EQ(Decide(serving, OneGpu(2, 60, 2000), "first-fit").reason, Reason::kSlowdownNeighbour);
}

TEST(LatencyBound, RefusesWhatMissesItEvenAlone) {
  const Decision refused = Decide(Nodes(1, 1), Server(1, 9000));
  EXPECT_EQ(refused.verdict, Verdict::kReject);
  EXPECT_EQ(refused.reason, Reason::kSlowdownOwn);
  EXPECT_EQ(refused.miss.needed, 9000);
  EXPECT_GT(refused.miss.available, 10'000);
  EXPECT_THAT(DescribeDecision(refused), HasSubstr("us p99 even alone"));
  JobSpec flooded = Server(1, 25'000);
  flooded.request_rate_hz = 1e6;
  EXPECT_THAT(DescribeDecision(Decide(Nodes(1, 1), flooded)), HasSubstr("predicted unbounded us p99 even alone"));
  // One that runs so already is left as it is: nobody makes it worse.
  Cluster cluster = Nodes(1, 1);
  const Slot slot{1, 0, 0};
  EXPECT_FALSE(cluster.Adopt(Server(1, 9000), {&slot, 1})->over_committed);
  EXPECT_EQ(Decide(cluster, OneGpu(2, 60, 2000), "first-fit").reason, Reason::kSlowdownNeighbour);
}

JobSpec Unknown(JobId id, uint32_t flags = kDemandOutside) {
  JobSpec job = OneGpu(id, 10, 2000);
  job.demands[0].demand.flags = flags;
  return job;
}

TEST(Probe, RunsAloneAndNobodyJoinsIt) {
  const PlacerOptions probing{.probe_outside = true};
  for (const std::string_view policy : {"horus", "first-fit", "fgd"}) {
    SCOPED_TRACE(policy);
    Cluster cluster = Nodes(1);
    const auto placer = MakePlacer(policy, probing);
    PlaceOne(cluster, *placer, OneGpu(1, 10, 2000));
    const Decision decision = PlaceOne(cluster, *placer, Unknown(2));
    EXPECT_TRUE(decision.probe);
    EXPECT_EQ(decision.slots, (Slots{{1, 1, 0}}));
    EXPECT_THAT(DescribeDecision(decision), HasSubstr("A probe"));
    EXPECT_TRUE(cluster.Job(2)->spec->exclusive);
    EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(3, 10, 2000)).slots, (Slots{{1, 0, 0}}));
    EXPECT_EQ(PlaceOne(cluster, *placer, Unknown(4)).verdict, Verdict::kDefer);
    // Observed: it shares from now on.
    ASSERT_TRUE(cluster.Release(2).ok());
    const Decision shared = Decide(cluster, Unknown(2, kDemandOutside | kDemandMeasured), "first-fit", probing);
    EXPECT_FALSE(shared.probe);
    EXPECT_EQ(shared.slots, (Slots{{1, 0, 0}}));
  }
}

TEST(Probe, IsOffByDefaultAndLooksAtTheTypeInUse) {
  Cluster cluster = Nodes(1, 1);
  PlaceOne(cluster, *MakePlacer(), OneGpu(1, 10, 2000));
  EXPECT_EQ(Decide(cluster, Unknown(2)).verdict, Verdict::kPlace);
  JobSpec job = Unknown(2);  // unknown on a type that is not there
  job.demands = {{testing_place::Type("k80"), Unknown(2).demands[0].demand},
                 {testing_place::Type("v100-sxm2-16gb"), Needs(10, 2000)}};
  NormalizeJob(job);
  const Decision decision = Decide(cluster, job, "horus", {.probe_outside = true});
  EXPECT_EQ(decision.verdict, Verdict::kPlace);
  EXPECT_FALSE(decision.probe);
}

TEST(Probe, HoldsAmongTheJobsOfOnePlan) {
  const std::vector<JobSpec> jobs = {Unknown(1), OneGpu(2, 10, 2000)};
  const Plan plan = *MakePlacer("first-fit", {.probe_outside = true})->MakePlan(Nodes(1), jobs);
  EXPECT_EQ(plan.decisions[0].slots, (Slots{{1, 0, 0}}));
  EXPECT_EQ(plan.decisions[1].slots, (Slots{{1, 1, 0}}));
}

JobAlternative Way(int32_t gpus, double rate, float util = 90) {
  JobAlternative way{.gpus_per_task = gpus, .rate = rate};
  way.demands = {{GpuTypeId::Invalid(), Needs(util, 2000)}};
  return way;
}

JobSpec InWays(JobId id, std::vector<JobAlternative> ways) {
  JobSpec job;
  job.id = id;
  job.cpu_milli = 1000;
  job.alternatives = std::move(ways);
  return job;
}

TEST(Alternatives, TakeMoreGpusOnlyWhereTheyPay) {
  // Per GPU 1, 0.9, 0.65: the second brings 0.8, the third and fourth 0.4 each.
  const JobSpec job = InWays(1, {Way(1, 1), Way(2, 1.8), Way(4, 2.6)});
  const Cluster cluster = Nodes(1, 4);
  const auto chosen = [&](double price) { return Decide(cluster, job, "horus", {.gpu_price = price}).alternative; };
  EXPECT_EQ(chosen(0), 2);
  EXPECT_EQ(chosen(0.39), 2);
  EXPECT_EQ(chosen(0.5), 1);
  EXPECT_EQ(chosen(0.81), 0);
  EXPECT_EQ(chosen(1), 0);
  const JobSpec alike = InWays(1, {Way(2, 5), Way(2, 5)});
  EXPECT_EQ(Decide(cluster, alike).alternative, 0);  // ties to the first
}

TEST(Alternatives, AreChosenAmongThoseThatFit) {
  const JobSpec job = InWays(1, {Way(4, 4), Way(1, 1)});
  EXPECT_EQ(Decide(Nodes(1, 4), job).alternative, 0);
  EXPECT_EQ(Decide(Nodes(1, 2), job).alternative, 1);
  const JobSpec large = InWays(1, {Way(8, 4), Way(4, 1)});
  Cluster cluster = Nodes(1, 4);
  PlaceOne(cluster, *MakePlacer(), testing_place::Gang(9, 1, 4));
  JobSpec alone = large;
  alone.exclusive = true;
  const Decision refused = Decide(cluster, alone);
  EXPECT_EQ(refused.verdict, Verdict::kDefer);  // the second way waits, the first never fits
  EXPECT_EQ(refused.alternative, 1);
}

// In the order of priority, and of what the work is worth, as other jobs of the batch.
TEST(Alternatives, AreChosenInABatchToo) {
  const auto placer = MakePlacer();
  for (const bool prices : {false, true}) {
    std::vector<JobSpec> jobs = {InWays(1, {Way(4, 4), Way(1, 1)}), OneGpu(2, 90, 2000), OneGpu(3, 90, 2000)};
    for (JobSpec& job : jobs) job.exclusive = true;
    jobs[0].priority = 1;
    const Plan plan = *PlanBatch(*placer, Nodes(1, 2), jobs, {.prices = prices});
    ASSERT_EQ(plan.decisions[0].verdict, Verdict::kPlace);
    EXPECT_EQ(plan.decisions[0].alternative, 1);
    EXPECT_EQ(plan.actions.size(), 2u);
    Cluster cluster = Nodes(1, 2);
    ASSERT_TRUE(cluster.Apply(plan).ok());
    EXPECT_EQ(cluster.Job(1)->spec->gpus_per_task, 1);
  }
}

// What cannot be moved is put back where the search booked it: it does not keep the others from better places.
TEST(Alternatives, LeaveTheSearchOfABatchOn) {
  const auto placer = MakePlacer();
  std::vector<JobSpec> jobs = {OneGpu(1, 20), OneGpu(2, 30), OneGpu(3, 90), OneGpu(4, 95)};
  jobs.push_back(InWays(5, {Way(1, 1)}));
  jobs.back().exclusive = true;
  jobs.back().priority = 1;
  const Plan plan = *PlanBatch(*placer, Nodes(3, 1), jobs, {.prices = false});
  EXPECT_NE(plan.decisions[3].slots, plan.decisions[4].slots) << "the heavy ones";
  EXPECT_EQ(plan.decisions[0].job, 5u);
  EXPECT_EQ(plan.decisions[0].alternative, 0);
  EXPECT_EQ(plan.actions.size(), 5u);
}

// As a plan does, and not behind jobs of a lower priority.
TEST(Batch, RunsAJobAloneWhoseMemoryFitsByExpectationOnly) {
  JobSpec large = OneGpu(1, 50, 10'000);
  large.demands[0].demand.flags = kDemandPredicted;
  large.demands[0].demand.mem_mib = {10'000, 60'000};
  large.priority = 1;
  const auto placer = MakePlacer();
  for (const bool prices : {false, true}) {
    const Plan plan =
        *PlanBatch(*placer, Nodes(1, 1), std::vector<JobSpec>{OneGpu(2, 50, 2000), large}, {.prices = prices});
    EXPECT_EQ(plan.decisions[0].job, 1u);
    EXPECT_EQ(plan.decisions[0].verdict, Verdict::kPlace);
    EXPECT_TRUE(plan.decisions[0].probe);
    EXPECT_EQ(plan.decisions[1].verdict, Verdict::kDefer);
  }
}

TEST(Alternatives, CountSlowdownsTheirOwnAndTheNeighbours) {
  // One GPU, held by a job at 60 %. Beside it the first way is slowed and slows; the second is slower but light.
  Cluster cluster = Nodes(1, 1);
  PlaceOne(cluster, *MakePlacer("first-fit"), OneGpu(9, 60, 2000));
  const JobSpec job = InWays(1, {Way(1, 1.0, 90), Way(1, 0.9, 20)});
  EXPECT_EQ(Decide(Nodes(1, 1), job, "first-fit").alternative, 0);
  EXPECT_EQ(Decide(cluster, job, "first-fit").alternative, 1);
}

TEST(Alternatives, LeaveOneWayToWhatRuns) {
  Cluster cluster = Nodes(1, 4);
  JobSpec job = InWays(1, {Way(1, 1), Way(2, 1.9)});
  job.alternatives[1].cpu_milli = 3000;
  const Plan plan = *MakePlacer()->MakePlan(cluster, {&job, 1});
  EXPECT_EQ(plan.decisions[0].alternative, 1);
  EXPECT_THAT(DescribeDecision(plan.decisions[0]), HasSubstr("Alternative 1"));
  ASSERT_TRUE(cluster.Apply(plan).ok());
  const JobSpec runs = *cluster.Job(1)->spec;
  EXPECT_EQ(runs.gpus_per_task, 2);
  EXPECT_EQ(runs.cpu_milli, 3000);
  EXPECT_TRUE(runs.alternatives.empty());
  const Slot slot{1, 3, 0};
  EXPECT_THAT(cluster.Adopt(InWays(2, {Way(1, 1)}), {&slot, 1}).status().message(),
              HasSubstr("expected the one that runs"));
}

TEST(Alternatives, AreCheckedOneByOne) {
  EXPECT_THAT(ValidateJob(InWays(1, {Way(1, 1), Way(1, 0)})).message(), HasSubstr("alternatives[1]: rate"));
  EXPECT_THAT(ValidateJob(InWays(1, {Way(0, 1)})).message(), HasSubstr("alternatives[0]: gpus_per_task"));
  EXPECT_THAT(ValidateJob(InWays(1, {Way(1, 1, 101)})).message(), HasSubstr("alternatives[0]: job 1: demands[0]"));
  JobSpec both = InWays(1, {Way(1, 1)});
  both.gpus_per_task = 2;
  EXPECT_THAT(ValidateJob(both).message(), HasSubstr("job's own"));
}

TEST(Alternatives, AreAnsweredByNodeWithTheFirstThatFits) {
  Cluster cluster = Nodes(1, 2);
  const JobSpec job = InWays(1, {Way(4, 4), Way(1, 1)});
  const std::vector<NodeId> nodes = {1};
  const auto verdicts = MakePlacer()->Verdicts(cluster, job, nodes);
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_EQ(verdicts->verdict[0], Verdict::kPlace);
  const JobSpec large = InWays(1, {Way(4, 4), Way(3, 1)});
  EXPECT_EQ(MakePlacer()->Verdicts(cluster, large, nodes)->verdict[0], Verdict::kReject);
}

TEST(Workload, CountsJobsThatWereSeenByTheirTasks) {
  JobSpec fraction = OneGpu(1, 42.5f, 2000);  // shares, at 42.5 %
  fraction.tasks = 3;
  fraction.cpu_milli = 2000;
  JobSpec whole = OneGpu(2);
  whole.gpu_milli = 1000;
  whole.demands = {{testing_place::Type("k80"), Needs(10, 2000)}};
  const std::vector<JobSpec> jobs = {fraction, whole, testing_place::CpuOnly(3), whole};
  const std::vector<TaskClass> tasks = TasksOf(jobs);
  ASSERT_EQ(tasks.size(), 3u);
  double shares = 0;
  for (const TaskClass& task : tasks) {
    shares += task.share;
    if (task.gpus == 0) {
      EXPECT_EQ(task.gpu_milli, 0);
      EXPECT_NEAR(task.share, 1.0 / 6, 1e-12);
    } else if (task.types.empty()) {
      EXPECT_EQ(task.gpu_milli, 425);
      EXPECT_EQ(task.cpu_milli, 2000);
      EXPECT_NEAR(task.share, 3.0 / 6, 1e-12);
    } else {
      EXPECT_EQ(task.gpu_milli, 1000);
      EXPECT_NEAR(task.share, 2.0 / 6, 1e-12);
    }
  }
  EXPECT_NEAR(shares, 1, 1e-12);
  EXPECT_TRUE(Workload::Create(tasks).ok());
}

}  // namespace
}  // namespace horus
