// SPDX-License-Identifier: Apache-2.0
// horus-paper: the published cost (Horus, TPDS 2022), as intended: over-commit penalised, never forbidden.
#include <cmath>

#include "interference/slice.h"
#include "place/policies/builtin.h"

namespace horus {
namespace {

// All from the publication.
constexpr double kMemoryWeight = 1.3;
constexpr double kOverCommitWeight = 1.6;  // against 1 for what is left unused
constexpr double kFullPct = 100.0;
constexpr size_t kMaxTenants = 3;
constexpr int64_t kFreeMib = 500;

struct Parts {
  double memory = 0;
  double utilisation = 0;
  double residents = 0;
};

Parts PartsOf(const DeviceCandidate& candidate) {
  Parts parts;
  const int64_t memory = candidate.mem_used_mib + candidate.newcomer().mem_mib.estimate;
  parts.memory =
      candidate.mem_mib > 0 ? kMemoryWeight * static_cast<double>(memory) / static_cast<double>(candidate.mem_mib) : 0;
  const auto share = static_cast<double>(candidate.device.compute_share);
  double now = 0;
  for (size_t i = 0; i < candidate.residents(); ++i)
    now += SliceUtilPct(static_cast<double>(candidate.demands[i]->gpu_util_pct.estimate), share);
  const double excess =
      now + SliceUtilPct(static_cast<double>(candidate.newcomer().gpu_util_pct.upper), share) - kFullPct;
  parts.utilisation = (excess > 0 ? kOverCommitWeight * excess : std::abs(excess)) / kFullPct;
  parts.residents = static_cast<double>(candidate.residents());
  return parts;
}

class HorusPaperPolicy final : public Policy {
 public:
  std::string_view name() const override { return "horus-paper"; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    const Parts parts = PartsOf(candidate);
    score.cost = parts.memory + parts.utilisation + parts.residents;
    const int64_t free = candidate.mem_mib - candidate.mem_used_mib - candidate.newcomer().mem_mib.estimate;
    score.declined = candidate.residents() >= kMaxTenants || free <= kFreeMib;
    return absl::OkStatus();
  }

  void Explain(const DeviceCandidate& candidate, const PlaceCandidate& /*place*/,
               std::vector<CostTerm>& terms) const override {
    const Parts parts = PartsOf(candidate);
    terms.push_back({"memory", parts.memory});
    terms.push_back({"utilisation", parts.utilisation});
    terms.push_back({"residents", parts.residents});
  }
};

}  // namespace

std::unique_ptr<Policy> MakeHorusPaperPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<HorusPaperPolicy>();
}

}  // namespace horus
