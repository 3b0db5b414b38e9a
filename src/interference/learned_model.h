// SPDX-License-Identifier: Apache-2.0
// LearnedModel: a trained kind behind the seam, with bounds and the rule for three and more tenants.
//
// Enters:  a bundle of interference models and a kind; later the tenants of a device.
// Leaves:  slowdowns with calibrated upper bounds.
// Units:   as in model.h.
// Cost:    that of the kind for all ordered two of the tenants, and a few allocations.
// Thread class: immutable, share freely.
#pragma once

#include "device/catalogue.h"
#include "interference/pair_bundle.h"

namespace horus {

class LearnedModel final : public InterferenceModel {
 public:
  // Types are known by the names of `catalogue`. Errors: those of ReadHead and ReadBounds; NOT_FOUND (the bundle's
  // kinds).
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const LearnedModel>> Create(const Bundle& bundle,
                                                                                  std::string_view kind,
                                                                                  const Catalogue& catalogue);

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] uint64_t epoch() const override { return epoch_; }  // of the bundle and kind

  // A lone tenant is undisturbed. Several on an exclusive device take turns. INVALID_ARGUMENT: sizes differ, unknown
  // mode, share or null tenant.
  [[nodiscard]] absl::Status Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override;

  [[nodiscard]] bool knows_caps() const override { return true; }
  [[nodiscard]] bool adds_pairs() const override { return true; }
  [[nodiscard]] absl::Status PredictPairs(const DeviceContext& device, std::span<const Demand* const> tenants,
                                          std::span<PairExcess> out) const override;
  [[nodiscard]] absl::Status PredictBeside(const DeviceContext& device, const Demand& newcomer,
                                           std::span<const Demand* const> others, std::span<PairExcess> mine,
                                           std::span<PairExcess> theirs) const override;

  [[nodiscard]] PairLevels LevelsOf(const DeviceContext& device, const Demand& tenant) const override;
  [[nodiscard]] LeastPairs LeastBeside(const DeviceContext& device, const Demand& newcomer) const override;

  // The least that the margins of a tenant's pairs promise; alone it is certain.
  void CalibratedUpTo(const DeviceContext& device, std::span<const Demand* const> tenants,
                      std::span<float> up_to) const override;
  [[nodiscard]] double LevelError(const DeviceContext& device) const override;

  // What stands behind the bound of these two jobs.
  [[nodiscard]] PairMargin MarginOf(const DeviceContext& device, uint64_t victim, uint64_t other) const;

  [[nodiscard]] size_t bytes_held() const override;

 private:
  // A device of the header that answers for a type and mode.
  struct Place {
    uint32_t device = kUnseen;
    bool exact = false;   // measured in that very mode; else MPS follows its law (laws.h), another mode of the type
                          // answers for the rest, and all is bounded as unseen
    bool by_law = false;  // as of every pair in which one is capped: nobody measured caps
  };
  LearnedModel() = default;
  [[nodiscard]] Place PlaceOf(const DeviceContext& device) const;
  // Whether pairs_ answers for the tenant on the device, as which place.
  [[nodiscard]] bool Bounds(const DeviceContext& device, const Demand& tenant, Place& place) const;
  [[nodiscard]] bool Seen(uint32_t device, uint64_t profile) const;
  [[nodiscard]] PairMargin MarginOf(const Place& place, uint64_t victim, uint64_t other) const;
  // With the upper bound that holds there for these jobs, above `most`.
  [[nodiscard]] PairExcess Bounded(const Place& place, const Tenant& victim, const Tenant& other, float slowdown,
                                   float most) const;

  std::string name_;
  uint64_t epoch_ = 0;
  std::unique_ptr<const PairModel> pairs_;
  PairBounds bounds_;
  std::vector<std::vector<uint64_t>> seen_;                      // [device]: ascending profiles
  std::vector<std::array<Place, kSharingModes.size()>> places_;  // [type][mode]
};

}  // namespace horus
