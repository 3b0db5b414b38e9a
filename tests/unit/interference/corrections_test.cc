// SPDX-License-Identifier: Apache-2.0
// Corrections do no harm: over many drawn sites the error after observing is at most that before it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "fake_model.h"
#include "interference/corrected_model.h"
#include "interference/laws.h"

namespace horus {
namespace {

constexpr uint64_t kSeeds = 1'000;
constexpr double kPerBound = kDeviationsToUpper;

// How wrong the model is of each job, as a standard deviation of z, and how wrong its bounds say that it is.
struct Case {
  double wrong = 0, stated = 0;
};

struct Errors {
  double before = 0, after = 0;  // per cent
};

// A victim beside one of `others` jobs a time, seen `count` times with 5-10 % noise, one outlier of 2 in 20 and a drift
// of up to 0.4 % an observation. Then the question: the victim beside the job seen last, or one that it was never seen
// with.
Errors OfSite(const Case& c, uint64_t seed, int count, uint64_t others, bool seen) {
  uint64_t draw = seed << 12;
  const auto job = [seed](uint64_t i) { return JobOf(16 * seed + i + 1); };
  const double bias = c.wrong * DrawNormal(draw++), noise = 0.05 + 0.05 * Draw(draw++);
  const double drift = 0.004 * (2 * Draw(draw++) - 1);
  const auto truth = [&](const Demand& other, int time) {
    return SlowdownOf(ExcessOf(FakeModel::PairOf(job(0), other)) + bias + drift * time);
  };
  ObservedSlowdowns observed;
  uint64_t other = 1;
  for (int i = 0; i < count; ++i) {
    other = 1 + static_cast<uint64_t>(i) % others;
    const double outlier = Draw(draw++), factor = outlier < 0.025 ? 2 : outlier < 0.05 ? 0.5 : 1;
    const double slowdown = truth(job(other), i) * std::exp(noise * DrawNormal(draw++)) * factor;
    EXPECT_TRUE(Observe(observed, {job(0), job(other)}, std::max(slowdown, 0.5)).ok());
  }
  const auto base = std::make_shared<const FakeModel>(kPerBound * c.stated);
  const auto corrected = CorrectedModel::Commit(base, observed, *Catalogue::Default());
  EXPECT_TRUE(corrected.ok()) << corrected.status();
  const std::vector<Demand> asked = {job(0), job(seen ? other : 15)};
  const double right = truth(asked[1], count - 1);
  const auto error = [&](const InterferenceModel& model) {
    return 100 * std::abs(static_cast<double>(Ask(model, asked)[0].estimate) / right - 1);
  };
  return {error(*base), error(**corrected)};
}

Errors Mean(const Case& c, int count, uint64_t others, bool seen) {
  Errors sum;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Errors found = OfSite(c, seed, count, others, seen);
    sum.before += found.before / kSeeds;
    sum.after += found.after / kSeeds;
  }
  return sum;
}

void ExpectNoHarm(const Case& c) {
  constexpr double kHarm = 0.2;  // percentage points
  for (const int count : {1, 3, 10}) {
    for (const auto& [others, seen] : {std::pair{1, true}, {3, true}, {1, false}, {3, false}}) {
      const Errors mean = Mean(c, count, static_cast<uint64_t>(others), seen);
      EXPECT_LE(mean.after, mean.before + kHarm)
          << count << " observations beside " << others << " jobs, asked of " << (seen ? "one of them" : "another");
    }
  }
}

TEST(Corrections, DoNoHarmToAModelThatIsWrongByAFactorOfEachJob) { ExpectNoHarm({.wrong = 0.3, .stated = 0.3}); }

TEST(Corrections, DoNoHarmToAModelThatIsALittleWrong) { ExpectNoHarm({.wrong = 0.1, .stated = 0.1}); }

TEST(Corrections, DoNoHarmToAModelThatIsRightAndSaysSo) { ExpectNoHarm({.wrong = 0, .stated = 0.01}); }

TEST(Corrections, DoNoHarmToAModelThatIsMoreWrongThanItSays) { ExpectNoHarm({.wrong = 0.3, .stated = 0.01}); }

TEST(Corrections, HelpWhereAModelIsWrong) {
  const Case wrong = {.wrong = 0.3, .stated = 0.3};
  EXPECT_LT(Mean(wrong, 1, 1, true).after, 0.75 * Mean(wrong, 1, 1, true).before);
  EXPECT_LT(Mean(wrong, 10, 1, true).after, 0.3 * Mean(wrong, 10, 1, true).before);
  EXPECT_LT(Mean(wrong, 10, 3, false).after, 0.75 * Mean(wrong, 10, 3, false).before);  // of jobs never met, too
}

// Its bound is its estimate: nothing is known of its error, and observations win.
TEST(Corrections, HelpAModelWithoutBounds) {
  const Errors mean = Mean({.wrong = 0.3, .stated = 0}, 10, 1, true);
  EXPECT_LT(mean.after, 0.3 * mean.before);
}

// A card that the model was never trained on, where every slowdown is another than it says by one factor of the excess.
class OnAnUnseenCard : public ::testing::Test {
 protected:
  static constexpr double kOwn = 0.3, kLevel = 0.6, kShift = -1.2;
  static double TruthOf(uint64_t victim, uint64_t other) {
    return SlowdownOf(ExcessOf(FakeModel::PairOf(JobOf(victim), JobOf(other))) + kShift);
  }
  // The first `jobs` of them, each beside the next, once with 5 % noise.
  static std::shared_ptr<const InterferenceModel> After(uint64_t jobs, double level = kLevel) {
    ObservedSlowdowns observed;
    for (uint64_t job = 1; job <= jobs; ++job) {
      const double seen = TruthOf(job, job + 1) * (1 + 0.05 * DrawNormal(job));
      EXPECT_TRUE(Observe(observed, {JobOf(job), JobOf(job + 1)}, seen).ok());
    }
    const auto base = std::make_shared<const FakeModel>(kDeviationsToUpper * std::hypot(kOwn, level), 1,
                                                        std::map<uint64_t, double>{}, level);
    auto corrected = CorrectedModel::Commit(base, observed, *Catalogue::Default());
    EXPECT_TRUE(corrected.ok()) << corrected.status();
    return *corrected;
  }
  static double MarginOf(const Slowdown& s) {
    return ExcessOf(static_cast<double>(s.upper)) - ExcessOf(static_cast<double>(s.estimate));
  }
};

TEST_F(OnAnUnseenCard, AHandfulOfObservationsMovesJobsThatNobodySaw) {
  constexpr uint64_t kStranger = 40, kOther = 41;
  const std::vector<Demand> strangers = {JobOf(kStranger), JobOf(kOther)};
  const double truth = TruthOf(kStranger, kOther);
  const auto before = Ask(*After(0), strangers)[0], after = Ask(*After(5), strangers)[0];
  const auto error = [truth](const Slowdown& s) { return std::abs(static_cast<double>(s.estimate) / truth - 1); };
  EXPECT_LT(error(after), 0.3 * error(before));
  EXPECT_LT(MarginOf(after), 0.7 * MarginOf(before));
  EXPECT_GT(MarginOf(after), 0.5 * kDeviationsToUpper * kOwn);  // of themselves nothing was seen
  Demand nameless = JobOf(kStranger);
  nameless.profile_id = 0;
  EXPECT_LT(error(Ask(*After(5), {nameless, JobOf(kOther)})[0]), 0.3 * error(before));
  // Without a level nobody's errors are anybody else's.
  EXPECT_EQ(Ask(*After(5, 0), strangers)[0].estimate, Ask(*After(0, 0), strangers)[0].estimate);
}

TEST_F(OnAnUnseenCard, WhatIsLeftOfTheLevelShrinksAndOtherDevicesKeepTheirs) {
  const DeviceContext here{.type = GpuTypeId(0)}, there{.type = GpuTypeId(1)};
  double last = kLevel;
  for (const uint64_t jobs : {1, 2, 5, 20}) {
    const auto model = After(jobs);
    EXPECT_LT(model->LevelError(here), last);
    last = model->LevelError(here);
    EXPECT_EQ(model->LevelError(there), kLevel);
    EXPECT_EQ(Ask(*model, {JobOf(1), JobOf(2)}, there), Ask(*After(0), {JobOf(1), JobOf(2)}, there));
  }
  EXPECT_LT(last, 0.4 * kLevel);
}

// The model states a level and errors of its own; where observations show smaller errors, margins follow, and larger
// ones.
TEST_F(OnAnUnseenCard, MarginsFollowTheErrorsThatAreSeenThere) {
  const auto margin = [](double wrong) {
    ObservedSlowdowns observed;
    for (uint64_t job = 1; job <= 20; ++job) {
      const double z = ExcessOf(FakeModel::PairOf(JobOf(job), JobOf(job + 1))) + wrong * DrawNormal(job);
      EXPECT_TRUE(Observe(observed, {JobOf(job), JobOf(job + 1)}, SlowdownOf(z)).ok());
    }
    const auto base = std::make_shared<const FakeModel>(kDeviationsToUpper * std::hypot(kOwn, kLevel), 1,
                                                        std::map<uint64_t, double>{}, kLevel);
    const auto corrected = CorrectedModel::Commit(base, observed, *Catalogue::Default());
    EXPECT_TRUE(corrected.ok()) << corrected.status();
    return MarginOf(Ask(**corrected, {JobOf(40), JobOf(41)})[0]);
  };
  EXPECT_LT(margin(0.05), 0.8 * margin(kOwn));
  EXPECT_GT(margin(3 * kOwn), 1.2 * margin(kOwn));
}

TEST_F(OnAnUnseenCard, ACommitSaysThatAllJobsMayHaveChanged) {
  const auto model = std::dynamic_pointer_cast<const CorrectedModel>(After(1));
  EXPECT_EQ(model->changed().front(), (ChangedJob{.gpu = GpuName(0), .profile_id = 0}));
  EXPECT_EQ(std::dynamic_pointer_cast<const CorrectedModel>(After(1, 0))->changed().front().profile_id, 1u);
}

}  // namespace
}  // namespace horus
