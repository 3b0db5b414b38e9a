// SPDX-License-Identifier: Apache-2.0
// Latency of inference jobs in C++, over latency.h. Included by lab.hpp.
#ifndef HORUS_LAB_LATENCY_HPP_
#define HORUS_LAB_LATENCY_HPP_

#include "horus/horus.hpp"
#include "horus/lab/latency.h"

namespace horus {
inline namespace face_v0 {  // see values.hpp

// Requests to an inference job: Poisson arrivals, served one at a time.
struct RequestLoad {
  double requests_per_s = 0;
  double service_us = 0;  // mean time of one request, alone on the device, > 0
  double slowdown = 1;    // 1 to 1e9
  double service_cv = 0;  // standard deviation / mean of that time, 0 to 1
};

namespace detail {

inline horus_request_load ToC(const RequestLoad& load) {
  return {sizeof(horus_request_load), 0, load.requests_per_s, load.service_us, load.slowdown, load.service_cv};
}

}  // namespace detail

// Time from arrival to answer; infinite if requests arrive faster than they are served.
[[nodiscard]] inline horus_latency PredictLatency(const RequestLoad& load) {
  const horus_request_load c = detail::ToC(load);
  horus_latency latency = HORUS_LATENCY_INIT;
  detail::Call(horus_latency_predict, &c, &latency);
  return latency;
}

// The largest slowdown at which the 99th percentile is within the bound; 0 = none. load.slowdown is not read.
[[nodiscard]] inline double LargestSlowdown(const RequestLoad& load, double p99_bound_us) {
  const horus_request_load c = detail::ToC(load);
  double slowdown = 0;
  detail::Call(horus_latency_largest_slowdown, &c, p99_bound_us, &slowdown);
  return slowdown;
}

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_LAB_LATENCY_HPP_
