// SPDX-License-Identifier: Apache-2.0
// Shape arithmetic that exporters write into graphs: its values are folded.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
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

// What TensorFlow's "same" padding of timm becomes: pad = max((ceil(i / s) - 1) * s + (k - 1) * d + 1 - i, 0), halved
// downwards before and the rest behind. The floats go through Cast, Unsqueeze, Concat, Slice and Transpose to Pad.
std::vector<w::Bytes> SamePadding(const std::string& axis) {
  const auto name = [&axis](const char* what) { return axis + what; };
  return {w::Node("Gather", {"s", axis}, {name("i")}),
          w::Node("Cast", {name("i")}, {name("f")}, {w::IntAttribute("to", 1)}),
          w::Node("Div", {name("f"), "stride"}, {name("d")}),
          w::Node("Ceil", {name("d")}, {name("c")}),
          w::Node("Sub", {name("c"), "one"}, {name("m")}),
          w::Node("Mul", {name("m"), "stride"}, {name("r")}),
          w::Node("Add", {name("r"), "kernel"}, {name("e")}),
          w::Node("Sub", {name("e"), name("f")}, {name("p")}),
          w::Node("Clip", {name("p"), "zero"}, {name("pad")}),
          w::Node("Div", {name("pad"), "two"}, {name("h")}),
          w::Node("Cast", {name("h")}, {name("w")}, {w::IntAttribute("to", 7)}),
          w::Node("Cast", {name("w")}, {name("before")}, {w::IntAttribute("to", 1)}),
          w::Node("Sub", {name("pad"), name("before")}, {name("behind")}),
          w::Node("Unsqueeze", {name("before"), "first"}, {name("b1")}),
          w::Node("Unsqueeze", {name("behind"), "first"}, {name("b2")})};
}

TEST(Fold, SamePaddingOfTensorFlow) {
  std::vector<w::Bytes> nodes = {w::Node("Shape", {"x"}, {"s"})};
  for (const char* axis : {"2", "3"}) {
    for (w::Bytes& node : SamePadding(axis)) nodes.push_back(std::move(node));
  }
  nodes.push_back(w::Node("Concat", {"3b1", "3b2", "2b1", "2b2"}, {"pads"}, {w::IntAttribute("axis", 0)}));
  nodes.push_back(w::Node("Cast", {"pads"}, {"whole"}, {w::IntAttribute("to", 7)}));
  nodes.push_back(w::Node("Concat", {"whole", "none"}, {"all"}, {w::IntAttribute("axis", 0)}));
  nodes.push_back(w::Node("Reshape", {"all", "pairs"}, {"table"}));
  nodes.push_back(w::Node("Slice", {"table", "last", "least", "first", "back"}, {"turned"}));
  nodes.push_back(w::Node("Transpose", {"turned"}, {"columns"}, {w::IntsAttribute("perm", {1, 0})}));
  nodes.push_back(w::Node("Reshape", {"columns", "flat"}, {"onnx_pads"}));
  nodes.push_back(w::Node("Pad", {"x", "onnx_pads"}, {"y"}));
  const auto graph = ReadOnnx(w::Span(w::Model(
      {.nodes = nodes,
       .initialisers = {w::Int64Tensor("2", {}, {2}), w::Int64Tensor("3", {}, {3}), w::FloatTensor("stride", {}, {2}),
                        w::FloatTensor("one", {}, {1}), w::FloatTensor("kernel", {}, {5}),
                        w::FloatTensor("zero", {}, {0}), w::FloatTensor("two", {}, {2}),
                        w::Int64Tensor("first", {1}, {0}), w::Int64Tensor("none", {4}, {0, 0, 0, 0}),
                        w::Int64Tensor("pairs", {2}, {-1, 2}), w::Int64Tensor("last", {1}, {-1}),
                        w::Int64Tensor("least", {1}, {std::numeric_limits<int64_t>::min() + 1}),
                        w::Int64Tensor("back", {1}, {-1}), w::Int64Tensor("flat", {1}, {-1})},
       .inputs = {w::Value("x", w::kFloat, {"batch", 3, "height", "width"})},
       .outputs = {w::UntypedValue("y")}})));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto padded = [&graph](int64_t height, int64_t width) {
    const auto shaped = BindShapes(*graph, {.batch = 2, .dims = {{"height", height}, {"width", width}}});
    EXPECT_TRUE(shaped.ok()) << shaped.status();
    return shaped.ok() ? shaped->tensors[shaped->outputs[0].value()].dims : Shape{};
  };
  EXPECT_EQ(padded(224, 224), (Shape{2, 3, 227, 227}));  // 111 * 2 + 5 - 224 = 3
  EXPECT_EQ(padded(112, 75), (Shape{2, 3, 115, 79}));    // an odd size takes one more
  EXPECT_EQ(padded(1, 2), (Shape{2, 3, 5, 5}));
}

// The value of `node`, which reads the floats a and b, as a size; unknown where the result is no finite number.
Shape OfFloats(const w::Bytes& node, const std::vector<float>& a, const std::vector<float>& b) {
  return Folded({node, w::Node("Cast", {"r"}, {"v"}, {w::IntAttribute("to", 7)})},
                {w::FloatTensor("a", {static_cast<int64_t>(a.size())}, a),
                 w::FloatTensor("b", {static_cast<int64_t>(b.size())}, b), w::FloatTensor("low", {}, {1}),
                 w::FloatTensor("high", {}, {4})});
}

TEST(Fold, FloatArithmetic) {
  EXPECT_EQ(OfFloats(w::Node("Concat", {"a", "b"}, {"r"}, {w::IntAttribute("axis", 0)}), {2}, {3, 4}),
            (Shape{2, 3, 4}));
  EXPECT_EQ(OfFloats(w::Node("Clip", {"a", "low", "high"}, {"r"}), {0, 2, 7}, {}), (Shape{1, 2, 4}));
  EXPECT_EQ(OfFloats(w::Node("Clip", {"a", "high", "low"}, {"r"}), {0, 2, 7}, {}), (Shape{1, 1, 1}));
  EXPECT_EQ(OfFloats(w::Node("Relu", {"a"}, {"r"}), {-2, 2}, {}), (Shape{0, 2}));
  EXPECT_EQ(OfFloats(w::Node("Max", {"a", "b", "low"}, {"r"}), {0, 5}, {3, 2}), (Shape{3, 5}));
  EXPECT_EQ(OfFloats(w::Node("Min", {"a", "b", "high"}, {"r"}), {9, 5}, {6, 2}), (Shape{4, 2}));
  EXPECT_EQ(OfFloats(w::Node("Split", {"a"}, {"r", "rest"}), {7, 8}, {}), (Shape{7}));
  // In float32, as ONNX does: in double precision 0.7 * 10 would stay below 7.
  EXPECT_EQ(OfFloats(w::Node("Mul", {"a", "b"}, {"r"}), {0.7f}, {10}), (Shape{7}));
}

TEST(Fold, WhereOfFloats) {
  const std::vector<w::Bytes> nodes = {w::Node("Less", {"a", "b"}, {"c"}), w::Node("Where", {"c", "a", "b"}, {"r"}),
                                       w::Node("Cast", {"r"}, {"v"}, {w::IntAttribute("to", 7)})};
  EXPECT_EQ(Folded(nodes, {w::FloatTensor("a", {2}, {2, 9}), w::FloatTensor("b", {2}, {4, 4})}), (Shape{2, 4}));
}

TEST(Fold, FloatsThatAreNoNumbersStayUnknown) {
  const float most = std::numeric_limits<float>::max();
  EXPECT_EQ(OfFloats(w::Node("Div", {"a", "b"}, {"r"}), {1}, {0}), (Shape{kUnknownDim}));
  EXPECT_EQ(OfFloats(w::Node("Div", {"a", "b"}, {"r"}), {0}, {0}), (Shape{kUnknownDim}));
  // An infinite element would come back into range here.
  EXPECT_EQ(Folded({w::Node("Mul", {"a", "a"}, {"i"}), w::Node("Clip", {"i", "", "high"}, {"r"}),
                    w::Node("Cast", {"r"}, {"v"}, {w::IntAttribute("to", 7)})},
                   {w::FloatTensor("a", {1}, {most}), w::FloatTensor("high", {}, {4})}),
            (Shape{kUnknownDim}));
  EXPECT_EQ(OfFloats(w::Node("Sqrt", {"a"}, {"r"}), {-1}, {}), (Shape{kUnknownDim}));
}

TEST(Fold, NarrowIntegersDoNotWrapAround) {
  const std::vector<w::Bytes> nodes = {w::Node("Shape", {"x"}, {"s"}),
                                       w::Node("Cast", {"s"}, {"n"}, {w::IntAttribute("to", w::kInt8)}),
                                       w::Node("Mul", {"n", "n"}, {"m"}), w::Node("Mul", {"m", "n"}, {"p"}),
                                       w::Node("Cast", {"p"}, {"v"}, {w::IntAttribute("to", 7)})};
  EXPECT_EQ(Folded(nodes, {}), (Shape{kUnknownDim, 64}));  // 6 * 6 * 6 = 216 does not fit 8 bits
}

TEST(Fold, HalfPrecisionIsFoldedWhereItIsExact) {
  const auto through_half = [](int64_t size) {
    return Folded({w::Node("Cast", {"n"}, {"h"}, {w::IntAttribute("to", w::kHalf)}),
                   w::Node("Cast", {"h"}, {"v"}, {w::IntAttribute("to", 7)})},
                  {w::Int64Tensor("n", {1}, {size})});
  };
  EXPECT_EQ(through_half(2048), (Shape{2048}));
  EXPECT_EQ(through_half(2049), (Shape{kUnknownDim}));  // 11 bits hold no odd number above 2048
  EXPECT_EQ(through_half(65536), (Shape{kUnknownDim}));
}

TEST(Fold, ConcatOfTablesKeepsRows) {
  EXPECT_EQ(Folded({w::Node("Concat", {"a", "b"}, {"t"}, {w::IntAttribute("axis", 1)}),
                    w::Node("Reshape", {"t", "flat"}, {"v"})},
                   {w::Int64Tensor("a", {2, 1}, {1, 4}), w::Int64Tensor("b", {2, 2}, {2, 3, 5, 6}),
                    w::Int64Tensor("flat", {1}, {-1})}),
            (Shape{1, 2, 3, 4, 5, 6}));
}

TEST(Fold, PadsTakeASizeThatTheDataDecidesAtItsMost) {
  const auto graph =
      ReadOnnx(w::Span(w::Model({.nodes = {w::Node("NonZero", {"x"}, {"n"}), w::Node("Shape", {"n"}, {"s"}),
                                           w::Node("Concat", {"s", "s"}, {"pads"}, {w::IntAttribute("axis", 0)}),
                                           w::Node("Pad", {"x", "pads"}, {"y"})},
                                 .inputs = {w::Value("x", w::kFloat, {6, 4})},
                                 .outputs = {w::UntypedValue("y")}})));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto shaped = BindShapes(*graph, {});
  ASSERT_TRUE(shaped.ok()) << shaped.status();
  EXPECT_EQ(shaped->tensors[shaped->outputs[0].value()].dims,
            (Shape{10, 4 + 2 * 24}));  // what NonZero finds, at its most
}

}  // namespace
}  // namespace horus
