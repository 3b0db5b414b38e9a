// SPDX-License-Identifier: Apache-2.0
// On failure nothing happened: every change of a cluster, with each of its allocations failing in turn.
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <string>
#include <vector>

#include "failing_new.h"
#include "fixtures.h"
#include "place/state/ledger.h"
#include "place/state/snapshot.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing_place::CpuOnly;
using testing_place::Gang;
using testing_place::MakePlacer;
using testing_place::OneGpu;
using testing_place::Type;
using testing_place::V100Node;

// Whether `work` ran out of memory at its allocation number `at`.
bool FailsAt(size_t at, const std::function<void()>& work) {
  bool failed = false;
  allocations_left = at;
  try {
    work();
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  allocations_left = kNever;
  return failed;
}

// Three nodes, shared devices, a gang over two nodes, a hole and free rows from what was removed.
Cluster Used() {
  Cluster cluster(Catalogue::Default());
  for (NodeId id = 1; id <= 4; ++id) {
    NodeSpec node = V100Node(id, 4);
    node.name = "a name that is too long for the inside of a string " + std::to_string(id);
    node.labels = {{"zone", "a value that is too long for the inside of a string"}};
    EXPECT_TRUE(cluster.AddNode(node).ok());
  }
  EXPECT_TRUE(cluster.RemoveNode(2).ok());
  for (JobId id = 1; id <= 6; ++id) {
    const std::vector<Slot> slots = {{id % 2 == 0 ? NodeId{1} : NodeId{3}, static_cast<int32_t>(id / 3), 0}};
    JobSpec job = OneGpu(id, static_cast<float>(5 + id), 1000);
    job.name = "a name that is too long for the inside of a string " + std::to_string(id);
    EXPECT_TRUE(cluster.Adopt(job, slots).ok());
  }
  EXPECT_TRUE(cluster.Release(5).ok());
  for (JobId id = 40; id <= 41; ++id)  // with job 3 as many as a device holds without an allocation
    EXPECT_TRUE(cluster.Adopt(OneGpu(id, 1, 10), std::vector<Slot>{{3, 1, 0}}).ok());
  const std::vector<Slot> over_two = {{1, 2, 0}, {1, 3, 0}, {3, 2, 1}, {3, 3, 1}};
  EXPECT_TRUE(cluster.Adopt(Gang(7, 2, 2, 20), over_two).ok());
  const std::vector<Slot> hosts = {{1, kNoDevice, 0}, {1, kNoDevice, 1}, {3, kNoDevice, 2}};
  EXPECT_TRUE(cluster.Adopt(CpuOnly(8, 3), hosts).ok());
  EXPECT_TRUE(cluster.Adopt(CpuOnly(9), std::span(hosts).first(1)).ok());
  return cluster;
}

using Change = std::function<absl::Status(Cluster&)>;

void ExpectNothingHappenedAtEveryFailure(const Change& change) {
  const Cluster start = Used();
  const std::string before = *SaveSnapshot(start);
  Cluster changed = start;
  ASSERT_TRUE(change(changed).ok());
  const std::string after = *SaveSnapshot(changed);
  ASSERT_NE(before, after);
  for (size_t at = 0;; ++at) {
    SCOPED_TRACE(at);
    Cluster cluster = start;
    absl::Status status;
    const bool failed = FailsAt(at, [&] { status = change(cluster); });
    if (!failed) {
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(*SaveSnapshot(cluster), after);
      return;
    }
    ASSERT_EQ(*SaveSnapshot(cluster), before);  // versions and the count of changes included
    ASSERT_EQ(cluster.state_hash(), start.state_hash());
    ASSERT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
    ASSERT_TRUE(change(cluster).ok());  // and it is as good as new
    ASSERT_EQ(*SaveSnapshot(cluster), after);
    ASSERT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
  }
}

TEST(FailingAllocation, AddNodeChangesNothing) {
  NodeSpec node = V100Node(9, 3);
  node.devices[1].mode = SharingMode::kMps;
  ExpectNothingHappenedAtEveryFailure([&](Cluster& cluster) { return cluster.AddNode(node); });
  node = V100Node(9, 9);  // larger than the hole
  ExpectNothingHappenedAtEveryFailure([&](Cluster& cluster) { return cluster.AddNode(node); });
}

TEST(FailingAllocation, ChangeNodeChangesNothing) {
  for (const size_t devices : {4, 6, 20}) {
    NodeSpec node = V100Node(1, devices);
    node.devices[0].max_tenants = 7;
    node.devices[3].island = 1;
    ExpectNothingHappenedAtEveryFailure([&](Cluster& cluster) { return cluster.ChangeNode(node); });
  }
}

TEST(FailingAllocation, RemoveNodeChangesNothing) {
  ExpectNothingHappenedAtEveryFailure([](Cluster& cluster) { return cluster.RemoveNode(4); });
}

TEST(FailingAllocation, SettingStatesChangesNothing) {
  ExpectNothingHappenedAtEveryFailure(
      [](Cluster& cluster) { return cluster.SetNodeState(1, AdminState::kDrained).status(); });
  ExpectNothingHappenedAtEveryFailure(
      [](Cluster& cluster) { return cluster.SetDeviceState(1, 2, AdminState::kDown).status(); });
}

TEST(FailingAllocation, AdoptChangesNothing) {
  const std::vector<Slot> slots = {{1, 0, 0}, {1, 1, 1}, {3, 1, 2}, {4, 3, 3}};
  JobSpec gang = Gang(20, 4, 1, 33);
  gang.groups = {"a", "b"};
  gang.avoid_groups = {"c"};
  gang.name = "a name that is too long for the inside of a string";
  gang.deadline_us = 5;
  ExpectNothingHappenedAtEveryFailure([&](Cluster& cluster) { return cluster.Adopt(gang, slots).status(); });
}

TEST(FailingAllocation, ReleaseChangesNothing) {
  for (const JobId id : {JobId{2}, JobId{7}, JobId{8}}) {
    ExpectNothingHappenedAtEveryFailure([&](Cluster& cluster) { return cluster.Release(id); });
  }
}

TEST(FailingAllocation, ApplyChangesNothingHoweverFarItCame) {
  const Cluster start = Used();
  std::vector<JobSpec> jobs = {Gang(30, 2, 2, 10),  OneGpu(31, 12, 700), OneGpu(32, 12, 700),
                               OneGpu(33, 70, 900), CpuOnly(34, 3),      CpuOnly(35)};
  const auto plan = MakePlacer()->MakePlan(start, jobs);
  ASSERT_EQ(plan->actions.size(), jobs.size());
  ExpectNothingHappenedAtEveryFailure([&](Cluster& cluster) { return cluster.Apply(*plan); });
}

TEST(FailingAllocation, MovingPreemptingAndResizingChangesNothingHoweverFarItCame) {
  const Cluster start = Used();
  const auto spec = [&](JobId job) { return start.Job(job)->spec; };
  const auto granted = [&](JobId job, int64_t cpu_milli, int64_t mem_mib) {
    auto is = std::make_shared<JobSpec>(*spec(job));
    GrantHost(cpu_milli, mem_mib, *is);
    return is;
  };
  Plan plan;
  plan.actions = {{ActionKind::kMigrate, spec(1), {{4, 0, 0}}},
                  {ActionKind::kPreempt, spec(4), {}},
                  {ActionKind::kPlace, std::make_shared<const JobSpec>(OneGpu(31, 12, 700)), {{1, 1, 0}}},
                  {ActionKind::kMigrate, spec(7), {{4, 1, 0}, {4, 2, 0}, {3, 2, 1}, {3, 3, 1}}},
                  {ActionKind::kMigrate, spec(8), {{4, kNoDevice, 0}, {1, kNoDevice, 1}, {3, kNoDevice, 2}}},
                  {ActionKind::kPreempt, spec(9), {}},
                  {ActionKind::kResize, granted(2, 3000, 0), {}},
                  {ActionKind::kResize, granted(3, 500, 4096), {}}};
  for (const NodeId id : start.NodeIds()) plan.seen.push_back({id, start.Node(id)->version});
  ExpectNothingHappenedAtEveryFailure([&](Cluster& cluster) { return cluster.Apply(plan); });
}

TEST(FailingAllocation, PreemptingAloneChangesNothing) {
  const Cluster start = Used();
  for (const JobId job : {4, 7, 9}) {
    Plan plan;
    plan.actions = {{ActionKind::kPreempt, start.Job(job)->spec, {}}};
    for (const NodeId id : start.NodeIds()) plan.seen.push_back({id, start.Node(id)->version});
    ExpectNothingHappenedAtEveryFailure([&](Cluster& cluster) { return cluster.Apply(plan); });
  }
}

TEST(FailingAllocation, APlacerPlansAfterwardsAsIfNothingHadBeen) {
  const Cluster cluster = Used();
  std::vector<JobSpec> jobs = {Gang(30, 2, 2, 10), OneGpu(31, 12, 700), OneGpu(32, 12, 70'000), Gang(33, 50, 1)};
  const std::vector<Decision> wanted = MakePlacer()->MakePlan(cluster, jobs)->decisions;
  for (size_t at = 0;; ++at) {
    SCOPED_TRACE(at);
    const auto placer = MakePlacer();
    const bool failed = FailsAt(at, [&] { (void)placer->MakePlan(cluster, jobs); });
    ASSERT_EQ(placer->MakePlan(cluster, jobs)->decisions, wanted);
    if (!failed) return;
  }
}

TEST(FailingAllocation, ATableOfStatesStaysAsItWas) {
  const auto class_of = [](float util) { return MakeTenantClass(OneGpu(1), OneGpu(1, util).demands[0].demand); };
  for (size_t rows = 0; rows < 40; ++rows) {  // columns that are full and others
    StateTable start;
    uint32_t last = start.InternState({.type = Type("k80"), .mem_mib = 100});
    start.Ref(last);
    uint32_t id = 0;
    for (size_t i = 0; i < rows; ++i) start.Ref(last = start.WithTenant(last, class_of(static_cast<float>(i)), id));
    for (const bool intern : {false, true}) {
      bool failed = true;
      StateTable wanted = start;
      id = intern ? wanted.HoldTenant(class_of(90)) : wanted.WithTenant(last, class_of(90), id);
      for (size_t at = 0; failed; ++at) {
        StateTable table = start;
        failed = FailsAt(
            at, [&] { id = intern ? table.HoldTenant(class_of(90)) : table.WithTenant(last, class_of(90), id); });
        if (failed) {
          ASSERT_EQ(table.live_states(), start.live_states());
          ASSERT_EQ(table.live_tenants(), start.live_tenants());
          id = intern ? table.HoldTenant(class_of(90)) : table.WithTenant(last, class_of(90), id);
        }
        ASSERT_EQ(table.live_tenants(), start.live_tenants() + 1);
        ASSERT_EQ(table.tenant_limit(), wanted.tenant_limit()) << "no row is lost";
        ASSERT_EQ(table.state_limit(), wanted.state_limit());
        // Nothing that gives back allocates.
        ASSERT_FALSE(FailsAt(0, [&] {
          if (intern) {
            table.DropTenant(id);
          } else {
            table.Ref(id);
            table.Unref(id);
          }
        }));
        ASSERT_EQ(table.live_tenants(), start.live_tenants());
        ASSERT_EQ(table.live_states(), start.live_states());
      }
    }
  }
}

TEST(FailingAllocation, NothingIsNeededToFreeStates) {
  for (int32_t count = 1; count < 40; ++count) {
    StateTable table;
    std::vector<uint32_t> ids;
    for (int32_t i = 0; i < count; ++i) {
      ids.push_back(table.InternState({.type = Type("k80"), .max_tenants = i}));
      table.Ref(ids.back());
    }
    ASSERT_FALSE(FailsAt(0, [&] {
      for (const uint32_t id : ids) table.Unref(id);
    }));
    ASSERT_EQ(table.live_states(), 0u);
  }
}

// `work` on a ledger of the cluster after `before`, with each of its allocations failing in turn.
void ExpectTheLedgerRecovers(const Cluster& cluster, const std::function<void(Ledger&)>& before,
                             const std::function<void(Ledger&)>& work) {
  const Ledger fresh(cluster);
  for (size_t at = 0;; ++at) {
    SCOPED_TRACE(at);
    Ledger ledger(cluster);
    before(ledger);
    const bool failed = FailsAt(at, [&] { work(ledger); });
    ledger.Follow(cluster);
    ASSERT_EQ(ledger.Hash(), fresh.Hash());
    ASSERT_EQ(ledger.Mark(), 0u);
    ASSERT_EQ(ledger.states().live_states(), fresh.states().live_states());
    ASSERT_EQ(ledger.owners_matter(), fresh.owners_matter());
    for (uint32_t device = 0; device < ledger.device_limit(); ++device)
      ASSERT_EQ(ledger.residents(device).size(), fresh.residents(device).size());
    ledger.Place(OneGpu(99), std::vector<PlacedSlot>{{0, 0, 0, 0}});
    ledger.UndoTo(0);  // takes back nothing of what failed
    ASSERT_EQ(ledger.Hash(), fresh.Hash());
    if (!failed) return;
  }
}

const auto nothing = [](Ledger&) {};

TEST(FailingAllocation, ALedgerThatFailedIsAsNewOnceItFollowsTheCluster) {
  const Cluster cluster = Used();
  JobSpec gang = Gang(20, 4, 1, 33);
  gang.groups = {"a"};
  gang.share = ShareWith::kSameTenant;
  const std::vector<PlacedSlot> slots = {{0, 0, 0, 0}, {0, 1, 1, 0}, {2, 0, 2, 0}, {3, 3, 3, 0}};
  ExpectTheLedgerRecovers(cluster, nothing, [&](Ledger& ledger) {
    ledger.Place(gang, slots);
    ledger.SetNodeState(0, AdminState::kDrained);
    const size_t mark = ledger.Mark();
    ledger.SetDeviceState(0, 2, AdminState::kDown);
    ledger.Resize(OneGpu(1), gang, slots);
    ledger.Remove(gang, slots);
    ledger.UndoTo(mark);
  });
}

TEST(FailingAllocation, ALedgerRecoversFromRemovalsHoweverFullItsColumnsWere) {
  const Cluster cluster = Used();
  const std::vector<PlacedSlot> shared = {{2, 1, 0, 0}};
  for (size_t before = 0; before < 40; ++before) {
    SCOPED_TRACE(before);
    const auto fill = [&](Ledger& ledger) {
      for (size_t i = 0; i < before; ++i) {
        ledger.Place(OneGpu(100 + i, 20 + static_cast<float>(i), 10), std::vector<PlacedSlot>{{3, 0, 0, 0}});
        if (i % 3 == 0) ledger.SetNodeState(0, AdminState::kUp);
      }
    };
    ExpectTheLedgerRecovers(cluster, fill, [&](Ledger& ledger) { ledger.Remove(OneGpu(40, 1, 10), shared); });
    const auto fill_and_remove = [&](Ledger& ledger) {
      fill(ledger);
      ledger.Remove(OneGpu(40, 1, 10), shared);
      ledger.SetDeviceState(0, 1, AdminState::kDown);
    };
    ExpectTheLedgerRecovers(cluster, fill_and_remove, [](Ledger& ledger) { ledger.UndoTo(0); });
  }
}

TEST(FailingAllocation, ALedgerThatFailedToFollowFollowsAgain) {
  const Cluster cluster = Used();
  Cluster later = cluster;
  ASSERT_TRUE(later.Release(7).ok());
  ASSERT_TRUE(later.Adopt(OneGpu(30, 77), std::vector<Slot>{{4, 1, 0}}).ok());
  const Ledger full(cluster);
  ExpectTheLedgerRecovers(cluster, nothing, [&](Ledger& ledger) { ledger.Follow(later); });
  ExpectTheLedgerRecovers(cluster, nothing, [&](Ledger& ledger) { ledger.FollowEmptied(full); });
  for (size_t at = 0;; ++at) {
    SCOPED_TRACE(at);
    Ledger ledger(cluster);
    const bool failed = FailsAt(at, [&] { ledger.Follow(later); });
    ledger.Follow(later);
    ASSERT_EQ(ledger.Hash(), Ledger(later).Hash());
    Ledger emptied(cluster);
    FailsAt(at, [&] { emptied.FollowEmptied(full); });
    emptied.FollowEmptied(full);
    Ledger wanted;
    wanted.FollowEmptied(full);
    ASSERT_EQ(emptied.Hash(), wanted.Hash());
    if (!failed) return;
  }
}

}  // namespace
}  // namespace horus
