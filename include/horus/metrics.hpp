// SPDX-License-Identifier: Apache-2.0
// Metrics in C++, over metrics.h. Included by horus.hpp.
#ifndef HORUS_METRICS_HPP_
#define HORUS_METRICS_HPP_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "horus/horus.h"
#include "horus/values.hpp"

namespace horus {
inline namespace face_v0 {  // see values.hpp

struct MetricsOptions {
  // Receives HORUS_LOG_* and one line. Must not throw; several threads may call it at once.
  std::function<void(int32_t level, const char* text)> log = {};
  int32_t log_level = 0;  // the most detailed level reported; 0 = HORUS_LOG_WARNING
  bool times = true;      // measure times by std::chrono::steady_clock
};

struct Metric {
  std::string name;
  std::string labels;  // e.g. call="apply",status="OK"
  int32_t kind = HORUS_METRIC_COUNTER;
  double value = 0;
};

// Counts the work of the clusters, placers and predictors that it is set on; they keep its callbacks alive.
class Metrics {
 public:
  explicit Metrics(MetricsOptions options = {}) : options_(std::make_shared<const MetricsOptions>(std::move(options))) {
    horus_metrics_options c = HORUS_METRICS_OPTIONS_INIT;
    c.log_level = options_->log_level;
    // The library only hands the pointer back, so the options stay const.
    void* const user = const_cast<MetricsOptions*>(options_.get());
    if (options_->log) {
      c.log = [](void* to, int32_t level, const char* text) {
        static_cast<const MetricsOptions*>(to)->log(level, text);
      };
      c.log_user = user;
    }
    if (options_->times) c.clock = &Now;
    horus_metrics* out = nullptr;
    detail::Call(horus_metrics_create, &c, &out);
    handle_.reset(out);
  }
  [[nodiscard]] std::vector<Metric> Rows() const {
    std::vector<const char*> names, labels;
    std::vector<int32_t> kinds;
    std::vector<double> values;
    size_t count = 0;
    horus_metric_columns columns = HORUS_METRIC_COLUMNS_INIT;
    horus_error error = HORUS_ERROR_INIT;
    // Other threads may add rows meanwhile.
    for (;;) {
      const horus_status status = horus_metrics_get(get(), &columns, &count, &error);
      if (status != HORUS_OK && status != HORUS_ERR_BUFFER_TOO_SMALL) throw Error(status, error.message);
      if (status == HORUS_OK && count <= names.size()) break;
      names.resize(count);
      labels.resize(count);
      kinds.resize(count);
      values.resize(count);
      columns = {sizeof(horus_metric_columns), 0, count, names.data(), labels.data(), kinds.data(), values.data()};
    }
    std::vector<Metric> metrics;
    for (size_t i = 0; i < count; ++i) metrics.push_back({names[i], labels[i], kinds[i], values[i]});
    return metrics;
  }
  // In the text format of Prometheus.
  [[nodiscard]] std::string Text() const {
    std::vector<char> text = detail::Collect<char>([&](size_t capacity, char* to, size_t* count, horus_error* error) {
      return horus_metrics_text(get(), capacity, to, count, error);
    });
    return text.data();
  }
  [[nodiscard]] const horus_metrics* get() const noexcept { return handle_.get(); }
  [[nodiscard]] std::shared_ptr<const void> callbacks() const noexcept { return options_; }

 private:
  static uint64_t Now(void* /*user*/) {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
  }
  std::shared_ptr<const MetricsOptions> options_;
  detail::Owned<horus_metrics, horus_metrics_free> handle_;
};

namespace detail {

// A member of a handle with metrics: keeps the callbacks alive.
class Metered {
 public:
  template <typename Handle>
  void Set(horus_status (*set)(Handle*, const horus_metrics*, horus_error*), Handle* handle, const Metrics* metrics) {
    Call(set, handle, metrics == nullptr ? nullptr : metrics->get());
    callbacks_ = metrics == nullptr ? nullptr : metrics->callbacks();
  }

 private:
  std::shared_ptr<const void> callbacks_;
};

}  // namespace detail

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_METRICS_HPP_
