// SPDX-License-Identifier: Apache-2.0
// Watching: what a handle that is watched tells about its calls.
//
// Enters:  a handle's watch, the call, its body.
// Leaves:  the call's status; counters, times and log lines with whoever watches.
// Units:   nanoseconds, bytes.
// Cost:    a null check without a watch.  Thread class: internally synchronised, but for WatchSlot::Set.
#ifndef HORUS_CAPI_WATCHING_H_
#define HORUS_CAPI_WATCHING_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "capi/guard.h"
#include "horus/watch.h"
#include "watch/metrics.h"

namespace horus::capi {

enum class HandleKind : uint8_t { kCluster, kPlacer, kPredictor };
inline constexpr size_t kHandleKinds = 3;

class Watch {
 public:
  explicit Watch(const horus_watch_options& options) : options_(options) {}

  [[nodiscard]] Metrics& metrics() { return metrics_; }
  [[nodiscard]] std::optional<uint64_t> Now() const;
  [[nodiscard]] bool Logs(int32_t level) const { return options_.log != nullptr && level <= options_.log_level; }
  void Log(int32_t level, const char* text) const { options_.log(options_.log_user, level, text); }

  // Memory of a handle, asked for whenever rows are; none = as it was. Safe from any thread.
  using BytesFn = std::function<std::optional<uint64_t>()>;
  void Add(const void* handle, HandleKind kind, BytesFn bytes);
  void Remove(const void* handle);

  [[nodiscard]] std::vector<MetricRow> Rows();

 private:
  struct Held {
    const void* handle;
    HandleKind kind;
    BytesFn bytes;
    uint64_t last = 0;
  };
  const horus_watch_options options_;
  Metrics metrics_;
  std::mutex mutex_;  // of held_; a handle's own locks are taken under it
  std::vector<Held> held_;
};

// The watch of one handle. The last member of the handle's struct: it lets go before what is measured goes.
class WatchSlot {
 public:
  explicit WatchSlot(const void* handle) : handle_(handle) {}
  WatchSlot(const WatchSlot&) = delete;
  WatchSlot& operator=(const WatchSlot&) = delete;
  ~WatchSlot() { Set(nullptr, HandleKind::kCluster, nullptr); }

  void Set(std::shared_ptr<Watch> watch, HandleKind kind, Watch::BytesFn bytes);
  [[nodiscard]] const std::shared_ptr<Watch>& get() const { return watch_; }

 private:
  const void* handle_;
  std::shared_ptr<Watch> watch_;
};

// One call that is watched, from its construction to End.
class WatchedCall {
 public:
  WatchedCall(std::shared_ptr<Watch> watch, Call call, horus_error* error);
  [[nodiscard]] horus_error* error() { return error_; }
  horus_status End(horus_status status);

 private:
  std::shared_ptr<Watch> watch_;
  Call call_;
  horus_error own_error_ = HORUS_ERROR_INIT;
  horus_error* error_;
  std::optional<uint64_t> begin_;
};

// Guard for a call on `handle`, which may be null.
template <typename Handle, typename Body>
[[nodiscard]] horus_status GuardWatched(const Handle* handle, Call call, horus_error* error, const Body& body) {
  if (handle == nullptr || handle->watch.get() == nullptr) return Guard(error, body);
  WatchedCall watched(handle->watch.get(), call, error);
  return watched.End(Guard(watched.error(), body));
}

// Counts the decisions and, at HORUS_LOG_DEBUG, tells them.
void TellDecisions(Watch& watch, const Plan& plan);

}  // namespace horus::capi

struct horus_watch {
  std::shared_ptr<horus::capi::Watch> value;
};

namespace horus::capi {

[[nodiscard]] inline std::shared_ptr<Watch> WatchOf(const horus_watch* watch) {
  return watch == nullptr ? nullptr : watch->value;
}

}  // namespace horus::capi

#endif  // HORUS_CAPI_WATCHING_H_
