// SPDX-License-Identifier: Apache-2.0
// How well slowdowns are predicted of pairs, jobs, families or GPU types that training has not seen.
//
// Enters:  a PairSet, a model's name and what is left out.
// Leaves:  a prediction with its bound for every row that a left-out group takes part in, or for every two jobs.
// Units:   slowdowns.
// Cost:    one training (train_pairs.h) a left-out group; as is, one answer a row.   Thread class: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "interference/model.h"
#include "interference/pair_bounds.h"
#include "interference/pair_model.h"
#include "lab/models/train_pairs.h"

namespace horus {

struct PairPrediction {
  PairRow row;
  std::string left_out;  // the group: "fold 3", a job, a family, a GPU type
  double predicted = 1;
  double upper = 1;     // NaN where the model gives none
  double promised = 0;  // coverage of the bound, 0-1: what so few groups can promise
};

// The kinds of train_pairs.h, then "utilisation" and the references: "constant" (of the device's training rows) and
// "factors" (of victim and other, fitted to the fold's training rows; knows nothing of a job left out).
[[nodiscard]] std::vector<std::string_view> EvaluatedPairModels();

// A row that two left-out groups take part in is predicted once for each. Errors: those of TrainInterference; fewer
// than two groups; NOT_FOUND for the model's name.
[[nodiscard]] absl::StatusOr<std::vector<PairPrediction>> EvaluatePairs(const PairSet& set, std::string_view model,
                                                                        PairLeave leave,
                                                                        const PairTrainOptions& options,
                                                                        const PairProgress& progress = nullptr);

// What a model that was fitted to other data says of the same rows, in the same groups; a learned one promises the
// coverage that its own data gave it, others give no bound. NOT_FOUND for a device's type; errors of the model.
[[nodiscard]] absl::StatusOr<std::vector<PairPrediction>> EvaluateAsIs(const PairSet& set, const Catalogue& catalogue,
                                                                       const InterferenceModel& model, PairLeave leave,
                                                                       uint32_t seed);

// Of a job beside another, by a model that was fitted and calibrated without the families of both, on any device and in
// any campaign.
struct UnseenPrediction {
  uint32_t device = 0, victim = 0, other = 0;
  double predicted = 1;
  double upper = 1;  // NaN where the model gives none
};

// Of every two jobs of the set, measured together or not, two copies included: by device, victim, other. Errors as
// EvaluatePairs; too few rows that two families leave.
[[nodiscard]] absl::StatusOr<std::vector<UnseenPrediction>> PredictUnseen(const PairSet& set, std::string_view model,
                                                                          const PairTrainOptions& options,
                                                                          const PairProgress& progress = nullptr);

}  // namespace horus
