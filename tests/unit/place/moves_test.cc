// SPDX-License-Identifier: Apache-2.0
// Rules of plans that move and preempt, of rebalancing and of what-ifs.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fixtures.h"
#include "lab/synergy/round.h"
#include "place/modes/batch.h"
#include "place/modes/preempt.h"
#include "place/modes/rebalance.h"
#include "place/modes/what_if.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing_place::CpuOnly;
using testing_place::Gang;
using testing_place::MakePlacer;
using testing_place::Needs;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::PlanOf;
using testing_place::Type;

std::shared_ptr<const JobSpec> SpecOf(const Cluster& cluster, JobId job) { return cluster.Job(job)->spec; }

// Two full devices whose jobs would not fit beside each other.
Cluster TwoFull() {
  Cluster cluster = Nodes(2, 1);
  EXPECT_TRUE(cluster.Adopt(OneGpu(1, 40, 12'000), std::vector<Slot>{{1, 0, 0}}).ok());
  EXPECT_TRUE(cluster.Adopt(OneGpu(2, 40, 13'000), std::vector<Slot>{{2, 0, 0}}).ok());
  return cluster;
}

TEST(Moves, JobsChangePlacesInOnePlan) {
  Cluster cluster = TwoFull();
  const Plan plan = PlanOf(cluster, {{ActionKind::kMigrate, SpecOf(cluster, 1), {{2, 0, 0}}},
                                     {ActionKind::kMigrate, SpecOf(cluster, 2), {{1, 0, 0}}}});
  ASSERT_TRUE(cluster.Apply(plan).ok()) << cluster.Apply(plan);
  EXPECT_EQ(cluster.Job(1)->slots, (Slots{{2, 0, 0}}));
  EXPECT_EQ(cluster.Job(2)->slots, (Slots{{1, 0, 0}}));
  EXPECT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
  EXPECT_EQ(cluster.Apply(plan).code(), absl::StatusCode::kAborted);  // twice is harmless
}

TEST(Moves, AVictimMakesRoomInTheSamePlan) {
  Cluster cluster = TwoFull();
  const auto newcomer = std::make_shared<const JobSpec>(OneGpu(3, 40, 14'000));
  const Plan plan =
      PlanOf(cluster, {{ActionKind::kPlace, newcomer, {{1, 0, 0}}}, {ActionKind::kPreempt, SpecOf(cluster, 1), {}}});
  ASSERT_TRUE(cluster.Apply(plan).ok());
  EXPECT_FALSE(cluster.HasJob(1));
  EXPECT_EQ(cluster.Job(3)->slots, (Slots{{1, 0, 0}}));
  EXPECT_TRUE(CheckInvariants(cluster).ok());
}

TEST(Moves, AllOrNothing) {
  Cluster cluster = TwoFull();
  const uint64_t before = cluster.state_hash();
  const uint64_t version = cluster.Node(1)->version;
  const auto expect_refused = [&](const Plan& plan, absl::StatusCode code) {
    EXPECT_EQ(cluster.Apply(plan).code(), code) << cluster.Apply(plan);
    EXPECT_EQ(cluster.state_hash(), before);
    EXPECT_EQ(cluster.Node(1)->version, version);
    EXPECT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
  };
  // The second does not fit beside the first, which has moved by then.
  expect_refused(
      PlanOf(cluster, {{ActionKind::kPreempt, SpecOf(cluster, 2), {}},
                       {ActionKind::kMigrate, SpecOf(cluster, 1), {{2, 0, 0}}},
                       {ActionKind::kPlace, std::make_shared<const JobSpec>(OneGpu(9, 40, 13'000)), {{2, 0, 0}}}}),
      absl::StatusCode::kFailedPrecondition);
  const auto stranger = std::make_shared<const JobSpec>(OneGpu(7));
  expect_refused(PlanOf(cluster, {{ActionKind::kMigrate, stranger, {{2, 0, 0}}}}), absl::StatusCode::kNotFound);
  expect_refused(PlanOf(cluster, {{ActionKind::kPreempt, stranger, {}}}), absl::StatusCode::kNotFound);
  expect_refused(
      PlanOf(cluster, {{ActionKind::kPreempt, SpecOf(cluster, 1), {}}, {ActionKind::kPreempt, SpecOf(cluster, 1), {}}}),
      absl::StatusCode::kInvalidArgument);
  expect_refused(PlanOf(cluster, {{ActionKind::kPreempt, SpecOf(cluster, 1), {{1, 0, 0}}}}),
                 absl::StatusCode::kInvalidArgument);
  expect_refused(PlanOf(cluster, {{static_cast<ActionKind>(4), SpecOf(cluster, 1), {{1, 0, 0}}}}),
                 absl::StatusCode::kUnimplemented);
  // The node that the job leaves is part of what a plan must have seen.
  Plan blind = PlanOf(cluster, {{ActionKind::kPreempt, SpecOf(cluster, 1), {}}});
  blind.seen.erase(blind.seen.begin());
  expect_refused(blind, absl::StatusCode::kInvalidArgument);
}

TEST(Moves, AChangeWhereTheJobComesFromIsAConflict) {
  Cluster cluster = TwoFull();
  const Plan plan = PlanOf(cluster, {{ActionKind::kPreempt, SpecOf(cluster, 1), {}}});
  ASSERT_TRUE(cluster.SetNodeState(1, AdminState::kDrained).ok());
  EXPECT_EQ(cluster.Apply(plan).code(), absl::StatusCode::kAborted);
}

// Two busy jobs on one device, the other idle.
Cluster Crowded() {
  Cluster cluster = Nodes(2, 1);
  EXPECT_TRUE(cluster.Adopt(OneGpu(1, 90), std::vector<Slot>{{1, 0, 0}}).ok());
  EXPECT_TRUE(cluster.Adopt(OneGpu(2, 90), std::vector<Slot>{{1, 0, 0}}).ok());
  return cluster;
}

TEST(Rebalance, MovesWhatGainsMoreThanItCosts) {
  Cluster cluster = Crowded();
  const auto placer = MakePlacer();
  const uint64_t before = cluster.state_hash();
  const auto plan = Rebalance(*placer, cluster, {.downtime_s = 36, .horizon_s = 3600});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(cluster.state_hash(), before);
  ASSERT_EQ(plan->moves.size(), 1u);
  EXPECT_EQ(plan->moves[0].job, 1u);  // ties to the lowest id
  EXPECT_EQ(plan->moves[0].from, (Slots{{1, 0, 0}}));
  EXPECT_EQ(plan->moves[0].to, (Slots{{2, 0, 0}}));
  EXPECT_NEAR(plan->moves[0].cost, 0.01, 1e-12);
  EXPECT_NEAR(plan->moves[0].gain, plan->work_after - plan->work_before, 1e-9);
  EXPECT_NEAR(plan->work_after, 2, 1e-6);
  EXPECT_EQ(plan->decisions.size(), 1u);
  ASSERT_TRUE(cluster.Apply(*plan).ok());
  EXPECT_EQ(cluster.Job(1)->slots, plan->moves[0].to);
}

TEST(Rebalance, LeavesAloneWhatIsNotWorthItsDowntime) {
  const Cluster cluster = Crowded();
  const auto placer = MakePlacer();
  EXPECT_TRUE(Rebalance(*placer, cluster, {.downtime_s = 3600, .horizon_s = 3600})->moves.empty());
  EXPECT_TRUE(Rebalance(*placer, cluster, {.max_migrations = 0})->moves.empty());
  EXPECT_TRUE(Rebalance(*placer, cluster, {.min_gain = 1.5})->moves.empty());
  const std::vector<JobId> only = {2};
  EXPECT_EQ(Rebalance(*placer, cluster, {}, only)->moves.at(0).job, 2u);
}

TEST(Rebalance, RefusesOptionsOutOfRange) {
  const Cluster cluster = Crowded();
  const auto placer = MakePlacer();
  for (const RebalanceOptions& options :
       {RebalanceOptions{.downtime_s = -1}, RebalanceOptions{.horizon_s = 0},
        RebalanceOptions{.downtime_s = std::numeric_limits<double>::quiet_NaN()}, RebalanceOptions{.min_gain = -1}}) {
    EXPECT_EQ(Rebalance(*placer, cluster, options).status().code(), absl::StatusCode::kInvalidArgument);
  }
  const std::vector<JobId> stranger = {9};
  EXPECT_EQ(Rebalance(*placer, cluster, {}, stranger).status().code(), absl::StatusCode::kNotFound);
}

TEST(Rebalance, CanBeCancelledBeforeEachMigration) {
  const Cluster cluster = Crowded();
  const auto placer = MakePlacer();
  const RebalanceOptions options = {.downtime_s = 36};
  ASSERT_EQ(Rebalance(*placer, cluster, options)->moves.size(), 1u);
  for (uint64_t at = 0; at < 3; ++at) {
    uint64_t asked = 0;
    const auto plan = Rebalance(*placer, cluster, options, std::nullopt, [&](uint64_t done, uint64_t most) {
      EXPECT_EQ(done, asked++);
      EXPECT_EQ(most, options.max_migrations);
      return done < at;
    });
    if (at < 2) {  // before the one migration, and before it looks for a second
      EXPECT_EQ(plan.status().code(), absl::StatusCode::kCancelled) << at;
    } else {
      EXPECT_TRUE(plan.ok()) << plan.status();
    }
  }
}

TEST(WhatIf, AnswersForAClusterThatIsNot) {
  Cluster cluster = TwoFull();
  const uint64_t before = cluster.state_hash();
  const auto placer = MakePlacer();
  const JobSpec job = OneGpu(3, 40, 13'000);
  const std::vector<JobSpec> jobs = {job};
  EXPECT_EQ(WhatIf(*placer, cluster, {}, jobs)->decisions[0].verdict, Verdict::kDefer);
  std::vector<SupposedChange> changes = {{.kind = ChangeKind::kRelease, .job = 2}};
  const auto released = WhatIf(*placer, cluster, changes, jobs);
  ASSERT_TRUE(released.ok()) << released.status();
  EXPECT_EQ(released->decisions[0].slots, (Slots{{2, 0, 0}}));
  EXPECT_NEAR(released->work_before, 2, 1e-6);
  EXPECT_NEAR(released->work_after, 2, 1e-6);
  EXPECT_EQ(cluster.Apply(*released).code(), absl::StatusCode::kFailedPrecondition);
  changes.push_back({.kind = ChangeKind::kNodeState, .node = 2, .state = AdminState::kDrained});
  EXPECT_EQ(WhatIf(*placer, cluster, changes, jobs)->decisions[0].verdict, Verdict::kDefer);
  changes.push_back({.kind = ChangeKind::kNodeState, .node = 2, .state = AdminState::kUp});
  changes.push_back({.kind = ChangeKind::kDeviceState, .node = 2, .device = 0, .state = AdminState::kDown});
  EXPECT_EQ(
      WhatIf(*placer, cluster, changes, jobs)->decisions[0].refused_devices[static_cast<size_t>(Reason::kDeviceDown)],
      1u);
  changes = {{.kind = ChangeKind::kRelease, .job = 2},
             {.kind = ChangeKind::kPlace, .spec = OneGpu(4, 40, 13'000), .slots = {{2, 0, 0}}}};
  EXPECT_EQ(WhatIf(*placer, cluster, changes, jobs)->decisions[0].verdict, Verdict::kDefer);
  changes = {{.kind = ChangeKind::kRelease, .job = 2}, {.kind = ChangeKind::kMigrate, .job = 1, .slots = {{2, 0, 0}}}};
  EXPECT_EQ(WhatIf(*placer, cluster, changes, jobs)->decisions[0].slots, (Slots{{1, 0, 0}}));
  EXPECT_EQ(cluster.state_hash(), before);
  EXPECT_EQ(placer->MakePlan(cluster, jobs)->decisions[0].verdict, Verdict::kDefer);  // and the placer knows
}

TEST(WhatIf, AJobThatLeftCanBeDecidedAnew) {
  const Cluster cluster = Crowded();
  const auto placer = MakePlacer();
  const std::vector<SupposedChange> changes = {{.kind = ChangeKind::kRelease, .job = 1}};
  const std::vector<JobSpec> jobs = {OneGpu(1, 90)};
  EXPECT_EQ(WhatIf(*placer, cluster, changes, jobs)->decisions[0].slots, (Slots{{2, 0, 0}}));
  EXPECT_EQ(WhatIf(*placer, cluster, {}, jobs).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(WhatIf, NamesTheChangeThatIsWrong) {
  const Cluster cluster = TwoFull();
  const auto placer = MakePlacer();
  const auto code = [&](const SupposedChange& change) {
    const std::vector<SupposedChange> changes = {{.kind = ChangeKind::kRelease, .job = 2}, change};
    const absl::Status status = WhatIf(*placer, cluster, changes, {}).status();
    EXPECT_NE(status.message().find("changes[1]"), std::string::npos) << status;
    return status.code();
  };
  EXPECT_EQ(code({.kind = ChangeKind::kRelease, .job = 2}), absl::StatusCode::kNotFound);
  EXPECT_EQ(code({.kind = ChangeKind::kNodeState, .node = 9}), absl::StatusCode::kNotFound);
  EXPECT_EQ(code({.kind = ChangeKind::kDeviceState, .node = 1, .device = 1}), absl::StatusCode::kNotFound);
  EXPECT_EQ(code({.kind = ChangeKind::kNodeState, .node = 1, .state = static_cast<AdminState>(7)}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.kind = static_cast<ChangeKind>(9)}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.kind = ChangeKind::kPlace, .spec = OneGpu(1), .slots = {{2, 0, 0}}}),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code({.kind = ChangeKind::kPlace, .spec = OneGpu(5), .slots = {}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.kind = ChangeKind::kPlace, .spec = Gang(5, 1, 2), .slots = {{2, 0, 0}, {2, 0, 0}}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.kind = ChangeKind::kPlace, .spec = OneGpu(5), .slots = {{2, 3, 0}}}), absl::StatusCode::kNotFound);
  EXPECT_EQ(code({.kind = ChangeKind::kPlace, .spec = CpuOnly(5), .slots = {{2, 0, 0}}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.kind = ChangeKind::kPlace, .spec = Gang(5, 2, 1), .slots = {{1, 0, 0}, {2, 0, 2}}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.kind = ChangeKind::kPlace, .spec = Gang(5, 1, 2), .slots = {{1, 0, 0}, {2, 0, 0}}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.kind = ChangeKind::kPlace, .spec = OneGpu(5), .slots = {{9, 0, 0}}}), absl::StatusCode::kNotFound);
  EXPECT_EQ(code({.kind = ChangeKind::kPlace, .spec = OneGpu(5), .slots = {{2, -1, 0}}}), absl::StatusCode::kNotFound);
  EXPECT_EQ(code({.kind = ChangeKind::kMigrate, .job = 9, .slots = {{2, 0, 0}}}), absl::StatusCode::kNotFound);
  JobSpec stranger = OneGpu(5);
  stranger.demands[0].type = GpuTypeId(4000);
  EXPECT_EQ(code({.kind = ChangeKind::kPlace, .spec = stranger, .slots = {{2, 0, 0}}}),
            absl::StatusCode::kInvalidArgument);
  JobSpec wrong = OneGpu(5);
  wrong.gpu_milli = 5000;
  EXPECT_EQ(code({.kind = ChangeKind::kPlace, .spec = wrong, .slots = {{2, 0, 0}}}),
            absl::StatusCode::kInvalidArgument);
  JobSpec either;  // which of the ways runs there is not said
  either.id = 5;
  either.alternatives = {{.rate = 1, .demands = {{GpuTypeId::Invalid(), Needs(40, 4000, 1000)}}}};
  EXPECT_EQ(code({.kind = ChangeKind::kPlace, .spec = either, .slots = {{2, 0, 0}}}),
            absl::StatusCode::kInvalidArgument);
}

TEST(WhatIf, TakesBackAndMovesWhatItPlaced) {
  const Cluster cluster = TwoFull();
  const auto placer = MakePlacer();
  const std::vector<JobSpec> jobs = {OneGpu(3, 40, 13'000)};
  std::vector<SupposedChange> changes = {
      {.kind = ChangeKind::kRelease, .job = 2},
      {.kind = ChangeKind::kPlace, .spec = OneGpu(4, 40, 13'000), .slots = {{2, 0, 0}}},
      {.kind = ChangeKind::kMigrate, .job = 4, .slots = {{1, 0, 0}}}};
  EXPECT_EQ(WhatIf(*placer, cluster, changes, jobs)->decisions[0].slots, (Slots{{2, 0, 0}}));
  changes.back() = {.kind = ChangeKind::kRelease, .job = 4};
  EXPECT_EQ(WhatIf(*placer, cluster, changes, jobs)->decisions[0].slots, (Slots{{2, 0, 0}}));
  changes.pop_back();
  const std::vector<JobSpec> again = {OneGpu(4, 40, 1000)};
  EXPECT_EQ(WhatIf(*placer, cluster, changes, again).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(WhatIf, KnowsHowManyJobsADeviceHolds) {
  Cluster cluster = Nodes(1, 1);
  for (JobId id = 1; id <= kMaxResidentsPerDevice; ++id) {
    ASSERT_TRUE(cluster.Adopt(OneGpu(id, 0, 1), std::vector<Slot>{{1, 0, 0}}).ok());
  }
  const JobId beyond = kMaxResidentsPerDevice + 1;
  EXPECT_EQ(cluster.Adopt(OneGpu(beyond, 0, 1), std::vector<Slot>{{1, 0, 0}}).status().code(),
            absl::StatusCode::kResourceExhausted);
  const std::vector<SupposedChange> changes = {
      {.kind = ChangeKind::kPlace, .spec = OneGpu(beyond, 0, 1), .slots = {{1, 0, 0}}}};
  EXPECT_EQ(WhatIf(*MakePlacer(), cluster, changes, {}).status().code(), absl::StatusCode::kResourceExhausted);
}

// Asked so many times; then it says stop.
GoOnFn PatientFor(int& times) {
  return [&times] { return times-- > 0; };
}

TEST(Metrics, EndsEveryModeBetweenTwoSearches) {
  const Cluster cluster = TwoFull();
  const uint64_t before = cluster.state_hash();
  JobSpec urgent = OneGpu(3, 40, 14'000);
  urgent.priority = 5;
  const std::vector<JobSpec> jobs = {urgent, OneGpu(4, 10, 100), OneGpu(5, 10, 100)};
  const std::vector<JobId> all = {1, 2};
  const RebalanceOptions free_moves = {.downtime_s = 0};
  const auto placer = MakePlacer();
  const std::map<std::string, std::function<absl::StatusOr<Plan>()>> modes = {
      {"plan", [&] { return placer->MakePlan(cluster, jobs); }},
      {"batch", [&] { return PlanBatch(*placer, cluster, jobs); }},
      {"rebalance", [&] { return Rebalance(*placer, cluster, free_moves, all); }},
      {"evacuate", [&] { return Evacuate(*placer, cluster, std::vector<NodeId>{1, 2}); }},
      {"what-if", [&] { return WhatIf(*placer, cluster, {}, jobs); }},
      {"preempt", [&] { return PlanPreemption(*placer, cluster, urgent); }}};
  for (const auto& [name, run] : modes) {
    int times = 1'000'000;
    placer->SetGoOn(PatientFor(times));
    ASSERT_TRUE(run().ok()) << name << ": " << run().status();
    const int asked = 1'000'000 - times;
    ASSERT_GT(asked, 1) << name;
    for (int patience = 0; patience < asked / 2; ++patience) {  // the answers above are for two runs
      times = patience;
      EXPECT_EQ(run().status().code(), absl::StatusCode::kCancelled) << name << " after " << patience;
    }
    placer->SetGoOn(nullptr);
    EXPECT_TRUE(run().ok()) << name;
  }
  EXPECT_EQ(cluster.state_hash(), before);
}

TEST(Metrics, EndsARoundBetweenTwoJobs) {
  Cluster cluster = Nodes(2, 2);
  const auto placer = MakePlacer("synergy-tune");
  const std::vector<JobSpec> first = {OneGpu(1), Gang(2, 1, 2)};
  ASSERT_TRUE(cluster.Apply(*placer->MakePlan(cluster, first)).ok());
  JobSpec part = OneGpu(5, 10, 100);
  part.gpu_milli = 500;
  // Granted, of a part, without GPUs, one that waits and one that is refused for good.
  const std::vector<JobSpec> jobs = {OneGpu(4), part, CpuOnly(6), Gang(7, 1, 2), Gang(8, 1, 4)};
  const std::map<std::string, std::function<absl::StatusOr<Plan>()>> modes = {
      {"plan", [&] { return placer->MakePlan(cluster, jobs); }},
      {"round", [&] { return MakeRound(*placer, cluster, std::vector{OneGpu(1), OneGpu(4), Gang(7, 1, 2)}); }}};
  for (const auto& [name, run] : modes) {
    int times = 1'000'000;
    placer->SetGoOn(PatientFor(times));
    const auto expected = run();
    ASSERT_TRUE(expected.ok()) << name << ": " << expected.status();
    const int asked = 1'000'000 - times;
    ASSERT_GT(asked, 2) << name;
    for (int patience = 0; patience < asked; ++patience) {
      times = patience;
      EXPECT_EQ(run().status().code(), absl::StatusCode::kCancelled) << name << " after " << patience;
    }
    placer->SetGoOn(nullptr);
    EXPECT_EQ(run()->decisions, expected->decisions) << name;
  }
}

}  // namespace
}  // namespace horus
