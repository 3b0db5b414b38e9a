// SPDX-License-Identifier: Apache-2.0
// Rules of training input: what is refused before anything is trained, and how rows are dealt to folds.
#include <cmath>
#include <functional>

#include "gmock/gmock.h"
#include "random_forest.h"
#include "trees/trainer.h"

namespace horus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Columns {
  std::vector<float> rows = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> targets = {1, 2, 3, 4};
  std::vector<float> margins = {0, 0, 0, 0};
  std::vector<float> weights = {1, 1, 1, 1};
  TrainingParams params;

  [[nodiscard]] absl::Status Check() const {
    return CheckTraining({.row_count = 4,
                          .feature_count = 2,
                          .rows = rows,
                          .targets = targets,
                          .base_margins = margins,
                          .weights = weights},
                         params);
  }
};

TEST(TrainingInput, NamesRowAndColumnOfBadData) {
  struct Case {
    std::function<void(Columns&)> damage;
    const char* message;
  };
  const std::vector<Case> cases = {
      {[](Columns& c) { c.targets[2] = NAN; }, "row 2: target: expected a number of magnitude up to 1e+12, found nan"},
      {[](Columns& c) { c.targets[3] = INFINITY; }, "row 3: target"},
      {[](Columns& c) { c.margins[1] = NAN; }, "row 1: base margin"},
      {[](Columns& c) { c.weights[0] = 0; }, "row 0: weight: expected a number above 0"},
      {[](Columns& c) { c.weights[0] = NAN; }, "row 0: weight"},
      {[](Columns& c) { c.rows[5] = -INFINITY; }, "row 2, feature 1: expected"},
      {[](Columns& c) { c.rows.pop_back(); }, "rows: expected 8 values, found 7"},
      {[](Columns& c) { c.targets.pop_back(); }, "targets: expected 4 values, found 3"},
      {[](Columns& c) { c.margins.pop_back(); }, "base_margins: expected 4"},
      {[](Columns& c) { c.params.rounds = 0; }, "rounds"},
      {[](Columns& c) { c.params.max_depth = 17; }, "max_depth: expected a number from 1 and up to 16, found 17"},
      {[](Columns& c) { c.params.learning_rate = 0; }, "learning_rate"},
      {[](Columns& c) { c.params.learning_rate = NAN; }, "learning_rate"},
      {[](Columns& c) { c.params.subsample = 1.5f; }, "subsample"},
      {[](Columns& c) { c.params.base_score = NAN; }, "base_score"},
      {[](Columns& c) { c.params.monotone = {1}; }, "monotone: expected 2"},
      {[](Columns& c) { c.params.monotone = {1, 2}; }, "monotone[1]: expected -1, 0 or 1, found 2"},
  };
  EXPECT_TRUE(Columns().Check().ok()) << Columns().Check();
  for (const Case& one : cases) {
    Columns columns;
    one.damage(columns);
    const absl::Status status = columns.Check();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << one.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(one.message));
  }
}

TEST(TrainingInput, AcceptsMissingFeatures) {
  Columns columns;
  columns.rows[3] = testing::kNan;
  EXPECT_TRUE(columns.Check().ok());
}

TEST(TrainingInput, RefusesZeroRowsOrFeatures) {
  EXPECT_EQ(Fit({}, {}).status().code(), absl::StatusCode::kInvalidArgument);
  const std::vector<float> targets = {1};
  EXPECT_THAT(std::string(Fit({.row_count = 1, .targets = targets}, {}).status().message()), HasSubstr("features"));
}

TEST(Folds, KeepGroupsWholeAndLevelTheFolds) {
  const std::vector<uint32_t> groups = {8, 3, 3, 3, 8, 1, 6, 6};
  EXPECT_THAT(AssignFolds(groups, 2), ElementsAre(1, 0, 0, 0, 1, 0, 1, 1));
  EXPECT_THAT(AssignFolds(groups, 100), ElementsAre(2, 0, 0, 0, 2, 3, 1, 1));
}

TEST(TrainLibrary, SaysWhichFileIsMissingAndHowToGetIt) {
  Columns columns;
  columns.params.library_path = "/nowhere/libhorus_train.so";
  const absl::Status status =
      Fit({.row_count = 4, .feature_count = 2, .rows = columns.rows, .targets = columns.targets}, columns.params)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere/libhorus_train.so"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("HORUS_WITH_TRAIN"));
}

}  // namespace
}  // namespace horus
