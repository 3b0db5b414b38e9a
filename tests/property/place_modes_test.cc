// SPDX-License-Identifier: Apache-2.0
// Batches, rebalancing, what-ifs and preemption on random clusters: what they promise, and that nothing breaks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "interference/laws.h"
#include "interference/registry.h"
#include "place/modes/batch.h"
#include "place/modes/preempt.h"
#include "place/modes/rebalance.h"
#include "place/modes/what_if.h"
#include "place/placer.h"
#include "place/state/cluster.h"
#include "place/work.h"
#include "random_cluster.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing_property::Random;
using testing_property::RandomJob;
using testing_property::RandomNode;

// The operations of a run divided by what one of a mode costs beside one of a placement.
constexpr uint64_t kInstances = std::max<uint64_t>(HORUS_PROPERTY_OPS / 200, 20);

const std::vector<std::string_view> kPolicies = {"horus", "first-fit",    "best-fit",  "gavel-threshold",
                                                 "fgd",   "pollux-avoid", "foreground"};

std::unique_ptr<Placer> MakePlacer(std::string_view policy, std::string_view model = "utilisation") {
  return *Placer::Create(*MakeInterferenceModel(model), *MakePolicy(policy, {.seed = 7}));
}

Cluster RandomCluster(Random& random, size_t nodes) {
  Cluster cluster(Catalogue::Default());
  for (NodeId id = 1; id <= nodes; ++id) EXPECT_TRUE(cluster.AddNode(RandomNode(random, id)).ok());
  return cluster;
}

std::vector<JobSpec> RandomJobs(Random& random, JobId first, size_t count) {
  std::vector<JobSpec> jobs;
  for (JobId id = first; id < first + count; ++id) jobs.push_back(RandomJob(random, id));
  return jobs;
}

void ExpectSound(const Cluster& cluster) {
  ASSERT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
  for (const NodeId id : cluster.NodeIds()) {
    const NodeInfo node = *cluster.Node(id);
    ASSERT_GE(std::min({node.cpu_free_milli, node.mem_free_mib, node.storage_free_mb_s}), 0) << "node " << id;
    for (size_t i = 0; i < node.spec.devices.size(); ++i) {
      const DeviceInfo device = *cluster.Device(id, static_cast<int32_t>(i));
      ASSERT_LE(device.mem_used_upper_mib, device.spec.mem_mib) << "node " << id << " device " << i;
      ASSERT_LE(device.milli_used, kMilliPerGpu);
    }
  }
}

// Useful work from the cluster's own answers and the model alone: each job as many times as it has GPUs at the speed of
// the slowest.
double WorkOf(const Cluster& cluster, const InterferenceModel& model) {
  std::map<JobId, std::vector<double>> speeds;
  for (const NodeId id : cluster.NodeIds()) {
    const NodeInfo node = *cluster.Node(id);
    for (size_t i = 0; i < node.spec.devices.size(); ++i) {
      const DeviceInfo device = *cluster.Device(id, static_cast<int32_t>(i));
      std::vector<JobInfo> jobs;
      std::vector<const Demand*> demands;
      for (const Resident& resident : device.residents) jobs.push_back(*cluster.Job(resident.job));
      std::vector<Demand> seen;
      for (const JobInfo& job : jobs) seen.push_back(AsRun(*job.spec, *FindDemand(*job.spec, device.spec.type)));
      for (const Demand& demand : seen) demands.push_back(&demand);
      std::vector<Slowdown> slowdowns(jobs.size());
      if (jobs.size() > 1) {
        EXPECT_TRUE(
            model.Predict({device.spec.type, device.spec.mode, device.spec.compute_share}, demands, slowdowns).ok());
      }
      for (size_t j = 0; j < jobs.size(); ++j) {
        int64_t fastest = INT64_MAX;
        for (const TypeDemand& entry : jobs[j].spec->demands) {
          fastest = std::min(fastest, entry.demand.step_time_us.estimate);
        }
        DeviceRow row;
        row.type = device.spec.type;
        row.compute_share = device.spec.compute_share;
        const bool whole = device.spec.compute_share == 1;
        double speed = 1;  // of a service within its promises, wherever it is
        if (!KeepsWork(*demands[j])) {
          speed = (whole ? static_cast<double>(fastest) / static_cast<double>(demands[j]->step_time_us.estimate) /
                               CapStretch(*demands[j])
                         : SpeedAlone(*jobs[j].spec, row)) /
                  static_cast<double>(slowdowns[j].estimate);
        }
        speeds[jobs[j].spec->id].push_back(static_cast<double>(jobs[j].spec->weight) * (1.0 + jobs[j].spec->priority) *
                                           WorkAlone(*jobs[j].spec) *
                                           (jobs[j].spec->kind == JobKind::kBestEffort ? kBestEffortWorth : 1) * speed);
      }
    }
  }
  double work = 0;
  for (const auto& [job, each] : speeds)
    work += static_cast<double>(each.size()) * *std::min_element(each.begin(), each.end());
  return work;
}

std::map<int32_t, size_t, std::greater<>> PlacedByPriority(const Plan& plan, const std::vector<JobSpec>& jobs) {
  std::map<int32_t, size_t, std::greater<>> placed;
  for (const JobSpec& job : jobs) placed[job.priority];
  for (const Action& action : plan.actions) ++placed[action.job->priority];
  return placed;
}

TEST(PlaceModes, ABatchForWhomThereIsRoomIsNeverWorseThanOneByOne) {
  uint64_t chosen = 0;
  for (uint64_t seed = 0; seed < kInstances; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::string_view policy = kPolicies[seed % kPolicies.size()];
    const std::string_view model = seed % 5 == 0 ? "boosted" : "utilisation";
    Cluster cluster = RandomCluster(random, 1 + random.Below(5));
    const auto placer = MakePlacer(policy, model);
    ASSERT_TRUE(cluster.Apply(*placer->MakePlan(cluster, RandomJobs(random, 1000, random.Below(8)))).ok());
    const std::vector<JobSpec> jobs = RandomJobs(random, 1, 2 + random.Below(20));
    const BatchOptions options{.prices = seed % 2 == 0};
    const uint64_t hash = cluster.state_hash();
    const auto one = placer->MakePlan(cluster, jobs);
    const auto batch = PlanBatch(*placer, cluster, jobs, options);
    ASSERT_TRUE(batch.ok()) << batch.status();
    ASSERT_EQ(cluster.state_hash(), hash);
    ASSERT_EQ(batch->decisions.size(), jobs.size());
    for (size_t i = 0; i < jobs.size(); ++i) ASSERT_EQ(batch->decisions[i].job, one->decisions[i].job);
    Cluster by_one = cluster;
    Cluster by_batch = cluster;
    ASSERT_TRUE(by_one.Apply(*one).ok());
    ASSERT_TRUE(by_batch.Apply(*batch).ok());
    ExpectSound(by_batch);
    if (policy == "horus" && batch->has_work) {  // nobody waits for whom there is room beside all who are placed
      bool room = true, waits = false;
      for (size_t i = 0; i < jobs.size(); ++i) {
        const bool here = batch->decisions[i].verdict == Verdict::kPlace;
        const bool there = one->decisions[i].verdict == Verdict::kPlace;
        room = room && (there || !here);
        waits = waits || (there && !here);
      }
      ASSERT_FALSE(room && waits);
    }
    if (policy == "horus" && !batch->has_work) {  // not for all: who goes was chosen
      ASSERT_TRUE(std::any_of(batch->decisions.begin(), batch->decisions.end(),
                              [](const Decision& decision) { return decision.reason == Reason::kPassedOver; }));
      ASSERT_TRUE(options.prices);
      // Nor is there room one by one for those who are placed or passed over.
      bool lacks = false;
      for (size_t i = 0; i < jobs.size(); ++i) {
        const Decision& decision = batch->decisions[i];
        const bool wanted = decision.verdict == Verdict::kPlace || decision.reason == Reason::kPassedOver;
        lacks = lacks || (wanted && one->decisions[i].verdict != Verdict::kPlace);
      }
      ASSERT_TRUE(lacks);
      ++chosen;
    } else if (policy == "horus") {
      const double before = WorkOf(by_one, placer->model());
      const double after = WorkOf(by_batch, placer->model());
      ASSERT_GE(after, before - 1e-4);
      ASSERT_NEAR(after - before, batch->work_after - batch->work_before, 1e-4);
    } else {
      ASSERT_GE(PlacedByPriority(*batch, jobs), PlacedByPriority(*one, jobs));
    }
    const auto again = PlanBatch(*placer, cluster, jobs, options);
    ASSERT_EQ(again->decisions, batch->decisions);
  }
  EXPECT_GT(chosen, 0u);
}

TEST(PlaceModes, ARebalanceGainsWhatItPromises) {
  uint64_t moves = 0;
  for (uint64_t seed = 0; seed < kInstances; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 77);
    const std::string_view model = seed % 3 == 0 ? "boosted" : "utilisation";
    Cluster cluster = RandomCluster(random, 2 + random.Below(5));
    const auto careless = MakePlacer("first-fit", model);
    ASSERT_TRUE(cluster.Apply(*careless->MakePlan(cluster, RandomJobs(random, 1, 10 + random.Below(20)))).ok());
    const auto placer = MakePlacer(seed % 4 == 0 ? "best-fit" : "horus", model);
    const uint32_t most = 1 + static_cast<uint32_t>(random.Below(6));
    const auto plan = Rebalance(*placer, cluster, {.max_migrations = most, .downtime_s = 10, .horizon_s = 3600});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_LE(plan->moves.size(), most);
    const double before = WorkOf(cluster, placer->model());
    ASSERT_NEAR(plan->work_before, before, 1e-4);
    ASSERT_TRUE(cluster.Apply(*plan).ok());
    ExpectSound(cluster);
    double gain = 0;
    for (const Move& move : plan->moves) {
      gain += move.gain;
      ASSERT_GT(move.gain, move.cost);
      ASSERT_EQ(cluster.Job(move.job)->slots, move.to);
    }
    ASSERT_NEAR(WorkOf(cluster, placer->model()) - before, gain, 1e-4);
    ASSERT_NEAR(plan->work_after, before + gain, 1e-4);
    moves += plan->moves.size();
  }
  EXPECT_GT(moves, 0u);
}

TEST(PlaceModes, AWhatIfAnswersAsIfItHadHappenedAndLeavesNothing) {
  for (uint64_t seed = 0; seed < kInstances; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 177);
    Cluster cluster = RandomCluster(random, 2 + random.Below(5));
    const auto placer = MakePlacer(kPolicies[seed % kPolicies.size()]);
    ASSERT_TRUE(cluster.Apply(*placer->MakePlan(cluster, RandomJobs(random, 1, 10 + random.Below(10)))).ok());
    std::vector<SupposedChange> changes;
    Cluster changed = cluster;
    for (const JobId job : cluster.JobIds()) {
      if (!random.OneIn(3)) continue;
      changes.push_back({.kind = ChangeKind::kRelease, .job = job});
      ASSERT_TRUE(changed.Release(job).ok());
      if (!random.OneIn(2)) continue;
      const JobInfo info = *cluster.Job(job);  // and comes back, as somebody else
      JobSpec other = *info.spec;
      other.id += 500;
      changes.push_back({.kind = ChangeKind::kPlace, .spec = other, .slots = info.slots});
      ASSERT_TRUE(changed.Adopt(other, info.slots).ok());
    }
    const NodeId node = 1 + random.Below(cluster.node_count());
    changes.push_back({.kind = ChangeKind::kNodeState, .node = node, .state = AdminState::kDrained});
    ASSERT_TRUE(changed.SetNodeState(node, AdminState::kDrained).ok());
    changes.push_back({.kind = ChangeKind::kDeviceState, .node = 1, .device = 0, .state = AdminState::kDown});
    ASSERT_TRUE(changed.SetDeviceState(1, 0, AdminState::kDown).ok());
    const std::vector<JobSpec> jobs = RandomJobs(random, 1000, 5);
    const uint64_t hash = cluster.state_hash();
    const auto now = placer->MakePlan(cluster, jobs)->decisions;
    const auto supposed = WhatIf(*placer, cluster, changes, jobs);
    ASSERT_TRUE(supposed.ok()) << supposed.status();
    ASSERT_EQ(cluster.state_hash(), hash);
    ASSERT_FALSE(cluster.Apply(*supposed).ok());
    ASSERT_EQ(placer->MakePlan(cluster, jobs)->decisions, now);
    const auto wanted = MakePlacer(kPolicies[seed % kPolicies.size()])->MakePlan(changed, jobs);
    ASSERT_EQ(supposed->decisions, wanted->decisions);
    ASSERT_TRUE(changed.Apply(*wanted).ok());
    ASSERT_NEAR(supposed->work_after, WorkOf(changed, placer->model()), 1e-4);
  }
}

TEST(PlaceModes, APreemptionAlwaysAppliesAndPlacesTheJob) {
  uint64_t preempted = 0;
  for (uint64_t seed = 0; seed < kInstances; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 277);
    const std::string_view policy = kPolicies[seed % kPolicies.size()];
    Cluster cluster = RandomCluster(random, 1 + random.Below(4));
    const auto placer = MakePlacer(policy);
    ASSERT_TRUE(cluster.Apply(*placer->MakePlan(cluster, RandomJobs(random, 1, 40))).ok());
    for (JobId id = 1000; id < 1006; ++id) {
      JobSpec job = RandomJob(random, id);
      job.priority = 1 + static_cast<int32_t>(random.Below(4));
      const uint64_t hash = cluster.state_hash();
      const auto plan = PlanPreemption(*placer, cluster, job);
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_EQ(cluster.state_hash(), hash);
      std::set<JobId> victims;
      for (const Move& move : plan->moves) {
        ASSERT_LT(cluster.Job(move.job)->spec->priority, job.priority);
        victims.insert(move.job);
      }
      for (const PreemptionCandidate& candidate : plan->candidates) {
        ASSERT_FALSE(candidate.victims.empty());
        ASSERT_GE(candidate.loss, plan->candidates.front().loss);
      }
      const std::vector<JobId> before = cluster.JobIds();
      ASSERT_TRUE(cluster.Apply(*plan).ok());
      ExpectSound(cluster);
      ASSERT_EQ(cluster.HasJob(id), plan->decisions.at(0).verdict == Verdict::kPlace);
      for (const JobId other : before) ASSERT_EQ(cluster.HasJob(other), !victims.contains(other));
      preempted += victims.size();
    }
  }
  EXPECT_GT(preempted, 0u);
}

// The loss of the cheapest set of victims on one node, by trying all of them.
double CheapestByTrying(const Cluster& cluster, Placer& placer, const JobSpec& job, NodeId node) {
  std::vector<JobId> may_go;
  const std::vector<JobId> there = cluster.Node(node)->jobs;
  for (const JobId id : there) {
    if (cluster.Job(id)->spec->priority < job.priority) may_go.push_back(id);
  }
  if (may_go.size() > 10) return -1;  // too many to try
  double best = std::numeric_limits<double>::infinity();
  const std::vector<NodeId> only = {node};
  for (uint32_t set = 0; set < 1u << may_go.size(); ++set) {
    Cluster without = cluster;
    for (size_t i = 0; i < may_go.size(); ++i) {
      const bool goes = (set >> i & 1u) != 0;
      EXPECT_TRUE(!goes || without.Release(may_go[i]).ok());
    }
    if (placer.MakePlan(without, {&job, 1}, only)->actions.empty()) continue;
    double loss = 0;
    for (size_t i = 0; i < may_go.size(); ++i) {
      if ((set >> i & 1u) == 0) continue;
      const JobInfo info = *cluster.Job(may_go[i]);
      Ledger ledger(cluster);
      Scorer scorer(*MakeInterferenceModel("utilisation"), *MakePolicy("horus"), {}, 1 << 20, false);
      WorkMeter meter(cluster, scorer);
      if (IsCpuOnly(*info.spec)) loss += WorkWeight(*info.spec) * info.spec->tasks;
      loss += *meter.OfJob(ledger, info.spec->id);
    }
    best = std::min(best, loss);
  }
  return best;
}

TEST(PlaceModes, OnOneNodeNoCheaperSetOfVictimsMakesRoom) {
  uint64_t compared = 0;
  for (uint64_t seed = 0; seed < std::max<uint64_t>(kInstances / 4, 10); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 377);
    Cluster cluster = RandomCluster(random, 1 + random.Below(3));
    const auto placer = MakePlacer("horus");
    ASSERT_TRUE(cluster.Apply(*placer->MakePlan(cluster, RandomJobs(random, 1, 25))).ok());
    JobSpec job = RandomJob(random, 1000);
    job.tasks = 1;
    job.priority = 3;
    const auto plan = PlanPreemption(*placer, cluster, job);
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (plan->decisions[0].verdict == Verdict::kPlace && plan->moves.empty()) continue;
    for (const NodeId node : cluster.NodeIds()) {
      const double wanted = CheapestByTrying(cluster, *placer, job, node);
      if (wanted < 0) continue;
      const auto at = std::find_if(plan->candidates.begin(), plan->candidates.end(),
                                   [&](const PreemptionCandidate& one) { return one.node == node; });
      ASSERT_EQ(at == plan->candidates.end(), std::isinf(wanted)) << "node " << node;
      if (at == plan->candidates.end()) continue;
      ASSERT_TRUE(at->exact);
      ASSERT_NEAR(at->loss, wanted, 1e-6);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0u);
}

TEST(PlaceModes, AnythingInAnyOrderKeepsTheClusterSound) {
  Random random(5);
  Cluster cluster = RandomCluster(random, 6);
  const auto placer = MakePlacer("horus");
  JobId next = 1;
  for (uint64_t step = 0; step < kInstances; ++step) {
    SCOPED_TRACE(step);
    absl::StatusOr<Plan> plan;
    switch (random.Below(6)) {
      case 0: {
        const std::vector<JobSpec> jobs = RandomJobs(random, next, 6);
        plan = PlanBatch(*placer, cluster, jobs);
        break;
      }
      case 4:
        plan = Evacuate(*placer, cluster, std::vector<NodeId>{1 + random.Below(6)});
        break;
      case 1:
        plan = Rebalance(*placer, cluster, {.max_migrations = 4, .downtime_s = 0});
        break;
      case 2: {
        JobSpec job = RandomJob(random, next);
        job.priority = 5;
        plan = PlanPreemption(*placer, cluster, job);
        break;
      }
      case 3: {
        const std::vector<JobId> jobs = cluster.JobIds();
        ASSERT_TRUE(jobs.empty() || cluster.Release(jobs[random.Below(jobs.size())]).ok());
        continue;
      }
      default:
        ASSERT_TRUE(
            cluster.SetNodeState(1 + random.Below(6), random.OneIn(3) ? AdminState::kDrained : AdminState::kUp).ok());
        continue;
    }
    next += 6;
    ASSERT_TRUE(plan.ok()) << plan.status();
    const absl::Status applied = cluster.Apply(*plan);
    ASSERT_TRUE(applied.ok()) << applied;
    ASSERT_TRUE(plan->moves.empty() || !cluster.Apply(*plan).ok());  // never twice
    ExpectSound(cluster);
  }
}

}  // namespace
}  // namespace horus
