// SPDX-License-Identifier: Apache-2.0
// From speeds and jobs to the problem of the work rate.
#include "lab/truth/speed_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/format.h"
#include "base/status.h"
#include "base/units.h"

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

namespace {

// ---- Asks the model for every pair that may share.

constexpr double kUsPerS = 1e6;

bool Fits(int64_t mem_mib, const DeviceKind& device, int64_t headroom_mib) {
  return mem_mib <= device.mem_mib - headroom_mib;
}

// As the fit rules count: a sharer without a request takes one thousandth.
bool MayShare(const PredictedProfile& a, const PredictedProfile& b, const DeviceKind& device) {
  return device.shares && !a.exclusive && !b.exclusive &&
         std::max(a.gpu_milli, 1) + std::max(b.gpu_milli, 1) <= kMilliPerGpu;
}

bool Keeps(const PredictedProfile& profile, const Slowdown& slowdown) {
  return profile.slowdown_bound == 0 || slowdown.upper <= profile.slowdown_bound;
}

absl::StatusOr<PairSpeed> PredictPair(const PredictedProfile& a, const PredictedProfile& b, uint32_t gpu,
                                      const DeviceKind& device, const InterferenceModel& model, int64_t headroom_mib) {
  PairSpeed pair{.gpu = gpu};
  const std::array<const Demand*, 2> tenants = {a.demands[gpu], b.demands[gpu]};
  const int64_t mem_mib = tenants[0]->mem_mib.upper + tenants[1]->mem_mib.upper;
  if (!MayShare(a, b, device) || !Fits(mem_mib, device, headroom_mib)) return pair;
  std::array<Slowdown, 2> slowdowns;
  HORUS_RETURN_IF_ERROR(model.Predict(device.context, tenants, slowdowns));
  if (!Keeps(a, slowdowns[0]) || !Keeps(b, slowdowns[1])) return pair;
  pair.speed_a = 1.0 / slowdowns[0].estimate;
  pair.speed_b = 1.0 / slowdowns[1].estimate;
  pair.slowdown = std::max(slowdowns[0].upper, slowdowns[1].upper);
  return pair;
}

}  // namespace

absl::StatusOr<SpeedTable> PredictSpeeds(std::span<const PredictedProfile> profiles,
                                         std::span<const DeviceKind> devices, const InterferenceModel& model,
                                         int64_t headroom_mib) {
  SpeedTable table;
  for (const PredictedProfile& profile : profiles) table.profiles.push_back(profile.name);
  table.alone.assign(profiles.size() * devices.size(), 0);
  for (size_t i = 0; i < profiles.size(); ++i) {
    const std::vector<const Demand*>& demands = profiles[i].demands;
    const bool timed = std::all_of(demands.begin(), demands.end(), [](const Demand* demand) {
      return demand == nullptr || demand->step_time_us.estimate > 0;
    });
    for (size_t gpu = 0; gpu < devices.size(); ++gpu) {
      const Demand* const demand = demands[gpu];
      if (demand == nullptr || !Fits(demand->mem_mib.upper, devices[gpu], headroom_mib)) continue;
      table.alone[gpu * profiles.size() + i] = timed ? kUsPerS / static_cast<double>(demand->step_time_us.estimate) : 1;
    }
  }
  for (uint32_t gpu = 0; gpu < devices.size(); ++gpu) {
    table.gpus.push_back(devices[gpu].name);
    for (uint32_t a = 0; a < profiles.size(); ++a) {
      for (uint32_t b = a; b < profiles.size() && table.Alone(gpu, a) > 0; ++b) {
        if (table.Alone(gpu, b) == 0) continue;
        HORUS_ASSIGN_OR_RETURN(PairSpeed pair,
                               PredictPair(profiles[a], profiles[b], gpu, devices[gpu], model, headroom_mib));
        pair.a = a;
        pair.b = b;
        table.pairs.push_back(pair);
      }
    }
  }
  return table;
}

}  // namespace horus
