// SPDX-License-Identifier: Apache-2.0
// Cost of matrix products and of what comes down to them, convolutions, Einsum, mixtures of experts and recurrent
// cells: two FLOPs a multiply-add, one product a gradient.
#include <algorithm>
#include <cmath>

#include "features/cost_rules.h"

namespace horus {
namespace {

// [batch, m, k] x [batch, k, n], inputs 0 and 1; the tensors' bytes are those of the whole operator.
struct Product {
  double batch = 1, m = 1, n = 1, k = 1;
  double taps = 1;         // as ProductShape
  size_t bias = SIZE_MAX;  // SIZE_MAX: none
  bool bias_kernel = false;
};

double Flops(const Product& p) { return 2 * p.batch * p.m * p.n * p.k; }

// Under autocast a float32 weight is cast once a step and its gradient cast back.
void AddWeightCast(CostContext& c, size_t weight) {
  if (!c.amp() || !c.IsWeight(weight)) return;
  constexpr double kCastBytes = 6;  // 4 read, 2 written, an element
  const double elements = c.InCount(weight);
  c.Forward(1, kCastBytes * elements, PointwiseBlocks(elements));
  if (c.Wants(weight)) c.Backward(1, kCastBytes * elements, PointwiseBlocks(elements));
}

// FLOPs, bytes, kernels and what is kept; one product more per gradient wanted.
void ApplyProduct(CostContext& c, const Product& p) {
  const double a = c.InBytes(0), b = c.InBytes(1), y = c.OutBytes(0);
  const double outputs = c.OutCount(0);
  const bool has_bias = p.bias != SIZE_MAX && c.Has(p.bias);
  c.cost.forward.flops = Flops(p);
  c.cost.product = {p.batch, p.m, p.n, p.k, std::max(1.0, p.taps), c.Wants(0), c.Wants(1)};
  c.Forward(1, a + b + y, MatmulBlocks(p.batch, p.m, p.n, p.k));
  if (has_bias) {
    c.cost.forward.flops_other = outputs;
    if (p.bias_kernel) c.Forward(1, 2 * y, PointwiseBlocks(outputs));
  }
  if (c.Wants(0)) {  // dA = dY Bt
    c.cost.backward.flops += Flops(p);
    c.Backward(1, y + b + a, MatmulBlocks(p.batch, p.m, p.k, p.n));
    c.SaveInput(1);
  }
  if (c.Wants(1)) {  // dB = At dY
    c.cost.backward.flops += Flops(p);
    c.Backward(1, y + a + b, MatmulBlocks(p.batch, p.k, p.n, p.m));
    c.SaveInput(0);
  }
  if (has_bias && c.Wants(p.bias)) c.BackwardOver(outputs, outputs, y);
  AddWeightCast(c, 1);
}

// Enters the Horus counts as a linear layer.
void CountLinear(CostContext& c, const Product& p) {
  c.cost.horus_flops = p.batch * p.m * std::max(0.0, 2 * p.k - 1) * p.n;
  c.cost.horus_linears = 1;
}

// ---- Convolutions.

// cuDNN's algorithms for filters larger than one element (Winograd, FFT, other layouts) may work on transformed copies
// of the input and the output; a pointwise filter is a plain product, and the implicit one needs no copy.
void AddWorkspace(CostContext& c, double filter, double channels_per_group) {
  if (filter <= channels_per_group) return;
  c.cost.workspace_bytes = c.InBytes(0) + c.OutBytes(0);
}

// Of the convolution family, the position of the bias.
size_t BiasOf(std::string_view name) { return name == "ConvInteger" ? SIZE_MAX : name == "DeformConv" ? 3 : 2; }

// Of few channels a group libraries run kernels of their own, without matrix units.
constexpr double kDepthwiseChannels = 4;

KernelKind ConvolutionKind(const Product& p) {
  if (p.batch > 1)
    return p.k / p.taps <= kDepthwiseChannels ? KernelKind::kDepthwiseConvolution : KernelKind::kGroupedConvolution;
  return p.taps > 1 ? KernelKind::kConvolution : KernelKind::kPointwiseConvolution;
}

void Convolution(CostContext& c, const CostRule& rule) {
  if (!c.Has(0) || !c.Has(1) || !c.HasOut(0)) return c.Unknown();
  const Tensor& w = c.In(1);
  // Weights are [out channels, in channels / groups, kernel...]; each output element sums one filter.
  const double out_channels = std::max(1.0, CostContext::Dim(w, 0));
  const double filter = c.InCount(1) / out_channels;
  const double groups = std::max(1.0, c.Int("group", 1));
  const double outputs = c.OutCount(0);
  Product p;
  p.batch = groups;
  p.m = outputs / out_channels;
  p.n = out_channels / groups;
  p.k = filter;
  p.taps = filter / std::max(1.0, CostContext::Dim(w, 1));
  p.bias = BiasOf(rule.name);
  p.bias_kernel = true;
  ApplyProduct(c, p);
  AddWorkspace(c, filter, CostContext::Dim(w, 1));
  c.cost.kind = ConvolutionKind(p);
  c.cost.horus_flops = outputs * filter;
  c.cost.horus_convs = 1;
  if (rule.name == "com.microsoft::FusedConv") c.cost.forward.flops_other += outputs;
}

void ConvTranspose(CostContext& c, const CostRule&) {
  if (!c.Has(0) || !c.Has(1) || !c.HasOut(0)) return c.Unknown();
  // Weights are [in channels, out channels / groups, kernel...]; each input element is spread over one filter.
  const double in_channels = std::max(1.0, c.InDim(1, 0));
  const double filter = c.InCount(1) / in_channels;
  const double groups = std::max(1.0, c.Int("group", 1));
  Product p;
  p.batch = groups;
  p.m = c.InCount(0) / in_channels;
  p.n = filter;
  p.k = in_channels / groups;
  p.bias = 2;
  p.bias_kernel = true;
  ApplyProduct(c, p);
  AddWorkspace(c, filter, c.InDim(1, 1));
  c.cost.kind = groups > 1 ? KernelKind::kGroupedConvolution : KernelKind::kConvolution;
  c.cost.horus_flops = c.InCount(0) * filter;
  c.cost.horus_convs = 1;
}

void Gemm(CostContext& c, const CostRule& rule) {
  if (!c.Has(0) || !c.Has(1) || !c.HasOut(0)) return c.Unknown();
  const bool transposed = c.node().IntOr("transA", 0) != 0;
  Product p{.m = c.OutDim(0, 0), .n = c.OutDim(0, 1), .k = c.InDim(0, transposed ? 0 : 1), .bias = 2};
  ApplyProduct(c, p);
  CountLinear(c, p);
  if (rule.name == "com.microsoft::FusedGemm") c.cost.forward.flops_other += c.OutCount(0);
}

constexpr std::string_view kPackedProduct = "com.microsoft::MatMulNBits";

void MatMul(CostContext& c, const CostRule& rule) {
  constexpr size_t a = 0, b = 1;
  const bool packed = rule.name == kPackedProduct;  // [columns, blocks, rows of a block]
  if (!c.Has(a) || !c.Has(b) || !c.HasOut(0)) return c.Unknown();
  const Tensor& ta = c.In(a);
  const Tensor& tb = c.In(b);
  const bool trans_a = c.node().IntOr("transA", 0) != 0;
  Product p{.k = ta.dims.size() < 2 ? c.InCount(a) : CostContext::Dim(ta, trans_a ? -2 : -1)};
  const double outputs = c.OutCount(0);
  p.n = tb.dims.size() < 2 ? 1 : c.OutDim(0, -1);
  if (tb.dims.size() <= 2 || packed) {
    p.m = p.n > 0 ? outputs / p.n : 0;
  } else {
    p.m = ta.dims.size() < 2 ? 1 : c.OutDim(0, -2);
    p.batch = p.m * p.n > 0 ? outputs / (p.m * p.n) : 0;
  }
  ApplyProduct(c, p);
  CountLinear(c, p);
  // A product of two activations is the dot product of an attention, decomposed.
  if (!c.IsWeight(a) && !c.IsWeight(b)) c.BecomeAttention();
}

// ---- Einsum: operands are contracted from left to right, each pair as one batched matrix product.

constexpr size_t kLabels = 128;
constexpr unsigned char kEllipsis = '.';  // stands for all dimensions under "..."

// Size of each label in one term, 0 when it does not occur.
using Sizes = std::array<double, kLabels>;

bool ReadTerm(std::string_view term, const Tensor& tensor, Sizes& sizes) {
  const auto letters = std::ranges::count_if(term, [](char ch) { return ch != '.'; });
  const int64_t under_ellipsis = static_cast<int64_t>(tensor.dims.size()) - letters;
  if (under_ellipsis < 0) return false;
  int64_t axis = 0;
  for (size_t i = 0; i < term.size(); ++i) {
    const auto label = static_cast<unsigned char>(term[i]);
    if (label >= kLabels) return false;
    if (label == kEllipsis) {
      double size = 1;
      for (int64_t d = 0; d < under_ellipsis; ++d) size *= CostContext::Dim(tensor, axis++);
      sizes[kEllipsis] = std::max(sizes[kEllipsis], size);
      i += 2;
      continue;
    }
    sizes[label] = std::max(sizes[label], CostContext::Dim(tensor, axis++));
  }
  return true;
}

struct Equation {
  std::vector<Sizes> terms;
  std::array<bool, kLabels> in_output = {};
  bool valid = true;
};

Equation ReadEquation(const CostContext& c) {
  std::string text(c.node().StringOr("equation", ""));
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  const std::string_view left = std::string_view(text).substr(0, arrow);
  Equation e;
  std::array<int, kLabels> seen = {};
  size_t begin = 0;
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (begin > left.size() || !c.Has(i)) return {.valid = false};
    const size_t end = std::min(left.find(',', begin), left.size());
    const std::string_view term = left.substr(begin, end - begin);
    if (!ReadTerm(term, c.In(i), e.terms.emplace_back())) return {.valid = false};
    for (const char ch : term) ++seen[static_cast<unsigned char>(ch) % kLabels];
    begin = end + 1;
  }
  for (size_t label = 0; label < kLabels; ++label) {
    // Without an arrow: what occurs once, and what lies under the ellipsis.
    if (arrow == std::string::npos) e.in_output[label] = label == kEllipsis || seen[label] == 1;
  }
  if (arrow != std::string::npos) {
    for (const char ch : std::string_view(text).substr(arrow + 2))
      e.in_output[static_cast<unsigned char>(ch) % kLabels] = true;
  }
  e.valid = !e.terms.empty();
  return e;
}

double Volume(const Sizes& sizes) {
  double volume = 1;
  for (const double size : sizes) volume *= size > 0 ? size : 1;
  return volume;
}

// Contracts two terms; `left` becomes the result. Labels of both that are needed later are the batch.
Product Contract(Sizes& left, const Sizes& right, const std::array<bool, kLabels>& needed) {
  Product p;
  for (size_t label = 0; label < kLabels; ++label) {
    const double size = std::max(left[label], right[label]);
    if (size <= 0) continue;
    double& side = left[label] > 0 && right[label] > 0 ? needed[label] ? p.batch : p.k
                   : needed[label]                     ? left[label] > 0 ? p.m : p.n
                                                       : p.k;
    side *= size;
    left[label] = needed[label] ? size : 0;
  }
  return p;
}

void Einsum(CostContext& c, const CostRule&) {
  Equation e = ReadEquation(c);
  if (!e.valid) return c.Unknown();
  if (e.terms.size() == 1) {  // a sum or a permutation: no product
    const double elements = Volume(e.terms[0]);
    c.ForwardOver(elements, elements > c.OutCount(0) ? elements : 0, c.AllInBytes() + c.OutBytes(0));
    if (c.Wants(0)) c.Backward(1, c.AllInBytes() + c.OutBytes(0), PointwiseBlocks(elements));
    return;
  }
  // Labels needed after a contraction: those of the output and of the operands to come.
  std::vector<std::array<bool, kLabels>> needed(e.terms.size(), e.in_output);
  for (size_t i = e.terms.size() - 1; i-- > 0;) {
    needed[i] = needed[i + 1];
    for (size_t label = 0; label < kLabels; ++label) needed[i][label] |= e.terms[i + 1][label] > 0;
  }
  Sizes result = e.terms[0];
  Product p = Contract(result, e.terms[1], needed[1]);
  ApplyProduct(c, p);
  CountLinear(c, p);
  if (!c.IsWeight(0) && !c.IsWeight(1)) c.BecomeAttention();
  for (size_t i = 2; i < e.terms.size(); ++i) {
    const double gradients = (c.Wants(i) ? 1 : 0) + (c.cost.backward.flops > 0 ? 1 : 0);
    p = Contract(result, e.terms[i], needed[i]);
    const double flops = 2 * p.batch * p.m * p.n * p.k, blocks = MatmulBlocks(p.batch, p.m, p.n, p.k);
    c.cost.forward.flops += flops;
    c.cost.backward.flops += gradients * flops;
    c.Forward(1, c.InBytes(i) + c.OutBytes(0), blocks);
    c.Backward(gradients, gradients * (c.InBytes(i) + c.OutBytes(0)), blocks);
    if (gradients > 0) c.SaveInput(i);
  }
}

// ---- Mixtures of experts, and collectives between the GPUs that share a layer.

// com.microsoft.MoE and QMoE. `k` experts take each token, of so many as the attribute `experts` says (all of them
// where it is absent), evenly: those that a GPU has take its part of the tokens, and it reads those that any token goes
// to.
void MixtureOfExperts(CostContext& c, const CostRule& rule) {
  const bool quantised = rule.name == "com.microsoft::QMoE";
  const size_t up = 2, down = quantised ? 5 : 4;
  if (!c.Has(0) || !c.Has(up) || !c.Has(down)) return c.Unknown();
  const double held = c.InDim(up, 0);
  const double all = std::max(held, c.Int("experts", 0));
  const double k = std::clamp(c.Int("k", 1), 1.0, std::max(1.0, all));
  const double hidden = c.InDim(up, 2), made = c.InDim(up, 1);
  const double inner = c.InDim(down, 2);
  const double tokens = c.InCount(0) / std::max(1.0, hidden), routed = tokens * k * held / all;
  const double touched = k < all ? held * -std::expm1(tokens * std::log1p(-k / all)) : held;
  const double flops = 2 * routed * hidden * (made + inner);
  const double element = c.InCount(0) > 0 ? c.InBytes(0) / c.InCount(0) : 0;
  const double weights = held > 0 ? (c.AllInBytes() - c.InBytes(0) - c.InBytes(1)) * touched / held : 0;
  const double moved = element * routed * (3 * hidden + 2 * made + 2 * inner);  // gathered, and summed by scores
  c.cost.forward.flops = flops;
  c.cost.horus_flops = flops;
  c.cost.horus_linears = 2;
  c.cost.forward.flops_other = routed * (hidden + (kTranscendentalFlops + 1) * inner);
  constexpr double kKernels = 6;  // best scores, sorting, two grouped products, activation, sum
  c.cost.product = {std::max(1.0, touched), routed / std::max(1.0, touched), made, hidden, 1, c.Wants(0), c.Wants(up)};
  c.Forward(kKernels, weights + moved + c.InBytes(0) + c.InBytes(1) + c.OutBytes(0),
            MatmulBlocks(std::max(1.0, touched), routed / std::max(1.0, touched), made, hidden));
  const double gradients = (c.Wants(0) ? 1 : 0) + (c.Wants(up) || c.Wants(down) ? 1 : 0);
  if (gradients == 0) return;
  c.cost.backward.flops = gradients * flops;
  c.Backward(gradients * kKernels, gradients * (weights + moved) + c.InBytes(0),
             MatmulBlocks(std::max(1.0, touched), routed / std::max(1.0, touched), hidden, made));
  c.SaveInput(0);
  c.SaveExtra(element * routed * (hidden + made + inner));
}

// Of a ring each GPU reads and writes what it has about once; the links are no part of device memory.
void AllReduce(CostContext& c, const CostRule&) {
  const double bytes = c.InBytes(0) + c.OutBytes(0), blocks = PointwiseBlocks(c.OutCount(0));
  c.Forward(1, bytes, blocks);
  if (c.Wants(0)) c.Backward(1, bytes, blocks);
}

// ---- Recurrent cells, unrolled by their length as cuDNN runs them.

// What one cell does per step: gates are products of the hidden size; activations as the author of Horus counts.
struct Cell {
  double gates;
  double activations;
  double pointwise_flops;  // per hidden unit and step: bias additions, gate functions, state update
};

constexpr Cell kLstm = {.gates = 4, .activations = 5, .pointwise_flops = 4 * 3 + 5 * kTranscendentalFlops + 4};
constexpr Cell kGru = {.gates = 3, .activations = 3, .pointwise_flops = 3 * 3 + 3 * kTranscendentalFlops + 5};
constexpr Cell kRnn = {.gates = 1, .activations = 1, .pointwise_flops = 3 + kTranscendentalFlops};

void Recurrent(CostContext& c, const Cell& cell) {
  if (!c.Has(0) || !c.Has(1) || !c.Has(2)) return c.Unknown();
  const bool batch_first = c.node().IntOr("layout", 0) != 0;
  const double steps = c.InDim(0, batch_first ? 1 : 0);
  const double batch = c.InDim(0, batch_first ? 0 : 1);
  const double in = c.InDim(0, 2);
  const double directions = c.InDim(1, 0);
  const double hidden = c.InDim(2, 2);
  const double rows = cell.gates * hidden;  // of the weight matrices
  const double units = steps * batch * directions * hidden;

  const double product = 2 * steps * batch * directions * rows * (in + hidden);
  c.cost.forward.flops = product;
  c.cost.forward.flops_other = units * cell.pointwise_flops;
  c.cost.horus_flops = steps * batch * directions *
                       ((2 * in - 1) * rows + std::max(0.0, 2 * hidden - 1) * rows + cell.activations * hidden);
  c.cost.horus_linears = 2 * steps * directions;
  c.cost.horus_activations = cell.activations * steps * directions;

  // The input product runs once over all steps; each step then needs one product and one pointwise kernel, and
  // reads the recurrent weights again.
  const double element = c.OutCount(0) > 0 ? c.OutBytes(0) / c.OutCount(0) : 4;
  const double gate_bytes = units * cell.gates * element;
  const double state_bytes = units * element;
  const double step_bytes = steps * c.InBytes(2) + 2 * gate_bytes + 3 * state_bytes;
  const double step_blocks = MatmulBlocks(1, batch, rows, hidden);
  c.Forward(directions, c.InBytes(0) + c.InBytes(1) + gate_bytes, MatmulBlocks(1, steps * batch, rows, in));
  c.Forward(2 * steps * directions, step_bytes, step_blocks);

  c.cost.library_kernels = c.cost.forward.kernels - 1;  // cuDNN runs the layer in one call

  const bool weights = c.Wants(1) || c.Wants(2);
  if (!c.Wants(0) && !weights) return;
  // Through time: dH of each step, then dX, dW and dR over all steps at once.
  const double in_product = 2 * steps * batch * directions * rows * in;
  const double hidden_product = product - in_product;
  c.cost.backward.flops = hidden_product + (c.Wants(0) ? in_product : 0) + (weights ? product : 0);
  c.cost.backward.flops_other = 2 * units * cell.pointwise_flops;
  c.Backward(2 * steps * directions, step_bytes + gate_bytes, step_blocks);
  if (c.Wants(0))
    c.Backward(directions, gate_bytes + c.InBytes(1) + c.InBytes(0), MatmulBlocks(1, steps * batch, in, rows));
  if (weights) {
    const double bytes = 2 * gate_bytes + c.InBytes(0) + state_bytes + c.InBytes(1) + c.InBytes(2);
    c.Backward(3 * directions, bytes, MatmulBlocks(1, rows, in, steps * batch));
  }
  c.cost.library_kernels += c.cost.backward.kernels - 1;
  c.SaveInput(0);
  c.SaveOutput(0);
  c.SaveExtra(gate_bytes + state_bytes);  // cuDNN's reserve space: gates and cell states
}

template <const Cell& kCell>
void RecurrentLayer(CostContext& c, const CostRule&) {
  Recurrent(c, kCell);
}

constexpr CostRule kMatrixCostRules[] = {
    {"Conv ConvInteger DeformConv com.microsoft::FusedConv", OpClass::kConvolution, Convolution},
    {"ConvTranspose", OpClass::kConvolution, ConvTranspose},
    {"Gemm com.microsoft::FusedGemm", OpClass::kMatmul, Gemm},
    {"MatMul MatMulInteger com.microsoft::DynamicQuantizeMatMul com.microsoft::MatMulIntegerToFloat "
     "com.microsoft::FusedMatMul com.microsoft::TransposeMatMul",
     OpClass::kMatmul, MatMul},
    {kPackedProduct, OpClass::kMatmul, MatMul},
    {"Einsum", OpClass::kMatmul, Einsum},
    {"com.microsoft::MoE com.microsoft::QMoE", OpClass::kMatmul, MixtureOfExperts},
    {"horus::AllReduce", OpClass::kDataMovement, AllReduce},
    {"LSTM", OpClass::kRecurrent, RecurrentLayer<kLstm>},
    {"GRU", OpClass::kRecurrent, RecurrentLayer<kGru>},
    {"RNN", OpClass::kRecurrent, RecurrentLayer<kRnn>},
};

}  // namespace

std::span<const CostRule> MatrixCostRules() { return kMatrixCostRules; }

}  // namespace horus
