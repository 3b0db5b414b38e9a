// SPDX-License-Identifier: Apache-2.0
// Rules of operators' times: what physics forbids, what grows with what, and which bundles are refused.
#include "predict/operators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "device/catalogue.h"
#include "trees/bundle.h"

namespace horus {
namespace {

const GpuType& Gpu(const char* name) {
  static const auto catalogue = Catalogue::Default();
  return catalogue->at(*catalogue->Find(name));
}

Operator Product(double m, double n, double k, NumberType type = NumberType::kBf16) {
  return {.kind = OperatorKind::kProduct, .type = type, .m = m, .n = n, .k = k};
}
Operator Decode(double batch, double keys) {
  return {.kind = OperatorKind::kDecode, .batch = batch, .keys = keys, .heads = 32, .key_heads = 8, .head_size = 128};
}

Operator Linear(OperatorKind kind, double batch, double queries) {
  return {.kind = kind,
          .batch = batch,
          .queries = queries,
          .keys = queries,
          .heads = 32,
          .key_heads = 16,
          .head_size = 128,
          .key_size = 128};
}

std::vector<Operator> OneOfEach() {
  return {Product(64, 4096, 4096),
          {.kind = OperatorKind::kExperts, .m = 64, .n = 768, .k = 2048, .experts = 128, .top_k = 8},
          {.kind = OperatorKind::kPrefill,
           .batch = 1,
           .queries = 512,
           .keys = 512,
           .heads = 32,
           .key_heads = 8,
           .head_size = 128},
          Decode(64, 4096),
          {.kind = OperatorKind::kEncoder,
           .batch = 8,
           .queries = 196,
           .keys = 196,
           .heads = 12,
           .key_heads = 12,
           .head_size = 64},
          {.kind = OperatorKind::kLatentPrefill, .batch = 1, .queries = 512, .keys = 512, .heads = 16, .key_heads = 16},
          {.kind = OperatorKind::kLatentDecode, .batch = 64, .keys = 4096, .heads = 16, .key_heads = 1},
          {.kind = OperatorKind::kAllReduce, .bytes = 1 << 20, .ranks = 4},
          Linear(OperatorKind::kLinearPrefill, 1, 512),
          Linear(OperatorKind::kLinearDecode, 64, 1),
          {.kind = OperatorKind::kConvolution, .batch = 1, .queries = 512, .head_size = 8192}};
}

TEST(Operators, EveryKindHasAnAnswerOnEveryGpuType) {
  const OperatorModel& model = OperatorModel::Default();
  for (const Operator& op : OneOfEach()) {
    for (const GpuType& gpu : Catalogue::Default()->types()) {
      for (const ServingEngine engine : {ServingEngine::kVllm, ServingEngine::kTensorRtLlm, ServingEngine::kSglang}) {
        Operator asked = op;
        asked.engine = engine;
        const OperatorTime time = model.TimeOf(asked, gpu);
        EXPECT_TRUE(std::isfinite(time.us) && time.us > 0) << Name(op.kind) << " on " << gpu.name;
        EXPECT_GE(time.upper_us, time.us);
      }
    }
  }
}

// Nothing is faster than its FLOPs over the peak and its bytes over the bandwidth.
TEST(Operators, TheLawKeepsTheFloors) {
  for (const char* name : {"a100-80gb", "h100-sxm", "l40s", "b200", "rtx-4090"}) {
    const GpuType& gpu = Gpu(name);
    for (const double m : {1.0, 16.0, 256.0, 8192.0}) {
      const double us = LawUs(Product(m, 8192, 8192), gpu, TypicalConstants(OperatorKind::kProduct));
      EXPECT_GE(us, 2 * m * 8192 * 8192 / (static_cast<double>(gpu.bf16_gflops) * 1e3)) << name << ", m " << m;
      EXPECT_GE(us, 2 * 8192.0 * 8192 / static_cast<double>(gpu.mem_bandwidth_mb_s)) << name << ", m " << m;
    }
  }
}

// Twice the rows take at most twice the time, and never less by more than what kernels differ.
TEST(Operators, WorkCostsTime) {
  const OperatorModel& model = OperatorModel::Default();
  for (const char* name : {"a100-80gb", "h100-sxm", "l40s", "b200"}) {
    double before = 0;
    for (double m = 1024; m <= 16384; m *= 2) {
      const double us = model.TimeOf(Product(m, 8192, 8192), Gpu(name)).us;
      EXPECT_GT(us, before) << name << ", m " << m;
      before = us;
    }
    EXPECT_GT(model.TimeOf(Decode(64, 16384), Gpu(name)).us, 2 * model.TimeOf(Decode(64, 4096), Gpu(name)).us) << name;
  }
}

TEST(Operators, ALargeCacheIsReadAtTheMemorysSpeedOnTypesThatTaughtNothing) {
  const auto us = [](const char* gpu) { return OperatorModel::Default().TimeOf(Decode(64, 32768), Gpu(gpu)).us; };
  const auto bandwidth = [](const char* gpu) { return static_cast<double>(Gpu(gpu).mem_bandwidth_mb_s); };
  EXPECT_NEAR(us("h100-sxm") / us("h200"), bandwidth("h200") / bandwidth("h100-sxm"), 0.1);
  const double bytes = 64.0 * 32768 * 8 * 128 * 2 * 2;
  EXPECT_LT(us("rtx-4090"), 1.25 * bytes / bandwidth("rtx-4090"));
}

TEST(Operators, FewerBitsReadFewerBytes) {
  // One row: the weights are all that counts.
  for (const char* name : {"h100-sxm", "b200"}) {
    const double half = OperatorModel::Default().TimeOf(Product(1, 16384, 16384), Gpu(name)).us;
    EXPECT_LT(OperatorModel::Default().TimeOf(Product(1, 16384, 16384, NumberType::kFp8), Gpu(name)).us, 0.75 * half)
        << name;
  }
}

TEST(Operators, AWindowBoundsWhatIsRead) {
  Operator all = Decode(64, 32768), windowed = all, within = all;
  windowed.window = 1024;
  within.window = 65536;
  const LawConstants constants = TypicalConstants(OperatorKind::kDecode);
  EXPECT_LT(LawUs(windowed, Gpu("h100-sxm"), constants), 0.25 * LawUs(all, Gpu("h100-sxm"), constants));
  EXPECT_EQ(LawUs(within, Gpu("h100-sxm"), constants), LawUs(all, Gpu("h100-sxm"), constants));
}

TEST(Operators, WhatIsRepeatedIsReadFromL2) {
  Operator repeated = Product(1, 2048, 2048);
  repeated.repeated = true;
  const LawConstants constants = TypicalConstants(OperatorKind::kProduct);
  EXPECT_LT(LawUs(repeated, Gpu("l40s"), constants), LawUs(Product(1, 2048, 2048), Gpu("l40s"), constants));
}

// What a gate, a delta rule and older tokens add: weights, FLOPs and bytes of their own.
TEST(Operators, PartsThatAKindLeavesOutCostNothing) {
  const auto us = [](const Operator& op) { return LawUs(op, Gpu("h100-sxm"), TypicalConstants(op.kind)); };
  Operator experts{.kind = OperatorKind::kExperts, .m = 4096, .n = 8192, .k = 8192, .experts = 8, .top_k = 2};
  const double gated = us(experts);
  experts.gated = false;
  EXPECT_NEAR(us(experts) / gated, 2.0 / 3, 0.05);  // two products of three
  Operator scan = Linear(OperatorKind::kLinearPrefill, 8, 4096), conv = Linear(OperatorKind::kConvolution, 512, 2);
  const double delta = us(scan), four = us(conv);
  scan.delta = false, conv.convolved = 2;
  EXPECT_LT(us(scan), delta);
  EXPECT_LT(us(conv), four);
}

TEST(Operators, BundlesThatCannotBeAreRefused) {
  Bundle whole;
  for (size_t kind = 0; kind < kOperatorKinds; ++kind) {
    TrainedOperators trained{.kind = static_cast<OperatorKind>(kind)};
    trained.constants["bf16.vllm"] = TypicalConstants(trained.kind);
    whole.targets.push_back(ToBundle(trained));
  }
  ASSERT_TRUE(OperatorModel::FromBundle(whole).ok());

  Bundle missing = whole;
  missing.targets.pop_back();
  EXPECT_EQ(OperatorModel::FromBundle(missing).status().code(), absl::StatusCode::kDataLoss);
  Bundle negative = whole;
  negative.targets[0].calibration[1].values[0] = -1;
  EXPECT_EQ(OperatorModel::FromBundle(negative).status().code(), absl::StatusCode::kDataLoss);
  Bundle unknown = whole;
  unknown.targets[0].calibration[1].name = "law.bf16.nobody";
  EXPECT_NE(std::string(OperatorModel::FromBundle(unknown).status().message()).find("law.bf16.nobody"),
            std::string::npos);
}

// A GPU type that taught nothing has wider bounds.
TEST(Operators, TheUnknownIsSaid) {
  for (const Operator& op : OneOfEach()) {
    const OperatorTime seen = OperatorModel::Default().TimeOf(op, Gpu("h100-sxm"));
    const OperatorTime unseen = OperatorModel::Default().TimeOf(op, Gpu("h200"));
    EXPECT_GE(unseen.upper_us / unseen.us, seen.upper_us / seen.us) << Name(op.kind);
  }
  const OperatorTime wide = OperatorModel::Default().TimeOf(Product(64, 4096, 4096), Gpu("h200"));
  EXPECT_GT(wide.upper_us / wide.us, 1.1);
}

// A800 has the chip and memory of A100, and links of its own.
TEST(Operators, AnotherBoardOfAMeasuredChipIsMeasured) {
  for (const auto& [taught, alike] : {std::pair("a100-80gb", "a800-80gb"), std::pair("h100-sxm", "h800")}) {
    for (const Operator& op : OneOfEach()) {
      if (op.kind == OperatorKind::kAllReduce) continue;
      const OperatorTime one = OperatorModel::Default().TimeOf(op, Gpu(taught));
      const OperatorTime other = OperatorModel::Default().TimeOf(op, Gpu(alike));
      EXPECT_DOUBLE_EQ(one.us, other.us) << alike << " " << Name(op.kind);
      EXPECT_DOUBLE_EQ(one.upper_us, other.upper_us) << alike << " " << Name(op.kind);
    }
  }
}

// The built-in bundle is of this schema.
TEST(Operators, TheBuiltInModelIsTrained) {
  const LawConstants trained = OperatorModel::Default().ConstantsOf(Product(1, 1, 1));
  EXPECT_NE(trained, TypicalConstants(OperatorKind::kProduct));
}

}  // namespace
}  // namespace horus
