// SPDX-License-Identifier: Apache-2.0
// Whatever is done to a cluster in whatever order, its promises hold.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "interference/registry.h"
#include "place/placer.h"
#include "place/policies/policies.h"
#include "place/state/cluster.h"
#include "place/state/groups.h"
#include "place/state/snapshot.h"
#include "random_cluster.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing_property::MaybeInTwoWays;
using testing_property::MaybeSensitive;
using testing_property::Policies;
using testing_property::Random;
using testing_property::RandomJob;
using testing_property::RandomNode;

constexpr NodeId kNodeIds = 12;  // few, so that adding and removing meet
constexpr JobId kJobIds = 200;
constexpr uint64_t kSnapshotEvery = 500;

std::unique_ptr<Placer> MakePlacer(std::string_view policy, bool exhaustive = false,
                                   std::string_view model = "utilisation") {
  return *Placer::Create(*MakeInterferenceModel(model), *MakePolicy(policy, {.seed = 7}), {.exhaustive = exhaustive});
}

Cluster Restored(const Cluster& cluster) {
  const std::string bytes = *SaveSnapshot(cluster);
  auto restored =
      RestoreSnapshot({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, cluster.shared_catalogue());
  EXPECT_TRUE(restored.ok()) << restored.status();
  return *std::move(restored);
}

// Nobody is beside somebody who does not want him there.
void ExpectKeptApart(const Cluster& cluster, std::span<const JobId> together, bool on_device) {
  for (const JobId a : together) {
    const auto one = cluster.Job(a)->spec;
    for (const JobId b : together) {
      if (a == b) continue;
      const auto other = cluster.Job(b)->spec;
      if (on_device && one->share == ShareWith::kSameTenant) {
        ASSERT_EQ(one->tenant, other->tenant) << a << " beside " << b;
      }
      for (const std::string& avoided : one->avoid_groups) {
        ASSERT_EQ(std::count(other->groups.begin(), other->groups.end(), avoided), 0) << a << " beside " << b;
      }
    }
  }
}

void ExpectWithinCapacity(const Cluster& cluster) {
  for (const NodeId id : cluster.NodeIds()) {
    const NodeInfo node = *cluster.Node(id);
    ExpectKeptApart(cluster, node.jobs, false);
    ASSERT_GE(std::min({node.cpu_free_milli, node.mem_free_mib, node.storage_free_mb_s}), 0) << "node " << id;
    for (size_t i = 0; i < node.spec.devices.size(); ++i) {
      const DeviceInfo device = *cluster.Device(id, static_cast<int32_t>(i));
      ASSERT_LE(device.mem_used_upper_mib, device.spec.mem_mib) << "node " << id << " device " << i;
      ASSERT_LE(device.milli_used, kMilliPerGpu);
      const size_t most = device.spec.mode == SharingMode::kExclusive ? 1 : 4;
      ASSERT_LE(device.residents.size(), most);
      std::vector<JobId> jobs;
      for (const Resident& resident : device.residents) jobs.push_back(resident.job);
      ExpectKeptApart(cluster, jobs, true);
    }
  }
}

// Applies random operations; keeps beside the cluster what must be in it.
class Churn {
 public:
  explicit Churn(uint64_t seed) : random_(seed), cluster_(Catalogue::Default()) {
    for (const std::string_view policy : Policies()) {
      placers_.push_back(MakePlacer(policy));
      exhaustive_.push_back(MakePlacer(policy, true));
    }
    // One that puts the unknown alone, and lends limits.
    PlacerOptions options{.mem_overcommit = 1.5, .probe_outside = true, .gpu_price = 0.25};
    for (const bool exhaustive : {false, true}) {
      options.exhaustive = exhaustive;
      (exhaustive ? exhaustive_ : placers_)
          .push_back(*Placer::Create(std::make_shared<UtilisationModel>(), *MakePolicy("horus"), options));
    }
    // One whose slowdowns add up: pairs are kept then, and most devices passed over unpriced.
    placers_.push_back(MakePlacer("horus", false, "boosted"));
    exhaustive_.push_back(MakePlacer("horus", true, "boosted"));
  }

  void Step() {
    switch (random_.Below(12)) {
      case 0:
        AddOrRemoveNode();
        break;
      case 1:
        SetStates();
        break;
      case 2:
        ChangeNode();
        break;
      case 3:
        Adopt();
        break;
      case 4:
        ConflictingPlan();
        break;
      case 5:
      case 6:
      case 7:
        Release();
        break;
      default:
        PlaceSome();
        break;
    }
    const absl::Status status = CheckInvariants(cluster_);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(cluster_.JobIds(), std::vector<JobId>(jobs_.begin(), jobs_.end()));
    if (++steps_ % 8 == 0) ExpectWithinCapacity(cluster_);
    if (steps_ % kSnapshotEvery == 0) SaveAndRestore();
  }

  [[nodiscard]] uint64_t placed() const { return placed_; }
  [[nodiscard]] uint64_t spanning() const { return spanning_; }
  [[nodiscard]] uint64_t placed_by(size_t policy) { return placed_by_[policy]; }

 private:
  NodeId AnyNode() { return random_.Below(kNodeIds); }

  std::vector<JobSpec> SomeJobs(uint64_t most) {
    std::set<JobId> ids;
    while (ids.size() < 1 + random_.Below(most)) {
      if (const JobId id = random_.Below(kJobIds); !jobs_.contains(id)) ids.insert(id);
    }
    std::vector<JobSpec> jobs;
    for (const JobId id : ids) jobs.push_back(MaybeInTwoWays(random_, MaybeSensitive(random_, RandomJob(random_, id))));
    return jobs;
  }

  void AddOrRemoveNode() {
    const NodeId id = AnyNode();
    if (!cluster_.HasNode(id)) {
      ASSERT_TRUE(cluster_.AddNode(RandomNode(random_, id)).ok());
      return;
    }
    const uint64_t before = cluster_.state_hash();
    const bool empty = cluster_.Node(id)->jobs.empty();
    ASSERT_EQ(cluster_.RemoveNode(id).ok(), empty);
    if (!empty) {
      ASSERT_EQ(cluster_.state_hash(), before);
    }
  }

  void SetStates() {
    const NodeId id = AnyNode();
    // Mostly up, or nothing would run for long.
    const auto state = static_cast<AdminState>(random_.OneIn(2) ? 0 : random_.Below(3));
    const auto reported = random_.OneIn(2) ? cluster_.SetNodeState(id, state) : cluster_.SetDeviceState(id, 0, state);
    ASSERT_EQ(reported.ok(), cluster_.HasNode(id));
    if (reported.ok()) {
      for (const JobId job : *reported) ASSERT_TRUE(jobs_.contains(job));
    }
  }

  void ChangeNode() {
    const NodeId id = AnyNode();
    if (!cluster_.HasNode(id)) return;
    NodeSpec node = random_.OneIn(3) ? RandomNode(random_, id) : cluster_.Node(id)->spec;
    if (random_.OneIn(2)) node.cpu_milli += 1000;
    if (random_.OneIn(4) && node.devices.front().mode != SharingMode::kMig)
      node.devices.push_back(node.devices.front());
    const uint64_t before = cluster_.state_hash();
    if (!cluster_.ChangeNode(node).ok()) {
      ASSERT_EQ(cluster_.state_hash(), before);
    }
  }

  void Adopt() {
    JobSpec job = SomeJobs(1).front();
    job.tasks = 1;
    job.gpus_per_task = std::min(job.gpus_per_task, 1);
    const uint64_t before = cluster_.state_hash();
    const int32_t device = IsCpuOnly(job) ? kNoDevice : static_cast<int32_t>(random_.Below(4));
    const std::vector<Slot> slots = {{AnyNode(), device, 0}};
    const auto adopted = cluster_.Adopt(job, slots);
    if (!adopted.ok()) {
      ASSERT_EQ(cluster_.state_hash(), before);
    } else if (adopted->over_committed ||
               (!IsCpuOnly(job) && cluster_.Device(slots[0].node, device)->residents.size() > 4)) {
      ASSERT_TRUE(cluster_.Release(job.id).ok());  // else "within capacity" would not hold
      ASSERT_EQ(cluster_.state_hash(), before);
    } else {
      jobs_.insert(job.id);
    }
  }

  void Release() {
    for (uint64_t i = random_.Below(40); i > 0; --i) {  // now and then many, so that gangs find room
      const JobId id = random_.Below(kJobIds);
      ASSERT_EQ(cluster_.Release(id).ok(), jobs_.erase(id) == 1);
    }
  }

  void ConflictingPlan() {
    const std::vector<JobSpec> jobs = SomeJobs(3);
    const auto plan = placers_[0]->MakePlan(cluster_, jobs);
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (plan->seen.empty()) return;
    const NodeId touched = plan->seen[random_.Below(plan->seen.size())].node;
    const AdminState was = cluster_.Node(touched)->state;
    ASSERT_TRUE(cluster_.SetNodeState(touched, AdminState::kDrained).ok());
    ASSERT_TRUE(cluster_.SetNodeState(touched, was).ok());
    const uint64_t before = cluster_.state_hash();
    if (was == AdminState::kUp) {
      ASSERT_EQ(cluster_.Apply(*plan).code(), absl::StatusCode::kAborted);
    }
    ASSERT_EQ(cluster_.state_hash(), before);
  }

  void PlaceSome() {
    const size_t policy = random_.Below(placers_.size());
    std::vector<JobSpec> jobs = SomeJobs(4);
    const uint64_t before = cluster_.state_hash();
    const auto plan = placers_[policy]->MakePlan(cluster_, jobs);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(cluster_.state_hash(), before) << "planning changed the cluster";
    std::rotate(jobs.begin(), jobs.begin() + static_cast<ptrdiff_t>(random_.Below(jobs.size())), jobs.end());
    const auto again = exhaustive_[policy]->MakePlan(cluster_, jobs);
    ASSERT_EQ(plan->decisions, again->decisions) << "exhaustive scan or another job order decided otherwise";
    const absl::Status applied = cluster_.Apply(*plan);
    ASSERT_TRUE(applied.ok()) << applied;
    for (const Action& action : plan->actions) jobs_.insert(action.job->id);
    placed_by_[policy] += plan->actions.size() - plan->moves.size();  // without resizes
    placed_ += plan->actions.size() - plan->moves.size();
    for (const Decision& decision : plan->decisions) spanning_ += decision.spans_nodes ? 1 : 0;
  }

  void SaveAndRestore() {
    Cluster restored = Restored(cluster_);
    ASSERT_EQ(restored.state_hash(), cluster_.state_hash());
    const std::vector<JobSpec> jobs = SomeJobs(6);
    const auto here = placers_[0]->MakePlan(cluster_, jobs);
    const auto there = MakePlacer("horus")->MakePlan(restored, jobs);
    ASSERT_EQ(here->decisions, there->decisions);
    ASSERT_EQ(here->seen, there->seen);
    cluster_ = std::move(restored);  // the restored one must serve as well as the original
  }

  Random random_;
  Cluster cluster_;
  std::vector<std::unique_ptr<Placer>> placers_;
  std::vector<std::unique_ptr<Placer>> exhaustive_;
  std::set<JobId> jobs_;
  uint64_t steps_ = 0;
  uint64_t placed_ = 0;
  uint64_t spanning_ = 0;
  std::map<size_t, uint64_t> placed_by_;
};

TEST(PlaceProperty, PromisesHoldUnderRandomOperations) {
  constexpr uint64_t kSeeds = 4;
  uint64_t placed = 0;
  uint64_t spanning = 0;
  std::vector<uint64_t> placed_by(Policies().size());
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Churn churn(seed);
    for (uint64_t i = 0; i < HORUS_PROPERTY_OPS / kSeeds; ++i) {
      SCOPED_TRACE(i);
      churn.Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    placed += churn.placed();
    spanning += churn.spanning();
    for (size_t i = 0; i < placed_by.size(); ++i) placed_by[i] += churn.placed_by(i);
  }
  // The walk must do what it is there to test.
  EXPECT_GT(placed, HORUS_PROPERTY_OPS / 10);
  EXPECT_GT(spanning, HORUS_PROPERTY_OPS / 1000);
  for (size_t i = 0; i < placed_by.size(); ++i) EXPECT_GT(placed_by[i], 0u) << Policies()[i];
}

TEST(PlaceProperty, ASmallMemoDecidesAsALargeOne) {
  Random random(9);
  Cluster cluster(Catalogue::Default());
  for (NodeId id = 0; id < 20; ++id) ASSERT_TRUE(cluster.AddNode(RandomNode(random, id)).ok());
  std::vector<JobSpec> jobs;
  for (JobId id = 0; id < 200; ++id) jobs.push_back(RandomJob(random, id));
  for (const char* model : {"utilisation", "horus"}) {  // that add loads, and pairs
    const auto decide = [&](const PlacerOptions& options) {
      auto placer = Placer::Create(*MakeInterferenceModel(model), *MakePolicy("horus"), options);
      return (*placer)->MakePlan(cluster, jobs)->decisions;
    };
    const auto large = decide({});
    for (const uint64_t bytes : {0, 2000, 20'000, 50'000}) EXPECT_EQ(decide({.cache_bytes = bytes}), large);
  }
}

TEST(PlaceProperty, CachesTogetherHoldWhatTheyMay) {
  Random random(10);
  Cluster cluster(Catalogue::Default());
  for (NodeId id = 0; id < 20; ++id) ASSERT_TRUE(cluster.AddNode(RandomNode(random, id)).ok());
  std::vector<JobSpec> jobs;
  for (JobId id = 0; id < 4000; ++id) jobs.push_back(RandomJob(random, id));
  const auto most_held = [&](uint64_t bytes) {
    auto placer = Placer::Create(std::make_shared<UtilisationModel>(), *MakePolicy("horus"), {.cache_bytes = bytes});
    uint64_t most = 0;
    for (const JobSpec& job : jobs) {
      EXPECT_TRUE((*placer)->MakePlan(cluster, {&job, 1}).ok());
      most = std::max(most, (*placer)->bytes_held());
    }
    return most;
  };
  const uint64_t without = most_held(0);
  for (const uint64_t bytes : {100'000, 200'000, 400'000}) {
    const uint64_t caches = most_held(bytes) - without;
    EXPECT_LE(caches, bytes);
    EXPECT_GT(caches, bytes / 3) << "room that is not used";
  }
}

}  // namespace
}  // namespace horus
