// SPDX-License-Identifier: Apache-2.0
// Datasets turned into what training and evaluation read.
//
// Enters:  paths of dataset files, GPU types.   Leaves: a TrainingSet, or an error that names file and row.
// Units:   as in the rooms.
// Cost:    a graph and run that several rows share is analysed once.   Thread class: one thread at a time.
#ifndef HORUS_CLI_TRAINING_H_
#define HORUS_CLI_TRAINING_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "predict/training_set.h"

namespace horus::cli {

// The rows of all files in order, but for those of nets or families named in `without` (one that no row has is
// refused).
[[nodiscard]] absl::StatusOr<TrainingSet> LoadTrainingSet(std::span<const std::string> files,
                                                          std::span<const std::string> without,
                                                          const Catalogue& catalogue);

}  // namespace horus::cli

#endif  // HORUS_CLI_TRAINING_H_
