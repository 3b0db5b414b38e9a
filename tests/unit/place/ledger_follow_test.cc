// SPDX-License-Identifier: Apache-2.0
// The ledger says what a new ledger of the same cluster would say, whatever happened before, and which nodes changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ledger_changes.h"

namespace horus {
namespace {

using testing_place::AllSaidOf;
using testing_place::ExpectAsNew;
using testing_place::Follower;
using testing_place::kGpus;
using testing_place::kNodes;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::RandomChanges;
using testing_place::V100Node;

TEST(LedgerFollow, AFollowerIsAsNewAfterEveryChange) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    RandomChanges random(seed);
    Cluster cluster = Nodes(kNodes, kGpus);
    Ledger ledger(cluster);
    const uint64_t generation = ledger.generation();
    Follower follower;
    follower.Look(ledger);
    for (int i = 0; i < 60; ++i) {
      for (size_t changes = random.Pick(3); changes > 0; --changes) random.Step(cluster, nullptr);
      ledger.Follow(cluster);
      ASSERT_NO_FATAL_FAILURE(ExpectAsNew(ledger, cluster));
      follower.Look(ledger);
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(ledger.generation(), generation) << "followed change by change";
  }
}

TEST(LedgerFollow, WhatIsTriedOutIsAsIfTheClusterHadChanged) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    RandomChanges random(seed);
    Cluster cluster = Nodes(kNodes, kGpus);
    for (int i = 0; i < 15; ++i) random.Step(cluster, nullptr);
    Ledger ledger(cluster);
    Follower follower;
    follower.Look(ledger);
    Cluster tried = cluster;
    const Cluster before = cluster;
    Cluster between = cluster;
    size_t mark = 0;
    uint64_t hash = 0;
    for (int i = 0; i < 30; ++i) {
      if (i == 12) {
        mark = ledger.Mark();
        hash = ledger.Hash();
        between = tried;
      }
      random.Step(tried, &ledger);
      ExpectAsNew(ledger, tried);
      follower.Look(ledger);
      if (testing::Test::HasFailure()) return;
    }
    ledger.UndoTo(mark);
    EXPECT_EQ(ledger.Hash(), hash);
    ExpectAsNew(ledger, between);
    follower.Look(ledger);
    ledger.UndoTo(0);
    ExpectAsNew(ledger, before);
    follower.Look(ledger);
    const uint64_t changes = ledger.changes();
    ledger.UndoTo(0);
    ledger.Follow(cluster);
    EXPECT_EQ(ledger.changes(), changes) << "nothing to take back and nothing to follow";
    ExpectAsNew(ledger, cluster);
  }
}

TEST(LedgerFollow, TriesAreTakenBackBeforeTheClusterIsFollowed) {
  RandomChanges random(1);
  Cluster cluster = Nodes(kNodes, kGpus);
  for (int i = 0; i < 15; ++i) random.Step(cluster, nullptr);
  Ledger ledger(cluster);
  Cluster tried = cluster;
  for (int i = 0; i < 10; ++i) random.Step(tried, &ledger);
  ledger.Follow(cluster);
  ExpectAsNew(ledger, cluster);
  EXPECT_EQ(ledger.Mark(), 0u);
}

TEST(LedgerFollow, EveryTryIsTakenBackWithoutStartingAnew) {
  RandomChanges random(4);
  Cluster cluster = Nodes(kNodes, kGpus);
  for (int i = 0; i < 10; ++i) random.Step(cluster, nullptr);
  Ledger ledger(cluster);
  const uint64_t generation = ledger.generation();
  for (int i = 0; i < 60; ++i) {
    RandomChanges other = random;
    Cluster tried = cluster;
    for (int skipped = 0; skipped < i; ++skipped) static_cast<void>(other.Pick(1));
    const uint64_t changes = ledger.changes();
    other.Step(tried, &ledger);
    EXPECT_GT(ledger.changes(), changes);
    ledger.Follow(cluster);
    ExpectAsNew(ledger, cluster);
    EXPECT_EQ(ledger.generation(), generation);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(LedgerFollow, GoesFromOneClusterToAnother) {
  RandomChanges random(2);
  Cluster large = Nodes(kNodes, kGpus);
  for (int i = 0; i < 25; ++i) random.Step(large, nullptr);
  Cluster small = Nodes(1, 1);
  ASSERT_TRUE(small.Adopt(OneGpu(1000), std::vector<Slot>{{1, 0, 0}}).ok());
  Ledger ledger;
  for (const Cluster* cluster : {&large, &small, &large}) {
    const uint64_t generation = ledger.generation();
    const uint64_t changes = ledger.changes();
    ledger.Follow(*cluster);
    ExpectAsNew(ledger, *cluster);
    EXPECT_GT(ledger.generation(), generation);
    EXPECT_GT(ledger.changes(), changes);
  }
}

TEST(LedgerFollow, TellsCopiesApartThatWentDifferentWays) {
  Cluster one = Nodes(kNodes, kGpus);
  Cluster other = one;
  ASSERT_TRUE(one.Adopt(OneGpu(1), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(other.Adopt(OneGpu(1), std::vector<Slot>{{2, 1, 0}}).ok());
  Ledger ledger(one);
  ledger.Follow(other);
  ExpectAsNew(ledger, other);
}

TEST(LedgerFollow, SeesNodesComeAndGo) {
  Cluster cluster = Nodes(kNodes, kGpus);
  Ledger ledger(cluster);
  ASSERT_TRUE(cluster.AddNode(V100Node(9, 4)).ok());
  ledger.Follow(cluster);
  ExpectAsNew(ledger, cluster);
  ASSERT_TRUE(cluster.RemoveNode(2).ok());
  ledger.Follow(cluster);
  ExpectAsNew(ledger, cluster);
}

TEST(LedgerFollow, AnEmptiedLedgerIsThatOfTheClusterWithoutJobsAndIsLeftForTheWhole) {
  RandomChanges random(3);
  const Cluster empty = Nodes(kNodes, kGpus);
  Cluster cluster = empty;
  for (int i = 0; i < 25; ++i) random.Step(cluster, nullptr);
  const Ledger full(cluster);
  Ledger ledger(cluster);
  const uint64_t followed = ledger.changes();
  ledger.FollowEmptied(full);
  EXPECT_GT(ledger.changes(), followed);
  const Ledger fresh(empty);
  EXPECT_EQ(ledger.Hash(), fresh.Hash());
  EXPECT_FALSE(ledger.owners_matter());
  EXPECT_EQ(ledger.states().live_states(), 1u);
  for (const uint32_t row : ledger.order()) {
    EXPECT_EQ(ledger.node(row).idle_devices, kGpus);
    EXPECT_EQ(ledger.node(row).id, row + 1);
    EXPECT_EQ(ledger.node(row).devices, kGpus);
  }
  const uint64_t changes = ledger.changes();
  ledger.Place(OneGpu(1), std::vector<PlacedSlot>{{0, 0, 0, 0}});
  ledger.FollowEmptied(full);
  EXPECT_EQ(ledger.Hash(), fresh.Hash());
  EXPECT_EQ(ledger.Mark(), 0u);
  const uint64_t after = ledger.changes();
  EXPECT_GT(after, changes);
  ledger.FollowEmptied(full);
  EXPECT_EQ(ledger.changes(), after) << "is it already";
  ledger.Follow(cluster);
  ExpectAsNew(ledger, cluster);
}

TEST(LedgerFollow, AnEmptiedLedgerIsMadeOnceAndSeesDevicesThatDiffer) {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = V100Node(1, 4);
  node.devices[1].max_tenants = node.devices[2].max_tenants = 7;
  ASSERT_TRUE(cluster.AddNode(node).ok());
  const Ledger full(cluster);
  Ledger ledger;
  const uint64_t changes = ledger.changes();
  ledger.FollowEmptied(full);
  EXPECT_GT(ledger.changes(), changes);
  EXPECT_EQ(ledger.Hash(), full.Hash());
  const uint64_t generation = ledger.generation();
  ledger.FollowEmptied(full);
  EXPECT_EQ(ledger.generation(), generation);
  ledger.Follow(cluster);
  const uint64_t whole = ledger.generation();
  EXPECT_GT(whole, generation);
  ASSERT_TRUE(cluster.Adopt(OneGpu(1), std::vector<Slot>{{1, 0, 0}}).ok());
  ledger.Follow(cluster);
  EXPECT_EQ(ledger.generation(), whole) << "is no emptied one any more";
  ExpectAsNew(ledger, cluster);
}

TEST(LedgerFollow, ADeviceThatIsUpAgainByUndoIsNamed) {
  const Cluster cluster = Nodes(1, 2);
  Ledger ledger(cluster);
  Follower follower;
  follower.Look(ledger);
  ledger.SetDeviceState(0, 1, AdminState::kDown);
  follower.Look(ledger);
  ledger.UndoTo(0);
  follower.Look(ledger);
}

TEST(LedgerFollow, SlotsThatAreTwiceThereOrNotHeldArePassedOver) {
  Cluster cluster = Nodes(1, 2);
  ASSERT_TRUE(cluster.Adopt(OneGpu(1), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(2), std::vector<Slot>{{1, 1, 0}}).ok());
  Ledger ledger(cluster);
  ledger.Remove(OneGpu(1), std::vector<PlacedSlot>{{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 1, 0, 0}});
  ASSERT_TRUE(cluster.Release(1).ok());
  const Ledger fresh(cluster);
  EXPECT_EQ(AllSaidOf(ledger), AllSaidOf(fresh));
}

TEST(LedgerFollow, TheHashTellsGroupsAndDevicesApart) {
  const auto hash = [](const std::function<void(Cluster&)>& change) {
    Cluster cluster = Nodes(1, 2);
    change(cluster);
    return Ledger(cluster).Hash();
  };
  const auto with = [&](std::vector<std::vector<std::string>> groups, std::vector<std::vector<std::string>> avoids) {
    return hash([&](Cluster& cluster) {
      for (JobId id = 1; id <= groups.size(); ++id) {
        JobSpec job = OneGpu(id);
        job.groups = groups[id - 1];
        job.avoid_groups = avoids[id - 1];
        ASSERT_TRUE(cluster.Adopt(job, std::vector<Slot>{{1, 0, 0}}).ok());
      }
    });
  };
  const std::vector<uint64_t> all = {
      hash([](Cluster&) {}),
      hash([](Cluster& cluster) { ASSERT_TRUE(cluster.SetDeviceState(1, 0, AdminState::kDown).ok()); }),
      hash([](Cluster& cluster) { ASSERT_TRUE(cluster.SetDeviceState(1, 1, AdminState::kDown).ok()); }),
      with({{}, {}}, {{}, {}}),
      with({{"a"}, {}}, {{}, {}}),
      with({{"b"}, {}}, {{}, {}}),
      with({{"a", "b"}, {}}, {{}, {}}),
      with({{"a"}, {"a"}}, {{}, {}}),
      with({{}, {}}, {{"a"}, {}}),
      with({{}, {}}, {{"a"}, {"a"}}),
      with({{"a"}, {}}, {{}, {"a"}}),
      with({{"a"}, {"a"}}, {{"a"}, {}}),
  };
  EXPECT_EQ(std::set<uint64_t>(all.begin(), all.end()).size(), all.size());
  EXPECT_EQ(with({{"a"}, {"b"}}, {{}, {}}), with({{"b"}, {"a"}}, {{}, {}})) << "they are in no order";
}

TEST(LedgerFollow, ALargeClusterIsHeldMoreChanges) {
  Cluster cluster = Nodes(300, 1);
  Ledger ledger(cluster);
  uint64_t held = 0;
  for (int i = 0; i < 10'000; ++i) {
    ledger.SetNodeState(0, AdminState::kUp);
    held = std::max(held, ledger.log_end() - ledger.log_begin());
  }
  EXPECT_EQ(held, 300u * 16);
}

TEST(LedgerFollow, TheBytesHeldGrowWithWhatIsHeld) {
  const auto bytes = [](size_t nodes) {
    Cluster cluster = Nodes(nodes, 8);
    return Ledger(cluster).bytes_held();
  };
  const uint64_t least = 400 * (sizeof(LedgerNode) + 8 * 2 * sizeof(uint32_t));
  EXPECT_GE(bytes(500), bytes(100) + least);
  EXPECT_LE(bytes(500), 8 * least);
}

TEST(LedgerFollow, WhoLooksSeldomIsToldToStartAnew) {
  Cluster cluster = Nodes(1, 1);
  Ledger ledger(cluster);
  const uint64_t seen = ledger.log_end();
  Follower follower;
  follower.Look(ledger);
  uint64_t held = 0;
  for (int i = 0; i < 10'000; ++i) {
    ledger.SetNodeState(0, i % 2 == 0 ? AdminState::kDrained : AdminState::kUp);
    ASSERT_EQ(ledger.touched(ledger.log_end() - 1).node_row, 0u);
    held = std::max(held, ledger.log_end() - ledger.log_begin());
  }
  EXPECT_EQ(ledger.log_end() - seen, 10'000u);
  EXPECT_EQ(held, 4096u);
  EXPECT_GT(ledger.log_begin(), seen);
  EXPECT_GE(ledger.log_end() - ledger.log_begin(), 2048u);
  follower.Look(ledger);
}

}  // namespace
}  // namespace horus
