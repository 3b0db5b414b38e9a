// SPDX-License-Identifier: Apache-2.0
// The throughput file of the Gavel scheduler, as published: speeds of jobs alone and beside another.
//
// Enters:  JSON: gpu -> "('JOB', SCALE)" -> "null" (alone) or another such key -> speed, or [the job's, the other's].
// Leaves:  the speeds on one GPU (scale 1), and alone on several; or "file.json: k80: ...: expected ..., found ...".
// Units:   steps a second, 0 = not measured.
// Cost:    linear in the file; at most kMostGavelEntries entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace horus {

inline constexpr size_t kMostGavelEntries = 1'000'000;

struct GavelAlone {
  uint32_t gpu = 0, job = 0;  // positions in GavelSpeeds
  int32_t gpus = 1;
  double steps_per_s = 0;  // of all its GPUs together
};

struct GavelTogether {
  uint32_t gpu = 0, job = 0, other = 0;
  double job_steps_per_s = 0, other_steps_per_s = 0;  // both above 0, or both 0: did not run together
};

struct GavelSpeeds {
  std::vector<std::string> gpus, jobs;  // as written
  std::vector<GavelAlone> alone;        // in file order
  std::vector<GavelAlone> gangs;        // likewise, of several GPUs, at most kMaxGpusPerJob
  std::vector<GavelTogether> together;  // likewise, mirror entries included
  size_t several = 0;                   // entries of jobs on more than one GPU, which the two others leave out
};

[[nodiscard]] absl::StatusOr<GavelSpeeds> ParseGavelSpeeds(const std::string& file, std::string_view text);

}  // namespace horus
