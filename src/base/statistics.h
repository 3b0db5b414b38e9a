// SPDX-License-Identifier: Apache-2.0
// Summaries of measured values that several rooms report.
//
// Enters:  finite numbers.
// Leaves:  a median, a rank correlation; NaN where there is none. The normal quantile.
// Units:   those of the numbers; a correlation is from -1 to 1.
#pragma once

#include <span>
#include <vector>

namespace horus {

// The middle value, or the mean of the middle two; NaN of none.
[[nodiscard]] double Median(std::vector<double> values);

// Spearman's: of the ranks, equal values sharing the mean of theirs. NaN when all of one side are equal. Both of one
// size.
[[nodiscard]] double RankCorrelation(std::span<const double> a, std::span<const double> b);

// How many standard deviations above its median a normal variable is not with that probability, 0 to 1 exclusive.
[[nodiscard]] double DeviationsAt(double probability);

}  // namespace horus
