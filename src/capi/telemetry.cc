// SPDX-License-Identifier: Apache-2.0
// What a metered call leaves behind. Nothing here may fail: lines that find no memory are not told.
#include "capi/telemetry.h"

#include <algorithm>
#include <new>
#include <string>

#include "absl/strings/str_format.h"

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

}  // namespace

std::optional<uint64_t> Telemetry::Now() const {
  if (options_.clock == nullptr) return std::nullopt;
  return options_.clock(options_.clock_user);
}

void Telemetry::Add(const void* handle, HandleKind kind, BytesFn bytes) {
  const std::lock_guard lock(mutex_);
  held_.push_back({handle, kind, std::move(bytes)});
}

void Telemetry::Remove(const void* handle) {
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [&](const Held& held) { return held.handle == handle; });
}

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
  for (size_t kind = 0; kind < kHandleKinds; ++kind) {
    rows.push_back({&kBytesHeld, kBytesHeld.name, kHandleLabels[kind], static_cast<double>(bytes[kind])});
  }
  return rows;
}

void TelemetrySlot::Set(std::shared_ptr<Telemetry> telemetry, HandleKind kind, Telemetry::BytesFn bytes) {
  if (telemetry != nullptr && telemetry != telemetry_) telemetry->Add(handle_, kind, std::move(bytes));
  if (telemetry_ != nullptr && telemetry != telemetry_) telemetry_->Remove(handle_);
  telemetry_ = std::move(telemetry);
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
