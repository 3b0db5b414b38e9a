// SPDX-License-Identifier: Apache-2.0
// From speeds and jobs to the problem of the work rate.
#include "sim/speed_table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace horus {
namespace {

// Interpolated between the two nearest ranks; `values` not empty.
double PercentileOf(std::vector<double> values, double percentile) {
  std::sort(values.begin(), values.end());
  const double rank = percentile / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(rank);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (rank - std::floor(rank)) * (values[above] - values[below]);
}

}  // namespace

std::string GangName(std::string_view of, int64_t gpus) { return absl::StrFormat("%s on %d GPUs", of, gpus); }

uint32_t UnitType(const SpeedTable& table, uint32_t profile, uint32_t reference) {
  if (table.Alone(reference, profile) > 0) return reference;
  for (uint32_t gpu = 0; gpu < table.gpus.size(); ++gpu) {
    if (table.Alone(gpu, profile) > 0) return gpu;
  }
  return reference;
}

std::vector<double> WorkByProfile(const SpeedTable& table, std::span<const MixJob> jobs, uint32_t reference,
                                  double clip_percentile) {
  std::vector<double> work(table.profiles.size(), 0);
  std::vector<double> seconds;
  std::vector<uint32_t> profiles;
  for (const MixJob& job : jobs) {
    const double speed = table.Alone(UnitType(table, job.profile, reference), job.profile);
    if (speed == 0) continue;
    seconds.push_back(job.progress / speed);
    profiles.push_back(job.profile);
  }
  if (seconds.empty()) return work;
  const double most = PercentileOf(seconds, clip_percentile);
  for (size_t i = 0; i < seconds.size(); ++i) work[profiles[i]] += std::min(seconds[i], most);
  return work;
}

WorkProblem MakeWorkProblem(const SpeedTable& table, std::span<const double> work, std::span<const double> gpus,
                            uint32_t reference) {
  WorkProblem problem{.gpus = {gpus.begin(), gpus.end()}, .mix = {}, .alone = {}, .pairs = table.pairs};
  std::vector<double> unit;
  for (uint32_t profile = 0; profile < table.profiles.size(); ++profile) {
    unit.push_back(table.Alone(UnitType(table, profile, reference), profile));
    bool runs = false;
    for (uint32_t gpu = 0; gpu < gpus.size(); ++gpu) runs = runs || (gpus[gpu] > 0 && table.Alone(gpu, profile) > 0);
    problem.mix.push_back(runs ? work[profile] : 0);
  }
  for (uint32_t gpu = 0; gpu < table.gpus.size(); ++gpu) {
    for (uint32_t profile = 0; profile < table.profiles.size(); ++profile) {
      const double alone = table.Alone(gpu, profile);
      problem.alone.push_back(alone > 0 ? alone / unit[profile] : 0);
    }
  }
  return problem;
}

}  // namespace horus
