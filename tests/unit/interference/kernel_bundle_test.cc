// SPDX-License-Identifier: Apache-2.0
// The kernel model's bytes: every target that no fit writes is refused, naming the series, and limits are kept.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "interference/kernel_model.h"
#include "lab/models/train_pairs.h"
#include "pair_law.h"

namespace horus {
namespace {

constexpr PairModelKind kKind = {.name = kKernelName, .fit = FitKernelTarget, .read = ReadKernelModel};
constexpr size_t kRow = 2 + kPointColumns;  // of series entries: device, job, columns

class KernelBundle : public testing::Test {
 protected:
  KernelBundle() : set_(LawfulSet(6)) {
    auto target = FitKernelTarget(set_, RowsOf(set_), {});
    EXPECT_TRUE(target.ok()) << target.status();
    if (target.ok()) target_ = *std::move(target);
  }

  static std::vector<double>& Series(BundleTarget& target, const std::string& name) {
    for (NamedSeries& series : target.calibration) {
      if (series.name == name) return series.values;
    }
    ADD_FAILURE() << "no series " << name;
    return target.calibration.front().values;
  }

  // Damaged by `change` it is refused, and the message says where.
  template <typename Change>
  void Refused(const std::string& name, Change change, const std::string& named) const {
    BundleTarget damaged = target_;
    change(Series(damaged, name));
    Refused(damaged, named);
  }
  void Refused(const BundleTarget& damaged, const std::string& named) const {
    const absl::Status status = ReadKernelModel(HeaderOf(set_), damaged).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << named;
    EXPECT_NE(status.message().find(named), std::string::npos) << status;
  }

  PairSet set_;
  BundleTarget target_;
};

TEST_F(KernelBundle, RefusesSeriesThatAreMissingCutOrNoNumbers) {
  for (const NamedSeries& series : target_.calibration) {
    const std::string& name = series.name;
    const std::string lengths = name == "weight_places" ? "weights" : name;  // the two are parallel
    Refused(name, [](auto& values) { values.pop_back(); }, "series " + lengths);
    Refused(name, [](auto& values) { values.push_back(values.back() + 1); }, "series " + lengths);
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), HUGE_VAL, -HUGE_VAL, 1e30}) {
      Refused(name, [value](auto& values) { values.back() = value; }, "series " + name);
      Refused(name, [value](auto& values) { values.front() = value; }, "series " + name);
    }
    BundleTarget missing = target_;
    std::erase_if(missing.calibration, [&name](const NamedSeries& each) { return each.name == name; });
    Refused(missing, "series " + name);
  }
}

TEST_F(KernelBundle, RefusesSettingsThatNoFitHas) {
  const size_t count = FindSeries(target_.calibration, "settings")->values.size();
  for (size_t i = 0; i < count; ++i) {
    Refused("settings", [i](auto& values) { values[i] = -0.1; }, "series settings");
  }
  Refused("settings", [](auto& values) { values[8] = 0; }, "series settings");    // a length
  Refused("settings", [](auto& values) { values[9] = 1.5; }, "series settings");  // a correlation
  for (size_t c = 0; c < kPointColumns; ++c) {
    for (const double scale : {0.0, -1.0}) Refused("scale", [=](auto& values) { values[c] = scale; }, "series scale");
  }
}

TEST_F(KernelBundle, RefusesEntriesThatDoNotAscendWithinTheHeader) {
  const auto at = [](size_t entry, size_t column, double value) {
    return [=](auto& values) { values[entry * kRow + column] = value; };
  };
  Refused(
      "entries", [](auto& values) { std::swap_ranges(values.begin(), values.begin() + kRow, values.begin() + kRow); },
      "series entries");
  Refused("entries", at(1, 1, 0), "series entries");  // the first job twice
  for (const double position : {-1.0, 0.5, 6.0, 1e6}) Refused("entries", at(0, 1, position), "series entries");
  for (const double device : {-1.0, 0.5, 3.0, 1e6}) Refused("entries", at(0, 0, device), "series entries");
}

TEST_F(KernelBundle, RefusesWeightsOutsideTheBlocks) {
  const size_t cells = 2 * 6 * 6;  // two devices with rows of six jobs
  for (const double place : {72.0, 1e6})
    Refused("weight_places", [place](auto& v) { v.back() = place; }, "weight_places");
  EXPECT_LT(FindSeries(target_.calibration, "weight_places")->values.back(), static_cast<double>(cells));
  Refused("weight_places", [](auto& v) { v[1] = v[0]; }, "weight_places");
  Refused("weight_places", [](auto& v) { std::swap(v[0], v[1]); }, "weight_places");
  Refused("weight_places", [](auto& v) { v[0] += 0.5; }, "weight_places");
  Refused("weight_places", [](auto& v) { v[0] = -1; }, "weight_places");
}

TEST_F(KernelBundle, RefusesATargetOfAnotherKind) {
  BundleTarget renamed = target_;
  renamed.name = "other";
  Refused(renamed, "other");
  BundleTarget relinked = target_;
  relinked.link = Link::kExp;
  Refused(relinked, "link");
  BundleTarget grown = target_;
  grown.forest.num_features = 1;
  Refused(grown, "features");
}

TEST_F(KernelBundle, AHeaderWithFewerJobsOrDevicesDoesNotFit) {
  PairHeader fewer = HeaderOf(set_);
  fewer.profiles.pop_back();
  EXPECT_EQ(ReadKernelModel(fewer, target_).status().code(), absl::StatusCode::kDataLoss);
  fewer = HeaderOf(set_);
  fewer.devices.resize(1);
  EXPECT_EQ(ReadKernelModel(fewer, target_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(KernelBundle, AnswersStayFiniteWhateverIsRead) { ExpectFiniteWhateverIsRead(kKind, set_, target_); }

TEST(KernelLimits, TooManyJobsOnDevicesAreRefused) {
  PairSet set = LawfulSet(2);
  set.runs.clear();
  const auto add = [&set](uint32_t first) {
    set.runs.push_back(
        {.device = 0, .job_a = first, .job_b = first + 1, .slowdown_a = 2, .slowdown_b = 2, .where = "test"});
  };
  for (uint32_t j = 2; j < kMostKernelEntries + 2; ++j) {
    set.jobs.push_back(set.jobs[j % 2]);
    set.jobs.back().name = "job" + std::to_string(j);
  }
  for (uint32_t j = 0; j < kMostKernelEntries; j += 2) add(j);
  EXPECT_TRUE(FitKernel(set, RowsOf(set), {}).ok());
  add(kMostKernelEntries);
  const absl::Status status = FitKernel(set, RowsOf(set), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("512"), std::string::npos) << status;
}

TEST(KernelLimits, AsManyEntriesAsAFitMayHaveAreWrittenAndRead) {
  PairSet set = LawfulSet(2);
  KernelState state;
  state.scale.fill(1);
  state.blocks.resize(set.devices.size());
  for (uint32_t j = 0; j < kMostKernelEntries; ++j) {
    if (j >= 2) set.jobs.push_back(set.jobs[0]);
    state.blocks[0].jobs.push_back(j);
    state.blocks[0].points.push_back({});
  }
  state.blocks[0].weights.assign(kMostKernelEntries * kMostKernelEntries, 0);
  for (size_t i = 0; i < kMostKernelPairs; ++i) state.blocks[0].weights[3 * i] = 1;
  Bundle bundle;
  bundle.targets.push_back(ToTarget(state));
  const auto bytes = WriteBundle(bundle);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(ReadKernelModel(HeaderOf(set), bundle.targets[0]).ok());
  state.blocks[1].jobs.push_back(0);
  state.blocks[1].points.push_back({});
  state.blocks[1].weights.push_back(1);
  EXPECT_EQ(ReadKernelModel(HeaderOf(set), ToTarget(state)).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace horus
