// SPDX-License-Identifier: Apache-2.0
// The law of slices, MPS and caps: what holds whatever its constants.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "interference/laws.h"

namespace horus {
namespace {

std::vector<double> Slowdowns(const std::vector<double>& works, const std::vector<double>& caps = {}) {
  std::vector<double> out(works.size());
  MpsSlowdowns(works, caps, out);
  return out;
}

Demand Inference(double device_us, int64_t step_us, float parallelism = 1) {
  Demand job{.step_time_us = {step_us, step_us}};
  job.traits[static_cast<size_t>(Trait::kLogDeviceUs)] = static_cast<float>(std::log10(device_us));
  job.traits[static_cast<size_t>(Trait::kLogDeviceShare)] = -0.1f;
  job.traits[static_cast<size_t>(Trait::kMeanParallelism)] = parallelism;
  return job;
}

TEST(Mps, JobsThatNeverUseTheDeviceCostNothing) {
  EXPECT_EQ(Slowdowns({0, 0, 0}), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(Slowdowns({0.7, 0, 0})[0], 1);
}

TEST(Mps, CopiesThatFillTheDeviceTakeAsManyTimesAsLong) {
  for (const size_t n : {1, 2, 3, 7}) {
    for (const double slowdown : Slowdowns(std::vector<double>(n, 1)))
      EXPECT_NEAR(slowdown, static_cast<double>(n), 1e-9);
  }
}

TEST(Mps, OneTenantMoreNeverHelpsAndTheOrderDoesNotShow) {
  const std::vector<double> works = {0.1, 0.35, 0.8, 0.6};
  const std::vector<double> caps = {1, 0.5, 0.3, 1};
  for (const double more : {0.0, 0.01, 0.4, 1.0}) {
    std::vector<double> with = works, with_caps = caps;
    with.insert(with.begin(), more);
    with_caps.insert(with_caps.begin(), 0.7);
    const auto before = Slowdowns(works, caps), after = Slowdowns(with, with_caps);
    for (size_t i = 0; i < works.size(); ++i) EXPECT_GE(after[i + 1], before[i]);
    const auto turned = Slowdowns({with.rbegin(), with.rend()}, {with_caps.rbegin(), with_caps.rend()});
    EXPECT_EQ(std::vector<double>(turned.rbegin(), turned.rend()), after);
  }
}

TEST(Mps, ACapOfAllIsNone) { EXPECT_EQ(Slowdowns({0.2, 0.9}, {1, 1}), Slowdowns({0.2, 0.9})); }

TEST(Mps, ASmallerCapSparesTheOtherAndSlowsItsOwn) {
  std::vector<double> before = Slowdowns({0.6, 0.9});
  for (const double cap : {0.9, 0.6, 0.3, 0.1}) {
    const std::vector<double> capped = Slowdowns({0.6, 0.9}, {1, cap});
    EXPECT_LT(capped[0], before[0]);
    EXPECT_GE(capped[1], before[1]);
    before = capped;
  }
  EXPECT_NEAR(Slowdowns({1}, {0.25})[0], 4, 1e-9);  // alone, a full one takes as long as on such a slice
}

TEST(WorkShare, IsTheDevicesPartOfTheStep) {
  EXPECT_GT(WorkShare(Inference(1000, 4000)), WorkShare(Inference(1000, 8000)));        // a slower host
  EXPECT_GT(WorkShare(Inference(1000, 4000)), WorkShare(Inference(1000, 4000, 0.5f)));  // kernels that leave SMs idle
  EXPECT_EQ(WorkShare(Inference(1e6, 4000)), kMostWork);
}

TEST(WorkShare, OfTrainingIsBetweenWhatTimeAndTrafficSay) {
  Demand job = Inference(1000, 4000);
  job.gpu_util_pct = {100, 100};
  const double by_time = WorkShare(job);
  job.gradient_mib = 10;
  EXPECT_NEAR(WorkShare(job), (by_time + 1) / 2, 1e-9);
  ForgetDeviceShare(job);  // now the utilisation was measured
  EXPECT_EQ(WorkShare(job), 1);
}

TEST(WorkShare, OfWhatWasStatedIsByBusyTimeAndTraffic) {
  EXPECT_NEAR(WorkShare({.gpu_util_pct = {60, 80}}), 0.6, 1e-6);  // the traffic is unknown
  EXPECT_NEAR(WorkShare({.gpu_util_pct = {50, 80}, .mem_bw_util_pct = {20, 20}}), 0.4 * 0.5 + 1.45 * 0.2, 1e-6);
  EXPECT_EQ(WorkShare({.gpu_util_pct = {100, 100}, .mem_bw_util_pct = {90, 90}}), 1);
}

}  // namespace
}  // namespace horus
