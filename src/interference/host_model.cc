// SPDX-License-Identifier: Apache-2.0
// Slowdowns of tenants that wait for input or requests, from those of tenants that never do.
#include "interference/host_model.h"

#include <utility>

#include "base/status.h"
#include "interference/laws.h"

namespace horus {
namespace {

bool SomeWait(std::span<const Demand* const> tenants) {
  return std::any_of(tenants.begin(), tenants.end(), [](const Demand* one) { return PresentPart(*one) < 1; });
}

// As the GPU sees a job that waits for its input.
Demand LessBusy(Demand demand) {
  const double part = BusyPart(demand);
  for (Bounded* share : {&demand.gpu_util_pct, &demand.mem_bw_util_pct}) {
    share->estimate = static_cast<float>(static_cast<double>(share->estimate) * part);
    share->upper = static_cast<float>(static_cast<double>(share->upper) * part);
  }
  if (float& log_share = demand.traits[static_cast<size_t>(Trait::kLogDeviceShare)]; log_share < 0)
    log_share += static_cast<float>(std::log10(part));
  for (int64_t* step : {&demand.step_time_us.estimate, &demand.step_time_us.upper})
    *step = std::max(*step, static_cast<int64_t>(std::llround(demand.host_us)));
  demand.host_us = 0;
  return demand;
}

// What the other costs the victim, of which `pair` is known as if neither waited.
PairExcess BesideHost(const PairExcess& pair, const Demand& victim, const Demand& other) {
  const Slowdown busy = SlowdownOf(pair);
  const auto beside = [&](float slowdown) {
    return static_cast<float>(
        SlowdownBesideHost(static_cast<double>(slowdown) - 1, BusyPart(victim), PresentPart(other)));
  };
  return CountExcess(beside(busy.estimate), beside(busy.upper));
}

class HostModel final : public InterferenceModel {
 public:
  explicit HostModel(std::shared_ptr<const InterferenceModel> model) : model_(std::move(model)) {}

  std::string_view name() const override { return model_->name(); }
  uint64_t epoch() const override { return model_->epoch(); }
  size_t bytes_held() const override { return sizeof(*this) + model_->bytes_held(); }
  double upper_probability() const override { return model_->upper_probability(); }
  bool knows_caps() const override { return model_->knows_caps(); }
  bool has_quantiles() const override { return model_->has_quantiles(); }
  double LevelError(const DeviceContext& device) const override { return model_->LevelError(device); }
  bool adds_pairs() const override { return model_->adds_pairs(); }
  bool adds_loads() const override { return model_->adds_loads(); }
  void CalibratedUpTo(const DeviceContext& device, std::span<const Demand* const> tenants,
                      std::span<float> up_to) const override {
    model_->CalibratedUpTo(device, tenants, up_to);
  }
  std::vector<uint8_t> Measured(const DeviceContext& device, std::span<const Demand* const> tenants) const override {
    return model_->Measured(device, tenants);
  }

  absl::Status Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                       std::span<Slowdown> out) const override {
    if (!SomeWait(tenants)) return model_->Predict(device, tenants, out);
    if (model_->adds_pairs()) {
      std::vector<PairExcess> pairs(tenants.size() * tenants.size());
      HORUS_RETURN_IF_ERROR(PredictPairs(device, tenants, pairs));
      SumPairs(pairs, out);
      return absl::OkStatus();
    }
    std::vector<Demand> seen;
    std::vector<const Demand*> pointers;
    seen.reserve(tenants.size());
    for (const Demand* tenant : tenants) pointers.push_back(&seen.emplace_back(LessBusy(*tenant)));
    return model_->Predict(device, pointers, out);
  }

  absl::Status PredictPairs(const DeviceContext& device, std::span<const Demand* const> tenants,
                            std::span<PairExcess> out) const override {
    HORUS_RETURN_IF_ERROR(model_->PredictPairs(device, tenants, out));
    if (!SomeWait(tenants)) return absl::OkStatus();
    const size_t n = tenants.size();
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        if (i == j) continue;
        PairExcess& pair = out[i * n + j];
        pair = BesideHost(pair, *tenants[i], *tenants[j]);
      }
    }
    return absl::OkStatus();
  }

  absl::Status PredictBeside(const DeviceContext& device, const Demand& newcomer, std::span<const Demand* const> others,
                             std::span<PairExcess> mine, std::span<PairExcess> theirs) const override {
    HORUS_RETURN_IF_ERROR(model_->PredictBeside(device, newcomer, others, mine, theirs));
    for (size_t i = 0; i < others.size(); ++i) {
      if (PresentPart(newcomer) == 1 && PresentPart(*others[i]) == 1) continue;
      mine[i] = BesideHost(mine[i], newcomer, *others[i]);
      theirs[i] = BesideHost(theirs[i], *others[i], newcomer);
    }
    return absl::OkStatus();
  }

  PairLevels LevelsOf(const DeviceContext& device, const Demand& tenant) const override {
    return PresentPart(tenant) < 1 ? PairLevels() : model_->LevelsOf(device, tenant);
  }

  LeastPairs LeastBeside(const DeviceContext& device, const Demand& newcomer) const override {
    return PresentPart(newcomer) < 1 ? LeastPairs() : model_->LeastBeside(device, newcomer);
  }

  absl::Status PredictLoad(const DeviceContext& device, const Demand& tenant, Load& load) const override {
    return model_->PredictLoad(device, BusyPart(tenant) < 1 ? LessBusy(tenant) : tenant, load);
  }

 private:
  std::shared_ptr<const InterferenceModel> model_;
};

}  // namespace

std::shared_ptr<const InterferenceModel> WithHostTime(std::shared_ptr<const InterferenceModel> model) {
  return std::make_shared<const HostModel>(std::move(model));
}

}  // namespace horus
