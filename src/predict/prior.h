// SPDX-License-Identifier: Apache-2.0
// The fitted prior: the roofline's terms put together with constants that measured rows have adjusted.
//
// Enters:  a feature row (the roofline's terms are columns of it), factors, and the GPU type's own factor.
// Leaves:  one quantity of the job. The formulas and the spread of each factor are in docs/predict.md.
// Units:   of the quantity; factors are natural logarithms, 0 = the typical value.
// Cost:    about 50 ns.                  Thread class: pure functions.
#ifndef HORUS_PREDICT_PRIOR_H_
#define HORUS_PREDICT_PRIOR_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "predict/quantity.h"

namespace horus {

// What the formulas read of a feature row. Columns that are missing (NaN: an undescribed GPU) count as zero.
struct PriorTerms {
  double compute_us = 0;    // device time of compute-bound operators
  double bandwidth_us = 0;  // of bandwidth-bound ones
  double launch_us = 0;     // of launch-bound ones
  double host_us = 0;       // to dispatch the step
  double copy_us = 0;       // to copy the batch
  double traffic_us = 0;    // to move the bytes of the step at the full bandwidth
  double held_mib = 0;      // peak memory without context and loaded kernels
  double loaded_mib = 0;    // loaded kernels
  double context_mib = 0;   // 0 = unknown
  double util = 0;          // of the roofline, 0-1
  double bandwidth = 0;     // likewise
  double tdp_w = 0;
};
[[nodiscard]] PriorTerms TermsOf(std::span<const float> row);

// A constant of the formulas: typical x e^factor; fitted factors are held near 0 with the spread as standard deviation.
struct PriorFactor {
  std::string_view name;
  double typical = 1;
  double spread = 0;
};
[[nodiscard]] std::span<const PriorFactor> FactorsOf(Quantity quantity);
inline constexpr size_t kMostFactors = 6;
// Spread of the factor that belongs to a GPU type.
[[nodiscard]] double GpuSpreadOf(Quantity quantity);

// `factors` has FactorsOf(quantity).size() values. Never negative; finite for finite terms.
[[nodiscard]] double PriorOf(Quantity quantity, const PriorTerms& terms, std::span<const double> factors, double gpu);

}  // namespace horus

#endif  // HORUS_PREDICT_PRIOR_H_
