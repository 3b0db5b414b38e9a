// SPDX-License-Identifier: Apache-2.0
// Loads what a grid file names: speeds, jobs, models and traces, each once for all runs.
//
// Enters:  a grid file.   Leaves: a Grid, and what was left out on the way; or an error that names file
//          and place.
// Cost:    that of reading; an analysis of each job of the beliefs that states a graph.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/grid.h"
#include "lab/io/grid_file.h"

namespace horus::cli {

struct LoadedGrid {
  Grid grid;
  std::vector<std::string> notes;
};

[[nodiscard]] absl::StatusOr<LoadedGrid> LoadGrid(const GridFile& file);

}  // namespace horus::cli
