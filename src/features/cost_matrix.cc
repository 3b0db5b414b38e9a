// SPDX-License-Identifier: Apache-2.0
// Cost of convolutions and matrix products: two FLOPs a multiply-add, one product a gradient.
#include <algorithm>
#include <array>
#include <string_view>

#include "features/cost_rules.h"

namespace horus {
namespace {

// A product as the library runs it; the tensors' bytes are those of the whole operator.
struct Product {
  double batch = 1, m = 1, n = 1, k = 1;
  size_t a = 0;  // positions of the operands
  size_t b = 1;
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

void ApplyProduct(CostContext& c, const Product& p) {
  const double a = c.InBytes(p.a), b = c.InBytes(p.b), y = c.OutBytes(0);
  const double outputs = c.OutCount(0);
  const bool has_bias = p.bias != SIZE_MAX && c.Has(p.bias);
  c.cost.forward_flops = Flops(p);
  c.Forward(1, a + b + y, MatmulBlocks(p.batch, p.m, p.n, p.k));
  if (has_bias) {
    c.cost.forward_flops_other = outputs;
    if (p.bias_kernel) c.Forward(1, 2 * y, PointwiseBlocks(outputs));
  }
  if (c.Wants(p.a)) {  // dA = dY Bt
    c.cost.backward_flops += Flops(p);
    c.Backward(1, y + b + a, MatmulBlocks(p.batch, p.m, p.k, p.n));
    c.SaveInput(p.b);
  }
  if (c.Wants(p.b)) {  // dB = At dY
    c.cost.backward_flops += Flops(p);
    c.Backward(1, y + a + b, MatmulBlocks(p.batch, p.k, p.n, p.m));
    c.SaveInput(p.a);
  }
  if (has_bias && c.Wants(p.bias)) {
    c.cost.backward_flops_other += outputs;
    c.Backward(1, y, PointwiseBlocks(outputs));
  }
  AddWeightCast(c, p.b);
}

// cuDNN's algorithms for filters larger than one element (Winograd, FFT, other layouts) may work on transformed copies
// of the input and the output; a pointwise filter is a plain product, and the implicit one needs no copy.
void AddWorkspace(CostContext& c, size_t x, double filter, double channels_per_group) {
  if (filter <= channels_per_group) return;
  c.cost.workspace_bytes = c.InBytes(x) + c.OutBytes(0);
}

// Operand positions of the convolution family.
struct ConvSlots {
  size_t x, w, bias;
};
ConvSlots SlotsOf(std::string_view name) {
  if (name == "QLinearConv") return {0, 3, 8};
  if (name == "ConvInteger") return {0, 1, SIZE_MAX};
  if (name == "DeformConv") return {0, 1, 3};
  return {0, 1, 2};
}

void Convolution(CostContext& c, const CostRule& rule) {
  const ConvSlots slots = SlotsOf(rule.name);
  if (!c.Has(slots.x) || !c.Has(slots.w) || !c.HasOut(0)) return;
  const Tensor& w = c.In(slots.w);
  // Weights are [out channels, in channels / groups, kernel...]; each output element sums one filter.
  const double out_channels = std::max(1.0, CostContext::Dim(w, 0));
  const double filter = c.InCount(slots.w) / out_channels;
  const double groups = std::max<double>(1, static_cast<double>(c.node().IntOr("group", 1)));
  const double outputs = c.OutCount(0);
  Product p;
  p.batch = groups;
  p.m = outputs / out_channels;
  p.n = out_channels / groups;
  p.k = filter;
  p.a = slots.x;
  p.b = slots.w;
  p.bias = slots.bias;
  p.bias_kernel = true;
  ApplyProduct(c, p);
  AddWorkspace(c, slots.x, filter, CostContext::Dim(w, 1));
  c.cost.horus_flops = outputs * filter;
  c.cost.horus_convs = 1;
  if (rule.name == "com.microsoft::FusedConv") c.cost.forward_flops_other += outputs;
}

void ConvTranspose(CostContext& c, const CostRule&) {
  if (!c.Has(0) || !c.Has(1) || !c.HasOut(0)) return;
  // Weights are [in channels, out channels / groups, kernel...]; each input element is spread over one filter.
  const double in_channels = std::max(1.0, CostContext::Dim(c.In(1), 0));
  const double filter = c.InCount(1) / in_channels;
  const double groups = std::max<double>(1, static_cast<double>(c.node().IntOr("group", 1)));
  Product p;
  p.batch = groups;
  p.m = c.InCount(0) / in_channels;
  p.n = filter;
  p.k = in_channels / groups;
  p.bias = 2;
  p.bias_kernel = true;
  ApplyProduct(c, p);
  AddWorkspace(c, 0, filter, CostContext::Dim(c.In(1), 1));
  c.cost.horus_flops = c.InCount(0) * filter;
  c.cost.horus_convs = 1;
}

void CountLinear(CostContext& c, const Product& p) {
  c.cost.horus_flops = p.batch * p.m * std::max(0.0, 2 * p.k - 1) * p.n;
  c.cost.horus_linears = 1;
}

void Gemm(CostContext& c, const CostRule& rule) {
  if (!c.Has(0) || !c.Has(1) || !c.HasOut(0)) return;
  const bool transposed = c.node().IntOr("transA", 0) != 0;
  Product p;
  p.m = CostContext::Dim(c.Out(0), 0);
  p.n = CostContext::Dim(c.Out(0), 1);
  p.k = CostContext::Dim(c.In(0), transposed ? 0 : 1);
  p.bias = 2;
  ApplyProduct(c, p);
  CountLinear(c, p);
  if (rule.name == "com.microsoft::FusedGemm") c.cost.forward_flops_other += c.OutCount(0);
}

void MatMul(CostContext& c, const CostRule& rule) {
  const bool quantised = rule.name == "QLinearMatMul";
  const size_t a = 0, b = quantised ? 3 : 1;
  if (!c.Has(a) || !c.Has(b) || !c.HasOut(0)) return;
  const Tensor& ta = c.In(a);
  const Tensor& tb = c.In(b);
  const bool trans_a = c.node().IntOr("transA", 0) != 0;
  Product p;
  p.a = a;
  p.b = b;
  p.k = ta.dims.size() < 2 ? c.InCount(a) : CostContext::Dim(ta, trans_a ? -2 : -1);
  const double outputs = c.OutCount(0);
  p.n = tb.dims.size() < 2 ? 1 : CostContext::Dim(c.Out(0), -1);
  if (tb.dims.size() <= 2) {
    p.m = p.n > 0 ? outputs / p.n : 0;
  } else {
    p.m = ta.dims.size() < 2 ? 1 : CostContext::Dim(c.Out(0), -2);
    p.batch = p.m * p.n > 0 ? outputs / (p.m * p.n) : 0;
  }
  ApplyProduct(c, p);
  CountLinear(c, p);
  // A product of two activations is the dot product of an attention, decomposed.
  if (!c.IsWeight(a) && !c.IsWeight(b)) c.cost.op_class = OpClass::kAttention;
}

// Sizes of the labels of an Einsum equation. Spaces are skipped; "..." stands for the dimensions left over.
struct Einsum {
  std::array<double, 128> size = {};
  std::array<bool, 128> in_output = {};
  double ellipsis = 1;
  bool valid = true;
};

void ReadTerm(std::string_view term, const Tensor& tensor, Einsum& e) {
  const auto letters = static_cast<int64_t>(std::count_if(term.begin(), term.end(), [](char ch) { return ch != '.'; }));
  const auto extra = static_cast<int64_t>(tensor.dims.size()) - letters;
  if (extra < 0) e.valid = false;
  double ellipsis = 1;
  int64_t axis = 0;
  for (size_t i = 0; i < term.size() && e.valid; ++i) {
    if (term[i] == '.') {
      for (int64_t d = 0; d < extra; ++d) ellipsis *= CostContext::Dim(tensor, axis++);
      i += 2;
      continue;
    }
    const auto label = static_cast<unsigned char>(term[i]);
    if (label >= e.size.size()) {
      e.valid = false;
      break;
    }
    e.size[label] = std::max(e.size[label], CostContext::Dim(tensor, axis++));
  }
  e.ellipsis = std::max(e.ellipsis, ellipsis);
}

void EinsumRule(CostContext& c, const CostRule&) {
  std::string equation(c.node().StringOr("equation", ""));
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  const std::string_view left = std::string_view(equation).substr(0, arrow);
  Einsum e;
  size_t begin = 0;
  for (size_t i = 0; i < c.inputs() && begin <= left.size(); ++i) {
    const size_t end = std::min(left.find(',', begin), left.size());
    if (c.Has(i)) ReadTerm(left.substr(begin, end - begin), c.In(i), e);
    begin = end + 1;
  }
  if (arrow != std::string::npos) {
    for (const char ch : std::string_view(equation).substr(arrow + 2)) {
      if (static_cast<unsigned char>(ch) < e.in_output.size()) e.in_output[static_cast<unsigned char>(ch)] = true;
    }
  }
  double all = e.ellipsis, summed = 1;
  for (size_t label = 0; label < e.size.size(); ++label) {
    if (e.size[label] <= 0) continue;
    all *= e.size[label];
    if (!e.in_output[label]) summed *= e.size[label];
  }
  if (!e.valid || c.inputs() == 0) {
    c.cost.known = false;
    return;
  }
  if (c.inputs() == 1) {  // a sum or a permutation: no product
    c.cost.forward_flops_other = summed > 1 ? all : 0;
    c.Forward(1, c.AllInBytes() + c.OutBytes(0), PointwiseBlocks(all));
    if (c.Wants(0)) c.Backward(1, c.AllInBytes() + c.OutBytes(0), PointwiseBlocks(all));
    return;
  }
  Product p;
  p.m = summed > 0 ? all / summed : 0;
  p.k = summed;
  ApplyProduct(c, p);
  CountLinear(c, p);
  if (!c.IsWeight(0) && !c.IsWeight(1)) c.cost.op_class = OpClass::kAttention;
}

constexpr CostRule kRules[] = {
    {.name = "Conv", .op_class = OpClass::kConvolution, .apply = Convolution},
    {.name = "ConvInteger", .op_class = OpClass::kConvolution, .apply = Convolution},
    {.name = "QLinearConv", .op_class = OpClass::kConvolution, .apply = Convolution},
    {.name = "DeformConv", .op_class = OpClass::kConvolution, .apply = Convolution},
    {.name = "com.microsoft::FusedConv", .op_class = OpClass::kConvolution, .apply = Convolution},
    {.name = "ConvTranspose", .op_class = OpClass::kConvolution, .apply = ConvTranspose},
    {.name = "Gemm", .op_class = OpClass::kMatmul, .apply = Gemm},
    {.name = "com.microsoft::FusedGemm", .op_class = OpClass::kMatmul, .apply = Gemm},
    {.name = "MatMul", .op_class = OpClass::kMatmul, .apply = MatMul},
    {.name = "MatMulInteger", .op_class = OpClass::kMatmul, .apply = MatMul},
    {.name = "QLinearMatMul", .op_class = OpClass::kMatmul, .apply = MatMul},
    {.name = "com.microsoft::FusedMatMul", .op_class = OpClass::kMatmul, .apply = MatMul},
    {.name = "com.microsoft::TransposeMatMul", .op_class = OpClass::kMatmul, .apply = MatMul},
    {.name = "Einsum", .op_class = OpClass::kMatmul, .apply = EinsumRule},
};

}  // namespace

std::span<const CostRule> MatrixCostRules() { return kRules; }

}  // namespace horus
