// SPDX-License-Identifier: Apache-2.0
// What requests to an inference job take where it runs.
#include "record.h"

namespace horus_python {
namespace {

horus_latency Predict(double requests_per_s, double service_us, double slowdown, double service_cv) {
  const horus_request_load load =
      horus::detail::ToC(horus::RequestLoad{requests_per_s, service_us, slowdown, service_cv});
  horus_latency latency = HORUS_LATENCY_INIT;
  Run([&](horus_error* error) { return horus_latency_predict(&load, &latency, error); });
  return latency;
}

double LargestSlowdown(double requests_per_s, double service_us, double p99_bound_us, double service_cv) {
  const horus_request_load load = horus::detail::ToC(horus::RequestLoad{requests_per_s, service_us, 0, service_cv});
  double slowdown = 0;
  Run([&](horus_error* error) { return horus_latency_largest_slowdown(&load, p99_bound_us, &slowdown, error); });
  return slowdown;
}

}  // namespace

void BindLatency(py::module_& m) {
  Record<horus_latency>(m, "Latency", "What requests to an inference job take; see horus.request_latency.")
      .Field("utilisation", &horus_latency::utilisation,
             "share of the time in which a request is served; from 1 on the queue "
             "grows without end")
      .Field("mean_us", &horus_latency::mean_us, "infinity then")
      .Field("p99_us", &horus_latency::p99_us, "99th percentile; infinity then");
  m.def("request_latency", &Predict, py::arg("requests_per_s"), py::arg("service_us"), py::arg("slowdown"),
        py::arg("service_cv"),
        "request_latency(requests_per_s: float, service_us: float, slowdown: float, service_cv: float) -> Latency");
  m.def("largest_slowdown", &LargestSlowdown, py::arg("requests_per_s"), py::arg("service_us"), py::arg("p99_bound_us"),
        py::arg("service_cv"),
        "largest_slowdown(requests_per_s: float, service_us: float, p99_bound_us: float, service_cv: float) -> float");
}

}  // namespace horus_python
