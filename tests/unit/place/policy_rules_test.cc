// SPDX-License-Identifier: Apache-2.0
// Rules of the policies that stand for other systems: what each packs, prefers and refuses.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "fixtures.h"
#include "lab/policies/rivals.h"
#include "place/policies/policies.h"
#include "place/search/policy.h"

namespace horus {
namespace {

using testing_place::Decide;
using testing_place::Gang;
using testing_place::Needs;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::Type;
using testing_place::V100Node;

constexpr Slot kNowhere = {0, -1, 0};

Slot SlotOf(const Decision& decision) { return decision.slots.empty() ? kNowhere : decision.slots[0]; }
Slot Choose(const Cluster& cluster, const JobSpec& job, std::string_view policy) {
  return SlotOf(Decide(cluster, job, policy));
}

void Put(Cluster& cluster, const JobSpec& job, const Slot& slot) {
  ASSERT_TRUE(cluster.Adopt(job, std::vector<Slot>{slot}).ok());
}

// One V100 with a resident that keeps it busy so many per cent. By the model of these tests the slowdown of both is
// then the sum of their percentages over 100.
Cluster OneBusy(float util) {
  Cluster cluster = Nodes(1, 1);
  Put(cluster, OneGpu(100, util), {1, 0, 0});
  return cluster;
}

Reason WhyNot(const Cluster& cluster, const JobSpec& job, std::string_view policy) {
  return Decide(cluster, job, policy).reason;
}

absl::StatusOr<std::unique_ptr<Placer>> PlacerOf(std::unique_ptr<const Policy> policy) {
  return Placer::Create(std::make_shared<UtilisationModel>(), std::move(policy));
}

JobSpec OfKind(JobSpec job, JobKind kind, int32_t priority = 0) {
  job.kind = kind;
  job.priority = priority;
  return job;
}

TEST(PolicyOptions, OutOfRangeAreRefused) {
  EXPECT_EQ(MakePolicy("fgd", {.lab = Lab({.pack_threshold = std::nan("")})}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakePolicy("fgd", {.lab = Lab({.foreground_bound = 0.5})}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakePolicy("fgd", {.lab = Lab({.profiling_label = ""})}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(
      MakePolicy("foreground", {.lab = Lab({.foreground_bound = std::numeric_limits<double>::infinity()})}).ok());
}

TEST(LeastUtilisedPolicy, TakesTheDeviceWhoseResidentsAreLeastBusy) {
  Cluster cluster = Nodes(1, 3);
  Put(cluster, OneGpu(100, 50), {1, 0, 0});
  Put(cluster, OneGpu(101, 20), {1, 1, 0});
  Put(cluster, OneGpu(102, 20), {1, 1, 0});
  Put(cluster, OneGpu(103, 45), {1, 2, 0});
  EXPECT_EQ(Choose(cluster, OneGpu(1, 90), "least-utilised"), (Slot{1, 1, 0}));  // 40 % in all
}

TEST(GavelThresholdPolicy, PacksOnlyAboveTheThreshold) {
  EXPECT_EQ(Choose(OneBusy(60), OneGpu(1, 60), "gavel-threshold"), (Slot{1, 0, 0}));  // 2 / 1.2 = 1.67
  EXPECT_EQ(WhyNot(OneBusy(80), OneGpu(1, 80), "gavel-threshold"), Reason::kPolicy);  // 2 / 1.6 = 1.25
  auto lower = PlacerOf(*MakePolicy("gavel-threshold", {.lab = Lab({.pack_threshold = 1.2})}));
  const JobSpec job = OneGpu(1, 80);
  EXPECT_EQ((*lower)->MakePlan(OneBusy(80), {&job, 1})->decisions[0].verdict, Verdict::kPlace);
}

TEST(GavelThresholdPolicy, PrefersAnIdleDeviceAndPacksPairsOnly) {
  Cluster cluster = Nodes(1, 2);
  Put(cluster, OneGpu(100, 10), {1, 0, 0});
  EXPECT_EQ(Choose(cluster, OneGpu(1, 10), "gavel-threshold"), (Slot{1, 1, 0}));
  Cluster pair = OneBusy(10);
  Put(pair, OneGpu(101, 10), {1, 0, 0});
  EXPECT_EQ(WhyNot(pair, OneGpu(1, 10), "gavel-threshold"), Reason::kPolicy);
}

TEST(GavelMaxminPolicy, SharesAFastTypeRatherThanHaveASlowOneAlone) {
  Cluster cluster(Catalogue::Default());
  NodeSpec slow = V100Node(1, 1);
  slow.devices[0].type = Type("k80");
  ASSERT_TRUE(cluster.AddNode(slow).ok());
  ASSERT_TRUE(cluster.AddNode(V100Node(2, 1)).ok());
  Put(cluster, OneGpu(100, 60), {2, 0, 0});
  JobSpec job = OneGpu(1);
  job.demands = {{Type("k80"), Needs(60, 4000, 400'000)}, {Type("v100-sxm2-16gb"), Needs(60, 4000, 100'000)}};
  NormalizeJob(job);
  EXPECT_EQ(Choose(cluster, job, "gavel-maxmin").node, 2u);  // both at 1 / 1.2, else the newcomer at 1 / 4
}

TEST(GavelMaxminPolicy, SparesTheJobThatWouldBeWorstOff) {
  Cluster cluster = Nodes(1, 2);
  Put(cluster, OneGpu(100, 90), {1, 0, 0});
  Put(cluster, OneGpu(101, 70), {1, 1, 0});
  EXPECT_EQ(Choose(cluster, OneGpu(1, 80), "gavel-maxmin"), (Slot{1, 1, 0}));
}

TEST(LucidPolicy, PacksWhereTheClassesSumToTwoAtMost) {
  EXPECT_EQ(Choose(OneBusy(55), OneGpu(1, 50), "lucid"), (Slot{1, 0, 0}));  // 1 / 1.05 = 0.952: 0 + 0
  EXPECT_EQ(Choose(OneBusy(60), OneGpu(1, 55), "lucid"), (Slot{1, 0, 0}));  // 1 / 1.15 = 0.870: 1 + 1
  EXPECT_EQ(WhyNot(OneBusy(60), OneGpu(1, 60), "lucid"), Reason::kPolicy);  // 1 / 1.20 = 0.833: 2 + 2
}

TEST(LucidPolicy, PacksPairsOfEqualShapeAndIdleDevicesFirst) {
  Cluster pair = OneBusy(10);
  Put(pair, OneGpu(101, 10), {1, 0, 0});
  EXPECT_EQ(WhyNot(pair, OneGpu(1, 10), "lucid"), Reason::kPolicy);
  Cluster gang = Nodes(1, 2);
  ASSERT_TRUE(gang.Adopt(Gang(100, 1, 2, 10), std::vector<Slot>{{1, 0, 0}, {1, 1, 0}}).ok());
  EXPECT_EQ(WhyNot(gang, OneGpu(1, 10), "lucid"), Reason::kPolicy);
  EXPECT_EQ(Decide(gang, Gang(1, 1, 2, 10), "lucid").verdict, Verdict::kPlace);
  Cluster half = Nodes(1, 2);
  Put(half, OneGpu(100, 10), {1, 0, 0});
  EXPECT_EQ(Choose(half, OneGpu(1, 10), "lucid"), (Slot{1, 1, 0}));
}

TEST(MuriPolicy, InterleavesWithTheJobWhoseStagesComplementItsOwn) {
  Cluster cluster = Nodes(1, 2);
  Put(cluster, OneGpu(100, 20), {1, 0, 0});  // mostly on the host, as the newcomer
  Put(cluster, OneGpu(101, 80), {1, 1, 0});  // mostly on the device
  EXPECT_EQ(Choose(cluster, OneGpu(1, 20), "muri"), (Slot{1, 1, 0}));
  Cluster memory = Nodes(1, 2);
  JobSpec streaming = OneGpu(100, 90);
  streaming.demands[0].demand.mem_bw_util_pct = {90, 90};
  Put(memory, OneGpu(101, 90), {1, 0, 0});  // arithmetic, as the newcomer
  Put(memory, streaming, {1, 1, 0});
  EXPECT_EQ(Choose(memory, OneGpu(1, 90), "muri"), (Slot{1, 1, 0}));
}

TEST(MuriPolicy, CountsTheTimeOfARoundWhereStepsAreTimed) {
  // Beside a step a hundred times as long, most of the round is the long one's alone.
  Cluster cluster = Nodes(1, 2);
  const auto timed = [](JobId id, float util, int64_t step) {
    JobSpec job = OneGpu(id);
    job.demands[0].demand = Needs(util, 4000, step);
    return job;
  };
  Put(cluster, timed(100, 50, 10'000'000), {1, 0, 0});
  Put(cluster, timed(101, 60, 100'000), {1, 1, 0});
  EXPECT_EQ(Choose(cluster, timed(1, 50, 100'000), "muri"), (Slot{1, 1, 0}));
}

TEST(MuriPolicy, TakesIdleDevicesFirstAndOneJobAStageAtMost) {
  Cluster cluster = Nodes(1, 2);
  Put(cluster, OneGpu(100, 95), {1, 0, 0});
  EXPECT_EQ(Choose(cluster, OneGpu(1, 5), "muri"), (Slot{1, 1, 0}));
  Cluster full = Nodes(1, 1);
  for (JobId id = 100; id < 103; ++id) Put(full, OneGpu(id, 5, 1000), {1, 0, 0});
  const Decision fourth = Decide(full, OneGpu(1, 5, 1000), "muri", {.max_tenants = 4});
  EXPECT_EQ(fourth.reason, Reason::kPolicy);
}

// Instances of 1, 2 and 4 of 7 slices on one card: devices 0, 1 and 2.
Cluster Sliced() {
  NodeSpec node = V100Node(1, 3);
  const GpuType& type = Catalogue::Default()->at(Type("a100-40gb"));
  const std::vector<int64_t> slices = {1, 2, 4};
  for (size_t i = 0; i < slices.size(); ++i) {
    int16_t profile = 0;
    while (type.mig[static_cast<size_t>(profile)].compute_slices != slices[i]) ++profile;
    node.devices[i] = {.type = Type("a100-40gb"), .mode = SharingMode::kMig, .mig_profile = profile, .physical_gpu = 0};
  }
  Cluster cluster(Catalogue::Default());
  EXPECT_TRUE(cluster.AddNode(node).ok());
  return cluster;
}

TEST(MisoPolicy, TakesTheInstanceOfTheBestSpeedAndOfEqualOnesTheSmallest) {
  EXPECT_EQ(Choose(Sliced(), OneGpu(1, 90, 2000), "miso"), (Slot{1, 2, 0}));
  EXPECT_EQ(Choose(Sliced(), OneGpu(1, 25, 2000), "miso"), (Slot{1, 1, 0}));  // 2 / 7 are enough for 25 %
  EXPECT_EQ(Choose(Sliced(), OneGpu(1, 10, 2000), "miso"), (Slot{1, 0, 0}));
}

TEST(MisoPolicy, PutsOneJobOnAnInstance) {
  Cluster cluster = Sliced();
  Put(cluster, OneGpu(100, 5, 1000), {1, 0, 0});
  EXPECT_EQ(Choose(cluster, OneGpu(1, 10, 2000), "miso"), (Slot{1, 1, 0}));
}

TEST(PolluxAvoidPolicy, KeepsDistributedJobsOnNodesOfTheirOwn) {
  Cluster cluster = Nodes(2, 2);
  ASSERT_TRUE(cluster.Adopt(Gang(100, 2, 1), std::vector<Slot>{{1, 0, 0}, {2, 0, 1}}).ok());
  const Decision second = Decide(cluster, Gang(1, 2, 1), "pollux-avoid");
  EXPECT_EQ(second.verdict, Verdict::kDefer);
  EXPECT_EQ(second.reason, Reason::kPolicy);
  EXPECT_EQ(second.miss.reason, Reason::kPolicy);
  EXPECT_EQ(second.miss.device, -1);                                       // the node as a whole
  EXPECT_EQ(Choose(cluster, OneGpu(1), "pollux-avoid"), (Slot{1, 1, 0}));  // no all-reduce of its own
  EXPECT_EQ(Decide(cluster, Gang(1, 2, 1), "exclusive").verdict, Verdict::kPlace);
  ASSERT_TRUE(cluster.AddNode(V100Node(3)).ok());
  EXPECT_EQ(Choose(cluster, Gang(1, 2, 1), "pollux-avoid"), (Slot{3, 0, 0}));
}

// Node 1 profiles; node 2 works.
Cluster Profiled() {
  Cluster cluster(Catalogue::Default());
  NodeSpec profiler = V100Node(1, 1);
  profiler.labels = {{kProfilingLabel, "yes"}};
  EXPECT_TRUE(cluster.AddNode(profiler).ok());
  EXPECT_TRUE(cluster.AddNode(V100Node(2, 1)).ok());
  return cluster;
}

JobSpec Measured(JobSpec job) {
  for (TypeDemand& entry : job.demands) entry.demand.flags |= kDemandMeasured;
  return job;
}

TEST(ReactivePolicy, ProfilesTheUnseenAloneOnReservedNodes) {
  Cluster cluster = Profiled();
  EXPECT_EQ(Choose(cluster, OneGpu(1, 5), "reactive"), (Slot{1, 0, 0}));
  Put(cluster, OneGpu(100, 5), {1, 0, 0});
  EXPECT_EQ(WhyNot(cluster, OneGpu(1, 5), "reactive"), Reason::kPolicy);  // waits, though node 2 is idle
}

TEST(ReactivePolicy, PlacesTheMeasuredElsewhereByThePublishedCost) {
  Cluster cluster = Profiled();
  EXPECT_EQ(Choose(cluster, Measured(OneGpu(1, 50)), "reactive"), (Slot{2, 0, 0}));
  Put(cluster, Measured(OneGpu(100, 80)), {2, 0, 0});
  const Decision shared = Decide(cluster, Measured(OneGpu(1, 50)), "reactive");
  EXPECT_EQ(SlotOf(shared), (Slot{2, 0, 0}));  // over-commit is dear, not forbidden
  EXPECT_DOUBLE_EQ(shared.winner.cost, Decide(OneBusy(80), OneGpu(1, 50), "horus-paper").winner.cost);
}

JobSpec Known(JobId id, uint64_t profile, float util = 50) {
  JobSpec job = OneGpu(id, util, 1000);
  job.demands[0].demand.profile_id = profile;
  return job;
}

TEST(GandivaPolicy, PacksOnlyWhenNoDeviceIsIdleAndThenAtRandom) {
  Cluster cluster = Nodes(1, 8);
  for (int32_t device = 0; device < 7; ++device) Put(cluster, OneGpu(100 + static_cast<JobId>(device)), {1, device, 0});
  std::set<Slot> packed;
  for (JobId id = 1; id <= 32; ++id) {
    EXPECT_EQ(Choose(cluster, OneGpu(id), "gandiva"), (Slot{1, 7, 0}));
  }
  Put(cluster, OneGpu(107), {1, 7, 0});
  for (JobId id = 1; id <= 32; ++id) packed.insert(Choose(cluster, OneGpu(id), "gandiva"));
  EXPECT_GT(packed.size(), 5u);
}

TEST(GandivaPolicy, UndoesAPackThatDoesLessThanOneJobAloneAndNeverRepeatsIt) {
  Cluster cluster = Nodes(1, 1);
  const JobSpec resident = Known(100, 7), job = Known(1, 8), other = Known(2, 9);
  Put(cluster, resident, {1, 0, 0});
  const auto naive = MakePolicy("gandiva");
  const DeviceContext device = {Type("v100-sxm2-16gb"), SharingMode::kTimeSlice, 1};
  const std::vector<const Demand*> tenants = {&job.demands[0].demand, &resident.demands[0].demand};
  const std::vector<double> good = {0.5, 0.5}, bad = {0.5, 0.4};
  auto fine = (*naive)->Revise({device, tenants, good});
  ASSERT_TRUE(fine.ok());
  EXPECT_FALSE(fine->undo);
  EXPECT_EQ(fine->policy, nullptr);
  auto revision = (*naive)->Revise({device, tenants, bad});
  ASSERT_TRUE(revision.ok());
  EXPECT_TRUE(revision->undo);
  ASSERT_NE(revision->policy, nullptr);
  auto again = revision->policy->Revise({device, tenants, good});  // as when one of them changed its ways
  EXPECT_NE(again->policy, nullptr);
  EXPECT_EQ(Choose(cluster, job, "gandiva"), (Slot{1, 0, 0}));
  auto placer = PlacerOf(std::move(revision->policy));
  EXPECT_EQ((*placer)->MakePlan(cluster, {&job, 1})->decisions[0].reason, Reason::kPolicy);
  EXPECT_EQ((*placer)->MakePlan(cluster, {&other, 1})->decisions[0].verdict, Verdict::kPlace);
  auto forgotten = PlacerOf(std::move(again->policy));
  EXPECT_EQ((*forgotten)->MakePlan(cluster, {&job, 1})->decisions[0].verdict, Verdict::kPlace);
}

TEST(GandivaPolicy, RefusesABadPairBesideAThirdToo) {
  Cluster cluster = Nodes(1, 1);
  const JobSpec resident = Known(100, 7), job = Known(1, 8);
  Put(cluster, resident, {1, 0, 0});
  Put(cluster, Known(101, 9), {1, 0, 0});
  const std::vector<const Demand*> tenants = {&resident.demands[0].demand, &job.demands[0].demand};
  const std::vector<double> bad = {0.4, 0.4};
  auto revision = (*MakePolicy("gandiva"))->Revise({{Type("v100-sxm2-16gb")}, tenants, bad});
  auto placer = PlacerOf(std::move(revision->policy));
  EXPECT_EQ((*placer)->MakePlan(cluster, {&job, 1})->decisions[0].reason, Reason::kPolicy);
}

TEST(Policy, LearnsNothingFromObservationsThatSayNothing) {
  const JobSpec nameless = OneGpu(1);
  const std::vector<const Demand*> tenants = {&nameless.demands[0].demand, &nameless.demands[0].demand};
  const std::vector<double> bad = {0.1, 0.1}, shorter = {0.1}, wrong = {0.1, -1};
  for (const std::string_view name : PolicyNames()) {
    const auto policy = MakePolicy(name);
    const auto revision = (*policy)->Revise({{}, tenants, bad});
    ASSERT_TRUE(revision.ok()) << name;
    EXPECT_EQ(revision->policy, nullptr) << name;
    EXPECT_EQ(revision->undo, name == "gandiva") << name;
    EXPECT_EQ((*policy)->Revise({{}, tenants, shorter}).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ((*policy)->Revise({{}, tenants, wrong}).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(ForegroundPolicy, LetsBackgroundInOnlyWithinTheForegroundsBound) {
  const auto background = [](float util) { return OfKind(OneGpu(1, util), JobKind::kBestEffort); };
  EXPECT_EQ(Choose(OneBusy(60), background(45), "foreground"), (Slot{1, 0, 0}));  // 1.05
  EXPECT_EQ(WhyNot(OneBusy(60), background(60), "foreground"), Reason::kPolicy);  // 1.2
  Cluster patient = Nodes(1, 1);
  JobSpec resident = OneGpu(100, 60);
  resident.slowdown_bound = 1.25f;  // its own bound counts
  Put(patient, resident, {1, 0, 0});
  EXPECT_EQ(Choose(patient, background(60), "foreground"), (Slot{1, 0, 0}));
}

TEST(ForegroundPolicy, KeepsAForegroundJobOffBackgroundThatWouldSlowIt) {
  Cluster cluster = Nodes(1, 1);
  Put(cluster, OfKind(OneGpu(100, 60), JobKind::kBestEffort), {1, 0, 0});
  EXPECT_EQ(WhyNot(cluster, OfKind(OneGpu(1, 60), JobKind::kInference), "foreground"), Reason::kPolicy);
  EXPECT_EQ(Choose(cluster, OfKind(OneGpu(1, 40), JobKind::kInference), "foreground"), (Slot{1, 0, 0}));
}

TEST(ForegroundPolicy, HasOneForegroundJobADeviceButAnyBestEffort) {
  EXPECT_EQ(WhyNot(OneBusy(10), OneGpu(1, 10), "foreground"), Reason::kPolicy);
  EXPECT_EQ(Choose(OneBusy(10), OfKind(OneGpu(1, 10), JobKind::kTraining, 1), "foreground"), (Slot{1, 0, 0}));
  Cluster background = Nodes(1, 1);
  Put(background, OfKind(OneGpu(100, 90), JobKind::kBestEffort), {1, 0, 0});
  EXPECT_EQ(Choose(background, OfKind(OneGpu(1, 90), JobKind::kBestEffort), "foreground"), (Slot{1, 0, 0}));
}

TEST(FillerPolicy, PutsBestEffortOnIdleDevicesOnly) {
  EXPECT_EQ(WhyNot(OneBusy(5), OfKind(OneGpu(1, 5), JobKind::kBestEffort), "filler"), Reason::kPolicy);
  Cluster cluster = Nodes(2, 2);
  Put(cluster, OneGpu(100), {2, 0, 0});
  // Node 1 is idle as a whole: the filler leaves it so.
  EXPECT_EQ(Choose(cluster, OfKind(OneGpu(1, 5), JobKind::kBestEffort), "filler"), (Slot{2, 1, 0}));
}

TEST(FillerPolicy, LetsOthersOntoFillersWhenNothingIsIdle) {
  Cluster cluster = Nodes(1, 2);
  Put(cluster, OfKind(OneGpu(100), JobKind::kBestEffort), {1, 1, 0});
  EXPECT_EQ(Choose(cluster, OneGpu(1), "filler"), (Slot{1, 0, 0}));
  Put(cluster, OneGpu(101), {1, 0, 0});
  EXPECT_EQ(Choose(cluster, OneGpu(1), "filler"), (Slot{1, 1, 0}));
  Put(cluster, OneGpu(102), {1, 1, 0});
  EXPECT_EQ(WhyNot(cluster, OneGpu(1), "filler"), Reason::kPolicy);
}

TEST(OraclePolicy, DecidesAsHorusWithTheSameModel) {
  Cluster cluster = Nodes(2, 2);
  Put(cluster, OneGpu(100, 90), {1, 0, 0});
  Put(cluster, OneGpu(101, 30), {1, 1, 0});
  for (float util = 5; util <= 100; util += 5) {
    EXPECT_EQ(Decide(cluster, OneGpu(1, util), "oracle"), Decide(cluster, OneGpu(1, util), "horus")) << util;
  }
  EXPECT_EQ((*MakePolicy("oracle"))->default_slowdown_bound(), (*MakePolicy("horus"))->default_slowdown_bound());
}

// Whoever shares is slowed alike: by expectation as told, at most 50 times.
class SlowingModel final : public InterferenceModel {
 public:
  explicit SlowingModel(float expected) : expected_(expected) {}
  [[nodiscard]] std::string_view name() const override { return "slowing"; }
  [[nodiscard]] uint64_t epoch() const override { return 1; }
  [[nodiscard]] absl::Status Predict(const DeviceContext& /*device*/, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override {
    std::fill(out.begin(), out.end(), tenants.size() > 1 ? Slowdown{expected_, 50} : Slowdown());
    return absl::OkStatus();
  }

 private:
  float expected_;
};

// Of a job that counts so much that sharing always pays, beside one that is there.
Reason Sharing(float expected, float bound) {
  const auto placer = *Placer::Create(std::make_shared<SlowingModel>(expected), *MakePolicy("horus"));
  const Cluster cluster = OneBusy(50);
  JobSpec job = OneGpu(1, 50);
  job.weight = 100;
  job.slowdown_bound = bound;
  return placer->MakePlan(cluster, {&job, 1})->decisions[0].reason;
}

TEST(HorusPolicy, SharesByExpectationWithAGuardWhereNoBoundIsStated) {
  EXPECT_EQ(Sharing(2.9f, 0), Reason::kNone);
  EXPECT_EQ(Sharing(3.1f, 0), Reason::kPolicy);
  EXPECT_EQ(Sharing(1.1f, 49), Reason::kSlowdownOwn);  // who asks is promised
  EXPECT_EQ(Sharing(2.9f, 51), Reason::kNone);
}

}  // namespace
}  // namespace horus
