// SPDX-License-Identifier: Apache-2.0
// A grid of one workload, one policy and one seed, stated by options instead of a file.
//
// Enters:  options.                      Leaves: what a grid file would have said; or an error that names the option.
// Units:   as in docs/compare.md.
// Cost:    that of reading the cluster.  Thread class: main thread.
#ifndef HORUS_CLI_GRID_OPTIONS_H_
#define HORUS_CLI_GRID_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/io/grid_file.h"

namespace CLI {
class App;
}

namespace horus::cli {

struct GridOptions {
  std::vector<std::string> trace;
  std::string cluster;
  std::vector<std::string> speeds;
  std::vector<std::string> speeds_gpus;  // NAME=TYPE
  std::string truth;                     // a model, instead of speeds
  std::string jobs, bundle, interference = "horus", interference_bundle, predictions;
  std::string policy = "horus", queue = "fifo", slowdown_bound;
  int64_t look_ahead = 0, sample = 0;
  double load = 0, clip_percentile = 100, horizon_h = 0;
  bool single_gpu = false, known_only = false, backlog = false;
  std::vector<std::string> gpus_files;
};

void AddGridOptions(CLI::App& app, GridOptions& options);

[[nodiscard]] absl::StatusOr<GridFile> GridOf(const GridOptions& options, uint64_t seed);

}  // namespace horus::cli

#endif  // HORUS_CLI_GRID_OPTIONS_H_
