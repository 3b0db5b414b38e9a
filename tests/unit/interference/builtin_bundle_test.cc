// SPDX-License-Identifier: Apache-2.0
// The bundle of interference models that the library brings.
#include <gtest/gtest.h>

#include <span>
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

}  // namespace
}  // namespace horus
