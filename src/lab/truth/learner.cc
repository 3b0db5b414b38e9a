// SPDX-License-Identifier: Apache-2.0
// A table over the other model, made anew whenever a pair is new.
#include "lab/truth/learner.h"

#include <array>
#include <utility>
#include <vector>

#include "base/status.h"
#include "interference/corrected_model.h"
#include "interference/pair_set.h"
#include "interference/table_model.h"

namespace horus {

class PairLearner::Believed final : public InterferenceModel {
 public:
  explicit Believed(std::shared_ptr<const InterferenceModel> model) : model_(std::move(model)) {}
  [[nodiscard]] const std::shared_ptr<const InterferenceModel>& known() const { return model_; }
  void Become(std::shared_ptr<const InterferenceModel> model) { model_ = std::move(model); }

  [[nodiscard]] std::string_view name() const override { return model_->name(); }
  [[nodiscard]] uint64_t epoch() const override { return model_->epoch(); }
  [[nodiscard]] size_t bytes_held() const override { return model_->bytes_held(); }
  [[nodiscard]] double upper_probability() const override { return model_->upper_probability(); }
  [[nodiscard]] bool has_quantiles() const override { return model_->has_quantiles(); }
  void CalibratedUpTo(const DeviceContext& device, std::span<const Demand* const> tenants,
                      std::span<float> up_to) const override {
    model_->CalibratedUpTo(device, tenants, up_to);
  }
  [[nodiscard]] absl::Status Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override {
    return model_->Predict(device, tenants, out);
  }
  [[nodiscard]] std::vector<uint8_t> Measured(const DeviceContext& device,
                                              std::span<const Demand* const> tenants) const override {
    return model_->Measured(device, tenants);
  }

 private:
  std::shared_ptr<const InterferenceModel> model_;
};

PairLearner::PairLearner(std::shared_ptr<const InterferenceModel> model, std::shared_ptr<const Catalogue> catalogue,
                         Learns learns)
    : beneath_(std::move(model)),
      catalogue_(std::move(catalogue)),
      learns_(learns),
      believed_(std::make_shared<Believed>(beneath_)) {}

std::shared_ptr<const InterferenceModel> PairLearner::model() const { return believed_; }

std::shared_ptr<const InterferenceModel> PairLearner::known() const { return believed_->known(); }

absl::StatusOr<bool> PairLearner::Learn(const SeenSharing& seen, double first, double second) {
  if (seen.demands.size() != 2 || seen.device.compute_share != 1) return false;
  const uint64_t a = seen.demands[0]->profile_id, b = seen.demands[1]->profile_id;
  if (a == 0 || b == 0) return false;
  seen_[{seen.device.type, seen.device.mode, a, b}] = first;
  seen_[{seen.device.type, seen.device.mode, b, a}] = second;
  std::vector<TableEntry> entries;
  for (const auto& [key, slowdown] : seen_) {
    const auto& [type, mode, victim, other] = key;
    entries.push_back({type, mode, victim, other, slowdown});
  }
  HORUS_ASSIGN_OR_RETURN(std::shared_ptr<const InterferenceModel> model, TableModel::Create(entries, beneath_, 0));
  believed_->Become(std::move(model));
  return true;
}

absl::Status PairLearner::Observe(const SeenSharing& seen) {
  if (learns_ < Learns::kPairs || seen.demands.size() != 2) return absl::OkStatus();
  std::array<double, 2> slowdowns;
  for (size_t i = 0; i < 2; ++i) slowdowns[i] = std::clamp(seen.slowdowns[i], 1.0, kMostMeasuredSlowdown);
  const auto known =
      seen_.find({seen.device.type, seen.device.mode, seen.demands[0]->profile_id, seen.demands[1]->profile_id});
  if (known != seen_.end() && known->second == slowdowns[0]) return absl::OkStatus();  // nothing new
  if (learns_ == Learns::kCorrects) {
    for (size_t i = 0; i < 2; ++i) {
      const std::array<const Demand*, 1> others = {seen.demands[1 - i]};
      if (seen.demands[i]->profile_id == 0 || others[0]->profile_id == 0) break;
      HORUS_RETURN_IF_ERROR(observed_.Add({.gpu = catalogue_->at(seen.device.type).name,
                                           .mode = seen.device.mode,
                                           .compute_share = seen.device.compute_share,
                                           .victim = seen.demands[i],
                                           .others = others,
                                           .slowdown = slowdowns[i]}));
    }
    HORUS_ASSIGN_OR_RETURN(beneath_, CorrectedModel::Commit(beneath_, observed_, *catalogue_));
  }
  return Learn(seen, slowdowns[0], slowdowns[1]).status();
}

absl::StatusOr<bool> PairLearner::Failed(const SeenSharing& seen) {
  if (learns_ == Learns::kNothing) return false;
  return Learn(seen, kMostMeasuredSlowdown, kMostMeasuredSlowdown);
}

}  // namespace horus
