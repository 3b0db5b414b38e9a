// SPDX-License-Identifier: Apache-2.0
// The mix of work that comes to a cluster: a trace of Gavel, or a table of shares.
//
// Enters:  a trace of Gavel (traces/trace_file.h), known by its tabs; else a CSV: profile, share.
// Leaves:  rows, then jobs of a speed table's profiles; or "mix.csv: row 2: share: expected ...".
// Units:   steps; shares in GPU time alone on the reference type, any scale.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lab/truth/speed_table.h"

namespace horus {

struct MixRow {
  std::string profile;
  double amount = 0;  // steps of a job, or a share
  size_t row = 0;     // of a table, from 1 after its header
};

struct MixFile {
  std::string file;
  bool is_trace = false;  // rows are jobs
  std::vector<MixRow> rows;
  size_t several = 0;  // jobs on more than one GPU, left out
};

[[nodiscard]] absl::StatusOr<MixFile> ParseMixFile(const std::string& file, std::string_view text);
[[nodiscard]] absl::StatusOr<MixFile> ReadMixFile(const std::string& path);

struct Mix {
  std::vector<MixJob> jobs;
  std::map<std::string, size_t> unknown;  // jobs of traces whose type the table does not have, left out
  size_t several = 0;                     // jobs on more than one GPU, left out
};

// A trace's job brings its steps; a share, that of UnitType(reference). INVALID_ARGUMENT: a share of a profile that the
// table lacks, or no job that it knows.
[[nodiscard]] absl::StatusOr<Mix> JoinMix(std::span<const MixFile> files, const SpeedTable& table, uint32_t reference);

}  // namespace horus
