// SPDX-License-Identifier: Apache-2.0
// Rules of the fingerprint: what makes two files one computation.

#include <gtest/gtest.h>

#include "graph/onnx_writer.h"
#include "graph/reader.h"

namespace horus {
namespace {

namespace w = onnx_writer;

uint64_t Print(const w::Bytes& model) { return ReadOnnx(w::Span(model)).value()->fingerprint; }
uint64_t Print(const w::GraphParts& parts) { return Print(w::Model(parts)); }

w::GraphParts ResizeNet(const w::Bytes& scales) {
  return {.nodes = {w::Node("Resize", {"x", "", "scales"}, {"y"})},
          .initialisers = {scales},
          .inputs = {w::Value("x", w::kFloat, {"batch", 3, 8, 8})},
          .outputs = {w::UntypedValue("y")}};
}
w::Bytes Scales(float scale) { return w::FloatTensor("scales", {4}, {1, 1, scale, scale}); }

TEST(Fingerprint, TellsScalesApart) {
  EXPECT_EQ(Print(ResizeNet(Scales(2))), Print(ResizeNet(Scales(2))));
  EXPECT_NE(Print(ResizeNet(Scales(2))), Print(ResizeNet(Scales(3))));
}

TEST(Fingerprint, TellsScalesOfConstantNodesApart) {
  const auto net = [](float scale) {
    w::GraphParts parts = ResizeNet(w::Tensor("unused", {4}, w::kFloat));
    parts.nodes.insert(parts.nodes.begin(),
                       w::Node("Constant", {}, {"scales"}, {w::TensorAttribute("value", Scales(scale))}));
    return parts;
  };
  EXPECT_NE(Print(net(2)), Print(net(3)));
}

// A size that is computed from floats: Shape, Cast, Mul, Cast.
TEST(Fingerprint, TellsFloatsOfShapeArithmeticApart) {
  const auto net = [](float factor, float weight) {
    return w::GraphParts{
        .nodes = {w::Node("Shape", {"x"}, {"s"}), w::Node("Cast", {"s"}, {"f"}, {w::IntAttribute("to", w::kFloat)}),
                  w::Node("Mul", {"f", "factor"}, {"m"}), w::Node("Floor", {"m"}, {"d"}),
                  w::Node("Cast", {"d"}, {"to"}, {w::IntAttribute("to", w::kInt64)}),
                  w::Node("Mul", {"weight", "weight"}, {"scaled"}), w::Node("Mul", {"x", "scaled"}, {"t"}),
                  w::Node("Expand", {"t", "to"}, {"y"})},
        .initialisers = {w::FloatTensor("factor", {1}, {factor}), w::FloatTensor("weight", {1}, {weight})},
        .inputs = {w::Value("x", w::kFloat, {1, 1})},
        .outputs = {w::UntypedValue("y")}};
  };
  EXPECT_NE(Print(net(2, 1)), Print(net(3, 1)));
  EXPECT_EQ(Print(net(2, 1)), Print(net(2, 5))) << "a weight that is transformed before its use stays a weight";
}

// An If whose branch runs `nodes` on outer values and gives `r`.
w::GraphParts InBranch(const std::vector<w::Bytes>& nodes, const std::vector<w::Bytes>& initialisers) {
  const w::Bytes branch = w::Graph({.nodes = nodes, .outputs = {w::UntypedValue("r")}, .name = "branch"});
  w::GraphParts parts = ResizeNet("");
  parts.nodes = {w::Node("If", {"c"}, {"y"},
                         {w::GraphAttribute("then_branch", branch), w::GraphAttribute("else_branch", branch)})};
  parts.initialisers = initialisers;
  parts.inputs.push_back(w::Value("c", w::kBool, {}));
  return parts;
}

TEST(Fingerprint, FollowsConstantsIntoSubgraphs) {
  const auto resize = [](float scale) {
    return InBranch({w::Node("Resize", {"x", "", "scales"}, {"r"})}, {Scales(scale)});
  };
  EXPECT_NE(Print(resize(2)), Print(resize(3)));
  const auto reshape = [](int64_t size) {
    return InBranch({w::Node("Reshape", {"x", "to"}, {"r"})}, {w::Int64Tensor("to", {2}, {-1, size})});
  };
  EXPECT_NE(Print(reshape(4)), Print(reshape(8)));
}

TEST(Fingerprint, IgnoresTheOrderOfInitialisersThatSubgraphsRead) {
  const std::vector<w::Bytes> nodes = {w::Node("Reshape", {"x", "to"}, {"s"}), w::Node("Add", {"s", "b"}, {"r"})};
  const w::Bytes to = w::Int64Tensor("to", {2}, {-1, 4});
  const w::Bytes bias = w::Tensor("b", {4}, w::kFloat);
  EXPECT_EQ(Print(InBranch(nodes, {to, bias})), Print(InBranch(nodes, {bias, to})));
}

TEST(Fingerprint, IgnoresRunningStatisticsAndBounds) {
  const auto net = [](float value) {
    return w::GraphParts{
        .nodes = {w::Node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"n"}), w::Node("Clip", {"n", "m"}, {"y"})},
        .initialisers = {w::FloatTensor("s", {1}, {value}), w::FloatTensor("b", {1}, {value}),
                         w::FloatTensor("m", {1}, {value}), w::FloatTensor("v", {1}, {value})},
        .inputs = {w::Value("x", w::kFloat, {"batch", 1, 8, 8})},
        .outputs = {w::UntypedValue("y")}};
  };
  EXPECT_EQ(Print(net(1)), Print(net(2))) << "two saves of one model are one computation";
}

TEST(Fingerprint, TakesDimensionsByName) {
  const auto net = [](const char* first, const char* second, const std::vector<w::Bytes>& infos) {
    return w::GraphParts{.nodes = {w::Node("Relu", {"x"}, {"t"}), w::Node("Abs", {"t"}, {"y"})},
                         .inputs = {w::Value("x", w::kFloat, {first, second})},
                         .outputs = {w::UntypedValue("y")},
                         .value_infos = infos};
  };
  EXPECT_NE(Print(net("batch", "seq", {})), Print(net("seq", "batch", {}))) << "a batch binds the other dimension";
  // The declaration of t stands before that of x, so that its names come first in the file.
  const w::GraphParts parts = net("batch", "seq", {});
  const w::Bytes info = w::Text(13, w::Value("t", w::kFloat, {"seq", "batch"}));
  EXPECT_EQ(Print(w::Model(info + w::Graph(parts))), Print(w::Model(w::Graph(parts) + info)));
}

TEST(Fingerprint, CountsDefaultsOfFunctionAttributes) {
  const auto net = [](int64_t axis) {
    const w::Bytes function = w::Function("my", "Block", {"a"}, {"b"},
                                          {w::Node("Flatten", {"a"}, {"b"}, {w::RefAttribute("axis", "where", 2)})}, {},
                                          {w::IntAttribute("where", axis)});
    const w::GraphParts parts = {.nodes = {w::Node("Block", {"x"}, {"y"}, {}, "", "my")},
                                 .inputs = {w::Value("x", w::kFloat, {2, 3, 4})},
                                 .outputs = {w::UntypedValue("y")}};
    return w::Model(w::Graph(parts), 18, 8, {function});
  };
  EXPECT_EQ(Print(net(1)), Print(net(1)));
  EXPECT_NE(Print(net(1)), Print(net(2)));
}

TEST(Fingerprint, KeepsListsOfAttributesApart) {
  const auto net = [](const std::vector<w::Bytes>& attributes) {
    return w::GraphParts{.nodes = {w::Node("Magic", {"x"}, {"t"}, attributes, "", "my"), w::Node("Relu", {"t"}, {"y"})},
                         .inputs = {w::Value("x", w::kFloat, {2})},
                         .outputs = {w::UntypedValue("y")}};
  };
  EXPECT_NE(Print(net({w::IntsAttribute("a", {1, 2})})), Print(net({w::IntsAttribute("a", {1})})));
  EXPECT_NE(Print(net({w::IntsAttribute("a", {1})})), Print(net({w::IntAttribute("a", 1)})));
}

}  // namespace
}  // namespace horus
