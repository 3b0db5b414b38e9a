// SPDX-License-Identifier: Apache-2.0
// Checks that the built-in data sheets agree with what is independently known of the chips.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/str_format.h"
#include "device/catalogue.h"
#include "device/gpu_fields.h"

namespace horus {
namespace {

// Per SM and clock, from the architecture white papers: fp32 units, and dense tensor operations on fp16.
struct SmRates {
  int64_t fp32_cores;
  int64_t tensor_fp16_flops;  // 0: no tensor cores
  int64_t fp64_divisor;       // fp32 rate / fp64 rate
};

const std::map<int64_t, SmRates>& RatesByCapability() {
  static const std::map<int64_t, SmRates> rates = {
      {37, {192, 0, 3}},      {52, {128, 0, 32}},   {60, {64, 0, 2}},      {61, {128, 0, 32}},
      {70, {64, 1024, 2}},    {75, {64, 1024, 32}}, {80, {64, 2048, 2}},   {86, {128, 1024, 64}},
      {89, {128, 1024, 64}},  {90, {128, 4096, 2}}, {100, {128, 8192, 2}}, {103, {128, 8192, 60}},
      {120, {128, 1024, 64}},
  };
  return rates;
}

// GFLOP/s of `flops` operations per SM and clock.
double Peak(const GpuType& type, double flops) {
  return static_cast<double>(type.sm_count * type.boost_clock_mhz) * flops / 1000.0;
}

class DataSheet : public testing::Test {
 protected:
  std::shared_ptr<const Catalogue> catalogue_ = Catalogue::Default();
};

TEST_F(DataSheet, EveryTypeIsValid) {
  for (const GpuType& type : catalogue_->types()) {
    const absl::Status status = ValidateGpuType(type);
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_F(DataSheet, EveryGroupOfNumbersHasASource) {
  for (const GpuType& type : catalogue_->types()) {
    EXPECT_FALSE(type.display_name.empty()) << type.name;
    EXPECT_FALSE(type.architecture.empty()) << type.name;
    EXPECT_FALSE(type.spec_source.empty()) << type.name;
    EXPECT_FALSE(type.chip_source.empty()) << type.name;
    EXPECT_EQ(type.mig.empty(), type.mig_source.empty()) << type.name;
    EXPECT_TRUE(type.context_source.starts_with("estimate") || type.context_source.starts_with("measured"))
        << type.name << ": " << type.context_source;
  }
}

TEST_F(DataSheet, Fp32IsTwoOperationsPerCoreAndBoostClock) {
  for (const GpuType& type : catalogue_->types()) {
    ASSERT_TRUE(RatesByCapability().contains(type.compute_capability)) << type.name;
    const double peak =
        Peak(type, 2.0 * static_cast<double>(RatesByCapability().at(type.compute_capability).fp32_cores));
    EXPECT_NEAR(static_cast<double>(type.fp32_gflops), peak, 0.03 * peak) << type.name;
  }
}

TEST_F(DataSheet, Fp64IsTheArchitecturesFractionOfFp32) {
  for (const GpuType& type : catalogue_->types()) {
    if (type.name.starts_with("h20-") || type.name == "h20" || type.name.starts_with("h800"))
      continue;  // cut by export rules
    const double expected = static_cast<double>(type.fp32_gflops) /
                            static_cast<double>(RatesByCapability().at(type.compute_capability).fp64_divisor);
    EXPECT_NEAR(static_cast<double>(type.fp64_gflops), expected, 0.035 * expected) << type.name;
  }
}

// Up to Ada the tensor peak is at the boost clock, whole or (fp32 sums on GeForce, A10G, L40) half.
// From Hopper on it is published at a lower clock, so only the upper bound holds.
TEST_F(DataSheet, Fp16IsWhatTheTensorCoresCanDo) {
  for (const GpuType& type : catalogue_->types()) {
    const int64_t flops = RatesByCapability().at(type.compute_capability).tensor_fp16_flops;
    const auto fp16 = static_cast<double>(type.fp16_gflops);
    if (flops == 0) {
      const double packing = type.compute_capability == 60 ? 2.0 : 1.0;
      EXPECT_NEAR(fp16, packing * static_cast<double>(type.fp32_gflops), 0.02 * fp16) << type.name;
      continue;
    }
    const double peak = Peak(type, static_cast<double>(flops));
    EXPECT_LE(fp16, 1.02 * peak) << type.name;
    if (type.compute_capability >= 90 && type.compute_capability < 120) continue;
    const double whole = std::abs(fp16 / peak - 1.0);
    const double half = std::abs(2.0 * fp16 / peak - 1.0);
    EXPECT_LT(std::min(whole, half), 0.08) << type.name << ": " << fp16 << " of " << peak;
  }
}

TEST_F(DataSheet, PrecisionsFollowTheArchitecture) {
  for (const GpuType& type : catalogue_->types()) {
    const bool ampere = type.compute_capability >= 80;
    const bool fp8 = type.compute_capability >= 89;
    EXPECT_EQ(type.tf32_gflops > 0, ampere) << type.name;
    EXPECT_EQ(type.bf16_gflops > 0, ampere) << type.name;
    EXPECT_EQ(type.fp8_gflops > 0, fp8) << type.name;
    if (ampere) {
      // Tensor rates double as the width halves; data sheets round.
      const auto fp16 = static_cast<double>(type.fp16_gflops);
      EXPECT_EQ(type.bf16_gflops, type.fp16_gflops) << type.name;
      EXPECT_NEAR(static_cast<double>(type.tf32_gflops), fp16 / 2, 0.015 * fp16) << type.name;
      // Blackwell Ultra has few units for int8.
      EXPECT_GE(static_cast<double>(type.int8_gops), type.compute_capability == 103 ? 0.06 * fp16 : 1.97 * fp16)
          << type.name;
    }
    if (fp8) {
      const auto rate = static_cast<double>(type.fp8_gflops);
      EXPECT_NEAR(rate, 2.0 * static_cast<double>(type.fp16_gflops), 0.03 * rate) << type.name;
    }
  }
}

TEST_F(DataSheet, MemoryIsWhatTheDriverShowsAsDelivered) {
  const std::pair<const char*, int64_t> shown[] = {{"l4", 23'034},        {"l40s", 46'068},      {"t4", 15'360},
                                                   {"a10g", 23'028},      {"a100-80gb", 81'920}, {"h100-sxm", 81'559},
                                                   {"rtx-a6000", 49'140}, {"b200", 183'359}};
  for (const auto& [name, mib] : shown) EXPECT_EQ(catalogue_->at(*catalogue_->Find(name)).mem_mib, mib) << name;
  for (const GpuType& type : catalogue_->types()) EXPECT_THAT(type.spec_source, testing::HasSubstr("nvidia-smi"));
}

TEST_F(DataSheet, BandwidthReadsTheWholeMemoryInAPlausibleTime) {
  for (const GpuType& type : catalogue_->types()) {
    // From 12 ms (RTX 5090: 34 GB at 1.8 TB/s is 19 ms) to 90 ms (A2, A16: 17 GB at 0.2 TB/s).
    const double ms =
        static_cast<double>(type.mem_mib) * 1.048576 / static_cast<double>(type.mem_bandwidth_mb_s) * 1000.0;
    EXPECT_GT(ms, 12.0) << type.name;
    EXPECT_LT(ms, 90.0) << type.name;
  }
}

TEST_F(DataSheet, LinksAreSlowerThanMemoryAndPcieIsAKnownGeneration) {
  for (const GpuType& type : catalogue_->types()) {
    EXPECT_LT(type.nvlink_mb_s, type.mem_bandwidth_mb_s) << type.name;
    EXPECT_THAT(type.pcie_mb_s, testing::AnyOf(15'754, 31'508, 63'015, 225'000, 450'000)) << type.name;
  }
}

TEST_F(DataSheet, MigExistsExactlyWhereTheChipHasIt) {
  for (const GpuType& type : catalogue_->types()) {
    const bool has = type.compute_capability == 80 || type.compute_capability == 90 ||
                     type.compute_capability / 10 == 10 || type.name.starts_with("rtx-pro-");
    EXPECT_EQ(!type.mig.empty(), has) << type.name;
  }
}

TEST_F(DataSheet, MigInstancesFitTheSlicesOfTheChip) {
  for (const GpuType& type : catalogue_->types()) {
    if (type.mig.empty()) continue;
    const MigProfile& whole = type.mig.back();
    EXPECT_EQ(whole.max_instances, 1) << type.name;
    for (const MigProfile& profile : type.mig) {
      const std::string where = type.name + " " + profile.name;
      EXPECT_EQ(profile.max_instances,
                std::min(whole.compute_slices / profile.compute_slices, whole.memory_slices / profile.memory_slices))
          << where;
      EXPECT_LE(profile.mem_mib * profile.max_instances, whole.mem_mib) << where;
      EXPECT_TRUE(profile.name.starts_with(std::to_string(profile.compute_slices) + "g.")) << where;
      // A memory slice is an equal share less what the instance reserves.
      const double share =
          static_cast<double>(type.mem_mib * profile.memory_slices) / static_cast<double>(whole.memory_slices);
      EXPECT_GT(static_cast<double>(profile.mem_mib), 0.89 * share) << where;
      EXPECT_LE(static_cast<double>(profile.mem_mib), share) << where;
    }
  }
}

TEST_F(DataSheet, MigProfilesAreSortedByComputeThenMemory) {
  for (const GpuType& type : catalogue_->types()) {
    for (size_t i = 1; i < type.mig.size(); ++i) {
      const MigProfile& a = type.mig[i - 1];
      const MigProfile& b = type.mig[i];
      EXPECT_LT(std::make_pair(a.compute_slices, a.memory_slices), std::make_pair(b.compute_slices, b.memory_slices))
          << type.name << " " << b.name;
    }
  }
}

// The page's table is made by the loop below; after a change copy the rows of the failure message.
TEST_F(DataSheet, TheDocumentationListsEveryTypeWithItsNumbers) {
  std::ifstream file(HORUS_SOURCE_DIR "/src/device/README.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const GpuType& type : catalogue_->types()) {
    const std::string row = absl::StrFormat(
        "| `%s` | %d | %.1f | %.1f | %.0f | %.0f | %s |", type.name, type.sm_count,
        static_cast<double>(type.fp32_gflops) / 1000.0, static_cast<double>(type.fp16_gflops) / 1000.0,
        static_cast<double>(type.mem_bandwidth_mb_s) / 1000.0, static_cast<double>(type.mem_mib) / 1024.0,
        type.mig.empty() ? "–" : type.mig.front().name + " … " + type.mig.back().name);
    EXPECT_NE(page.str().find(row), std::string::npos) << row;
  }
}

// Bare contexts that people measured; src/device/README.md names the places.
TEST(ContextRule, IsNearWhatWasMeasured) {
  struct Measured {
    int64_t compute_capability, sm_count;
    double mib;
  };
  const Measured cases[] = {{120, 188, 555}, {89, 34, 107}, {86, 82, 256}};
  for (const Measured& m : cases) {
    EXPECT_NEAR(static_cast<double>(EstimateContextMib(m.compute_capability, m.sm_count)), m.mib, 0.1 * m.mib)
        << m.sm_count << " SMs";
  }
}

TEST(ContextRule, CountsTheThreadsThatTheArchitectureKeepsResident) {
  for (const int64_t capability : {37, 52, 60, 61, 70, 80, 90, 100, 103}) EXPECT_EQ(MaxThreadsPerSm(capability), 2048);
  for (const int64_t capability : {86, 89, 120}) EXPECT_EQ(MaxThreadsPerSm(capability), 1536);
  EXPECT_EQ(MaxThreadsPerSm(75), 1024);
}

TEST(MpsRule, FollowsTheGuide) {
  EXPECT_EQ(MpsClients(30), 0);
  EXPECT_EQ(MpsClients(37), 16);
  EXPECT_EQ(MpsClients(61), 16);
  EXPECT_EQ(MpsClients(70), 48);
  EXPECT_EQ(MpsClients(120), 48);
}

}  // namespace
}  // namespace horus
