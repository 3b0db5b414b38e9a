// SPDX-License-Identifier: Apache-2.0
// Site: moves trained models to a site by a few of its own runs, without training: what its context and libraries take
// of memory, how fast its GPUs are and how busy it keeps them.
//
// Enters:  a bundle's models and measured runs of one site.
// Leaves:  a bundle that predicts as before but for those constants, and what they did to the error.
// Units:   MiB; factors are natural logarithms.
// Cost:    one prediction a row.         Thread class: pure function.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "predict/predictor.h"
#include "predict/training_set.h"

namespace horus {

struct SiteEffect {
  Quantity quantity = Quantity::kMemory;
  size_t rows = 0;
  double error_before = 0, error_after = 0;  // mean of |predicted - measured| / measured, of these very rows
  double slack_before = 0, slack_after = 0;  // median of bound / measured - 1
};
struct SiteReport {
  std::vector<SiteEffect> effects;  // of the quantities that were adjusted
  double base_mib = -1;             // < 0: no row measured memory
};

struct SiteOptions {
  double promise = 0.9;  // coverage of the bounds
  double base_mib = -1;  // what context and libraries take, where that is known; < 0: learned from the rows
};

// Memory, step time and utilisation are adjusted, by one row or more each; other models are kept. From ten rows of a
// quantity on its bound rests on this site's own errors, and its range holds these rows. Errors: those of
// CheckTrainingSet; neither rows of either quantity nor a stated base; a predictor without models of what was measured.
[[nodiscard]] absl::StatusOr<Bundle> CalibrateToSite(const Predictor& base, const TrainingSet& set,
                                                     const SiteOptions& options, SiteReport* report = nullptr);

}  // namespace horus
