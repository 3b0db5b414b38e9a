// SPDX-License-Identifier: Apache-2.0
// Caps on SMs: what a cap costs the job itself, where it may run, and when the placer chooses one.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "fixtures.h"
#include "interference/laws.h"
#include "place/modes/batch.h"
#include "place/policies/policies.h"

namespace horus {
namespace {

using testing_place::MakePlacer;
using testing_place::Needs;
using testing_place::PlaceOne;
using testing_place::Type;
using testing_place::V100Node;

// The law of MPS as it stands, without margins.
class LawModel final : public InterferenceModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "law"; }
  [[nodiscard]] uint64_t epoch() const override { return 1; }
  [[nodiscard]] bool knows_caps() const override { return true; }
  [[nodiscard]] absl::Status Predict(const DeviceContext& /*device*/, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override {
    std::vector<double> works, caps, slowdowns(tenants.size());
    for (const Demand* tenant : tenants) {
      works.push_back(WorkShare(*tenant));
      caps.push_back(static_cast<double>(tenant->sm_cap));
    }
    MpsSlowdowns(works, caps, slowdowns);
    for (size_t i = 0; i < out.size(); ++i) {
      const auto slowed = static_cast<float>(std::max(1.0, slowdowns[i] / CapStretch(*tenants[i])));
      out[i] = {slowed, slowed};
    }
    return absl::OkStatus();
  }
};

std::unique_ptr<Placer> LawPlacer(bool sm_caps) {
  return *Placer::Create(std::make_shared<LawModel>(), *MakePolicy("horus"), {.sm_caps = sm_caps});
}

Cluster OneMpsGpu() {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = V100Node(1, 1);
  node.devices[0].mode = SharingMode::kMps;
  EXPECT_TRUE(cluster.AddNode(node).ok());
  return cluster;
}

JobSpec JobOf(JobId id, float util, JobKind kind, float bound) {
  JobSpec job{.id = id, .kind = kind, .slowdown_bound = bound};
  job.share = ShareWith::kAnyone;
  Demand demand = Needs(util, 2000, 10'000);
  demand.mem_bw_util_pct = {util / 2, util / 2};
  job.demands = {{Type("v100-sxm2-16gb"), demand}};
  return job;
}
JobSpec Service(float bound = 1.15f) { return JobOf(1, 30, JobKind::kInference, bound); }
JobSpec Trainer(float util = 60, float bound = 0) { return JobOf(2, util, JobKind::kTraining, bound); }

TEST(SmCaps, AJobThatItsNeighbourCannotBearWholeGoesBesideItCapped) {
  for (const bool sm_caps : {false, true}) {
    Cluster cluster = OneMpsGpu();
    const auto placer = LawPlacer(sm_caps);
    ASSERT_EQ(PlaceOne(cluster, *placer, Service()).verdict, Verdict::kPlace);
    const Decision decision = PlaceOne(cluster, *placer, Trainer());
    if (!sm_caps) {
      EXPECT_EQ(decision.reason, Reason::kSlowdownNeighbour);
      EXPECT_EQ(decision.sm_cap_pct, 0);
      continue;
    }
    ASSERT_EQ(decision.verdict, Verdict::kPlace);
    ASSERT_GT(decision.sm_cap_pct, 0);
    EXPECT_NE(DescribeDecision(decision).find("Capped at"), std::string::npos);
    EXPECT_EQ(cluster.Job(2)->spec->sm_cap_pct, decision.sm_cap_pct);  // others are planned beside the capped job
    for (const TenantEffect& effect : decision.effects) {
      EXPECT_TRUE(effect.is_new || effect.after.upper <= 1.15f);
    }
    // The next larger one would not have kept the bound.
    Cluster again = OneMpsGpu();
    ASSERT_EQ(PlaceOne(again, *placer, Service()).verdict, Verdict::kPlace);
    JobSpec larger = Trainer();
    const auto at = std::ranges::find(kSmCapsPct, decision.sm_cap_pct);
    ASSERT_NE(at, kSmCapsPct.end());
    larger.sm_cap_pct = at == kSmCapsPct.begin() ? 100 : *(at - 1);
    EXPECT_EQ(PlaceOne(again, *placer, larger).reason, Reason::kSlowdownNeighbour);
  }
}

TEST(SmCaps, WhoFitsUncappedIsNotCapped) {
  Cluster cluster = OneMpsGpu();
  const auto placer = LawPlacer(true);
  ASSERT_EQ(PlaceOne(cluster, *placer, Service(3)).verdict, Verdict::kPlace);
  const Decision decision = PlaceOne(cluster, *placer, Trainer());
  EXPECT_EQ(decision.verdict, Verdict::kPlace);
  EXPECT_EQ(decision.sm_cap_pct, 0);
}

// A job that keeps hardly any of its speed under a cap waits instead: no runtime takes a cap back from one that runs.
TEST(SmCaps, NobodyIsCappedBelowTheSpeedThatItsKindKeeps) {
  Cluster cluster = OneMpsGpu();
  const auto placer = LawPlacer(true);
  ASSERT_EQ(PlaceOne(cluster, *placer, Service(1.02f)).verdict, Verdict::kPlace);
  EXPECT_EQ(PlaceOne(cluster, *placer, Trainer(100)).reason, Reason::kSlowdownNeighbour);
  Demand capped = Trainer(100).demands[0].demand;
  capped.sm_cap = 0.1f;
  EXPECT_GT(CapStretch(capped), kSlowdownGuard);
}

TEST(SmCaps, ACapTakesItsPartOfTheJobsOwnBound) {
  const auto placer = LawPlacer(false);
  JobSpec job = Trainer(90, 1.5f);
  job.sm_cap_pct = 30;
  Cluster cluster = OneMpsGpu();
  const Decision refused = PlaceOne(cluster, *placer, job);
  EXPECT_EQ(refused.reason, Reason::kSlowdownOwn);
  job.slowdown_bound = 4;
  EXPECT_EQ(PlaceOne(cluster, *placer, job).verdict, Verdict::kPlace);
}

// Nothing but MPS keeps to a cap of SMs.
TEST(SmCaps, ACappedJobRunsUnderMpsAlone) {
  for (const SharingMode mode : {SharingMode::kTimeSlice, SharingMode::kExclusive, SharingMode::kMps}) {
    Cluster cluster(Catalogue::Default());
    NodeSpec node = V100Node(1, 1);
    node.devices[0].mode = mode;
    ASSERT_TRUE(cluster.AddNode(node).ok());
    JobSpec job = Trainer();
    job.sm_cap_pct = 50;
    const Decision decision = PlaceOne(cluster, *MakePlacer(), job);
    EXPECT_EQ(decision.verdict, mode == SharingMode::kMps ? Verdict::kPlace : Verdict::kReject);
    EXPECT_EQ(decision.reason, mode == SharingMode::kMps ? Reason::kNone : Reason::kSharingMode);
    EXPECT_EQ(decision.sm_cap_pct, mode == SharingMode::kMps ? 50 : 0);
  }
}

// What is learned of a job under a cap says nothing of it without; what was measured of it without is still found.
TEST(SmCaps, ACappedJobIsAnotherToWhoeverLearns) {
  JobSpec job = Trainer();
  job.demands[0].demand.profile_id = 7;
  const auto learned_as = [&] { return ProfileAsRun(AsRun(job, job.demands[0].demand)); };
  EXPECT_EQ(learned_as(), 7u);
  job.sm_cap_pct = 50;
  const uint64_t capped = learned_as();
  EXPECT_NE(capped, 7u);
  EXPECT_EQ(AsRun(job, job.demands[0].demand).profile_id, 7u);
  job.sm_cap_pct = 20;
  EXPECT_NE(learned_as(), capped);
}

// A step that waits for its host takes no longer, as long as that hides the cap.
TEST(SmCaps, ASlowHostHidesACap) {
  Demand demand = Trainer().demands[0].demand;
  demand.sm_cap = 0.5f;
  EXPECT_GT(CapStretch(demand), 1.3);
  demand.host_us = 4 * static_cast<double>(demand.step_time_us.estimate);
  EXPECT_EQ(CapStretch(demand), 1);
}

// Of two types the fast one may not pass for the one where the cap leaves hardly anything.
TEST(SmCaps, ATypeOnWhichTheCapLeavesTooLittleIsNoPlace) {
  Cluster cluster = OneMpsGpu();
  const auto placer = LawPlacer(true);
  ASSERT_EQ(PlaceOne(cluster, *placer, Service(1.02f)).verdict, Verdict::kPlace);
  JobSpec job = Trainer(100);
  Demand light = Needs(10, 2000, 10'000);
  job.demands.insert(job.demands.begin(), {Type("k80"), light});
  std::ranges::sort(job.demands, {}, &TypeDemand::type);
  EXPECT_EQ(PlaceOne(cluster, *placer, job).verdict, Verdict::kDefer);
}

// A batch caps whom it cannot place otherwise, as a plan does.
TEST(SmCaps, ABatchCapsAsAPlanDoes) {
  Cluster cluster = OneMpsGpu();
  const auto placer = LawPlacer(true);
  ASSERT_EQ(PlaceOne(cluster, *placer, Service()).verdict, Verdict::kPlace);
  const auto alone = placer->MakePlan(cluster, std::vector<JobSpec>{Trainer()});
  const auto batch = PlanBatch(*placer, cluster, std::vector<JobSpec>{Trainer()});
  ASSERT_TRUE(alone.ok() && batch.ok());
  EXPECT_GT(batch->decisions[0].sm_cap_pct, 0);
  EXPECT_EQ(batch->decisions[0].sm_cap_pct, alone->decisions[0].sm_cap_pct);
  ASSERT_EQ(batch->actions.size(), 1u);
  EXPECT_EQ(batch->actions[0].job->sm_cap_pct, batch->decisions[0].sm_cap_pct);
  EXPECT_TRUE(cluster.Apply(*batch).ok());
}

// Who is told less is answered alike.
TEST(SmCaps, TersePlacersChooseTheSame) {
  for (const float bound : {1.02f, 1.15f, 2.0f}) {
    std::vector<int32_t> caps;
    for (const bool terse : {false, true}) {
      Cluster cluster = OneMpsGpu();
      const auto placer =
          *Placer::Create(std::make_shared<LawModel>(), *MakePolicy("horus"), {.sm_caps = true, .terse = terse});
      ASSERT_EQ(PlaceOne(cluster, *placer, Service(bound)).verdict, Verdict::kPlace);
      caps.push_back(PlaceOne(cluster, *placer, Trainer()).sm_cap_pct);
    }
    EXPECT_EQ(caps[0], caps[1]) << bound;
  }
}

// All GPUs of a gang have one cap: its tasks go step by step, so the others would wait for one that has less.
TEST(SmCaps, AGangIsCappedAlikeOnAllItsGpus) {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = V100Node(1, 2);
  for (size_t i = 0; i < 2; ++i) node.devices[i].mode = SharingMode::kMps;
  ASSERT_TRUE(cluster.AddNode(node).ok());
  const auto placer = LawPlacer(true);
  for (const JobId id : {1, 3}) {
    JobSpec service = Service(id == 1 ? 1.15f : 1.3f);
    service.id = id;
    ASSERT_EQ(PlaceOne(cluster, *placer, service).verdict, Verdict::kPlace);
  }
  JobSpec gang = Trainer();
  gang.gpus_per_task = 2;
  const Decision decision = PlaceOne(cluster, *placer, gang);
  ASSERT_EQ(decision.verdict, Verdict::kPlace);
  ASSERT_EQ(decision.slots.size(), 2u);
  EXPECT_EQ(cluster.Job(2)->spec->sm_cap_pct, decision.sm_cap_pct);
  Cluster one = OneMpsGpu();
  ASSERT_EQ(PlaceOne(one, *placer, Service()).verdict, Verdict::kPlace);
  EXPECT_EQ(decision.sm_cap_pct, PlaceOne(one, *placer, Trainer()).sm_cap_pct) << "what the tighter bound needs";
}

// Whoever asks a model that knows nothing of caps gets none: its answers would be those without.
TEST(SmCaps, AModelWithoutCapsChoosesNone) {
  Cluster cluster = OneMpsGpu();
  const auto placer = MakePlacer("horus", {.sm_caps = true});
  ASSERT_EQ(PlaceOne(cluster, *placer, Service()).verdict, Verdict::kPlace);
  EXPECT_EQ(PlaceOne(cluster, *placer, Trainer()).sm_cap_pct, 0);
}

}  // namespace
}  // namespace horus
