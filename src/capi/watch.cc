// SPDX-License-Identifier: Apache-2.0
// horus/watch.h: making and reading watches. Handles of graphs and predictors: predictor.cc.
#include "horus/watch.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "capi/args.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/structs.h"
#include "capi/watching.h"

namespace horus::capi {
namespace {

static_assert(HORUS_METRIC_COUNTER == static_cast<int>(MetricKind::kCounter) &&
              HORUS_METRIC_GAUGE == static_cast<int>(MetricKind::kGauge) &&
              HORUS_METRIC_HISTOGRAM == static_cast<int>(MetricKind::kHistogram));

absl::StatusOr<std::unique_ptr<horus_watch>> MakeWatch(const horus_watch_options* given) {
  HORUS_ASSIGN_OR_RETURN(horus_watch_options options, ReadOptionalStruct(given));
  if (options.log_level < 0 || options.log_level > HORUS_LOG_DEBUG) {
    return InvalidArgument("log_level: expected 0 (warnings) to %d, found %d", HORUS_LOG_DEBUG, options.log_level);
  }
  if (options.log_level == 0) options.log_level = HORUS_LOG_WARNING;
  return std::make_unique<horus_watch>(horus_watch{std::make_shared<Watch>(options)});
}

absl::Status WriteMetrics(const std::vector<MetricRow>& rows, const horus_metrics* out, size_t* count) {
  HORUS_ASSIGN_OR_RETURN(const horus_metrics columns, ReadStruct(out));
  HORUS_RETURN_IF_ERROR(CheckCapacity(rows.size(), columns.capacity, count));
  for (size_t i = 0; i < rows.size(); ++i) {
    Put(columns.names, i, rows[i].name);
    Put(columns.labels, i, rows[i].labels);
    Put(columns.kinds, i, rows[i].family->kind);
    Put(columns.values, i, rows[i].value);
  }
  *count = rows.size();
  return absl::OkStatus();
}

// A callback of a call on the cluster must not change who watches it: that call will tell its watch.
absl::Status SetWatch(horus_cluster& cluster, std::shared_ptr<Watch> watch) {
  HORUS_RETURN_IF_ERROR(cluster.gate.Write().status());
  cluster.watch.Set(std::move(watch), HandleKind::kCluster, [&cluster]() -> std::optional<uint64_t> {
    const auto lock = cluster.gate.Read();
    if (!lock.ok()) return std::nullopt;  // asked from a callback
    return cluster.value.bytes_held();
  });
  return absl::OkStatus();
}

absl::Status SetWatch(horus_placer& placer, std::shared_ptr<Watch> watch) {
  if (placer.busy.load()) {
    return CError(HORUS_BUSY, "placer: in use by the call whose callback runs, or by another thread");
  }
  placer.bytes_held = placer.value->bytes_held();
  placer.watch.Set(std::move(watch), HandleKind::kPlacer,
                   [&placer] { return std::optional<uint64_t>(placer.bytes_held.load()); });
  return absl::OkStatus();
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_watch_create(const horus_watch_options* options, horus_watch** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(std::unique_ptr<horus_watch> watch, MakeWatch(options));
    *out = watch.release();
    return absl::OkStatus();
  });
}

void horus_watch_free(horus_watch* watch) { delete watch; }

horus_status horus_cluster_set_watch(horus_cluster* cluster, const horus_watch* watch, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{cluster, "cluster"}}));
    return SetWatch(*cluster, WatchOf(watch));
  });
}

horus_status horus_placer_set_watch(horus_placer* placer, const horus_watch* watch, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{placer, "placer"}}));
    return SetWatch(*placer, WatchOf(watch));
  });
}

horus_status horus_watch_metrics(const horus_watch* watch, const horus_metrics* metrics, size_t* count,
                                 horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{watch, "watch"}, {metrics, "metrics"}, {count, "count"}}));
    return WriteMetrics(watch->value->Rows(), metrics, count);
  });
}

horus_status horus_watch_text(const horus_watch* watch, size_t capacity, char* text, size_t* count,
                              horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{watch, "watch"}, {count, "count"}}));
    HORUS_RETURN_IF_ERROR(RequireColumn(text, "text", capacity));
    const std::string written = horus::MetricsText(watch->value->Rows());
    HORUS_RETURN_IF_ERROR(CheckCapacity(written.size() + 1, capacity, count));
    std::memcpy(text, written.c_str(), written.size() + 1);
    *count = written.size() + 1;
    return absl::OkStatus();
  });
}
