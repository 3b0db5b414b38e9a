// SPDX-License-Identifier: Apache-2.0
// Metrics that are set, taken off and replaced, and whose counters never fall.
#include <algorithm>
#include <string>
#include <vector>

#include "calls/corrupt.h"
#include "calls/harness.h"

namespace horus::calls {
namespace {

void CheckLine(void* user, int32_t level, const char* text) {
  auto& harness = *static_cast<Harness*>(user);
  harness.Require(level >= HORUS_LOG_ERROR && level <= HORUS_LOG_DEBUG, "a level of the log", HORUS_LOG_DEBUG,
                  static_cast<uint64_t>(level));
  harness.Require(*text != '\0' && IsLineOfUtf8(text), "a line of the log is no line of UTF-8");
  harness.Note(static_cast<uint64_t>(level));
}

uint64_t Tick(void* user) {
  constexpr uint64_t kNs = 1'000;
  return *static_cast<uint64_t*>(user) += kNs;
}

// Handles that the old one is set on go on unharmed.
void NewMetrics(Harness& harness) {
  Roomy<horus_metrics_options> options{HORUS_METRICS_OPTIONS_INIT};
  options.value.log_level = static_cast<int32_t>(harness.choices.Below(HORUS_LOG_DEBUG + 1));
  if (harness.choices.OneIn(2)) {
    options.value.log = CheckLine;
    options.value.log_user = &harness;
  }
  if (harness.choices.OneIn(2)) {
    options.value.clock = Tick;
    options.value.clock_user = &harness.ticks;
  }
  MaybeCorrupt(harness.choices, harness.options.hostile, options);
  horus_metrics* out = nullptr;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_metrics_create, static_cast<const horus_metrics_options*>(&options.value), &out);
  harness.Require((status == HORUS_OK) == (out != nullptr), "metrics comes with success alone");
  if (out == nullptr) return;
  harness.metrics.reset(out);
  harness.counted.clear();
}

void SetMetrics(Harness& harness) {
  const horus_metrics* metrics = harness.choices.OneIn(4) ? nullptr : harness.metrics.get();
  const horus_status status =
      harness.choices.OneIn(2)
          ? HORUS_TRY(harness, kNone, horus_cluster_set_metrics, harness.cluster.get(), metrics)
          : HORUS_TRY(harness, kNone, horus_placer_set_metrics,
                      harness.placers[harness.choices.Below(harness.placers.size())].get(), metrics);
  harness.Require(status == HORUS_OK, "setting metrics", HORUS_OK, static_cast<uint64_t>(status));
}

void ReadMetrics(Harness& harness) {
  if (harness.metrics == nullptr) return;
  horus_metric_columns columns = HORUS_METRIC_COLUMNS_INIT;
  size_t rows = 0, again = 0;
  HORUS_TRY(harness, kNone, horus_metrics_get, harness.metrics.get(),
            static_cast<const horus_metric_columns*>(&columns), &rows);
  std::vector<const char*> names(rows), labels(rows);
  std::vector<int32_t> kinds(rows);
  std::vector<double> values(rows);
  columns.capacity = rows;
  columns.names = names.data();
  columns.labels = labels.data();
  columns.kinds = kinds.data();
  columns.values = values.data();
  const horus_status status = HORUS_TRY(harness, kNone, horus_metrics_get, harness.metrics.get(),
                                        static_cast<const horus_metric_columns*>(&columns), &again);
  harness.Require(status == HORUS_OK && again == rows, "the metrics of metrics", rows, again);
  for (size_t i = 0; i < rows; ++i) {
    harness.Require(values[i] >= 0, "a metric below zero");
    if (kinds[i] == HORUS_METRIC_GAUGE) continue;
    double& before = harness.counted[std::string(names[i]) + '{' + labels[i]];
    harness.Require(values[i] >= before, "a counter fell");
    before = values[i];
  }
}

void ReadText(Harness& harness) {
  if (harness.metrics == nullptr) return;
  size_t size = 0, again = 0;
  HORUS_TRY(harness, kNone, horus_metrics_text, harness.metrics.get(), size_t{0}, nullptr, &size);
  std::string text(size, '\1');
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_metrics_text, harness.metrics.get(), size, text.data(), &again);
  harness.Require(
      status == HORUS_OK && again == size && size > 1 && text.find('\0') == size - 1 && text[size - 2] == '\n',
      "the text of metrics", size, again);
}

}  // namespace

std::vector<Action> MetricsActions() { return {{NewMetrics, 1}, {SetMetrics, 4}, {ReadMetrics, 2}, {ReadText, 1}}; }

}  // namespace horus::calls
