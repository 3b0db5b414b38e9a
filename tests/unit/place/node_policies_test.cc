// SPDX-License-Identifier: Apache-2.0
// Fragments of nodes and the policies that price them, against figures worked out by hand and by other programs.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "fixtures.h"
#include "lab/policies/rivals.h"
#include "place/policies/workload.h"

namespace horus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_place::MakePlacer;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::PlaceOne;
using testing_place::Type;
using testing_place::V100Node;

// The typical pods of the openb trace, default workload (hkust-adsl/kubernetes-scheduler-simulator, Apache-2.0),
// counted.
struct Typical {
  int64_t cpu_milli;
  int32_t gpus;
  int32_t gpu_milli;
  int32_t pods;
};
constexpr Typical kTypical[] = {
    {3152, 1, 810, 1047}, {11300, 1, 1000, 874}, {11400, 1, 1000, 599}, {3152, 1, 1000, 470},  {11908, 1, 470, 388},
    {12500, 0, 0, 366},   {8000, 1, 470, 360},   {12000, 1, 1000, 326}, {32000, 0, 0, 290},    {18708, 1, 1000, 255},
    {11908, 1, 650, 237}, {4000, 1, 320, 232},   {9810, 1, 1000, 195},  {8000, 0, 0, 185},     {8000, 1, 1000, 164},
    {4000, 1, 1000, 159}, {15700, 1, 1000, 158}, {11908, 1, 1000, 153}, {16000, 1, 1000, 150}, {4000, 1, 230, 122},
    {15400, 0, 0, 120},   {6000, 1, 460, 120},   {16500, 0, 0, 95},     {14200, 1, 1000, 93},  {24200, 1, 1000, 84},
    {3152, 1, 590, 75},   {8000, 1, 320, 72},    {4152, 1, 550, 72},    {11900, 1, 1000, 55},  {4000, 1, 160, 54},
    {4152, 1, 370, 45},   {4000, 1, 220, 43},    {8200, 1, 1000, 41},   {15200, 1, 1000, 36},  {4152, 1, 810, 31}};

std::shared_ptr<const Workload> Openb() {
  int32_t all = 0;
  for (const Typical& one : kTypical) all += one.pods;
  std::vector<TaskClass> classes;
  for (const Typical& one : kTypical) {
    classes.push_back({.cpu_milli = one.cpu_milli,
                       .gpus = one.gpus,
                       .gpu_milli = one.gpu_milli,
                       .types = {},
                       .share = static_cast<double>(one.pods) / all});
  }
  return *Workload::Create(std::move(classes));
}

std::vector<FreeGpu> Gpus(const std::vector<int32_t>& free) {
  std::vector<FreeGpu> gpus;
  for (const int32_t milli : free) gpus.push_back({GpuTypeId(0), milli});
  return gpus;
}

JobSpec Request(int64_t cpu_milli, int32_t gpu_milli, int32_t gpus) {
  JobSpec job;
  job.cpu_milli = cpu_milli;
  job.gpu_milli = gpu_milli;
  job.gpus_per_task = gpus;
  return job;
}

// What the policy answers for a node of that free CPU and those free GPUs, on which residents of `kinds` are.
NodeScore Score(std::string_view policy, const JobSpec& job, int64_t cpu_free_milli, const std::vector<int32_t>& free,
                uint64_t kinds = 0) {
  std::vector<NodeDevice> devices;
  size_t enough = 0;
  for (const int32_t milli : free) enough += milli >= job.gpu_milli ? 1 : 0;
  for (const int32_t milli : free) {
    const bool fits = milli >= job.gpu_milli && enough >= static_cast<size_t>(job.gpus_per_task);
    devices.push_back({.free_milli = milli, .fits = fits, .kinds = milli < 1000 ? kinds : 0});
  }
  const NodeCandidate candidate{.job = &job,
                                .gpu_milli = job.gpu_milli,
                                .kind = job.gpus_per_task == 0 ? 0 : KindBit(job.gpu_milli, job.gpus_per_task),
                                .cpu_free_milli = cpu_free_milli,
                                .devices = devices};
  NodeScore score;
  const auto made = MakePolicy(policy, {.workload = Openb()});
  EXPECT_TRUE((*made)->PricesNode(job));
  EXPECT_TRUE((*made)->ScoreNode(candidate, score).ok());
  return score;
}

const std::vector<int32_t> kEight = {1000, 1000, 1000, 1000, 1000, 1000, 460, 200};
constexpr int64_t kCpu = 60'000;

TEST(Workload, FragmentsAreThoseWorkedOutElsewhere) {
  const auto workload = Openb();
  EXPECT_NEAR(workload->Fragment(96'000, Gpus(std::vector<int32_t>(8, 1000))), 1087.818697, 1e-6);
  EXPECT_NEAR(workload->Fragment(50'000, Gpus({1000, 460})), 555.225341, 1e-6);
  EXPECT_NEAR(workload->Fragment(8000, Gpus({300})), 291.540046, 1e-6);
  EXPECT_NEAR(workload->Fragment(4000, Gpus({1000, 1000})), 1432.912696, 1e-6);
  EXPECT_NEAR(workload->Fragment(kCpu, Gpus(kEight)), 1433.721349, 1e-6);
  EXPECT_NEAR(workload->Fragment(kCpu - 11'908, Gpus({540, 1000, 1000, 1000, 1000, 1000, 460, 200})), 1737.893381,
              1e-6);
  EXPECT_NEAR(workload->Fragment(kCpu - 11'908, Gpus({1000, 1000, 1000, 1000, 1000, 1000, 0, 200})), 1014.473345, 1e-6);
  EXPECT_NEAR(workload->Fragment(kCpu - 16'000, Gpus({0, 0, 1000, 1000, 1000, 1000, 460, 200})), 1161.766675, 1e-6);
  EXPECT_NEAR(workload->Fragment(kCpu - 32'000, Gpus(kEight)), 1433.721349, 1e-6);
  EXPECT_EQ(workload->Fragment(kCpu, {}), 0);
}

TEST(Workload, AClassCountsOnlyTheTypesThatItMayRunOn) {
  const auto workload = Workload::Create({{.gpus = 1, .gpu_milli = 500, .types = {GpuTypeId(1)}, .share = 0.75},
                                          {.gpus = 2, .gpu_milli = 1000, .types = {}, .share = 0.25}});
  ASSERT_TRUE(workload.ok()) << workload.status();
  const std::vector<FreeGpu> other = {{GpuTypeId(0), 1000}, {GpuTypeId(0), 1000}};
  EXPECT_DOUBLE_EQ((*workload)->Fragment(0, other), 0.75 * 2000);
  const std::vector<FreeGpu> mixed = {{GpuTypeId(0), 1000}, {GpuTypeId(1), 1000}, {GpuTypeId(1), 400}};
  EXPECT_DOUBLE_EQ((*workload)->Fragment(0, mixed), 0.75 * 1400 + 0.25 * 400);
}

// Sharers of 300 milli with 2 cores, and pairs of GPUs that need no CPU.
std::shared_ptr<const Workload> SharersAndPairs() {
  return *Workload::Create({{.cpu_milli = 2000, .gpus = 1, .gpu_milli = 300, .types = {}, .share = 0.5},
                            {.gpus = 2, .gpu_milli = 1000, .types = {}, .share = 0.5}});
}

TEST(Workload, UsableIsHalfWayBetweenRoomAndWhatOneClassCouldFill) {
  const auto workload = SharersAndPairs();
  // Sharers: 1,700 free on GPUs that take one; 4 cores carry two, that is 600. Pairs: none.
  EXPECT_DOUBLE_EQ(workload->Usable(4000, Gpus({1000, 700, 200})), 0.5 * (1700 + 600) / 2);
  EXPECT_DOUBLE_EQ(workload->Usable(4000, Gpus({1000, 1000, 500})), 0.5 * (2500 + 600) / 2 + 0.5 * 2000);
  // With CPU in plenty whole requests count: three on an idle GPU, one on the other.
  EXPECT_DOUBLE_EQ(workload->Usable(96'000, Gpus({1000, 500})), 0.5 * (1500 + 1200) / 2);
  EXPECT_EQ(workload->Usable(1999, Gpus({500})), 0);
  EXPECT_EQ(workload->Usable(4000, {}), 0);
}

TEST(Workload, UsableCountsTheGpusOfATaskTypeByType) {
  const std::vector<FreeGpu> mixed = {{GpuTypeId(0), 1000}, {GpuTypeId(1), 1000}, {GpuTypeId(1), 1000}};
  EXPECT_DOUBLE_EQ(SharersAndPairs()->Usable(2000, mixed), 0.5 * (3000 + 300) / 2 + 0.5 * 2000);
}

TEST(HorusPolicy, AHardRequestGoesWhereTypicalTasksLoseLeast) {
  const JobSpec job = Request(0, 500, 1);
  const auto policy = *MakePolicy("horus", {.workload = SharersAndPairs()});
  ASSERT_TRUE(policy->PricesNode(job));
  std::vector<NodeDevice> devices;
  for (const int32_t free : {1000, 1000, 500}) devices.push_back({.free_milli = free, .fits = true});
  const NodeCandidate candidate{.job = &job, .gpu_milli = 500, .kind = 1, .cpu_free_milli = 4000, .devices = devices};
  NodeScore score;
  ASSERT_TRUE(policy->ScoreNode(candidate, score).ok());
  EXPECT_THAT(score.devices, ElementsAre(2));
  EXPECT_DOUBLE_EQ(score.cost, -3 * 0.16);  // 125 usable lost, 500 asked for: -0.375 GPU
  devices[2].cost = 1;                      // what sharing that device loses may outweigh it
  ASSERT_TRUE(policy->ScoreNode(candidate, score).ok());
  EXPECT_THAT(score.devices, ElementsAre(0));
  EXPECT_DOUBLE_EQ(score.cost, 3 * 0.16);  // a pair less: 1,125 usable lost
}

TEST(HorusPolicy, WithoutAWorkloadFragmentsOnlyOrderPlacesOfEqualGain) {
  JobSpec job = OneGpu(1, 90);
  job.gpu_milli = 300;
  Cluster cluster = Nodes(2, 2);
  ASSERT_TRUE(cluster.Adopt(job, std::vector<Slot>{{2, 1, 0}}).ok());
  job.id = 2;
  EXPECT_EQ(testing_place::Decide(cluster, job).slots[0], (Slot{1, 0, 0}));  // two of 90 % slow each other
  job.demands[0].demand = testing_place::Needs(10, 1000);
  Cluster quiet = Nodes(2, 2);
  ASSERT_TRUE(quiet.Adopt(job, std::vector<Slot>{{2, 1, 0}}).ok());
  job.id = 3;
  EXPECT_EQ(testing_place::Decide(quiet, job).slots[0], (Slot{2, 1, 0}));
}

TEST(Workload, WithoutOneWholeGpusAreWanted) {
  EXPECT_EQ(Workload::WholeGpus()->Fragment(0, Gpus({1000, 999, 1})), 1000);
}

TEST(Workload, RefusesClassesThatAreNone) {
  const TaskClass good{.gpus = 1, .gpu_milli = 1000, .types = {}, .share = 1};
  const auto error = [&](auto spoil) {
    TaskClass bad = good;
    spoil(bad);
    return std::string(Workload::Create({bad}).status().message());
  };
  EXPECT_THAT(error([](TaskClass& one) { one.gpus = -1; }),
              HasSubstr("classes[0]: gpus: expected 0 to 65536, found -1"));
  EXPECT_THAT(error([](TaskClass& one) { one.gpu_milli = 0; }), HasSubstr("gpu_milli"));
  EXPECT_THAT(error([](TaskClass& one) { one.cpu_milli = -1; }), HasSubstr("cpu_milli"));
  EXPECT_THAT(error([](TaskClass& one) { one.share = 0.5; }), HasSubstr("sum 1, found 0.5"));
  EXPECT_THAT(error([](TaskClass& one) { one.share = 0; }), HasSubstr("share"));
  EXPECT_THAT(error([](TaskClass& one) { one.types = {GpuTypeId(2), GpuTypeId(1)}; }), HasSubstr("types"));
  EXPECT_FALSE(Workload::Create({}).ok());
}

TEST(FgdPolicy, ScoresAndChoosesAsPublished) {
  const NodeScore share = Score("fgd", Request(11'908, 460, 1), kCpu, kEight);
  EXPECT_EQ(share.cost, -60);
  EXPECT_THAT(share.devices, ElementsAre(6));
  EXPECT_EQ(Score("fgd", Request(11'908, 460, 1), kCpu, {1000, 1000, 1000, 1000, 1000, 1000, 459, 200}).devices[0], 0);
  const NodeScore two = Score("fgd", Request(16'000, 1000, 2), kCpu, kEight);
  EXPECT_EQ(two.cost, -56);
  EXPECT_THAT(two.devices, ElementsAre(0, 1));
  EXPECT_EQ(Score("fgd", Request(32'000, 0, 0), kCpu, kEight).cost, -50);
}

TEST(DotProdPolicy, ScoresAsPublished) {
  EXPECT_EQ(Score("dotprod", Request(11'908, 460, 1), kCpu, kEight).cost, -95);
  EXPECT_EQ(Score("dotprod", Request(16'000, 1000, 2), kCpu, kEight).cost, -86);
  EXPECT_THAT(Score("dotprod", Request(11'908, 460, 1), kCpu, kEight).devices, ElementsAre(6));
}

TEST(BestFitPolicy, ScoresHardRequestsAsPublished) {
  EXPECT_EQ(Score("best-fit", Request(11'908, 460, 1), kCpu, kEight).cost, -42);
  EXPECT_EQ(Score("best-fit", Request(16'000, 1000, 2), kCpu, kEight).cost, -53);
  EXPECT_FALSE((*MakePolicy("best-fit"))->PricesNode(OneGpu(1)));
}

TEST(GpuClusteringPolicy, PrefersTheCompanyOfItsOwnKind) {
  const JobSpec share = Request(1000, 460, 1);
  const uint64_t shares = KindBit(460, 1);
  const uint64_t whole = KindBit(1000, 1);
  EXPECT_EQ(Score("gpu-clustering", share, kCpu, kEight, shares).cost, -(4 + 75));
  EXPECT_EQ(Score("gpu-clustering", share, kCpu, kEight, shares | whole).cost, -(4 + 50));
  EXPECT_EQ(Score("gpu-clustering", share, kCpu, kEight, whole).cost, -4);
  EXPECT_EQ(Score("gpu-clustering", share, kCpu, {1000, 1000}).cost, -(18 + 25));
  EXPECT_EQ(Score("gpu-clustering", Request(1000, 0, 0), kCpu, kEight, shares).cost, 0);
}

TEST(GpuPackingPolicy, TakesUsedGpusThenIdleOnesThenIdleNodes) {
  EXPECT_EQ(Score("gpu-packing", Request(1000, 300, 1), kCpu, kEight).cost, -(100 - 4));
  EXPECT_EQ(Score("gpu-packing", Request(1000, 500, 1), kCpu, kEight).cost, -49);
  EXPECT_EQ(Score("gpu-packing", Request(1000, 1000, 2), kCpu, kEight).cost, -48);
  EXPECT_EQ(Score("gpu-packing", Request(1000, 1000, 2), kCpu, {1000, 1000}).cost, -31);
  EXPECT_EQ(Score("gpu-packing", Request(1000, 0, 0), kCpu, kEight).cost, 0);
}

TEST(RandomPolicy, DrawsAmongNodesThenAmongTheirDevices) {
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(testing_place::V100Node(1, 1)).ok());
  ASSERT_TRUE(cluster.AddNode(testing_place::V100Node(2, 7)).ok());
  const auto placer = MakePlacer("random");
  size_t first = 0;
  std::vector<size_t> devices(7);
  constexpr size_t kJobs = 700;
  for (JobId id = 0; id < kJobs; ++id) {
    JobSpec job = OneGpu(id);
    job.gpu_milli = 100;
    const Slot slot = placer->MakePlan(cluster, {&job, 1})->decisions[0].slots[0];
    if (slot.node == 1) {
      ++first;
    } else {
      ++devices[static_cast<size_t>(slot.device)];
    }
  }
  EXPECT_NEAR(static_cast<double>(first), kJobs / 2.0, 60);  // by devices it would be 88
  EXPECT_THAT(devices, testing::Each(testing::AllOf(testing::Gt(25u), testing::Lt(80u))));
}

TEST(NodePricing, ATaskStaysWithinOneTypeOfGpu) {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = testing_place::V100Node(1, 3);
  node.devices[1].type = testing_place::Type("k80");
  ASSERT_TRUE(cluster.AddNode(node).ok());
  JobSpec job = OneGpu(1);
  job.gpu_milli = 1000;
  job.gpus_per_task = 2;
  const auto placer = MakePlacer("fgd");
  EXPECT_THAT(PlaceOne(cluster, *placer, job).slots, ElementsAre(Slot{1, 0, 0}, Slot{1, 2, 0}));
  job.id = 2;
  EXPECT_EQ(PlaceOne(cluster, *placer, job).verdict, Verdict::kDefer);
  job.id = 3;
  job.gpus_per_task = 1;
  EXPECT_THAT(PlaceOne(cluster, *placer, job).slots, ElementsAre(Slot{1, 1, 0}));
}

TEST(NodePricing, PricesAreThoseOfTheNodeAsItIsNow) {
  Cluster cluster = Nodes(3, 2);
  const auto kept = MakePlacer("gpu-packing");
  JobSpec job = OneGpu(0);
  job.gpu_milli = 400;
  for (JobId id = 1; id <= 6; ++id) {
    job.id = id;
    const auto anew = MakePlacer("gpu-packing", {.exhaustive = true})->MakePlan(cluster, {&job, 1});
    const Decision decision = PlaceOne(cluster, *kept, job);
    EXPECT_EQ(decision, anew->decisions[0]);
    EXPECT_EQ(decision.slots[0].node, (id + 3) / 4);
    if (id == 5) {
      ASSERT_TRUE(cluster.Release(1).ok());  // room on the first node again
      job.id = 9;
      EXPECT_EQ(PlaceOne(cluster, *kept, job).slots[0], (Slot{1, 0, 0}));
    }
  }
}

class WrongPolicy final : public Policy {
 public:
  std::string_view name() const override { return "wrong"; }
  bool PricesNode(const JobSpec& /*job*/) const override { return true; }
  absl::Status ScoreDevice(const DeviceCandidate& /*candidate*/, DeviceScore& /*score*/) const override {
    return absl::OkStatus();
  }
  absl::Status ScoreNode(const NodeCandidate& /*candidate*/, NodeScore& score) const override {
    score = {cost, devices};
    return absl::OkStatus();
  }
  double cost = 0;
  std::vector<int32_t> devices;
};

TEST(NodePricing, AnAnswerThatIsNoneEndsThePlan) {
  const Cluster cluster = Nodes(1, 2);
  JobSpec job = OneGpu(1);
  job.gpus_per_task = 2;
  const auto answer = [&](const Cluster& where, double cost, std::vector<int32_t> devices) {
    auto policy = std::make_unique<WrongPolicy>();
    policy->cost = cost;
    policy->devices = std::move(devices);
    const auto placer = *Placer::Create(std::make_shared<UtilisationModel>(), std::move(policy));
    return placer->MakePlan(where, {&job, 1}).status();
  };
  EXPECT_TRUE(answer(cluster, 0, {0, 1}).ok());
  for (const std::vector<int32_t>& devices :
       std::vector<std::vector<int32_t>>{{}, {0}, {1, 0}, {0, 0}, {0, 2}, {-1, 0}}) {
    EXPECT_EQ(answer(cluster, 0, devices).code(), absl::StatusCode::kInternal);
  }
  EXPECT_THAT(answer(cluster, std::numeric_limits<double>::infinity(), {0, 1}).message(),
              testing::HasSubstr("expected a finite cost"));
  // Two and two GPUs, and one that is down.
  NodeSpec mixed = V100Node(1, 5);
  mixed.devices[2].type = mixed.devices[3].type = Type("a100-40gb");
  Cluster of_two_types(Catalogue::Default());
  ASSERT_TRUE(of_two_types.AddNode(mixed).ok());
  ASSERT_TRUE(of_two_types.SetDeviceState(1, 4, AdminState::kDown).ok());
  EXPECT_TRUE(answer(of_two_types, 0, {2, 3}).ok());
  EXPECT_THAT(answer(of_two_types, 0, {1, 2}).message(), testing::HasSubstr("of one type and sharing mode"));
  EXPECT_THAT(answer(of_two_types, 0, {0, 4}).message(), testing::HasSubstr("expected devices that fit"));
}

}  // namespace
}  // namespace horus
