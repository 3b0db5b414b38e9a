// SPDX-License-Identifier: Apache-2.0
// Integrates the number of jobs over time, once, and reads each job's mean off it.
#include "lab/fairness.h"

#include <algorithm>
#include <utility>

namespace horus {
namespace {

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
    std::sort(changes.begin(), changes.end());
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
  return squares > 0 ? sum * sum / (static_cast<double>(values.size()) * squares) : 0;
}

}  // namespace horus
