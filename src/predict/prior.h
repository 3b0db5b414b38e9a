// SPDX-License-Identifier: Apache-2.0
// The fitted prior: the roofline's terms put together with constants that measured rows have adjusted.
//
// Enters:  a feature row (the roofline's terms are columns of it), factors, and the GPU type's own factor.
// Leaves:  one quantity of the job; of measured rows, the factors that suit them. The formulas are in README.md, the
//          spread of each factor in prior.cc.
// Units:   of the quantity; factors are natural logarithms, 0 = the typical value; margins as InfoOf(quantity).link.
// Cost:    about 50 ns; fitting about 60 x factors of that a row.
#pragma once

#include <span>
#include <vector>

#include "features/feature_row.h"
#include "predict/quantity.h"

namespace horus {

// What the formulas read of a feature row. Columns that are missing (NaN: an undescribed GPU) count as zero.
struct PriorTerms {
  std::array<double, kTimeParts> part_us = {};  // of the device time
  double host_us = 0;                           // to dispatch the step
  double copy_us = 0;                           // to copy the batch
  bool training = false;
  bool compiled = false;        // torch.compile
  double traffic_us = 0;        // to move the bytes of the step at the full bandwidth
  double held_mib = 0;          // peak memory of the step itself
  double scratch_mib = 0;       // operands of the largest convolution
  double base_mib = 0;          // context and loaded kernels, before a job takes anything
  bool base_is_stated = false;  // of the site: taken as it is
  double util = 0;              // of the roofline, 0-1
  double bandwidth = 0;         // likewise
  double tdp_w = 0;
};
// `base_mib` >= 0: what the site states.
[[nodiscard]] PriorTerms TermsOf(std::span<const float> row, double base_mib = -1);

// A constant of the formulas: typical x e^factor; fitted factors are held near 0 with the spread as standard deviation.
struct PriorFactor {
  double typical = 1, spread = 0;
};
[[nodiscard]] std::span<const PriorFactor> FactorsOf(Quantity quantity);
inline constexpr size_t kMostFactors = kTimeParts + 6;

// `factors` has FactorsOf(quantity).size() values. Never negative; finite for finite terms.
[[nodiscard]] double PriorOf(Quantity quantity, const PriorTerms& terms, std::span<const double> factors, double gpu);

// The same of constants, typical x e^factor, and of e^gpu: what fitting evaluates many times.
using PriorConstants = std::array<double, kMostFactors>;
[[nodiscard]] PriorConstants ConstantsOf(Quantity quantity, std::span<const double> factors);
[[nodiscard]] double PriorOf(Quantity quantity, const PriorTerms& terms, const PriorConstants& constants,
                             double gpu_scale);

// Few numbers, held near what is assumed, robust to outliers; equal rows give equal factors.
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
