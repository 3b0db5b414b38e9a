// SPDX-License-Identifier: Apache-2.0
// horus/metrics.h: making and reading metrics (handles of predictors: predictor.cc), and what a metered call leaves
// behind. There nothing may fail: lines that find no memory are not told.

#include <new>

#include "absl/strings/str_format.h"
#include "capi/handles.h"

namespace horus::capi {
namespace {

constexpr size_t kMaxLine = 1200;  // a message of horus_error, and the names before it
constexpr const char* kHandleLabels[] = {"handle=\"cluster\"", "handle=\"placer\"", "handle=\"predictor\""};
static_assert(sizeof kHandleLabels / sizeof *kHandleLabels == kHandleKinds);

int32_t LevelOf(horus_status status) {
  switch (status) {
    case HORUS_OK:
      return HORUS_LOG_DEBUG;
    case HORUS_ERR_CONFLICT:
    case HORUS_ERR_CANCELLED:
    case HORUS_ERR_BUFFER_TOO_SMALL:
      return HORUS_LOG_INFO;
    case HORUS_ERR_INTERNAL:
    case HORUS_ERR_NO_MEMORY:
      return HORUS_LOG_ERROR;
    default:
      return HORUS_LOG_WARNING;
  }
}

static_assert(Same(HORUS_METRIC_COUNTER, MetricKind::kCounter) && Same(HORUS_METRIC_GAUGE, MetricKind::kGauge) &&
              Same(HORUS_METRIC_HISTOGRAM, MetricKind::kHistogram));

absl::StatusOr<std::unique_ptr<horus_metrics>> MakeTelemetry(const horus_metrics_options* given) {
  HORUS_ASSIGN_OR_RETURN(horus_metrics_options options, ReadOptionalStruct(given));
  if (options.log_level < 0 || options.log_level > HORUS_LOG_DEBUG) {
    return InvalidArgument("log_level: expected 0 (warnings) to %d, found %d", HORUS_LOG_DEBUG, options.log_level);
  }
  if (options.log_level == 0) options.log_level = HORUS_LOG_WARNING;
  return std::make_unique<horus_metrics>(horus_metrics{std::make_shared<Telemetry>(options)});
}

absl::Status WriteMetrics(const std::vector<MetricRow>& rows, const horus_metric_columns* out, size_t* count) {
  HORUS_ASSIGN_OR_RETURN(const horus_metric_columns columns, ReadStruct(out));
  return WriteRows(rows.size(), columns.capacity, count, [&](size_t i) {
    Put(columns.names, i, rows[i].name);
    Put(columns.labels, i, rows[i].labels);
    Put(columns.kinds, i, rows[i].family->kind);
    Put(columns.values, i, rows[i].value);
  });
}

// A callback of a call on the cluster must not change its metrics: that call still tells them.
absl::Status SetTelemetry(horus_cluster& cluster, std::shared_ptr<Telemetry> metrics) {
  HORUS_RETURN_IF_ERROR(cluster.gate.Write().status());
  cluster.telemetry.Set(std::move(metrics), HandleKind::kCluster, [&cluster]() -> std::optional<uint64_t> {
    const auto lock = cluster.gate.Read();
    if (!lock.ok()) return std::nullopt;  // asked from a callback
    return cluster.value.bytes_held();
  });
  return absl::OkStatus();
}

absl::Status SetTelemetry(horus_placer& placer, std::shared_ptr<Telemetry> metrics) {
  if (placer.busy.load())
    return CError(HORUS_ERR_BUSY, "placer: in use by the call whose callback runs, or by another thread");
  placer.bytes_held = placer.value->bytes_held();
  placer.telemetry.Set(std::move(metrics), HandleKind::kPlacer,
                       [&placer] { return std::optional<uint64_t>(placer.bytes_held.load()); });
  return absl::OkStatus();
}

}  // namespace

std::vector<MetricRow> Telemetry::Rows() {
  std::vector<MetricRow> rows = metrics_.Rows();
  uint64_t bytes[kHandleKinds] = {};
  {
    const std::lock_guard lock(mutex_);
    for (Held& held : held_) {
      held.last = held.bytes().value_or(held.last);
      bytes[static_cast<size_t>(held.kind)] += held.last;
    }
  }
  for (size_t kind = 0; kind < kHandleKinds; ++kind)
    rows.push_back({&kBytesHeld, kBytesHeld.name, kHandleLabels[kind], static_cast<double>(bytes[kind])});
  return rows;
}

MeteredCall::MeteredCall(std::shared_ptr<Telemetry> telemetry, Call call, horus_error* error)
    : telemetry_(std::move(telemetry)),
      call_(call),
      error_(error == nullptr ? &own_error_ : error),
      begin_(telemetry_->Now()) {}

horus_status MeteredCall::End(horus_status status) {
  std::optional<uint64_t> took = telemetry_->Now();
  if (took.has_value()) took = *took - std::min(*took, *begin_);
  telemetry_->metrics().Called(call_, status, took);
  const int32_t level = LevelOf(status);
  if (!telemetry_->Logs(level)) return status;
  char line[kMaxLine];
  const bool told = status != HORUS_OK && error_->struct_size == sizeof(horus_error);
  absl::SNPrintF(line, sizeof line, "%s: %s%s%s", CallName(call_), horus_status_name(status), told ? ": " : "",
                 told ? error_->message : "");
  telemetry_->Log(level, line);
  return status;
}

void TellDecisions(Telemetry& telemetry, const Plan& plan) {
  telemetry.metrics().Decided(plan);
  if (!telemetry.Logs(HORUS_LOG_DEBUG)) return;
  for (const Decision& decision : plan.decisions) {
    std::string line;
    try {
      line = "decision: " + DescribeDecision(decision);
    } catch (const std::bad_alloc&) {
      return;
    }
    telemetry.Log(HORUS_LOG_DEBUG, line.c_str());
  }
}

}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_metrics_create(const horus_metrics_options* options, horus_metrics** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] { return Give(MakeTelemetry(options), out); });
}

void horus_metrics_free(horus_metrics* metrics) { delete metrics; }

horus_status horus_cluster_set_metrics(horus_cluster* cluster, const horus_metrics* metrics, horus_error* error) {
  return Guard(error, {{cluster, "cluster"}}, [&] { return SetTelemetry(*cluster, TelemetryOf(metrics)); });
}

horus_status horus_placer_set_metrics(horus_placer* placer, const horus_metrics* metrics, horus_error* error) {
  return Guard(error, {{placer, "placer"}}, [&] { return SetTelemetry(*placer, TelemetryOf(metrics)); });
}

horus_status horus_metrics_get(const horus_metrics* metrics, const horus_metric_columns* columns, size_t* count,
                               horus_error* error) {
  return Guard(error, {{metrics, "metrics"}, {columns, "columns"}, {count, "count"}},
               [&] { return WriteMetrics(metrics->value->Rows(), columns, count); });
}

horus_status horus_metrics_text(const horus_metrics* metrics, size_t capacity, char* text, size_t* count,
                                horus_error* error) {
  return Guard(error, {{metrics, "metrics"}, {count, "count"}}, [&] {
    HORUS_RETURN_IF_ERROR(RequireColumn(text, "text", capacity));
    const std::string written = MetricsText(metrics->value->Rows());
    HORUS_ASSIGN_OR_RETURN(const size_t bytes, RowsToWrite(written.size() + 1, capacity, count));
    if (bytes > 0) std::memcpy(text, written.c_str(), bytes);
    *count = written.size() + 1;
    return absl::OkStatus();
  });
}
