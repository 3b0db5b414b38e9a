// SPDX-License-Identifier: Apache-2.0
// The roofline: limits worked out by hand, and what must hold on every GPU type of the catalogue.
#include "predict/roofline.h"

#include <gtest/gtest.h>

#include "device/catalogue.h"
#include "features/graph_builder.h"

namespace horus {
namespace {

GpuType Plain() {
  GpuType gpu;
  gpu.name = "test";
  gpu.sm_count = 100;
  gpu.fp32_gflops = 10'000;
  gpu.fp16_gflops = 100'000;
  gpu.mem_mib = 16'384;
  gpu.mem_bandwidth_mb_s = 1'000'000;
  return gpu;
}

StepCost Perceptron(int64_t batch, int64_t width, int layers, const RunSpec& run = {}) {
  GraphBuilder b;
  BuildPerceptron(b, batch, width, layers);
  return CostOfStep(b.shaped(), run);
}

TEST(Roofline, LargeProductIsBoundByCompute) {
  const StepCost cost = Perceptron(8192, 8192, 1);
  const OpTime time = RooflineOps(cost, {}, Plain())[0];
  EXPECT_EQ(time.limit, Limit::kCompute);
  // 2 x 8192^3 FLOP at 90 % of 10 TFLOP/s, and a little for the last wave and for filling the pipelines.
  const double full_rate_us = 2.0 * 8192 * 8192 * 8192 / (0.9 * 10e12) * 1e6;
  EXPECT_GT(time.forward_us, full_rate_us);
  EXPECT_LT(time.forward_us, 1.03 * full_rate_us);
  EXPECT_EQ(time.parallelism, 1);
}

TEST(Roofline, LargeActivationIsBoundByBandwidth) {
  const StepCost cost = Perceptron(65536, 1024, 1);
  const OpTime time = RooflineOps(cost, {}, Plain())[1];
  EXPECT_EQ(time.limit, Limit::kBandwidth);
  EXPECT_NEAR(time.forward_us, 2.0 * 4 * 65536 * 1024 / (0.85 * 1e12) * 1e6, 1);
}

TEST(Roofline, SmallKernelsAreBoundByLaunchAndTheHostSetsThePace) {
  const StepCost cost = Perceptron(1, 16, 50);
  const RooflineTerms terms = RooflineOf(cost, {}, Plain());
  EXPECT_GT(terms.launch_share, 0.5);
  EXPECT_EQ(terms.step_time_us, terms.host_time_us);
  EXPECT_LT(terms.gpu_util_pct, 50);
}

TEST(Roofline, BusyGpuIsFullyUtilised) {
  const RooflineTerms terms = RooflineOf(Perceptron(8192, 4096, 10), {}, Plain());
  EXPECT_EQ(terms.step_time_us, terms.device_time_us);  // no host link is stated, so no copy is charged
  EXPECT_DOUBLE_EQ(terms.gpu_util_pct, 100);
  EXPECT_NEAR(terms.compute_share + terms.bandwidth_share + terms.launch_share, 1, 1e-9);
}

TEST(Roofline, CopyOfTheBatchLowersUtilisation) {
  GpuType gpu = Plain();
  const StepCost cost = Perceptron(8192, 4096, 2);
  const double without = RooflineOf(cost, {}, gpu).gpu_util_pct;
  gpu.pcie_mb_s = 16'000;
  EXPECT_LT(RooflineOf(cost, {}, gpu).gpu_util_pct, without);
}

TEST(Roofline, HalfPrecisionFallsBackWhereTheGpuHasNone) {
  GpuType gpu = Plain();
  EXPECT_EQ(MatrixPeakGflops(gpu, Precision::kFp32), 10'000);
  EXPECT_EQ(MatrixPeakGflops(gpu, Precision::kTf32), 10'000);
  EXPECT_EQ(MatrixPeakGflops(gpu, Precision::kAmpFp16), 100'000);
  EXPECT_EQ(MatrixPeakGflops(gpu, Precision::kBf16), 10'000);
}

TEST(Roofline, FasterDeviceIsNeverSlower) {
  GpuType fast = Plain();
  fast.fp32_gflops *= 2;
  fast.mem_bandwidth_mb_s *= 2;
  for (const int64_t batch : {1, 64, 4096}) {
    const StepCost cost = Perceptron(batch, 1024, 8);
    EXPECT_LE(RooflineOf(cost, {}, fast).step_time_us, RooflineOf(cost, {}, Plain()).step_time_us);
  }
}

TEST(Roofline, TimesAreFiniteAndUtilisationInRangeOnEveryCataloguedGpu) {
  const StepCost cost = Perceptron(256, 1024, 8);
  for (const GpuType& gpu : Catalogue::Default()->types()) {
    for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kAmpBf16, Precision::kFp16}) {
      const RooflineTerms terms = RooflineOf(cost, {.precision = precision}, gpu);
      EXPECT_GT(terms.step_time_us, 0) << gpu.name;
      EXPECT_GT(terms.gpu_util_pct, 0) << gpu.name;
      EXPECT_LE(terms.gpu_util_pct, 100) << gpu.name;
      EXPECT_GE(terms.mem_bw_util_pct, 0) << gpu.name;
      EXPECT_LE(terms.mem_bw_util_pct, 100) << gpu.name;
    }
  }
}

TEST(Roofline, EmptyStepTakesNoTime) {
  const RooflineTerms terms = RooflineOf({}, {}, GpuType{});
  EXPECT_EQ(terms.step_time_us, 0);
  EXPECT_EQ(terms.gpu_util_pct, 0);
}

}  // namespace
}  // namespace horus
