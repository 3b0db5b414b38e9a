// SPDX-License-Identifier: Apache-2.0
// A table over the other model, made anew whenever a pair is new.
#include "lab/truth/learner.h"

#include <array>
#include <utility>

#include "base/status.h"
#include "interference/corrected_model.h"
#include "interference/pair_model.h"

namespace horus {
namespace {

// All chosen.
constexpr double kLeastPart = 1e-4;  // so that a part that was taken for nothing can grow
constexpr int kMostSweeps = 100;
constexpr double kTolerance = 1e-3;

}  // namespace

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

// The parts of the excesses of sets: of two tenants what was seen, of others by iterative scaling.
absl::Status PairLearner::Divide(const DeviceContext& device, Victim& victim) const {
  if (device.compute_share < 1) return absl::OkStatus();  // tables do not apply
  struct Part {
    double excess = 0, most = kMostMeasuredSlowdown;  // `most`: no part is larger than a sum that it is in
    bool alone = false;
  };
  std::map<uint64_t, Part> parts;
  for (const auto& [others, excess] : victim.sets) {
    for (const uint64_t other : others) {
      Part& part = parts[other];
      part.most = std::min(part.most, excess);
      if (others.size() == 1) part = {excess, excess, true};
    }
  }
  for (auto& [other, part] : parts) {
    if (part.alone) continue;
    std::array<Slowdown, 2> believed;
    const std::array<const Demand*, 2> two = {&victim.demand, &victim.others.at(other)};
    HORUS_RETURN_IF_ERROR(beneath_->Predict(device, two, believed));
    part.excess = std::max(kLeastPart, static_cast<double>(believed[0].estimate) - 1);
  }
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double worst = 1;
    for (const auto& [others, excess] : victim.sets) {
      double known = 0, divided = 0;
      for (const uint64_t other : others) (parts[other].alone ? known : divided) += parts[other].excess;
      if (divided == 0) continue;
      const double factor = std::max(kLeastPart, excess - known) / divided;
      worst = std::max({worst, factor, 1 / factor});
      for (const uint64_t other : others) {
        if (!parts[other].alone) parts[other].excess *= factor;
      }
    }
    if (worst < 1 + kTolerance) break;
  }
  victim.pairs.clear();
  for (const auto& [other, part] : parts) {
    const double slowdown = std::min(1 + part.excess, kMostMeasuredSlowdown);
    victim.pairs.push_back({device.type, device.mode, victim.demand.profile_id, other, slowdown,
                            std::min(1 + std::max(part.excess, part.most), kMostMeasuredSlowdown)});
  }
  return absl::OkStatus();
}

bool PairLearner::Teaches(const SeenSharing& seen) {
  return seen.demands.size() >= 2 && seen.demands.size() <= kMostCoTenants + 1 &&
         std::all_of(seen.demands.begin(), seen.demands.end(), [](const Demand* one) { return one->profile_id != 0; });
}

// Profiles of the others than the tenant at `i`.
std::vector<uint64_t> PairLearner::OthersThan(const SeenSharing& seen, size_t i) {
  std::vector<uint64_t> others;
  for (size_t j = 0; j < seen.demands.size(); ++j) {
    if (j != i) others.push_back(seen.demands[j]->profile_id);
  }
  std::sort(others.begin(), others.end());
  return others;
}

bool PairLearner::Knows(const SeenSharing& seen, size_t i, double slowdown) const {
  const auto victim = victims_.find(KeyOf(seen.device, *seen.demands[i]));
  if (victim == victims_.end()) return false;
  const auto known = victim->second.sets.find(OthersThan(seen, i));
  return known != victim->second.sets.end() && known->second == slowdown - 1;
}

void PairLearner::Note(const SeenSharing& seen, size_t i, double slowdown) {
  Victim& victim = victims_[KeyOf(seen.device, *seen.demands[i])];
  victim.demand = *seen.demands[i];
  victim.sets[OthersThan(seen, i)] = slowdown - 1;
  for (const Demand* tenant : seen.demands) victim.others[tenant->profile_id] = *tenant;
}

absl::Status PairLearner::Correct(const SeenSharing& seen, std::span<const double> slowdowns) {
  for (size_t i = 0; i < seen.demands.size(); ++i) {
    std::vector<const Demand*> others(seen.demands.begin(), seen.demands.end());
    others.erase(others.begin() + static_cast<ptrdiff_t>(i));
    HORUS_RETURN_IF_ERROR(observed_.Add({.gpu = catalogue_->at(seen.device.type).name,
                                         .mode = seen.device.mode,
                                         .compute_share = seen.device.compute_share,
                                         .victim = seen.demands[i],
                                         .others = others,
                                         .slowdown = slowdowns[i]}));
  }
  HORUS_ASSIGN_OR_RETURN(beneath_, CorrectedModel::Commit(beneath_, observed_, *catalogue_));
  return absl::OkStatus();
}

absl::Status PairLearner::Believe(const SeenSharing& seen) {
  for (const Demand* demand : seen.demands)
    HORUS_RETURN_IF_ERROR(Divide(seen.device, victims_[KeyOf(seen.device, *demand)]));
  std::vector<TableEntry> entries;
  for (const auto& [key, victim] : victims_) entries.insert(entries.end(), victim.pairs.begin(), victim.pairs.end());
  HORUS_ASSIGN_OR_RETURN(std::shared_ptr<const InterferenceModel> model, TableModel::Create(entries, beneath_, 0));
  believed_->Become(std::move(model));
  return absl::OkStatus();
}

absl::Status PairLearner::Observe(const SeenSharing& seen) {
  if (learns_ < Learns::kPairs || !Teaches(seen)) return absl::OkStatus();
  std::vector<double> slowdowns;
  bool news = false;
  for (size_t i = 0; i < seen.demands.size(); ++i) {
    slowdowns.push_back(std::clamp(seen.slowdowns[i], 1.0, kMostMeasuredSlowdown));
    news |= !Knows(seen, i, slowdowns[i]);
  }
  if (!news) return absl::OkStatus();
  for (size_t i = 0; i < seen.demands.size(); ++i) Note(seen, i, slowdowns[i]);
  if (learns_ == Learns::kCorrects) HORUS_RETURN_IF_ERROR(Correct(seen, slowdowns));
  return Believe(seen);
}

// Of two either may be to blame. The newcomer could not run beside the others, who ran.
absl::StatusOr<bool> PairLearner::Failed(const SeenSharing& seen) {
  if (learns_ == Learns::kNothing || !Teaches(seen) || seen.device.compute_share < 1) return false;
  const size_t newcomer = seen.demands.size() - 1;
  for (size_t i = newcomer == 1 ? 0 : newcomer; i <= newcomer; ++i) Note(seen, i, kMostMeasuredSlowdown);
  HORUS_RETURN_IF_ERROR(Believe(seen));
  return true;
}

}  // namespace horus
