// SPDX-License-Identifier: Apache-2.0
// Rules of binding: batch, names, roles, errors.
#include "graph/shaped.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/bind_model.h"

namespace horus {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

int64_t Parameters(const ShapedGraph& graph) {
  int64_t count = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.role == TensorRole::kParameter && !tensor.alias_of.valid()) count += tensor.elements();
  }
  return count;
}

w::GraphParts ConvNet(const std::vector<w::Dim>& input = {"batch", 3, 8, 8}) {
  return {.nodes = {w::Node("Conv", {"x", "w", "b"}, {"c"}, {}, "conv1"),
                    w::Node("BatchNormalization", {"c", "scale", "shift", "mean", "var"}, {"n"}),
                    w::Node("Flatten", {"n"}, {"y"})},
          .initialisers = {w::Tensor("w", {4, 3, 3, 3}, w::kFloat), w::Tensor("b", {4}, w::kFloat),
                           w::Tensor("scale", {4}, w::kFloat), w::Tensor("shift", {4}, w::kFloat),
                           w::Tensor("mean", {4}, w::kFloat), w::Tensor("var", {4}, w::kFloat)},
          .inputs = {w::Value("x", w::kFloat, input)},
          .outputs = {w::UntypedValue("y")}};
}

TEST(Shaped, BindsTheBatchByName) {
  const auto graph = Bind(w::Model(ConvNet()), {.batch = 64});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->batch, 64);
  EXPECT_THAT(Named(*graph, "c").dims, ElementsAre(64, 4, 6, 6));
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(64, 144));
  EXPECT_EQ(Named(*graph, "y").bytes(), 64 * 144 * 4);
  EXPECT_EQ(graph->coverage.ops, 3);
  EXPECT_EQ(graph->coverage.ops_with_known_shapes, 3);
}

TEST(Shaped, TakesBatchOneWhereTheFileLeavesItOpen) {
  EXPECT_THAT(Named(Bind(w::Model(ConvNet())).value(), "y").dims, ElementsAre(1, 144));
}

TEST(Shaped, ReplacesAFixedBatchEverywhere) {
  w::GraphParts parts = ConvNet({2, 3, 8, 8});
  parts.nodes[2] = w::Node("Reshape", {"n", "target"}, {"y"});
  for (const std::vector<int64_t>& target : {std::vector<int64_t>{2, 144}, {2, -1}, {-1, 144}, {0, 144}}) {
    parts.initialisers.resize(6);
    parts.initialisers.push_back(w::Int64Tensor("target", {2}, target));
    const auto graph = Bind(w::Model(parts), {.batch = 10});
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(10, 144));
  }
}

// The heads of an attention join the batch, and a -1 takes what is left: it keeps the size that it has in the file.
TEST(Shaped, ScalesTheLeadingEntryBesideAnOpenOne) {
  const auto dims = [](const std::vector<int64_t>& target) {
    const w::GraphParts parts = OneNode(w::Node("Reshape", {"x", "target"}, {"y"}), {2, 8, 16},
                                        {w::Int64Tensor("target", {static_cast<int64_t>(target.size())}, target)});
    const auto graph = Bind(w::Model(parts), {.batch = 6});
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? graph->tensors[graph->outputs[0].value()].dims : std::vector<int64_t>{};
  };
  EXPECT_THAT(dims({8, 2, -1}), ElementsAre(24, 2, 16));
  EXPECT_THAT(dims({2, -1}), ElementsAre(6, 128));
  EXPECT_THAT(dims({-1, 16}), ElementsAre(48, 16));
}

// Sequence first, as nn.MultiheadAttention computes: the batch of the file lies inside, and joins heads or positions.
TEST(Shaped, FollowsABatchInsideThroughFixedShapes) {
  const auto dims = [](const std::vector<w::Dim>& x, const std::vector<std::vector<int64_t>>& targets) {
    w::GraphParts parts = OneNode(w::Node("Transpose", {"x"}, {"r0"}, {w::IntsAttribute("perm", {1, 0, 2})}), x);
    for (size_t i = 0; i < targets.size(); ++i) {
      const std::string n = std::to_string(i), next = std::to_string(i + 1);
      parts.initialisers.push_back(w::Int64Tensor("t" + n, {static_cast<int64_t>(targets[i].size())}, targets[i]));
      parts.nodes.push_back(w::Node("Reshape", {"r" + n, "t" + n}, {"r" + next}));
    }
    parts.outputs = {w::UntypedValue("r" + std::to_string(targets.size()))};
    const auto graph = Bind(w::Model(parts), {.batch = 6});
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? graph->tensors[graph->outputs[0].value()].dims : std::vector<int64_t>{};
  };
  // Heads: [seq, batch, width] -> [seq, batch * heads, size].
  EXPECT_THAT(dims({1, 16, 64}, {{16, 4, 16}}), ElementsAre(16, 24, 16));
  EXPECT_THAT(dims({2, 16, 64}, {{16, 8, 16}}), ElementsAre(16, 24, 16));
  // Positions: [seq, batch, width] -> [seq * batch, width], and back.
  EXPECT_THAT(dims({1, 16, 64}, {{16, 64}}), ElementsAre(96, 64));
  EXPECT_THAT(dims({1, 16, 64}, {{16, 64}, {16, 1, 64}}), ElementsAre(16, 6, 64));
  EXPECT_THAT(dims({2, 16, 64}, {{32, 64}, {16, 2, 64}}), ElementsAre(16, 6, 64));
  EXPECT_THAT(dims({1, 16, 64}, {{16, 4, 16}, {16, 64}}), ElementsAre(96, 64));
  // Queries, keys and values beside each other.
  EXPECT_THAT(dims({2, 16, 192}, {{16, 2, 3, 64}}), ElementsAre(16, 6, 3, 64));
}

// GroupNorm: the groups stay as many, whether the exporter copies the batch or writes it.
TEST(Shaped, KeepsTheGroupsOfANormalisationAtAnotherBatch) {
  for (const std::vector<int64_t>& target : {std::vector<int64_t>{0, 8, -1}, {1, 8, -1}, {1, 8, 64}}) {
    const auto graph =
        Bind(w::Model(OneNode(w::Node("Reshape", {"x", "t"}, {"y"}), {1, 32, 16}, {w::Int64Tensor("t", {3}, target)})),
             {.batch = 2});
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(2, 8, 64));
  }
}

TEST(Shaped, SaysThatABatchBakedIntoConstantsNeedsAnotherExport) {
  const w::Bytes model = w::Model(OneNode(w::Node("Concat", {"x", "t"}, {"y"}, {w::IntAttribute("axis", 1)}), {2, 3},
                                          {w::FloatTensor("t", {4, 1}, {1, 2, 3, 4})}));
  EXPECT_THAT(ErrorOf(model), Not(HasSubstr("open batch")));  // wrong at the batch of the file
  const w::Bytes baked =
      w::Model(OneNode(w::Node("Reshape", {"x", "t"}, {"y"}), {2, 3}, {w::Int64Tensor("t", {2}, {3, 2})}));
  EXPECT_THAT(ErrorOf(baked, {.batch = 5}), AllOf(HasSubstr("batch of 2"), HasSubstr("open batch")));
}

// Constant folding repeats a table of positions for the batch of the file.
TEST(Shaped, TakesTablesOfTheOldBatchForTheNewOne) {
  const auto dims = [](const w::Bytes& node, const std::vector<w::Bytes>& constants) {
    const auto graph = Bind(w::Model(OneNode(node, {2, 3}, constants)), {.batch = 7});
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? graph->tensors[graph->outputs[0].value()].dims : std::vector<int64_t>{};
  };
  const w::Bytes table = w::Int64Tensor("t", {2, 1}, {1, 2});
  EXPECT_THAT(dims(w::Node("Add", {"x", "t"}, {"y"}), {w::FloatTensor("t", {2, 3}, {1, 2, 3, 4, 5, 6})}),
              ElementsAre(7, 3));
  EXPECT_THAT(dims(w::Node("Expand", {"t", "to"}, {"y"}), {table, w::Int64Tensor("to", {2}, {2, 5})}),
              ElementsAre(7, 5));
  EXPECT_THAT(dims(w::Node("Einsum", {"x", "t"}, {"y"}, {w::TextAttribute("equation", "bi,bj->bij")}),
                   {w::FloatTensor("t", {2, 4}, {})}),
              ElementsAre(7, 3, 4));
  EXPECT_THAT(ErrorOf(w::Model(OneNode(w::Node("Add", {"x", "t"}, {"y"}), {2, 3}, {w::FloatTensor("t", {3, 3}, {})})),
                      {.batch = 7}),
              HasSubstr("shapes [7,3] and [3,3] do not broadcast"));
}

TEST(Shaped, BindsNamedDimensionsAndRefusesUnknownOnes) {
  const w::Bytes model = w::Model(OneNode(w::Node("Relu", {"x"}, {"y"}), {"batch", "seq"}));
  EXPECT_THAT(Named(Bind(model, {.batch = 4, .dims = {{"seq", 512}}}).value(), "y").dims, ElementsAre(4, 512));
  EXPECT_THAT(ErrorOf(model, {.dims = {{"seqq", 512}}}), AllOf(HasSubstr("'seqq'"), HasSubstr("seq")));
  EXPECT_THAT(ErrorOf(model, {.dims = {{"depth", 512}}}), HasSubstr("its inputs name 'batch', 'seq'"));
  EXPECT_THAT(ErrorOf(model, {.dims = {{"seq", 0}}}), AllOf(HasSubstr("'seq'"), HasSubstr("at least 1")));
  EXPECT_THAT(ErrorOf(model, {.batch = -1}), HasSubstr("batch is -1"));
  EXPECT_THAT(ErrorOf(model, {.batch = 4, .dims = {{"batch", 5}}}), AllOf(HasSubstr("4"), HasSubstr("5")));
}

TEST(Shaped, CountsWhatStaysUnknown) {
  const auto graph = Bind(w::Model(OneNode(w::Node("Relu", {"x"}, {"y"}), {"batch", "seq"})), {.batch = 4});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_FALSE(Named(*graph, "y").known);
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(4, kUnknownDim));
  EXPECT_EQ(Named(*graph, "y").bytes(), 0);
  EXPECT_EQ(graph->coverage.ops_with_known_shapes, 0);
}

// Tokens that a router picks: all of them at most. Two such sizes that contradict at their most are unknown instead.
TEST(Shaped, TakesSizesThatTheDataDecidesAtTheirMost) {
  w::GraphParts parts = OneNode(w::Node("NonZero", {"x"}, {"n"}), {"batch", 3});
  parts.nodes.push_back(w::Node("Transpose", {"n"}, {"t"}));
  parts.nodes.push_back(w::Node("Cast", {"t"}, {"y"}, {w::IntAttribute("to", w::kFloat)}));
  const auto graph = Bind(w::Model(parts), {.batch = 4});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(12, 2));
  EXPECT_EQ(graph->coverage.sizes_at_most, 1);
  parts.nodes[2] = w::Node("Add", {"t", "five"}, {"y"});
  parts.initialisers = {w::Tensor("five", {5, 2}, w::kInt64)};
  const auto open = Bind(w::Model(parts), {.batch = 4});
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_THAT(Named(*open, "n").dims, ElementsAre(2, kUnknownDim));
  EXPECT_EQ(open->coverage.sizes_at_most, 0);
}

TEST(Shaped, RefusesInputsOfUnknownSizeNamingTheDimensions) {
  const auto check = [](std::vector<w::Dim> dims, const DimBindings& bindings) {
    const auto graph = Bind(w::Model(OneNode(w::Node("Relu", {"x"}, {"y"}), std::move(dims))), bindings);
    return graph.ok() ? CheckInputSizes(*graph) : graph.status();
  };
  EXPECT_TRUE(check({"batch", "seq"}, {.batch = 4, .dims = {{"seq", 128}}}).ok());
  EXPECT_TRUE(check({"batch", 3}, {}).ok());
  EXPECT_THAT(check({"batch", "seq", "depth"}, {}).message(), AllOf(HasSubstr("'x'"), HasSubstr("'seq', 'depth'")));
  EXPECT_THAT(check({"batch", ""}, {}).message(), AllOf(HasSubstr("'x'"), HasSubstr("dimension 1")));
}

TEST(Shaped, CountsUnknownOperatorsAndTakesDeclaredShapesBehindThem) {
  w::GraphParts parts = OneNode(w::Node("Magic", {"x"}, {"m"}, {}, "", "x.y"), {"batch", 3});
  parts.nodes.push_back(w::Node("Relu", {"m"}, {"y"}));
  EXPECT_FALSE(Named(Bind(w::Model(parts)).value(), "y").known);
  parts.value_infos = {w::Value("m", w::kFloat, {"batch", 7})};
  const auto graph = Bind(w::Model(parts), {.batch = 5});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->coverage.unsupported, ElementsAre(Pair("x.y::Magic", 1)));
  EXPECT_FALSE(graph->ops[0].supported);
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(5, 7));
}

TEST(Shaped, TellsParametersFromRunningStatistics) {
  const auto graph = Bind(w::Model(ConvNet()));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Named(*graph, "w").role, TensorRole::kParameter);
  EXPECT_EQ(Named(*graph, "shift").role, TensorRole::kParameter);
  EXPECT_EQ(Named(*graph, "mean").role, TensorRole::kBuffer);
  EXPECT_EQ(Named(*graph, "x").role, TensorRole::kInput);
  EXPECT_EQ(Named(*graph, "c").role, TensorRole::kActivation);
  EXPECT_EQ(Parameters(*graph), 4 * 27 + 4 + 4 + 4);
}

TEST(Shaped, CountsAWeightOnceInWhateverForm) {
  const w::GraphParts parts = {
      .nodes = {w::Node("Identity", {"w"}, {"alias"}), w::Node("Transpose", {"alias"}, {"turned"}),
                w::Node("MatMul", {"x", "turned"}, {"a"}), w::Node("MatMul", {"a", "w"}, {"y"})},
      .initialisers = {w::Tensor("w", {5, 5}, w::kFloat)},
      .inputs = {w::Value("x", w::kFloat, {"batch", 5})},
      .outputs = {w::UntypedValue("y")}};
  const auto graph = Bind(w::Model(parts));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Parameters(*graph), 25);
  EXPECT_EQ(Named(*graph, "turned").role, TensorRole::kParameter);
  EXPECT_EQ(graph->tensors[Named(*graph, "turned").alias_of.value()].name, "w");
  EXPECT_TRUE(graph->ops[0].plumbing);
  EXPECT_TRUE(graph->ops[1].plumbing);
  EXPECT_FALSE(graph->ops[2].plumbing);
}

TEST(Shaped, TakesWeightsMadeByConstantOfShape) {
  const w::GraphParts parts = {
      .nodes = {w::Node("ConstantOfShape", {"shape"}, {"w"}), w::Node("Conv", {"x", "w"}, {"y"})},
      .initialisers = {w::Int64Tensor("shape", {4}, {4, 3, 3, 3})},
      .inputs = {w::Value("x", w::kFloat, {"batch", 3, 8, 8})},
      .outputs = {w::UntypedValue("y")}};
  const auto graph = Bind(w::Model(parts));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Parameters(*graph), 4 * 27);
  EXPECT_TRUE(graph->ops[0].plumbing);
}

TEST(Shaped, TakesConstantsOfANormalisationForItsAbsentAffinePart) {
  const w::GraphParts parts = {
      .nodes = {w::Node("Constant", {}, {"one"}, {w::TensorAttribute("value", w::FloatTensor("", {3}, {1, 1, 1}))}),
                w::Node("InstanceNormalization", {"x", "one", "one"}, {"y"})},
      .inputs = {w::Value("x", w::kFloat, {"batch", 3, 8, 8})},
      .outputs = {w::UntypedValue("y")}};
  const auto graph = Bind(w::Model(parts));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Parameters(*graph), 0);
}

TEST(Shaped, TakesWeightsThatAreGraphInputs) {
  w::GraphParts parts = ConvNet({2, 3, 8, 8});
  parts.initialisers.erase(parts.initialisers.begin());
  parts.inputs.push_back(w::Value("w", w::kFloat, {4, 3, 3, 3}));
  const auto graph = Bind(w::Model(parts), {.batch = 16});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Named(*graph, "w").role, TensorRole::kParameter);
  EXPECT_EQ(graph->inputs.size(), 1u);
}

// As torch exports without parameters and without folding: data first, then every parameter and statistic.
TEST(Shaped, TakesGraphInputsForWeightsBehindOtherFormsAndAsBiases) {
  const w::GraphParts parts = {
      .nodes = {w::Node("Transpose", {"w"}, {"turned"}), w::Node("MatMul", {"x", "turned"}, {"m"}),
                w::Node("Add", {"b", "m"}, {"a"}), w::Node("Unsqueeze", {"a", "axes"}, {"u"}),
                w::Node("BatchNormalization", {"u", "scale", "shift", "mean", "var"}, {"y"})},
      .initialisers = {w::Int64Tensor("axes", {1}, {-1})},
      .inputs = {w::Value("x", w::kFloat, {8, 5}), w::Value("w", w::kFloat, {7, 5}), w::Value("b", w::kFloat, {7}),
                 w::Value("scale", w::kFloat, {7}), w::Value("shift", w::kFloat, {7}), w::Value("mean", w::kFloat, {7}),
                 w::Value("var", w::kFloat, {7})},
      .outputs = {w::UntypedValue("y")}};
  const auto graph = Bind(w::Model(parts), {.batch = 16});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Parameters(*graph), 7 * 5 + 7 + 7 + 7);
  EXPECT_EQ(graph->tensors[Named(*graph, "turned").alias_of.value()].name, "w");
  EXPECT_EQ(Named(*graph, "mean").role, TensorRole::kBuffer);
  EXPECT_EQ(graph->inputs.size(), 1u);
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(16, 7, 1));
}

// What meets a weight, or another input of the same batch, is data, of whatever fixed size.
TEST(Shaped, TakesGraphInputsForDataWhereTheOtherOperandIsTheWeight) {
  const auto inputs = [](const std::vector<w::Bytes>& nodes, const std::vector<w::Dim>& x,
                         const std::vector<w::Dim>& z) {
    const w::GraphParts parts = {.nodes = nodes,
                                 .initialisers = {w::Tensor("w", {6, 3}, w::kFloat), w::Int64Tensor("first", {}, {0})},
                                 .inputs = {w::Value("x", w::kFloat, x), w::Value("z", w::kFloat, z)},
                                 .outputs = {w::UntypedValue("y")}};
    const auto graph = Bind(w::Model(parts), {.batch = 9});
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? graph->inputs.size() : 0;
  };
  EXPECT_EQ(inputs({w::Node("MatMul", {"x", "w"}, {"m"}), w::Node("MatMul", {"z", "w"}, {"n"}),
                    w::Node("Add", {"m", "n"}, {"y"})},
                   {4, 5, 6}, {4, 1, 6}),
            2u);
  EXPECT_EQ(inputs({w::Node("MatMul", {"x", "z"}, {"y"})}, {4, 5, 6}, {4, 6, 5}), 2u);
  EXPECT_EQ(inputs({w::Node("MatMul", {"x", "w"}, {"m"}),
                    w::Node("Gather", {"z", "first"}, {"n"}, {w::IntAttribute("axis", 1)}),
                    w::Node("Add", {"m", "n"}, {"y"})},
                   {4, 6}, {4, 7, 3}),
            2u);
  EXPECT_EQ(inputs({w::Node("MatMul", {"x", "w"}, {"m"}), w::Node("Mul", {"m", "z"}, {"y"})}, {4, 5, 6}, {4, 5, 3}),
            2u);
  EXPECT_EQ(inputs({w::Node("MatMul", {"x", "z"}, {"y"})}, {4, 5, 6}, {6, 5}), 1u);
}

TEST(Shaped, TakesSettingsAndScalarsForBuffers) {
  const w::GraphParts parts = {.nodes = {w::Node("Clip", {"x", "low", "high"}, {"c"}),
                                         w::Node("Mul", {"c", "half"}, {"m"}), w::Node("Mul", {"m", "gain"}, {"y"})},
                               .initialisers = {w::FloatTensor("low", {}, {0}), w::FloatTensor("high", {}, {6}),
                                                w::FloatTensor("half", {}, {0.5}), w::Tensor("gain", {3}, w::kFloat)},
                               .inputs = {w::Value("x", w::kFloat, {"batch", 3})},
                               .outputs = {w::UntypedValue("y")}};
  const auto graph = Bind(w::Model(parts));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Named(*graph, "high").role, TensorRole::kBuffer);
  EXPECT_EQ(Named(*graph, "half").role, TensorRole::kBuffer);
  EXPECT_EQ(Named(*graph, "gain").role, TensorRole::kParameter);
}

TEST(Shaped, MakesShapeArithmeticPlumbing) {
  const w::GraphParts parts = {.nodes = {w::Node("Shape", {"x"}, {"s"}), w::Node("Gather", {"s", "zero"}, {"n"}),
                                         w::Node("Unsqueeze", {"n", "axes"}, {"n1"}),
                                         w::Node("Concat", {"n1", "rest"}, {"t"}, {w::IntAttribute("axis", 0)}),
                                         w::Node("Reshape", {"x", "t"}, {"y"})},
                               .initialisers = {w::Int64Tensor("zero", {}, {0}), w::Int64Tensor("axes", {1}, {0}),
                                                w::Int64Tensor("rest", {1}, {-1})},
                               .inputs = {w::Value("x", w::kFloat, {"batch", 3, 4})},
                               .outputs = {w::UntypedValue("y")}};
  const auto graph = Bind(w::Model(parts), {.batch = 6});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(6, 12));
  for (const Op& op : graph->ops) EXPECT_TRUE(op.plumbing) << op.node->op_type;
  EXPECT_EQ(Named(*graph, "t").role, TensorRole::kConstant);
  EXPECT_EQ(graph->tensors[Named(*graph, "y").alias_of.value()].name, "x");
}

TEST(Shaped, NamesNodeOperatorAndShapesOfAContradiction) {
  EXPECT_THAT(ErrorOf(w::Model(ConvNet({"batch", 5, 8, 8}))),
              AllOf(HasSubstr("node 0 'conv1' (Conv)"), HasSubstr("[1,5,8,8]"), HasSubstr("[4,3,3,3]")));
}

TEST(Shaped, RefusesShapesBeyondItsLimits) {
  const auto expand = [](int64_t size) {
    return w::Model(
        OneNode(w::Node("Expand", {"x", "shape"}, {"y"}), {1}, {w::Int64Tensor("shape", {2}, {size, size})}));
  };
  EXPECT_THAT(ErrorOf(expand(int64_t{1} << 40)), AllOf(HasSubstr("'y'"), HasSubstr("limit")));
  EXPECT_TRUE(Bind(expand(1 << 20)).ok());
}

}  // namespace
}  // namespace horus
