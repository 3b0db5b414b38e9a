// SPDX-License-Identifier: Apache-2.0
// What a cluster holds of its jobs: what they ask for once, and what is their own of each.
#include "place/state/requests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fixtures.h"
#include "place/state/snapshot.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing_place::Needs;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::Type;
using testing_place::V100Node;

JobSpec Full(JobId id) {
  JobSpec job = OneGpu(id, 30, 1000);
  job.name = "a name that does not fit inside of a string " + std::to_string(id);
  job.tenant = "team";
  job.submit_us = 1000 + static_cast<int64_t>(id);
  job.deadline_us = 9000 + static_cast<int64_t>(id);
  job.node_selector = {{"zone", "a"}};
  job.groups = {"web"};
  job.avoid_groups = {"batch"};
  return job;
}

TEST(Requests, AreTheSameForJobsThatDifferInWhatIsTheirOwn) {
  RequestTable table;
  const uint32_t first = HoldRequest(Full(1), table);
  EXPECT_EQ(HoldRequest(Full(2), table), first);
  EXPECT_EQ(table.holders(first), 2u);
  JobSpec shared = Full(1);
  shared.id = 0;
  shared.name.clear();
  shared.submit_us = shared.deadline_us = 0;
  EXPECT_EQ(table.at(first).spec, shared);
}

TEST(Requests, DifferWithEveryOtherField) {
  const std::vector<std::function<void(JobSpec&)>> changes = {
      [](JobSpec& job) { job.tenant = "other"; },
      [](JobSpec& job) { job.kind = JobKind::kBestEffort; },
      [](JobSpec& job) { job.tasks = 2; },
      [](JobSpec& job) { job.gpus_per_task = 2; },
      [](JobSpec& job) { job.gpu_milli = 500; },
      [](JobSpec& job) { job.exclusive = true; },
      [](JobSpec& job) { job.share = ShareWith::kAnyone; },
      [](JobSpec& job) { job.gpu_mem_request_mib = 500; },
      [](JobSpec& job) { job.gpu_mem_limit_mib = 5000; },
      [](JobSpec& job) { job.sm_cap_pct = 50; },
      [](JobSpec& job) { job.sm_cap_chosen = true; },
      [](JobSpec& job) { job.exclusive_chosen = true; },
      [](JobSpec& job) { job.mps_chosen = true; },
      [](JobSpec& job) { job.cpu_milli = 1; },
      [](JobSpec& job) { job.mem_mib = 1; },
      [](JobSpec& job) { job.storage_mb_s = 1; },
      [](JobSpec& job) { job.stated_cpu_milli = 0; },
      [](JobSpec& job) { job.stated_mem_mib = 0; },
      [](JobSpec& job) {
        job.sensitivity = SharedSensitivity(*Sensitivity::Create({1000}, {1024}, std::vector<float>{1}));
      },
      [](JobSpec& job) { job.slowdown_bound = 2; },
      [](JobSpec& job) { job.priority = -1; },
      [](JobSpec& job) { job.weight = 2; },
      [](JobSpec& job) { job.request_rate_hz = 3; },
      [](JobSpec& job) { job.latency_bound_us = 4; },
      [](JobSpec& job) { job.demands[0].demand.power_w.upper = 1; },
      [](JobSpec& job) { job.demands[0].demand.traits.back() = 1; },
      [](JobSpec& job) { job.demands[0].type = Type("v100-sxm2-16gb"); },
      [](JobSpec& job) { job.demands.push_back(job.demands[0]); },
      [](JobSpec& job) { job.node_selector[0].second = "b"; },
      [](JobSpec& job) { job.groups.clear(); },
      [](JobSpec& job) { std::swap(job.groups, job.avoid_groups); },
      [](JobSpec& job) { job.spread_tasks = true; },
      [](JobSpec& job) { job.alternatives.emplace_back(); }};
  RequestTable table;
  std::vector<uint32_t> ids = {HoldRequest(Full(1), table)};
  for (const auto& change : changes) {
    JobSpec job = Full(1);
    change(job);
    EXPECT_FALSE(SameRequest(job, Full(1))) << ids.size();
    ids.push_back(HoldRequest(job, table));
    EXPECT_EQ(ids.back(), ids.size() - 1);  // a new one
  }
}

TEST(Requests, GiveBackEveryJobAsItCame) {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = V100Node(1, 4);
  node.labels = {{"zone", "a"}};
  ASSERT_TRUE(cluster.AddNode(node).ok());
  std::vector<JobSpec> jobs = {Full(1), Full(2), Full(3), OneGpu(4, 30, 1000)};
  jobs[1].name.clear();
  jobs[2].deadline_us = 0;
  for (const JobSpec& job : jobs) {
    const std::vector<Slot> slots = {{1, static_cast<int32_t>(job.id - 1), 0}};
    ASSERT_TRUE(cluster.Adopt(job, slots).ok());
  }
  const Cluster copy = cluster;
  ASSERT_TRUE(cluster.Release(1).ok());
  const std::string saved = *SaveSnapshot(copy);
  const auto restored =
      RestoreSnapshot({reinterpret_cast<const uint8_t*>(saved.data()), saved.size()}, Catalogue::Default());
  ASSERT_TRUE(restored.ok()) << restored.status();
  for (const JobSpec& job : jobs) {
    EXPECT_EQ(*copy.Job(job.id)->spec, job);
    EXPECT_EQ(*restored->Job(job.id)->spec, job);
    EXPECT_EQ(cluster.HasJob(job.id), job.id != 1);
    if (job.id == 1) continue;
    EXPECT_EQ(*cluster.Job(job.id)->spec, job);
  }
  EXPECT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
}

// Bytes that `count` jobs of `kinds` add to a cluster; room that columns keep ready included.
uint64_t BytesOfJobs(size_t count, size_t kinds) {
  Cluster cluster = Nodes(count / 8, 8);
  const uint64_t empty = cluster.bytes_held();
  std::vector<GpuTypeId> types = {Type("k80"), Type("v100-sxm2-16gb"), Type("v100-sxm2-32gb"), Type("a100-40gb"),
                                  Type("h100-sxm")};
  std::sort(types.begin(), types.end());
  for (size_t i = 0; i < count; ++i) {
    const std::vector<Slot> slots = {{i / 8 + 1, static_cast<int32_t>(i % 8), 0}};
    JobSpec job = OneGpu(i);
    job.submit_us = static_cast<int64_t>(i);
    job.demands[0].demand.profile_id = i % kinds + 1;
    const Demand demand = job.demands[0].demand;
    job.demands.clear();
    for (const GpuTypeId type : types) job.demands.push_back({type, demand});
    EXPECT_TRUE(cluster.Adopt(job, slots).ok());
  }
  return cluster.bytes_held() - empty;
}

TEST(Requests, CostOnceHoweverManyJobsAskForTheSame) {
  constexpr size_t kJobs = 2048;  // a power of two: no column has room for more
  const uint64_t alike = BytesOfJobs(kJobs, 4);
  EXPECT_LE(alike, 100 * kJobs);
  EXPECT_GE(BytesOfJobs(kJobs, kJobs), alike + (kJobs - 4) * (sizeof(JobSpec) + 5 * sizeof(TypeDemand)));
}

TEST(Requests, NodesOfOneBuildShareTheirDevicesUntilOneChanges) {
  Cluster cluster = Nodes(2, 4);
  const NodeInfo first = *cluster.Node(1);
  EXPECT_EQ(&first.spec.devices.get(), &cluster.Node(2)->spec.devices.get());
  NodeSpec other = cluster.Node(2)->spec;
  other.devices[3].max_tenants = 7;
  ASSERT_TRUE(cluster.ChangeNode(other).ok());
  EXPECT_EQ(cluster.Node(1)->spec, first.spec);
  EXPECT_EQ(cluster.Node(2)->spec.devices[3].max_tenants, 7);
  ASSERT_TRUE(cluster.RemoveNode(1).ok());
  ASSERT_TRUE(cluster.AddNode(V100Node(3, 4)).ok());
  EXPECT_EQ(cluster.Node(3)->spec.devices, first.spec.devices);
  EXPECT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
}

}  // namespace
}  // namespace horus
