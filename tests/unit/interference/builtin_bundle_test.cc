// SPDX-License-Identifier: Apache-2.0
// The bundle of interference models that the library brings.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "fake_model.h"
#include "interference/learned_model.h"
#include "interference/registry.h"
#include "trees/bundle.h"

namespace horus {

extern const unsigned char kDefaultInterference[];
extern const size_t kDefaultInterferenceSize;

namespace {

TEST(BuiltInBundle, HoldsEveryLearnedNameAndTheSchema) {
  const auto bundle = ReadBundle(std::span(kDefaultInterference, kDefaultInterferenceSize), {}, PointSchemaHash());
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  for (const std::string_view name : InterferenceModelNames()) {
    const auto model = MakeInterferenceModel(name);
    ASSERT_TRUE(model.ok()) << name << ": " << model.status();
    EXPECT_EQ((*model)->name(), name);
    if (name == "utilisation") continue;
    EXPECT_NE(bundle->FindTarget(name), nullptr) << name;
  }
}

TEST(BuiltInBundle, KnowsLessOfWhatItHasNotSeen) {
  const auto bundle = ReadBundle(std::span(kDefaultInterference, kDefaultInterferenceSize));
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const auto head = ReadHead(*bundle);
  ASSERT_TRUE(head.ok()) << head.status();
  for (const BundleTarget& target : bundle->targets) {
    const auto bounds = ReadBounds(head->header, target);
    ASSERT_TRUE(bounds.ok()) << bounds.status();
    for (const PairBounds::Device& device : bounds->devices) {
      EXPECT_GE(device.family.margin, device.pair.margin) << target.name;
      EXPECT_GE(bounds->unseen.margin, device.family.margin) << target.name;
    }
    const auto model = LearnedModel::Create(*bundle, target.name, *Catalogue::Default());
    ASSERT_TRUE(model.ok()) << model.status();
    for (const PairDevice& device : head->header.devices)
      EXPECT_TRUE(Catalogue::Default()->Find(device.gpu).ok()) << device.gpu;
    for (size_t type = 0; type < Catalogue::Default()->size(); type += 7) {
      const auto found = Ask(**model, {JobOf(1), JobOf(2), JobOf(3)}, {.type = GpuTypeId(static_cast<uint16_t>(type))});
      for (const Slowdown& s : found) EXPECT_TRUE(s.estimate >= 1 && s.upper >= s.estimate) << target.name;
    }
  }
}

TEST(BuiltInBundle, ANewcomerBesideManyIsAsBesideEach) {
  constexpr size_t kOthers = 70;  // more than one batch
  Demand newcomer;
  std::vector<Demand> others;
  for (uint64_t i = 0; i < kOthers; ++i) {
    Demand& job = others.emplace_back(JobOf(i % 25));
    if (i % 5 == 1) job.operator_us = 0;  // unknown
    if (i % 10 == 1) job.traits[static_cast<size_t>(Trait::kLogKernels)] = 0;
    if (i % 5 == 2) job.host_us = 2 * static_cast<double>(job.step_time_us.estimate);
    if (i % 5 == 3) job.profile_id = 0;
  }
  std::vector<const Demand*> pointers;
  for (const Demand& job : others) pointers.push_back(&job);
  for (const std::string_view name : InterferenceModelNames()) {
    const std::shared_ptr<const InterferenceModel> model = *MakeInterferenceModel(name);
    if (!model->adds_pairs()) continue;
    for (const size_t as : {1, 2, 3}) {
      newcomer = as == 1 ? JobOf(1) : others[as == 2 ? 11 : 7];  // the second of known busy share, the third waits
      for (uint16_t type = 0; type < Catalogue::Default()->size(); ++type) {
        for (const SharingMode mode : kSharingModes) {
          const DeviceContext device = {
              .type = GpuTypeId(type), .mode = mode, .compute_share = type % 2 == 0 ? 1 : 0.5f};
          std::vector<PairExcess> mine(kOthers), theirs(kOthers), two(4);
          ASSERT_TRUE(model->PredictBeside(device, newcomer, pointers, mine, theirs).ok()) << name;
          const InterferenceModel::LeastPairs least = model->LeastBeside(device, newcomer);
          for (size_t i = 0; i < kOthers; ++i) {
            const InterferenceModel::PairLevels levels = model->LevelsOf(device, *pointers[i]);
            ASSERT_LE(least.mine.at(levels.inflicts), mine[i].estimate) << name << " beside " << i;
            ASSERT_LE(least.theirs.at(levels.suffers), theirs[i].estimate) << name << " beside " << i;
            ASSERT_TRUE(model->PredictPairs(device, std::vector<const Demand*>{&newcomer, pointers[i]}, two).ok());
            ASSERT_TRUE(mine[i] == two[1] && theirs[i] == two[2]) << name << " beside " << i << " on type " << type;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace horus
