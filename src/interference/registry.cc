// SPDX-License-Identifier: Apache-2.0
// The list of interference models; the utilisation proxy.
#include "interference/registry.h"

#include "base/status.h"
#include "base/text.h"
#include "interference/learned_model.h"

namespace horus {

// Generated at build time from default.hbundle.
extern const unsigned char kDefaultInterference[];
extern const size_t kDefaultInterferenceSize;

constexpr std::string_view kUtilisation = "utilisation";

std::vector<std::string_view> InterferenceModelNames() {
  std::vector<std::string_view> names = LearnedModelNames();
  names.push_back(kUtilisation);
  return names;
}

absl::StatusOr<std::shared_ptr<const InterferenceModel>> MakeInterferenceModel(std::string_view name) {
  if (name == kUtilisation) return std::make_shared<const UtilisationModel>();
  const std::vector<std::string_view> all = InterferenceModelNames();
  if (std::find(all.begin(), all.end(), name) != all.end()) {
    return InterferenceModelFromBundle(std::span(kDefaultInterference, kDefaultInterferenceSize), name,
                                       *Catalogue::Default());
  }
  return MakeError(absl::StatusCode::kNotFound, "interference model: %s%s", ExpectedOneOf(all, name),
                   WhereOtherModelsAre());
}

absl::StatusOr<std::shared_ptr<const InterferenceModel>> InterferenceModelFromBundle(std::span<const uint8_t> bytes,
                                                                                     std::string_view name,
                                                                                     const Catalogue& catalogue) {
  HORUS_ASSIGN_OR_RETURN(const Bundle bundle, ReadBundle(bytes));
  return LearnedModel::Create(bundle, name, catalogue);
}

// ---- The rule behind the utilisation proxy, per sharing mode.

namespace {

constexpr char kProxy[] = "utilisation model";
constexpr double kFullPct = 100.0;

// Utilisations are summed as whole millionths of a per cent: exact, so the order of the tenants cannot show.
constexpr double kUnitsPerPct = kLoadUnitsPerSlowdown / kFullPct;

int64_t ToUnits(float pct, float share) {
  return std::llround(SliceUtilPct(static_cast<double>(pct), static_cast<double>(share)) * kUnitsPerPct);
}

float OverCommit(int64_t units) {
  return static_cast<float>(std::max(1.0, static_cast<double>(units) / (kUnitsPerPct * kFullPct)));
}

Load LoadOf(const DeviceContext& device, const Demand& tenant) {
  return {ToUnits(tenant.gpu_util_pct.estimate, device.compute_share),
          ToUnits(tenant.gpu_util_pct.upper, device.compute_share)};
}

}  // namespace

absl::Status UtilisationModel::Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                       std::span<Slowdown> out) const {
  HORUS_RETURN_IF_ERROR(CheckQuestion(kProxy, device, tenants, out.size()));
  int64_t estimate = 0, upper = 0;
  for (const Demand* tenant : tenants) {
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
  HORUS_RETURN_IF_ERROR(CheckDevice(kProxy, device));
  load = LoadOf(device, tenant);
  return absl::OkStatus();
}

}  // namespace horus
