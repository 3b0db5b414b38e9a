// SPDX-License-Identifier: Apache-2.0
// CheckInvariants names what is wrong with a cluster: each column damaged by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fixtures.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::CpuOnly;
using testing_place::Gang;
using testing_place::OneGpu;
using testing_place::V100Node;

// Rows of what is below.
constexpr uint32_t kFirst = 0, kSecond = 1, kThird = 2;
constexpr JobId kHost = 4;

// Two share device 0 of the first node, a gang is on device 1 and on the second node, a task of a group without GPUs
// there too; the third node is idle. One job and one node have left.
Cluster Sound() {
  Cluster cluster(Catalogue::Default());
  EXPECT_TRUE(cluster.AddNode(V100Node(1, 2)).ok());
  EXPECT_TRUE(cluster.AddNode(V100Node(2, 2)).ok());
  EXPECT_TRUE(cluster.AddNode(V100Node(3, 1)).ok());
  EXPECT_TRUE(cluster.AddNode(V100Node(4, 1)).ok());
  EXPECT_TRUE(cluster.RemoveNode(4).ok());
  JobSpec host = CpuOnly(kHost);
  host.groups = {"a"};
  const auto adopt = [&](const JobSpec& job, const std::vector<Slot>& slots) {
    EXPECT_TRUE(cluster.Adopt(job, slots).ok());
  };
  adopt(OneGpu(1, 30), {{1, 0, 0}});
  adopt(OneGpu(2, 40), {{1, 0, 0}});
  adopt(Gang(3, 2, 1), {{1, 1, 0}, {2, 0, 1}});
  adopt(host, {{2, kNoDevice, 0}});
  adopt(OneGpu(5, 50), {{3, 0, 0}});
  EXPECT_TRUE(cluster.Release(5).ok());
  return cluster;
}

uint32_t FirstDevice(const ClusterRows& rows, uint32_t node) { return rows.nodes[node].first_device; }
JobRow& Job(ClusterRows& rows, JobId job) { return rows.jobs[rows.RowOfJob(job)]; }
// The class of a job on the type of the first device.
uint32_t ClassOf(ClusterRows& rows, JobId job) { return rows.ClassOn(Job(rows, job).request, rows.TypeOf(0)); }

struct Damage {
  const char* named;  // in the message
  std::function<void(ClusterRows&)> damage;
};

std::vector<Damage> DamagesOfNodes() {
  return {
      {"live row", [](ClusterRows& rows) { rows.nodes[kThird].live = false; }},
      {"live row", [](ClusterRows& rows) { rows.nodes[kThird].spec = nullptr; }},
      {"shared devices", [](ClusterRows& rows) { rows.nodes[kSecond].device_list = rows.nodes[kThird].device_list; }},
      {"node 2: free CPU: expected 28000, found 28001",
       [](ClusterRows& rows) { ++rows.nodes[kSecond].free.cpu_milli; }},
      {"free CPU", [](ClusterRows& rows) { ++rows.nodes[kSecond].free.mem_mib; }},
      {"free CPU", [](ClusterRows& rows) { ++rows.nodes[kSecond].free.storage_mb_s; }},
      {"tasks without GPUs: expected 1, found 2",
       [](ClusterRows& rows) { rows.nodes[kSecond].host_residents.push_back({0, 0}); }},
      {"groups", [](ClusterRows& rows) { rows.nodes[kSecond].groups.clear(); }},
      {"groups", [](ClusterRows& rows) { ++rows.nodes[kSecond].groups[0].avoiders; }},
      {"idle devices: expected 1, found 2", [](ClusterRows& rows) { ++rows.nodes[kSecond].idle_devices; }},
      {"position in id order", [](ClusterRows& rows) { std::swap(rows.order[0], rows.order[1]); }},
      {"row by id", [](ClusterRows& rows) { rows.node_of.Erase(2); }},
      {"row by id",
       [](ClusterRows& rows) {
         rows.node_of.Erase(2);
         rows.node_of.Insert(2, kThird);
       }},
      {"nodes by id: expected 3, found 4", [](ClusterRows& rows) { rows.node_of.Insert(77, kThird); }},
  };
}

std::vector<Damage> DamagesOfDevices() {
  const auto shared = [](ClusterRows& rows) -> Residents& { return rows.residents[FirstDevice(rows, kFirst)]; };
  return {
      {"device without a state", [](ClusterRows& rows) { rows.device_state[FirstDevice(rows, kThird)] = kNoState; }},
      {"tenants of an empty device's state",
       [](ClusterRows& rows) {
         uint32_t& state = rows.device_state[FirstDevice(rows, kThird)];
         const TenantClass other = rows.states.tenant(ClassOf(rows, 1));  // the table grows
         uint32_t tenant = 0;
         state = rows.states.WithTenant(state, other, tenant);
       }},
      {"residents: expected 2, found 3", [=](ClusterRows& rows) { shared(rows).push_back(0); }},
      {"residents: expected 2, found 1", [=](ClusterRows& rows) { shared(rows).erase(shared(rows).begin()); }},
      {"resident's device", [=](ClusterRows& rows) { shared(rows)[0] = 99; }},
      {"resident's device", [=](ClusterRows& rows) { shared(rows)[0] = rows.first_free_job; }},
      {"resident's device",
       [=](ClusterRows& rows) { rows.residents[FirstDevice(rows, kFirst) + 1][0] = rows.RowOfJob(1); }},
      {"one resident twice", [=](ClusterRows& rows) { shared(rows)[1] = shared(rows)[0]; }},
      {"devices: expected 5, found 6", [](ClusterRows& rows) { ++rows.live_devices; }},
      {"devices per state", [](ClusterRows& rows) { rows.states.Ref(rows.device_state[FirstDevice(rows, kThird)]); }},
      {"live states",
       [](ClusterRows& rows) {
         DeviceRow row = rows.states.state(rows.device_state[FirstDevice(rows, kThird)]);
         ++row.max_tenants;
         (void)rows.states.InternState(row);
       }},
  };
}

std::vector<Damage> DamagesOfJobs() {
  return {
      {"position of a task without GPUs", [](ClusterRows& rows) { Job(rows, kHost).slots[0].position = 9; }},
      {"position of a task without GPUs", [](ClusterRows& rows) { ++rows.nodes[kSecond].host_residents[0].task; }},
      {"position of a task without GPUs", [](ClusterRows& rows) { rows.nodes[kSecond].host_residents[0].job_row = 0; }},
      {"holders of a tenant class: expected 1, found 2",
       [](ClusterRows& rows) { (void)rows.states.HoldTenant(rows.states.tenant(ClassOf(rows, 1))); }},
      {"tenant classes",
       [](ClusterRows& rows) {
         TenantClass tenant = rows.states.tenant(ClassOf(rows, 1));
         ++tenant.priority;
         (void)rows.states.InternTenant(tenant);
       }},
      {"class of a resident", [](ClusterRows& rows) { rows.classes[Job(rows, 1).request].clear(); }},
      {"classes of a request that nobody makes",
       [](ClusterRows& rows) {
         JobSpec other = rows.SpecOf(Job(rows, 1));
         ++other.priority;
         const uint32_t request = HoldRequest(other, rows.requests);
         rows.requests.Drop(request);
         rows.classes.resize(rows.requests.limit());
         const uint32_t tenant = ClassOf(rows, 1);
         rows.classes[request].emplace_back(rows.TypeOf(0), tenant);
         (void)rows.states.HoldTenant(rows.states.tenant(tenant));
       }},
      {"holders of a request: expected 1, found 2",
       [](ClusterRows& rows) { (void)HoldRequest(rows.SpecOf(Job(rows, 1)), rows.requests); }},
      {"holders of a list of devices",
       [](ClusterRows& rows) {
         rows.nodes.emplace_back();
         rows.nodes.back().spec = rows.nodes[kFirst].spec;
         rows.nodes.back().device_list = rows.nodes[kFirst].device_list;
       }},
      {"job's row by id",
       [](ClusterRows& rows) {
         const uint32_t row = rows.RowOfJob(1);
         JobRow& job = rows.jobs[row];
         do ++job.id;  // until it is none that hashes to where the row is already
         while (rows.RowOfJob(job.id) == row);
       }},
      {"free job rows", [](ClusterRows& rows) { rows.first_free_job = rows.RowOfJob(1); }},
      {"free job rows", [](ClusterRows& rows) { rows.jobs[rows.first_free_job].id = rows.first_free_job; }},
      {"job rows: expected 5, found 4", [](ClusterRows& rows) { rows.first_free_job = kNoRow; }},
      {"jobs by id: expected 4, found 5",
       [](ClusterRows& rows) {
         rows.job_of.ReserveOne([&](uint32_t row) { return rows.jobs[row].id; });
         rows.job_of.Insert(77, 0);
       }},
  };
}

void ExpectNamed(const std::vector<Damage>& damages) {
  for (size_t i = 0; i < damages.size(); ++i) {
    SCOPED_TRACE("damage " + std::to_string(i));
    Cluster cluster = Sound();
    ASSERT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
    damages[i].damage(const_cast<ClusterRows&>(cluster.rows()));
    const absl::Status status = CheckInvariants(cluster);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr(damages[i].named));
  }
}

TEST(BrokenCluster, NodesAreNamed) { ExpectNamed(DamagesOfNodes()); }
TEST(BrokenCluster, DevicesAreNamed) { ExpectNamed(DamagesOfDevices()); }
TEST(BrokenCluster, JobsAndTablesAreNamed) { ExpectNamed(DamagesOfJobs()); }

}  // namespace
}  // namespace horus
