// SPDX-License-Identifier: Apache-2.0
// Metrics that are set, taken off and replaced, and whose counters never fall.
#include <algorithm>
#include <string>
#include <vector>

#include "calls/corrupt.h"
#include "calls/world.h"

namespace horus::calls {
namespace {

void CheckLine(void* user, int32_t level, const char* text) {
  auto& world = *static_cast<World*>(user);
  world.Require(level >= HORUS_LOG_ERROR && level <= HORUS_LOG_DEBUG, "a level of the log", HORUS_LOG_DEBUG,
                static_cast<uint64_t>(level));
  world.Require(*text != '\0' && IsLineOfUtf8(text), "a line of the log is no line of UTF-8");
  world.Note(static_cast<uint64_t>(level));
}

uint64_t Tick(void* user) {
  constexpr uint64_t kNs = 1'000;
  return *static_cast<uint64_t*>(user) += kNs;
}

// Handles that the old one is set on go on unharmed.
void NewMetrics(World& world) {
  Roomy<horus_metrics_options> options{HORUS_METRICS_OPTIONS_INIT};
  options.value.log_level = static_cast<int32_t>(world.choices.Below(HORUS_LOG_DEBUG + 1));
  if (world.choices.OneIn(2)) {
    options.value.log = CheckLine;
    options.value.log_user = &world;
  }
  if (world.choices.OneIn(2)) {
    options.value.clock = Tick;
    options.value.clock_user = &world.ticks;
  }
  MaybeCorrupt(world.choices, world.options.hostile, options);
  horus_metrics* out = nullptr;
  const horus_status status =
      HORUS_TRY(world, kNone, horus_metrics_create, static_cast<const horus_metrics_options*>(&options.value), &out);
  world.Require((status == HORUS_OK) == (out != nullptr), "metrics comes with success alone");
  if (out == nullptr) return;
  world.metrics.reset(out);
  world.counted.clear();
}

void SetMetrics(World& world) {
  const horus_metrics* metrics = world.choices.OneIn(4) ? nullptr : world.metrics.get();
  const horus_status status = world.choices.OneIn(2)
                                  ? HORUS_TRY(world, kNone, horus_cluster_set_metrics, world.cluster.get(), metrics)
                                  : HORUS_TRY(world, kNone, horus_placer_set_metrics,
                                              world.placers[world.choices.Below(world.placers.size())].get(), metrics);
  world.Require(status == HORUS_OK, "setting metrics", HORUS_OK, static_cast<uint64_t>(status));
}

void ReadMetrics(World& world) {
  if (world.metrics == nullptr) return;
  horus_metric_columns columns = HORUS_METRIC_COLUMNS_INIT;
  size_t rows = 0, again = 0;
  HORUS_TRY(world, kNone, horus_metrics_get, world.metrics.get(), static_cast<const horus_metric_columns*>(&columns),
            &rows);
  std::vector<const char*> names(rows), labels(rows);
  std::vector<int32_t> kinds(rows);
  std::vector<double> values(rows);
  columns.capacity = rows;
  columns.names = names.data();
  columns.labels = labels.data();
  columns.kinds = kinds.data();
  columns.values = values.data();
  const horus_status status = HORUS_TRY(world, kNone, horus_metrics_get, world.metrics.get(),
                                        static_cast<const horus_metric_columns*>(&columns), &again);
  world.Require(status == HORUS_OK && again == rows, "the metrics of metrics", rows, again);
  for (size_t i = 0; i < rows; ++i) {
    world.Require(values[i] >= 0, "a metric below zero");
    if (kinds[i] == HORUS_METRIC_GAUGE) continue;
    double& before = world.counted[std::string(names[i]) + '{' + labels[i]];
    world.Require(values[i] >= before, "a counter fell");
    before = values[i];
  }
}

void ReadText(World& world) {
  if (world.metrics == nullptr) return;
  size_t size = 0, again = 0;
  HORUS_TRY(world, kNone, horus_metrics_text, world.metrics.get(), size_t{0}, nullptr, &size);
  std::string text(size, '\1');
  const horus_status status =
      HORUS_TRY(world, kNone, horus_metrics_text, world.metrics.get(), size, text.data(), &again);
  world.Require(
      status == HORUS_OK && again == size && size > 1 && text.find('\0') == size - 1 && text[size - 2] == '\n',
      "the text of metrics", size, again);
}

}  // namespace

std::vector<Action> MetricsActions() { return {{NewMetrics, 1}, {SetMetrics, 4}, {ReadMetrics, 2}, {ReadText, 1}}; }

}  // namespace horus::calls
