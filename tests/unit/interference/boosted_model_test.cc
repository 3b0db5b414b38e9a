// SPDX-License-Identifier: Apache-2.0
// The boosted model: what its trees learn, what they may not say, and what is refused.
#include <gtest/gtest.h>

#include "interference/pair_model.h"
#include "lab/models/learned_models.h"
#include "pair_law.h"

namespace horus {
namespace {

constexpr PairModelKind kKind = {.name = kBoostedName, .fit = FitBoosted, .read = ReadBoosted};

BundleTarget Fitted(const PairSet& set) {
  auto target = FitBoosted(set, RowsOf(set), {});
  EXPECT_TRUE(target.ok()) << target.status();
  return target.ok() ? *std::move(target) : BundleTarget();
}

TEST(BoostedModel, LearnsALawForJobsLeftOut) { EXPECT_LT(ErrorBesideConstant(kKind), 0.5); }

TEST(BoostedModel, SurvivesABundle) {
  const PairSet set = LawfulSet();
  ExpectRoundTrip(kKind, set, Fitted(set));
}

TEST(BoostedModel, EqualInputGivesEqualTargets) {
  const PairSet set = LawfulSet(8);
  EXPECT_EQ(Fitted(set), Fitted(set));
}

TEST(BoostedModel, OnlyGivenRowsCount) { ExpectOnlyGivenRowsCount(kKind); }

TEST(BoostedModel, AnswersForUnknownJobsAndDevices) {
  const PairSet set = LawfulSet();
  ExpectAnswersForTheUnknown(kKind, set, Fitted(set));
}

// Three devices, of which the second has no rows.
TEST(BoostedModel, AnswersAsItsTreesSayOfTheDeviceOrOfTheTrainedOnesOnAverage) {
  constexpr uint32_t kOtherUtil = 3, kVictimStep = 4, kFirstDevice = 8;
  const std::vector<double> offsets = {0.1, 5, 0.4, 0.2};
  const auto split = [](uint32_t feature, float below, uint32_t right) {
    return TreeNode{.split = 2 * feature, .right = right, .value = below};
  };
  const auto leaf = [](float value) { return TreeNode{.value = value}; };
  BundleTarget target{.name = std::string(kBoostedName), .link = Link::kExp, .calibration = {}, .forest = {}};
  PointScale scale;
  scale.spread.fill(1);
  AddScale(scale, target);
  target.calibration.push_back({"device_offset", offsets});
  target.calibration.push_back({"device_trained", {1, 0, 1}});
  target.forest = {.num_features = kFirstDevice + 3,
                   .nodes = {split(kOtherUtil, -0.5f, 4), split(kFirstDevice, 0.5f, 3), leaf(0.11f), leaf(0.23f),
                             leaf(0.37f), split(kFirstDevice + 2, 0.5f, 2), leaf(-0.13f), leaf(0.71f),
                             split(kVictimStep, 10, 2), leaf(0.05f), leaf(-0.05f)},
                   .tree_sizes = {5, 3, 3}};
  const PairHeader header{.devices = {{.gpu = "a"}, {.gpu = "b"}, {.gpu = "c"}}, .profiles = {}};
  const auto model = ReadBoosted(header, target);
  ASSERT_TRUE(model.ok()) << model.status();
  const absl::StatusOr<Forest> forest = Forest::Create(target.forest);
  ASSERT_TRUE(forest.ok()) << forest.status();
  const JobPoint busy = {11, 4, 6, -0.1f}, idle = {9, 3, 5, -1};
  for (const auto& [victim, other] : {std::pair{busy, idle}, {idle, busy}, {busy, busy}, {idle, idle}}) {
    const auto margin = [&](uint32_t device, double offset) {
      std::vector<float> row(other.begin(), other.end());
      row.insert(row.end(), victim.begin(), victim.end());
      row.resize(kFirstDevice + 3);
      row[kFirstDevice + device] = 1;
      return double{forest->PredictMargin(row, static_cast<float>(offset + scale.Theory(victim, other)))};
    };
    const auto found = [&](uint32_t device) {
      return PairOf(**model, device, {.profile_id = 0, .point = victim}, {.profile_id = 0, .point = other});
    };
    for (const uint32_t device : {0u, 2u}) {
      EXPECT_EQ(found(device), static_cast<float>(SlowdownOf(margin(device, offsets[device]))));
    }
    const double mean = (margin(0, offsets[3]) + margin(2, offsets[3])) / 2;
    EXPECT_NEAR(double{found(1)}, SlowdownOf(mean), 1e-5);
    EXPECT_EQ(found(1), found(kUnseen));
  }
}

TEST(BoostedModel, NeverSaysThatABusierOtherDisturbsLess) {
  const PairSet set = LawfulSet();
  const auto model = ReadBoosted(HeaderOf(set), Fitted(set));
  ASSERT_TRUE(model.ok()) << model.status();
  for (uint32_t j = 0; j < set.jobs.size(); ++j) {
    Tenant other = TenantOfJob(set, j, 0);
    for (const PointColumn column : {PointColumn::kLogUtil, PointColumn::kLogKernelUs, PointColumn::kLogOperatorUs}) {
      float last = 0;
      float& value = other.point[static_cast<size_t>(column)];
      const float kept = value;
      for (value = -4; value < 10; value += 0.25f) {
        const float found = PairOf(**model, 0, TenantOfJob(set, 0, 0), other);
        EXPECT_GE(found, last);
        last = found;
      }
      value = kept;
    }
  }
}

TEST(BoostedModel, RefusesWhatNoFitWrites) {
  const PairSet set = LawfulSet(8);
  const BundleTarget target = Fitted(set);
  ExpectDamageRefused(kKind, set, target);
  ExpectFiniteWhateverIsRead(kKind, set, target);
  BundleTarget damaged = target;
  damaged.forest.nodes.back().value = 1e30f;
  EXPECT_EQ(ReadBoosted(HeaderOf(set), damaged).status().code(), absl::StatusCode::kDataLoss);
  damaged = target;
  damaged.forest.nodes.resize(1 << 20, target.forest.nodes.back());
  damaged.forest.tree_sizes.resize(target.forest.tree_sizes.size() + (1 << 20) - target.forest.nodes.size(), 1);
  EXPECT_EQ(ReadBoosted(HeaderOf(set), damaged).status().code(), absl::StatusCode::kDataLoss);
  damaged = target;  // its first tree becomes one split deeper than any fit makes
  const TreeNode split{.split = 0}, leaf = target.forest.nodes.back();
  std::vector<TreeNode> deep(5, split);
  for (uint32_t i = 0; i < 5; ++i) deep[i].right = 10 - i;
  deep.resize(11, leaf);
  damaged.forest.nodes.erase(damaged.forest.nodes.begin(), damaged.forest.nodes.begin() + target.forest.tree_sizes[0]);
  damaged.forest.nodes.insert(damaged.forest.nodes.begin(), deep.begin(), deep.end());
  damaged.forest.tree_sizes[0] = 11;
  EXPECT_EQ(ReadBoosted(HeaderOf(set), damaged).status().code(), absl::StatusCode::kDataLoss);
  PairHeader more = HeaderOf(set);
  more.devices.push_back({.gpu = "another"});
  EXPECT_EQ(ReadBoosted(more, target).status().code(), absl::StatusCode::kDataLoss);
}

// As many devices and trees as a bundle may have, and no split that a device decides.
TEST(BoostedModel, ForestsOfAllDevicesTakeBoundedMemory) {
  BundleTarget target{.name = std::string(kBoostedName), .link = Link::kExp, .calibration = {}, .forest = {}};
  PointScale scale;
  scale.spread.fill(1);
  AddScale(scale, target);
  target.calibration.push_back({"device_offset", std::vector<double>(kMostPairDevices + 1)});
  target.calibration.push_back({"device_trained", std::vector<double>(kMostPairDevices, 1)});
  std::vector<TreeNode>& nodes = target.forest.nodes;
  const auto grow = [&](const auto& self, size_t root, int depth) -> void {
    const size_t at = nodes.size();
    nodes.push_back({.value = 0.001f * static_cast<float>(at - root)});
    if (depth == 0) return;
    nodes[at].split = 2 * static_cast<uint32_t>(depth);
    nodes[at].value = 0.5f;
    self(self, root, depth - 1);
    nodes[at].right = static_cast<uint32_t>(nodes.size() - root);
    self(self, root, depth - 1);
  };
  for (int tree = 0; tree < 200; ++tree) {
    const size_t root = nodes.size();
    grow(grow, root, 4);
    target.forest.tree_sizes.push_back(static_cast<uint32_t>(nodes.size() - root));
  }
  target.forest.num_features = static_cast<uint32_t>(2 * kPointColumns + kMostPairDevices);
  PairHeader header;
  for (size_t d = 0; d < kMostPairDevices; ++d) header.devices.push_back({.gpu = "gpu" + std::to_string(d)});
  const auto model = ReadBoosted(header, target);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_LT((*model)->bytes_held(), 12u << 20);  // SECURITY.md
}

TEST(BoostedModel, SaysWhereTheTrainingLibraryIsMissing) {
  const PairSet set = LawfulSet(4);
  EXPECT_EQ(FitBoosted(set, RowsOf(set), {.library_path = "/nowhere.so"}).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace horus
