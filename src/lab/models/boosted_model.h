// SPDX-License-Identifier: Apache-2.0
// `boosted`: trees that refine the physical law of how one tenant slows another.
//
// Enters:  to fit: rows of a PairSet. To answer: the tenants of a device.
// Leaves:  as pair_model.h says.
// Units:   trees add to the margin, ln(slowdown - kSlowdownShift).
// Cost:    a fit: 0.2 s for 2,000 rows. An answer: about a microsecond an ordered pair; on a device that was not
//          trained on, trees that differ by device are walked for each that was. No allocation. Memory: a forest for
//          each trained device and one for all others.
// Thread class: pure functions; the model is immutable, share freely.
#pragma once

#include "interference/pair_model.h"

namespace horus {

inline constexpr std::string_view kBoostedName = "boosted";

// Loads libhorus_train.so; errors: those of trees/trainer.h.
[[nodiscard]] absl::StatusOr<BundleTarget> FitBoosted(const PairSet& set, std::span<const PairRow> rows,
                                                      const PairFitOptions& options);
[[nodiscard]] absl::StatusOr<std::unique_ptr<const PairModel>> ReadBoosted(const PairHeader& header,
                                                                           const BundleTarget& target);

}  // namespace horus
