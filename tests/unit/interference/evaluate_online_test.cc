// SPDX-License-Identifier: Apache-2.0
// Evaluating online learning: who takes part, what observations are worth, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fake_model.h"
#include "lab/evaluate/evaluate_pairs.h"
#include "pair_law.h"

namespace horus {
namespace {

using ::testing::HasSubstr;

// The law, but every job suffers by a factor of its own that nothing predicts.
PairSet WilfulSet(size_t jobs = 6) {
  PairSet set = LawfulSet(jobs);
  std::erase_if(set.runs, [](const PairRun& run) { return run.device != 0; });  // one is enough, and faster
  for (uint32_t d = 0; d < set.devices.size(); ++d) set.devices[d].gpu = GpuName(d);
  for (PairRun& run : set.runs) {
    run.slowdown_a = 1 + (run.slowdown_a - 1) * std::exp(0.4 * DrawNormal(run.job_a));
    run.slowdown_b = 1 + (run.slowdown_b - 1) * std::exp(0.4 * DrawNormal(run.job_b));
  }
  return set;
}

auto Evaluate(const PairSet& set, const OnlinePlan& plan, const PairProgress& progress = nullptr) {
  return EvaluateOnline(set, "horus", *Catalogue::Default(), plan, {}, progress);
}

TEST(EvaluateOnline, ObservationsOfAJobTellItsOtherSlowdowns) {
  const auto found = Evaluate(WilfulSet(10), {.observed = {0, 1, 3}, .draws = 2, .noise = 0});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 3u);  // the other devices have no runs
  const OnlineErrors &none = (*found)[0], &one = (*found)[1], &three = (*found)[2];
  EXPECT_EQ(none.observed, 0u);
  EXPECT_EQ(three.observed, 3u);
  EXPECT_DOUBLE_EQ(none.all.after.mape_pct, none.all.before.mape_pct);
  EXPECT_LT(one.all.after.mape_pct, 0.95 * one.all.before.mape_pct);
  EXPECT_LT(three.residents.after.mape_pct, 0.7 * three.residents.before.mape_pct);
  EXPECT_LT(three.residents.after.slack_pct, three.residents.before.slack_pct);
  EXPECT_GT(none.all.questions, three.all.questions);  // what was observed is not asked
  EXPECT_GT(three.all.questions, three.residents.questions);
}

TEST(EvaluateOnline, EqualInputGivesEqualErrors) {
  const OnlinePlan plan{.observed = {2}, .draws = 1};
  const auto one = Evaluate(WilfulSet(), plan), again = Evaluate(WilfulSet(), plan);
  ASSERT_TRUE(one.ok() && again.ok()) << one.status();
  EXPECT_EQ((*one)[0].all.after.mape_pct, (*again)[0].all.after.mape_pct);
}

TEST(EvaluateOnline, JobsThatMetTooFewTakeNoPart) {
  PairSet set = WilfulSet();
  const auto questions = [&set](uint32_t observed) {
    const auto found = Evaluate(set, {.observed = {observed}, .draws = 1});
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() && !found->empty() ? (*found)[0].residents.questions : 0;
  };
  const size_t all = questions(1);
  std::erase_if(set.runs, [](const PairRun& run) { return run.job_a == 0 && run.job_b > 3; });  // the first meets two
  EXPECT_LT(questions(1), all);
  const size_t some = questions(2);
  std::erase_if(set.runs, [](const PairRun& run) { return run.job_a == 0 && run.job_b > 1; });  // it meets its sibling
  EXPECT_LT(questions(2), some);
}

// The second device slows down by a third of the first, which nothing but observations there can tell.
PairSet TwoCards() {
  PairSet set = LawfulSet(10);
  for (uint32_t d = 0; d < set.devices.size(); ++d) set.devices[d].gpu = GpuName(d);
  for (PairRun& run : set.runs) {
    if (run.device == 0) continue;
    run.slowdown_a = 1 + (run.slowdown_a - 1) / 3;
    run.slowdown_b = 1 + (run.slowdown_b - 1) / 3;
  }
  return set;
}

TEST(EvaluateOnline, AGpuTypeLeftOutIsLearnedFromWhatWasSeenThereOfAnybody) {
  OnlinePlan plan{.observed = {0, 3}, .draws = 1, .noise = 0};
  const auto known = Evaluate(TwoCards(), plan);
  plan.leave_gpu = true;
  const auto unseen = Evaluate(TwoCards(), plan);
  plan.settled = 8;
  const auto settled = Evaluate(TwoCards(), plan);
  ASSERT_TRUE(known.ok() && unseen.ok() && settled.ok()) << unseen.status() << settled.status();
  ASSERT_EQ(unseen->size(), 4u);
  for (const size_t none : {0u, 2u}) {  // of either device
    const OnlineErrors &a = (*known)[none], &b = (*unseen)[none], &c = (*settled)[none];
    EXPECT_EQ(a.all.questions, b.all.questions);
    EXPECT_GT(b.residents.after.mape_pct, 2 * a.residents.after.mape_pct);
    EXPECT_LT(c.residents.after.mape_pct, 0.5 * b.residents.after.mape_pct);
    EXPECT_LT(c.residents.after.slack_pct, 0.7 * b.residents.after.slack_pct);
    EXPECT_LT((*unseen)[none + 1].residents.after.mape_pct, 0.5 * b.residents.after.mape_pct);
  }
}

TEST(EvaluateOnline, WhatBoundsAdmitIsCountedByPairs) {
  const auto found = Evaluate(WilfulSet(10), {.observed = {0, 3}, .draws = 1, .noise = 0});
  ASSERT_TRUE(found.ok()) << found.status();
  for (const OnlineErrors& errors : *found) {
    for (size_t b = 0; b < kAskedBounds.size(); ++b) {
      const OnlineAdmission &before = errors.all.before.admission[b], &after = errors.all.after.admission[b];
      EXPECT_EQ(before.truly_pct, after.truly_pct);
      EXPECT_TRUE(after.admitted_tenants == 0 || (after.kept_pct > 0 && after.kept_pct <= 100));
      if (b == 0) continue;
      EXPECT_GE(after.truly_pct, errors.all.after.admission[b - 1].truly_pct);
      EXPECT_GE(after.admitted_tenants, errors.all.after.admission[b - 1].admitted_tenants);
    }
    EXPECT_LE(errors.all.pairs, errors.all.questions);
    EXPECT_GE(2 * errors.all.pairs, errors.all.questions);
  }
  EXPECT_GT((*found)[1].all.after.admission[2].admitted_pct, (*found)[1].all.before.admission[2].admitted_pct);
}

TEST(EvaluateOnline, RefusesPlansOutOfRange) {
  const auto refused = [](const OnlinePlan& plan, const std::string& named) {
    const auto found = Evaluate(WilfulSet(), plan);
    EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(found.status().message()), HasSubstr(named));
  };
  refused({.observed = {}}, "co-locations");
  refused({.draws = 0}, "draws");
  refused({.observed = {kMostObserved + 1}}, "expected 0 to 64, found 65");
  refused({.observed = {4}}, "expected fewer than the 4 jobs of other families");
  refused({.settled = 1}, "settled");
  refused({.leave_gpu = true, .settled = kMostObserved + 1}, "settled co-locations: expected 0 to 64");
  refused({.observed = {1}, .leave_gpu = true}, "at least two GPU types");
}

TEST(EvaluateOnline, RefusesSetsThatItCannotJudge) {
  PairSet nameless = WilfulSet();
  nameless.jobs[3].profile_id = 0;
  EXPECT_THAT(std::string(Evaluate(nameless, {}).status().message()), HasSubstr(nameless.jobs[3].name));
  PairSet alike = WilfulSet();
  for (PairJob& job : alike.jobs) job.family = "one";
  EXPECT_THAT(std::string(Evaluate(alike, {}).status().message()), HasSubstr("at least two families"));
  EXPECT_EQ(EvaluateOnline(WilfulSet(), "no such model", *Catalogue::Default(), {.observed = {1}}, {}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(EvaluateOnline, CanBeCancelled) {
  const auto found = Evaluate(WilfulSet(), {.observed = {1}, .draws = 1}, [](double) { return false; });
  EXPECT_EQ(found.status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace horus
