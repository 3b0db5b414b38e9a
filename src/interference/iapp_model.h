// SPDX-License-Identifier: Apache-2.0
// `iapp`: a small neural network that predicts the slowdown from the columns of victim, other and device.
//
// Enters:  to fit: rows of a PairSet. To answer: the tenants of a device.
// Leaves:  as pair_model.h says.
// Units:   the network adds to the margin, ln(slowdown - kSlowdownShift).
// Cost:    a fit: 0.5 s for 2,000 rows. An answer: 0.3 us an ordered pair; no allocation.
// Thread class: pure functions; the model is immutable, share freely.
#ifndef HORUS_INTERFERENCE_IAPP_MODEL_H_
#define HORUS_INTERFERENCE_IAPP_MODEL_H_

#include "interference/pair_model.h"

namespace horus {

inline constexpr std::string_view kIappName = "iapp";

// Part of a build with ONNX only: needs Eigen.
[[nodiscard]] absl::StatusOr<BundleTarget> FitIapp(const PairSet& set, std::span<const PairRow> rows,
                                                   const PairFitOptions& options);
[[nodiscard]] absl::StatusOr<std::unique_ptr<const PairModel>> ReadIapp(const PairHeader& header,
                                                                        const BundleTarget& target);

}  // namespace horus

#endif  // HORUS_INTERFERENCE_IAPP_MODEL_H_
