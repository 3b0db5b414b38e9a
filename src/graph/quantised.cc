// SPDX-License-Identifier: Apache-2.0
// The table of quantised operators: what each stands for, and which of its inputs are data, weights or biases.
#include "graph/quantised.h"

#include <algorithm>
#include <iterator>

namespace horus {
namespace {

struct Stand {
  std::string_view op_type;
  std::string_view becomes;
  std::string_view domain;
  std::initializer_list<size_t> inputs;
};

constexpr std::string_view kMicrosoft = "com.microsoft";

// Of the default domain or com.microsoft alike: onnxruntime has had some of them in both.
const Stand kStands[] = {
    {"QAttention", "Attention", kMicrosoft, {0, 1, 2, 5, 8}},
    {"QGemm", "Gemm", "", {0, 3, 6}},
    {"QLinearAdd", "Add", "", {0, 3}},
    {"QLinearAveragePool", "AveragePool", "", {0}},
    {"QLinearConcat", "Concat", "", {}},  // any number, from the third on: each with scale and zero point
    {"QLinearConv", "Conv", "", {0, 3, 8}},
    {"QLinearGlobalAveragePool", "GlobalAveragePool", "", {0}},
    {"QLinearLeakyRelu", "LeakyRelu", "", {0}},
    {"QLinearMatMul", "MatMul", "", {0, 3}},
    {"QLinearMul", "Mul", "", {0, 3}},
    {"QLinearReduceMean", "ReduceMean", "", {0}},
    {"QLinearSigmoid", "Sigmoid", "", {0}},
    {"QLinearSoftmax", "Softmax", "", {0}},
    {"QLinearWhere", "Where", "", {0, 1, 4}},
};

}  // namespace

std::optional<Node> Unquantised(const Node& node) {
  const auto* stand = std::find_if(std::begin(kStands), std::end(kStands),
                                   [&node](const Stand& one) { return one.op_type == node.op_type; });
  if (stand == std::end(kStands) || (!node.domain.empty() && node.domain != kMicrosoft)) return std::nullopt;
  Node plain = node;
  plain.op_type = stand->becomes;
  plain.domain = stand->domain;
  plain.inputs.clear();
  for (const size_t i : stand->inputs) plain.inputs.push_back(i < node.inputs.size() ? node.inputs[i] : ValueId());
  for (size_t i = 2; stand->becomes == "Concat" && i < node.inputs.size(); i += 3)
    plain.inputs.push_back(node.inputs[i]);
  return plain;
}

}  // namespace horus
