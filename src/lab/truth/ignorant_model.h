// SPDX-License-Identifier: Apache-2.0
// IgnorantModel: nobody slows anybody, as far as it knows. What a learner (pair_learner.h) starts from who is told
// nothing.
//
// Enters:  any tenants.                  Leaves: slowdowns of 1.
// Units:   as interference/model.h.
// Cost:    none.                         Thread class: immutable, share freely.
#ifndef HORUS_LAB_TRUTH_IGNORANT_MODEL_H_
#define HORUS_LAB_TRUTH_IGNORANT_MODEL_H_

#include <algorithm>
#include <span>
#include <string_view>

#include "interference/model.h"

namespace horus {

class IgnorantModel final : public InterferenceModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "nothing"; }
  [[nodiscard]] uint64_t epoch() const override { return 0; }
  [[nodiscard]] absl::Status Predict(const DeviceContext& /*device*/, std::span<const Demand* const> /*tenants*/,
                                     std::span<Slowdown> out) const override {
    std::fill(out.begin(), out.end(), Slowdown());
    return absl::OkStatus();
  }
  [[nodiscard]] bool adds_pairs() const override { return true; }
  [[nodiscard]] absl::Status PredictPairs(const DeviceContext& /*device*/, std::span<const Demand* const> /*tenants*/,
                                          std::span<PairExcess> out) const override {
    std::fill(out.begin(), out.end(), PairExcess());
    return absl::OkStatus();
  }
};

}  // namespace horus

#endif  // HORUS_LAB_TRUTH_IGNORANT_MODEL_H_
