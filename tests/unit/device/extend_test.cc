// SPDX-License-Identifier: Apache-2.0
// Rules of adding types to a catalogue: what is accepted, what is refused and how the refusal reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "device/catalogue.h"
#include "device/gpu_fields.h"

namespace horus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

GpuType Sample() {
  return {
      .name = "test-gpu",
      .compute_capability = 80,
      .sm_count = 10,
      .boost_clock_mhz = 1'000,
      .fp32_gflops = 1'280,
      .fp16_gflops = 2'560,
      .mem_mib = 8'192,
      .mem_bandwidth_mb_s = 100'000,
      .l2_kib = 1'024,
      .pcie_mb_s = 15'754,
      .tdp_w = 100,
      .mig = {{.name = "1g.4gb", .compute_slices = 1, .memory_slices = 4, .mem_mib = 4'000, .max_instances = 2}},
      .aliases = {"Test GPU X"},
      .mig_source = "made up",
  };
}

absl::Status TryAdd(GpuType type) {
  std::vector<GpuType> types;
  types.push_back(std::move(type));
  return Catalogue::Extend(*Catalogue::Default(), std::move(types)).status();
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(Extend, KeepsTheIdsOfTheBaseAndAppends) {
  const Catalogue& base = *Catalogue::Default();
  const absl::StatusOr<Catalogue> extended = Catalogue::Extend(base, {Sample()});
  ASSERT_TRUE(extended.ok()) << extended.status();
  ASSERT_EQ(extended->size(), base.size() + 1);
  for (size_t i = 0; i < base.size(); ++i) {
    const GpuTypeId id(static_cast<uint16_t>(i));
    EXPECT_EQ(extended->at(id), base.at(id));
  }
  EXPECT_EQ(extended->Find("test_gpu_x").value().value(), base.size());
  EXPECT_FALSE(base.Find("test-gpu").ok());
}

TEST(Extend, WithNothingIsEqualToTheBase) {
  const Catalogue& base = *Catalogue::Default();
  EXPECT_EQ(Catalogue::Extend(base, {}).value(), base);
  EXPECT_NE(Catalogue::Extend(base, {Sample()}).value(), base);
}

TEST(Extend, FillsContextAndMpsByRule) {
  const Catalogue extended = Catalogue::Extend(Catalogue(), {Sample()}).value();
  const GpuType& type = extended.at(GpuTypeId(0));
  EXPECT_EQ(type.context_mib, EstimateContextMib(80, 10));
  EXPECT_THAT(type.context_source, HasSubstr("estimate"));
  EXPECT_EQ(type.max_mps_clients, 48);
}

TEST(Extend, KeepsGivenContextAndMps) {
  GpuType sample = Sample();
  sample.context_mib = 77;
  sample.context_source = "measured: ours";
  sample.max_mps_clients = 3;
  const Catalogue extended = Catalogue::Extend(Catalogue(), {sample}).value();
  EXPECT_EQ(extended.at(GpuTypeId(0)), sample);
}

TEST(Extend, RefusesEveryNumberOutOfRangeNamingTypeFieldLimitsAndValue) {
  for (const GpuField& field : GpuFields()) {
    const int64_t bad_values[] = {field.min - 1, field.max + 1, -1, std::numeric_limits<int64_t>::min(),
                                  std::numeric_limits<int64_t>::max()};
    for (const int64_t bad : bad_values) {
      GpuType type = Sample();
      type.*field.member = bad;
      if (bad == 0 && (field.key == "context_mib" || field.key == "max_mps_clients")) continue;  // filled by rule
      const absl::Status status = TryAdd(type);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field.key << " = " << bad;
      EXPECT_THAT(Message(status), AllOf(HasSubstr("'test-gpu'"), HasSubstr(std::string(field.key)),
                                         HasSubstr(std::to_string(field.min) + " to " + std::to_string(field.max)),
                                         HasSubstr("found " + std::to_string(bad))));
    }
  }
}

TEST(Extend, AcceptsEveryNumberAtItsLimits) {
  for (const GpuField& field : GpuFields()) {
    for (const int64_t limit : {field.min, field.max}) {
      GpuType type = Sample();
      type.mig.clear();
      type.mem_mib = 1024 * 1024;  // room for the largest context
      type.*field.member = limit;
      if (field.key == "mem_mib" && limit == field.min) continue;  // cannot hold a context
      EXPECT_TRUE(TryAdd(type).ok()) << field.key << " = " << limit << ": " << TryAdd(type);
    }
  }
}

TEST(Extend, RefusesEveryMigNumberOutOfRange) {
  for (const MigField& field : MigFields()) {
    for (const int64_t bad : {field.min - 1, field.max + 1, std::numeric_limits<int64_t>::max()}) {
      GpuType type = Sample();
      type.mig[0].*field.member = bad;
      const absl::Status status = TryAdd(type);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field.key << " = " << bad;
      EXPECT_THAT(Message(status), AllOf(HasSubstr("'test-gpu'"), HasSubstr("'1g.4gb'"),
                                         HasSubstr(std::string(field.key)), HasSubstr("found " + std::to_string(bad))));
    }
  }
}

TEST(Extend, RefusesMigInstancesThatExceedTheMemory) {
  GpuType type = Sample();
  type.mig[0].mem_mib = 4'097;  // twice this is 2 MiB more than the GPU has
  EXPECT_THAT(Message(TryAdd(type)), AllOf(HasSubstr("mem_mib"), HasSubstr("8192 MiB"), HasSubstr("4097 MiB")));
}

TEST(Extend, RefusesTwoMigProfilesOfOneName) {
  GpuType type = Sample();
  type.mig.push_back(type.mig[0]);
  EXPECT_THAT(Message(TryAdd(type)), AllOf(HasSubstr("'1g.4gb'"), HasSubstr("found twice")));
}

TEST(Extend, RefusesAContextAsLargeAsTheMemory) {
  GpuType type = Sample();
  type.context_mib = type.mem_mib;
  EXPECT_THAT(Message(TryAdd(type)), AllOf(HasSubstr("context_mib"), HasSubstr("8192 MiB")));
}

TEST(Extend, RefusesBadNames) {
  for (const std::string& name :
       {std::string(), std::string("Test"), std::string("a b"), std::string("-a"), std::string("a\n"),
        std::string("a\0b", 3), std::string(65, 'a'), std::string("nvidia-")}) {
    GpuType type = Sample();
    type.name = name;
    EXPECT_EQ(TryAdd(type).code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST(Extend, RefusesANameThatIsTakenInAnySpelling) {
  for (const char* taken : {"t4", "a100"}) {
    GpuType type = Sample();
    type.name = taken;
    const absl::Status status = TryAdd(type);
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << taken;
    EXPECT_THAT(Message(status), HasSubstr("taken by"));
  }
  GpuType type = Sample();
  type.aliases = {"NVIDIA Tesla T4"};
  EXPECT_THAT(Message(TryAdd(type)), AllOf(HasSubstr("'test-gpu'"), HasSubstr("taken by 't4'")));
}

TEST(Extend, RefusesDuplicatesAmongTheAddedAndWithinOneType) {
  EXPECT_EQ(Catalogue::Extend(Catalogue(), {Sample(), Sample()}).status().code(), absl::StatusCode::kAlreadyExists);
  GpuType type = Sample();
  type.aliases = {"Test_GPU"};
  EXPECT_EQ(TryAdd(type).code(), absl::StatusCode::kAlreadyExists);
}

TEST(Extend, RefusesAnAliasThatIsOnlyABrand) {
  GpuType type = Sample();
  type.aliases = {"NVIDIA "};
  EXPECT_EQ(TryAdd(type).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Extend, BoundsTextsAliasesAndProfiles) {
  GpuType type = Sample();
  type.spec_source = std::string(kMaxGpuTextBytes + 1, 'x');
  EXPECT_THAT(Message(TryAdd(type)), AllOf(HasSubstr("spec_source"), HasSubstr("found 513")));
  type = Sample();
  type.aliases.assign(kMaxGpuAliases + 1, "x");
  EXPECT_THAT(Message(TryAdd(type)), AllOf(HasSubstr("aliases"), HasSubstr("found 33")));
  type = Sample();
  type.mig.assign(kMaxMigProfiles + 1, type.mig[0]);
  EXPECT_THAT(Message(TryAdd(type)), AllOf(HasSubstr("mig"), HasSubstr("found 33")));
}

TEST(Extend, BoundsTheNumberOfTypes) {
  std::vector<GpuType> types(Catalogue::kMaxTypes + 1);
  EXPECT_EQ(Catalogue::Extend(Catalogue(), std::move(types)).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(GpuFields, NameEveryNumberOnce) {
  for (size_t i = 0; i < GpuFields().size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(GpuFields()[i].key, GpuFields()[j].key);
    for (size_t j = 0; j < i; ++j) EXPECT_NE(GpuFields()[i].member, GpuFields()[j].member);
  }
}

}  // namespace
}  // namespace horus
