// SPDX-License-Identifier: Apache-2.0
// Learned models behind the seam: which bound stands where, and what is refused.
#include "interference/learned_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fake_model.h"
#include "interference/kernel_model.h"
#include "interference/laws.h"
#include "interference/registry.h"

namespace horus {
namespace {

constexpr uint64_t kSeenJobs = 4;  // JobOf(1) to JobOf(4), on all devices of the bundle
constexpr double kOfPair = 0.1, kOfFamily = 0.3, kOfStrangers = 0.4, kOfUnseen = 0.7, kLevel = 0.4;

// Two GPU types, the first of them with MPS as well.
PairBundleHead Head() {
  PairBundleHead head;
  head.header.devices = {
      {GpuName(0), SharingMode::kTimeSlice}, {GpuName(0), SharingMode::kMps}, {GpuName(1), SharingMode::kTimeSlice}};
  for (uint64_t job = 1; job <= kSeenJobs; ++job) head.header.profiles.push_back(job);
  head.seen.assign(head.header.devices.size(), {0, 1, 2, 3});
  return head;
}

Bundle MadeUp(double mean = -0.3) {
  KernelState state{.centre = {11, 5, 5, -0.5}, .scale = {1.6, 1.6, 1.6, 0.4}, .mean = mean};
  for (size_t d = 0; d < Head().header.devices.size(); ++d) {
    KernelBlock& block = state.blocks.emplace_back();
    for (uint32_t job = 0; job < kSeenJobs; ++job) {
      block.jobs.push_back(job);
      block.points.push_back(state.Standardise(TenantOf(JobOf(job + 1), {}).point));
    }
    for (size_t i = 0; i < kSeenJobs * kSeenJobs; ++i) block.weights.push_back(0.1 * DrawNormal(100 * d + i));
  }
  const PairBounds::Device device{
      .pair = {kOfPair, 0.95, 0.96}, .family = {kOfFamily, 0.9, 0.9}, .strangers = {kOfStrangers, 0.9, 0.9}};
  Bundle bundle;
  WriteHead(Head(), bundle);
  bundle.targets.push_back(ToTarget(state));
  WriteBounds({.devices = {device, device, device}, .unseen = {kOfUnseen, 0.5, 0.5}, .level = kLevel},
              bundle.targets[0]);
  return bundle;
}

std::shared_ptr<const LearnedModel> Created(const Bundle& bundle = MadeUp()) {
  auto model = LearnedModel::Create(bundle, "horus", *Catalogue::Default());
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : nullptr;
}

bool Sound(const Slowdown& s) { return s.estimate >= 1 && s.upper >= s.estimate && s.upper <= kMaxSlowdown; }

TEST(LearnedModel, ALoneTenantIsUndisturbedAndNobodyNeedsNoAnswer) {
  const auto model = Created();
  for (const SharingMode mode : kSharingModes) {
    EXPECT_EQ(Ask(*model, {JobOf(1)}, {.type = GpuTypeId(0), .mode = mode}), (std::vector<Slowdown>{{1, 1}}));
  }
  EXPECT_TRUE(model->Predict({}, {}, {}).ok());
}

TEST(LearnedModel, TheOrderOfTenantsDoesNotMatter) {
  const auto model = Created();
  std::vector<uint64_t> order = {0, 1, 2, 3};
  const std::vector<Demand> jobs = {JobOf(1), JobOf(2), JobOf(8), JobOf(9)};
  const std::vector<Slowdown> expected = Ask(*model, jobs);
  do {
    const std::vector<Slowdown> found = Ask(*model, {jobs[order[0]], jobs[order[1]], jobs[order[2]], jobs[order[3]]});
    for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(found[i], expected[order[i]]);
  } while (std::next_permutation(order.begin(), order.end()));
}

// What callers rely on who keep pairs: those of each two alone add up to the answer for all.
TEST(LearnedModel, WhatPairsCostAddsUpToTheAnswer) {
  const auto model = Created();
  ASSERT_TRUE(model->adds_pairs());
  const std::vector<Demand> jobs = {JobOf(1), JobOf(2), JobOf(8), JobOf(9)};
  std::vector<PairExcess> sums(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    for (size_t j = i + 1; j < jobs.size(); ++j) {
      const std::vector<const Demand*> two = {&jobs[i], &jobs[j]};
      std::vector<PairExcess> pair(4);
      ASSERT_TRUE(model->PredictPairs({.type = GpuTypeId(0)}, two, pair).ok());
      AddExcess(sums[i], pair[1]);
      AddExcess(sums[j], pair[2]);
    }
  }
  const std::vector<Slowdown> found = Ask(*model, jobs);
  for (size_t i = 0; i < jobs.size(); ++i) EXPECT_EQ(SlowdownOf(sums[i]), found[i]) << i;
  std::vector<PairExcess> short_of_room(3);
  EXPECT_EQ(model->PredictPairs({}, std::vector<const Demand*>{&jobs[0], &jobs[1]}, short_of_room).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(LearnedModel, AnswersAreSlowdownsForAnyTenantsAnywhere) {
  const auto model = Created();
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<Demand> jobs;
    for (uint64_t i = 0; i < 2 + seed % 4; ++i) {
      Demand job = JobOf(1 + Mix64(10 * seed + i) % 12);
      if (i % 3 == 1) job = Demand{.gpu_util_pct = {100, 100}};
      if (i % 3 == 2) job.traits[static_cast<size_t>(Trait::kLogKernels)] = seed % 2 == 0 ? 1e30f : -1e30f;
      jobs.push_back(job);
    }
    const DeviceContext device{.type = GpuTypeId(static_cast<uint16_t>(seed % 3)),
                               .mode = kSharingModes[seed % kSharingModes.size()],
                               .compute_share = seed % 5 == 0 ? 1.0f / 7 : 1};
    const std::vector<Slowdown> found = Ask(*model, jobs, device);
    ASSERT_EQ(found.size(), jobs.size());
    for (const Slowdown& slowdown : found) EXPECT_TRUE(Sound(slowdown)) << slowdown.estimate << " " << slowdown.upper;
  }
}

TEST(LearnedModel, TheBoundIsThatOfWhatWasSeen) {
  const auto model = Created();
  const auto margin = [&](const DeviceContext& device, uint64_t victim, uint64_t other) {
    return model->MarginOf(device, victim, other).margin;
  };
  const DeviceContext slice{.type = GpuTypeId(0)};
  EXPECT_EQ(margin(slice, 1, 2), kOfPair);
  EXPECT_EQ(margin(slice, 1, 1), kOfPair);
  EXPECT_EQ(margin(slice, 1, 9), kOfFamily);
  EXPECT_EQ(margin(slice, 9, 1), kOfFamily);
  EXPECT_EQ(margin(slice, 9, 9), kOfStrangers);
  EXPECT_EQ(margin(slice, 0, 1), kOfFamily);  // no profile: nothing is remembered
  EXPECT_EQ(margin({.type = GpuTypeId(0), .mode = SharingMode::kMps}, 1, 2), kOfPair);
  EXPECT_EQ(margin({.type = GpuTypeId(0), .mode = SharingMode::kExclusive}, 1, 2), kOfPair);  // it takes turns
  const DeviceContext mps{.type = GpuTypeId(1), .mode = SharingMode::kMps};
  EXPECT_EQ(margin(mps, 1, 1), kOfUnseen);
  for (const uint64_t different : {0, 2, 9})
    EXPECT_GT(margin(mps, different, 1), 1.5 * kOfUnseen);  // nobody measured any
  for (const DeviceContext& unseen : {DeviceContext{.type = GpuTypeId(0), .mode = SharingMode::kMig},
                                      DeviceContext{.type = GpuTypeId(2)}, DeviceContext{.type = GpuTypeId(9999)}}) {
    EXPECT_EQ(margin(unseen, 1, 2), kOfUnseen);
  }
}

TEST(LearnedModel, ModesThatWereNotMeasuredAnswerAsAnotherModeOfTheType) {
  const auto model = Created();
  const std::vector<Demand> jobs = {JobOf(1), JobOf(2)};
  const auto as = Ask(*model, jobs, {.type = GpuTypeId(1)}),
             mig = Ask(*model, jobs, {.type = GpuTypeId(1), .mode = SharingMode::kMig});
  EXPECT_EQ(mig[0].estimate, as[0].estimate);
  EXPECT_GT(mig[0].upper, as[0].upper);
  EXPECT_NE(as[0].estimate, Ask(*model, jobs, {.type = GpuTypeId(2)})[0].estimate);
}

TEST(LearnedModel, MpsThatWasNotMeasuredFollowsItsOwnLaw) {
  const auto model = Created();
  std::vector<Demand> jobs = {JobOf(1), JobOf(2), JobOf(3)};
  const auto estimate = [&](float util_pct, const DeviceContext& device) {
    for (Demand& job : jobs) job.gpu_util_pct = {util_pct, util_pct};
    const std::vector<Slowdown> found = Ask(*model, jobs, device);
    EXPECT_GT(found[0].upper, found[0].estimate);
    return found[0].estimate;
  };
  const DeviceContext mps{.type = GpuTypeId(1), .mode = SharingMode::kMps};
  EXPECT_LT(estimate(10, mps), 1.1f);
  EXPECT_NEAR(estimate(100, mps), 3, 1e-5);
  EXPECT_GT(estimate(10, {.type = GpuTypeId(1), .mode = SharingMode::kMps, .compute_share = 1.0f / 7}), 1.5f);
  EXPECT_NE(estimate(90, {.type = GpuTypeId(0), .mode = SharingMode::kMps}), estimate(90, mps));  // measured there
}

// Where that law answers, what pairs cost adds up to no more: two of three tenants at a time leave room.
TEST(LearnedModel, UnderMpsPairsAddUpToNoMoreThanTheAnswer) {
  const auto model = Created();
  const std::vector<Demand> jobs = {JobOf(1), JobOf(2), JobOf(8)};
  const DeviceContext mps{.type = GpuTypeId(1), .mode = SharingMode::kMps};
  const std::vector<const Demand*> pointers = {&jobs[0], &jobs[1], &jobs[2]};
  std::vector<PairExcess> pairs(9);
  ASSERT_TRUE(model->PredictPairs(mps, pointers, pairs).ok());
  const std::vector<Slowdown> found = Ask(*model, jobs, mps), two = Ask(*model, {jobs[0], jobs[1]}, mps);
  EXPECT_EQ(SlowdownOf(pairs[1]), two[0]);
  AddExcess(pairs[1], pairs[2]);
  EXPECT_LE(SlowdownOf(pairs[1]).estimate, found[0].estimate);
}

// Also where MPS was measured, without caps.
TEST(LearnedModel, ACapSparesTheOtherAndIsBoundedAsWhatNobodyMeasured) {
  const auto model = Created();
  Demand job = JobOf(1), capped = JobOf(2);
  job.gpu_util_pct = capped.gpu_util_pct = {70, 70};
  capped.sm_cap = 0.2f;
  for (const GpuTypeId type : {GpuTypeId(0), GpuTypeId(1)}) {
    const DeviceContext mps{.type = type, .mode = SharingMode::kMps};
    const std::vector<Slowdown> beside = Ask(*model, {job, capped}, mps);
    capped.sm_cap = 0.3f;
    const std::vector<Slowdown> more = Ask(*model, {job, capped}, mps);
    capped.sm_cap = 0.2f;
    EXPECT_LT(beside[0].estimate, more[0].estimate);
    EXPECT_LT(beside[1].estimate, 1.02f);  // SMs enough are left beside the cap, though a third would need them too
    EXPECT_GT(beside[1].upper - 0.9f, 6 * (beside[1].estimate - 0.9f));
    const std::vector<Slowdown> copies = Ask(*model, {capped, capped}, mps);
    EXPECT_GT(copies[0].upper - 0.9f, 3 * (copies[0].estimate - 0.9f));  // copies were measured without caps alone
    EXPECT_GT(beside[0].upper - 0.9f, 3 * (beside[0].estimate - 0.9f));
    std::array<float, 2> up_to = {};
    model->CalibratedUpTo(mps, std::array<const Demand*, 2>{&job, &capped}, up_to);
    EXPECT_EQ(up_to[0], 0);
    // Whoever prunes by levels must not miss that a cap makes a place cheap.
    EXPECT_EQ(model->LevelsOf(mps, capped).inflicts, 0);
    std::array<PairExcess, 1> mine, theirs;
    ASSERT_TRUE(model->PredictBeside(mps, capped, std::array<const Demand*, 1>{&job}, mine, theirs).ok());
    EXPECT_EQ(SlowdownOf(theirs[0]), beside[0]);
    EXPECT_EQ(SlowdownOf(mine[0]), beside[1]);
  }
}

TEST(LearnedModel, SaysUpToWhichProbabilityItsBoundsWereCalibrated) {
  const auto model = Created();
  const std::vector<Demand> jobs = {JobOf(1), JobOf(2), JobOf(9)};
  const auto up_to = [&](const std::vector<size_t>& who, const DeviceContext& device = {.type = GpuTypeId(0)}) {
    std::vector<const Demand*> tenants;
    for (const size_t i : who) tenants.push_back(&jobs[i]);
    std::vector<float> found(tenants.size());
    model->CalibratedUpTo(device, tenants, found);
    return found;
  };
  EXPECT_EQ(up_to({0}), (std::vector<float>{1}));  // alone it is undisturbed
  EXPECT_EQ(up_to({0, 1}), (std::vector<float>{0.95f, 0.95f}));
  EXPECT_EQ(up_to({0, 1, 2}), (std::vector<float>{0.9f, 0.9f, 0.9f}));  // the stranger is in everybody's pairs
  EXPECT_EQ(up_to({0, 1}, {.type = GpuTypeId(2)}), (std::vector<float>{0.5f, 0.5f}));
  EXPECT_EQ(up_to({0, 1}, {.type = GpuTypeId(1), .mode = SharingMode::kMps}),
            (std::vector<float>{0, 0}));  // different jobs
}

TEST(LearnedModel, AnswersOnADeviceNeverMeasuredMayBeWrongInCommon) {
  const auto model = Created();
  EXPECT_EQ(model->LevelError({.type = GpuTypeId(0)}), 0);
  EXPECT_EQ(model->LevelError({.type = GpuTypeId(2)}), kLevel);
  EXPECT_EQ(model->LevelError({.type = GpuTypeId(1), .mode = SharingMode::kMps}), kLevel);
}

// Margins stood at the probability that they promised.
TEST(LearnedModel, OldBundlesAreReadAtTheProbabilityOfToday) {
  Bundle old = MadeUp();
  std::erase_if(old.targets[0].calibration,
                [](const NamedSeries& series) { return series.name.starts_with("bounds_"); });
  const auto model = Created(old);
  const DeviceContext known{.type = GpuTypeId(0)}, unknown{.type = GpuTypeId(2)};
  EXPECT_NEAR(model->MarginOf(known, 1, 2).margin, kOfPair * 1.2816 / 1.645, 1e-4);  // from 0.95
  EXPECT_NEAR(model->MarginOf(known, 1, 9).margin, kOfFamily, 1e-4);                 // from 0.9
  EXPECT_NEAR(model->MarginOf(unknown, 1, 2).margin, kOfUnseen, 1e-4);               // 0.5 tells nothing of a scale
  EXPECT_GT(model->LevelError(unknown), 0);
  EXPECT_LE(model->LevelError(unknown), kLevelError);
}

TEST(LearnedModel, RefusedQuestionsWriteNothing) {
  const auto model = Created();
  const Demand job = JobOf(1);
  const std::vector<const Demand*> two = {&job, &job}, missing = {&job, nullptr};
  std::vector<Slowdown> out(2, Slowdown{-1, -1}), small(1, Slowdown{-1, -1});
  const auto refused = [&](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  };
  refused(model->Predict({}, two, small));
  refused(model->Predict({}, missing, out));
  refused(model->Predict({.mode = static_cast<SharingMode>(7)}, two, out));
  for (const float share : {0.0f, -1.0f, 1.1f, std::numeric_limits<float>::quiet_NaN()}) {
    refused(model->Predict({.compute_share = share}, two, out));
  }
  EXPECT_EQ(out, std::vector<Slowdown>(2, Slowdown{-1, -1}));
  EXPECT_EQ(small, std::vector<Slowdown>(1, Slowdown{-1, -1}));
}

TEST(LearnedModel, UnknownKindsListTheNames) {
  const absl::Status status = LearnedModel::Create(MadeUp(), "magic", *Catalogue::Default()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("horus"), std::string::npos) << status;
  Bundle odd = MadeUp();
  odd.targets[0].name = "magic";  // in the bundle, but of no kind that is known
  const absl::Status unread = LearnedModel::Create(odd, "magic", *Catalogue::Default()).status();
  EXPECT_EQ(unread.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(unread.message().find("horus, boosted, iasp, iapp"), std::string::npos) << unread;
}

TEST(LearnedModel, ABundleOfDemandsIsRefused) {
  Bundle other = MadeUp();
  other.schema_hash = PointSchemaHash() + 1;
  EXPECT_EQ(LearnedModel::Create(other, "horus", *Catalogue::Default()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(LearnedModel, EveryFlippedByteOfABundleIsRefused) {
  const auto bytes = WriteBundle(MadeUp());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  for (size_t i = 0; i < bytes->size(); ++i) {
    std::string damaged = *bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    EXPECT_FALSE(InterferenceModelFromBundle(BytesOf(damaged), "horus", *Catalogue::Default()).ok()) << "byte " << i;
  }
}

// Behind checksums that fit: refused, or still a model.
TEST(LearnedModel, EveryDamagedNumberIsRefusedOrHarmless) {
  const Bundle good = MadeUp();
  size_t refused = 0, kept = 0;
  const auto check = [&](const Bundle& bundle) {
    const auto model = LearnedModel::Create(bundle, "horus", *Catalogue::Default());
    refused += model.ok() ? 0 : 1;
    if (!model.ok()) return;
    ++kept;
    for (uint16_t type = 0; type < 3; ++type) {
      for (const Slowdown& s : Ask(**model, {JobOf(1), JobOf(2), JobOf(9)}, {.type = GpuTypeId(type)}))
        EXPECT_TRUE(Sound(s));
    }
  };
  for (const double value : {-1e300, -1e6, -1.0, 0.0, 0.5, 1.0, 1e6, 1e300, HUGE_VAL}) {
    for (size_t s = 0; s < good.series.size(); ++s) {
      for (size_t i = 0; i < good.series[s].values.size(); ++i) {
        Bundle damaged = good;
        damaged.series[s].values[i] = value;
        check(damaged);
      }
    }
    for (size_t s = 0; s < good.targets[0].calibration.size(); ++s) {
      for (size_t i = 0; i < good.targets[0].calibration[s].values.size(); ++i) {
        Bundle damaged = good;
        damaged.targets[0].calibration[s].values[i] = value;
        check(damaged);
      }
    }
  }
  EXPECT_GT(refused, 300u);
  EXPECT_GT(kept, 300u);
}

TEST(LearnedModel, RefusesBoundsAndHeadsThatNoTrainingWrites) {
  const auto code = [](const Bundle& bundle) {
    return LearnedModel::Create(bundle, "horus", *Catalogue::Default()).status().code();
  };
  for (const char* name : {"profiles", "device:"}) {
    Bundle damaged = MadeUp();
    std::erase_if(damaged.series, [name](const NamedSeries& series) { return series.name.starts_with(name); });
    EXPECT_EQ(code(damaged), absl::StatusCode::kDataLoss) << name;
  }
  for (const char* name : {"device:", "device::mps", "device:x", "device:x:warp"}) {
    Bundle damaged = MadeUp();
    damaged.series.back().name = name;
    EXPECT_EQ(code(damaged), absl::StatusCode::kDataLoss) << name;
  }
  Bundle twice = MadeUp();
  twice.series.push_back(twice.series.back());
  EXPECT_EQ(code(twice), absl::StatusCode::kDataLoss);
  Bundle descending = MadeUp();
  std::reverse(descending.series.back().values.begin(), descending.series.back().values.end());
  EXPECT_EQ(code(descending), absl::StatusCode::kDataLoss);
  Bundle unbounded = MadeUp();
  std::erase_if(unbounded.targets[0].calibration, [](const NamedSeries& series) { return series.name == "bounds"; });
  EXPECT_EQ(code(unbounded), absl::StatusCode::kDataLoss);
}

TEST(LearnedModel, EpochsTellBundlesAndKindsApart) {
  EXPECT_EQ(Created()->epoch(), Created()->epoch());
  EXPECT_NE(Created()->epoch(), Created(MadeUp(-0.2))->epoch());
  std::set<uint64_t> epochs;
  for (const std::string_view name : InterferenceModelNames()) epochs.insert((*MakeInterferenceModel(name))->epoch());
  EXPECT_EQ(epochs.size(), InterferenceModelNames().size());
}

}  // namespace
}  // namespace horus
