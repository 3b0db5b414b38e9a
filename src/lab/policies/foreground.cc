// SPDX-License-Identifier: Apache-2.0
// foreground: one foreground job a device, and beside it only background that never slows it beyond its bound.
#include <algorithm>
#include <tuple>

#include "lab/policies/rivals.h"
#include "place/fit.h"
#include "place/policies/tiers.h"

namespace horus {
namespace {

constexpr double kResidentWeight = 1e-3;  // among equal slowdowns the emptier device; chosen

bool IsBestEffort(const TenantClass& tenant) { return tenant.kind == JobKind::kBestEffort; }

// Best effort is background to everything else, a lower priority to a higher one.
bool IsBackgroundTo(const TenantClass& one, const TenantClass& other) {
  const auto rank = [](const TenantClass& tenant) { return std::tuple(!IsBestEffort(tenant), tenant.priority); };
  return rank(one) < rank(other);
}

class ForegroundPolicy final : public Policy {
 public:
  explicit ForegroundPolicy(double bound) : bound_(bound) {}
  std::string_view name() const override { return "foreground"; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    const TenantClass& newcomer = *candidate.tenants.back();
    score = DeviceScore();
    for (size_t i = 0; i < candidate.residents(); ++i) {
      const TenantClass& resident = *candidate.tenants[i];
      const bool best_effort = IsBestEffort(newcomer) && IsBestEffort(resident);
      // Two foreground jobs of equal rank would each be the other's background.
      if (!best_effort && !IsBackgroundTo(newcomer, resident) && !IsBackgroundTo(resident, newcomer)) {
        score.declined = true;
      }
      if (IsBackgroundTo(newcomer, resident) && !Holds(resident, candidate.before[i], candidate.after[i])) {
        score.declined = true;
      }
      if (IsBackgroundTo(resident, newcomer) && !Holds(newcomer, Slowdown(), candidate.after.back())) {
        score.declined = true;
      }
      score.cost +=
          static_cast<double>(candidate.after[i].estimate) - static_cast<double>(candidate.before[i].estimate);
    }
    score.cost += static_cast<double>(candidate.after.back().estimate) - 1 +
                  kResidentWeight * static_cast<double>(candidate.residents());
    return absl::OkStatus();
  }

 private:
  // By upper bounds, as every limit. Who is beyond its bound already must not become slower.
  [[nodiscard]] bool Holds(const TenantClass& tenant, const Slowdown& before, const Slowdown& after) const {
    if (IsBestEffort(tenant)) return true;
    const double bound = tenant.promise.bound > 0 ? static_cast<double>(tenant.promise.bound) : bound_;
    return !IsBeyond(static_cast<double>(after.upper), bound) ||
           !IsBeyond(static_cast<double>(after.upper), static_cast<double>(before.upper));
  }

  double bound_;
};

}  // namespace

std::unique_ptr<Policy> MakeForegroundPolicy(const PolicyOptions& options) {
  return std::make_unique<ForegroundPolicy>(options.foreground_bound);
}

}  // namespace horus
