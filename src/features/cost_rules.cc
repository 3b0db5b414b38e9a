// SPDX-License-Identifier: Apache-2.0
// The table of cost rules and the questions a rule may ask of its operator.
#include "features/cost_rules.h"

#include <algorithm>
#include <cmath>

namespace horus {

double CostContext::AllInBytes() const {
  double bytes = 0;
  for (size_t i = 0; i < inputs(); ++i) {
    const bool again = std::find(op_.inputs.begin(), op_.inputs.begin() + static_cast<ptrdiff_t>(i), op_.inputs[i]) !=
                       op_.inputs.begin() + static_cast<ptrdiff_t>(i);
    if (!again) bytes += InBytes(i);
  }
  return bytes;
}

double CostContext::AllOutBytes() const {
  double bytes = 0;
  for (size_t i = 0; i < outputs(); ++i) bytes += OutBytes(i);
  return bytes;
}

double CostContext::Dim(const Tensor& tensor, int64_t axis) {
  const auto rank = static_cast<int64_t>(tensor.dims.size());
  if (axis < 0) axis += rank;
  if (!tensor.known || axis < 0 || axis >= rank) return 1;
  return static_cast<double>(tensor.dims[static_cast<size_t>(axis)]);
}

bool CostContext::IsWeight(size_t i) const {
  if (!Has(i)) return false;
  const TensorRole role = shaped_.tensors[step_.storage[op_.inputs[i].value()].value()].role;
  return role == TensorRole::kParameter || role == TensorRole::kConstant || role == TensorRole::kBuffer;
}

void PassCost::Launch(double more, double more_bytes, double blocks_each) {
  const double total = kernels + more;
  if (total > 0) blocks = (blocks * kernels + blocks_each * more) / total;
  kernels = total;
  bytes += more_bytes;
}

void PassCost::Add(const PassCost& more) {
  flops += more.flops;
  flops_other += more.flops_other;
  bytes += more.bytes;
  kernels += more.kernels;
}

double MatmulBlocks(double batch, double m, double n, double k) {
  const double tiles = std::ceil(m / kMatmulTile) * std::ceil(n / kMatmulTile);
  return batch * tiles * std::max(1.0, std::floor(k / kMatmulSplitDepth));
}

const std::vector<CostRule>& SortedCostRules() {
  static const std::vector<CostRule> sorted = [] {
    std::vector<CostRule> rules;
    for (const std::span<const CostRule> table :
         {MatrixCostRules(), AttentionCostRules(), PointwiseCostRules(), ReductionCostRules(), DataCostRules()}) {
      for (const CostRule& rule : table) {
        ForEachName(rule.name, [&](std::string_view name) { rules.emplace_back(rule).name = name; });
      }
    }
    std::ranges::sort(rules, {}, &CostRule::name);
    return rules;
  }();
  return sorted;
}

const CostRule* FindCostRule(const Node& node) {
  return node.domain.empty() ? FindCostRule(node.op_type) : FindCostRule(node.domain + "::" + node.op_type);
}

const CostRule* FindCostRule(std::string_view name) {
  const std::vector<CostRule>& rules = SortedCostRules();
  const auto at = std::ranges::lower_bound(rules, name, {}, &CostRule::name);
  return at != rules.end() && at->name == name ? &*at : nullptr;
}

}  // namespace horus
