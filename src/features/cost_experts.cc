// SPDX-License-Identifier: Apache-2.0
// Cost of mixtures of experts, and of collectives between the GPUs that share a layer.
#include <algorithm>
#include <cmath>

#include "features/cost_rules.h"

namespace horus {
namespace {

// com.microsoft.MoE and QMoE. `k` experts take each token, of so many as the attribute `experts` says (all of them
// where it is absent), evenly: those that a GPU has take its part of the tokens, and it reads those that any token goes
// to.
void MixtureOfExperts(CostContext& c, const CostRule& rule) {
  const bool quantised = rule.name == "com.microsoft::QMoE";
  const size_t up = 2, down = quantised ? 5 : 4;
  if (!c.Has(0) || !c.Has(up) || !c.Has(down)) return c.Unknown();
  const double held = CostContext::Dim(c.In(up), 0);
  const double all = std::max(held, static_cast<double>(c.node().IntOr("experts", 0)));
  const double k = std::clamp(static_cast<double>(c.node().IntOr("k", 1)), 1.0, std::max(1.0, all));
  const double hidden = CostContext::Dim(c.In(up), 2), made = CostContext::Dim(c.In(up), 1);
  const double inner = CostContext::Dim(c.In(down), 2);
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

constexpr CostRule kExpertCostRules[] = {
    {"com.microsoft::MoE com.microsoft::QMoE", OpClass::kMatmul, MixtureOfExperts},
    {"horus::AllReduce", OpClass::kDataMovement, AllReduce},
};

}  // namespace

std::span<const CostRule> ExpertCostRules() { return kExpertCostRules; }

}  // namespace horus
