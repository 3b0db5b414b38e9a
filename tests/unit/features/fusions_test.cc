// SPDX-License-Identifier: Apache-2.0
// What runs as one kernel costs as one, and keeps what one keeps.
#include <gtest/gtest.h>

#include <algorithm>

#include "features/cost.h"
#include "features/cost_rules.h"
#include "features/graph_builder.h"
#include "features/memory.h"

namespace horus {
namespace {

constexpr int64_t kHeads = 8, kRows = 128, kDepth = 64;

// Queries, keys and values are projections of the input, so that all three have gradients.
struct Attention {
  GraphBuilder b;
  TensorId scores, out;

  explicit Attention(bool scales_scores, bool embeds = false) {
    const GraphBuilder::Dims split = {4, kHeads, kRows, kDepth}, square = {4, kHeads, kRows, kRows};
    const TensorId w = b.Parameter({kDepth, kDepth});
    const TensorId x =
        embeds ? b.Make("Gather", {b.Parameter({99, kDepth}), b.Input({4, kHeads, kRows}, DType::kInt64)}, split)
               : b.Input(split);
    const TensorId q = b.Make("MatMul", {x, w}, split), v = b.Make("MatMul", {x, w}, split);
    const TensorId k = b.Make("MatMul", {x, w}, split);
    const TensorId turned = b.Make("Transpose", {k}, {4, kHeads, kDepth, kRows},
                                   {{.name = "perm", .value = std::vector<int64_t>{0, 1, 3, 2}}});
    scores = b.Make("MatMul", {q, turned}, square);
    const TensorId scaled = scales_scores ? b.Make("Mul", {scores, b.Buffer({})}, square) : scores;
    const TensorId masked = b.Make("Add", {scaled, b.Input({1, 1, kRows, kRows})}, square);
    const TensorId weights = b.Make("Softmax", {masked}, square);
    out = b.Make("MatMul", {weights, v}, split);
    b.Output(embeds ? b.Make("LayerNormalization", {out, b.Parameter({kDepth})}, split) : out);
  }
  StepCost Cost(Framework framework) { return CostOfStep(b.shaped(), {.framework = framework}); }
  StepMemory Memory(Framework framework) {
    const RunSpec run = {.framework = framework};
    return MemoryOfStep(b.shaped(), CostOfStep(b.shaped(), run), run);
  }
};

TEST(Fusions, AttentionIsOneKernelSincePyTorch2) {
  Attention attention(false);
  const StepCost fused = attention.Cost(Framework::kPyTorch), apart = attention.Cost(Framework::kPyTorch1);
  EXPECT_EQ(fused.ops.back().kind, KernelKind::kFusedAttention);
  EXPECT_EQ(apart.ops.back().kind, KernelKind::kAttention);
  // The same products; three operators and the traffic of the scores are gone.
  EXPECT_DOUBLE_EQ(fused.totals.forward.flops, apart.totals.forward.flops);
  EXPECT_EQ(fused.totals.forward.kernels, apart.totals.forward.kernels - 3);
  EXPECT_LT(fused.totals.forward.bytes, apart.totals.forward.bytes / 2);
}

TEST(Fusions, AttentionOfWindowsInFiveDimensionsIsOneKernel) {
  GraphBuilder b;
  const GraphBuilder::Dims split = {2, 3, 4, 49, 32}, square = {2, 3, 4, 49, 49};
  const TensorId q = b.Input(split), k = b.Input({2, 3, 4, 32, 49}), v = b.Input(split);
  const TensorId masked = b.Make("Add", {b.Make("MatMul", {q, k}, square), b.Parameter({4, 49, 49})}, square);
  b.Output(b.Make("MatMul", {b.Make("Softmax", {masked}, square), v}, split));
  EXPECT_EQ(CostOfStep(b.shaped(), {}).ops.back().kind, KernelKind::kFusedAttention);
}

TEST(Fusions, FusedAttentionKeepsNoScores) {
  Attention attention(false);
  const StepMemory fused = attention.Memory(Framework::kPyTorch), apart = attention.Memory(Framework::kPyTorch1);
  // In place of the softmax of the scores: the result, and a statistic a row.
  const int64_t row_bytes = 4 * 4 * kHeads * kRows;
  EXPECT_EQ(fused.saved_total, apart.saved_total - row_bytes * kRows + row_bytes * kDepth + row_bytes);
  EXPECT_EQ(fused.gradients, apart.gradients);
}

// An export for inference does not show the dropout that language models have in training, which keeps scores.
TEST(Fusions, TheBoundHoldsScoresThatDropoutWouldKeep) {
  Attention attention(false, true);
  for (const Framework framework : {Framework::kPyTorch, Framework::kPyTorch1}) {
    EXPECT_EQ(attention.Memory(framework).unfused, (4 + 4 + 1) * 4 * kHeads * kRows * kRows);
  }
  StepMemory memory = attention.Memory(Framework::kPyTorch);
  const int64_t with = memory.Upper();
  memory.unfused = 0;
  EXPECT_GT(with, memory.Upper());
  attention.b.Output(attention.b.Make("Dropout", {attention.out}, {4, kHeads, kRows, kDepth}));
  EXPECT_EQ(attention.Memory(Framework::kPyTorch).unfused, 0);
  EXPECT_EQ(Attention(false).Memory(Framework::kPyTorch).unfused, 0);  // of images
}

TEST(Fusions, AttentionThatScalesItsScoresRunsAsItIsWritten) {
  EXPECT_EQ(Attention(true).Cost(Framework::kPyTorch).ops.back().kind, KernelKind::kAttention);
}

TEST(Fusions, ScoresThatTheGraphReturnsAreComputed) {
  Attention attention(false);
  attention.b.Output(attention.scores);
  EXPECT_EQ(attention.Cost(Framework::kPyTorch).ops.back().kind, KernelKind::kAttention);
}

// Projections of tokens, their heads turned to the front and the result's back, as exporters write it.
CostTotals TurnedAttention(const RunSpec& run, bool packed, bool scales_scores = false) {
  constexpr int64_t kBatch = 2, kTokens = 16, kWide = kHeads * kDepth;
  GraphBuilder b;
  const auto form = [&b](TensorId from, GraphBuilder::Dims dims) {
    const TensorId to = b.Make("Reshape", {from}, std::move(dims));
    b.tensor(to).alias_of = from;
    b.last_op().plumbing = true;
    return to;
  };
  const auto turn = [&b](TensorId from, GraphBuilder::Dims dims, std::vector<int64_t> order) {
    return b.Make("Transpose", {from}, std::move(dims), {{.name = "perm", .value = std::move(order)}});
  };
  const GraphBuilder::Dims tokens = {kBatch, kTokens, kWide}, heads = {kBatch, kHeads, kTokens, kDepth};
  const TensorId x = b.Input(tokens);
  std::vector<TensorId> qkv;
  if (packed) {
    const TensorId all = b.Make("MatMul", {x, b.Parameter({kWide, 3 * kWide})}, {kBatch, kTokens, 3 * kWide});
    const TensorId turned =
        turn(form(all, {kBatch, kTokens, 3, kHeads, kDepth}), {3, kBatch, kHeads, kTokens, kDepth}, {2, 0, 3, 1, 4});
    for (int i = 0; i < 3; ++i) qkv.push_back(b.Make("Gather", {turned, b.Buffer({}, DType::kInt64)}, heads));
  } else {
    for (int i = 0; i < 3; ++i) {
      const TensorId one = b.Make("MatMul", {x, b.Parameter({kWide, kWide})}, tokens);
      qkv.push_back(turn(form(one, {kBatch, kTokens, kHeads, kDepth}), heads, {0, 2, 1, 3}));
    }
  }
  const GraphBuilder::Dims square = {kBatch, kHeads, kTokens, kTokens};
  TensorId scores = b.Make("MatMul", {qkv[0], turn(qkv[1], {kBatch, kHeads, kDepth, kTokens}, {0, 1, 3, 2})}, square);
  if (scales_scores) scores = b.Make("Mul", {scores, b.Buffer({})}, square);
  const TensorId out = b.Make("MatMul", {b.Make("Softmax", {scores}, square), qkv[2]}, heads);
  b.Output(form(turn(out, {kBatch, kTokens, kHeads, kDepth}, {0, 2, 1, 3}), tokens));
  return CostOfStep(b.shaped(), run).by_class[static_cast<size_t>(OpClass::kDataMovement)];
}

TEST(Views, FusedAttentionTakesAndGivesTurnedHeads) {
  const CostTotals apart = TurnedAttention({}, false), packed = TurnedAttention({}, true);
  EXPECT_EQ(apart.forward.kernels + apart.backward.kernels, 0);
  EXPECT_EQ(packed.forward.kernels, 0);
  EXPECT_EQ(packed.backward.kernels, 3 * 2 + 2 + 1);  // zeros and a copy for each part; their sum, turned back
}

TEST(Views, ProductsOfManyMatricesCopyTurnedHeadsAndReshapeTheResult) {
  const RunSpec inference = {.mode = RunMode::kInference};
  EXPECT_EQ(TurnedAttention(inference, false).forward.kernels, 0);
  EXPECT_EQ(TurnedAttention(inference, false, true).forward.kernels,
            3 + 1);  // the keys are turned twice and copied once
  RunSpec tensorflow = inference;
  tensorflow.framework = Framework::kTensorFlow;
  EXPECT_EQ(TurnedAttention(tensorflow, false).forward.kernels, 5) << "there a Transpose is a kernel";
}

TEST(Views, AReshapeOfATransposeCopiesWhereItJoinsAxes) {
  const auto kernels = [](GraphBuilder::Dims to, std::vector<int64_t> order, GraphBuilder::Dims turned) {
    GraphBuilder b;
    const TensorId x = b.Input({4, 8, 6});
    const TensorId y = b.Make("Transpose", {x}, std::move(turned), {{.name = "perm", .value = std::move(order)}});
    const TensorId z = b.Make("Reshape", {y}, std::move(to));
    b.tensor(z).alias_of = y;
    b.last_op().plumbing = true;
    b.Output(z);
    return CostOfStep(b.shaped(), {.mode = RunMode::kInference}).totals.forward.kernels;
  };
  EXPECT_EQ(kernels({24, 8}, {0, 2, 1}, {4, 6, 8}), 1);
  EXPECT_EQ(kernels({4, 6, 2, 4}, {0, 2, 1}, {4, 6, 8}), 0);
}

TEST(Views, ImagesThatLieChannelsLastAreTurnedForNothing) {
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
    GraphBuilder b;
    const TensorId x = b.Make("Transpose", {b.Input({2, 8, 4, 4})}, {2, 4, 4, 8},
                              {{.name = "perm", .value = std::vector<int64_t>{0, 2, 3, 1}}});
    b.Output(b.Make("LayerNormalization", {x, b.Parameter({8})}, {2, 4, 4, 8}));
    const RunSpec run = {.mode = RunMode::kInference, .layout = layout};
    EXPECT_EQ(CostOfStep(b.shaped(), run).ops[0].forward.kernels, layout == Layout::kNchw ? 1 : 0);
  }
}

TEST(Fusions, DecomposedLayerNormalisationCostsAsTheOperator) {
  const GraphBuilder::Dims dims = {32, 256};
  const auto build = [&dims](bool decomposed) {
    GraphBuilder b;
    const TensorId x = b.Make("MatMul", {b.Input(dims), b.Parameter({256, 256})}, dims);
    const TensorId weight = b.Parameter({256}), bias = b.Parameter({256});
    if (!decomposed) {
      b.Output(b.Make("LayerNormalization", {x, weight, bias}, dims));
    } else {
      const TensorId mean = b.Make("ReduceMean", {x}, {32, 1}), d = b.Make("Sub", {x, mean}, dims);
      const TensorId square = b.Make("Pow", {d, b.Buffer({})}, dims);
      const TensorId variance = b.Make("ReduceMean", {square}, {32, 1});
      const TensorId sum = b.Make("Add", {variance, b.Buffer({})}, {32, 1});
      const TensorId quotient = b.Make("Div", {d, b.Make("Sqrt", {sum}, {32, 1})}, dims);
      b.Output(b.Make("Add", {b.Make("Mul", {quotient, weight}, dims), bias}, dims));
    }
    const RunSpec run;
    const StepCost cost = CostOfStep(b.shaped(), run);
    return std::pair(cost.totals, MemoryOfStep(b.shaped(), cost, run));
  };
  const auto [written, written_memory] = build(false);
  const auto [decomposed, decomposed_memory] = build(true);
  EXPECT_EQ(decomposed.forward.kernels, written.forward.kernels);
  EXPECT_EQ(decomposed.backward.bytes, written.backward.bytes);
  EXPECT_EQ(decomposed_memory.gradients, written_memory.gradients);
  EXPECT_EQ(decomposed_memory.saved_total, written_memory.saved_total);
}

TEST(Chains, ACompilerNeitherWritesNorReadsWhatLiesBetweenPointwiseOperators) {
  const GraphBuilder::Dims dims = {1024, 1024};
  GraphBuilder b;
  const TensorId x = b.Make("MatMul", {b.Input(dims), b.Parameter(dims)}, dims);
  const TensorId y = b.Make("Tanh", {b.Make("Abs", {b.Make("Exp", {x}, dims)}, dims)}, dims);
  b.Output(b.Make("MatMul", {y, b.Parameter(dims)}, dims));
  const RunSpec eager = {.mode = RunMode::kInference};
  RunSpec compiled = eager;
  compiled.framework = Framework::kPyTorchCompiled;
  const CostTotals before = CostOfStep(b.shaped(), eager).totals, after = CostOfStep(b.shaped(), compiled).totals;
  const double tensor = 4.0 * 1024 * 1024;
  EXPECT_EQ(after.forward.bytes, before.forward.bytes - 4 * tensor);  // two of them, written and read
  EXPECT_NEAR(after.forward.kernels, before.forward.kernels - 2, 0.01);
  EXPECT_EQ(after.forward.flops, before.forward.flops);
}

TEST(Chains, NothingIsSavedWhereOneOperatorStandsBetweenProducts) {
  const GraphBuilder::Dims dims = {64, 64};
  GraphBuilder b;
  const TensorId x = b.Make("MatMul", {b.Input(dims), b.Parameter(dims)}, dims);
  b.Output(b.Make("MatMul", {b.Make("Tanh", {x}, dims), b.Parameter(dims)}, dims));
  const RunSpec eager = {.mode = RunMode::kInference};
  RunSpec compiled = eager;
  compiled.framework = Framework::kPyTorchCompiled;
  EXPECT_EQ(CostOfStep(b.shaped(), compiled).StepBytes(), CostOfStep(b.shaped(), eager).StepBytes());
}

}  // namespace
}  // namespace horus
