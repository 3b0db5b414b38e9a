// SPDX-License-Identifier: Apache-2.0
// Quantiles: the slowdown that is not exceeded with a given probability.
//
// Enters:  an estimate, its upper bound and the probability of that; the probability that is asked for.
// Leaves:  a slowdown.
// Units:   slowdown as in model.h; probabilities 0.5 to below 1.
// Cost:    a logarithm and an exponential.   Thread class: pure functions.
#ifndef HORUS_INTERFERENCE_QUANTILE_H_
#define HORUS_INTERFERENCE_QUANTILE_H_

#include "interference/model.h"

namespace horus {

// Probabilities that may be asked for; the bounds of a model lie above the first.
inline constexpr double kLeastProbability = 0.5, kMostProbability = 0.999;

// How many standard deviations above its median a normal variable is not with that probability, 0 to 1 exclusive.
[[nodiscard]] double DeviationsAt(double probability);
// DeviationsAt(kUpperProbability): from an estimate to its upper bound.
inline constexpr double kDeviationsToUpper = 1.2815515655446004;

// z of excess.h is taken for normal: its median is the estimate's, its spread follows from `upper`. So margins in z are
// to each other as DeviationsAt. At upper_probability it is `upper` itself, at 0.5 the estimate.
[[nodiscard]] double SlowdownAt(const Slowdown& answer, double upper_probability, double probability);

}  // namespace horus

#endif  // HORUS_INTERFERENCE_QUANTILE_H_
