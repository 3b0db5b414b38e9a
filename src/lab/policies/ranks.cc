// SPDX-License-Identifier: Apache-2.0
// Policies that part jobs by rank or knowledge: foreground, filler, reactive.
#include <algorithm>
#include <tuple>
#include <utility>

#include "lab/policies/rivals.h"
#include "place/fit.h"

namespace horus {

// foreground: one foreground job a device, and beside it only background that never slows it beyond its bound.
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

// filler: best-effort jobs fill what is idle now; all others have devices to themselves but for fillers.
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

// reactive: jobs that nobody measured run alone on reserved GPUs; measured ones are placed like horus-paper elsewhere.
namespace {

bool IsMeasured(const Demand& demand) { return (demand.flags & kDemandMeasured) != 0; }

class ReactivePolicy final : public Policy {
 public:
  explicit ReactivePolicy(const PolicyOptions& options)
      : label_(options.profiling_label), packing_(MakeHorusPaperPolicy(options)) {}
  std::string_view name() const override { return "reactive"; }
  bool admits_nodes() const override { return true; }

  bool AdmitsNode(const NodeAdmission& node) const override {
    const auto& labels = node.node->labels;  // ascending by key
    const auto at = std::lower_bound(labels.begin(), labels.end(), label_,
                                     [](const auto& label, const std::string& key) { return label.first < key; });
    const bool profiles = at != labels.end() && at->first == label_;
    const auto& demands = node.job->demands;
    const bool measured =
        std::any_of(demands.begin(), demands.end(), [](const TypeDemand& entry) { return IsMeasured(entry.demand); });
    return profiles != (measured || demands.empty());  // without GPUs there is nothing to profile
  }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    if (IsMeasured(candidate.newcomer())) return packing_->ScoreDevice(candidate, score);
    score = {.cost = 0, .declined = candidate.residents() > 0};
    return absl::OkStatus();
  }

  void Explain(const DeviceCandidate& candidate, const PlaceCandidate& place,
               std::vector<CostTerm>& terms) const override {
    if (IsMeasured(candidate.newcomer())) return packing_->Explain(candidate, place, terms);
    Policy::Explain(candidate, place, terms);
  }

 private:
  std::string label_;
  std::unique_ptr<const Policy> packing_;
};

}  // namespace

std::unique_ptr<Policy> MakeReactivePolicy(const PolicyOptions& options) {
  return std::make_unique<ReactivePolicy>(options);
}

}  // namespace horus
