// SPDX-License-Identifier: Apache-2.0
// Graphs as onnxruntime's tools write them: quantised operators, packed weights, attention with a cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/bind_model.h"

namespace horus {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kMicrosoft = "com.microsoft";

int64_t Parameters(const ShapedGraph& graph) {
  int64_t count = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.role == TensorRole::kParameter && !tensor.alias_of.valid()) count += tensor.elements();
  }
  return count;
}

w::Bytes Int8(std::string_view name, const std::vector<int64_t>& dims) { return w::Tensor(name, dims, w::kInt8); }

TEST(Quantised, OperatorsHaveTheShapesOfTheFloatOnesAndTheirWeightsCount) {
  w::GraphParts parts;
  parts.nodes = {w::Node("QuantizeLinear", {"x", "s", "z"}, {"q"}),
                 w::Node("QLinearConv", {"q", "s", "z", "w", "s4", "z", "s", "z", "b"}, {"c"}),
                 w::Node("QLinearAdd", {"c", "s", "z", "c", "s", "z", "s", "z"}, {"a"}, {}, "", kMicrosoft),
                 w::Node("QLinearConcat", {"s", "z", "a", "s", "z", "c", "s", "z"}, {"j"}, {w::IntAttribute("axis", 1)},
                         "", kMicrosoft),
                 w::Node("QLinearGlobalAveragePool", {"j", "s", "z", "s", "z"}, {"p"}, {}, "", kMicrosoft),
                 w::Node("Flatten", {"p"}, {"f"}),
                 w::Node("QGemm", {"f", "s", "z", "v", "s", "z", "", "s", "z"}, {"g"}, {w::IntAttribute("transB", 1)},
                         "", kMicrosoft),
                 w::Node("DequantizeLinear", {"g", "s", "z"}, {"y"})};
  parts.initialisers = {Int8("w", {4, 3, 3, 3}),
                        Int8("v", {5, 8}),
                        Int8("z", {}),
                        w::Tensor("b", {4}, w::kInt32),
                        w::FloatTensor("s", {}, {1}),
                        w::FloatTensor("s4", {4}, {1, 1, 1, 1})};
  parts.inputs = {w::Value("x", w::kFloat, {"batch", 3, 8, 8})};
  parts.outputs = {w::UntypedValue("y")};
  const auto graph = Bind(w::Model(parts), {.batch = 6});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Named(*graph, "c").dims, ElementsAre(6, 4, 6, 6));
  EXPECT_THAT(Named(*graph, "j").dims, ElementsAre(6, 8, 6, 6));
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(6, 5));
  EXPECT_EQ(graph->coverage.ops_with_known_shapes, graph->coverage.ops);
  EXPECT_TRUE(graph->coverage.unsupported.empty());
  EXPECT_EQ(Parameters(*graph), 4 * 27 + 5 * 8);  // scales are none
  EXPECT_EQ(Named(*graph, "c").bytes(), 6 * 4 * 6 * 6);
}

TEST(Quantised, WeightsBehindDequantizeLinearCount) {
  const w::GraphParts parts = {.nodes = {w::Node("DequantizeLinear", {"w", "s", "z"}, {"d"}, {}, "", kMicrosoft),
                                         w::Node("MatMul", {"x", "d"}, {"y"})},
                               .initialisers = {Int8("w", {3, 5}), w::FloatTensor("s", {}, {1}), Int8("z", {})},
                               .inputs = {w::Value("x", w::kFloat, {"batch", 3})},
                               .outputs = {w::UntypedValue("y")}};
  const auto graph = Bind(w::Model(parts));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Parameters(*graph), 15);
  EXPECT_TRUE(graph->ops[0].plumbing);
}

TEST(Quantised, TablesOfFourBitsGiveRowsOfTheScalesType) {
  const w::GraphParts parts = {
      .nodes = {w::Node(
          "GatherBlockQuantized", {"t", "x", "s"}, {"y"},
          {w::IntAttribute("bits", 4), w::IntAttribute("block_size", 32), w::IntAttribute("quantize_axis", 1)}, "",
          kMicrosoft)},
      .initialisers = {w::Tensor("t", {100, 32}, w::kUint8), w::Tensor("s", {100, 2}, w::kFloat)},
      .inputs = {w::Value("x", w::kInt64, {"batch", 7})},
      .outputs = {w::UntypedValue("y")}};
  const auto graph = Bind(w::Model(parts), {.batch = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(2, 7, 64));
  EXPECT_EQ(Named(*graph, "y").bytes(), 2 * 7 * 64 * 4);
  EXPECT_EQ(Parameters(*graph), 6'400);
  EXPECT_TRUE(graph->coverage.unsupported.empty());
}

TEST(Quantised, ATableOfOneAxisAndAScalarIndexGiveAScalar) {
  const w::GraphParts parts = {.nodes = {w::Node("GatherBlockQuantized", {"t", "x", "s"}, {"y"}, {}, "", kMicrosoft)},
                               .initialisers = {w::Tensor("t", {32}, w::kUint8), w::Tensor("s", {1}, w::kFloat)},
                               .inputs = {w::Value("x", w::kInt64, {})},
                               .outputs = {w::UntypedValue("y")}};
  const auto graph = Bind(w::Model(parts));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(Named(*graph, "y").dims.empty());
}

// As onnxruntime's optimiser fuses a UNet: images with channels last.
TEST(Quantised, FusedOperatorsOfDiffusionModelsHaveShapesAndWeights) {
  const auto fused = [](std::string_view op, const std::vector<std::string>& in, const std::vector<std::string>& out,
                        const std::vector<w::Bytes>& attributes = {}) {
    return w::Node(op, in, out, attributes, "", kMicrosoft);
  };
  const w::GraphParts parts = {
      .nodes = {fused("GroupNorm", {"x", "g", "b"}, {"n"},
                      {w::IntAttribute("groups", 4), w::IntAttribute("channels_last", 1)}),
                fused("SkipGroupNorm", {"n", "g", "b", "x", "c"}, {"m", "sum"}, {w::IntAttribute("groups", 4)}),
                fused("BiasAdd", {"m", "c", "sum"}, {"a"}), fused("BiasSplitGelu", {"a", "c"}, {"y"})},
      .initialisers = {w::Tensor("g", {8}, w::kFloat), w::Tensor("b", {8}, w::kFloat), w::Tensor("c", {8}, w::kFloat)},
      .inputs = {w::Value("x", w::kFloat, {"batch", 6, 6, 8})},
      .outputs = {w::UntypedValue("y")}};
  const auto graph = Bind(w::Model(parts), {.batch = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Named(*graph, "sum").dims, ElementsAre(2, 6, 6, 8));
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(2, 6, 6, 4));
  EXPECT_EQ(graph->coverage.ops_with_known_shapes, graph->coverage.ops);
  EXPECT_TRUE(graph->coverage.unsupported.empty());
  EXPECT_EQ(Parameters(*graph), 3 * 8);
}

// As onnxruntime's builder of language models writes a gated delta net (Qwen 3.5).
TEST(Quantised, LinearAttentionKeepsItsStateInPlace) {
  const auto fused = [](std::string_view op, const std::vector<std::string>& in, const std::vector<std::string>& out,
                        const std::vector<w::Bytes>& attributes = {}) {
    return w::Node(op, in, out, attributes, "", kMicrosoft);
  };
  const w::GraphParts parts = {
      .nodes = {fused("CausalConvWithState", {"x", "w", "", "before"}, {"c", "after"}),
                w::Node("Transpose", {"c"}, {"t"}, {w::IntsAttribute("perm", {0, 2, 1})}),
                w::Node("Split", {"t", "sizes"}, {"q", "k", "v"}, {w::IntAttribute("axis", 2)}),
                fused("LinearAttentionGate", {"a", "bias", "decay_scale", "b"}, {"g", "beta"}),
                fused("LinearAttention", {"q", "k", "v", "past", "g", "beta"}, {"o", "present"},
                      {w::IntAttribute("q_num_heads", 2), w::IntAttribute("kv_num_heads", 4)}),
                fused("GatedRMSNorm", {"o", "gate", "norm"}, {"y"})},
      .initialisers = {w::Tensor("w", {56, 1, 4}, w::kFloat), w::Int64Tensor("sizes", {3}, {16, 16, 24}),
                       w::Tensor("bias", {4}, w::kFloat), w::Tensor("decay_scale", {4}, w::kFloat),
                       w::Tensor("norm", {6}, w::kFloat)},
      .inputs = {w::Value("x", w::kFloat, {"batch", 56, 5}), w::Value("before", w::kFloat, {"batch", 56, 3}),
                 w::Value("a", w::kFloat, {"batch", 5, 4}), w::Value("b", w::kFloat, {"batch", 5, 4}),
                 w::Value("past", w::kFloat, {"batch", 4, 8, 6}), w::Value("gate", w::kFloat, {"batch", 5, 24})},
      .outputs = {w::UntypedValue("y"), w::UntypedValue("after"), w::UntypedValue("present")}};
  const auto graph = Bind(w::Model(parts), {.batch = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Named(*graph, "after").dims, ElementsAre(2, 56, 3));
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(2, 5, 24));
  EXPECT_THAT(Named(*graph, "present").dims, ElementsAre(2, 4, 8, 6));
  EXPECT_TRUE(graph->coverage.unsupported.empty());
  EXPECT_EQ(graph->coverage.ops_with_known_shapes, graph->coverage.ops);
  EXPECT_EQ(Parameters(*graph), 56 * 4 + 4 + 4 + 6);
}

TEST(Quantised, WeightsOfFourBitsAreTwiceAsManyAsTheirBytes) {
  const w::GraphParts parts = {.nodes = {w::Node("MatMulNBits", {"x", "w", "s", "z"}, {"y"},
                                                 {w::IntAttribute("K", 64), w::IntAttribute("N", 10),
                                                  w::IntAttribute("bits", 4), w::IntAttribute("block_size", 32)},
                                                 "", kMicrosoft)},
                               .initialisers = {w::Tensor("w", {10, 2, 16}, w::kUint8), w::Tensor("s", {20}, w::kFloat),
                                                w::Tensor("z", {10}, w::kUint8)},
                               .inputs = {w::Value("x", w::kFloat, {"batch", 7, 64})},
                               .outputs = {w::UntypedValue("y")}};
  const auto graph = Bind(w::Model(parts), {.batch = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(2, 7, 10));
  EXPECT_EQ(Parameters(*graph), 640);
  EXPECT_EQ(Named(*graph, "w").bytes(), 320);
  w::GraphParts wrong = parts;
  wrong.inputs = {w::Value("x", w::kFloat, {"batch", 7, 63})};
  EXPECT_THAT(ErrorOf(w::Model(wrong)), ::testing::HasSubstr("inner sizes 63 and 64 differ"));
}

// Packed or apart, with or without declared results: the cache grows by the new rows.
TEST(Quantised, AttentionWithACacheKnowsWhatItPresents) {
  const auto bind = [](const std::vector<std::string>& inputs, int64_t width) {
    w::GraphParts parts;
    parts.nodes = {w::Node("GroupQueryAttention", inputs, {"y", "key", "value"},
                           {w::IntAttribute("num_heads", 8), w::IntAttribute("kv_num_heads", 2)}, "", kMicrosoft)};
    parts.inputs = {w::Value("q", w::kFloat, {"batch", 3, width}), w::Value("k", w::kFloat, {"batch", 3, 32}),
                    w::Value("past", w::kFloat, {"batch", 2, "past", 16})};
    parts.initialisers = {w::Tensor("cos", {64, 8}, w::kFloat), w::Tensor("sin", {64, 8}, w::kFloat)};
    parts.outputs = {w::UntypedValue("y"), w::UntypedValue("key"), w::UntypedValue("value")};
    const auto graph = Bind(w::Model(parts), {.batch = 2, .dims = {{"past", 20}}});
    EXPECT_TRUE(graph.ok()) << graph.status();
    EXPECT_THAT(Named(*graph, "y").dims, ElementsAre(2, 3, 128));
    EXPECT_THAT(Named(*graph, "key").dims, ElementsAre(2, 2, 23, 16));
    EXPECT_THAT(Named(*graph, "value").dims, ElementsAre(2, 2, 23, 16));
    EXPECT_EQ(Parameters(*graph), 0);  // tables of angles are none
  };
  bind({"q", "k", "k", "past", "past", "", "", "cos", "sin"}, 128);
  bind({"q", "", "", "past", "past", "", "", "cos", "sin"}, 192);
}

}  // namespace
}  // namespace horus
