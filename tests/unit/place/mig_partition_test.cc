// SPDX-License-Identifier: Apache-2.0
// Rules of cutting a GPU for its jobs.
#include "place/policies/mig_partition.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "fixtures.h"
#include "interference/laws.h"

namespace horus {
namespace {

using testing_place::Needs;
using testing_place::Type;

const GpuType& A100() { return Catalogue::Default()->at(Type("a100-40gb")); }

absl::StatusOr<MigPartition> Choose(const std::vector<Demand>& jobs) {
  std::vector<const Demand*> pointers;
  for (const Demand& job : jobs) pointers.push_back(&job);
  return ChooseMigPartition(A100(), pointers);
}

std::vector<int64_t> SlicesOf(const MigPartition& partition) {
  std::vector<int64_t> slices;
  for (const int16_t profile : partition.profiles)
    slices.push_back(A100().mig[static_cast<size_t>(profile)].compute_slices);
  return slices;
}

TEST(MigPartition, GivesTheLargeInstanceToWhoeverGainsByIt) {
  const auto partition = Choose({Needs(10, 2000), Needs(95, 2000)});
  ASSERT_TRUE(partition.ok()) << partition.status();
  EXPECT_THAT(SlicesOf(*partition), testing::ElementsAre(1, 4));
  EXPECT_NEAR(partition->speed, 1 + 4.0 / 7 / 0.95, 1e-6);
}

TEST(MigPartition, TakesNoMoreSlicesThanHelp) {
  EXPECT_THAT(SlicesOf(*Choose({Needs(10, 2000)})), testing::ElementsAre(1));
  EXPECT_THAT(SlicesOf(*Choose({Needs(95, 2000)})), testing::ElementsAre(7));
}

TEST(MigPartition, CountsMemoryOfInstancesAndOfTheCard) {
  EXPECT_THAT(SlicesOf(*Choose({Needs(5, 15'000)})), testing::ElementsAre(3));  // the smallest with 15,500 MiB
  // 3 + 3 slices of compute take all 8 of memory: nothing is left for a third.
  EXPECT_TRUE(Choose({Needs(5, 15'000), Needs(5, 15'000)}).ok());
  EXPECT_EQ(Choose({Needs(5, 15'000), Needs(5, 15'000), Needs(5, 100)}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// What the choice rests on: it counts slices, not instances.
TEST(MigPartition, SlicesTellHowManyInstancesOfAProfileACardTakes) {
  for (const GpuType& type : Catalogue::Default()->types()) {
    int64_t compute = 0, memory = 0;
    for (const MigProfile& profile : type.mig) {
      compute = std::max(compute, profile.compute_slices);
      memory = std::max(memory, profile.memory_slices);
    }
    for (const MigProfile& profile : type.mig) {
      EXPECT_EQ(std::min(compute / profile.compute_slices, memory / profile.memory_slices), profile.max_instances)
          << type.name << " " << profile.name;
    }
  }
}

TEST(MigPartition, RefusesWhatCannotBeCut) {
  EXPECT_EQ(ChooseMigPartition(Catalogue::Default()->at(Type("v100-sxm2-16gb")), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Choose(std::vector<Demand>(8, Needs(5, 100))).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Choose(std::vector<Demand>(7, Needs(5, 100)))->profiles.size(), 7u);
  EXPECT_EQ(Choose({})->speed, 0);
}

TEST(MigPartition, IsTheBestOfAll) {
  for (uint32_t round = 0; round < 40; ++round) {
    std::vector<Demand> jobs;
    for (uint32_t i = 0; i < 3; ++i) {
      Demand job = Needs(static_cast<float>(5 + (round * 37 + i * 61) % 95), 500 + (round * 977 + i * 4001) % 12'000);
      job.mem_bw_util_pct = {static_cast<float>((round * 13 + i * 29) % 60), 60};
      jobs.push_back(job);
    }
    double best = -1;
    const size_t n = A100().mig.size();
    for (size_t code = 0; code < n * n * n; ++code) {
      int64_t compute = 0, memory = 0;
      double speed = 0;
      size_t rest = code;
      for (const Demand& job : jobs) {
        const MigProfile& profile = A100().mig[rest % n];
        rest /= n;
        compute += profile.compute_slices;
        memory += profile.memory_slices;
        if (job.mem_mib.upper > profile.mem_mib - 500) memory += 100;
        speed += SliceSpeed(static_cast<double>(job.gpu_util_pct.estimate),
                            static_cast<double>(job.mem_bw_util_pct.estimate),
                            static_cast<double>(profile.compute_slices) / 7);
      }
      if (compute <= 7 && memory <= 8) best = std::max(best, speed);
    }
    const auto partition = Choose(jobs);
    ASSERT_EQ(partition.ok(), best >= 0) << round;
    if (partition.ok()) {
      EXPECT_NEAR(partition->speed, best, 1e-9) << round;
    }
  }
}

}  // namespace
}  // namespace horus
