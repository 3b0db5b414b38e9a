// SPDX-License-Identifier: Apache-2.0
// GPU files: types of the user's own, from scratch or from a known one.
#include "io/gpu_file.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace horus {
namespace {

using ::testing::HasSubstr;

constexpr char kWhole[] = R"(
  - name: my-gpu
    compute_capability: 80
    sm_count: 10
    boost_clock_mhz: 1500
    fp32_gflops: 4000
    fp16_gflops: 8000
    mem_mib: 24576
    mem_bandwidth_mb_s: 500000
    l2_kib: 4096
    pcie_mb_s: 15754
    tdp_w: 150
    aliases: [mine]
    mig:
      - {name: 1g.6gb, compute_slices: 1, memory_slices: 1, mem_mib: 6000, max_instances: 4}
)";

auto Parse(const std::string& types) {
  return ParseGpuFile("g.yaml", "version: 1\ngpu_types:\n" + types, *Catalogue::Default());
}

std::string ErrorOf(const std::string& types) { return std::string(Parse(types).status().message()); }

TEST(GpuFile, AddsATypeAndKeepsTheBuiltInOnes) {
  const auto catalogue = Parse(kWhole);
  ASSERT_TRUE(catalogue.ok()) << catalogue.status();
  EXPECT_EQ((*catalogue)->size(), Catalogue::Default()->size() + 1);
  const auto id = (*catalogue)->Find("mine");
  ASSERT_TRUE(id.ok());
  const GpuType& type = (*catalogue)->at(*id);
  EXPECT_EQ(type.name, "my-gpu");
  EXPECT_EQ(type.mem_mib, 24576);
  EXPECT_GT(type.context_mib, 0);  // by rule
  ASSERT_EQ(type.mig.size(), 1u);
  EXPECT_EQ(type.mig[0].max_instances, 4);
}

TEST(GpuFile, BasedOnCopiesAndOverrides) {
  const auto catalogue = Parse("  - {name: a100-ours, based_on: a100-40gb, context_mib: 333}\n");
  ASSERT_TRUE(catalogue.ok()) << catalogue.status();
  const GpuType& ours = (*catalogue)->at(*(*catalogue)->Find("a100-ours"));
  const GpuType& theirs = (*catalogue)->at(*(*catalogue)->Find("a100-40gb"));
  EXPECT_EQ(ours.context_mib, 333);
  EXPECT_THAT(ours.context_source, HasSubstr("measured"));
  EXPECT_EQ(ours.fp32_gflops, theirs.fp32_gflops);
  EXPECT_EQ(ours.mig, theirs.mig);
}

TEST(GpuFile, RefusesTakenNamesAtTheirLine) {
  EXPECT_THAT(ErrorOf("  - {name: ok-gpu, based_on: t4}\n  - {name: a100-40gb, based_on: t4}\n"),
              HasSubstr("g.yaml:4: gpu_types[1]: "));
  EXPECT_THAT(ErrorOf("  - {name: x1, based_on: t4}\n  - {name: x1, based_on: t4}\n"),
              HasSubstr("g.yaml:4: gpu_types[1]: "));
}

TEST(GpuFile, WrongValuesNameKeyExpectedAndFound) {
  EXPECT_EQ(ErrorOf("  - {name: x, based_on: t4, sm_count: 0}\n"),
            "g.yaml:3: gpu_types[0].sm_count: expected an integer from 1 to 4096, found '0'");
  EXPECT_EQ(ErrorOf("  - {name: x, based_on: t4, sm_counts: 3}\n"),
            "g.yaml:3: gpu_types[0]: expected a known key (did you mean 'sm_count'?), found 'sm_counts'");
  EXPECT_THAT(ErrorOf("  - {name: x}\n"),
              HasSubstr("g.yaml:3: gpu_types[0]: GPU type 'x': compute_capability: expected 10 to 999"));
  EXPECT_THAT(ErrorOf("  - {name: X y, based_on: t4}\n"),
              HasSubstr("g.yaml:3: gpu_types[0]: GPU type: name: expected"));
  EXPECT_THAT(ErrorOf("  - {name: x, based_on: t4, mig: [{name: 1g.1gb}]}\n"),
              HasSubstr("gpu_types[0].mig[0]: expected key 'compute_slices' (a number), found none"));
}

}  // namespace
}  // namespace horus
