// SPDX-License-Identifier: Apache-2.0
// Reads speeds off demands and a model.
#include "lab/truth/truth.h"

#include <algorithm>
#include <limits>

#include "base/status.h"
#include "interference/slice.h"

namespace horus {

std::vector<SharedSensitivity> SensitivitiesOf(const SensitivitiesByName& named, const Trace& trace) {
  std::vector<SharedSensitivity> sensitivities;
  for (const std::string& profile : trace.profiles) {
    const auto at = named.find(profile);
    sensitivities.push_back(at == named.end() ? SharedSensitivity() : at->second);
  }
  return sensitivities;
}

absl::StatusOr<std::unique_ptr<Truth>> ModelTruth::Create(std::shared_ptr<const InterferenceModel> model,
                                                          std::vector<ProfileDemands> profiles) {
  for (size_t i = 0; i < profiles.size(); ++i) {
    if (profiles[i].empty()) return InvalidArgument("truth: profile %d: expected a demand, found none", i);
    const auto timed = [](const TypeDemand& one) { return one.demand.step_time_us.estimate > 0; };
    const auto count = std::count_if(profiles[i].begin(), profiles[i].end(), timed);
    if (count > 0 && static_cast<size_t>(count) < profiles[i].size()) {
      return InvalidArgument("truth: profile %d: expected step times on all of %d types or none, found %d", i,
                             profiles[i].size(), count);
    }
  }
  return std::unique_ptr<Truth>(new ModelTruth(std::move(model), std::move(profiles)));
}

const Demand* ModelTruth::On(uint32_t profile, GpuTypeId type) const {
  for (const TypeDemand& one : profiles_[profile]) {
    if (one.type == type || one.type == GpuTypeId()) return &one.demand;
  }
  return nullptr;
}

double ModelTruth::SpeedAlone(uint32_t profile, const DeviceContext& device) const {
  const Demand* demand = On(profile, device.type);
  if (demand == nullptr) return 0;
  const double part = device.compute_share < 1 ? SliceSpeed(demand->gpu_util_pct.estimate,
                                                            demand->mem_bw_util_pct.estimate, device.compute_share)
                                               : 1;
  int64_t fastest = demand->step_time_us.estimate;
  if (fastest == 0) return part;
  for (const TypeDemand& one : profiles_[profile]) fastest = std::min(fastest, one.demand.step_time_us.estimate);
  return part * static_cast<double>(fastest) / static_cast<double>(demand->step_time_us.estimate);
}

absl::Status ModelTruth::Shares(const DeviceContext& device, std::span<const uint32_t> profiles,
                                std::span<double> shares) const {
  std::vector<const Demand*> demands;
  for (const uint32_t profile : profiles) {
    demands.push_back(On(profile, device.type));
    if (demands.back() == nullptr) return InvalidArgument("truth: profile %d: expected a demand on its GPU", profile);
  }
  std::vector<Slowdown> slowdowns(demands.size());
  HORUS_RETURN_IF_ERROR(model_->Predict(device, demands, slowdowns));
  for (size_t i = 0; i < shares.size(); ++i) shares[i] = 1 / static_cast<double>(slowdowns[i].estimate);
  return absl::OkStatus();
}

int64_t ModelTruth::MemMib(uint32_t profile, GpuTypeId type) const {
  const Demand* demand = On(profile, type);
  return demand == nullptr ? 0 : demand->mem_mib.estimate;
}

double SensitiveTruth::HostSpeed(uint32_t profile, const HostShare& per_gpu) const {
  const Sensitivity* const matrix = profile < sensitivities_.size() ? sensitivities_[profile].get() : nullptr;
  if (matrix == nullptr) return 1;
  if (const double speed = matrix->Speed(per_gpu); speed > 0) return speed;
  double least = std::numeric_limits<double>::infinity();
  for (const float speed : matrix->speeds()) {
    if (speed > 0) least = std::min(least, static_cast<double>(speed));
  }
  return least;
}

}  // namespace horus
