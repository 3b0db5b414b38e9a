// SPDX-License-Identifier: Apache-2.0
// Rules of policies and of what they read at the edges: classes without GPUs, devices of several types, packs that
// nobody can recognise.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "fixtures.h"
#include "place/job/own_bound.h"
#include "place/policies/workload.h"

namespace horus {
namespace {

using testing_place::Decide;
using testing_place::Needs;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::Type;
using testing_place::V100Node;

// As workload.h says it, class by class.
double FragmentOf(const std::vector<TaskClass>& classes, int64_t cpu_free_milli, const std::vector<FreeGpu>& gpus) {
  double fragment = 0;
  for (const TaskClass& one : classes) {
    int32_t free = 0, usable = 0, fitting = 0;
    for (const FreeGpu& gpu : gpus) {
      free += gpu.free_milli;
      const bool takes = one.types.empty() || std::count(one.types.begin(), one.types.end(), gpu.type) > 0;
      if (one.gpus == 0 || !takes || gpu.free_milli < one.gpu_milli) continue;
      usable += gpu.free_milli;
      ++fitting;
    }
    const bool fits = one.gpus > 0 && cpu_free_milli >= one.cpu_milli && fitting >= one.gpus;
    fragment += one.share * (fits ? free - usable : free);
  }
  return fragment;
}

TEST(Workload, CountsClassesWithoutGpusAndOfOtherTypes) {
  const GpuTypeId v100 = Type("v100-sxm2-16gb"), a100 = Type("a100-40gb"), k80 = Type("k80");
  const std::vector<TaskClass> classes = {{.cpu_milli = 1000, .share = 0.2},
                                          {.cpu_milli = 4000, .gpus = 1, .gpu_milli = 500, .share = 0.3},
                                          {.gpus = 2, .gpu_milli = 1000, .types = {v100}, .share = 0.25},
                                          {.gpus = 1, .gpu_milli = 300, .types = {k80}, .share = 0.25}};
  const auto workload = *Workload::Create(classes);
  const std::vector<std::vector<FreeGpu>> nodes = {
      {{v100, 1000}, {v100, 1000}}, {{v100, 1000}, {a100, 1000}, {v100, 200}},
      {{a100, 400}, {k80, 400}},    {{v100, 1000}, {a100, 250}, {v100, 1000}, {k80, 1000}},
      {{k80, 600}, {k80, 1000}},    {}};
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (const int64_t cpu : {0, 2000, 8000}) {
      SCOPED_TRACE(std::to_string(n) + ", " + std::to_string(cpu));
      EXPECT_NEAR(workload->Fragment(cpu, nodes[n]), FragmentOf(classes, cpu, nodes[n]), 1e-6);
      int32_t free = 0;
      for (const FreeGpu& gpu : nodes[n]) free += gpu.free_milli;
      const double usable = workload->Usable(cpu, nodes[n]);
      EXPECT_GE(usable, 0);
      EXPECT_LE(usable, (1 - classes[0].share) * free + 1e-6) << "a class without GPUs can use none";
    }
  }
  // Of the two whole V100 each class but those without GPUs and for K80 uses all.
  EXPECT_NEAR(workload->Usable(16'000, nodes[0]), (0.3 + 0.25) * 2000, 1e-6);
  EXPECT_NEAR(workload->Usable(8000, nodes[0]), 0.3 * (1000 + 2000) / 2 + 0.25 * 2000, 1e-6) << "cores for two halves";
  EXPECT_NEAR(workload->Usable(2000, nodes[0]), 0.25 * 2000, 1e-6) << "for the others the cores are too few";
}

TEST(FgdPolicy, TellsDevicesOfTwoTypesApartThatHaveAsMuchFree) {
  NodeSpec node = V100Node(1, 2);
  node.devices[1].type = Type("a100-40gb");
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(node).ok());
  JobSpec job = OneGpu(1, 20, 1000);
  job.gpu_milli = 500;
  // Later tasks want whole GPUs of one type: the job takes the other.
  for (const auto& [wanted, taken] : std::map<std::string, int32_t>{{"v100-sxm2-16gb", 1}, {"a100-40gb", 0}}) {
    PolicyOptions options;
    options.workload = *Workload::Create({{.gpus = 1, .gpu_milli = 1000, .types = {Type(wanted)}, .share = 1}});
    const auto placer = *Placer::Create(std::make_shared<UtilisationModel>(), *MakePolicy("fgd", options));
    const auto plan = placer->MakePlan(cluster, {&job, 1});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->decisions[0].slots, (Slots{{1, taken, 0}}));
  }
}

// Whole GPUs that a task requests: with as fast links everywhere, and nothing to send over them.
TEST(HorusPolicy, GpusOfATaskWithARequestAreOfOneType) {
  NodeSpec node = V100Node(1, 4);
  node.devices[1].type = node.devices[3].type = Type("a100-40gb");
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(node).ok());
  JobSpec job = testing_place::Gang(1, 1, 2);
  job.gpu_milli = 1000;
  for (const auto& [busy, expected] :
       std::map<int32_t, Slots>{{0, {{1, 1, 0}, {1, 3, 0}}}, {1, {{1, 0, 0}, {1, 2, 0}}}}) {
    Cluster used = cluster;
    ASSERT_TRUE(used.Adopt(OneGpu(9), std::vector<Slot>{{1, busy, 0}}).ok());
    EXPECT_EQ(Decide(used, job).slots, expected);
  }
}

JobSpec Known(JobId id, uint64_t profile) {
  JobSpec job = OneGpu(id, 40, 1000);
  job.demands[0].demand.profile_id = profile;
  return job;
}

TEST(GandivaPolicy, RemembersPacksOfKnownProfilesAlone) {
  const JobSpec a = Known(1, 7), b = Known(2, 8), nameless = Known(3, 0);
  const DeviceContext device = {Type("v100-sxm2-16gb"), SharingMode::kTimeSlice, 1};
  const auto revise = [&](const Policy& policy, std::vector<const JobSpec*> jobs, double throughput) {
    std::vector<const Demand*> tenants;
    for (const JobSpec* job : jobs) tenants.push_back(&job->demands[0].demand);
    const std::vector<double> each(tenants.size(), throughput);
    auto revision = policy.Revise({device, tenants, each});
    EXPECT_TRUE(revision.ok()) << revision.status();
    return *std::move(revision);
  };
  const auto naive = *MakePolicy("gandiva");
  const Revision alone = revise(*naive, {&a}, 0.1);
  EXPECT_FALSE(alone.undo) << "one tenant has nobody to leave";
  EXPECT_EQ(alone.policy, nullptr);
  const Revision unknown = revise(*naive, {&a, &nameless}, 0.1);
  EXPECT_TRUE(unknown.undo);
  EXPECT_EQ(unknown.policy, nullptr);
  Revision learned = revise(*naive, {&a, &b}, 0.1);
  ASSERT_NE(learned.policy, nullptr);
  EXPECT_EQ(revise(*learned.policy, {&a, &b}, 0.1).policy, nullptr) << "it knows";
  for (const uint64_t profile : {9, 10, 11, 12}) {  // whatever their order among the keys
    const JobSpec other = Known(4, profile);
    EXPECT_NE(revise(*learned.policy, {&a, &other}, 0.1).policy, nullptr);
    EXPECT_EQ(revise(*learned.policy, {&a, &other}, 0.9).policy, nullptr) << "nothing to forget";
  }
  Cluster cluster = Nodes(1, 1);
  ASSERT_TRUE(cluster.Adopt(a, std::vector<Slot>{{1, 0, 0}}).ok());
  const std::shared_ptr<const Policy> policy = std::move(learned.policy);
  const auto placer = *Placer::Create(std::make_shared<UtilisationModel>(), policy);
  EXPECT_EQ(placer->MakePlan(cluster, {&b, 1})->decisions[0].verdict, Verdict::kDefer);
  EXPECT_EQ(placer->MakePlan(cluster, {&nameless, 1})->decisions[0].verdict, Verdict::kPlace);
}

// 200 requests a second of 10 ms each: two servers' work.
TEST(LatencyBound, OfAnOverloadedServerIsLateWithoutEnd) {
  JobSpec job = OneGpu(1);
  job.kind = JobKind::kInference;
  job.demands[0].demand.step_time_us = {10'000, 10'000};
  job.latency_bound_us = 50'000;
  job.request_rate_hz = 20;
  ASSERT_EQ(OwnBoundOf(job, job.demands[0].demand).late, LateAlone());
  job.request_rate_hz = 200;
  const OwnBound bound = OwnBoundOf(job, job.demands[0].demand);
  EXPECT_EQ(bound.slowdown, 1);
  EXPECT_EQ(bound.late.bound_us, 50'000);
  EXPECT_GT(bound.late.p99_us, 1e9f);
}

TEST(Decisions, AreToldWhateverTheyLack) {
  EXPECT_EQ(VerdictName(static_cast<Verdict>(9)), "unknown");
  EXPECT_EQ(DescribeDecision({.verdict = Verdict::kPlace}), "Placed.");
}

}  // namespace
}  // namespace horus
