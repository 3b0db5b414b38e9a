// SPDX-License-Identifier: Apache-2.0
// Batches as large as what comes during a step; see batch_queue.h.
#include "predict/batch_queue.h"

#include <algorithm>
#include <cmath>

#include "base/statistics.h"
#include "base/units.h"

namespace horus {
namespace {

constexpr double kMostBatched = 0.98;  // of what the largest batches serve: beyond it the wait has no mean worth naming
constexpr int kBatchHalvings = 40;

}  // namespace

BatchQueue::BatchQueue(std::vector<std::pair<double, double>> steps) : steps_(std::move(steps)) {
  for (size_t i = 1; i < steps_.size(); ++i) steps_[i].second = std::max(steps_[i].second, steps_[i - 1].second);
}

double BatchQueue::StepUs(double requests) const {
  const auto& [most, longest_us] = steps_.back();
  if (requests >= most) return longest_us * requests / most;
  const auto above = std::ranges::find_if(steps_, [&](const auto& step) { return step.first >= requests; });
  if (above == steps_.begin()) return above->second;
  const auto& [low, low_us] = above[-1];
  return std::lerp(low_us, above->second, (requests - low) / (above->first - low));
}

std::optional<BatchQueue::Point> BatchQueue::At(double requests_per_s, double slowdown, double confidence) const {
  const double rate = requests_per_s * slowdown / kUsPerS;
  const double most = steps_.back().first;
  if (rate * StepUs(most) >= kMostBatched * most) return std::nullopt;
  double low = 0, come = most;  // during a step, as many as its own
  for (int i = 0; i < kBatchHalvings; ++i) {
    const double middle = (low + come) / 2;
    (rate * StepUs(middle) > middle ? low : come) = middle;
  }
  // A step that is longer than most lets more come, whose step is longer again: a Poisson number's deviation grows.
  constexpr double kMostEcho = 0.999;
  double deviation = std::sqrt(come), echo = 0;
  for (int i = 0; i < 3; ++i) {
    echo = std::min(kMostEcho, rate * (StepUs(come + 2 * deviation) - StepUs(come)) / (2 * deviation));
    deviation = std::sqrt(come / (1 - echo * echo));
  }
  const double busy = std::min(1.0, come);
  // Of the step that runs half is left, more where their lengths differ; and a request meets large batches more often.
  const double differ = std::min(1.0, echo * deviation / come);
  const double wait_us = busy * StepUs(come) / 2 * (1 + differ * differ);
  const double mean_us = wait_us + StepUs(come + deviation * deviation / come);
  const double waits = std::max(0.0, (confidence - (1 - busy)) / busy);
  const double upper_us = StepUs(come + DeviationsAt(confidence) * deviation) * (1 + waits);
  return Point{.batch = std::max(1.0, come),
               .rate = requests_per_s,
               .busy = busy,
               .mean_us = slowdown * mean_us,
               .upper_us = slowdown * std::max(mean_us, upper_us)};
}

BatchQueue::Point BatchQueue::OfUsers(double users, double slowdown) const {
  const double batch = std::clamp(users / 2, 1.0, steps_.back().first);
  const double step_us = slowdown * StepUs(batch);
  const double answer_us = users / batch * step_us;
  return {.batch = batch, .rate = batch / step_us * kUsPerS, .mean_us = answer_us, .upper_us = answer_us};
}

}  // namespace horus
