// SPDX-License-Identifier: Apache-2.0
// Conjugate gradients: solves A x = b for a symmetric positive definite A that is only known by what it does to a
// vector.
//
// Enters:  a function that gives A x; b.   Leaves: x, equal for equal input.
// Units:   of the caller.
// Cost:    one product an iteration, a few hundred at most for covariances with noise.   Thread class: pure function.
#pragma once

#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace horus {

// Until the residual is `tolerance` of b, or after `most` iterations, or before one for which go_on() is false.
template <typename Times>
[[nodiscard]] std::vector<double> SolveByConjugateGradients(
    const Times& times, std::vector<double> b, double tolerance, int most,
    const std::function<bool()>& go_on = [] { return true; }) {
  const auto square_of = [](const std::vector<double>& v) {
    return std::inner_product(v.begin(), v.end(), v.begin(), 0.0);
  };
  std::vector<double> x(b.size()), left = std::move(b), direction = left;
  double square = square_of(left);
  const double enough = square * tolerance * tolerance;
  for (int i = 0; i < most && square > enough && go_on(); ++i) {
    const std::vector<double> product = times(direction);
    const double curvature = std::inner_product(direction.begin(), direction.end(), product.begin(), 0.0);
    if (!(curvature > 0)) break;  // A is not positive definite but for rounding: what is found so far is the best
    const double step = square / curvature;
    for (size_t r = 0; r < x.size(); ++r) {
      x[r] += step * direction[r];
      left[r] -= step * product[r];
    }
    const double next = square_of(left);
    for (size_t r = 0; r < x.size(); ++r) direction[r] = left[r] + next / square * direction[r];
    square = next;
  }
  return x;
}

}  // namespace horus
