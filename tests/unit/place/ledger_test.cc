// SPDX-License-Identifier: Apache-2.0
// Rules of the what-if overlay.
#include "place/state/ledger.h"

#include <gtest/gtest.h>

#include <vector>

#include "fixtures.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing_place::Gang;
using testing_place::Nodes;
using testing_place::OneGpu;

TEST(Ledger, UndoRestoresExactlyWhatWas) {
  Cluster cluster = Nodes(2);
  ASSERT_TRUE(cluster.Adopt(OneGpu(1), std::vector<Slot>{{1, 0, 0}}).ok());
  Ledger ledger(cluster);
  const uint64_t before = ledger.Hash();
  const size_t mark = ledger.Mark();
  JobSpec job = Gang(2, 2, 1);
  job.cpu_milli = 1000;
  const std::vector<PlacedSlot> slots = {{0, 0, 0, 0}, {1, 1, 1, 0}};
  ledger.Place(job, slots);
  const uint64_t placed = ledger.Hash();
  EXPECT_NE(placed, before);
  EXPECT_EQ(ledger.node(0).free.cpu_milli, 31'000);
  EXPECT_EQ(ledger.node(1).idle_devices, 1);
  ledger.UndoTo(mark);
  EXPECT_EQ(ledger.Hash(), before);
  ledger.Place(job, slots);
  EXPECT_EQ(ledger.Hash(), placed);
}

TEST(Ledger, UndoBringsBackWhoWasRemovedAmongThosePlacedSince) {
  Cluster cluster = Nodes(1, 1);
  ASSERT_TRUE(cluster.Adopt(OneGpu(1, 10), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(2, 20), std::vector<Slot>{{1, 0, 0}}).ok());
  Ledger ledger(cluster);
  const std::vector<PlacedSlot> slots = {{0, 0, 0, 0}};
  const std::vector<LedgerResident> residents(ledger.residents(0).begin(), ledger.residents(0).end());
  const uint64_t before = ledger.Hash();
  ledger.Place(OneGpu(3, 30), slots);
  const size_t mark = ledger.Mark();
  ledger.Remove(OneGpu(1, 10), slots);
  ledger.Remove(OneGpu(3, 30), slots);
  ledger.Remove(OneGpu(2, 20), slots);
  EXPECT_EQ(ledger.node(0).idle_devices, 1);
  ledger.Place(OneGpu(4, 40), slots);
  ledger.SetNodeState(0, AdminState::kDrained);
  ledger.SetDeviceState(0, 0, AdminState::kDown);
  EXPECT_EQ(ledger.state(0).state, AdminState::kDown);
  ledger.UndoTo(mark);
  EXPECT_EQ(ledger.node(0).state, AdminState::kUp);
  EXPECT_EQ(ledger.residents(0).back().job, 3u);
  ledger.UndoTo(0);
  EXPECT_EQ(ledger.Hash(), before);
  EXPECT_EQ(std::vector<LedgerResident>(ledger.residents(0).begin(), ledger.residents(0).end()), residents);
}

TEST(Ledger, LeavesTheClusterAlone) {
  Cluster cluster = Nodes(1);
  const uint64_t before = cluster.state_hash();
  Ledger ledger(cluster);
  ledger.Place(OneGpu(2), std::vector<PlacedSlot>{{0, 0, 0, 0}});
  EXPECT_EQ(cluster.state_hash(), before);
  EXPECT_TRUE(CheckInvariants(cluster).ok());
}

TEST(Ledger, EmptiedHasNoJobsAndEverythingUp) {
  Cluster cluster = Nodes(1);
  const uint64_t empty = Ledger(cluster).Hash();
  ASSERT_TRUE(cluster.Adopt(OneGpu(1), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(cluster.SetDeviceState(1, 1, AdminState::kDown).ok());
  ASSERT_TRUE(cluster.SetNodeState(1, AdminState::kDown).ok());
  const Ledger full(cluster);
  Ledger ledger;
  ledger.FollowEmptied(full);
  EXPECT_EQ(ledger.Hash(), empty);
  EXPECT_EQ(ledger.node(0).state, AdminState::kUp);
}

}  // namespace
}  // namespace horus
