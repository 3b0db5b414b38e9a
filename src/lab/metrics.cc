// SPDX-License-Identifier: Apache-2.0
// Counts, sorts and divides.
#include "lab/metrics.h"

#include <cmath>

namespace horus {
namespace {

// ---- Integrates the number of jobs over time, once, and reads each job's mean off it.

// The integral of the number of jobs in the system, from the first event to any time.
class JobsOverTime {
 public:
  JobsOverTime(const Trace& trace, const SimResult& result) {
    std::vector<std::pair<int64_t, int64_t>> changes;
    for (size_t i = 0; i < trace.jobs.size(); ++i) {
      const SimJob& job = result.jobs[i];
      if (job.end == SimEnd::kRejected) continue;
      changes.emplace_back(trace.jobs[i].submit_us, 1);
      if (job.end == SimEnd::kFinished) changes.emplace_back(job.end_us, -1);
    }
    std::ranges::sort(changes);
    absl::int128 integral = 0;
    int64_t jobs = 0;
    for (const auto& [time_us, change] : changes) {
      if (!points_.empty()) integral += absl::int128(time_us - points_.back().time_us) * jobs;
      jobs += change;
      points_.push_back({time_us, integral});
    }
  }

  // `time_us`: of a change.
  [[nodiscard]] absl::int128 Until(int64_t time_us) const {
    return std::lower_bound(points_.begin(), points_.end(), time_us,
                            [](const Point& point, int64_t time) { return point.time_us < time; })
        ->integral;
  }

 private:
  struct Point {
    int64_t time_us = 0;
    absl::int128 integral = 0;
  };
  std::vector<Point> points_;
};

Spread SpreadOf(std::vector<double> values) {
  if (values.empty()) return {kNoMetric, kNoMetric, kNoMetric, kNoMetric};
  std::ranges::sort(values);
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

// What the jobs of the window bring, a value each.
struct Samples {
  std::vector<double> jct, to_horizon, wait, slowdown, fairness, speed;  // speed: 1 / fairness
  int64_t first_us = std::numeric_limits<int64_t>::max();
  int64_t last_us = std::numeric_limits<int64_t>::min();
};

void Count(const TraceJob& asked, const SimJob& job, int64_t end_us, SimMetrics& metrics, Samples& samples) {
  ++metrics.jobs;
  metrics.waiting += job.end == SimEnd::kWaiting ? 1 : 0;
  metrics.running += job.end == SimEnd::kRunning ? 1 : 0;
  metrics.rejected += job.end == SimEnd::kRejected ? 1 : 0;
  metrics.finished += job.end == SimEnd::kFinished ? 1 : 0;
  metrics.failures += static_cast<uint64_t>(job.failures);
  metrics.preemptions += static_cast<uint64_t>(job.preemptions);
  metrics.out_of_memory += static_cast<uint64_t>(job.out_of_memory);
  metrics.migrations += static_cast<uint64_t>(job.migrations);
  metrics.interruptions += static_cast<uint64_t>(job.interruptions);
  metrics.restarts += static_cast<uint64_t>(job.restarts);
  const bool finished = job.end == SimEnd::kFinished;
  const int64_t until = finished ? job.end_us : end_us;
  if (!asked.endless && asked.submit_us < until)
    samples.to_horizon.push_back(static_cast<double>(until - asked.submit_us));
  if (!finished) return;
  samples.first_us = std::min(samples.first_us, asked.submit_us);
  samples.last_us = std::max(samples.last_us, job.end_us);
  samples.jct.push_back(static_cast<double>(job.end_us - asked.submit_us));
  samples.wait.push_back(static_cast<double>(job.start_us - asked.submit_us));
  samples.slowdown.push_back(SlowdownOf(job));
}

// Of all jobs and all of the time.
void AddSums(const Trace& trace, const SimResult& result, SimMetrics& metrics) {
  double done = 0;
  double undisturbed = 0;
  double backlogged = 0;
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    const RunSums& sums = result.jobs[i].sums;
    const auto gpus = static_cast<double>(GpusOf(trace.jobs[i]));
    done += static_cast<double>(sums.done) * gpus;
    undisturbed += static_cast<double>(sums.undisturbed) * gpus;
    backlogged += static_cast<double>(sums.backlogged) * gpus;
  }
  const SimUse& use = result.use;
  if (const auto device_us = static_cast<double>(use.device_us); device_us > 0) {
    metrics.allocation = static_cast<double>(use.used_us) / device_us;
    metrics.useful = undisturbed / static_cast<double>(kFullRate) / device_us;
    metrics.work_rate = done / static_cast<double>(kFullRate) / device_us;
  }
  if (const auto device_us = static_cast<double>(use.backlog_device_us); device_us > 0)
    metrics.backlog_rate = backlogged / static_cast<double>(kFullRate) / device_us;
  if (use.free_us > 0) metrics.fragmentation = static_cast<double>(use.fragment_us) / static_cast<double>(use.free_us);
  metrics.beliefs = result.beliefs;
  metrics.devices = result.devices;
  metrics.decisions = result.decisions;
  metrics.end_us = result.end_us;
  if (result.beliefs > 0) metrics.belief_error = result.belief_error / static_cast<double>(result.beliefs);
  metrics.backlog_us = result.backlog_us;
  if (result.most_done_us >= 0) metrics.most_done_us = result.most_done_us - trace.jobs.front().submit_us;
}

}  // namespace

std::vector<double> FinishTimeFairness(const Trace& trace, const SimResult& result) {
  std::vector<double> fairness(trace.jobs.size());
  const JobsOverTime jobs(trace, result);
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    const TraceJob& asked = trace.jobs[i];
    if (result.jobs[i].end != SimEnd::kFinished || asked.duration_us <= 0 || result.devices == 0) continue;
    const auto took_us = static_cast<double>(result.jobs[i].end_us - asked.submit_us);
    const double others =
        static_cast<double>(jobs.Until(result.jobs[i].end_us) - jobs.Until(asked.submit_us)) / took_us;
    const double short_of = static_cast<double>(GpusOf(asked)) * others / static_cast<double>(result.devices);
    fairness[i] = took_us / (static_cast<double>(asked.duration_us) * std::max(1.0, short_of));
  }
  return fairness;
}

double JainIndex(std::span<const double> values) {
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(values.size()) * squares) : kNoMetric;
}

SimMetrics MetricsOf(const Trace& trace, const SimResult& result, const MetricsOptions& options) {
  SimMetrics metrics;
  Samples samples;
  double bounded = 0, above = 0;  // jobs
  const std::vector<double> fairness = FinishTimeFairness(trace, result);
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    const TraceJob& asked = trace.jobs[i];
    if (asked.submit_us < options.from_us || asked.submit_us >= options.to_us) continue;
    Count(asked, result.jobs[i], result.end_us, metrics, samples);
    if (result.jobs[i].end == SimEnd::kFinished && StatesBound(asked.id, options.bounded_milli)) {
      ++bounded;
      if (SlowdownOf(result.jobs[i]) > options.slowdown_bound) ++above;
    }
    if (fairness[i] > 0) {
      samples.fairness.push_back(fairness[i]);
      samples.speed.push_back(1 / fairness[i]);
    }
  }
  if (metrics.finished > 0) metrics.makespan_us = samples.last_us - samples.first_us;
  metrics.above_bound = bounded > 0 ? above / bounded : kNoMetric;
  metrics.jct_us = SpreadOf(std::move(samples.jct));
  metrics.jct_to_horizon_us = SpreadOf(std::move(samples.to_horizon));
  metrics.wait_us = SpreadOf(std::move(samples.wait));
  metrics.slowdown = SpreadOf(std::move(samples.slowdown));
  metrics.finish_time_fairness = SpreadOf(std::move(samples.fairness));
  metrics.jain = JainIndex(samples.speed);
  AddSums(trace, result, metrics);
  return metrics;
}

Spread DecisionTimes(const SimResult& result) { return SpreadOf({result.took_us.begin(), result.took_us.end()}); }

std::vector<double> BacklogWork(const Trace& trace, const SimResult& result) {
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
