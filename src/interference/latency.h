// SPDX-License-Identifier: Apache-2.0
// Latency: how long requests to an inference job take where it runs slowed down, and the slowdown that it can bear.
//
// Enters:  request rate, service time alone, slowdown on the device.
// Leaves:  utilisation, mean and 99th percentile of the latency (queue and service); the inverse for a bound.
// Units:   microseconds, requests a second; slowdown >= 1; shares 0-1.
// Cost:    about 1 us; the inverse 60 times that.   Thread class: pure functions.
#ifndef HORUS_INTERFERENCE_LATENCY_H_
#define HORUS_INTERFERENCE_LATENCY_H_

#include "absl/status/statusor.h"

namespace horus {

struct RequestLoad {
  double requests_per_s = 0;  // independent users: arrivals are Poisson
  double service_us = 0;      // of one request, alone on the device
  double slowdown = 1;        // up to kMaxSlowdown
  double service_cv = 0;      // standard deviation / mean of the service time; 0 = always the same
};
inline constexpr double kMostServiceUs = 1e15;  // thirty years: beyond it nobody waits
inline constexpr double kMostServiceCv = 1;     // beyond it the formula was not compared with simulation

struct Latency {
  double utilisation = 0;  // of the server: 1 and above = the queue grows without end
  double mean_us = 0;      // infinite then
  double p99_us = 0;       // infinite then
  friend bool operator==(const Latency&, const Latency&) = default;
};

// One request at a time, first come first served: M/D/1 for service_cv 0, M/M/1 for 1, between them gamma service
// times. The mean is exact (Pollaczek and Khinchine), p99 asymptotic: see docs/interference.md for formula and error.
// INVALID_ARGUMENT names field, expected and found.
[[nodiscard]] absl::StatusOr<Latency> PredictLatency(const RequestLoad& load);

// The largest slowdown up to kMaxSlowdown at which p99 is at most `p99_bound_us`; `load.slowdown` is not read. 0 = not
// even alone. INVALID_ARGUMENT as above, and for a bound that is not positive and finite.
[[nodiscard]] absl::StatusOr<double> LargestSlowdown(const RequestLoad& load, double p99_bound_us);

}  // namespace horus

#endif  // HORUS_INTERFERENCE_LATENCY_H_
