// SPDX-License-Identifier: Apache-2.0
// Corrected models: what observations move, what they may not move, and that they never do more harm than noise.
#include "interference/corrected_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "fake_model.h"
#include "interference/laws.h"

namespace horus {
namespace {

constexpr double kMargin = 0.4;  // of the base model's bounds, in z
using Model = std::shared_ptr<const InterferenceModel>;

Model Base(double margin = kMargin) { return std::make_shared<const FakeModel>(margin); }

std::shared_ptr<const CorrectedModel> Commit(const Model& model, const ObservedSlowdowns& observed) {
  auto corrected = CorrectedModel::Commit(model, observed, *Catalogue::Default());
  EXPECT_TRUE(corrected.ok()) << corrected.status();
  return corrected.ok() ? *corrected : nullptr;
}

double ObservedBy(const std::vector<Demand>& jobs, double factor) {
  return FakeModel::PairOf(jobs[0], jobs[1]) * factor;
}

TEST(CorrectedModel, WithoutObservationsAnswersAreTheBases) {
  const auto corrected = Commit(Base(), ObservedSlowdowns());
  for (const size_t count : {1u, 2u, 3u, 5u}) {
    std::vector<Demand> jobs;
    for (size_t i = 0; i < count; ++i) jobs.push_back(JobOf(i + 1));
    EXPECT_EQ(Ask(*corrected, jobs), Ask(*Base(), jobs));
  }
  EXPECT_TRUE(corrected->changed().empty());
  EXPECT_EQ(corrected->observations(), 0u);
  EXPECT_EQ(corrected->name(), "fake");
}

TEST(CorrectedModel, FollowsWhatWasSeen) {
  const std::vector<Demand> jobs = {JobOf(1), JobOf(2)};
  ObservedSlowdowns observed;
  double last = std::abs(static_cast<double>(Ask(*Base(), jobs)[0].estimate) - ObservedBy(jobs, 1.5));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(Observe(observed, jobs, ObservedBy(jobs, 1.5)).ok());
    const double left =
        std::abs(static_cast<double>(Ask(*Commit(Base(), observed), jobs)[0].estimate) - ObservedBy(jobs, 1.5));
    EXPECT_LT(left, last);
    last = left;
  }
  EXPECT_LT(last, 0.05);
}

TEST(CorrectedModel, JobsNeverObservedAreAnsweredAsBefore) {
  ObservedSlowdowns observed;
  const std::vector<Demand> seen = {JobOf(1), JobOf(2)};
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Observe(observed, seen, ObservedBy(seen, 1.5)).ok());
  const auto corrected = Commit(Base(), observed);
  Demand nameless = JobOf(1);
  nameless.profile_id = 0;
  const std::vector<std::vector<Demand>> strangers = {
      {JobOf(3), JobOf(4)}, {JobOf(3), JobOf(4), JobOf(5)}, {nameless, JobOf(3)}, {nameless, nameless}};
  for (const auto& jobs : strangers) EXPECT_EQ(Ask(*corrected, jobs), Ask(*Base(), jobs));
  // Nor are the same jobs elsewhere.
  for (const DeviceContext& device :
       {DeviceContext{.type = GpuTypeId(1)}, DeviceContext{.type = GpuTypeId(0), .mode = SharingMode::kMps},
        DeviceContext{.type = GpuTypeId(0), .compute_share = 0.5f}}) {
    EXPECT_EQ(Ask(*corrected, seen, device), Ask(*Base(), seen, device));
  }
  EXPECT_NE(Ask(*corrected, seen), Ask(*Base(), seen));
  EXPECT_NE(Ask(*corrected, {JobOf(1), JobOf(3)}), Ask(*Base(), {JobOf(1), JobOf(3)}));  // the victim was seen
}

TEST(CorrectedModel, ObservationsCountOnceHoweverOftenTheyAreCommitted) {
  ObservedSlowdowns observed;
  const std::vector<Demand> jobs = {JobOf(1), JobOf(2)};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Observe(observed, jobs, ObservedBy(jobs, 1.3)).ok());
  const auto once = Commit(Base(), observed), again = Commit(once, observed);
  EXPECT_EQ(Ask(*once, jobs), Ask(*again, jobs));
  EXPECT_EQ(once->epoch(), again->epoch());
  EXPECT_TRUE(again->changed().empty());
  ASSERT_TRUE(Observe(observed, jobs, ObservedBy(jobs, 1.3)).ok());
  EXPECT_EQ(Ask(*Commit(again, observed), jobs), Ask(*Commit(Base(), observed), jobs));
  EXPECT_NE(Commit(again, observed)->epoch(), again->epoch());
}

TEST(CorrectedModel, EpochsTellBasesAndObservationsApart) {
  ObservedSlowdowns observed;
  ASSERT_TRUE(Observe(observed, {JobOf(1), JobOf(2)}, 2).ok());
  const Model newer = std::make_shared<const FakeModel>(kMargin, 2);
  EXPECT_NE(Commit(Base(), observed)->epoch(), Commit(newer, observed)->epoch());
  EXPECT_NE(Commit(Base(), observed)->epoch(), Commit(Base(), ObservedSlowdowns())->epoch());
  EXPECT_NE(Commit(Base(), observed)->epoch(), Base()->epoch());
}

TEST(CorrectedModel, ChangedListsTheJobsOnDevicesTouchedSince) {
  ObservedSlowdowns observed;
  ASSERT_TRUE(Observe(observed, {JobOf(1), JobOf(2)}, 2).ok());
  ASSERT_TRUE(Observe(observed, {JobOf(3), JobOf(4)}, 2, GpuName(1)).ok());
  const auto first = Commit(Base(), observed);
  const auto at = [](size_t gpu, uint64_t job, SharingMode mode = SharingMode::kTimeSlice) {
    return ChangedJob{.gpu = GpuName(gpu), .mode = mode, .profile_id = job};
  };
  std::vector<ChangedJob> expected = {at(0, 1), at(0, 2), at(1, 3), at(1, 4)};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(first->changed(), expected);
  ASSERT_TRUE(Observe(observed, {JobOf(5), JobOf(3)}, 2, GpuName(1)).ok());
  EXPECT_EQ(Commit(first, observed)->changed(), (std::vector<ChangedJob>{at(1, 3), at(1, 4), at(1, 5)}));
  const auto second = Commit(first, observed);
  ASSERT_TRUE(Observe(observed, {JobOf(1), JobOf(2)}, 2, GpuName(0), SharingMode::kMps).ok());
  EXPECT_EQ(Commit(second, observed)->changed(),
            (std::vector<ChangedJob>{at(0, 1, SharingMode::kMps), at(0, 2, SharingMode::kMps)}));
}

TEST(CorrectedModel, ChangedListsWhatWasForgotten) {
  ObservedSlowdowns observed(1);
  const std::vector<Demand> jobs = {JobOf(1), JobOf(2)};
  ASSERT_TRUE(Observe(observed, jobs, 4).ok());
  const auto first = Commit(Base(), observed);
  ASSERT_TRUE(Observe(observed, {JobOf(3), JobOf(4)}, 2, GpuName(1)).ok());
  const auto second = Commit(first, observed);
  EXPECT_NE(Ask(*first, jobs), Ask(*second, jobs));
  std::set<uint64_t> changed;
  for (const ChangedJob& job : second->changed()) changed.insert(job.profile_id);
  EXPECT_EQ(changed, (std::set<uint64_t>{1, 2, 3, 4}));
}

TEST(CorrectedModel, SlotsThatObservationsUsedDoNotShow) {
  ObservedSlowdowns observed(6);  // small: slots are used again
  for (uint64_t i = 0; i < 40; ++i) {
    const std::vector<Demand> jobs = {JobOf(1 + Mix64(i) % 4), JobOf(1 + Mix64(i + 100) % 4)};
    ASSERT_TRUE(Observe(observed, jobs, ObservedBy(jobs, 0.8 + 0.5 * Draw(i))).ok());
  }
  auto restored = ObservedSlowdowns::Restore(BytesOf(observed.Save()));
  ASSERT_TRUE(restored.ok()) << restored.status();
  const auto a = Commit(Base(), observed), b = Commit(Base(), *restored);
  EXPECT_EQ(a->epoch(), b->epoch());
  EXPECT_EQ(a->changed(), b->changed());
  for (uint64_t v = 1; v < 6; ++v) {
    for (uint64_t o = 1; o < 6; ++o) EXPECT_EQ(Ask(*a, {JobOf(v), JobOf(o)}), Ask(*b, {JobOf(v), JobOf(o)}));
  }
}

TEST(CorrectedModel, NeitherOrderNorBoundsBreakWithSeveralTenants) {
  ObservedSlowdowns observed;
  for (uint64_t i = 0; i < 30; ++i) {
    std::vector<Demand> jobs;
    for (uint64_t t = 0; t < 2 + i % 3; ++t) jobs.push_back(JobOf(1 + Mix64(7 * i + t) % 6));
    ASSERT_TRUE(Observe(observed, jobs, 1 + 4 * Draw(i)).ok());
  }
  const auto corrected = Commit(Base(), observed);
  std::vector<uint64_t> order = {1, 2, 3, 7};
  const auto ask = [&] {
    return Ask(*corrected, {JobOf(order[0]), JobOf(order[1]), JobOf(order[2]), JobOf(order[3])});
  };
  const std::vector<Slowdown> expected = ask();
  do {
    const std::vector<Slowdown> found = ask();
    for (size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(found[i], expected[order[i] == 7 ? 3 : order[i] - 1]);
      EXPECT_GE(found[i].upper, found[i].estimate);
      EXPECT_GE(found[i].estimate, 1);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(CorrectedModel, WhatSeveralCostTeachesWhatTwoOfThemDo) {
  const std::vector<Demand> jobs = {JobOf(1), JobOf(2), JobOf(3)};
  const double base = static_cast<double>(Ask(*Base(), jobs)[0].estimate);
  ObservedSlowdowns observed;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Observe(observed, jobs, 1.4 * base).ok());
  const auto corrected = Commit(Base(), observed);
  EXPECT_NEAR(static_cast<double>(Ask(*corrected, jobs)[0].estimate), 1.4 * base, 0.05 * base);
  for (const size_t other : {1u, 2u}) {
    const std::vector<Demand> two = {jobs[0], jobs[other]};
    EXPECT_GT(Ask(*corrected, two)[0].estimate, 1.05f * Ask(*Base(), two)[0].estimate);
  }
}

double MarginOf(const Slowdown& s) {
  return ExcessOf(static_cast<double>(s.upper)) - ExcessOf(static_cast<double>(s.estimate));
}

TEST(CorrectedModel, ABoundTightensAsTwoJobsAreSeen) {
  const std::vector<Demand> jobs = {JobOf(1), JobOf(2)};
  ObservedSlowdowns observed;
  double last = MarginOf(Ask(*Base(), jobs)[0]);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Observe(observed, jobs, ObservedBy(jobs, 1)).ok());
    const double margin = MarginOf(Ask(*Commit(Base(), observed), jobs)[0]);
    EXPECT_LE(margin, last + 1e-6);
    last = margin;
  }
  EXPECT_LT(last, 0.5 * kMargin);
  EXPECT_GT(last, 0.01);  // nothing is ever sure
  // What a model already knows, observations do not make much surer.
  EXPECT_NEAR(MarginOf(Ask(*Commit(Base(0.01), observed), jobs)[0]), 0.01, 0.002);
}

TEST(CorrectedModel, ABoundTightensForWhoeverWasSeenBesideOthers) {
  ObservedSlowdowns observed;
  for (uint64_t other = 2; other < 8; ++other) {
    const std::vector<Demand> jobs = {JobOf(1), JobOf(other)};
    ASSERT_TRUE(Observe(observed, jobs, ObservedBy(jobs, 1)).ok());
  }
  const auto corrected = Commit(Base(), observed);
  const std::vector<Slowdown> found = Ask(*corrected, {JobOf(1), JobOf(20)});
  EXPECT_LT(MarginOf(found[0]), 0.9 * kMargin);    // the victim was seen
  EXPECT_NEAR(MarginOf(found[1]), kMargin, 1e-5);  // as the other it was not
}

TEST(CorrectedModel, WhatIsSeenAgainAndAgainIsBelievedWhateverTheBoundSaid) {
  const std::vector<Demand> jobs = {JobOf(1), JobOf(2)};
  const double seen = ObservedBy(jobs, 1.8);
  for (const double margin : {0.0, 0.02, 0.1, 0.2, 0.4}) {
    ObservedSlowdowns observed;
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(Observe(observed, jobs, seen).ok());
    const Slowdown found = Ask(*Commit(Base(margin), observed), jobs)[0];
    EXPECT_GT(found.upper, seen) << margin;
    EXPECT_GT(static_cast<double>(found.estimate), 0.5 * (seen + ObservedBy(jobs, 1))) << margin;
  }
}

// Unknown columns are no difference to nobody in particular: no job resembles two that do not resemble each other.
TEST(CorrectedModel, WhatIsUnknownOfJobsDoesNotThrowOthersOff) {
  ObservedSlowdowns observed;
  std::vector<Demand> jobs;
  for (uint64_t number = 1; number <= 24; ++number) {
    jobs.push_back(JobOf(number));
    if (number % 3 != 0) continue;
    jobs.back().step_time_us = {0, 0};
    jobs.back().operator_us = 0;
  }
  for (size_t v = 0; v < jobs.size(); ++v) {
    for (size_t o = 0; o < jobs.size(); ++o) {
      const std::vector<Demand> two = {jobs[v], jobs[o]};
      ASSERT_TRUE(Observe(observed, two, ObservedBy(two, 1 + 0.1 * DrawNormal(100 * v + o) / 2)).ok());
    }
  }
  const auto corrected = Commit(Base(), observed);
  for (const Demand& victim : jobs) {
    for (const Demand& other : jobs) {
      const double model = static_cast<double>(Ask(*Base(), {victim, other})[0].estimate);
      EXPECT_NEAR(static_cast<double>(Ask(*corrected, {victim, other})[0].estimate), model, 0.3 * model);
    }
  }
}

TEST(CorrectedModel, ManyThatAreAlikeSayLittleOfOneThatIsNot) {
  ObservedSlowdowns observed;
  std::vector<Demand> alike(31, JobOf(2));
  for (size_t i = 0; i < alike.size(); ++i) alike[i].profile_id = 100 + i;
  Demand unlike = JobOf(2);
  unlike.profile_id = 99;
  unlike.step_time_us = {30 * unlike.step_time_us.estimate, 30 * unlike.step_time_us.upper};
  unlike.operator_us *= 300;
  const double before = MarginOf(Ask(*Base(), {JobOf(1), unlike})[0]);
  std::vector<double> margins;
  for (const Demand& other : alike) {
    ASSERT_TRUE(Observe(observed, {JobOf(1), other}, ObservedBy({JobOf(1), other}, 1)).ok());
    margins.push_back(MarginOf(Ask(*Commit(Base(), observed), {JobOf(1), unlike})[0]));
  }
  EXPECT_GT(margins.back(), 0.8 * before);
  EXPECT_NEAR(margins.back(), margins[4], 0.05 * before);  // the rest told nothing new
}

// A newcomer lost more beside a job that the model knows well: that is the newcomer's doing.
TEST(CorrectedModel, WhatWasMissedIsPutDownToTheJobThatTheModelKnowsLeast) {
  constexpr uint64_t kNewcomer = 1, kResident = 2, kStranger = 30;
  const auto model = std::make_shared<const FakeModel>(0.02, 1, std::map<uint64_t, double>{{kNewcomer, 1.0}});
  ObservedSlowdowns observed;
  const std::vector<Demand> jobs = {JobOf(kNewcomer), JobOf(kResident)};
  ASSERT_TRUE(Observe(observed, jobs, SlowdownOf(ExcessOf(ObservedBy(jobs, 1)) + 0.5)).ok());
  const auto corrected = Commit(model, observed);
  const auto shift = [&](uint64_t victim, uint64_t other) {
    const std::vector<Demand> two = {JobOf(victim), JobOf(other)};
    return ExcessOf(static_cast<double>(Ask(*corrected, two)[0].estimate)) -
           ExcessOf(static_cast<double>(Ask(*model, two)[0].estimate));
  };
  EXPECT_GT(shift(kNewcomer, kStranger), 0.1);
  EXPECT_NEAR(shift(kStranger, kResident), 0, 0.01);
}

TEST(CorrectedModel, ObservationsDoNotCalibrate) {
  ObservedSlowdowns observed;
  const std::vector<Demand> jobs = {JobOf(1), JobOf(2)};
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Observe(observed, jobs, 2).ok());
  const std::vector<const Demand*> tenants = {&jobs[0], &jobs[1]};
  const auto up_to = [&](const InterferenceModel& model) {
    std::vector<float> found(tenants.size());
    model.CalibratedUpTo({}, tenants, found);
    return found;
  };
  EXPECT_EQ(up_to(*Commit(Base(), observed)), up_to(*Base()));
}

TEST(CorrectedModel, ACommitTellsItsProgressAndCanBeCancelled) {
  ObservedSlowdowns observed;
  ASSERT_TRUE(Observe(observed, {JobOf(1), JobOf(2)}, 2).ok());
  double last = 0;
  const auto rising = [&last](double done) {
    EXPECT_GT(done, last);
    EXPECT_LE(done, 1);
    last = done;
    return true;
  };
  ASSERT_TRUE(CorrectedModel::Commit(Base(), observed, *Catalogue::Default(), rising).ok());
  EXPECT_GT(last, 0);
  const auto cancelled = CorrectedModel::Commit(Base(), observed, *Catalogue::Default(), [](double) { return false; });
  EXPECT_EQ(cancelled.status().code(), absl::StatusCode::kCancelled);
}

TEST(CorrectedModel, TypesThatTheCatalogueLacksAreLeftOut) {
  ObservedSlowdowns observed;
  const std::vector<Demand> jobs = {JobOf(1), JobOf(2)};
  ASSERT_TRUE(Observe(observed, jobs, 9, "no such card").ok());
  const auto corrected = Commit(Base(), observed);
  ASSERT_NE(corrected, nullptr);
  EXPECT_EQ(Ask(*corrected, jobs), Ask(*Base(), jobs));
  EXPECT_EQ(corrected->observations(), 1u);
}

}  // namespace
}  // namespace horus
