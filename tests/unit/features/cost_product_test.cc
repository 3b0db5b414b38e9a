// SPDX-License-Identifier: Apache-2.0
// Costs of attention and Einsum against numbers worked out by hand.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "features/cost.h"
#include "graph_builder.h"

namespace horus {
namespace {

StepCost Cost(GraphBuilder& b) { return CostOfStep(b.shaped(), {}); }

TEST(Cost, ProductOfTwoActivationsIsAttention) {
  GraphBuilder b;
  const TensorId q = b.Input({2, 4, 6, 8}), k = b.Input({2, 4, 8, 6});
  b.Output(b.Make("MatMul", {q, k}, {2, 4, 6, 6}));
  const StepCost step = Cost(b);
  EXPECT_EQ(step.ops[0].forward.flops, 2.0 * 2 * 4 * 6 * 6 * 8);
  EXPECT_EQ(step.ops[0].op_class, OpClass::kAttention);
  EXPECT_EQ(step.horus_linears, 1);
}

TEST(Cost, FusedAttentionCostsItsTwoProducts) {
  GraphBuilder b;
  const TensorId q = b.Input({2, 6, 32}), k = b.Input({2, 10, 32}), v = b.Input({2, 10, 32});
  b.Output(b.Make("com.microsoft::MultiHeadAttention", {q, k, v}, {2, 6, 32}, {IntAttribute("num_heads", 4)}));
  EXPECT_EQ(Cost(b).ops[0].forward.flops, 4.0 * 2 * 6 * 10 * 32);
}

TEST(Cost, EinsumMultipliesAllLabels) {
  GraphBuilder b;
  const TensorId q = b.Input({2, 4, 6, 8}), k = b.Input({2, 4, 10, 8});
  b.Output(b.Make("Einsum", {q, k}, {2, 4, 6, 10}, {TextAttribute("equation", "bhqd, bhkd -> bhqk")}));
  EXPECT_EQ(Cost(b).ops[0].forward.flops, 2.0 * 2 * 4 * 6 * 10 * 8);
}

// FLOPs of two operands and of the equation that contracts them.
double EinsumFlops(const char* equation, std::vector<std::vector<int64_t>> operands, std::vector<int64_t> result) {
  GraphBuilder b;
  std::vector<TensorId> inputs;
  for (std::vector<int64_t>& dims : operands) inputs.push_back(b.Input(std::move(dims)));
  b.Output(b.Make("Einsum", inputs, std::move(result), {TextAttribute("equation", equation)}));
  const StepCost step = Cost(b);
  EXPECT_TRUE(step.ops[0].known);
  return step.ops[0].forward.flops;
}

TEST(Cost, EinsumWithoutArrowKeepsTheLabelsThatOccurOnce) {
  EXPECT_EQ(EinsumFlops("ij,jk", {{3, 5}, {5, 7}}, {3, 7}), EinsumFlops("ij,jk->ik", {{3, 5}, {5, 7}}, {3, 7}));
}

TEST(Cost, EinsumContractsFromLeftToRight) {
  // (ij, jk -> ik), then (ik, kl -> il).
  EXPECT_EQ(EinsumFlops("ij,jk,kl->il", {{3, 5}, {5, 7}, {7, 11}}, {3, 11}), 2.0 * 3 * 5 * 7 + 2.0 * 3 * 7 * 11);
}

TEST(Cost, EinsumRunsAsManyBlocksAsTheMatMulItStandsFor) {
  GraphBuilder e, m;
  e.Output(e.Make("Einsum", {e.Input({8, 256, 64}), e.Input({8, 64, 512})}, {8, 256, 512},
                  {TextAttribute("equation", "bik,bkj->bij")}));
  m.Output(m.Make("MatMul", {m.Input({8, 256, 64}), m.Input({8, 64, 512})}, {8, 256, 512}));
  EXPECT_EQ(Cost(e).ops[0].forward.blocks, Cost(m).ops[0].forward.blocks);
}

TEST(Cost, PackedAttentionCostsWhatTheSplitOneDoes) {
  const auto flops = [](std::vector<std::vector<int64_t>> operands, std::vector<Attribute> attributes) {
    GraphBuilder b;
    std::vector<TensorId> inputs;
    for (std::vector<int64_t>& dims : operands) inputs.push_back(b.Input(std::move(dims)));
    b.Output(b.Make("com.microsoft::GroupQueryAttention", inputs, {2, 6, 32}, std::move(attributes)));
    const StepCost step = Cost(b);
    EXPECT_TRUE(step.ops[0].known);
    return step.ops[0].forward.flops;
  };
  const std::vector<Attribute> heads = {IntAttribute("num_heads", 4), IntAttribute("kv_num_heads", 2)};
  EXPECT_EQ(flops({{2, 6, 64}}, heads), flops({{2, 6, 32}, {2, 6, 16}, {2, 6, 16}}, heads));
}

TEST(Cost, AttentionReadsTheKeysOfEarlierSteps) {
  GraphBuilder b;
  const TensorId q = b.Input({2, 1, 32}), k = b.Input({2, 1, 32}), v = b.Input({2, 1, 32}),
                 past = b.Input({2, 4, 9, 8});
  b.Output(b.Make("com.microsoft::GroupQueryAttention", {q, k, v, past}, {2, 1, 32}, {IntAttribute("num_heads", 4)}));
  EXPECT_EQ(Cost(b).ops[0].forward.flops, 4.0 * 2 * 1 * (1 + 9) * 32);
}

TEST(Cost, EinsumWithMoreLabelsThanDimensionsIsUnknownNotWrong) {
  GraphBuilder b;
  const TensorId q = b.Input({2, 4}), k = b.Input({4, 2});
  b.Output(b.Make("Einsum", {q, k}, {2, 2}, {TextAttribute("equation", "abcdef,gh->a")}));
  const StepCost step = Cost(b);
  EXPECT_FALSE(step.ops[0].known);
  EXPECT_EQ(step.coverage.ops_known, 0);
}

}  // namespace
}  // namespace horus
