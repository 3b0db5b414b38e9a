// SPDX-License-Identifier: Apache-2.0
// Rules of binding what repeats or branches: If, Loop, Scan and functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/bind_model.h"
#include "graph/growth.h"

namespace horus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

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

TEST(Control, TakesTheKnownBranchOfIf) {
  const auto graph = Bind(w::Model(IfNet(w::Tensor("c", {}, w::kBool, w::Ints(5, {1})))), {.batch = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->tensors[graph->outputs[0].value()].dims, ElementsAre(2, 3));
  EXPECT_EQ(graph->coverage.branches_unknown, 0);
  EXPECT_EQ(graph->ops.size(), 1u);
}

// By what it computes, not by how many nodes that takes; a branch that contradicts the sizes was meant for others.
TEST(Control, TakesTheCostlierBranchOfAnUnknownIf) {
  const auto branch = [](const std::vector<w::Bytes>& nodes) {
    return w::Graph({.nodes = nodes, .outputs = {w::UntypedValue("b")}});
  };
  const w::Bytes product = branch({w::Node("MatMul", {"x", "w"}, {"b"})});
  const w::Bytes many =
      branch({w::Node("Relu", {"x"}, {"r"}), w::Node("Relu", {"r"}, {"s"}), w::Node("Relu", {"s"}, {"b"})});
  const w::Bytes wrong = branch({w::Node("MatMul", {"w", "x"}, {"r"}), w::Node("MatMul", {"r", "x"}, {"b"})});
  const auto ops = [&](const w::Bytes& one, const w::Bytes& other) {
    const auto graph = Bind(
        w::Model({.nodes = {w::Node("If", {"c"}, {"y"},
                                    {w::GraphAttribute("then_branch", one), w::GraphAttribute("else_branch", other)})},
                  .initialisers = {w::Tensor("w", {4, 9}, w::kFloat)},
                  .inputs = {w::Value("x", w::kFloat, {"batch", 4}), w::Value("c", w::kBool, {})},
                  .outputs = {w::UntypedValue("y")}}),
        {.batch = 2});
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? graph->ops.size() : 0;
  };
  EXPECT_EQ(ops(product, many), 1u);
  EXPECT_EQ(ops(many, product), 1u);
  EXPECT_EQ(ops(wrong, many), 3u);
}

TEST(Control, TakesTheLargerBranchOfAnUnknownIf) {
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

TEST(Control, RepeatsLoopsOfKnownLength) {
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

TEST(Control, CountsLoopsOfUnknownLengthOnce) {
  const std::vector<w::Bytes> body = {w::Node("Relu", {"v"}, {"v_out"}), w::Node("Abs", {"v"}, {"scan"})};
  const auto graph = Bind(w::Model(LoopNet(body, "")), {.batch = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->coverage.loops_of_unknown_length, 1);
  EXPECT_THAT(Named(*graph, "stack").dims, ElementsAre(kUnknownDim, 2, 3));
}

TEST(Control, ForgetsSizesThatALoopChanges) {
  const std::vector<w::Bytes> body = {w::Node("Concat", {"v", "v"}, {"v_out"}, {w::IntAttribute("axis", 1)}),
                                      w::Node("Abs", {"v"}, {"scan"})};
  const auto graph = Bind(w::Model(LoopNet(body, w::Int64Tensor("m", {}, {7}))), {.batch = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(2, kUnknownDim));
  EXPECT_EQ(graph->ops.size(), 4u) << "trial walks leave nothing behind";
}

TEST(Control, ForgetsUnknownOperatorsOfTrialWalks) {
  const std::vector<w::Bytes> body = {w::Node("Concat", {"v", "v"}, {"v_out"}, {w::IntAttribute("axis", 1)}),
                                      w::Node("Magic", {"v"}, {"scan"}, {}, "", "x.y")};
  const auto graph = Bind(w::Model(LoopNet(body, w::Int64Tensor("m", {}, {7}))), {.batch = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->coverage.unsupported, ElementsAre(Pair("x.y::Magic", 1)));
}

TEST(Control, WalksLoopsInTimeThatUnknownOperatorsBeforeThemDoNotRaise) {
  const w::Bytes body = w::Graph({.nodes = {w::Node("Identity", {"cond"}, {"cond_out"})},
                                  .inputs = {w::Value("i", w::kInt64, {}), w::Value("cond", w::kBool, {})},
                                  .outputs = {w::UntypedValue("cond_out")}});
  const auto model = [&body](int count) {
    w::GraphParts parts = OneNode(w::Node("Relu", {"x"}, {"y"}), {3}, {w::Int64Tensor("m", {}, {7})});
    for (int i = 0; i < count; ++i) {
      const std::string name = "u" + std::to_string(i);
      parts.nodes.push_back(w::Node(name, {"x"}, {name}, {}, "", "x.y"));
    }
    for (int i = 0; i < count; ++i) {
      parts.nodes.push_back(w::Node("Loop", {"m", ""}, {}, {w::GraphAttribute("body", body)}));
    }
    return w::Model(parts);
  };
  constexpr int kCount = 1'000;
  EXPECT_LT(GrowthOf(kCount, model, [](const w::Bytes& bytes) { EXPECT_TRUE(Bind(bytes).ok()); }), kMostLinearGrowth);
  const auto graph = Bind(model(kCount));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->coverage.unsupported.size(), size_t{kCount});
}

TEST(Control, RunsScanOncePerSlice) {
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

TEST(Control, ExpandsFunctionsWithTheCallersAttributes) {
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

TEST(Control, BoundsFunctionsThatCallThemselves) {
  const w::Bytes function = w::Function("my", "F", {"a"}, {"b"}, {w::Node("F", {"a"}, {"b"}, {}, "", "my")});
  const w::Bytes graph = w::Graph(OneNode(w::Node("F", {"x"}, {"y"}, {}, "", "my"), {2}));
  EXPECT_THAT(ErrorOf(w::Model(graph, 18, 8, {function})), HasSubstr("nested deeper than 32"));
}

TEST(Control, BoundsExpandedOperators) {
  const w::Bytes twice =
      w::Function("my", "F", {"a"}, {"b"}, {w::Node("Relu", {"a"}, {"t"}), w::Node("Relu", {"t"}, {"b"})});
  const w::Bytes graph = w::Graph(OneNode(w::Node("F", {"x"}, {"y"}, {}, "", "my"), {2}));
  EXPECT_THAT(ErrorOf(w::Model(graph, 18, 8, {twice}), {}, {.max_ops = 2}), HasSubstr("more than 2 operators"));
}

TEST(Control, CountsWhatFunctionCallsCopy) {
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

TEST(Control, CountsTheInputsOfAnOperatorThatIsCalledOften) {
  const w::Bytes function =
      w::Function("my", "F", {"a"}, {"b"}, {w::Node("Sum", std::vector<std::string>(16'000, "a"), {"b"})});
  w::GraphParts parts = OneNode(w::Node("F", {"x"}, {"y"}, {}, "", "my"), {2});
  for (int i = 0; i < 9; ++i) parts.nodes.push_back(w::Node("F", {"x"}, {"f" + std::to_string(i)}, {}, "", "my"));
  const w::Bytes ten_calls = w::Model(w::Graph(parts), 18, 8, {function});
  EXPECT_EQ(ErrorOf(ten_calls, {}, {.max_ops = 11'000}), "");
  EXPECT_THAT(ErrorOf(ten_calls, {}, {.max_ops = 9'000}), HasSubstr("more than 9000 operators"));
}

TEST(Control, CountsTheElementsThatOperatorsRead) {
  // Twenty sums of 4,096 numbers that nobody asks for.
  w::GraphParts parts = OneNode(w::Node("Relu", {"x"}, {"y"}), {2});
  parts.initialisers.push_back(w::Tensor("n", {4'096}, w::kInt64, w::Ints(7, std::vector<int64_t>(4'096, 1))));
  for (int i = 0; i < 20; ++i) parts.nodes.push_back(w::Node("Add", {"n", "n"}, {""}));
  EXPECT_EQ(ErrorOf(w::Model(w::Graph(parts)), {}, {.max_ops = 11'000}), "");
  EXPECT_THAT(ErrorOf(w::Model(w::Graph(parts)), {}, {.max_ops = 9'000}), HasSubstr("more than 9000 operators"));
}

TEST(Control, CountsTheValuesThatLoopsCarry) {
  // 50 loops over 1,000 copies of one value, told by 50 short calls.
  const std::vector<std::string> carried(1'000, "a");
  std::vector<std::string> inputs = {"", ""};
  inputs.insert(inputs.end(), carried.begin(), carried.end());
  w::GraphParts body = {.inputs = {w::UntypedValue("i"), w::UntypedValue("c")}, .outputs = {w::UntypedValue("c")}};
  for (int i = 0; i < 1'000; ++i) {
    body.inputs.push_back(w::UntypedValue("v" + std::to_string(i)));
    body.outputs.push_back(w::UntypedValue("v" + std::to_string(i)));
  }
  const w::Bytes function = w::Function("my", "F", {"a"}, {"b"},
                                        {w::Node("Loop", inputs, {"b"}, {w::GraphAttribute("body", w::Graph(body))})});
  w::GraphParts parts = OneNode(w::Node("F", {"x"}, {"y"}, {}, "", "my"), {2});
  for (int i = 1; i < 50; ++i) parts.nodes.push_back(w::Node("F", {"x"}, {"f" + std::to_string(i)}, {}, "", "my"));
  const w::Bytes model = w::Model(w::Graph(parts), 18, 8, {function});
  EXPECT_EQ(ErrorOf(model, {}, {.max_ops = 30'000}), "");
  EXPECT_THAT(ErrorOf(model, {}, {.max_ops = 20'000}), HasSubstr("more than 40000 tensors"));
}

TEST(Control, CountsTheNamesThatACallCompares) {
  // An operator with 1,000 attributes that refer to those of its call, which has as many others.
  std::vector<w::Bytes> refer, others;
  std::vector<std::string> names;
  for (int i = 0; i < 1'000; ++i) {
    names.push_back("w" + std::to_string(i));
    refer.push_back(w::RefAttribute("z" + std::to_string(i), names.back(), 2));
    others.push_back(w::IntAttribute("q" + std::to_string(i), 1));
  }
  const w::Bytes function = w::Function("my", "F", {"a"}, {"b"}, {w::Node("Relu", {"a"}, {"b"}, refer)}, names);
  const w::Bytes model =
      w::Model(w::Graph(OneNode(w::Node("F", {"x"}, {"y"}, others, "", "my"), {2})), 18, 8, {function});
  EXPECT_EQ(ErrorOf(model, {}, {.max_ops = 10'000}), "");
  EXPECT_THAT(ErrorOf(model, {}, {.max_ops = 7'000}), HasSubstr("more than 7000 operators"));
}

TEST(Control, ChoosesBranchesInTimeLinearInCalls) {
  // Each call chooses between branches whose subgraphs hold many nodes that the walk never enters.
  const auto model = [](int count) {
    w::GraphParts rare = {.outputs = {w::UntypedValue("r")}};
    for (int i = 0; i < count; ++i) rare.nodes.push_back(w::Node("Neg", {"a"}, {"n" + std::to_string(i)}));
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
    for (int i = 0; i < count; ++i) {
      parts.nodes.push_back(w::Node("F", {"x", "c"}, {"f" + std::to_string(i)}, {}, "", "my"));
    }
    return w::Model(w::Graph(parts), 18, 8, {function});
  };
  EXPECT_LT(GrowthOf(5'000, model, [](const w::Bytes& bytes) { EXPECT_TRUE(Bind(bytes).ok()); }), kMostLinearGrowth);
}

}  // namespace
}  // namespace horus
