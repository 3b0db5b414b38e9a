// SPDX-License-Identifier: Apache-2.0
// The table of measured pairs as an interference model, with another model for what was not measured.
//
// Enters:  measured slowdowns of two jobs on whole GPUs of a type; a fallback.
// Leaves:  slowdowns by the additive rule of laws.h; which of a device's pairs were measured.
// Units:   slowdown = step time shared / step time alone.
// Cost:    0.1 us a pair and one call of the fallback for each tenant that lacks one; 24 bytes a pair.
// Thread class: immutable, share freely.
#pragma once

#include "device/catalogue.h"
#include "interference/pair_model.h"

namespace horus {

// What one job lost beside another. Jobs are known by the profile id of their demands.
struct TableEntry {
  GpuTypeId type;
  SharingMode mode = SharingMode::kTimeSlice;
  uint64_t victim = 0;  // never 0
  uint64_t other = 0;   // never 0; the victim's own for two copies of a job
  double slowdown = 1;  // of the victim; below 1 is noise and counts as 1
  double most = 0;      // the largest that the slowdown is a mean of; 0 = it is no mean. The bound is not below it
};

inline constexpr size_t kMostTableEntries = 2 * kMostPairRuns;
// RESOURCE_EXHAUSTED for more, as Create answers: for makers of many entries, before they make them.
[[nodiscard]] absl::Status CheckTableSize(size_t entries);
// A prediction costs a factor of the tenants for each: 3 tenants, 27 predictions of what is beneath; chosen.
inline constexpr size_t kMostTablesBeneath = 2;
// By how much a second measurement may exceed the first: runs of one campaign repeat within a few per cent, so this is
// a margin for the same site, not for another one. A chosen value.
inline constexpr double kDefaultTableNoise = 0.05;
inline constexpr double kMostTableNoise = 10;

// What was measured of the jobs of a set: of two campaigns the mean. Devices whose types the catalogue lacks are left
// out, and jobs without a profile. INVALID_ARGUMENT: a campaign that contradicts itself (its place, expected, found).
[[nodiscard]] absl::StatusOr<std::vector<TableEntry>> TableEntriesOf(const PairSet& set, const Catalogue& catalogue);

class TableModel final : public InterferenceModel {
 public:
  // `noise` (0 to kMostTableNoise): the bound of a measured pair is slowdown * (1 + noise), or `most`.
  // INVALID_ARGUMENT: no fallback, a noise or slowdown out of range (kLeastMeasuredSlowdown to kMostMeasuredSlowdown),
  // a profile id 0, an invalid type or mode, two entries of the same jobs, type and mode that differ.
  // RESOURCE_EXHAUSTED: too many. Over another table it becomes one of both, its own entries first; over a corrected
  // model that rests on tables, at most kMostTablesBeneath of them.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const TableModel>> Create(
      std::span<const TableEntry> entries, std::shared_ptr<const InterferenceModel> fallback,
      double noise = kDefaultTableNoise);

  [[nodiscard]] std::string_view name() const override { return "table"; }
  [[nodiscard]] uint64_t epoch() const override { return epoch_; }  // of entries, noise and fallback
  [[nodiscard]] double upper_probability() const override { return fallback_->upper_probability(); }
  [[nodiscard]] bool has_quantiles() const override { return fallback_->has_quantiles(); }

  // A tenant's excess is the sum of what it loses beside each other tenant that was measured beside it, and of what the
  // fallback says it loses beside all those together that were not: with nothing measured the fallback's own answer.
  // On a slice of a GPU (compute_share below 1) nothing counts as measured. Errors: those of the fallback; sizes that
  // differ, unknown mode, a share outside (0, 1], a null tenant.
  [[nodiscard]] absl::Status Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override;

  [[nodiscard]] std::vector<uint8_t> Measured(const DeviceContext& device,
                                              std::span<const Demand* const> tenants) const override;

  // Of what was measured kUpperProbability, for which its noise stands; of the rest that of the fallback.
  void CalibratedUpTo(const DeviceContext& device, std::span<const Demand* const> tenants,
                      std::span<float> up_to) const override;
  [[nodiscard]] double LevelError(const DeviceContext& device) const override { return fallback_->LevelError(device); }

  [[nodiscard]] size_t size() const { return rows_.size(); }
  [[nodiscard]] bool Knows(uint64_t profile_id) const {
    return std::ranges::any_of(rows_, [=](const Row& row) { return row.victim == profile_id; });
  }
  [[nodiscard]] const InterferenceModel& fallback() const { return *fallback_; }
  [[nodiscard]] size_t bytes_held() const override;  // the fallback excluded

 private:
  struct Row {
    uint64_t victim = 0, other = 0;
    GpuTypeId type;
    SharingMode mode = SharingMode::kTimeSlice;
    float slowdown = 1, upper = 1;
  };

  TableModel(std::vector<Row> rows, std::shared_ptr<const InterferenceModel> fallback);

  // What was measured of `victim` beside `other`, or nullptr.
  [[nodiscard]] const Row* Find(const DeviceContext& device, const Demand& victim, const Demand& other) const;

  std::vector<Row> rows_;  // sorted, distinct
  std::shared_ptr<const InterferenceModel> fallback_;
  uint64_t epoch_ = 0;
};

}  // namespace horus
