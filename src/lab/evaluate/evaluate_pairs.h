// SPDX-License-Identifier: Apache-2.0
// How well slowdowns are predicted of pairs, jobs, families or GPU types that training has not seen; and of a job of an
// unknown family once a few of its co-locations were observed, on a GPU type that was trained on or on one that was
// not.
//
// Enters:  a PairSet, a model's name and what is left out; how many co-locations are observed and how noisily.
// Leaves:  a prediction with its bound for every row that a left-out group takes part in, or for every two jobs; mean
//          errors before and after, and what bounds admit, for each device and number of observed co-locations.
// Units:   slowdowns; per cent.
// Cost:    one training (train_pairs.h) a left-out group, with leave_gpu a family and GPU type; as is, one answer a
// row;
//          a commit for each newcomer, campaign and draw.   Thread class: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <set>

#include "device/catalogue.h"
#include "interference/model.h"
#include "interference/pair_bounds.h"
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
// any campaign; with `leave_gpu` without the device's GPU type too.
struct UnseenPrediction {
  uint32_t device = 0, victim = 0, other = 0;
  double predicted = 1;
  double upper = 1;  // NaN where the model gives none
};

// Of every two jobs of the set, measured together or not, two copies included: by device, victim, other. Errors as
// EvaluatePairs; too few rows that two families leave.
[[nodiscard]] absl::StatusOr<std::vector<UnseenPrediction>> PredictUnseen(const PairSet& set, std::string_view model,
                                                                          bool leave_gpu,
                                                                          const PairTrainOptions& options,
                                                                          const PairProgress& progress = nullptr);

// ---- Once a few co-locations were observed.

struct OnlinePlan {
  std::set<uint32_t> observed = {1, 3, 10};  // co-locations of a newcomer, each up to kMostObserved
  uint32_t draws = 10;                       // of co-tenants and noise, a newcomer and campaign; at least 1
  double noise = 0.05;                       // standard deviation of a measured slowdown, relative, at least 0
  bool leave_gpu = false;                    // training has not seen the newcomer's GPU type either
  // Only with it: co-locations among the residents that were observed there before, up to kMostObserved.
  uint32_t settled = 0;
};
inline constexpr uint32_t kMostObserved = 64;

// Bounds that jobs may state.
inline constexpr std::array<double, 3> kAskedBounds = {1.25, 1.5, 2};

// Of pairs both of whose slowdowns were asked for.
struct OnlineAdmission {
  double truly_pct = 0;     // of all: both slowdowns are within the bound
  double admitted_pct = 0;  // of those: both upper bounds are, too
  double kept_pct = 0;      // of the tenants of all that are admitted: their slowdown is; NaN where nobody is
  double admitted_tenants = 0;
};

// Of answers to the same questions.
struct OnlineScore {
  double mape_pct = 0;
  double covered_pct = 0;  // share of the questions whose truth lies within the bound
  double slack_pct = 0;    // bound above truth, on average
  std::array<OnlineAdmission, kAskedBounds.size()> admission;  // by kAskedBounds
};

struct OnlineScores {
  size_t questions = 0, pairs = 0;
  OnlineScore before, after;
};

struct OnlineErrors {
  uint32_t device = 0, observed = 0;
  OnlineScores all;        // every other pair that the newcomer was measured in
  OnlineScores residents;  // those of them with a job of another family, which training has seen
};

// Each job in turn is the newcomer to a model trained without its family. Its co-tenants are drawn among the jobs of
// other families; of each co-location both tenants' slowdowns are observed once, with noise. Jobs and campaigns with
// fewer co-tenants than the largest number observed, and one left to ask of, take no part, so that all numbers are of
// the same newcomers. By device, then number observed. Errors: those of TrainInterference; INVALID_ARGUMENT for a plan
// out of range or beyond what was measured, a job without a profile, fewer than two families; NOT_FOUND for a GPU type;
// kCancelled.
[[nodiscard]] absl::StatusOr<std::vector<OnlineErrors>> EvaluateOnline(const PairSet& set, std::string_view model,
                                                                       const Catalogue& catalogue,
                                                                       const OnlinePlan& plan,
                                                                       const PairTrainOptions& options,
                                                                       const PairProgress& progress = nullptr);

}  // namespace horus
