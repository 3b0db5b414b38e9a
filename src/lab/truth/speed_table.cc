// SPDX-License-Identifier: Apache-2.0
// From speeds and jobs to the problem of the work rate.
#include "lab/truth/speed_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/format.h"

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

std::string GangName(std::string_view of, int64_t gpus) { return Formatted("%s on %d GPUs", of, gpus); }

uint32_t UnitType(const SpeedTable& table, uint32_t profile, uint32_t reference) {
  if (table.Alone(reference, profile) > 0) return reference;
  for (uint32_t gpu = 0; gpu < table.gpus.size(); ++gpu) {
    if (table.Alone(gpu, profile) > 0) return gpu;
  }
  return reference;
}

std::vector<uint32_t> ProfilesOfOtherUnits(const SpeedTable& table) {
  const auto profiles = static_cast<uint32_t>(table.profiles.size());
  std::vector<bool> apart(profiles);
  for (uint32_t a = 0; a < table.gpus.size(); ++a) {
    for (uint32_t b = a + 1; b < table.gpus.size(); ++b) {
      std::vector<std::pair<double, uint32_t>> ratios;  // logarithms
      for (uint32_t profile = 0; profile < profiles; ++profile) {
        const double on_a = table.Alone(a, profile), on_b = table.Alone(b, profile);
        if (on_a > 0 && on_b > 0) ratios.emplace_back(std::log(on_b / on_a), profile);
      }
      if (ratios.size() < kLeastToCompare) continue;
      std::sort(ratios.begin(), ratios.end());
      const double median = (ratios[(ratios.size() - 1) / 2].first + ratios[ratios.size() / 2].first) / 2;
      for (const auto& [ratio, profile] : ratios) {
        if (std::abs(ratio - median) > std::log(kMostUnitsApart)) apart[profile] = true;
      }
    }
  }
  std::vector<uint32_t> found;
  for (uint32_t profile = 0; profile < profiles; ++profile) {
    if (apart[profile]) found.push_back(profile);
  }
  return found;
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
