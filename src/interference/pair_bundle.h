// SPDX-License-Identifier: Apache-2.0
// The bundle of interference models: who was measured where, and a target with its bounds for every kind.
//
// Enters:  what training found, or a Bundle.
// Leaves:  a Bundle, or its parts checked.
// Units:   as in pair_bounds.h.
// Cost:    linear in the bundle.          Thread class: pure functions over values.
#pragma once

#include "interference/pair_bounds.h"

namespace horus {

// ---- Learned kinds read from a bundle, by name: what every build can do, training or not.
// Cost: that of the kind.

struct PairModelReader {
  std::string_view name;
  absl::StatusOr<std::unique_ptr<const PairModel>> (*read)(const PairHeader& header, const BundleTarget& target);
};
// What the laboratory adds to `horus`. Called once, while a library or program that has the laboratory is loaded and so
// before any other call (lab/policies/policies.cc). The readers stay.
void RegisterLabPairModels(std::span<const PairModelReader> readers);

// The default first.
[[nodiscard]] std::vector<std::string_view> LearnedModelNames();
// For the end of a message about an unknown name: where others are; empty where all are here.
[[nodiscard]] const char* WhereOtherModelsAre();

// By the target's name. NOT_FOUND lists the names; else the errors of the kind.
[[nodiscard]] absl::StatusOr<std::unique_ptr<const PairModel>> ReadPairModel(const PairHeader& header,
                                                                             const BundleTarget& target);

// What all kinds of a bundle share.
struct PairBundleHead {
  PairHeader header;
  std::vector<std::vector<uint32_t>> seen;  // for each device, ascending positions of the jobs with rows there
  friend bool operator==(const PairBundleHead&, const PairBundleHead&) = default;
};
[[nodiscard]] PairBundleHead HeadOf(const PairSet& set, std::span<const PairRow> rows);

// Into the bundle's series; into the target's.
void WriteHead(const PairBundleHead& head, Bundle& bundle);
void WriteBounds(const PairBounds& bounds, BundleTarget& target);

// Errors: kDataLoss for what the writers above cannot have written; kFailedPrecondition for a bundle of another schema,
// such as one of demands.
[[nodiscard]] absl::StatusOr<PairBundleHead> ReadHead(const Bundle& bundle);
[[nodiscard]] absl::StatusOr<PairBounds> ReadBounds(const PairHeader& header, const BundleTarget& target);

}  // namespace horus
