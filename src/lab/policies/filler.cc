// SPDX-License-Identifier: Apache-2.0
// filler: best-effort jobs fill what is idle now; all others have devices to themselves but for fillers.
#include <algorithm>

#include "lab/policies/rivals.h"
#include "place/policies/tiers.h"

namespace horus {
namespace {

class FillerPolicy final : public Policy {
 public:
  std::string_view name() const override { return "filler"; }
  bool uses_place() const override { return true; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    const auto residents = candidate.tenants.first(candidate.residents());
    const bool fillers_only = std::all_of(residents.begin(), residents.end(), [](const TenantClass* resident) {
      return resident->kind == JobKind::kBestEffort;
    });
    const bool is_filler = candidate.kind == JobKind::kBestEffort;
    score = {.cost = TierOf(candidate), .declined = is_filler ? !residents.empty() : !fillers_only};
    return absl::OkStatus();
  }

  // Nodes that are partly in use first: an idle node stays whole for those who need all of it.
  double ScorePlace(const PlaceCandidate& place) const override {
    return static_cast<double>(place.node_idle_devices) / static_cast<double>(std::max(place.node_devices, 1));
  }
};

}  // namespace

std::unique_ptr<Policy> MakeFillerPolicy(const PolicyOptions& /*options*/) { return std::make_unique<FillerPolicy>(); }

}  // namespace horus
