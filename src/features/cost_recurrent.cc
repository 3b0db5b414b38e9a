// SPDX-License-Identifier: Apache-2.0
// Cost of recurrent cells, unrolled by their length as cuDNN runs them.
#include <algorithm>

#include "features/cost_rules.h"

namespace horus {
namespace {

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
  const double steps = CostContext::Dim(c.In(0), batch_first ? 1 : 0);
  const double batch = CostContext::Dim(c.In(0), batch_first ? 0 : 1);
  const double in = CostContext::Dim(c.In(0), 2);
  const double directions = CostContext::Dim(c.In(1), 0);
  const double hidden = CostContext::Dim(c.In(2), 2);
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

void Lstm(CostContext& c, const CostRule&) { Recurrent(c, kLstm); }
void Gru(CostContext& c, const CostRule&) { Recurrent(c, kGru); }
void Rnn(CostContext& c, const CostRule&) { Recurrent(c, kRnn); }

constexpr CostRule kRecurrentCostRules[] = {
    {"LSTM", OpClass::kRecurrent, Lstm},
    {"GRU", OpClass::kRecurrent, Gru},
    {"RNN", OpClass::kRecurrent, Rnn},
};

}  // namespace

std::span<const CostRule> RecurrentCostRules() { return kRecurrentCostRules; }

}  // namespace horus
