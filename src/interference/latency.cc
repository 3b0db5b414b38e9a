// SPDX-License-Identifier: Apache-2.0
// One server, Poisson arrivals: the mean by Pollaczek and Khinchine, the tail by Cramer and Lundberg.
#include "interference/latency.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/status.h"
#include "interference/model.h"

namespace horus {
namespace {

constexpr double kUsPerS = 1e6;
constexpr double kTail = 0.01;               // of the requests take longer than p99
constexpr double kNormalP99 = 2.3263478740;  // 99th percentile of the standard normal
constexpr int kHalvings = 60;                // leave nothing of a double's 53 bits

absl::Status Check(const RequestLoad& load) {
  const auto finite = [](double value, double least) { return std::isfinite(value) && value >= least; };
  if (!finite(load.requests_per_s, 0)) {
    return InvalidArgument("latency: requests_per_s: expected 0 or more, found %g", load.requests_per_s);
  }
  if (!(load.service_us > 0 && load.service_us <= kMostServiceUs)) {
    return InvalidArgument("latency: service_us: expected above 0 and at most %g us, found %g", kMostServiceUs,
                           load.service_us);
  }
  if (!(load.slowdown >= 1 && load.slowdown <= static_cast<double>(kMaxSlowdown))) {
    return InvalidArgument("latency: slowdown: expected 1 to %g, found %g", kMaxSlowdown, load.slowdown);
  }
  if (!(load.service_cv >= 0 && load.service_cv <= kMostServiceCv)) {
    return InvalidArgument("latency: service_cv: expected 0 to %g, found %g", kMostServiceCv, load.service_cv);
  }
  return absl::OkStatus();
}

// E[exp(x S)] - 1 of a service time S with mean 1: constant, or gamma with that coefficient of variation squared.
double MomentLess1(double x, double cv2) {
  if (cv2 == 0) return std::expm1(x);
  const double rest = 1 - x * cv2;
  return rest > 0 ? std::expm1(-std::log1p(-x * cv2) / cv2) : std::numeric_limits<double>::infinity();
}

// The tail of the wait falls like exp(-x t): the positive root of rho (E[exp(x S)] - 1) = x. The first two moments
// alone put it below 2 (1 - rho) / (rho E[S^2]), the rate of heavy traffic.
double DecayRate(double rho, double cv2) {
  double low = 0, high = 2 * (1 - rho) / (rho * (1 + cv2));
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (rho * MomentLess1(middle, cv2) < middle ? low : high) = middle;
  }
  return low;
}

// 99th percentile of a gamma with mean 1 (Wilson and Hilferty 1931: its cube root is nearly normal).
double ServiceP99(double cv2) { return std::pow(1 - cv2 / 9 + kNormalP99 * std::sqrt(cv2) / 3, 3); }

// Below this load the tail says little of the 99th percentile: hardly any request waits. Chosen.
constexpr double kLeastLoad = 0.02;

// In service times.
double P99(double rho, double cv2) {
  const double alone = ServiceP99(cv2);
  if (cv2 == 0) {  // exact (Erlang 1909) while the wait is shorter than a service: P(wait <= t) = (1 - rho) exp(rho t)
    if (rho <= kTail) return 1;
    const double wait = std::log((1 - kTail) / (1 - rho)) / rho;
    if (wait < 1) return 1 + wait;
  }
  if (rho < kLeastLoad) return alone + (P99(kLeastLoad, cv2) - alone) * rho / kLeastLoad;
  const double rate = DecayRate(rho, cv2);
  const double moment = 1 + rate / rho;
  const double slope = moment / (1 - rate * cv2);
  const double factor = (1 - rho) / (rho * slope - 1) * moment;
  return std::max(alone, std::log(factor / kTail) / rate);
}

Latency Of(const RequestLoad& load, double slowdown) {
  const double service_us = load.service_us * slowdown;
  const double rho = load.requests_per_s * service_us / kUsPerS;
  if (!(rho < 1)) return {rho, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  const double cv2 = load.service_cv * load.service_cv;
  return {rho, service_us * (1 + rho * (1 + cv2) / (2 * (1 - rho))), service_us * P99(rho, cv2)};
}

}  // namespace

absl::StatusOr<Latency> PredictLatency(const RequestLoad& load) {
  HORUS_RETURN_IF_ERROR(Check(load));
  return Of(load, load.slowdown);
}

absl::StatusOr<double> LargestSlowdown(const RequestLoad& load, double p99_bound_us) {
  RequestLoad alone = load;
  alone.slowdown = 1;
  HORUS_RETURN_IF_ERROR(Check(alone));
  if (!(std::isfinite(p99_bound_us) && p99_bound_us > 0)) {
    return InvalidArgument("latency: p99_bound_us: expected above 0 us, found %g", p99_bound_us);
  }
  const auto within = [&](double slowdown) { return Of(load, slowdown).p99_us <= p99_bound_us; };
  if (!within(1)) return 0.0;
  // A latency is at least its service time.
  double low = 1, high = std::min(static_cast<double>(kMaxSlowdown), p99_bound_us / load.service_us);
  if (within(high)) return high;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (within(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace horus
