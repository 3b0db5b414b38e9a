// SPDX-License-Identifier: Apache-2.0
// Costs of single operators and small nets against numbers worked out by hand.
#include "features/cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/string_view.h"
#include "features/cost_rules.h"
#include "features/memory.h"
#include "graph_builder.h"

namespace horus {
namespace {

const RunSpec kTraining{};
const RunSpec kInference{.mode = RunMode::kInference};

StepCost Cost(GraphBuilder& b, const RunSpec& run = kTraining) { return CostOfStep(b.shaped(), run); }

TEST(Cost, ConvolutionCountsTwoFlopsAMultiplyAddAndHorusOne) {
  GraphBuilder b;
  const TensorId x = b.Input({2, 3, 8, 8}), w = b.Parameter({4, 3, 3, 3}), bias = b.Parameter({4});
  b.Output(b.Make("Conv", {x, w, bias}, {2, 4, 8, 8}));
  const StepCost step = Cost(b);
  const OpCost& conv = step.ops[0];
  constexpr double kOutputs = 2 * 4 * 8 * 8, kFilter = 3 * 3 * 3;
  EXPECT_EQ(conv.forward.flops, 2 * kOutputs * kFilter);
  EXPECT_EQ(conv.forward.flops_other, kOutputs);
  EXPECT_EQ(conv.horus_flops, kOutputs * kFilter);
  EXPECT_EQ(conv.op_class, OpClass::kConvolution);
  EXPECT_EQ(conv.forward.kernels, 2);  // product and bias
  EXPECT_EQ(step.horus_convs, 1);
  EXPECT_EQ(step.parameters, 4 * 27 + 4);
  EXPECT_EQ(conv.forward.bytes, 4 * (2 * 3 * 64 + 4 * 27 + 3 * kOutputs));
}

TEST(Cost, FirstLayerComputesNoInputGradient) {
  GraphBuilder b;
  const TensorId x = b.Input({2, 3, 8, 8}), w = b.Parameter({4, 3, 3, 3}), w2 = b.Parameter({5, 4, 3, 3});
  const TensorId y = b.Make("Conv", {x, w}, {2, 4, 8, 8});
  b.Output(b.Make("Conv", {y, w2}, {2, 5, 8, 8}));
  const StepCost step = Cost(b);
  EXPECT_EQ(step.ops[0].backward.flops, step.ops[0].forward.flops);
  EXPECT_EQ(step.ops[1].backward.flops, 2 * step.ops[1].forward.flops);
}

TEST(Cost, DepthwiseConvolutionCostsOneFilterPerChannel) {
  GraphBuilder b;
  const TensorId x = b.Input({1, 32, 10, 10}), w = b.Parameter({32, 1, 3, 3});
  b.Output(b.Make("Conv", {x, w}, {1, 32, 10, 10}, {IntAttribute("group", 32)}));
  EXPECT_EQ(Cost(b).ops[0].forward.flops, 2.0 * 3200 * 9);
}

TEST(Cost, TransposedConvolutionSpreadsEachInputOverOneFilter) {
  GraphBuilder b;
  const TensorId x = b.Input({1, 8, 4, 4}), w = b.Parameter({8, 6, 2, 2});
  b.Output(b.Make("ConvTranspose", {x, w}, {1, 6, 8, 8}));
  EXPECT_EQ(Cost(b).ops[0].forward.flops, 2.0 * 8 * 16 * 6 * 4);
}

TEST(Cost, InterpolationTakesPlanesInTurnWhereChannelsComeFirst) {
  GraphBuilder b;
  Attribute mode{.name = "mode", .value = std::string("linear")};
  const TensorId x = b.Input({4, 8, 7, 7});
  b.Output(b.Make("Resize", {x}, {4, 8, 14, 14}, {mode}));
  b.Output(b.Make("Resize", {x}, {4, 8, 14, 14}));
  const StepCost eager = Cost(b, kInference);
  EXPECT_EQ(eager.ops[0].forward.serial_reads, 4 * 8);
  EXPECT_EQ(eager.ops[1].forward.serial_reads, 0);  // to the nearest: a thread for each element
  for (const RunSpec& run : {RunSpec{.mode = RunMode::kInference, .layout = Layout::kNhwc},
                             RunSpec{.mode = RunMode::kInference, .framework = Framework::kPyTorchCompiled}})
    EXPECT_EQ(Cost(b, run).ops[0].forward.serial_reads, 0);
}

TEST(Cost, GemmReadsTheInnerDimensionFromTheFirstOperand) {
  GraphBuilder b;
  const TensorId a = b.Input({5, 7}), w = b.Parameter({11, 7}), c = b.Parameter({11});
  b.Output(b.Make("Gemm", {a, w, c}, {5, 11}, {IntAttribute("transB", 1)}));
  const StepCost step = Cost(b);
  EXPECT_EQ(step.ops[0].forward.flops, 2.0 * 5 * 7 * 11);
  EXPECT_EQ(step.ops[0].forward.flops_other, 55);
  EXPECT_EQ(step.ops[0].horus_flops, 5.0 * 13 * 11);
  EXPECT_EQ(step.horus_linears, 1);
}

TEST(Cost, BatchNormAndReluCountTheirElementsForHorusAndKeepOneTensorEach) {
  GraphBuilder b;
  const TensorId x = b.Input({2, 3, 8, 8}), w = b.Parameter({4, 3, 3, 3});
  const TensorId y = b.Make("Conv", {x, w}, {2, 4, 8, 8});
  const TensorId scale = b.Parameter({4}), shift = b.Parameter({4}), mean = b.Buffer({4}), variance = b.Buffer({4});
  const TensorId n = b.Make("BatchNormalization", {y, scale, shift, mean, variance}, {2, 4, 8, 8});
  b.Output(b.Make("Relu", {n}, {2, 4, 8, 8}));
  const StepCost step = Cost(b);
  EXPECT_EQ(step.ops[1].horus_flops, 512);
  EXPECT_EQ(step.ops[2].horus_flops, 512);
  EXPECT_EQ(step.ops[1].saved_bytes, 4 * 512 + 2 * 4 * 4);  // its input, mean and deviation
  EXPECT_EQ(step.ops[2].saved_bytes, 4 * 512);              // its output
  EXPECT_EQ(step.parameters, 108 + 8);
  EXPECT_EQ(step.buffers, 8);
  EXPECT_EQ(step.horus_activations, 1);
  EXPECT_EQ(step.horus_others, 1);
}

TEST(Cost, LstmStepIsTwoLinearsAndFiveActivations) {
  GraphBuilder b;
  const TensorId x = b.Input({3, 2, 5}), w = b.Parameter({1, 16, 5}), r = b.Parameter({1, 16, 4}),
                 bias = b.Parameter({1, 32});
  b.Output(b.Make("LSTM", {x, w, r, bias}, {3, 1, 2, 4}, {IntAttribute("hidden_size", 4)}));
  const StepCost step = Cost(b);
  EXPECT_EQ(step.ops[0].forward.flops, 2.0 * 3 * 2 * 16 * (5 + 4));
  EXPECT_EQ(step.horus_linears, 2 * 3);
  EXPECT_EQ(step.horus_activations, 5 * 3);
  // The input needs no gradient: both weight products, and the hidden state's.
  EXPECT_EQ(step.ops[0].backward.flops, 2.0 * 3 * 2 * 16 * (5 + 4 + 4));
}

TEST(Cost, EmbeddingIsALinearLayerForHorusWithoutFlops) {
  GraphBuilder b;
  const TensorId table = b.Parameter({100, 16}), ids = b.Input({2, 5}, DType::kInt64);
  b.Output(b.Make("Gather", {table, ids}, {2, 5, 16}));
  const StepCost step = Cost(b);
  EXPECT_EQ(step.ops[0].op_class, OpClass::kEmbedding);
  EXPECT_EQ(step.horus_linears, 1);
  EXPECT_EQ(step.ops[0].forward.flops, 0);
  EXPECT_GE(step.ops[0].backward.bytes, 100 * 16 * 4);  // the gradient is dense
}

TEST(Cost, TrainingAMatmulChainIsThreeTimesForwardLessTheFirstInputGradient) {
  GraphBuilder b;
  BuildPerceptron(b, 8, 64, 5);
  const StepCost step = Cost(b);
  constexpr double kLayer = 2.0 * 8 * 64 * 64;
  EXPECT_EQ(step.totals.forward.flops, 5 * kLayer);
  EXPECT_EQ(step.totals.backward.flops, (2 * 5 - 1) * kLayer);
}

TEST(Cost, FrozenParametersHaveNoGradientAndNeitherDoesWhatLiesBeforeThem) {
  GraphBuilder b;
  BuildPerceptron(b, 8, 64, 5);  // weights t1, t4, t7, t10, t13
  RunSpec run{.optimizer = Optimizer::kMomentum};
  const StepCost whole = CostOfStep(b.shaped(), run);
  run.frozen = {b.shaped().tensors[1].name, b.shaped().tensors[4].name};
  ASSERT_EQ(b.shaped().tensors[4].role, TensorRole::kParameter);
  const StepCost step = CostOfStep(b.shaped(), run);
  constexpr double kLayer = 2.0 * 8 * 64 * 64;
  // The names of the weights of layers 1, 4 and 5 begin with "t1", layer 2 is named itself: layer 3 trains.
  EXPECT_EQ(step.parameters, 64.0 * 64);
  EXPECT_EQ(step.parameters + step.buffers, whole.parameters);
  EXPECT_EQ(step.totals.backward.flops, 3 * kLayer);  // its own gradient, and through the two layers behind it
  EXPECT_EQ(MemoryOfStep(b.shaped(), step, run).gradients, 64 * 64 * 4);
}

// Whatever an exporter makes of a frozen weight before its product: another form of it, or a folded one of another
// name.
TEST(Cost, AFrozenWeightIsFrozenInOtherFormsAndUnderOtherNames) {
  GraphBuilder b;
  const TensorId x = b.Input({4, 8}), w = b.Parameter({8, 8}), turned = b.Parameter({8, 8}),
                 folded = b.Parameter({8, 8});
  b.tensor(w).name = "encoder.0.weight";
  b.tensor(turned).name = "/encoder/encoder.0/Transpose_output_0";
  b.tensor(turned).alias_of = w;
  b.tensor(folded).name = "onnx::MatMul_17";
  const TensorId h = b.Make("MatMul", {x, turned}, {4, 8});
  b.Name("/encoder/encoder.0/MatMul");
  b.Output(b.Make("MatMul", {h, folded}, {4, 8}));
  b.Name("/encoder/encoder.1/dense/MatMul");
  const auto backward = [&b](const std::vector<std::string>& frozen) {
    return CostOfStep(b.shaped(), RunSpec{.frozen = frozen}).totals.backward.flops;
  };
  constexpr double kProduct = 2.0 * 4 * 8 * 8;
  EXPECT_EQ(backward({}), 3 * kProduct);
  EXPECT_EQ(backward({"encoder.0"}), kProduct);
  EXPECT_EQ(backward({"encoder.1.dense."}), 2 * kProduct);
  EXPECT_EQ(backward({"encoder."}), 0);
}

TEST(Cost, ResidualAdditionIsFreeBackwardAndItsSecondGradientIsAdded) {
  GraphBuilder b;
  const TensorId x = b.Input({4, 8}), w = b.Parameter({8, 8}), w2 = b.Parameter({8, 8});
  const TensorId h = b.Make("MatMul", {x, w}, {4, 8});
  const TensorId g = b.Make("MatMul", {h, w2}, {4, 8});
  b.Output(b.Make("Add", {h, g}, {4, 8}));
  const StepCost step = Cost(b);
  EXPECT_EQ(step.ops[2].horus_flops, 0);
  EXPECT_EQ(step.ops[2].saved_bytes, 0);
  EXPECT_TRUE(step.ops[2].passes_gradient);
  EXPECT_EQ(step.ops[2].backward.kernels, 1);  // only the accumulation of h's two gradients
  EXPECT_EQ(step.ops[2].backward.bytes, 3 * 4 * 32);
}

TEST(Cost, PlumbingCostsNothing) {
  GraphBuilder b;
  const TensorId x = b.Input({4, 8});
  const TensorId y = b.Make("Reshape", {x}, {32});
  b.last_op().plumbing = true;
  b.tensor(y).alias_of = x;
  b.Output(y);
  const StepCost step = Cost(b);
  EXPECT_EQ(step.ops[0].forward.kernels, 0);
  EXPECT_EQ(step.ops[0].forward.bytes, 0);
  EXPECT_EQ(step.coverage.ops, 0);
  EXPECT_EQ(step.storage[y.value()], x);
}

TEST(Cost, UnknownOperatorsAreCountedAndLowerTheCoverage) {
  GraphBuilder b;
  BuildPerceptron(b, 8, 64, 2);
  const TensorId x = b.Input({8, 64});
  b.Output(b.Make("my.domain::Mystery", {x}, {8, 64}));
  const StepCost step = Cost(b);
  EXPECT_EQ(step.coverage.ops, 5);
  EXPECT_EQ(step.coverage.ops_known, 4);
  ASSERT_EQ(step.coverage.unknown.size(), 1u);
  EXPECT_EQ(step.coverage.unknown[0], (std::pair<std::string, int64_t>{"my.domain::Mystery", 1}));
  EXPECT_DOUBLE_EQ(step.coverage.flops_share, 0.8);  // taken to cost the mean of the four known ones
}

TEST(Cost, FourierTransformsTakeFiveNLogN) {
  GraphBuilder b;
  const TensorId x = b.Input({3, 8, 1});
  b.Make("DFT", {x}, {3, 8, 2}, {IntAttribute("axis", 1)});
  b.Output(b.Make("STFT", {x}, {3, 7, 5, 2}));
  const StepCost step = Cost(b);
  EXPECT_EQ(step.ops[0].forward.flops_other, 3 * 5 * 8 * 3);
  EXPECT_EQ(step.ops[1].forward.flops_other, 3 * 7 * 5 * 8 * 3);  // five frequencies of eight samples
  EXPECT_TRUE(step.coverage.unknown.empty());
}

TEST(Cost, UnknownShapesAreCountedNotSilent) {
  GraphBuilder b;
  const TensorId x = b.Unknown(), w = b.Parameter({8, 8});
  b.Output(b.Make("MatMul", {x, w}, {4, 8}));
  const StepCost step = Cost(b);
  EXPECT_FALSE(step.ops[0].known);
  EXPECT_EQ(step.coverage.flops_share, 0);
}

TEST(Cost, RepeatedOperatorsAreMultiplied) {
  GraphBuilder once, many;
  for (GraphBuilder* b : {&once, &many}) BuildPerceptron(*b, 8, 64, 1);
  many.shaped().ops[0].repeat = 7;
  const double single = Cost(once).ops[0].forward.flops;
  EXPECT_EQ(Cost(many).ops[0].forward.flops, 7 * single);
  EXPECT_EQ(Cost(many).ops[0].forward.kernels, 7);
}

TEST(Cost, InferenceHasNoBackwardNoLossNoOptimiserAndKeepsNothing) {
  GraphBuilder b;
  BuildPerceptron(b, 8, 64, 3);
  const StepCost step = Cost(b, kInference);
  EXPECT_EQ(step.totals.backward.flops, 0);
  EXPECT_EQ(step.totals.backward.kernels, 0);
  EXPECT_EQ(step.totals.saved_bytes, 0);
  EXPECT_EQ(step.optimizer.kernels, 0);
  EXPECT_EQ(step.loss.forward.kernels, 0);
  EXPECT_EQ(step.StepFlops(), step.totals.forward.flops + step.totals.forward.flops_other);
}

TEST(Cost, FrozenWeightsGetNoGradient) {
  GraphBuilder b;
  const TensorId x = b.Input({4, 8}), w = b.Buffer({8, 8}), w2 = b.Parameter({8, 8});
  const TensorId h = b.Make("MatMul", {x, w}, {4, 8});
  b.Output(b.Make("MatMul", {h, w2}, {4, 8}));
  const StepCost step = Cost(b);
  EXPECT_EQ(step.ops[0].backward.flops, 0);
  EXPECT_EQ(step.ops[1].backward.flops, step.ops[1].forward.flops);  // the weight's alone
}

TEST(Cost, AutocastHalvesProductsAndKeepsSoftmaxInFloat32) {
  GraphBuilder b;
  const TensorId x = b.Input({4, 8}), w = b.Parameter({8, 8});
  const TensorId y = b.Make("MatMul", {x, w}, {4, 8});
  const TensorId z = b.Make("Softmax", {y}, {4, 8});
  b.Output(z);
  const StepCost step = Cost(b, {.precision = Precision::kAmpFp16});
  EXPECT_EQ(step.stored_bytes[y.value()], 2 * 32);
  EXPECT_EQ(step.stored_bytes[z.value()], 4 * 32);
  EXPECT_EQ(step.stored_bytes[w.value()], 4 * 64);
}

// x * 0.5 * (1 + erf(x / 1.41)), as exporters write it.
TensorId Gelu(GraphBuilder& b, TensorId x, const GraphBuilder::Dims& dims) {
  const TensorId root = b.Buffer({}), one = b.Buffer({}), half = b.Buffer({});
  const TensorId erf = b.Make("Erf", {b.Make("Div", {x, root}, dims)}, dims);
  const TensorId sum = b.Make("Add", {erf, one}, dims);
  return b.Make("Mul", {b.Make("Mul", {x, sum}, dims), half}, dims);
}

TEST(Cost, DecomposedGeluIsOneActivationThatKeepsItsInput) {
  GraphBuilder b;
  const TensorId x = b.Input({4, 8}), w = b.Parameter({8, 8}), w2 = b.Parameter({8, 8});
  const TensorId h = b.Make("MatMul", {x, w}, {4, 8});
  const TensorId g = Gelu(b, h, {4, 8});
  b.Output(b.Make("MatMul", {g, w2}, {4, 8}));
  const StepCost step = Cost(b);
  EXPECT_EQ(step.coverage.ops, 3);
  EXPECT_EQ(step.horus_activations, 1);
  EXPECT_EQ(step.horus_others, 0);
  EXPECT_EQ(step.by_class[static_cast<size_t>(OpClass::kActivation)].forward.kernels, 1);
  EXPECT_EQ(step.totals.saved_bytes, 2 * 4 * 32);  // h for the activation, g for the second product's weight
}

// By tanh: one kernel as nn.GELU is exported, by products or by Pow; the formula that models write themselves is not.
TEST(Cost, TanhGeluIsOneActivationUnlessTheModelWritesItOut) {
  const auto activations = [](bool by_products, bool half_first) {
    GraphBuilder b;
    const GraphBuilder::Dims dims = {4, 8};
    const TensorId x = b.Make("MatMul", {b.Input({4, 8}), b.Parameter({8, 8})}, dims), number = b.Buffer({});
    const TensorId cube =
        by_products ? b.Make("Mul", {x, b.Make("Mul", {x, x}, dims)}, dims) : b.Make("Pow", {x, number}, dims);
    const TensorId inside = b.Make("Add", {x, b.Make("Mul", {number, cube}, dims)}, dims);
    const TensorId tanh = b.Make("Tanh", {b.Make("Mul", {number, inside}, dims)}, dims);
    const TensorId sum = b.Make("Add", {tanh, number}, dims);
    b.Output(half_first ? b.Make("Mul", {b.Make("Mul", {x, number}, dims), sum}, dims)
                        : b.Make("Mul", {number, b.Make("Mul", {x, sum}, dims)}, dims));
    return Cost(b).totals.forward.kernels - 1;
  };
  EXPECT_EQ(activations(true, false), 1);
  EXPECT_EQ(activations(true, true), 1);
  EXPECT_EQ(activations(false, false), 1);
  EXPECT_EQ(activations(false, true), 8);
}

// Exporters write scalars as [1]: they do not widen what they scale.
TEST(Cost, OneElementDoesNotWidenUnderAutocast) {
  GraphBuilder b;
  const TensorId y = b.Make("MatMul", {b.Input({4, 8}), b.Parameter({8, 8})}, {4, 8});
  const TensorId one = b.Make("Mul", {y, b.Buffer({1})}, {4, 8}), wide = b.Make("Mul", {y, b.Buffer({8})}, {4, 8});
  b.Output(one);
  b.Output(wide);
  const StepCost step = Cost(b, {.precision = Precision::kAmpFp16});
  EXPECT_EQ(step.stored_bytes[one.value()], 2 * 32);
  EXPECT_EQ(step.stored_bytes[wide.value()], 4 * 32);
}

// The cache of a decoder comes in and goes out on the GPU; what is fed does not.
TEST(Cost, ACacheThatGoesOutAgainIsNotCopiedFromTheHost) {
  GraphBuilder b;
  const TensorId x = b.Input({2, 4, 1, 16}), past = b.Input({2, 4, 31, 16}), other = b.Input({2, 4, 31, 16});
  const TensorId present = b.Make("Concat", {past, b.Make("Relu", {x}, {2, 4, 1, 16})}, {2, 4, 32, 16});
  b.Output(present);
  b.Output(b.Make("Add", {other, other}, {2, 4, 31, 16}));
  const StepCost step = Cost(b, {.mode = RunMode::kInference});
  EXPECT_EQ(step.input_bytes, 4 * (2 * 4 * 16 + 2 * 4 * 31 * 16));
}

TEST(Cost, CompiledTrainingUpdatesParametersInLists) {
  GraphBuilder b;
  BuildPerceptron(b, 8, 64, 5);
  const auto kernels = [&b](Framework framework) {
    return CostOfStep(b.shaped(), {.optimizer = Optimizer::kAdamW, .framework = framework}).optimizer.kernels;
  };
  EXPECT_EQ(kernels(Framework::kPyTorchCompiled), kernels(Framework::kPyTorch));
  EXPECT_LT(kernels(Framework::kPyTorchCompiled), kernels(Framework::kPyTorch1));
}

TEST(Cost, GeluThatIsReadInTheMiddleIsNotFused) {
  GraphBuilder b;
  const TensorId x = b.Input({4, 8}), scale = b.Buffer({});
  const TensorId scaled = b.Make("Div", {x, scale}, {4, 8});
  const TensorId sum = b.Make("Add", {b.Make("Erf", {scaled}, {4, 8}), scale}, {4, 8});
  b.Output(b.Make("Mul", {x, sum}, {4, 8}));
  b.Output(sum);
  EXPECT_EQ(Cost(b).coverage.ops, 4);
}

TEST(Cost, SwishIsOneKernelAndAGateFromElsewhereIsTwo) {
  GraphBuilder fused, gate;
  const TensorId x = fused.Input({4, 8});
  fused.Output(fused.Make("Mul", {fused.Make("Sigmoid", {x}, {4, 8}), x}, {4, 8}));
  EXPECT_EQ(Cost(fused).totals.forward.kernels, 1);
  const TensorId y = gate.Input({4, 8}), z = gate.Input({4, 8});
  gate.Output(gate.Make("Mul", {gate.Make("Sigmoid", {y}, {4, 8}), z}, {4, 8}));
  EXPECT_EQ(Cost(gate).totals.forward.kernels, 2);
}

TEST(Cost, DepthAndWidthFollowTheChains) {
  GraphBuilder b;
  const TensorId x = b.Input({4, 8});
  const TensorId a = b.Make("Relu", {x}, {4, 8}), c = b.Make("Relu", {x}, {4, 8}), d = b.Make("Relu", {c}, {4, 8});
  b.Output(b.Make("Add", {a, d}, {4, 8}));
  const StepCost step = Cost(b);
  EXPECT_EQ(step.critical_path_ops, 3);
  EXPECT_EQ(step.max_width, 2);
}

TEST(Cost, HugeShapesNeitherOverflowNorBecomeNegative) {
  GraphBuilder b;
  constexpr int64_t kEdge = int64_t{1} << 24;
  const TensorId x = b.Input({kEdge, kEdge}), w = b.Parameter({kEdge, kEdge});
  const TensorId y = b.Make("MatMul", {x, w}, {kEdge, kEdge});
  b.last_op().repeat = int64_t{1} << 40;
  b.Output(y);
  const StepCost step = Cost(b);
  EXPECT_GT(step.StepFlops(), 1e30);
  EXPECT_TRUE(std::isfinite(step.StepBytes()));
}

TEST(Cost, EveryRuleSurvivesMissingAndUnknownTensors) {
  for (const CostRule& rule : SortedCostRules()) {
    const std::string name(rule.name);
    GraphBuilder b;
    b.Op(name, {}, {});
    b.Op(name, {TensorId(), TensorId()}, {TensorId()});
    const TensorId scalar = b.Input({}), empty = b.Parameter({0, 3}), unknown = b.Unknown();
    b.Op(name, {scalar}, {b.Activation({})}, {IntAttribute("group", -5), IntAttribute("num_heads", 0)});
    b.Op(name, {empty, empty, empty, scalar}, {b.Activation({0, 3})}, {IntAttribute("size", -1)});
    b.Op(name, {unknown, unknown, unknown, unknown}, {b.Unknown()}, {TextAttribute("equation", "...,,->\xFF")});
    const StepCost step = Cost(b);
    EXPECT_TRUE(std::isfinite(step.StepFlops())) << name;
    EXPECT_GE(step.StepFlops(), 0) << name;
    EXPECT_GE(step.StepBytes(), 0) << name;
    EXPECT_FALSE(step.ops[4].known) << name;
  }
}

TEST(Cost, AllTablesNameEachOperatorOnce) {
  EXPECT_GE(SortedCostRules().size(), 150u);
  EXPECT_EQ(std::ranges::adjacent_find(SortedCostRules(), {}, &CostRule::name), SortedCostRules().end());
}

TEST(RunSpec, NamesAreParsedBackAndWrongOnesSayWhatIsExpected) {
  for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kMomentum, Optimizer::kAdam, Optimizer::kAdamW,
                                    Optimizer::kAdafactor, Optimizer::kAdam8Bit, Optimizer::kAdamWBf16}) {
    EXPECT_EQ(*ParseOptimizer(Name(optimizer)), optimizer);
  }
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kAmpFp16, Precision::kAmpBf16,
                                    Precision::kFp16, Precision::kBf16}) {
    EXPECT_EQ(*ParsePrecision(Name(precision)), precision);
  }
  EXPECT_EQ(*ParseRunMode("inference"), RunMode::kInference);
  const absl::Status status = ParsePrecision("fp31").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("fp32, tf32, amp"), absl::string_view::npos);
  EXPECT_NE(status.message().find("'fp31'"), absl::string_view::npos);
}

}  // namespace
}  // namespace horus
