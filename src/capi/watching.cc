// SPDX-License-Identifier: Apache-2.0
// What a watched call leaves behind. Nothing here may fail: lines that find no memory are not told.
#include "capi/watching.h"

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
    case HORUS_CONFLICT:
    case HORUS_CANCELLED:
    case HORUS_BUFFER_TOO_SMALL:
      return HORUS_LOG_INFO;
    case HORUS_INTERNAL:
    case HORUS_NO_MEMORY:
      return HORUS_LOG_ERROR;
    default:
      return HORUS_LOG_WARNING;
  }
}

}  // namespace

std::optional<uint64_t> Watch::Now() const {
  if (options_.clock == nullptr) return std::nullopt;
  return options_.clock(options_.clock_user);
}

void Watch::Add(const void* handle, HandleKind kind, BytesFn bytes) {
  const std::lock_guard lock(mutex_);
  held_.push_back({handle, kind, std::move(bytes)});
}

void Watch::Remove(const void* handle) {
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [&](const Held& held) { return held.handle == handle; });
}

std::vector<MetricRow> Watch::Rows() {
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

void WatchSlot::Set(std::shared_ptr<Watch> watch, HandleKind kind, Watch::BytesFn bytes) {
  if (watch != nullptr && watch != watch_) watch->Add(handle_, kind, std::move(bytes));
  if (watch_ != nullptr && watch != watch_) watch_->Remove(handle_);
  watch_ = std::move(watch);
}

WatchedCall::WatchedCall(std::shared_ptr<Watch> watch, Call call, horus_error* error)
    : watch_(std::move(watch)), call_(call), error_(error == nullptr ? &own_error_ : error), begin_(watch_->Now()) {}

horus_status WatchedCall::End(horus_status status) {
  std::optional<uint64_t> took = watch_->Now();
  if (took.has_value()) took = *took - std::min(*took, *begin_);
  watch_->metrics().Called(call_, status, took);
  const int32_t level = LevelOf(status);
  if (!watch_->Logs(level)) return status;
  char line[kMaxLine];
  const bool told = status != HORUS_OK && error_->struct_size == sizeof(horus_error);
  absl::SNPrintF(line, sizeof line, "%s: %s%s%s", CallName(call_), horus_status_name(status), told ? ": " : "",
                 told ? error_->message : "");
  watch_->Log(level, line);
  return status;
}

void TellDecisions(Watch& watch, const Plan& plan) {
  watch.metrics().Decided(plan);
  if (!watch.Logs(HORUS_LOG_DEBUG)) return;
  for (const Decision& decision : plan.decisions) {
    std::string line;
    try {
      line = "decision: " + DescribeDecision(decision);
    } catch (const std::bad_alloc&) {
      return;
    }
    watch.Log(HORUS_LOG_DEBUG, line.c_str());
  }
}

}  // namespace horus::capi
