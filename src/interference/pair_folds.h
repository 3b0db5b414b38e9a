// SPDX-License-Identifier: Apache-2.0
// What is left out together, and what a kind says of rows that it has not seen.
//
// Enters:  a PairSet, its rows, what is to be left out.
// Leaves:  groups of rows; predictions.
// Units:   positions in the rows; slowdowns.
// Cost:    linear in rows; one fit a prediction of a group.   Thread class: pure functions.
#ifndef HORUS_INTERFERENCE_PAIR_FOLDS_H_
#define HORUS_INTERFERENCE_PAIR_FOLDS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "interference/pair_model.h"

namespace horus {

enum class PairLeave {
  kPair,    // unordered pairs, in folds: a pair leaves on every device and in every campaign
  kJob,     // every pair that the job takes part in
  kFamily,  // likewise of all jobs of a family
  kGpu,     // a GPU type, in every mode and campaign
};

struct LeftOut {
  std::string name;            // "fold 3", a job, a family, a GPU type
  std::vector<uint32_t> rows;  // positions, ascending
};

// Groups with rows, in the order of the first of them; pairs are dealt to folds by a hash of seed and pair. `folds`
// counts for pairs only.
[[nodiscard]] std::vector<LeftOut> LeaveOut(const PairSet& set, std::span<const PairRow> rows, PairLeave leave,
                                            uint32_t folds, uint32_t seed);

// The rows at those positions, and all others.
[[nodiscard]] std::vector<PairRow> RowsAt(std::span<const PairRow> rows, std::span<const uint32_t> positions);
[[nodiscard]] std::vector<PairRow> RowsBut(std::span<const PairRow> rows, std::span<const uint32_t> positions);

// The slowdown that the model says for each row.
[[nodiscard]] std::vector<double> PredictRows(const PairModel& model, const PairSet& set,
                                              std::span<const PairRow> rows);

// Likewise by a model of this kind fitted to `train`, which may be empty only if `test` is.
[[nodiscard]] absl::StatusOr<std::vector<double>> FitAndPredict(const PairModelKind& kind, const PairSet& set,
                                                                std::span<const PairRow> train,
                                                                std::span<const PairRow> test,
                                                                const PairFitOptions& options);

}  // namespace horus

#endif  // HORUS_INTERFERENCE_PAIR_FOLDS_H_
