// SPDX-License-Identifier: Apache-2.0
// Telemetry: what a handle that is metered tells about its calls.
//
// Enters:  a handle's telemetry, the call, its body.
// Leaves:  the call's status; counters, times and log lines in the metrics.
// Units:   nanoseconds, bytes.
// Cost:    a null check without a telemetry.  Thread class: internally synchronised, but for TelemetrySlot::Set.
#pragma once

#include <functional>
#include <mutex>
#include <optional>

#include "capi/boundary.h"
#include "horus/metrics.h"
#include "metrics/metrics.h"

namespace horus::capi {

enum class HandleKind : uint8_t { kCluster, kPlacer, kPredictor };
inline constexpr size_t kHandleKinds = 3;

class Telemetry {
 public:
  explicit Telemetry(const horus_metrics_options& options) : options_(options) {}

  [[nodiscard]] Metrics& metrics() { return metrics_; }
  [[nodiscard]] std::optional<uint64_t> Now() const {
    if (options_.clock == nullptr) return std::nullopt;
    return options_.clock(options_.clock_user);
  }
  [[nodiscard]] bool Logs(int32_t level) const { return options_.log != nullptr && level <= options_.log_level; }
  void Log(int32_t level, const char* text) const { options_.log(options_.log_user, level, text); }

  // Memory of a handle, asked for whenever rows are; none = as it was. Safe from any thread.
  using BytesFn = std::function<std::optional<uint64_t>()>;
  void Add(const void* handle, HandleKind kind, BytesFn bytes) {
    const std::lock_guard lock(mutex_);
    held_.push_back({handle, kind, std::move(bytes)});
  }
  void Remove(const void* handle) {
    const std::lock_guard lock(mutex_);
    std::erase_if(held_, [&](const Held& held) { return held.handle == handle; });
  }

  [[nodiscard]] std::vector<MetricRow> Rows();

 private:
  struct Held {
    const void* handle;
    HandleKind kind;
    BytesFn bytes;
    uint64_t last = 0;
  };
  const horus_metrics_options options_;
  Metrics metrics_;
  std::mutex mutex_;  // of held_; a handle's own locks are taken under it
  std::vector<Held> held_;
};

// The telemetry of one handle. The last member of the handle's struct: it lets go before what is measured goes.
class TelemetrySlot {
 public:
  explicit TelemetrySlot(const void* handle) : handle_(handle) {}
  TelemetrySlot(const TelemetrySlot&) = delete;
  TelemetrySlot& operator=(const TelemetrySlot&) = delete;
  ~TelemetrySlot() { Set(nullptr, HandleKind::kCluster, nullptr); }

  void Set(std::shared_ptr<Telemetry> telemetry, HandleKind kind, Telemetry::BytesFn bytes) {
    if (telemetry != nullptr && telemetry != telemetry_) telemetry->Add(handle_, kind, std::move(bytes));
    if (telemetry_ != nullptr && telemetry != telemetry_) telemetry_->Remove(handle_);
    telemetry_ = std::move(telemetry);
  }
  [[nodiscard]] const std::shared_ptr<Telemetry>& get() const { return telemetry_; }

 private:
  const void* handle_;
  std::shared_ptr<Telemetry> telemetry_;
};

// One call that is metered, from its construction to End.
class MeteredCall {
 public:
  MeteredCall(std::shared_ptr<Telemetry> telemetry, Call call, horus_error* error);
  [[nodiscard]] horus_error* error() { return error_; }
  horus_status End(horus_status status);

 private:
  std::shared_ptr<Telemetry> telemetry_;
  Call call_;
  horus_error own_error_ = HORUS_ERROR_INIT;
  horus_error* error_;
  std::optional<uint64_t> begin_;
};

// Guard for a call on `handle`, which may be null.
[[nodiscard]] horus_status GuardMetered(const auto* handle, Call call, horus_error* error, const auto& body) {
  if (handle == nullptr || handle->telemetry.get() == nullptr) return Guard(error, body);
  MeteredCall metered(handle->telemetry.get(), call, error);
  return metered.End(Guard(metered.error(), body));
}
[[nodiscard]] horus_status GuardMetered(const auto* handle, Call call, horus_error* error,
                                        std::initializer_list<NamedPointer> needed, const auto& body) {
  return GuardMetered(handle, call, error, NeedsFirst(needed, body));
}

// Counts the decisions and, at HORUS_LOG_DEBUG, tells them.
void TellDecisions(Telemetry& telemetry, const Plan& plan);

}  // namespace horus::capi

struct horus_metrics {
  std::shared_ptr<horus::capi::Telemetry> value;
};

namespace horus::capi {

[[nodiscard]] inline std::shared_ptr<Telemetry> TelemetryOf(const horus_metrics* telemetry) {
  return telemetry == nullptr ? nullptr : telemetry->value;
}

}  // namespace horus::capi
