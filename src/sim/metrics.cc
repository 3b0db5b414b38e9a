// SPDX-License-Identifier: Apache-2.0
// Counts, sorts and divides.
#include "sim/metrics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace horus {
namespace {

Spread SpreadOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto quantile = [&](double share) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
    return values[std::max<size_t>(rank, 1) - 1];
  };
  double sum = 0;
  for (const double value : values) sum += value;
  return {sum / static_cast<double>(values.size()), quantile(0.5), quantile(0.95), quantile(0.99)};
}

double SlowdownOf(const SimJob& job) {
  const auto undisturbed = static_cast<double>(job.sums.undisturbed);
  return undisturbed > 0 ? static_cast<double>(job.ran_us) * static_cast<double>(kFullRate) / undisturbed : 1;
}

}  // namespace

SimMetrics MetricsOf(const Trace& trace, const SimResult& result, const MetricsOptions& options) {
  SimMetrics metrics;
  std::vector<double> jct, to_horizon, wait, slowdown;
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = std::numeric_limits<int64_t>::min();
  double done = 0;
  double undisturbed = 0;
  double backlogged = 0;
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    const TraceJob& asked = trace.jobs[i];
    const SimJob& job = result.jobs[i];
    done += static_cast<double>(job.sums.done) * static_cast<double>(GpusOf(asked));
    undisturbed += static_cast<double>(job.sums.undisturbed) * static_cast<double>(GpusOf(asked));
    backlogged += static_cast<double>(job.sums.backlogged) * static_cast<double>(GpusOf(asked));
    if (asked.submit_us < options.from_us || asked.submit_us >= options.to_us) continue;
    ++metrics.jobs;
    metrics.failures += static_cast<uint64_t>(job.failures);
    const int64_t until = job.end == SimEnd::kFinished ? job.end_us : result.end_us;
    if (!asked.endless && asked.submit_us < until) to_horizon.push_back(static_cast<double>(until - asked.submit_us));
    switch (job.end) {
      case SimEnd::kWaiting:
        ++metrics.waiting;
        continue;
      case SimEnd::kRunning:
        ++metrics.running;
        continue;
      case SimEnd::kRejected:
        ++metrics.rejected;
        continue;
      case SimEnd::kFinished:
        ++metrics.finished;
    }
    first = std::min(first, asked.submit_us);
    last = std::max(last, job.end_us);
    jct.push_back(static_cast<double>(job.end_us - asked.submit_us));
    wait.push_back(static_cast<double>(job.start_us - asked.submit_us));
    slowdown.push_back(SlowdownOf(job));
    metrics.above_bound += slowdown.back() > options.slowdown_bound ? 1 : 0;
  }
  if (metrics.finished > 0) {
    metrics.makespan_us = last - first;
    metrics.above_bound /= static_cast<double>(metrics.finished);
  }
  metrics.jct_us = SpreadOf(std::move(jct));
  metrics.jct_to_horizon_us = SpreadOf(std::move(to_horizon));
  metrics.wait_us = SpreadOf(std::move(wait));
  metrics.slowdown = SpreadOf(std::move(slowdown));
  if (const auto device_us = static_cast<double>(result.use.device_us); device_us > 0) {
    metrics.allocation = static_cast<double>(result.use.used_us) / device_us;
    metrics.useful = undisturbed / static_cast<double>(kFullRate) / device_us;
    metrics.work_rate = done / static_cast<double>(kFullRate) / device_us;
  }
  if (const auto device_us = static_cast<double>(result.use.backlog_device_us); device_us > 0) {
    metrics.backlog_rate = backlogged / static_cast<double>(kFullRate) / device_us;
  }
  metrics.backlog_us = result.backlog_us;
  if (result.most_done_us >= 0) metrics.most_done_us = result.most_done_us - trace.jobs.front().submit_us;
  return metrics;
}

std::vector<double> BacklogWork(const Trace& trace, const SimResult& result) {
  constexpr double kUsPerS = 1e6;
  std::vector<double> work(trace.profiles.size());
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    const TraceJob& job = trace.jobs[i];
    if (job.profile == kNotStated) continue;
    work[job.profile] += static_cast<double>(result.jobs[i].sums.backlogged) / static_cast<double>(kFullRate) *
                         static_cast<double>(GpusOf(job)) / kUsPerS;
  }
  return work;
}

}  // namespace horus
