// SPDX-License-Identifier: Apache-2.0
// Training of the operators' model: constants of the laws and a forest on what they leave, from measured operators.
//
// Enters:  measured operators (docs/language-models.md names the public tables).
// Leaves:  a trained kind, and how well it answers for shapes and GPU types that were left out.
// Units:   us; errors are relative.
// Cost:    some minutes for a hundred thousand rows; loads libhorus_train.so.   Thread class: pure functions.
#ifndef HORUS_BENCH_QUALITY_OPERATOR_FIT_H_
#define HORUS_BENCH_QUALITY_OPERATOR_FIT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "predict/operators.h"

namespace horus {

struct MeasuredOperator {
  Operator op;  // repeated
  const GpuType* gpu = nullptr;
  double us = 0;
  uint64_t shape = 0;  // rows of one shape are never split up: weights, heads, experts
};

// Held near their typical values; errors beyond a tenth count by their size. About 2,500 rows are read.
[[nodiscard]] LawConstants FitLaw(OperatorKind kind, std::span<const MeasuredOperator* const> rows);

// Without the bounds.
[[nodiscard]] absl::StatusOr<TrainedOperators> TrainOperators(OperatorKind kind,
                                                              std::span<const MeasuredOperator* const> rows);

// What the trained kind says, as OperatorModel would.
[[nodiscard]] absl::StatusOr<std::vector<double>> AnswersOf(const TrainedOperators& trained,
                                                            std::span<const MeasuredOperator* const> rows,
                                                            bool gpu_seen);

}  // namespace horus

#endif  // HORUS_BENCH_QUALITY_OPERATOR_FIT_H_
