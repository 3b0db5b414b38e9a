// SPDX-License-Identifier: Apache-2.0
// Memory of a step: parts worked out by hand, rules that must hold, and the caching allocator's arithmetic.
#include "features/memory.h"

#include <gtest/gtest.h>

#include <limits>

#include "features/allocator.h"
#include "graph_builder.h"

namespace horus {
namespace {

constexpr int64_t kMib = 1048576;

StepMemory Memory(GraphBuilder& b, const RunSpec& run, int64_t context = 0) {
  return MemoryOfStep(b.shaped(), CostOfStep(b.shaped(), run), run, context);
}
RunSpec With(Optimizer optimizer, Precision precision = Precision::kFp32) {
  return {.precision = precision, .optimizer = optimizer};
}
StepMemory Perceptron(int64_t batch, const RunSpec& run, int64_t width = 512, int layers = 4) {
  GraphBuilder b;
  BuildPerceptron(b, batch, width, layers);
  return Memory(b, run);
}

TEST(CachingAllocator, RoundsTo512BytesAndReservesSegments) {
  CachingAllocator a;
  static_cast<void>(a.Take(1));
  EXPECT_EQ(a.in_use(), 512);
  EXPECT_EQ(a.reserved(), 2 * kMib);
  static_cast<void>(a.Take(3.0 * kMib));
  EXPECT_EQ(a.reserved(), 22 * kMib);
  static_cast<void>(a.Take(14.0 * kMib));  // fits into what is left of the 20 MiB
  EXPECT_EQ(a.reserved(), 22 * kMib);
  static_cast<void>(a.Take(10.0 * kMib + 1));  // a segment of its own
  EXPECT_EQ(a.reserved(), 34 * kMib);
}

TEST(CachingAllocator, ReusesFreedBlocksAndMergesNeighbours) {
  CachingAllocator a;
  const auto x = a.Take(4.0 * kMib), y = a.Take(4.0 * kMib), z = a.Take(4.0 * kMib);
  a.Give(x);
  a.Give(z);
  a.Give(y);
  EXPECT_EQ(a.in_use(), 0);
  static_cast<void>(a.Take(9.0 * kMib));
  static_cast<void>(a.Take(9.0 * kMib));
  EXPECT_EQ(a.reserved(), 20 * kMib);
}

TEST(CachingAllocator, GivingTwiceOrNothingChangesNothing) {
  CachingAllocator a;
  const auto x = a.Take(1000);
  a.Give(x);
  a.Give(x);
  a.Give(a.Take(0));
  a.Give(a.Take(-5));
  EXPECT_EQ(a.in_use(), 0);
  EXPECT_EQ(a.reserved(), 2 * kMib);
}

TEST(CachingAllocator, AbsurdSizesDoNotOverflow) {
  CachingAllocator a;
  for (int i = 0; i < 100; ++i) static_cast<void>(a.Take(1e30));
  EXPECT_GT(a.reserved(), 0);
}

TEST(Memory, PartsOfAPerceptronAreThoseOfTheFormula) {
  constexpr int64_t kBatch = 256, kWidth = 512, kLayers = 4;
  constexpr int64_t kWeight = kWidth * kWidth * 4, kAct = kBatch * kWidth * 4;
  const StepMemory m = Perceptron(kBatch, With(Optimizer::kMomentum), kWidth, kLayers);
  EXPECT_EQ(m.weights, kLayers * kWeight);
  EXPECT_EQ(m.gradients, kLayers * kWeight);
  EXPECT_EQ(m.optimizer, kLayers * kWeight);
  EXPECT_EQ(m.master_weights, 0);
  EXPECT_EQ(m.inputs, kAct);
  // Each Relu keeps its output, which is also the next product's input.
  EXPECT_EQ(m.saved_total, kLayers * kAct);
}

TEST(Memory, PeakIsTheSumOfThePartsAndTheContextIsAdded) {
  GraphBuilder b;
  BuildPerceptron(b, 64, 256, 2);
  const StepMemory without = Memory(b, {}), with = Memory(b, {}, 300 * kMib);
  EXPECT_EQ(with.Peak(), without.Peak() + 300 * kMib);
  EXPECT_EQ(without.Peak(), without.weights + without.gradients + without.optimizer + without.master_weights +
                                without.inputs + without.activations + without.transient + without.workspace +
                                without.loaded_kernels + without.allocator_slack);
  EXPECT_GT(with.Upper(), with.Peak());
}

TEST(Memory, GrowsWithTheBatch) {
  int64_t last = 0, last_upper = 0;
  for (int64_t batch = 1; batch <= 16384; batch *= 2) {
    const StepMemory m = Perceptron(batch, {});
    EXPECT_GE(m.Peak(), last) << "batch " << batch;
    EXPECT_GE(m.Upper(), last_upper) << "batch " << batch;
    last = m.Peak();
    last_upper = m.Upper();
  }
}

TEST(Memory, OptimisersRankByTheirState) {
  const auto state = [](Optimizer o) { return Perceptron(32, With(o)).optimizer; };
  EXPECT_EQ(state(Optimizer::kSgd), 0);
  EXPECT_LT(state(Optimizer::kAdafactor), state(Optimizer::kAdam8Bit));
  EXPECT_LT(state(Optimizer::kAdam8Bit), state(Optimizer::kMomentum));
  EXPECT_EQ(2 * state(Optimizer::kMomentum), state(Optimizer::kAdam));
  EXPECT_EQ(state(Optimizer::kAdam), state(Optimizer::kAdamW));
  EXPECT_EQ(2 * state(Optimizer::kAdamWBf16), state(Optimizer::kAdamW));
  EXPECT_EQ(Perceptron(32, With(Optimizer::kAdamWBf16, Precision::kBf16)).master_weights, 0);
  EXPECT_LT(Perceptron(32, With(Optimizer::kSgd)).Peak(), Perceptron(32, With(Optimizer::kAdam)).Peak());
}

TEST(Memory, InferenceNeedsLessThanTrainingAndKeepsNothing) {
  const StepMemory training = Perceptron(4096, {}), inference = Perceptron(4096, {.mode = RunMode::kInference});
  EXPECT_LT(inference.Peak(), training.Peak());
  EXPECT_EQ(inference.activations, 0);
  EXPECT_EQ(inference.gradients, 0);
  // At most an operator's input and output live at once, besides the batch.
  EXPECT_LE(inference.transient, 2 * 4096 * 512 * 4);
}

TEST(Memory, InferencePeakDoesNotGrowWithDepth) {
  const RunSpec run{.mode = RunMode::kInference};
  EXPECT_EQ(Perceptron(4096, run, 512, 4).transient, Perceptron(4096, run, 512, 40).transient);
}

TEST(Memory, AutocastKeepsHalfCopiesAndHalvesActivations) {
  const StepMemory full = Perceptron(4096, {}), amp = Perceptron(4096, With(Optimizer::kSgd, Precision::kAmpFp16));
  EXPECT_EQ(amp.weights, full.weights);
  EXPECT_EQ(amp.master_weights, full.weights / 2);
  EXPECT_EQ(amp.saved_total, full.saved_total / 2);
}

TEST(Memory, PureHalfHalvesWeightsAndKeepsFloatMasters) {
  const StepMemory full = Perceptron(64, {}), half = Perceptron(64, With(Optimizer::kSgd, Precision::kBf16));
  EXPECT_EQ(half.weights, full.weights / 2);
  EXPECT_EQ(half.gradients, full.gradients / 2);
  EXPECT_EQ(half.master_weights, full.weights);
}

TEST(Memory, CheckpointingKeepsSegmentsEndsAndOneSegmentForMoreFlops) {
  constexpr int kLayers = 64, kBatch = 4096, kWidth = 256;
  constexpr double kLayerBytes = 4.0 * kBatch * kWidth;
  GraphBuilder b;
  BuildPerceptron(b, kBatch, kWidth, kLayers);
  RunSpec run;
  const StepCost whole = CostOfStep(b.shaped(), run);
  run.checkpoint_segments = 8;
  const StepCost segmented = CostOfStep(b.shaped(), run);
  EXPECT_EQ(segmented.StepFlops(), whole.StepFlops() + segmented.recomputed.flops + segmented.recomputed.flops_other);
  EXPECT_NEAR(segmented.recomputed.flops / whole.totals.forward.flops, 7.0 / 8, 0.02);
  const StepMemory m = MemoryOfStep(b.shaped(), segmented, run);
  // At most the ends of 7 segments, one segment of 8 layers, and what moves at its edges.
  EXPECT_LE(static_cast<double>(m.activations), (7 + 8 + 2) * kLayerBytes);
  const StepMemory all = MemoryOfStep(b.shaped(), whole, {});
  EXPECT_LT(m.Peak() - m.loaded_kernels, (all.Peak() - all.loaded_kernels) / 2);
}

// Wide inside a layer, narrow between layers: models checkpoint whole layers.
TEST(Memory, SegmentsEndWhereLeastIsCarriedOn) {
  constexpr int kLayers = 12;
  constexpr int64_t kRows = 4096, kNarrow = 64, kWide = 1024;
  GraphBuilder b;
  TensorId x = b.Input({kRows, kNarrow});
  for (int i = 0; i < kLayers; ++i) {
    const TensorId wide = b.Make("MatMul", {x, b.Parameter({kNarrow, kWide})}, {kRows, kWide});
    x = b.Make("MatMul", {b.Make("Gelu", {wide}, {kRows, kWide}), b.Parameter({kWide, kNarrow})}, {kRows, kNarrow});
  }
  b.Output(x);
  RunSpec run;
  run.checkpoint_segments = kLayers;
  const StepCost cost = CostOfStep(b.shaped(), run);
  for (size_t i = 1; i < cost.segments.size(); ++i) {
    if (cost.segments[i] == cost.segments[i - 1]) continue;
    EXPECT_EQ(b.shaped().tensors[b.shaped().ops[i].inputs[0].value()].dims.back(), kNarrow);
  }
  EXPECT_EQ(cost.last_segment, kLayers - 1);
  const double one_layer = 4.0 * kRows * (kNarrow + 2 * kWide);
  EXPECT_LE(static_cast<double>(MemoryOfStep(b.shaped(), cost, run).saved_total),
            kLayers * 4.0 * kRows * kNarrow + one_layer);
}

TEST(Memory, AutocastCopiesNoWeightThatIsHalfAlready) {
  GraphBuilder b;
  const TensorId w = b.Parameter({512, 512}, DType::kBfloat16);
  b.Output(b.Make("MatMul", {b.Input({64, 512}), w}, {64, 512}));
  const RunSpec run = {.precision = Precision::kAmpBf16};
  EXPECT_EQ(MemoryOfStep(b.shaped(), CostOfStep(b.shaped(), run), run).master_weights, 0);
}

TEST(Memory, TheLossIsAsWideAsItsLogitsButUnderAutocast) {
  const auto loss = [](Precision precision) {
    GraphBuilder b;
    BuildPerceptron(b, 64, 256, 2);
    return CostOfStep(b.shaped(), {.precision = precision}).loss.saved_bytes;
  };
  EXPECT_EQ(loss(Precision::kFp32), 4 * 64 * 256);
  EXPECT_EQ(loss(Precision::kAmpBf16), 4 * 64 * 256);
  EXPECT_EQ(loss(Precision::kFp16), 2 * 64 * 256);
}

TEST(Memory, OneSegmentIsNoCheckpointing) {
  RunSpec one;
  one.checkpoint_segments = 1;
  EXPECT_EQ(Perceptron(1024, one).Peak(), Perceptron(1024, {}).Peak());
}

// Memory to work it out goes by operators too: so many lists would not fit anywhere.
TEST(Memory, MoreSegmentsThanOperatorsAreThoseOfEachOperator) {
  RunSpec many, countless;
  many.checkpoint_segments = 1'000'000;
  countless.checkpoint_segments = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Perceptron(1024, countless).Peak(), Perceptron(1024, many).Peak());
}

TEST(Memory, ReplicasHoldTheirGradientsTwice) {
  RunSpec run = With(Optimizer::kAdam);
  EXPECT_EQ(Perceptron(64, run).buckets, 0);
  run.data_parallel = 4;
  const StepMemory m = Perceptron(64, run);
  EXPECT_EQ(m.buckets, m.gradients);
}

TEST(Memory, TensorKeptByTwoOperatorsIsCountedOnce) {
  GraphBuilder b;
  const TensorId x = b.Input({1024, 64}), w = b.Parameter({64, 64});
  const TensorId h = b.Make("MatMul", {x, w}, {1024, 64});
  const TensorId s = b.Make("Tanh", {h}, {1024, 64});
  b.Output(b.Make("Mul", {s, h}, {1024, 64}));
  EXPECT_EQ(Memory(b, {}).saved_total, 2 * 1024 * 64 * 4);  // h and s
}

TEST(Memory, FusedActivationKeepsItsInputAlone) {
  GraphBuilder b;
  const TensorId x = b.Input({1024, 64}), w = b.Parameter({64, 64});
  const TensorId h = b.Make("MatMul", {x, w}, {1024, 64});
  const TensorId s = b.Make("Sigmoid", {h}, {1024, 64});
  b.Output(b.Make("Mul", {s, h}, {1024, 64}));
  EXPECT_EQ(Memory(b, {}).saved_total, 1024 * 64 * 4);
}

TEST(Memory, ViewsTakeNoMemory) {
  const auto build = [](bool view) {
    GraphBuilder b;
    const TensorId x = b.Input({1024, 64});
    TensorId y = b.Make("Relu", {x}, {1024, 64});
    if (view) {
      const TensorId z = b.Make("Reshape", {y}, {64, 1024});
      b.last_op().plumbing = true;
      b.tensor(z).alias_of = y;
      y = z;
    }
    b.Output(y);
    return Memory(b, {.mode = RunMode::kInference}).Peak();
  };
  EXPECT_EQ(build(false), build(true));
}

TEST(Memory, AViewOfAViewIsItsBase) {
  GraphBuilder b;
  const TensorId x = b.Input({64, 8}), w = b.Parameter({8, 8}), v = b.Parameter({4, 4});
  const TensorId h = b.Make("MatMul", {x, w}, {64, 8});
  const TensorId part = b.Make("Slice", {h}, {64, 4});
  const TensorId shaped = b.Make("Reshape", {part}, {16, 4, 4});
  b.last_op().plumbing = true;
  b.tensor(shaped).alias_of = part;
  b.Output(b.Make("MatMul", {shaped, v}, {16, 4, 4}));
  const StepMemory m = Memory(b, {});
  EXPECT_EQ(m.gradients, (8 * 8 + 4 * 4) * 4);  // the gradient finds its way through both
  EXPECT_EQ(m.saved_total, 64 * 8 * 4);
}

TEST(Memory, HorusFormulaCountsActivationsTwiceAndParametersOnce) {
  constexpr int64_t kActivations = 2 * 4 * 256 * 512, kParameters = 4 * 512 * 512;
  EXPECT_EQ(Perceptron(256, {}).horus, 4 * (kActivations + kParameters + kActivations));
}

TEST(Memory, HugeShapesSaturateInsteadOfOverflowing) {
  GraphBuilder b;
  BuildPerceptron(b, int64_t{1} << 24, int64_t{1} << 24, 30);
  const StepMemory m = Memory(b, With(Optimizer::kAdam), 500 * kMib);
  EXPECT_GT(m.Peak(), int64_t{1} << 50);
  EXPECT_GE(m.Upper(), m.Peak());
}

}  // namespace
}  // namespace horus
