// SPDX-License-Identifier: Apache-2.0
// What a ledger says, compared with a new one; who follows its log; random changes of clusters and ledgers.
//
// Enters:  clusters, ledgers, seeds.      Leaves: expectations; changes that are a function of the seed.
// Units:   as ledger.h.
// Cost:    O(cluster) a comparison.       Thread class: one thread at a time.
#ifndef HORUS_TESTS_UNIT_PLACE_LEDGER_CHANGES_H_
#define HORUS_TESTS_UNIT_PLACE_LEDGER_CHANGES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "draw.h"
#include "fixtures.h"
#include "place/state/ledger.h"

namespace horus::testing_place {

inline constexpr size_t kNodes = 3;
inline constexpr int32_t kGpus = 2;

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

inline Said SaidOf(const Ledger& ledger, uint32_t row) {
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

inline std::vector<Said> AllSaidOf(const Ledger& ledger) {
  std::vector<Said> all;
  for (const uint32_t row : ledger.order()) all.push_back(SaidOf(ledger, row));
  return all;
}

inline void ExpectAsNew(const Ledger& ledger, const Cluster& cluster) {
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
class RandomChanges {
 public:
  explicit RandomChanges(uint64_t seed) : seed_(seed * 1'000'003) {}

  size_t Pick(size_t most) { return static_cast<size_t>(Draw(seed_++) * static_cast<double>(most)); }

  JobSpec NewJob() {
    JobSpec job = Pick(4) == 0 ? CpuOnly(next_) : OneGpu(next_, 10 * static_cast<float>(1 + Pick(3)), 1000);
    if (!IsCpuOnly(job) && Pick(3) == 0) job = Gang(next_, 2, 1);
    ++next_;
    job.cpu_milli = 100 * static_cast<int64_t>(1 + Pick(4));
    job.mem_mib = 10 * static_cast<int64_t>(Pick(4));
    job.storage_mb_s = static_cast<int64_t>(Pick(4));
    job.tenant = Pick(2) == 0 ? "red" : "blue";
    if (Pick(6) != 0) job.share = ShareWith::kAnyone;
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
    for (const Slot& slot : slots)
      placed.push_back(SlotAt(static_cast<uint32_t>(slot.node - 1), slot.device, slot.task));
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

}  // namespace horus::testing_place

#endif  // HORUS_TESTS_UNIT_PLACE_LEDGER_CHANGES_H_
