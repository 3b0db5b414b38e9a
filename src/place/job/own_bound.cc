// SPDX-License-Identifier: Apache-2.0
// Turns a latency bound into a bound on slowdowns.
#include "place/job/own_bound.h"

#include <algorithm>
#include <cmath>

#include "interference/laws.h"

namespace horus {

OwnBound OwnBoundOf(const JobSpec& job, const Demand& demand) {
  // A cap of its own takes its part of what it may be slowed.
  const auto stretch = static_cast<float>(CapStretch(demand));
  OwnBound bound;
  for (const float stated : {job.slowdown_bound, demand.slowdown_bound}) {
    const float left = stated / stretch;
    if (stated > 0 && (bound.slowdown == 0 || left < bound.slowdown)) bound.slowdown = left;
  }
  if (bound.slowdown > 0 && bound.slowdown < 1) {
    const float step_us = stretch * static_cast<float>(std::max<int64_t>(demand.step_time_us.upper, 1));
    return {.slowdown = 1, .late = {step_us * bound.slowdown, step_us, 0}};
  }
  if (!KeepsLatency(job)) return bound;
  const auto longest = [&](int64_t step_us) {
    return std::max(static_cast<double>(step_us) * static_cast<double>(stretch), demand.host_us);
  };
  // Limits count bounds: the step as long as it may be.
  RequestLoad load{.requests_per_s = job.request_rate_hz,
                   .service_us = std::min(longest(demand.step_time_us.upper), kMostServiceUs)};
  const auto most_us = static_cast<double>(job.latency_bound_us);
  const absl::StatusOr<double> largest = LargestSlowdown(load, most_us);
  if (!largest.ok()) return bound;  // cannot be: ValidateJob checked all that goes in
  if (*largest == 0) {
    const auto p99 = [&load, &longest](int64_t step_us) {
      load.service_us = std::min(longest(step_us), kMostServiceUs);
      const absl::StatusOr<Latency> alone = PredictLatency(load);
      return static_cast<float>(alone.ok() ? std::min(alone->p99_us, kMostServiceUs) : kMostServiceUs);
    };
    const BoundedInt& step = demand.step_time_us;
    return {.slowdown = 1,
            .late = {static_cast<float>(most_us), p99(step.upper), IsOnlyPredicted(demand) ? p99(step.estimate) : 0}};
  }
  auto slowdown = static_cast<float>(std::min(*largest, static_cast<double>(kMaxSlowdownBound)));
  if (static_cast<double>(slowdown) > *largest) slowdown = std::nextafter(slowdown, 0.0f);
  slowdown = std::max(slowdown, 1.0f);
  bound.slowdown = bound.slowdown > 0 ? std::min(bound.slowdown, slowdown) : slowdown;
  return bound;
}

}  // namespace horus
