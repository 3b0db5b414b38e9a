// SPDX-License-Identifier: Apache-2.0
// Shape arithmetic that exporters write into graphs: its values are folded.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "graph/onnx_writer.h"
#include "graph/reader.h"
#include "graph/shaped.h"

namespace horus {
namespace {

namespace w = onnx_writer;
using Shape = std::vector<int64_t>;

// Shape arithmetic: the expression's value becomes the target of an Expand, whose output dims show it.
Shape Folded(const std::vector<w::Bytes>& nodes, const std::vector<w::Bytes>& constants) {
  w::GraphParts parts{.nodes = nodes, .initialisers = constants, .inputs = {w::Value("x", w::kFloat, {6, 4})}};
  parts.initialisers.push_back(w::FloatTensor("one", {}, {1}));
  parts.nodes.push_back(w::Node("Expand", {"one", "v"}, {"y"}));
  parts.outputs = {w::UntypedValue("y")};
  const auto graph = ReadOnnx(w::Span(w::Model(parts, 13)));
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  const auto shaped = BindShapes(*graph, {});
  EXPECT_TRUE(shaped.ok()) << shaped.status();
  return shaped.ok() ? shaped->tensors[shaped->outputs[0].value()].dims : Shape{};
}

TEST(Fold, ShapeArithmetic) {
  const w::Bytes shape = w::Node("Shape", {"x"}, {"s"});
  const w::Bytes two = w::Int64Tensor("two", {1}, {2});
  EXPECT_EQ(Folded({shape, w::Node("Div", {"s", "two"}, {"v"})}, {two}), (Shape{3, 2}));
  EXPECT_EQ(Folded({shape, w::Node("Mul", {"s", "two"}, {"v"})}, {two}), (Shape{12, 8}));
  EXPECT_EQ(Folded({shape, w::Node("Add", {"s", "two"}, {"v"})}, {two}), (Shape{8, 6}));
  EXPECT_EQ(Folded({shape, w::Node("Sub", {"s", "two"}, {"v"})}, {two}), (Shape{4, 2}));
  EXPECT_EQ(Folded({shape, w::Node("ReduceProd", {"s"}, {"v"}, {w::IntAttribute("keepdims", 1)})}, {}), (Shape{24}));
  EXPECT_EQ(Folded({shape, w::Node("Cast", {"s"}, {"f"}, {w::IntAttribute("to", 1)}), w::Node("Mul", {"f", "k"}, {"g"}),
                    w::Node("Floor", {"g"}, {"h"}), w::Node("Cast", {"h"}, {"v"}, {w::IntAttribute("to", 7)})},
                   {w::FloatTensor("k", {1}, {0.5f})}),
            (Shape{3, 2}));
  EXPECT_EQ(Folded({shape, w::Node("Equal", {"s", "four"}, {"c"}), w::Node("Where", {"c", "two", "s"}, {"v"})},
                   {two, w::Int64Tensor("four", {1}, {4})}),
            (Shape{6, 2}));
  EXPECT_EQ(Folded({shape, w::Node("Slice", {"s", "from", "to"}, {"a"}),
                    w::Node("Concat", {"a", "two", "a"}, {"v"}, {w::IntAttribute("axis", 0)})},
                   {two, w::Int64Tensor("from", {1}, {1}), w::Int64Tensor("to", {1}, {2})}),
            (Shape{4, 2, 4}));
  EXPECT_EQ(Folded({shape, w::Node("Split", {"s"}, {"v", "rest"})}, {}), (Shape{6}));
}

// Multiples of the step that do not fit 64 bits, though each element does: the undefined-behaviour sanitiser tells.
TEST(Fold, RangeReachesOverAllNumbers) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min() + 1;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kQuarter = int64_t{1} << 62;
  EXPECT_EQ(Folded({w::Node("Range", {"least", "most", "quarter"}, {"r"}), w::Node("Gather", {"r", "three"}, {"last"}),
                    w::Node("Sub", {"last", "most_of_it"}, {"v"})},
                   {w::Int64Tensor("least", {}, {kLeast}), w::Int64Tensor("most", {}, {kMost}),
                    w::Int64Tensor("quarter", {}, {kQuarter}), w::Int64Tensor("three", {1}, {3}),
                    w::Int64Tensor("most_of_it", {1}, {kQuarter - 4})}),
            (Shape{5}));
}

TEST(Fold, IntegerOverflowGivesUnknownNotRubbish) {
  const w::Bytes big = w::Int64Tensor("big", {1}, {std::numeric_limits<int64_t>::max()});
  EXPECT_EQ(Folded({w::Node("Mul", {"big", "big"}, {"v"})}, {big}), (Shape{kUnknownDim}));
  EXPECT_EQ(Folded({w::Node("Div", {"big", "zero"}, {"v"})}, {big, w::Int64Tensor("zero", {1}, {0})}),
            (Shape{kUnknownDim}));
}

}  // namespace
}  // namespace horus
