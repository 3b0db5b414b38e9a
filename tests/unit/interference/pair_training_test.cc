// SPDX-License-Identifier: Apache-2.0
// Training on pairs: what is left out together, what bounds promise and keep, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "interference/kernel_model.h"
#include "interference/learned_model.h"
#include "interference/pair_bounds.h"
#include "interference/pair_bundle.h"
#include "lab/evaluate/evaluate_pairs.h"
#include "lab/models/train_pairs.h"
#include "pair_law.h"

namespace horus {
namespace {

constexpr PairModelKind kKind = {.name = kKernelName, .fit = FitKernelTarget, .read = ReadKernelModel};

PairTrainOptions Options(double promise = 0.9) { return {.promise = promise, .kinds = {"horus"}}; }

// The law with an error of every row, and one of each family, both of the excess.
PairSet NoisySet(uint64_t seed, double of_row, double of_family, size_t jobs = 20) {
  PairSet set = LawfulSet(jobs);
  uint64_t draw = seed << 32;
  std::map<std::string, double> family;
  for (const PairJob& job : set.jobs) family.emplace(job.family, 0);
  for (auto& [name, effect] : family) effect = of_family * DrawNormal(draw++);
  for (PairRun& run : set.runs) {
    const auto disturb = [&](double slowdown, uint32_t victim) {
      return 0.9 + (slowdown - 0.9) * std::exp(family[set.jobs[victim].family] + of_row * DrawNormal(draw++));
    };
    run.slowdown_a = disturb(run.slowdown_a, run.job_a);
    run.slowdown_b = disturb(run.slowdown_b, run.job_b);
  }
  return set;
}

TEST(PairFolds, APairLeavesInBothDirectionsAndEverywhere) {
  const PairSet set = LawfulSet(12);
  const std::vector<PairRow> rows = RowsOf(set);
  std::map<std::pair<uint32_t, uint32_t>, std::set<std::string>> folds;
  size_t count = 0;
  const auto groups = LeaveOut(set, rows, PairLeave::kPair, 5, 0);
  for (const LeftOut& group : groups) {
    EXPECT_TRUE(std::is_sorted(group.rows.begin(), group.rows.end()));
    for (const uint32_t row : group.rows) folds[std::minmax(rows[row].victim, rows[row].other)].insert(group.name);
    count += group.rows.size();
  }
  EXPECT_EQ(groups.size(), 5u);
  EXPECT_EQ(count, rows.size());
  EXPECT_EQ(folds.size(), 12u * 13 / 2);
  for (const auto& [pair, names] : folds) EXPECT_EQ(names.size(), 1u);
  EXPECT_NE(LeaveOut(set, rows, PairLeave::kPair, 5, 1)[0].rows, groups[0].rows);  // the seed deals anew
}

TEST(PairFolds, AGroupTakesAlongEveryRowThatItHasPartIn) {
  const PairSet set = LawfulSet(8);
  const std::vector<PairRow> rows = RowsOf(set);
  for (const PairLeave leave : {PairLeave::kJob, PairLeave::kFamily, PairLeave::kGpu}) {
    const auto names = [&](const PairRow& row) {
      const PairJob &a = set.jobs[row.victim], &b = set.jobs[row.other];
      if (leave == PairLeave::kGpu) return std::set<std::string>{set.devices[row.device].gpu};
      return leave == PairLeave::kJob ? std::set{a.name, b.name} : std::set{a.family, b.family};
    };
    const auto groups = LeaveOut(set, rows, leave, 5, 0);
    EXPECT_EQ(groups.size(), leave == PairLeave::kJob ? 8u : leave == PairLeave::kFamily ? 4u : 2u);
    for (const LeftOut& group : groups) {
      const auto out = RowsAt(rows, group.rows), rest = RowsBut(rows, group.rows);
      EXPECT_EQ(out.size() + rest.size(), rows.size());
      for (const PairRow& row : out) EXPECT_TRUE(names(row).contains(group.name));
      for (const PairRow& row : rest) EXPECT_FALSE(names(row).contains(group.name));
    }
  }
}

TEST(PairBounds, ABoundIsNeverBelowItsEstimateAndGrowsWithItsMargin) {
  for (const double estimate : {1.0, 1.5, 40.0, static_cast<double>(kMaxSlowdown)}) {
    double last = estimate;
    EXPECT_EQ(UpperOf(estimate, 0), estimate);
    for (const double margin : {0.1, 1.0, 10.0, 100.0}) {
      EXPECT_GE(UpperOf(estimate, margin), last);
      last = UpperOf(estimate, margin);
      EXPECT_LE(last, static_cast<double>(kMaxSlowdown));
    }
  }
}

TEST(PairBounds, LessKnownNeverMeansATighterBound) {
  for (uint64_t seed = 0; seed < 2; ++seed) {
    const PairSet set = NoisySet(seed, 0.2, 0);
    const auto bounds = CalibratePairs(kKind, set, RowsOf(set), {.promise = 0.8}, {}, nullptr);
    ASSERT_TRUE(bounds.ok()) << bounds.status();
    ASSERT_EQ(bounds->devices.size(), kLawDevices);
    for (uint32_t d = 0; d < kLawDevices; ++d) {
      EXPECT_GE(bounds->devices[d].family.margin, bounds->devices[d].pair.margin);
      EXPECT_GE(bounds->unseen.margin, bounds->devices[d].family.margin);
      EXPECT_GE(bounds->devices[d].strangers.margin, bounds->devices[d].family.margin);
      EXPECT_GE(bounds->unseen.margin, bounds->devices[d].strangers.margin);
      EXPECT_EQ(bounds->Of(d, 2), bounds->devices[d].pair);
      EXPECT_EQ(bounds->Of(d, 1), bounds->devices[d].family);
      EXPECT_EQ(bounds->Of(d, 0), bounds->devices[d].strangers);
    }
    EXPECT_EQ(bounds->Of(kUnseen, 2), bounds->unseen);
    EXPECT_EQ(bounds->devices[2].pair.promised, 0);  // the device without runs promises nothing
    EXPECT_EQ(bounds->devices[2].pair.margin, kDefaultMargin);
  }
}

TEST(PairBounds, TheSameScaleGivesEveryProbability) {
  const PairMargin margin{.margin = 0.5, .promised = 0.9};
  EXPECT_NEAR(MarginAt(margin, kUpperProbability), 0.5, 1e-9);
  EXPECT_NEAR(MarginAt(margin, 0.95), 0.5 * 1.645 / 1.2816, 1e-3);
  EXPECT_EQ(MarginAt(margin, 0.5), 0);
}

// Of the same errors: whatever the promise, the margin is one of kUpperProbability; and fewer families say less.
TEST(PairBounds, AMarginHoldsAtOneProbabilityHoweverItWasFitted) {
  const auto family_margin = [](double promise, size_t jobs) {
    double sum = 0;
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const PairSet set = NoisySet(seed, 0.3, 0, jobs);
      const auto bounds =
          CalibratePairs(kKind, set, RowsOf(set), {.promise = promise, .pairs = false, .gpus = false}, {}, nullptr);
      EXPECT_TRUE(bounds.ok()) << bounds.status();
      const double families = static_cast<double>(jobs) / 2;
      EXPECT_EQ(bounds->devices[0].family.promised, std::min(promise, families / (families + 1)));
      sum += bounds->devices[0].family.margin;
    }
    return sum;
  };
  const double usual = family_margin(0.9, 20);
  EXPECT_NEAR(family_margin(0.8, 20), usual, 0.15 * usual);
  EXPECT_NEAR(family_margin(0.95, 20), usual, 0.15 * usual);
  EXPECT_GT(family_margin(0.9, 6), usual);
}

TEST(PairBounds, CalibrationMakesAsManyFitsAsItSaysAndCanBeCancelled) {
  const PairSet set = LawfulSet(8);
  const std::vector<PairRow> rows = RowsOf(set);
  const CalibrationPlan plan;
  size_t fits = 0;
  ASSERT_TRUE(CalibratePairs(kKind, set, rows, plan, {}, [&fits] { return ++fits > 0; }).ok());
  EXPECT_EQ(fits, FitsToCalibrate(set, rows, plan, 0));
  for (const size_t allowed : {size_t{0}, size_t{3}, fits - 1}) {
    size_t made = 0;
    const auto cancelled = CalibratePairs(kKind, set, rows, plan, {}, [&] { return ++made <= allowed; });
    EXPECT_EQ(cancelled.status().code(), absl::StatusCode::kCancelled);
  }
}

// Every row is bounded by models and margins that have not seen its group. The share below the bound differs from the
// promise by sampling: groups are what is exchangeable, so its deviation is that of as many draws as there are groups.
// Three of them.
struct Coverage {
  PairLeave leave = PairLeave::kPair;
  double promise = 0.9;
  double of_family = 0;  // noise
  size_t jobs = 20;
  uint64_t sets = 1;
  size_t groups = 1;  // of a set
};

void ExpectCovered(const Coverage& c) {
  double below = 0, count = 0;
  for (uint64_t seed = 0; seed < c.sets; ++seed) {
    const auto found = EvaluatePairs(NoisySet(seed, 0.15, c.of_family, c.jobs), "horus", c.leave, Options(c.promise));
    ASSERT_TRUE(found.ok()) << found.status();
    for (const PairPrediction& each : *found) {
      EXPECT_GE(each.upper, each.predicted);
      below += each.row.slowdown <= each.upper ? 1 : 0;
    }
    count += static_cast<double>(found->size());
  }
  const double tolerance = 3 * std::sqrt(c.promise * (1 - c.promise) / static_cast<double>(c.groups * c.sets));
  EXPECT_GE(below / count, c.promise - tolerance);
  EXPECT_LT(below / count, 1);  // and bounds are not simply far away
}

TEST(PairBounds, CoverPairsLeftOutAsPromised) {
  ExpectCovered({.leave = PairLeave::kPair, .promise = 0.95, .jobs = 12, .sets = 4, .groups = 12 * 13 / 2});
}

TEST(PairBounds, CoverFamiliesLeftOutAsPromised) {
  ExpectCovered({.leave = PairLeave::kFamily, .promise = 0.8, .of_family = 0.3, .jobs = 12, .sets = 12, .groups = 6});
}

TEST(PairKinds, WhatIsFittedIsWhatEveryBuildReads) {
  std::vector<std::string_view> fitted;
  for (const PairModelKind& kind : PairModelKinds()) fitted.push_back(kind.name);
  EXPECT_THAT(LearnedModelNames(), ::testing::ElementsAreArray(fitted));
}

TEST(TrainInterference, EqualInputGivesEqualBytes) {
  const PairSet set = LawfulSet(8);
  const auto first = TrainInterference(set, Options()), second = TrainInterference(set, Options());
  ASSERT_TRUE(first.ok() && second.ok()) << first.status();
  EXPECT_EQ(*WriteBundle(*first), *WriteBundle(*second));
  PairSet other = set;
  other.runs[5].slowdown_a *= 1.01;
  EXPECT_NE(TrainInterference(other, Options())->data_fingerprint, first->data_fingerprint);
}

TEST(TrainInterference, ReportsWhatTheBundlePromises) {
  const PairSet set = NoisySet(0, 0.15, 0.2);
  std::vector<TrainedKind> report;
  double last = 0;
  const auto rising = [&last](double done) {
    EXPECT_GT(done, last);
    last = done;
    return true;
  };
  const auto bundle = TrainInterference(set, Options(), rising, &report);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ(last, 1);
  ASSERT_EQ(report.size(), 1u);
  EXPECT_EQ(report[0].kind, "horus");
  EXPECT_GT(report[0].pair_mape, 1);
  EXPECT_GT(report[0].family_mape, report[0].pair_mape);
  const auto model = LearnedModel::Create(*bundle, "horus", *Catalogue::Default());
  EXPECT_TRUE(model.ok()) << model.status();
}

TEST(TrainInterference, CanBeCancelledAtAnyTime) {
  for (const int allowed : {0, 1, 10}) {
    int calls = 0;
    std::vector<TrainedKind> report;
    const auto bundle = TrainInterference(LawfulSet(8), Options(), [&](double) { return ++calls <= allowed; }, &report);
    EXPECT_EQ(bundle.status().code(), absl::StatusCode::kCancelled);
    EXPECT_TRUE(report.empty());
  }
}

TEST(TrainInterference, RefusesWhatCannotBeTrained) {
  const PairSet set = LawfulSet(8);
  for (const double promise : {0.0, 0.49, 1.0, double{NAN}}) {
    EXPECT_EQ(TrainInterference(set, Options(promise)).status().code(), absl::StatusCode::kInvalidArgument);
  }
  const absl::Status unknown = TrainInterference(set, {.kinds = {"horus", "magic"}}).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(unknown.message().find("horus, boosted, iasp, iapp"), std::string::npos) << unknown;
  PairSet few = set;
  few.runs.resize(3);
  EXPECT_EQ(TrainInterference(few, Options()).status().code(), absl::StatusCode::kInvalidArgument);
  PairSet damaged = set;
  damaged.runs[1].slowdown_a = 1e6;
  EXPECT_EQ(TrainInterference(damaged, Options()).status().code(), absl::StatusCode::kInvalidArgument);
  PairTrainOptions lacking;  // all kinds, one of which needs the training library
  lacking.fit.library_path = "/nowhere.so";
  EXPECT_EQ(TrainInterference(set, lacking).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace horus
