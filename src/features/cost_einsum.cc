// SPDX-License-Identifier: Apache-2.0
// Cost of Einsum: operands are contracted from left to right, each pair as one batched matrix product.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "features/cost_product.h"

namespace horus {
namespace {

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
    for (const char ch : std::string_view(text).substr(arrow + 2)) {
      e.in_output[static_cast<unsigned char>(ch) % kLabels] = true;
    }
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

}  // namespace

void Einsum(CostContext& c, const CostRule&) {
  Equation e = ReadEquation(c);
  if (!e.valid) {
    return c.Unknown();
  }
  if (e.terms.size() == 1) {  // a sum or a permutation: no product
    const double elements = Volume(e.terms[0]);
    c.cost.forward.flops_other = elements > c.OutCount(0) ? elements : 0;
    c.Forward(1, c.AllInBytes() + c.OutBytes(0), PointwiseBlocks(elements));
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

}  // namespace horus
