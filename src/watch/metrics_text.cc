// SPDX-License-Identifier: Apache-2.0
// The text that Prometheus scrapes.
#include "base/format.h"
#include "watch/metrics.h"

namespace horus {
namespace {

const char* KindName(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kHistogram:
      return "histogram";
  }
  return "untyped";
}

}  // namespace

std::string MetricsText(const std::vector<MetricRow>& rows) {
  std::string text;
  const MetricFamily* family = nullptr;
  for (const MetricRow& row : rows) {
    if (row.family != family) {
      family = row.family;
      AppendFormatted(&text, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help, family->name,
                      KindName(family->kind));
    }
    text += row.name;
    if (*row.labels != '\0') AppendFormatted(&text, "{%s}", row.labels);
    // 17 digits carry every double; counts stay whole up to 2^53.
    AppendFormatted(&text, " %.17g\n", row.value);
  }
  return text;
}

}  // namespace horus
