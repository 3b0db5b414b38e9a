// SPDX-License-Identifier: Apache-2.0
// metrics.hpp: metrics made, set and read from C++.
#include <algorithm>
#include <type_traits>

#include "face_check.h"

namespace {

double ValueOf(const horus::Metrics& metrics, const std::string& name, const std::string& labels) {
  for (const horus::Metric& metric : metrics.Rows()) {
    if (metric.name == name && metric.labels == labels) return metric.value;
  }
  return -1;
}

void MetricsCountsTimesAndTells() {
  static_assert(!std::is_copy_constructible_v<horus::Metrics> && std::is_nothrow_move_constructible_v<horus::Metrics>);
  std::vector<std::string> lines;
  horus::Cluster cluster;
  horus::Placer placer;
  {
    const horus::Metrics metrics({.log = [&](int32_t, const char* text) { lines.emplace_back(text); }});
    cluster.SetMetrics(&metrics);
    placer.SetMetrics(&metrics);
    CHECK(StatusOf([&] { cluster.Release(1); }) == HORUS_ERR_NOT_FOUND);
    CHECK(ValueOf(metrics, "horus_calls_total", "call=\"release\",status=\"NOT_FOUND\"") == 1);
    CHECK(ValueOf(metrics, "horus_call_duration_seconds_count", "call=\"release\"") == 1);
    CHECK(ValueOf(metrics, "horus_bytes_held", "handle=\"placer\"") > 0);
    CHECK(metrics.Text().find("horus_conflicts_total 0\n") != std::string::npos);
    CHECK(lines.size() == 1 && lines[0].starts_with("release: NOT_FOUND: "));
  }
  CHECK(StatusOf([&] { cluster.Release(2); }) == HORUS_ERR_NOT_FOUND);
  CHECK(lines.size() == 2);  // what the cluster calls outlives the metrics
  cluster.SetMetrics(nullptr);
  CHECK(StatusOf([&] { cluster.Release(3); }) == HORUS_ERR_NOT_FOUND);
  CHECK(lines.size() == 2);
}

void FailuresThrowTheirStatus() {
  CHECK(StatusOf([] { const horus::Metrics metrics({.log_level = 9}); }) == HORUS_ERR_INVALID_ARGUMENT);
}

}  // namespace

int main() {
  MetricsCountsTimesAndTells();
  FailuresThrowTheirStatus();
  return report();
}
