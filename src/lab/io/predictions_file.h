// SPDX-License-Identifier: Apache-2.0
// Predicted slowdowns of two jobs on a GPU, by name: what a model says, kept in a file so that a simulation can believe
// it.
//
// Enters:  rows; or a CSV with the columns gpu, sharing_mode, victim, other, slowdown, bound.
// Leaves:  the CSV; or rows in file order, or "predicted.csv: row 12: bound: expected ..., found ...".
// Units:   slowdown = step time shared / step time alone; bound = upper estimate of it, NaN (blank) = none.
// Cost:    linear.                       Thread class: pure functions.
#ifndef HORUS_LAB_IO_PREDICTIONS_FILE_H_
#define HORUS_LAB_IO_PREDICTIONS_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "device/catalogue.h"
#include "device/sharing_mode.h"
#include "interference/model.h"

namespace horus {

struct PredictedPair {
  std::string gpu;  // canonical type name
  SharingMode mode = SharingMode::kTimeSlice;
  std::string victim, other;
  double slowdown = 1;  // of the victim, at least 1
  double bound = 1;     // at least the slowdown
};

[[nodiscard]] std::string PredictedText(std::span<const PredictedPair> rows);

[[nodiscard]] absl::StatusOr<std::vector<PredictedPair>> ParsePredicted(const std::string& file, std::string_view text);
[[nodiscard]] absl::StatusOr<std::vector<PredictedPair>> ReadPredicted(const std::string& path);

// The rows as a model (TableModel without noise) over jobs known by the profile ids of `jobs`; rows of other jobs are
// left out, and pairs without a row answered by `fallback`. NOT_FOUND: a GPU type that the catalogue lacks.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const InterferenceModel>> ModelOfPredicted(
    std::span<const PredictedPair> rows, const std::map<std::string, uint64_t>& jobs, const Catalogue& catalogue,
    std::shared_ptr<const InterferenceModel> fallback);

}  // namespace horus

#endif  // HORUS_LAB_IO_PREDICTIONS_FILE_H_
