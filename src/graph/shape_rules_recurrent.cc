// SPDX-License-Identifier: Apache-2.0
// Shape rules of RNN, GRU and LSTM.
#include "graph/shape_rule.h"

namespace horus {
namespace {

int64_t GatesOf(std::string_view op) { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }

absl::Status CheckWeights(RuleContext& c, int64_t directions, int64_t hidden, int64_t features) {
  const int64_t gates = GatesOf(c.node().op_type);
  if (!c.ranked(1)) return absl::OkStatus();
  // Bounded: hidden is at most kMaxAttribute, checked by the caller, of 4 gates.
  const bool fits = c.rank(1) == 3 && Agree(c.dim(1, 0), directions) && Agree(c.dim(1, 2), features) &&
                    (hidden == kUnknownDim || Agree(c.dim(1, 1), gates * hidden));
  if (fits) return absl::OkStatus();
  // Bounded: hidden is at most kMaxAttribute, checked by the caller, of 4 gates.
  return InvalidArgument("weight has shape %s, expected [%d,%d,%d] for input %s", DimsText(c.dims(1)), directions,
                         gates * hidden, features, DimsText(c.dims(0)));
}

absl::Status Recurrent(RuleContext& c) {
  const DType dtype = c.dtype(0);
  for (size_t i = 0; i < 3; ++i) c.SetType(i, dtype);
  if (!c.ranked(0)) return absl::OkStatus();
  if (c.rank(0) != 3) return InvalidArgument("input has shape %s, expected rank 3", DimsText(c.dims(0)));
  const int64_t directions = c.node().StringOr("direction", "forward") == "bidirectional" ? 2 : 1;
  int64_t hidden = c.node().IntOr("hidden_size", kUnknownDim);
  if (hidden == kUnknownDim) hidden = c.dim(2, 2);  // R is [directions, gates * hidden, hidden]
  if (hidden != kUnknownDim && (hidden < 1 || hidden > kMaxAttribute)) {
    return InvalidArgument("attribute hidden_size is %d, expected 1 to %d", hidden, kMaxAttribute);
  }
  HORUS_RETURN_IF_ERROR(CheckWeights(c, directions, hidden, c.dim(0, 2)));
  const bool batch_first = c.node().IntOr("layout", 0) != 0;
  const int64_t steps = c.dim(0, batch_first ? 1 : 0);
  const int64_t batch = c.dim(0, batch_first ? 0 : 1);
  const Dims all = batch_first ? Dims{batch, steps, directions, hidden} : Dims{steps, directions, batch, hidden};
  const Dims last = batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  HORUS_RETURN_IF_ERROR(c.Set(0, dtype, all));
  HORUS_RETURN_IF_ERROR(c.Set(1, dtype, last));
  return c.Set(2, dtype, last);
}

constexpr RuleEntry kRules[] = {
    {"", "GRU", Recurrent},
    {"", "LSTM", Recurrent},
    {"", "RNN", Recurrent},
};

}  // namespace

std::span<const RuleEntry> RecurrentRules() { return kRules; }

}  // namespace horus
