// SPDX-License-Identifier: Apache-2.0
// The ledger says what a new ledger of the same cluster would say, whatever happened before, and which nodes changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "draw.h"
#include "fixtures.h"
#include "place/state/ledger.h"

namespace horus {
namespace {

using testing_place::CpuOnly;
using testing_place::Gang;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::V100Node;

constexpr size_t kNodes = 3;
constexpr int32_t kGpus = 2;

// What is said of a node, whatever the ids of states and classes and the order of residents and groups.
struct Said {
  const NodeSpec* spec = nullptr;
  NodeId id = 0;
  uint32_t first_device = 0;
  int32_t idle = 0, devices = 0;
  AdminState state = AdminState::kUp;
  HostFree free;
  std::vector<std::tuple<uint64_t, int32_t, int32_t>> groups;
  std::vector<uint64_t> digests;
  std::vector<std::vector<std::tuple<JobId, uint64_t, uint64_t>>> residents;
  friend bool operator==(const Said&, const Said&) = default;
};

Said SaidOf(const Ledger& ledger, uint32_t row) {
  const LedgerNode& node = ledger.node(row);
  Said said{.spec = node.spec.get(), .id = node.id, .first_device = node.first_device, .idle = node.idle_devices};
  said.devices = node.devices;
  said.state = node.state;
  said.free = node.free;
  for (const GroupCount& one : node.groups) said.groups.emplace_back(one.group, one.members, one.avoiders);
  std::sort(said.groups.begin(), said.groups.end());
  for (int32_t i = 0; i < node.devices; ++i) {
    const uint32_t device = node.first_device + static_cast<uint32_t>(i);
    said.digests.push_back(ledger.state(device).digest);
    auto& residents = said.residents.emplace_back();
    for (const LedgerResident& one : ledger.residents(device))
      residents.emplace_back(one.job, ledger.states().tenant(one.tenant).digest, one.owner);
    std::sort(residents.begin(), residents.end());
  }
  return said;
}

std::vector<Said> AllSaidOf(const Ledger& ledger) {
  std::vector<Said> all;
  for (const uint32_t row : ledger.order()) all.push_back(SaidOf(ledger, row));
  return all;
}

void ExpectAsNew(const Ledger& ledger, const Cluster& cluster) {
  const Ledger fresh(cluster);
  EXPECT_EQ(ledger.order(), fresh.order());
  EXPECT_EQ(ledger.node_rows(), fresh.node_rows());
  EXPECT_EQ(ledger.device_count(), fresh.device_count());
  EXPECT_EQ(ledger.device_limit(), fresh.device_limit());
  EXPECT_EQ(ledger.owners_matter(), fresh.owners_matter());
  if (ledger.Mark() == 0) {  // else the log holds on to others
    EXPECT_EQ(ledger.states().live_states(), fresh.states().live_states());
    EXPECT_EQ(ledger.states().live_tenants(), fresh.states().live_tenants());
  }
  EXPECT_EQ(ledger.Hash(), fresh.Hash());
  EXPECT_EQ(AllSaidOf(ledger), AllSaidOf(fresh));
}

// Follows a ledger by what it says has changed, and finds out when it forgets to say so.
class Follower {
 public:
  void Look(const Ledger& ledger) {
    const bool anew = generation_ != ledger.generation() || seen_ < ledger.log_begin();
    if (anew) said_.clear();
    std::map<uint32_t, std::vector<int32_t>> named;
    for (uint64_t i = anew ? ledger.log_end() : seen_; i < ledger.log_end(); ++i)
      named[ledger.touched(i).node_row].push_back(ledger.touched(i).device);
    const size_t before = said_.size();
    bool changed = anew;
    for (const uint32_t row : ledger.order()) {
      const Said now = SaidOf(ledger, row);
      const auto known = said_.find(row);
      if (known != said_.end() && !(known->second == now)) {
        changed = true;
        EXPECT_TRUE(named.contains(row)) << "node row " << row;
        ExpectDevicesNamed(known->second, now, named[row]);
      }
      said_[row] = now;
    }
    EXPECT_TRUE(before == 0 || said_.size() == before);
    if (changed && count_ != 0) {
      EXPECT_NE(ledger.changes(), changes_);
    }
    generation_ = ledger.generation();
    seen_ = ledger.log_end();
    changes_ = ledger.changes();
    ++count_;
  }

 private:
  static void ExpectDevicesNamed(const Said& was, const Said& is, const std::vector<int32_t>& named) {
    if (std::find(named.begin(), named.end(), Ledger::kManyDevices) != named.end()) return;
    for (size_t i = 0; i < is.digests.size(); ++i) {
      if (was.digests[i] == is.digests[i] && was.residents[i] == is.residents[i]) continue;
      EXPECT_NE(std::find(named.begin(), named.end(), static_cast<int32_t>(i)), named.end()) << "device " << i;
    }
  }

  std::map<uint32_t, Said> said_;
  uint64_t generation_ = 0, seen_ = 0, changes_ = 0, count_ = 0;
};

// Random changes, of a cluster alone or of a cluster and a ledger alike.
class World {
 public:
  explicit World(uint64_t seed) : seed_(seed * 1'000'003) {}

  size_t Pick(size_t most) { return static_cast<size_t>(Draw(seed_++) * static_cast<double>(most)); }

  JobSpec NewJob() {
    JobSpec job = Pick(4) == 0 ? CpuOnly(next_) : OneGpu(next_, 10 * static_cast<float>(1 + Pick(3)), 1000);
    if (!IsCpuOnly(job) && Pick(3) == 0) job = Gang(next_, 2, 1);
    ++next_;
    job.cpu_milli = 100 * static_cast<int64_t>(1 + Pick(4));
    job.mem_mib = 10 * static_cast<int64_t>(Pick(4));
    job.storage_mb_s = static_cast<int64_t>(Pick(4));
    job.tenant = Pick(2) == 0 ? "red" : "blue";
    if (Pick(6) == 0 && !IsCpuOnly(job)) job.share = ShareWith::kSameTenant;
    if (Pick(3) == 0) job.groups = {"a"};
    if (Pick(3) == 0) job.avoid_groups = {Pick(2) == 0 ? "a" : "b"};
    return job;
  }

  std::vector<Slot> NewSlots(const JobSpec& job) {
    std::vector<Slot> slots;
    const auto node = static_cast<NodeId>(1 + Pick(kNodes));
    for (int32_t task = 0; task < job.tasks; ++task) {
      if (IsCpuOnly(job)) {
        slots.push_back({node, kNoDevice, task});
      } else {
        slots.push_back({job.tasks > 1 ? static_cast<NodeId>(1 + static_cast<size_t>(task)) : node,
                         static_cast<int32_t>(Pick(kGpus)), task});
      }
    }
    return slots;
  }

  static std::vector<PlacedSlot> Placed(const std::vector<Slot>& slots) {
    std::vector<PlacedSlot> placed;
    for (const Slot& slot : slots) placed.push_back({static_cast<uint32_t>(slot.node - 1), slot.device, slot.task, 0});
    return placed;
  }

  // One change of the cluster, and of the ledger too unless it is null: then it can follow.
  void Step(Cluster& cluster, Ledger* ledger) {
    const auto node = static_cast<NodeId>(1 + Pick(kNodes));
    const auto row = static_cast<uint32_t>(node - 1);
    const auto device = static_cast<int32_t>(Pick(kGpus));
    const auto admin = static_cast<AdminState>(Pick(3));
    const size_t what = Pick(8);
    if (what == 0) {
      ASSERT_TRUE(cluster.SetNodeState(node, admin).ok());
      if (ledger != nullptr) ledger->SetNodeState(row, admin);
    } else if (what == 1) {
      ASSERT_TRUE(cluster.SetDeviceState(node, device, admin).ok());
      if (ledger != nullptr) ledger->SetDeviceState(row, device, admin);
    } else if (what <= 4 && !jobs_.empty()) {
      auto at = jobs_.begin();
      std::advance(at, static_cast<ptrdiff_t>(Pick(jobs_.size())));
      const auto [job, slots] = at->second;
      ASSERT_TRUE(cluster.Release(job.id).ok());
      jobs_.erase(at);
      if (what == 4) {  // comes back at once and holds other amounts
        JobSpec other = job;
        other.cpu_milli += 50;
        other.mem_mib = 5;
        ASSERT_TRUE(cluster.Adopt(other, slots).ok());
        jobs_[job.id] = {other, slots};
        if (ledger != nullptr) ledger->Resize(job, other, Placed(slots));
      } else if (ledger != nullptr) {
        ledger->Remove(job, Placed(slots));
      }
    } else {
      const JobSpec job = NewJob();
      const std::vector<Slot> slots = NewSlots(job);
      const auto adopted = cluster.Adopt(job, slots);
      ASSERT_TRUE(adopted.ok()) << adopted.status();
      jobs_[job.id] = {job, slots};
      if (ledger != nullptr) ledger->Place(job, Placed(slots));
    }
  }

 private:
  uint64_t seed_;
  JobId next_ = 1;
  std::map<JobId, std::pair<JobSpec, std::vector<Slot>>> jobs_;
};

TEST(LedgerFollow, AFollowerIsAsNewAfterEveryChange) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    World world(seed);
    Cluster cluster = Nodes(kNodes, kGpus);
    Ledger ledger(cluster);
    const uint64_t generation = ledger.generation();
    Follower follower;
    follower.Look(ledger);
    for (int i = 0; i < 60; ++i) {
      for (size_t changes = world.Pick(3); changes > 0; --changes) world.Step(cluster, nullptr);
      ledger.Follow(cluster);
      ASSERT_NO_FATAL_FAILURE(ExpectAsNew(ledger, cluster));
      follower.Look(ledger);
      if (HasFailure()) return;
    }
    EXPECT_EQ(ledger.generation(), generation) << "followed change by change";
  }
}

TEST(LedgerFollow, WhatIsTriedOutIsAsIfTheClusterHadChanged) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    World world(seed);
    Cluster cluster = Nodes(kNodes, kGpus);
    for (int i = 0; i < 15; ++i) world.Step(cluster, nullptr);
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
      world.Step(tried, &ledger);
      ExpectAsNew(ledger, tried);
      follower.Look(ledger);
      if (HasFailure()) return;
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
  World world(1);
  Cluster cluster = Nodes(kNodes, kGpus);
  for (int i = 0; i < 15; ++i) world.Step(cluster, nullptr);
  Ledger ledger(cluster);
  Cluster tried = cluster;
  for (int i = 0; i < 10; ++i) world.Step(tried, &ledger);
  ledger.Follow(cluster);
  ExpectAsNew(ledger, cluster);
  EXPECT_EQ(ledger.Mark(), 0u);
}

TEST(LedgerFollow, EveryTryIsTakenBackWithoutStartingAnew) {
  World world(4);
  Cluster cluster = Nodes(kNodes, kGpus);
  for (int i = 0; i < 10; ++i) world.Step(cluster, nullptr);
  Ledger ledger(cluster);
  const uint64_t generation = ledger.generation();
  for (int i = 0; i < 60; ++i) {
    World other = world;
    Cluster tried = cluster;
    for (int skipped = 0; skipped < i; ++skipped) static_cast<void>(other.Pick(1));
    const uint64_t changes = ledger.changes();
    other.Step(tried, &ledger);
    EXPECT_GT(ledger.changes(), changes);
    ledger.Follow(cluster);
    ExpectAsNew(ledger, cluster);
    EXPECT_EQ(ledger.generation(), generation);
    if (HasFailure()) return;
  }
}

TEST(LedgerFollow, GoesFromOneClusterToAnother) {
  World world(2);
  Cluster large = Nodes(kNodes, kGpus);
  for (int i = 0; i < 25; ++i) world.Step(large, nullptr);
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
  World world(3);
  const Cluster empty = Nodes(kNodes, kGpus);
  Cluster cluster = empty;
  for (int i = 0; i < 25; ++i) world.Step(cluster, nullptr);
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
