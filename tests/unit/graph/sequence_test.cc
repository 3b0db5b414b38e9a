// SPDX-License-Identifier: Apache-2.0
// Rules of sequences: they are held as their tensors stacked, so that what exporters write for repeat_interleave is
// known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/bind_model.h"

namespace horus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Dims of y after `nodes`, which read x [4, 6].
std::vector<int64_t> DimsOfY(const std::vector<w::Bytes>& nodes, const std::vector<w::Bytes>& constants = {}) {
  const auto graph = Bind(w::Model({.nodes = nodes,
                                    .initialisers = constants,
                                    .inputs = {w::Value("x", w::kFloat, {4, 6})},
                                    .outputs = {w::UntypedValue("y")}}));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? graph->tensors[graph->outputs[0].value()].dims : std::vector<int64_t>{};
}

const w::Bytes kSplit = w::Node("SplitToSequence", {"x", "parts"}, {"s"}, {w::IntAttribute("axis", 1)});
const w::Bytes kFirst = w::Node("SequenceAt", {"s", "zero"}, {"y"});
const w::Bytes kZero = w::Int64Tensor("zero", {}, {0});

TEST(Sequence, SplitGivesEqualParts) {
  EXPECT_THAT(DimsOfY({kSplit, kFirst}, {w::Int64Tensor("parts", {}, {2}), kZero}), ElementsAre(4, 2));
  EXPECT_THAT(DimsOfY({kSplit, kFirst}, {w::Int64Tensor("parts", {2}, {3, 3}), kZero}), ElementsAre(4, 3));
  EXPECT_THAT(DimsOfY({w::Node("SplitToSequence", {"x"}, {"s"}, {w::IntAttribute("keepdims", 0)}), kFirst}, {kZero}),
              ElementsAre(6));
}

TEST(Sequence, UnequalPartsAreOfUnknownSize) {
  EXPECT_THAT(DimsOfY({kSplit, kFirst}, {w::Int64Tensor("parts", {}, {4}), kZero}), ElementsAre(4, kUnknownDim));
  EXPECT_THAT(DimsOfY({kSplit, kFirst}, {w::Int64Tensor("parts", {2}, {2, 4}), kZero}), ElementsAre(4, kUnknownDim));
}

TEST(Sequence, RefusesPartsThatDoNotAddUp) {
  w::GraphParts parts =
      OneNode(w::Node("SplitToSequence", {"x", "parts"}, {"y"}), {4, 6}, {w::Int64Tensor("parts", {2}, {3, 3})});
  EXPECT_THAT(ErrorOf(w::Model(parts)), HasSubstr("split [3,3] does not add up to axis 0 of [4,6]"));
  parts.initialisers = {w::Int64Tensor("parts", {}, {0})};
  EXPECT_THAT(ErrorOf(w::Model(parts)), HasSubstr("split is 0, expected at least 1"));
}

TEST(Sequence, ConcatJoinsOrStacks) {
  const w::Bytes make = w::Node("SequenceConstruct", {"x", "x", "x"}, {"s"});
  EXPECT_THAT(DimsOfY({make, w::Node("ConcatFromSequence", {"s"}, {"y"}, {w::IntAttribute("axis", 1)})}),
              ElementsAre(4, 18));
  EXPECT_THAT(DimsOfY({make, w::Node("ConcatFromSequence", {"s"}, {"y"},
                                     {w::IntAttribute("axis", 2), w::IntAttribute("new_axis", 1)})}),
              ElementsAre(4, 6, 3));
  EXPECT_THAT(DimsOfY({make, w::Node("SequenceErase", {"s"}, {"t"}),
                       w::Node("ConcatFromSequence", {"t"}, {"y"}, {w::IntAttribute("axis", 0)})}),
              ElementsAre(8, 6));
}

TEST(Sequence, ElementsOfASplitConstantAreFolded) {
  const std::vector<w::Bytes> nodes = {
      w::Node("SplitToSequence", {"table", "one"}, {"s"}, {w::IntAttribute("axis", 1)}),
      w::Node("SequenceAt", {"s", "one"}, {"column"}), w::Node("Squeeze", {"column", "axis"}, {"shape"}),
      w::Node("Expand", {"scalar", "shape"}, {"y"})};
  EXPECT_THAT(DimsOfY(nodes, {w::Int64Tensor("table", {2, 2}, {1, 2, 3, 4}), w::Int64Tensor("one", {}, {1}),
                              w::Int64Tensor("axis", {1}, {1}), w::FloatTensor("scalar", {}, {1})}),
              ElementsAre(2, 4));
}

// What PyTorch's exporter writes for x.repeat_interleave(repeats, 1): each column, expanded and joined.
w::GraphParts RepeatInterleave(const std::vector<int64_t>& repeats) {
  const w::Bytes body = w::Graph(
      {.nodes = {w::Node("SequenceAt", {"columns", "i"}, {"column"}), w::Node("SequenceAt", {"counts", "i"}, {"count"}),
                 w::Node("Concat", {"rows", "count"}, {"shape"}, {w::IntAttribute("axis", 0)}),
                 w::Node("Expand", {"column", "shape"}, {"wide"}), w::Node("SequenceInsert", {"v", "wide"}, {"v_out"}),
                 w::Node("Identity", {"cond"}, {"cond_out"})},
       .inputs = {w::Value("i", w::kInt64, {}), w::Value("cond", w::kBool, {}), w::UntypedValue("v")},
       .outputs = {w::UntypedValue("cond_out"), w::UntypedValue("v_out")},
       .name = "body"});
  return {
      .nodes = {w::Node("SplitToSequence", {"x", "ones"}, {"columns"}, {w::IntAttribute("axis", 1)}),
                w::Node("SplitToSequence", {"repeats", "ones"}, {"counts"}), w::Node("SequenceEmpty", {}, {"empty"}),
                w::Node("Loop", {"trips", "true", "empty"}, {"all"}, {w::GraphAttribute("body", body)}),
                w::Node("ConcatFromSequence", {"all"}, {"y"}, {w::IntAttribute("axis", 1)})},
      .initialisers = {w::Int64Tensor("ones", {3}, {1, 1, 1}), w::Int64Tensor("repeats", {3}, repeats),
                       w::Int64Tensor("trips", {}, {3}), w::Int64Tensor("rows", {1}, {4}),
                       w::Tensor("true", {}, w::kBool, w::Ints(5, {1}))},
      .inputs = {w::Value("x", w::kFloat, {4, 3})},
      .outputs = {w::UntypedValue("y")}};
}

TEST(Sequence, ALoopThatInsertsGrowsTheSequenceByEachStep) {
  const auto graph = Bind(w::Model(RepeatInterleave({2, 2, 2})));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->tensors[graph->outputs[0].value()].dims, ElementsAre(4, 6));
  EXPECT_EQ(graph->coverage.ops, graph->coverage.ops_with_known_shapes);
  EXPECT_THAT(graph->coverage.unsupported, IsEmpty());
  // The loop starts from a constant, the empty sequence, but its body reads x.
  EXPECT_EQ(Named(*graph, "all").role, TensorRole::kActivation);
  EXPECT_EQ(Named(*graph, "y").role, TensorRole::kActivation);
}

TEST(Sequence, StepsThatDifferLeaveTheirSizeUnknown) {
  const auto graph = Bind(w::Model(RepeatInterleave({2, 1, 2})));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->tensors[graph->outputs[0].value()].dims, ElementsAre(4, kUnknownDim));
}

// The body gives a sequence of its own each time: five tensors at the end, however many steps there were.
TEST(Sequence, ALoopThatReplacesTheSequenceDoesNotGrowIt) {
  const w::Bytes body =
      w::Graph({.nodes = {w::Node("Identity", {"cond"}, {"cond_out"}),
                          w::Node("SequenceConstruct", {"x", "x", "x", "x", "x"}, {"v_out"})},
                .inputs = {w::Value("i", w::kInt64, {}), w::Value("cond", w::kBool, {}), w::UntypedValue("v")},
                .outputs = {w::UntypedValue("cond_out"), w::UntypedValue("v_out")},
                .name = "body"});
  EXPECT_THAT(DimsOfY({w::Node("SequenceEmpty", {}, {"empty"}),
                       w::Node("Loop", {"trips", "true", "empty"}, {"all"}, {w::GraphAttribute("body", body)}),
                       w::Node("ConcatFromSequence", {"all"}, {"y"}, {w::IntAttribute("axis", 0)})},
                      {w::Int64Tensor("trips", {}, {3}), w::Tensor("true", {}, w::kBool, w::Ints(5, {1}))}),
              ElementsAre(20, 6));
}

}  // namespace
}  // namespace horus
