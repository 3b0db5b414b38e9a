// SPDX-License-Identifier: Apache-2.0
// The rule behind the utilisation proxy, per sharing mode.
#include "interference/utilisation_model.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "interference/laws.h"

namespace horus {
namespace {

constexpr double kFullPct = 100.0;

// Utilisations are summed as whole millionths of a per cent: exact, so the order of the tenants cannot show.
constexpr double kUnitsPerPct = kLoadUnitsPerSlowdown / kFullPct;

int64_t ToUnits(float pct, float share) {
  return std::llround(SliceUtilPct(static_cast<double>(pct), static_cast<double>(share)) * kUnitsPerPct);
}

float OverCommit(int64_t units) {
  return static_cast<float>(std::max(1.0, static_cast<double>(units) / (kUnitsPerPct * kFullPct)));
}

bool IsModelledMode(SharingMode mode) {
  return std::find(kSharingModes.begin(), kSharingModes.end(), mode) != kSharingModes.end();
}

absl::Status CheckModelledDevice(const DeviceContext& device) {
  if (!IsModelledMode(device.mode)) {
    return InvalidArgument("utilisation model: unknown sharing mode %d", static_cast<int>(device.mode));
  }
  if (!(device.compute_share > 0 && device.compute_share <= 1)) {
    return InvalidArgument("utilisation model: expected a compute share in (0, 1], found %g", device.compute_share);
  }
  return absl::OkStatus();
}

Load LoadOf(const DeviceContext& device, const Demand& tenant) {
  return {ToUnits(tenant.gpu_util_pct.estimate, device.compute_share),
          ToUnits(tenant.gpu_util_pct.upper, device.compute_share)};
}

}  // namespace

absl::Status UtilisationModel::Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                       std::span<Slowdown> out) const {
  if (out.size() != tenants.size()) {
    return InvalidArgument("utilisation model: expected room for %d slowdowns, found %d", tenants.size(), out.size());
  }
  HORUS_RETURN_IF_ERROR(CheckModelledDevice(device));
  int64_t estimate = 0;
  int64_t upper = 0;
  for (const Demand* tenant : tenants) {
    if (tenant == nullptr) return InvalidArgument("utilisation model: a tenant is null");
    const Load load = LoadOf(device, *tenant);
    estimate += load.estimate;
    upper += load.upper;
  }
  // One rule for all modes. A lone tenant has at most 100 % and so is undisturbed, as an exclusive device
  // demands; if several run on one all the same, they take turns. MPS and MIG: see docs/interference.md.
  const Slowdown shared{OverCommit(estimate), OverCommit(std::max(estimate, upper))};
  std::fill(out.begin(), out.end(), shared);
  return absl::OkStatus();
}

absl::Status UtilisationModel::PredictLoad(const DeviceContext& device, const Demand& tenant, Load& load) const {
  HORUS_RETURN_IF_ERROR(CheckModelledDevice(device));
  load = LoadOf(device, tenant);
  return absl::OkStatus();
}

}  // namespace horus
