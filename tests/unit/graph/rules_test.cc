// SPDX-License-Identifier: Apache-2.0
// Shape rules by family of operators: what they give, and which shapes they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_split.h"
#include "graph/onnx_writer.h"
#include "graph/reader.h"
#include "graph/shape_rule.h"
#include "graph/shaped.h"

namespace horus {
namespace {

namespace w = onnx_writer;
using ::testing::HasSubstr;
using Shape = std::vector<int64_t>;

// One operator under test: float inputs by shape, integer or float constants by value, all in order of its inputs.
class Case {
 public:
  explicit Case(std::string op, int64_t opset = 17, std::string domain = "")
      : op_(std::move(op)), domain_(std::move(domain)), opset_(opset) {}
  Case& In(const Shape& dims) {
    inputs_.push_back("i" + std::to_string(inputs_.size()));
    parts_.inputs.push_back(w::Value(inputs_.back(), w::kFloat, std::vector<w::Dim>(dims.begin(), dims.end())));
    return *this;
  }
  Case& Ints(const std::vector<int64_t>& values) {
    inputs_.push_back("i" + std::to_string(inputs_.size()));
    parts_.initialisers.push_back(w::Int64Tensor(inputs_.back(), {static_cast<int64_t>(values.size())}, values));
    return *this;
  }
  Case& Scalar(int64_t value) {
    inputs_.push_back("i" + std::to_string(inputs_.size()));
    parts_.initialisers.push_back(w::Int64Tensor(inputs_.back(), {}, {value}));
    return *this;
  }
  Case& Floats(const std::vector<float>& values) {
    inputs_.push_back("i" + std::to_string(inputs_.size()));
    parts_.initialisers.push_back(w::FloatTensor(inputs_.back(), {static_cast<int64_t>(values.size())}, values));
    return *this;
  }
  Case& Skip() {
    inputs_.emplace_back();
    return *this;
  }
  Case& With(const std::string& name, int64_t value) {
    attributes_.push_back(w::IntAttribute(name, value));
    return *this;
  }
  Case& With(const std::string& name, const Shape& values) {
    attributes_.push_back(w::IntsAttribute(name, values));
    return *this;
  }
  Case& WithText(const std::string& name, std::string_view text) {
    attributes_.push_back(w::TextAttribute(name, text));
    return *this;
  }
  Case& Outputs(size_t count) {
    outputs_ = count;
    return *this;
  }

  [[nodiscard]] absl::StatusOr<std::vector<Shape>> Run() const {
    w::GraphParts parts = parts_;
    std::vector<std::string> outputs;
    for (size_t i = 0; i < outputs_; ++i) outputs.push_back("o" + std::to_string(i));
    for (const std::string& output : outputs) parts.outputs.push_back(w::UntypedValue(output));
    parts.nodes = {w::Node(op_, inputs_, outputs, attributes_, "", domain_)};
    const auto graph = ReadOnnx(w::Span(w::Model(parts, opset_)));
    if (!graph.ok()) return graph.status();
    const auto shaped = BindShapes(*graph, {});
    if (!shaped.ok()) return shaped.status();
    EXPECT_TRUE(shaped->ops.at(0).supported) << op_;
    std::vector<Shape> shapes;
    for (const TensorId t : shaped->outputs) shapes.push_back(shaped->tensors[t.value()].dims);
    return shapes;
  }
  [[nodiscard]] Shape Gives() const {
    const auto shapes = Run();
    EXPECT_TRUE(shapes.ok()) << op_ << ": " << shapes.status();
    return shapes.ok() ? shapes->at(0) : Shape{-99};
  }
  [[nodiscard]] std::string Refuses() const { return std::string(Run().status().message()); }

 private:
  std::string op_, domain_;
  int64_t opset_;
  w::GraphParts parts_;
  std::vector<std::string> inputs_;
  std::vector<w::Bytes> attributes_;
  size_t outputs_ = 1;
};

TEST(Rules, KnowAtLeast150OperatorsOfTheDefaultDomain) {
  size_t count = 3;  // If, Loop, Scan are expanded, not ruled
  std::map<std::string, int> seen;
  for (const auto list : {PointwiseRules(), ConvolutionRules(), MatrixRules(), LayoutRules(), GeneratorRules()}) {
    for (const RuleEntry& entry : list) {
      if (!entry.domain.empty()) continue;
      for (const std::string& name : std::vector<std::string>(absl::StrSplit(entry.operators.data(), ' '))) {
        ++count;
        EXPECT_EQ(++seen[name], 1) << name << " has two rules";
      }
    }
  }
  EXPECT_GE(count, 150u);
}

TEST(Rules, Elementwise) {
  EXPECT_EQ(Case("Add").In({4, 1, 3}).In({2, 1}).Gives(), (Shape{4, 2, 3}));
  EXPECT_EQ(Case("Where").In({3}).In({2, 1}).In({1, 1, 1}).Gives(), (Shape{1, 2, 3}));
  EXPECT_EQ(Case("Sum").In({2, 1}).In({3}).In({1}).Gives(), (Shape{2, 3}));
  EXPECT_EQ(Case("PRelu").In({2, 4, 5}).In({4, 1}).Gives(), (Shape{2, 4, 5}));
  EXPECT_EQ(Case("Dropout").In({2, 4}).Outputs(2).Run().value(), (std::vector<Shape>{{2, 4}, {2, 4}}));
  EXPECT_THAT(Case("Add").In({4, 3}).In({2, 3}).Refuses(), HasSubstr("[4,3] and [2,3] do not broadcast"));
  EXPECT_THAT(Case("PRelu").In({2}).In({3, 2}).Refuses(), HasSubstr("slope"));
}

TEST(Rules, Convolution) {
  EXPECT_EQ(
      Case("Conv").In({1, 3, 224, 224}).In({64, 3, 7, 7}).With("strides", {2, 2}).With("pads", {3, 3, 3, 3}).Gives(),
      (Shape{1, 64, 112, 112}));
  EXPECT_EQ(Case("Conv").In({1, 6, 9}).In({6, 1, 3}).With("group", 6).With("dilations", Shape{2}).Gives(),
            (Shape{1, 6, 5}));
  EXPECT_EQ(
      Case("Conv").In({1, 3, 7, 7}).In({8, 3, 3, 3}).WithText("auto_pad", "SAME_UPPER").With("strides", {2, 2}).Gives(),
      (Shape{1, 8, 4, 4}));
  EXPECT_EQ(Case("Conv").In({1, 3, 7, 7}).In({8, 3, 3, 3}).WithText("auto_pad", "VALID").Gives(), (Shape{1, 8, 5, 5}));
  EXPECT_EQ(Case("Conv").In({1, 3, 4, 5, 6}).In({2, 3, 3, 3, 3}).Gives(), (Shape{1, 2, 2, 3, 4}));
  EXPECT_THAT(Case("Conv").In({1, 4, 8, 8}).In({8, 3, 3, 3}).Refuses(), HasSubstr("4 channels"));
  EXPECT_THAT(Case("Conv").In({1, 3, 2, 2}).In({8, 3, 3, 3}).Refuses(), HasSubstr("does not fit"));
  EXPECT_THAT(Case("Conv").In({1, 3, 8, 8}).In({8, 3, 3, 3}).With("strides", {0, 1}).Refuses(),
              HasSubstr("strides holds 0"));
  EXPECT_THAT(Case("Conv").In({1, 3, 8, 8}).In({8, 3, 3, 3}).With("kernel_shape", {5, 5}).Refuses(),
              HasSubstr("kernel_shape"));
  EXPECT_THAT(Case("Conv").In({1, 3, 8, 8}).In({8, 3, 3, 3}).In({4}).Refuses(), HasSubstr("bias"));
  EXPECT_THAT(Case("Conv").In({1, 4, 8, 8}).In({9, 2, 3, 3}).With("group", 2).Refuses(), HasSubstr("2 groups"));
}

TEST(Rules, TransposedConvolution) {
  EXPECT_EQ(Case("ConvTranspose")
                .In({1, 8, 4, 4})
                .In({8, 2, 4, 4})
                .With("strides", {2, 2})
                .With("pads", {1, 1, 1, 1})
                .Gives(),
            (Shape{1, 2, 8, 8}));
  EXPECT_EQ(Case("ConvTranspose")
                .In({1, 8, 4})
                .In({8, 2, 3})
                .With("group", 4)
                .With("strides", Shape{2})
                .With("output_padding", Shape{1})
                .Gives(),
            (Shape{1, 8, 10}));
  EXPECT_THAT(Case("ConvTranspose").In({1, 8, 4, 4}).In({4, 2, 4, 4}).Refuses(),
              HasSubstr("expected 4 input channels"));
}

TEST(Rules, Pooling) {
  EXPECT_EQ(Case("MaxPool")
                .In({1, 64, 112, 112})
                .With("kernel_shape", {3, 3})
                .With("strides", {2, 2})
                .With("pads", {1, 1, 1, 1})
                .Gives(),
            (Shape{1, 64, 56, 56}));
  EXPECT_EQ(Case("MaxPool")
                .In({1, 1, 6, 6})
                .With("kernel_shape", {3, 3})
                .With("strides", {2, 2})
                .With("ceil_mode", 1)
                .Gives(),
            (Shape{1, 1, 3, 3}));
  EXPECT_EQ(Case("MaxPool")
                .In({1, 1, 5, 5})
                .With("kernel_shape", {1, 1})
                .With("strides", {3, 3})
                .With("ceil_mode", 1)
                .With("pads", {0, 0, 1, 1})
                .Gives(),
            (Shape{1, 1, 2, 2}))
      << "a window that would start in the trailing padding does not count";
  EXPECT_EQ(Case("GlobalAveragePool").In({2, 7, 5, 5}).Gives(), (Shape{2, 7, 1, 1}));
  EXPECT_THAT(Case("AveragePool").In({1, 1, 5, 5}).Refuses(), HasSubstr("kernel_shape is missing"));
}

TEST(Rules, MatrixProducts) {
  EXPECT_EQ(Case("MatMul").In({5, 1, 2, 3}).In({4, 3, 6}).Gives(), (Shape{5, 4, 2, 6}));
  EXPECT_EQ(Case("MatMul").In({3}).In({3, 6}).Gives(), (Shape{6}));
  EXPECT_EQ(Case("MatMul").In({2, 3}).In({3}).Gives(), (Shape{2}));
  EXPECT_EQ(Case("MatMul").In({3}).In({3}).Gives(), Shape{});
  EXPECT_EQ(Case("Gemm").In({3, 2}).In({5, 3}).With("transA", 1).With("transB", 1).In({5}).Gives(), (Shape{2, 5}));
  EXPECT_EQ(Case("Einsum").In({2, 8, 10, 64}).In({2, 8, 12, 64}).WithText("equation", "bhqd, bhkd -> bhqk").Gives(),
            (Shape{2, 8, 10, 12}));
  EXPECT_EQ(Case("Einsum").In({7, 2, 3}).In({3, 4}).WithText("equation", "...ij,jk->...ik").Gives(), (Shape{7, 2, 4}));
  EXPECT_EQ(Case("Einsum").In({2, 3}).In({3, 4}).WithText("equation", "ij,jk").Gives(), (Shape{2, 4}));
  EXPECT_EQ(Case("FusedMatMul", 17, "com.microsoft").In({2, 3, 4}).In({2, 5, 4}).With("transB", 1).Gives(),
            (Shape{2, 3, 5}));
  EXPECT_THAT(Case("MatMul").In({2, 3}).In({4, 5}).Refuses(), HasSubstr("inner sizes 3 and 4 differ"));
  EXPECT_THAT(Case("Gemm").In({2, 3}).In({3, 5}).In({4}).Refuses(), HasSubstr("broadcast"));
  EXPECT_THAT(Case("Einsum").In({2, 3}).In({4, 5}).WithText("equation", "ij,jk->ik").Refuses(), HasSubstr("letter j"));
}

TEST(Rules, Reductions) {
  EXPECT_EQ(Case("ReduceMean").In({2, 3, 4}).With("axes", Shape{-1}).With("keepdims", 0).Gives(), (Shape{2, 3}));
  EXPECT_EQ(Case("ReduceMean", 18).In({2, 3, 4}).Ints({1}).Gives(), (Shape{2, 1, 4}));
  EXPECT_EQ(Case("ReduceSum", 13).In({2, 3, 4}).Ints({0, 2}).With("keepdims", 0).Gives(), (Shape{3}));
  EXPECT_EQ(Case("ReduceSum", 13).In({2, 3}).With("noop_with_empty_axes", 1).Gives(), (Shape{2, 3}));
  EXPECT_EQ(Case("ReduceMax").In({2, 3}).Gives(), (Shape{1, 1}));
  EXPECT_EQ(Case("ArgMax").In({2, 3}).With("axis", 1).With("keepdims", 0).Gives(), (Shape{2}));
  EXPECT_THAT(Case("ReduceMean").In({2, 3}).With("axes", Shape{2}).Refuses(), HasSubstr("axis 2 is outside"));
  EXPECT_THAT(Case("ReduceMean").In({2, 3}).With("axes", Shape{1, -1}).Refuses(), HasSubstr("twice"));
}

TEST(Rules, Normalisations) {
  EXPECT_EQ(Case("LayerNormalization").In({2, 5, 8}).In({8}).In({8}).Outputs(3).Run().value(),
            (std::vector<Shape>{{2, 5, 8}, {2, 5, 1}, {2, 5, 1}}));
  EXPECT_EQ(Case("Softmax").In({2, 5}).With("axis", -1).Gives(), (Shape{2, 5}));
  EXPECT_EQ(Case("SoftmaxCrossEntropyLoss").In({2, 5, 7}).In({2, 7}).WithText("reduction", "none").Gives(),
            (Shape{2, 7}));
  EXPECT_EQ(Case("SoftmaxCrossEntropyLoss").In({2, 5}).In({2}).Gives(), Shape{});
  EXPECT_THAT(Case("LayerNormalization").In({2, 5, 8}).In({7}).In({8}).Refuses(), HasSubstr("[7]"));
  EXPECT_THAT(Case("BatchNormalization").In({2, 5, 8}).In({4}).In({5}).In({5}).In({5}).Refuses(),
              HasSubstr("each channel"));
  EXPECT_THAT(Case("Softmax").In({2, 5}).With("axis", 2).Refuses(), HasSubstr("axis 2"));
}

TEST(Rules, Views) {
  EXPECT_EQ(Case("Reshape").In({2, 3, 4}).Ints({0, -1}).Gives(), (Shape{2, 12}));
  EXPECT_EQ(Case("Reshape", 14).In({0, 4}).Ints({2, 0}).With("allowzero", 1).Gives(), (Shape{2, 0}));
  EXPECT_EQ(Case("Flatten").In({2, 3, 4}).With("axis", -1).Gives(), (Shape{6, 4}));
  EXPECT_EQ(Case("Flatten").In({2, 3, 4}).With("axis", 0).Gives(), (Shape{1, 24}));
  EXPECT_EQ(Case("Squeeze", 13).In({1, 3, 1}).Ints({-1}).Gives(), (Shape{1, 3}));
  EXPECT_EQ(Case("Squeeze", 11).In({1, 3, 1}).Gives(), (Shape{3}));
  EXPECT_EQ(Case("Unsqueeze", 13).In({3}).Ints({0, -1}).Gives(), (Shape{1, 3, 1}));
  EXPECT_EQ(Case("Unsqueeze", 11).In({3}).With("axes", Shape{1}).Gives(), (Shape{3, 1}));
  EXPECT_EQ(Case("Transpose").In({2, 3, 4}).With("perm", {1, 2, 0}).Gives(), (Shape{3, 4, 2}));
  EXPECT_EQ(Case("Transpose").In({2, 3, 4}).Gives(), (Shape{4, 3, 2}));
  EXPECT_THAT(Case("Reshape").In({2, 3}).Ints({4}).Refuses(),
              HasSubstr("6 elements, which do not fit the new shape [4]"));
  EXPECT_THAT(Case("Reshape").In({2, 3}).Ints({-1, -1}).Refuses(), HasSubstr("two entries of -1"));
  EXPECT_THAT(Case("Reshape").In({2, 3}).Ints({2, 3, 0}).Refuses(), HasSubstr("lacks"));
  EXPECT_THAT(Case("Squeeze", 13).In({2, 3}).Ints({0}).Refuses(), HasSubstr("expected 1"));
  EXPECT_THAT(Case("Transpose").In({2, 3}).With("perm", {0, 0}).Refuses(), HasSubstr("twice"));
}

TEST(Rules, JoiningAndCutting) {
  EXPECT_EQ(Case("Concat").In({2, 3}).In({2, 5}).With("axis", -1).Gives(), (Shape{2, 8}));
  EXPECT_EQ(Case("Split", 13).In({6, 4}).Ints({1, 5}).Outputs(2).Run().value(), (std::vector<Shape>{{1, 4}, {5, 4}}));
  EXPECT_EQ(Case("Split", 18).In({7, 4}).With("num_outputs", 3).Outputs(3).Run().value(),
            (std::vector<Shape>{{3, 4}, {3, 4}, {1, 4}}));
  EXPECT_EQ(Case("Slice", 13).In({10, 8}).Ints({1}).Ints({-1}).Ints({0}).Ints({3}).Gives(), (Shape{3, 8}));
  EXPECT_EQ(
      Case("Slice", 13).In({10}).Ints({-1}).Ints({std::numeric_limits<int64_t>::min()}).Ints({0}).Ints({-1}).Gives(),
      (Shape{10}));
  EXPECT_EQ(Case("Slice", 9).In({10, 8}).With("starts", {0, 2}).With("ends", {5, 100}).Gives(), (Shape{5, 6}));
  EXPECT_EQ(Case("Pad", 13).In({2, 3}).Ints({0, 1, 0, 2}).Gives(), (Shape{2, 6}));
  EXPECT_EQ(Case("Pad", 10).In({2, 3}).With("pads", {1, 0, 1, -1}).Gives(), (Shape{4, 2}));
  EXPECT_EQ(Case("Tile").In({2, 3}).Ints({2, 1}).Gives(), (Shape{4, 3}));
  EXPECT_EQ(Case("Expand").In({3, 1}).Ints({2, 1, 6}).Gives(), (Shape{2, 3, 6}));
  EXPECT_EQ(Case("DepthToSpace").In({1, 8, 2, 3}).With("blocksize", 2).Gives(), (Shape{1, 2, 4, 6}));
  EXPECT_EQ(Case("SpaceToDepth").In({1, 2, 4, 6}).With("blocksize", 2).Gives(), (Shape{1, 8, 2, 3}));
  EXPECT_THAT(Case("Concat").In({2, 3}).In({4, 5}).With("axis", 1).Refuses(), HasSubstr("differ in axis 0"));
  EXPECT_THAT(Case("Split", 13).In({6}).Ints({1, 4}).Outputs(2).Refuses(), HasSubstr("adds up to 5"));
  EXPECT_THAT(Case("Slice", 13).In({6}).Ints({0}).Ints({4}).Ints({0}).Ints({0}).Refuses(), HasSubstr("step 0"));
  EXPECT_THAT(Case("Pad", 13).In({2, 3}).Ints({0, 1}).Refuses(), HasSubstr("pads has 2 entries"));
}

TEST(Rules, PickingElements) {
  EXPECT_EQ(Case("Gather").In({100, 16}).Ints({1, 2, 3}).Gives(), (Shape{3, 16}));
  EXPECT_EQ(Case("Gather").In({100, 16}).Scalar(0).With("axis", 1).Gives(), (Shape{100}));
  EXPECT_EQ(Case("GatherND").In({2, 3, 4}).In({5, 2}).Gives(), (Shape{5, 4}));
  EXPECT_EQ(Case("GatherElements").In({2, 3}).In({2, 2}).Gives(), (Shape{2, 2}));
  EXPECT_EQ(Case("TopK").In({2, 9}).Ints({4}).Outputs(2).Run().value(), (std::vector<Shape>{{2, 4}, {2, 4}}));
  EXPECT_EQ(Case("OneHot").In({2, 3}).Scalar(10).Floats({0, 1}).Gives(), (Shape{2, 3, 10}));
  EXPECT_EQ(Case("NonMaxSuppression").In({2, 9, 4}).In({2, 5, 9}).Ints({3}).Gives(), (Shape{2 * 5 * 3, 3}));
  EXPECT_EQ(Case("NonMaxSuppression").In({2, 9, 4}).In({2, 5, 9}).Ints({300}).Gives(), (Shape{2 * 5 * 9, 3}));
  EXPECT_EQ(Case("NonZero").In({3, 4}).Gives(), (Shape{2, 12}));
  EXPECT_EQ(Case("Compress").In({6, 4}).In({6}).With("axis", 0).Gives(), (Shape{6, 4}));
  EXPECT_EQ(Case("Unique").In({6, 4}).With("axis", 1).Gives(), (Shape{6, 4}));
  EXPECT_EQ(Case("NonZero").Ints({0, 5, 0, 6}).Gives(), (Shape{1, 2}));
  EXPECT_THAT(Case("Gather").In({4}).Ints({4}).Refuses(), HasSubstr("index 4 is outside"));
  EXPECT_THAT(Case("TopK").In({2, 3}).Ints({4}).Refuses(), HasSubstr("k is 4"));
}

TEST(Rules, MakingTensors) {
  EXPECT_EQ(Case("ConstantOfShape").Ints({2, 3}).Gives(), (Shape{2, 3}));
  EXPECT_EQ(Case("Range").Scalar(2).Scalar(11).Scalar(3).Gives(), (Shape{3}));
  EXPECT_EQ(Case("Range").Scalar(5).Scalar(0).Scalar(-2).Gives(), (Shape{3}));
  EXPECT_EQ(Case("RandomNormal").With("shape", {2, 3}).Gives(), (Shape{2, 3}));
  EXPECT_EQ(Case("Shape", 15).In({2, 3, 4}).With("start", 1).Gives(), (Shape{2}));
  EXPECT_EQ(Case("Size").In({2, 3, 4}).Gives(), Shape{});
  EXPECT_EQ(Case("Constant").With("value_ints", {1, 2, 3}).Gives(), (Shape{3}));
  EXPECT_THAT(Case("ConstantOfShape").Ints({-2}).Refuses(), HasSubstr("-2"));
  EXPECT_THAT(Case("Range").Scalar(0).Scalar(9).Scalar(0).Refuses(), HasSubstr("delta is 0"));
}

TEST(Rules, Resampling) {
  EXPECT_EQ(Case("Resize", 13).In({1, 3, 5, 6}).Skip().Floats({1, 1, 2, 1.5f}).Gives(), (Shape{1, 3, 10, 9}));
  EXPECT_EQ(Case("Resize", 13).In({1, 3, 5, 6}).Skip().Skip().Ints({1, 3, 7, 7}).Gives(), (Shape{1, 3, 7, 7}));
  EXPECT_EQ(Case("Resize", 18)
                .In({1, 3, 5, 10})
                .Skip()
                .Skip()
                .Ints({20, 20})
                .With("axes", {2, 3})
                .WithText("keep_aspect_ratio_policy", "not_larger")
                .Gives(),
            (Shape{1, 3, 10, 20}));
  EXPECT_EQ(Case("Upsample", 9).In({1, 3, 5, 6}).Floats({1, 1, 2, 2}).Gives(), (Shape{1, 3, 10, 12}));
  EXPECT_EQ(Case("GridSample", 16).In({1, 3, 5, 6}).In({1, 7, 8, 2}).Gives(), (Shape{1, 3, 7, 8}));
  EXPECT_THAT(Case("Resize", 13).In({1, 3, 5, 6}).Skip().Floats({1, 1, -2, 1}).Refuses(), HasSubstr("scale -2"));
}

TEST(Rules, Recurrent) {
  EXPECT_EQ(Case("LSTM")
                .In({7, 2, 6})
                .In({2, 20, 6})
                .In({2, 20, 5})
                .With("hidden_size", 5)
                .WithText("direction", "bidirectional")
                .Outputs(3)
                .Run()
                .value(),
            (std::vector<Shape>{{7, 2, 2, 5}, {2, 2, 5}, {2, 2, 5}}));
  EXPECT_EQ(
      Case("GRU", 14).In({2, 7, 6}).In({1, 15, 6}).In({1, 15, 5}).With("hidden_size", 5).With("layout", 1).Gives(),
      (Shape{2, 7, 1, 5}));
  EXPECT_THAT(Case("LSTM").In({7, 2, 6}).In({1, 20, 4}).In({1, 20, 5}).With("hidden_size", 5).Refuses(),
              HasSubstr("[1,20,4]"));
}

TEST(Rules, Fused) {
  const std::string ms = "com.microsoft";
  EXPECT_EQ(Case("Attention", 17, ms).In({2, 9, 8}).In({8, 24}).In({24}).With("num_heads", 2).Gives(),
            (Shape{2, 9, 8}));
  EXPECT_EQ(Case("EmbedLayerNormalization", 17, ms)
                .In({2, 9})
                .Skip()
                .In({100, 8})
                .In({50, 8})
                .Skip()
                .In({8})
                .In({8})
                .Outputs(2)
                .Run()
                .value(),
            (std::vector<Shape>{{2, 9, 8}, {2}}));
  EXPECT_EQ(Case("SkipLayerNormalization", 17, ms).In({2, 9, 8}).In({2, 9, 8}).In({8}).In({8}).Gives(),
            (Shape{2, 9, 8}));
  EXPECT_EQ(Case("BiasGelu", 17, ms).In({2, 9, 8}).In({8}).Gives(), (Shape{2, 9, 8}));
  EXPECT_EQ(Case("FusedConv", 17, ms).In({1, 3, 8, 8}).In({4, 3, 3, 3}).Gives(), (Shape{1, 4, 6, 6}));
  EXPECT_THAT(Case("Attention", 17, ms).In({2, 9, 8}).In({7, 24}).Refuses(), HasSubstr("inner sizes differ"));
}

TEST(Rules, AttentionAddsTheKeysOfEarlierSteps) {
  const auto shapes = Case("Attention", 22)
                          .In({2, 3, 4, 8})
                          .In({2, 3, 6, 8})
                          .In({2, 3, 6, 10})
                          .In({4, 18})
                          .In({2, 3, 12, 8})
                          .In({2, 3, 12, 10})
                          .Outputs(3)
                          .Run();
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_EQ(*shapes, (std::vector<Shape>{{2, 3, 4, 10}, {2, 3, 18, 8}, {2, 3, 18, 10}}));
}

TEST(Rules, InverseOfAOnesidedTransformIsReal) {
  EXPECT_EQ(Case("DFT", 19).In({1, 6, 10, 2}).With("onesided", 1).With("inverse", 1).Gives(), (Shape{1, 10, 10, 1}));
  EXPECT_EQ(Case("DFT", 19).In({1, 10, 10, 1}).With("onesided", 1).Gives(), (Shape{1, 6, 10, 2}));
}

}  // namespace
}  // namespace horus
