// SPDX-License-Identifier: Apache-2.0
// CorrectedModel: another model, put right by what was observed.
//
// Enters:  a model, collected observations, the types' names.
// Leaves:  a new immutable model with an epoch of its own, and what it answers differently.
// Units:   as in model.h.
// Cost:    that of the other model, and of corrections.h for every ordered two tenants; with three and more tenants
//          the other model is asked for every two of them as well.
// Thread class: immutable, share freely.
#pragma once

#include <set>

#include "interference/corrections.h"

namespace horus {

// A job whose slowdowns, or those of others beside it, may be answered differently on this kind of device.
struct ChangedJob {
  std::string gpu;
  SharingMode mode = SharingMode::kTimeSlice;
  uint64_t profile_id = 0;
  friend auto operator<=>(const ChangedJob&, const ChangedJob&) = default;
};

class CorrectedModel final : public InterferenceModel {
 public:
  // From `model` as it stands, or from what lies beneath it if it was corrected before: observations count once.
  // Errors: those of Corrections::Learn.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const CorrectedModel>> Commit(
      std::shared_ptr<const InterferenceModel> model, const ObservedSlowdowns& observed, const Catalogue& catalogue,
      const CommitProgress& progress = nullptr);

  [[nodiscard]] const InterferenceModel& beneath() const { return *beneath_; }
  [[nodiscard]] std::string_view name() const override { return beneath_->name(); }
  [[nodiscard]] uint64_t epoch() const override { return epoch_; }
  [[nodiscard]] double upper_probability() const override { return beneath_->upper_probability(); }
  [[nodiscard]] bool knows_caps() const override { return beneath_->knows_caps(); }
  [[nodiscard]] bool has_quantiles() const override { return beneath_->has_quantiles(); }
  [[nodiscard]] absl::Status Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override;

  [[nodiscard]] std::vector<uint8_t> Measured(const DeviceContext& device,
                                              std::span<const Demand* const> tenants) const override {
    return beneath_->Measured(device, tenants);
  }

  // That of the model beneath: what observations make of its margins is a calculation.
  void CalibratedUpTo(const DeviceContext& device, std::span<const Demand* const> tenants,
                      std::span<float> up_to) const override {
    beneath_->CalibratedUpTo(device, tenants, up_to);
  }
  [[nodiscard]] double LevelError(const DeviceContext& device) const override;

  // Since the commit before, sorted: jobs on the kinds of devices of which anything was seen or forgotten. Profile 0
  // stands for all jobs on a kind of which the model beneath knew nothing (LevelError).
  [[nodiscard]] const std::vector<ChangedJob>& changed() const { return changed_; }
  [[nodiscard]] uint64_t observations() const { return observations_; }  // taken in so far
  [[nodiscard]] size_t bytes_held() const override;

 private:
  // All that was seen on a kind of device.
  struct Seen {
    uint64_t fingerprint = 0;  // of its situations, in any order
    std::set<uint64_t> jobs;
  };
  using SeenDevices = std::map<std::pair<std::string, SharingMode>, Seen>;
  [[nodiscard]] static SeenDevices SeenIn(const ObservedSlowdowns& observed);
  [[nodiscard]] static std::vector<ChangedJob> Changes(const SeenDevices& before, const SeenDevices& after);
  void AddLevels(const Catalogue& catalogue);  // to seen_, as jobs without a profile

  CorrectedModel() = default;
  std::shared_ptr<const InterferenceModel> beneath_;
  Corrections corrections_;
  uint64_t epoch_ = 0;
  uint64_t observations_ = 0;
  SeenDevices seen_;
  std::vector<ChangedJob> changed_;
};

}  // namespace horus
