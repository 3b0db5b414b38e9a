// SPDX-License-Identifier: Apache-2.0
// Recognises what exporters decompose: PyTorch runs it as one kernel and keeps its input alone.
#include "features/fusions.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace horus {
namespace {

constexpr size_t kNone = SIZE_MAX;

class Finder {
 public:
  explicit Finder(const ShapedGraph& shaped)
      : shaped_(shaped),
        uses_(shaped.tensors.size(), 0),
        reader_(shaped.tensors.size(), kNone),
        maker_(shaped.tensors.size(), kNone),
        found_(shaped.ops.size()) {
    for (size_t i = 0; i < shaped.ops.size(); ++i) {
      for (const TensorId id : shaped.ops[i].inputs) {
        if (!id.valid()) continue;
        ++uses_[id.value()];
        reader_[id.value()] = i;
      }
      for (const TensorId id : shaped.ops[i].outputs) {
        if (id.valid()) maker_[id.value()] = i;
      }
    }
    for (const TensorId id : shaped.outputs) {
      if (id.valid()) ++uses_[id.value()];
    }
  }

  std::vector<Fusion> Run() {
    for (size_t i = 0; i < shaped_.ops.size(); ++i) {
      if (Is(i, "Sigmoid")) FuseGate(i, "Swish");
      if (Is(i, "HardSigmoid")) FuseGate(i, "HardSwish");
      if (Is(i, "Erf")) FuseGelu(i);
      if (Is(i, "Pad")) FusePool(i);
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool Is(size_t op, std::string_view type) const {
    if (op == kNone) return false;
    const Op& o = shaped_.ops[op];
    return !o.plumbing && o.node != nullptr && o.node->domain.empty() && o.node->op_type == type && !o.inputs.empty() &&
           o.inputs[0].valid() && o.outputs.size() == 1 && o.outputs[0].valid();
  }
  [[nodiscard]] TensorId OutputOf(size_t op) const { return shaped_.ops[op].outputs[0]; }

  // The only operator that reads the output of `op`; kNone when there are several, or the graph returns it.
  [[nodiscard]] size_t OnlyReader(size_t op) const {
    const TensorId out = OutputOf(op);
    return uses_[out.value()] == 1 ? reader_[out.value()] : kNone;
  }

  // The other operand of a binary operator; invalid when `id` is none of them.
  [[nodiscard]] TensorId Other(size_t op, TensorId id) const {
    const std::vector<TensorId>& in = shaped_.ops[op].inputs;
    if (in.size() != 2 || !in[0].valid() || !in[1].valid()) return {};
    if (in[0] == id) return in[1];
    return in[1] == id ? in[0] : TensorId();
  }
  [[nodiscard]] bool IsScalar(TensorId id) const {
    const Tensor* tensor = id.valid() ? &shaped_.tensors[id.value()] : nullptr;
    return tensor != nullptr && tensor->known && tensor->elements() == 1 && tensor->role != TensorRole::kActivation;
  }
  // What `op` scales by a scalar, where it is a product or a quotient of that kind.
  [[nodiscard]] TensorId ScaledBy(size_t op) const {
    if (!Is(op, "Mul") && !Is(op, "Div")) return {};
    const std::vector<TensorId>& in = shaped_.ops[op].inputs;
    if (in.size() != 2 || !in[1].valid()) return {};
    if (IsScalar(in[1])) return in[0];
    return Is(op, "Mul") && IsScalar(in[0]) ? in[1] : TensorId();
  }

  // Average pooling that counts its padding has no padding of its own in older opsets.
  void FusePool(size_t pad) {
    const size_t pool = OnlyReader(pad);
    if (Is(pool, "AveragePool")) Accept(std::array{pad}, pool, "AveragePool", shaped_.ops[pad].inputs[0]);
  }

  void FuseGate(size_t gate, std::string_view name) {
    const TensorId x = shaped_.ops[gate].inputs[0];
    const size_t product = OnlyReader(gate);
    if (!Is(product, "Mul") || Other(product, OutputOf(gate)) != x) return;
    Accept(std::array{gate}, product, name, x);
  }

  // x * (1 + erf(x / sqrt 2)) / 2, the half applied before or after the product, or folded into x.
  void FuseGelu(size_t erf) {
    const size_t scale = maker_[shaped_.ops[erf].inputs[0].value()];
    if (scale == kNone || uses_[shaped_.ops[erf].inputs[0].value()] != 1) return;
    const TensorId x = ScaledBy(scale);
    const size_t sum = OnlyReader(erf);
    if (!x.valid() || !Is(sum, "Add") || !IsScalar(Other(sum, OutputOf(erf)))) return;
    const size_t product = OnlyReader(sum);
    if (!Is(product, "Mul")) return;
    const TensorId other = Other(product, OutputOf(sum));
    if (other == x) {
      const size_t half = OnlyReader(product);
      if (half != kNone && ScaledBy(half) == OutputOf(product)) {
        Accept(std::array{scale, erf, sum, product}, half, "Gelu", x);
      } else {
        Accept(std::array{scale, erf, sum}, product, "Gelu", x);
      }
      return;
    }
    const size_t half = other.valid() ? maker_[other.value()] : kNone;
    if (half != kNone && uses_[other.value()] == 1 && ScaledBy(half) == x) {
      Accept(std::array{scale, erf, sum, half}, product, "Gelu", x);
    }
  }

  template <size_t N>
  void Accept(const std::array<size_t, N>& absorbed, size_t last, std::string_view name, TensorId source) {
    const int64_t repeat = shaped_.ops[last].repeat;
    const auto taken = [this, repeat](size_t op) {
      return found_[op].absorbed || !found_[op].stands_for.empty() || shaped_.ops[op].repeat != repeat;
    };
    if (taken(last) || std::any_of(absorbed.begin(), absorbed.end(), taken)) return;
    for (const size_t op : absorbed) found_[op] = {.absorbed = true, .source = source};
    found_[last] = {.stands_for = name, .source = source};
  }

  const ShapedGraph& shaped_;
  std::vector<uint32_t> uses_;  // per tensor, by operators and as graph outputs
  std::vector<size_t> reader_;  // per tensor, the last operator that reads it
  std::vector<size_t> maker_;   // per tensor
  std::vector<Fusion> found_;
};

}  // namespace

std::vector<Fusion> FindFusions(const ShapedGraph& shaped) { return Finder(shaped).Run(); }

}  // namespace horus
