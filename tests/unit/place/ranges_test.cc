// SPDX-License-Identifier: Apache-2.0
// Every number that comes from outside has a range: what lies beyond is refused by the name of its field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fixtures.h"
#include "lab/policies/rivals.h"
#include "place/job/sensitivity.h"
#include "place/modes/rebalance.h"
#include "place/policies/workload.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::Needs;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::Type;
using testing_place::V100Node;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kBeyondHost = kMaxHostQuantity + 1;
const std::string kTooLong(kMaxNameBytes + 1, 'n');

// What is changed, and what the message must name.
template <typename T>
struct Beyond {
  const char* named;
  std::function<void(T&)> change;
};

// `good` is taken; with each change it is refused by name. `check` takes a T and answers a status.
template <typename T, typename Check>
void ExpectRefused(const T& good, const std::vector<Beyond<T>>& cases, const Check& check) {
  const absl::Status taken = check(good);
  EXPECT_TRUE(taken.ok()) << taken;
  for (const Beyond<T>& one : cases) {
    T bad = good;
    one.change(bad);
    const absl::Status status = check(bad);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << one.named << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(one.named));
  }
}

TEST(Ranges, OfAPlacer) {
  using O = PlacerOptions;
  const std::vector<Beyond<O>> cases = {
      {"max_tenants: expected 1", [](O& o) { o.max_tenants = 0; }},
      {"max_tenants: expected 1", [](O& o) { o.max_tenants = kMaxTenantsPerDevice + 1; }},
      {"mem_headroom_mib: expected 0", [](O& o) { o.mem_headroom_mib = -1; }},
      {"mem_headroom_mib: expected 0", [](O& o) { o.mem_headroom_mib = kBeyondHost; }},
      {"rack_oversubscription: expected at least 1, found 0.5", [](O& o) { o.rack_oversubscription = 0.5; }},
      {"rack_oversubscription: expected at least 1, found inf", [](O& o) { o.rack_oversubscription = kInfinity; }},
      {"mem_overcommit: expected 1", [](O& o) { o.mem_overcommit = 0; }},
      {"mem_overcommit: expected 1", [](O& o) { o.mem_overcommit = kMaxMemOvercommit + 1; }},
      {"mem_overcommit: expected 1", [](O& o) { o.mem_overcommit = kNan; }},
  };
  ExpectRefused(O(), cases, [](const O& options) {
    return Placer::Create(std::make_shared<UtilisationModel>(), *MakePolicy("horus"), options).status();
  });
  EXPECT_EQ(Placer::Create(nullptr, *MakePolicy("horus")).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Placer::Create(std::make_shared<UtilisationModel>(), nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Ranges, OfAPolicy) {
  using O = LabPolicyOptions;
  const std::vector<Beyond<O>> cases = {
      {"pack_threshold: expected 0", [](O& o) { o.pack_threshold = -1; }},
      {"pack_threshold: expected 0", [](O& o) { o.pack_threshold = kInfinity; }},
      {"foreground_bound: expected 1", [](O& o) { o.foreground_bound = kNan; }},
      {"profiling_label: expected 1", [](O& o) { o.profiling_label.clear(); }},
      {"profiling_label: expected 1", [](O& o) { o.profiling_label = kTooLong; }},
      {"synergy_tolerance: expected 0", [](O& o) { o.synergy_tolerance = -0.1; }},
      {"synergy_tolerance: expected 0", [](O& o) { o.synergy_tolerance = 1; }},
  };
  ExpectRefused(O(), cases, [](const O& options) { return MakePolicy("fgd", {.lab = Lab(options)}).status(); });
}

TEST(Ranges, OfARebalancing) {
  using O = RebalanceOptions;
  const std::vector<Beyond<O>> cases = {
      {"downtime_s", [](O& o) { o.downtime_s = kInfinity; }},
      {"horizon_s", [](O& o) { o.horizon_s = kInfinity; }},
      {"min_gain", [](O& o) { o.min_gain = kInfinity; }},
  };
  const Cluster cluster = Nodes(1);
  const auto placer = testing_place::MakePlacer();
  ExpectRefused(O(), cases, [&](const O& options) { return Rebalance(*placer, cluster, options).status(); });
}

TEST(Ranges, OfAnObservation) {
  const Demand demand = Needs(50, 1000);
  struct Observed {
    std::vector<const Demand*> demands;
    std::vector<double> throughput;
  };
  using O = Observed;
  const std::vector<Beyond<O>> cases = {
      {"expected a throughput for each of 2 tenants, found 1", [](O& o) { o.throughput.pop_back(); }},
      {"tenant 1: expected a demand", [](O& o) { o.demands[1] = nullptr; }},
      {"tenant 1: throughput: expected 0", [](O& o) { o.throughput[1] = -0.1; }},
      {"tenant 1: throughput: expected 0", [](O& o) { o.throughput[1] = kInfinity; }},
  };
  for (const std::string_view policy : {"gandiva", "horus"}) {
    ExpectRefused(O{{&demand, &demand}, {0.5, 0}}, cases, [&](const O& observed) {
      return (*MakePolicy(policy))
          ->Revise({.device = {.type = Type("v100-sxm2-16gb")},
                    .demands = observed.demands,
                    .throughput = observed.throughput})
          .status();
    });
  }
}

TEST(Ranges, OfAJob) {
  using J = JobSpec;
  const std::vector<Beyond<J>> cases = {
      {"name: expected at most 1024 bytes, found 1025", [](J& job) { job.name = kTooLong; }},
      {"tasks: expected 1 to 65536, found 65537",
       [](J& job) {
         job.gpus_per_task = 0;
         job.demands.clear();
         job.tasks = kMaxGpusPerJob + 1;
       }},
      {"gpus_per_task: expected 0", [](J& job) { job.gpus_per_task = kMaxGpusPerJob + 1; }},
      {"node_selector key: expected at most", [](J& job) { job.node_selector = {{kTooLong, "v"}}; }},
      {"node_selector value: expected at most", [](J& job) { job.node_selector = {{"k", kTooLong}}; }},
      {"groups: expected at most 1024 bytes", [](J& job) { job.groups = {kTooLong}; }},
      {"avoid_groups: expected at most 1024 bytes", [](J& job) { job.avoid_groups = {kTooLong}; }},
  };
  ExpectRefused(OneGpu(1), cases, [](const J& job) { return ValidateJob(job); });
}

TEST(Ranges, OfTheWaysToRunAJob) {
  using J = JobSpec;
  J either;
  either.id = 1;
  either.alternatives = {{.rate = 1, .demands = {{GpuTypeId::Invalid(), Needs(40, 4000, 1000)}}}};
  const auto beside = "alternatives: expected no tasks, GPUs, gpu_milli and demands of the job's own";
  const std::vector<Beyond<J>> cases = {
      {beside, [](J& job) { job.tasks = 2; }},
      {beside, [](J& job) { job.gpus_per_task = 2; }},
      {beside, [](J& job) { job.gpu_milli = 500; }},
      {beside, [](J& job) { job.demands = OneGpu(1).demands; }},
      {"alternatives[0]: rate: expected above 0", [](J& job) { job.alternatives[0].rate = 0; }},
      {"alternatives[0]: rate: expected above 0", [](J& job) { job.alternatives[0].rate = 2 * kMaxRate; }},
      {"alternatives[0]: rate: expected above 0", [](J& job) { job.alternatives[0].rate = kNan; }},
      {"alternatives[0]: gpus_per_task: expected 1", [](J& job) { job.alternatives[0].gpus_per_task = 0; }},
      {"mem_mib", [](J& job) { job.alternatives[0].mem_mib = kBeyondHost; }},
      {"storage_mb_s", [](J& job) { job.alternatives[0].storage_mb_s = kBeyondHost; }},
      {"cpu_milli", [](J& job) { job.alternatives[0].cpu_milli = kBeyondHost; }},
  };
  ExpectRefused(either, cases, [](const J& job) { return ValidateJob(job); });
}

TEST(Ranges, OfTypesAreThoseOfTheClustersCatalogue) {
  const Cluster cluster = Nodes(1);
  const auto stranger = GpuTypeId(static_cast<uint16_t>(Catalogue::Default()->size()));
  JobSpec plain = OneGpu(1);
  plain.demands[0].type = stranger;
  JobSpec either;
  either.id = 1;
  either.alternatives = {{.rate = 1, .demands = {{stranger, Needs(40, 4000, 1000)}}}};
  const auto placer = testing_place::MakePlacer();
  for (const JobSpec& job : {plain, either}) {
    EXPECT_THAT(placer->MakePlan(cluster, {&job, 1}).status().message(), HasSubstr("type of the catalogue"));
    const std::vector<NodeId> nodes = {1};
    EXPECT_THAT(placer->Verdicts(cluster, job, nodes).status().message(), HasSubstr("type of the catalogue"));
  }
}

TEST(Ranges, OfANode) {
  using N = NodeSpec;
  const std::vector<Beyond<N>> cases = {
      {"expected at most 1024 bytes", [](N& node) { node.labels = {{kTooLong, "v"}}; }},
      {"expected at most 1024 bytes", [](N& node) { node.labels = {{"k", kTooLong}}; }},
      {"pcie_switch and socket of at least 0", [](N& node) { node.devices[0].physical_gpu = -2; }},
      {"pcie_switch and socket of at least 0", [](N& node) { node.devices[0].island = -2; }},
      {"pcie_switch and socket of at least 0", [](N& node) { node.devices[0].pcie_switch = -1; }},
      {"pcie_switch and socket of at least 0", [](N& node) { node.devices[0].socket = -1; }},
      {"devices[0].mem_mib: expected 0", [](N& node) { node.devices[0].mem_mib = int64_t{1} << 50; }},
      {"devices[0].max_tenants: expected 0", [](N& node) { node.devices[0].max_tenants = -1; }},
      {"devices[0].mig_profile: v100-sxm2-16gb has 0 MIG profiles",
       [](N& node) { node.devices[0].mode = SharingMode::kMig; }},
      {"MIG profiles, found index 99",
       [](N& node) { node.devices[0] = {.type = Type("a100-40gb"), .mode = SharingMode::kMig, .mig_profile = 99}; }},
      {"only MIG instances share a card",  // neither may be whole
       [](N& node) {
         node.devices[0] = {.type = Type("a100-40gb"), .mode = SharingMode::kMig, .mig_profile = 0, .physical_gpu = 3};
         node.devices[1] = {.type = Type("a100-40gb"), .physical_gpu = 3};
       }},
      {"only MIG instances share a card",
       [](N& node) {
         node.devices[0] = {.type = Type("a100-40gb"), .physical_gpu = 3};
         node.devices[1] = {.type = Type("a100-40gb"), .mode = SharingMode::kMig, .mig_profile = 0, .physical_gpu = 3};
       }},
  };
  ExpectRefused(V100Node(1), cases, [](const N& node) { return Cluster(Catalogue::Default()).AddNode(node); });
}

TEST(Ranges, OfAWorkload) {
  using C = TaskClass;
  const std::vector<Beyond<C>> cases = {
      {"cpu_milli: expected 0", [](C& one) { one.cpu_milli = -1; }},
      {"cpu_milli: expected 0", [](C& one) { one.cpu_milli = kBeyondHost; }},
      {"gpus: expected 0", [](C& one) { one.gpus = -1; }},
      {"gpus: expected 0", [](C& one) { one.gpus = kMaxGpusPerJob + 1; }},
      {"gpu_milli: expected 1", [](C& one) { one.gpu_milli = 0; }},
      {"gpu_milli: expected 1", [](C& one) { one.gpu_milli = 1001; }},
      {"gpu_milli: expected 1", [](C& one) { one.gpus = 0; }},
      {"share: expected more than 0", [](C& one) { one.share = 0; }},
      {"share: expected more than 0", [](C& one) { one.share = 1.5; }},
      {"share: expected more than 0", [](C& one) { one.share = kNan; }},
      {"types: expected ascending", [](C& one) { one.types = {GpuTypeId(2), GpuTypeId(1)}; }},
  };
  ExpectRefused(C{.gpus = 1, .gpu_milli = 1000, .share = 1}, cases,
                [](const C& one) { return Workload::Create({one}).status(); });
  const auto created = [](size_t classes) { return Workload::Create(std::vector<C>(classes)).status(); };
  EXPECT_THAT(created(0).message(), HasSubstr("classes: expected 1 to 4096, found 0"));
  EXPECT_THAT(created(Workload::kMaxClasses + 1).message(), HasSubstr("classes: expected 1 to 4096, found 4097"));
}

TEST(Ranges, OfASensitivity) {
  const auto made = [](std::vector<int64_t> cpu_milli, std::vector<int64_t> mem_mib) {
    return Sensitivity::Create(std::move(cpu_milli), std::move(mem_mib), std::vector{1.0f}).status();
  };
  EXPECT_TRUE(made({kMaxHostQuantity}, {kMaxHostQuantity}).ok());
  EXPECT_THAT(made({kBeyondHost}, {1}).message(), HasSubstr("cpu_milli[0]: expected more than 0, at most"));
  EXPECT_THAT(made({1}, {kBeyondHost}).message(), HasSubstr("mem_mib[0]: expected more than 0, at most"));
}

}  // namespace
}  // namespace horus
