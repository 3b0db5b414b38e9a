// SPDX-License-Identifier: Apache-2.0
// The normal quantile by bisection and Newton, and the shifted lognormal family over it.
#include "interference/quantile.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "interference/excess.h"

namespace horus {

double DeviationsAt(double probability) {
  // Newton's method on the distribution function; from 0 it approaches from below and does not overshoot.
  const double tail = std::min(probability, 1 - probability);
  double x = 0;
  for (int i = 0; i < 100; ++i) {
    const double left = 0.5 * std::erfc(x / std::numbers::sqrt2) - tail;  // still above x
    const double step = left * std::sqrt(2 * std::numbers::pi) * std::exp(x * x / 2);
    x += step;
    if (std::abs(step) < 1e-12) break;
  }
  return probability < 0.5 ? -x : x;
}

double SlowdownAt(const Slowdown& answer, double upper_probability, double probability) {
  const auto estimate = static_cast<double>(answer.estimate), upper = static_cast<double>(answer.upper);
  if (probability == upper_probability || upper <= estimate) return upper;
  const double least = estimate - kSlowdownShift;
  const double ratio = DeviationsAt(probability) / DeviationsAt(upper_probability);
  return std::min(kSlowdownShift + least * std::pow((upper - kSlowdownShift) / least, ratio),
                  static_cast<double>(kMaxSlowdown));
}

}  // namespace horus
