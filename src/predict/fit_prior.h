// SPDX-License-Identifier: Apache-2.0
// Fits the constants of the prior to measured rows: few numbers, held near what is assumed, robust to outliers.
//
// Enters:  terms, measured margins, weights and GPU types of rows of one quantity.
// Leaves:  the factors of the prior and one more per GPU type.
// Units:   factors are natural logarithms; margins as InfoOf(quantity).link says.
// Cost:    about 60 x factors evaluations of the prior a row.
// Thread class: pure function; equal rows give equal factors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "predict/prior.h"

namespace horus {

struct PriorRow {
  PriorTerms terms;
  double margin = 0;  // measured
  double weight = 1;
  uint32_t gpu = 0;  // below gpu_count
};

struct FittedPrior {
  std::vector<double> factors;  // as FactorsOf(quantity)
  std::vector<double> gpus;     // by GPU type; 0 where no row has it
};

// `centre`: what the factors are held near, as FittedPrior; empty = 0, the typical values.
[[nodiscard]] FittedPrior FitPrior(Quantity quantity, std::span<const PriorRow> rows, size_t gpu_count,
                                   const FittedPrior& centre = {});

}  // namespace horus
