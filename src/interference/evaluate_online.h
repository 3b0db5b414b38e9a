// SPDX-License-Identifier: Apache-2.0
// How well slowdowns of a job of an unknown family are foretold once a few of its co-locations were observed.
//
// Enters:  a PairSet, a model's name, how many co-locations are observed and how noisily.
// Leaves:  mean errors before and after, for each device and number of observed co-locations.
// Units:   slowdowns; per cent.
// Cost:    one training (train_pairs.h) a family, and a commit for each job, campaign and draw.
// Thread class: pure functions.
#ifndef HORUS_INTERFERENCE_EVALUATE_ONLINE_H_
#define HORUS_INTERFERENCE_EVALUATE_ONLINE_H_

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "interference/pair_set.h"
#include "interference/train_pairs.h"

namespace horus {

struct OnlinePlan {
  std::set<uint32_t> observed = {1, 3, 10};  // co-locations of a newcomer, each up to kMostObserved
  uint32_t draws = 10;                       // of co-tenants and noise, a newcomer and campaign; at least 1
  double noise = 0.05;                       // standard deviation of a measured slowdown, relative, 0-0.5
};
inline constexpr uint32_t kMostObserved = 64;
inline constexpr double kMostObservedNoise = 0.5;

// Of answers to the same questions.
struct OnlineScore {
  double mape_pct = 0;
  double covered_pct = 0;  // share of the questions whose truth lies within the bound
  double slack_pct = 0;    // bound above truth, on average
};

struct OnlineScores {
  size_t questions = 0;
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

#endif  // HORUS_INTERFERENCE_EVALUATE_ONLINE_H_
