// SPDX-License-Identifier: Apache-2.0
// What is kept of answers — verdicts by node, nearest misses — is what a fresh look says.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <set>
#include <vector>

#include "interference/registry.h"
#include "place/placer.h"
#include "place/policies/policies.h"
#include "place/search/scorer.h"
#include "place/state/cluster.h"
#include "place/state/fit.h"
#include "place/state/groups.h"
#include "place/state/ledger.h"
#include "random_cluster.h"

namespace horus {
namespace {

using testing_property::Random;
using testing_property::RandomJob;
using testing_property::RandomNode;

std::unique_ptr<Placer> MakePlacer(const PlacerOptions& options = {}, const char* model = "utilisation") {
  return *Placer::Create(*MakeInterferenceModel(model), *MakePolicy("horus"), options);
}

TEST(PlaceAnswers, VerdictsOfANodeAgreeWithAPlanOnThatNode) {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    Cluster cluster(Catalogue::Default());
    for (NodeId id = 0; id < 4; ++id) ASSERT_TRUE(cluster.AddNode(RandomNode(random, id)).ok());
    const char* const model = round % 3 == 0 ? "horus" : "utilisation";  // adds pairs; adds loads
    const auto placer = MakePlacer({}, model);
    std::vector<JobSpec> residents;
    for (JobId id = 1; id <= 8; ++id) residents.push_back(RandomJob(random, id));
    ASSERT_TRUE(cluster.Apply(*placer->MakePlan(cluster, residents)).ok());
    const std::vector<NodeId> nodes = cluster.NodeIds();
    const std::vector<JobSpec> asked = {RandomJob(random, 99), RandomJob(random, 98)};
    for (int step = 0; step < 6; ++step) {  // what was kept of a job must not outlive a change
      JobSpec job = asked[static_cast<size_t>(step % 2)];
      job.tasks = 1;
      const auto verdicts = placer->Verdicts(cluster, job, nodes);
      for (size_t i = 0; i < nodes.size(); ++i) {
        const auto plan = MakePlacer({}, model)->MakePlan(cluster, {&job, 1}, std::span(&nodes[i], 1));
        ASSERT_EQ(verdicts->verdict[i], plan->decisions[0].verdict) << round;
        ASSERT_EQ(verdicts->reason[i], plan->decisions[0].reason) << round;
        if (verdicts->verdict[i] == Verdict::kPlace) {
          ASSERT_EQ(verdicts->cost[i], plan->decisions[0].winner.cost) << round;
        }
      }
      const NodeId node = random.Below(4);
      switch (random.Below(3)) {
        case 0: {
          const AdminState state =
              cluster.Node(node)->state == AdminState::kUp ? AdminState::kDrained : AdminState::kUp;
          ASSERT_TRUE(cluster.SetNodeState(node, state).ok());
          break;
        }
        case 1:
          if (cluster.job_count() > 0) {
            ASSERT_TRUE(cluster.Release(cluster.JobIds().front()).ok());
          }
          break;
        default: {
          const JobSpec other = RandomJob(random, 100 + static_cast<JobId>(step));
          ASSERT_TRUE(cluster.Apply(*placer->MakePlan(cluster, {&other, 1})).ok());
        }
      }
    }
  }
}

// The nearest miss by its definition: every node and device judged anew, in order.
NearestMiss MissByFullScan(const Cluster& cluster, const JobSpec& job) {
  Scorer scorer(std::make_shared<UtilisationModel>(), *MakePolicy("horus"),
                {.slowdown_bound = std::numeric_limits<double>::infinity()}, 0, true);
  const Ledger ledger(cluster);
  const JobView view = ViewJob(job);
  scorer.SetJob(view);
  NearestMiss miss;
  double nearest = 0;
  const auto offer = [&](Reason reason, NodeId node, int32_t device, const Shortfall& shortfall) {
    const double distance = Distance(reason, shortfall);
    if (AskedAt(reason) < AskedAt(miss.reason) || (reason == miss.reason && distance >= nearest)) return;
    nearest = distance;
    miss = {reason, node, device, shortfall.needed, shortfall.available, shortfall.unit, shortfall.estimate};
    if (device >= 0) miss.type = cluster.Node(node)->spec.devices[static_cast<size_t>(device)].type;
  };
  for (const uint32_t row : cluster.rows().order) {
    const NodeRow& node = cluster.rows().nodes[row];
    Shortfall shortfall;
    Reason reason = FitNode(job, *node.spec, node.state);
    if (reason == Reason::kNone) reason = FitHost(job, node.free, 1, &shortfall);
    if (reason == Reason::kNone && KeepsAway(job, node.groups)) reason = Reason::kAntiAffinity;
    if (reason != Reason::kNone) offer(reason, node.spec->id, -1, shortfall);
    for (size_t i = 0; reason == Reason::kNone && i < node.spec->devices.size(); ++i) {
      Evaluation evaluation =
          *scorer.Evaluate(ledger.states(), ledger.state_id(node.first_device + static_cast<uint32_t>(i)));
      if (evaluation.verdict.reason == Reason::kNone &&
          ledger.BarsFrom(node.first_device + static_cast<uint32_t>(i), OwnerMark(job), GpuCount(job)) !=
              Reason::kNone) {
        evaluation.verdict.reason = Reason::kOwner;
      }
      offer(evaluation.verdict.reason, node.spec->id, static_cast<int32_t>(i), evaluation.shortfall);
    }
  }
  return miss;
}

TEST(PlaceAnswers, TheNearestMissIsThatOfAFullScan) {
  Random random(11);
  const auto placer = MakePlacer();
  std::set<Reason> reasons;
  for (int round = 0; round < 200; ++round) {
    Cluster cluster(Catalogue::Default()), emptied(Catalogue::Default());
    for (NodeId id = 0; id < 6; ++id) {
      const NodeSpec node = RandomNode(random, id);
      ASSERT_TRUE(cluster.AddNode(node).ok() && emptied.AddNode(node).ok());
    }
    std::vector<JobSpec> residents;
    for (JobId id = 1; id <= 30; ++id) residents.push_back(RandomJob(random, id));
    ASSERT_TRUE(cluster.Apply(*placer->MakePlan(cluster, residents)).ok());
    ASSERT_TRUE(cluster.SetNodeState(random.Below(6), AdminState::kDrained).ok());
    for (JobId id = 100; id < 110; ++id) {
      const JobSpec job = RandomJob(random, id);
      const auto plan = placer->MakePlan(cluster, {&job, 1});
      const Decision& decision = plan->decisions.front();
      if (decision.verdict == Verdict::kPlace || decision.reason == Reason::kGang) continue;
      // What is rejected fails on the cluster empty and up: that is the miss to tell.
      const Cluster& judged = decision.verdict == Verdict::kReject ? emptied : cluster;
      ASSERT_EQ(decision.miss, MissByFullScan(judged, job)) << round << " job " << id;
      reasons.insert(decision.miss.reason);
    }
  }
  EXPECT_GT(reasons.size(), 5u);  // or the walk did not see enough
}

TEST(PlaceAnswers, ATersePlacerDecidesAsTheOthersAndKeepsTheReasonsOfRejections) {
  Random random(12);
  const auto full = MakePlacer(), terse = MakePlacer({.terse = true});
  int untold = 0;
  for (int round = 0; round < 100; ++round) {
    Cluster cluster(Catalogue::Default());
    for (NodeId id = 0; id < 6; ++id) ASSERT_TRUE(cluster.AddNode(RandomNode(random, id)).ok());
    for (JobId id = 1; id <= 60; ++id) {
      const JobSpec job = RandomJob(random, id);
      const auto plan = full->MakePlan(cluster, {&job, 1});
      Decision expected = plan->decisions.front();
      const Decision found = terse->MakePlan(cluster, {&job, 1})->decisions.front();
      if (expected.verdict == Verdict::kDefer && found.reason == Reason::kNone) {
        expected.reason = Reason::kNone;
        expected.refused_devices = {};
        expected.miss = {};
        ++untold;
      }
      ASSERT_EQ(found, expected) << round << " job " << id;
      ASSERT_TRUE(cluster.Apply(*plan).ok());
    }
  }
  EXPECT_GT(untold, 100);  // or nothing was left out
}

}  // namespace
}  // namespace horus
