// SPDX-License-Identifier: Apache-2.0
// Shape rules of matrix products.
#include <array>

#include "graph/shape_rule.h"

namespace horus {
namespace {

// Numpy matmul of dims a and b (rank >= 1 each).
absl::StatusOr<Dims> MatMulDims(Dims a, Dims b) {
  if (a.empty() || b.empty()) {
    return InvalidArgument("shapes %s and %s: a scalar has no matrix product", DimsText(a), DimsText(b));
  }
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  const Dims left = a;
  const Dims right = b;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (!Agree(a.back(), b[b.size() - 2])) {
    return InvalidArgument("shapes %s and %s: inner sizes %d and %d differ", DimsText(left), DimsText(right), a.back(),
                           b[b.size() - 2]);
  }
  HORUS_ASSIGN_OR_RETURN(Dims out, Broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2)));
  if (!row) out.push_back(a[a.size() - 2]);
  if (!column) out.push_back(b.back());
  return out;
}

absl::Status MatMulShape(RuleContext& c, size_t a, size_t b, DType dtype) {
  c.SetType(0, dtype);
  if (!c.ranked(a) || !c.ranked(b)) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(Dims out, MatMulDims(c.dims(a), c.dims(b)));
  return c.Set(0, dtype, std::move(out));
}

absl::Status MatMul(RuleContext& c) { return MatMulShape(c, 0, 1, c.dtype(0)); }
absl::Status MatMulInteger(RuleContext& c) { return MatMulShape(c, 0, 1, DType::kInt32); }
absl::Status QLinearMatMul(RuleContext& c) { return MatMulShape(c, 0, 3, c.dtype(7)); }

absl::Status Gemm(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  if (!c.ranked(0) || !c.ranked(1)) return absl::OkStatus();
  if (c.rank(0) != 2 || c.rank(1) != 2) {
    return InvalidArgument("inputs have shapes %s and %s, expected two matrices", DimsText(c.dims(0)),
                           DimsText(c.dims(1)));
  }
  const bool flip_a = c.node().IntOr("transA", 0) != 0;
  const bool flip_b = c.node().IntOr("transB", 0) != 0;
  const int64_t inner_a = c.dim(0, flip_a ? 0 : 1);
  const int64_t inner_b = c.dim(1, flip_b ? 1 : 0);
  if (!Agree(inner_a, inner_b)) {
    return InvalidArgument("shapes %s%s and %s%s: inner sizes %d and %d differ", DimsText(c.dims(0)),
                           flip_a ? " transposed" : "", DimsText(c.dims(1)), flip_b ? " transposed" : "", inner_a,
                           inner_b);
  }
  Dims out = {c.dim(0, flip_a ? 1 : 0), c.dim(1, flip_b ? 0 : 1)};
  if (c.ranked(2)) {
    HORUS_ASSIGN_OR_RETURN(const Dims with_bias, Broadcast(out, c.dims(2)));
    for (size_t i = 0; i < 2; ++i) {
      if (with_bias.size() != 2 || (out[i] != kUnknownDim && with_bias[i] != out[i])) {
        return InvalidArgument("bias %s does not broadcast to %s", DimsText(c.dims(2)), DimsText(out));
      }
    }
  }
  return c.Set(0, c.dtype(0), std::move(out));
}

// Labels of an Einsum: letters, and an ellipsis that stands for any number of leading axes.
struct Term {
  std::string letters;                  // without the ellipsis
  size_t ellipsis = std::string::npos;  // position of the ellipsis among the letters
};

absl::StatusOr<Term> TermOf(std::string_view text) {
  Term term;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] == '.') {
      if (text.substr(i, 3) != "..." || term.ellipsis != std::string::npos) {
        return InvalidArgument("equation has a misplaced dot");
      }
      term.ellipsis = term.letters.size();
      i += 2;
    } else if ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z')) {
      term.letters += text[i];
    } else {
      return InvalidArgument("equation holds the character '%c'", text[i]);
    }
  }
  return term;
}

struct EinsumSizes {
  std::array<int64_t, 128> size;  // by letter
  std::array<int, 128> uses;
  Dims ellipsis;
};

absl::Status Match(const Term& term, const Dims& dims, EinsumSizes* sizes) {
  const size_t letters = term.letters.size();
  const bool dots = term.ellipsis != std::string::npos;
  if (dims.size() < letters || (!dots && dims.size() != letters)) {
    return InvalidArgument("an input of shape %s does not fit the %d letters of its term", DimsText(dims), letters);
  }
  const size_t extra = dims.size() - letters;
  for (size_t i = 0; i < letters; ++i) {
    const int64_t found = dims[dots && i >= term.ellipsis ? i + extra : i];
    const auto letter = static_cast<size_t>(term.letters[i]);
    int64_t& size = sizes->size[letter];
    if (size == 1) size = found == kUnknownDim ? 1 : found;
    if (found != 1 && !Agree(size, found)) {
      return InvalidArgument("letter %c stands for %d and for %d", term.letters[i], size, found);
    }
    size = Known(size, found);
    ++sizes->uses[letter];
  }
  if (dots) {
    const auto first = dims.begin() + static_cast<std::ptrdiff_t>(term.ellipsis);
    HORUS_ASSIGN_OR_RETURN(sizes->ellipsis,
                           Broadcast(sizes->ellipsis, Dims(first, first + static_cast<std::ptrdiff_t>(extra))));
  }
  return absl::OkStatus();
}

absl::Status Einsum(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  std::string_view equation = c.node().StringOr("equation", "");
  const size_t arrow = equation.find("->");
  std::string_view inputs = equation.substr(0, arrow);
  EinsumSizes sizes;
  sizes.size.fill(kUnknownDim);
  sizes.uses.fill(0);
  bool dots = false;
  for (size_t i = 0; i < c.inputs(); ++i) {
    const size_t comma = inputs.find(',');
    HORUS_ASSIGN_OR_RETURN(const Term term, TermOf(inputs.substr(0, comma)));
    dots = dots || term.ellipsis != std::string::npos;
    if ((comma == std::string_view::npos) != (i + 1 == c.inputs())) {
      return InvalidArgument("the equation does not have one term for each of %d inputs", c.inputs());
    }
    inputs = comma == std::string_view::npos ? std::string_view() : inputs.substr(comma + 1);
    if (!c.ranked(i)) return absl::OkStatus();
    HORUS_RETURN_IF_ERROR(Match(term, c.dims(i), &sizes));
  }
  Term result;
  if (arrow != std::string_view::npos) {
    HORUS_ASSIGN_OR_RETURN(result, TermOf(equation.substr(arrow + 2)));
  } else {
    if (dots) result.ellipsis = 0;
    for (size_t letter = 0; letter < sizes.uses.size(); ++letter) {
      if (sizes.uses[letter] == 1) result.letters += static_cast<char>(letter);
    }
  }
  Dims out;
  for (size_t i = 0; i <= result.letters.size(); ++i) {
    if (i == result.ellipsis) out.insert(out.end(), sizes.ellipsis.begin(), sizes.ellipsis.end());
    if (i == result.letters.size()) break;
    const auto letter = static_cast<size_t>(result.letters[i]);
    if (sizes.uses[letter] == 0) return InvalidArgument("letter %c of the result is in no input", result.letters[i]);
    out.push_back(sizes.size[letter]);
  }
  return c.Set(0, c.dtype(0), std::move(out));
}

absl::Status Det(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  if (!c.ranked(0)) return absl::OkStatus();
  if (c.rank(0) < 2) return InvalidArgument("input has shape %s, expected matrices", DimsText(c.dims(0)));
  return c.Set(0, c.dtype(0), Dims(c.dims(0).begin(), c.dims(0).end() - 2));
}

// Moves the last but one axis in front of the last, as the transpose flags ask.
Dims Flipped(Dims dims, bool flip) {
  if (flip && dims.size() >= 2) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return dims;
}

absl::Status FusedMatMul(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  if (!c.ranked(0) || !c.ranked(1)) return absl::OkStatus();
  if (c.node().IntOr("transBatchA", 0) != 0 || c.node().IntOr("transBatchB", 0) != 0) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(Dims out, MatMulDims(Flipped(c.dims(0), c.node().IntOr("transA", 0) != 0),
                                              Flipped(c.dims(1), c.node().IntOr("transB", 0) != 0)));
  return c.Set(0, c.dtype(0), std::move(out));
}

constexpr RuleEntry kRules[] = {
    {"", "Det", Det},
    {"", "Einsum", Einsum},
    {"", "Gemm", Gemm},
    {"", "MatMul", MatMul},
    {"", "MatMulInteger", MatMulInteger},
    {"", "QLinearMatMul", QLinearMatMul},
    {"com.microsoft", "FusedGemm", Gemm},
    {"com.microsoft", "FusedMatMul", FusedMatMul},
    {"com.microsoft", "TransposeMatMul", FusedMatMul},
};

}  // namespace

std::span<const RuleEntry> MatrixRules() { return kRules; }

}  // namespace horus
