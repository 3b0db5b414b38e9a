// SPDX-License-Identifier: Apache-2.0
// Rules of binding: batch, names, roles, control flow, errors.
#include "graph/shaped.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "graph/onnx_writer.h"
#include "graph/reader.h"

namespace horus {
namespace {

namespace w = onnx_writer;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

absl::StatusOr<ShapedGraph> Bind(const w::Bytes& model, const DimBindings& bindings = {},
                                 const ShapeLimits& limits = {}) {
  auto graph = ReadOnnx(w::Span(model));
  if (!graph.ok()) return graph.status();
  return BindShapes(*graph, bindings, limits);
}

std::string ErrorOf(const w::Bytes& model, const DimBindings& bindings = {}, const ShapeLimits& limits = {}) {
  return std::string(Bind(model, bindings, limits).status().message());
}

const Tensor& Named(const ShapedGraph& graph, std::string_view name) {
  static const Tensor kMissing;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return kMissing;
}

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

// One node between input x and output y, with integer constants as further inputs.
w::GraphParts OneNode(const w::Bytes& node, const std::vector<w::Dim>& x, const std::vector<w::Bytes>& constants = {}) {
  return {.nodes = {node},
          .initialisers = constants,
          .inputs = {w::Value("x", w::kFloat, x)},
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

TEST(Shaped, BindsNamedDimensionsAndRefusesUnknownOnes) {
  const w::Bytes model = w::Model(OneNode(w::Node("Relu", {"x"}, {"y"}), {"batch", "seq"}));
  EXPECT_THAT(Named(Bind(model, {.batch = 4, .dims = {{"seq", 512}}}).value(), "y").dims, ElementsAre(4, 512));
  EXPECT_THAT(ErrorOf(model, {.dims = {{"seqq", 512}}}), AllOf(HasSubstr("'seqq'"), HasSubstr("seq")));
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

w::Bytes Branch(const std::vector<w::Bytes>& nodes) {
  return w::Graph({.nodes = nodes, .outputs = {w::UntypedValue("r")}, .name = "branch"});
}

w::GraphParts IfNet(const w::Bytes& condition) {
  const w::Bytes small = Branch({w::Node("Relu", {"x"}, {"r"})});
  const w::Bytes large =
      Branch({w::Node("Concat", {"x", "x"}, {"t"}, {w::IntAttribute("axis", 1)}), w::Node("Relu", {"t"}, {"r"})});
  w::GraphParts parts = OneNode(
      w::Node("If", {"c"}, {"y"}, {w::GraphAttribute("then_branch", small), w::GraphAttribute("else_branch", large)}),
      {"batch", 3});
  if (condition.empty()) {
    parts.inputs.push_back(w::Value("c", w::kBool, {}));
  } else {
    parts.initialisers = {condition};
  }
  return parts;
}

TEST(Shaped, TakesTheKnownBranchOfIf) {
  const auto graph = Bind(w::Model(IfNet(w::Tensor("c", {}, w::kBool, w::Ints(5, {1})))), {.batch = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->tensors[graph->outputs[0].value()].dims, ElementsAre(2, 3));
  EXPECT_EQ(graph->coverage.branches_unknown, 0);
  EXPECT_EQ(graph->ops.size(), 1u);
}

TEST(Shaped, TakesTheLargerBranchOfAnUnknownIf) {
  const auto graph = Bind(w::Model(IfNet("")), {.batch = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->tensors[graph->outputs[0].value()].dims, ElementsAre(2, 6));
  EXPECT_EQ(graph->coverage.branches_unknown, 1);
}

// Loop over a carried value `v` that starts as x; the body runs `nodes`, which make `v_out` and `scan`.
w::GraphParts LoopNet(const std::vector<w::Bytes>& nodes, const w::Bytes& trips) {
  std::vector<w::Bytes> all = nodes;
  all.insert(all.begin(), w::Node("Identity", {"cond"}, {"cond_out"}));
  const w::Bytes body =
      w::Graph({.nodes = all,
                .inputs = {w::Value("i", w::kInt64, {}), w::Value("cond", w::kBool, {}), w::UntypedValue("v")},
                .outputs = {w::UntypedValue("cond_out"), w::UntypedValue("v_out"), w::UntypedValue("scan")},
                .name = "body"});
  w::GraphParts parts =
      OneNode(w::Node("Loop", {"m", "", "x"}, {"y", "stack"}, {w::GraphAttribute("body", body)}), {"batch", 3});
  if (trips.empty()) {
    parts.inputs.push_back(w::Value("m", w::kInt64, {}));
  } else {
    parts.initialisers = {trips};
  }
  return parts;
}

TEST(Shaped, RepeatsLoopsOfKnownLength) {
  const std::vector<w::Bytes> body = {w::Node("Relu", {"v"}, {"v_out"}), w::Node("Abs", {"v"}, {"scan"})};
  const auto graph = Bind(w::Model(LoopNet(body, w::Int64Tensor("m", {}, {7}))), {.batch = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(2, 3));
  EXPECT_THAT(Named(*graph, "stack").dims, ElementsAre(7, 2, 3));
  EXPECT_EQ(graph->coverage.loops_of_unknown_length, 0);
  for (const Op& op : graph->ops) {
    EXPECT_EQ(op.repeat, op.node->op_type == "Loop" ? 1 : 7) << op.node->op_type;
  }
}

TEST(Shaped, CountsLoopsOfUnknownLengthOnce) {
  const std::vector<w::Bytes> body = {w::Node("Relu", {"v"}, {"v_out"}), w::Node("Abs", {"v"}, {"scan"})};
  const auto graph = Bind(w::Model(LoopNet(body, "")), {.batch = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->coverage.loops_of_unknown_length, 1);
  EXPECT_THAT(Named(*graph, "stack").dims, ElementsAre(kUnknownDim, 2, 3));
}

TEST(Shaped, ForgetsSizesThatALoopChanges) {
  const std::vector<w::Bytes> body = {w::Node("Concat", {"v", "v"}, {"v_out"}, {w::IntAttribute("axis", 1)}),
                                      w::Node("Abs", {"v"}, {"scan"})};
  const auto graph = Bind(w::Model(LoopNet(body, w::Int64Tensor("m", {}, {7}))), {.batch = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(2, kUnknownDim));
  EXPECT_EQ(graph->ops.size(), 4u) << "trial walks leave nothing behind";
}

TEST(Shaped, ForgetsUnknownOperatorsOfTrialWalks) {
  const std::vector<w::Bytes> body = {w::Node("Concat", {"v", "v"}, {"v_out"}, {w::IntAttribute("axis", 1)}),
                                      w::Node("Magic", {"v"}, {"scan"}, {}, "", "x.y")};
  const auto graph = Bind(w::Model(LoopNet(body, w::Int64Tensor("m", {}, {7}))), {.batch = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->coverage.unsupported, ElementsAre(Pair("x.y::Magic", 1)));
}

TEST(Shaped, WalksLoopsInTimeThatUnknownOperatorsBeforeThemDoNotRaise) {
  constexpr int kCount = 10'000;  // copying the list of unknown operators at every walk takes tens of seconds
  const w::Bytes body = w::Graph({.nodes = {w::Node("Identity", {"cond"}, {"cond_out"})},
                                  .inputs = {w::Value("i", w::kInt64, {}), w::Value("cond", w::kBool, {})},
                                  .outputs = {w::UntypedValue("cond_out")}});
  w::GraphParts parts = OneNode(w::Node("Relu", {"x"}, {"y"}), {3}, {w::Int64Tensor("m", {}, {7})});
  for (int i = 0; i < kCount; ++i) {
    const std::string name = "u" + std::to_string(i);
    parts.nodes.push_back(w::Node(name, {"x"}, {name}, {}, "", "x.y"));
  }
  for (int i = 0; i < kCount; ++i) {
    parts.nodes.push_back(w::Node("Loop", {"m", ""}, {}, {w::GraphAttribute("body", body)}));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto graph = Bind(w::Model(parts));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->coverage.unsupported.size(), size_t{kCount});
}

TEST(Shaped, RunsScanOncePerSlice) {
  const w::Bytes body = w::Graph({.nodes = {w::Node("Add", {"s", "e"}, {"s_out"}), w::Node("Relu", {"s_out"}, {"o"})},
                                  .inputs = {w::UntypedValue("s"), w::UntypedValue("e")},
                                  .outputs = {w::UntypedValue("s_out"), w::UntypedValue("o")}});
  w::GraphParts parts = OneNode(w::Node("Scan", {"x", "seq"}, {"last", "y"},
                                        {w::GraphAttribute("body", body), w::IntAttribute("num_scan_inputs", 1)}),
                                {3});
  parts.inputs.push_back(w::Value("seq", w::kFloat, {12, 3}));
  const auto graph = Bind(w::Model(parts));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(12, 3));
  EXPECT_EQ(graph->ops[0].repeat, 12);
}

TEST(Shaped, ExpandsFunctionsWithTheCallersAttributes) {
  const w::Bytes function =
      w::Function("my", "Block", {"a"}, {"b"},
                  {w::Node("Flatten", {"a"}, {"b"}, {w::RefAttribute("axis", "where", 2)})}, {"where"});
  const w::Bytes graph_bytes =
      w::Graph(OneNode(w::Node("Block", {"x"}, {"y"}, {w::IntAttribute("where", 2)}, "", "my"), {2, 3, 4}));
  const auto graph = Bind(w::Model(graph_bytes, 18, 8, {function}));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->tensors[graph->outputs[0].value()].dims, ElementsAre(6, 4));
  EXPECT_EQ(graph->ops[0].node->op_type, "Flatten");
  EXPECT_THAT(graph->coverage.unsupported, IsEmpty());
}

TEST(Shaped, BoundsFunctionsThatCallThemselves) {
  const w::Bytes function = w::Function("my", "F", {"a"}, {"b"}, {w::Node("F", {"a"}, {"b"}, {}, "", "my")});
  const w::Bytes graph = w::Graph(OneNode(w::Node("F", {"x"}, {"y"}, {}, "", "my"), {2}));
  EXPECT_THAT(ErrorOf(w::Model(graph, 18, 8, {function})), HasSubstr("nested deeper than 32"));
}

TEST(Shaped, BoundsExpandedOperators) {
  const w::Bytes twice =
      w::Function("my", "F", {"a"}, {"b"}, {w::Node("Relu", {"a"}, {"t"}), w::Node("Relu", {"t"}, {"b"})});
  const w::Bytes graph = w::Graph(OneNode(w::Node("F", {"x"}, {"y"}, {}, "", "my"), {2}));
  EXPECT_THAT(ErrorOf(w::Model(graph, 18, 8, {twice}), {}, {.max_ops = 2}), HasSubstr("more than 2 operators"));
}

TEST(Shaped, CountsWhatFunctionCallsCopy) {
  // 100 calls of one node that copy 48 MB of numbers, or 1.6 MB of names: a few kilobytes in a file for each call.
  const auto error = [](const std::vector<w::Bytes>& attributes, const std::string& inner, int64_t max_ops) {
    const w::Bytes function =
        w::Function("my", "F", {"a"}, {"b"},
                    {w::Node("Flatten", {"a"}, {inner}, attributes), w::Node("Relu", {inner}, {"b"})}, {"where"});
    w::GraphParts parts = OneNode(w::Node("Relu", {"x"}, {"y"}), {2, 3});
    for (int i = 0; i < 100; ++i) {
      parts.nodes.push_back(w::Node("F", {"x"}, {"f" + std::to_string(i)}, {w::IntAttribute("where", 1)}, "", "my"));
    }
    return ErrorOf(w::Model(w::Graph(parts), 18, 8, {function}), {}, {.max_ops = max_ops});
  };
  const w::Bytes ref = w::RefAttribute("axis", "where", 2);
  const w::Bytes numbers = w::IntsAttribute("numbers", std::vector<int64_t>(60'000, 1));
  EXPECT_EQ(error({ref}, "t", 1'000), "");
  EXPECT_THAT(error({ref, numbers}, "t", 100'000), HasSubstr("more than 100000 operators"));
  EXPECT_THAT(error({}, std::string(16'000, 't'), 1'000), HasSubstr("more than 1000 operators"));
}

TEST(Shaped, ChoosesBranchesInTimeLinearInCalls) {
  // Each call chooses between branches whose subgraphs hold many nodes that the walk never enters.
  constexpr int kCount = 60'000;  // walking them to count them at every call takes several seconds
  w::GraphParts rare = {.outputs = {w::UntypedValue("r")}};
  for (int i = 0; i < kCount; ++i) rare.nodes.push_back(w::Node("Neg", {"a"}, {"n" + std::to_string(i)}));
  rare.nodes.push_back(w::Node("Neg", {"a"}, {"r"}));
  const w::Bytes often = Branch({w::Node("Relu", {"a"}, {"r"})});
  const w::Bytes inner = Branch(
      {w::Node("Constant", {}, {"no"}, {w::TensorAttribute("value", w::Tensor("", {}, w::kBool, w::Ints(5, {0})))}),
       w::Node("If", {"no"}, {"r"},
               {w::GraphAttribute("then_branch", w::Graph(rare)), w::GraphAttribute("else_branch", often)})});
  const w::Bytes function =
      w::Function("my", "F", {"a", "c"}, {"b"},
                  {w::Node("If", {"c"}, {"b"},
                           {w::GraphAttribute("then_branch", inner), w::GraphAttribute("else_branch", often)})});
  w::GraphParts parts = OneNode(w::Node("Relu", {"x"}, {"y"}), {3});
  parts.inputs.push_back(w::Value("c", w::kBool, {}));
  for (int i = 0; i < kCount; ++i) {
    parts.nodes.push_back(w::Node("F", {"x", "c"}, {"f" + std::to_string(i)}, {}, "", "my"));
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(Bind(w::Model(w::Graph(parts), 18, 8, {function})).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
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
