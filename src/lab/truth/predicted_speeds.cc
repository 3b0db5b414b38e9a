// SPDX-License-Identifier: Apache-2.0
// Asks the model for every pair that may share.
#include "lab/truth/predicted_speeds.h"

#include <algorithm>
#include <array>

#include "base/status.h"
#include "base/units.h"

namespace horus {
namespace {

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
