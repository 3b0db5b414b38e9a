// SPDX-License-Identifier: Apache-2.0
// The runs of a comparison: which are finished on disk, and the missing ones simulated by several threads.
//
// Enters:  a grid; a folder.
// Leaves:  one file a finished run, runs/<key>.json, whole or not at all; beside it timings/<key>.json.
// Units:   seconds of wall time; microseconds of decisions.
// Thread class: main thread, which starts others and waits for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lab/grid.h"

namespace horus::cli {

// By GridMetrics(); NaN where a value is none.
using MetricValues = std::vector<double>;

struct RunTiming {
  double seconds = 0;
  uint64_t decisions = 0;
  double decision_p50_us = 0, decision_p99_us = 0;
};

// A run of the grid and the file that holds or will hold its result.
struct PlannedRun {
  GridRun run;
  std::string key;
  std::string content;
};

// In the grid's order. Several runs of equal content have one key.
[[nodiscard]] std::vector<PlannedRun> PlanRuns(const Grid& grid);

// The `index`-th of `count` parts: every count-th run.
struct Shard {
  size_t index = 0, count = 1;
};
// "3/8": INVALID_ARGUMENT unless 0 <= 3 < 8.
[[nodiscard]] absl::StatusOr<Shard> ParseShard(const std::string& text);

// The stored metrics; nullopt where there is no such file. INVALID_ARGUMENT: it is damaged, or of another run.
[[nodiscard]] absl::StatusOr<std::optional<MetricValues>> ReadRun(const std::string& out, const PlannedRun& run);
[[nodiscard]] std::optional<RunTiming> ReadTiming(const std::string& out, const std::string& key);

struct RunCounts {
  size_t asked = 0;     // of this shard, equal ones once
  size_t finished = 0;  // before
};

// Simulates what is missing of the shard, or with `fresh` all of it. The first error ends it, and so does SIGINT or
// SIGTERM (CANCELLED); runs that finished stay.
[[nodiscard]] absl::StatusOr<RunCounts> SimulateMissing(const Grid& grid, const std::vector<PlannedRun>& runs,
                                                        const Shard& shard, const std::string& out, size_t threads,
                                                        bool fresh);

// The signal that ended it; 0 = none did.
[[nodiscard]] int StoppedBy();

}  // namespace horus::cli
