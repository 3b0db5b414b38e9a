// SPDX-License-Identifier: Apache-2.0
// Cost of a matrix product: two FLOPs a multiply-add, one product a gradient.
#include "features/cost_product.h"

#include <algorithm>

namespace horus {
namespace {

double Flops(const Product& p) { return 2 * p.batch * p.m * p.n * p.k; }

// Under autocast a float32 weight is cast once a step and its gradient cast back.
void AddWeightCast(CostContext& c, size_t weight) {
  if (!c.amp() || !c.IsWeight(weight)) return;
  constexpr double kCastBytes = 6;  // 4 read, 2 written, an element
  const double elements = c.InCount(weight);
  c.Forward(1, kCastBytes * elements, PointwiseBlocks(elements));
  if (c.Wants(weight)) c.Backward(1, kCastBytes * elements, PointwiseBlocks(elements));
}

}  // namespace

void ApplyProduct(CostContext& c, const Product& p) {
  const double a = c.InBytes(p.a), b = c.InBytes(p.b), y = c.OutBytes(0);
  const double outputs = c.OutCount(0);
  const bool has_bias = p.bias != SIZE_MAX && c.Has(p.bias);
  c.cost.forward.flops = Flops(p);
  c.cost.product = {p.batch, p.m, p.n, p.k, std::max(1.0, p.taps), c.Wants(p.a), c.Wants(p.b)};
  c.Forward(1, a + b + y, MatmulBlocks(p.batch, p.m, p.n, p.k));
  if (has_bias) {
    c.cost.forward.flops_other = outputs;
    if (p.bias_kernel) c.Forward(1, 2 * y, PointwiseBlocks(outputs));
  }
  if (c.Wants(p.a)) {  // dA = dY Bt
    c.cost.backward.flops += Flops(p);
    c.Backward(1, y + b + a, MatmulBlocks(p.batch, p.m, p.k, p.n));
    c.SaveInput(p.b);
  }
  if (c.Wants(p.b)) {  // dB = At dY
    c.cost.backward.flops += Flops(p);
    c.Backward(1, y + a + b, MatmulBlocks(p.batch, p.k, p.n, p.m));
    c.SaveInput(p.a);
  }
  if (has_bias && c.Wants(p.bias)) {
    c.cost.backward.flops_other += outputs;
    c.Backward(1, y, PointwiseBlocks(outputs));
  }
  AddWeightCast(c, p.b);
}

void CountLinear(CostContext& c, const Product& p) {
  c.cost.horus_flops = p.batch * p.m * std::max(0.0, 2 * p.k - 1) * p.n;
  c.cost.horus_linears = 1;
}

}  // namespace horus
