// SPDX-License-Identifier: Apache-2.0
// watch.hpp: watches made, set and read from C++.
#include <algorithm>
#include <type_traits>

#include "face_check.h"

namespace {

double ValueOf(const horus::Watch& watch, const std::string& name, const std::string& labels) {
  for (const horus::Metric& metric : watch.Metrics()) {
    if (metric.name == name && metric.labels == labels) return metric.value;
  }
  return -1;
}

void AWatchCountsTimesAndTells() {
  static_assert(!std::is_copy_constructible_v<horus::Watch> && std::is_nothrow_move_constructible_v<horus::Watch>);
  std::vector<std::string> lines;
  horus::Cluster cluster;
  horus::Placer placer;
  {
    const horus::Watch watch({.log = [&](int32_t, const char* text) { lines.emplace_back(text); }});
    cluster.SetWatch(&watch);
    placer.SetWatch(&watch);
    CHECK(StatusOf([&] { cluster.Release(1); }) == HORUS_NOT_FOUND);
    CHECK(ValueOf(watch, "horus_calls_total", "call=\"release\",status=\"NOT_FOUND\"") == 1);
    CHECK(ValueOf(watch, "horus_call_duration_seconds_count", "call=\"release\"") == 1);
    CHECK(ValueOf(watch, "horus_bytes_held", "handle=\"placer\"") > 0);
    CHECK(watch.Text().find("horus_conflicts_total 0\n") != std::string::npos);
    CHECK(lines.size() == 1 && lines[0].starts_with("release: NOT_FOUND: "));
  }
  CHECK(StatusOf([&] { cluster.Release(2); }) == HORUS_NOT_FOUND);
  CHECK(lines.size() == 2);  // what the cluster calls outlives the watch
  cluster.SetWatch(nullptr);
  CHECK(StatusOf([&] { cluster.Release(3); }) == HORUS_NOT_FOUND);
  CHECK(lines.size() == 2);
}

void FailuresThrowTheirStatus() {
  CHECK(StatusOf([] { const horus::Watch watch({.log_level = 9}); }) == HORUS_INVALID_ARGUMENT);
}

}  // namespace

int main() {
  AWatchCountsTimesAndTells();
  FailuresThrowTheirStatus();
  return report();
}
