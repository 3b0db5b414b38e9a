// SPDX-License-Identifier: Apache-2.0
// Evaluation on pairs: every row is predicted without its group, and references are what they say.
#include "lab/evaluate/evaluate_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "interference/pair_bounds.h"
#include "interference/registry.h"
#include "pair_law.h"

namespace horus {
namespace {

PairTrainOptions Options() { return {.promise = 0.9, .kinds = {"horus"}}; }

std::vector<PairPrediction> Evaluated(const PairSet& set, std::string_view model, PairLeave leave) {
  auto found = EvaluatePairs(set, model, leave, Options());
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *std::move(found) : std::vector<PairPrediction>();
}

double Mape(const std::vector<PairPrediction>& predictions) {
  double sum = 0;
  for (const PairPrediction& each : predictions) sum += std::abs(each.predicted / each.row.slowdown - 1);
  return 100 * sum / static_cast<double>(predictions.size());
}

TEST(EvaluatePairs, PredictsEveryRowOnceForEachGroupThatItBelongsTo) {
  const PairSet set = LawfulSet(8);
  const std::vector<PairRow> rows = RowsOf(set);
  for (const PairLeave leave : {PairLeave::kPair, PairLeave::kJob, PairLeave::kFamily, PairLeave::kGpu}) {
    std::map<std::pair<uint32_t, uint32_t>, size_t> found;  // run, victim
    for (const PairPrediction& each : Evaluated(set, "constant", leave)) ++found[{each.row.run, each.row.victim}];
    EXPECT_EQ(found.size(), rows.size());
    for (const PairRow& row : rows) {
      const size_t groups = leave == PairLeave::kJob ? 1 + (row.victim != row.other)
                            : leave == PairLeave::kFamily
                                ? 1 + (set.jobs[row.victim].family != set.jobs[row.other].family)
                                : 1;
      EXPECT_EQ((found[{row.run, row.victim}]), groups);
    }
  }
}

TEST(EvaluatePairs, WhatIsLeftOutDoesNotTeach) {
  PairSet set = LawfulSet(8);
  const auto before = Evaluated(set, "horus", PairLeave::kFamily);
  for (PairRun& run : set.runs) {
    if (run.job_a < 2 || run.job_b < 2) run.slowdown_a = run.slowdown_b = 50;  // family0
  }
  const auto after = Evaluated(set, "horus", PairLeave::kFamily);
  ASSERT_EQ(before.size(), after.size());
  size_t compared = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].left_out != "family0") continue;
    EXPECT_EQ(before[i].predicted, after[i].predicted);
    EXPECT_EQ(before[i].upper, after[i].upper);
    ++compared;
  }
  EXPECT_GT(compared, 20u);
}

// The same law on two types of the catalogue.
PairSet KnownTypes() {
  PairSet set = LawfulSet(8);
  const char* const types[] = {"v100-sxm2-16gb", "t4", "k80"};
  for (size_t d = 0; d < set.devices.size(); ++d) set.devices[d].gpu = types[d];
  return set;
}

TEST(EvaluateAsIs, AnswersAsAPlacementWouldHearItForTheRowsThatAreLeftOutInTurn) {
  const PairSet set = KnownTypes();
  const auto model = MakeInterferenceModel("horus");
  ASSERT_TRUE(model.ok()) << model.status();
  for (const PairLeave leave : {PairLeave::kPair, PairLeave::kFamily}) {
    const auto trained = Evaluated(set, "constant", leave);
    const auto as_is = EvaluateAsIs(set, *Catalogue::Default(), **model, leave, Options().fit.seed);
    ASSERT_TRUE(as_is.ok()) << as_is.status();
    ASSERT_EQ(as_is->size(), trained.size());
    for (size_t i = 0; i < trained.size(); ++i) {
      const PairPrediction& each = (*as_is)[i];
      EXPECT_EQ(each.row, trained[i].row);
      EXPECT_EQ(each.left_out, trained[i].left_out);
      EXPECT_GE(each.predicted, 1);
      EXPECT_GE(each.upper, each.predicted);
    }
  }
}

TEST(EvaluateAsIs, WhatThePairsSayTeachesNothing) {
  PairSet set = KnownTypes();
  const auto model = MakeInterferenceModel("horus");
  ASSERT_TRUE(model.ok()) << model.status();
  const auto before = EvaluateAsIs(set, *Catalogue::Default(), **model, PairLeave::kJob, 1);
  for (PairRun& run : set.runs) run.slowdown_a = run.slowdown_b = 50;
  const auto after = EvaluateAsIs(set, *Catalogue::Default(), **model, PairLeave::kJob, 1);
  ASSERT_TRUE(before.ok() && after.ok());
  ASSERT_EQ(before->size(), after->size());
  for (size_t i = 0; i < before->size(); ++i) EXPECT_EQ((*before)[i].predicted, (*after)[i].predicted);
}

TEST(EvaluateAsIs, RefusesATypeThatTheCatalogueLacks) {
  const PairSet set = LawfulSet(8);
  const auto model = MakeInterferenceModel("horus");
  ASSERT_TRUE(model.ok()) << model.status();
  const auto found = EvaluateAsIs(set, *Catalogue::Default(), **model, PairLeave::kPair, 1);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(found.status().message().find("gpu0"), std::string::npos) << found.status();
}

std::vector<UnseenPrediction> Unseen(const PairSet& set, bool leave_gpu = false) {
  auto found = PredictUnseen(set, "horus", leave_gpu, Options());
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *std::move(found) : std::vector<UnseenPrediction>();
}

TEST(PredictUnseen, SaysWhatAnyTwoJobsCostEachOtherWhetherOrNotTheyWereMeasured) {
  PairSet set = LawfulSet(8);
  std::erase_if(set.runs, [](const PairRun& run) { return run.job_a == 1 && run.job_b == 4; });
  const std::vector<UnseenPrediction> found = Unseen(set);
  ASSERT_EQ(found.size(), set.devices.size() * set.jobs.size() * set.jobs.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t device = i / (set.jobs.size() * set.jobs.size());
    EXPECT_EQ(found[i].device, device);
    EXPECT_EQ(found[i].victim, i / set.jobs.size() % set.jobs.size());
    EXPECT_EQ(found[i].other, i % set.jobs.size());
    EXPECT_GE(found[i].predicted, 1);
    EXPECT_GE(found[i].upper, found[i].predicted);
  }
}

TEST(PredictUnseen, NothingOfEitherFamilyTeaches) {
  PairSet set = LawfulSet(8);
  const auto before = Unseen(set);
  const std::string one = set.jobs.front().family, two = set.jobs.back().family;
  ASSERT_NE(one, two);
  const auto concerns = [&](uint32_t job) { return set.jobs[job].family == one || set.jobs[job].family == two; };
  for (PairRun& run : set.runs) {
    if (concerns(run.job_a) || concerns(run.job_b)) run.slowdown_a = run.slowdown_b = 50;
  }
  const auto after = Unseen(set);
  ASSERT_EQ(before.size(), after.size());
  size_t compared = 0, changed = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const bool between = set.jobs[before[i].victim].family != set.jobs[before[i].other].family &&
                         concerns(before[i].victim) && concerns(before[i].other);
    if (!between) {
      changed += before[i].predicted != after[i].predicted ? 1 : 0;
      continue;
    }
    EXPECT_EQ(before[i].predicted, after[i].predicted);
    EXPECT_EQ(before[i].upper, after[i].upper);
    ++compared;
  }
  EXPECT_GT(compared, 4u);
  EXPECT_GT(changed, 0u) << "others learn from those rows";
}

TEST(PredictUnseen, NothingOfTheGpuTypeTeachesWhereThatIsLeftOut) {
  PairSet set = LawfulSet(8);
  const auto before = Unseen(set, /*leave_gpu=*/true), knowing = Unseen(set);
  for (PairRun& run : set.runs) {
    if (run.device == 0) run.slowdown_a = run.slowdown_b = 50;
  }
  const auto after = Unseen(set, /*leave_gpu=*/true);
  ASSERT_EQ(before.size(), knowing.size());
  ASSERT_EQ(before.size(), after.size());
  size_t changed = 0, other = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    if (set.devices[before[i].device].gpu != set.devices[0].gpu) {
      changed += before[i].predicted != after[i].predicted ? 1 : 0;
      continue;
    }
    EXPECT_EQ(before[i].predicted, after[i].predicted);
    EXPECT_EQ(before[i].upper, after[i].upper);
    other += before[i].predicted != knowing[i].predicted ? 1 : 0;
  }
  EXPECT_GT(changed, 0u) << "others learn from those rows";
  EXPECT_GT(other, 0u);
}

TEST(EvaluatePairs, TheLearnedModelBeatsTheReferencesOnFamiliesLeftOut) {
  const PairSet set = LawfulSet();
  const double learned = Mape(Evaluated(set, "horus", PairLeave::kFamily));
  for (const char* reference : {"constant", "factors", "utilisation"}) {
    EXPECT_LT(learned, 0.6 * Mape(Evaluated(set, reference, PairLeave::kFamily))) << reference;
  }
}

TEST(EvaluatePairs, FactorsBeatAConstantOnPairsLeftOut) {
  const PairSet set = LawfulSet();
  EXPECT_LT(Mape(Evaluated(set, "factors", PairLeave::kPair)),
            0.5 * Mape(Evaluated(set, "constant", PairLeave::kPair)));
}

TEST(EvaluatePairs, ReferencesGiveNoBoundAndTheUtilisationIsAsSummed) {
  const PairSet set = LawfulSet(8);
  for (const PairPrediction& each : Evaluated(set, "utilisation", PairLeave::kPair)) {
    EXPECT_TRUE(std::isnan(each.upper));
    const auto util = [&](uint32_t job) { return std::exp(static_cast<double>(set.jobs[job].points[0][3])); };
    EXPECT_NEAR(each.predicted, std::max(1.0, util(each.row.victim) + util(each.row.other)), 1e-6);
  }
}

TEST(EvaluatePairs, AConstantIsTheOneOfLeastError) {
  PairSet set = LawfulSet(8);
  for (PairRun& run : set.runs) run.slowdown_a = run.slowdown_b = 1.7;
  for (const PairPrediction& each : Evaluated(set, "constant", PairLeave::kPair)) EXPECT_EQ(each.predicted, 1.7);
}

TEST(EvaluatePairs, RefusesWhatCannotBeEvaluated) {
  const PairSet set = LawfulSet(8);
  const absl::Status unknown = EvaluatePairs(set, "magic", PairLeave::kPair, Options()).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  for (const std::string_view name : EvaluatedPairModels()) {
    EXPECT_NE(unknown.message().find(std::string(name)), std::string::npos) << unknown;
  }
  PairSet one_gpu = set;
  std::erase_if(one_gpu.runs, [](const PairRun& run) { return run.device != 0; });
  EXPECT_EQ(EvaluatePairs(one_gpu, "horus", PairLeave::kGpu, Options()).status().code(),
            absl::StatusCode::kInvalidArgument);
  // Of two jobs, one left out leaves a row each.
  EXPECT_EQ(EvaluatePairs(LawfulSet(2), "horus", PairLeave::kJob, Options()).status().code(),
            absl::StatusCode::kInvalidArgument);
  int calls = 0;
  const auto cancelled =
      EvaluatePairs(set, "constant", PairLeave::kJob, Options(), [&](double) { return ++calls < 3; });
  EXPECT_EQ(cancelled.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace horus
