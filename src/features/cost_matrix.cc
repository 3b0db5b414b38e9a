// SPDX-License-Identifier: Apache-2.0
// Cost of convolutions and matrix products: two FLOPs a multiply-add, one product a gradient.
#include <algorithm>
#include <string_view>

#include "features/cost_product.h"
#include "features/cost_rules.h"

namespace horus {
namespace {

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
  if (name == "ConvInteger") return {0, 1, SIZE_MAX};
  if (name == "DeformConv") return {0, 1, 3};
  return {0, 1, 2};
}

// Of few channels a group libraries run kernels of their own, without matrix units.
constexpr double kDepthwiseChannels = 4;

KernelKind ConvolutionKind(const Product& p) {
  if (p.batch > 1) {
    return p.k / p.taps <= kDepthwiseChannels ? KernelKind::kDepthwiseConvolution : KernelKind::kGroupedConvolution;
  }
  return p.taps > 1 ? KernelKind::kConvolution : KernelKind::kPointwiseConvolution;
}

void Convolution(CostContext& c, const CostRule& rule) {
  const ConvSlots slots = SlotsOf(rule.name);
  if (!c.Has(slots.x) || !c.Has(slots.w) || !c.HasOut(0)) return c.Unknown();
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
  p.taps = filter / std::max(1.0, CostContext::Dim(w, 1));
  p.a = slots.x;
  p.b = slots.w;
  p.bias = slots.bias;
  p.bias_kernel = true;
  ApplyProduct(c, p);
  AddWorkspace(c, slots.x, filter, CostContext::Dim(w, 1));
  c.cost.kind = ConvolutionKind(p);
  c.cost.horus_flops = outputs * filter;
  c.cost.horus_convs = 1;
  if (rule.name == "com.microsoft::FusedConv") c.cost.forward.flops_other += outputs;
}

void ConvTranspose(CostContext& c, const CostRule&) {
  if (!c.Has(0) || !c.Has(1) || !c.HasOut(0)) return c.Unknown();
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
  c.cost.kind = groups > 1 ? KernelKind::kGroupedConvolution : KernelKind::kConvolution;
  c.cost.horus_flops = c.InCount(0) * filter;
  c.cost.horus_convs = 1;
}

void Gemm(CostContext& c, const CostRule& rule) {
  if (!c.Has(0) || !c.Has(1) || !c.HasOut(0)) return c.Unknown();
  const bool transposed = c.node().IntOr("transA", 0) != 0;
  Product p;
  p.m = CostContext::Dim(c.Out(0), 0);
  p.n = CostContext::Dim(c.Out(0), 1);
  p.k = CostContext::Dim(c.In(0), transposed ? 0 : 1);
  p.bias = 2;
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
  Product p;
  p.k = ta.dims.size() < 2 ? c.InCount(a) : CostContext::Dim(ta, trans_a ? -2 : -1);
  const double outputs = c.OutCount(0);
  p.n = tb.dims.size() < 2 ? 1 : CostContext::Dim(c.Out(0), -1);
  if (tb.dims.size() <= 2 || packed) {
    p.m = p.n > 0 ? outputs / p.n : 0;
  } else {
    p.m = ta.dims.size() < 2 ? 1 : CostContext::Dim(c.Out(0), -2);
    p.batch = p.m * p.n > 0 ? outputs / (p.m * p.n) : 0;
  }
  ApplyProduct(c, p);
  CountLinear(c, p);
  // A product of two activations is the dot product of an attention, decomposed.
  if (!c.IsWeight(a) && !c.IsWeight(b)) c.BecomeAttention();
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
};

}  // namespace

std::span<const CostRule> MatrixCostRules() { return kMatrixCostRules; }

}  // namespace horus
